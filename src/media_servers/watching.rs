//! People of a media server, what they are watching, and what they have watched.

use std::cmp::Ordering;

use jiff::Timestamp;

use super::{CatalogIds, ItemId, PlayableEpisode};
use crate::conversation::transcript::MediaKind;

/// Id of a user on its server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerUserId(Box<str>);

impl ServerUserId {
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// User of a server, which is a person or a profile that several people share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUser {
    pub id: ServerUserId,
    pub name: String,
}

/// Movie or episode that a user is watching now, also while it is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayingTitle {
    pub user: ServerUser,
    pub kind: MediaKind,
    /// Id of the movie, or of the show to which the episode belongs.
    pub item: ItemId,
    /// Ids of the movie. Those of a show are in the list of titles.
    pub ids: CatalogIds,
    /// Season and number of an episode.
    pub episode: Option<(u32, u32)>,
}

/// Evidence of whether a user has watched a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchState {
    /// The movie, or every episode that the server has. The time is that of the last play, if it is known.
    Finished {
        at: Option<Timestamp>,
    },
    /// Part of the movie, or some episodes. The percentage is that of the movie, or of the episodes that were finished.
    Started {
        percent: Option<u8>,
        at: Option<Timestamp>,
    },
    Never,
    /// The server records finished plays only, and has none of this user.
    NoFinishedPlay,
    Unknown,
}

/// Completeness of what is known of the watching of a person; a worse one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum WatchEvidence {
    #[default]
    Complete,
    /// A server does not record all plays of the person.
    NotRecorded,
    /// A server did not answer, or is not configured.
    NotAnswered,
}

impl WatchState {
    /// Combines the states of one title in two copies, or for two accounts of one person. The stronger evidence counts.
    pub fn combine(self, other: Self) -> Self {
        let stronger = match self.strength().cmp(&other.strength()) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => self.last_play() >= other.last_play(),
        };
        if stronger { self } else { other }
    }

    /// Returns the time of the last play, if it is known.
    pub fn last_play(self) -> Option<Timestamp> {
        match self {
            Self::Finished { at } | Self::Started { at, .. } => at,
            Self::Never | Self::NoFinishedPlay | Self::Unknown => None,
        }
    }

    fn strength(self) -> u8 {
        match self {
            Self::Finished { .. } => 4,
            Self::Started { .. } => 3,
            Self::Unknown => 2,
            Self::NoFinishedPlay => 1,
            Self::Never => 0,
        }
    }
}

/// Movie or episode that a user has played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentPlay {
    pub kind: MediaKind,
    /// Id of the movie, or of the show to which the episode belongs.
    pub item: ItemId,
    /// Title of the movie or of the show.
    pub title: String,
    /// Season and number of an episode.
    pub episode: Option<(u32, u32)>,
    pub progress: PlayProgress,
    pub at: Option<Timestamp>,
}

/// File of one or more episodes that a user has finished or started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodePlay {
    pub file: PlayableEpisode,
    pub progress: PlayProgress,
    /// Time of the play, if it is known.
    pub at: Option<Timestamp>,
}

/// Point at which a play ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayProgress {
    Finished,
    StoppedAt { percent: u8 },
}
