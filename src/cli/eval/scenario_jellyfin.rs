//! Jellyfin of a scenario: it shows the files of the libraries, and what its users have watched.

use std::collections::BTreeMap;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::library_entries::EpisodeEntry;
use super::scenario_file::ScenarioFile;
use super::scenario_users::user_phone;
use crate::conversation::viewer_accounts::{MediaServerKind, ViewerAccount, WatchSharing};
use crate::media_servers::fake::{FakeJellyfin, LibraryMirror};
use crate::simulation::SimulatedPeers;
use crate::store::audit::Actor;
use crate::store::database::db::Db;
use crate::store::people::{users, viewer_accounts};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct JellyfinEntry {
    /// Users of the Jellyfin, by their names there.
    users: BTreeMap<String, ViewerEntry>,
    /// Everybody may know what the others have watched.
    shared: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ViewerEntry {
    /// User of the scenario to whom the account is linked before the first message.
    linked: Option<String>,
    watched: Vec<PlayEntry>,
}

/// Play of a movie or an episode.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlayEntry {
    /// TMDB id of a movie.
    movie: Option<i64>,
    /// TheTVDB id of a series.
    series: Option<i64>,
    episode: Option<EpisodeEntry>,
    #[serde(default = "default_percent")]
    percent: u8,
    #[serde(default)]
    days_ago: i64,
}

fn default_percent() -> u8 {
    100
}

impl PlayEntry {
    /// Returns the item of the media server.
    fn find_item(&self, mirror: &LibraryMirror) -> Option<u64> {
        match (self.movie, self.series, self.episode) {
            (Some(tmdb), None, None) => mirror.movie(tmdb),
            (None, Some(tvdb), Some(episode)) => mirror.episode(tvdb, (episode.season, episode.number)),
            _ => None,
        }
    }
}

/// Account of a Jellyfin or a Seerr that is linked to a user of the scenario.
pub(super) struct LinkedViewer {
    pub(super) user: String,
    pub(super) account: ViewerAccount,
}

impl JellyfinEntry {
    pub(super) fn sharing(&self) -> WatchSharing {
        if self.shared { WatchSharing::Household } else { WatchSharing::Off }
    }

    /// Adds the Jellyfin to the peers, and returns the linked accounts.
    pub(super) fn add_to(
        &self,
        peers: SimulatedPeers,
    ) -> anyhow::Result<(SimulatedPeers, Vec<LinkedViewer>)> {
        let peers = peers.with_jellyfin();
        let jellyfin = peers.jellyfin.as_ref().context("create the Jellyfin")?;
        let household = &jellyfin.household;
        let mut mirror = LibraryMirror::new(peers.radarr.clone(), peers.sonarr.clone(), household.clone());
        mirror.scan();
        let now = peers.clock.now();
        let mut linked = Vec::new();
        for (name, viewer) in &self.users {
            let id = household.add_user(name);
            for play in &viewer.watched {
                let item = play.find_item(&mirror).with_context(|| format!("find {play:?} on disk"))?;
                let at = now.saturating_sub(SignedDuration::from_hours(24 * play.days_ago)).unwrap_or(now);
                household.watch_at((id, item), play.percent, at);
            }
            linked.extend(viewer.linked.as_ref().map(|user| LinkedViewer {
                user: user.clone(),
                account: ViewerAccount {
                    server: MediaServerKind::Jellyfin,
                    id: FakeJellyfin::user_id(id),
                    name: name.clone(),
                },
            }));
        }
        Ok((peers, linked))
    }
}

/// Links the accounts to the users of the scenario.
pub(super) async fn link_viewers(
    db: &Db,
    file: &ScenarioFile,
    viewers: &[LinkedViewer],
    now: Timestamp,
) -> anyhow::Result<()> {
    for LinkedViewer { user, account } in viewers {
        let (phone, account) = (user_phone(file, user)?, account.clone());
        let link = move |conn: &mut _| {
            let Some(user) = users::find_user_by_phone(conn, &phone)? else { return Ok(None) };
            viewer_accounts::link_account(conn, user.id, &account, Actor::Shell, now).map(Some)
        };
        db.write(link).await?.with_context(|| format!("find the user {user:?} of an account"))?;
    }
    Ok(())
}
