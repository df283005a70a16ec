//! Space that the titles which a user asked for hold in the library: the list of them, and the limit of the user.

pub mod held_titles;
pub mod my_space;
pub mod space_limit;
#[cfg(test)]
mod tests;

use crate::conversation::title_requests::Requester;
use crate::conversation::transcript::MediaKind;

/// Title that counts toward the space of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTitle {
    pub instance: String,
    pub kind: MediaKind,
    /// TMDB id of a movie, TheTVDB id of a series.
    pub catalog_id: i64,
    /// Other users who asked for the title.
    pub shared_with: Vec<Requester>,
}
