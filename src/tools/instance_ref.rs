//! Reference to a Radarr or Sonarr instance, with the operations that both have, and the fingerprints of titles for
//! confirmation prompts.

use super::ToolError;
use super::formatting::clean_title;
use super::library::{ArrInstances, Instance};
use crate::arr::common_api::CommonApi;
use crate::arr::history::HistoryEntry;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, Download, Movie, RemovalOutcome, Series};
use crate::conversation::deletion::target::{DeletionTarget, TargetFingerprint, ViewingKnowledge};
use crate::conversation::transcript::{CallFailure, MediaKind, MediaRef};

/// Reference to a Radarr or Sonarr instance.
#[derive(Debug, Clone, Copy)]
pub(super) enum InstanceRef<'a> {
    Movies(&'a Instance<Radarr>),
    Series(&'a Instance<Sonarr>),
}

impl<'a> InstanceRef<'a> {
    pub(super) fn find_by_name(
        library: &'a ArrInstances,
        kind: MediaKind,
        name: Option<&str>,
    ) -> Result<Self, CallFailure> {
        match kind {
            MediaKind::Movie => library.movie_instance(name).map(Self::Movies),
            MediaKind::Series => library.series_instance(name).map(Self::Series),
        }
    }
}

impl InstanceRef<'_> {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Movies(instance) => instance.name,
            Self::Series(instance) => instance.name,
        }
    }

    pub(super) fn kind(&self) -> MediaKind {
        match self {
            Self::Movies(_) => MediaKind::Movie,
            Self::Series(_) => MediaKind::Series,
        }
    }

    pub(super) fn four_k(&self) -> bool {
        match self {
            Self::Movies(instance) => instance.four_k,
            Self::Series(instance) => instance.four_k,
        }
    }

    pub(super) fn media_ref(&self, id: i64) -> MediaRef {
        match self {
            Self::Movies(instance) => instance.media_ref(MediaKind::Movie, id),
            Self::Series(instance) => instance.media_ref(MediaKind::Series, id),
        }
    }

    pub(super) fn common_api(&self) -> CommonApi<'_> {
        match self {
            Self::Movies(instance) => instance.client.common_api(),
            Self::Series(instance) => instance.client.common_api(),
        }
    }

    pub(super) async fn fetch_fingerprint(&self, id: i64) -> Result<Option<TargetFingerprint>, ArrError> {
        match self {
            Self::Movies(instance) => Ok(instance.client.fetch_movie(id).await?.map(movie_fingerprint)),
            Self::Series(instance) => Ok(instance.client.fetch_series(id).await?.map(series_fingerprint)),
        }
    }

    pub(super) async fn fetch_downloads(&self) -> Result<Vec<Download>, ArrError> {
        match self {
            Self::Movies(instance) => instance.client.fetch_downloads().await,
            Self::Series(instance) => instance.client.fetch_downloads().await,
        }
    }

    /// Fetches the history of one title, newest first.
    pub(super) async fn fetch_history(&self, id: i64) -> Result<Vec<HistoryEntry>, ArrError> {
        match self {
            Self::Movies(instance) => instance.client.fetch_history(id).await,
            Self::Series(instance) => instance.client.fetch_history(id).await,
        }
    }

    pub(super) async fn delete_title(&self, item: &DeletionTarget) -> Result<RemovalOutcome, ArrError> {
        match self {
            Self::Movies(instance) => instance.client.delete_movie(item.id, item.delete_files).await,
            Self::Series(instance) => instance.client.delete_series(item.id, item.delete_files).await,
        }
    }

    pub(super) fn not_ready(&self) -> CallFailure {
        match self {
            Self::Movies(instance) => instance.not_ready(),
            Self::Series(instance) => instance.not_ready(),
        }
    }

    pub(super) fn request_error(&self, error: &ArrError) -> ToolError {
        match self {
            Self::Movies(instance) => instance.request_error(error),
            Self::Series(instance) => instance.request_error(error),
        }
    }

    pub(super) fn write_error(&self, error: &ArrError) -> ToolError {
        match self {
            Self::Movies(instance) => instance.write_error(error),
            Self::Series(instance) => instance.write_error(error),
        }
    }

    pub(super) fn unverified_write_error(&self, error: &ArrError) -> ToolError {
        match self {
            Self::Movies(instance) => instance.unverified_write_error(error),
            Self::Series(instance) => instance.unverified_write_error(error),
        }
    }
}

pub(super) fn movie_fingerprint(movie: Movie) -> TargetFingerprint {
    TargetFingerprint {
        title: clean_title(&movie.title),
        year: movie.year,
        ids: movie.catalog_ids(),
        path: movie.path,
        size_bytes: movie.size_bytes,
        seasons: None,
        viewing: ViewingKnowledge::default(),
    }
}

pub(super) fn series_fingerprint(series: Series) -> TargetFingerprint {
    let on_disk = series.seasons.iter().filter(|season| season.episodes_on_disk > 0).count();
    TargetFingerprint {
        title: clean_title(&series.title),
        year: series.year,
        ids: series.catalog_ids(),
        path: series.path,
        size_bytes: series.size_bytes,
        seasons: u32::try_from(on_disk).ok(),
        viewing: ViewingKnowledge::default(),
    }
}
