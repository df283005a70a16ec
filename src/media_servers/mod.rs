//! Clients of the servers on which a household watches its titles, such as Jellyfin. Sonarr and Radarr know which files
//! exist; only these servers know what can be played, and who has watched it.

pub mod episode_plays;
pub mod fake;
pub mod jellyfin;
mod path_mapping;
pub mod playability;
mod plays;
pub mod plex;
#[cfg(test)]
mod same_household_tests;
pub mod tautulli;
mod title_index;
mod title_list;
mod watch_cache;
pub mod watched_titles;
mod watching;

use std::collections::HashMap;

use async_trait::async_trait;
use jiff::Timestamp;

use self::tautulli::Tautulli;
pub use title_index::TitleIndex;
pub use title_list::TitleList;
pub use watching::{
    EpisodePlay, PlayProgress, PlayingTitle, RecentPlay, ServerUser, ServerUserId, WatchEvidence, WatchState,
};

pub use crate::conversation::catalog_ids::{CatalogId, CatalogIds};
use crate::conversation::transcript::MediaKind;
use crate::conversation::viewer_accounts::MediaServerKind;
pub use crate::server_api::ServerError;

/// Maximum number of titles in a page of a list.
pub const PAGE_TITLES: usize = 200;

/// Server on which people watch, as a port that each kind of server implements.
#[async_trait]
pub trait MediaServer: std::fmt::Debug + Send + Sync {
    fn kind(&self) -> MediaServerKind;

    /// Returns the name of the server in URLs, such as `jellyfin`.
    fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// Returns the name of the product, such as `Jellyfin`.
    fn label(&self) -> &'static str {
        self.kind().label()
    }

    /// Returns the Tautulli that answers what people have watched here, if there is one.
    fn tautulli(&self) -> Option<&Tautulli> {
        None
    }

    /// Reads the name and the version of the server, which only a valid key can do.
    async fn fetch_status(&self) -> Result<ServerStatus, ServerError>;

    /// Reads the folders that the server scans.
    async fn fetch_folders(&self) -> Result<Vec<LibraryFolder>, ServerError>;

    async fn fetch_users(&self) -> Result<Vec<ServerUser>, ServerError>;

    /// Reads the number of movies and shows.
    async fn fetch_title_count(&self) -> Result<usize, ServerError>;

    /// Reads a page of the movies and shows, without their episodes. `changed_since` limits it to titles that were saved
    /// since then; deletions do not show there.
    async fn fetch_titles(
        &self,
        start: usize,
        changed_since: Option<Timestamp>,
    ) -> Result<TitlePage, ServerError>;

    /// Reads the episodes of a show that can be played.
    async fn fetch_episodes(&self, show: &ItemId) -> Result<Vec<PlayableEpisode>, ServerError>;

    /// Reads what people are watching at the moment.
    async fn fetch_playing(&self) -> Result<Vec<PlayingTitle>, ServerError>;

    /// Reads how far a user has watched one title.
    async fn fetch_watch_state(
        &self,
        user: &ServerUserId,
        title: &ServerTitle,
    ) -> Result<WatchState, ServerError>;

    /// Reads how far a user has watched the titles of the server.
    async fn fetch_watch_states(&self, user: &ServerUserId) -> Result<WatchStates, ServerError>;

    /// Reads what a user has played lately, newest first, each title once.
    async fn fetch_recent_plays(
        &self,
        user: &ServerUserId,
        limit: usize,
    ) -> Result<Vec<RecentPlay>, ServerError>;

    /// Reads which episodes of a show a user has finished or started. What the server does not record is left out.
    async fn fetch_episode_plays(
        &self,
        user: &ServerUserId,
        show: &ServerTitle,
    ) -> Result<Vec<EpisodePlay>, ServerError>;

    /// Asks the server to look for new files in a folder, given by its path on the server.
    async fn request_scan(&self, path: &str) -> Result<(), ServerError>;
}

/// States of the titles of which a user has watched anything, and the state of all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchStates {
    pub known: HashMap<ItemId, WatchState>,
    /// [`WatchState::Never`], [`WatchState::NoFinishedPlay`], or [`WatchState::Unknown`] if the records of the user are
    /// incomplete.
    pub others: WatchState,
}

/// Version and name of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    pub name: String,
    pub version: String,
}

/// Folder that a server scans for files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryFolder {
    /// Name of the library, such as `Movies`.
    pub library: String,
    /// Path as the server sees it.
    pub path: String,
}

/// Id of a movie, show or episode on its server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(Box<str>);

/// Movie or show on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTitle {
    pub item: ItemId,
    pub kind: MediaKind,
    pub ids: CatalogIds,
    pub title: String,
    /// Year, or 0 if unknown.
    pub year: u16,
    /// True if the server has a file of a movie. A show counts as playable here; its episodes are asked for one by one.
    pub is_playable: bool,
}

/// Page of a list of titles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TitlePage {
    pub titles: Vec<ServerTitle>,
    /// Number of titles on all pages.
    pub total: usize,
}

/// Episodes that one file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayableEpisode {
    pub season: u32,
    pub first: u32,
    /// Last episode of a file with several, otherwise the same as `first`.
    pub last: u32,
}

impl PlayableEpisode {
    pub fn contains(&self, (season, number): (u32, u32)) -> bool {
        season == self.season && (self.first..=self.last).contains(&number)
    }
}

impl ItemId {
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}
