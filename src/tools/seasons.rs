//! Selection of seasons and episodes of a series. Many seasons are added only if the user explicitly asked for them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::arguments::parsing::bad_argument;
use super::formatting::{clean_title, format_media_title, normalize_name};
pub use crate::arr::SPECIALS;
use crate::arr::{Series, WantedEpisodes};
pub use crate::conversation::title_requests::format_season_list;
use crate::conversation::transcript::{CallFailure, FailureCode};

/// Maximum number of seasons that are added without an explicit request of the user.
pub const MAX_UNREQUESTED_SEASONS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SeasonSelector {
    Named(NamedSeasons),
    Numbers(#[schemars(length(min = 1))] Vec<u32>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NamedSeasons {
    All,
    First,
    Latest,
    Future,
    Pilot,
}

/// Chooses the episodes of a series that is added to the library.
pub fn choose_episodes(
    series: &Series,
    selector: Option<&SeasonSelector>,
    messages: &[String],
) -> Result<WantedEpisodes, CallFailure> {
    let numbers: Vec<u32> = series.seasons.iter().map(|season| season.number).collect();
    if numbers.is_empty() && names_a_regular_season(selector) {
        // No season is listed yet, so any selection of seasons means the future seasons.
        return Ok(WantedEpisodes::Seasons(vec![(SPECIALS, false)]));
    }
    let selected = match selector {
        None if numbers.len() > MAX_UNREQUESTED_SEASONS => return Err(which_seasons(series)),
        None | Some(SeasonSelector::Named(NamedSeasons::All)) => numbers.clone(),
        Some(SeasonSelector::Named(NamedSeasons::First)) => {
            numbers.iter().min().copied().into_iter().collect()
        }
        Some(SeasonSelector::Named(NamedSeasons::Latest)) => {
            numbers.iter().max().copied().into_iter().collect()
        }
        Some(SeasonSelector::Named(NamedSeasons::Future)) => return Ok(WantedEpisodes::Future),
        Some(SeasonSelector::Named(NamedSeasons::Pilot)) => return Ok(WantedEpisodes::Pilot),
        Some(SeasonSelector::Numbers(listed)) => check_seasons_exist(series, listed)?,
    };
    if selected.len() > MAX_UNREQUESTED_SEASONS && !requests_many_seasons(messages, series) {
        return Err(which_seasons(series));
    }
    let flags = [SPECIALS].into_iter().chain(numbers).map(|number| (number, selected.contains(&number)));
    Ok(WantedEpisodes::Seasons(flags.collect()))
}

fn names_a_regular_season(selector: Option<&SeasonSelector>) -> bool {
    match selector {
        Some(SeasonSelector::Named(NamedSeasons::Future)) => false,
        Some(SeasonSelector::Numbers(listed)) => listed.iter().any(|number| *number != SPECIALS),
        Some(SeasonSelector::Named(
            NamedSeasons::All | NamedSeasons::First | NamedSeasons::Latest | NamedSeasons::Pilot,
        ))
        | None => true,
    }
}

/// Returns the seasons that were requested by number, if all of them exist.
pub fn check_seasons_exist(series: &Series, listed: &[u32]) -> Result<Vec<u32>, CallFailure> {
    let Some(missing) = listed.iter().find(|number| series.season(**number).is_none()) else {
        return Ok(listed.to_vec());
    };
    if *missing == SPECIALS {
        let name = format_media_title(&series.title, series.year);
        let for_model = json!({ "title": clean_title(&series.title), "season": SPECIALS,
            "hint": "say so; the numbered seasons can be added" });
        return Err(CallFailure::new(
            FailureCode::NoSuchSeason,
            for_model,
            Some(format!("{name} has no specials.")),
        ));
    }
    let numbers = || series.seasons.iter().map(|season| season.number);
    let (first, last) = (numbers().min().unwrap_or_default(), numbers().max().unwrap_or_default());
    let name = format_media_title(&series.title, series.year);
    let hint = format!("{name} has no other seasons.");
    let failure = bad_argument("seasons", &format!("numbers from {first} to {last}"), &hint);
    let for_user = format!("{name} has no season {missing}, only seasons {first} to {last}.");
    Err(CallFailure { for_user: Some(for_user), ..failure })
}

/// Returns whether the messages of the user ask for all of a series or give season numbers. The words of its title do
/// not count: "the 100" is not a season number.
pub fn requests_many_seasons(messages: &[String], series: &Series) -> bool {
    const ALL_WORDS: [&str; 7] = ["all", "every", "everything", "whole", "entire", "complete", "full"];
    let (title, year) = (normalize_name(&series.title), series.year.to_string());
    messages.iter().any(|text| {
        let mut plain = normalize_name(text);
        for title_part in [title.as_str(), year.as_str()].into_iter().filter(|part| !part.is_empty()) {
            plain = plain.replace(title_part, " ");
        }
        plain.split(' ').any(|word| ALL_WORDS.contains(&word))
            || plain.contains(|character: char| character.is_ascii_digit())
    })
}

pub fn which_seasons(series: &Series) -> CallFailure {
    let count = series.seasons.len();
    CallFailure::new(
        FailureCode::WhichSeasons,
        json!({ "title": clean_title(&series.title), "seasons": count,
            "hint": "ask the user which seasons, then call again with them" }),
        Some(format!(
            "{} has {count} seasons. Which ones: all, first, latest, or numbers?",
            format_media_title(&series.title, series.year)
        )),
    )
}

/// Formats an episode code such as `S02E03`.
pub fn format_episode_code((season, number): (u32, u32)) -> String {
    format!("S{season:02}E{number:02}")
}

/// Parses an episode code such as `S02E03`, `s2e3` or `2x03`.
pub fn parse_episode_code(code: &str) -> Option<(u32, u32)> {
    let lower = code.trim().to_ascii_lowercase();
    let (season, number) =
        lower.strip_prefix('s').map_or_else(|| lower.split_once('x'), |rest| rest.split_once('e'))?;
    // A code without valid numbers is not an episode code.
    Some((season.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn episode_codes_are_parsed_in_common_forms() {
        for code in ["S02E03", "s2e3", " 2x03 "] {
            assert_eq!(parse_episode_code(code), Some((2, 3)), "{code}");
        }
        for code in ["S02", "three", "S02E03E04", "2x", "-1x2", ""] {
            assert_eq!(parse_episode_code(code), None, "{code}");
        }
        assert_eq!(format_episode_code((2, 13)), "S02E13");
    }

    fn the_hundred() -> Series {
        Series {
            id: None,
            tvdb: 268_592,
            tmdb: None,
            imdb: None,
            title: "The 100".to_owned(),
            year: 2014,
            overview: String::new(),
            monitored: true,
            ended: true,
            series_type: "standard".to_owned(),
            seasons: Vec::new(),
            specials: None,
            episodes_on_disk: 0,
            episodes: 100,
            size_bytes: 0,
            path: String::new(),
            profile: 1,
            next_airing: None,
            new_seasons: true,
            genres: Vec::new(),
            certification: String::new(),
            rating: None,
            added: None,
        }
    }

    #[test]
    fn many_seasons_need_a_word_for_all_or_a_number() {
        let requests_many = |text: &str| requests_many_seasons(&[text.to_owned()], &the_hundred());
        assert!(!requests_many("get more of The 100 (2014)"));
        assert!(
            requests_many("the whole show") && requests_many("seasons 1-6") && requests_many("ALL of it")
        );
        assert!(!requests_many("get the wire") && !requests_many("call me when it is there"));
    }
}
