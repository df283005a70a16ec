//! What was spent, per user and day of the household's zone. What a model call may come to is set aside before it is
//! made and settled when it is over, so that calls at the same time cannot overdraw a budget together.

use std::fmt;

use diesel::prelude::*;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Conn;
use super::codec::{count, number};
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

/// Whether there is room for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    Granted,
    /// Not beside the calls under way: once they are over, there may be.
    Crowded,
    /// Not on this day.
    Exhausted,
}

/// Sets aside what the call may come to, if the day's budget has room for it.
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

/// The turn's call is over: what was set aside for it is freed, and what it came to counts for the day on which it was
/// made. Without a call under way nothing happens.
pub(super) fn settle(conn: &mut Conn, turn: TurnId, charge: Charge) -> QueryResult<()> {
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
        .execute(conn)
        .map(drop)
}

/// Texts that were taken for sending are paid for by their segments.
pub(super) fn count_segments(conn: &mut Conn, user: UserId, day: &Day, segments: i64) -> QueryResult<()> {
    diesel::insert_into(usage::table)
        .values((usage::day.eq(&day.0), usage::user_id.eq(user.0), usage::segments.eq(segments)))
        .on_conflict((usage::day, usage::user_id))
        .do_update()
        .set(usage::segments.eq(usage::segments + segments))
        .execute(conn)
        .map(drop)
}

/// What everybody's calls of the day have come to.
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

/// What the calls under way may come to.
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
