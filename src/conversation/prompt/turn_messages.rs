//! Messages of one turn, as the requests of its conversation contain them.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::clean_text::{MAX_TEXT_CHARS, clean_user_text, strip_context_marks};
use super::material::PastTurn;
use crate::conversation::channel_list::SMS_PAGE_LENGTH;
use crate::conversation::deletion::deletion_messages::MAX_ITEMS;
use crate::conversation::model_request::{EncodedMessage, ModelMessage, PromptCall};
use crate::conversation::text::message_format::split_first_page;
use crate::conversation::transcript::{
    CallState, EffectLevel, FailureCode, ModelStep, NOT_RUN, TURN_CANCELED, ToolArguments, ToolCall,
};

/// Maximum length of a tool result; a longer one is replaced by a note.
const MAX_RESULT_BYTES: usize = 4_000;

impl PastTurn {
    /// Returns the text with which the turn ended, as it was sent: only the first page of a long answer, but the whole
    /// of a confirmation prompt.
    pub(super) fn reply(&self) -> String {
        let mut calls = self.steps.iter().flat_map(|step| &step.calls);
        let is_prompt = calls.any(|call| call.effect_level == EffectLevel::Destructive);
        match &self.answer {
            Some(answer) if is_prompt => answer.clone(),
            Some(answer) => split_first_page(answer, SMS_PAGE_LENGTH).text,
            None => self.steps.last().map(|step| step.text.trim().to_owned()).unwrap_or_default(),
        }
    }

    /// Returns the approximate length of the turn in a request, in bytes.
    pub(super) fn estimated_bytes(&self) -> usize {
        let context = self.context.as_ref().map_or(0, |context| context.block.len());
        let texts: usize = self.texts.iter().map(|text| text.len().min(MAX_TEXT_CHARS)).sum();
        let steps: usize = self
            .steps
            .iter()
            .map(|step| {
                let calls: usize = step.calls.iter().map(|call| format_result(call).len() + 100).sum();
                step.text.len() + calls
            })
            .sum();
        context + texts + steps + self.answer.as_ref().map_or(0, String::len)
    }
}

/// Builds the messages of a past turn.
pub(super) fn build_turn_messages(past: &PastTurn) -> Vec<EncodedMessage> {
    let block = past.context.as_ref().map(|context| context.block.as_str());
    let text = join_block_and_texts(block, &past.texts, past.author.as_deref());
    let mut messages = vec![ModelMessage::User(text).into()];
    for step in past.steps.iter().filter(|step| !step.calls.is_empty()) {
        push_step(&mut messages, step, &|call| format_result(call));
    }
    let reply = past.reply();
    if !reply.is_empty() {
        messages.push(ModelMessage::Assistant { text: reply, calls: Vec::new() }.into());
    }
    messages
}

/// Returns the name under which the messages of an author in a room appear.
pub fn format_author(name: Option<&str>) -> String {
    name.map_or_else(|| "Somebody".to_owned(), |name| clean_user_text(name).replace([':', '\n'], " "))
}

/// Joins a context block and the messages that follow it, each with its author in a room.
pub(super) fn join_block_and_texts(block: Option<&str>, texts: &[String], author: Option<&str>) -> String {
    let texts = texts.iter().map(|text| match author {
        // A line break must not begin the words of somebody else.
        Some(author) => format!("{author}: {}", clean_user_text(text).replace('\n', "\n  ")),
        None => clean_user_text(text),
    });
    block.map(str::to_owned).into_iter().chain(texts).collect::<Vec<_>>().join("\n")
}

pub(super) fn push_step(
    messages: &mut Vec<EncodedMessage>,
    step: &ModelStep,
    result: &dyn Fn(&ToolCall) -> String,
) {
    let text = step.text.trim().to_owned();
    if text.is_empty() && step.calls.is_empty() {
        return;
    }
    let calls = step.calls.iter().map(|call| PromptCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: match &call.arguments {
            ToolArguments::Object(map) => map.clone(),
            ToolArguments::Malformed(_) => serde_json::Map::new(),
        },
    });
    messages.push(ModelMessage::Assistant { text, calls: calls.collect() }.into());
    for call in &step.calls {
        let (content, summary) = (result(call), call_summary(call));
        messages.push(ModelMessage::ToolResult { call: call.id.clone(), content, summary }.into());
    }
}

pub(super) fn format_result(call: &ToolCall) -> String {
    let text = match &call.state {
        CallState::Done(result) => json_without_nulls(&result.for_model),
        CallState::Failed(failure) => json_without_nulls(&failure.for_model),
        CallState::AwaitingConfirmation => json!({ "status": "awaiting_user_confirmation" }).to_string(),
        CallState::Canceled(reason) if reason == NOT_RUN => {
            let hint = "this never started and the user was not asked; call again if it is still wanted";
            json!({ "status": "not_done", "reason": reason, "hint": hint }).to_string()
        }
        CallState::Canceled(reason) => json!({ "status": "not_done", "reason": reason }).to_string(),
        // An unfinished call needs a result too, or model servers reject the conversation.
        CallState::Created | CallState::Running => json!({ "error": "aborted" }).to_string(),
    };
    let text = strip_context_marks(append_unprompted_items(text, call));
    if text.len() <= MAX_RESULT_BYTES {
        text
    } else {
        json!({ "note": "result too long; ask for less" }).to_string()
    }
}

/// Result that is serialized without its fields that have no value.
struct WithoutNulls<'a>(&'a Value);

impl Serialize for WithoutNulls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => {
                let present = fields.iter().filter(|(_, value)| !value.is_null());
                serializer.collect_map(present.map(|(name, value)| (name, Self(value))))
            }
            Value::Array(values) => serializer.collect_seq(values.iter().map(Self)),
            _ => self.0.serialize(serializer),
        }
    }
}

#[expect(clippy::expect_used, reason = "a JSON value can be serialized")]
fn json_without_nulls(result: &Value) -> String {
    serde_json::to_string(&WithoutNulls(result)).expect("a JSON value can be serialized")
}

/// Adds the items beyond the prompt's limit to the result of a deletion, so that the model can ask about them next.
fn append_unprompted_items(text: String, call: &ToolCall) -> String {
    let was_prompted = match &call.state {
        CallState::AwaitingConfirmation | CallState::Done(_) => true,
        CallState::Canceled(reason) => reason != NOT_RUN && reason != TURN_CANCELED,
        CallState::Failed(failure) => failure.code == FailureCode::NotDeleted,
        CallState::Created | CallState::Running => false,
    };
    let ToolArguments::Object(arguments) = &call.arguments else { return text };
    let Some(Value::Array(items)) =
        arguments.get("items").filter(|_| call.effect_level == EffectLevel::Destructive)
    else {
        return text;
    };
    let mut distinct: Vec<&Value> = Vec::new();
    items.iter().for_each(|item| {
        if !distinct.contains(&item) {
            distinct.push(item)
        }
    });
    let unprompted = distinct.get(MAX_ITEMS..).filter(|items| was_prompted && !items.is_empty());
    match (unprompted, serde_json::from_str(&text)) {
        (Some(unprompted), Ok(Value::Object(mut result))) => {
            result.insert("not_asked_about_yet".to_owned(), json!(unprompted));
            result.insert("hint".to_owned(), json!("when the user has answered, call again with these"));
            Value::Object(result).to_string()
        }
        (Some(_) | None, _) => text,
    }
}

fn call_summary(call: &ToolCall) -> Option<String> {
    match &call.state {
        CallState::Done(result) => Some(result.for_user.clone()),
        CallState::Failed(failure) => failure.for_user.clone(),
        CallState::Created
        | CallState::Running
        | CallState::AwaitingConfirmation
        | CallState::Canceled(_) => None,
    }
}
