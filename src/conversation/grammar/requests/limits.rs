//! Limits of the length and the rating of a title.

use super::numbers::parse_number;
use super::recommendation::Rating;
use super::token::Token;

/// Maximum length that a message can name, in minutes.
const MAX_MINUTES: u32 = 600;

/// Numbers of minutes in words, beyond twenty.
const TENS: [(&str, u32); 7] = [
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("ninety", 90),
    ("hundred", 100),
    ("forty-five", 45),
];

/// Parses all of the tokens as a length in hours or minutes, such as "an hour and a half".
pub fn parse_length(tokens: &[Token]) -> Option<u32> {
    let words: Vec<&str> = tokens.iter().map(|token| token.word.as_str()).collect();
    let minutes = match words.as_slice() {
        ["half", "an", "hour"] => 30,
        ["a" | "an" | "one", "hour"] => 60,
        ["a" | "an" | "one", "hour", "and", "a", "half"] | ["hour", "and", "a", "half"] => 90,
        [number, "and", "a", "half", unit] if is_hours(unit) => parse_amount(number)? * 60 + 30,
        [hours, unit, "and", "a", "half"] if is_hours(unit) => parse_amount(hours)? * 60 + 30,
        [hours, unit, minutes] | [hours, unit, "and", minutes, _] | [hours, unit, minutes, _]
            if is_hours(unit) && has_minutes(&words) =>
        {
            parse_amount(hours)? * 60 + parse_amount(minutes)?
        }
        [number, unit] if is_hours(unit) => parse_hours(number).or_else(|| parse_hours(&tokens[0].raw))?,
        [number, unit] if is_minutes(unit) => parse_amount(number)?,
        [word] => parse_written_length(word)?,
        _ => return None,
    };
    (1..=MAX_MINUTES).contains(&minutes).then_some(minutes)
}

fn is_hours(word: &str) -> bool {
    matches!(word, "hour" | "hours" | "hr" | "hrs" | "h" | "hous" | "huors")
}

fn is_minutes(word: &str) -> bool {
    matches!(word, "minute" | "minutes" | "min" | "mins" | "m" | "mintues" | "minuets")
}

/// Returns whether the last word is a number or the unit of minutes.
fn has_minutes(words: &[&str]) -> bool {
    words.last().is_some_and(|last| is_minutes(last) || parse_amount(last).is_some())
}

fn parse_amount(word: &str) -> Option<u32> {
    let listed = TENS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
    listed.or_else(|| parse_number(word)).filter(|number| *number <= MAX_MINUTES)
}

/// Parses "2" and "1.5" as hours.
fn parse_hours(word: &str) -> Option<u32> {
    let minutes = match word.split_once('.') {
        Some((hours, "5")) => parse_amount(hours)? * 60 + 30,
        Some(_) => return None,
        None => parse_amount(word)? * 60,
    };
    Some(minutes)
}

/// Parses a length without a space, such as "2h", "90min" and "1h30".
fn parse_written_length(word: &str) -> Option<u32> {
    let digits = word.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = word.split_at(digits);
    if is_minutes(unit) {
        return parse_amount(number);
    }
    if is_hours(unit) {
        return Some(parse_amount(number)? * 60);
    }
    let minutes = unit.strip_prefix('h')?;
    let minutes = minutes.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    Some(parse_amount(number)? * 60 + parse_amount(minutes)?)
}

/// Parses one token as a rating from 1 to 10, such as "8", "7.5" or "8/10".
pub fn parse_rating(tokens: &[Token]) -> Option<Rating> {
    let [token] = tokens else { return None };
    let text = token.raw.trim_end_matches('+');
    let text = text.strip_suffix("/10").unwrap_or(text);
    let (whole, tenths) = match text.split_once('.') {
        Some((whole, tenths)) => (whole, tenths.parse::<u8>().ok().filter(|tenths| *tenths < 10)?),
        None => (text, 0),
    };
    let whole = u8::try_from(parse_number(&whole.to_lowercase())?).ok()?;
    let rating = whole.checked_mul(10)?.checked_add(tenths)?;
    (10..=100).contains(&rating).then_some(Rating(rating))
}

#[cfg(test)]
mod tests {
    use super::super::token::tokenize;
    use super::*;

    #[test]
    fn length_is_in_hours_or_minutes() {
        for (text, minutes) in [
            ("2 hours", Some(120)),
            ("two hrs", Some(120)),
            ("90 minutes", Some(90)),
            ("90min", Some(90)),
            ("2h", Some(120)),
            ("1h30", Some(90)),
            ("1h 45m", None),
            ("1.5 hours", Some(90)),
            ("an hour and a half", Some(90)),
            ("two and a half hours", Some(150)),
            ("1 hour 45 minutes", Some(105)),
            ("1 hour and 45 minutes", Some(105)),
            ("ninety minutes", Some(90)),
            ("0 minutes", None),
            ("2 weeks", None),
            ("the bridge", None),
        ] {
            assert_eq!(parse_length(&tokenize(text)), minutes, "{text:?}");
        }
    }

    #[test]
    fn rating_is_out_of_ten() {
        for (text, tenths) in
            [("8", Some(80)), ("7.5", Some(75)), ("8/10", Some(80)), ("seven", Some(70)), ("8+", Some(80))]
        {
            assert_eq!(parse_rating(&tokenize(text)), tenths.map(Rating), "{text:?}");
        }
        for text in ["r", "18", "0", "7.55", "95%"] {
            assert_eq!(parse_rating(&tokenize(text)), None, "{text:?}");
        }
    }
}
