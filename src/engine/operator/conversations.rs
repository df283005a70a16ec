//! Operator actions in conversations: starting a test conversation, reopening an ended one, answering a confirmation prompt
//! in its user's name, and writing to a user or in a user's name.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use crate::clock::Clock;
use crate::conversation::channel_list;
use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::lifecycle;
use crate::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{Address, ConversationId, User, UserAddress, UserId, UserStatus};
use crate::engine::approvals::room_access;
use crate::engine::inbound::admission::Admission;
use crate::engine::inbound::scheduler::TurnScheduler;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::reply_address::ReplyAddress;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::confirmation::pending_lookup::{self, AnswerablePrompt};
use crate::store::conversation::conversations::{self, ConversationRef, EndReason};
use crate::store::database::db::{Db, DbError};
use crate::store::people::{rooms, test_users, users};
use crate::store::queue::inbound_messages::{self, AdmissionOutcome, DebouncePolicy, RoomMessage};
use crate::store::queue::outbox;
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult};

/// Debounce policy of an operator's answer, which is processed at once.
const NO_DEBOUNCE: DebouncePolicy = DebouncePolicy { quiet_ms: 0, max_delay_ms: 0 };

/// Outcome of starting a test conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestConversationOutcome {
    Started(ConversationId),
    /// All phone numbers reserved for test users are in use.
    NoFreeNumber,
}

/// Outcome of a message typed in the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorMessageOutcome {
    Admitted,
    /// The conversation is not the open conversation of a test user, so no message may be sent in it.
    NotOpen,
}

/// Text that the operator wrote in a conversation, with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorText {
    pub body: String,
    pub key: String,
}

/// Outcome of writing to a user or in a user's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorTextOutcome {
    Stored,
    /// The conversation has ended.
    Ended,
    /// The user is not active, has opted out, or is a test user.
    NotReachable,
}

/// Outcome of reopening a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReopenOutcome {
    Reopened,
    AlreadyOpen,
    /// A turn of the user is running in another conversation.
    Busy,
    /// The user is blocked or not approved.
    NotActive,
    /// It is the conversation of an agent, whose next call starts another one.
    OfAgent,
}

/// Operator's reply to a confirmation prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptDecision {
    Approve,
    Reject,
}

/// Outcome of answering a confirmation prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptAnswerOutcome {
    /// The answer is stored and counts as the user's own.
    Stored,
    /// The prompt is closed, or another prompt is open.
    Closed,
    /// The prompt has not been sent yet.
    NotSentYet,
}

/// Actions of the operator in conversations.
pub struct ConversationActions {
    db: Db,
    clock: Clock,
    live: LiveParts,
    scheduler: TurnScheduler,
    admission: Arc<Admission>,
    outbox: OutboxSignal,
}

impl ConversationActions {
    pub(crate) fn new(parts: &EngineParts, scheduler: TurnScheduler, admission: Arc<Admission>) -> Self {
        let EngineParts { db, clock, live, outbox, .. } = parts.clone();
        Self { db, clock, live, scheduler, admission, outbox }
    }

    /// Starts an empty conversation of a test user who has no open conversation.
    pub async fn start_test_conversation(&self) -> Result<TestConversationOutcome, DbError> {
        let (now, zone) = (self.clock.now(), self.live.settings().zone.clone());
        let start = move |conn: &mut Conn| {
            let Some(user) = test_users::find_free_test_user(conn, now)? else {
                return Ok(TestConversationOutcome::NoFreeNumber);
            };
            let entry = NewAuditEntry {
                actor: Actor::Console,
                kind: "test_conversation",
                subject: AuditSubject::User(user),
                detail: json!({}),
            };
            audit::record_change(conn, &entry, now)?;
            conversations::start_conversation(conn, user, &lifecycle::format_start_name(now, &zone), now)
                .map(TestConversationOutcome::Started)
        };
        self.db.write(start).await
    }

    /// Sends a message as the test user of a conversation, through the same admission as every message. `key` is an
    /// idempotency key.
    pub async fn send_as_test_user(
        &self,
        id: ConversationId,
        body: &str,
        key: &str,
    ) -> Result<OperatorMessageOutcome, DbError> {
        let now = self.clock.now();
        let load_address = move |conn: &mut Conn| {
            let conversation = conversations::load_conversation_ref(conn, id)?;
            let user = users::load_user(conn, conversation.user)?;
            if !user.test || conversation.is_ended || conversation.is_of_agent {
                return Ok(None);
            }
            // The operator types into this conversation, so it continues even after the idle timeout.
            conversations::record_activity(conn, id, now)?;
            Ok(user.address)
        };
        let Some(address) = self.db.write(load_address).await? else {
            return Ok(OperatorMessageOutcome::NotOpen);
        };
        let message = operator_message(address, Address::console(), body, now);
        let admission = self
            .admission
            .admit_message(ReceivedMessage {
                external_id: MessageOrigin::TestUser.to_message_id(key),
                ..message
            })
            .await?;
        Ok(match admission {
            AdmissionOutcome::New { .. } | AdmissionOutcome::Duplicate => OperatorMessageOutcome::Admitted,
            AdmissionOutcome::NoUser | AdmissionOutcome::NotKept => OperatorMessageOutcome::NotOpen,
        })
    }

    /// Sends a text to the user of a conversation, marked as coming from the household.
    pub async fn write_to_user(
        &self,
        id: ConversationId,
        text: OperatorText,
    ) -> Result<OperatorTextOutcome, DbError> {
        let (settings, now) = (self.live.settings(), self.clock.now());
        let queue = move |conn: &mut Conn| {
            let Some((user, _)) = load_reachable_user(conn, id)? else {
                return Ok(OperatorTextOutcome::NotReachable);
            };
            let entry = NewAuditEntry {
                actor: Actor::Console,
                kind: "write_to",
                subject: AuditSubject::User(user.id),
                detail: json!({ "conversation": id.0 }),
            };
            let address = match rooms::load_room(conn, user.id)? {
                Some(_) => ReplyAddress::load_for_room(conn, &user, &settings.senders)?,
                None => ReplyAddress::load_for_user(conn, &user, &settings.senders)?,
            };
            let message = address.notification_message(
                &format!("household:{}", text.key),
                &format!("From the household: {}", text.body),
            );
            // A form that is sent twice is one message.
            if !outbox::is_message_queued(conn, &message.key)? {
                outbox::queue_message(conn, &message, now)?;
                audit::record_change(conn, &entry, now)?;
            }
            Ok(OperatorTextOutcome::Stored)
        };
        let outcome = self.db.write(queue).await?;
        self.outbox.notify();
        Ok(outcome)
    }

    /// Admits a text in the name of the user of an open conversation. It is answered in the console only.
    pub async fn write_as_user(
        &self,
        id: ConversationId,
        text: OperatorText,
    ) -> Result<OperatorTextOutcome, DbError> {
        let now = self.clock.now();
        let load = move |conn: &mut Conn| {
            let found = load_reachable_user(conn, id)?;
            if let Some((_, ConversationRef { is_ended: false, .. })) = &found {
                // The operator writes in this conversation, so it continues even after the idle timeout.
                conversations::record_activity(conn, id, now)?;
            }
            Ok(found)
        };
        let Some((user, conversation)) = self.db.write(load).await? else {
            return Ok(OperatorTextOutcome::NotReachable);
        };
        if conversation.is_ended {
            return Ok(OperatorTextOutcome::Ended);
        }
        let Some(address) = user.address else { return Ok(OperatorTextOutcome::NotReachable) };
        let message = ReceivedMessage {
            external_id: MessageOrigin::Operator.to_message_id(&text.key),
            ..operator_message(address, Address::console(), &text.body, now)
        };
        match self.admission.admit_message_as(message, TriageDecision::Answer, Actor::Console).await? {
            AdmissionOutcome::New { .. } | AdmissionOutcome::Duplicate => Ok(OperatorTextOutcome::Stored),
            AdmissionOutcome::NoUser | AdmissionOutcome::NotKept => Ok(OperatorTextOutcome::NotReachable),
        }
    }

    /// Reopens a conversation. Another open conversation of the user ends.
    pub async fn reopen_conversation(
        &self,
        id: ConversationId,
        actor: Actor,
    ) -> Result<ReopenOutcome, DbError> {
        let now = self.clock.now();
        self.db.write(move |conn| reopen_stored_conversation(conn, id, actor, now)).await
    }

    /// Answers the open confirmation prompt with this id as if its user had texted the answer. The pending action is
    /// claimed, checked and executed in the same way, and the user gets the result.
    pub async fn answer_prompt(
        &self,
        prompt: i64,
        decision: PromptDecision,
    ) -> Result<PromptAnswerOutcome, DbError> {
        let now = self.clock.now();
        let answer = move |conn: &mut Conn| admit_prompt_answer(conn, prompt, decision, now);
        let (outcome, user) = self.db.write(answer).await?;
        if let Some(user) = user {
            self.scheduler.wake_user(user);
        }
        Ok(outcome)
    }
}

/// Loads the user of a conversation, if the operator can write to them.
fn load_reachable_user(conn: &mut Conn, id: ConversationId) -> QueryResult<Option<(User, ConversationRef)>> {
    let conversation = conversations::load_conversation_ref(conn, id)?;
    let user = users::load_user(conn, conversation.user)?;
    let is_reachable =
        user.status == UserStatus::Active && !user.opted_out && !user.test && !conversation.is_of_agent;
    Ok(is_reachable.then_some((user, conversation)))
}

fn reopen_stored_conversation(
    conn: &mut Conn,
    id: ConversationId,
    actor: Actor,
    now: Timestamp,
) -> QueryResult<ReopenOutcome> {
    let ConversationRef { user, is_ended, is_of_agent } = conversations::load_conversation_ref(conn, id)?;
    if !is_ended {
        return Ok(ReopenOutcome::AlreadyOpen);
    }
    if is_of_agent {
        return Ok(ReopenOutcome::OfAgent);
    }
    if users::load_user(conn, user)?.status != UserStatus::Active {
        return Ok(ReopenOutcome::NotActive);
    }
    if turn_lifecycle::load_active_turn(conn, user)?.is_some() || rooms::has_running_turn(conn, user)? {
        return Ok(ReopenOutcome::Busy);
    }
    let entry = NewAuditEntry {
        actor,
        kind: "reopen",
        subject: AuditSubject::User(user),
        detail: json!({ "conversation": id.0 }),
    };
    audit::record_change(conn, &entry, now)?;
    if let Some(other) = conversations::load_open_conversation(conn, user)? {
        // The confirmation prompt closes, as with every requested end of a conversation: a prompt must not be answered
        // in another conversation.
        pending_action::close_pending_action(conn, user, CloseReason::Dropped, now)?;
        room_access::close_prompts_in_room(conn, user, now)?;
        conversations::end_conversation(conn, other.id, EndReason::Superseded, now)?;
    }
    conversations::reopen_conversation(conn, id, now)?;
    Ok(ReopenOutcome::Reopened)
}

/// Checks and admits the answer in one transaction. If the prompt is replaced before the answer is processed, the
/// answer does not count, because it is older than the new prompt.
fn admit_prompt_answer(
    conn: &mut Conn,
    prompt: i64,
    decision: PromptDecision,
    now: Timestamp,
) -> QueryResult<(PromptAnswerOutcome, Option<UserId>)> {
    let Some(open) = pending_lookup::load_answerable_prompt(conn, prompt, now)? else {
        return Ok((PromptAnswerOutcome::Closed, None));
    };
    let AnswerablePrompt { user, call, code, from, to, room, repeats, is_armed } = open;
    if !is_armed {
        return Ok((PromptAnswerOutcome::NotSentYet, None));
    }
    let (kind, body) = match (decision, code) {
        (PromptDecision::Approve, Some(code)) => ("approve_question", format!("YES {code}")),
        (PromptDecision::Approve, None) => ("approve_question", "YES".to_owned()),
        (PromptDecision::Reject, _) => ("reject_question", "NO".to_owned()),
    };
    let Some(address) = to.or(users::load_user(conn, user)?.address) else {
        return Ok((PromptAnswerOutcome::Closed, None));
    };
    let message = ReceivedMessage {
        // If a button is pressed twice, only the first press counts.
        external_id: MessageOrigin::Button.to_message_id(&format!("answer-{prompt}-{repeats}")),
        ..operator_message(address, from, &body, now)
    };
    let admission = match room {
        // It answers the prompt as the person who was asked, in the room.
        Some((room, address)) => {
            let triage = TriageDecision::Answer;
            let in_room = RoomMessage { author: user, room, address, is_addressed: true, triage };
            inbound_messages::admit_room_message(conn, &message, in_room, NO_DEBOUNCE)?
        }
        None => inbound_messages::admit_message(conn, &message, NO_DEBOUNCE)?,
    };
    match admission {
        AdmissionOutcome::NoUser | AdmissionOutcome::NotKept => Ok((PromptAnswerOutcome::Closed, None)),
        AdmissionOutcome::Duplicate => Ok((PromptAnswerOutcome::Stored, None)),
        AdmissionOutcome::New { .. } => {
            let entry = NewAuditEntry {
                actor: Actor::Console,
                kind,
                subject: AuditSubject::Call(call),
                detail: json!({ "user": user.0 }),
            };
            audit::record_change(conn, &entry, now)?;
            Ok((PromptAnswerOutcome::Stored, Some(user)))
        }
    }
}

fn operator_message(from: UserAddress, to: Address, body: &str, now: Timestamp) -> ReceivedMessage {
    ReceivedMessage {
        channel: channel_list::CONSOLE,
        external_id: String::new(),
        from,
        to,
        body: body.to_owned(),
        media: Vec::new(),
        via: MessageSource::Local,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        pressed: None,
        room: None,
        provider_at: now,
        received_at: now,
    }
}
