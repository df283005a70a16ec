//! Attribution of titles to the users who requested them, whose space in the library they count toward. A row has no
//! text, and remains after its title request is erased.

use std::collections::HashMap;

use diesel::prelude::*;
use jiff::Timestamp;

use super::title_requests::RequestState;
use crate::conversation::deletion::target::{DeletionScope, DeletionTarget};
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{MediaKind, UserId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::{requests, title_attributions};

/// Title that counts toward the space of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TitleAttribution {
    pub instance: String,
    pub kind: MediaKind,
    pub catalog_id: i64,
    /// Other users who requested the title.
    pub other_users: Vec<UserId>,
}

/// Attributes a requested title to a user. The time of the first request is kept.
pub(super) fn attribute_title(
    conn: &mut Conn,
    user: UserId,
    title: &RequestedTitle,
    requested_at: Timestamp,
) -> QueryResult<()> {
    diesel::insert_into(title_attributions::table)
        .values((
            (title_attributions::user_id.eq(user), title_attributions::instance.eq(&title.instance)),
            (title_attributions::kind.eq(title.kind), title_attributions::catalog_id.eq(title.catalog_id)),
            title_attributions::first_requested_at.eq(ms(requested_at)),
        ))
        .on_conflict_do_nothing()
        .execute(conn)
        .map(drop)
}

/// Loads the titles that count toward the space of a user.
pub fn load_attributions(conn: &mut Conn, user: UserId) -> QueryResult<Vec<TitleAttribution>> {
    let own: Vec<TitleKey> = title_attributions::table
        .filter(title_attributions::user_id.eq(user))
        .select((title_attributions::instance, title_attributions::kind, title_attributions::catalog_id))
        .load(conn)?;
    let mut others = load_other_requesters(conn, user)?;
    let into_attribution = |(instance, kind, catalog_id): TitleKey| {
        let other_users = others.remove(&(instance.clone(), kind, catalog_id)).unwrap_or_default();
        TitleAttribution { instance, kind, catalog_id, other_users }
    };
    Ok(own.into_iter().map(into_attribution).collect())
}

/// Loads all titles that count toward the space of somebody, each with the time of the first request.
pub fn load_all_attributions(conn: &mut Conn) -> QueryResult<Vec<(UserId, TitleKey, Timestamp)>> {
    title_attributions::table
        .select((
            title_attributions::user_id,
            (title_attributions::instance, title_attributions::kind, title_attributions::catalog_id),
            title_attributions::first_requested_at,
        ))
        .load(conn)
}

/// Instance, kind and catalog id of a title.
pub type TitleKey = (String, MediaKind, i64);

/// Loads the other users who requested titles of a user, those who did so first at the start.
fn load_other_requesters(conn: &mut Conn, user: UserId) -> QueryResult<HashMap<TitleKey, Vec<UserId>>> {
    let other = diesel::alias!(title_attributions as other_attributions);
    let is_same_title = other
        .field(title_attributions::catalog_id)
        .eq(title_attributions::catalog_id)
        .and(other.field(title_attributions::kind).eq(title_attributions::kind))
        .and(other.field(title_attributions::instance).eq(title_attributions::instance));
    let rows: Vec<(TitleKey, UserId)> = title_attributions::table
        .inner_join(other.on(is_same_title))
        .filter(title_attributions::user_id.eq(user))
        .filter(other.field(title_attributions::user_id).ne(user))
        .order(other.field(title_attributions::first_requested_at))
        .select((
            (title_attributions::instance, title_attributions::kind, title_attributions::catalog_id),
            other.field(title_attributions::user_id),
        ))
        .load(conn)?;
    let mut others: HashMap<TitleKey, Vec<UserId>> = HashMap::new();
    for (title, requester) in rows {
        others.entry(title).or_default().push(requester);
    }
    Ok(others)
}

/// Removes the attribution of a title that a user has not requested successfully.
pub(super) fn drop_unrequested_title(
    conn: &mut Conn,
    user: UserId,
    title: &RequestedTitle,
) -> QueryResult<()> {
    let added = requests::table
        .filter(requests::kind.eq(title.kind).and(requests::catalog_id.eq(title.catalog_id)))
        .filter(requests::instance.eq(&title.instance).and(requests::user_id.eq(user)))
        .filter(requests::state.eq(RequestState::Added))
        .select(requests::id);
    if diesel::select(diesel::dsl::exists(added)).get_result(conn)? {
        return Ok(());
    }
    diesel::delete(title_attributions::table.find((user, &title.instance, title.kind, title.catalog_id)))
        .execute(conn)
        .map(drop)
}

/// Removes the attributions of a title that was deleted from the library as a whole.
pub fn drop_deleted_title(conn: &mut Conn, target: &DeletionTarget) -> QueryResult<()> {
    let catalog_id = match target.kind {
        MediaKind::Movie => target.fingerprint.ids.tmdb,
        MediaKind::Series => target.fingerprint.ids.tvdb,
    };
    let (DeletionScope::Whole, Some(catalog_id)) = (&target.scope, catalog_id) else { return Ok(()) };
    let of_title = title_attributions::table
        .filter(title_attributions::catalog_id.eq(catalog_id).and(title_attributions::kind.eq(target.kind)))
        .filter(title_attributions::instance.eq(&target.instance));
    diesel::delete(of_title).execute(conn).map(drop)
}

/// Deletes the attributions of a user whose data is erased.
pub(in crate::store) fn delete_attributions_of(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    diesel::delete(title_attributions::table.filter(title_attributions::user_id.eq(user)))
        .execute(conn)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::super::quotas::QuotaOverride;
    use super::*;
    use crate::conversation::catalog_ids::CatalogIds;
    use crate::conversation::deletion::target::{TargetFingerprint, ViewingKnowledge};
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::audit::Actor;
    use crate::store::people::merge::{MergeOutcome, MergedUsers, merge_users};
    use crate::store::people::users::{FirstContactRole, ensure_user};
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const DUNE: i64 = 438_631;

    fn create_member(conn: &mut Conn, phone: &str) -> UserId {
        ensure_user(conn, PhoneNumber::parse(phone).unwrap(), FirstContactRole::Member, NOW).unwrap()
    }

    fn movie(catalog_id: i64) -> RequestedTitle {
        let (instance, kind) = ("radarr".to_owned(), MediaKind::Movie);
        RequestedTitle { instance, kind, catalog_id, title: "Dune".to_owned(), year: 2021, seasons: None }
    }

    fn deletion(catalog_id: i64, scope: DeletionScope) -> DeletionTarget {
        DeletionTarget {
            instance: "radarr".to_owned(),
            kind: MediaKind::Movie,
            id: 7,
            delete_files: true,
            scope,
            fingerprint: TargetFingerprint {
                title: "Dune".to_owned(),
                year: 2021,
                path: "/movies/Dune (2021)".to_owned(),
                size_bytes: 1,
                seasons: None,
                ids: CatalogIds::of_library(MediaKind::Movie, catalog_id),
                viewing: ViewingKnowledge::Known,
            },
        }
    }

    fn attributed(conn: &mut Conn, user: UserId) -> Vec<(i64, Vec<UserId>)> {
        let attributions = load_attributions(conn, user).unwrap().into_iter();
        attributions.map(|title| (title.catalog_id, title.other_users)).collect()
    }

    #[test]
    fn title_of_two_users_is_attributed_to_both() {
        let mut conn = scratch();
        let (ann, bob) = (create_member(&mut conn, "+15550100001"), create_member(&mut conn, "+15550100002"));
        for (user, title) in [(ann, DUNE), (bob, DUNE), (bob, DUNE), (bob, 949)] {
            attribute_title(&mut conn, user, &movie(title), NOW).unwrap();
        }
        assert_eq!(attributed(&mut conn, ann), [(DUNE, vec![bob])]);
        assert_eq!(attributed(&mut conn, bob), [(949, vec![]), (DUNE, vec![ann])]);
    }

    #[test]
    fn merged_user_keeps_the_titles_of_both_since_the_first_request() {
        let mut conn = scratch();
        let (ann, bob) = (create_member(&mut conn, "+15550100001"), create_member(&mut conn, "+15550100002"));
        let later = NOW + SignedDuration::from_hours(1);
        for (user, title, at) in [(ann, DUNE, NOW), (bob, DUNE, later), (bob, 949, later)] {
            attribute_title(&mut conn, user, &movie(title), at).unwrap();
        }
        let merged = MergedUsers { from: ann, into: bob };
        let outcome =
            merge_users(&mut conn, merged, QuotaOverride::default(), Actor::Console, later).unwrap();
        assert_eq!(outcome, MergeOutcome::Merged);
        let times: Vec<(i64, Timestamp)> = title_attributions::table
            .filter(title_attributions::user_id.eq(bob))
            .select((title_attributions::catalog_id, title_attributions::first_requested_at))
            .load(&mut conn)
            .unwrap();
        assert_eq!(times, [(949, later), (DUNE, NOW)]);
        assert_eq!(attributed(&mut conn, ann), []);
    }

    #[test]
    fn deleted_title_is_attributed_to_nobody() {
        let mut conn = scratch();
        let (ann, bob) = (create_member(&mut conn, "+15550100001"), create_member(&mut conn, "+15550100002"));
        for user in [ann, bob] {
            attribute_title(&mut conn, user, &movie(DUNE), NOW).unwrap();
            attribute_title(&mut conn, user, &movie(949), NOW).unwrap();
        }
        let copy = DeletionScope::Copy { episodes: None, files: vec![1] };
        drop_deleted_title(&mut conn, &deletion(949, copy)).unwrap();
        drop_deleted_title(&mut conn, &deletion(DUNE, DeletionScope::Whole)).unwrap();
        for (user, other) in [(ann, bob), (bob, ann)] {
            assert_eq!(attributed(&mut conn, user), [(949, vec![other])]);
        }
    }

    #[test]
    fn declined_title_stays_attributed_if_another_request_was_added() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        attribute_title(&mut conn, ann, &movie(DUNE), NOW).unwrap();
        attribute_title(&mut conn, ann, &movie(949), NOW).unwrap();
        diesel::sql_query(
            "INSERT INTO requests (user_id, instance, kind, catalog_id, title, year, state, created_at)
             VALUES (1, 'radarr', 'movie', 949, 'Heat', 1995, 'added', 0)",
        )
        .execute(&mut conn)
        .unwrap();
        for title in [DUNE, 949] {
            drop_unrequested_title(&mut conn, ann, &movie(title)).unwrap();
        }
        assert_eq!(attributed(&mut conn, ann), [(949, vec![])]);
    }
}
