//! From a transcript to the request that a model reads. Every size cap of a prompt lives here.

use serde_json::Value;

use super::transcript::{CallId, ToolSpec};

/// What one model call is given, in the terms of Chat Completions.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The same bytes for every user of a role, so that servers can cache the prefix.
    pub system: String,
    pub tools: Vec<ToolSpec>,
    pub tool_choice: ToolChoice,
    pub messages: Vec<Message>,
    pub max_output_tokens: u32,
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
