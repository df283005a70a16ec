//! Keyword responder, which replies when no model is available. It parses requests by the grammar and calls the same
//! tools as a model. Each step depends only on the request, so an interrupted turn can be resumed.

mod arguments;
mod found_title;
mod next_step;
mod past_calls;
mod replies;
mod season_question;
mod space_drop;
#[cfg(test)]
mod tests;
mod title_review;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{DeltaSink, Model, ModelError, ModelResponse, RawCall, ResponseDelta};
use crate::conversation::model_request::ModelRequest;
use crate::conversation::transcript::{StopReason, ToolArguments};
use next_step::{KeywordStep, next_keyword_step};

/// Keyword responder, with the reason for its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeywordResponder {
    /// No model is configured.
    NoModel,
    /// The configured model is not available right now.
    ModelUnavailable,
}

impl KeywordResponder {
    pub fn from_model(model: Option<&Arc<dyn Model>>) -> Self {
        match model {
            None => Self::NoModel,
            Some(_) => Self::ModelUnavailable,
        }
    }
}

#[async_trait]
impl Model for KeywordResponder {
    fn name(&self) -> &str {
        "keyword"
    }

    async fn next_response(
        &self,
        request: &ModelRequest,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let mut response = ModelResponse {
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            stop: StopReason::Done,
            usage: None,
            response_id: None,
        };
        match next_keyword_step(request, *self) {
            KeywordStep::Reply(text) => {
                sink(ResponseDelta::Text(text.clone()));
                response.text = text;
            }
            KeywordStep::Call { name, arguments } => {
                let arguments_json = Value::Object(arguments.clone()).to_string();
                sink(ResponseDelta::ToolCall {
                    ord: 0,
                    name: Some(name.to_owned()),
                    arguments: arguments_json,
                });
                response
                    .calls
                    .push(RawCall { name: name.to_owned(), arguments: ToolArguments::Object(arguments) });
            }
        }
        Ok(response)
    }
}
