//! Years of release that a message names: a year, a decade, or an open range.

use std::fmt;

use super::token::Token;

/// Years that a message can name.
const YEARS: std::ops::RangeInclusive<u16> = 1900..=2030;

/// Years from the first to the last one, if there is a last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedYears {
    first: u16,
    last: Option<u16>,
}

impl fmt::Display for NamedYears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            None => write!(f, "{}-", self.first),
            Some(last) if last == self.first => write!(f, "{last}"),
            Some(last) => write!(f, "{}-{last}", self.first),
        }
    }
}

impl NamedYears {
    fn new(first: u16, last: u16) -> Option<Self> {
        let is_range = YEARS.contains(&first) && YEARS.contains(&last) && first <= last;
        is_range.then_some(Self { first, last: Some(last) })
    }

    fn since(first: u16) -> Option<Self> {
        YEARS.contains(&first).then_some(Self { first, last: None })
    }

    /// Returns the years before this range.
    fn before(self) -> Option<Self> {
        Self::new(*YEARS.start(), self.first.checked_sub(1)?)
    }
}

/// Parses all of the tokens as years after a preposition, such as "from the late 90s" or "after 2015".
pub fn parse_years(tokens: &[Token]) -> Option<NamedYears> {
    let words: Vec<&str> = tokens.iter().map(|token| token.word.as_str()).collect();
    match words.as_slice() {
        ["between", first, "and" | "to", last]
        | ["from", first, "to" | "until" | "till" | "through", last]
        | ["from", "the", first, "to" | "until" | "through" | "and" | "or", "the", last]
        | ["from", "the", first, "to" | "and" | "or", last] => {
            NamedYears::new(parse_span(first)?.first, parse_span(last)?.last?)
        }
        ["from", year, "on" | "onward" | "onwards" | "and", "later" | "up" | "newer"]
        | ["from", year, "on" | "onward" | "onwards"]
        | ["from", year, "or", "later" | "newer"] => NamedYears::since(parse_span(year)?.first),
        ["since" | "newer" | "later", "than", year] | ["after", year] => NamedYears::since(parse_year(year)?),
        ["since", year] | ["since", "the", year] => NamedYears::since(parse_span(year)?.first),
        ["after", "the", decade] => NamedYears::since(parse_decade_word(decade)?.last?.checked_add(1)?),
        ["before" | "until", year]
        | ["before" | "until", "the", year]
        | ["older" | "earlier", "than", year]
        | ["prior", "to", year] => parse_span(year)?.before(),
        ["from" | "in" | "during", year] => parse_span(year),
        ["from" | "in", "the", "year", year] => parse_span(year),
        ["from" | "in" | "of" | "during", "the", decade @ ..] => parse_part_of_decade(decade),
        ["from" | "in", decade @ ..] => parse_part_of_decade(decade),
        _ => None,
    }
}

/// Parses all of the tokens as a decade, with or without a part of it: "80s", "late 90s".
pub fn parse_decade(tokens: &[Token]) -> Option<NamedYears> {
    let words: Vec<&str> = tokens.iter().map(|token| token.word.as_str()).collect();
    parse_part_of_decade(&words)
}

fn parse_part_of_decade(words: &[&str]) -> Option<NamedYears> {
    let (part, decade) = match words {
        [decade] => return parse_decade_word(decade),
        [part, decade] => (*part, parse_decade_word(decade)?.first),
        _ => return None,
    };
    match part {
        "early" => NamedYears::new(decade, decade + 4),
        "mid" => NamedYears::new(decade + 3, decade + 7),
        "late" => NamedYears::new(decade + 5, decade + 9),
        _ => None,
    }
}

/// Parses a year, a decade, or two years with a hyphen.
fn parse_span(word: &str) -> Option<NamedYears> {
    if let Some((first, last)) = word.split_once('-') {
        return NamedYears::new(parse_year(first)?, parse_year(last)?);
    }
    let year = parse_year(word).and_then(|year| NamedYears::new(year, year));
    year.or_else(|| parse_decade_word(word))
}

fn parse_year(word: &str) -> Option<u16> {
    word.parse().ok().filter(|year| word.len() == 4 && YEARS.contains(year))
}

const DECADE_NAMES: [(&str, u16); 10] = [
    ("thirties", 1930),
    ("forties", 1940),
    ("fifties", 1950),
    ("sixties", 1960),
    ("seventies", 1970),
    ("eighties", 1980),
    ("nineties", 1990),
    ("noughties", 2000),
    ("aughts", 2000),
    ("ninties", 1990),
];

fn parse_decade_word(word: &str) -> Option<NamedYears> {
    let named = DECADE_NAMES.iter().find(|(name, _)| *name == word).map(|(_, first)| *first);
    let first = named.or_else(|| {
        let digits = word.strip_suffix('s')?;
        let number: u16 = digits.parse().ok().filter(|number| number % 10 == 0)?;
        match digits.len() {
            2 if number >= 30 => Some(1900 + number),
            2 => Some(2000 + number),
            4 => Some(number),
            _ => None,
        }
    })?;
    let last = first.checked_add(9)?;
    (YEARS.contains(&first)).then_some(NamedYears { first, last: Some(last) })
}

#[cfg(test)]
mod tests {
    use super::super::token::tokenize;
    use super::*;

    #[test]
    fn years_follow_a_preposition() {
        for (text, years) in [
            ("from the 90s", Some("1990-1999")),
            ("from the '90s", Some("1990-1999")),
            ("from the 1980s", Some("1980-1989")),
            ("of the late seventies", Some("1975-1979")),
            ("from the early 2000s", Some("2000-2004")),
            ("from 1995", Some("1995")),
            ("in 1995", Some("1995")),
            ("after 2015", Some("2015-")),
            ("since the 90s", Some("1990-")),
            ("from 2015 on", Some("2015-")),
            ("before 1980", Some("1900-1979")),
            ("between 1990 and 1995", Some("1990-1995")),
            ("from 1990-1995", Some("1990-1995")),
            ("from the 80s to the 90s", Some("1980-1999")),
            ("from the 80s and 90s", Some("1980-1999")),
            ("1995", None),
            ("from 2049", None),
            ("between 1995 and 1990", None),
            ("from the library", None),
            ("from the 95s", None),
        ] {
            let found = parse_years(&tokenize(text)).map(|years| years.to_string());
            assert_eq!(found.as_deref(), years, "{text:?}");
        }
    }
}
