//! Keyword brain, which replies when no model is available: it parses the keyword grammar and takes the same steps as a
//! model, through the same tools. Each step follows from the request alone, so an interrupted turn simply continues.

mod answer;
mod hunt;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{Delta, DeltaSink, Model, ModelError, RawCall, StepOut};
use crate::conversation::model_request::ModelRequest;
use crate::conversation::transcript::{Arguments, Stop};
use crate::conversation::words::{KEYWORDS_TEXT, OFF_TEXT};
use answer::{Move, answer};

/// Keyword brain, by the reason for its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeywordBrain {
    /// No model is configured.
    Alone,
    /// The configured model is not available right now.
    InPlaceOfModel,
}

impl KeywordBrain {
    pub fn beside(configured: Option<&Arc<dyn Model>>) -> Self {
        match configured {
            None => Self::Alone,
            Some(_) => Self::InPlaceOfModel,
        }
    }

    /// Reply to a message that cannot be parsed.
    fn unread(self) -> &'static str {
        match self {
            Self::Alone => KEYWORDS_TEXT,
            Self::InPlaceOfModel => OFF_TEXT,
        }
    }
}

#[async_trait]
impl Model for KeywordBrain {
    fn name(&self) -> &str {
        "keyword"
    }

    async fn step(&self, request: &ModelRequest, sink: DeltaSink<'_>) -> Result<StepOut, ModelError> {
        let mut step = StepOut {
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            stop: Stop::Done,
            usage: None,
            response_id: None,
        };
        match answer(request, self.unread()) {
            Move::Say(text) => {
                sink(Delta::Text(text.clone()));
                step.text = text;
            }
            Move::Call { name, arguments } => {
                let encoded = Value::Object(arguments.clone()).to_string();
                sink(Delta::ToolCall { ord: 0, name: Some(name.to_owned()), arguments: encoded });
                step.calls.push(RawCall { name: name.to_owned(), arguments: Arguments::Object(arguments) });
            }
        }
        Ok(step)
    }
}
