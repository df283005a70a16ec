//! Client for Plex Media Server. It sends requests to the server only, and none to plex.tv.

mod history;
mod tautulli_states;
#[cfg(test)]
mod tautulli_states_tests;
#[cfg(test)]
mod tests;
mod titles;
mod watch_states;
mod wire;

use async_trait::async_trait;
use http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use self::tautulli_states::RecordedServer;
use self::titles::KnownSections;
use super::tautulli::{Tautulli, TautulliUser};
use super::{
    EpisodePlay, ItemId, LibraryFolder, MediaServer, PlayableEpisode, PlayingTitle, RecentPlay, ServerError,
    ServerStatus, ServerTitle, ServerUser, ServerUserId, TitlePage, WatchState, WatchStates,
};
use crate::conversation::viewer_accounts::MediaServerKind;
use crate::http::HttpClient;
use crate::server_api::{ServerApi, encode};
use crate::telemetry;

/// Client for one Plex, with the token of its owner. Other tokens cannot read sessions, accounts and the history.
#[derive(Debug, Clone)]
pub struct Plex {
    api: ServerApi,
    sections: KnownSections,
    tautulli: Option<Tautulli>,
}

impl Plex {
    /// Creates a client. A token that cannot be part of a header is refused by the server as a wrong one.
    pub fn new(http: HttpClient, base: Url, token: &SecretString) -> Self {
        let name = HeaderName::from_static;
        let mut headers = vec![
            (name("x-plex-client-identifier"), HeaderValue::from_static("dialarr")),
            (name("x-plex-product"), HeaderValue::from_static("Dialarr")),
        ];
        headers.extend(HeaderValue::from_str(token.expose_secret()).ok().map(|mut token| {
            token.set_sensitive(true);
            (name("x-plex-token"), token)
        }));
        Self { api: ServerApi::new(http, base, headers), sections: KnownSections::default(), tautulli: None }
    }

    /// Adds the Tautulli that records the plays of this server. It then answers who the users are and what they have
    /// watched; if it fails, so do these questions. What was played before its installation is not known to it.
    #[must_use]
    pub fn with_tautulli(self, tautulli: Tautulli) -> Self {
        Self { tautulli: Some(tautulli), ..self }
    }

    fn recorded_server(&self) -> Option<RecordedServer<'_>> {
        Some(RecordedServer { api: &self.api, tautulli: self.tautulli.as_ref()? })
    }
}

#[async_trait]
impl MediaServer for Plex {
    fn kind(&self) -> MediaServerKind {
        MediaServerKind::Plex
    }

    fn tautulli(&self) -> Option<&Tautulli> {
        self.tautulli.as_ref()
    }

    async fn fetch_status(&self) -> Result<ServerStatus, ServerError> {
        let info = self.api.get::<wire::Response<wire::ServerInfo>>("", &[]).await?.container;
        Ok(ServerStatus { name: info.friendly_name, version: info.version })
    }

    async fn fetch_folders(&self) -> Result<Vec<LibraryFolder>, ServerError> {
        let sections = titles::fetch_sections(&self.api).await?;
        let folders = sections.into_iter().flat_map(|section| {
            let wire::Section { title, locations, .. } = section;
            locations
                .into_iter()
                .map(move |location| LibraryFolder { library: title.clone(), path: location.path })
        });
        Ok(folders.collect())
    }

    /// Reads the accounts of the server, or the users that Tautulli knows, which have the ids of plex.tv.
    async fn fetch_users(&self) -> Result<Vec<ServerUser>, ServerError> {
        if let Some(tautulli) = &self.tautulli {
            let users = tautulli.fetch_users().await?;
            return Ok(users
                .into_iter()
                .filter(|user| user.is_active)
                .map(TautulliUser::into_user)
                .collect());
        }
        let accounts = self.api.get::<wire::Response<wire::Accounts>>("accounts", &[]).await?.container;
        Ok(accounts.accounts.into_iter().filter_map(wire::Account::into_user).collect())
    }

    async fn fetch_title_count(&self) -> Result<usize, ServerError> {
        titles::fetch_title_count(&self.api).await
    }

    async fn fetch_titles(
        &self,
        start: usize,
        changed_since: Option<Timestamp>,
    ) -> Result<TitlePage, ServerError> {
        titles::fetch_titles(&self.api, &self.sections, start, changed_since).await
    }

    async fn fetch_episodes(&self, show: &ItemId) -> Result<Vec<PlayableEpisode>, ServerError> {
        titles::fetch_episodes(&self.api, show).await
    }

    async fn fetch_playing(&self) -> Result<Vec<PlayingTitle>, ServerError> {
        let sessions = self.api.get::<wire::Response<wire::Items>>("status/sessions", &[]).await?.container;
        let playing = sessions.items.into_iter().filter_map(wire::Item::into_playing_title);
        let mut playing: Vec<PlayingTitle> = playing.collect();
        if let Some(recorded) = self.recorded_server()
            && let Err(error) = recorded.rename_owner(&mut playing).await
        {
            // What is played is certain without Tautulli, so the owner keeps the id of Plex.
            let error = telemetry::error_chain(&error);
            tracing::warn!(error, "failed to read the users of Tautulli");
        }
        Ok(playing)
    }

    async fn fetch_watch_state(
        &self,
        user: &ServerUserId,
        title: &ServerTitle,
    ) -> Result<WatchState, ServerError> {
        match self.recorded_server() {
            Some(recorded) => recorded.fetch_state(user, title).await,
            None => history::fetch_state(&self.api, user, title).await,
        }
    }

    async fn fetch_watch_states(&self, user: &ServerUserId) -> Result<WatchStates, ServerError> {
        match self.recorded_server() {
            Some(recorded) => recorded.fetch_states(user).await,
            None => history::fetch_states(&self.api, user).await,
        }
    }

    async fn fetch_recent_plays(
        &self,
        user: &ServerUserId,
        limit: usize,
    ) -> Result<Vec<RecentPlay>, ServerError> {
        match self.recorded_server() {
            Some(recorded) => recorded.fetch_recent_plays(user, limit).await,
            None => history::fetch_recent_plays(&self.api, user, limit).await,
        }
    }

    async fn fetch_episode_plays(
        &self,
        user: &ServerUserId,
        show: &ServerTitle,
    ) -> Result<Vec<EpisodePlay>, ServerError> {
        match self.recorded_server() {
            Some(recorded) => recorded.fetch_episode_plays(user, show).await,
            None => history::fetch_episode_plays(&self.api, user, show).await,
        }
    }

    /// Asks for a scan of the libraries that contain the folder. If none does, because the server sees it under another
    /// path, nothing is scanned.
    async fn request_scan(&self, path: &str) -> Result<(), ServerError> {
        for section in titles::fetch_sections(&self.api).await? {
            if section.locations.iter().any(|location| is_below(path, &location.path)) {
                let refresh = format!("library/sections/{}/refresh", encode(section.key.as_str()));
                // A GET as in python-plexapi; descriptions of the API also name POST.
                self.api.trigger(&refresh, &[("path", path)]).await?;
            }
        }
        Ok(())
    }
}

/// Returns whether a path is a folder or is below it.
fn is_below(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches(['/', '\\']);
    let rest = path.strip_prefix(folder).filter(|_| !folder.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '\\']))
}
