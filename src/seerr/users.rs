//! Users of a Seerr, and what their quotas leave them.

use super::wire::{PageJson, UserJson};
use super::{Seerr, wire};
use crate::server_api::ServerError;

/// Number of users in a page.
const PAGE_USERS: usize = 100;
/// Largest number of pages that are read.
const MAX_PAGES: usize = 20;

/// Id of a user of a Seerr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeerrUserId(pub i64);

/// User of a Seerr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeerrUser {
    pub id: SeerrUserId,
    pub name: String,
    /// Id of the same user at Jellyfin, without hyphens.
    pub jellyfin_id: Option<String>,
    /// Id of the same user at Plex.
    pub plex_id: Option<String>,
}

/// Quotas of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeerrQuotas {
    pub movies: SeerrQuota,
    pub seasons: SeerrQuota,
}

/// Quota of a user for one kind of title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeerrQuota {
    /// Number of titles or seasons in the period; `None` without a limit.
    pub limit: Option<u32>,
    pub days: Option<u32>,
    pub used: u32,
}

impl SeerrUserId {
    /// Parses the id of a linked account.
    pub fn from_account(id: &str) -> Option<Self> {
        id.parse().ok().map(Self)
    }
}

impl Seerr {
    /// Reads the users.
    pub async fn fetch_users(&self) -> Result<Vec<SeerrUser>, ServerError> {
        let mut users = Vec::new();
        for page in 0..MAX_PAGES {
            let (take, skip) = (PAGE_USERS.to_string(), (page * PAGE_USERS).to_string());
            let query = [("take", take.as_str()), ("skip", skip.as_str()), ("sort", "displayname")];
            let found: PageJson<UserJson> = self.api().get("api/v1/user", &query).await?;
            let is_last = found.results.len() < PAGE_USERS;
            users.extend(found.results.into_iter().map(UserJson::into_user));
            if is_last {
                break;
            }
        }
        Ok(users)
    }

    /// Reads the quotas of a user, as this user.
    pub async fn fetch_quotas(&self, user: SeerrUserId) -> Result<SeerrQuotas, ServerError> {
        let path = format!("api/v1/user/{}/quota", user.0);
        let quotas: wire::QuotasJson = self.api_for(user).get(&path, &[]).await?;
        Ok(quotas.into_quotas())
    }
}
