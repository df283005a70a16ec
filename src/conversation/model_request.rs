//! Request of a model call, modeled on the Chat Completions API, and its size.

use serde_json::Value;

use super::offered_tools::OfferedTools;
use super::shared_message::SharedMessage;
use super::transcript::CallId;

/// Request of a model call.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// System prompt, identical for every user of a role, so that model servers can cache the prefix.
    pub system: String,
    pub tools: OfferedTools,
    pub tool_choice: ToolChoice,
    /// The requests of a turn share the messages of earlier turns.
    pub messages: Vec<SharedMessage>,
    pub max_output_tokens: u32,
    /// JSON Schema of the expected response. Not every model server supports schemas, so the response is untrusted.
    pub reply_schema: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    /// The model must answer without tools, in the last call of a turn. The tools are still listed, because strict
    /// servers require it.
    None,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ModelMessage {
    User(String),
    Assistant {
        text: String,
        calls: Vec<PromptCall>,
    },
    /// Result of a tool call: exactly one for each call of the preceding assistant message.
    ToolResult {
        call: CallId,
        content: String,
        summary: Option<String>,
    },
}

/// Tool call in a prompt. Its arguments are always an object.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptCall {
    pub id: CallId,
    pub name: String,
    pub arguments: serde_json::Map<String, Value>,
}

impl ModelRequest {
    /// Returns the total length of all texts in bytes, from which the cost is estimated before the call.
    pub fn byte_size(&self) -> usize {
        let tools = self
            .tools
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.text().len());
        self.system.len()
            + tools.sum::<usize>()
            + self.messages.iter().map(SharedMessage::byte_size).sum::<usize>()
    }
}

impl ModelMessage {
    /// Returns the length of its texts in bytes.
    pub(super) fn byte_size(&self) -> usize {
        match self {
            Self::User(text) => text.len(),
            Self::Assistant { text, calls } => {
                text.len() + calls.iter().map(PromptCall::byte_size).sum::<usize>()
            }
            Self::ToolResult { content, .. } => content.len(),
        }
    }
}

impl PromptCall {
    fn byte_size(&self) -> usize {
        let arguments = self.arguments.iter().map(|(name, value)| name.len() + value.to_string().len());
        self.name.len() + arguments.sum::<usize>()
    }
}
