//! Check of the model: availability, tool calls, and a context long enough for the requests.

use serde_json::json;

use super::{Finding, LongRequest};
use crate::config::Llm;
use crate::conversation::model_cost::DailyBudget;
use crate::conversation::model_request::{ModelMessage, ModelRequest, ToolChoice};
use crate::conversation::transcript::{EffectLevel, ToolAudience, ToolSpec};
use crate::llm::{Model, ModelError, ModelResponse};
use crate::outbound_clients::build_model;

/// Size of the longest requests that turns make, in bytes.
const LONG_REQUEST_BYTES: usize = 40_000;
/// Upper bound of the bytes per token of the filler text.
const BYTES_PER_TOKEN: usize = 5;
const ANSWER_TOKENS: u32 = 1024;

pub(super) async fn check_model(llm: Option<&Llm>, budget: DailyBudget, long: LongRequest) -> Vec<Finding> {
    let Some(llm) = llm else {
        return vec![Finding::ok("model: none is configured, keywords are read in its place")];
    };
    let model = match build_model(llm) {
        Ok(model) => model,
        Err(error) => {
            let what = format!("model: failed to {error:#}");
            return vec![Finding::failure(what, "check the LLM_ variables")];
        }
    };
    let limit = daily_limit(budget);
    let first = match model.next_response(&probe_request("Call the tool check_status."), &mut |_| {}).await {
        Ok(step) => calls_tools(&llm.model, &step),
        Err(error) => return vec![unusable_model(&llm.model, &error), limit],
    };
    vec![first, check_context_length(llm, model.as_ref(), long).await, limit]
}

fn daily_limit(budget: DailyBudget) -> Finding {
    let cost = if budget.cost.is_some() { ", and DAILY_COST" } else { "" };
    Finding::ok(match budget.tokens {
        Some(tokens) => {
            format!("model: a day's limit is {} tokens (DAILY_TOKENS){cost}", format_thousands(tokens))
        }
        None => format!("model: a day has no limit of tokens (DAILY_TOKENS=off){cost}"),
    })
}

/// Formats `3000000` as `3,000,000`.
fn format_thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

fn calls_tools(name: &str, step: &ModelResponse) -> Finding {
    let spent = step.usage.map_or_else(String::new, |usage| format!(" ({} tokens)", usage.total()));
    if step.calls.iter().any(|call| call.name == "check_status") {
        return Finding::ok(format!("model: {name} answers and calls tools{spent}"));
    }
    Finding::failure(
        format!("model: {name} answers, but did not call the tool that it was asked to{spent}"),
        "set LLM_MODEL to a model that supports tools; with Ollama, its page has the tag \"tools\"",
    )
}

/// Checks the context length. A server that cuts a prompt shows the cut only by the low number of tokens that it
/// counted.
async fn check_context_length(llm: &Llm, model: &dyn Model, long: LongRequest) -> Finding {
    if llm.api_key.is_some() && long == LongRequest::WhereFree {
        return Finding::ok(
            "model: context length not tried; dialarr doctor --model does, for about 9,000 tokens",
        );
    }
    let mut filling = "Ignore these words and call the tool check_status.".to_owned();
    while filling.len() < LONG_REQUEST_BYTES {
        filling.push_str(" film");
    }
    let request = probe_request(&filling);
    let least = request.byte_size() / BYTES_PER_TOKEN * 7 / 10;
    let hint = "give it 16,384 or more: OLLAMA_CONTEXT_LENGTH for Ollama, --ctx-size for llama.cpp";
    match model.next_response(&request, &mut |_| {}).await {
        Ok(ModelResponse { usage: Some(usage), .. }) => {
            let counted = usize::try_from(usage.input).unwrap_or(usize::MAX);
            if counted < least {
                let what = format!(
                    "model: it read {counted} tokens of a request of at least {least}: its context is too short"
                );
                return Finding::warning(what, hint);
            }
            Finding::ok(format!("model: it reads long requests whole ({counted} tokens)"))
        }
        Ok(ModelResponse { usage: None, .. }) => Finding::warning(
            "model: whether it reads long requests whole cannot be told, since it counts no tokens",
            hint,
        ),
        Err(ModelError::ContextTooLong) => {
            Finding::warning("model: a long request does not fit into its context", hint)
        }
        Err(error) => Finding::warning(format!("model: a long request: failed to {error}"), hint),
    }
}

fn probe_request(text: &str) -> ModelRequest {
    ModelRequest {
        system: "You check a connection. Do what is asked, and nothing else.".to_owned(),
        tools: vec![ToolSpec {
            name: "check_status",
            description: "Tells what is downloading.",
            effect_level: EffectLevel::Read,
            audience: ToolAudience::Everyone,
            parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }).into(),
        }],
        tool_choice: ToolChoice::Auto,
        messages: vec![ModelMessage::User(text.to_owned())],
        max_output_tokens: ANSWER_TOKENS,
        reply_schema: None,
    }
}

fn unusable_model(name: &str, error: &ModelError) -> Finding {
    let what = format!("model: {name}: failed to {error}");
    match error {
        ModelError::RateLimited { .. } => {
            Finding::warning(what, "try again later, or raise the limit of the key")
        }
        ModelError::Unavailable(_) | ModelError::Timeout => Finding::failure(
            what,
            "check LLM_BASE_URL, and whether the server runs; until then keywords are read",
        ),
        ModelError::Malformed(_) => Finding::failure(what, "try another LLM_MODEL"),
        ModelError::ContextTooLong => Finding::failure(what, "give it a context of 16,384 tokens or more"),
        ModelError::Unauthorized(_) => Finding::failure(what, "check LLM_API_KEY and what it may use"),
        ModelError::QuotaSpent(_) => Finding::failure(what, "add credit to the account of the key"),
        ModelError::Rejected(_) => {
            Finding::failure(what, "check LLM_MODEL and LLM_BASE_URL; the model must support tools")
        }
    }
}
