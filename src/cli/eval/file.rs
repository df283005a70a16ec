//! The scenario file: users, a library, and texts with a model's script and what is expected of each.

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
    /// The start, with an offset.
    pub(super) now: String,
    #[serde(default = "five_minutes")]
    pub(super) confirm_ttl_s: i64,
    /// The code of a question, in two digits, in place of a random one.
    pub(super) code: Option<String>,
    pub(super) users: BTreeMap<String, UserEntry>,
    pub(super) libraries: BTreeMap<String, LibraryEntry>,
    pub(super) scenarios: Vec<Scenario>,
}

fn five_minutes() -> i64 {
    300
}

impl ScenarioFile {
    /// Whether a library of the file has instances for 4K.
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
    /// The right to 4K. A file without instances for 4K may leave it out: then it is given.
    pub(super) four_k: Option<bool>,
    /// What others hear them called.
    pub(super) name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RoleEntry {
    Admin,
    Member,
    /// A member without rights to add or delete.
    Restricted,
    /// Nobody we know.
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
    /// Whether a reaction that stands for a whole answer is sent as its emoji.
    #[serde(default)]
    pub(super) reactions_as_text: bool,
    /// Why it means nothing with a real model.
    pub(super) scripted_only: Option<String>,
    pub(super) turns: Vec<TextEntry>,
}

/// What is known of somebody before the first text.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct MemoryEntry {
    pub(super) user: String,
    pub(super) kind: String,
    pub(super) text: String,
}

impl MemoryEntry {
    /// `quality Ultra-HD (4K) for her requests`, `the office means The Office (UK) 2001`, or anything else.
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

/// What a person may add within seven days, and has added.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct QuotaEntry {
    pub(super) adds_7d: u32,
    #[serde(default)]
    pub(super) used: u32,
}

fn default_base() -> String {
    "base".to_owned()
}

/// One text, and what should come of it.
#[derive(Debug, Deserialize)]
pub(super) struct TextEntry {
    pub(super) from: String,
    pub(super) text: String,
    /// Seconds since the start.
    #[serde(default)]
    pub(super) at: i64,
    /// What changes before the text: `movies.7.size_gb` to a value. [`super::world`] knows the paths.
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
                FailEntry::Garbled => ModelError::Garbled("scripted".to_owned()),
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

/// What is judged after a text. What is absent is not judged.
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
    /// What others were sent because of the text.
    pub(super) told: BTreeMap<String, ReplyEntry>,
    /// What is where in the libraries and of whom what is known: `series.3.seasons` with a value.
    pub(super) state: BTreeMap<String, Value>,
    /// The path matters too: `calls` and `llm_calls_max` are judged with a real model.
    pub(super) path: bool,
}

/// `null` is a statement here: nothing is pending.
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
    /// Of each group one, for facts that can be worded in several ways.
    pub(super) any: Vec<Vec<String>>,
    pub(super) none: Vec<String>,
    pub(super) max_chars: Option<usize>,
    pub(super) max_questions: Option<usize>,
    pub(super) empty: bool,
    /// How many texts.
    pub(super) texts: Option<usize>,
    pub(super) pictures: Option<usize>,
}
