//! Log of received messages. An admitted message is processed even after a crash, so a carrier may be acknowledged once
//! its message is admitted.

use std::collections::HashSet;

use diesel::connection::DefaultLoadingMode;
use diesel::dsl::min;
use diesel::prelude::*;
use diesel::query_builder::QueryId;
use jiff::{SignedDuration, Timestamp};

use super::inbound_message_row::{InboundMessageRow, carrier_word_column_value, press_column_value};
use super::pressed_message::find_pressed_message;
use super::repeated_message::is_repeat;
use crate::conversation::channel::{Channel, SenderKind};
use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::routing::inbound_message::{InboundEvent, ReceivedMessage};
use crate::conversation::routing::message_origin::OPERATOR_PREFIX;
use crate::conversation::stream_events::{InboundStatus, StreamEventKind};
use crate::conversation::transcript::{Address, AddressId, ConversationId, EventId, TurnId, UserId};
use crate::store::Conn;
use crate::store::codec::{media_json, ms};
use crate::store::column_types::{Millis, stored_enum};
use crate::store::conversation::conversations;
use crate::store::database::literal_sql::literal_sql;
use crate::store::database::statement_cache::{CacheStatement, cached_update};
use crate::store::people::addresses;
use crate::store::people::rooms::{self, ROOM_IS_FREE, owner_of_message};
use crate::store::people::users::{self, FirstContactRole};
use crate::store::schema::{conversations as conversation_rows, inbound_events};
use crate::store::stream::recording::{EventOwner, record_event};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionOutcome {
    New {
        user: UserId,
        /// Address of the sender; `None` for a message in the console.
        address: Option<AddressId>,
        event: EventId,
    },
    /// The channel and external id of the message are known: nothing was changed.
    Duplicate,
    /// The message was written in the console in the name of a user who has been forgotten since.
    NoUser,
    /// The message was written in a room by someone who may not text, or concerned only the room.
    NotKept,
}

/// Maximum number of messages that one turn claims.
pub const MAX_PER_TURN: i64 = 20;

/// Message in a room.
#[derive(Debug, Clone, Copy)]
pub struct RoomMessage {
    pub author: UserId,
    pub room: UserId,
    /// Address of the room.
    pub address: AddressId,
    pub is_addressed: bool,
    pub triage: TriageDecision,
}

/// Delays by which consecutive messages of a user are collected into one turn, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DebouncePolicy {
    /// Delay after the last message.
    pub quiet_ms: i64,
    /// Maximum delay after the first message.
    pub max_delay_ms: i64,
}

pub fn admit_message(
    conn: &mut Conn,
    received: &ReceivedMessage,
    debounce: DebouncePolicy,
) -> QueryResult<AdmissionOutcome> {
    let not_before = received.received_at + SignedDuration::from_millis(debounce.quiet_ms);
    let admission = insert_inbound_message(conn, received, TriageDecision::Answer, not_before)?;
    if let AdmissionOutcome::New { user, address, .. } = admission {
        debounce_messages(conn, (user, address), received, debounce)?;
    }
    Ok(admission)
}

/// Admits a message that needs no answer. The message is not debounced, and does not delay other messages.
pub fn admit_unanswered_message(
    conn: &mut Conn,
    received: &ReceivedMessage,
) -> QueryResult<AdmissionOutcome> {
    insert_inbound_message(conn, received, TriageDecision::NoAnswer, received.received_at)
}

/// Admits a message in a room.
pub fn admit_room_message(
    conn: &mut Conn,
    received: &ReceivedMessage,
    message: RoomMessage,
    debounce: DebouncePolicy,
) -> QueryResult<AdmissionOutcome> {
    let RoomMessage { author, room, address, is_addressed, triage } = message;
    let not_before = received.received_at + SignedDuration::from_millis(debounce.quiet_ms);
    let sender = (author, Some(address));
    let admission = insert_message(conn, received, sender, (room, triage, is_addressed), not_before)?;
    if let (AdmissionOutcome::New { .. }, TriageDecision::Answer) = (admission, triage) {
        debounce_messages(conn, sender, received, debounce)?;
    }
    Ok(admission)
}

fn insert_inbound_message(
    conn: &mut Conn,
    received: &ReceivedMessage,
    triage: TriageDecision,
    not_before: Timestamp,
) -> QueryResult<AdmissionOutcome> {
    let sender = match received.channel.profile().senders {
        // A message by phone or terminal may come from a newcomer. A console message is written in the name of an
        // existing user; if that user has been forgotten since, no user is created.
        SenderKind::Console => match addresses::find_address(conn, &received.from)? {
            // A room writes nothing itself.
            Some((_, user)) if rooms::load_room(conn, user)?.is_some() => None,
            sender => sender,
        },
        SenderKind::Anyone | SenderKind::Terminal => Some(users::ensure_sender(
            conn,
            &received.from,
            FirstContactRole::Newcomer,
            received.received_at,
        )?),
    };
    let Some((address, user)) = sender else { return Ok(AdmissionOutcome::NoUser) };
    // The console shows the replies to its messages, and sends those to other messages to the user's address.
    let address = (received.to != Address::console()).then_some(address);
    insert_message(conn, received, (user, address), (user, triage, true), not_before)
}

/// Key of the statement that stores a message.
enum NewMessageRow {}

fn insert_message(
    conn: &mut Conn,
    received: &ReceivedMessage,
    (user, address): (UserId, Option<AddressId>),
    (owner, triage, is_addressed): (UserId, TriageDecision, bool),
    not_before: Timestamp,
) -> QueryResult<AdmissionOutcome> {
    if is_repeat(conn, user, received)? {
        return Ok(AdmissionOutcome::Duplicate);
    }
    let press =
        received.pressed.as_ref().map(|button| find_pressed_message(conn, user, button)).transpose()?;
    let received_at = ms(received.received_at);
    let inserted: Option<(EventId, Option<ConversationId>)> = diesel::insert_into(inbound_events::table)
        .values((
            inbound_events::channel.eq(received.channel),
            inbound_events::external_id.eq(&received.external_id),
            inbound_events::user_id.eq(user),
            inbound_events::address_id.eq(address),
            inbound_events::to_addr.eq(received.to.as_str()),
            inbound_events::body.eq(&received.body),
            inbound_events::media.eq(media_json(&received.media)?),
            inbound_events::provider_at.eq(ms(received.provider_at)),
            inbound_events::received_at.eq(received_at),
            inbound_events::via.eq(received.via),
            inbound_events::authority.eq(received.authority),
            inbound_events::carrier_word.eq(carrier_word_column_value(received.carrier_word)),
            inbound_events::pressed_message.eq(press.map(press_column_value)),
            inbound_events::state.eq(InboundState::Pending),
            inbound_events::not_before.eq(ms(not_before)),
            inbound_events::wants_answer.eq(triage == TriageDecision::Answer),
            inbound_events::addressed.eq(is_addressed),
            inbound_events::room_id.eq(Some(owner).filter(|owner| *owner != user)),
            inbound_events::updated_at.eq(received_at),
        ))
        .on_conflict_do_nothing()
        .returning((inbound_events::id, conversations::select_open_conversation(owner).single_value()))
        .cached_as::<NewMessageRow>()
        .get_result(conn)
        .optional()?;
    let Some((event, conversation)) = inserted else { return Ok(AdmissionOutcome::Duplicate) };
    let owner = EventOwner { turn: None, conversation };
    let waits = StreamEventKind::InboundMessage(event, InboundStatus::Waiting);
    record_event(conn, owner, received.received_at, waits)?;
    Ok(AdmissionOutcome::New { user, address, event })
}

/// Returns the messages of `received`, which are from one channel, that were never admitted, in the same order.
pub fn filter_unadmitted(
    conn: &mut Conn,
    channel: Channel,
    mut received: Vec<ReceivedMessage>,
) -> QueryResult<Vec<ReceivedMessage>> {
    let ids = received.iter().map(|message| message.external_id.as_str());
    let known: HashSet<String> = inbound_events::table
        .filter(inbound_events::channel.eq(channel).and(inbound_events::external_id.eq_any(ids)))
        .select(inbound_events::external_id)
        .load_iter::<String, DefaultLoadingMode>(conn)?
        .collect::<QueryResult<_>>()?;
    received.retain(|message| !known.contains(&message.external_id));
    Ok(received)
}

literal_sql! {
    /// Condition of admitted messages that no turn has started to process.
    pub(in crate::store) const PENDING = "inbound_events.state = 'pending'";
}

/// Postpones the waiting messages between the same two addresses, so that they are processed together. The delay is
/// limited from the first message.
fn debounce_messages(
    conn: &mut Conn,
    (user, address): (UserId, Option<AddressId>),
    received: &ReceivedMessage,
    debounce: DebouncePolicy,
) -> QueryResult<()> {
    let waiting = inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(PENDING))
        .filter(inbound_events::address_id.is(address))
        .filter(inbound_events::to_addr.eq(received.to.as_str()).and(inbound_events::wants_answer.eq(true)));
    let times: Vec<Timestamp> = waiting.select(inbound_events::received_at).limit(2).load(conn)?;
    if times.len() < 2 {
        // No other message waits, and the start time of this message is already set.
        return Ok(());
    }
    let first: Option<Timestamp> = waiting.select(min(inbound_events::received_at)).first(conn)?;
    let received_at = received.received_at;
    let latest = first.unwrap_or(received_at) + SignedDuration::from_millis(debounce.max_delay_ms);
    let not_before = latest.min(received_at + SignedDuration::from_millis(debounce.quiet_ms));
    cached_update(waiting).set(inbound_events::not_before.eq(ms(not_before))).run(conn)
}

/// Loads a user's messages that no turn has processed, in the order they were sent; at most `limit`.
pub fn load_waiting_messages(conn: &mut Conn, user: UserId, limit: i64) -> QueryResult<Vec<InboundEvent>> {
    let rows = inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(PENDING))
        .order((inbound_events::provider_at, inbound_events::id))
        .limit(limit)
        .select(InboundMessageRow::as_select())
        .load(conn)?;
    InboundMessageRow::into_events(rows)
}

/// Loads the messages that the user's next turn processes, in the order they were sent; at most `limit`. Messages between
/// different addresses are answered separately: all returned messages have the same sender and recipient, and the first
/// due message decides which. A message that needs no answer is returned alone.
pub fn load_due_messages(
    conn: &mut Conn,
    user: UserId,
    limit: i64,
    now: Timestamp,
) -> QueryResult<Vec<InboundEvent>> {
    let next: Option<InboundMessageRow> = inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(PENDING).and(ROOM_IS_FREE))
        .filter(inbound_events::not_before.le(ms(now)))
        .order((inbound_events::provider_at, inbound_events::id))
        .select(InboundMessageRow::as_select())
        .first(conn)
        .optional()?;
    let Some(next) = next.map(InboundMessageRow::into_event).transpose()? else { return Ok(Vec::new()) };
    if next.triage == TriageDecision::NoAnswer {
        return Ok(vec![next]);
    }
    let rows = inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(PENDING))
        .filter(inbound_events::address_id.is(next.address_id()))
        .filter(inbound_events::to_addr.eq(next.to.as_str()).and(inbound_events::wants_answer.eq(true)))
        .order((inbound_events::provider_at, inbound_events::id))
        .limit(limit)
        .select(InboundMessageRow::as_select())
        .load_iter::<InboundMessageRow, DefaultLoadingMode>(conn)?;
    let mut messages = Vec::new();
    for row in rows {
        match row.and_then(InboundMessageRow::into_event) {
            Ok(message) => messages.push(message),
            Err(error) if messages.is_empty() => return Err(error),
            // The readable messages before an unreadable one are still processed.
            Err(_) => break,
        }
    }
    Ok(messages)
}

/// Returns whether the outcome of a message is final.
pub fn is_message_finished(conn: &mut Conn, event: EventId) -> QueryResult<bool> {
    let outcome: Option<InboundOutcome> =
        inbound_events::table.find(event).select(inbound_events::outcome).first(conn)?;
    Ok(outcome.is_some())
}

/// Assigns messages to a turn, which finishes them when it ends.
pub fn assign_to_turn(conn: &mut Conn, events: &[EventId], turn: TurnId, now: Timestamp) -> QueryResult<()> {
    // Each message is a separate update: a statement with a list is prepared again at each use.
    events.iter().try_for_each(|event| {
        cached_update(inbound_events::table.find(event))
            .set((
                inbound_events::state.eq(InboundState::Processing),
                inbound_events::turn_id.eq(turn),
                // The message waits no longer, and zero takes no space.
                inbound_events::not_before.eq(ms(Timestamp::UNIX_EPOCH)),
                inbound_events::updated_at.eq(ms(now)),
            ))
            .run(conn)?;
        let claimed = StreamEventKind::InboundMessage(*event, InboundStatus::Claimed);
        record_event(conn, turn, now, claimed)
    })
}

/// Message whose processing failed to start, with the fields needed to handle the failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedMessage {
    pub event: EventId,
    /// Dialarr's address, to which the message was sent.
    pub to: Address,
    /// Number of failed attempts to start the processing.
    pub failures: i64,
}

/// Counts a failed attempt to process the user's next message, even if that message cannot be read.
pub fn count_message_failure(
    conn: &mut Conn,
    user: UserId,
    now: Timestamp,
) -> QueryResult<Option<FailedMessage>> {
    let next: Option<(EventId, Address)> = inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(PENDING).and(ROOM_IS_FREE))
        .filter(inbound_events::not_before.le(ms(now)))
        .order((inbound_events::provider_at, inbound_events::id))
        .select((inbound_events::id, inbound_events::to_addr))
        .first(conn)
        .optional()?;
    let Some((event, to)) = next else { return Ok(None) };
    let failures: i64 = cached_update(inbound_events::table.find(event))
        .set((
            inbound_events::attempts.eq(inbound_events::attempts + 1),
            inbound_events::updated_at.eq(ms(now)),
        ))
        .returning(inbound_events::attempts)
        .get_result(conn)?;
    Ok(Some(FailedMessage { event, to, failures }))
}

stored_enum! {
    /// State of a received message.
    pub enum InboundState {
        /// No turn has started to process the message.
        Pending = "pending",
        /// A running turn processes the message.
        Processing = "processing",
        Completed = "completed",
        Failed = "failed",
    }
}

stored_enum! {
    /// Stored part of a [`MessageOutcome`].
    pub enum InboundOutcome {
        Replied = "replied",
        FailedNotified = "failed_notified",
        Skipped = "skipped",
    }
}

/// Final outcome of a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOutcome {
    Replied,
    /// The message was answered with a reaction only.
    Reacted,
    /// The message was stored and needed no answer.
    NoAnswerNeeded,
    /// The message could not be processed, and the user was notified of the failure.
    FailedNotified,
    Skipped(&'static str),
}

/// Outcome of a message in its row. All columns are always assigned, because a cached statement is found by this type.
#[derive(AsChangeset, QueryId)]
#[diesel(table_name = inbound_events)]
struct MessageOutcomeColumns {
    state: InboundState,
    outcome: InboundOutcome,
    #[diesel(treat_none_as_null = true)]
    outcome_reason: Option<&'static str>,
    updated_at: Millis,
}

impl MessageOutcomeColumns {
    fn from_outcome(outcome: MessageOutcome, now: Timestamp) -> Self {
        let (state, outcome, outcome_reason) = match outcome {
            MessageOutcome::Replied => (InboundState::Completed, InboundOutcome::Replied, None),
            MessageOutcome::Reacted => (InboundState::Completed, InboundOutcome::Skipped, Some("reacted")),
            MessageOutcome::NoAnswerNeeded => {
                (InboundState::Completed, InboundOutcome::Skipped, Some("remembered"))
            }
            MessageOutcome::FailedNotified => (InboundState::Failed, InboundOutcome::FailedNotified, None),
            MessageOutcome::Skipped(reason) => {
                (InboundState::Completed, InboundOutcome::Skipped, Some(reason))
            }
        };
        Self { state, outcome, outcome_reason, updated_at: ms(now) }
    }
}

/// Finishes a message that was not assigned to a turn. From now on, the message belongs to the conversation that is open.
pub fn finish_message(
    conn: &mut Conn,
    event: EventId,
    outcome: MessageOutcome,
    now: Timestamp,
) -> QueryResult<()> {
    let columns = MessageOutcomeColumns::from_outcome(outcome, now);
    let open_conversation = conversation_rows::table
        .filter(conversation_rows::user_id.eq(owner_of_message()))
        .filter(conversation_rows::ended_at.is_null().and(conversation_rows::agent_key_id.is_null()))
        .select(conversation_rows::id)
        .single_value();
    let conversation = cached_update(inbound_events::table.find(event))
        .set((columns, inbound_events::conversation_id.eq(open_conversation)))
        .returning(inbound_events::conversation_id)
        .get_result(conn)?;
    let owner = EventOwner { turn: None, conversation };
    record_event(conn, owner, now, StreamEventKind::InboundMessage(event, InboundStatus::NoTurn))
}

/// Finishes the messages of a turn.
pub fn finish_turn_messages(
    conn: &mut Conn,
    turn: TurnId,
    outcome: MessageOutcome,
    now: Timestamp,
) -> QueryResult<()> {
    let columns = MessageOutcomeColumns::from_outcome(outcome, now);
    cached_update(inbound_events::table.filter(inbound_events::turn_id.eq(turn))).set(columns).run(conn)
}

/// Loads the messages of a turn, in the order they were sent.
pub fn load_turn_messages(conn: &mut Conn, turn: TurnId) -> QueryResult<Vec<InboundEvent>> {
    let rows = inbound_events::table
        .filter(inbound_events::turn_id.eq(turn))
        .order((inbound_events::provider_at, inbound_events::id))
        .select(InboundMessageRow::as_select())
        .load(conn)?;
    InboundMessageRow::into_events(rows)
}

/// Loads the text of a user's last messages up to and including `last` in its room or in the private chat, newest first;
/// without `last`, up to the newest message of the private chat.
pub fn load_bodies_up_to(
    conn: &mut Conn,
    user: UserId,
    last: Option<(EventId, Option<UserId>)>,
    limit: i64,
) -> QueryResult<Vec<String>> {
    let (last, room) = last.map_or((i64::MAX, None), |(event, room)| (event.0, room));
    inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(inbound_events::id.le(last)))
        .filter(inbound_events::room_id.is(room))
        .filter(inbound_events::external_id.not_like(format!("{OPERATOR_PREFIX}%")))
        .order(inbound_events::id.desc())
        .limit(limit)
        .select(inbound_events::body)
        .load(conn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::channel_list;
    use crate::conversation::routing::inbound_message::MessageSource;
    use crate::conversation::routing::verification::FieldAuthority;
    use crate::conversation::transcript::UserAddress;
    use crate::store::queue::next_work::load_next_work;
    use crate::store::scratch;

    const DEBOUNCE: DebouncePolicy = DebouncePolicy { quiet_ms: 1_200, max_delay_ms: 4_000 };

    fn received_message(sid: &str, at_ms: i64) -> ReceivedMessage {
        let at = Timestamp::from_millisecond(at_ms).unwrap();
        ReceivedMessage {
            channel: channel_list::TWILIO,
            external_id: sid.into(),
            from: UserAddress::parse("+15550100001").unwrap(),
            to: Address::new("+15550100000"),
            body: sid.into(),
            media: Vec::new(),
            via: MessageSource::Webhook,
            authority: FieldAuthority::Certain,
            carrier_word: None,
            pressed: None,
            room: None,
            provider_at: at,
            received_at: at,
        }
    }

    #[test]
    fn console_message_creates_no_user() {
        let mut conn = scratch();
        let console_message =
            ReceivedMessage { channel: channel_list::CONSOLE, ..received_message("api:1", 0) };
        assert_eq!(admit_message(&mut conn, &console_message, DEBOUNCE).unwrap(), AdmissionOutcome::NoUser);
        assert_eq!(users::load_known_users(&mut conn).unwrap(), []);
        let AdmissionOutcome::New { user, .. } =
            admit_message(&mut conn, &received_message("SM1", 0), DEBOUNCE).unwrap()
        else {
            panic!()
        };
        assert!(
            matches!(admit_message(&mut conn, &console_message, DEBOUNCE).unwrap(), AdmissionOutcome::New { user: same, .. } if same == user)
        );
    }

    #[test]
    fn duplicate_message_changes_nothing() {
        let mut conn = scratch();
        let AdmissionOutcome::New { user, .. } =
            admit_message(&mut conn, &received_message("SM1", 0), DEBOUNCE).unwrap()
        else {
            panic!()
        };
        assert_eq!(
            admit_message(&mut conn, &received_message("SM1", 900), DEBOUNCE).unwrap(),
            AdmissionOutcome::Duplicate
        );
        assert_eq!(
            load_next_work(&mut conn, user).unwrap().due_at,
            Some(Timestamp::from_millisecond(1_200).unwrap())
        );
    }

    #[test]
    fn messages_to_other_addresses_do_not_extend_the_debounce() {
        let mut conn = scratch();
        let to_console = |sid, at| ReceivedMessage { to: Address::console(), ..received_message(sid, at) };
        let AdmissionOutcome::New { user, .. } =
            admit_message(&mut conn, &received_message("phone", 0), DEBOUNCE).unwrap()
        else {
            panic!()
        };
        admit_message(&mut conn, &to_console("program", 500), DebouncePolicy { quiet_ms: 0, ..DEBOUNCE })
            .unwrap();
        admit_unanswered_message(&mut conn, &received_message("note", 600)).unwrap();
        admit_message(&mut conn, &received_message("phone, too", 700), DEBOUNCE).unwrap();
        let mut batches = Vec::new();
        for at in [400, 800, 800, 800, 1_900, 2_000] {
            let now = Timestamp::from_millisecond(at).unwrap();
            let messages = load_due_messages(&mut conn, user, 9, now).unwrap();
            for message in &messages {
                finish_message(&mut conn, message.id, MessageOutcome::Skipped("seen"), now).unwrap();
            }
            batches.push(messages.into_iter().map(|message| message.body).collect::<Vec<_>>().join(" + "));
        }
        assert_eq!(batches, ["", "program", "note", "", "phone + phone, too", ""]);
    }

    #[test]
    fn quick_messages_are_debounced_up_to_a_limit() {
        let mut conn = scratch();
        for (sid, at, due) in [("a", 0, 1_200), ("b", 1_000, 2_200), ("c", 2_000, 3_200), ("d", 3_100, 4_000)]
        {
            let AdmissionOutcome::New { user, .. } =
                admit_message(&mut conn, &received_message(sid, at), DEBOUNCE).unwrap()
            else {
                panic!()
            };
            assert_eq!(
                load_next_work(&mut conn, user).unwrap().due_at,
                Some(Timestamp::from_millisecond(due).unwrap()),
                "{sid}"
            );
        }
    }
}
