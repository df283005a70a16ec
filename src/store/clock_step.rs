//! Correction of stored times after a step of the wall clock. The times of work that waits for a retry are shifted with
//! the clock, so that the length of the wait is unchanged. Access and prompts that must not outlast their period end if
//! the clock was set back.

use diesel::dsl::max;
use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::codec::ms;
use super::confirmation::approvals::OPEN as OPEN_APPROVAL;
use super::confirmation::pending_action::{self, CloseReason};
use super::memory::indexing_queue::PENDING as TO_INDEX;
use super::queue::inbound_messages;
use super::queue::outbox::OPEN;
use super::schema::{
    additions, agent_responses, approvals, arr_events, inbound_events, instance, link_codes, offsets, outbox,
    pauses, pending_actions, requests, sessions, sign_in_links, tool_call_items, tool_calls, turns,
    user_addresses, users,
};
use super::{Conn, agent_calls};
use crate::conversation::routing::inbound_message::MessageSource;
use crate::conversation::transcript::UserId;

/// Loads the latest time that an earlier run has stored, from values that are cheap to read; `None` before the first
/// run.
pub fn load_last_stored_time(conn: &mut Conn) -> QueryResult<Option<Timestamp>> {
    let run: Option<(Timestamp, Option<Timestamp>)> =
        instance::table.select((instance::started_at, instance::seen_at)).first(conn).optional()?;
    let Some((started_at, seen_at)) = run else { return Ok(None) };
    // Each query reads few rows, and a start that finds one of them ahead of the clock shifts or ends it.
    let latest: [Option<Timestamp>; 6] = [
        outbox::table.filter(OPEN).select(max(outbox::updated_at)).first(conn)?,
        inbound_events::table
            .filter(inbound_messages::PENDING)
            .select(max(inbound_events::received_at))
            .first(conn)?,
        pending_actions::table.select(max(pending_actions::armed_at)).first(conn)?,
        approvals::table.filter(OPEN_APPROVAL).select(max(approvals::created_at)).first(conn)?,
        sessions::table.select(max(sessions::last_seen_at)).first(conn)?,
        sign_in_links::table.select(max(sign_in_links::created_at)).first(conn)?,
    ];
    Ok(latest.into_iter().chain([seen_at, Some(started_at)]).flatten().max())
}

/// Shifts the times of waiting work by the step of the clock. It must run before any time is stored after the step,
/// because such a time would be shifted too.
pub fn rebase_waits(conn: &mut Conn, step: SignedDuration) -> QueryResult<()> {
    let step_ms = i64::try_from(step.as_millis()).unwrap_or(0);
    rebase_outbox(conn, step_ms)?;
    rebase_inbound_messages(conn, step_ms)?;
    diesel::update(requests::table.filter(requests::next_try_at.is_not_null()))
        .set((
            requests::next_try_at.eq(requests::next_try_at + step_ms),
            // The time limit of an addition is counted from its request.
            requests::created_at.eq(requests::created_at + step_ms),
        ))
        .execute(conn)?;
    diesel::update(turns::table.filter(turns::finished_at.is_null()))
        .set((
            turns::deadline_at.eq(turns::deadline_at + step_ms),
            // Downtime is counted from this time.
            turns::updated_at.eq(turns::updated_at + step_ms),
        ))
        .execute(conn)?;
    // Recovery waits until an interrupted request has had time to arrive, counted from the start of the call.
    let started = tool_calls::started_at.is_not_null().and(tool_calls::finished_at.is_null());
    let unfinished = turns::table.filter(turns::finished_at.is_null()).select(turns::id);
    diesel::update(tool_calls::table.filter(tool_calls::turn_id.eq_any(unfinished).and(started)))
        .set(tool_calls::started_at.eq(tool_calls::started_at + step_ms))
        .execute(conn)?;
    let unfinished = turns::table.filter(turns::finished_at.is_null()).select(turns::id);
    let confirmed = tool_calls::table
        .filter(tool_calls::run_turn_id.eq_any(unfinished.nullable()))
        .select(tool_calls::id);
    let items =
        tool_call_items::tool_call_id.eq_any(confirmed).and(tool_call_items::started_at.is_not_null());
    diesel::update(tool_call_items::table.filter(items))
        .set(tool_call_items::started_at.eq(tool_call_items::started_at + step_ms))
        .execute(conn)?;
    diesel::update(arr_events::table.filter(arr_events::handled_at.is_null()))
        .set(arr_events::received_at.eq(arr_events::received_at + step_ms))
        .execute(conn)?;
    diesel::update(agent_responses::table.filter(TO_INDEX))
        .set(agent_responses::not_before.eq(agent_responses::not_before + step_ms))
        .execute(conn)
        .map(drop)
}

/// Shifts the times of outbound messages that are to be resent or looked up, and the times from which their age is
/// counted.
fn rebase_outbox(conn: &mut Conn, step_ms: i64) -> QueryResult<()> {
    diesel::update(outbox::table.filter(OPEN))
        .set((
            outbox::deadline_at.eq(outbox::deadline_at + step_ms),
            outbox::unknown_at.eq(outbox::unknown_at + step_ms),
            // No stored time may remain ahead of the clock.
            outbox::updated_at.eq(outbox::updated_at + step_ms),
        ))
        .execute(conn)?;
    // Includes notifications that wait for an hour of the day: the caller reschedules them afterwards.
    diesel::update(outbox::table.filter(OPEN.and(outbox::not_before.gt(ms(Timestamp::UNIX_EPOCH)))))
        .set(outbox::not_before.eq(outbox::not_before + step_ms))
        .execute(conn)?;
    if step_ms < 0 {
        // Lookups search the carrier's list from this time, so it must be at or before the carrier's time of the
        // message.
        diesel::update(outbox::table.filter(OPEN))
            .set(outbox::created_at.eq(outbox::created_at + step_ms))
            .execute(conn)?;
    }
    Ok(())
}

/// Shifts the times of messages that no turn has processed. Messages received before the clock was set back remain
/// before those received after it.
fn rebase_inbound_messages(conn: &mut Conn, step_ms: i64) -> QueryResult<()> {
    diesel::update(inbound_events::table.filter(inbound_messages::PENDING))
        .set((
            inbound_events::not_before.eq(inbound_events::not_before + step_ms),
            inbound_events::received_at.eq(inbound_events::received_at + step_ms),
        ))
        .execute(conn)?;
    // Messages from the carrier's list are dated by the carrier and need no shift.
    diesel::update(
        inbound_events::table
            .filter(inbound_messages::PENDING.and(inbound_events::via.ne(MessageSource::Recovery))),
    )
    .set(inbound_events::provider_at.eq(inbound_events::provider_at + step_ms))
    .execute(conn)
    .map(drop)
}

/// Ends access and prompts that must not outlast their period, after the clock was set back by `step`: open
/// confirmation prompts, sessions and sign-in links. It also corrects the other stored times that are ahead of the
/// clock, such as those of quotas, pauses and the carrier cursor. Approvals end with
/// [`super::confirmation::approvals::expire_all_approvals`], which returns the approvals whose users must be notified.
/// Opt-out and opt-in keywords dated ahead of the clock count as received now, so that the next one is later.
pub fn end_time_limited_access(conn: &mut Conn, step: SignedDuration, now: Timestamp) -> QueryResult<()> {
    let open_actions: Vec<(UserId, Option<Timestamp>)> = pending_actions::table
        .filter(pending_actions::expires_at.is_not_null())
        .select((pending_actions::user_id, pending_actions::expires_at))
        .load(conn)?;
    for (user, expires_at) in open_actions {
        let ended_at = expires_at.unwrap_or(now);
        pending_action::close_pending_action(conn, user, CloseReason::Expired, ended_at)?;
    }
    diesel::delete(sessions::table).execute(conn)?;
    diesel::delete(sign_in_links::table).execute(conn)?;
    diesel::delete(link_codes::table).execute(conn)?;
    let step_ms = i64::try_from(step.as_millis()).unwrap_or(0);
    diesel::update(additions::table).set(additions::at.eq(additions::at + step_ms)).execute(conn)?;
    agent_calls::shift_times(conn, step_ms, now)?;
    diesel::update(user_addresses::table.filter(user_addresses::opt_word_at.gt(ms(now))))
        .set(user_addresses::opt_word_at.eq(ms(now)))
        .execute(conn)?;
    diesel::update(users::table.filter(users::waiting_since.gt(ms(now))))
        .set(users::waiting_since.eq(ms(now)))
        .execute(conn)?;
    // It is unknown how long the first request has been stored.
    diesel::update(users::table.filter(users::first_request_at.gt(ms(now))))
        .set((users::first_request.eq(None::<String>), users::first_request_at.eq(None::<Timestamp>)))
        .execute(conn)?;
    // Otherwise every message would count as sent before the end of the pause.
    let ahead = pauses::begun_at.gt(ms(now)).or(pauses::ended_at.gt(ms(now)));
    diesel::update(pauses::table.filter(ahead))
        .set((
            pauses::begun_at.eq(pauses::begun_at + step_ms),
            pauses::ended_at.eq(pauses::ended_at + step_ms),
        ))
        .execute(conn)?;
    // Messages since the step are dated before the cursor of the carrier's list.
    diesel::update(offsets::table).set(offsets::cursor_at.eq(offsets::cursor_at + step_ms)).execute(conn)?;
    diesel::update(instance::table.filter(instance::started_at.gt(ms(now))))
        .set(instance::started_at.eq(ms(now)))
        .execute(conn)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::super::confirmation::approvals::{self, ApprovalKind, NewApproval};
    use super::super::people::addresses::{self, OptOutcome, OptTarget};
    use super::super::people::users::{self, FirstContactRole};
    use super::super::queue::delivery_reports::AcceptancePolicy;
    use super::super::queue::outbox::{NewOutboundMessage, OutboundKind, SendClaim};
    use super::super::queue::source_cursors::{self, SourceCursor};
    use super::super::queue::{outbox, outbox_schedule};
    use super::*;
    use crate::conversation::people::admin_commands::ApprovalCode;
    use crate::conversation::transcript::{Address, OutboxId, PhoneNumber};
    use crate::store::boot::{self, Downtime};
    use crate::store::console_access::{self, SignInLinkOutcome, TokenHash};
    use crate::store::scratch;

    const HOUR: SignedDuration = SignedDuration::from_hours(1);
    const DAY: SignedDuration = SignedDuration::from_hours(24);
    const SECOND: SignedDuration = SignedDuration::from_secs(1);

    fn noon() -> Timestamp {
        "2026-11-20T12:00:00Z".parse().unwrap()
    }

    fn acceptance_policy() -> AcceptancePolicy {
        AcceptancePolicy { confirm_for: SignedDuration::from_mins(5), zone: TimeZone::UTC, quiet: None }
    }

    fn create_user(conn: &mut Conn) -> UserId {
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        users::ensure_user(conn, &phone, FirstContactRole::Member, noon()).unwrap()
    }

    /// Queues a message whose first attempt failed at noon and which is retried ten seconds later.
    fn queue_postponed_message(conn: &mut Conn) -> OutboxId {
        let message = NewOutboundMessage {
            key: "turn:1:reply".into(),
            user: create_user(conn),
            address: None,
            turn: None,
            kind: OutboundKind::Reply,
            to: Address::new("+15550100001"),
            from: Address::new("+15550100000"),
            body: "Hello.".into(),
            media: None,
            reacts_to: None,
            quotes: None,
            room: None,
            vote: None,
            segments: 1,
        };
        let id = outbox::queue_message(conn, &message, noon()).unwrap();
        assert!(matches!(
            outbox::claim_message(conn, id, &acceptance_policy(), noon()).unwrap(),
            SendClaim::Send(_)
        ));
        outbox::postpone_message(conn, id, noon() + 10 * SECOND, "busy", noon()).unwrap();
        id
    }

    #[test]
    fn retry_delay_is_unchanged_by_any_clock_step() {
        for step in [-DAY, -HOUR, HOUR, DAY] {
            let mut conn = scratch();
            let id = queue_postponed_message(&mut conn);
            rebase_waits(&mut conn, step).unwrap();
            let count_due =
                |conn: &mut Conn, at| outbox_schedule::load_outbox_schedule(conn, &[], at).unwrap().due.len();
            let shifted_noon = noon() + step;
            assert_eq!(
                [9, 10].map(|seconds| count_due(&mut conn, shifted_noon + seconds * SECOND)),
                [0, 1],
                "{step}"
            );
            let claimed =
                outbox::claim_message(&mut conn, id, &acceptance_policy(), shifted_noon + 6 * HOUR).unwrap();
            assert!(matches!(claimed, SendClaim::Send(_)), "{step}: the six-hour limit has not passed");
        }
    }

    #[test]
    fn clock_behind_the_last_run_makes_downtime_uncertain() {
        let mut conn = scratch();
        assert_eq!(boot::recover_interrupted_work(&mut conn, noon()), Ok(Downtime::Known));
        boot::record_heartbeat(&mut conn, noon() + HOUR).unwrap();
        assert_eq!(boot::recover_interrupted_work(&mut conn, noon() + 2 * HOUR), Ok(Downtime::Known));
        assert_eq!(
            boot::recover_interrupted_work(&mut conn, noon() - HOUR),
            Ok(Downtime::Uncertain(-3 * HOUR))
        );
        assert_eq!(
            boot::recover_interrupted_work(&mut conn, noon()),
            Ok(Downtime::Known),
            "the next start is compared with this one"
        );
    }

    #[test]
    fn session_ahead_of_the_clock_makes_downtime_uncertain() {
        let mut conn = scratch();
        boot::recover_interrupted_work(&mut conn, noon()).unwrap();
        console_access::open_session(&mut conn, TokenHash([1; 32]), noon() + HOUR, noon() + DAY).unwrap();
        assert_eq!(
            boot::recover_interrupted_work(&mut conn, noon() + SECOND),
            Ok(Downtime::Uncertain(SECOND - HOUR))
        );
    }

    #[test]
    fn session_link_and_code_end_after_a_clock_step_back() {
        let mut conn = scratch();
        let (session, link) = (TokenHash([1; 32]), TokenHash([2; 32]));
        console_access::open_session(&mut conn, session, noon(), noon() + DAY).unwrap();
        console_access::create_sign_in_link(&mut conn, link, noon(), noon() + HOUR).unwrap();
        let approval = NewApproval { user: create_user(&mut conn), kind: &ApprovalKind::Join, call: None };
        let code = ApprovalCode::new(4821).unwrap();
        approvals::request_approval(&mut conn, &approval, &mut || code.clone(), noon()).unwrap();

        let now = noon() - HOUR;
        end_time_limited_access(&mut conn, -HOUR, now).unwrap();
        assert_eq!(approvals::expire_all_approvals(&mut conn, now).unwrap().len(), 1);
        assert_eq!(console_access::load_session_last_use(&mut conn, session, now), Ok(None));
        assert_eq!(console_access::redeem_sign_in_link(&mut conn, link, now), Ok(SignInLinkOutcome::Invalid));
        let lookup = approvals::find_approval_by_code(&mut conn, &code, now).unwrap();
        assert_eq!(lookup, approvals::CodeLookup::Ended(approvals::ApprovalOutcome::Expired, None));
    }

    #[test]
    fn source_cursor_moves_back_with_the_clock() {
        let mut conn = scratch();
        boot::recover_interrupted_work(&mut conn, noon()).unwrap();
        let cursor = |read_until| SourceCursor { read_until, mark: "as it was".to_owned() };
        source_cursors::store_source_cursor(&mut conn, "twilio:+15550100000", &cursor(noon()), noon())
            .unwrap();
        end_time_limited_access(&mut conn, -HOUR, noon() - HOUR).unwrap();
        boot::record_heartbeat(&mut conn, noon() - HOUR).unwrap();
        assert_eq!(
            source_cursors::load_source_cursor(&mut conn, "twilio:+15550100000").unwrap(),
            Some(cursor(noon() - HOUR))
        );
        assert_eq!(boot::recover_interrupted_work(&mut conn, noon() - HOUR + SECOND), Ok(Downtime::Known));
    }

    #[test]
    fn opt_out_after_a_clock_step_back_overrides_an_earlier_opt_in() {
        let mut conn = scratch();
        let ann = create_user(&mut conn);
        addresses::opt_in(&mut conn, OptTarget { user: ann, address: None }, noon(), noon()).unwrap();
        let now = noon() - HOUR;
        assert_eq!(
            addresses::opt_out(&mut conn, OptTarget { user: ann, address: None }, now, now),
            Ok(OptOutcome::Overtaken)
        );
        end_time_limited_access(&mut conn, -HOUR, now).unwrap();
        assert_eq!(
            addresses::opt_out(&mut conn, OptTarget { user: ann, address: None }, now + SECOND, now + SECOND),
            Ok(OptOutcome::Changed)
        );
    }
}
