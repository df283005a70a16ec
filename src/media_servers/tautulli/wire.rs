//! JSON of Tautulli's API, limited to the fields that are used. Ids and numbers are also stated as text.

use jiff::Timestamp;
use serde::Deserialize;

use super::TautulliUser;
use crate::conversation::transcript::MediaKind;
use crate::loose_json::LooseText;
use crate::media_servers::plays::RecordedPlay;
use crate::media_servers::{ItemId, PlayProgress, RecentPlay, ServerUserId};

/// Percentage up to which a play is no evidence that the title was started.
const MIN_STARTED_PERCENT: f64 = 5.0;

#[derive(Debug, Deserialize)]
pub(super) struct Envelope<T> {
    pub(super) response: CommandResult<T>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CommandResult<T> {
    /// `success` or `error`.
    pub(super) result: String,
    pub(super) data: T,
}

#[derive(Debug, Deserialize)]
pub(super) struct ProgramInfo {
    #[serde(default)]
    pub(super) tautulli_version: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct User {
    user_id: LooseText,
    #[serde(default)]
    username: LooseText,
    #[serde(default)]
    friendly_name: LooseText,
    #[serde(default)]
    is_admin: LooseText,
    is_active: Option<LooseText>,
    keep_history: Option<LooseText>,
}

impl User {
    /// Returns the user; `None` for id 0, which stands for plays without an account.
    pub(super) fn into_user(self) -> Option<TautulliUser> {
        let id = self.user_id.non_empty().filter(|id| *id != "0")?;
        let is_on = |flag: &LooseText| flag.as_str() == "1";
        Some(TautulliUser {
            id: ServerUserId::new(id),
            username: self.username.as_str().to_owned(),
            friendly_name: self.friendly_name.as_str().to_owned(),
            is_owner: is_on(&self.is_admin),
            is_active: self.is_active.as_ref().is_none_or(is_on),
            is_recorded: self.keep_history.as_ref().is_none_or(is_on),
        })
    }
}

/// Page of the history.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct History {
    /// Number of rows on all pages.
    pub(super) records_filtered: usize,
    pub(super) data: Vec<HistoryRow>,
}

/// Play of a movie or episode, including its pauses.
#[derive(Debug, Deserialize)]
pub(super) struct HistoryRow {
    #[serde(default)]
    pub(super) user_id: LooseText,
    #[serde(default)]
    media_type: LooseText,
    #[serde(default)]
    rating_key: LooseText,
    #[serde(default)]
    grandparent_rating_key: LooseText,
    #[serde(default)]
    full_title: LooseText,
    #[serde(default)]
    grandparent_title: LooseText,
    #[serde(default)]
    guid: LooseText,
    /// Season of an episode.
    #[serde(default)]
    parent_media_index: LooseText,
    #[serde(default)]
    media_index: LooseText,
    #[serde(default)]
    percent_complete: LooseText,
    /// 1 if the play passed the watched threshold; otherwise quarters of the way to it.
    #[serde(default)]
    watched_status: LooseText,
    #[serde(default)]
    started: LooseText,
    #[serde(default)]
    stopped: LooseText,
}

impl HistoryRow {
    /// Returns the play; `None` for music and live television, and for a play of a few minutes.
    pub(super) fn into_play(self) -> Option<RecordedPlay> {
        let (kind, item, title) = match self.media_type.as_str() {
            "movie" => (MediaKind::Movie, &self.rating_key, &self.full_title),
            "episode" => (MediaKind::Series, &self.grandparent_rating_key, &self.grandparent_title),
            _ => return None,
        };
        let (item, title) = (ItemId::new(item.non_empty()?), title.as_str().to_owned());
        let (season, number) = (self.parent_media_index.integer(), self.media_index.integer());
        let episode = season.zip(number).filter(|_| kind == MediaKind::Series);
        let (progress, at) = (self.progress()?, self.time());
        let play = RecentPlay { kind, item, title, episode, progress, at };
        Some(RecordedPlay { play, guid: self.guid.as_str().to_owned() })
    }

    fn progress(&self) -> Option<PlayProgress> {
        if self.watched_status.number().is_some_and(|status| status >= 1.0) {
            return Some(PlayProgress::Finished);
        }
        let percent = self.percent_complete.number()?.clamp(0.0, 100.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 100")]
        let rounded = percent as u8;
        (percent >= MIN_STARTED_PERCENT).then_some(PlayProgress::StoppedAt { percent: rounded })
    }

    fn time(&self) -> Option<Timestamp> {
        let second = self.stopped.integer().filter(|second: &i64| *second > 0);
        Timestamp::from_second(second.or_else(|| self.started.integer())?).ok()
    }
}
