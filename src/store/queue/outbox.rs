//! Outbox: every outbound message is a row of this table, and the intent to send is stored before the message is sent.

use diesel::dsl::case_when;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::callbacks::CallbackToken;
use super::delivery_reports::AcceptancePolicy;
pub use super::due_message::DueMessage;
use super::due_message::DueMessageRow;
use super::outbox_events::{ChangedMessage, record_changed_messages};
use super::queued_claim::FirstState;
use super::suppression::suppress_message;
use super::{lookups, notifications, opt_out_confirmation, outbox_schedule};
use crate::conversation::channel::Channel;
use crate::conversation::text::message_format;
use crate::conversation::transcript::{
    Address, AddressId, ConversationId, OutboxId, TurnId, UserId, UserStatus,
};
use crate::conversation::votes::VoteMessage;
use crate::store::codec::{convert_integer, ms};
use crate::store::column_types::stored_enum;
use crate::store::confirmation::pending_action;
use crate::store::conversation::conversations;
use crate::store::database::literal_sql::literal_sql;
use crate::store::database::statement_cache::{CacheStatement, cached_update};
use crate::store::people::addresses;
use crate::store::schema::{outbox, user_addresses, users};
use crate::store::stream::recording;
use crate::store::turns::daily_budget::Day;
use crate::store::turns::{daily_budget, progress_message};
use crate::store::{Conn, boot, votes};

/// Age after which an unsent message is too old to be sent.
pub(in crate::store) const MAX_SEND_AGE: SignedDuration = SignedDuration::from_hours(6);

literal_sql! {
    /// Condition of open rows: neither accepted, failed nor suppressed.
    pub(in crate::store) const OPEN =
        "(outbox.state = 'queued' OR outbox.state = 'attempting' OR outbox.state = 'unknown')";
}

stored_enum! {
    pub enum OutboundKind {
        Reply = "reply",
        ConfirmPrompt = "confirm_prompt",
        /// Notification, which the user did not request at that moment. It is never sent between a confirmation prompt
        /// and its reply.
        Notice = "notice",
    }
}

stored_enum! {
    /// State of an outbound message.
    pub enum OutboxState {
        Queued = "queued",
        /// The message is being sent to the carrier.
        Attempting = "attempting",
        /// The carrier may have accepted the message.
        Unknown = "unknown",
        Accepted = "accepted",
        Failed = "failed",
        /// The message will not be sent.
        Suppressed = "suppressed",
    }
}

/// States of a message that is never sent again.
pub(in crate::store) const SETTLED: [OutboxState; 3] =
    [OutboxState::Accepted, OutboxState::Failed, OutboxState::Suppressed];

#[derive(Debug, Clone)]
pub struct NewOutboundMessage {
    /// Idempotency key of the message, such as `turn:42:reply`.
    pub key: String,
    pub user: UserId,
    /// Address of the user; `None` if the message is only shown.
    pub address: Option<AddressId>,
    /// Turn that wrote the message; `None` for a message that no turn wrote.
    pub turn: Option<TurnId>,
    pub kind: OutboundKind,
    pub to: Address,
    pub from: Address,
    pub body: String,
    /// URL of a picture that is sent with the message.
    pub media: Option<String>,
    /// Channel's id of the received message that the message is a reaction to. The body is the emoji.
    pub reacts_to: Option<String>,
    /// Channel's id of the received message that the message quotes.
    pub quotes: Option<String>,
    /// Room to which the message is sent; `None` for a private chat.
    pub room: Option<UserId>,
    /// Role of the message in a vote.
    pub vote: Option<VoteMessage>,
    pub segments: u32,
}

pub fn queue_message(conn: &mut Conn, message: &NewOutboundMessage, now: Timestamp) -> QueryResult<OutboxId> {
    queue_message_at(conn, message, now, now)
}

/// Sets the time after which a message is not sent anymore.
pub(in crate::store) fn set_deadline(conn: &mut Conn, message: OutboxId, at: Timestamp) -> QueryResult<()> {
    diesel::update(outbox::table.find(message)).set(outbox::deadline_at.eq(ms(at))).execute(conn).map(drop)
}

/// Queues a message that must not be sent before `send_at`. A reply or a prompt that nothing holds back is claimed at
/// once, and handed to the relay when the transaction is on disk.
pub fn queue_message_at(
    conn: &mut Conn,
    message: &NewOutboundMessage,
    send_at: Timestamp,
    now: Timestamp,
) -> QueryResult<OutboxId> {
    let conversation: Option<ConversationId> = match message.turn {
        Some(_) => None,
        None => conversations::select_open_conversation(message.user).first(conn).optional()?,
    };
    let first_state = FirstState::choose(conn, message, send_at, now)?;
    let (lookups_left, token) = match &first_state {
        FirstState::Queued { lookups_left } => (*lookups_left, None),
        FirstState::Claimed(token) => (0, Some(token)),
    };
    let state = if token.is_some() { OutboxState::Attempting } else { OutboxState::Queued };
    let epoch = case_when(token.is_some().into_sql::<Bool>(), boot::CURRENT_EPOCH);
    let queued: ChangedMessage = diesel::insert_into(outbox::table)
        .values((
            (
                outbox::state.eq(state),
                outbox::attempts.eq(i64::from(token.is_some())),
                outbox::callback_word.eq(token.map(CallbackToken::as_str)),
                outbox::attempt_at.eq(token.map(|_| ms(now))),
                outbox::epoch.eq(epoch),
                outbox::lookups_left.eq(lookups_left),
            ),
            outbox::dedupe_key.eq(&message.key),
            outbox::user_id.eq(message.user),
            outbox::address_id.eq(message.address),
            outbox::turn_id.eq(message.turn),
            outbox::conversation_id.eq(conversation),
            outbox::kind.eq(message.kind),
            outbox::to_addr.eq(message.to.as_str()),
            outbox::from_addr.eq(message.from.as_str()),
            outbox::body.eq(&message.body),
            outbox::media_url.eq(&message.media),
            outbox::reacts_to.eq(&message.reacts_to),
            outbox::quotes.eq(&message.quotes),
            outbox::room_id.eq(message.room),
            outbox::segments.eq(i64::from(message.segments)),
            outbox::not_before.eq(ms(if send_at > now { send_at } else { Timestamp::UNIX_EPOCH })),
            outbox::deadline_at.eq(ms(send_at + MAX_SEND_AGE)),
            outbox::created_at.eq(ms(now)),
            outbox::updated_at.eq(ms(now)),
        ))
        .returning(ChangedMessage::as_returning())
        .cached()
        .get_result(conn)?;
    queued.record_insertion(conn, now)?;
    if let Some(vote) = message.vote {
        votes::record_message(conn, (queued.id, message.user), vote)?;
    }
    if let FirstState::Claimed(token) = first_state {
        recording::record_claimed_message(DueMessage::first_attempt(queued.id, message, token));
    }
    Ok(queued.id)
}

/// Queues a message unless a message with the same key was ever queued.
pub fn queue_message_once(conn: &mut Conn, message: &NewOutboundMessage, now: Timestamp) -> QueryResult<()> {
    queue_message_once_at(conn, message, now, now)
}

/// Returns whether a message with this idempotency key was queued.
pub fn is_message_queued(conn: &mut Conn, key: &str) -> QueryResult<bool> {
    diesel::select(diesel::dsl::exists(outbox::table.filter(outbox::dedupe_key.eq(key)))).get_result(conn)
}

/// Like [`queue_message_once`], for a message that must not be sent before `send_at`.
pub fn queue_message_once_at(
    conn: &mut Conn,
    message: &NewOutboundMessage,
    send_at: Timestamp,
    now: Timestamp,
) -> QueryResult<()> {
    let queued: Option<i64> = outbox::table
        .filter(outbox::dedupe_key.eq(&message.key))
        .select(outbox::id)
        .first(conn)
        .optional()?;
    match queued {
        Some(_) => Ok(()),
        None => queue_message_at(conn, message, send_at, now).map(drop),
    }
}

/// Outcome of claiming a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendClaim {
    Send(DueMessage),
    /// The message will not be sent: it is too old or outdated, or its recipient has opted out or was blocked.
    Dropped,
    /// Another task has claimed the row, or the message must wait.
    NotReady,
}

/// Claims a message by writing the intent to send.
pub fn claim_message(
    conn: &mut Conn,
    id: OutboxId,
    policy: &AcceptancePolicy,
    now: Timestamp,
) -> QueryResult<SendClaim> {
    let row: Option<ClaimableMessageRow> = outbox::table
        .inner_join(users::table)
        .filter(outbox::id.eq(id))
        // Another task may have tried and postponed the row since the schedule was loaded.
        .filter(outbox::state.eq(OutboxState::Queued).and(outbox::not_before.le(ms(now))))
        .filter(lookups::MAY_BE_SENT)
        .select(ClaimableMessageRow::as_select())
        .first(conn)
        .optional()?;
    let Some(row) = row else { return Ok(SendClaim::NotReady) };
    let is_notice = row.kind == OutboundKind::Notice;
    if is_notice && outbox_schedule::load_prompted_users(conn, now)?.contains_key(&row.user_id) {
        return Ok(SendClaim::NotReady);
    }
    let is_outdated = is_notice && progress_message::is_outdated_progress_message(conn, id)?;
    // The confirmation of an opt-out is the last message to its user.
    let is_opted_out = row.is_opted_out() && !opt_out_confirmation::is_opt_out_confirmation(&row.dedupe_key);
    if is_opted_out || row.status == UserStatus::Blocked || is_outdated {
        suppress_message(conn, id, now)?;
        return Ok(SendClaim::Dropped);
    }
    if row.deadline_at < now {
        fail_message(conn, id, &SendFailure { code: None, meaning: "not sent in time" }, now)?;
        return Ok(SendClaim::Dropped);
    }
    if let Some(quiet_end) = notifications::quiet_hours_end(conn, row.user_id, &row.dedupe_key, policy, now)?
    {
        // The message was queued before the quiet hours and waited for a reply or for the carrier.
        notifications::postpone_notification(conn, id, quiet_end, now)?;
        return Ok(SendClaim::NotReady);
    }
    let token = row.callback_word.unwrap_or_else(|| CallbackToken::random().as_str().to_owned());
    let (row, claimed): (DueMessageRow, ChangedMessage) = cached_update(outbox::table.find(id))
        .set((
            outbox::state.eq(OutboxState::Attempting),
            outbox::attempts.eq(row.attempts + 1),
            outbox::callback_word.eq(token),
            outbox::attempt_at.eq(ms(now)),
            outbox::epoch.eq(boot::CURRENT_EPOCH.nullable()),
            outbox::updated_at.eq(ms(now)),
        ))
        .returning((DueMessageRow::as_returning(), ChangedMessage::as_returning()))
        .get_result(conn)?;
    claimed.record_change(conn, now)?;
    Ok(SendClaim::Send(row.into_due_message()?))
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct ClaimableMessageRow {
    user_id: UserId,
    #[diesel(select_expression = is_address_opted_out())]
    is_address_opted_out: Option<bool>,
    #[diesel(select_expression = addresses::is_opted_out())]
    is_user_opted_out: bool,
    #[diesel(select_expression = users::status)]
    status: UserStatus,
    kind: OutboundKind,
    dedupe_key: String,
    deadline_at: Timestamp,
    attempts: i64,
    callback_word: Option<String>,
}

/// Condition that the address in the row of `outbox` has opted out; NULL for a message without an address.
#[diesel::dsl::auto_type]
fn is_address_opted_out() -> _ {
    user_addresses::table
        .filter(user_addresses::id.nullable().eq(outbox::address_id))
        .select(user_addresses::opted_out_at.is_not_null())
        .single_value()
}

impl ClaimableMessageRow {
    fn is_opted_out(&self) -> bool {
        self.is_address_opted_out.unwrap_or(self.is_user_opted_out)
    }
}

/// Returns whether a message is a notification that expects no reply.
pub(in crate::store) fn expects_no_reply(kind: OutboundKind, body: &str) -> bool {
    kind == OutboundKind::Notice && !message_format::asks_question(body)
}

/// Carrier's receipt for an accepted message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedMessage<'a> {
    pub sid: &'a str,
    pub created_at: Option<Timestamp>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct AcceptedMessageRow {
    user_id: UserId,
    segments: i64,
    from_addr: Address,
    kind: OutboundKind,
    lookups_left: i64,
}

/// Outcome of recording an acceptance, which counts only when it is first recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptanceOutcome {
    First { kind: OutboundKind, channel: Channel, segments: u32 },
    Known,
}

/// Records that the carrier has accepted a message. The segments of the message are counted, and a confirmation prompt
/// is open from now on.
pub fn record_acceptance(
    conn: &mut Conn,
    id: OutboxId,
    accepted: &AcceptedMessage<'_>,
    policy: &AcceptancePolicy,
    now: Timestamp,
) -> QueryResult<AcceptanceOutcome> {
    let row: Option<(AcceptedMessageRow, ChangedMessage)> =
        cached_update(outbox::table.find(id).filter(outbox::state.ne(OutboxState::Accepted)))
            .set((
                outbox::state.eq(OutboxState::Accepted),
                outbox::provider_sid.eq(accepted.sid),
                outbox::provider_created_at.eq(accepted.created_at),
                outbox::accepted_at.eq(ms(now)),
                outbox::updated_at.eq(ms(now)),
            ))
            .returning((AcceptedMessageRow::as_returning(), ChangedMessage::as_returning()))
            .get_result(conn)
            .optional()?;
    // `None` if a status callback has already recorded the acceptance.
    let Some((row, changed)) = row else { return Ok(AcceptanceOutcome::Known) };
    changed.record_change(conn, now)?;
    let channel = row.from_addr.channel();
    if channel.is_charged() {
        let day = Day::from_timestamp(now, &policy.zone);
        daily_budget::count_segments(conn, row.user_id, &day, row.segments)?;
    }
    // A message that was found by the lookup before sending was sent by a run that is missing from this database. Its
    // confirmation prompt has been open since then.
    let was_looked_up = row.lookups_left > 0 && channel.keeps_records();
    let opened_at = accepted.created_at.filter(|at| was_looked_up && *at < now).unwrap_or(now);
    if row.kind == OutboundKind::ConfirmPrompt && !channel.opens_prompts_when_sent() {
        pending_action::arm_pending_action(conn, id, policy.confirm_for, opened_at)?;
    }
    Ok(AcceptanceOutcome::First { kind: row.kind, channel, segments: convert_integer(row.segments)? })
}

/// Postpones a message that was certainly not accepted. It is retried at `not_before`, unless a status report has
/// meanwhile proved its acceptance.
pub fn postpone_message(
    conn: &mut Conn,
    id: OutboxId,
    not_before: Timestamp,
    reason: &str,
    now: Timestamp,
) -> QueryResult<()> {
    let changed = cached_update(outbox::table.find(id).filter(outbox::state.eq(OutboxState::Attempting)))
        .set((
            outbox::state.eq(OutboxState::Queued),
            outbox::not_before.eq(ms(not_before)),
            outbox::error.eq(json!({ "meaning": reason }).to_string()),
            outbox::updated_at.eq(ms(now)),
        ))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)
}

/// Marks the delivery status of a message as unknown. The message is not sent again until a lookup resolves the status.
pub fn mark_message_unknown(conn: &mut Conn, id: OutboxId, reason: &str, now: Timestamp) -> QueryResult<()> {
    let changed = cached_update(outbox::table.find(id).filter(outbox::state.eq(OutboxState::Attempting)))
        .set((
            outbox::state.eq(OutboxState::Unknown),
            outbox::not_before.eq(ms(now)),
            outbox::looks.eq(0),
            outbox::unknown_at.eq(ms(now)),
            outbox::error.eq(json!({ "meaning": reason }).to_string()),
            outbox::updated_at.eq(ms(now)),
        ))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)
}

/// Returns the index of the first of these carrier ids that belongs to no other message.
pub fn find_first_unclaimed(conn: &mut Conn, sids: &[String]) -> QueryResult<Option<usize>> {
    // Each id is a separate query: a statement with a list is prepared again at each use.
    for (index, sid) in sids.iter().enumerate() {
        let claimed: Option<i64> =
            outbox::table.filter(outbox::provider_sid.eq(sid)).select(outbox::id).first(conn).optional()?;
        if claimed.is_none() {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Reason why a message will never be sent, shown to the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendFailure<'a> {
    pub code: Option<u32>,
    pub meaning: &'a str,
}

pub fn fail_message(
    conn: &mut Conn,
    id: OutboxId,
    failure: &SendFailure<'_>,
    now: Timestamp,
) -> QueryResult<()> {
    let changed = cached_update(outbox::table.find(id).filter(outbox::state.ne(OutboxState::Accepted)))
        .set((
            outbox::state.eq(OutboxState::Failed),
            outbox::error.eq(json!({ "code": failure.code, "meaning": failure.meaning }).to_string()),
            outbox::updated_at.eq(ms(now)),
        ))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)
}

/// Counts the messages that are currently being sent to the carrier.
pub fn count_messages_in_flight(conn: &mut Conn) -> QueryResult<i64> {
    outbox::table.filter(OPEN.and(outbox::state.eq(OutboxState::Attempting))).count().get_result(conn)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::tz::TimeZone;

    use super::super::lookups::{
        LookupCount, LookupOutcome, UnrecordedOutcome, load_unresolved_message, record_unsuccessful_lookup,
    };
    use super::*;
    use crate::conversation::notifications::quiet_hours::QuietHours;
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::people::users::{self as people, FirstContactRole};
    use crate::store::schema::usage;
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn acceptance_policy() -> AcceptancePolicy {
        AcceptancePolicy { confirm_for: SignedDuration::from_mins(5), zone: TimeZone::UTC, quiet: None }
    }

    /// Queues a message that is ready to be sent.
    fn queue_test_message(conn: &mut Conn, kind: OutboundKind, key: &str) -> OutboxId {
        let user = people::ensure_user(
            conn,
            PhoneNumber::parse("+15550100001").unwrap(),
            FirstContactRole::Member,
            NOW,
        );
        let message = NewOutboundMessage {
            key: key.into(),
            user: user.unwrap(),
            address: None,
            turn: None,
            kind,
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
        queue_message(conn, &message, NOW).unwrap()
    }

    #[test]
    fn message_to_a_user_blocked_meanwhile_is_dropped() {
        let mut conn = scratch();
        let id = queue_test_message(&mut conn, OutboundKind::Reply, "turn:1:reply");
        diesel::update(users::table).set(users::status.eq(UserStatus::Blocked)).execute(&mut conn).unwrap();
        assert_eq!(claim_message(&mut conn, id, &acceptance_policy(), NOW).unwrap(), SendClaim::Dropped);
    }

    #[test]
    fn notification_waits_for_a_prompt_queued_meanwhile() {
        use diesel::connection::SimpleConnection;

        let mut conn = scratch();
        let prompt = queue_test_message(&mut conn, OutboundKind::ConfirmPrompt, "turn:1:question");
        let notification = queue_test_message(&mut conn, OutboundKind::Notice, "ready:1");
        let insert_action = format!(
            "PRAGMA foreign_keys=OFF;
             INSERT INTO pending_actions (user_id, tool_call_id, conversation_id, summary, prompt_outbox_id, created_at)
             SELECT user_id, 1, 1, 'Delete Dune (2021)?', id, 0 FROM outbox WHERE id = {}",
            prompt.0
        );
        conn.batch_execute(&insert_action).unwrap();
        assert_eq!(
            claim_message(&mut conn, notification, &acceptance_policy(), NOW).unwrap(),
            SendClaim::NotReady
        );
        assert!(matches!(
            claim_message(&mut conn, prompt, &acceptance_policy(), NOW).unwrap(),
            SendClaim::Send(_)
        ));
    }

    #[test]
    fn notification_queued_before_the_quiet_hours_waits_for_their_end() {
        let night_policy = AcceptancePolicy { quiet: QuietHours::new(22, 7), ..acceptance_policy() };
        for key in ["ready:1", "trouble:1", "request:1"] {
            let mut conn = scratch();
            let notification = queue_test_message(&mut conn, OutboundKind::Notice, key);
            let quiet_end = NOW + SignedDuration::from_hours(7);
            assert_eq!(
                claim_message(&mut conn, notification, &night_policy, NOW).unwrap(),
                SendClaim::NotReady,
                "{key}"
            );
            assert_eq!(
                outbox_schedule::load_outbox_schedule(&mut conn, &[], NOW).unwrap().next,
                Some(quiet_end),
                "{key}"
            );
            assert!(
                matches!(
                    claim_message(&mut conn, notification, &night_policy, quiet_end).unwrap(),
                    SendClaim::Send(_)
                ),
                "{key}"
            );
        }
        let mut conn = scratch();
        let prompt = queue_test_message(&mut conn, OutboundKind::Notice, "approval:1");
        assert!(matches!(claim_message(&mut conn, prompt, &night_policy, NOW).unwrap(), SendClaim::Send(_)));
    }

    #[test]
    fn prompt_waits_for_a_picture_being_sent() {
        let mut conn = scratch();
        let picture = queue_test_message(&mut conn, OutboundKind::Notice, "poster:1");
        diesel::update(outbox::table).set(outbox::media_url.eq("http://poster")).execute(&mut conn).unwrap();
        assert!(matches!(
            claim_message(&mut conn, picture, &acceptance_policy(), NOW).unwrap(),
            SendClaim::Send(_)
        ));
        let prompt = queue_test_message(&mut conn, OutboundKind::ConfirmPrompt, "turn:1:question");
        let due = |conn: &mut Conn| outbox_schedule::load_outbox_schedule(conn, &[], NOW).unwrap().due;
        assert_eq!(due(&mut conn), []);
        accept_test_message(&mut conn, picture);
        assert_eq!(due(&mut conn), [(prompt, outbox_schedule::OutboxTask::Send)]);
    }

    /// Creates a message whose delivery status is unknown.
    fn create_unresolved_message(conn: &mut Conn) -> OutboxId {
        let id = queue_test_message(conn, OutboundKind::Reply, "turn:1:reply");
        claim_message(conn, id, &acceptance_policy(), NOW).unwrap();
        mark_message_unknown(conn, id, "no answer", NOW).unwrap();
        id
    }

    #[test]
    fn concurrent_lookups_count_once() {
        let mut conn = scratch();
        let id = create_unresolved_message(&mut conn);
        let mut record_lookup = |earlier| {
            let count = LookupCount { earlier, required: 2, pause: Duration::ZERO };
            record_unsuccessful_lookup(&mut conn, id, count, NOW).unwrap()
        };
        assert_eq!(
            [record_lookup(0), record_lookup(0), record_lookup(1)],
            [LookupOutcome::LookAgain, LookupOutcome::LookAgain, LookupOutcome::SendAgain]
        );
    }

    #[test]
    fn lookups_stay_apart_after_the_clock_was_set_forward() {
        let mut conn = scratch();
        let id = create_unresolved_message(&mut conn);
        let delays = [Duration::from_secs(15), Duration::from_secs(75)];
        let later = NOW + SignedDuration::from_mins(10);
        let count = LookupCount { earlier: 0, required: 2, pause: Duration::from_secs(60) };
        record_unsuccessful_lookup(&mut conn, id, count, later).unwrap();
        let schedule = outbox_schedule::load_outbox_schedule(&mut conn, &delays, later).unwrap();
        let next = later + SignedDuration::from_secs(60);
        assert_eq!(schedule, outbox_schedule::OutboxSchedule { due: Vec::new(), next: Some(next) });
        let is_due = |conn: &mut Conn, at| load_unresolved_message(conn, id, at).unwrap().is_some();
        assert_eq!([is_due(&mut conn, later), is_due(&mut conn, next)], [false, true]);
    }

    #[test]
    fn message_of_unknown_fate_without_a_record_is_sent_twice_at_most() {
        let outcomes = |kind| {
            let mut conn = scratch();
            let id = queue_test_message(&mut conn, kind, "turn:1:reply");
            let mut try_to_send = || {
                let claim = claim_message(&mut conn, id, &acceptance_policy(), NOW).unwrap();
                let SendClaim::Send(due) = claim else { panic!("{claim:?}") };
                mark_message_unknown(&mut conn, id, "no answer", NOW).unwrap();
                (due.token, lookups::resolve_unrecorded_message(&mut conn, id, NOW).unwrap())
            };
            let (first_token, first) = try_to_send();
            if first == UnrecordedOutcome::GivenUp {
                return vec![first];
            }
            let (second_token, second) = try_to_send();
            assert_ne!(first_token, second_token, "the buttons of the first copy are void");
            vec![first, second]
        };
        let twice = [UnrecordedOutcome::SendAgain, UnrecordedOutcome::GivenUp];
        assert_eq!(outcomes(OutboundKind::Reply), twice);
        assert_eq!(outcomes(OutboundKind::ConfirmPrompt), twice);
        assert_eq!(outcomes(OutboundKind::Notice), [UnrecordedOutcome::GivenUp]);
    }

    fn accept_test_message(conn: &mut Conn, id: OutboxId) {
        let accepted = AcceptedMessage { sid: "SM1", created_at: None };
        record_acceptance(conn, id, &accepted, &acceptance_policy(), NOW).unwrap();
    }

    #[test]
    fn only_phone_messages_cost_segments() {
        let senders = [
            (Address::new("+15550100000"), vec![1]),
            (Address::local(), vec![]),
            (Address::console(), vec![]),
        ];
        for (from, expected) in senders {
            let mut conn = scratch();
            let id = create_unresolved_message(&mut conn);
            diesel::update(outbox::table)
                .set(outbox::from_addr.eq(from.as_str()))
                .execute(&mut conn)
                .unwrap();
            accept_test_message(&mut conn, id);
            let segments: Vec<i64> = usage::table.select(usage::segments).load(&mut conn).unwrap();
            assert_eq!(segments, expected);
        }
    }

    #[test]
    fn accepted_message_keeps_its_state() {
        let mut conn = scratch();
        let id = create_unresolved_message(&mut conn);
        accept_test_message(&mut conn, id);
        postpone_message(&mut conn, id, NOW, "busy", NOW).unwrap();
        mark_message_unknown(&mut conn, id, "no answer", NOW).unwrap();
        fail_message(&mut conn, id, &SendFailure { code: None, meaning: "refused" }, NOW).unwrap();
        let state: OutboxState = outbox::table.find(id).select(outbox::state).first(&mut conn).unwrap();
        assert_eq!(state, OutboxState::Accepted);
    }
}
