//! Check of the model: availability, tool calls and context length.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{Finding, LongRequest};
use crate::config::{Config, Llm};
use crate::conversation::model_cost::{DailyBudget, TokenUsage};
use crate::conversation::model_request::{ModelMessage, ModelRequest, ToolChoice};
use crate::conversation::transcript::{EffectLevel, ToolAudience, ToolSpec};
use crate::engine::{ModelState, ToolSupport};
use crate::llm::{Model, ModelError, ModelResponse};
use crate::outbound_clients::build_model;

/// Size of the long test request in bytes, like the longest requests of turns.
const LONG_REQUEST_BYTES: usize = 40_000;
/// Upper bound of the bytes per token of the filler text.
const BYTES_PER_TOKEN: usize = 5;
const MAX_OUTPUT_TOKENS: u32 = 1024;
/// Tool that the test asks the model to call.
const PROBE_TOOL: &str = "check_status";
const TOOLS_HINT: &str =
    "set LLM_MODEL to a model that supports tools; with Ollama, its page has the tag \"tools\"";

/// Result of a test of the model.
pub(super) struct ModelCheck {
    pub(super) findings: Vec<Finding>,
    /// Outcome of the first request. `None` if none was sent.
    pub(super) outcome: Option<Result<ToolSupport, ModelError>>,
}

impl ModelCheck {
    fn without_request(finding: Finding) -> Self {
        Self { findings: vec![finding], outcome: None }
    }
}

pub(super) async fn check_model(
    config: &Config,
    network: &reqwest::Client,
    long_request: LongRequest,
) -> ModelCheck {
    let mut check = probe_model(config.llm.as_ref(), network, long_request).await;
    if config.llm.is_some() {
        check.findings.push(daily_limit_finding(config.limits.budget));
    }
    check
}

/// Tests the model with a tool call and, if `long_request` permits it, with a long request.
pub(super) async fn probe_model(
    llm: Option<&Llm>,
    network: &reqwest::Client,
    long_request: LongRequest,
) -> ModelCheck {
    let Some(llm) = llm else {
        let finding = Finding::ok("model: none is configured; only common requests are understood");
        return ModelCheck::without_request(finding);
    };
    let model = match build_model(llm, network) {
        Ok(model) => model,
        Err(error) => {
            let summary = format!("model: failed to {error:#}");
            return ModelCheck::without_request(Finding::failure(summary, "check the LLM_ variables"));
        }
    };
    let started = Instant::now();
    let response = model.next_response(&probe_request("Call the tool check_status."), &mut |_| {}).await;
    let findings = match &response {
        Ok(response) => vec![
            tool_call_finding(llm, response, started.elapsed()),
            check_context_length(llm, model.as_ref(), long_request).await,
        ],
        Err(error) => vec![unusable_model(&llm.model, error)],
    };
    ModelCheck { findings, outcome: Some(response.map(|response| tool_support(&response))) }
}

fn daily_limit_finding(budget: DailyBudget) -> Finding {
    let cost_limit = if budget.cost.is_some() { ", and DAILY_COST" } else { "" };
    Finding::ok(match budget.tokens {
        Some(tokens) => {
            format!("model: daily limit of {} tokens (DAILY_TOKENS){cost_limit}", format_thousands(tokens))
        }
        None => format!("model: no daily token limit (DAILY_TOKENS=off){cost_limit}"),
    })
}

/// Formats `3000000` as `3,000,000`.
fn format_thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

fn tool_call_finding(llm: &Llm, response: &ModelResponse, latency: Duration) -> Finding {
    let usage = response.usage.map_or_else(String::new, |usage| format_usage(llm, usage));
    let (name, latency) = (&llm.model, latency.as_millis());
    match tool_support(response) {
        ToolSupport::Usable => {
            Finding::ok(format!("model: {name} responds and calls tools{usage}, in {latency} ms"))
        }
        ToolSupport::Missing => Finding::failure(
            format!("model: {name} responds, but did not call the requested tool{usage}, in {latency} ms"),
            TOOLS_HINT,
        ),
    }
}

fn tool_support(response: &ModelResponse) -> ToolSupport {
    match response.calls.iter().any(|call| call.name == PROBE_TOOL) {
        true => ToolSupport::Usable,
        false => ToolSupport::Missing,
    }
}

/// Formats the tokens of the test and, for a model with prices, their cost.
fn format_usage(llm: &Llm, usage: TokenUsage) -> String {
    let cost = match llm.prices.cost(usage) {
        0 => String::new(),
        micros => format!(", which cost {}.{:06}", micros / 1_000_000, micros % 1_000_000),
    };
    format!(" ({} tokens{cost})", usage.total())
}

/// Checks the context length. A server that truncates a prompt shows it only by a low token count.
async fn check_context_length(llm: &Llm, model: &dyn Model, long_request: LongRequest) -> Finding {
    if llm.api_key.is_some() && long_request == LongRequest::WithoutKey {
        return Finding::ok(
            "model: context length not checked; dialarr doctor --model checks it with about 9,000 tokens",
        );
    }
    let mut text = "Ignore these words and call the tool check_status.".to_owned();
    while text.len() < LONG_REQUEST_BYTES {
        text.push_str(" film");
    }
    let request = probe_request(&text);
    let expected = request.byte_size() / BYTES_PER_TOKEN * 7 / 10;
    let hint = "give it 16,384 or more: OLLAMA_CONTEXT_LENGTH for Ollama, --ctx-size for llama.cpp";
    match model.next_response(&request, &mut |_| {}).await {
        Ok(ModelResponse { usage: Some(usage), .. }) => {
            let counted = usize::try_from(usage.input).unwrap_or(usize::MAX);
            if counted < expected {
                let summary = format!(
                    "model: the server read only {counted} tokens of a request with at least {expected}: the context is too short"
                );
                return Finding::warning(summary, hint);
            }
            Finding::ok(format!("model: long requests are read completely ({counted} tokens)"))
        }
        Ok(ModelResponse { usage: None, .. }) => {
            Finding::warning("model: context length unknown: the server reports no token counts", hint)
        }
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
            name: PROBE_TOOL,
            description: "Tells what is downloading.",
            effect_level: EffectLevel::Read,
            audience: ToolAudience::Everyone,
            parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }).into(),
        }]
        .into(),
        tool_choice: ToolChoice::Auto,
        messages: vec![ModelMessage::User(text.to_owned()).into()],
        max_output_tokens: MAX_OUTPUT_TOKENS,
        reply_schema: None,
    }
}

/// Returns a finding on the last request to the model's server, and on its last test.
pub(crate) fn last_request_finding(ModelState { name, outcome }: &ModelState) -> Finding {
    match outcome {
        Ok(ToolSupport::Usable) => Finding::ok(format!("model: {name} responds")),
        Ok(ToolSupport::Missing) => Finding::failure(
            format!("model: {name} responds, but did not call the requested tool in its last test"),
            TOOLS_HINT,
        ),
        Err(error) => unusable_model(name, error),
    }
}

fn unusable_model(name: &str, error: &ModelError) -> Finding {
    let summary = format!("model: {name}: failed to {error}");
    match error {
        ModelError::RateLimited { .. } => {
            Finding::warning(summary, "try again later, or raise the limit of the key")
        }
        ModelError::Unavailable(_) | ModelError::Timeout => Finding::failure(
            summary,
            "check LLM_BASE_URL, and that the server is running; until then, only common requests are understood",
        ),
        ModelError::Malformed(_) => Finding::failure(summary, "try another LLM_MODEL"),
        ModelError::ContextTooLong => Finding::failure(summary, "give it a context of 16,384 tokens or more"),
        ModelError::Unauthorized(_) => Finding::failure(summary, "check LLM_API_KEY and its permissions"),
        ModelError::QuotaSpent(_) => Finding::failure(summary, "add credit to the account of the key"),
        ModelError::Rejected(_) => {
            Finding::failure(summary, "check LLM_MODEL and LLM_BASE_URL; the model must support tools")
        }
    }
}
