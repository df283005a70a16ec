//! Tools that change titles in the library: `get_more` adds seasons and episodes or searches again, and `change_media`
//! changes monitoring, quality and type.

pub mod change_media;
pub mod get_more;
mod get_more_results;
pub(super) mod monitoring;
mod movie_change;
mod movie_search;
mod read_back;
mod selectors;
mod series_goal;
