//! Who is told when a title is ready.

use diesel::prelude::*;
use jiff::Timestamp;

use super::Conn;
use super::codec::{kind_word, ms, time};
use super::schema::follows;
use super::written::Written;
use crate::conversation::transcript::{MediaKind, UserId};

const OPEN: Written = Written("follows.ended_at IS NULL");

/// A title in one library, by the id that its catalogue gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    pub instance: String,
    pub kind: MediaKind,
    /// Of TMDB for a movie, of TheTVDB for a show.
    pub catalog_id: i64,
    /// `None` for a movie, and for every season of a show.
    pub season: Option<u32>,
}

/// Begins to follow; whoever follows already goes on.
pub fn follow(conn: &mut Conn, user: UserId, what: &Followed, now: Timestamp) -> QueryResult<()> {
    diesel::insert_into(follows::table)
        .values((
            follows::user_id.eq(user.0),
            follows::instance.eq(&what.instance),
            follows::kind.eq(kind_word(what.kind)),
            follows::catalog_id.eq(what.catalog_id),
            follows::season.eq(what.season.map(i64::from)),
            follows::created_at.eq(ms(now)),
        ))
        .on_conflict_do_nothing()
        .execute(conn)
        .map(drop)
}

/// Who follows a movie, or this season of a show, each once and in the order in which they began.
pub fn followers(conn: &mut Conn, what: &Followed) -> QueryResult<Vec<UserId>> {
    let season = what.season.map(i64::from);
    let mut ids: Vec<i64> = follows::table
        .filter(OPEN.and(follows::kind.eq(kind_word(what.kind))))
        .filter(follows::catalog_id.eq(what.catalog_id).and(follows::instance.eq(&what.instance)))
        .filter(follows::season.is_null().or(follows::season.is(season)))
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
    Ok(ids.into_iter().map(UserId).collect())
}

/// Since when a person follows a movie, or this season of a show: the last time they asked counts.
pub fn since(conn: &mut Conn, user: UserId, what: &Followed) -> QueryResult<Option<Timestamp>> {
    let season = what.season.map(i64::from);
    let at: Option<i64> = follows::table
        .filter(OPEN.and(follows::kind.eq(kind_word(what.kind))))
        .filter(follows::catalog_id.eq(what.catalog_id).and(follows::instance.eq(&what.instance)))
        .filter(follows::user_id.eq(user.0).and(follows::season.is_null().or(follows::season.is(season))))
        .select(diesel::dsl::max(follows::created_at))
        .first(conn)?;
    at.map(time).transpose()
}

/// Everyone is told: nobody follows this any more. Gives who did.
pub fn end(conn: &mut Conn, what: &Followed, now: Timestamp) -> QueryResult<Vec<UserId>> {
    let season = what.season.map(i64::from);
    let open = follows::table
        .filter(OPEN.and(follows::kind.eq(kind_word(what.kind))))
        .filter(follows::catalog_id.eq(what.catalog_id).and(follows::instance.eq(&what.instance)))
        .filter(follows::season.is(season));
    let ended = diesel::update(open).set(follows::ended_at.eq(ms(now))).returning(follows::user_id);
    Ok(ended.load::<i64>(conn)?.into_iter().map(UserId).collect())
}

/// A person follows it no more; without a season, nothing of the title.
pub fn stop(conn: &mut Conn, user: UserId, what: &Followed, now: Timestamp) -> QueryResult<()> {
    let open = follows::table
        .filter(OPEN.and(follows::kind.eq(kind_word(what.kind))))
        .filter(follows::catalog_id.eq(what.catalog_id).and(follows::instance.eq(&what.instance)))
        .filter(follows::user_id.eq(user.0));
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
    use crate::store::scratch;
    use crate::store::users::{self, Newcomer};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn person(conn: &mut Conn, phone: &str) -> UserId {
        users::ensure(conn, &PhoneNumber::parse(phone).unwrap(), Newcomer::Member, NOW).unwrap();
        users::by_phone(conn, &PhoneNumber::parse(phone).unwrap()).unwrap().unwrap().id
    }

    fn season(season: Option<u32>) -> Followed {
        Followed { instance: "sonarr".into(), kind: MediaKind::Series, catalog_id: 371_980, season }
    }

    #[test]
    fn a_season_is_told_to_those_who_follow_it_and_to_those_who_follow_the_show() {
        let mut conn = scratch();
        let (ann, bob) = (person(&mut conn, "+15550100001"), person(&mut conn, "+15550100002"));
        for (user, what) in [(ann, None), (ann, Some(2)), (bob, Some(2)), (bob, Some(2))] {
            follow(&mut conn, user, &season(what), NOW).unwrap();
        }
        assert_eq!(followers(&mut conn, &season(Some(2))).unwrap(), [ann, bob]);
        assert_eq!(followers(&mut conn, &season(Some(1))).unwrap(), [ann]);
        assert_eq!(
            followers(&mut conn, &Followed { instance: "sonarr-4k".into(), ..season(Some(2)) }),
            Ok(vec![])
        );
    }

    #[test]
    fn who_stops_following_a_show_follows_none_of_its_seasons_and_others_go_on() {
        let mut conn = scratch();
        let (ann, bob) = (person(&mut conn, "+15550100001"), person(&mut conn, "+15550100002"));
        for (user, what) in [(ann, None), (ann, Some(1)), (ann, Some(2)), (bob, Some(2))] {
            follow(&mut conn, user, &season(what), NOW).unwrap();
        }
        stop(&mut conn, ann, &season(Some(1)), NOW).unwrap();
        assert_eq!(followers(&mut conn, &season(Some(2))).unwrap(), [ann, bob]);
        stop(&mut conn, ann, &season(None), NOW).unwrap();
        assert_eq!(followers(&mut conn, &season(Some(2))).unwrap(), [bob]);
    }

    #[test]
    fn what_has_ended_is_followed_by_nobody_and_can_be_followed_again() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        follow(&mut conn, ann, &season(Some(2)), NOW).unwrap();
        end(&mut conn, &season(Some(2)), NOW).unwrap();
        assert_eq!(followers(&mut conn, &season(Some(2))), Ok(vec![]));
        follow(&mut conn, ann, &season(Some(2)), NOW).unwrap();
        assert_eq!(followers(&mut conn, &season(Some(2))), Ok(vec![ann]));
    }
}
