//! A model that writes as slowly as real ones do, so that a page can be watched while an answer comes.

use std::time::Duration;

use async_trait::async_trait;
use dialarr::conversation::prompt::{Message, ModelRequest};
use dialarr::conversation::spending::Tokens;
use dialarr::conversation::transcript::Stop;
use dialarr::llm::keyword::KeywordBrain;
use dialarr::llm::{Delta, DeltaSink, Model, ModelError, StepOut};

/// What it answers to whoever asks for a story.
pub(crate) const STORY: &str = "Once there was a house in which nobody could agree on a film. So they asked the \
    one who knew the shelf, and she read them every title from the first to the last, slowly, until one of them \
    said stop, that one, and they all sat down and watched it to the end.";
/// Between two words.
const PACE: Duration = Duration::from_millis(120);

/// Tells its story to whoever asks for one, word by word; everything else it leaves to the keyword brain.
pub(crate) struct Typist;

#[async_trait]
impl Model for Typist {
    fn name(&self) -> &str {
        "typist"
    }

    async fn step(&self, request: &ModelRequest, sink: DeltaSink<'_>) -> Result<StepOut, ModelError> {
        let asks = |message: &Message| match message {
            Message::User(text) => Some(text.to_lowercase().contains("story")),
            Message::Assistant { .. } | Message::ToolResult { .. } => None,
        };
        if !request.messages.iter().rev().find_map(asks).unwrap_or(false) {
            return KeywordBrain.step(request, sink).await;
        }
        let mut pace = tokio::time::interval(PACE);
        for word in STORY.split_inclusive(' ') {
            pace.tick().await;
            sink(Delta::Text(word.to_owned()));
        }
        Ok(StepOut {
            text: STORY.to_owned(),
            thinking: String::new(),
            calls: Vec::new(),
            stop: Stop::Done,
            usage: Some(Tokens { input: 1_180, cached: 900, output: 64 }),
            response_id: None,
        })
    }
}
