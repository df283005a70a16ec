//! Follows of titles by users, who are notified when the title is ready.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::transcript::{MediaKind, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms};
use crate::store::database::literal_sql::LiteralSql;
use crate::store::schema::{follows, users};

const OPEN: LiteralSql = LiteralSql("follows.ended_at IS NULL");

/// Reason why a user follows a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowReason {
    /// The user requested the title.
    Request,
    /// The user asked to be notified of the title, which applies even while the user's notifications are off.
    Notification,
}

/// A title in one library, by the id that its catalog gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedTitle {
    pub instance: String,
    pub kind: MediaKind,
    /// Id at TMDB for a movie, at TheTVDB for a show.
    pub catalog_id: i64,
    /// `None` for a movie, and for every season of a show.
    pub season: Option<u32>,
}

/// Active follow of a show or of one of its seasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShowFollow {
    pub user: UserId,
    /// Id of the show at TheTVDB.
    pub catalog_id: i64,
    /// `None` for every season.
    pub season: Option<u32>,
    /// Time of the last request to follow.
    pub since: Timestamp,
}

/// Records that a user follows a title. If the user already follows the title, the request renews the follow: earlier
/// notifications about the title no longer count.
pub fn follow_title(
    conn: &mut Conn,
    user: UserId,
    what: &FollowedTitle,
    reason: FollowReason,
    now: Timestamp,
) -> QueryResult<()> {
    let open = follows::table
        .filter(OPEN.and(follows::kind.eq(what.kind)))
        .filter(follows::catalog_id.eq(what.catalog_id).and(follows::instance.eq(&what.instance)))
        .filter(follows::user_id.eq(user).and(follows::season.is(what.season.map(i64::from))));
    if diesel::update(open).set(follows::created_at.eq(ms(now))).execute(conn)? == 0 {
        diesel::insert_into(follows::table)
            .values((
                follows::user_id.eq(user),
                follows::instance.eq(&what.instance),
                follows::kind.eq(what.kind),
                follows::catalog_id.eq(what.catalog_id),
                follows::season.eq(what.season.map(i64::from)),
                follows::created_at.eq(ms(now)),
            ))
            .execute(conn)?;
    }
    if reason == FollowReason::Notification {
        diesel::update(open).set(follows::explicit.eq(true)).execute(conn)?;
    }
    Ok(())
}

/// Loads the users to notify of a movie, or of this season of a show: each once, in the order in which they began to
/// follow. A user who turned notifications off is included only for titles that the user asked to be notified of since
/// then.
pub fn load_followers(conn: &mut Conn, what: &FollowedTitle) -> QueryResult<Vec<UserId>> {
    let season = what.season.map(i64::from);
    let mut ids: Vec<UserId> = follows::table
        .inner_join(users::table)
        .filter(OPEN.and(follows::kind.eq(what.kind)))
        .filter(follows::catalog_id.eq(what.catalog_id).and(follows::instance.eq(&what.instance)))
        .filter(follows::season.is_null().or(follows::season.is(season)))
        .filter(users::notify.eq(true).or(follows::explicit.eq(true)))
        .order(follows::id)
        .select(follows::user_id)
        .load(conn)?;
    let mut seen = Vec::new();
    ids.retain(|id| {
        !seen.contains(id) && {
            seen.push(*id);
            true
        }
    });
    Ok(ids)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = follows)]
struct ShowFollowRow {
    user_id: UserId,
    catalog_id: i64,
    season: Option<i64>,
    created_at: Timestamp,
}

/// Loads the follows of shows in one library, for the users to notify, as in [`load_followers`].
pub fn of_shows(conn: &mut Conn, instance: &str) -> QueryResult<Vec<ShowFollow>> {
    let rows: Vec<ShowFollowRow> = follows::table
        .inner_join(users::table)
        .filter(OPEN.and(follows::kind.eq(MediaKind::Series)).and(follows::instance.eq(instance)))
        .filter(users::notify.eq(true).or(follows::explicit.eq(true)))
        .order(follows::id)
        .select(ShowFollowRow::as_select())
        .load(conn)?;
    let read = |row: ShowFollowRow| {
        let season = row.season.map(convert_integer).transpose()?;
        Ok(ShowFollow { user: row.user_id, catalog_id: row.catalog_id, season, since: row.created_at })
    };
    rows.into_iter().map(read).collect()
}

/// Returns the time since which a user follows a movie, or this season of a show: the time of the user's last request.
pub fn load_follow_time(
    conn: &mut Conn,
    user: UserId,
    what: &FollowedTitle,
) -> QueryResult<Option<Timestamp>> {
    let season = what.season.map(i64::from);
    follows::table
        .filter(OPEN.and(follows::kind.eq(what.kind)))
        .filter(follows::catalog_id.eq(what.catalog_id).and(follows::instance.eq(&what.instance)))
        .filter(follows::user_id.eq(user).and(follows::season.is_null().or(follows::season.is(season))))
        .select(diesel::dsl::max(follows::created_at))
        .first(conn)
}

/// Ends every follow of exactly this title and season. Returns the users to notify, as in [`load_followers`].
pub fn end_follows(conn: &mut Conn, what: &FollowedTitle, now: Timestamp) -> QueryResult<Vec<UserId>> {
    let season = what.season.map(i64::from);
    let open = follows::table
        .filter(OPEN.and(follows::kind.eq(what.kind)))
        .filter(follows::catalog_id.eq(what.catalog_id).and(follows::instance.eq(&what.instance)))
        .filter(follows::season.is(season));
    let notified = open
        .inner_join(users::table)
        .filter(users::notify.eq(true).or(follows::explicit.eq(true)))
        .select(follows::user_id)
        .load(conn)?;
    diesel::update(open).set(follows::ended_at.eq(ms(now))).execute(conn)?;
    Ok(notified)
}

/// Mutes every follow of a user while the user's notifications are off.
pub fn mute_follows(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    diesel::update(follows::table.filter(OPEN.and(follows::user_id.eq(user))))
        .set(follows::explicit.eq(false))
        .execute(conn)
        .map(drop)
}

/// Ends a user's follow of a season; without a season, every follow of the title.
pub fn unfollow_title(
    conn: &mut Conn,
    user: UserId,
    what: &FollowedTitle,
    now: Timestamp,
) -> QueryResult<()> {
    let open = follows::table
        .filter(OPEN.and(follows::kind.eq(what.kind)))
        .filter(follows::catalog_id.eq(what.catalog_id).and(follows::instance.eq(&what.instance)))
        .filter(follows::user_id.eq(user));
    let ended = follows::ended_at.eq(ms(now));
    match what.season {
        Some(season) => {
            diesel::update(open.filter(follows::season.eq(i64::from(season)))).set(ended).execute(conn)
        }
        None => diesel::update(open).set(ended).execute(conn),
    }
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::schema::users as users_table;
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn person(conn: &mut Conn, phone: &str) -> UserId {
        users::ensure_user(conn, &PhoneNumber::parse(phone).unwrap(), FirstContactRole::Member, NOW).unwrap();
        users::find_user_by_phone(conn, &PhoneNumber::parse(phone).unwrap()).unwrap().unwrap().id
    }

    fn season(season: Option<u32>) -> FollowedTitle {
        FollowedTitle { instance: "sonarr".into(), kind: MediaKind::Series, catalog_id: 371_980, season }
    }

    #[test]
    fn season_notifies_its_followers_and_those_of_the_show() {
        let mut conn = scratch();
        let (ann, bob) = (person(&mut conn, "+15550100001"), person(&mut conn, "+15550100002"));
        for (user, what) in [(ann, None), (ann, Some(2)), (bob, Some(2)), (bob, Some(2))] {
            follow_title(&mut conn, user, &season(what), FollowReason::Request, NOW).unwrap();
        }
        assert_eq!(load_followers(&mut conn, &season(Some(2))).unwrap(), [ann, bob]);
        assert_eq!(load_followers(&mut conn, &season(Some(1))).unwrap(), [ann]);
        assert_eq!(
            load_followers(&mut conn, &FollowedTitle { instance: "sonarr-4k".into(), ..season(Some(2)) }),
            Ok(vec![])
        );
    }

    #[test]
    fn unfollowing_a_show_ends_the_seasons_of_that_user_only() {
        let mut conn = scratch();
        let (ann, bob) = (person(&mut conn, "+15550100001"), person(&mut conn, "+15550100002"));
        for (user, what) in [(ann, None), (ann, Some(1)), (ann, Some(2)), (bob, Some(2))] {
            follow_title(&mut conn, user, &season(what), FollowReason::Request, NOW).unwrap();
        }
        unfollow_title(&mut conn, ann, &season(Some(1)), NOW).unwrap();
        assert_eq!(load_followers(&mut conn, &season(Some(2))).unwrap(), [ann, bob]);
        unfollow_title(&mut conn, ann, &season(None), NOW).unwrap();
        assert_eq!(load_followers(&mut conn, &season(Some(2))).unwrap(), [bob]);
    }

    #[test]
    fn ended_follow_has_no_followers_and_can_be_renewed() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        follow_title(&mut conn, ann, &season(Some(2)), FollowReason::Request, NOW).unwrap();
        end_follows(&mut conn, &season(Some(2)), NOW).unwrap();
        assert_eq!(load_followers(&mut conn, &season(Some(2))), Ok(vec![]));
        follow_title(&mut conn, ann, &season(Some(2)), FollowReason::Request, NOW).unwrap();
        assert_eq!(load_followers(&mut conn, &season(Some(2))), Ok(vec![ann]));
    }

    #[test]
    fn follows_of_shows_are_those_of_users_to_be_notified() {
        let mut conn = scratch();
        let (ann, bob) = (person(&mut conn, "+15550100001"), person(&mut conn, "+15550100002"));
        let movie = FollowedTitle { kind: MediaKind::Movie, ..season(None) };
        for (user, what) in
            [(ann, season(None)), (ann, movie), (bob, season(Some(2))), (bob, season(Some(3)))]
        {
            follow_title(&mut conn, user, &what, FollowReason::Request, NOW).unwrap();
        }
        end_follows(&mut conn, &season(Some(3)), NOW).unwrap();
        let follow = |user, season| ShowFollow { user, catalog_id: 371_980, season, since: NOW };
        assert_eq!(of_shows(&mut conn, "sonarr"), Ok(vec![follow(ann, None), follow(bob, Some(2))]));
        assert_eq!(of_shows(&mut conn, "sonarr-4k"), Ok(vec![]));
        let bob_is_silent = users_table::table.find(bob);
        diesel::update(bob_is_silent).set(users_table::notify.eq(false)).execute(&mut conn).unwrap();
        assert_eq!(of_shows(&mut conn, "sonarr"), Ok(vec![follow(ann, None)]));
    }

    #[test]
    fn repeated_follow_counts_from_the_last_time() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        let later = NOW + jiff::SignedDuration::from_hours(1);
        follow_title(&mut conn, ann, &season(Some(2)), FollowReason::Request, NOW).unwrap();
        follow_title(&mut conn, ann, &season(Some(2)), FollowReason::Request, later).unwrap();
        assert_eq!(load_follow_time(&mut conn, ann, &season(Some(2))), Ok(Some(later)));
        assert_eq!(load_followers(&mut conn, &season(Some(2))), Ok(vec![ann]));
    }

    #[test]
    fn explicit_follow_is_notified_without_notifications_until_they_are_turned_off_again() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        follow_title(&mut conn, ann, &season(Some(2)), FollowReason::Request, NOW).unwrap();
        diesel::update(users_table::table).set(users_table::notify.eq(false)).execute(&mut conn).unwrap();
        assert_eq!(load_followers(&mut conn, &season(Some(2))), Ok(vec![]));
        follow_title(&mut conn, ann, &season(Some(2)), FollowReason::Notification, NOW).unwrap();
        follow_title(&mut conn, ann, &season(Some(2)), FollowReason::Request, NOW).unwrap();
        assert_eq!(load_followers(&mut conn, &season(Some(2))), Ok(vec![ann]));
        mute_follows(&mut conn, ann).unwrap();
        assert_eq!(end_follows(&mut conn, &season(Some(2)), NOW), Ok(vec![]));
    }
}
