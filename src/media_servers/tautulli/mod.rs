//! Client for Tautulli, which records the plays of a Plex: also those that were not finished, with their percentage.

#[cfg(test)]
mod tests;
mod wire;

use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use url::Url;

use super::plays::RecordedPlays;
use super::{ItemId, ServerError, ServerStatus, ServerUser, ServerUserId};
use crate::http::HttpClient;
use crate::server_api::{QueryParameters, ServerApi};

/// Number of plays in a page of the history.
const PAGE_PLAYS: usize = 500;

/// Client for one Tautulli. Its API has the key in the query, which no error and no log line contains. The independent
/// client for version 2.18 sends a header instead, so each request has both.
#[derive(Debug, Clone)]
pub struct Tautulli {
    api: ServerApi,
    key: SecretString,
}

/// User of a Plex whom Tautulli knows. The id is that of plex.tv.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TautulliUser {
    pub id: ServerUserId,
    /// Name at plex.tv.
    pub username: String,
    /// Name that was set in Tautulli, otherwise the same as `username`.
    pub friendly_name: String,
    /// True for the owner of the server.
    pub is_owner: bool,
    /// False if the user has no access to the server anymore.
    pub is_active: bool,
    /// False if no plays of the user are recorded.
    pub is_recorded: bool,
}

impl TautulliUser {
    pub(super) fn has_name(&self, name: &str) -> bool {
        let is_same = |known: &str| !known.is_empty() && known.eq_ignore_ascii_case(name);
        is_same(&self.username) || is_same(&self.friendly_name)
    }

    pub(super) fn into_user(self) -> ServerUser {
        let name = if self.friendly_name.is_empty() { self.username } else { self.friendly_name };
        ServerUser { id: self.id, name }
    }
}

/// Selection of the plays of a user.
#[derive(Debug, Clone, Copy)]
pub(super) enum PlaySelection<'s> {
    All,
    Movie(&'s ItemId),
    Show(&'s ItemId),
    /// Plays of the movie or episode with this guid, under whatever id.
    Guid(&'s str),
    /// Plays of titles that contain a text.
    Search(&'s str),
}

impl<'s> PlaySelection<'s> {
    fn parameter(self) -> Option<(&'static str, &'s str)> {
        match self {
            Self::All => None,
            Self::Movie(movie) => Some(("rating_key", movie.as_str())),
            Self::Show(show) => Some(("grandparent_rating_key", show.as_str())),
            Self::Guid(guid) => Some(("guid", guid)),
            Self::Search(text) => Some(("search", text)),
        }
    }

    /// Returns whether a play is selected, in case that the program does not know the parameter.
    fn contains(self, item: &ItemId, guid: &str) -> bool {
        match self {
            Self::All | Self::Search(_) => true,
            Self::Movie(asked) | Self::Show(asked) => item == asked,
            Self::Guid(asked) => guid == asked,
        }
    }
}

impl Tautulli {
    pub fn new(http: HttpClient, base: Url, key: &SecretString) -> Self {
        let header = HeaderValue::from_str(key.expose_secret()).ok().map(|mut value| {
            value.set_sensitive(true);
            (HeaderName::from_static("x-api-key"), value)
        });
        Self { api: ServerApi::new(http, base, header.into_iter().collect()), key: key.clone() }
    }

    /// Reads the version of Tautulli, which only a valid key can do.
    pub async fn fetch_status(&self) -> Result<ServerStatus, ServerError> {
        let info: wire::ProgramInfo = self.call("get_tautulli_info", &[]).await?;
        Ok(ServerStatus { name: "Tautulli".into(), version: info.tautulli_version })
    }

    /// Reads all users, including those that are not active.
    pub async fn fetch_users(&self) -> Result<Vec<TautulliUser>, ServerError> {
        let users: Vec<wire::User> = self.call("get_users", &[]).await?;
        Ok(users.into_iter().filter_map(wire::User::into_user).collect())
    }

    /// Reads at most `max` plays of a user, newest first.
    pub(super) async fn fetch_plays(
        &self,
        user: &ServerUserId,
        selection: PlaySelection<'_>,
        max: usize,
    ) -> Result<RecordedPlays, ServerError> {
        let (mut plays, mut start) = (Vec::new(), 0);
        loop {
            let history = self.fetch_history(user, selection, start).await?;
            let read = history.data.len();
            let rows = history.data.into_iter().filter(|row| row.user_id.as_str() == user.as_str());
            let selected = rows
                .filter_map(wire::HistoryRow::into_play)
                .filter(|recorded| selection.contains(&recorded.play.item, &recorded.guid));
            plays.extend(selected);
            start += read;
            let total = history.records_filtered;
            if read == 0 || start >= total.min(max) {
                return Ok(RecordedPlays { plays, is_complete: start >= total });
            }
        }
    }

    async fn fetch_history(
        &self,
        user: &ServerUserId,
        selection: PlaySelection<'_>,
        start: usize,
    ) -> Result<wire::History, ServerError> {
        let (start, length) = (start.to_string(), PAGE_PLAYS.to_string());
        let mut query = vec![
            ("user_id", user.as_str()),
            ("order_column", "date"),
            ("order_dir", "desc"),
            // The parts of a play that was paused are one row.
            ("grouping", "1"),
            // A play that still runs is not recorded yet.
            ("include_activity", "0"),
            ("start", &start),
            ("length", &length),
        ];
        query.extend(selection.parameter());
        self.call("get_history", &query).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        command: &str,
        query: QueryParameters<'_>,
    ) -> Result<T, ServerError> {
        let mut all = vec![("apikey", self.key.expose_secret()), ("cmd", command)];
        all.extend(query);
        let response = match self.api.get::<wire::Envelope<T>>("api/v2", &all).await {
            Err(ServerError::NotFound) => {
                return Err(ServerError::WrongUrl("it may be turned off".into()));
            }
            envelope => envelope?.response,
        };
        if response.result != "success" {
            return Err(ServerError::Refused(200));
        }
        Ok(response.data)
    }
}
