//! Growth and changes of the library: more seasons and episodes, repeated searches for missing items, and the selection
//! of monitored items.

pub mod change_media;
pub mod get_more;
mod monitoring;
mod movie_search;
mod selectors;
