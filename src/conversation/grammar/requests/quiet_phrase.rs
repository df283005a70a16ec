//! Quiet hours in everyday words: "no texts between 10pm and 7am".

use super::numbers::parse_number;
use super::request::QuietChoice;
use super::token::Token;
use crate::conversation::notifications::quiet_hours::QuietHours;

/// Start and end of a night that a message does not name.
const NIGHT: (i8, i8) = (22, 7);

/// Parses all of the tokens as hours: "22-7", "10pm to 7am", "after 10pm", "at night".
pub fn parse_quiet_hours(tokens: &[Token]) -> Option<QuietChoice> {
    let is_end = |word: &str| matches!(word, "to" | "until" | "till" | "til" | "and" | "through" | "before");
    let mut hours: Vec<(i8, Option<Half>)> = Vec::new();
    let mut starts_with_end = false;
    for token in tokens {
        let word = token.word.as_str();
        match word {
            "from" | "between" | "after" | "at" | "the" | "hours" | "oclock" | "in" | "past" => {}
            "night" | "nights" | "overnight" | "nighttime" => {
                let (start, end) = NIGHT;
                return (hours.is_empty() && tokens.len() <= 3)
                    .then(|| QuietHours::new(start, end).map(QuietChoice::Hours))?;
            }
            "am" | "pm" | "a-m" | "p-m" => hours.last_mut()?.1 = Some(Half::from_word(word)),
            "morning" => hours.last_mut()?.1 = Some(Half::Morning),
            "evening" => hours.last_mut()?.1 = Some(Half::Evening),
            "midnight" => hours.push((0, None)),
            "noon" => hours.push((12, None)),
            _ if is_end(word) => starts_with_end |= hours.is_empty(),
            _ => hours.extend(parse_hour_word(word)?),
        }
    }
    match hours.as_slice() {
        [(start, start_half), (end, end_half)] => quiet_between((*start, *start_half), (*end, *end_half)),
        [(end, half)] if starts_with_end => {
            quiet_between((NIGHT.0, None), (*end, half.or(Some(Half::Morning))))
        }
        [(start, half)] => quiet_between((*start, half.or(Some(Half::Evening))), (NIGHT.1, None)),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Morning,
    Evening,
}

impl Half {
    fn from_word(word: &str) -> Self {
        if word.starts_with('a') { Self::Morning } else { Self::Evening }
    }
}

/// Parses "22", "22-00", "10pm" and "22-7". The normalized form of "22:00" is "22-00".
fn parse_hour_word(word: &str) -> Option<Vec<(i8, Option<Half>)>> {
    let parts: Vec<&str> = word.split('-').collect();
    let minutes = |part: &&&str| !matches!(**part, "00");
    parts.iter().filter(minutes).map(|part| parse_hour(part)).collect()
}

fn parse_hour(part: &str) -> Option<(i8, Option<Half>)> {
    let (number, half) = match (part.strip_suffix("am"), part.strip_suffix("pm")) {
        (Some(number), _) => (number, Some(Half::Morning)),
        (None, Some(number)) => (number, Some(Half::Evening)),
        (None, None) => (part, None),
    };
    // "2300" is an hour with its minutes.
    let number = number.strip_suffix("00").filter(|hour| hour.len() == 2).unwrap_or(number);
    let number = i8::try_from(parse_number(number)?).ok()?;
    (number <= 24).then_some((number % 24, half))
}

fn quiet_between(start: (i8, Option<Half>), end: (i8, Option<Half>)) -> Option<QuietChoice> {
    // "10 to 7" means the night: the first hour is in the evening, the second one in the morning.
    let is_night =
        start.1.is_none() && end.1.is_none() && start.0 <= 12 && (6..=12).contains(&start.0) && end.0 < 12;
    let start_half = start.1.or(is_night.then_some(Half::Evening));
    let start_half = start_half
        .or((end.1 == Some(Half::Morning) && start.0 <= 12 && start.0 > end.0).then_some(Half::Evening));
    let hours = QuietHours::new(to_24_hours(start.0, start_half), to_24_hours(end.0, end.1))?;
    (start.0 != end.0 && hours.start_hour() != hours.end_hour()).then_some(QuietChoice::Hours(hours))
}

fn to_24_hours(hour: i8, half: Option<Half>) -> i8 {
    match half {
        Some(Half::Evening) if hour < 12 => hour + 12,
        Some(Half::Morning) if hour == 12 => 0,
        Some(_) | None => hour,
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::tokenize;
    use super::*;

    #[test]
    fn hours_have_many_spellings() {
        for text in [
            "22-7",
            "10pm to 7am",
            "22:00 to 7:00",
            "10 pm - 7 am",
            "between 10pm and 7am",
            "from 22 until 7",
            "after 10pm until 7am",
            "10pm-7am",
            "10 to 7",
            "after 10pm",
            "at night",
            "between 2200 and 0700",
            "from 10 to 7 am",
        ] {
            let expected = QuietHours::new(22, 7).map(QuietChoice::Hours);
            assert_eq!(parse_quiet_hours(&tokenize(text)), expected, "{text:?}");
        }
        assert_eq!(
            parse_quiet_hours(&tokenize("midnight to 8am")),
            QuietHours::new(0, 8).map(QuietChoice::Hours)
        );
        assert_eq!(
            parse_quiet_hours(&tokenize("before 9am")),
            QuietHours::new(22, 9).map(QuietChoice::Hours)
        );
        for text in ["the office", "now", "7-7", "25 to 30"] {
            assert_eq!(parse_quiet_hours(&tokenize(text)), None, "{text:?}");
        }
    }
}
