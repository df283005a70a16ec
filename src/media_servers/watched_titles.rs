//! What one person has watched, on all servers and with all linked accounts.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;

use super::playability::{ConnectedServer, MediaServers};
use super::watch_cache::LoadedStates;
use super::{CatalogIds, RecentPlay, ServerError, ServerUser, ServerUserId, WatchEvidence, WatchState};
use crate::conversation::transcript::MediaKind;
use crate::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};

/// Time limit of a question to one server about what a user has watched. The states continue to load after it.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(6);

/// What one person has watched. A title that no server shows is unknown.
#[derive(Debug, Clone, Default)]
pub struct WatchedTitles {
    accounts: Vec<LoadedStates>,
    pub evidence: WatchEvidence,
}

impl WatchedTitles {
    /// Returns how far the person has watched a title.
    pub fn state(&self, kind: MediaKind, ids: &CatalogIds) -> WatchState {
        let mut combined: Option<WatchState> = None;
        self.visit_states(kind, ids, |state| {
            combined = Some(combined.map_or(state, |earlier| earlier.combine(state)));
        });
        combined.unwrap_or(WatchState::Unknown)
    }

    /// Calls a function with the states of a title in its copies and for the accounts of the person.
    pub fn visit_states(&self, kind: MediaKind, ids: &CatalogIds, mut visit: impl FnMut(WatchState)) {
        for account in &self.accounts {
            account.visit(kind, ids, &mut visit);
        }
        if self.evidence == WatchEvidence::NotAnswered {
            visit(WatchState::Unknown);
        }
    }
}

/// Plays of one person, newest first.
#[derive(Debug, Clone, Default)]
pub struct RecentPlays {
    pub plays: Vec<PlayedTitle>,
    /// True if a server did not answer.
    pub is_incomplete: bool,
}

/// Play with the ids of its title, as far as the server still has the title.
#[derive(Debug, Clone)]
pub struct PlayedTitle {
    pub play: RecentPlay,
    pub ids: CatalogIds,
    /// Year, or 0 if unknown.
    pub year: u16,
}

/// User of a server, with the kind of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundUser {
    pub server: MediaServerKind,
    pub user: ServerUser,
}

/// Users of all servers.
#[derive(Debug, Clone, Default)]
pub struct FoundUsers {
    pub users: Vec<FoundUser>,
    /// Servers that answered.
    pub answered: Vec<MediaServerKind>,
    /// True if a server did not answer.
    pub is_incomplete: bool,
}

impl FoundUsers {
    /// Returns whether the server of an account answered and does not list it.
    pub fn lacks(&self, account: &ViewerAccount) -> bool {
        let is_same = |found: &FoundUser| {
            (found.server, found.user.id.as_str()) == (account.server, account.id.as_str())
        };
        self.answered.contains(&account.server) && !self.users.iter().any(is_same)
    }
}

impl MediaServers {
    /// Loads what a person with these accounts has watched.
    pub async fn load_watched(&self, accounts: &[ViewerAccount], now: Timestamp) -> WatchedTitles {
        let asked = self.each_account(accounts);
        let load = |(connected, user): (Arc<ConnectedServer>, ServerUserId)| async move {
            connected.within_timeout(connected.load_states(&user, now)).await
        };
        let answers = join_all(asked.found.into_iter().map(load)).await;
        let evidence = match asked.is_incomplete {
            true => WatchEvidence::NotAnswered,
            false => WatchEvidence::Complete,
        };
        let mut watched = WatchedTitles { accounts: Vec::new(), evidence };
        for answer in answers {
            match answer {
                Some(states) => {
                    watched.evidence = watched.evidence.max(states.evidence);
                    watched.accounts.push(states);
                }
                None => watched.evidence = WatchEvidence::NotAnswered,
            }
        }
        watched
    }

    /// Reads what a person with these accounts has played lately, each title once.
    pub async fn fetch_recent_plays(
        &self,
        accounts: &[ViewerAccount],
        limit: usize,
        now: Timestamp,
    ) -> RecentPlays {
        let asked = self.each_account(accounts);
        let fetch = |(connected, user): (Arc<ConnectedServer>, ServerUserId)| async move {
            connected.within_timeout(connected.fetch_plays(&user, limit, now)).await
        };
        let answers = join_all(asked.found.into_iter().map(fetch)).await;
        let mut recent = RecentPlays { plays: Vec::new(), is_incomplete: asked.is_incomplete };
        for answer in answers {
            match answer {
                Some(plays) => recent.plays.extend(plays),
                None => recent.is_incomplete = true,
            }
        }
        recent.plays.sort_by_key(|played| Reverse(played.play.at));
        recent.plays.truncate(limit);
        recent
    }

    /// Reads the users of all servers.
    pub async fn fetch_users(&self) -> FoundUsers {
        let fetch = |connected: &Arc<ConnectedServer>| {
            let connected = connected.clone();
            async move {
                let users = connected.within_timeout(connected.server.fetch_users()).await;
                users.map(|users| (connected.server.kind(), users))
            }
        };
        let mut found = FoundUsers::default();
        for answer in join_all(self.connected().iter().map(fetch)).await {
            match answer {
                Some((server, users)) => {
                    found.answered.push(server);
                    found.users.extend(users.into_iter().map(|user| FoundUser { server, user }));
                }
                None => found.is_incomplete = true,
            }
        }
        found
    }

    /// Forgets what was read about the watching of people more than a day ago.
    pub fn drop_old_watch_states(&self, now: Timestamp) {
        for connected in self.connected() {
            connected.watched.drop_old(now);
        }
    }

    pub(super) fn each_account(&self, accounts: &[ViewerAccount]) -> AskedAccounts {
        let mut asked = AskedAccounts::default();
        for account in accounts {
            let of_kind = |connected: &&Arc<ConnectedServer>| connected.server.kind() == account.server;
            match self.connected().iter().find(of_kind) {
                Some(connected) => {
                    asked.found.push((connected.clone(), ServerUserId::new(&account.id)));
                }
                None => asked.is_incomplete = true,
            }
        }
        asked
    }
}

/// Servers to ask about accounts.
#[derive(Default)]
pub(super) struct AskedAccounts {
    pub(super) found: Vec<(Arc<ConnectedServer>, ServerUserId)>,
    /// True if the server of an account is not configured any more.
    pub(super) is_incomplete: bool,
}

impl ConnectedServer {
    /// Waits for an answer, and logs a failure. Returns `None` if there is no answer in time.
    pub(super) async fn within_timeout<T>(
        &self,
        answer: impl Future<Output = Result<T, ServerError>>,
    ) -> Option<T> {
        match tokio::time::timeout(QUESTION_TIMEOUT, answer).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                self.log_failure(&error);
                None
            }
            Err(_) => None,
        }
    }

    /// Loads the states in a task of its own, which completes even if the caller stops waiting.
    async fn load_states(
        self: &Arc<Self>,
        user: &ServerUserId,
        now: Timestamp,
    ) -> Result<LoadedStates, ServerError> {
        let index = self.load_titles(now).await?;
        let (connected, user) = (self.clone(), user.clone());
        let load = async move { connected.watched.load(&*connected.server, (&user, &index), now).await };
        tokio::spawn(load).await.unwrap_or_else(|error| Err(ServerError::from_panic(error)))
    }

    async fn fetch_plays(
        self: &Arc<Self>,
        user: &ServerUserId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<PlayedTitle>, ServerError> {
        let (plays, index) =
            tokio::try_join!(self.server.fetch_recent_plays(user, limit), self.load_titles(now))?;
        let with_ids = |play: RecentPlay| {
            let title = index.find_item(&play.item);
            let (ids, year) = title.map(|title| (title.ids, title.year)).unwrap_or_default();
            PlayedTitle { play, ids, year }
        };
        Ok(plays.into_iter().map(with_ids).collect())
    }
}
