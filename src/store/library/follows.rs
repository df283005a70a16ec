//! Follows: users who are notified when a title is ready.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::transcript::{MediaKind, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms};
use crate::store::database::literal_sql::literal_sql;
use crate::store::schema::{follows, users};

literal_sql! {
    const OPEN = "follows.ended_at IS NULL";
}

/// Reason why a user follows a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowReason {
    /// The user requested the title.
    Request,
    /// The user asked to be notified about the title: the follow applies even while the user's notifications are off.
    Notification,
}

/// Title in one instance, by its catalog id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedTitle {
    pub instance: String,
    pub kind: MediaKind,
    /// TMDB id of a movie, TheTVDB id of a series.
    pub catalog_id: i64,
    /// `None` for a movie and for all seasons of a series.
    pub season: Option<u32>,
}

/// Active follow of a series or of one of its seasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesFollow {
    pub user: UserId,
    /// TheTVDB id of the series.
    pub catalog_id: i64,
    /// `None` for all seasons.
    pub season: Option<u32>,
    /// Time of the user's last request to follow the series.
    pub since: Timestamp,
}

/// Records that a user follows a title. If the user already follows the title, the request renews the follow: earlier
/// notifications about the title no longer count.
pub fn follow_title(
    conn: &mut Conn,
    user: UserId,
    title: &FollowedTitle,
    reason: FollowReason,
    now: Timestamp,
) -> QueryResult<()> {
    let open = follows::table
        .filter(OPEN.and(follows::kind.eq(title.kind)))
        .filter(follows::catalog_id.eq(title.catalog_id).and(follows::instance.eq(&title.instance)))
        .filter(follows::user_id.eq(user).and(follows::season.is(title.season.map(i64::from))));
    if diesel::update(open).set(follows::created_at.eq(ms(now))).execute(conn)? == 0 {
        diesel::insert_into(follows::table)
            .values((
                follows::user_id.eq(user),
                follows::instance.eq(&title.instance),
                follows::kind.eq(title.kind),
                follows::catalog_id.eq(title.catalog_id),
                follows::season.eq(title.season.map(i64::from)),
                follows::created_at.eq(ms(now)),
            ))
            .execute(conn)?;
    }
    if reason == FollowReason::Notification {
        diesel::update(open).set(follows::explicit.eq(true)).execute(conn)?;
    }
    Ok(())
}

/// Loads the users to notify about a movie or a season, without duplicates, in the order of their follows. A user who
/// turned notifications off is included only for titles that the user has explicitly followed since then.
pub fn load_followers(conn: &mut Conn, title: &FollowedTitle) -> QueryResult<Vec<UserId>> {
    let season = title.season.map(i64::from);
    let mut followers: Vec<UserId> = follows::table
        .inner_join(users::table)
        .filter(OPEN.and(follows::kind.eq(title.kind)))
        .filter(follows::catalog_id.eq(title.catalog_id).and(follows::instance.eq(&title.instance)))
        .filter(follows::season.is_null().or(follows::season.is(season)))
        .filter(users::notify.eq(true).or(follows::explicit.eq(true)))
        .order(follows::id)
        .select(follows::user_id)
        .load(conn)?;
    let mut seen = Vec::new();
    followers.retain(|id| {
        !seen.contains(id) && {
            seen.push(*id);
            true
        }
    });
    Ok(followers)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = follows)]
struct SeriesFollowRow {
    user_id: UserId,
    catalog_id: i64,
    season: Option<i64>,
    created_at: Timestamp,
}

/// Loads the follows of series in one instance, by users who are to be notified as in [`load_followers`].
pub fn load_series_follows(conn: &mut Conn, instance: &str) -> QueryResult<Vec<SeriesFollow>> {
    let rows: Vec<SeriesFollowRow> = follows::table
        .inner_join(users::table)
        .filter(OPEN.and(follows::kind.eq(MediaKind::Series)).and(follows::instance.eq(instance)))
        .filter(users::notify.eq(true).or(follows::explicit.eq(true)))
        .order(follows::id)
        .select(SeriesFollowRow::as_select())
        .load(conn)?;
    let into_follow = |row: SeriesFollowRow| {
        let season = row.season.map(convert_integer).transpose()?;
        Ok(SeriesFollow { user: row.user_id, catalog_id: row.catalog_id, season, since: row.created_at })
    };
    rows.into_iter().map(into_follow).collect()
}

/// Loads the instances, kinds and ids of the titles that somebody follows.
pub fn load_followed_titles(conn: &mut Conn) -> QueryResult<Vec<(String, MediaKind, i64)>> {
    follows::table
        .filter(OPEN)
        .select((follows::instance, follows::kind, follows::catalog_id))
        .distinct()
        .load(conn)
}

/// Returns the time of a user's last request to follow a movie or a season; `None` without an active follow.
pub fn load_follow_time(
    conn: &mut Conn,
    user: UserId,
    title: &FollowedTitle,
) -> QueryResult<Option<Timestamp>> {
    let season = title.season.map(i64::from);
    follows::table
        .filter(OPEN.and(follows::kind.eq(title.kind)))
        .filter(follows::catalog_id.eq(title.catalog_id).and(follows::instance.eq(&title.instance)))
        .filter(follows::user_id.eq(user).and(follows::season.is_null().or(follows::season.is(season))))
        .select(diesel::dsl::max(follows::created_at))
        .first(conn)
}

/// Ends every follow of exactly this title and season, and returns the users to notify as in [`load_followers`].
pub fn end_follows(conn: &mut Conn, title: &FollowedTitle, now: Timestamp) -> QueryResult<Vec<UserId>> {
    let season = title.season.map(i64::from);
    let open = follows::table
        .filter(OPEN.and(follows::kind.eq(title.kind)))
        .filter(follows::catalog_id.eq(title.catalog_id).and(follows::instance.eq(&title.instance)))
        .filter(follows::season.is(season));
    let followers = open
        .inner_join(users::table)
        .filter(users::notify.eq(true).or(follows::explicit.eq(true)))
        .select(follows::user_id)
        .load(conn)?;
    diesel::update(open).set(follows::ended_at.eq(ms(now))).execute(conn)?;
    Ok(followers)
}

/// Mutes every follow of a user whose notifications are off, including explicit follows.
pub fn mute_follows(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    diesel::update(follows::table.filter(OPEN.and(follows::user_id.eq(user))))
        .set(follows::explicit.eq(false))
        .execute(conn)
        .map(drop)
}

/// Ends a user's follow of a season, or without a season every follow of the title.
pub fn unfollow_title(
    conn: &mut Conn,
    user: UserId,
    title: &FollowedTitle,
    now: Timestamp,
) -> QueryResult<()> {
    let open = follows::table
        .filter(OPEN.and(follows::kind.eq(title.kind)))
        .filter(follows::catalog_id.eq(title.catalog_id).and(follows::instance.eq(&title.instance)))
        .filter(follows::user_id.eq(user));
    let ended = follows::ended_at.eq(ms(now));
    match title.season {
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

    fn create_member(conn: &mut Conn, phone: &str) -> UserId {
        users::ensure_user(conn, PhoneNumber::parse(phone).unwrap(), FirstContactRole::Member, NOW).unwrap();
        users::find_user_by_phone(conn, &PhoneNumber::parse(phone).unwrap()).unwrap().unwrap().id
    }

    fn followed_series(season: Option<u32>) -> FollowedTitle {
        FollowedTitle { instance: "sonarr".into(), kind: MediaKind::Series, catalog_id: 371_980, season }
    }

    #[test]
    fn season_notifies_its_followers_and_those_of_the_series() {
        let mut conn = scratch();
        let (ann, bob) = (create_member(&mut conn, "+15550100001"), create_member(&mut conn, "+15550100002"));
        for (user, season) in [(ann, None), (ann, Some(2)), (bob, Some(2)), (bob, Some(2))] {
            follow_title(&mut conn, user, &followed_series(season), FollowReason::Request, NOW).unwrap();
        }
        assert_eq!(load_followers(&mut conn, &followed_series(Some(2))).unwrap(), [ann, bob]);
        assert_eq!(load_followers(&mut conn, &followed_series(Some(1))).unwrap(), [ann]);
        assert_eq!(
            load_followers(
                &mut conn,
                &FollowedTitle { instance: "sonarr-4k".into(), ..followed_series(Some(2)) }
            ),
            Ok(vec![])
        );
    }

    #[test]
    fn unfollowing_a_series_ends_only_that_users_follows_of_its_seasons() {
        let mut conn = scratch();
        let (ann, bob) = (create_member(&mut conn, "+15550100001"), create_member(&mut conn, "+15550100002"));
        for (user, season) in [(ann, None), (ann, Some(1)), (ann, Some(2)), (bob, Some(2))] {
            follow_title(&mut conn, user, &followed_series(season), FollowReason::Request, NOW).unwrap();
        }
        unfollow_title(&mut conn, ann, &followed_series(Some(1)), NOW).unwrap();
        assert_eq!(load_followers(&mut conn, &followed_series(Some(2))).unwrap(), [ann, bob]);
        unfollow_title(&mut conn, ann, &followed_series(None), NOW).unwrap();
        assert_eq!(load_followers(&mut conn, &followed_series(Some(2))).unwrap(), [bob]);
    }

    #[test]
    fn ended_follow_has_no_followers_and_can_be_renewed() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        follow_title(&mut conn, ann, &followed_series(Some(2)), FollowReason::Request, NOW).unwrap();
        end_follows(&mut conn, &followed_series(Some(2)), NOW).unwrap();
        assert_eq!(load_followers(&mut conn, &followed_series(Some(2))), Ok(vec![]));
        follow_title(&mut conn, ann, &followed_series(Some(2)), FollowReason::Request, NOW).unwrap();
        assert_eq!(load_followers(&mut conn, &followed_series(Some(2))), Ok(vec![ann]));
    }

    #[test]
    fn series_follows_exclude_movies_ended_follows_and_muted_users() {
        let mut conn = scratch();
        let (ann, bob) = (create_member(&mut conn, "+15550100001"), create_member(&mut conn, "+15550100002"));
        let movie = FollowedTitle { kind: MediaKind::Movie, ..followed_series(None) };
        for (user, title) in [
            (ann, followed_series(None)),
            (ann, movie),
            (bob, followed_series(Some(2))),
            (bob, followed_series(Some(3))),
        ] {
            follow_title(&mut conn, user, &title, FollowReason::Request, NOW).unwrap();
        }
        end_follows(&mut conn, &followed_series(Some(3)), NOW).unwrap();
        let follow = |user, season| SeriesFollow { user, catalog_id: 371_980, season, since: NOW };
        assert_eq!(
            load_series_follows(&mut conn, "sonarr"),
            Ok(vec![follow(ann, None), follow(bob, Some(2))])
        );
        assert_eq!(load_series_follows(&mut conn, "sonarr-4k"), Ok(vec![]));
        let bob_row = users_table::table.find(bob);
        diesel::update(bob_row).set(users_table::notify.eq(false)).execute(&mut conn).unwrap();
        assert_eq!(load_series_follows(&mut conn, "sonarr"), Ok(vec![follow(ann, None)]));
    }

    #[test]
    fn repeated_follow_counts_from_the_last_request() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        let later = NOW + jiff::SignedDuration::from_hours(1);
        follow_title(&mut conn, ann, &followed_series(Some(2)), FollowReason::Request, NOW).unwrap();
        follow_title(&mut conn, ann, &followed_series(Some(2)), FollowReason::Request, later).unwrap();
        assert_eq!(load_follow_time(&mut conn, ann, &followed_series(Some(2))), Ok(Some(later)));
        assert_eq!(load_followers(&mut conn, &followed_series(Some(2))), Ok(vec![ann]));
    }

    #[test]
    fn explicit_follow_overrides_muted_notifications_until_muted_again() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        follow_title(&mut conn, ann, &followed_series(Some(2)), FollowReason::Request, NOW).unwrap();
        diesel::update(users_table::table).set(users_table::notify.eq(false)).execute(&mut conn).unwrap();
        assert_eq!(load_followers(&mut conn, &followed_series(Some(2))), Ok(vec![]));
        follow_title(&mut conn, ann, &followed_series(Some(2)), FollowReason::Notification, NOW).unwrap();
        follow_title(&mut conn, ann, &followed_series(Some(2)), FollowReason::Request, NOW).unwrap();
        assert_eq!(load_followers(&mut conn, &followed_series(Some(2))), Ok(vec![ann]));
        mute_follows(&mut conn, ann).unwrap();
        assert_eq!(end_follows(&mut conn, &followed_series(Some(2)), NOW), Ok(vec![]));
    }
}
