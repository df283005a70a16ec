//! Decisions of the operator about the accounts of people at media servers and at a Seerr.

use super::decisions::OperatorDecisions;
use crate::conversation::transcript::{User, UserId, UserStatus};
use crate::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};
use crate::media_servers::watched_titles::FoundUsers;
use crate::seerr::SeerrUser;
use crate::store::audit::Actor;
use crate::store::database::db::DbError;
use crate::store::people::viewer_accounts::{self, LinkAccountOutcome, LinkedAccount, UnlinkAccountOutcome};
use crate::store::people::{user_admin, users};
use crate::telemetry;
use crate::tools::formatting::clean_title;
use crate::tools::viewing::link_account::list_seerr_users;

/// Accounts of the media servers and of the Seerr, and the people to whom they can be linked.
#[derive(Debug)]
pub struct ViewerAccountList {
    pub found: FoundUsers,
    pub linked: Vec<LinkedAccount>,
    /// Active users, by name.
    pub users: Vec<User>,
    /// Ids of users of the Seerr who have the linked account of a person at a media server.
    pub same_people: Vec<(String, UserId)>,
}

/// Outcome of linking an account that a media server lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkListedOutcome {
    Linked,
    AlreadyLinked,
    /// The person is linked to another user of the Seerr.
    OtherAccount,
    /// The server lists no such account.
    UnknownAccount,
    /// A server does not respond.
    Unreachable,
    UnknownUser,
}

impl OperatorDecisions {
    /// Returns whether any server with accounts is configured.
    pub fn has_account_servers(&self) -> bool {
        let library = &self.live.current().library;
        !library.media_servers.is_empty() || library.requests.is_some()
    }

    /// Returns whether any source of titles is configured.
    pub fn has_discovery(&self) -> bool {
        !self.live.current().library.discovery.is_empty()
    }

    /// Reads the accounts of the media servers and of the Seerr, and the users of the Seerr with more details.
    async fn fetch_accounts(&self) -> (FoundUsers, Vec<SeerrUser>) {
        let library = self.live.current().library.clone();
        let mut found = library.media_servers.fetch_users().await;
        let Some(seerr) = &library.requests else { return (found, Vec::new()) };
        match seerr.fetch_users().await {
            Ok(users) => {
                found.users.extend(list_seerr_users(&users));
                found.answered.push(MediaServerKind::Seerr);
                (found, users)
            }
            Err(error) => {
                tracing::warn!(error = telemetry::error_chain(&error), "failed to read the users of Seerr");
                found.is_incomplete = true;
                (found, Vec::new())
            }
        }
    }

    /// Loads the accounts of the media servers and of the Seerr.
    pub async fn load_viewer_accounts(&self) -> Result<ViewerAccountList, DbError> {
        let (found, seerr_users) = self.fetch_accounts().await;
        let load = |conn: &mut _| {
            let mut users = users::load_known_users(conn)?;
            users.retain(|user| user.status == UserStatus::Active && !user.test);
            users.sort_by_key(|user| user.name.clone().map(|name| name.to_lowercase()));
            Ok((viewer_accounts::load_linked_accounts(conn)?, users))
        };
        let (linked, users) = self.db.read(load).await?;
        let same_people = find_same_people(&seerr_users, &linked);
        Ok(ViewerAccountList { found, linked, users, same_people })
    }

    /// Links an account to a user. The name of the account is read from its server.
    pub async fn link_viewer_account(
        &self,
        user: UserId,
        server: MediaServerKind,
        id: &str,
    ) -> Result<LinkListedOutcome, DbError> {
        let (found, _) = self.fetch_accounts().await;
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
                LinkAccountOutcome::OtherAccount => LinkListedOutcome::OtherAccount,
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

/// Finds the person of each user of the Seerr by the linked accounts at the media servers.
fn find_same_people(users: &[SeerrUser], linked: &[LinkedAccount]) -> Vec<(String, UserId)> {
    let owner = |server: MediaServerKind, id: &Option<String>| {
        let id = id.as_ref()?;
        let is_same = |account: &ViewerAccount| {
            account.server == server && account.id.replace('-', "").eq_ignore_ascii_case(id)
        };
        linked.iter().find(|linked| is_same(&linked.account)).map(|linked| linked.user)
    };
    let person = |user: &SeerrUser| {
        let found = owner(MediaServerKind::Jellyfin, &user.jellyfin_id)
            .or_else(|| owner(MediaServerKind::Plex, &user.plex_id));
        found.map(|person| (user.id.0.to_string(), person))
    };
    users.iter().filter_map(person).collect()
}
