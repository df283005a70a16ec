//! Movies of collections, and movies that Radarr suggests.

use futures_util::future::join_all;
use serde::Deserialize;

use super::ArrError;
use super::radarr::Radarr;
use super::title_limit::{LimitedRecord, TitleLimit};
use super::wire::{RatingsResource, integer_or_default};

/// Maximum number of movies of a list that are looked up for a reader with an age limit.
const MAX_RATED_SUGGESTIONS: usize = 10;

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
        let all = self.unlimited().api.get_slow_list::<WireSuggestion, _>("importlist/movie", &query).await?;
        Ok(self.suggestions_within_limit(all).await)
    }

    /// Returns the movies that the reader may see. The list has no ratings, so the first movies are looked up.
    async fn suggestions_within_limit(&self, movies: Vec<SuggestedMovie>) -> Vec<SuggestedMovie> {
        if self.title_limit().is_none() {
            return movies;
        }
        let check = async |movie: SuggestedMovie| {
            let hits = self.lookup_movies(&format!("tmdb:{}", movie.tmdb)).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to look up the rating of a suggestion");
                Vec::new()
            });
            hits.iter().any(|hit| hit.tmdb == movie.tmdb).then_some(movie)
        };
        join_all(movies.into_iter().take(MAX_RATED_SUGGESTIONS).map(check))
            .await
            .into_iter()
            .flatten()
            .collect()
    }

    /// Fetches the movies of a collection that a movie of the library belongs to. The result is empty if Radarr does
    /// not know the collection.
    pub async fn fetch_collection(&self, tmdb: i64) -> Result<Vec<SuggestedMovie>, ArrError> {
        let id = tmdb.to_string();
        let is_requested = |collection: &WireCollection| collection.tmdb_id == Some(tmdb);
        let collection = self
            .unlimited()
            .api
            .find_in_list::<WireCollection, _>("collection", &[("tmdbId", &id)], is_requested)
            .await?;
        let movies = collection.and_then(|collection| collection.movies).unwrap_or_default();
        Ok(self.suggestions_within_limit(movies.into_iter().map(Into::into).collect()).await)
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

impl LimitedRecord for WireCollection {
    /// Drops the collection, whose movies have no ratings.
    fn within_limit(self, _limit: &TitleLimit) -> Option<Self> {
        None
    }
}

impl LimitedRecord for WireSuggestion {
    /// Drops the movie, which has no rating.
    fn within_limit(self, _limit: &TitleLimit) -> Option<Self> {
        None
    }
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
