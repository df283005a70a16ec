//! Selectors in a call: a title by its id, and parts of a show by number, code or word.

use serde_json::json;

use super::wanting::{Held, Part};
use crate::conversation::transcript::{CallFailure, MediaKind};
use crate::tools::Uses;
use crate::tools::answers::{named, refusal, sentence_list};
use crate::tools::arguments::BadArgument;
use crate::tools::library::Library;
use crate::tools::place::Place;
use crate::tools::seasons::{SPECIALS, episode_code, existing, read_episode_code, season_list};

pub fn uses(
    library: &Library,
    (kind, id): (MediaKind, i64),
    name: Option<&str>,
) -> Result<Uses, CallFailure> {
    let place = Place::of(library, kind, name)?;
    Ok(Uses { refs: vec![place.item(id)], four_k: place.four_k() })
}

/// Parses the selected part of a show. Returns `None` if no part is given.
pub fn part(held: &Held, words: &[String]) -> Result<Option<Part>, CallFailure> {
    let words: Vec<String> = words.iter().map(|word| word.trim().to_ascii_lowercase()).collect();
    let seasons = || held.series.seasons.iter().map(|season| season.number);
    let part = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => return Ok(None),
        // Before the first season is listed, each of these means the future episodes.
        ["all" | "first" | "latest" | "pilot"] if held.series.seasons.is_empty() => Part::Future,
        ["all"] => Part::Seasons(seasons().collect()),
        ["first"] => Part::Seasons(seasons().min().into_iter().collect()),
        ["latest"] => Part::Seasons(seasons().max().into_iter().collect()),
        ["future"] => Part::Future,
        ["pilot"] => Part::Episodes(seasons().min().map(|first| (first, 1)).into_iter().collect()),
        words => listed(held, words)?,
    };
    let needs_episodes = match part {
        Part::Seasons(_) => false,
        Part::Episodes(_) => true,
        Part::Future => !held.series.seasons.is_empty(),
    };
    if held.episodes.is_empty() && needs_episodes {
        return Err(not_listed_yet(held));
    }
    Ok(Some(part))
}

/// Seasons by number or episodes by code.
fn listed(held: &Held, words: &[&str]) -> Result<Part, CallFailure> {
    let season = |word: &&str| word.trim_start_matches("season").trim().trim_start_matches('s').parse().ok();
    if let Some(numbers) = words.iter().map(season).collect::<Option<Vec<u32>>>() {
        if held.series.seasons.is_empty() && numbers.iter().any(|number| *number != SPECIALS) {
            return Ok(Part::Future);
        }
        return existing(&held.series, &numbers).map(Part::Seasons);
    }
    let codes = words.iter().map(|word| read_episode_code(word)).collect::<Option<Vec<_>>>();
    let codes = codes.ok_or_else(|| BadArgument {
        field: "seasons".to_owned(),
        expected: "only numbers, only codes such as S02E03, or one word: all, first, latest, future"
            .to_owned(),
        hint: String::new(),
    })?;
    let has = |code: &(u32, u32)| held.episodes.iter().any(|one| (one.season, one.number) == *code);
    match codes.iter().find(|code| !held.episodes.is_empty() && !has(code)) {
        Some(code) => Err(no_such_episode(held, *code)),
        None => Ok(Part::Episodes(codes)),
    }
}

/// Part in words: `season 2`, `S02E03 and S02E04`, `what is still to come`.
pub fn told(part: &Part) -> String {
    match part {
        Part::Seasons(numbers) => season_list(numbers),
        Part::Episodes(codes) => {
            let codes: Vec<String> = codes.iter().copied().map(episode_code).collect();
            sentence_list(&codes)
        }
        Part::Future => "what is still to come".to_owned(),
    }
}

fn no_such_episode(held: &Held, code: (u32, u32)) -> CallFailure {
    let code = episode_code(code);
    let last = held.episodes.iter().map(|one| (one.season, one.number)).max().map(episode_code);
    refusal(
        "no_such_episode",
        json!({ "episode": code, "last_listed": last }),
        Some(format!("{} has no {code} that I know of.", named(&held.series.title, held.series.year))),
    )
}

pub fn not_listed_yet(held: &Held) -> CallFailure {
    let name = named(&held.series.title, held.series.year);
    refusal(
        "not_listed_yet",
        json!({ "hint": "its episodes are not known yet; seasons can be named by number" }),
        Some(format!("The episodes of {name} are not listed yet. Please try again in a few minutes.")),
    )
}
