//! Common steps of adding a movie or a series: quota usage, choice of the quality profile and folder, and failures.

use serde_json::json;

use super::approval::check_profile_right;
use super::folders::choose_folder;
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, Instance, most_used_profile};
use super::library_cache::refresh::FreshnessPolicy;
use super::preference::{find_profile, preferred_profile};
use super::{ToolContext, ToolError};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{QualityProfile, RootFolder};
use crate::conversation::people::facts::is_four_k;
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{CallFailure, FailureCode, MediaKind, QuotaKind, QuotaUse};

pub(super) const ONE_MOVIE: QuotaUse = QuotaUse { kind: QuotaKind::Movies, amount: 1 };

/// Returns the quota usage of additional seasons. Any addition to a series counts as at least one season.
pub(super) fn count_seasons(seasons: usize) -> QuotaUse {
    QuotaUse { kind: QuotaKind::Seasons, amount: u32::try_from(seasons).unwrap_or(u32::MAX).max(1) }
}

/// Returns the Radarr of an addition: the named one, else the 4K one if the call asks for 4K, else the ordinary one.
pub(super) fn choose_radarr<'a>(
    library: &'a ArrInstances,
    name: Option<&str>,
    quality: Option<&str>,
) -> Result<&'a Instance<Radarr>, CallFailure> {
    library.movie_instance(name.or_else(|| four_k_name(&library.movies, quality)))
}

/// Returns the Sonarr of an addition, as [`choose_radarr`] does.
pub(super) fn choose_sonarr<'a>(
    library: &'a ArrInstances,
    name: Option<&str>,
    quality: Option<&str>,
) -> Result<&'a Instance<Sonarr>, CallFailure> {
    library.series_instance(name.or_else(|| four_k_name(&library.series, quality)))
}

fn four_k_name<Client>(instances: &[Instance<Client>], quality: Option<&str>) -> Option<&'static str> {
    quality.filter(|quality| is_four_k(quality))?;
    instances.iter().find(|instance| instance.four_k).map(|instance| instance.name)
}

/// Chooses the quality profile and the folder of an addition. The call may name either.
pub(super) async fn choose_profile_and_folder(
    instance: &InstanceRef<'_>,
    (quality, folder): (Option<&str>, Option<&str>),
    context: &ToolContext,
) -> Result<(QualityProfile, RootFolder), ToolError> {
    let api = instance.common_api();
    let (profiles, folders) = tokio::try_join!(api.fetch_profiles(), api.fetch_root_folders())
        .map_err(|error| instance.request_error(&error))?;
    // On a 4K instance, 4K names no particular profile.
    let profile = match quality.filter(|quality| !(instance.four_k() && is_four_k(quality))) {
        Some(quality) => {
            let profile = find_profile(&profiles, quality)?;
            check_profile_right(profile, context.rights)?;
            Some(profile)
        }
        None => match preferred_profile(&profiles, instance.kind(), context) {
            Some(profile) => Some(profile),
            None => {
                let library = instance.load_library(context.now, FreshnessPolicy::AnyAge).await;
                let library = library.map_err(|error| instance.request_error(&error))?;
                most_used_profile(&profiles, library.entries.titles().iter().map(|title| title.profile))
            }
        },
    };
    match (profile, choose_folder(&folders, folder)?) {
        (Some(profile), Some(folder)) => Ok((profile.clone(), folder.clone())),
        (None, _) | (_, None) => Err(instance.not_ready().into()),
    }
}

/// Builds the title request from the arguments of a call alone, without title and year.
pub(super) fn request_from_arguments(
    instance: &str,
    (kind, catalog_id): (MediaKind, i64),
    seasons: Option<Vec<u32>>,
) -> RequestedTitle {
    let instance = instance.to_owned();
    RequestedTitle { instance, kind, catalog_id, title: String::new(), year: 0, seasons }
}

/// Builds the failure for an id that the catalog does not have.
pub(super) fn unknown_catalog_id(kind: MediaKind, catalog_id: i64) -> CallFailure {
    let (field, noun) = match kind {
        MediaKind::Movie => ("tmdb", "movie"),
        MediaKind::Series => ("tvdb", "show"),
    };
    CallFailure::new(
        FailureCode::UnknownId,
        json!({ field: catalog_id, "hint": "call search_media and use a number it gives" }),
        Some(format!("I can't find that {noun}.")),
    )
}
