//! How a household wants its conversations run.

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

/// How a household wants its conversations run.
#[derive(Debug, Clone)]
pub struct Settings {
    pub zone: TimeZone,
    /// Silence after which a conversation is over.
    pub idle: SignedDuration,
    /// Quiet time that lets quick texts share a turn.
    pub coalesce: Duration,
    pub code_policy: CodePolicy,
    /// Where the codes of questions and requests come from.
    pub codes: Codes,
    pub languages: Vec<Language>,
    pub limits: Limits,
    /// Model calls at the same time.
    pub model_calls: usize,
    /// What a member may add; `None` without a limit.
    pub quotas: Quotas,
    /// Texts of one person that are worked on; `None` without a limit.
    pub rate: Option<Rate>,
    pub prices: Prices,
    pub budget: Budget,
    pub routing: Routing,
    pub reactions: SmsReactions,
    /// The hours in which notices rest for whoever has set no others.
    pub quiet: Option<Quiet>,
    pub pictures: Pictures,
    /// Who notes what answers are about.
    pub notes: Notes,
    /// Our own number, for those who have not texted yet; `None` without an account.
    pub number: Option<Address>,
    /// From which likeness on two texts count as alike.
    pub floor: f32,
    pub pace: Pace,
}

/// What members may add within a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    pub movies: Option<Rate>,
    pub seasons: Option<Rate>,
}

impl Quotas {
    /// Those of one member, who may have limits of their own.
    pub(crate) fn of_member(self, own: Own) -> Self {
        let of = |rate: Option<Rate>, own: Option<u32>| {
            rate.map(|rate| Rate { most: own.unwrap_or(rate.most), ..rate })
        };
        Self { movies: of(self.movies, own.movies), seasons: of(self.seasons, own.seasons) }
    }
}

/// Whether people are sent pictures: not every number can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pictures {
    Sent,
    Kept,
}

/// What is sent of a reaction that stands for a whole answer: texts cannot carry one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmsReactions {
    /// Nothing.
    Silent,
    /// Its emoji.
    Text,
}

/// Where codes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codes {
    Random,
    /// The same every time, so that a played scenario can know it.
    Fixed(u8),
}

impl Codes {
    /// The code of a question: four digits, or the two of a fixed one.
    pub(super) fn draw(self) -> String {
        match self {
            Self::Random => format!("{:04}", rand::random_range(0..10_000_u16)),
            Self::Fixed(code) => format!("{code:02}"),
        }
    }

    /// The four digits of what waits for an admin, one after the other until one is free.
    pub(super) fn four_digits(self) -> codes::FourDigitCodes {
        codes::FourDigitCodes::new(self)
    }
}
