//! Models of the tests: their responses and the timing of those responses.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dialarr::conversation::model_cost::TokenUsage;
use dialarr::conversation::model_request::{ModelMessage, ModelRequest};
use dialarr::conversation::transcript::{StopReason, ToolArguments};
use dialarr::llm::scripted::{ScriptedModel, ScriptedReply};
use dialarr::llm::{DeltaSink, Model, ModelError, ModelResponse, RawCall, ResponseDelta};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Model that plays a script, with a delay of this many seconds for each line.
pub(crate) struct Slow {
    script: ScriptedModel,
    seconds: u64,
}

impl Slow {
    pub(crate) fn playing(seconds: u64, lines: impl IntoIterator<Item = ScriptedReply>) -> Arc<Self> {
        Arc::new(Self { script: ScriptedModel::new(lines.into_iter().collect()), seconds })
    }
}

#[async_trait]
impl Model for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    async fn next_response(
        &self,
        request: &ModelRequest,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let thinking = std::future::pending::<()>();
        let _ = tokio::time::timeout(Duration::from_secs(self.seconds), thinking).await;
        self.script.next_response(request, sink).await
    }
}

/// Model that responds "Fine." to every message, and to the word "hold" only after its release.
pub(crate) struct Holding {
    asked: Semaphore,
    let_go: Semaphore,
}

impl Holding {
    pub(crate) fn closed() -> Arc<Self> {
        Arc::new(Self { asked: Semaphore::new(0), let_go: Semaphore::new(0) })
    }

    pub(crate) fn let_go(&self) {
        self.let_go.add_permits(1);
    }

    /// Returns once the model holds a message, once for each such message.
    pub(crate) async fn holds(&self) {
        self.asked.acquire().await.unwrap().forget();
    }
}

#[async_trait]
impl Model for Holding {
    fn name(&self) -> &str {
        "holding"
    }

    async fn next_response(
        &self,
        request: &ModelRequest,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError> {
        if request_text(request).contains("hold") {
            sink(ResponseDelta::Text("Fi".to_owned()));
            self.asked.add_permits(1);
            let _permit = self.let_go.acquire().await.unwrap();
        }
        let text = "Fine.".to_owned();
        let (thinking, calls) = (String::new(), Vec::new());
        Ok(ModelResponse { text, thinking, calls, stop: StopReason::Done, usage: None, response_id: None })
    }
}

/// Model that plays a script, each line only after its release.
pub(crate) struct Gated {
    script: ScriptedModel,
    asked: Semaphore,
    released: Semaphore,
}

impl Gated {
    pub(crate) fn playing(lines: impl IntoIterator<Item = ScriptedReply>) -> Arc<Self> {
        let script = ScriptedModel::new(lines.into_iter().collect());
        Arc::new(Self { script, asked: Semaphore::new(0), released: Semaphore::new(0) })
    }

    /// Returns once the model has got a request, once for each request.
    pub(crate) async fn is_asked(&self) {
        self.asked.acquire().await.unwrap().forget();
    }

    pub(crate) fn release(&self, lines: usize) {
        self.released.add_permits(lines);
    }
}

#[async_trait]
impl Model for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    async fn next_response(
        &self,
        request: &ModelRequest,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError> {
        self.asked.add_permits(1);
        self.released.acquire().await.unwrap().forget();
        self.script.next_response(request, sink).await
    }
}

/// Returns the text of all messages of a request, of both sides.
pub(crate) fn request_text(request: &ModelRequest) -> String {
    let words = request.messages.iter().map(|message| match &**message {
        ModelMessage::User(text) | ModelMessage::Assistant { text, .. } => text.as_str(),
        ModelMessage::ToolResult { content, .. } => content,
    });
    words.collect::<Vec<_>>().join("\n")
}

/// Returns the names of the tools that a request offers.
pub(crate) fn offered(request: &ModelRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name).collect()
}

pub(crate) fn says(text: &str) -> ScriptedReply {
    ScriptedReply::Text(text.to_owned())
}

pub(crate) fn calls(tool: &str, arguments: Value) -> ScriptedReply {
    ScriptedReply::Calls(vec![(tool.to_owned(), ToolArguments::parse(arguments))])
}

/// Builds a response with several calls.
pub(crate) fn calls_together(calls: &[(&str, Value)]) -> ScriptedReply {
    let call =
        |(tool, arguments): &(&str, Value)| (tool.to_string(), ToolArguments::parse(arguments.clone()));
    ScriptedReply::Calls(calls.iter().map(call).collect())
}

/// Builds a call whose arguments are not valid JSON.
pub(crate) fn calls_with_broken_arguments(tool: &str, arguments: &str) -> ScriptedReply {
    ScriptedReply::Calls(vec![(tool.to_owned(), ToolArguments::Malformed(arguments.to_owned()))])
}

/// Returns the same line with the server's count of its tokens.
pub(crate) fn counted(tokens: TokenUsage, line: ScriptedReply) -> ScriptedReply {
    let plain = match line {
        ScriptedReply::Text(text) => step(&text, Vec::new()),
        ScriptedReply::Calls(calls) => {
            let call = |(name, arguments)| RawCall { name, arguments };
            step("", calls.into_iter().map(call).collect())
        }
        ScriptedReply::Response(step) => step,
        ScriptedReply::Error(_) => panic!("a failure has no count"),
    };
    ScriptedReply::Response(ModelResponse { usage: Some(tokens), ..plain })
}

pub(crate) fn fails(error: ModelError) -> ScriptedReply {
    ScriptedReply::Error(error)
}

/// Builds a response that ended for this reason.
pub(crate) fn ends(stop: StopReason, text: &str) -> ScriptedReply {
    ScriptedReply::Response(ModelResponse { stop, ..step(text, Vec::new()) })
}

/// Builds a call in a response that was cut off.
pub(crate) fn is_cut_off_in(tool: &str, arguments: Value) -> ScriptedReply {
    let call = RawCall { name: tool.to_owned(), arguments: ToolArguments::parse(arguments) };
    ScriptedReply::Response(ModelResponse { stop: StopReason::Length, ..step("", vec![call]) })
}

pub(crate) fn says_with_call(text: &str, tool: &str, arguments: Value) -> ScriptedReply {
    let call = RawCall { name: tool.to_owned(), arguments: ToolArguments::parse(arguments) };
    ScriptedReply::Response(step(text, vec![call]))
}

/// Builds the two steps in which a model requests a movie's deletion.
pub(crate) fn removes_movie(title: &str, id: i64) -> [ScriptedReply; 2] {
    [finds(title), removes(&json!([{ "type": "movie", "id": id }]))]
}

pub(crate) fn removes_series(title: &str, id: i64) -> [ScriptedReply; 2] {
    [finds(title), removes(&json!([{ "type": "series", "id": id }]))]
}

/// Builds the steps for several movies: the model finds each one, then requests the deletion of all of them together.
pub(crate) fn removes_movies(movies: &[(&str, i64)]) -> Vec<ScriptedReply> {
    let items: Vec<Value> = movies.iter().map(|(_, id)| json!({ "type": "movie", "id": id })).collect();
    let finds = movies.iter().map(|(title, _)| ("find_in_library", json!({ "query": title })));
    vec![calls_together(&finds.collect::<Vec<_>>()), removes(&json!(items))]
}

pub(crate) fn finds(title: &str) -> ScriptedReply {
    calls("find_in_library", json!({ "query": title }))
}

/// Builds the call that deletes items with their files.
pub(crate) fn removes(items: &Value) -> ScriptedReply {
    calls("remove_media", json!({ "items": items, "delete_files": true }))
}

/// Builds the two steps in which a model adds a movie.
pub(crate) fn adds_movie(title: &str, tmdb: i64) -> [ScriptedReply; 2] {
    [calls("search_media", json!({ "query": title })), calls("add_movie", json!({ "tmdb": tmdb }))]
}

fn step(text: &str, calls: Vec<RawCall>) -> ModelResponse {
    ModelResponse {
        text: text.to_owned(),
        thinking: String::new(),
        calls,
        stop: StopReason::Done,
        usage: None,
        response_id: None,
    }
}
