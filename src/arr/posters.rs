//! Poster URLs of movies and series from the catalog, and the poster images of the library.

use bytes::Bytes;
use serde::Deserialize;

use super::ArrError;
use super::common_api::CommonApi;
use super::title_limit::{LimitedRecord, TitleLimit};

/// Maximum size of a poster image.
const MAX_POSTER_BYTES: u64 = 300_000;

/// Title, year and poster of a catalog entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogPoster {
    pub title: String,
    /// Release year. Zero if the catalog has none.
    pub year: u16,
    /// External URL of the poster. `None` if the catalog has none.
    pub poster: Option<String>,
    catalog_id: i64,
}

impl CommonApi<'_> {
    /// Fetches the poster of a movie from Radarr, by its TMDB id.
    pub async fn fetch_movie_poster(self, tmdb: i64) -> Result<Option<CatalogPoster>, ArrError> {
        let hits: Vec<CatalogPoster> =
            self.0.get_lookup::<PosterLookup, _>("movie/lookup", &format!("tmdb:{tmdb}")).await?;
        Ok(hits.into_iter().find(|hit| hit.catalog_id == tmdb))
    }

    /// Fetches the poster of a series from Sonarr, by its TheTVDB id.
    pub async fn fetch_series_poster(self, tvdb: i64) -> Result<Option<CatalogPoster>, ArrError> {
        let hits: Vec<CatalogPoster> =
            self.0.get_lookup::<PosterLookup, _>("series/lookup", &format!("tvdb:{tvdb}")).await?;
        Ok(hits.into_iter().find(|hit| hit.catalog_id == tvdb))
    }
}

impl CommonApi<'_> {
    /// Fetches the poster of a title in the library as an image of 250 pixels width; `None` if there is none. Its type is
    /// not checked.
    pub async fn fetch_poster_image(self, id: i64) -> Result<Option<Bytes>, ArrError> {
        self.0.get_file(&format!("mediacover/{id}/poster-250.jpg"), MAX_POSTER_BYTES).await
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PosterLookup {
    tmdb_id: Option<i64>,
    tvdb_id: Option<i64>,
    title: Option<String>,
    year: Option<i64>,
    certification: Option<String>,
    remote_poster: Option<String>,
    images: Option<Vec<PosterImage>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PosterImage {
    cover_type: Option<String>,
    remote_url: Option<String>,
}

impl LimitedRecord for PosterLookup {
    fn within_limit(self, limit: &TitleLimit) -> Option<Self> {
        let certification = self.certification.as_deref();
        // Sonarr also returns a TMDB id.
        let is_allowed = match self.tvdb_id {
            Some(tvdb) => limit.allows_series(Some(tvdb), certification),
            None => limit.allows_movie(self.tmdb_id, certification),
        };
        is_allowed.then_some(self)
    }
}

impl From<PosterLookup> for CatalogPoster {
    fn from(wire: PosterLookup) -> Self {
        let images = wire.images.unwrap_or_default();
        let image = images.into_iter().find(|image| image.cover_type.as_deref() == Some("poster"));
        Self {
            title: wire.title.unwrap_or_default(),
            year: wire.year.and_then(|year| u16::try_from(year).ok()).unwrap_or_default(),
            poster: wire.remote_poster.or(image.and_then(|image| image.remote_url)),
            // Sonarr also returns a TMDB id, so the TheTVDB id comes first.
            catalog_id: wire.tvdb_id.or(wire.tmdb_id).unwrap_or_default(),
        }
    }
}
