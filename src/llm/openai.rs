//! Client of an OpenAI-compatible model server. Streams each response in the server's dialect, and requests it again
//! without streaming if the stream was flawed.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_openai::Client;
use async_openai::config::Config;
use async_openai::error::OpenAIError;
use async_trait::async_trait;
use futures_util::StreamExt;
use http::header::InvalidHeaderValue;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;
use url::Url;

use super::chat_completions::{self, ChatResponse, ResponseMode};
use super::dialect::{AutoSetting, ServerDialect, StreamTrust, TokenLimitField};
use super::error_response::{self, AttemptError};
use super::response_accumulator::{ResponseAccumulator, ResponseFlaw};
use super::transport::{self, ServerEndpoint};
use super::{DeltaSink, Model, ModelError, ModelResponse};
use crate::conversation::model_request::ModelRequest;

#[derive(Debug)]
pub struct OpenAiSettings {
    pub base_url: Url,
    pub key: Option<SecretString>,
    pub model: String,
    pub reasoning_effort: AutoSetting<String>,
    pub token_field: AutoSetting<TokenLimitField>,
    pub timeouts: ResponseTimeouts,
}

/// Time limits of a response.
#[derive(Debug, Clone, Copy)]
pub struct ResponseTimeouts {
    /// Limit for the whole step, with all repeated requests.
    pub step: Duration,
    /// Maximum time between two chunks of a stream.
    pub idle: Duration,
}

impl Default for ResponseTimeouts {
    fn default() -> Self {
        Self { step: Duration::from_secs(29), idle: Duration::from_secs(20) }
    }
}

/// Time limit of the list of models.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Error of an API key that cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("use the API key: it has characters that are not allowed in a header")]
pub struct InvalidKey(#[from] InvalidHeaderValue);

/// Client of one model on one server.
pub struct OpenAiModel {
    http: reqwest::Client,
    client: Client<ServerEndpoint>,
    model: String,
    timeouts: ResponseTimeouts,
    dialect: Mutex<ServerDialect>,
}

impl OpenAiModel {
    /// Creates a client that uses the connections of `http`.
    pub fn new(http: &reqwest::Client, settings: OpenAiSettings) -> Result<Self, InvalidKey> {
        let dialect =
            ServerDialect::from_host(&settings.base_url, &settings.reasoning_effort, &settings.token_field);
        Ok(Self {
            http: http.clone(),
            client: transport::build_client(http, &settings.base_url, settings.key)?,
            model: settings.model,
            timeouts: settings.timeouts,
            dialect: Mutex::new(dialect),
        })
    }

    /// Repeats the request until the server accepts its fields. Each field changes at most once.
    async fn negotiate_fields(
        &self,
        request: &ModelRequest,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let mut dialect = self.lock_dialect().clone();
        loop {
            let outcome = match dialect.streaming {
                StreamTrust::Trusted | StreamTrust::Doubted => {
                    self.request_streamed(request, &mut dialect, sink).await
                }
                StreamTrust::Off => self.request_whole(request, &dialect, sink).await,
            };
            match outcome {
                Ok(response) => {
                    *self.lock_dialect() = dialect;
                    return Ok(response);
                }
                Err(AttemptError::Rejected(response)) => {
                    match response.parameter_error().and_then(|error| dialect.adapt_to(error)) {
                        Some(next) => dialect = next,
                        None => return Err(response.into_error()),
                    }
                }
                Err(AttemptError::Failed(error)) => return Err(error),
            }
        }
    }

    async fn request_streamed(
        &self,
        request: &ModelRequest,
        dialect: &mut ServerDialect,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, AttemptError> {
        let mut sink_state = SinkState::Empty;
        let mut forward = |delta| {
            sink_state = SinkState::Used;
            sink(delta);
        };
        let accumulator = self.read_stream(request, dialect, &mut forward).await?;
        if accumulator.flaw().is_none() {
            return Ok(accumulator.into_response(&mut forward));
        }
        dialect.streaming = dialect.streaming.after_flaw();
        // The setting is stored now, because it is valid regardless of the second attempt's outcome.
        self.lock_dialect().streaming = dialect.streaming;
        let first_usage = accumulator.usage().unwrap_or_default();
        let response = match sink_state {
            SinkState::Empty => self.request_whole(request, dialect, sink).await?,
            // More deltas would be appended to those of the first attempt. Viewers get the whole
            // response when it is recorded.
            SinkState::Used => self.request_whole(request, dialect, &mut |_| {}).await?,
        };
        Ok(ModelResponse {
            usage: response.usage.map(|second_usage| first_usage.plus(second_usage)),
            ..response
        })
    }

    async fn read_stream(
        &self,
        request: &ModelRequest,
        dialect: &ServerDialect,
        sink: DeltaSink<'_>,
    ) -> Result<ResponseAccumulator, AttemptError> {
        let body =
            chat_completions::build_request_body(request, &self.model, dialect, ResponseMode::Streamed);
        let mut chunks = self.client.chat().create_stream_byot::<_, ChatResponse>(body).await?;
        let mut accumulator = ResponseAccumulator::default();
        loop {
            match timeout(self.timeouts.idle, chunks.next()).await {
                Ok(Some(Ok(chunk))) => accumulator.push(&chunk, sink)?,
                // A chunk that cannot be parsed ends the stream, which is then reported as cut off.
                Ok(None | Some(Err(OpenAIError::JSONDeserialize(..)))) => return Ok(accumulator),
                // The response is complete, so it does not matter how the connection was closed.
                _ if accumulator.flaw().is_none() => return Ok(accumulator),
                Ok(Some(Err(error))) => return Err(error.into()),
                Err(_) => return Err(ModelError::Timeout.into()),
            }
        }
    }

    async fn request_whole(
        &self,
        request: &ModelRequest,
        dialect: &ServerDialect,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, AttemptError> {
        let body = chat_completions::build_request_body(request, &self.model, dialect, ResponseMode::Whole);
        let response = self.client.chat().create_byot::<_, ChatResponse>(body).await?;
        let mut accumulator = ResponseAccumulator::default();
        accumulator.push(&response, sink)?;
        match accumulator.flaw() {
            Some(ResponseFlaw::Empty) => {
                Err(ModelError::Malformed("the response is empty".to_owned()).into())
            }
            // Malformed arguments are passed on to the tool, whose error result describes them.
            Some(ResponseFlaw::CutOff | ResponseFlaw::Arguments) | None => {
                Ok(accumulator.into_response(sink))
            }
        }
    }

    /// Requests the list of models. Only its status is read.
    async fn request_model_list(&self) -> Result<(), ModelError> {
        let endpoint = self.client.config();
        let request = self.http.get(endpoint.url("/models")).headers(endpoint.headers());
        let response =
            request.send().await.map_err(|_| ModelError::Unavailable("no connection".to_owned()))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        match error_response::ErrorResponse::from_response(status, response.headers(), &[]).into_error() {
            // The server responds, but has no such list, or rejects its request.
            ModelError::Rejected(_) | ModelError::ContextTooLong | ModelError::RateLimited { .. } => Ok(()),
            error => Err(error),
        }
    }

    fn lock_dialect(&self) -> MutexGuard<'_, ServerDialect> {
        self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for OpenAiModel {
    fn name(&self) -> &str {
        &self.model
    }

    async fn next_response(
        &self,
        request: &ModelRequest,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let outcome = timeout(self.timeouts.step, self.negotiate_fields(request, sink)).await;
        let key = self.client.config().api_key().expose_secret();
        outcome.unwrap_or(Err(ModelError::Timeout)).map_err(|error| error_response::redact_error(error, key))
    }

    async fn check_server(&self) -> Result<(), ModelError> {
        timeout(LIST_TIMEOUT, self.request_model_list()).await.unwrap_or(Err(ModelError::Timeout))
    }
}

impl fmt::Debug for OpenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenAi({} at {})", self.model, self.client.config().api_base())
    }
}

/// State of the sink: whether it has received a delta.
enum SinkState {
    Empty,
    Used,
}

#[cfg(test)]
mod tests {

    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::conversation::model_cost::TokenUsage;
    use crate::conversation::model_request::{EncodedMessage, ModelMessage, PromptCall, ToolChoice};
    use crate::conversation::transcript::{
        CallId, EffectLevel, StopReason, ToolArguments, ToolAudience, ToolSpec,
    };
    use crate::http::build_network_client;
    use crate::llm::{RawCall, ResponseDelta};
    use crate::stub_server::{
        StubResponse, StubServer, empty_response, json_response, raw_response, redirect_response,
        with_retry_after,
    };

    fn request() -> ModelRequest {
        let call = CallId::from_stored("000010100");
        ModelRequest {
            system: "Be brief.".to_owned(),
            tools: vec![ToolSpec {
                name: "f",
                description: "Finds.",
                effect_level: EffectLevel::Read,
                audience: ToolAudience::Everyone,
                parameters: json!({ "type": "object" }).into(),
            }]
            .into(),
            tool_choice: ToolChoice::None,
            messages: [
                ModelMessage::User("find up".to_owned()),
                ModelMessage::Assistant {
                    text: String::new(),
                    calls: vec![PromptCall {
                        id: call.clone(),
                        name: "f".to_owned(),
                        arguments: serde_json::Map::from_iter([("q".to_owned(), json!("up"))]),
                    }],
                },
                ModelMessage::ToolResult {
                    call,
                    content: "[]".to_owned(),
                    summary: Some("Nothing.".to_owned()),
                },
            ]
            .map(EncodedMessage::from)
            .into(),
            max_output_tokens: 1024,
            reply_schema: None,
        }
    }

    fn model(base: &str) -> OpenAiModel {
        let settings = OpenAiSettings {
            base_url: Url::parse(base).unwrap(),
            key: Some("secret-key".into()),
            model: "m".to_owned(),
            reasoning_effort: AutoSetting::Auto,
            token_field: AutoSetting::Auto,
            timeouts: ResponseTimeouts { step: Duration::from_secs(20), idle: Duration::from_millis(100) },
        };
        OpenAiModel::new(&build_network_client().unwrap(), settings).unwrap()
    }

    async fn ask(model: &OpenAiModel) -> (Result<ModelResponse, ModelError>, Vec<ResponseDelta>) {
        let mut deltas = Vec::new();
        let outcome = model.next_response(&request(), &mut |delta| deltas.push(delta)).await;
        (outcome, deltas)
    }

    /// Starts a server that computes each response from the request body.
    async fn server(respond: impl Fn(&Value) -> StubResponse + Send + Sync + 'static) -> StubServer {
        StubServer::start("/chat/completions", respond).await
    }

    /// Returns one field of every request that the server received.
    fn received(server: &StubServer, field: &str) -> Vec<Value> {
        server.requests().iter().map(|request| request.body[field].clone()).collect()
    }

    fn sse(chunks: &[Value]) -> StubResponse {
        raw_response(200, "text/event-stream", sse_text(chunks))
    }

    fn sse_text(chunks: &[Value]) -> String {
        let events = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
        events.chain(["data: [DONE]\n\n".to_owned()]).collect()
    }

    fn error_response(status: u16, error: &Value) -> StubResponse {
        json_response(status, &json!({ "error": error }))
    }

    fn chunk(delta: &Value) -> Value {
        json!({ "id": "r1", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
    }

    fn finish(reason: &str) -> Value {
        json!({ "id": "r1", "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
    }

    fn hello(streamed: bool) -> StubResponse {
        if streamed {
            sse(&[chunk(&json!({ "content": "hi" })), finish("stop")])
        } else {
            let choice = json!({ "message": { "content": "hi" }, "finish_reason": "stop" });
            json_response(200, &json!({ "id": "r1", "choices": [choice] }))
        }
    }

    fn text_response(text: &str) -> ModelResponse {
        ModelResponse {
            text: text.to_owned(),
            thinking: String::new(),
            calls: Vec::new(),
            stop: StopReason::Done,
            usage: None,
            response_id: Some("r1".to_owned()),
        }
    }

    fn calls(calls: &[(&str, Value)]) -> ModelResponse {
        let calls = calls
            .iter()
            .map(|(name, arguments)| RawCall {
                name: (*name).to_owned(),
                arguments: ToolArguments::parse(arguments.clone()),
            })
            .collect();
        ModelResponse { calls, ..text_response("") }
    }

    /// How the bare socket ends its response.
    #[derive(Clone, Copy)]
    enum ResponseEnd {
        Proper,
        Dropped,
        Silence,
    }

    /// Starts a server on a bare socket that sends one response, with each part as a separate HTTP chunk.
    async fn start_socket_server(parts: Vec<Vec<u8>>, end: ResponseEnd) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
                assert_ne!(socket.read_buf(&mut request).await.unwrap(), 0);
            }
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            let mut response = head.as_bytes().to_vec();
            for part in parts {
                response.extend(format!("{:x}\r\n", part.len()).into_bytes());
                response.extend(part);
                response.extend(b"\r\n");
            }
            match end {
                ResponseEnd::Proper => response.extend(b"0\r\n\r\n"),
                ResponseEnd::Dropped | ResponseEnd::Silence => {}
            }
            socket.write_all(&response).await.unwrap();
            if let ResponseEnd::Silence = end {
                // The read ends when the client closes the connection in any way.
                let _ = socket.read_buf(&mut request).await;
            }
        });
        base
    }

    #[tokio::test]
    async fn stream_is_forwarded_and_accumulated() {
        let server = server(|_| {
            sse(&[
                chunk(&json!({ "role": "assistant", "content": "" })),
                chunk(&json!({ "reasoning_content": "hm" })),
                chunk(&json!({ "content": "Hel" })),
                chunk(&json!({ "content": "lo" })),
                finish("stop"),
                json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 2 } }),
            ])
        })
        .await;
        let expected = ModelResponse {
            thinking: "hm".to_owned(),
            usage: Some(TokenUsage { input: 7, cached: 0, output: 2 }),
            ..text_response("Hello")
        };
        let deltas = [
            ResponseDelta::Thinking("hm".to_owned()),
            ResponseDelta::Text("Hel".to_owned()),
            ResponseDelta::Text("lo".to_owned()),
        ];
        assert_eq!(ask(&model(server.uri())).await, (Ok(expected), deltas.to_vec()));
    }

    #[tokio::test]
    async fn request_has_the_chat_completions_format() {
        let server = server(|_| hello(true)).await;
        ask(&model(server.uri())).await.0.unwrap();
        let requests = server.requests();
        assert_eq!(requests[0].headers["authorization"], "Bearer secret-key");
        assert_eq!(
            requests[0].body,
            json!({
                "model": "m",
                "messages": [
                    { "role": "system", "content": "Be brief." },
                    { "role": "user", "content": "find up" },
                    { "role": "assistant", "content": null, "tool_calls": [
                        { "id": "000010100", "type": "function",
                          "function": { "name": "f", "arguments": "{\"q\":\"up\"}" } },
                    ] },
                    { "role": "tool", "tool_call_id": "000010100", "content": "[]" },
                ],
                "tools": [{ "type": "function", "function": {
                    "name": "f", "description": "Finds.", "parameters": { "type": "object" },
                } }],
                "tool_choice": "none",
                "max_tokens": 1024,
                "stream": true,
                "stream_options": { "include_usage": true },
            })
        );
    }

    #[tokio::test]
    async fn events_may_be_split_at_any_byte() {
        let text = sse_text(&[chunk(&json!({ "content": "señor \u{1F3AC}" })), finish("stop")]);
        let base =
            start_socket_server(text.bytes().map(|byte| vec![byte]).collect(), ResponseEnd::Proper).await;
        let text = "señor \u{1F3AC}";
        assert_eq!(
            ask(&model(&base)).await,
            (Ok(text_response(text)), vec![ResponseDelta::Text(text.to_owned())])
        );
    }

    #[tokio::test]
    async fn parallel_calls_are_separated_under_one_index() {
        for second in [0, 1] {
            let server = server(move |_| {
                let call = |index: u32, id: &str, name: &str, arguments: &str| {
                    let function = json!({ "name": name, "arguments": arguments });
                    chunk(&json!({ "tool_calls": [{ "index": index, "id": id, "function": function }] }))
                };
                sse(&[call(0, "a", "f", r#"{"x":1}"#), call(second, "b", "g", ""), finish("stop")])
            })
            .await;
            let expected = calls(&[("f", json!({ "x": 1 })), ("g", json!({}))]);
            assert_eq!(ask(&model(server.uri())).await.0, Ok(expected), "{second}");
        }
    }

    /// Checks the outcome of a server quirk in a stream and in a whole response.
    async fn check(quirk: fn(streamed: bool) -> StubResponse, expected: Result<ModelResponse, ModelError>) {
        let streaming = server(move |body| quirk(body["stream"] == true)).await;
        assert_eq!(ask(&model(streaming.uri())).await.0, expected, "streamed");
        let whole = server(move |body| match body["stream"] == true {
            true => error_response(400, &json!({ "message": "no streams here", "param": "stream" })),
            false => quirk(false),
        })
        .await;
        assert_eq!(ask(&model(whole.uri())).await.0, expected, "whole");
        assert_eq!(received(&whole, "stream"), [json!(true), json!(false)]);
    }

    /// Creates a response with a message, a finish reason and one more field, streamed or whole.
    fn response(streamed: bool, message: &Value, reason: &str, extra: (&str, Value)) -> StubResponse {
        let part = if streamed { "delta" } else { "message" };
        let mut body = json!({ "id": "r1", "choices": [{ part: message, "finish_reason": reason }] });
        body[extra.0] = extra.1;
        if streamed { sse(&[body]) } else { json_response(200, &body) }
    }

    #[tokio::test]
    async fn unusual_responses_are_parsed() {
        const NO_EXTRA: (&str, Value) = ("object", Value::Null);
        check(hello, Ok(text_response("hi"))).await;
        let odd_stop = ModelResponse { stop: StopReason::Other("error".to_owned()), ..text_response("hi") };
        check(|s| response(s, &json!({ "content": "hi" }), "error", NO_EXTRA), Ok(odd_stop)).await;
        check(
            |s| response(s, &json!({ "content": "hi" }), "stop", ("service_tier", json!("standard"))),
            Ok(text_response("hi")),
        )
        .await;
        check(
            |s| response(s, &json!({ "content": "hi" }), "stop", ("created", json!(1_795_210_308.25))),
            Ok(text_response("hi")),
        )
        .await;
        let without_id = |s| {
            let call = json!({ "type": "function", "function": { "name": "f", "arguments": "{}" } });
            response(s, &json!({ "content": null, "tool_calls": [call] }), "tool_calls", NO_EXTRA)
        };
        check(without_id, Ok(calls(&[("f", json!({}))]))).await;
        let arguments_object = |s| {
            let call = json!({ "id": "1", "function": { "name": "f", "arguments": { "a": 1 } } });
            response(s, &json!({ "content": "", "tool_calls": [call] }), "stop", NO_EXTRA)
        };
        check(arguments_object, Ok(calls(&[("f", json!({ "a": 1 }))]))).await;
    }

    #[tokio::test]
    async fn unusual_errors_are_classified() {
        let unavailable = |text: &str| Err(ModelError::Unavailable(text.to_owned()));
        check(
            |_| {
                let error = json!({ "code": 402, "message": "Insufficient credits" });
                json_response(402, &json!({ "error": error, "user_id": "u" }))
            },
            Err(ModelError::QuotaSpent("Insufficient credits".to_owned())),
        )
        .await;
        let error_in_200 =
            |_| error_response(200, &json!({ "code": 502, "message": "Provider returned error" }));
        check(error_in_200, unavailable("Provider returned error")).await;
        check(|_| raw_response(502, "text/html", "<html>502 Bad Gateway</html>"), unavailable("HTTP 502"))
            .await;
        let malformed = |text: &str| Err(ModelError::Malformed(text.to_owned()));
        check(
            |_| raw_response(200, "text/html", "<html>Sign in</html>"),
            malformed("the response is not JSON"),
        )
        .await;
        check(|_| empty_response(200), malformed("the response is not JSON")).await;
        check(|_| json_response(200, &json!({})), malformed("the response is empty")).await;
        check(
            |_| error_response(400, &json!({ "message": "no", "code": "context_length_exceeded" })),
            Err(ModelError::ContextTooLong),
        )
        .await;
        check(
            |_| error_response(401, &json!({ "message": "Incorrect API key provided: secret-key" })),
            Err(ModelError::Unauthorized("Incorrect API key provided: (key)".to_owned())),
        )
        .await;
    }

    #[tokio::test]
    async fn rate_limit_is_reported_after_one_request() {
        let server = server(|_| {
            with_retry_after(error_response(429, &json!({ "message": "slow", "type": "rate_limit" })), 40)
        })
        .await;
        let limited = ModelError::RateLimited { retry_after: Some(Duration::from_secs(40)) };
        assert_eq!(ask(&model(server.uri())).await, (Err(limited), Vec::new()));
        assert_eq!(received(&server, "stream").len(), 1);
    }

    #[tokio::test]
    async fn error_inside_a_stream_ends_the_step() {
        let server = server(|_| {
            sse(&[chunk(&json!({ "content": "Hel" })), json!({ "error": { "message": "overloaded" } })])
        })
        .await;
        let error = ModelError::Unavailable("overloaded".to_owned());
        assert_eq!(
            ask(&model(server.uri())).await,
            (Err(error), vec![ResponseDelta::Text("Hel".to_owned())])
        );
        assert_eq!(received(&server, "stream").len(), 1);
    }

    #[tokio::test]
    async fn rejected_fields_are_changed_and_remembered() {
        let server = server(|body| {
            if !body["max_tokens"].is_null() {
                let message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
                error_response(400, &json!({ "message": message, "param": "max_tokens" }))
            } else if body["reasoning_effort"] != "none" {
                let message = "Function tools with reasoning_effort are not supported, set it to 'none'.";
                error_response(400, &json!({ "message": message, "param": "reasoning_effort" }))
            } else if !body["stream_options"].is_null() {
                json_response(422, &json!({ "detail": [{ "loc": ["body", "stream_options"] }] }))
            } else {
                hello(true)
            }
        })
        .await;
        let model = model(server.uri());
        for requests in [4, 5] {
            assert_eq!(
                ask(&model).await,
                (Ok(text_response("hi")), vec![ResponseDelta::Text("hi".to_owned())])
            );
            assert_eq!(received(&server, "model").len(), requests);
        }
    }

    #[tokio::test]
    async fn field_rejected_in_both_forms_is_an_error() {
        let server = server(|_| error_response(400, &json!({ "message": "max_tokens is too large" }))).await;
        let model = model(server.uri());
        for requests in [2, 4] {
            let error = ModelError::Rejected("max_tokens is too large".to_owned());
            assert_eq!(ask(&model).await.0, Err(error));
            assert_eq!(received(&server, "max_tokens").len(), requests);
        }
    }

    #[tokio::test]
    async fn flawed_stream_is_repeated_whole_and_streaming_ends_after_two() {
        let flawed_streams = [
            sse(&[chunk(&json!({ "content": "Hel" }))]),
            sse(&[
                chunk(&json!({ "tool_calls": [{ "function": { "name": "f", "arguments": "{\"x" } }] })),
                finish("stop"),
            ]),
            raw_response(200, "text/event-stream", "data: {nonsense\n\n"),
        ];
        for stream in flawed_streams {
            let server = server(move |body| match body["stream"] == true {
                true => stream.clone(),
                false => hello(false),
            })
            .await;
            let model = model(server.uri());
            for _ in 0..3 {
                assert_eq!(ask(&model).await.0, Ok(text_response("hi")));
            }
            assert_eq!(received(&server, "stream"), [true, false, true, false, false].map(Value::from));
        }
    }

    #[tokio::test]
    async fn partly_streamed_response_is_not_streamed_again() {
        let server = server(|body| match body["stream"] == true {
            true => sse(&[chunk(&json!({ "content": "Hel" }))]),
            false => hello(false),
        })
        .await;
        assert_eq!(
            ask(&model(server.uri())).await,
            (Ok(text_response("hi")), vec![ResponseDelta::Text("Hel".to_owned())])
        );
    }

    #[tokio::test]
    async fn arguments_malformed_twice_are_passed_on_and_charged_twice() {
        let server = server(|body| {
            let call =
                json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{\"x\": six" } });
            response(
                body["stream"] == true,
                &json!({ "tool_calls": [call] }),
                "tool_calls",
                ("usage", json!({ "prompt_tokens": 7, "completion_tokens": 2 })),
            )
        })
        .await;
        let usage = Some(TokenUsage { input: 14, cached: 0, output: 4 });
        let expected = ModelResponse { usage, ..calls(&[("f", json!("{\"x\": six"))]) };
        assert_eq!(ask(&model(server.uri())).await.0, Ok(expected));
    }

    #[tokio::test]
    async fn dropped_connection_makes_the_model_unavailable() {
        let event = format!("data: {}\n\n", chunk(&json!({ "content": "Hel" })));
        let base = start_socket_server(vec![event.into_bytes()], ResponseEnd::Dropped).await;
        let error = ModelError::Unavailable("the connection failed".to_owned());
        assert_eq!(ask(&model(&base)).await, (Err(error), vec![ResponseDelta::Text("Hel".to_owned())]));
    }

    #[tokio::test]
    async fn lost_connection_after_the_finish_reason_is_ignored() {
        for end in [ResponseEnd::Dropped, ResponseEnd::Silence] {
            let events = [chunk(&json!({ "content": "hi" })), finish("stop")];
            let events = events.map(|chunk| format!("data: {chunk}\n\n").into_bytes());
            assert_eq!(
                ask(&model(&start_socket_server(events.to_vec(), end).await)).await.0,
                Ok(text_response("hi"))
            );
        }
    }

    #[tokio::test]
    async fn silent_stream_times_out() {
        let event = format!("data: {}\n\n", chunk(&json!({ "content": "Hel" })));
        let base = start_socket_server(vec![event.into_bytes()], ResponseEnd::Silence).await;
        assert_eq!(ask(&model(&base)).await.0, Err(ModelError::Timeout));
    }

    #[tokio::test]
    async fn server_that_never_answers_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut model = model(&format!("http://{}", listener.local_addr().unwrap()));
        model.timeouts.step = Duration::from_millis(100);
        assert_eq!(ask(&model).await.0, Err(ModelError::Timeout));
    }

    #[tokio::test]
    async fn refused_connection_makes_the_model_unavailable() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1/", listener.local_addr().unwrap());
        drop(listener);
        assert_eq!(ask(&model(&base)).await.0, Err(ModelError::Unavailable("no connection".to_owned())));
    }

    #[tokio::test]
    async fn redirect_causes_no_second_request() {
        let target = server(|_| sse(&[])).await;
        let target_url = format!("{}/chat/completions", target.uri());
        let source = server(move |_| redirect_response(&target_url)).await;
        assert!(ask(&model(source.uri())).await.0.is_err());
        assert_eq!(source.requests().len(), 1);
        assert_eq!(target.requests().len(), 0);
    }

    #[test]
    fn debug_output_hides_the_key() {
        let settings = OpenAiSettings {
            base_url: Url::parse("http://127.0.0.1:1/v1").unwrap(),
            key: Some("secret-key".into()),
            model: "m".to_owned(),
            reasoning_effort: AutoSetting::Auto,
            token_field: AutoSetting::Auto,
            timeouts: ResponseTimeouts::default(),
        };
        assert!(!format!("{settings:?}").contains("secret-key"));
        assert_eq!(
            format!("{:?}", OpenAiModel::new(&build_network_client().unwrap(), settings).unwrap()),
            "OpenAi(m at http://127.0.0.1:1/v1)"
        );
    }

    #[tokio::test]
    async fn server_check_reads_the_status_of_the_list_of_models() {
        for (status, works) in [(200, true), (404, true), (429, true), (401, false), (503, false)] {
            let server = StubServer::start("/models", move |_| empty_response(status)).await;
            assert_eq!(model(server.uri()).check_server().await.is_ok(), works, "{status}");
            assert_eq!(server.requests().len(), 1);
        }
    }
}
