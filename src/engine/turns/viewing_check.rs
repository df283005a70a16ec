//! Check whether somebody is watching a title that is to be deleted: when the confirmation prompt is written, and again
//! right before the deletion.

use futures_util::future::join_all;

use super::tool_runner::ToolRunner;
use crate::conversation::deletion::target::{
    DeletionScope, DeletionTarget, SeasonEpisodes, ViewingKnowledge,
};
use crate::conversation::people::naming;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::viewer_accounts::WatchSharing;
use crate::media_servers::ServerUser;
use crate::media_servers::playability::{AskedTitle, TitlePart, WatchingNow};
use crate::store::database::db::DbError;
use crate::store::people::users;
use crate::store::people::viewer_accounts::{self, LinkedAccount};
use crate::store::{Conn, QueryResult};
use crate::telemetry;

/// Result of the check of one title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ViewingCheck {
    /// Nobody is watching it, or no media server is configured.
    Unwatched,
    /// Somebody is watching it. The names are empty unless the household shares what it watches.
    Watched(Vec<String>),
    /// A media server did not answer.
    Unknown,
}

/// Items of a planned deletion.
#[derive(Debug, Default)]
pub(super) struct CheckedItems {
    /// Items that are not being watched, or of which that is unknown.
    pub(super) deletable: Vec<DeletionTarget>,
    pub(super) watched: Vec<DeletionTarget>,
    /// Names of the people who are watching, if the household shares it.
    pub(super) viewers: Vec<String>,
}

impl ToolRunner {
    /// Checks whether somebody is watching what a deletion removes.
    pub(super) async fn check_viewing(&self, item: &DeletionTarget, audience: Audience) -> ViewingCheck {
        let parts = self.newest_parts();
        let servers = &parts.library.media_servers;
        if servers.is_empty() || !item.deletes_playable_files() {
            return ViewingCheck::Unwatched;
        }
        let asked =
            AskedTitle { kind: item.kind, ids: item.fingerprint.ids, part: deleted_part(&item.scope) };
        match servers.check_watching(&asked, self.now()).await {
            WatchingNow::Nobody => ViewingCheck::Unwatched,
            WatchingNow::By(users) => ViewingCheck::Watched(self.name_viewers(users, audience).await),
            WatchingNow::Unknown => ViewingCheck::Unknown,
        }
    }

    /// Returns the names of the linked people who are watching; no names if the household does not share
    /// what it watches, and none in a room or for an agent.
    async fn name_viewers(&self, users: Vec<ServerUser>, audience: Audience) -> Vec<String> {
        if audience != Audience::Author || self.newest_settings().watch_sharing == WatchSharing::Off {
            return Vec::new();
        }
        let linked = self.load_account_owners().await.unwrap_or_else(|error| {
            tracing::warn!(error = telemetry::error_chain(&error), "failed to load the linked accounts");
            Vec::new()
        });
        let name = |user: &ServerUser| {
            linked.iter().find(|(id, _)| id == user.id.as_str()).map(|(_, name)| name.clone())
        };
        // A viewer without a link, such as a guest, is not named, nor is anybody else then.
        let mut names: Vec<String> = users.iter().map(name).collect::<Option<_>>().unwrap_or_default();
        names.sort();
        names.dedup();
        names
    }

    /// Loads the ids of the linked accounts, each with the name of its person.
    async fn load_account_owners(&self) -> Result<Vec<(String, String)>, DbError> {
        let load = |conn: &mut Conn| {
            let accounts = viewer_accounts::load_linked_accounts(conn)?.into_iter();
            let owner = |linked: LinkedAccount| {
                let user = users::load_user(conn, linked.user)?;
                Ok((linked.account.id, naming::display_name(&user)))
            };
            accounts
                .filter(|linked| linked.account.server.is_media_server())
                .map(owner)
                .collect::<QueryResult<Vec<_>>>()
        };
        self.read_records(load).await
    }

    /// Checks the items of a confirmation prompt, and records what is known about each.
    pub(super) async fn check_items(&self, items: Vec<DeletionTarget>, audience: Audience) -> CheckedItems {
        let checks = join_all(items.iter().map(|item| self.check_viewing(item, audience))).await;
        let mut checked = CheckedItems::default();
        for (mut item, check) in items.into_iter().zip(checks) {
            item.fingerprint.viewing = match &check {
                ViewingCheck::Unknown => ViewingKnowledge::Unknown,
                ViewingCheck::Unwatched | ViewingCheck::Watched(_) => ViewingKnowledge::Known,
            };
            match check {
                ViewingCheck::Watched(names) => {
                    checked.watched.push(item);
                    checked.viewers.extend(names);
                }
                ViewingCheck::Unwatched | ViewingCheck::Unknown => checked.deletable.push(item),
            }
        }
        checked.viewers.sort();
        checked.viewers.dedup();
        checked
    }
}

fn deleted_part(scope: &DeletionScope) -> TitlePart {
    match scope {
        DeletionScope::Season { number, .. } => TitlePart::Seasons(vec![*number]),
        DeletionScope::Copy { episodes: Some(SeasonEpisodes { season, numbers }), .. } => {
            match numbers.as_slice() {
                [] => TitlePart::Seasons(vec![*season]),
                numbers => TitlePart::Episodes(numbers.iter().map(|number| (*season, *number)).collect()),
            }
        }
        DeletionScope::Whole | DeletionScope::Copy { episodes: None, .. } | DeletionScope::Download(_) => {
            TitlePart::Whole
        }
    }
}
