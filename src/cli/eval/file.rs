//! Scenario file: users, a library, and messages with a model's script and the expected effects of each.

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
    /// Start time, with an offset.
    pub(super) now: String,
    #[serde(default = "five_minutes")]
    pub(super) confirm_ttl_s: i64,
    /// Two-digit code of a confirmation prompt, in place of a random one.
    pub(super) code: Option<String>,
    pub(super) users: BTreeMap<String, UserEntry>,
    pub(super) libraries: BTreeMap<String, LibraryEntry>,
    pub(super) scenarios: Vec<Scenario>,
}

fn five_minutes() -> i64 {
    300
}

impl ScenarioFile {
    /// Returns whether a library of the file has 4K instances.
    pub(super) fn has_four_k(&self) -> bool {
        self.libraries.values().any(|library| library.four_k.is_some())
    }

    pub(super) fn start_time(&self) -> anyhow::Result<Timestamp> {
        self.now.parse().with_context(|| format!("read the time {:?}", self.now))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct UserEntry {
    pub(super) phone: String,
    pub(super) role: RoleEntry,
    #[serde(default)]
    pub(super) can_delete: bool,
    /// Right to 4K. A file without 4K instances may omit the field: then the right is granted.
    pub(super) four_k: Option<bool>,
    /// Name by which others know the user.
    pub(super) name: Option<String>,
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
    #[serde(default = "default_base")]
    pub(super) library: String,
    #[serde(default)]
    pub(super) memory: Vec<MemoryEntry>,
    #[serde(default)]
    pub(super) quota: BTreeMap<String, QuotaEntry>,
    /// Sends a reaction that is the whole reply as its emoji.
    #[serde(default)]
    pub(super) reactions_as_text: bool,
    /// Reason that the scenario is meaningless with a real model.
    pub(super) scripted_only: Option<String>,
    pub(super) turns: Vec<TextEntry>,
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
        let named = self.text.split_once(" means ").filter(|_| self.kind == "alias");
        let fact = match (quality, named) {
            (Some(quality), _) => {
                let name = quality.split(" for ").next().unwrap_or(quality);
                UserFact::new(FactKind::Quality, None, name.split(" (").next().unwrap_or(name))
            }
            (None, Some((name, title))) => UserFact::new(FactKind::Alias, Some(name), title),
            (None, None) => UserFact::new(FactKind::Other, None, &self.text),
        };
        fact.with_context(|| format!("read what is known of {:?}: {:?}", self.user, self.text))
    }
}

/// Number of titles that a user may add within seven days, and the number already added.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct QuotaEntry {
    pub(super) adds_7d: u32,
    #[serde(default)]
    pub(super) used: u32,
}

fn default_base() -> String {
    "base".to_owned()
}

/// One message and its expected effects.
#[derive(Debug, Deserialize)]
pub(super) struct TextEntry {
    pub(super) from: String,
    pub(super) text: String,
    /// Time of the message in seconds since the start.
    #[serde(default)]
    pub(super) at: i64,
    /// Changes before the message: `movies.7.size_gb` to a value. [`super::scenario_servers`] and
    /// [`super::scenario_users`] know the paths.
    #[serde(default)]
    pub(super) world: BTreeMap<String, Value>,
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
    Garbled,
}

impl ModelEntry {
    pub(super) fn script_line(&self) -> ScriptedReply {
        match self {
            Self::Say(text) => ScriptedReply::Text(text.clone()),
            Self::Calls(calls) => {
                ScriptedReply::Calls(calls.iter().map(CallEntry::name_and_arguments).collect())
            }
            Self::Fail(fail) => ScriptedReply::Error(match fail {
                FailEntry::Timeout => ModelError::Timeout,
                FailEntry::Server => ModelError::Unavailable("scripted".to_owned()),
                FailEntry::RateLimited => ModelError::RateLimited { retry_after: None },
                FailEntry::Garbled => ModelError::Malformed("scripted".to_owned()),
            }),
        }
    }
}

impl CallEntry {
    fn name_and_arguments(&self) -> (String, ToolArguments) {
        let sent = self.raw.clone().map_or_else(|| self.args.clone(), Value::String);
        (self.call.clone(), ToolArguments::parse(sent))
    }
}

/// Checks after a message. Absent fields are not checked.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ExpectedEffects {
    pub(super) writes: Option<Vec<(String, i64)>>,
    #[serde(deserialize_with = "deserialize_stated")]
    pub(super) pending: Option<Option<PendingEntry>>,
    pub(super) calls: Vec<String>,
    pub(super) llm_calls_max: Option<usize>,
    pub(super) reply: ReplyEntry,
    pub(super) prompt_all: Vec<String>,
    pub(super) prompt_none: Vec<String>,
    pub(super) tools_none: Vec<String>,
    pub(super) opted_out: Option<Vec<String>>,
    pub(super) added_quality: BTreeMap<String, String>,
    /// Messages that other users received because of the message.
    pub(super) told: BTreeMap<String, ReplyEntry>,
    /// State of the libraries and stored facts of users: `series.3.seasons` with a value.
    pub(super) state: BTreeMap<String, Value>,
    /// Checks the path too: `calls` and `llm_calls_max` apply with a real model.
    pub(super) path: bool,
}

/// Deserializes a value of which `null` is a statement: no action is pending.
fn deserialize_stated<'de, D: serde::Deserializer<'de>>(
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
    pub(super) all: Vec<String>,
    /// Groups of which one entry each must match, for facts that can be worded in several ways.
    pub(super) any: Vec<Vec<String>>,
    pub(super) none: Vec<String>,
    pub(super) max_chars: Option<usize>,
    pub(super) max_questions: Option<usize>,
    pub(super) empty: bool,
    /// Number of messages.
    pub(super) texts: Option<usize>,
    pub(super) pictures: Option<usize>,
}
