//! Spending in tokens and cost, per user and day of the household's zone. The maximum cost of a model call, in tokens
//! and in money, is reserved before the call is made and settled when it is over, so that concurrent calls cannot
//! overdraw a budget together.

use std::fmt;

use diesel::prelude::*;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Conn;
use super::codec::{count, number};
use super::kept::Keep;
use super::schema::{reservations, usage};
use crate::conversation::spending::{Budget, Charge, Estimate, Spent, Tokens};
use crate::conversation::transcript::{TurnId, UserId};

/// A day of the household's zone, as `2026-11-20`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day(String);

impl Day {
    pub fn of(at: Timestamp, zone: &TimeZone) -> Self {
        Self(at.to_zoned(zone.clone()).date().to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A model call that is about to be made. A turn makes one at a time.
#[derive(Debug, Clone)]
pub struct Call {
    pub turn: TurnId,
    pub user: UserId,
    pub day: Day,
    pub estimate: Estimate,
}

/// Outcome of reserving room for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    Granted,
    /// There is no room beside the calls under way: once they are over, there may be.
    Crowded,
    /// There is no room left on this day.
    Exhausted,
}

/// Reserves the maximum cost of the call, if the day's budget has room for it.
pub fn reserve(conn: &mut Conn, call: &Call, budget: Budget) -> QueryResult<Reservation> {
    let Call { turn, user, day, estimate } = call;
    let used = used(conn, day)?;
    if !budget.has_room(used, estimate.whole()) {
        return Ok(Reservation::Exhausted);
    }
    if !budget.has_room(used.plus(under_way(conn, day)?), estimate.whole()) {
        return Ok(Reservation::Crowded);
    }
    diesel::insert_into(reservations::table)
        .values((
            reservations::turn_id.eq(turn.0),
            reservations::day.eq(&day.0),
            reservations::user_id.eq(user.0),
            reservations::tokens_in.eq(count(estimate.input.tokens)),
            reservations::tokens_out.eq(count(estimate.output.tokens)),
            reservations::cost_in_micros.eq(count(estimate.input.cost)),
            reservations::cost_out_micros.eq(count(estimate.output.cost)),
        ))
        .execute(conn)?;
    Ok(Reservation::Granted)
}

/// Settles the turn's call, which is over: its reservation is freed, and its actual cost counts for the day on which
/// it was made. Without a call under way nothing happens.
pub fn settle(conn: &mut Conn, turn: TurnId, charge: Charge) -> QueryResult<()> {
    let open: Option<(String, i64, i64, i64)> = diesel::delete(reservations::table.find(turn.0))
        .returning((
            reservations::day,
            reservations::user_id,
            reservations::tokens_in,
            reservations::cost_in_micros,
        ))
        .get_result(conn)
        .optional()?;
    let Some((day, user, tokens_in, cost_in)) = open else { return Ok(()) };
    let (tokens, cost) = match charge {
        Charge::Nothing => return Ok(()),
        Charge::Input => (Tokens { input: number(tokens_in)?, ..Tokens::default() }, cost_in),
        Charge::Used { tokens, cost } => (tokens, count(cost)),
    };
    let (input, cached, output) = (count(tokens.input), count(tokens.cached), count(tokens.output));
    diesel::insert_into(usage::table)
        .values((
            usage::day.eq(day),
            usage::user_id.eq(user),
            usage::model_calls.eq(1),
            usage::tokens_in.eq(input),
            usage::tokens_cached.eq(cached),
            usage::tokens_out.eq(output),
            usage::cost_micros.eq(cost),
        ))
        .on_conflict((usage::day, usage::user_id))
        .do_update()
        .set((
            usage::model_calls.eq(usage::model_calls + 1),
            usage::tokens_in.eq(usage::tokens_in + input),
            usage::tokens_cached.eq(usage::tokens_cached + cached),
            usage::tokens_out.eq(usage::tokens_out + output),
            usage::cost_micros.eq(usage::cost_micros + cost),
        ))
        .kept()
        .execute(conn)
        .map(drop)
}

/// Settles all reservations. At the start no call is under way: the calls still reserved were cut off, and it is
/// unknown how far the server came.
pub(super) fn settle_all(conn: &mut Conn) -> QueryResult<()> {
    let left: Vec<i64> = reservations::table.select(reservations::turn_id).load(conn)?;
    left.into_iter().try_for_each(|turn| settle(conn, TurnId(turn), Charge::Input))
}

/// Counts the segments of messages that were accepted for sending: they are paid for by segment.
pub(super) fn count_segments(conn: &mut Conn, user: UserId, day: &Day, segments: i64) -> QueryResult<()> {
    diesel::insert_into(usage::table)
        .values((usage::day.eq(&day.0), usage::user_id.eq(user.0), usage::segments.eq(segments)))
        .on_conflict((usage::day, usage::user_id))
        .do_update()
        .set(usage::segments.eq(usage::segments + segments))
        .kept()
        .execute(conn)
        .map(drop)
}

/// Loads the tokens and the cost of the day's calls of all users.
fn used(conn: &mut Conn, day: &Day) -> QueryResult<Spent> {
    let by_user: Vec<(i64, i64, i64)> = usage::table
        .filter(usage::day.eq(&day.0))
        .select((usage::tokens_in, usage::tokens_out, usage::cost_micros))
        .load(conn)?;
    by_user.into_iter().try_fold(Spent::default(), |sum, (input, output, cost)| {
        let tokens = Tokens { input: number(input)?, cached: 0, output: number(output)? };
        Ok(sum.plus(Spent { tokens: tokens.total(), cost: number(cost)? }))
    })
}

/// Loads the maximum tokens and cost of the calls under way.
fn under_way(conn: &mut Conn, day: &Day) -> QueryResult<Spent> {
    let calls: Vec<(i64, i64, i64, i64)> = reservations::table
        .filter(reservations::day.eq(&day.0))
        .select((
            reservations::tokens_in,
            reservations::tokens_out,
            reservations::cost_in_micros,
            reservations::cost_out_micros,
        ))
        .load(conn)?;
    calls.into_iter().try_fold(Spent::default(), |sum, (input, output, cost_in, cost_out)| {
        let input = Spent { tokens: number(input)?, cost: number(cost_in)? };
        let output = Spent { tokens: number(output)?, cost: number(cost_out)? };
        Ok(sum.plus(input).plus(output))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::{Brain, PhoneNumber};
    use crate::store::steps::{self, Attempt};
    use crate::store::turns::{Kind, NewTurn, Plan};
    use crate::store::users::{self, Newcomer};
    use crate::store::{boot, conversations, scratch, turns};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const TOKENS: Budget = Budget { tokens: Some(250), cost: None };
    const USED: Charge = Charge::Used { tokens: Tokens { input: 90, cached: 40, output: 5 }, cost: 7 };

    /// Builds the call of a user's first turn, with a maximum of 120 tokens and a cost of 10.
    fn call(conn: &mut Conn, phone: &str) -> Call {
        let user = users::ensure(conn, &PhoneNumber::parse(phone).unwrap(), Newcomer::Member, NOW).unwrap();
        let conversation = conversations::begin(conn, user, "now", NOW).unwrap();
        let plan = Plan::by(Brain::Model);
        let turn = turns::create(conn, NewTurn { user, conversation, kind: Kind::Chat, plan: &plan }, NOW);
        let input = Spent { tokens: 100, cost: 6 };
        let estimate = Estimate { input, output: Spent { tokens: 20, cost: 4 } };
        Call { turn: turn.unwrap(), user, day: Day::of(NOW, &TimeZone::UTC), estimate }
    }

    /// Returns the used and the reserved amounts.
    fn spent(conn: &mut Conn, day: &Day) -> [(u64, u64); 2] {
        let sums = [used(conn, day).unwrap(), under_way(conn, day).unwrap()];
        sums.map(|spent| (spent.tokens, spent.cost))
    }

    #[test]
    fn a_day_is_the_households() {
        let at: Timestamp = "2026-11-21T04:59:00Z".parse().unwrap();
        let day = |zone| Day::of(at, &TimeZone::get(zone).unwrap()).to_string();
        assert_eq!([day("UTC"), day("America/New_York")], ["2026-11-21", "2026-11-20"]);
    }

    #[test]
    fn a_call_is_settled_once_with_what_it_came_to() {
        for (charge, expected) in [(USED, (95, 7)), (Charge::Input, (100, 6)), (Charge::Nothing, (0, 0))] {
            let mut conn = scratch();
            let call = call(&mut conn, "+15550100001");
            assert_eq!(reserve(&mut conn, &call, TOKENS), Ok(Reservation::Granted));
            assert_eq!(spent(&mut conn, &call.day), [(0, 0), (120, 10)]);
            for _ in 0..2 {
                settle(&mut conn, call.turn, charge).unwrap();
                assert_eq!(spent(&mut conn, &call.day), [expected, (0, 0)], "{charge:?}");
            }
        }
    }

    #[test]
    fn calls_of_everybody_share_the_budget_of_a_day() {
        let mut conn = scratch();
        let [ann, bob, cid] =
            ["+15550100001", "+15550100002", "+15550100003"].map(|phone| call(&mut conn, phone));
        assert_eq!(reserve(&mut conn, &ann, TOKENS), Ok(Reservation::Granted));
        assert_eq!(reserve(&mut conn, &bob, TOKENS), Ok(Reservation::Granted));
        assert_eq!(reserve(&mut conn, &cid, TOKENS), Ok(Reservation::Crowded));
        settle(&mut conn, ann.turn, USED).unwrap();
        settle(&mut conn, bob.turn, USED).unwrap();
        assert_eq!(reserve(&mut conn, &cid, TOKENS), Ok(Reservation::Exhausted));
        let tomorrow = Call { day: Day("1970-01-02".to_owned()), ..cid };
        assert_eq!(reserve(&mut conn, &tomorrow, TOKENS), Ok(Reservation::Granted));
    }

    #[test]
    fn a_call_counts_for_the_day_on_which_it_was_made() {
        let mut conn = scratch();
        let call = Call { day: Day("1969-12-31".to_owned()), ..call(&mut conn, "+15550100001") };
        reserve(&mut conn, &call, TOKENS).unwrap();
        settle(&mut conn, call.turn, USED).unwrap();
        assert_eq!(spent(&mut conn, &call.day)[0], (95, 7));
    }

    #[test]
    fn a_call_that_a_panic_or_a_crash_ended_counts_its_request() {
        let ends: [fn(&mut Conn, TurnId); 2] = [
            |conn, turn| steps::abandon_unfinished(conn, turn, NOW).unwrap(),
            |conn, _| {
                boot::begin(conn, NOW).unwrap();
            },
        ];
        for end in ends {
            let mut conn = scratch();
            let call = call(&mut conn, "+15550100001");
            let attempt = Attempt { turn: call.turn, step: 0, attempt: 1 };
            steps::start(&mut conn, attempt, Brain::Model, "model", NOW).unwrap();
            reserve(&mut conn, &call, TOKENS).unwrap();
            end(&mut conn, call.turn);
            assert_eq!(spent(&mut conn, &call.day), [(100, 6), (0, 0)]);
        }
    }
}
