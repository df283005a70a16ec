//! Basic types of a conversation that every other file may use: users, addresses, model steps, tool calls.

use std::fmt;

use serde_json::Value;

pub use super::call_failure::{CallFailure, FailureCode};
use super::tool_schema::ToolSchema;

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
    EventId,
    TurnId,
    /// Row of `tool_calls`, unlike [`CallId`], which the model sees.
    CallRow,
    OutboxId
);

/// Phone number in E.164 form: `+`, then 7 to 15 digits that do not start with 0.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PhoneNumber(String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a phone number in E.164 form such as +15550100123")]
pub struct InvalidPhoneNumber;

impl PhoneNumber {
    pub fn parse(text: &str) -> Result<Self, InvalidPhoneNumber> {
        let digits = text.strip_prefix('+').ok_or(InvalidPhoneNumber)?;
        let well_formed = (7..=15).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        if well_formed { Ok(Self(text.to_owned())) } else { Err(InvalidPhoneNumber) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Formats the number for users: a North American number in its groups, any other unchanged.
    pub fn format_grouped(&self) -> String {
        match self.0.strip_prefix("+1") {
            Some(rest) if rest.len() == 10 => format!("+1 {} {} {}", &rest[..3], &rest[3..6], &rest[6..]),
            _ => self.0.clone(),
        }
    }

    /// Returns the form for logs: the last two digits.
    pub fn masked(&self) -> String {
        format!("+***{}", &self.0[self.0.len() - 2..])
    }
}

/// Debug output is masked too, so that a stray `{:?}` cannot put a number in a log.
impl fmt::Debug for PhoneNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

pub(super) const LOCAL: &str = "local";

/// Address as a channel writes it: `+1555…`, `whatsapp:+1555…`, `rcs:+1555…`, or a sender name.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Our own address at the terminal, without a carrier in between.
    pub fn local() -> Self {
        Self::new(LOCAL)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `whatsapp:`, `rcs:` or nothing.
    pub fn prefix(&self) -> &str {
        match self.0.split_once(':') {
            Some((scheme @ ("whatsapp" | "rcs"), _)) => &self.0[..=scheme.len()],
            _ => "",
        }
    }

    /// Returns the phone number of the address: the same for every prefix.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Rights of a user beyond requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRights {
    pub role: UserRole,
    pub add: bool,
    pub delete: bool,
    pub four_k: bool,
}

impl UserRights {
    pub fn may_delete(self) -> bool {
        self.delete || self.role == UserRole::Admin
    }

    pub fn may_add(self) -> bool {
        self.add || self.role == UserRole::Admin
    }

    pub fn may_four_k(self) -> bool {
        self.four_k || self.role == UserRole::Admin
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub phone: PhoneNumber,
    pub name: Option<String>,
    pub status: UserStatus,
    pub rights: UserRights,
    pub opted_out: bool,
    /// Created in the console for tests: no message to this user goes to a phone.
    pub test: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelKind {
    Twilio,
    Console,
    Local,
}

impl ChannelKind {
    /// Returns whether a message can show a reaction; over the phone a reaction would be a message of its own.
    pub fn shows_reactions(self) -> bool {
        match self {
            Self::Twilio => false,
            Self::Console | Self::Local => true,
        }
    }
}

/// Word by which carriers and we turn messages off and on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptWord {
    /// Nothing may be sent any more.
    Out,
    /// START or UNSTOP: only turns messages on again.
    In,
    /// Turns messages on again and may answer a prompt too.
    Yes,
    /// The carrier answers it.
    Help,
}

/// Id by which the model knows a tool call: nine letters and digits, which every model server accepts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(String);

impl CallId {
    /// Our id in place of the server's, whose ids may repeat, be missing or be too long for another server.
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
    /// Anything else; stored for the trace, shown to the model as `{}`.
    Malformed(String),
}

impl ToolArguments {
    /// Parses the arguments from a model server: an object, a string that holds one (once or twice encoded), or
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

/// Level of the changes that a tool may make. The danger is a constant of the tool, never of its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectLevel {
    /// Runs at once and may be repeated.
    Read,
    /// Runs at once and counts towards limits; its outcome is determined before any repetition.
    Write,
    /// Held until the user confirms with a yes.
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
    /// Users who may add.
    Adders,
    /// Users who may delete.
    Deleters,
    /// Users who may not delete, and may ask a user who may.
    NotDeleters,
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

/// Tool call of a model step, with all known facts about its run.
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

/// Reason of a cancellation: the turn ended before the call was started.
pub const NOT_RUN: &str = "not_run";
/// Reason of a cancellation: the turn was canceled.
pub const CLEARED: &str = "cleared";

#[derive(Debug, Clone, PartialEq)]
pub enum CallState {
    Created,
    /// Started without a known result: a crash or a lost response.
    Running,
    /// A destructive call that waits for a yes. Its turn is over.
    Held,
    Done(CallResult),
    Failed(CallFailure),
    /// Never run: the user said no, the prompt expired, or another one replaced it.
    Canceled(String),
}

/// Result of a tool. All three parts are written by code.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// Short JSON for the model.
    pub for_model: Value,
    /// One plain sentence for the user, used when the model cannot say it.
    pub for_user: String,
    /// Ids that this result showed; only shown ids are accepted later.
    pub shown: Vec<MediaRef>,
}

/// Title that a tool result has shown: by catalog number, or by its id in one library.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MediaRef {
    Tmdb(i64),
    Tvdb(i64),
    Item {
        instance: String,
        kind: MediaKind,
        id: i64,
    },
    /// A download, by its id in the queue of an instance.
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

/// Responder of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Responder {
    Model,
    Keyword,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_prefix_does_not_change_the_user() {
        for text in ["+15550100123", "whatsapp:+15550100123", "rcs:+15550100123"] {
            assert_eq!(Address::new(text).phone(), PhoneNumber::parse("+15550100123"));
        }
        assert_eq!(Address::new("whatsapp:+15550100123").prefix(), "whatsapp:");
        assert_eq!(Address::new("+15550100123").prefix(), "");
    }

    #[test]
    fn malformed_phone_number_is_refused() {
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
    fn arguments_are_an_object_or_text_with_one() {
        let object = |text| ToolArguments::Object(serde_json::from_str(text).unwrap());
        for (sent, read) in [
            (serde_json::json!({"a": 1}), object(r#"{"a":1}"#)),
            (serde_json::json!(r#"{"a":1}"#), object(r#"{"a":1}"#)),
            (serde_json::json!(r#""{\"a\":1}""#), object(r#"{"a":1}"#)),
            (serde_json::json!(""), object("{}")),
            (serde_json::json!(null), object("{}")),
            (serde_json::json!(r#"{"a": "six"#), ToolArguments::Malformed(r#"{"a": "six"#.to_owned())),
            (serde_json::json!([1]), ToolArguments::Malformed("[1]".to_owned())),
        ] {
            assert_eq!(ToolArguments::parse(sent), read);
        }
    }
}
