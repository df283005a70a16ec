//! What a question about a deletion freezes: exactly what goes, as the user was shown it.

use super::transcript::MediaKind;

/// One item of a held deletion, frozen as the question named it.
#[derive(Debug, Clone, PartialEq)]
pub struct FrozenItem {
    pub instance: String,
    pub kind: MediaKind,
    /// The library's own id, which it never reuses.
    pub id: i64,
    pub delete_files: bool,
    pub extent: Extent,
    pub fingerprint: Fingerprint,
}

/// What of a title goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    /// The title, out of the library.
    Whole,
    /// The files of one season, by their ids. The show stays, and the season is not fetched again. `monitored` is what
    /// of it was looked for; an earlier version did not freeze that.
    Season { number: u32, files: Vec<i64>, monitored: Option<SeasonFlags> },
    /// The copy on the disk, by the ids of its files. It is not taken again, and another one is looked for.
    Copy { episodes: Option<Episodes>, files: Vec<i64> },
    /// A download on its way; the id of the item is that of its place in the queue.
    Download(Afterwards),
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
pub struct Episodes {
    pub season: u32,
    pub numbers: Vec<u32>,
}

/// What follows on a download that is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// It is not taken again, and another copy is looked for.
    AnotherCopy,
    Nothing,
}

/// What the user was shown of an item, compared again before it goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Fingerprint {
    pub title: String,
    pub year: u16,
    pub path: String,
    pub size_bytes: u64,
    /// Seasons with files, for a show.
    pub seasons: Option<u32>,
}
