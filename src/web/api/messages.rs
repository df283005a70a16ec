//! Messages sent in the name of a user: they use the same pipeline as messages by phone, and the caller gets the reply.
//! The reply is not sent by phone; notifications to other users that result from it are.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::SignedDuration;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::extract::{JsonBody, PathId};
use super::users::UserIdentifier;
use super::{database_unavailable, users};
use crate::conversation::channel_list;
use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::lifecycle;
use crate::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{Address, EventId, TurnId, User, UserId, UserStatus};
use crate::store::conversation::message_results::{self, MessageAction, MessageProgress, MessageResult};
use crate::store::queue::inbound_messages::AdmissionOutcome;
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;
use crate::web::sse_snapshot::format_iso;

/// Longest message, in characters.
const MAX_TEXT_CHARS: usize = 1600;
const MAX_KEY_CHARS: usize = 255;
const MAX_RESPONSE_WAIT: Duration = Duration::from_secs(90);
const IDEMPOTENCY_KEY_HEADER: &str = "idempotency-key";
/// Period in which a client may repeat a request that it sent before an upgrade.
const REPEAT_PERIOD: SignedDuration = SignedDuration::from_hours(24);

/// Message in the name of a user.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "user": "+15550100002", "text": "add dune" }))]
pub(super) struct NewMessage {
    user: MessageSender,
    /// Message text; not blank.
    #[schema(min_length = 1, max_length = 1600, pattern = r"\S")]
    text: String,
    /// `false`: the message only becomes part of the conversation, and gets no reply.
    #[serde(default = "respond_by_default")]
    #[schema(default = true)]
    respond: bool,
}

fn respond_by_default() -> bool {
    true
}

/// Id of a user, or a phone number.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Sender)]
enum MessageSender {
    Id(#[serde(deserialize_with = "deserialize_integer")] i64),
    Phone(PhoneNumberJson),
}

/// Deserializes an integer. In JSON, 7.0 is the same number as 7.
fn deserialize_integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    let rounded = || number.as_f64().filter(|number| number.fract() == 0.0);
    // A number that is too large saturates to `i64::MAX`, which is no user's id.
    let id = number.as_i64().or_else(|| rounded().map(|number| number as i64));
    id.ok_or_else(|| D::Error::custom("not an integer"))
}

/// Phone number in E.164 format.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = "+15550100002", pattern = r"^\+[1-9][0-9]{6,14}$")]
#[schema(as = PhoneNumber)]
struct PhoneNumberJson(String);

/// Outcome of a message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reply)]
pub(super) struct MessageReply {
    message_id: i64,
    /// Complete reply. Empty if the message gets none, such as thanks, or with `respond: false`.
    #[schema(example = "Added Dune (2021). I will text you when it is ready.")]
    content: String,
    actions: Vec<ReplyAction>,
    /// Conversation of the message. Null for a message without a conversation.
    lifecycle: Option<MessageConversation>,
    /// Turn of the message. Null for a message without a turn.
    turn: Option<MessageTurn>,
}

/// Action of the assistant besides the text of the reply: a reaction or a poster.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = Action)]
enum ReplyAction {
    /// Reaction to the message.
    React {
        emoji: String,
    },
    SendPoster {
        title: String,
        url: String,
    },
}

/// Conversation that contains the message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Lifecycle)]
struct MessageConversation {
    is_new_conversation: bool,
    conversation_id: i64,
    #[schema(example = "Nov 20, 2026 21:04")]
    conversation_name: String,
    #[schema(format = DateTime)]
    started_at: String,
}

/// Turn that processed a message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TurnState)]
struct MessageTurn {
    id: i64,
    /// `CREATED`, `IN_PROGRESS`, `WAITING_FOR_TOOLS`, `FAILED`, `ERROR`, `COMPLETED` or `CANCELED`.
    state: String,
}

/// Message without a complete reply yet.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pending)]
pub(super) struct PendingReply {
    message_id: i64,
    /// Turn of the message. Null before a turn has claimed it.
    turn: Option<MessageTurn>,
}

/// Send a message as a user and wait for the reply
///
/// The message is processed like every message: it may add titles, or ask for a deletion, which the user then confirms. A
/// message that is sent with a key confirms and approves nothing itself. The reply is returned and appears in the console; it is not sent by phone. Notifications to
/// other users that result from the message are sent as usual, and so are later notifications to its user, such as that
/// a title is ready. Unknown fields are refused.
#[utoipa::path(
    post,
    path = "/messages",
    tag = "messages",
    operation_id = "send_message",
    request_body = NewMessage,
    params(
        (
            "Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255,
            description = "A repeat with the same API key and this key sends no message: it returns the reply of the first request. With another user, text or value of `respond` it is refused with 422."
        ),
        (
            "Prefer" = Option<String>, Header, example = "wait=30",
            description = "`wait=N`: wait up to N seconds for the reply; 90 is the default and the maximum. `respond-async`: do not wait."
        ),
    ),
    responses(
        (status = 200, description = "The reply, or the confirmation that the message is stored", body = MessageReply),
        (
            status = 202,
            description = "There is no reply yet, or the assistant is paused",
            body = PendingReply,
            headers(("Location" = String, description = "URL of the reply"))
        ),
        (status = 404, description = "No user has this id or number"),
        (status = 409, description = "The user is not approved, is blocked, or has opted out, or the message of this Idempotency-Key has been erased; the detail names the reason"),
    )
)]
pub(super) async fn send_message(
    State(console): State<ConsoleState>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(message): JsonBody<NewMessage>,
) -> Result<Response, ProblemDetails> {
    let key = idempotency_key(&headers)?;
    let text = check_text(&message.text)?;
    let identifier = match message.user {
        MessageSender::Id(id) => UserIdentifier::Id(UserId(id)),
        MessageSender::Phone(PhoneNumberJson(phone)) => UserIdentifier::parse(&phone)?,
    };
    let user = users::find_user(&console, identifier).await?;
    let triage = if message.respond { TriageDecision::Answer } else { TriageDecision::NoAnswer };
    let event = store_message(&console, caller, &user, MessageDraft { text, triage, key }).await?;
    let finished = console.engine.scheduler.wait_for_message(user.id, event);
    // If the turn takes longer, the response contains the URL to query later.
    if let Ok(result) = tokio::time::timeout(preferred_wait(&headers), finished).await {
        result.map_err(database_unavailable)?;
    }
    message_response(&console, event).await
}

/// Get the outcome of a message
#[utoipa::path(
    get,
    path = "/messages/{id}",
    tag = "messages",
    operation_id = "show_message",
    params(("id" = i64, Path, description = "A message's id")),
    responses(
        (status = 200, description = "The reply", body = MessageReply),
        (
            status = 202,
            description = "There is no reply yet",
            body = PendingReply,
            headers(("Location" = String, description = "URL of the reply"))
        ),
        (status = 404, description = "No message has this id"),
    )
)]
pub(super) async fn show_message(
    State(console): State<ConsoleState>,
    _caller: Caller,
    PathId(id): PathId,
) -> Result<Response, ProblemDetails> {
    message_response(&console, EventId(id)).await
}

async fn message_response(console: &ConsoleState, event: EventId) -> Result<Response, ProblemDetails> {
    let result = console
        .db
        .read(move |conn| message_results::load_message_result(conn, event))
        .await
        .map_err(database_unavailable)?;
    let result =
        result.ok_or_else(|| ProblemDetails::new(StatusCode::NOT_FOUND, "no message has this id"))?;
    Ok(match result.progress {
        MessageProgress::Finished => {
            // The end of a turn may not be on disk yet.
            console.db.sync().await.map_err(database_unavailable)?;
            Json(reply_json(event, result)).into_response()
        }
        MessageProgress::InProgress => {
            let location = format!("{}/messages/{event}", super::API_PREFIX);
            let pending = PendingReply { message_id: event.0, turn: result.turn.map(message_turn_json) };
            (StatusCode::ACCEPTED, [(LOCATION, location)], Json(pending)).into_response()
        }
    })
}

/// Message before it is stored.
struct MessageDraft {
    text: String,
    triage: TriageDecision,
    key: Option<String>,
}

/// Stores the message, or finds the one that was stored with the same key.
async fn store_message(
    console: &ConsoleState,
    caller: Caller,
    user: &User,
    draft: MessageDraft,
) -> Result<EventId, ProblemDetails> {
    let external_id = caller.message_origin().to_message_id(&match &draft.key {
        // The caller chooses the key, and only its hash is stored. The key is scoped to the API key and not to the user:
        // its reuse for another user or text is refused.
        Some(key) => hash_key(key),
        None => format!("{:032x}", rand::random::<u128>()),
    });
    let now = console.clock.now();
    let request = RequestIdentity { user: user.id, text: draft.text.clone(), triage: draft.triage };
    let stored_id = external_id.clone();
    let find =
        move |conn: &mut _| message_results::find_stored_message(conn, channel_list::CONSOLE, &stored_id);
    if draft.key.is_some()
        && let Some(stored) = console.db.read(find.clone()).await.map_err(database_unavailable)?
    {
        return request.match_stored(&stored);
    }
    if let Some(key) = &draft.key
        && let Some(event) = find_message_before_upgrade(console, caller, key, &request).await?
    {
        return Ok(event);
    }
    check_user_accepts_messages(user, draft.triage)?;
    let Some(from) = user.address.clone() else { return Err(users::user_not_found()) };
    let received = ReceivedMessage {
        channel: channel_list::CONSOLE,
        external_id,
        from,
        to: Address::console(),
        body: draft.text,
        media: Vec::new(),
        via: MessageSource::Local,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        pressed: None,
        room: None,
        provider_at: now,
        received_at: now,
    };
    let admission = console.engine.admission.admit_message_as(received, draft.triage, caller.actor()).await;
    match admission.map_err(|error| database_unavailable(error.into()))? {
        AdmissionOutcome::New { event, .. } => Ok(event),
        AdmissionOutcome::NoUser | AdmissionOutcome::NotKept => Err(users::user_not_found()),
        // A concurrent request with the same key was stored first.
        AdmissionOutcome::Duplicate => match console.db.read(find).await.map_err(database_unavailable)? {
            Some(stored) => request.match_stored(&stored),
            None => {
                Err(ProblemDetails::new(StatusCode::CONFLICT, "the message was stored and has been erased"))
            }
        },
    }
}

/// Finds the message of a repeated request that was first sent before an upgrade, when the hash of its key included the
/// user. Only an identical request of the last day counts, because a newer key may have the same hash.
async fn find_message_before_upgrade(
    console: &ConsoleState,
    caller: Caller,
    key: &str,
    request: &RequestIdentity,
) -> Result<Option<EventId>, ProblemDetails> {
    let external_id = caller.message_origin().to_message_id(&hash_key(&format!("{}:{key}", request.user)));
    let find =
        move |conn: &mut _| message_results::find_stored_message(conn, channel_list::CONSOLE, &external_id);
    let stored = console.db.read(find).await.map_err(database_unavailable)?;
    let since = console.clock.now() - REPEAT_PERIOD;
    let stored = stored.filter(|stored| stored.received_at >= since);
    Ok(stored.and_then(|stored| request.match_stored(&stored).ok()))
}

fn hash_key(key: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(key))
}

/// Fields in which a repeat of a request with the same key must match the first.
struct RequestIdentity {
    user: UserId,
    text: String,
    triage: TriageDecision,
}

impl RequestIdentity {
    /// Returns the message that was stored first, if it came from the same request.
    fn match_stored(&self, stored: &message_results::StoredMessage) -> Result<EventId, ProblemDetails> {
        let refused = |detail| Err(ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        if stored.user != self.user {
            return refused("this Idempotency-Key was used for another user");
        }
        // Text that has been erased since cannot be compared; no message was empty on arrival.
        if (stored.body == self.text || stored.body.is_empty()) && stored.triage == self.triage {
            return Ok(stored.event);
        }
        refused("this Idempotency-Key was used with another text or another value of respond")
    }
}

fn check_user_accepts_messages(user: &User, triage: TriageDecision) -> Result<(), ProblemDetails> {
    let conflict = |detail| Err(ProblemDetails::new(StatusCode::CONFLICT, detail));
    match (user.status, triage) {
        (UserStatus::Pending, _) => conflict("the user is not approved yet"),
        (UserStatus::Blocked, _) => conflict("the user is blocked"),
        (UserStatus::Active, TriageDecision::Answer) if user.opted_out => conflict("the user has opted out"),
        (UserStatus::Active, TriageDecision::Answer | TriageDecision::NoAnswer) => Ok(()),
    }
}

fn check_text(text: &str) -> Result<String, ProblemDetails> {
    let unprocessable = |detail: &str| Err(ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    if text.trim().is_empty() {
        return unprocessable("text is blank");
    }
    if text.chars().count() > MAX_TEXT_CHARS {
        return unprocessable("text is longer than 1600 characters");
    }
    // Messages by phone get the same replacement.
    Ok(text.replace('\0', "\u{fffd}"))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ProblemDetails> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY_HEADER) else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=MAX_KEY_CHARS).contains(&key.len()));
    match key {
        Some(key) => Ok(Some(key.to_owned())),
        None => {
            let detail = "Idempotency-Key must have 1 to 255 characters of printable ASCII";
            Err(ProblemDetails::new(StatusCode::BAD_REQUEST, detail))
        }
    }
}

/// Returns the preferred wait. A preference that cannot be parsed is ignored.
fn preferred_wait(headers: &HeaderMap) -> Duration {
    let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    preferences
        .flat_map(|value| value.split(','))
        .find_map(|preference| match preference.trim().split_once('=') {
            Some(("wait", seconds)) => seconds.parse().ok().map(Duration::from_secs),
            None if preference.trim() == "respond-async" => Some(Duration::ZERO),
            Some(_) | None => None,
        })
        .map_or(MAX_RESPONSE_WAIT, |wait| wait.min(MAX_RESPONSE_WAIT))
}

fn reply_json(event: EventId, result: MessageResult) -> MessageReply {
    let reply_action = |action| match action {
        MessageAction::React(emoji) => ReplyAction::React { emoji: emoji.as_str().to_owned() },
        MessageAction::SendPoster { name, url } => ReplyAction::SendPoster { title: name, url },
    };
    let message_conversation = |lifecycle: lifecycle::ConversationLifecycle| MessageConversation {
        is_new_conversation: lifecycle.is_new_conversation,
        conversation_id: lifecycle.conversation_id.0,
        conversation_name: lifecycle.conversation_name,
        started_at: format_iso(lifecycle.started_at),
    };
    MessageReply {
        message_id: event.0,
        content: result.content,
        actions: result.actions.into_iter().map(reply_action).collect(),
        lifecycle: result.lifecycle.map(message_conversation),
        turn: result.turn.map(message_turn_json),
    }
}

fn message_turn_json((id, state): (TurnId, &str)) -> MessageTurn {
    MessageTurn { id: id.0, state: state.to_owned() }
}
