//! Mark of the inbox: what a cheap request shows of it, by which a change is noticed.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::wire::InboxEntry;

/// Period that is read again after a change. A text that was under way for longer is lost.
pub(super) const WINDOW: SignedDuration = SignedDuration::from_hours(72);

/// State of the inbox when it was last read as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InboxMark {
    /// Fixed time from which entries are counted, so that two counts can be compared.
    pub(super) counted_from: Timestamp,
    pub(super) total: u64,
    /// Id of the newest entry. A late text does not change it, because entries are sorted by their sent time.
    pub(super) newest: Option<String>,
    /// Ids of the entries from before the first start, which were not meant for this program.
    pub(super) earlier: Vec<String>,
    pub(super) first_read_at: Timestamp,
}

impl InboxMark {
    pub(super) fn parse(mark: &str) -> Option<Self> {
        serde_json::from_str(mark).ok()
    }

    pub(super) fn to_text(&self) -> String {
        // A struct of these types is always valid JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the mark with which everything in the inbox counts as seen.
    pub(super) fn first(
        head: InboxHead,
        entries: &[InboxEntry],
        counted_from: Timestamp,
        now: Timestamp,
    ) -> Self {
        let earlier = entries.iter().map(|entry| entry.id.clone()).collect();
        Self { counted_from, total: head.total, newest: head.newest, earlier, first_read_at: now }
    }

    /// Returns whether the inbox is as it was.
    pub(super) fn matches_head(&self, head: &InboxHead) -> bool {
        self.total == head.total && self.newest == head.newest
    }

    /// Returns the mark for a later state of the inbox. The earlier entries are forgotten once they are too old to be
    /// read.
    pub(super) fn with_head(&self, head: InboxHead, now: Timestamp) -> Self {
        let is_outdated = now.duration_since(self.first_read_at) > WINDOW;
        Self {
            total: head.total,
            newest: head.newest,
            earlier: if is_outdated { Vec::new() } else { self.earlier.clone() },
            ..*self
        }
    }
}

/// Number of entries in the inbox, and its newest entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InboxHead {
    pub(super) total: u64,
    pub(super) newest: Option<String>,
}
