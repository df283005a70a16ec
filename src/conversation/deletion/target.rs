//! What a question about a deletion freezes: exactly what goes, as the user was shown it.

use crate::conversation::transcript::MediaKind;

/// Target of a pending deletion, frozen as the confirmation prompt named it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletionTarget {
    pub instance: String,
    pub kind: MediaKind,
    /// The library's own id, which it never reuses.
    pub id: i64,
    pub delete_files: bool,
    pub scope: DeletionScope,
    pub fingerprint: TargetFingerprint,
}

/// Scope of a deletion within its title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletionScope {
    /// The title, out of the library.
    Whole,
    /// The files of one season, by their ids. The show stays, and the season is not fetched again. `monitored` is what
    /// of it was looked for; an earlier version did not freeze that.
    Season { number: u32, files: Vec<i64>, monitored: Option<SeasonFlags> },
    /// The copy on the disk, by the ids of its files. It is not taken again, and another one is looked for.
    Copy { episodes: Option<SeasonEpisodes>, files: Vec<i64> },
    /// A download on its way; the id of the item is that of its place in the queue.
    Download(DownloadFollowUp),
}

/// What of a season is looked for. It is unmonitored before its files are deleted, so this is what a season that was
/// kept after all gets back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeasonFlags {
    pub season: bool,
    /// Monitored episodes by id.
    pub episodes: Vec<i64>,
}

/// Episodes of one season; without numbers all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeasonEpisodes {
    pub season: u32,
    pub numbers: Vec<u32>,
}

/// Follow-up of a removed download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadFollowUp {
    /// It is not taken again, and another copy is looked for.
    SearchAgain,
    Nothing,
}

/// What the user was shown of an item, compared again before it goes.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetFingerprint {
    pub title: String,
    pub year: u16,
    pub path: String,
    pub size_bytes: u64,
    /// Seasons with files, for a show.
    pub seasons: Option<u32>,
}
