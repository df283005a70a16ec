//! Client for Jellyfin, from version 10.9 on.

#[cfg(test)]
mod tests;
mod watch_states;
mod wire;

use async_trait::async_trait;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use url::Url;

use super::{
    EpisodePlay, ItemId, LibraryFolder, MediaServer, PAGE_TITLES, PlayableEpisode, PlayingTitle, RecentPlay,
    ServerError, ServerStatus, ServerTitle, ServerUser, ServerUserId, TitlePage, WatchState, WatchStates,
};
use crate::conversation::viewer_accounts::MediaServerKind;
use crate::http::HttpClient;
use crate::server_api::{QueryParameters, ServerApi, encode};

/// Name under which the server lists this program among its devices.
const CLIENT: &str = "Dialarr";
/// Maximum number of episodes of one show.
const MAX_EPISODES: &str = "20000";

/// Client for one Jellyfin, with an API key. A key belongs to no user, so it sees every library.
#[derive(Debug, Clone)]
pub struct Jellyfin(ServerApi);

impl Jellyfin {
    /// Creates a client. A key that cannot be part of a header is refused by the server as a wrong one.
    pub fn new(http: HttpClient, base: Url, key: &SecretString) -> Self {
        // The server decodes the values. Older headers and schemes are off by default since version 12.
        let encoded = encode(key.expose_secret());
        let version = env!("CARGO_PKG_VERSION");
        let value = format!(
            "MediaBrowser Token=\"{encoded}\", Client=\"{CLIENT}\", Device=\"{CLIENT}\", DeviceId=\"dialarr\", \
             Version=\"{version}\""
        );
        let header = HeaderValue::from_str(&value).map(|mut header| {
            header.set_sensitive(true);
            (AUTHORIZATION, header)
        });
        Self(ServerApi::new(http, base, header.into_iter().collect()))
    }

    async fn fetch_items(&self, query: QueryParameters<'_>) -> Result<wire::Items<wire::Item>, ServerError> {
        let mut all = vec![
            ("recursive", "true"),
            ("includeItemTypes", "Movie"),
            ("includeItemTypes", "Series"),
            ("enableUserData", "false"),
            ("enableImages", "false"),
        ];
        all.extend(query);
        self.0.get("Items", &all).await
    }
}

#[async_trait]
impl MediaServer for Jellyfin {
    fn kind(&self) -> MediaServerKind {
        MediaServerKind::Jellyfin
    }

    async fn fetch_status(&self) -> Result<ServerStatus, ServerError> {
        let info: wire::SystemInfo = self.0.get("System/Info", &[]).await?;
        Ok(ServerStatus { name: info.server_name, version: info.version })
    }

    async fn fetch_folders(&self) -> Result<Vec<LibraryFolder>, ServerError> {
        let folders: Vec<wire::VirtualFolder> = self.0.get("Library/VirtualFolders", &[]).await?;
        let paths = folders.into_iter().flat_map(|folder| {
            let wire::VirtualFolder { name, locations } = folder;
            locations.into_iter().map(move |path| LibraryFolder { library: name.clone(), path })
        });
        Ok(paths.collect())
    }

    async fn fetch_users(&self) -> Result<Vec<ServerUser>, ServerError> {
        let users: Vec<wire::User> = self.0.get("Users", &[]).await?;
        Ok(users.into_iter().filter(|user| !user.policy.is_disabled).map(ServerUser::from).collect())
    }

    async fn fetch_title_count(&self) -> Result<usize, ServerError> {
        Ok(self.fetch_items(&[("limit", "1")]).await?.total())
    }

    async fn fetch_titles(
        &self,
        start: usize,
        changed_since: Option<Timestamp>,
    ) -> Result<TitlePage, ServerError> {
        let (start, limit) = (start.to_string(), PAGE_TITLES.to_string());
        let since = changed_since.map(|since| since.to_string());
        let mut query = vec![
            ("fields", "ProviderIds"),
            ("fields", "MediaSources"),
            // Without a stable order, pages could overlap.
            ("sortBy", "DateCreated"),
            ("sortBy", "SortName"),
            ("sortOrder", "Ascending"),
            ("startIndex", &start),
            ("limit", &limit),
        ];
        query.extend(since.as_deref().map(|since| ("minDateLastSaved", since)));
        let page = self.fetch_items(&query).await?;
        let total = page.total();
        let titles = page.items.into_iter().filter_map(|item| ServerTitle::try_from(item).ok()).collect();
        Ok(TitlePage { titles, total })
    }

    async fn fetch_episodes(&self, show: &ItemId) -> Result<Vec<PlayableEpisode>, ServerError> {
        let path = episodes_path(show);
        let query = [("isMissing", "false"), ("enableUserData", "false"), ("limit", MAX_EPISODES)];
        let episodes: wire::Items<wire::Item> = match self.0.get(&path, &query).await {
            Err(ServerError::NotFound) => return Ok(Vec::new()),
            episodes => episodes?,
        };
        Ok(episodes.items.iter().filter_map(wire::Item::as_playable_episode).collect())
    }

    async fn fetch_playing(&self) -> Result<Vec<PlayingTitle>, ServerError> {
        // Sessions are not limited to those with recent activity, because a paused one may report nothing for minutes.
        let sessions: Vec<wire::Session> = self.0.get("Sessions", &[]).await?;
        Ok(sessions.into_iter().filter_map(wire::Session::into_playing_title).collect())
    }

    async fn fetch_watch_state(
        &self,
        user: &ServerUserId,
        title: &ServerTitle,
    ) -> Result<WatchState, ServerError> {
        watch_states::fetch_state(&self.0, user, title).await
    }

    async fn fetch_watch_states(&self, user: &ServerUserId) -> Result<WatchStates, ServerError> {
        watch_states::fetch_states(&self.0, user).await
    }

    async fn fetch_recent_plays(
        &self,
        user: &ServerUserId,
        limit: usize,
    ) -> Result<Vec<RecentPlay>, ServerError> {
        watch_states::fetch_recent_plays(&self.0, user, limit).await
    }

    async fn fetch_episode_plays(
        &self,
        user: &ServerUserId,
        show: &ServerTitle,
    ) -> Result<Vec<EpisodePlay>, ServerError> {
        watch_states::fetch_episode_plays(&self.0, user, show).await
    }

    async fn request_scan(&self, path: &str) -> Result<(), ServerError> {
        let body = json!({ "Updates": [{ "Path": path, "UpdateType": "Created" }] });
        self.0.post("Library/Media/Updated", &[], Some(&body)).await
    }
}

fn episodes_path(show: &ItemId) -> String {
    format!("Shows/{}/Episodes", encode(show.as_str()))
}
