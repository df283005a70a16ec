//! Titles that could go to make room: what they are judged by, and the tool that shows them, asks the people concerned, and
//! reviews the answers.

pub mod candidates;
pub mod free_space;
pub mod make_room;
#[cfg(test)]
mod tests;

use jiff::Timestamp;

use crate::conversation::making_room::{ProposedTitle, SilenceRule};
use crate::conversation::people::age_ratings::AgeLimit;
use crate::conversation::transcript::{MediaKind, UserId};
use crate::conversation::viewer_accounts::ViewerAccount;

/// Records of the household by which titles are judged.
#[derive(Debug, Clone, Default)]
pub struct SpaceRecords {
    pub people: Vec<HouseholdPerson>,
    pub requests: Vec<RequestRecord>,
    /// Protected titles, by TMDB or TheTVDB id.
    pub kept: Vec<(MediaKind, i64)>,
    /// Instances, kinds and ids of the titles of which somebody waits for news.
    pub followed: Vec<(String, MediaKind, i64)>,
    pub silence: SilenceRule,
    /// End of the time for answers of the open proposal, if one is open.
    pub open_until: Option<Timestamp>,
    /// Titles of the open proposal that an admin may decide on.
    pub under_review: Vec<ProposedTitle>,
}

/// Active user who may be concerned by a title.
#[derive(Debug, Clone)]
pub struct HouseholdPerson {
    pub user: UserId,
    pub name: String,
    /// Accounts at the media servers.
    pub accounts: Vec<ViewerAccount>,
    /// Titles that the person may see.
    pub limit: AgeLimit,
    /// True if the person wants notifications and can be reached.
    pub is_reachable: bool,
}

/// First request of a person for a title.
#[derive(Debug, Clone)]
pub struct RequestRecord {
    pub instance: String,
    pub kind: MediaKind,
    pub catalog_id: i64,
    pub user: UserId,
    pub at: Timestamp,
}
