//! Instances as a reader with an age limit may see them. Their clients and cached libraries drop every title over the
//! limit, so that a tool needs no check of its own. Titles that other servers name are looked up there first.

use std::borrow::Cow;
use std::collections::BTreeSet;

use futures_util::future::join_all;
use jiff::Timestamp;

use super::library::{ArrInstances, Instance};
use super::library_cache::entries::CachedTitles;
use super::library_cache::loaded_libraries::LoadedLibraries;
use super::ranking::{MatchQuality, NormalizedTitle, TitleQuery};
use crate::arr::radarr::Radarr;
use crate::arr::{ArrError, Movie, Series};
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::people::age_ratings::AgeLimit;
use crate::conversation::transcript::MediaKind;
use crate::discovery::FoundTitle;
use crate::telemetry;

impl ArrInstances {
    /// Returns the instances as a reader with this limit may see them.
    pub async fn limited_to<'a>(&'a self, limit: &AgeLimit) -> Cow<'a, Self> {
        if limit.is_unlimited() {
            return Cow::Borrowed(self);
        }
        let limit_movies = async |instance: &Instance<Radarr>| Instance {
            client: instance.client.limited_to(limit).await,
            ..instance.clone()
        };
        let movies = join_all(self.movies.iter().map(limit_movies)).await;
        let series = self
            .series
            .iter()
            .map(|instance| Instance { client: instance.client.limited_to(limit), ..instance.clone() });
        Cow::Owned(Self { movies, series: series.collect(), ..self.clone() })
    }

    /// Returns whether the reader may see no titles of a kind without a rating.
    pub(super) fn has_age_limit(&self, kind: MediaKind) -> bool {
        let movies = self.movies.iter().find_map(|instance| instance.client.title_limit());
        let series = self.series.iter().find_map(|instance| instance.client.title_limit());
        movies.or(series).is_some_and(|limit| !limit.limit.caps.allows(kind, None))
    }

    /// Returns whether the reader may see a title that another server named, by the rating of the catalog.
    pub(super) async fn may_show_found(&self, title: &FoundTitle, now: Timestamp) -> bool {
        if !self.has_age_limit(title.kind) {
            return true;
        }
        let catalog_id = match (title.kind, title.tvdb) {
            (MediaKind::Movie, _) => Some(title.tmdb),
            (MediaKind::Series, Some(tvdb)) => Some(tvdb),
            (MediaKind::Series, None) => {
                let facts = self.discovery.fetch_facts((title.kind, title.tmdb), now).await;
                facts.ok().and_then(|facts| facts.tvdb)
            }
        };
        match catalog_id {
            Some(id) => self.may_show(title.kind, id).await,
            None => false,
        }
    }

    /// Returns whether the catalog shows the reader a title, by its TMDB or TheTVDB id.
    pub async fn may_show(&self, kind: MediaKind, catalog_id: i64) -> bool {
        if !self.has_age_limit(kind) {
            return true;
        }
        // All instances of a kind share one catalog, so only the first is queried.
        let found = match kind {
            MediaKind::Movie => match self.movies.first() {
                Some(radarr) => {
                    let hits = radarr.client.lookup_movies(&format!("tmdb:{catalog_id}")).await;
                    hits.map(|hits| hits.iter().any(|hit| hit.tmdb == catalog_id))
                }
                None => return false,
            },
            MediaKind::Series => match self.series.first() {
                Some(sonarr) => {
                    let hits = sonarr.client.lookup_series(&format!("tvdb:{catalog_id}")).await;
                    hits.map(|hits| hits.iter().any(|hit| hit.tvdb == catalog_id))
                }
                None => return false,
            },
        };
        found.unwrap_or_else(|error| hide_unread_title(&error))
    }

    /// Returns whether the library shows the reader a title, by its TMDB or TheTVDB id.
    pub async fn may_show_owned(&self, kind: MediaKind, catalog_id: i64) -> bool {
        if !self.has_age_limit(kind) {
            return true;
        }
        for instance in self.radarr_instances(Some(kind)) {
            let movie = instance.client.fetch_movie_by_tmdb(catalog_id).await;
            if movie.map_or_else(|error| hide_unread_title(&error), |movie| movie.is_some()) {
                return true;
            }
        }
        for instance in self.sonarr_instances(Some(kind)) {
            let series = instance.client.fetch_series_by_tvdb(catalog_id).await;
            if series.map_or_else(|error| hide_unread_title(&error), |series| series.is_some()) {
                return true;
            }
        }
        false
    }

    /// Returns whether the catalog shows the reader a movie or a series of exactly this name, with or without its year.
    pub(super) async fn shows_title_named(&self, name: &str) -> bool {
        let query = TitleQuery::new(name);
        let is_exact = |title: &str, year: u16| {
            query.match_title(&NormalizedTitle::new(title), year) <= MatchQuality::Exact
        };
        for instance in self.movies.iter().take(1) {
            let hits = instance.client.lookup_movies(name).await;
            let has_exact = |hits: Vec<Movie>| hits.iter().any(|hit| is_exact(&hit.title, hit.year));
            if hits.map_or_else(|error| hide_unread_title(&error), has_exact) {
                return true;
            }
        }
        for instance in self.series.iter().take(1) {
            let hits = instance.client.lookup_series(name).await;
            let has_exact = |hits: Vec<Series>| hits.iter().any(|hit| is_exact(&hit.title, hit.year));
            if hits.map_or_else(|error| hide_unread_title(&error), has_exact) {
                return true;
            }
        }
        false
    }

    /// Returns which titles of a media server the reader may see: with a limit, only those of the libraries.
    pub(super) async fn find_shown_ids(&self, now: Timestamp) -> ShownIds {
        let limited = [MediaKind::Movie, MediaKind::Series].map(|kind| (kind, self.has_age_limit(kind)));
        if limited.iter().all(|(_, is_limited)| !is_limited) {
            return ShownIds::default();
        }
        let loaded = LoadedLibraries::load_libraries(self, None, now).await;
        let titles = loaded.cached_titles().into_iter().flat_map(CachedTitles::titles);
        let limited = limited.into_iter().filter(|(_, is_limited)| *is_limited).map(|(kind, _)| kind);
        ShownIds {
            limited: limited.collect(),
            ids: titles.map(|title| (title.media_kind(), title.catalog)).collect(),
        }
    }
}

/// Hides a title whose rating cannot be read.
fn hide_unread_title(error: &ArrError) -> bool {
    tracing::warn!(error = telemetry::error_chain(error), "failed to read an age rating");
    false
}

/// Titles of a media server that a reader may see.
#[derive(Debug, Default)]
pub(super) struct ShownIds {
    /// Kinds with a limit.
    limited: Vec<MediaKind>,
    /// TMDB ids of movies and TheTVDB ids of series.
    ids: BTreeSet<(MediaKind, i64)>,
}

impl ShownIds {
    pub(super) fn includes(&self, kind: MediaKind, ids: &CatalogIds) -> bool {
        let catalog_id = match kind {
            MediaKind::Movie => ids.tmdb,
            MediaKind::Series => ids.tvdb,
        };
        !self.limited.contains(&kind) || catalog_id.is_some_and(|id| self.ids.contains(&(kind, id)))
    }
}
