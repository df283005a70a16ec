//! Frozen target of a confirmation prompt: exactly the data to delete, as the user was shown it.

use crate::conversation::transcript::MediaKind;

/// Target of a pending deletion, frozen as the confirmation prompt named it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletionTarget {
    pub instance: String,
    pub kind: MediaKind,
    /// Id in the library, which never reuses an id.
    pub id: i64,
    pub delete_files: bool,
    pub scope: DeletionScope,
    pub fingerprint: TargetFingerprint,
}

/// Scope of a deletion within its title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletionScope {
    /// The whole title, which leaves the library.
    Whole,
    /// The files of one season, by their ids. The series stays, and the season is not downloaded again. `monitored`
    /// holds the monitored parts of the season; an earlier version did not freeze this value.
    Season { number: u32, files: Vec<i64>, monitored: Option<SeasonFlags> },
    /// The copy on the disk, by the ids of its files. The same release is not downloaded again, and another copy is
    /// searched.
    Copy { episodes: Option<SeasonEpisodes>, files: Vec<i64> },
    /// An active download; the id of the item is the id of its queue entry.
    Download(DownloadFollowUp),
}

/// Monitored parts of a season. A season is unmonitored before its files are deleted, so these flags are restored if
/// the season was kept after all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeasonFlags {
    pub season: bool,
    /// Ids of the monitored episodes.
    pub episodes: Vec<i64>,
}

/// Episodes of one season; an empty list of numbers means all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeasonEpisodes {
    pub season: u32,
    pub numbers: Vec<u32>,
}

/// Follow-up of a removed download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadFollowUp {
    /// The release is not downloaded again, and another copy is searched.
    SearchAgain,
    Nothing,
}

/// Properties of an item as the user was shown them, compared again before the deletion.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetFingerprint {
    pub title: String,
    pub year: u16,
    pub path: String,
    pub size_bytes: u64,
    /// Number of seasons with files, for a series.
    pub seasons: Option<u32>,
}
