//! Proposal to make room before it starts: the titles that could go, and the question to each person concerned.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::judgment::GoReason;
use super::{ProposedTitle, SilenceRule};
use crate::conversation::rating_caps::RatingCaps;
use crate::conversation::transcript::UserId;

/// Person whom a title concerns, because the person asked for it or has finished it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcernedPerson {
    pub user: UserId,
    /// Caps of the person with which the title was checked.
    pub caps: RatingCaps,
    pub asked_at: Option<Timestamp>,
    /// Time of the last play, if the person has finished the title; `Some(None)` if the time is unknown.
    pub finished: Option<Option<Timestamp>>,
    /// True if the person can be asked: is active, wants notifications, and may see the title.
    pub may_be_asked: bool,
}

/// Title that could go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub title: ProposedTitle,
    pub reason: GoReason,
    /// Time of the last play by anybody, if it is known.
    pub last_played_at: Option<Timestamp>,
    pub people: Vec<ConcernedPerson>,
}

/// Rules of a proposal.
#[derive(Debug, Clone)]
pub struct ProposalRules {
    pub silence: SilenceRule,
    /// Space to make; `None` for as many titles as a proposal may have.
    pub wanted_bytes: Option<u64>,
    pub now: Timestamp,
    pub zone: TimeZone,
}

/// Proposal that has not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposalPlan {
    pub silence: SilenceRule,
    /// End of the time for answers: now, if there is nobody to ask.
    pub answers_end_at: Timestamp,
    pub titles: Vec<Candidate>,
    pub questions: Vec<Question>,
}

/// Question to one person about some titles of a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub user: UserId,
    /// Caps of the person with which the titles were checked.
    pub caps: RatingCaps,
    /// Indexes of the titles in the proposal, in the order of the numbers in the text.
    pub titles: Vec<usize>,
    pub text: String,
}

impl ProposalPlan {
    pub fn total_bytes(&self) -> u64 {
        self.titles.iter().fold(0, |sum, candidate| sum.saturating_add(candidate.title.size_bytes))
    }
}
