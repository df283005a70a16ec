//! Settings of a household for its conversations.

use std::time::Duration;

use jiff::SignedDuration;
use jiff::tz::TimeZone;

use super::codes;
use super::learning::Notes;
use crate::conversation::consent::Language;
use crate::conversation::deletion::CodePolicy;
use crate::conversation::quiet::Quiet;
use crate::conversation::rate::Rate;
use crate::conversation::spending::{Budget, Prices};
use crate::conversation::transcript::Address;
use crate::conversation::triage::Routing;
use crate::conversation::turn::Limits;
use crate::pace::Pace;
use crate::store::quotas::Own;

/// Settings of a household for its conversations.
#[derive(Debug, Clone)]
pub struct Settings {
    pub zone: TimeZone,
    /// Silence after which a conversation is over.
    pub idle: SignedDuration,
    /// Quiet time that lets quick messages share a turn.
    pub coalesce: Duration,
    pub code_policy: CodePolicy,
    /// Source of the codes of confirmation prompts and approvals.
    pub codes: Codes,
    pub languages: Vec<Language>,
    pub limits: Limits,
    /// Maximum number of concurrent model calls.
    pub model_calls: usize,
    /// Quotas of a member; `None` in a field without a limit.
    pub quotas: Quotas,
    /// Rate limit of one user's messages; `None` without a limit.
    pub rate: Option<Rate>,
    pub prices: Prices,
    pub budget: Budget,
    pub routing: Routing,
    pub reactions: SmsReactions,
    /// Quiet hours for notifications of users who have set no others.
    pub quiet: Option<Quiet>,
    pub pictures: Pictures,
    /// Source of the metadata about answers.
    pub notes: Notes,
    /// Our own number, for users who have not texted yet; `None` without an account.
    pub number: Option<Address>,
    /// Minimum similarity at which two texts count as alike.
    pub floor: f32,
    pub pace: Pace,
}

/// Number of titles that members may add within a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    pub movies: Option<Rate>,
    pub seasons: Option<Rate>,
}

impl Quotas {
    /// Quotas of one member, who may have limits of their own.
    pub(crate) fn of_member(self, own: Own) -> Self {
        let of = |rate: Option<Rate>, own: Option<u32>| {
            rate.map(|rate| Rate { most: own.unwrap_or(rate.most), ..rate })
        };
        Self { movies: of(self.movies, own.movies), seasons: of(self.seasons, own.seasons) }
    }
}

/// Setting for sending pictures to users: not every number supports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pictures {
    Sent,
    Kept,
}

/// Content sent for a reaction that is a whole answer: SMS cannot carry a reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmsReactions {
    /// No message is sent.
    Silent,
    /// The emoji of the reaction is sent.
    Text,
}

/// Source of codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codes {
    Random,
    /// The same code every time, so that a played scenario can know it.
    Fixed(u8),
}

impl Codes {
    /// Draws the code of a confirmation prompt: four digits, or the two of a fixed one.
    pub(super) fn draw(self) -> String {
        match self {
            Self::Random => format!("{:04}", rand::random_range(0..10_000_u16)),
            Self::Fixed(code) => format!("{code:02}"),
        }
    }

    /// Four-digit codes for approvals, drawn one after another until one is free.
    pub(super) fn four_digits(self) -> codes::FourDigitCodes {
        codes::FourDigitCodes::new(self)
    }
}
