//! Model that responds as slowly as real ones, so that a page can be watched during a response.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use dialarr::conversation::model_cost::TokenUsage;
use dialarr::conversation::model_request::{ModelMessage, ModelRequest};
use dialarr::conversation::transcript::StopReason;
use dialarr::conversation::turn::TURN_TIME;
use dialarr::llm::keyword::KeywordResponder;
use dialarr::llm::{DeltaSink, Model, ModelError, ModelResponse, ResponseDelta};

/// Response to a request for a story.
pub(crate) const STORY: &str = "Once there was a house in which nobody could agree on a film. So they asked the \
    one who knew the shelf, and she read them every title from the first to the last, slowly, until one of them \
    said stop, that one, and they all sat down and watched it to the end.";
/// Response to a request for a riddle, after the end of the first turn that requested one; until then there is no
/// response.
pub(crate) const RIDDLE: &str = "What has keys and opens no door? A piano.";
/// Delay between two words.
const TYPING_INTERVAL: Duration = Duration::from_millis(120);
/// Delay between two words of a story that is canceled, so that even a busy machine can cancel it before its end.
const SLOW_TYPING_INTERVAL: Duration = Duration::from_millis(450);

/// Model that streams a story or a riddle word by word, and leaves other messages to the keyword responder.
#[derive(Default)]
pub(crate) struct Typist {
    asked_for_riddle: OnceLock<Instant>,
    pub(crate) is_down: Arc<AtomicBool>,
}

impl Typist {
    fn check_connection(&self) -> Result<(), ModelError> {
        let is_down = self.is_down.load(Ordering::Relaxed);
        if is_down { Err(ModelError::Unavailable("no connection".to_owned())) } else { Ok(()) }
    }
}

#[async_trait]
impl Model for Typist {
    fn name(&self) -> &str {
        "typist"
    }

    async fn next_response(
        &self,
        request: &ModelRequest,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError> {
        self.check_connection()?;
        let asked = request.messages.iter().rev().find_map(|message| match &**message {
            ModelMessage::User(text) => Some(text.to_lowercase()),
            ModelMessage::Assistant { .. } | ModelMessage::ToolResult { .. } => None,
        });
        let asks_for = |what: &str| asked.as_deref().is_some_and(|text| text.contains(what));
        let text = if asks_for("story") {
            STORY
        } else if asks_for("riddle") {
            RIDDLE
        } else {
            return KeywordResponder::ModelUnavailable.next_response(request, sink).await;
        };
        if text == RIDDLE && self.asked_for_riddle.get_or_init(Instant::now).elapsed() < TURN_TIME {
            std::future::pending::<()>().await;
        }
        let mut interval =
            tokio::time::interval(if asks_for("again") { SLOW_TYPING_INTERVAL } else { TYPING_INTERVAL });
        for word in text.split_inclusive(' ') {
            interval.tick().await;
            sink(ResponseDelta::Text(word.to_owned()));
        }
        Ok(ModelResponse {
            text: text.to_owned(),
            thinking: String::new(),
            calls: Vec::new(),
            stop: StopReason::Done,
            usage: Some(TokenUsage { input: 1_180, cached: 900, output: 64 }),
            response_id: None,
        })
    }

    async fn check_server(&self) -> Result<(), ModelError> {
        self.check_connection()
    }
}
