//! Users with caps on age ratings who may learn about a title. They are found before a notification, since its transaction
//! makes no requests.

use std::collections::BTreeMap;

use crate::conversation::people::age_ratings::AgeLimit;
use crate::conversation::rating_caps::RatingCaps;
use crate::conversation::transcript::{MediaKind, User, UserId};
use crate::store::database::db::{Db, DbError};
use crate::store::people::age_limits;
use crate::tools::library::ArrInstances;

/// Users with caps who may learn about a title, with the caps that were checked. The default is nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::engine) struct TitleReaders(BTreeMap<UserId, RatingCaps>);

impl TitleReaders {
    /// Finds the users with caps who may learn about a title, by its TMDB or TheTVDB id. If its rating cannot be read,
    /// nobody with a cap may.
    pub(in crate::engine) async fn find(
        db: &Db,
        library: &ArrInstances,
        (kind, catalog_id): (MediaKind, i64),
    ) -> Result<Self, DbError> {
        let limits: Vec<(UserId, AgeLimit)> = db
            .read(|conn| {
                let mut limits = Vec::new();
                for user in age_limits::load_limited_users(conn)? {
                    limits.push((user.id, age_limits::load_user_limit(conn, &user)?.limit));
                }
                Ok(limits)
            })
            .await?;
        let mut readers = BTreeMap::new();
        for (user, limit) in limits {
            let library = library.limited_to(&limit).await;
            if library.may_show_owned(kind, catalog_id).await || library.may_show(kind, catalog_id).await {
                readers.insert(user, limit.caps);
            }
        }
        Ok(Self(readers))
    }

    /// Returns whether a user may learn about the title: without a cap, or with the caps that were checked.
    pub(in crate::engine) fn includes(&self, user: &User) -> bool {
        let caps = user.rights.rating_caps();
        caps.is_unlimited() || self.0.get(&user.id) == Some(&caps)
    }
}
