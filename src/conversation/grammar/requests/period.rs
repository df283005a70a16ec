//! Periods that a message names: today, yesterday, a week, a month.

use super::token::{Token, join_words};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    Today,
    Yesterday,
    Week,
    Month,
}

impl Period {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::Yesterday => "yesterday",
            Self::Week => "week",
            Self::Month => "month",
        }
    }
}

const PREPOSITIONS: [&str; 9] = ["for", "on", "in", "over", "during", "from", "within", "since", "by"];

/// Parses all of the tokens as a period, with or without a preposition.
pub fn parse_period(tokens: &[Token]) -> Option<Period> {
    let words = match tokens {
        [first, rest @ ..] if PREPOSITIONS.contains(&first.word.as_str()) => rest,
        all => all,
    };
    if words.is_empty() || words.len() > 4 {
        return None;
    }
    match join_words(words).as_str() {
        "today" | "tonight" | "this evening" | "this morning" | "this afternoon" | "todays" | "now"
        | "tomorrow" | "tomorrow night" | "tonights" | "the day" | "later today" => Some(Period::Today),
        "yesterday" | "last night" | "yesterday evening" | "overnight" | "yesterdays" => {
            Some(Period::Yesterday)
        }
        "this week"
        | "the week"
        | "week"
        | "weekend"
        | "this weekend"
        | "the weekend"
        | "last week"
        | "next week"
        | "the next week"
        | "the last week"
        | "the past week"
        | "past week"
        | "weekly"
        | "the coming week"
        | "coming week"
        | "the next few days"
        | "next few days"
        | "the last few days"
        | "last few days"
        | "few days"
        | "the past few days"
        | "the next 7 days"
        | "next 7 days"
        | "the last 7 days"
        | "last weekend"
        | "next weekend"
        | "this wkend"
        | "the next couple days"
        | "weeks"
        | "rest of week" => Some(Period::Week),
        "this month" | "the month" | "month" | "next month" | "last month" | "the next month"
        | "the last month" | "the past month" | "past month" | "the next 30 days" | "next 30 days"
        | "the last 30 days" | "the next few weeks" | "next few weeks" | "the last few weeks"
        | "last few weeks" | "the coming month" | "coming weeks" | "the coming weeks" => Some(Period::Month),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::tokenize;
    use super::*;

    #[test]
    fn evening_is_today_and_weekend_is_a_week() {
        for (text, period) in [
            ("tonight", Some(Period::Today)),
            ("last night", Some(Period::Yesterday)),
            ("over the weekend", Some(Period::Week)),
            ("in the next month", Some(Period::Month)),
            ("someday", None),
        ] {
            assert_eq!(parse_period(&tokenize(text)), period, "{text:?}");
        }
    }
}
