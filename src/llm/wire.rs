//! Chat Completions format: writes requests and parses responses without trusting their shape. Servers leave fields
//! out, send null or another type; a field that cannot be parsed counts as absent.

use serde::de::DeserializeOwned;
use serde::ser::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::dialect::{Dialect, TokenField};
use crate::conversation::model_request::{Message, ModelRequest, PromptCall, ToolChoice};
use crate::conversation::spending::Tokens;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    Streamed,
    Whole,
}

/// Request body as it is serialized, with borrowed values.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Vec<Said<'a>>,
    stream: bool,
    #[serde(flatten)]
    longest: Longest,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Function<Offered<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

/// Token limit of the answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Longest {
    MaxTokens(u32),
    MaxCompletionTokens(u32),
}

#[derive(Debug, Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Said<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        /// Text of the message; null if the message has only calls.
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(flatten)]
    function: Function<Called<'a>>,
}

#[derive(Debug, Serialize)]
struct Called<'a> {
    name: &'a str,
    #[serde(serialize_with = "as_text")]
    arguments: &'a Map<String, Value>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", content = "function", rename_all = "snake_case")]
enum Function<T> {
    Function(T),
}

#[derive(Debug, Serialize)]
struct Offered<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

pub(super) fn body<'a>(
    request: &'a ModelRequest,
    model: &'a str,
    dialect: &'a Dialect,
    delivery: Delivery,
) -> Body<'a> {
    let is_streamed = delivery == Delivery::Streamed;
    let format = |schema: &Value| json!({ "type": "json_schema", "json_schema": { "name": "reply", "strict": true, "schema": schema } });
    let tools = request.tools.iter().map(|tool| {
        Function::Function(Offered {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters.raw(),
        })
    });
    Body {
        model,
        messages: std::iter::once(Said::System { content: &request.system })
            .chain(request.messages.iter().map(said))
            .collect(),
        stream: is_streamed,
        longest: match dialect.token_field {
            TokenField::MaxTokens => Longest::MaxTokens(request.max_output_tokens),
            TokenField::MaxCompletionTokens => Longest::MaxCompletionTokens(request.max_output_tokens),
        },
        stream_options: (is_streamed && dialect.stream_options)
            .then_some(StreamOptions { include_usage: true }),
        reasoning_effort: dialect.reasoning_effort.as_deref(),
        response_format: request.reply_schema.as_ref().filter(|_| dialect.reply_schema).map(format),
        tools: tools.collect(),
        tool_choice: match request.tool_choice {
            // This is the default of every server, and some refuse the field.
            ToolChoice::None if !request.tools.is_empty() => Some("none"),
            ToolChoice::Auto | ToolChoice::None => None,
        },
    }
}

fn said(message: &Message) -> Said<'_> {
    match message {
        Message::User(text) => Said::User { content: text },
        Message::Assistant { text, calls } => Said::Assistant {
            content: (calls.is_empty() || !text.is_empty()).then_some(text.as_str()),
            tool_calls: calls.iter().map(call).collect(),
        },
        Message::ToolResult { call, content, summary: _ } => {
            Said::Tool { tool_call_id: call.as_str(), content }
        }
    }
}

fn call(call: &PromptCall) -> Call<'_> {
    let called = Called { name: &call.name, arguments: &call.arguments };
    Call { id: call.id.as_str(), function: Function::Function(called) }
}

fn as_text<S: Serializer>(object: &Map<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&serde_json::to_string(object).map_err(S::Error::custom)?)
}

/// Whole response or one chunk of a streamed one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Answer {
    #[serde(deserialize_with = "tolerant")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "tolerant")]
    pub(super) choices: Vec<Choice>,
    #[serde(deserialize_with = "tolerant")]
    pub(super) usage: Option<TokenCount>,
    /// Set when the response is an error.
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
    /// Returns the token usage. No request has zero tokens: a count of zero means that the server did not count.
    pub fn tokens(&self) -> Option<Tokens> {
        (self.prompt_tokens > 0).then(|| Tokens {
            input: self.prompt_tokens.into(),
            cached: self.prompt_tokens_details.cached_tokens.min(self.prompt_tokens).into(),
            output: self.completion_tokens.into(),
        })
    }
}

impl Piece {
    /// Returns the content, which some servers send as a list of typed parts.
    pub fn content(&self) -> Vec<(ContentPart, String)> {
        let parts = match &self.content {
            Value::String(text) => vec![(ContentPart::Text, text.clone())],
            Value::Array(parts) => parts.iter().map(ContentPart::read).collect(),
            _ => Vec::new(),
        };
        parts.into_iter().filter(|(_, text)| !text.is_empty()).collect()
    }
}

/// Kind of a part of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentPart {
    Text,
    Thinking,
}

impl ContentPart {
    fn read(part: &Value) -> (Self, String) {
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

fn tolerant<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}
