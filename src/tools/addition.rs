//! Parts of an addition that are the same for movies and series: its quality profile and folder, and its failures.

use serde_json::json;

use super::approval::check_profile_right;
use super::folders::folder_for;
use super::instance_ref::InstanceRef;
use super::library::{find_profile, usual_profile};
use super::library_cache::refresh::FreshnessPolicy;
use super::preference::preferred_profile;
use super::{ToolContext, ToolError};
use crate::arr::{QualityProfile, RootFolder};
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{CallFailure, FailureCode, MediaKind, QuotaKind, QuotaUse};

pub(super) const ONE_MOVIE: QuotaUse = QuotaUse { kind: QuotaKind::Movies, amount: 1 };

/// Returns the quota usage of additional seasons. Any addition to a series counts as at least one season.
pub(super) fn count_seasons(seasons: usize) -> QuotaUse {
    QuotaUse { kind: QuotaKind::Seasons, amount: u32::try_from(seasons).unwrap_or(u32::MAX).max(1) }
}

/// Chooses the quality profile and the folder of an addition, where the call may name either.
pub(super) async fn choose_profile_and_folder(
    place: &InstanceRef<'_>,
    (quality, folder): (Option<&str>, Option<&str>),
    context: &ToolContext,
) -> Result<(QualityProfile, RootFolder), ToolError> {
    let api = place.common_api();
    let (profiles, folders) = tokio::try_join!(api.fetch_profiles(), api.fetch_root_folders())
        .map_err(|error| place.request_error(&error))?;
    let profile = match quality {
        Some(quality) => {
            let profile = find_profile(&profiles, quality)?;
            check_profile_right(profile, context.rights)?;
            Some(profile)
        }
        None => match preferred_profile(&profiles, place.kind(), context) {
            Some(profile) => Some(profile),
            None => {
                let held = place.load_library(context.now, FreshnessPolicy::Rough).await;
                let held = held.map_err(|error| place.request_error(&error))?;
                usual_profile(&profiles, held.entries.titles().iter().map(|title| title.profile))
            }
        },
    };
    match (profile, folder_for(&folders, folder)?) {
        (Some(profile), Some(folder)) => Ok((profile.clone(), folder.clone())),
        (None, _) | (_, None) => Err(place.not_ready().into()),
    }
}

/// Builds the title request of a call, as far as its arguments alone determine the request.
pub(super) fn unnamed_request(
    instance: &str,
    (kind, catalog_id): (MediaKind, i64),
    seasons: Option<Vec<u32>>,
) -> RequestedTitle {
    let instance = instance.to_owned();
    RequestedTitle { instance, kind, catalog_id, title: String::new(), year: 0, seasons }
}

/// Returns the refusal of a number that the catalog does not have.
pub(super) fn unknown_number(kind: MediaKind, catalog_id: i64) -> CallFailure {
    let (number, title) = match kind {
        MediaKind::Movie => ("tmdb", "movie"),
        MediaKind::Series => ("tvdb", "show"),
    };
    CallFailure::new(
        FailureCode::UnknownId,
        json!({ number: catalog_id, "hint": "call search_media and use a number it gives" }),
        Some(format!("I can't find that {title}.")),
    )
}
