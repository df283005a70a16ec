//! JSON of Jellyfin's API, limited to the fields that are used. Any of them may be missing or null.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use crate::conversation::transcript::MediaKind;
use crate::loose_json::{natural_number, null_as_default};
use crate::media_servers::{
    CatalogIds, EpisodePlay, ItemId, PlayProgress, PlayableEpisode, PlayingTitle, RecentPlay, ServerTitle,
    ServerUser, ServerUserId,
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SystemInfo {
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) server_name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) version: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct VirtualFolder {
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) locations: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct User {
    id: String,
    #[serde(default, deserialize_with = "null_as_default")]
    name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) policy: UserPolicy,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct UserPolicy {
    pub(super) is_disabled: bool,
}

/// Page of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Items<T> {
    pub(super) items: Vec<T>,
    #[serde(default, deserialize_with = "natural_number")]
    total_record_count: Option<usize>,
}

impl<T> Items<T> {
    /// Returns the number of items on all pages.
    pub(super) fn total(&self) -> usize {
        self.total_record_count.unwrap_or(0)
    }
}

/// Movie, show or episode.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Item {
    id: String,
    #[serde(rename = "Type", default, deserialize_with = "null_as_default")]
    item_type: String,
    name: Option<String>,
    #[serde(default, deserialize_with = "natural_number")]
    production_year: Option<u16>,
    provider_ids: Option<BTreeMap<String, Option<String>>>,
    location_type: Option<String>,
    media_sources: Option<Vec<serde::de::IgnoredAny>>,
    series_id: Option<String>,
    series_name: Option<String>,
    /// Number of episodes of a show.
    #[serde(default, deserialize_with = "natural_number")]
    pub(super) recursive_item_count: Option<usize>,
    user_data: Option<UserData>,
    /// Season of an episode.
    #[serde(default, deserialize_with = "natural_number")]
    parent_index_number: Option<u32>,
    #[serde(default, deserialize_with = "natural_number")]
    index_number: Option<u32>,
    #[serde(default, deserialize_with = "natural_number")]
    index_number_end: Option<u32>,
}

/// Data of one user about an item.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct UserData {
    played: bool,
    /// Position in units of 100 ns; 0 if the item was not started, or was finished.
    #[serde(deserialize_with = "natural_number")]
    playback_position_ticks: Option<u64>,
    played_percentage: Option<f64>,
    #[serde(default, deserialize_with = "natural_number")]
    pub(super) unplayed_item_count: Option<usize>,
    #[serde(rename = "LastPlayedDate")]
    pub(super) last_played: Option<Timestamp>,
}

impl UserData {
    const NONE: Self = Self {
        played: false,
        playback_position_ticks: None,
        played_percentage: None,
        unplayed_item_count: None,
        last_played: None,
    };

    /// Returns how far the item was watched; `None` if it was not.
    pub(super) fn progress(&self) -> Option<PlayProgress> {
        if self.played {
            return Some(PlayProgress::Finished);
        }
        let percent = self.played_percentage.unwrap_or(0.0).clamp(0.0, 100.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 100")]
        let percent = percent as u8;
        (self.playback_position_ticks > Some(0)).then_some(PlayProgress::StoppedAt { percent })
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Session {
    user_id: Option<String>,
    user_name: Option<String>,
    now_playing_item: Option<Item>,
}

impl From<User> for ServerUser {
    fn from(user: User) -> Self {
        Self { id: ServerUserId::new(&plain_id(&user.id)), name: user.name }
    }
}

impl Item {
    fn catalog_ids(&self) -> CatalogIds {
        let mut ids = CatalogIds::default();
        for (catalog, id) in self.provider_ids.iter().flatten() {
            ids.add(catalog, id.as_deref().unwrap_or_default());
        }
        ids
    }

    /// Returns whether the item has a file. Episodes that are known only by their air date are virtual.
    fn has_file(&self) -> bool {
        matches!(self.location_type.as_deref(), None | Some("FileSystem" | "Remote"))
    }

    fn has_media_source(&self) -> bool {
        self.media_sources.as_ref().is_none_or(|sources| !sources.is_empty())
    }

    /// Returns the kind of a movie or show.
    pub(super) fn kind(&self) -> Option<MediaKind> {
        match self.item_type.as_str() {
            "Movie" => Some(MediaKind::Movie),
            "Series" => Some(MediaKind::Series),
            _ => None,
        }
    }

    pub(super) fn item_id(&self) -> ItemId {
        ItemId::new(&plain_id(&self.id))
    }

    pub(super) fn user_data(&self) -> &UserData {
        self.user_data.as_ref().unwrap_or(&UserData::NONE)
    }

    /// Returns the play of a movie or episode by the user of its data; `None` if it was not played.
    pub(super) fn into_play(self) -> Option<RecentPlay> {
        let (progress, at) = (self.user_data().progress()?, self.user_data().last_played);
        let episode = self.parent_index_number.zip(self.index_number);
        let (kind, item, title) = match self.item_type.as_str() {
            "Movie" => (MediaKind::Movie, self.item_id(), self.name),
            "Episode" => (MediaKind::Series, ItemId::new(&plain_id(&self.series_id?)), self.series_name),
            _ => return None,
        };
        Some(RecentPlay { kind, item, title: title.unwrap_or_default(), episode, progress, at })
    }

    /// Returns the play of an episode by the user of its data; `None` if it was not played.
    pub(super) fn as_episode_play(&self) -> Option<EpisodePlay> {
        let UserData { last_played: at, .. } = *self.user_data();
        Some(EpisodePlay { file: self.as_playable_episode()?, progress: self.user_data().progress()?, at })
    }

    pub(super) fn as_playable_episode(&self) -> Option<PlayableEpisode> {
        let (season, first) = self.parent_index_number.zip(self.index_number)?;
        let last = self.index_number_end.unwrap_or(first).max(first);
        self.has_file().then_some(PlayableEpisode { season, first, last })
    }
}

/// Item that is no movie and no show.
#[derive(Debug)]
pub(super) struct OtherItem;

impl TryFrom<Item> for ServerTitle {
    type Error = OtherItem;

    fn try_from(item: Item) -> Result<Self, OtherItem> {
        let kind = item.kind().ok_or(OtherItem)?;
        let is_playable = match kind {
            MediaKind::Movie => item.has_file() && item.has_media_source(),
            MediaKind::Series => true,
        };
        Ok(Self {
            item: item.item_id(),
            kind,
            ids: item.catalog_ids(),
            title: item.name.unwrap_or_default(),
            year: item.production_year.unwrap_or(0),
            is_playable,
        })
    }
}

impl Session {
    /// Returns the movie or episode that is played; `None` for an idle session, and for music.
    pub(super) fn into_playing_title(self) -> Option<PlayingTitle> {
        let item = self.now_playing_item?;
        let (kind, item_id) = match item.item_type.as_str() {
            "Movie" => (MediaKind::Movie, item.id.clone()),
            // Without its show, it cannot be told which title is played.
            "Episode" => (MediaKind::Series, item.series_id.clone().unwrap_or_else(|| item.id.clone())),
            _ => return None,
        };
        let ids = if kind == MediaKind::Movie { item.catalog_ids() } else { CatalogIds::default() };
        let user = ServerUser {
            id: ServerUserId::new(&plain_id(&self.user_id.unwrap_or_default())),
            name: self.user_name.unwrap_or_default(),
        };
        let episode = item.parent_index_number.zip(item.index_number);
        Some(PlayingTitle { user, kind, item: ItemId::new(&plain_id(&item_id)), ids, episode })
    }
}

/// Returns an id without the dashes that only some responses have.
fn plain_id(id: &str) -> String {
    id.replace('-', "").to_ascii_lowercase()
}
