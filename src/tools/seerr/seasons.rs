//! Requests for seasons of a show at a Seerr.

use super::{KnownTitle, SeerrAddition, SeerrCaller, SeerrChoices, failures, request_failure, seerr_title};
use crate::arr::sonarr::Sonarr;
use crate::arr::{Series, WantedEpisodes};
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{FailureCode, MediaKind};
use crate::seerr::{NewSeerrRequest, Seerr};
use crate::tools::follow_title::requested_series;
use crate::tools::formatting::format_media_title;
use crate::tools::library::Instance;
use crate::tools::library_changes::monitoring::{SeriesPart, SeriesSnapshot};
use crate::tools::seasons::{MAX_UNREQUESTED_SEASONS, requests_many_seasons, which_seasons};
use crate::tools::{RecoveryOutcome, ToolContext, ToolError, ToolOutput};

/// Requests seasons of a show that is not in the library.
pub(in crate::tools) async fn request_new_series(
    seerr: &Seerr,
    (instance, series): (&Instance<Sonarr>, &Series),
    (wanted, choices): (&WantedEpisodes, SeerrChoices),
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let caller = SeerrCaller::from_context(seerr, context)?;
    let seasons = wanted_seasons(wanted)?;
    let addition = build_addition(&caller, (instance, series), seasons, choices).await?;
    caller.request_title(&addition, KnownTitle::Follow).await
}

/// Determines the outcome of a request for a show whose answer was lost.
pub(in crate::tools) async fn recover_new_series(
    seerr: &Seerr,
    (instance, series): (&Instance<Sonarr>, &Series),
    (wanted, choices): (&WantedEpisodes, SeerrChoices),
    context: &ToolContext,
) -> Result<RecoveryOutcome, ToolError> {
    // Without a link, the repetition is refused, and says so.
    let Ok(caller) = SeerrCaller::from_context(seerr, context) else { return Ok(RecoveryOutcome::NotDone) };
    let seasons = wanted_seasons(wanted)?;
    match build_addition(&caller, (instance, series), seasons, choices).await {
        Ok(addition) => Ok(caller.recover_request(&addition).await),
        Err(error) => Ok(outcome_without_id(&error)),
    }
}

/// Requests a part of a show in the library.
pub(in crate::tools) async fn request_part(
    seerr: &Seerr,
    (instance, snapshot): (&Instance<Sonarr>, &SeriesSnapshot),
    (part, gained): (&SeriesPart, &[u32]),
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let caller = SeerrCaller::from_context(seerr, context)?;
    let is_many = gained.len() > MAX_UNREQUESTED_SEASONS;
    if is_many && !requests_many_seasons(&context.turn_messages, &snapshot.series) {
        return Err(which_seasons(&snapshot.series).into());
    }
    let seasons = part_seasons(part, gained)?;
    let choices = SeerrChoices::of_instance(instance.four_k);
    let addition = build_addition(&caller, (instance, &snapshot.series), Some(seasons), choices).await?;
    caller.request_title(&addition, KnownTitle::InLibrary).await
}

/// Determines the outcome of a request for a part of a show in the library.
pub(in crate::tools) async fn recover_part(
    seerr: &Seerr,
    (instance, snapshot): (&Instance<Sonarr>, &SeriesSnapshot),
    part: &SeriesPart,
    context: &ToolContext,
) -> RecoveryOutcome {
    let Ok(caller) = SeerrCaller::from_context(seerr, context) else { return RecoveryOutcome::NotDone };
    let Ok(seasons) = part_seasons(part, &[]) else { return RecoveryOutcome::NotDone };
    let choices = SeerrChoices::of_instance(instance.four_k);
    match build_addition(&caller, (instance, &snapshot.series), Some(seasons), choices).await {
        Ok(addition) => caller.recover_request(&addition).await,
        Err(error) => outcome_without_id(&error),
    }
}

/// Returns the outcome of a request for a show whose TMDB id was not found. A show that the Seerr does not know cannot have
/// been requested there.
fn outcome_without_id(error: &ToolError) -> RecoveryOutcome {
    match error {
        ToolError::CallFailed(failure) if failure.code == FailureCode::NotFound => RecoveryOutcome::NotDone,
        _ => RecoveryOutcome::Unknown,
    }
}

/// Returns the numbers of the wanted seasons; `None` for all, while none is listed.
fn wanted_seasons(wanted: &WantedEpisodes) -> Result<Option<Vec<u32>>, ToolError> {
    match wanted {
        WantedEpisodes::Seasons(flags) => {
            let numbers: Vec<u32> =
                flags.iter().filter(|(_, wanted)| *wanted).map(|(number, _)| *number).collect();
            Ok((!numbers.is_empty()).then_some(numbers))
        }
        WantedEpisodes::Future | WantedEpisodes::Pilot => Err(failures::whole_seasons_only().into()),
    }
}

/// Returns the seasons of a part: those that gain episodes, or all of them if that is unknown.
fn part_seasons(part: &SeriesPart, gained: &[u32]) -> Result<Vec<u32>, ToolError> {
    match part {
        SeriesPart::Seasons(numbers) => {
            let kept: Vec<u32> = numbers.iter().copied().filter(|number| gained.contains(number)).collect();
            Ok(if kept.is_empty() { numbers.clone() } else { kept })
        }
        SeriesPart::Episodes(_) | SeriesPart::Future => Err(failures::whole_seasons_only().into()),
    }
}

async fn build_addition(
    caller: &SeerrCaller<'_>,
    (instance, series): (&Instance<Sonarr>, &Series),
    seasons: Option<Vec<u32>>,
    choices: SeerrChoices,
) -> Result<SeerrAddition, ToolError> {
    let is_requested = |number: u32| seasons.as_ref().is_none_or(|seasons| seasons.contains(&number));
    let is_whole = series.seasons.iter().all(|season| is_requested(season.number));
    let requested_seasons = if is_whole { None } else { seasons.clone() };
    Ok(SeerrAddition {
        new: NewSeerrRequest {
            title: seerr_title(MediaKind::Series, find_tmdb(caller, series).await?),
            tvdb: Some(series.tvdb),
            seasons,
            is_4k: choices.is_4k,
        },
        requested: RequestedTitle { seasons: requested_seasons, ..requested_series(instance, series) },
        shown: instance.shown_ids(series),
        names_choices: choices.names_others,
    })
}

/// Returns the TMDB id of a show, which Sonarr knows for most shows.
pub(super) async fn find_tmdb(caller: &SeerrCaller<'_>, series: &Series) -> Result<i64, ToolError> {
    if let Some(tmdb) = series.tmdb.filter(|tmdb| *tmdb > 0) {
        return Ok(tmdb);
    }
    let found = caller.seerr.find_series_by_tvdb(series.tvdb).await;
    let found = found.map_err(|error| request_failure(&error))?;
    found.ok_or_else(|| failures::unknown_series(&format_media_title(&series.title, series.year)).into())
}
