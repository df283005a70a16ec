//! Basic types of conversations, which every module may use: users, addresses, model steps, tool calls.

use std::fmt;

use serde_json::Value;

pub use super::call_failure::{CallFailure, FailureCode};
use super::rating_caps::RatingCaps;
use super::tool_schema::ToolSchema;
pub use super::user_address::{InvalidPhoneNumber, PhoneNumber, UserAddress};
use super::{channel::Channel, channel_list};

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

id!(
    UserId,
    ConversationId,
    /// Row of `inbound_events`: an inbound message.
    EventId,
    TurnId,
    /// Row of `tool_calls`, unlike [`CallId`], which the model sees.
    CallRow,
    /// Row of `outbox`: an outbound message.
    OutboxId,
    /// Row of `user_addresses`.
    AddressId,
    VoteId
);

/// Address as a channel writes it: `+1555…`, `whatsapp:+1555…`, `rcs:+1555…`, or a sender name.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns our own address in the terminal, which has no carrier.
    pub fn local() -> Self {
        Self::new(channel_list::TERMINAL_ADDRESS)
    }

    /// Returns our own address in the console, where messages are only shown.
    pub fn console() -> Self {
        Self::new(channel_list::CONSOLE_ADDRESS)
    }

    /// Returns the channel to which the address belongs. Messages from an address of ours are sent on its channel.
    pub fn channel(&self) -> Channel {
        channel_list::split_prefix(&self.0).0
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a prefix of the channel's addresses, such as `whatsapp:`, or an empty string.
    pub fn prefix(&self) -> &str {
        channel_list::split_prefix(&self.0).1
    }

    /// Returns the messenger of an address of ours, such as "sms" or "whatsapp".
    pub fn messenger(&self) -> &'static str {
        channel_list::messenger(&self.0)
    }

    /// Returns the phone number of the address, without its prefix.
    pub fn phone(&self) -> Result<PhoneNumber, InvalidPhoneNumber> {
        PhoneNumber::parse(&self.0[self.prefix().len()..])
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.phone() {
            Ok(phone) => write!(f, "{}{}", self.prefix(), phone.masked()),
            Err(InvalidPhoneNumber) => f.write_str("(no number)"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UserRole {
    Admin,
    Member,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserStatus {
    Pending,
    Active,
    Blocked,
}

/// Role, permissions and caps of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UserRights {
    pub role: UserRole,
    pub add: bool,
    pub delete: bool,
    pub four_k: bool,
    /// Decides about titles over the caps of others, as admins do.
    pub parent: bool,
    /// Caps as they are stored; those of an admin do not apply.
    pub caps: RatingCaps,
}

impl UserRights {
    /// Rights of a member who joined, without a cap.
    pub const MEMBER: Self = Self {
        role: UserRole::Member,
        add: true,
        delete: false,
        four_k: false,
        parent: false,
        caps: RatingCaps::UNLIMITED,
    };

    /// Returns the caps on the titles of the user.
    pub fn rating_caps(self) -> RatingCaps {
        match self.role {
            UserRole::Admin => RatingCaps::UNLIMITED,
            UserRole::Member => self.caps,
        }
    }

    /// Returns whether the user decides about titles over the caps of others.
    pub fn may_approve_titles(self) -> bool {
        self.role == UserRole::Admin || (self.parent && self.caps.is_unlimited())
    }

    pub fn may_delete(self) -> bool {
        self.delete || self.role == UserRole::Admin
    }

    pub fn may_add(self) -> bool {
        self.add || self.role == UserRole::Admin
    }

    pub fn may_use_four_k(self) -> bool {
        self.four_k || self.role == UserRole::Admin
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    /// First address of the user; `None` for an erased user.
    pub address: Option<UserAddress>,
    pub name: Option<String>,
    pub status: UserStatus,
    pub rights: UserRights,
    /// True if nothing may be sent to the address of the processed message; without a message, if nothing may be sent to
    /// any address.
    pub opted_out: bool,
    /// True for a fictional user created in the console: messages to this user are never sent to a phone.
    pub test: bool,
}

/// Opt-out or opt-in keyword, recognized by carriers and by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptKeyword {
    /// STOP and its synonyms: nothing more may be sent.
    Out,
    /// START or UNSTOP: only opts the user back in.
    In,
    /// YES: opts the user back in, and may also answer a prompt.
    Yes,
    /// HELP or INFO, which the carrier answers.
    Help,
}

/// Id of a tool call in the prompt: nine letters and digits, a form that every model server accepts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(String);

impl CallId {
    /// Builds our own id from the position of the call. The ids of model servers may repeat, be missing, or be too long
    /// for another server.
    pub fn from_position(turn: TurnId, step: u32, ord: u32) -> Self {
        Self(format!(
            "{}{}{}",
            encode_base36(turn.0.unsigned_abs(), 5),
            encode_base36(step.into(), 2),
            encode_base36(ord.into(), 2)
        ))
    }

    pub fn from_stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn encode_base36(mut number: u64, width: usize) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut digits = vec!['0'; width];
    for digit in digits.iter_mut().rev() {
        *digit = char::from(DIGITS[(number % 36) as usize]);
        number /= 36;
    }
    digits.into_iter().collect()
}

/// Arguments of a call as the model wrote them.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolArguments {
    /// A JSON object.
    Object(serde_json::Map<String, Value>),
    /// Anything else: stored as it is, and shown to the model as `{}`.
    Malformed(String),
}

impl ToolArguments {
    /// Parses the arguments from a model server: an object, a string that contains one (encoded once or twice), or
    /// nothing.
    pub fn parse(value: Value) -> Self {
        match value {
            Value::Object(map) => Self::Object(map),
            Value::Null => Self::Object(serde_json::Map::new()),
            Value::String(text) if text.trim().is_empty() => Self::Object(serde_json::Map::new()),
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(Value::Object(map)) => Self::Object(map),
                Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
                    Ok(Value::Object(map)) => Self::Object(map),
                    _ => Self::Malformed(text),
                },
                _ => Self::Malformed(text),
            },
            other => Self::Malformed(other.to_string()),
        }
    }
}

/// Level of the changes that a tool may make. The level depends on the tool, never on its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectLevel {
    /// Runs at once and may be repeated.
    Read,
    /// Runs at once and counts toward limits. Its outcome is determined before it is repeated.
    Write,
    /// Runs only after the user has confirmed with a yes.
    Destructive,
}

/// Kind of an addition that counts towards a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaKind {
    Movies,
    Seasons,
}

/// Quota that a call has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaUse {
    pub kind: QuotaKind,
    pub amount: u32,
}

/// Users to whom a tool is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolAudience {
    Everyone,
    /// People in any chat, because the tool acts on the chat itself.
    Chat,
    /// Users who may add.
    CanAdd,
    /// Users who may delete.
    CanDelete,
    /// Users who may delete, with a command. Requests to the model do not offer the tool.
    DeletionCommand,
    /// Users who may not delete, and who can ask an admin instead.
    CannotDelete,
    /// Users in a private chat, because the tool is about what is stored of its user.
    PrivateChat,
    /// People in a room, because the tool concerns all of them.
    Room,
    /// Users with caps on age ratings, in a private chat.
    AgeLimited,
    /// Agents, which read lists that people do not read.
    Agent,
}

/// Tool as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: &'static str,
    pub description: &'static str,
    pub effect_level: EffectLevel,
    pub audience: ToolAudience,
    /// Schema of the arguments.
    pub parameters: ToolSchema,
}

/// Tool call of a model step, with its state.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub row: CallRow,
    pub id: CallId,
    pub step: u32,
    pub name: String,
    pub arguments: ToolArguments,
    pub effect_level: EffectLevel,
    pub state: CallState,
}

impl ToolCall {
    pub fn is_same_request(&self, other: &Self) -> bool {
        self.name == other.name && self.arguments == other.arguments
    }
}

/// Reason for a canceled call: the turn ended before the call was started.
pub const NOT_RUN: &str = "not_run";
/// Reason for a canceled call: the turn was canceled.
pub const TURN_CANCELED: &str = "cleared";

/// State of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallState {
    Created,
    /// Started without a known result: a crash or a lost response.
    Running,
    /// A destructive call that waits for a yes. Its turn has ended.
    AwaitingConfirmation,
    Done(CallResult),
    Failed(CallFailure),
    /// Never run: the user replied no, the prompt expired or was replaced, or the turn ended first.
    Canceled(String),
}

impl CallState {
    /// Returns whether the call has no outcome, and waits for none.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Created | Self::Running)
    }
}

/// Result of a tool call, written by code.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// Short JSON for the model.
    pub for_model: Value,
    /// Sentence for the user, for a reply without a text of the model.
    pub for_user: String,
    /// References that the result showed to the model. Later calls may use only shown references.
    pub shown: Vec<MediaRef>,
}

/// Reference to a title or a download that a tool result has shown: a title by its catalog id or by its id in a
/// library.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MediaRef {
    Tmdb(i64),
    Tvdb(i64),
    Item {
        instance: String,
        kind: MediaKind,
        id: i64,
    },
    /// A download, by its id in the queue of the instance.
    Download {
        instance: String,
        id: i64,
    },
}

#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    Movie,
    Series,
}

impl fmt::Display for MediaRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tmdb(id) => write!(f, "tmdb:{id}"),
            Self::Tvdb(id) => write!(f, "tvdb:{id}"),
            Self::Item { instance, kind: MediaKind::Movie, id } => write!(f, "{instance}:movie:{id}"),
            Self::Item { instance, kind: MediaKind::Series, id } => write!(f, "{instance}:series:{id}"),
            Self::Download { instance, id } => write!(f, "{instance}:download:{id}"),
        }
    }
}

/// Completed response of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelStep {
    pub text: String,
    pub stop: StopReason,
    pub calls: Vec<ToolCall>,
    pub responder: Responder,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    Done,
    Length,
    Filtered,
    Refused,
    /// Unknown stop reason; model servers invent new ones.
    Other(String),
}

/// Writer of the replies in a turn: the model or the keyword grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Responder {
    Model,
    Keyword,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_prefix_does_not_change_the_phone_number() {
        for text in ["+15550100123", "whatsapp:+15550100123", "rcs:+15550100123"] {
            assert_eq!(Address::new(text).phone(), PhoneNumber::parse("+15550100123"));
        }
        assert_eq!(Address::new("whatsapp:+15550100123").prefix(), "whatsapp:");
        assert_eq!(Address::new("+15550100123").prefix(), "");
    }

    #[test]
    fn malformed_phone_number_is_rejected() {
        for text in [
            "",
            "+",
            "12345",
            "DIALARR",
            "+0123456789",
            "+1555",
            "+1555010012x",
            "+1234567890123456",
            "whatsapp:bob",
        ] {
            assert_eq!(PhoneNumber::parse(text), Err(InvalidPhoneNumber), "{text}");
        }
    }

    #[test]
    fn phone_number_is_masked_in_debug_output() {
        let phone = PhoneNumber::parse("+15550100123").unwrap();
        assert_eq!(format!("{phone:?} {:?}", Address::new("rcs:+15550100123")), "+***23 rcs:+***23");
    }

    #[test]
    fn call_ids_have_nine_letters_and_digits() {
        assert_eq!(CallId::from_position(TurnId(1), 1, 0).as_str(), "000010100");
        assert_eq!(CallId::from_position(TurnId(60_466_175), 7, 15).as_str(), "zzzzz070f");
    }

    #[test]
    fn tool_arguments_parse_from_object_or_json_string() {
        let object = |text| ToolArguments::Object(serde_json::from_str(text).unwrap());
        for (sent, expected) in [
            (serde_json::json!({"a": 1}), object(r#"{"a":1}"#)),
            (serde_json::json!(r#"{"a":1}"#), object(r#"{"a":1}"#)),
            (serde_json::json!(r#""{\"a\":1}""#), object(r#"{"a":1}"#)),
            (serde_json::json!(""), object("{}")),
            (serde_json::json!(null), object("{}")),
            (serde_json::json!(r#"{"a": "six"#), ToolArguments::Malformed(r#"{"a": "six"#.to_owned())),
            (serde_json::json!([1]), ToolArguments::Malformed("[1]".to_owned())),
        ] {
            assert_eq!(ToolArguments::parse(sent), expected);
        }
    }
}
