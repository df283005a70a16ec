//! Start of the program: the epoch number and the recovery of work that the previous run left unfinished.

use diesel::dsl::max;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use jiff::{SignedDuration, Timestamp};

use super::codec::ms;
use super::confirmation::deletion_items::DeletionItemPhase;
use super::database::literal_sql::literal_sql;
use super::people::invitations;
use super::queue::lookups;
use super::queue::outbox::{OPEN as OPEN_MESSAGE, OutboxState};
use super::queue::outbox_events::{ChangedMessage, record_changed_messages};
use super::schema::{instance, llm_steps, outbox, tool_call_items, tool_calls, turns};
use super::turns::calls::{self, ChangedCall};
use super::turns::{budget_blocks, model_steps};
use super::{Conn, agent_calls, clock_step};
use crate::clock::MIN_STEP;
use crate::conversation::stream_events::CallPhase;
use crate::conversation::transcript::EffectLevel;

/// Downtime between two runs of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Downtime {
    /// The downtime is the period measured by the wall clock.
    Known,
    /// The downtime is unknown because the clock is behind the times that the last run stored, by this negative step.
    Uncertain(SignedDuration),
}

/// Minimum interval between two counted starts. Restarts in quick succession count once, because the turns had no time
/// to run between them.
const COUNTED_START_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// Counts this start and sets the state of all interrupted work: reads and model steps run again; writes, deletions and
/// messages get an unknown outcome. If the clock was set back, the times of waiting work are shifted by the same step.
pub fn recover_interrupted_work(conn: &mut Conn, now: Timestamp) -> QueryResult<Downtime> {
    let elapsed = clock_step::load_last_stored_time(conn)?.map(|last| now.duration_since(last));
    let downtime = match elapsed {
        Some(step) if step <= -MIN_STEP => Downtime::Uncertain(step),
        Some(_) | None => Downtime::Known,
    };
    if let Downtime::Uncertain(step) = downtime {
        // The shift must precede the first time that this start stores.
        clock_step::rebase_waits(conn, step)?;
    }
    let stopped_at = load_last_activity(conn, now)?;
    let is_counted = is_counted_start(conn, now)?;
    diesel::insert_into(instance::table)
        .values((
            (instance::id.eq(1), instance::epoch.eq(1)),
            (instance::started_at.eq(ms(now)), instance::seen_at.eq(ms(now))),
        ))
        .on_conflict(instance::id)
        .do_update()
        .set((
            instance::epoch.eq(instance::epoch + 1),
            instance::started_at.eq(ms(now)),
            instance::seen_at.eq(ms(now)),
            instance::clean_shutdown_at.eq(None::<Timestamp>),
        ))
        .execute(conn)?;
    model_steps::abandon_interrupted_attempts(conn, now)?;
    recover_interrupted_calls(conn, now)?;
    recover_interrupted_messages(conn, now)?;
    lookups::require_lookup_for_queued(conn)?;
    invitations::delete_expired_invitations(conn, now)?;
    agent_calls::drop_overdue_calls(conn, now)?;
    if let Some(stopped_at) = stopped_at {
        // Downtime does not count against the deadline of the turn.
        let downtime_ms = (now.as_millisecond() - stopped_at.as_millisecond()).max(0);
        diesel::update(turns::table.filter(turns::finished_at.is_null()))
            .set((
                turns::deadline_at.eq(turns::deadline_at + downtime_ms),
                turns::attempts.eq(turns::attempts + i64::from(is_counted)),
            ))
            .execute(conn)?;
    }
    if is_counted {
        diesel::update(instance::table).set(instance::counted_start_at.eq(ms(now))).execute(conn)?;
    }
    Ok(downtime)
}

/// Sets the state of interrupted calls and deletions.
fn recover_interrupted_calls(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    let unfinished = || turns::table.filter(turns::finished_at.is_null()).select(turns::id);
    let running = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(unfinished()).and(tool_calls::state.eq(CallPhase::Running)));
    let reset_reads = diesel::update(running.filter(tool_calls::effect.eq(EffectLevel::Read)))
        .set((tool_calls::state.eq(CallPhase::Created), tool_calls::updated_at.eq(ms(now))))
        .returning(ChangedCall::as_returning())
        .get_results(conn)?;
    calls::record_changed_calls(conn, reset_reads, now)?;
    let unknown_calls = diesel::update(running)
        .set((
            tool_calls::state.eq(CallPhase::Unknown),
            tool_calls::unknown_at.eq(ms(now)),
            tool_calls::updated_at.eq(ms(now)),
        ))
        .returning(ChangedCall::as_returning())
        .get_results(conn)?;
    calls::record_changed_calls(conn, unknown_calls, now)?;
    let confirmed = tool_calls::table
        .filter(tool_calls::run_turn_id.eq_any(unfinished().nullable()))
        .select(tool_calls::id);
    let deletions = tool_call_items::tool_call_id.eq_any(confirmed);
    diesel::update(
        tool_call_items::table.filter(deletions.and(tool_call_items::state.eq(DeletionItemPhase::Running))),
    )
    .set(tool_call_items::state.eq(DeletionItemPhase::Unknown))
    .execute(conn)
    .map(drop)
}

/// Sets the state of the messages that were being sent.
fn recover_interrupted_messages(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    let attempting = OPEN_MESSAGE.and(outbox::state.eq(OutboxState::Attempting));
    let unknown_messages = diesel::update(outbox::table.filter(attempting))
        .set((
            outbox::state.eq(OutboxState::Unknown),
            outbox::unknown_at.eq(ms(now)),
            outbox::updated_at.eq(ms(now)),
        ))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, unknown_messages, now)
}

/// Records that the program is running. A later start before this time means that the clock was set back.
pub fn record_heartbeat(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    diesel::update(instance::table).set(instance::seen_at.eq(ms(now))).execute(conn).map(drop)
}

/// Returns whether this start counts as one more attempt of the turns that it resumes. A start after the clock was set
/// back counts: otherwise a turn that crashes the program could be resumed forever.
fn is_counted_start(conn: &mut Conn, now: Timestamp) -> QueryResult<bool> {
    let last_counted: Option<Option<Timestamp>> =
        instance::table.select(instance::counted_start_at).first(conn).optional()?;
    Ok(last_counted.flatten().is_none_or(|counted_at| {
        let elapsed = now.duration_since(counted_at);
        elapsed.is_negative() || elapsed >= COUNTED_START_INTERVAL
    }))
}

/// Loads the time of the last record of a running turn. Times after `now` do not count: they are from before the clock
/// was set back.
fn load_last_activity(conn: &mut Conn, now: Timestamp) -> QueryResult<Option<Timestamp>> {
    let running = || turns::table.filter(turns::finished_at.is_null()).select(turns::id);
    let changed_at: Option<Timestamp> =
        turns::table.filter(turns::finished_at.is_null()).select(max(turns::updated_at)).first(conn)?;
    let attempted_at: Option<Timestamp> = llm_steps::table
        .filter(llm_steps::turn_id.eq_any(running()).and(llm_steps::started_at.le(ms(now))))
        .select(max(llm_steps::started_at))
        .first(conn)?;
    let answered_at: Option<Timestamp> = llm_steps::table
        .filter(llm_steps::turn_id.eq_any(running()).and(llm_steps::finished_at.le(ms(now))))
        .select(max(llm_steps::finished_at))
        .first(conn)?;
    let called_at: Option<Timestamp> = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(running()).and(tool_calls::updated_at.le(ms(now))))
        .select(max(tool_calls::updated_at))
        .first(conn)?;
    Ok([changed_at, attempted_at, answered_at, called_at].into_iter().flatten().max())
}

pub fn record_clean_shutdown(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    budget_blocks::close_blocks(conn)?;
    diesel::update(instance::table)
        .set((instance::clean_shutdown_at.eq(ms(now)), instance::seen_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

literal_sql! {
    /// Number of this start of the program.
    pub(super) const CURRENT_EPOCH: BigInt = "coalesce((SELECT epoch FROM instance), 0)";
}

#[cfg(test)]
mod tests {
    use super::super::conversation::conversations;
    use super::super::people::users::{self, FirstContactRole};
    use super::super::turns::model_steps::{AttemptId, NewCall, RecordedResponse};
    use super::super::turns::turn_lifecycle::{self, NewTurn, TurnKind, TurnPlan};
    use super::*;
    use crate::conversation::transcript::{PhoneNumber, Responder, StopReason, ToolArguments, TurnId};
    use crate::store::scratch;

    fn time_at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Creates a running turn at second 0.
    fn create_turn(conn: &mut Conn) -> TurnId {
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        let user = users::ensure_user(conn, &phone, FirstContactRole::Member, time_at(0)).unwrap();
        let conversation = conversations::start_conversation(conn, user, "Nov 20", time_at(0)).unwrap();
        let plan = TurnPlan::for_responder(Responder::Model);
        let new_turn = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
        turn_lifecycle::create_turn(conn, new_turn, time_at(0)).unwrap()
    }

    /// Returns how often an unfinished turn counts as resumed after starts at these seconds.
    fn count_resumes(starts: &[i64]) -> i64 {
        let conn = &mut scratch();
        create_turn(conn);
        for second in starts {
            recover_interrupted_work(conn, time_at(*second)).unwrap();
        }
        turns::table.select(turns::attempts).first(conn).unwrap()
    }

    #[test]
    fn starts_within_ten_seconds_count_once() {
        assert_eq!(count_resumes(&[100]), 1);
        assert_eq!(count_resumes(&[100, 101, 105, 109]), 1);
        assert_eq!(count_resumes(&[100, 110, 120]), 3);
    }

    #[test]
    fn rapid_restarts_count_every_ten_seconds() {
        let starts: Vec<i64> = (100..150).collect();
        assert_eq!(count_resumes(&starts), 5);
    }

    #[test]
    fn start_after_a_clock_step_back_counts() {
        assert_eq!(count_resumes(&[100, 40]), 2);
    }

    #[test]
    fn time_between_the_last_record_and_the_start_extends_the_deadline() {
        let conn = &mut scratch();
        let turn = create_turn(conn);
        let deadline = |conn: &mut Conn| -> i64 {
            let deadline: Timestamp = turns::table.find(turn).select(turns::deadline_at).first(conn).unwrap();
            deadline.as_second()
        };
        let first_deadline = deadline(conn);
        let attempt = AttemptId { turn, step: 0, attempt: 1 };
        model_steps::start_attempt(conn, attempt, Responder::Model, "model", time_at(10)).unwrap();
        let arguments = ToolArguments::Object(serde_json::Map::new());
        let call = NewCall { name: "search_media".to_owned(), arguments, effect: EffectLevel::Read };
        let response = RecordedResponse {
            text: String::new(),
            thinking: String::new(),
            stop: StopReason::Other("tool_calls".to_owned()),
            calls: vec![call],
            tokens: None,
            response_id: None,
            is_private: false,
        };
        model_steps::complete_attempt(conn, attempt, &response, time_at(20)).unwrap();

        recover_interrupted_work(conn, time_at(50)).unwrap();
        assert_eq!(deadline(conn) - first_deadline, 30);
    }
}
