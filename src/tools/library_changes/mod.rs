//! Growth and changes of the library: more seasons and episodes, repeated searches for missing items, and the selection
//! of monitored items.

pub mod change_media;
pub mod get_more;
mod get_more_results;
mod monitoring;
mod movie_change;
mod movie_search;
mod read_back;
mod selectors;
mod series_goal;
