//! What a model says, and when.

use async_trait::async_trait;
use dialarr::conversation::prompt::{Message, ModelRequest};
use dialarr::conversation::transcript::{Arguments, Stop};
use dialarr::llm::scripted::Line;
use dialarr::llm::{DeltaSink, Model, ModelError, StepOut};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Says "Fine." to everything, but to the word "hold" only once it is let go.
pub(crate) struct Holding(Semaphore);

impl Holding {
    pub(crate) fn closed() -> std::sync::Arc<Self> {
        std::sync::Arc::new(Self(Semaphore::new(0)))
    }

    pub(crate) fn let_go(&self) {
        self.0.add_permits(1);
    }
}

#[async_trait]
impl Model for Holding {
    fn name(&self) -> &str {
        "holding"
    }

    async fn step(&self, request: &ModelRequest, _: DeltaSink<'_>) -> Result<StepOut, ModelError> {
        if said(request).contains("hold") {
            let _permit = self.0.acquire().await.unwrap();
        }
        let text = "Fine.".to_owned();
        let (thinking, calls) = (String::new(), Vec::new());
        Ok(StepOut { text, thinking, calls, stop: Stop::Done, usage: None, response_id: None })
    }
}

/// The words of all messages of a request, both sides'.
pub(crate) fn said(request: &ModelRequest) -> String {
    let words = request.messages.iter().map(|message| match message {
        Message::User(text) | Message::Assistant { text, .. } => text.as_str(),
        Message::ToolResult { content, .. } => content,
    });
    words.collect::<Vec<_>>().join("\n")
}

/// The names of the tools that a request offers.
pub(crate) fn offered(request: &ModelRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name).collect()
}

pub(crate) fn says(text: &str) -> Line {
    Line::Says(text.to_owned())
}

pub(crate) fn calls(tool: &str, arguments: Value) -> Line {
    Line::Calls(vec![(tool.to_owned(), Arguments::parse(arguments))])
}

/// The two steps in which a model asks for a movie's deletion.
pub(crate) fn removes_movie(title: &str, id: i64) -> [Line; 2] {
    let items = json!({ "items": [{ "type": "movie", "id": id }], "delete_files": true });
    [calls("find_in_library", json!({ "query": title })), calls("remove_media", items)]
}
