//! Movies of collections, and movies that Radarr suggests.

use serde::Deserialize;

use super::ArrError;
use super::radarr::Radarr;
use super::wire::{RatingsResource, integer_or_default};

/// Movie of a collection or of a suggestion list. It may be in the library.
#[derive(Debug, Clone, PartialEq)]
pub struct SuggestedMovie {
    pub tmdb: i64,
    pub title: String,
    pub year: u16,
    pub overview: String,
    pub genres: Vec<String>,
    /// TMDB rating, from 0 to 10.
    pub rating: Option<f64>,
    pub in_library: bool,
    /// True if a user excluded the movie from automatic addition by lists.
    pub excluded: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuggestionSource {
    /// Movies similar to those of the library.
    Similar,
    /// Movies that are popular at present.
    Popular,
}

impl Radarr {
    /// Fetches suggestions. The request is slow, because Radarr queries other services.
    pub async fn fetch_suggestions(&self, source: SuggestionSource) -> Result<Vec<SuggestedMovie>, ArrError> {
        let (similar, popular) = match source {
            SuggestionSource::Similar => ("true", "false"),
            SuggestionSource::Popular => ("false", "true"),
        };
        let query =
            [("includeRecommendations", similar), ("includeTrending", popular), ("includePopular", popular)];
        self.api.get_slow_list::<WireSuggestion, _>("importlist/movie", &query).await
    }

    /// Fetches the movies of a collection that a movie of the library belongs to. The result is empty if Radarr does
    /// not know the collection.
    pub async fn fetch_collection(&self, tmdb: i64) -> Result<Vec<SuggestedMovie>, ArrError> {
        let id = tmdb.to_string();
        let is_requested = |collection: &WireCollection| collection.tmdb_id == Some(tmdb);
        let collection = self
            .api
            .find_in_list::<WireCollection, _>("collection", &[("tmdbId", &id)], is_requested)
            .await?;
        let movies = collection.and_then(|collection| collection.movies).unwrap_or_default();
        Ok(movies.into_iter().map(Into::into).collect())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireCollection {
    tmdb_id: Option<i64>,
    movies: Option<Vec<WireSuggestion>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireSuggestion {
    tmdb_id: Option<i64>,
    title: Option<String>,
    year: Option<i64>,
    overview: Option<String>,
    genres: Option<Vec<String>>,
    ratings: Option<RatingsResource>,
    is_existing: Option<bool>,
    is_excluded: Option<bool>,
}

impl From<WireSuggestion> for SuggestedMovie {
    fn from(wire: WireSuggestion) -> Self {
        Self {
            tmdb: wire.tmdb_id.unwrap_or_default(),
            title: wire.title.unwrap_or_default(),
            year: integer_or_default(wire.year),
            overview: wire.overview.unwrap_or_default(),
            genres: wire.genres.unwrap_or_default(),
            rating: wire.ratings.as_ref().and_then(RatingsResource::tmdb_rating),
            in_library: wire.is_existing.unwrap_or_default(),
            excluded: wire.is_excluded.unwrap_or_default(),
        }
    }
}
