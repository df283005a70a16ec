//! Daily budget for model calls, and usage per user and day in the household's time zone. The maximum cost of a call,
//! in tokens and in money, is reserved before the call, so that concurrent calls cannot exceed the budget together. The
//! call is charged for its input before it starts, and for its actual cost after it has ended.

use std::fmt;

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Text};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::running_calls::{CostReservation, RunningCalls};
use crate::conversation::model_cost::{CostEstimate, DailyBudget, ModelCharge, ModelSpending, TokenUsage};
use crate::conversation::transcript::{TurnId, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, saturating_i64};
use crate::store::database::statement_cache::{CacheStatement, cached_update};
use crate::store::schema::usage;

/// Day in the household's time zone, formatted as `2026-11-20`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

/// Model call whose cost is to be reserved.
#[derive(Debug, Clone)]
pub struct BudgetedCall {
    /// User who is charged.
    pub user: UserId,
    pub day: Day,
    pub estimate: CostEstimate,
}

/// Outcome of reserving the cost of a call.
#[derive(Debug)]
pub enum ReservationOutcome {
    Granted(CostReservation),
    Refused(BudgetRefusal),
}

/// Reason why the cost of a call is not reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetRefusal {
    /// The rest of the budget is reserved by running calls, and may become available when they end.
    Reserved,
    /// The budget of this day is used up.
    Exhausted,
}

/// Reserves the maximum cost of the call, if the day's budget has room for it.
pub fn reserve_call_cost(
    conn: &mut Conn,
    calls: &RunningCalls,
    call: &BudgetedCall,
    budget: DailyBudget,
) -> QueryResult<ReservationOutcome> {
    let spending = load_day_spending(conn, &call.day, None)?;
    reserve_within_budget(conn, calls, call, spending.used, budget)
}

/// Like [`reserve_call_cost`], for a step of a running turn. Returns `None` if the turn was canceled.
pub fn reserve_step_cost(
    conn: &mut Conn,
    calls: &RunningCalls,
    turn: TurnId,
    call: &BudgetedCall,
    budget: DailyBudget,
) -> QueryResult<Option<ReservationOutcome>> {
    let spending = load_day_spending(conn, &call.day, Some(turn))?;
    if spending.is_turn_canceled {
        return Ok(None);
    }
    reserve_within_budget(conn, calls, call, spending.used, budget).map(Some)
}

/// Key of the statement that charges a call for its input.
enum ReservedUsage {}

fn reserve_within_budget(
    conn: &mut Conn,
    calls: &RunningCalls,
    call: &BudgetedCall,
    used: ModelSpending,
    budget: DailyBudget,
) -> QueryResult<ReservationOutcome> {
    let BudgetedCall { user, day, estimate } = call;
    let reserved = calls.reserved_cost(day);
    let used_by_ended = used.minus(reserved.input);
    if !budget.has_room(used_by_ended, estimate.total()) {
        return Ok(ReservationOutcome::Refused(BudgetRefusal::Exhausted));
    }
    if !budget.has_room(used_by_ended.plus(reserved.total()), estimate.total()) {
        return Ok(ReservationOutcome::Refused(BudgetRefusal::Reserved));
    }
    let (tokens, cost) = (saturating_i64(estimate.input.tokens), saturating_i64(estimate.input.cost));
    diesel::insert_into(usage::table)
        .values((
            usage::day.eq(&day.0),
            usage::user_id.eq(user),
            usage::model_calls.eq(1),
            usage::tokens_in.eq(tokens),
            usage::cost_micros.eq(cost),
        ))
        .on_conflict((usage::day, usage::user_id))
        .do_update()
        .set((
            usage::model_calls.eq(usage::model_calls + 1),
            usage::tokens_in.eq(usage::tokens_in + tokens),
            usage::cost_micros.eq(usage::cost_micros + cost),
        ))
        .cached_as::<ReservedUsage>()
        .run(conn)?;
    Ok(ReservationOutcome::Granted(calls.reserve(call.clone())))
}

/// Replaces the charge for the input of a call by the actual charge, in the usage of the day on which the call was made.
/// Call this once, when the call has ended.
pub fn settle_call_cost(
    conn: &mut Conn,
    reservation: &CostReservation,
    charge: ModelCharge,
) -> QueryResult<()> {
    let BudgetedCall { user, day, estimate: CostEstimate { input, .. } } = reservation.call();
    let (calls, tokens, cost) = match charge {
        ModelCharge::Nothing => (0, TokenUsage::default(), 0),
        ModelCharge::Input => return Ok(()),
        ModelCharge::Used { tokens, cost } => (1, tokens, cost),
    };
    let added_input = saturating_i64(tokens.input) - saturating_i64(input.tokens);
    cached_update(usage::table.find((day.as_str(), user)))
        .set((
            usage::model_calls.eq(usage::model_calls + (calls - 1)),
            usage::tokens_in.eq(usage::tokens_in + added_input),
            usage::tokens_cached.eq(usage::tokens_cached + saturating_i64(tokens.cached)),
            usage::tokens_out.eq(usage::tokens_out + saturating_i64(tokens.output)),
            usage::cost_micros.eq(usage::cost_micros + (saturating_i64(cost) - saturating_i64(input.cost))),
        ))
        .run(conn)
}

/// Key of the statement that counts segments.
enum CountedSegments {}

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
        .cached_as::<CountedSegments>()
        .run(conn)
}

/// Spending of a day, and the state of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DaySpending {
    /// Spending of all calls that have ended, with the input of the running calls and the blocks of earlier runs.
    used: ModelSpending,
    is_turn_canceled: bool,
}

#[derive(QueryableByName)]
struct DaySpendingRow {
    #[diesel(sql_type = BigInt)]
    used_tokens: i64,
    #[diesel(sql_type = BigInt)]
    used_cost: i64,
    #[diesel(sql_type = Bool)]
    is_turn_canceled: bool,
}

const DAY_SPENDING: &str = "\
    SELECT used.tokens + lost.tokens AS used_tokens, used.cost + lost.cost AS used_cost, \
           EXISTS (SELECT 1 FROM turns WHERE id = ?2 AND cancel_requested_at IS NOT NULL) AS is_turn_canceled \
    FROM (SELECT coalesce(sum(tokens_in + tokens_out), 0) AS tokens, coalesce(sum(cost_micros), 0) AS cost \
          FROM usage WHERE day = ?1) AS used, \
         (SELECT coalesce(sum(tokens), 0) AS tokens, coalesce(sum(cost_micros), 0) AS cost \
          FROM budget_blocks WHERE day = ?1 AND epoch < (SELECT epoch FROM instance)) AS lost";

fn load_day_spending(conn: &mut Conn, day: &Day, turn: Option<TurnId>) -> QueryResult<DaySpending> {
    let query =
        diesel::sql_query(DAY_SPENDING).bind::<Text, _>(day.as_str()).bind::<Nullable<BigInt>, _>(turn);
    let row: DaySpendingRow = query.cached().get_result(conn)?;
    let used =
        ModelSpending { tokens: convert_integer(row.used_tokens)?, cost: convert_integer(row.used_cost)? };
    Ok(DaySpending { used, is_turn_canceled: row.is_turn_canceled })
}

#[cfg(test)]
mod tests {
    use super::super::budget_blocks::{self, BudgetBlock};
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

    /// Budget with the calls of new users, each with a maximum of 120 tokens and a cost of 10.
    struct Budget {
        conn: Conn,
        calls: RunningCalls,
    }

    impl Budget {
        fn new() -> Self {
            Self { conn: scratch(), calls: RunningCalls::default() }
        }

        fn create_user(&mut self, phone: &str) -> UserId {
            let phone = PhoneNumber::parse(phone).unwrap();
            users::ensure_user(&mut self.conn, phone, FirstContactRole::Member, NOW).unwrap()
        }

        fn create_call(&mut self, phone: &str) -> BudgetedCall {
            let user = self.create_user(phone);
            let input = ModelSpending { tokens: 100, cost: 6 };
            let estimate = CostEstimate { input, output: ModelSpending { tokens: 20, cost: 4 } };
            BudgetedCall { user, day: Day::from_timestamp(NOW, &TimeZone::UTC), estimate }
        }

        fn reserve(&mut self, call: &BudgetedCall) -> ReservationOutcome {
            reserve_call_cost(&mut self.conn, &self.calls, call, TOKEN_BUDGET).unwrap()
        }

        fn start(&mut self, call: &BudgetedCall) -> CostReservation {
            match self.reserve(call) {
                ReservationOutcome::Granted(reservation) => reservation,
                ReservationOutcome::Refused(refusal) => panic!("{refusal:?}"),
            }
        }

        fn refusal(&mut self, call: &BudgetedCall) -> BudgetRefusal {
            match self.reserve(call) {
                ReservationOutcome::Granted(_) => panic!("the cost was reserved"),
                ReservationOutcome::Refused(refusal) => refusal,
            }
        }

        /// Returns the amounts of the ended calls with the input of the running ones, and the reserved amounts.
        fn amounts(&mut self, day: &Day) -> [(u64, u64); 2] {
            let used = load_day_spending(&mut self.conn, day, None).unwrap().used;
            [used, self.calls.reserved_cost(day).total()].map(|sum| (sum.tokens, sum.cost))
        }

        fn count_calls(&mut self) -> i64 {
            usage::table.select(usage::model_calls).first(&mut self.conn).unwrap()
        }
    }

    #[test]
    fn budget_day_is_in_the_household_time_zone() {
        let at: Timestamp = "2026-11-21T04:59:00Z".parse().unwrap();
        let day = |zone| Day::from_timestamp(at, &TimeZone::get(zone).unwrap()).to_string();
        assert_eq!([day("UTC"), day("America/New_York")], ["2026-11-21", "2026-11-20"]);
    }

    #[test]
    fn call_is_charged_for_its_input_and_then_for_its_actual_cost() {
        for (charge, expected, calls) in [
            (ACTUAL_CHARGE, (95, 7), 1),
            (ModelCharge::Input, (100, 6), 1),
            (ModelCharge::Nothing, (0, 0), 0),
        ] {
            let mut budget = Budget::new();
            let call = budget.create_call("+15550100001");
            let reservation = budget.start(&call);
            assert_eq!(budget.amounts(&call.day), [(100, 6), (120, 10)]);
            settle_call_cost(&mut budget.conn, &reservation, charge).unwrap();
            drop(reservation);
            assert_eq!(budget.amounts(&call.day), [expected, (0, 0)], "{charge:?}");
            assert_eq!(budget.count_calls(), calls, "{charge:?}");
        }
    }

    #[test]
    fn step_of_a_canceled_turn_reserves_nothing() {
        let mut budget = Budget::new();
        let call = budget.create_call("+15550100001");
        let conn = &mut budget.conn;
        let conversation = conversations::start_conversation(conn, call.user, "Nov 20", NOW).unwrap();
        let plan = TurnPlan::for_responder(Responder::Model);
        let new_turn = NewTurn { user: call.user, conversation, kind: TurnKind::Chat, plan: &plan };
        let turn = turn_lifecycle::create_turn(conn, new_turn, NOW).unwrap();
        turn_lifecycle::request_cancel(conn, call.user, NOW).unwrap();
        let outcome = reserve_step_cost(conn, &budget.calls, turn, &call, TOKEN_BUDGET).unwrap();
        assert!(outcome.is_none());
        assert_eq!(budget.amounts(&call.day), [(0, 0), (0, 0)]);
        budget.start(&call);
    }

    #[test]
    fn calls_of_all_users_share_the_daily_budget() {
        let mut budget = Budget::new();
        let [ann, bob, cid] =
            ["+15550100001", "+15550100002", "+15550100003"].map(|phone| budget.create_call(phone));
        let reservations = [budget.start(&ann), budget.start(&bob)];
        assert_eq!(budget.refusal(&cid), BudgetRefusal::Reserved);
        for reservation in reservations {
            settle_call_cost(&mut budget.conn, &reservation, ACTUAL_CHARGE).unwrap();
        }
        assert_eq!(budget.refusal(&cid), BudgetRefusal::Exhausted);
        let tomorrow = BudgetedCall { day: Day("1970-01-02".to_owned()), ..cid };
        budget.start(&tomorrow);
    }

    #[test]
    fn call_counts_for_the_day_of_its_start() {
        let mut budget = Budget::new();
        let call = BudgetedCall { day: Day("1969-12-31".to_owned()), ..budget.create_call("+15550100001") };
        let reservation = budget.start(&call);
        settle_call_cost(&mut budget.conn, &reservation, ACTUAL_CHARGE).unwrap();
        assert_eq!(budget.amounts(&call.day)[0], (95, 7));
    }

    #[test]
    fn interrupted_call_is_charged_for_its_input() {
        let mut budget = Budget::new();
        let call = budget.create_call("+15550100001");
        drop(budget.start(&call));
        assert_eq!(budget.amounts(&call.day), [(100, 6), (0, 0)]);
    }

    #[test]
    fn block_of_an_interrupted_run_counts_as_spent() {
        let mut budget = Budget::new();
        let call = budget.create_call("+15550100001");
        boot::recover_interrupted_work(&mut budget.conn, NOW).unwrap();
        let limits = DailyBudget { tokens: Some(2_000), cost: None };
        let block = BudgetBlock::new(LogSyncs::default(), None);
        let new_block = block.cover_call(&call, limits).new_block().unwrap();
        budget_blocks::open_block(&mut budget.conn, &new_block).unwrap();
        assert_eq!(budget.amounts(&call.day)[0], (0, 0));
        boot::recover_interrupted_work(&mut budget.conn, NOW).unwrap();
        assert_eq!(budget.amounts(&call.day)[0], (100, 0));
        assert_eq!(budget.amounts(&Day("1970-01-02".to_owned()))[0], (0, 0));
    }
}
