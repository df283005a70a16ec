//! Making room on the disks: which titles are proposed for deletion, who is asked about them, and the texts. A proposal
//! deletes nothing: after it, an admin confirms each deletion as any other.

pub mod judgment;
pub mod keep_command;
pub mod messages;
pub mod plan;
pub mod proposal;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

use crate::conversation::deletion::target::{DeletionScope, DeletionTarget};
use crate::conversation::transcript::MediaKind;

/// Period for which a KEEP protects a title.
pub const KEEP_PERIOD: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Period after the answers in which an admin can review the titles. Then they stay.
pub const REVIEW_PERIOD: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Minimum time between the end of a proposal and the next one that starts by itself.
pub const PROPOSAL_INTERVAL: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Time after the start of a proposal at which the monthly one is due.
pub const MONTHLY_INTERVAL: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Days in which the people concerned can answer. Below seven, so that the name of the weekday is clear.
const ANSWER_DAYS: i64 = 6;

/// Meaning of no answer to the question about a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SilenceRule {
    /// The title stays unless everybody who was asked frees it.
    #[default]
    Stays,
    /// The title may go unless somebody keeps it.
    MayGo,
}

/// When proposals start by themselves, and what no answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpacePolicy {
    /// Free space in gigabytes below which a proposal starts; `None` for never.
    pub min_free_gb: Option<u32>,
    /// A proposal starts every month.
    pub monthly: bool,
    pub silence: SilenceRule,
}

/// Whole title of a library, as it was when it was proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedTitle {
    pub instance: String,
    pub kind: MediaKind,
    /// Id in the instance.
    pub item: i64,
    /// TMDB id of a movie, TheTVDB id of a series.
    pub catalog_id: i64,
    pub title: String,
    pub year: u16,
    pub size_bytes: u64,
}

impl ProposedTitle {
    /// Returns whether a deletion deletes this title, as a whole.
    pub fn is_deleted_by(&self, target: &DeletionTarget) -> bool {
        target.scope == DeletionScope::Whole
            && (target.instance.as_str(), target.kind, target.id)
                == (self.instance.as_str(), self.kind, self.item)
    }

    /// Returns whether the title has another size than when it was proposed. A tenth is tolerated, as for every deletion.
    pub fn has_changed_to(&self, size_bytes: u64) -> bool {
        size_bytes.abs_diff(self.size_bytes) > self.size_bytes / 10
    }
}

/// Returns the time at which the answers to a proposal end: the beginning of a day in the household.
pub fn answers_end_at(now: Timestamp, zone: &TimeZone) -> Timestamp {
    let today = now.to_zoned(zone.clone()).date();
    let end = today.checked_add(ANSWER_DAYS.days()).and_then(|date| date.to_zoned(zone.clone()));
    end.map_or(now + SignedDuration::from_hours(24 * ANSWER_DAYS), |end: Zoned| end.timestamp())
}

/// Returns the day on which the answers to a proposal end, in the household.
fn day_of(at: Timestamp, zone: &TimeZone) -> Date {
    at.to_zoned(zone.clone()).date()
}
