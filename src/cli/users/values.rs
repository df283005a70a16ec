//! Values as an operator types them.

use clap::ValueEnum;

use crate::conversation::transcript::PhoneNumber;
use crate::store::roster::Limit;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

impl Switch {
    pub(super) fn is_on(self) -> bool {
        match self {
            Self::On => true,
            Self::Off => false,
        }
    }
}

/// A number however it is grouped.
pub(super) fn number(text: &str) -> Result<PhoneNumber, &'static str> {
    let bare: String = text.chars().filter(|mark| !" -.()".contains(*mark)).collect();
    PhoneNumber::parse(&bare).map_err(|_| "a number has a + and its country code, e.g. +15550100123")
}

pub(super) fn limit(text: &str) -> Result<Limit, &'static str> {
    match text {
        "default" => Ok(Limit::Household),
        count => count.parse().map(Limit::Own).map_err(|_| "a limit is a count, or default"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_be_grouped_and_needs_its_country_code() {
        for text in ["+15550100123", "+1 555 010 0123", "+1 (555) 010-0123", "+1.555.010.0123"] {
            assert_eq!(number(text), Ok(PhoneNumber::parse("+15550100123").unwrap()), "{text}");
        }
        for text in ["555 010 0123", "0155501001", "Sam", "+1/555/0100123", ""] {
            assert!(number(text).is_err(), "{text}");
        }
    }
}
