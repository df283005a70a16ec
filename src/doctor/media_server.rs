//! Checks of a media server: access with its key, people, folders and titles; and of its Tautulli: access and users.

use super::connection_test::ConnectionKind;
use super::{Finding, FindingGrade};
use crate::media_servers::playability::MediaServers;
use crate::media_servers::tautulli::Tautulli;
use crate::media_servers::{MediaServer, ServerError};

const TAUTULLI: &str = "Tautulli";

/// Connection to a media server, or to the Tautulli of one.
#[derive(Debug, Clone, Copy)]
pub(super) enum MediaConnection<'s> {
    Server(&'s dyn MediaServer),
    Tautulli(&'s Tautulli),
}

/// Returns the connections of all media servers, each followed by that of its Tautulli.
pub(super) fn connections(servers: &MediaServers) -> impl Iterator<Item = MediaConnection<'_>> {
    servers.servers().flat_map(|server| {
        let tautulli = server.tautulli().map(MediaConnection::Tautulli);
        [MediaConnection::Server(&**server)].into_iter().chain(tautulli)
    })
}

impl MediaConnection<'_> {
    pub(super) fn kind(self) -> ConnectionKind {
        match self {
            Self::Server(server) => ConnectionKind::MediaServer(server.name(), server.label()),
            Self::Tautulli(_) => ConnectionKind::MediaServer("tautulli", TAUTULLI),
        }
    }

    pub(super) async fn check(self) -> Vec<Finding> {
        let status = self.check_status().await;
        if status.grade == FindingGrade::Failure {
            // Any further request would fail in the same way.
            return vec![status];
        }
        match self {
            // The people of a server with a Tautulli are the users of the latter.
            Self::Server(server) if server.tautulli().is_some() => {
                let (folders, titles) = tokio::join!(check_folders(server), check_titles(server));
                vec![status, folders, titles]
            }
            Self::Server(server) => {
                let (people, folders, titles) =
                    tokio::join!(check_people(server), check_folders(server), check_titles(server));
                vec![status, people, folders, titles]
            }
            Self::Tautulli(tautulli) => vec![status, check_users(tautulli).await],
        }
    }

    /// Checks that the server responds and accepts the key, with one request.
    pub(super) async fn check_status(self) -> Finding {
        let (status, label) = match self {
            Self::Server(server) => (server.fetch_status().await, server.label()),
            Self::Tautulli(tautulli) => (tautulli.fetch_status().await, TAUTULLI),
        };
        match (status, self) {
            (Ok(status), _) => Finding::ok(format!("{label}: reachable, version {}", status.version)),
            (Err(error), Self::Server(_)) => unusable_server(label, &error),
            (Err(error), Self::Tautulli(_)) => unusable_tautulli(&error),
        }
    }
}

async fn check_people(server: &dyn MediaServer) -> Finding {
    let label = server.label();
    match server.fetch_users().await {
        Ok(users) if users.is_empty() => Finding::warning(
            format!("{label}: nobody has an account"),
            "create the accounts of the household",
        ),
        Ok(users) => Finding::ok(format!("{label}: accounts: {}", users.len())),
        Err(error) => unusable_server(label, &error),
    }
}

async fn check_folders(server: &dyn MediaServer) -> Finding {
    let label = server.label();
    match server.fetch_folders().await {
        Ok(folders) if folders.is_empty() => Finding::failure(
            format!("{label}: no library has a folder"),
            "add the folders of Sonarr and Radarr to its libraries",
        ),
        Ok(folders) => {
            let paths: Vec<String> =
                folders.into_iter().map(|folder| format!("{} in {}", folder.library, folder.path)).collect();
            Finding::ok(format!("{label}: libraries: {}", paths.join(", ")))
        }
        Err(error) => unusable_server(label, &error),
    }
}

async fn check_titles(server: &dyn MediaServer) -> Finding {
    let label = server.label();
    match server.fetch_titles(0, None).await {
        Ok(page) => match page.titles.last() {
            Some(example) => Finding::ok(format!(
                "{label}: movies and shows: {}, such as {} ({})",
                page.total, example.title, example.year
            )),
            None => {
                Finding::warning(format!("{label}: it has no movie and no show"), "let it scan its libraries")
            }
        },
        Err(error) => unusable_server(label, &error),
    }
}

async fn check_users(tautulli: &Tautulli) -> Finding {
    let users = match tautulli.fetch_users().await {
        Ok(users) => users,
        Err(error) => return unusable_tautulli(&error),
    };
    let active: Vec<_> = users.iter().filter(|user| user.is_active).collect();
    let unrecorded = active.iter().filter(|user| !user.is_recorded).count();
    match (active.len(), unrecorded) {
        (0, _) => Finding::warning(
            format!("{TAUTULLI}: it knows no user"),
            "connect it to Plex, and refresh its list of users",
        ),
        (count, 0) => Finding::ok(format!("{TAUTULLI}: users: {count}")),
        (count, unrecorded) => {
            Finding::ok(format!("{TAUTULLI}: users: {count}, without recorded plays: {unrecorded}"))
        }
    }
}

fn unusable_tautulli(error: &ServerError) -> Finding {
    let hint = match error {
        ServerError::Unauthorized => "copy its API key again: Settings, Web Interface",
        ServerError::WrongUrl(_) | ServerError::NotFound => {
            "check its URL, and turn on its API: Settings, Web Interface"
        }
        ServerError::Unreachable(_)
        | ServerError::Unavailable(_)
        | ServerError::Refused(_)
        | ServerError::RateLimited(_)
        | ServerError::Unreadable(_) => return unusable_server(TAUTULLI, error),
    };
    Finding::failure(format!("{TAUTULLI}: failed to {error}"), hint)
}

fn unusable_server(label: &str, error: &ServerError) -> Finding {
    let hint = match error {
        ServerError::Unreachable(_) => "check its URL, and that it is running",
        ServerError::Unavailable(_) | ServerError::RateLimited(_) => {
            "wait until it has started, or answers again, then try again"
        }
        ServerError::Unauthorized => "copy its API key again, or the token of the owner of Plex",
        ServerError::WrongUrl(_) | ServerError::NotFound => {
            "check its URL; a base path such as /jellyfin belongs to it"
        }
        ServerError::Refused(_) | ServerError::Unreadable(_) => "check its log, and update it",
    };
    Finding::failure(format!("{label}: failed to {error}"), hint)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use secrecy::SecretString;

    use super::*;
    use crate::clock::Clock;
    use crate::http::HttpClient;
    use crate::media_servers::fake::{FakeHousehold, FakePlex, FakeTautulli};
    use crate::media_servers::plex::Plex;

    /// Household with a Plex and its Tautulli.
    struct World {
        household: FakeHousehold,
        plex: FakePlex,
        tautulli: FakeTautulli,
    }

    impl World {
        fn new() -> Self {
            let household = FakeHousehold::new(Clock::System);
            let plex = FakePlex::with_household("token", household.clone());
            let tautulli = FakeTautulli::with_household("key", household.clone());
            Self { household, plex, tautulli }
        }

        /// Returns a line for each finding, given the key with which Tautulli is asked.
        async fn lines(&self, key: &str) -> Vec<String> {
            let url = || "http://home.invalid".parse().unwrap();
            let http = HttpClient::in_process(self.tautulli.in_process());
            let tautulli = Tautulli::new(http, url(), &SecretString::from(key));
            let http = HttpClient::in_process(self.plex.in_process());
            let plex = Plex::new(http, url(), &self.plex.token()).with_tautulli(tautulli);
            let servers = MediaServers::new(vec![Arc::new(plex)]);
            let mut lines = Vec::new();
            for connection in connections(&servers) {
                for Finding { summary, hint, .. } in connection.check().await {
                    lines.push(hint.map_or(summary.clone(), |hint| format!("{summary} ({hint})")));
                }
            }
            lines
        }
    }

    #[tokio::test]
    async fn tautulli_is_checked_after_its_plex() {
        let world = World::new();
        world.household.add_user("Ann");
        let bob = world.household.add_user("Bob");
        world.household.set_recorded(bob, false);
        insta::assert_snapshot!(world.lines("key").await.join("\n"), @r"
        Plex: reachable, version 1.41.0.0-aaaaaaaaa
        Plex: libraries: Movies in /media/movies, Shows in /media/shows, Music in /media/music
        Plex: it has no movie and no show (let it scan its libraries)
        Tautulli: reachable, version v2.17.2
        Tautulli: users: 2, without recorded plays: 1
        ");
    }

    #[tokio::test]
    async fn unusable_tautulli_leaves_the_findings_of_plex_alone() {
        let world = World::new();
        let mut lines = vec![world.lines("wrong").await];
        lines.push(world.lines("key").await);
        world.household.set_recorder_status(Some(404));
        lines.push(world.lines("key").await);
        let of_tautulli = |lines: &Vec<String>| lines[3..].join("\n");
        insta::assert_snapshot!(lines.iter().map(of_tautulli).collect::<Vec<_>>().join("\n"), @r"
        Tautulli: failed to authenticate: the key was rejected (copy its API key again: Settings, Web Interface)
        Tautulli: reachable, version v2.17.2
        Tautulli: it knows no user (connect it to Plex, and refresh its list of users)
        Tautulli: failed to find the API at this URL: it may be turned off (check its URL, and turn on its API: Settings, Web Interface)
        ");
        assert!(lines.iter().all(|found| found[..3] == lines[0][..3]), "{lines:?}");
    }
}
