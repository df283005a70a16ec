//! Chat Completions format: serialization of requests and lenient parsing of responses. Servers omit fields, or send
//! null or another type. A field that cannot be parsed counts as absent.

use serde::de::DeserializeOwned;
use serde::ser::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::dialect::{ServerDialect, TokenLimitField};
use crate::conversation::model_cost::TokenUsage;
use crate::conversation::model_request::{ModelMessage, ModelRequest, PromptCall, ToolChoice};
use crate::conversation::transcript::ToolSpec;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseMode {
    Streamed,
    Whole,
}

/// Serialized request body with borrowed values.
#[derive(Debug, Serialize)]
pub(super) struct ChatRequest<'a> {
    model: &'a str,
    messages: Vec<MessageJson<'a>>,
    stream: bool,
    #[serde(flatten)]
    token_limit: TokenLimit,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

/// Token limit of the response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum TokenLimit {
    MaxTokens(u32),
    MaxCompletionTokens(u32),
}

#[derive(Debug, Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// Message of a request, with its role.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum MessageJson<'a> {
    System(RequestMessage<'a>),
    Encoded(&'a RawValue),
}

#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum RequestMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        /// Text of the message, or null if the message has only calls.
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<RequestCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Debug, Serialize)]
struct RequestCall<'a> {
    id: &'a str,
    #[serde(flatten)]
    function: FunctionEnvelope<CalledFunction<'a>>,
}

#[derive(Debug, Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    #[serde(serialize_with = "serialize_as_string")]
    arguments: &'a Map<String, Value>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", content = "function", rename_all = "snake_case")]
enum FunctionEnvelope<T> {
    Function(T),
}

#[derive(Debug, Serialize)]
struct OfferedTool<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

pub(super) fn build_request_body<'a>(
    request: &'a ModelRequest,
    model: &'a str,
    dialect: &'a ServerDialect,
    mode: ResponseMode,
) -> ChatRequest<'a> {
    let is_streamed = mode == ResponseMode::Streamed;
    let response_format = |schema: &Value| json!({ "type": "json_schema", "json_schema": { "name": "reply", "strict": true, "schema": schema } });
    ChatRequest {
        model,
        messages: std::iter::once(MessageJson::System(RequestMessage::System { content: &request.system }))
            .chain(request.messages.iter().map(|message| MessageJson::Encoded(message.json(message_json))))
            .collect(),
        stream: is_streamed,
        token_limit: match dialect.token_field {
            TokenLimitField::MaxTokens => TokenLimit::MaxTokens(request.max_output_tokens),
            TokenLimitField::MaxCompletionTokens => {
                TokenLimit::MaxCompletionTokens(request.max_output_tokens)
            }
        },
        stream_options: (is_streamed && dialect.stream_options)
            .then_some(StreamOptions { include_usage: true }),
        reasoning_effort: dialect.reasoning_effort.as_deref(),
        response_format: request.reply_schema.as_ref().filter(|_| dialect.reply_schema).map(response_format),
        tools: (!request.tools.is_empty()).then(|| request.tools.json(tools_json)),
        tool_choice: match request.tool_choice {
            // `Auto` omits the field, because auto is the default of every server and some servers reject the field.
            ToolChoice::None if !request.tools.is_empty() => Some("none"),
            ToolChoice::Auto | ToolChoice::None => None,
        },
    }
}

#[expect(clippy::expect_used, reason = "a specification has only texts and valid JSON")]
fn tools_json(specs: &[ToolSpec]) -> Box<RawValue> {
    let tools = specs.iter().map(|tool| {
        FunctionEnvelope::Function(OfferedTool {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters.raw(),
        })
    });
    to_raw_value(&tools.collect::<Vec<_>>()).expect("tools can be serialized")
}

#[expect(clippy::expect_used, reason = "a message has only texts and JSON values")]
fn message_json(message: &ModelMessage) -> Box<RawValue> {
    to_raw_value(&request_message(message)).expect("a message can be serialized")
}

fn request_message(message: &ModelMessage) -> RequestMessage<'_> {
    match message {
        ModelMessage::User(text) => RequestMessage::User { content: text },
        ModelMessage::Assistant { text, calls } => RequestMessage::Assistant {
            content: (calls.is_empty() || !text.is_empty()).then_some(text.as_str()),
            tool_calls: calls.iter().map(request_call).collect(),
        },
        ModelMessage::ToolResult { call, content, summary: _ } => {
            RequestMessage::Tool { tool_call_id: call.as_str(), content }
        }
    }
}

fn request_call(call: &PromptCall) -> RequestCall<'_> {
    let function = CalledFunction { name: &call.name, arguments: &call.arguments };
    RequestCall { id: call.id.as_str(), function: FunctionEnvelope::Function(function) }
}

fn serialize_as_string<S: Serializer>(object: &Map<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&serde_json::to_string(object).map_err(S::Error::custom)?)
}

/// Whole response, or one chunk of a streamed response.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ChatResponse {
    #[serde(deserialize_with = "deserialize_or_default")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub(super) choices: Vec<ResponseChoice>,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub(super) usage: Option<TokenCount>,
    /// Set when the response is an error.
    pub(super) error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResponseChoice {
    #[serde(deserialize_with = "deserialize_or_default")]
    pub index: u32,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub delta: Option<MessageChunk>,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub message: Option<MessageChunk>,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageChunk {
    pub content: Value,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub refusal: Option<String>,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub reasoning_content: Option<String>,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub reasoning: Option<String>,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub tool_calls: Vec<ToolCallChunk>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCallChunk {
    #[serde(deserialize_with = "deserialize_or_default")]
    pub index: Option<u32>,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub id: Option<String>,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub function: FunctionChunk,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionChunk {
    #[serde(deserialize_with = "deserialize_or_default")]
    pub name: Option<String>,
    pub arguments: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenCount {
    #[serde(deserialize_with = "deserialize_or_default")]
    pub prompt_tokens: u32,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub completion_tokens: u32,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub prompt_tokens_details: PromptTokensDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptTokensDetails {
    #[serde(deserialize_with = "deserialize_or_default")]
    pub cached_tokens: u32,
}

impl TokenCount {
    /// Returns the token usage. Every request has tokens, so a count of zero means that the server did not count them.
    pub fn token_usage(&self) -> Option<TokenUsage> {
        (self.prompt_tokens > 0).then(|| TokenUsage {
            input: self.prompt_tokens.into(),
            cached: self.prompt_tokens_details.cached_tokens.min(self.prompt_tokens).into(),
            output: self.completion_tokens.into(),
        })
    }
}

impl MessageChunk {
    /// Returns the content, which some servers send as a list of typed parts.
    pub fn content(&self) -> Vec<(ContentPart, String)> {
        let parts = match &self.content {
            Value::String(text) => vec![(ContentPart::Text, text.clone())],
            Value::Array(parts) => parts.iter().map(ContentPart::from_json).collect(),
            _ => Vec::new(),
        };
        parts.into_iter().filter(|(_, text)| !text.is_empty()).collect()
    }
}

/// Kind of a content part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentPart {
    Text,
    Thinking,
}

impl ContentPart {
    fn from_json(part: &Value) -> (Self, String) {
        let text = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
        match part["type"].as_str() {
            Some("thinking" | "reasoning") => {
                let thinking = match &part["thinking"] {
                    Value::String(thinking) => thinking.clone(),
                    Value::Array(parts) => parts.iter().map(text).collect(),
                    _ => text(part),
                };
                (Self::Thinking, thinking)
            }
            _ => (Self::Text, text(part)),
        }
    }
}

fn deserialize_or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}
