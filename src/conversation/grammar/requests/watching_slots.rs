//! Parts of requests about watching that patterns leave open: names, kinds of titles, and times without a play.

use super::numbers::parse_number;
use super::token::{Token, join_words};
use crate::conversation::transcript::MediaKind;

/// Maximum number of words of a person's name.
const MAX_NAME_WORDS: usize = 2;

/// Words that name nobody in particular.
const NO_PERSONS: &str = " i we you u he she it they me us him her them this that these those there here what which who \
    not never nobody noone no nothing something anything everything one ones good new the a an some any ive weve worth \
    already ever been just last did does do is are was were has have had yet and or \
    at in on to of for with by from home back still also so too really watching looking trying going seeing getting \
    having waiting searching finding done finished sure ready bored stuck sick tired ";

/// Words before a noun that stands for a name: "my wife".
const DETERMINERS: [&str; 3] = ["my", "our", "the"];

/// Returns whether the words may be the name of a person.
pub fn is_person(words: &[Token]) -> bool {
    let names = match words {
        [first, rest @ ..] if DETERMINERS.contains(&first.word.as_str()) => rest,
        all => all,
    };
    let is_name = |token: &Token| token.is_quoted || !NO_PERSONS.contains(&format!(" {} ", token.word));
    words.len() <= MAX_NAME_WORDS && !names.is_empty() && names.iter().all(is_name)
}

/// Parses all of the tokens as the noun of a kind of titles.
pub fn parse_kind(words: &[Token]) -> Option<MediaKind> {
    match join_words(words).as_str() {
        "movie" | "movies" | "film" | "films" => Some(MediaKind::Movie),
        "show" | "shows" | "series" | "tv" | "tv show" | "tv shows" | "tv series" => Some(MediaKind::Series),
        _ => None,
    }
}

/// Words before a number of days, weeks, months or years.
const DAYS_PREFIXES: &str =
    " in for over since within during more longer than at least the last past about almost nearly ";
/// Maximum number of days that the tools accept.
const MAX_DAYS: u32 = 36_500;
/// Days of an indefinite long time.
const LONG_TIME: u32 = 365;

/// Parses all of the tokens as a time without a play, such as "for over a year" or "in 90 days".
pub fn parse_days(words: &[Token]) -> Option<u32> {
    let is_prefix = |token: &&Token| DAYS_PREFIXES.contains(&format!(" {} ", token.word));
    let prefixes = words.iter().take_while(is_prefix).count();
    let amount: Vec<&str> = words[prefixes..].iter().map(|token| token.word.as_str()).collect();
    let (number, unit) = match amount.as_slice() {
        [] | [_, _, _, _, ..] => return None,
        ["ages" | "forever"] | ["a", "while"] | ["a", "long", "time"] | ["so", "long"] => {
            return Some(LONG_TIME);
        }
        ["half", "a", "year"] => return Some(LONG_TIME / 2),
        ["a", "couple", unit] | ["couple", "of", unit] => (2, *unit),
        ["a", "few", unit] => (3, *unit),
        ["a" | "an" | "one" | "whole", unit] => (1, *unit),
        ["few", unit] => (3, *unit),
        [number, unit] => (parse_number(number)?, *unit),
        // "For the last year".
        [unit] if prefixes > 0 => (1, *unit),
        _ => return None,
    };
    let days = match unit {
        "day" | "days" => 1,
        "week" | "weeks" => 7,
        "month" | "months" => 30,
        "year" | "years" | "yr" | "yrs" => 365,
        _ => return None,
    };
    Some(number.saturating_mul(days).min(MAX_DAYS)).filter(|days| *days > 0)
}

#[cfg(test)]
mod tests {
    use super::super::token::tokenize;
    use super::*;

    #[test]
    fn time_without_a_play_is_counted_in_days() {
        for (text, days) in [
            ("for a year", Some(365)),
            ("in 6 months", Some(180)),
            ("in 90 days", Some(90)),
            ("for more than two years", Some(730)),
            ("in the last month", Some(30)),
            ("for half a year", Some(182)),
            ("for ages", Some(365)),
            ("for 0 days", None),
            ("for 9999 years", Some(36_500)),
            ("year", None),
            ("for the kids", None),
        ] {
            assert_eq!(parse_days(&tokenize(text)), days, "{text:?}");
        }
    }

    #[test]
    fn pronoun_is_no_person() {
        for text in ["alex", "my wife", "sam smith", "everyone", "the kids"] {
            assert!(is_person(&tokenize(text)), "{text:?}");
        }
        for text in ["she", "nobody", "alex not", "the", "my sister in law", "watching heat", "at home"] {
            assert!(!is_person(&tokenize(text)), "{text:?}");
        }
    }
}
