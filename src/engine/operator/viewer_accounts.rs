//! Decisions of the operator about the accounts of people at media servers.

use super::decisions::OperatorDecisions;
use crate::conversation::transcript::{User, UserId, UserStatus};
use crate::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};
use crate::media_servers::watched_titles::FoundUsers;
use crate::store::audit::Actor;
use crate::store::database::db::DbError;
use crate::store::people::viewer_accounts::{self, LinkAccountOutcome, LinkedAccount, UnlinkAccountOutcome};
use crate::store::people::{user_admin, users};
use crate::tools::formatting::clean_title;

/// Accounts of the media servers, and the people to whom they can be linked.
#[derive(Debug)]
pub struct ViewerAccountList {
    pub found: FoundUsers,
    pub linked: Vec<LinkedAccount>,
    /// Active users, by name.
    pub users: Vec<User>,
}

/// Outcome of linking an account that a media server lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkListedOutcome {
    Linked,
    AlreadyLinked,
    /// The server lists no such account.
    UnknownAccount,
    /// A media server does not respond.
    Unreachable,
    UnknownUser,
}

impl OperatorDecisions {
    /// Returns whether any media server is configured.
    pub fn has_media_servers(&self) -> bool {
        !self.live.current().library.media_servers.is_empty()
    }

    /// Returns whether any source of titles is configured.
    pub fn has_discovery(&self) -> bool {
        !self.live.current().library.discovery.is_empty()
    }

    /// Loads the accounts of the media servers.
    pub async fn load_viewer_accounts(&self) -> Result<ViewerAccountList, DbError> {
        let found = self.live.current().library.media_servers.fetch_users().await;
        let load = |conn: &mut _| {
            let mut users = users::load_known_users(conn)?;
            users.retain(|user| user.status == UserStatus::Active && !user.test);
            users.sort_by_key(|user| user.name.clone().map(|name| name.to_lowercase()));
            Ok((viewer_accounts::load_linked_accounts(conn)?, users))
        };
        let (linked, users) = self.db.read(load).await?;
        Ok(ViewerAccountList { found, linked, users })
    }

    /// Links an account to a user. The name of the account is read from its server.
    pub async fn link_viewer_account(
        &self,
        user: UserId,
        server: MediaServerKind,
        id: &str,
    ) -> Result<LinkListedOutcome, DbError> {
        let found = self.live.current().library.media_servers.fetch_users().await;
        let listed = found.users.iter().find(|found| found.server == server && found.user.id.as_str() == id);
        let Some(listed) = listed else {
            return Ok(match found.is_incomplete {
                true => LinkListedOutcome::Unreachable,
                false => LinkListedOutcome::UnknownAccount,
            });
        };
        let account = ViewerAccount { server, id: id.to_owned(), name: clean_title(&listed.user.name) };
        let now = self.clock.now();
        let link = move |conn: &mut _| {
            if user_admin::find_known_user(conn, user)?.is_none_or(|user| user.status != UserStatus::Active) {
                return Ok(LinkListedOutcome::UnknownUser);
            }
            Ok(match viewer_accounts::link_account(conn, user, &account, Actor::Console, now)? {
                LinkAccountOutcome::Linked => LinkListedOutcome::Linked,
                LinkAccountOutcome::Known | LinkAccountOutcome::OtherUser(_) => {
                    LinkListedOutcome::AlreadyLinked
                }
            })
        };
        self.db.write(link).await
    }

    pub async fn unlink_viewer_account(
        &self,
        user: UserId,
        server: MediaServerKind,
        id: String,
    ) -> Result<UnlinkAccountOutcome, DbError> {
        let now = self.clock.now();
        let unlink = move |conn: &mut _| {
            viewer_accounts::unlink_account(conn, user, (server, &id), Actor::Console, now)
        };
        self.db.write(unlink).await
    }
}
