//! Seasons and episodes in the spellings that people text: "s2", "season two", "2x05", "all seasons".

use super::numbers::{parse_number, parse_ordinal};
use super::spelling::is_misspelled;
use super::token::{Token, join_words, tokenize};

/// Maximum number of a season; a larger number is a typo.
const MAX_SEASON: u32 = 100;

/// Requested seasons of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedSeasons {
    All,
    First,
    Latest,
    Listed(Vec<u32>),
}

/// Part of a series that a message names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesPart {
    pub seasons: Option<RequestedSeasons>,
    pub episode: Option<u32>,
}

impl SeriesPart {
    fn seasons(seasons: RequestedSeasons) -> Self {
        Self { seasons: Some(seasons), episode: None }
    }
}

/// Parses all of the tokens as a part of a series.
pub fn parse_series_part(tokens: &[Token]) -> Option<SeriesPart> {
    if tokens.iter().any(|token| token.is_quoted) {
        return None;
    }
    let words: Vec<String> = tokens.iter().flat_map(|token| split_code(&token.word)).collect();
    let words: Vec<&str> = words
        .iter()
        .map(|word| correct_noun(word))
        .filter(|word| !matches!(*word, "the" | "a" | "only" | "just"))
        .collect();
    parse_named(&words).or_else(|| parse_numbered(&words))
}

/// Parses an answer to the question of which seasons to add: "all of them", "the first one", "1 and 3", "2nd please".
pub fn parse_season_answer(text: &str) -> Option<RequestedSeasons> {
    const FILLERS: [&str; 14] = [
        "please", "pls", "thanks", "ok", "okay", "yes", "add", "get", "me", "i", "want", "just", "of", "them",
    ];
    let mut tokens = tokenize(text);
    tokens.retain(|token| !FILLERS.contains(&token.word.as_str()));
    if let [.., before, last] = tokens.as_slice()
        && matches!(last.word.as_str(), "one" | "ones")
        && !before.word.starts_with("season")
    {
        tokens.pop();
    }
    let answer = join_words(&tokens);
    let readings = [answer.clone(), format!("seasons {answer}"), format!("{answer} season")];
    let parts = readings.iter().filter_map(|reading| parse_series_part(&tokenize(reading)));
    parts.filter(|part| part.episode.is_none()).find_map(|part| part.seasons)
}

/// Returns the noun that the word misspells, or the word.
fn correct_noun(word: &str) -> &str {
    const NOUNS: [&str; 5] = ["season", "seasons", "series", "episode", "episodes"];
    let misspells = |noun: &&&str| word.starts_with(&noun[..1]) && is_misspelled(word, noun);
    match NOUNS.contains(&word) {
        true => word,
        // The first letter tells "season" and "reason" apart.
        false => NOUNS.iter().find(misspells).copied().unwrap_or(word),
    }
}

/// Parses seasons that are named by a word: "all seasons", "latest season", "second season".
fn parse_named(words: &[&str]) -> Option<SeriesPart> {
    let is_noun = |word: &&str| matches!(*word, "season" | "seasons" | "series");
    let part = match words {
        [] => return None,
        ["new" | "next" | "newest" | "latest" | "last" | "first" | "upcoming", "episode" | "episodes"]
        | ["episodes"] => SeriesPart { seasons: None, episode: None },
        ["all" | "every" | "each"] => SeriesPart::seasons(RequestedSeasons::All),
        ["all" | "every" | "whole" | "entire" | "complete" | "full", noun, rest @ ..]
            if (is_noun(noun)
                || matches!(*noun, "show" | "thing" | "lot" | "run" | "episode" | "episodes"))
                && matches!(rest, [] | ["so", "far"]) =>
        {
            SeriesPart::seasons(RequestedSeasons::All)
        }
        ["all", "of", "it"] | ["everything"] => SeriesPart::seasons(RequestedSeasons::All),
        ["latest" | "newest" | "last" | "new" | "current" | "recent" | "final" | "next", noun]
            if matches!(*noun, "season" | "series") =>
        {
            SeriesPart::seasons(RequestedSeasons::Latest)
        }
        ["most", "recent", "season"] | ["latest"] => SeriesPart::seasons(RequestedSeasons::Latest),
        ["first"] | ["first", "season"] => SeriesPart::seasons(RequestedSeasons::First),
        ["first", count, "seasons"] => {
            let count = parse_number(count).filter(|count| (1..=MAX_SEASON).contains(count))?;
            SeriesPart::seasons(RequestedSeasons::Listed((1..=count).collect()))
        }
        [ordinals @ .., noun] if is_noun(noun) && !ordinals.is_empty() => {
            let words = ordinals.iter().filter(|word| **word != "and");
            let numbers: Option<Vec<u32>> = words.map(|word| parse_ordinal(word)).collect();
            SeriesPart::seasons(RequestedSeasons::Listed(numbers.filter(|numbers| !numbers.is_empty())?))
        }
        _ => return None,
    };
    Some(part)
}

/// Parses "season 2", "seasons 1 to 3", "season 2 episode 5", "episode 5 of season 2" and "episode 5".
fn parse_numbered(words: &[&str]) -> Option<SeriesPart> {
    match words {
        ["season" | "series", season, "episode", episode] => Some(SeriesPart {
            seasons: Some(RequestedSeasons::Listed(vec![parse_season(season)?])),
            episode: Some(parse_number(episode)?),
        }),
        ["episode", episode, "of" | "in", "season" | "series", season]
        | ["episode", episode, "season" | "series", season] => Some(SeriesPart {
            seasons: Some(RequestedSeasons::Listed(vec![parse_season(season)?])),
            episode: Some(parse_number(episode)?),
        }),
        ["episode", episode] => Some(SeriesPart { seasons: None, episode: Some(parse_number(episode)?) }),
        ["season" | "seasons" | "series", numbers @ ..] => {
            Some(SeriesPart::seasons(RequestedSeasons::Listed(parse_season_list(numbers)?)))
        }
        _ => None,
    }
}

fn parse_season(word: &str) -> Option<u32> {
    parse_number(word).filter(|number| *number <= MAX_SEASON)
}

/// Parses "1 2", "1 and 2" and "1 to 3". The noun may be repeated: "1 and season 2".
fn parse_season_list(words: &[&str]) -> Option<Vec<u32>> {
    let mut seasons: Vec<u32> = Vec::new();
    let mut is_range = false;
    for word in words {
        match *word {
            "and" | "season" | "seasons" | "or" => {}
            "to" | "thru" | "through" | "until" => is_range = true,
            number => {
                let number = parse_season(number)?;
                match (is_range, seasons.last()) {
                    (true, Some(first)) if *first < number => seasons.extend(*first + 1..=number),
                    (true, _) => return None,
                    (false, _) => seasons.push(number),
                }
                is_range = false;
            }
        }
    }
    seasons.sort_unstable();
    seasons.dedup();
    (!seasons.is_empty() && !is_range).then_some(seasons)
}

/// Splits a word that joins letters and numbers: "s02e03", "2x03", "s1-3", "ep5".
fn split_code(word: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        parts.push(part.to_owned());
    }
    let is_code = parts.len() > 1
        && parts.iter().all(|part| {
            part.bytes().all(|byte| byte.is_ascii_digit())
                || matches!(
                    part.as_str(),
                    "s" | "e" | "x" | "-" | "-s" | "ep" | "season" | "seasons" | "episode" | "-e"
                )
        });
    if !is_code {
        return vec![if word == "s" { "season".to_owned() } else { word.to_owned() }];
    }
    let starts_with_number = parts.first().is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    let has_cross = parts.iter().any(|part| part == "x");
    let prefix = (starts_with_number && has_cross).then(|| "season".to_owned());
    let spelled = parts.into_iter().flat_map(|part| match part.as_str() {
        "s" | "seasons" => vec!["season".to_owned()],
        "-" => vec!["to".to_owned()],
        "-s" => vec!["to".to_owned(), "season".to_owned()],
        "e" | "ep" | "x" | "-e" => vec!["episode".to_owned()],
        _ => vec![part],
    });
    prefix.into_iter().chain(spelled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "a test reads better with the value itself")]
    fn check(texts: &[&str], seasons: Option<RequestedSeasons>, episode: Option<u32>) {
        for text in texts {
            let expected = Some(SeriesPart { seasons: seasons.clone(), episode });
            assert_eq!(parse_series_part(&tokenize(text)), expected, "{text:?}");
        }
    }

    fn listed(numbers: &[u32]) -> Option<RequestedSeasons> {
        Some(RequestedSeasons::Listed(numbers.to_vec()))
    }

    #[test]
    fn answer_to_the_season_question_needs_no_noun() {
        let cases: [(&[&str], RequestedSeasons); 5] = [
            (
                &["all", "All.", "all of them", "all seasons please", "everything", "the whole show"],
                RequestedSeasons::All,
            ),
            (&["first", "the first one", "just the first season"], RequestedSeasons::First),
            (&["latest", "the last one", "newest please", "last season"], RequestedSeasons::Latest),
            (
                &["1 and 2", "1, 2", "1-2", "seasons 1 and 2", "1st and 2nd", "s1 s2"],
                RequestedSeasons::Listed(vec![1, 2]),
            ),
            (
                &["3", "season 3", "three", "the third one", "ok add season three"],
                RequestedSeasons::Listed(vec![3]),
            ),
        ];
        for (texts, seasons) in cases {
            for text in texts {
                assert_eq!(parse_season_answer(text), Some(seasons.clone()), "{text:?}");
            }
        }
        for text in
            ["", "no", "none", "status", "remove heat", "season 2 episode 3", "add dune", "one of those days"]
        {
            assert_eq!(parse_season_answer(text), None, "{text:?}");
        }
    }

    #[test]
    fn season_has_many_spellings() {
        check(
            &[
                "season 2",
                "s2",
                "S02",
                "season two",
                "the second season",
                "2nd season",
                "series 2",
                "season2",
                "szn 2",
                "seson 2",
            ],
            listed(&[2]),
            None,
        );
        check(
            &[
                "seasons 1-3",
                "s1-3",
                "s1-s3",
                "seasons 1 to 3",
                "season 1, 2 and 3",
                "the first three seasons",
            ],
            listed(&[1, 2, 3]),
            None,
        );
        check(
            &["s1 and s2", "seasons 1 & 2", "s1+s2", "the first and second season", "season 1 and season 2"],
            listed(&[1, 2]),
            None,
        );
        check(
            &["all seasons", "every season", "the whole series", "all", "the complete series", "all of it"],
            Some(RequestedSeasons::All),
            None,
        );
        check(&["latest season", "the newest season", "latest"], Some(RequestedSeasons::Latest), None);
        check(&["first season", "first"], Some(RequestedSeasons::First), None);
    }

    #[test]
    fn episode_has_many_spellings() {
        check(
            &[
                "s02e05",
                "2x05",
                "s2 e5",
                "season 2 episode 5",
                "s2 ep 5",
                "episode 5 of season 2",
                "season 2 ep5",
            ],
            listed(&[2]),
            Some(5),
        );
        check(&["episode 5", "ep 5", "ep5"], None, Some(5));
    }

    #[test]
    fn other_texts_name_no_part() {
        for text in [
            "season",
            "2",
            "season of the witch",
            "seasons 3-1",
            "season 999",
            "x",
            "4x4 trucks",
            "reason 2",
            "the first",
        ] {
            let part = parse_series_part(&tokenize(text));
            assert!(part.is_none() || text == "the first", "{text:?} {part:?}");
        }
    }
}
