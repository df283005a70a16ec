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

use super::extract::{Body, Id};
use super::users::Person;
use super::{unavailable, users};
use crate::conversation::inbound_message::{Received, Via};
use crate::conversation::lifecycle;
use crate::conversation::transcript::{Address, ChannelKind, EventId, Status, TurnId, User, UserId};
use crate::conversation::triage::Wants;
use crate::conversation::verification::FieldAuthority;
use crate::store::answers::{self, Answer, Did, Progress};
use crate::store::ledger::Admission;
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::Problem;
use crate::web::sse_wire::iso;

/// Longest message, in characters.
const MAX_CHARACTERS: usize = 1600;
const MAX_KEY_CHARACTERS: usize = 255;
const LONGEST_WAIT: Duration = Duration::from_secs(90);
const KEY: &str = "idempotency-key";
/// Period in which a client repeats a request that it sent before an upgrade.
const REPEATED_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Message in the name of a user.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "user": "+15550100002", "text": "add dune" }))]
pub(super) struct NewMessage {
    user: Sender,
    /// Message text; not only white space.
    #[schema(min_length = 1, max_length = 1600, pattern = r"\S")]
    text: String,
    /// `false`: the message only becomes part of the conversation, and gets no reply.
    #[serde(default = "answered")]
    #[schema(default = true)]
    respond: bool,
}

fn answered() -> bool {
    true
}

/// Id of a user, or a phone number.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
enum Sender {
    Id(#[serde(deserialize_with = "whole")] i64),
    Phone(PhoneNumber),
}

/// Deserializes an integer. In JSON, 7.0 is the same number as 7.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    let rounded = || number.as_f64().filter(|number| number.fract() == 0.0);
    // A number that is too large becomes the largest one, which is no user's id.
    let id = number.as_i64().or_else(|| rounded().map(|number| number as i64));
    id.ok_or_else(|| D::Error::custom("not a whole number"))
}

/// Phone number in E.164 form.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = "+15550100002", pattern = r"^\+[1-9][0-9]{6,14}$")]
struct PhoneNumber(String);

/// Outcome of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Reply {
    message_id: i64,
    /// Whole reply. Empty if there is none: for a message that needs none, such as thanks, or `respond: false`.
    #[schema(example = "Added Dune (2021). I will text you when it is ready.")]
    content: String,
    actions: Vec<Action>,
    /// Conversation of the message. Null for a message without a conversation.
    lifecycle: Option<Lifecycle>,
    /// Turn of the message. Null for a message without a turn.
    turn: Option<TurnState>,
}

/// Effect on the conversation itself.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Action {
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
struct Lifecycle {
    is_new_conversation: bool,
    conversation_id: i64,
    #[schema(example = "Nov 20, 2026 21:04")]
    conversation_name: String,
    #[schema(format = DateTime)]
    started_at: String,
}

/// Turn that processed a message.
#[derive(Debug, Serialize, ToSchema)]
struct TurnState {
    id: i64,
    /// `CREATED`, `IN_PROGRESS`, `WAITING_FOR_TOOLS`, `FAILED`, `ERROR`, `COMPLETED` or `CANCELED`.
    state: String,
}

/// Message without a complete reply yet.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Pending {
    message_id: i64,
    /// Turn of the message. Null before a turn has claimed it.
    turn: Option<TurnState>,
}

/// Send a message as a user and wait for the reply
///
/// The message is processed like every message: it may add titles, require confirmation before a deletion, or answer a
/// confirmation prompt. The reply is returned and appears in the console; it is not sent by phone. Notifications to
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
            description = "A repeat with the same API key and this key texts nothing again: it gets the answer of the first. With another user or text it is refused with 422."
        ),
        (
            "Prefer" = Option<String>, Header, example = "wait=30",
            description = "`wait=N`: wait N seconds for the answer, at most and by default 90. `respond-async`: not at all."
        ),
    ),
    responses(
        (status = 200, description = "The answer, or that the text is stored", body = Reply),
        (
            status = 202,
            description = "The answer is not there yet, or the assistant is paused",
            body = Pending,
            headers(("Location" = String, description = "Where to ask for it"))
        ),
        (status = 404, description = "Nobody is known by this id or number"),
        (status = 409, description = "They are not let in, are blocked, or have opted out; the detail says which"),
    )
)]
pub(super) async fn send(
    State(console): State<ConsoleState>,
    caller: Caller,
    headers: HeaderMap,
    Body(message): Body<NewMessage>,
) -> Result<Response, Problem> {
    let key = idempotency_key(&headers)?;
    let text = checked(&message.text)?;
    let person = match message.user {
        Sender::Id(id) => Person::Id(UserId(id)),
        Sender::Phone(PhoneNumber(phone)) => Person::read(&phone)?,
    };
    let user = users::find(&console, person).await?;
    let wants = if message.respond { Wants::AnAnswer } else { Wants::NoAnswer };
    let event = take_in(&console, caller, &user, New { text, wants, key }).await?;
    let over = console.engine.over_or_left(user.id, event);
    // If the turn takes longer, the response contains the address to query later.
    if let Ok(ended) = tokio::time::timeout(wait(&headers), over).await {
        ended.map_err(unavailable)?;
    }
    told(&console, event).await
}

/// Get the outcome of a message
#[utoipa::path(
    get,
    path = "/messages/{id}",
    tag = "messages",
    operation_id = "show_message",
    params(("id" = i64, Path, description = "The id of a text")),
    responses(
        (status = 200, description = "The answer", body = Reply),
        (
            status = 202,
            description = "The answer is not there yet",
            body = Pending,
            headers(("Location" = String, description = "Where to ask for it"))
        ),
        (status = 404, description = "No text has this id"),
    )
)]
pub(super) async fn show(
    State(console): State<ConsoleState>,
    _caller: Caller,
    Id(id): Id,
) -> Result<Response, Problem> {
    told(&console, EventId(id)).await
}

async fn told(console: &ConsoleState, event: EventId) -> Result<Response, Problem> {
    let answer = console.db.read(move |conn| answers::of(conn, event)).await.map_err(unavailable)?;
    let answer = answer.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "no text has this id"))?;
    Ok(match answer.progress {
        Progress::Over => Json(reply(event, answer)).into_response(),
        Progress::UnderWay => {
            let location = format!("{}/messages/{event}", super::PREFIX);
            let pending = Pending { message_id: event.0, turn: answer.turn.map(turn) };
            (StatusCode::ACCEPTED, [(LOCATION, location)], Json(pending)).into_response()
        }
    })
}

/// Message before it is stored.
struct New {
    text: String,
    wants: Wants,
    key: Option<String>,
}

/// Stores the text, or finds the one that was stored by the same key.
async fn take_in(console: &ConsoleState, caller: Caller, user: &User, new: New) -> Result<EventId, Problem> {
    let external_id = caller.origin().id(&match &new.key {
        // A key is chosen by the caller, and only a hash of it is stored. It identifies a request for all users: with
        // another user or text, the key is refused.
        Some(key) => hash(key),
        None => format!("{:032x}", rand::random::<u128>()),
    });
    let now = console.clock.now();
    let request = SameRequest { user: user.id, text: new.text.clone(), wants: new.wants };
    let looked_for = external_id.clone();
    let find = move |conn: &mut _| answers::known(conn, ChannelKind::Console, &looked_for);
    if new.key.is_some()
        && let Some(known) = console.db.read(find.clone()).await.map_err(unavailable)?
    {
        return request.check(&known);
    }
    if let Some(key) = &new.key
        && let Some(event) = known_before_upgrade(console, caller, key, &request).await?
    {
        return Ok(event);
    }
    may_text(user, new.wants)?;
    let received = Received {
        channel: ChannelKind::Console,
        external_id,
        from: user.phone.clone(),
        to: Address::console(),
        body: new.text,
        media: Vec::new(),
        via: Via::Local,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        provider_at: now,
        received_at: now,
    };
    let admission = console.engine.text_as(received, new.wants, caller.by()).await;
    match admission.map_err(|error| unavailable(error.into()))? {
        Admission::New { event, .. } => Ok(event),
        Admission::Nobody => Err(users::nobody()),
        // A concurrent request with the same key was faster.
        Admission::Duplicate => match console.db.read(find).await.map_err(unavailable)? {
            Some(known) => request.check(&known),
            None => Err(Problem::new(StatusCode::CONFLICT, "the text was stored and erased again")),
        },
    }
}

/// Finds the message of a repeated request whose first was stored before an upgrade, with the user in the hash of its
/// key. Only the same request of the last day counts: a key of today may have the same hash.
async fn known_before_upgrade(
    console: &ConsoleState,
    caller: Caller,
    key: &str,
    request: &SameRequest,
) -> Result<Option<EventId>, Problem> {
    let external_id = caller.origin().id(&hash(&format!("{}:{key}", request.user)));
    let find = move |conn: &mut _| answers::known(conn, ChannelKind::Console, &external_id);
    let known = console.db.read(find).await.map_err(unavailable)?;
    let since = console.clock.now() - REPEATED_FOR;
    let known = known.filter(|known| known.received_at >= since);
    Ok(known.and_then(|known| request.check(&known).ok()))
}

fn hash(key: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(key))
}

/// Fields in which a repeat of a request with the same key must match the first.
struct SameRequest {
    user: UserId,
    text: String,
    wants: Wants,
}

impl SameRequest {
    /// Returns the message that was stored first, if it came from the same request.
    fn check(&self, known: &answers::Known) -> Result<EventId, Problem> {
        let refused = |detail| Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        if known.user != self.user {
            return refused("this Idempotency-Key was used for another user");
        }
        // Text that has been erased since cannot be compared; no message was empty on arrival.
        if (known.body == self.text || known.body.is_empty()) && known.wants == self.wants {
            return Ok(known.event);
        }
        refused("this Idempotency-Key was used with another text")
    }
}

fn may_text(user: &User, wants: Wants) -> Result<(), Problem> {
    let conflict = |detail| Err(Problem::new(StatusCode::CONFLICT, detail));
    match (user.status, wants) {
        (Status::Pending, _) => conflict("they are not let in yet: approve them first"),
        (Status::Blocked, _) => conflict("they are blocked"),
        (Status::Active, Wants::AnAnswer) if user.opted_out => {
            conflict("they have opted out of texts, so nothing is answered")
        }
        (Status::Active, Wants::AnAnswer | Wants::NoAnswer) => Ok(()),
    }
}

fn checked(text: &str) -> Result<String, Problem> {
    let wrong = |detail: &str| Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    if text.trim().is_empty() {
        return wrong("text is empty");
    }
    if text.chars().count() > MAX_CHARACTERS {
        return wrong("text is longer than 1600 characters");
    }
    // Messages by phone get the same replacement: users cannot see the difference.
    Ok(text.replace('\0', "\u{fffd}"))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(KEY) else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=MAX_KEY_CHARACTERS).contains(&key.len()));
    match key {
        Some(key) => Ok(Some(key.to_owned())),
        None => {
            let detail = "Idempotency-Key has 1 to 255 characters of printable ASCII";
            Err(Problem::new(StatusCode::BAD_REQUEST, detail))
        }
    }
}

/// Returns the preferred wait. A preference that cannot be parsed is ignored.
fn wait(headers: &HeaderMap) -> Duration {
    let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    preferences
        .flat_map(|value| value.split(','))
        .find_map(|preference| match preference.trim().split_once('=') {
            Some(("wait", seconds)) => seconds.parse().ok().map(Duration::from_secs),
            None if preference.trim() == "respond-async" => Some(Duration::ZERO),
            Some(_) | None => None,
        })
        .map_or(LONGEST_WAIT, |wanted| wanted.min(LONGEST_WAIT))
}

fn reply(event: EventId, answer: Answer) -> Reply {
    let action = |did| match did {
        Did::React(emoji) => Action::React { emoji: emoji.as_str().to_owned() },
        Did::SendPoster { name, url } => Action::SendPoster { title: name, url },
    };
    let stands_in = |found: lifecycle::Lifecycle| Lifecycle {
        is_new_conversation: found.is_new_conversation,
        conversation_id: found.conversation_id.0,
        conversation_name: found.conversation_name,
        started_at: iso(found.started_at),
    };
    Reply {
        message_id: event.0,
        content: answer.content,
        actions: answer.actions.into_iter().map(action).collect(),
        lifecycle: answer.lifecycle.map(stands_in),
        turn: answer.turn.map(turn),
    }
}

fn turn((id, state): (TurnId, String)) -> TurnState {
    TurnState { id: id.0, state }
}
