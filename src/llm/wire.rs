//! How is a request written for a Chat Completions server, and its answer read without trusting the shape?
//! Servers leave fields out, send null or another type; a field that cannot be read counts as absent.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::dialect::{Dialect, TokenField};
use crate::conversation::prompt::{Message, ModelRequest, PromptCall, ToolChoice};
use crate::conversation::spending::Tokens;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    Streamed,
    Whole,
}

pub(super) fn body(request: &ModelRequest, model: &str, dialect: &Dialect, delivery: Delivery) -> Value {
    let messages: Vec<Value> = std::iter::once(json!({ "role": "system", "content": request.system }))
        .chain(request.messages.iter().map(message))
        .collect();
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": delivery == Delivery::Streamed,
    });
    let token_field = match dialect.token_field {
        TokenField::MaxTokens => "max_tokens",
        TokenField::MaxCompletionTokens => "max_completion_tokens",
    };
    body[token_field] = request.max_output_tokens.into();
    if delivery == Delivery::Streamed && dialect.stream_options {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if let Some(effort) = &dialect.reasoning_effort {
        body["reasoning_effort"] = effort.as_str().into();
    }
    if let Some(schema) = request.reply_schema.as_ref().filter(|_| dialect.reply_schema) {
        body["response_format"] = json!({ "type": "json_schema", "json_schema": {
            "name": "reply",
            "strict": true,
            "schema": schema,
        }});
    }
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|tool| {
                json!({ "type": "function", "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                }})
            })
            .collect();
        match request.tool_choice {
            // The default of every server, and some refuse the field.
            ToolChoice::Auto => {}
            ToolChoice::None => body["tool_choice"] = "none".into(),
        }
    }
    body
}

fn message(message: &Message) -> Value {
    match message {
        Message::User(text) => json!({ "role": "user", "content": text }),
        Message::Assistant { text, calls } if calls.is_empty() => {
            json!({ "role": "assistant", "content": text })
        }
        Message::Assistant { text, calls } => json!({
            "role": "assistant",
            "content": (!text.is_empty()).then_some(text),
            "tool_calls": calls.iter().map(call).collect::<Vec<_>>(),
        }),
        Message::ToolResult { call, content, summary: _ } => {
            json!({ "role": "tool", "tool_call_id": call.as_str(), "content": content })
        }
    }
}

fn call(call: &PromptCall) -> Value {
    json!({ "id": call.id.as_str(), "type": "function", "function": {
        "name": call.name,
        "arguments": Value::Object(call.arguments.clone()).to_string(),
    }})
}

/// A whole answer or one chunk of a streamed one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Answer {
    #[serde(deserialize_with = "tolerant")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "tolerant")]
    pub(super) choices: Vec<Choice>,
    #[serde(deserialize_with = "tolerant")]
    pub(super) usage: Option<TokenCount>,
    /// Set when the answer is none.
    pub(super) error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    #[serde(deserialize_with = "tolerant")]
    pub index: u32,
    #[serde(deserialize_with = "tolerant")]
    pub delta: Option<Piece>,
    #[serde(deserialize_with = "tolerant")]
    pub message: Option<Piece>,
    #[serde(deserialize_with = "tolerant")]
    pub finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Piece {
    pub content: Value,
    #[serde(deserialize_with = "tolerant")]
    pub refusal: Option<String>,
    #[serde(deserialize_with = "tolerant")]
    pub reasoning_content: Option<String>,
    #[serde(deserialize_with = "tolerant")]
    pub reasoning: Option<String>,
    #[serde(deserialize_with = "tolerant")]
    pub tool_calls: Vec<CallPiece>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallPiece {
    #[serde(deserialize_with = "tolerant")]
    pub index: Option<u32>,
    #[serde(deserialize_with = "tolerant")]
    pub id: Option<String>,
    #[serde(deserialize_with = "tolerant")]
    pub function: FunctionPiece,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionPiece {
    #[serde(deserialize_with = "tolerant")]
    pub name: Option<String>,
    pub arguments: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenCount {
    #[serde(deserialize_with = "tolerant")]
    pub prompt_tokens: u32,
    #[serde(deserialize_with = "tolerant")]
    pub completion_tokens: u32,
    #[serde(deserialize_with = "tolerant")]
    pub prompt_tokens_details: PromptCount,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptCount {
    #[serde(deserialize_with = "tolerant")]
    pub cached_tokens: u32,
}

impl TokenCount {
    /// No request is without tokens: a count of none was not made.
    pub fn tokens(&self) -> Option<Tokens> {
        (self.prompt_tokens > 0).then(|| Tokens {
            input: self.prompt_tokens.into(),
            cached: self.prompt_tokens_details.cached_tokens.min(self.prompt_tokens).into(),
            output: self.completion_tokens.into(),
        })
    }
}

impl Piece {
    /// The text, which some servers send as a list of typed parts.
    pub fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            _ => String::new(),
        }
    }
}

fn tolerant<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}
