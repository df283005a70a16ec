//! Target of a deletion, frozen when the confirmation prompt is sent: exactly the data that the user was shown.

use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::transcript::MediaKind;

/// Target of a deletion, as the confirmation prompt named it.
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
    /// The whole title, which is removed from the library.
    Whole,
    /// The files of one season, by their ids. The series stays, and the season is not downloaded again. `monitored`
    /// contains the monitored parts of the season; an earlier version did not store this value.
    Season { number: u32, files: Vec<i64>, monitored: Option<SeasonFlags> },
    /// The copy on the disk, by the ids of its files. The same release is not downloaded again, and another copy is
    /// searched for.
    Copy { episodes: Option<SeasonEpisodes>, files: Vec<i64> },
    /// An active download; the id of the target is the id of its queue entry.
    Download(DownloadFollowUp),
}

/// Monitored parts of a season. A season is unmonitored before its files are deleted, so the flags are restored if
/// the season is kept after all.
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

/// Action after the removal of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadFollowUp {
    /// The release is not downloaded again, and another copy is searched for.
    SearchAgain,
    Nothing,
}

/// Properties of a target, as the user was shown them. They are compared again before the deletion.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetFingerprint {
    pub title: String,
    pub year: u16,
    pub path: String,
    pub size_bytes: u64,
    /// Number of seasons with files, for a series.
    pub seasons: Option<u32>,
    /// Ids by which a media server knows the title. They are not compared.
    pub ids: CatalogIds,
    pub viewing: ViewingKnowledge,
}

/// Knowledge about viewers of a title when its prompt was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ViewingKnowledge {
    /// Nobody was watching it, or no media server is configured.
    #[default]
    Known,
    /// A media server did not answer, and the prompt said so.
    Unknown,
}

impl DeletionTarget {
    /// Returns whether the deletion removes files that somebody could be watching.
    pub fn deletes_playable_files(&self) -> bool {
        self.delete_files && !matches!(self.scope, DeletionScope::Download(_))
    }
}
