//! JSON of Plex's API, limited to the fields that are used. Any of them may be missing.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::conversation::transcript::MediaKind;
use crate::loose_json::{LooseText, natural_number, null_as_default};
use crate::media_servers::plays::RecordedPlay;
use crate::media_servers::{
    CatalogIds, ItemId, PlayProgress, PlayableEpisode, PlayingTitle, RecentPlay, ServerTitle, ServerUser,
    ServerUserId,
};

/// Start of the `guid` that the agents before 2020 assign, which state one catalog id there.
const OLD_AGENT: &str = "com.plexapp.agents.";

/// Response, of which everything is in one container.
#[derive(Debug, Deserialize)]
pub(super) struct Response<T> {
    #[serde(rename = "MediaContainer")]
    pub(super) container: T,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerInfo {
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) friendly_name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) version: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Sections {
    #[serde(rename = "Directory", default, deserialize_with = "null_as_default")]
    pub(super) sections: Vec<Section>,
}

/// Library of the server.
#[derive(Debug, Deserialize)]
pub(super) struct Section {
    pub(super) key: LooseText,
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    section_type: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) title: String,
    #[serde(rename = "Location", default, deserialize_with = "null_as_default")]
    pub(super) locations: Vec<Location>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Location {
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) path: String,
}

impl Section {
    /// Returns the kind of the titles; `None` for music, photos and home videos of other types.
    pub(super) fn kind(&self) -> Option<MediaKind> {
        kind_of(&self.section_type)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Accounts {
    #[serde(rename = "Account", default, deserialize_with = "null_as_default")]
    pub(super) accounts: Vec<Account>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Account {
    id: LooseText,
    name: Option<String>,
}

impl Account {
    /// Returns the user; `None` for account 0 and for one without a name, which stand for plays of unknown users.
    pub(super) fn into_user(self) -> Option<ServerUser> {
        let name = self.name.filter(|name| !name.trim().is_empty())?;
        let id = self.id.non_empty().filter(|id| *id != "0")?;
        Some(ServerUser { id: ServerUserId::new(id), name })
    }
}

/// List of items, or a page of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Items {
    #[serde(rename = "Metadata", default, deserialize_with = "null_as_default")]
    pub(super) items: Vec<Item>,
    /// Number of items on all pages.
    #[serde(default, deserialize_with = "natural_number")]
    total_size: Option<usize>,
}

impl Items {
    pub(super) fn total(&self) -> usize {
        self.total_size.unwrap_or(self.items.len())
    }
}

/// Movie, show, episode, session or play.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Item {
    #[serde(default, deserialize_with = "null_as_default")]
    rating_key: LooseText,
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    item_type: String,
    #[serde(default, deserialize_with = "null_as_default")]
    title: String,
    year: Option<u16>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) guid: String,
    #[serde(rename = "Guid", default, deserialize_with = "null_as_default")]
    guids: Vec<Guid>,
    #[serde(rename = "Media", default, deserialize_with = "null_as_default")]
    media: Vec<Media>,
    /// Number of episodes of a show.
    #[serde(default, deserialize_with = "natural_number")]
    leaf_count: Option<usize>,
    #[serde(default, deserialize_with = "null_as_default")]
    grandparent_rating_key: LooseText,
    /// Path of the show of an episode, which plays state instead of its id.
    grandparent_key: Option<String>,
    grandparent_title: Option<String>,
    /// Season of an episode.
    parent_index: Option<i64>,
    index: Option<i64>,
    #[serde(rename = "User")]
    user: Option<SessionUser>,
    #[serde(rename = "accountID", default, deserialize_with = "null_as_default")]
    pub(super) account_id: LooseText,
    /// Time of a play in seconds.
    viewed_at: Option<i64>,
}

/// Catalog id such as `tmdb://949`.
#[derive(Debug, Deserialize)]
struct Guid {
    #[serde(default, deserialize_with = "null_as_default")]
    id: String,
}

/// Version of a movie or episode, of which the parts are files.
#[derive(Debug, Deserialize)]
struct Media {
    #[serde(rename = "Part", default, deserialize_with = "null_as_default")]
    parts: Vec<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
struct SessionUser {
    #[serde(default, deserialize_with = "null_as_default")]
    id: LooseText,
    #[serde(default, deserialize_with = "null_as_default")]
    title: String,
}

/// Title in a list without its catalog ids.
#[derive(Debug)]
pub(super) struct ListedTitle {
    pub(super) item: ItemId,
    pub(super) title: String,
    pub(super) guid: String,
    /// Number of episodes of a show.
    pub(super) episodes: usize,
}

impl Item {
    fn item_id(&self) -> Option<ItemId> {
        self.rating_key.non_empty().map(ItemId::new)
    }

    /// Returns the id of the show of an episode.
    fn show_id(&self) -> Option<ItemId> {
        let from_path = || self.grandparent_key.as_deref()?.strip_prefix("/library/metadata/");
        self.grandparent_rating_key.non_empty().or_else(from_path).map(ItemId::new)
    }

    fn has_file(&self) -> bool {
        self.media.iter().any(|version| !version.parts.is_empty())
    }

    /// Returns the season and the number of an episode.
    fn episode(&self) -> Option<(u32, u32)> {
        Some((u32::try_from(self.parent_index?).ok()?, u32::try_from(self.index?).ok()?))
    }

    fn catalog_ids(&self) -> CatalogIds {
        let mut ids = CatalogIds::default();
        for guid in &self.guids {
            if let Some((catalog, id)) = guid.id.split_once("://") {
                ids.add(catalog, id);
            }
        }
        let old = self.guid.strip_prefix(OLD_AGENT).and_then(|guid| guid.split_once("://"));
        if let Some((agent, rest)) = old {
            // The id is followed by the season and the language.
            ids.add(agent, rest.split(['/', '?']).next().unwrap_or_default());
        }
        ids
    }

    pub(super) fn into_server_title(self) -> Option<ServerTitle> {
        let (item, kind) = (self.item_id()?, kind_of(&self.item_type)?);
        let is_playable = kind == MediaKind::Series || self.has_file();
        let (ids, year) = (self.catalog_ids(), self.year.unwrap_or(0));
        Some(ServerTitle { item, kind, ids, title: self.title, year, is_playable })
    }

    pub(super) fn into_listed_title(self) -> Option<ListedTitle> {
        kind_of(&self.item_type)?;
        let (item, episodes) = (self.item_id()?, self.leaf_count.unwrap_or(0));
        Some(ListedTitle { item, title: self.title, guid: self.guid, episodes })
    }

    /// Returns an episode with a file. Each episode of a file with several is an item of its own.
    pub(super) fn into_playable_episode(self) -> Option<PlayableEpisode> {
        let (season, number) = self.episode()?;
        self.has_file().then_some(PlayableEpisode { season, first: number, last: number })
    }

    /// Returns the movie or episode of a session; `None` for music and trailers.
    pub(super) fn into_playing_title(self) -> Option<PlayingTitle> {
        let (kind, item) = match self.item_type.as_str() {
            "movie" => (MediaKind::Movie, self.item_id()),
            // Without its show, the title that is played is unknown.
            "episode" => (MediaKind::Series, self.show_id().or_else(|| self.item_id())),
            _ => return None,
        };
        let item = item.unwrap_or_else(|| ItemId::new(""));
        let ids = if kind == MediaKind::Movie { self.catalog_ids() } else { CatalogIds::default() };
        let episode = self.episode();
        let user = self.user.unwrap_or_default();
        let user = ServerUser { id: ServerUserId::new(user.id.as_str()), name: user.title };
        Some(PlayingTitle { user, kind, item, ids, episode })
    }

    /// Returns the finished play of a movie or episode in the history. `show` is the show of an episode that names none.
    pub(super) fn into_finished_play(self, show: Option<&ItemId>) -> Option<RecordedPlay> {
        let episode = self.episode();
        let at = self.viewed_at.and_then(|second| Timestamp::from_second(second).ok());
        let (kind, item) = match self.item_type.as_str() {
            "movie" => (MediaKind::Movie, self.item_id()?),
            "episode" => (MediaKind::Series, self.show_id().or_else(|| show.cloned())?),
            _ => return None,
        };
        let title = match kind {
            MediaKind::Movie => self.title,
            MediaKind::Series => self.grandparent_title.unwrap_or_default(),
        };
        let progress = PlayProgress::Finished;
        Some(RecordedPlay { play: RecentPlay { kind, item, title, episode, progress, at }, guid: self.guid })
    }
}

/// Returns the kind that a section or an item names.
fn kind_of(name: &str) -> Option<MediaKind> {
    match name {
        "movie" => Some(MediaKind::Movie),
        "show" => Some(MediaKind::Series),
        _ => None,
    }
}
