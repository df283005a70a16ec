//! Parser of commands about the digest: "digest friday 18" sets its time, "digest off" turns it off, and "digest" shows
//! both the time and what it would contain.

use jiff::civil::Weekday;

use super::schedule::{DigestSchedule, weekday_name};
use crate::conversation::grammar::keyword_grammar::strip_courtesy;
use crate::conversation::grammar::requests::spelling::is_misspelled;

/// Command about the digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestCommand {
    Set(DigestSchedule),
    Off,
    Show,
    /// A time that is no day of the week with a full hour.
    Unclear,
}

/// Hour of a digest for which only the day was named.
const DEFAULT_HOUR: i8 = 18;
/// Maximum number of words in a command. A longer text is a request in other words.
const MAX_WORDS: usize = 14;

/// Words that turn the digest off.
const OFF_WORDS: &str = "off no stop stops disable cancel end quit without never unsubscribe dont";
/// Words that mean another period than a week.
const OTHER_PERIODS: &str = "daily day days everyday hourly monthly month yearly twice";
/// Words without a meaning of their own in a command.
const FILLER_WORDS: &str = "a an the my me us our your it this that is be i we you id like want would could can will should \
    do does please weekly week weeks every each once per on at for to in by of and or with send text texts give get got set \
    have make change move put start enable turn show see tell come comes coming sent now more any anymore all longer need \
    what when which whats schedule time room group here family household o clock oclock";

const WEEKDAYS: [Weekday; 7] = [
    Weekday::Monday,
    Weekday::Tuesday,
    Weekday::Wednesday,
    Weekday::Thursday,
    Weekday::Friday,
    Weekday::Saturday,
    Weekday::Sunday,
];

/// Parses the whole of `text`, apart from courtesy, as a command about the digest. Its words may have typing errors.
pub fn parse_digest_command(text: &str) -> Option<DigestCommand> {
    let words = split_words(strip_courtesy(text));
    let is_digest = |word: &String| word == "digests" || is_word(word, "digest");
    // "Have" asks for a title of this name.
    let is_about_title = words.first().is_some_and(|first| first == "have");
    if is_about_title || words.len() > MAX_WORDS || words.iter().filter(|word| is_digest(word)).count() != 1 {
        return None;
    }
    let rest: Vec<&str> = words.iter().filter(|word| !is_digest(word)).map(String::as_str).collect();
    let mut parsed = ParsedWords::default();
    let mut position = 0;
    while let Some(words) = rest.get(position..).filter(|words| !words.is_empty()) {
        position += parsed.read_word(words)?;
    }
    Some(parsed.to_command())
}

/// Parses a setting such as `friday 18`, without the word for the digest.
pub fn parse_schedule(text: &str) -> Option<DigestSchedule> {
    match parse_digest_command(&format!("digest {text}"))? {
        DigestCommand::Set(schedule) => Some(schedule),
        DigestCommand::Off | DigestCommand::Show | DigestCommand::Unclear => None,
    }
}

/// Splits a text at spaces and punctuation. A time such as `18:00` remains one word, and `6pm` becomes two.
fn split_words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace(['\'', '\u{2019}'], "").replace("a.m", "am").replace("p.m", "pm");
    let separated = text.split(|c: char| !(c.is_alphanumeric() || c == ':'));
    let mut words = Vec::new();
    for word in separated.map(|word| word.trim_matches(':')).filter(|word| !word.is_empty()) {
        let half_day = ["am", "pm"].into_iter().find(|half| word.ends_with(half));
        match half_day.and_then(|half| Some((word.strip_suffix(half)?, half))) {
            Some((number, half)) if number.starts_with(|c: char| c.is_ascii_digit()) => {
                words.extend([number.to_owned(), half.to_owned()]);
            }
            Some(_) | None => words.push(word.to_owned()),
        }
    }
    words
}

fn is_word(typed: &str, word: &str) -> bool {
    typed == word || is_misspelled(typed, word)
}

fn is_in_list(typed: &str, list: &str) -> bool {
    list.split_whitespace().any(|word| typed == word)
}

/// What the words of a command have stated so far.
#[derive(Default)]
struct ParsedWords {
    is_off: bool,
    has_other_period: bool,
    weekdays: Vec<Weekday>,
    hours: Vec<Option<i8>>,
}

impl ParsedWords {
    /// Reads the first of the words, and returns how many words it has read; `None` if the text is no command.
    fn read_word(&mut self, words: &[&str]) -> Option<usize> {
        let (word, next) = (*words.first()?, words.get(1).copied());
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let half_day = next.filter(|next| matches!(*next, "am" | "pm"));
            self.hours.push(parse_hour(word, half_day));
            return Some(1 + usize::from(half_day.is_some()));
        }
        if let Some(weekday) = parse_weekday(word) {
            self.weekdays.push(weekday);
        } else if let Some(hour) = match word {
            "noon" | "midday" => Some(12),
            "midnight" => Some(0),
            _ => None,
        } {
            self.hours.push(Some(hour));
        } else if is_in_list(word, OFF_WORDS) {
            self.is_off = true;
        } else if is_in_list(word, OTHER_PERIODS) {
            self.has_other_period = true;
        } else if !is_in_list(word, FILLER_WORDS) && !is_word(word, "weekly") {
            return None;
        }
        Some(1)
    }

    fn to_command(&self) -> DigestCommand {
        match (self.weekdays.as_slice(), self.hours.as_slice()) {
            _ if self.is_off => DigestCommand::Off,
            _ if self.has_other_period => DigestCommand::Unclear,
            ([], []) => DigestCommand::Show,
            ([weekday], []) => set(*weekday, Some(DEFAULT_HOUR)),
            ([weekday], [hour]) => set(*weekday, *hour),
            _ => DigestCommand::Unclear,
        }
    }
}

fn set(weekday: Weekday, hour: Option<i8>) -> DigestCommand {
    let schedule = hour.and_then(|hour| DigestSchedule::new(weekday, hour));
    schedule.map_or(DigestCommand::Unclear, DigestCommand::Set)
}

fn parse_weekday(word: &str) -> Option<Weekday> {
    WEEKDAYS.into_iter().find(|weekday| {
        let name = weekday_name(*weekday).to_lowercase();
        let is_short =
            word.len() >= 3 && name.starts_with(word) || matches!((word, &*name), ("tues", "tuesday"));
        is_short || is_word(word, &name) || is_word(word.strip_suffix('s').unwrap_or(word), &name)
    })
}

/// Parses a full hour: `18`, `18:00`, or `6` with `pm`.
fn parse_hour(text: &str, half_day: Option<&str>) -> Option<i8> {
    let hour: i8 = text.strip_suffix(":00").unwrap_or(text).parse().ok()?;
    match half_day {
        None => Some(hour),
        Some(half) => {
            let start = if half == "pm" { 12 } else { 0 };
            (1..=12).contains(&hour).then_some(hour % 12 + start)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::grammar::keyword_grammar::parse_opt_keyword;

    fn friday(hour: i8) -> Option<DigestCommand> {
        DigestSchedule::new(Weekday::Friday, hour).map(DigestCommand::Set)
    }

    #[test]
    fn day_and_hour_set_the_digest_in_many_spellings() {
        for text in [
            "digest friday 18",
            "Digest Fri 6pm",
            "DIGEST FRIDAY 18:00.",
            "digest on fridays at 6 pm",
            "weekly digest on friday at 6 p.m.",
            "please send me a digest every friday at 18:00",
            "can you text me the digest each Friday at 6pm?",
            "digset firday 18",
            "I'd like a weekly digest on Friday at 18, thanks",
            "digest friday",
        ] {
            assert_eq!(parse_digest_command(text), friday(18), "{text}");
        }
        assert_eq!(parse_digest_command("digest friday noon"), friday(12));
        assert_eq!(parse_digest_command("digest fri 12am"), friday(0));
        let tuesday = DigestSchedule::new(Weekday::Tuesday, 8).map(DigestCommand::Set);
        assert_eq!(parse_digest_command("digest tues 8"), tuesday);
    }

    #[test]
    fn digest_is_turned_off_without_an_opt_out() {
        for text in [
            "digest off",
            "Digest off.",
            "stop the digest",
            "no more digests",
            "turn off the weekly digest please",
            "cancel my digest",
            "I don't want the digest any more",
        ] {
            assert_eq!(parse_digest_command(text), Some(DigestCommand::Off), "{text}");
            assert_eq!(parse_opt_keyword(text), None, "{text}");
        }
    }

    #[test]
    fn digest_alone_shows_it_and_other_times_are_unclear() {
        for text in ["digest", "Digest?", "my digest", "show me the digest", "what is in the weekly digest"] {
            assert_eq!(parse_digest_command(text), Some(DigestCommand::Show), "{text}");
        }
        for text in
            ["digest daily 8", "digest 18", "digest friday 25", "digest fri 18:30", "digest mon tue 8"]
        {
            assert_eq!(parse_digest_command(text), Some(DigestCommand::Unclear), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_commands() {
        for text in [
            "",
            "friday 18",
            "add the digest movie",
            "a digest of heat on friday",
            "reader's digest",
            "dig it friday",
            "digestion",
            "remove digest",
            "have digest",
            "digest digest",
        ] {
            assert_eq!(parse_digest_command(text), None, "{text}");
        }
    }

    #[test]
    fn stored_words_are_parsed_to_the_same_schedule() {
        for weekday in WEEKDAYS {
            let schedule = DigestSchedule::new(weekday, 7).unwrap();
            assert_eq!(parse_schedule(&schedule.to_words()), Some(schedule));
        }
        for text in ["", "off", "friday 24", "daily 8", "sometime"] {
            assert_eq!(parse_schedule(text), None, "{text}");
        }
    }
}
