//! Accumulated chunks of a response: the same with any split and any delivery, and equal to the forwarded deltas.
#![no_main]

use dialarr::conversation::transcript::ToolArguments;
use dialarr::llm::chat_completions::ChatResponse;
use dialarr::llm::response_accumulator::{ResponseAccumulator, ResponseFlaw};
use dialarr::llm::{ModelError, ModelResponse, ResponseDelta};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

type Read = Result<(ModelResponse, Option<ResponseFlaw>), ModelError>;

fuzz_target!(|data: &[u8]| {
    let lines = data.split(|byte| *byte == b'\n');
    let chunks: Vec<Value> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let (whole, deltas) = read(&chunks);
    if let Ok((step, _)) = &whole {
        check_deltas(step, &deltas);
    }
    let cut: Vec<Value> = chunks.iter().flat_map(cut_text).flat_map(|chunk| cut_call(&chunk)).collect();
    assert_eq!(read(&cut).0, whole, "cut into {cut:?}");
    let delivered: Vec<Value> = chunks.iter().cloned().map(as_message).collect();
    assert_eq!(read(&delivered).0, whole, "delivered as {delivered:?}");
});

fn read(chunks: &[Value]) -> (Read, Vec<ResponseDelta>) {
    let mut answer = ResponseAccumulator::default();
    let mut deltas = Vec::new();
    for chunk in chunks {
        // A malformed chunk ends the stream, as in the client.
        let Ok(chunk) = serde_json::from_value::<ChatResponse>(chunk.clone()) else { break };
        if let Err(error) = answer.push(&chunk, &mut |delta| deltas.push(delta)) {
            return (Err(error), deltas);
        }
    }
    let flaw = answer.flaw();
    let step = answer.into_response(&mut |delta| deltas.push(delta));
    (Ok((step, flaw)), deltas)
}

fn check_deltas(step: &ModelResponse, deltas: &[ResponseDelta]) {
    let (mut text, mut thinking) = (String::new(), String::new());
    let mut calls: Vec<(String, String)> = Vec::new();
    for delta in deltas {
        match delta {
            ResponseDelta::Text(piece) => text.push_str(piece),
            ResponseDelta::Thinking(piece) => thinking.push_str(piece),
            ResponseDelta::ToolCall { ord, name, arguments } => {
                let ord = *ord as usize;
                assert!(ord <= calls.len(), "a call before the one that precedes it");
                if ord == calls.len() {
                    calls.push((String::new(), String::new()));
                }
                calls[ord].0.push_str(name.as_deref().unwrap_or_default());
                calls[ord].1.push_str(arguments);
            }
        }
    }
    // An unopened thinking block is detected once the response is complete.
    let is_split_later =
        text.ends_with(&step.text) && step.thinking.starts_with(&thinking) && text.contains('/');
    assert!((&text, &thinking) == (&step.text, &step.thinking) || is_split_later, "{text:?} in {step:?}");
    let told =
        calls.into_iter().map(|(name, arguments)| (name, ToolArguments::parse(Value::String(arguments))));
    assert!(told.eq(step.calls.iter().map(|call| (call.name.clone(), call.arguments.clone()))));
}

/// Returns the only choice of a chunk, if it can be determined without the tested code.
fn only_delta(chunk: &mut Value) -> Option<&mut Value> {
    let [choice] = chunk.get_mut("choices")?.as_array_mut()?.as_mut_slice() else { return None };
    let first = choice.get("index").is_none_or(|index| index.is_null() || *index == 0);
    choice.get_mut("delta").filter(|delta| first && delta.is_object())
}

fn halves(text: &str) -> Option<(&str, &str)> {
    let middle = text.char_indices().nth(text.chars().count() / 2)?.0;
    (middle > 0).then(|| text.split_at(middle))
}

fn cut_text(chunk: &Value) -> Vec<Value> {
    let mut rest = chunk.clone();
    let cut = only_delta(&mut rest).and_then(|delta| {
        let content = delta.get_mut("content")?;
        let (first, second) = halves(content.as_str()?)?;
        let (first, second) = (first.to_owned(), second.to_owned());
        *content = json!(second);
        Some(json!({ "choices": [{ "delta": { "content": first } }] }))
    });
    // An error ends a response before its other fields count.
    cut.filter(|_| rest.get("error").is_none()).map_or_else(|| vec![chunk.clone()], |first| vec![first, rest])
}

fn cut_call(chunk: &Value) -> Vec<Value> {
    let mut first = chunk.clone();
    let cut = only_delta(&mut first).and_then(|delta| {
        let [call] = delta.get_mut("tool_calls")?.as_array_mut()?.as_mut_slice() else { return None };
        let marks = (call.get("index").cloned(), call.get("id").cloned());
        let arguments = call.get_mut("function")?.get_mut("arguments")?;
        let (one, two) = halves(arguments.as_str()?)?;
        let (one, two) = (one.to_owned(), two.to_owned());
        *arguments = json!(one);
        let call = json!({ "index": marks.0, "id": marks.1, "function": { "arguments": two } });
        Some(json!({ "choices": [{ "delta": { "tool_calls": [call] } }] }))
    });
    // The other fields of a chunk belong to a call that begins in it.
    let alone = chunk.get("error").is_none() && chunk["choices"][0].get("message").is_none();
    cut.filter(|_| alone).map_or_else(|| vec![chunk.clone()], |second| vec![first, second])
}

fn as_message(mut chunk: Value) -> Value {
    for choice in chunk.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(choice) = choice.as_object_mut()
            && !choice.contains_key("message")
            && let Some(delta) = choice.remove("delta")
        {
            choice.insert("message".to_owned(), delta);
        }
    }
    chunk
}
