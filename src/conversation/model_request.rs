//! Request of a model call, modeled on the Chat Completions API, and its size.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use serde_json::value::RawValue;

use super::offered_tools::OfferedTools;
use super::transcript::CallId;

/// Request of a model call.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// System prompt, identical for every user of a role, so that model servers can cache the prefix.
    pub system: String,
    pub tools: OfferedTools,
    pub tool_choice: ToolChoice,
    /// The requests of a turn share the messages of earlier turns.
    pub messages: Vec<EncodedMessage>,
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
            + self.messages.iter().map(EncodedMessage::byte_size).sum::<usize>()
    }
}

impl ModelMessage {
    fn byte_size(&self) -> usize {
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

/// Message of one or more requests, with its JSON in the format of the model server. Clones share both.
#[derive(Debug, Clone)]
pub struct EncodedMessage(Arc<EncodedMessageInner>);

#[derive(Debug)]
struct EncodedMessageInner {
    message: ModelMessage,
    byte_size: usize,
    json: OnceLock<Box<RawValue>>,
}

impl EncodedMessage {
    /// Returns the length of the texts of the message in bytes.
    fn byte_size(&self) -> usize {
        self.0.byte_size
    }

    /// Returns the JSON of the message. Only the first call encodes it.
    pub fn json(&self, encode: impl FnOnce(&ModelMessage) -> Box<RawValue>) -> &RawValue {
        self.0.json.get_or_init(|| encode(&self.0.message))
    }
}

impl From<ModelMessage> for EncodedMessage {
    fn from(message: ModelMessage) -> Self {
        Self(Arc::new(EncodedMessageInner { byte_size: message.byte_size(), message, json: OnceLock::new() }))
    }
}

impl Deref for EncodedMessage {
    type Target = ModelMessage;

    fn deref(&self) -> &ModelMessage {
        &self.0.message
    }
}

impl PartialEq for EncodedMessage {
    fn eq(&self, other: &Self) -> bool {
        self.0.message == other.0.message
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn clones_of_a_message_share_its_json() {
        let encodings = Cell::new(0);
        let encode = |message: &ModelMessage| {
            encodings.set(encodings.get() + 1);
            to_raw_value(&format!("{message:?}")).unwrap()
        };
        let message = EncodedMessage::from(ModelMessage::User("hi".to_owned()));
        let [first, second] =
            [message.json(encode).get(), message.clone().json(encode).get()].map(str::to_owned);
        assert_eq!((first.as_str(), encodings.get()), (second.as_str(), 1));
    }
}
