//! Selectors in a call: a title by its id, a quality profile by its name, and parts of a series by number, code or
//! keyword.

use serde_json::json;

use super::monitoring::{SeriesPart, SeriesSnapshot};
use crate::arr::QualityProfile;
use crate::conversation::transcript::{CallFailure, FailureCode, MediaKind};
use crate::tools::arguments::parsing::bad_argument;
use crate::tools::formatting::{format_media_title, format_sentence_list};
use crate::tools::instance_ref::InstanceRef;
use crate::tools::library::ArrInstances;
use crate::tools::preference::find_profile;
use crate::tools::seasons::{
    SPECIALS, check_seasons_exist, format_episode_code, format_season_list, parse_episode_code,
};
use crate::tools::{CallReferences, ToolError};

pub fn call_references(
    library: &ArrInstances,
    (kind, id): (MediaKind, i64),
    name: Option<&str>,
) -> Result<CallReferences, CallFailure> {
    let instance = InstanceRef::find_by_name(library, kind, name)?;
    Ok(CallReferences { refs: vec![instance.media_ref(id)], four_k: instance.four_k() })
}

/// Finds the quality profile that a call names.
pub async fn named_profile(
    instance: &InstanceRef<'_>,
    quality: Option<&str>,
) -> Result<Option<QualityProfile>, ToolError> {
    let Some(quality) = quality else { return Ok(None) };
    let profiles =
        instance.common_api().fetch_profiles().await.map_err(|error| instance.request_error(&error))?;
    Ok(Some(find_profile(&profiles, quality)?.clone()))
}

/// Parses the selected part of a series. Returns `None` if no part is given.
pub fn parse_part(
    snapshot: &SeriesSnapshot,
    selectors: &[String],
) -> Result<Option<SeriesPart>, CallFailure> {
    let selectors: Vec<String> =
        selectors.iter().map(|selector| selector.trim().to_ascii_lowercase()).collect();
    let seasons = || snapshot.series.seasons.iter().map(|season| season.number);
    let part = match selectors.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => return Ok(None),
        // While no season is listed, each of these keywords selects the future episodes.
        ["all" | "first" | "latest" | "pilot"] if snapshot.series.seasons.is_empty() => SeriesPart::Future,
        ["all"] => SeriesPart::Seasons(seasons().collect()),
        ["first"] => SeriesPart::Seasons(seasons().min().into_iter().collect()),
        ["latest"] => SeriesPart::Seasons(seasons().max().into_iter().collect()),
        ["future"] => SeriesPart::Future,
        ["pilot"] => SeriesPart::Episodes(seasons().min().map(|first| (first, 1)).into_iter().collect()),
        selectors => parse_seasons_or_episodes(snapshot, selectors)?,
    };
    let needs_episodes = match part {
        SeriesPart::Seasons(_) => false,
        SeriesPart::Episodes(_) => true,
        SeriesPart::Future => !snapshot.series.seasons.is_empty(),
    };
    if snapshot.episodes.is_empty() && needs_episodes {
        return Err(episodes_not_listed(snapshot));
    }
    Ok(Some(part))
}

/// Parses seasons by number or episodes by code.
fn parse_seasons_or_episodes(
    snapshot: &SeriesSnapshot,
    selectors: &[&str],
) -> Result<SeriesPart, CallFailure> {
    let season =
        |selector: &&str| selector.trim_start_matches("season").trim().trim_start_matches('s').parse().ok();
    if let Some(numbers) = selectors.iter().map(season).collect::<Option<Vec<u32>>>() {
        // While no season is listed, a number other than that of the specials also selects the future episodes.
        if snapshot.series.seasons.is_empty() && numbers.iter().any(|number| *number != SPECIALS) {
            return Ok(SeriesPart::Future);
        }
        return check_seasons_exist(&snapshot.series, &numbers).map(SeriesPart::Seasons);
    }
    let codes = selectors.iter().map(|selector| parse_episode_code(selector)).collect::<Option<Vec<_>>>();
    let expected = "only numbers, only codes such as S02E03, or one word: all, first, latest, future, pilot";
    let codes = codes.ok_or_else(|| bad_argument("seasons", expected, ""))?;
    let is_listed =
        |code: &(u32, u32)| snapshot.episodes.iter().any(|episode| (episode.season, episode.number) == *code);
    match codes.iter().find(|code| !snapshot.episodes.is_empty() && !is_listed(code)) {
        Some(code) => Err(no_such_episode(snapshot, *code)),
        None => Ok(SeriesPart::Episodes(codes)),
    }
}

/// Formats a part: `season 2`, `S02E03 and S02E04`, `what is still to come`.
pub fn format_part(part: &SeriesPart) -> String {
    match part {
        SeriesPart::Seasons(numbers) => format_season_list(numbers),
        SeriesPart::Episodes(codes) => {
            let codes: Vec<String> = codes.iter().copied().map(format_episode_code).collect();
            format_sentence_list(&codes)
        }
        SeriesPart::Future => "what is still to come".to_owned(),
    }
}

fn no_such_episode(snapshot: &SeriesSnapshot, code: (u32, u32)) -> CallFailure {
    let code = format_episode_code(code);
    let last = snapshot
        .episodes
        .iter()
        .map(|episode| (episode.season, episode.number))
        .max()
        .map(format_episode_code);
    CallFailure::new(
        FailureCode::NoSuchEpisode,
        json!({ "episode": code, "last_listed": last, "hint": "say which episode is the last one listed" }),
        Some(format!(
            "{} has no {code} that I know of.",
            format_media_title(&snapshot.series.title, snapshot.series.year)
        )),
    )
}

pub fn episodes_not_listed(snapshot: &SeriesSnapshot) -> CallFailure {
    let name = format_media_title(&snapshot.series.title, snapshot.series.year);
    CallFailure::new(
        FailureCode::NotListedYet,
        json!({ "hint": "its episodes are not known yet; seasons can be named by number" }),
        Some(format!("The episodes of {name} are not listed yet. Please try again in a few minutes.")),
    )
}
