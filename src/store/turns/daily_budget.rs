//! Daily budget for model calls, and usage per user and day in the household's time zone. The maximum cost of a call,
//! in tokens and in money, is reserved before the call and settled after it, so that concurrent calls cannot exceed the
//! budget together.

use std::fmt;

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Text};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::conversation::model_cost::{CostEstimate, DailyBudget, ModelCharge, ModelSpending, TokenUsage};
use crate::conversation::transcript::{TurnId, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, saturating_i64};
use crate::store::database::statement_cache::CacheStatement;
use crate::store::schema::{reservations, usage};

/// Day in the household's time zone, formatted as `2026-11-20`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day(String);

impl Day {
    pub fn from_timestamp(at: Timestamp, zone: &TimeZone) -> Self {
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

/// Model call whose cost is to be reserved. A turn makes only one call at a time.
#[derive(Debug, Clone)]
pub struct BudgetedCall {
    pub turn: TurnId,
    pub user: UserId,
    pub day: Day,
    pub estimate: CostEstimate,
}

/// Outcome of reserving the cost of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservationOutcome {
    Granted,
    /// The rest of the budget is reserved by running calls, and may become available when they end.
    BudgetReserved,
    /// The budget of this day is used up.
    Exhausted,
}

/// Reserves the maximum cost of the call, if the day's budget has room for it.
pub fn reserve_call_cost(
    conn: &mut Conn,
    call: &BudgetedCall,
    budget: DailyBudget,
) -> QueryResult<ReservationOutcome> {
    let spending = load_day_spending(conn, call)?;
    reserve_within_budget(conn, call, spending, budget)
}

/// Like [`reserve_call_cost`], for a step of a running turn. Returns `None` if the turn was canceled.
pub fn reserve_step_cost(
    conn: &mut Conn,
    call: &BudgetedCall,
    budget: DailyBudget,
) -> QueryResult<Option<ReservationOutcome>> {
    let spending = load_day_spending(conn, call)?;
    if spending.is_turn_canceled {
        return Ok(None);
    }
    reserve_within_budget(conn, call, spending, budget).map(Some)
}

fn reserve_within_budget(
    conn: &mut Conn,
    call: &BudgetedCall,
    DaySpending { used, reserved, .. }: DaySpending,
    budget: DailyBudget,
) -> QueryResult<ReservationOutcome> {
    let BudgetedCall { turn, user, day, estimate } = call;
    if !budget.has_room(used, estimate.total()) {
        return Ok(ReservationOutcome::Exhausted);
    }
    if !budget.has_room(used.plus(reserved), estimate.total()) {
        return Ok(ReservationOutcome::BudgetReserved);
    }
    diesel::insert_into(reservations::table)
        .values((
            reservations::turn_id.eq(turn),
            reservations::day.eq(&day.0),
            reservations::user_id.eq(user),
            reservations::tokens_in.eq(saturating_i64(estimate.input.tokens)),
            reservations::tokens_out.eq(saturating_i64(estimate.output.tokens)),
            reservations::cost_in_micros.eq(saturating_i64(estimate.input.cost)),
            reservations::cost_out_micros.eq(saturating_i64(estimate.output.cost)),
        ))
        .cached()
        .run(conn)?;
    Ok(ReservationOutcome::Granted)
}

/// Settles the turn's call after its end: the reservation is released, and the actual cost is added to the usage of the
/// day on which the call was made. Without a reservation, nothing changes.
pub fn settle_call_cost(conn: &mut Conn, turn: TurnId, charge: ModelCharge) -> QueryResult<()> {
    let reservation: Option<(String, i64, i64, i64)> = diesel::delete(reservations::table.find(turn))
        .returning((
            reservations::day,
            reservations::user_id,
            reservations::tokens_in,
            reservations::cost_in_micros,
        ))
        .get_result(conn)
        .optional()?;
    let Some((day, user, tokens_in, cost_in)) = reservation else { return Ok(()) };
    let (tokens, cost) = match charge {
        ModelCharge::Nothing => return Ok(()),
        ModelCharge::Input => {
            (TokenUsage { input: convert_integer(tokens_in)?, ..TokenUsage::default() }, cost_in)
        }
        ModelCharge::Used { tokens, cost } => (tokens, saturating_i64(cost)),
    };
    let (input, cached, output) =
        (saturating_i64(tokens.input), saturating_i64(tokens.cached), saturating_i64(tokens.output));
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
        .cached()
        .run(conn)
}

/// Settles all reservations at the start of the program, with the cost of the input. Their calls were interrupted, and
/// it is unknown how much of each the model server processed.
pub(in crate::store) fn settle_all_calls(conn: &mut Conn) -> QueryResult<()> {
    let turns: Vec<i64> = reservations::table.select(reservations::turn_id).load(conn)?;
    turns.into_iter().try_for_each(|turn| settle_call_cost(conn, TurnId(turn), ModelCharge::Input))
}

/// Adds the segments of an accepted message to the usage, because messages are billed by segment.
pub(in crate::store) fn count_segments(
    conn: &mut Conn,
    user: UserId,
    day: &Day,
    segments: i64,
) -> QueryResult<()> {
    diesel::insert_into(usage::table)
        .values((usage::day.eq(&day.0), usage::user_id.eq(user), usage::segments.eq(segments)))
        .on_conflict((usage::day, usage::user_id))
        .do_update()
        .set(usage::segments.eq(usage::segments + segments))
        .cached()
        .run(conn)
}

/// Spending of the day of a call, and the state of its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DaySpending {
    /// Spending of all calls that have ended, with the blocks of earlier runs.
    used: ModelSpending,
    /// Reservations of the running calls.
    reserved: ModelSpending,
    /// Whether the turn of the call was canceled.
    is_turn_canceled: bool,
}

#[derive(QueryableByName)]
struct DaySpendingRow {
    #[diesel(sql_type = BigInt)]
    used_tokens: i64,
    #[diesel(sql_type = BigInt)]
    used_cost: i64,
    #[diesel(sql_type = BigInt)]
    reserved_tokens: i64,
    #[diesel(sql_type = BigInt)]
    reserved_cost: i64,
    #[diesel(sql_type = Bool)]
    is_turn_canceled: bool,
}

const DAY_SPENDING: &str = "\
    SELECT used.tokens + lost.tokens AS used_tokens, used.cost + lost.cost AS used_cost, \
           reserved.tokens AS reserved_tokens, reserved.cost AS reserved_cost, \
           EXISTS (SELECT 1 FROM turns WHERE id = ?2 AND cancel_requested_at IS NOT NULL) AS is_turn_canceled \
    FROM (SELECT coalesce(sum(tokens_in + tokens_out), 0) AS tokens, coalesce(sum(cost_micros), 0) AS cost \
          FROM usage WHERE day = ?1) AS used, \
         (SELECT coalesce(sum(tokens), 0) AS tokens, coalesce(sum(cost_micros), 0) AS cost \
          FROM budget_blocks WHERE day = ?1 AND epoch < (SELECT epoch FROM instance)) AS lost, \
         (SELECT coalesce(sum(tokens_in + tokens_out), 0) AS tokens, \
                 coalesce(sum(cost_in_micros + cost_out_micros), 0) AS cost \
          FROM reservations WHERE day = ?1) AS reserved";

fn load_day_spending(conn: &mut Conn, call: &BudgetedCall) -> QueryResult<DaySpending> {
    let query = diesel::sql_query(DAY_SPENDING).bind::<Text, _>(&call.day.0).bind::<BigInt, _>(call.turn);
    let row: DaySpendingRow = query.cached().get_result(conn)?;
    let spending = |tokens, cost| -> QueryResult<ModelSpending> {
        Ok(ModelSpending { tokens: convert_integer(tokens)?, cost: convert_integer(cost)? })
    };
    Ok(DaySpending {
        used: spending(row.used_tokens, row.used_cost)?,
        reserved: spending(row.reserved_tokens, row.reserved_cost)?,
        is_turn_canceled: row.is_turn_canceled,
    })
}

#[cfg(test)]
mod tests {
    use super::super::budget_blocks::{self, BudgetBlock};
    use super::super::model_steps::{self, AttemptId};
    use super::super::turn_lifecycle::{self, NewTurn, TurnKind, TurnPlan};
    use super::*;
    use crate::conversation::transcript::{PhoneNumber, Responder};
    use crate::store::conversation::conversations;
    use crate::store::database::log_syncs::LogSyncs;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::{boot, scratch};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const TOKEN_BUDGET: DailyBudget = DailyBudget { tokens: Some(250), cost: None };
    const ACTUAL_CHARGE: ModelCharge =
        ModelCharge::Used { tokens: TokenUsage { input: 90, cached: 40, output: 5 }, cost: 7 };

    /// Creates a turn of a new user, and returns its call with a maximum of 120 tokens and a cost of 10.
    fn create_call(conn: &mut Conn, phone: &str) -> BudgetedCall {
        let user =
            users::ensure_user(conn, PhoneNumber::parse(phone).unwrap(), FirstContactRole::Member, NOW)
                .unwrap();
        let conversation = conversations::start_conversation(conn, user, "Nov 20", NOW).unwrap();
        let plan = TurnPlan::for_responder(Responder::Model);
        let turn = turn_lifecycle::create_turn(
            conn,
            NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan },
            NOW,
        );
        let input = ModelSpending { tokens: 100, cost: 6 };
        let estimate = CostEstimate { input, output: ModelSpending { tokens: 20, cost: 4 } };
        BudgetedCall { turn: turn.unwrap(), user, day: Day::from_timestamp(NOW, &TimeZone::UTC), estimate }
    }

    /// Returns the used and the reserved amounts.
    fn load_amounts(conn: &mut Conn, call: &BudgetedCall) -> [(u64, u64); 2] {
        let DaySpending { used, reserved, .. } = load_day_spending(conn, call).unwrap();
        [used, reserved].map(|sum| (sum.tokens, sum.cost))
    }

    #[test]
    fn budget_day_is_in_the_household_time_zone() {
        let at: Timestamp = "2026-11-21T04:59:00Z".parse().unwrap();
        let day = |zone| Day::from_timestamp(at, &TimeZone::get(zone).unwrap()).to_string();
        assert_eq!([day("UTC"), day("America/New_York")], ["2026-11-21", "2026-11-20"]);
    }

    #[test]
    fn call_is_settled_once_with_its_actual_cost() {
        for (charge, expected) in
            [(ACTUAL_CHARGE, (95, 7)), (ModelCharge::Input, (100, 6)), (ModelCharge::Nothing, (0, 0))]
        {
            let mut conn = scratch();
            let call = create_call(&mut conn, "+15550100001");
            assert_eq!(reserve_call_cost(&mut conn, &call, TOKEN_BUDGET), Ok(ReservationOutcome::Granted));
            assert_eq!(load_amounts(&mut conn, &call), [(0, 0), (120, 10)]);
            for _ in 0..2 {
                settle_call_cost(&mut conn, call.turn, charge).unwrap();
                assert_eq!(load_amounts(&mut conn, &call), [expected, (0, 0)], "{charge:?}");
            }
        }
    }

    #[test]
    fn step_of_a_canceled_turn_reserves_nothing() {
        let mut conn = scratch();
        let call = create_call(&mut conn, "+15550100001");
        turn_lifecycle::request_cancel(&mut conn, call.user, NOW).unwrap();
        assert_eq!(reserve_step_cost(&mut conn, &call, TOKEN_BUDGET), Ok(None));
        assert_eq!(load_amounts(&mut conn, &call), [(0, 0), (0, 0)]);
        assert_eq!(reserve_call_cost(&mut conn, &call, TOKEN_BUDGET), Ok(ReservationOutcome::Granted));
    }

    #[test]
    fn calls_of_all_users_share_the_daily_budget() {
        let mut conn = scratch();
        let [ann, bob, cid] =
            ["+15550100001", "+15550100002", "+15550100003"].map(|phone| create_call(&mut conn, phone));
        assert_eq!(reserve_call_cost(&mut conn, &ann, TOKEN_BUDGET), Ok(ReservationOutcome::Granted));
        assert_eq!(reserve_call_cost(&mut conn, &bob, TOKEN_BUDGET), Ok(ReservationOutcome::Granted));
        assert_eq!(reserve_call_cost(&mut conn, &cid, TOKEN_BUDGET), Ok(ReservationOutcome::BudgetReserved));
        settle_call_cost(&mut conn, ann.turn, ACTUAL_CHARGE).unwrap();
        settle_call_cost(&mut conn, bob.turn, ACTUAL_CHARGE).unwrap();
        assert_eq!(reserve_call_cost(&mut conn, &cid, TOKEN_BUDGET), Ok(ReservationOutcome::Exhausted));
        let tomorrow = BudgetedCall { day: Day("1970-01-02".to_owned()), ..cid };
        assert_eq!(reserve_call_cost(&mut conn, &tomorrow, TOKEN_BUDGET), Ok(ReservationOutcome::Granted));
    }

    #[test]
    fn call_counts_for_the_day_of_its_start() {
        let mut conn = scratch();
        let call =
            BudgetedCall { day: Day("1969-12-31".to_owned()), ..create_call(&mut conn, "+15550100001") };
        reserve_call_cost(&mut conn, &call, TOKEN_BUDGET).unwrap();
        settle_call_cost(&mut conn, call.turn, ACTUAL_CHARGE).unwrap();
        assert_eq!(load_amounts(&mut conn, &call)[0], (95, 7));
    }

    #[test]
    fn interrupted_call_is_charged_for_its_input() {
        let interruptions: [fn(&mut Conn, TurnId); 2] = [
            |conn, turn| model_steps::abandon_unfinished_attempt(conn, turn, NOW).unwrap(),
            |conn, _| {
                boot::recover_interrupted_work(conn, NOW).unwrap();
            },
        ];
        for interrupt in interruptions {
            let mut conn = scratch();
            let call = create_call(&mut conn, "+15550100001");
            let attempt = AttemptId { turn: call.turn, step: 0, attempt: 1 };
            model_steps::start_attempt(&mut conn, attempt, Responder::Model, "model", NOW).unwrap();
            reserve_call_cost(&mut conn, &call, TOKEN_BUDGET).unwrap();
            interrupt(&mut conn, call.turn);
            assert_eq!(load_amounts(&mut conn, &call), [(100, 6), (0, 0)]);
        }
    }

    #[test]
    fn block_of_an_interrupted_run_counts_as_spent() {
        let mut conn = scratch();
        let call = create_call(&mut conn, "+15550100001");
        boot::recover_interrupted_work(&mut conn, NOW).unwrap();
        let budget = DailyBudget { tokens: Some(2_000), cost: None };
        let block = BudgetBlock::new(LogSyncs::default(), None);
        budget_blocks::open_block(&mut conn, &block.cover_call(&call, budget).new_block().unwrap()).unwrap();
        assert_eq!(load_amounts(&mut conn, &call)[0], (0, 0));
        boot::recover_interrupted_work(&mut conn, NOW).unwrap();
        assert_eq!(load_amounts(&mut conn, &call)[0], (100, 0));
        let tomorrow = BudgetedCall { day: Day("1970-01-02".to_owned()), ..call };
        assert_eq!(load_amounts(&mut conn, &tomorrow)[0], (0, 0));
    }
}
