//! Scenario file format: users, libraries, and messages with a model script and the expected effects.

use std::collections::BTreeMap;

use anyhow::Context;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::library_entries::LibraryEntry;
use crate::conversation::people::facts::{FactKind, UserFact};
use crate::conversation::transcript::ToolArguments;
use crate::llm::ModelError;
use crate::llm::scripted::ScriptedReply;

#[derive(Debug, Deserialize)]
pub(super) struct ScenarioFile {
    /// Start time with a UTC offset.
    pub(super) now: String,
    #[serde(default = "default_confirm_ttl_s")]
    pub(super) confirm_ttl_s: i64,
    /// Two-digit code of a confirmation prompt, in place of a random one.
    pub(super) code: Option<String>,
    pub(super) users: BTreeMap<String, UserEntry>,
    pub(super) libraries: BTreeMap<String, LibraryEntry>,
    pub(super) scenarios: Vec<Scenario>,
}

fn default_confirm_ttl_s() -> i64 {
    300
}

impl ScenarioFile {
    /// Returns whether a library of the file has 4K instances.
    pub(super) fn has_four_k(&self) -> bool {
        self.libraries.values().any(|library| library.four_k.is_some())
    }

    pub(super) fn start_time(&self) -> anyhow::Result<Timestamp> {
        self.now.parse().with_context(|| format!("parse the time {:?}", self.now))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct UserEntry {
    pub(super) phone: String,
    pub(super) role: RoleEntry,
    #[serde(default)]
    pub(super) can_delete: bool,
    /// Permission for 4K. If absent, it is granted in files without 4K instances.
    pub(super) four_k: Option<bool>,
    /// Display name of the user.
    pub(super) name: Option<String>,
    /// Highest age ratings, in years.
    pub(super) movie_age: Option<u8>,
    pub(super) show_age: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RoleEntry {
    Admin,
    Member,
    /// Member without rights to add or delete.
    Restricted,
    /// Unknown number.
    Unknown,
}

#[derive(Debug, Deserialize)]
pub(super) struct Scenario {
    pub(super) id: String,
    #[serde(default)]
    pub(super) title: String,
    #[serde(default = "default_library")]
    pub(super) library: String,
    #[serde(default)]
    pub(super) memory: Vec<MemoryEntry>,
    #[serde(default)]
    pub(super) quota: BTreeMap<String, QuotaEntry>,
    /// Sends a reply that is only a reaction as an emoji text.
    #[serde(default)]
    pub(super) reactions_as_text: bool,
    /// Members of a group with a bot. Without it, everybody texts by phone.
    pub(super) room: Option<Vec<String>>,
    /// Reason why the scenario is skipped with a real model.
    pub(super) scripted_only: Option<String>,
    pub(super) turns: Vec<MessageEntry>,
}

/// Fact stored about a user before the first message.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct MemoryEntry {
    pub(super) user: String,
    pub(super) kind: String,
    pub(super) text: String,
}

impl MemoryEntry {
    /// Parses `quality Ultra-HD (4K) for her requests`, `the office means The Office (UK) 2001`, or any other text.
    pub(super) fn to_fact(&self) -> anyhow::Result<UserFact> {
        let quality = self.text.strip_prefix("quality ").filter(|_| self.kind == "preference");
        let alias = self.text.split_once(" means ").filter(|_| self.kind == "alias");
        let fact = match (quality, alias) {
            (Some(quality), _) => {
                let name = quality.split(" for ").next().unwrap_or(quality);
                UserFact::new(FactKind::Quality, None, name.split(" (").next().unwrap_or(name))
            }
            (None, Some((name, title))) => UserFact::new(FactKind::Alias, Some(name), title),
            (None, None) => UserFact::new(FactKind::Other, None, &self.text),
        };
        fact.with_context(|| format!("parse the fact about {:?}: {:?}", self.user, self.text))
    }
}

/// Quota of additions in seven days, the number already used, and the limit of space.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct QuotaEntry {
    pub(super) adds_7d: u32,
    #[serde(default)]
    pub(super) used: u32,
    pub(super) space_gb: Option<u32>,
}

fn default_library() -> String {
    "base".to_owned()
}

fn default_addressed() -> bool {
    true
}

/// One message and its expected effects.
#[derive(Debug, Deserialize)]
pub(super) struct MessageEntry {
    pub(super) from: String,
    #[serde(default)]
    pub(super) text: String,
    /// Writes or presses in the group, and not in the private chat.
    #[serde(default)]
    pub(super) room: bool,
    /// Whether a text in the group mentions the bot.
    #[serde(default = "default_addressed")]
    pub(super) addressed: bool,
    /// Label of a button, or number of an option in a poll, which is pressed in place of a text.
    pub(super) press: Option<String>,
    /// Time of the message in seconds since the start.
    #[serde(default)]
    pub(super) at: i64,
    /// Changes before the message: values by paths such as `movies.7.size_gb`. [`super::scenario_servers`] and
    /// [`super::scenario_users`] define the paths.
    #[serde(rename = "world", default)]
    pub(super) changes: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) model: Vec<ModelEntry>,
    #[serde(default)]
    pub(super) expect: ExpectedEffects,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ModelEntry {
    Calls(Vec<CallEntry>),
    Say(String),
    Fail(FailEntry),
}

#[derive(Debug, Deserialize)]
pub(super) struct CallEntry {
    call: String,
    #[serde(default)]
    args: Value,
    raw: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) enum FailEntry {
    #[serde(rename = "timeout")]
    Timeout,
    #[serde(rename = "500")]
    Server,
    #[serde(rename = "429")]
    RateLimited,
    #[serde(rename = "garbled")]
    Malformed,
}

impl ModelEntry {
    pub(super) fn to_scripted_reply(&self) -> ScriptedReply {
        match self {
            Self::Say(text) => ScriptedReply::Text(text.clone()),
            Self::Calls(calls) => {
                ScriptedReply::Calls(calls.iter().map(CallEntry::name_and_arguments).collect())
            }
            Self::Fail(fail) => ScriptedReply::Error(match fail {
                FailEntry::Timeout => ModelError::Timeout,
                FailEntry::Server => ModelError::Unavailable("scripted".to_owned()),
                FailEntry::RateLimited => ModelError::RateLimited { retry_after: None },
                FailEntry::Malformed => ModelError::Malformed("scripted".to_owned()),
            }),
        }
    }
}

impl CallEntry {
    fn name_and_arguments(&self) -> (String, ToolArguments) {
        let arguments = self.raw.clone().map_or_else(|| self.args.clone(), Value::String);
        (self.call.clone(), ToolArguments::parse(arguments))
    }
}

/// Expected effects of a message. Absent fields are not checked.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ExpectedEffects {
    /// Exact writes to the libraries: tool names and ids.
    pub(super) writes: Option<Vec<(String, i64)>>,
    /// Pending action after the message. An explicit `null` means that there is none.
    #[serde(deserialize_with = "deserialize_explicit_null")]
    pub(super) pending: Option<Option<PendingEntry>>,
    /// Tool calls that must occur in this order, possibly among others.
    pub(super) calls: Vec<String>,
    pub(super) llm_calls_max: Option<usize>,
    pub(super) reply: ReplyEntry,
    /// Messages to the group.
    pub(super) room: ReplyEntry,
    /// Texts that the model requests must contain.
    pub(super) prompt_all: Vec<String>,
    /// Texts that the model requests must not contain.
    pub(super) prompt_none: Vec<String>,
    /// Tools that must not be offered to the model.
    pub(super) tools_none: Vec<String>,
    /// Names of all users who have opted out.
    pub(super) opted_out: Option<Vec<String>>,
    /// Quality profiles of added titles, by catalog id.
    pub(super) added_quality: BTreeMap<String, String>,
    /// Messages to other users.
    #[serde(rename = "told")]
    pub(super) notified: BTreeMap<String, ReplyEntry>,
    /// Values of the libraries and users by paths such as `series.3.seasons`.
    pub(super) state: BTreeMap<String, Value>,
    /// Checks `calls` and `llm_calls_max` even with a real model.
    pub(super) path: bool,
}

/// Deserializes a field in which an explicit `null` differs from an absent value.
fn deserialize_explicit_null<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<PendingEntry>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct PendingEntry {
    pub(super) items: Vec<(String, i64)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ReplyEntry {
    /// Texts that the messages must contain.
    pub(super) all: Vec<String>,
    /// Groups of texts. The messages must contain at least one of each group.
    pub(super) any: Vec<Vec<String>>,
    /// Texts that the messages must not contain.
    pub(super) none: Vec<String>,
    pub(super) max_chars: Option<usize>,
    pub(super) max_questions: Option<usize>,
    pub(super) empty: bool,
    /// Number of messages.
    pub(super) texts: Option<usize>,
    pub(super) pictures: Option<usize>,
}
