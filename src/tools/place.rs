//! Instance of either kind, and its data about one title: the data that confirmation prompts freeze and later compare.

use super::ToolError;
use super::answers::clean_title;
use super::library::{Instance, Library};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, Movie, Removal, Series};
use crate::conversation::frozen::{Fingerprint, FrozenItem};
use crate::conversation::transcript::{CallFailure, MediaKind, MediaRef};

/// Instance of either kind.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    Movies(&'a Instance<Radarr>),
    Series(&'a Instance<Sonarr>),
}

impl<'a> Place<'a> {
    pub(super) fn of(library: &'a Library, kind: MediaKind, name: Option<&str>) -> Result<Self, CallFailure> {
        match kind {
            MediaKind::Movie => library.movie_instance(name).map(Self::Movies),
            MediaKind::Series => library.series_instance(name).map(Self::Series),
        }
    }
}

impl Place<'_> {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Movies(instance) => instance.name,
            Self::Series(instance) => instance.name,
        }
    }

    pub(super) fn four_k(&self) -> bool {
        match self {
            Self::Movies(instance) => instance.four_k,
            Self::Series(instance) => instance.four_k,
        }
    }

    pub(super) fn item(&self, id: i64) -> MediaRef {
        match self {
            Self::Movies(instance) => instance.item(MediaKind::Movie, id),
            Self::Series(instance) => instance.item(MediaKind::Series, id),
        }
    }

    pub(super) async fn fetch(&self, id: i64) -> Result<Option<Fingerprint>, ArrError> {
        match self {
            Self::Movies(instance) => Ok(instance.client.movie(id).await?.map(fingerprint_of_movie)),
            Self::Series(instance) => Ok(instance.client.series(id).await?.map(fingerprint_of_series)),
        }
    }

    pub(super) async fn delete(&self, item: &FrozenItem) -> Result<Removal, ArrError> {
        match self {
            Self::Movies(instance) => instance.client.delete(item.id, item.delete_files).await,
            Self::Series(instance) => instance.client.delete(item.id, item.delete_files).await,
        }
    }

    pub(super) fn refused(&self, error: &ArrError) -> ToolError {
        match self {
            Self::Movies(instance) => instance.refused(error),
            Self::Series(instance) => instance.refused(error),
        }
    }

    pub(super) fn failed_write(&self, error: &ArrError) -> ToolError {
        match self {
            Self::Movies(instance) => instance.failed_write(error),
            Self::Series(instance) => instance.failed_write(error),
        }
    }

    pub(super) fn unread_write(&self, error: &ArrError) -> ToolError {
        match self {
            Self::Movies(instance) => instance.unread_write(error),
            Self::Series(instance) => instance.unread_write(error),
        }
    }
}

pub(super) fn fingerprint_of_movie(movie: Movie) -> Fingerprint {
    Fingerprint {
        title: clean_title(&movie.title),
        year: movie.year,
        path: movie.path,
        size_bytes: movie.size_bytes,
        seasons: None,
    }
}

pub(super) fn fingerprint_of_series(series: Series) -> Fingerprint {
    let on_disk = series.seasons.iter().filter(|season| season.episodes_on_disk > 0).count();
    Fingerprint {
        title: clean_title(&series.title),
        year: series.year,
        path: series.path,
        size_bytes: series.size_bytes,
        seasons: u32::try_from(on_disk).ok(),
    }
}
