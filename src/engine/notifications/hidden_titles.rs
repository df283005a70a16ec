//! People who must not learn about a title, because it is over their caps. They are found before a notification, since
//! its transaction makes no requests.

use std::collections::BTreeSet;

use crate::conversation::people::age_ratings::AgeLimit;
use crate::conversation::transcript::{MediaKind, UserId};
use crate::store::database::db::{Db, DbError};
use crate::store::people::age_limits;
use crate::tools::library::ArrInstances;

/// People from whom a title is hidden.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::engine) struct HiddenFrom(BTreeSet<UserId>);

impl HiddenFrom {
    /// Returns the people from whom a title is hidden, by its TMDB or TheTVDB id. A title whose rating
    /// cannot be read is hidden from everybody with a cap.
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
        let mut hidden = BTreeSet::new();
        for (user, limit) in limits {
            let library = library.limited_to(&limit).await;
            if !library.may_show_owned(kind, catalog_id).await && !library.may_show(kind, catalog_id).await {
                hidden.insert(user);
            }
        }
        Ok(Self(hidden))
    }

    pub(in crate::engine) fn includes(&self, user: UserId) -> bool {
        self.0.contains(&user)
    }
}
