//! Calls and results in the messages of a request, and what earlier turns showed.

use serde_json::{Map, Value};

use super::found_title::{FoundTitle, parse_single_title, parse_titles};
use crate::conversation::model_request::{EncodedMessage, ModelMessage};
use crate::conversation::transcript::CallId;

/// Line that ends the context block, which the engine puts before the user's text.
const CONTEXT_END: &str = "[/context]";

/// Returns the lines of the user's own text.
pub(super) fn user_lines(message: &ModelMessage) -> impl Iterator<Item = &str> {
    let text = match message {
        ModelMessage::User(text) => text.as_str(),
        ModelMessage::Assistant { .. } | ModelMessage::ToolResult { .. } => "",
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let start = lines.iter().rposition(|line| *line == CONTEXT_END).map_or(0, |index| index + 1);
    lines.into_iter().skip(start).filter(|line| !line.is_empty())
}

/// Tool result in the messages of the request.
pub(super) struct PastResult<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) content: &'a str,
    pub(super) summary: Option<&'a str>,
}

impl PastResult<'_> {
    pub(super) fn is_error(&self) -> bool {
        serde_json::from_str::<Map<String, Value>>(self.content)
            .is_ok_and(|result| result.contains_key("error"))
    }

    /// Returns whether the result, or the result of one of its items, has this status.
    pub(super) fn has_status(&self, status: &str) -> bool {
        serde_json::from_str(self.content).is_ok_and(|result: Value| has_status(&result, status))
    }

    pub(super) fn reply_text(&self, default: &str) -> String {
        self.summary.filter(|summary| !summary.is_empty()).unwrap_or(default).to_owned()
    }
}

fn has_status(result: &Value, status: &str) -> bool {
    match result {
        Value::Object(fields) => {
            fields.get("status").is_some_and(|found| found == status)
                || fields.values().any(|field| has_status(field, status))
        }
        Value::Array(items) => items.iter().any(|item| has_status(item, status)),
        _ => false,
    }
}

/// Returns the results in the messages, oldest first.
pub(super) fn past_results(messages: &[EncodedMessage]) -> impl DoubleEndedIterator<Item = PastResult<'_>> {
    messages.iter().filter_map(|message| match &**message {
        ModelMessage::ToolResult { call, content, summary } => {
            let (name, arguments) = find_call(messages, call)?;
            Some(PastResult { name, arguments, content, summary: summary.as_deref() })
        }
        ModelMessage::User(_) | ModelMessage::Assistant { .. } => None,
    })
}

fn find_call<'m>(messages: &'m [EncodedMessage], id: &CallId) -> Option<(&'m str, &'m Map<String, Value>)> {
    messages.iter().find_map(|message| match &**message {
        ModelMessage::Assistant { calls, .. } => {
            calls.iter().find(|call| call.id == *id).map(|call| (call.name.as_str(), &call.arguments))
        }
        ModelMessage::User(_) | ModelMessage::ToolResult { .. } => None,
    })
}

/// Returns the messages of the last turn among earlier ones, starting with the user's message.
pub(super) fn last_turn(earlier: &[EncodedMessage]) -> &[EncodedMessage] {
    let start = earlier.iter().rposition(|message| matches!(**message, ModelMessage::User(_)));
    start.map_or(&[], |start| &earlier[start..])
}

/// Returns the title that the last result concerns, if there is exactly one.
pub(super) fn last_mentioned_title(earlier: &[EncodedMessage]) -> Option<FoundTitle> {
    let last = past_results(earlier).next_back()?;
    last_removal(earlier, &last)
        .or_else(|| parse_single_title(last.content, last.arguments.get("query").and_then(Value::as_str)))
        .or_else(|| last.arguments.get("id").and_then(|_| shown_title(earlier, last.arguments)))
}

/// Returns the one title of a deletion. The title comes from the search results that showed it.
pub(super) fn last_removal(earlier: &[EncodedMessage], last: &PastResult<'_>) -> Option<FoundTitle> {
    let items = last.arguments.get("items").filter(|_| last.name == "remove_media")?;
    let [removed] = items.as_array()?.as_slice() else { return None };
    shown_title(earlier, removed.as_object()?)
}

/// Returns the newest shown title with this type, id and instance.
fn shown_title(earlier: &[EncodedMessage], reference: &Map<String, Value>) -> Option<FoundTitle> {
    shown_titles(earlier).find(|found| {
        found
            .library_reference()
            .is_some_and(|found| found.iter().all(|(key, value)| reference.get(key) == Some(value)))
    })
}

/// Returns the titles in all results, newest result first.
pub(super) fn shown_titles(earlier: &[EncodedMessage]) -> impl Iterator<Item = FoundTitle> {
    past_results(earlier).rev().filter_map(|result| parse_titles(result.content)).flatten()
}
