//! Results of `get_more` for a series: the search, the missing episodes, and those that have not aired.

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

/// Outcome of starting a search in Sonarr or Radarr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchStatus {
    Started,
    /// The search could not be started, or its start is unknown.
    NotStarted,
    /// Nothing is released yet, so no search was started.
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
    snapshot: &'a SeriesSnapshot,
    part: &SeriesPart,
    now: Timestamp,
) -> Vec<&'a Episode> {
    snapshot.part_episodes(part, now).into_iter().filter(|episode| !episode.on_disk()).collect()
}

pub(super) fn search_result(
    instance: &Instance<Sonarr>,
    snapshot: &SeriesSnapshot,
    (part, search): (&SeriesPart, SearchStatus),
    now: Timestamp,
) -> CallResult {
    let name = format_media_title(&snapshot.series.title, snapshot.series.year);
    let missing = missing_episodes(snapshot, part, now);
    let unaired_count = missing.iter().filter(|episode| !episode.has_aired(now)).count();
    let part_name = selectors::format_part(&missing_part(part, &missing));
    let for_user = match (search, part) {
        (SearchStatus::Started, _) if unaired_count > 0 => {
            format!("Looking for {part_name} of {name} now. Episodes still to come are fetched as they air.")
        }
        (SearchStatus::Started, _) => format!("Looking for {part_name} of {name} now."),
        (SearchStatus::NothingReleased, SeriesPart::Future)
            if snapshot.series.ended && missing.is_empty() =>
        {
            format!(
                "{name} has ended, so there is probably nothing to come. If there is, it will be fetched."
            )
        }
        (SearchStatus::NothingReleased, SeriesPart::Future) => {
            format!("New episodes of {name} will be fetched as they air.")
        }
        (SearchStatus::NothingReleased, SeriesPart::Seasons(_)) if missing.is_empty() => {
            format!(
                "You have {part_name} of {name} as far as it has aired. New episodes are fetched as they air."
            )
        }
        (SearchStatus::NothingReleased, SeriesPart::Seasons(_) | SeriesPart::Episodes(_)) => {
            format!("Nothing of that has aired yet: {part_name} of {name} will be fetched when it airs.")
        }
        (SearchStatus::NotStarted, _) => format!(
            "{name}: {part_name} will be fetched from now on, but {} did not start the search.",
            instance.display_name()
        ),
    };
    let mut for_model = series_status_json(snapshot, search.status_code());
    for_model["of"] = json!(part_name);
    for_model["missing"] = json!(missing.len() - unaired_count);
    for_model["not_aired"] = json!(unaired_count);
    CallResult { for_model, for_user, shown: instance.shown_ids(&snapshot.series) }
}

/// Returns the part reduced to its missing episodes, or the whole part if none is missing.
fn missing_part(part: &SeriesPart, missing: &[&Episode]) -> SeriesPart {
    match part {
        SeriesPart::Seasons(numbers) if !missing.is_empty() => {
            let is_missing = |number: &u32| missing.iter().any(|episode| episode.season == *number);
            SeriesPart::Seasons(numbers.iter().copied().filter(is_missing).collect())
        }
        SeriesPart::Episodes(_) if !missing.is_empty() => {
            SeriesPart::Episodes(missing.iter().map(|episode| (episode.season, episode.number)).collect())
        }
        SeriesPart::Seasons(_) | SeriesPart::Episodes(_) | SeriesPart::Future => part.clone(),
    }
}

pub(super) fn search_again_result(
    instance: &Instance<Sonarr>,
    snapshot: &SeriesSnapshot,
    missing: usize,
) -> CallResult {
    let name = format_media_title(&snapshot.series.title, snapshot.series.year);
    let episodes =
        if missing == 1 { "1 missing episode".to_owned() } else { format!("{missing} missing episodes") };
    let mut for_model = series_status_json(snapshot, SearchStatus::Started.status_code());
    for_model["missing"] = json!(missing);
    let for_user = format!("Looking again for {episodes} of {name}.");
    CallResult { for_model, for_user, shown: instance.shown_ids(&snapshot.series) }
}

pub(super) fn existing_result(
    instance: &Instance<Sonarr>,
    snapshot: &SeriesSnapshot,
    part: &SeriesPart,
) -> CallResult {
    let name = format_media_title(&snapshot.series.title, snapshot.series.year);
    let part_name = selectors::format_part(part);
    let mut for_model = series_status_json(snapshot, "already_exists");
    for_model["of"] = json!(part_name);
    CallResult {
        for_model,
        for_user: format!("You already have {part_name} of {name}."),
        shown: instance.shown_ids(&snapshot.series),
    }
}

/// Builds the failure for a series without missing monitored episodes. It lists the seasons with episodes that are not
/// monitored.
pub(super) fn nothing_missing(snapshot: &SeriesSnapshot, now: Timestamp) -> CallFailure {
    let name = format_media_title(&snapshot.series.title, snapshot.series.year);
    let unmonitored = snapshot.episodes.iter().filter(|episode| !episode.on_disk() && episode.has_aired(now));
    let mut seasons: Vec<u32> = unmonitored.map(|episode| episode.season).collect();
    seasons.dedup();
    if seasons.is_empty() {
        let for_user = format!("Nothing that has aired of {name} is missing.");
        return CallFailure::new(
            FailureCode::NothingMissing,
            json!({ "title": clean_title(&snapshot.series.title), "hint": "say that nothing of it is missing" }),
            Some(for_user),
        );
    }
    CallFailure::new(
        FailureCode::WhichSeasons,
        json!({ "title": clean_title(&snapshot.series.title), "not_looked_for": seasons,
            "hint": "all that is looked for is there; ask which of these to get, then call again with them" }),
        Some(format!(
            "Of {name}, {} can be fetched as well. Which ones do you want?",
            format_season_list(&seasons)
        )),
    )
}

pub(super) fn series_status_json(snapshot: &SeriesSnapshot, status: &str) -> Value {
    json!({ "status": status, "type": "series", "title": clean_title(&snapshot.series.title),
        "year": snapshot.series.year, "seasons_looked_for": snapshot.monitored_seasons() })
}
