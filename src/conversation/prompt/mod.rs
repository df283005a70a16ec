//! From a transcript to the request that a model reads. Every size cap of a prompt lives here.

mod build;
mod size;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::transcript::{CallId, ModelStep, ToolSpec};
use super::turn::{AskStyle, Turn};

/// What one model call is given, in the terms of Chat Completions.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The same bytes for every user of a role, so that servers can cache the prefix.
    pub system: String,
    pub tools: Vec<ToolSpec>,
    pub tool_choice: ToolChoice,
    pub messages: Vec<Message>,
    pub max_output_tokens: u32,
    /// The JSON Schema that the answer is to keep to. Not every server can: the answer has to be read with care.
    pub reply_schema: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    /// The last call of a turn: a plain answer is wanted. The tools stay listed, as strict servers demand.
    None,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    User(String),
    Assistant {
        text: String,
        calls: Vec<PromptCall>,
    },
    /// Exactly one for every call of the assistant message before it.
    ToolResult {
        call: CallId,
        content: String,
        summary: Option<String>,
    },
}

/// A past call as it is replayed: its arguments are always an object.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptCall {
    pub id: CallId,
    pub name: String,
    pub arguments: serde_json::Map<String, Value>,
}

/// Everything a request is made of.
#[derive(Debug)]
pub struct Material<'a> {
    pub tools: Vec<ToolSpec>,
    /// Earlier turns of this conversation, oldest first.
    pub history: &'a [PastTurn],
    pub turn: &'a Turn,
    pub context: Context<'a>,
    pub style: AskStyle,
}

/// What the model is told beside the user's words.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// The moment in the household's zone: `Fri Nov 20 2026 21:04 America/New_York`.
    pub moment: String,
    pub user_name: Option<&'a str>,
    /// What is known of them, a sentence each.
    pub known: &'a [String],
    /// What was changed for them earlier on the same day, in other conversations, newest first.
    pub done_today: &'a [String],
    /// What happened that the model cannot know, a sentence each.
    pub notes: &'a [String],
    /// What was said before, in other conversations, as dated lines.
    pub recalled: &'a [String],
}

/// A finished turn as later turns see it.
#[derive(Debug, Clone, PartialEq)]
pub struct PastTurn {
    pub texts: Vec<String>,
    pub steps: Vec<ModelStep>,
    /// What was answered, where code wrote it or it differs from the last step's text.
    pub answer: Option<String>,
}

/// Writes the request that asks whether these texts want an answer. `before` is the turn before them.
pub fn triage(texts: &[String], before: Option<&PastTurn>) -> ModelRequest {
    build::triage(texts, before)
}

/// Writes the request that asks what an exchange is about.
pub fn extraction(question: &str, answer: &str) -> ModelRequest {
    build::extraction(question, answer)
}

/// Writes the request for one model call.
pub fn build(material: &Material<'_>) -> ModelRequest {
    build::build(material)
}
