//! Wrong codes of each user, counted per local day. A restart and another confirmation prompt do not reset the count.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::json;

use crate::conversation::transcript::{User, UserId};
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::people::users::load_user;
use crate::store::schema::users;
use crate::store::turns::daily_budget::Day;
use crate::store::{Conn, QueryResult};

/// Number of wrong codes in a day after which the user cannot delete or approve by message.
const MAX_MISSES_PER_DAY: i64 = 5;

/// Count of one user's wrong codes on the last day with wrong codes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeMisses {
    count: i64,
    /// Day of the count, formatted as `2026-11-20`.
    day: Option<String>,
}

impl CodeMisses {
    /// Returns whether the user's deletions and approvals by message are suspended.
    pub fn is_suspended_on(&self, today: &Day) -> bool {
        self.count >= MAX_MISSES_PER_DAY && self.counts_toward(today)
    }

    /// Returns whether the count applies to today. A day later than today, as after the clock was set back, counts as
    /// today, so that the count is not lost.
    fn counts_toward(&self, today: &Day) -> bool {
        self.day.as_deref().is_some_and(|day| day >= today.as_str())
    }
}

pub fn load_code_misses(conn: &mut Conn, user: UserId) -> QueryResult<CodeMisses> {
    let (count, day) =
        users::table.find(user).select((users::code_misses, users::code_misses_day)).first(conn)?;
    Ok(CodeMisses { count, day })
}

/// Outcome of counting a wrong code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissOutcome {
    Counted,
    /// The wrong code was the last one allowed on this day: the user is suspended from now on.
    Suspended,
}

pub fn count_miss(conn: &mut Conn, user: UserId, today: &Day, now: Timestamp) -> QueryResult<MissOutcome> {
    let current = load_code_misses(conn, user)?;
    let was_suspended = current.is_suspended_on(today);
    let misses = match current.counts_toward(today) {
        true => CodeMisses { count: current.count + 1, ..current },
        false => CodeMisses { count: 1, day: Some(today.to_string()) },
    };
    store_code_misses(conn, user, &misses)?;
    if was_suspended || !misses.is_suspended_on(today) {
        return Ok(MissOutcome::Counted);
    }
    let subject = AuditSubject::User(user);
    let entry = NewAuditEntry {
        actor: Actor::Dialarr,
        kind: "suspend_codes",
        subject,
        detail: json!({ "misses": MAX_MISSES_PER_DAY }),
    };
    audit::record_change(conn, &entry, now)?;
    Ok(MissOutcome::Suspended)
}

fn store_code_misses(conn: &mut Conn, user: UserId, misses: &CodeMisses) -> QueryResult<()> {
    diesel::update(users::table.find(user))
        .set((users::code_misses.eq(misses.count), users::code_misses_day.eq(&misses.day)))
        .execute(conn)
        .map(drop)
}

/// Moves counts of later days to today, so that they end with today. Such counts exist after the clock was set back.
pub fn move_counts_to_today(conn: &mut Conn, today: &Day) -> QueryResult<()> {
    diesel::update(users::table.filter(users::code_misses_day.gt(today.as_str())))
        .set(users::code_misses_day.eq(today.as_str()))
        .execute(conn)
        .map(drop)
}

/// Outcome of lifting a suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiftOutcome {
    Lifted,
    NotSuspended,
}

/// Lifts a suspension, so that the user can delete and approve by message again. The change is recorded in the audit
/// log.
pub fn lift_suspension(
    conn: &mut Conn,
    user: UserId,
    today: &Day,
    actor: Actor,
    now: Timestamp,
) -> QueryResult<LiftOutcome> {
    if !load_code_misses(conn, user)?.is_suspended_on(today) {
        return Ok(LiftOutcome::NotSuspended);
    }
    let entry = NewAuditEntry {
        actor,
        kind: "lift_suspension",
        subject: AuditSubject::User(user),
        detail: json!({}),
    };
    audit::record_change(conn, &entry, now)?;
    store_code_misses(conn, user, &CodeMisses::default())?;
    Ok(LiftOutcome::Lifted)
}

/// Loads the users who are suspended today, in the order of their ids.
pub fn load_suspended_users(conn: &mut Conn, today: &Day) -> QueryResult<Vec<User>> {
    let ids: Vec<UserId> = users::table
        .filter(users::code_misses.ge(MAX_MISSES_PER_DAY).and(users::code_misses_day.ge(today.as_str())))
        .filter(users::forgotten_at.is_null())
        .order(users::id)
        .select(users::id)
        .load(conn)?;
    ids.into_iter().map(|id| load_user(conn, id)).collect()
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::scratch;

    fn time(hours: i64) -> Timestamp {
        Timestamp::from_second(3600 * hours).unwrap()
    }

    fn day(hours: i64) -> Day {
        Day::from_timestamp(time(hours), &TimeZone::UTC)
    }

    fn create_admin(conn: &mut Conn) -> UserId {
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        users::ensure_user(conn, &phone, FirstContactRole::Admin, time(0)).unwrap()
    }

    fn enter_wrong_code(conn: &mut Conn, user: UserId, hours: i64) -> MissOutcome {
        count_miss(conn, user, &day(hours), time(hours)).unwrap()
    }

    #[test]
    fn five_wrong_codes_suspend_the_user_until_the_next_day() {
        let mut conn = scratch();
        let ann = create_admin(&mut conn);
        for _ in 0..4 {
            assert_eq!(enter_wrong_code(&mut conn, ann, 23), MissOutcome::Counted);
        }
        for _ in 0..4 {
            assert_eq!(enter_wrong_code(&mut conn, ann, 24), MissOutcome::Counted);
        }
        assert!(load_suspended_users(&mut conn, &day(24)).unwrap().is_empty());
        assert_eq!(enter_wrong_code(&mut conn, ann, 30), MissOutcome::Suspended);
        assert_eq!(enter_wrong_code(&mut conn, ann, 30), MissOutcome::Counted);
        let suspended = load_suspended_users(&mut conn, &day(47)).unwrap();
        assert_eq!(suspended.iter().map(|user| user.id).collect::<Vec<_>>(), [ann]);
        assert!(!load_code_misses(&mut conn, ann).unwrap().is_suspended_on(&day(48)));
    }

    #[test]
    fn clock_step_back_allows_no_further_guesses() {
        let mut conn = scratch();
        let ann = create_admin(&mut conn);
        for hours in [49, 49, 49, 1] {
            assert_eq!(enter_wrong_code(&mut conn, ann, hours), MissOutcome::Counted);
        }
        assert_eq!(enter_wrong_code(&mut conn, ann, 1), MissOutcome::Suspended);
        assert!(load_code_misses(&mut conn, ann).unwrap().is_suspended_on(&day(49)));
    }

    #[test]
    fn lifted_suspension_allows_five_guesses_and_is_audited() {
        let mut conn = scratch();
        let ann = create_admin(&mut conn);
        let lift = |conn: &mut Conn| lift_suspension(conn, ann, &day(0), Actor::Shell, time(0)).unwrap();
        assert_eq!(lift(&mut conn), LiftOutcome::NotSuspended);
        let first: Vec<MissOutcome> = (0..5).map(|_| enter_wrong_code(&mut conn, ann, 0)).collect();
        assert_eq!(first[4], MissOutcome::Suspended);
        assert_eq!(lift(&mut conn), LiftOutcome::Lifted);
        assert_eq!(load_code_misses(&mut conn, ann).unwrap(), CodeMisses::default());
        let second: Vec<MissOutcome> = (0..5).map(|_| enter_wrong_code(&mut conn, ann, 0)).collect();
        assert_eq!(second, first);
    }
}
