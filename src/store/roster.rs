//! The users as the operator sees and changes them.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Conn;
use super::audit::{self, By, Entry, Subject};
use super::code_misses::{self, CodeMisses};
use super::codec::{role_word, time};
use super::quotas::{self, Own};
use super::schema::{conversations, inbound_events, turns, users};
use super::users as people;
use crate::conversation::naming::Name;
use crate::conversation::transcript::{PhoneNumber, Rights, Role, User, UserId};

/// A user with the data that concerns only the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub user: User,
    pub movies: Limit,
    pub seasons: Limit,
    pub last_text: Option<Timestamp>,
    pub code_misses: CodeMisses,
}

/// Number of movies or seasons that a user may add within the household's period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Household,
    Own(u32),
}

/// Loads all users who are not forgotten, longest known first.
pub fn everyone(conn: &mut Conn) -> QueryResult<Vec<Person>> {
    let known = people::known(conn)?;
    known.into_iter().map(|user| with_limits(conn, user)).collect()
}

pub fn by_phone(conn: &mut Conn, phone: &PhoneNumber) -> QueryResult<Option<UserId>> {
    let id: Option<i64> = users::table
        .filter(users::phone.eq(phone.as_str()).and(users::forgotten_at.is_null()))
        .select(users::id)
        .first(conn)
        .optional()?;
    Ok(id.map(UserId))
}

/// Loads a user who is known and not forgotten.
pub fn known(conn: &mut Conn, id: UserId) -> QueryResult<Option<User>> {
    let known: Option<i64> = users::table
        .filter(users::id.eq(id.0).and(users::forgotten_at.is_null()))
        .select(users::id)
        .first(conn)
        .optional()?;
    known.map(|id| people::get(conn, UserId(id))).transpose()
}

pub fn person(conn: &mut Conn, id: UserId) -> QueryResult<Person> {
    let user = people::get(conn, id)?;
    with_limits(conn, user)
}

fn with_limits(conn: &mut Conn, user: User) -> QueryResult<Person> {
    let own = quotas::own(conn, user.id)?;
    let last: Option<i64> = inbound_events::table
        .filter(inbound_events::user_id.eq(user.id.0))
        .order(inbound_events::id.desc())
        .select(inbound_events::received_at)
        .first(conn)
        .optional()?;
    let limit = |own: Option<u32>| own.map_or(Limit::Household, Limit::Own);
    let last_text = last.map(time).transpose()?;
    let code_misses = code_misses::load(conn, user.id)?;
    Ok(Person { code_misses, user, movies: limit(own.movies), seasons: limit(own.seasons), last_text })
}

/// A conversation without its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Talk {
    pub name: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<String>,
    /// Number of the user's messages that turns processed.
    pub texts: i64,
}

/// Loads the last conversations of a user, newest first.
pub fn talks(conn: &mut Conn, user: UserId, limit: i64) -> QueryResult<Vec<Talk>> {
    type Row = (i64, String, i64, Option<i64>, Option<String>);
    let rows: Vec<Row> = conversations::table
        .filter(conversations::user_id.eq(user.0))
        .order(conversations::id.desc())
        .limit(limit)
        .select((
            conversations::id,
            conversations::name,
            conversations::started_at,
            conversations::ended_at,
            conversations::end_reason,
        ))
        .load(conn)?;
    let talk = |(id, name, started_at, ended_at, end_reason): Row| {
        let turns = turns::table.filter(turns::conversation_id.eq(id)).select(turns::id);
        let texts: i64 = inbound_events::table
            .filter(inbound_events::turn_id.eq_any(turns.nullable()))
            .count()
            .get_result(conn)?;
        let (started_at, ended_at) = (time(started_at)?, ended_at.map(time).transpose()?);
        Ok(Talk { name, started_at, ended_at, end_reason, texts })
    };
    rows.into_iter().map(talk).collect()
}

/// Changes that the operator makes to a user; their other fields stay the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    pub role: Option<Role>,
    pub name: Option<Name>,
    pub add: Option<bool>,
    pub delete: Option<bool>,
    pub four_k: Option<bool>,
    pub movies: Option<Limit>,
    pub seasons: Option<Limit>,
}

/// Outcome of changing a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    Changed,
    /// No admin would be left to let users in.
    LastAdmin,
}

pub fn change(
    conn: &mut Conn,
    user: UserId,
    changes: &Changes,
    by: By,
    now: Timestamp,
) -> QueryResult<Changed> {
    if changes.role == Some(Role::Member) && people::is_last_admin(conn, user)? {
        return Ok(Changed::LastAdmin);
    }
    let entry = Entry { by, kind: "set", subject: Subject::User(user), detail: changes.detail() };
    audit::record(conn, &entry, now)?;
    let known = people::get(conn, user)?.rights;
    let rights = Rights {
        role: changes.role.unwrap_or(known.role),
        add: changes.add.unwrap_or(known.add),
        delete: changes.delete.unwrap_or(known.delete),
        four_k: changes.four_k.unwrap_or(known.four_k),
    };
    people::set_rights(conn, user, rights, now)?;
    if let Some(name) = &changes.name {
        people::set_name(conn, user, name, now)?;
    }
    let known = quotas::own(conn, user)?;
    let own = Own {
        movies: changes.movies.map_or(known.movies, Limit::own),
        seasons: changes.seasons.map_or(known.seasons, Limit::own),
    };
    quotas::set_own(conn, user, own, now)?;
    Ok(Changed::Changed)
}

impl Changes {
    /// A name does not belong in the audit log: the fact that it was changed has to suffice.
    fn detail(&self) -> Value {
        let limit = |limit: Limit| limit.own().map_or(json!("household"), |own| json!(own));
        let changed = [
            ("role", self.role.map(|role| json!(role_word(role)))),
            ("name", self.name.as_ref().map(|_| json!("changed"))),
            ("add", self.add.map(Value::from)),
            ("delete", self.delete.map(Value::from)),
            ("four_k", self.four_k.map(Value::from)),
            ("movies", self.movies.map(limit)),
            ("seasons", self.seasons.map(limit)),
        ];
        let told = changed.into_iter().filter_map(|(what, to)| Some((what.to_owned(), to?)));
        Value::Object(told.collect::<Map<_, _>>())
    }
}

impl Limit {
    fn own(self) -> Option<u32> {
        match self {
            Self::Household => None,
            Self::Own(most) => Some(most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::Status;
    use crate::store::schema::audit_log;
    use crate::store::scratch;
    use crate::store::users::Newcomer;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn admin(conn: &mut Conn, phone: &str) -> UserId {
        people::ensure(conn, &PhoneNumber::parse(phone).unwrap(), Newcomer::Admin, NOW).unwrap()
    }

    fn demotion() -> Changes {
        Changes { role: Some(Role::Member), ..Changes::default() }
    }

    #[test]
    fn a_change_is_recorded_with_what_it_was_but_without_the_name() {
        let mut conn = scratch();
        let sam = admin(&mut conn, "+15550100001");
        let changes = Changes {
            name: Some(Name::parse("Sam").unwrap()),
            delete: Some(true),
            movies: Some(Limit::Own(3)),
            seasons: Some(Limit::Household),
            ..Changes::default()
        };
        assert_eq!(change(&mut conn, sam, &changes, By::Shell, NOW).unwrap(), Changed::Changed);
        let person = person(&mut conn, sam).unwrap();
        assert_eq!(person.user.name.as_deref(), Some("Sam"));
        assert_eq!(
            (person.user.rights.delete, person.movies, person.seasons),
            (true, Limit::Own(3), Limit::Household)
        );
        let recorded: Vec<(Option<i64>, String, String)> = audit_log::table
            .select((audit_log::user_id, audit_log::subject, audit_log::detail))
            .load(&mut conn)
            .unwrap();
        let detail = r#"{"by":"shell","delete":true,"movies":3,"name":"changed","seasons":"household"}"#;
        assert_eq!(recorded, [(None, format!("user:{sam}"), detail.to_owned())]);
    }

    #[test]
    fn of_two_admins_one_can_be_demoted_and_a_blocked_one_does_not_count() {
        let mut conn = scratch();
        let (first, second) = (admin(&mut conn, "+15550100001"), admin(&mut conn, "+15550100002"));
        people::set_status(&mut conn, second, Status::Blocked, NOW).unwrap();
        assert_eq!(change(&mut conn, first, &demotion(), By::Shell, NOW).unwrap(), Changed::LastAdmin);
        people::set_status(&mut conn, second, Status::Active, NOW).unwrap();
        assert_eq!(change(&mut conn, first, &demotion(), By::Shell, NOW).unwrap(), Changed::Changed);
        assert_eq!(change(&mut conn, second, &demotion(), By::Shell, NOW).unwrap(), Changed::LastAdmin);
    }
}
