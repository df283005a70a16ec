//! Caps on the age ratings of the titles that users may have, and the titles that a parent approved nevertheless.

use std::sync::Arc;

use diesel::dsl::{max, min};
use diesel::prelude::*;
use jiff::Timestamp;

use super::addresses::OptTarget;
use super::rooms::{self, IS_PERSON};
use super::users;
use crate::conversation::people::age_ratings::AgeLimit;
use crate::conversation::rating_caps::{MinimumAge, RatingCaps};
use crate::conversation::transcript::{CallRow, MediaKind, TurnId, User, UserId, UserStatus};
use crate::store::codec::ms;
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::conversation::conversations::{self, EndReason};
use crate::store::library::{space_answers, title_requests};
use crate::store::queue::suppression;
use crate::store::schema::{approved_titles, inbound_events, tool_calls, turns, users as user_rows};
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, digests};

/// Converts the stored caps, in years. A constraint keeps them in range; any other value allows the least.
pub(super) fn parse_caps(movies: Option<i64>, shows: Option<i64>) -> RatingCaps {
    let parse = |age: Option<i64>| age.map(|age| MinimumAge(u8::try_from(age).unwrap_or_default()));
    RatingCaps { movies: parse(movies), shows: parse(shows) }
}

/// Stores the caps of a user.
pub fn set_rating_caps(conn: &mut Conn, user: UserId, caps: RatingCaps, now: Timestamp) -> QueryResult<()> {
    if users::load_user(conn, user)?.rights.caps == caps {
        return Ok(());
    }
    let in_years = |cap: Option<MinimumAge>| cap.map(|age| i64::from(age.0));
    diesel::update(user_rows::table.find(user))
        .set((
            user_rows::movie_cap.eq(in_years(caps.movies)),
            user_rows::show_cap.eq(in_years(caps.shows)),
            user_rows::updated_at.eq(ms(now)),
        ))
        .execute(conn)?;
    withdraw_readable_texts(conn, user, now)
}

/// Prevents that what a user could read before the caps changed is repeated: the running turn, the conversation and an
/// open prompt end, waiting messages and additions are withdrawn, and earlier answers are not recalled.
pub(super) fn withdraw_readable_texts(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    let last_turn: Option<TurnId> = turns::table.select(max(turns::id)).first(conn)?;
    diesel::update(user_rows::table.find(user))
        .set(user_rows::caps_turn.eq(last_turn.map_or(0, |turn| turn.0)))
        .execute(conn)?;
    turn_lifecycle::request_cancel(conn, user, now)?;
    pending_action::close_pending_action(conn, user, CloseReason::Dropped, now)?;
    suppression::suppress_messages_to(conn, OptTarget { user, address: None }, now)?;
    digests::withdraw_readable_digests(conn, user, now)?;
    title_requests::withdraw_additions(conn, user, now)?;
    space_answers::withdraw_questions(conn, user, now)?;
    conversations::end_agent_conversations(conn, user, EndReason::Cleared, now)?;
    match conversations::load_open_conversation(conn, user)? {
        Some(open) => conversations::end_conversation(conn, open.id, EndReason::Cleared, now),
        None => Ok(()),
    }
}

/// Stores whether a user decides about titles over the caps of others.
pub fn set_parent(conn: &mut Conn, user: UserId, parent: bool, now: Timestamp) -> QueryResult<()> {
    diesel::update(user_rows::table.find(user))
        .set((user_rows::parent.eq(parent), user_rows::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

/// Limit of the people who read an answer, and the last turn that may have been over it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReaderLimit {
    pub limit: AgeLimit,
    /// Last turn before the caps changed, whose texts are not repeated; `None` without a limit.
    pub changed_after: Option<TurnId>,
}

/// Loads the limit of a person in a private chat.
pub fn load_user_limit(conn: &mut Conn, user: &User) -> QueryResult<ReaderLimit> {
    let caps = user.rights.rating_caps();
    if caps.is_unlimited() {
        return Ok(ReaderLimit::default());
    }
    let approved: Vec<(MediaKind, i64)> = approved_titles::table
        .filter(approved_titles::user_id.eq(user.id))
        .select((approved_titles::kind, approved_titles::catalog_id))
        .load(conn)?;
    let limit = AgeLimit { caps, approved: Arc::new(approved.into_iter().collect()) };
    Ok(ReaderLimit { limit, changed_after: load_caps_turn(conn, user.id)? })
}

/// Loads the limit of a room: the lowest caps of the people who wrote in it.
pub fn load_room_limit(conn: &mut Conn, room: UserId) -> QueryResult<ReaderLimit> {
    let mut reader = ReaderLimit::default();
    for user in load_limited_users(conn)? {
        if rooms::has_written_in(conn, user.id, room)? {
            reader.limit.caps = reader.limit.caps.strictest(user.rights.rating_caps());
            let joined_after = load_last_turn_before_joining(conn, user.id, room)?;
            reader.changed_after = reader.changed_after.max(load_caps_turn(conn, user.id)?).max(joined_after);
        }
    }
    Ok(reader)
}

/// Loads the last turn before a user's first message in a room that was answered; the last turn of all if none was.
fn load_last_turn_before_joining(conn: &mut Conn, user: UserId, room: UserId) -> QueryResult<Option<TurnId>> {
    let first: Option<TurnId> = inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(inbound_events::room_id.eq(room)))
        .select(min(inbound_events::turn_id))
        .first(conn)?;
    match first {
        Some(first) => Ok(Some(TurnId(first.0 - 1))),
        None => turns::table.select(max(turns::id)).first(conn),
    }
}

fn load_caps_turn(conn: &mut Conn, user: UserId) -> QueryResult<Option<TurnId>> {
    let turn: Option<i64> = user_rows::table.find(user).select(user_rows::caps_turn).first(conn)?;
    Ok(turn.map(TurnId))
}

/// Loads the last tool call of the turns up to this one.
pub fn load_last_call_up_to(conn: &mut Conn, turn: TurnId) -> QueryResult<Option<CallRow>> {
    tool_calls::table
        .filter(tool_calls::turn_id.le(turn))
        .order((tool_calls::turn_id.desc(), tool_calls::id.desc()))
        .select(tool_calls::id)
        .first(conn)
        .optional()
}

/// Loads the active people with a cap that applies.
pub fn load_limited_users(conn: &mut Conn) -> QueryResult<Vec<User>> {
    let ids: Vec<UserId> = user_rows::table
        .filter(user_rows::movie_cap.is_not_null().or(user_rows::show_cap.is_not_null()))
        .filter(user_rows::status.eq(UserStatus::Active).and(IS_PERSON))
        .order(user_rows::id)
        .select(user_rows::id)
        .load(conn)?;
    let users: Vec<User> =
        ids.into_iter().map(|id| users::load_user(conn, id)).collect::<QueryResult<_>>()?;
    Ok(users.into_iter().filter(|user| !user.rights.rating_caps().is_unlimited()).collect())
}

/// Loads the people who decide about titles over the caps of others: those named as parents, or else the admins.
pub fn load_parents(conn: &mut Conn) -> QueryResult<Vec<User>> {
    let ids: Vec<UserId> = user_rows::table
        .filter(user_rows::parent.eq(true).and(user_rows::status.eq(UserStatus::Active)))
        .filter(user_rows::test.eq(false).and(IS_PERSON))
        .order(user_rows::id)
        .select(user_rows::id)
        .load(conn)?;
    let named: Vec<User> =
        ids.into_iter().map(|id| users::load_user(conn, id)).collect::<QueryResult<_>>()?;
    let parents: Vec<User> =
        named.into_iter().filter(|user| user.rights.may_approve_titles() && !user.opted_out).collect();
    if parents.is_empty() { users::load_admins(conn) } else { Ok(parents) }
}

/// Records that a person may have a title, by its TMDB or TheTVDB id.
pub fn approve_title(
    conn: &mut Conn,
    user: UserId,
    (kind, catalog_id): (MediaKind, i64),
    now: Timestamp,
) -> QueryResult<()> {
    diesel::insert_into(approved_titles::table)
        .values((
            approved_titles::user_id.eq(user),
            approved_titles::kind.eq(kind),
            approved_titles::catalog_id.eq(catalog_id),
            approved_titles::approved_at.eq(ms(now)),
        ))
        .on_conflict_do_nothing()
        .execute(conn)
        .map(drop)
}

/// Deletes the approved titles and the caps of a person who is forgotten.
pub(in crate::store) fn delete_age_limit(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    let approved = approved_titles::table.filter(approved_titles::user_id.eq(user));
    diesel::delete(approved).execute(conn)?;
    diesel::update(user_rows::table.find(user))
        .set((
            user_rows::movie_cap.eq(None::<i64>),
            user_rows::show_cap.eq(None::<i64>),
            user_rows::caps_turn.eq(None::<i64>),
            user_rows::parent.eq(false),
        ))
        .execute(conn)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::{PhoneNumber, UserRole};
    use crate::store::people::users::{FirstContactRole, ensure_user};
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const PG_13: RatingCaps = RatingCaps { movies: Some(MinimumAge(13)), shows: None };

    fn add_user(conn: &mut Conn, phone: &str, role: FirstContactRole) -> UserId {
        ensure_user(conn, PhoneNumber::parse(phone).unwrap(), role, NOW).unwrap()
    }

    #[test]
    fn caps_of_a_person_are_stored_and_those_of_an_admin_do_not_apply() {
        let mut conn = scratch();
        let sam = add_user(&mut conn, "+15550100001", FirstContactRole::Member);
        set_rating_caps(&mut conn, sam, PG_13, NOW).unwrap();
        approve_title(&mut conn, sam, (MediaKind::Movie, 949), NOW).unwrap();
        let user = users::load_user(&mut conn, sam).unwrap();
        let limit = load_user_limit(&mut conn, &user).unwrap();
        assert_eq!(limit.limit.caps, PG_13);
        assert!(limit.limit.approved.contains(&(MediaKind::Movie, 949)));
        assert_eq!(limit.changed_after, Some(TurnId(0)));
        assert_eq!(load_limited_users(&mut conn).unwrap(), std::slice::from_ref(&user));
        let rights = crate::conversation::transcript::UserRights { role: UserRole::Admin, ..user.rights };
        users::set_rights(&mut conn, sam, rights, NOW).unwrap();
        let admin = users::load_user(&mut conn, sam).unwrap();
        assert_eq!(load_user_limit(&mut conn, &admin).unwrap(), ReaderLimit::default());
        assert_eq!(load_limited_users(&mut conn).unwrap(), []);
    }

    #[test]
    fn people_named_as_parents_decide_instead_of_the_admins() {
        let mut conn = scratch();
        let admin = add_user(&mut conn, "+15550100001", FirstContactRole::Admin);
        let dana = add_user(&mut conn, "+15550100002", FirstContactRole::Member);
        let ids =
            |conn: &mut Conn| load_parents(conn).unwrap().iter().map(|user| user.id).collect::<Vec<_>>();
        assert_eq!(ids(&mut conn), [admin]);
        set_parent(&mut conn, dana, true, NOW).unwrap();
        assert_eq!(ids(&mut conn), [dana]);
        set_rating_caps(&mut conn, dana, PG_13, NOW).unwrap();
        assert_eq!(ids(&mut conn), [admin], "a person with caps decides about nothing");
    }
}
