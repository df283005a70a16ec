//! Decisions of the operator about the addresses of users, and merges of two users who are the same person.

use super::decisions::OperatorDecisions;
use crate::conversation::invitation::InvitationCode;
use crate::conversation::people::naming::UserName;
use crate::conversation::transcript::{AddressId, UserAddress, UserId};
use crate::store::audit::Actor;
use crate::store::database::db::DbError;
use crate::store::library::quotas::QuotaOverride;
use crate::store::people::invitations;
use crate::store::people::link_codes;
use crate::store::people::merge::{self, MergeOutcome, MergedUsers};
use crate::store::people::operator_links::{self, LinkOutcome, UnlinkOutcome};
use crate::store::people::{user_admin, users};

/// Outcome of creating the code that makes its sender the first admin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminCodeOutcome {
    Created(String),
    /// There is an active admin, who approves newcomers.
    HasAdmin,
}

impl OperatorDecisions {
    /// Links an address to a user; `None` if no user has this id.
    pub async fn link_address(
        &self,
        user: UserId,
        address: UserAddress,
    ) -> Result<Option<LinkOutcome>, DbError> {
        let now = self.clock.now();
        self.db
            .write(move |conn| match user_admin::find_known_user(conn, user)? {
                Some(_) => operator_links::link_address(conn, user, &address, Actor::Console, now).map(Some),
                None => Ok(None),
            })
            .await
    }

    pub async fn unlink_address(&self, user: UserId, address: AddressId) -> Result<UnlinkOutcome, DbError> {
        let now = self.clock.now();
        let unlink =
            move |conn: &mut _| operator_links::unlink_address(conn, user, address, Actor::Console, now);
        let outcome = self.db.write(unlink).await?;
        self.resume_all_work().await?;
        Ok(outcome)
    }

    /// Merges two users. The waiting messages of both are processed as the remaining user's.
    pub async fn merge_users(&self, merged: MergedUsers) -> Result<MergeOutcome, DbError> {
        let (now, quotas) = (self.clock.now(), self.default_quotas());
        let household = QuotaOverride {
            movies: quotas.movies.map(|limit| limit.max),
            seasons: quotas.seasons.map(|limit| limit.max),
            space_gb: quotas.space_gb,
        };
        let merge = move |conn: &mut _| merge::merge_users(conn, merged, household, Actor::Console, now);
        let outcome = self.db.write(merge).await?;
        self.resume_all_work().await?;
        Ok(outcome)
    }

    /// Returns whether people can be invited by a link.
    pub fn can_invite(&self) -> bool {
        self.start_link().is_some()
    }

    /// Creates an invitation, and returns its link; `None` if no channel has links.
    pub async fn create_invitation(&self, name: UserName) -> Result<Option<String>, DbError> {
        let Some(start_link) = self.start_link() else { return Ok(None) };
        let (code, now) = (InvitationCode::from_random(rand::random()), self.clock.now());
        let link = format!("{start_link}{}", code.to_payload());
        let create = move |conn: &mut _| invitations::create_invitation(conn, (&name, &code), None, now);
        self.db.write(create).await?;
        Ok(Some(link))
    }

    fn start_link(&self) -> Option<String> {
        self.live.current().channels.iter().find_map(|port| port.start_link())
    }

    /// Creates the code that makes its sender the first admin.
    pub async fn create_admin_code(&self) -> Result<AdminCodeOutcome, DbError> {
        let (now, codes) = (self.clock.now(), self.codes());
        let create = move |conn: &mut _| {
            if users::has_admin(conn)? {
                return Ok(AdminCodeOutcome::HasAdmin);
            }
            let code = link_codes::create_link_code(conn, None, None, &mut codes.link_codes(), now)?;
            Ok(AdminCodeOutcome::Created(code.as_str().to_owned()))
        };
        self.db.write(create).await
    }
}
