//! Parsers for command-line values.

use clap::ValueEnum;

use crate::conversation::digest::digest_command;
use crate::conversation::digest::schedule::DigestSchedule;
use crate::conversation::rating_caps::MinimumAge;
use crate::conversation::transcript::{PhoneNumber, UserAddress};
use crate::store::people::user_admin::UserLimit;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    On,
    Off,
}

impl OnOff {
    pub(super) fn is_on(self) -> bool {
        match self {
            Self::On => true,
            Self::Off => false,
        }
    }
}

/// Parses a phone number, ignoring spaces, hyphens, periods and parentheses, or an account such as `terminal:ann`.
pub(super) fn parse_address(text: &str) -> Result<UserAddress, &'static str> {
    let compact: String = text.chars().filter(|mark| !" -.()".contains(*mark)).collect();
    let address = PhoneNumber::parse(&compact).ok().map(UserAddress::Phone);
    address
        .or_else(|| UserAddress::parse(text))
        .ok_or("a number starts with + and a country code, e.g. +15550100123")
}

pub(super) fn parse_limit(text: &str) -> Result<UserLimit, &'static str> {
    match text {
        "default" => Ok(UserLimit::Household),
        number => number.parse().map(UserLimit::Own).map_err(|_| "a limit is a number or \"default\""),
    }
}

/// Cap on age ratings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgeCap {
    None,
    Years(MinimumAge),
}

impl AgeCap {
    pub(super) fn minimum_age(self) -> Option<MinimumAge> {
        match self {
            Self::None => None,
            Self::Years(age) => Some(age),
        }
    }
}

pub(super) fn parse_cap(text: &str) -> Result<AgeCap, &'static str> {
    match text {
        "none" => Ok(AgeCap::None),
        age => {
            MinimumAge::parse(age).map(AgeCap::Years).ok_or("an age is a number from 0 to 18, or \"none\"")
        }
    }
}

/// Time of the weekly digest of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestChoice {
    Off,
    On(DigestSchedule),
}

impl DigestChoice {
    pub(super) fn schedule(self) -> Option<DigestSchedule> {
        match self {
            Self::Off => None,
            Self::On(schedule) => Some(schedule),
        }
    }
}

pub(super) fn parse_digest(text: &str) -> Result<DigestChoice, &'static str> {
    match text {
        "off" => Ok(DigestChoice::Off),
        words => digest_command::parse_schedule(words)
            .map(DigestChoice::On)
            .ok_or("a digest is a day of the week and a full hour, such as \"friday 18\", or \"off\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_may_be_grouped_and_needs_its_country_code() {
        for text in ["+15550100123", "+1 555 010 0123", "+1 (555) 010-0123", "+1.555.010.0123"] {
            let number = PhoneNumber::parse("+15550100123").unwrap();
            assert_eq!(parse_address(text), Ok(UserAddress::Phone(number)), "{text}");
        }
        for text in ["555 010 0123", "0155501001", "Sam", "+1/555/0100123", ""] {
            assert!(parse_address(text).is_err(), "{text}");
        }
        assert_eq!(parse_address("terminal:ann-2").unwrap().to_text(), "terminal:ann-2");
    }
}
