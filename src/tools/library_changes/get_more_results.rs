//! Results of a request for more of a series: what is searched for, and what is already there or still to come.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::monitoring::{SeriesPart, SeriesSnapshot};
use super::selectors;
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::conversation::transcript::{CallFailure, CallResult, FailureCode};
use crate::tools::formatting::{clean_title, format_media_title};
use crate::tools::library::Instance;
use crate::tools::seasons::format_season_list;

/// Outcome of the request to Sonarr or Radarr to search immediately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchStatus {
    Started,
    /// Search that could not be started, or whose outcome is unknown.
    NotStarted,
    /// Search without any released item, so that no release can be found.
    NothingReleased,
}

impl SearchStatus {
    pub(super) fn status_code(self) -> &'static str {
        match self {
            Self::Started => "being_looked_for",
            Self::NotStarted => "wanted_but_search_not_begun",
            Self::NothingReleased => "wanted_not_out_yet",
        }
    }
}

/// Returns the episodes of a part that are not on disk.
pub(super) fn missing_episodes<'a>(
    held: &'a SeriesSnapshot,
    part: &SeriesPart,
    now: Timestamp,
) -> Vec<&'a Episode> {
    held.part_episodes(part, now).into_iter().filter(|episode| !episode.on_disk()).collect()
}

pub(super) fn search_result(
    instance: &Instance<Sonarr>,
    held: &SeriesSnapshot,
    (part, search): (&SeriesPart, SearchStatus),
    now: Timestamp,
) -> CallResult {
    let name = format_media_title(&held.series.title, held.series.year);
    let missing = missing_episodes(held, part, now);
    let to_come = missing.iter().filter(|episode| !episode.has_aired(now)).count();
    let what = selectors::format_part(&missing_part(part, &missing));
    let for_user = match (search, part) {
        (SearchStatus::Started, _) if to_come > 0 => {
            format!("Looking for {what} of {name} now. Episodes still to come are fetched as they air.")
        }
        (SearchStatus::Started, _) => format!("Looking for {what} of {name} now."),
        (SearchStatus::NothingReleased, SeriesPart::Future) if held.series.ended && missing.is_empty() => {
            format!(
                "{name} has ended, so there is probably nothing to come. If there is, it will be fetched."
            )
        }
        (SearchStatus::NothingReleased, SeriesPart::Future) => {
            format!("New episodes of {name} will be fetched as they air.")
        }
        (SearchStatus::NothingReleased, SeriesPart::Seasons(_)) if missing.is_empty() => {
            format!("You have {what} of {name} as far as it has aired. New episodes are fetched as they air.")
        }
        (SearchStatus::NothingReleased, SeriesPart::Seasons(_) | SeriesPart::Episodes(_)) => {
            format!("Nothing of that has aired yet: {what} of {name} will be fetched when it airs.")
        }
        (SearchStatus::NotStarted, _) => format!(
            "{name}: {what} will be fetched from now on, but {} did not begin to look at once.",
            instance.display_name()
        ),
    };
    let mut for_model = series_status_json(held, search.status_code());
    for_model["of"] = json!(what);
    for_model["missing"] = json!(missing.len() - to_come);
    for_model["not_aired"] = json!(to_come);
    CallResult { for_model, for_user, shown: instance.shown_ids(&held.series) }
}

/// Returns the part reduced to its missing episodes, if any of them are missing.
fn missing_part(part: &SeriesPart, missing: &[&Episode]) -> SeriesPart {
    match part {
        SeriesPart::Seasons(numbers) if !missing.is_empty() => {
            let lacks = |number: &u32| missing.iter().any(|episode| episode.season == *number);
            SeriesPart::Seasons(numbers.iter().copied().filter(lacks).collect())
        }
        SeriesPart::Episodes(_) if !missing.is_empty() => {
            SeriesPart::Episodes(missing.iter().map(|episode| (episode.season, episode.number)).collect())
        }
        SeriesPart::Seasons(_) | SeriesPart::Episodes(_) | SeriesPart::Future => part.clone(),
    }
}

pub(super) fn search_again_result(
    instance: &Instance<Sonarr>,
    held: &SeriesSnapshot,
    missing: usize,
) -> CallResult {
    let name = format_media_title(&held.series.title, held.series.year);
    let episodes =
        if missing == 1 { "1 missing episode".to_owned() } else { format!("{missing} missing episodes") };
    let mut for_model = series_status_json(held, SearchStatus::Started.status_code());
    for_model["missing"] = json!(missing);
    let for_user = format!("Looking again for {episodes} of {name}.");
    CallResult { for_model, for_user, shown: instance.shown_ids(&held.series) }
}

pub(super) fn existing_result(
    instance: &Instance<Sonarr>,
    held: &SeriesSnapshot,
    part: &SeriesPart,
) -> CallResult {
    let name = format_media_title(&held.series.title, held.series.year);
    let what = selectors::format_part(part);
    let mut for_model = series_status_json(held, "already_exists");
    for_model["of"] = json!(what);
    CallResult {
        for_model,
        for_user: format!("You already have {what} of {name}."),
        shown: instance.shown_ids(&held.series),
    }
}

/// Returns the result for a title of which everything monitored is on disk. Items that are not monitored so far can be
/// listed.
pub(super) fn nothing_missing(held: &SeriesSnapshot, now: Timestamp) -> CallFailure {
    let name = format_media_title(&held.series.title, held.series.year);
    let unwanted = held.episodes.iter().filter(|one| !one.on_disk() && one.has_aired(now));
    let mut seasons: Vec<u32> = unwanted.map(|episode| episode.season).collect();
    seasons.dedup();
    if seasons.is_empty() {
        let for_user = format!("Nothing that has aired of {name} is missing.");
        return CallFailure::new(
            FailureCode::NothingMissing,
            json!({ "title": clean_title(&held.series.title) }),
            Some(for_user),
        );
    }
    CallFailure::new(
        FailureCode::WhichSeasons,
        json!({ "title": clean_title(&held.series.title), "not_looked_for": seasons,
            "hint": "all that is looked for is there; ask which of these to get, then call again with them" }),
        Some(format!(
            "Of {name}, {} can be fetched as well. Which ones do you want?",
            format_season_list(&seasons)
        )),
    )
}

pub(super) fn series_status_json(held: &SeriesSnapshot, status: &str) -> Value {
    json!({ "status": status, "type": "series", "title": clean_title(&held.series.title),
        "year": held.series.year, "seasons_looked_for": held.seasons_wanted() })
}
