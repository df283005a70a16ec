//! Assembly of a model response from its chunks. The rules tolerate servers that number their calls wrongly, omit ids
//! or end without a final chunk.

use serde_json::Value;

use super::chat_completions::{
    ChatResponse, ContentPart, MessageChunk, ResponseChoice, TokenCount, ToolCallChunk,
};
use super::error_response;
use super::thinking_splitter::{self, ThinkingSplitter};
use super::{DeltaSink, ModelError, ModelResponse, RawCall, ResponseDelta};
use crate::conversation::model_cost::TokenUsage;
use crate::conversation::transcript::{StopReason, ToolArguments};

/// Maximum total size of the accumulated text, thinking and calls.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct ResponseAccumulator {
    text: String,
    thinking: String,
    /// Separates thinking that the server left in the text.
    splitter: ThinkingSplitter,
    calls: Vec<OpenCall>,
    refused: bool,
    /// True after the first choice with a message or a finish reason.
    has_choice: bool,
    finish_reason: Option<String>,
    usage: Option<TokenUsage>,
    response_id: Option<String>,
    size: usize,
}

#[derive(Debug)]
struct OpenCall {
    index: Option<u32>,
    id: String,
    name: String,
    arguments: String,
}

/// Flaw of a response that makes a second request necessary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFlaw {
    /// The response has no choice with a message or a finish reason.
    Empty,
    /// The response ended without a finish reason.
    CutOff,
    /// The arguments of a call are not a JSON object.
    Arguments,
}

impl ResponseAccumulator {
    /// Adds a chunk or a whole response and passes its content on to the sink.
    pub fn push(&mut self, response: &ChatResponse, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        if let Some(error) = error_response::error_in_response(&response.error) {
            return Err(error);
        }
        if let Some(id) = response.id.as_ref().filter(|id| !id.is_empty()) {
            self.response_id.get_or_insert_with(|| id.clone());
        }
        if let Some(tokens) = response.usage.as_ref().and_then(TokenCount::token_usage) {
            self.usage = Some(tokens);
        }
        // The request asks for one choice. Further choices are other responses to the same request.
        if let Some(choice) = response.choices.iter().find(|choice| choice.index == 0) {
            self.add_choice(choice, sink);
        }
        if self.size > MAX_RESPONSE_BYTES {
            return Err(ModelError::Malformed("the response is larger than 1 MiB".to_owned()));
        }
        Ok(())
    }

    pub fn flaw(&self) -> Option<ResponseFlaw> {
        if !self.has_choice {
            return Some(ResponseFlaw::Empty);
        }
        match self.stop_reason() {
            // A response that reached the length limit may have incomplete calls, and a second request would end the
            // same way.
            StopReason::Length | StopReason::Filtered | StopReason::Refused => None,
            StopReason::Done | StopReason::Other(_) => {
                if self.calls.iter().any(|call| matches!(call.parse_arguments(), ToolArguments::Malformed(_)))
                {
                    Some(ResponseFlaw::Arguments)
                } else if self.finish_reason.is_none() {
                    Some(ResponseFlaw::CutOff)
                } else {
                    None
                }
            }
        }
    }

    /// Returns the whole response. Sends text that was held back as a possible tag to the sink first.
    pub fn into_response(mut self, sink: DeltaSink<'_>) -> ModelResponse {
        self.finish_text(sink);
        let (thinking, text) = match thinking_splitter::split_unopened_block(&self.text) {
            Some((thinking, text)) => (self.thinking.clone() + thinking, text.to_owned()),
            None => (std::mem::take(&mut self.thinking), std::mem::take(&mut self.text)),
        };
        let stop = self.stop_reason();
        let calls = self
            .calls
            .into_iter()
            .map(|call| RawCall { arguments: call.parse_arguments(), name: call.name })
            .collect();
        ModelResponse { text, thinking, calls, stop, usage: self.usage, response_id: self.response_id }
    }

    /// Returns the token usage that the server has reported so far.
    pub fn usage(&self) -> Option<TokenUsage> {
        self.usage
    }

    fn add_choice(&mut self, choice: &ResponseChoice, sink: DeltaSink<'_>) {
        for message in choice.delta.iter().chain(&choice.message) {
            self.has_choice = true;
            self.add_message(message, sink);
        }
        if let Some(reason) = choice.finish_reason.as_ref().filter(|reason| !reason.is_empty()) {
            self.has_choice = true;
            self.finish_reason = Some(reason.clone());
        }
    }

    fn add_message(&mut self, message: &MessageChunk, sink: DeltaSink<'_>) {
        // Some servers send the same thinking in both fields.
        let thinking = [&message.reasoning_content, &message.reasoning]
            .into_iter()
            .flatten()
            .find(|text| !text.is_empty());
        if let Some(thinking) = thinking {
            self.size += thinking.len();
            self.emit_delta(ResponseDelta::Thinking(thinking.clone()), sink);
        }
        for (part, text) in message.content() {
            self.size += text.len();
            match part {
                ContentPart::Thinking => self.emit_delta(ResponseDelta::Thinking(text), sink),
                ContentPart::Text => {
                    let split = self.splitter.push(&text);
                    split.into_iter().for_each(|delta| self.emit_delta(delta, sink));
                }
            }
        }
        if let Some(refusal) = message.refusal.as_ref().filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            self.size += refusal.len();
            self.finish_text(sink);
            self.emit_delta(ResponseDelta::Text(refusal.clone()), sink);
        }
        for call in &message.tool_calls {
            self.add_call(call, sink);
        }
    }

    /// Ends the text. What was held back is not a tag.
    fn finish_text(&mut self, sink: DeltaSink<'_>) {
        if let Some(rest) = self.splitter.finish() {
            self.emit_delta(rest, sink);
        }
    }

    fn emit_delta(&mut self, delta: ResponseDelta, sink: DeltaSink<'_>) {
        match &delta {
            ResponseDelta::Thinking(text) => self.thinking.push_str(text),
            ResponseDelta::Text(text) => self.text.push_str(text),
            // `add_call` assembles the calls.
            ResponseDelta::ToolCall { .. } => {}
        }
        sink(delta);
    }

    fn add_call(&mut self, chunk: &ToolCallChunk, sink: DeltaSink<'_>) {
        let id = chunk.id.as_deref().unwrap_or_default();
        let name = chunk.function.name.as_deref().unwrap_or_default();
        let arguments = match &chunk.function.arguments {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.size += id.len() + name.len() + arguments.len();
        let ord = self.find_continued_call(chunk.index, id, name).unwrap_or_else(|| {
            self.size += size_of::<OpenCall>();
            self.calls.push(OpenCall {
                index: chunk.index,
                id: String::new(),
                name: String::new(),
                arguments: String::new(),
            });
            self.calls.len() - 1
        });
        let call = &mut self.calls[ord];
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let first_name = (call.name.is_empty() && !name.is_empty()).then(|| name.to_owned());
        if let Some(name) = &first_name {
            call.name.clone_from(name);
        }
        call.arguments.push_str(&arguments);
        sink(ResponseDelta::ToolCall {
            ord: u32::try_from(ord).unwrap_or(u32::MAX),
            name: first_name,
            arguments,
        });
    }

    /// Returns the index of the call that a chunk continues, or `None` if the chunk starts another call.
    fn find_continued_call(&self, index: Option<u32>, id: &str, name: &str) -> Option<usize> {
        if !id.is_empty() {
            let has_same_id = |call: &OpenCall| call.id == id && (index.is_none() || call.index == index);
            if let Some(ord) = self.calls.iter().rposition(has_same_id) {
                return Some(ord);
            }
        }
        let ord = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let last = &self.calls[ord];
        let has_other_id = !id.is_empty() && (!last.id.is_empty() || index.is_none());
        // Without an id, a name after complete arguments belongs to a new call.
        let has_other_name = id.is_empty()
            && !name.is_empty()
            && !last.name.is_empty()
            && (index.is_none() || last.is_complete());
        (!has_other_id && !has_other_name).then_some(ord)
    }

    fn stop_reason(&self) -> StopReason {
        if self.refused {
            return StopReason::Refused;
        }
        match self.finish_reason.as_deref().unwrap_or("stop") {
            "length" | "max_tokens" => StopReason::Length,
            "content_filter" => StopReason::Filtered,
            "refusal" => StopReason::Refused,
            // Servers use different finish reasons for a response that ends with tool calls.
            _ if !self.calls.is_empty() => StopReason::Done,
            "stop" | "eos" | "end_turn" | "tool_calls" | "function_call" => StopReason::Done,
            other => StopReason::Other(other.to_owned()),
        }
    }
}

impl OpenCall {
    fn parse_arguments(&self) -> ToolArguments {
        ToolArguments::parse(Value::String(self.arguments.clone()))
    }

    fn is_complete(&self) -> bool {
        !self.arguments.trim().is_empty() && matches!(self.parse_arguments(), ToolArguments::Object(_))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};
    use proptest::sample::select;
    use serde_json::json;

    use super::*;

    type AccumulatedResponse =
        (Result<(ModelResponse, Option<ResponseFlaw>), ModelError>, Vec<ResponseDelta>);

    fn accumulate(responses: impl IntoIterator<Item = Value>) -> AccumulatedResponse {
        let mut accumulator = ResponseAccumulator::default();
        let mut deltas = Vec::new();
        for response in responses {
            let response = serde_json::from_value(response).unwrap();
            if let Err(error) = accumulator.push(&response, &mut |delta| deltas.push(delta)) {
                return (Err(error), deltas);
            }
        }
        let flaw = accumulator.flaw();
        let step = accumulator.into_response(&mut |delta| deltas.push(delta));
        (Ok((step, flaw)), deltas)
    }

    /// Checks the names and arguments of the calls that are assembled from streamed chunks.
    #[track_caller]
    fn check(call_chunks: &[Value], expected: &[(&str, &str)]) {
        let chunks =
            call_chunks.iter().map(|call| json!({ "choices": [{ "delta": { "tool_calls": [call] } }] }));
        let (step, flaw) = accumulate(chunks.chain([finish("tool_calls")])).0.unwrap();
        let calls: Vec<RawCall> = expected
            .iter()
            .map(|(name, arguments)| RawCall {
                name: (*name).to_owned(),
                arguments: ToolArguments::parse(json!(arguments)),
            })
            .collect();
        assert_eq!((step.calls, step.stop, flaw), (calls, StopReason::Done, None));
    }

    fn finish(reason: &str) -> Value {
        json!({ "choices": [{ "delta": {}, "finish_reason": reason }] })
    }

    fn text(text: &str) -> Value {
        json!({ "choices": [{ "delta": { "content": text } }] })
    }

    fn call_chunk(index: Option<u32>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
        json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } })
    }

    #[test]
    fn chunks_are_forwarded_in_order_and_accumulated() {
        let (outcome, deltas) = accumulate([
            json!({ "id": "r1", "choices": [{ "delta": { "role": "assistant", "reasoning": "hm" } }] }),
            text("On "),
            text("it."),
            json!({ "choices": [{ "delta": { "tool_calls": [call_chunk(Some(0), Some("a"), Some("find"), "{\"q\":")] } }] }),
            json!({ "choices": [{ "delta": { "tool_calls": [call_chunk(Some(0), None, None, "\"up\"}")] } }] }),
            finish("tool_calls"),
            json!({ "choices": [], "usage": { "prompt_tokens": 9, "prompt_tokens_details": { "cached_tokens": 5 }, "completion_tokens": 4 } }),
        ]);
        let call = |name: Option<&str>, arguments: &str| ResponseDelta::ToolCall {
            ord: 0,
            name: name.map(str::to_owned),
            arguments: arguments.to_owned(),
        };
        assert_eq!(
            deltas,
            [
                ResponseDelta::Thinking("hm".to_owned()),
                ResponseDelta::Text("On ".to_owned()),
                ResponseDelta::Text("it.".to_owned()),
                call(Some("find"), "{\"q\":"),
                call(None, "\"up\"}"),
            ]
        );
        let step = ModelResponse {
            text: "On it.".to_owned(),
            thinking: "hm".to_owned(),
            calls: vec![RawCall {
                name: "find".to_owned(),
                arguments: ToolArguments::parse(json!({ "q": "up" })),
            }],
            stop: StopReason::Done,
            usage: Some(TokenUsage { input: 9, cached: 5, output: 4 }),
            response_id: Some("r1".to_owned()),
        };
        assert_eq!(outcome, Ok((step, None)));
    }

    #[test]
    fn missing_usage_is_none() {
        for (usage, expected) in [
            (json!(null), None),
            (json!({ "prompt_tokens": 0, "completion_tokens": 0 }), None),
            (json!({ "prompt_tokens": "9" }), None),
            (
                json!({ "prompt_tokens": 9, "prompt_tokens_details": null }),
                Some(TokenUsage { input: 9, cached: 0, output: 0 }),
            ),
            (
                json!({ "prompt_tokens": 9, "prompt_tokens_details": { "cached_tokens": 10 } }),
                Some(TokenUsage { input: 9, cached: 9, output: 0 }),
            ),
        ] {
            let (outcome, _) =
                accumulate([text("Hi."), finish("stop"), json!({ "choices": [], "usage": usage })]);
            assert_eq!(outcome.unwrap().0.usage, expected, "{usage}");
        }
    }

    #[test]
    fn calls_are_separated_by_index_and_id() {
        let (a, b) = (Some("a"), Some("b"));
        let both = [("f", r#"{"x":1}"#), ("g", r#"{"y":2}"#)];
        check(
            &[
                call_chunk(Some(0), a, Some("f"), r#"{"x""#),
                call_chunk(Some(1), b, Some("g"), r#"{"y":"#),
                call_chunk(Some(0), None, None, ":1}"),
                call_chunk(Some(1), None, None, "2}"),
            ],
            &both,
        );
        check(
            &[
                call_chunk(Some(0), a, Some("f"), r#"{"x":1}"#),
                call_chunk(Some(0), b, Some("g"), r#"{"y""#),
                call_chunk(Some(0), None, None, ":2}"),
            ],
            &both,
        );
        check(
            &[call_chunk(None, a, Some("f"), r#"{"x":1}"#), call_chunk(None, b, Some("g"), r#"{"y":2}"#)],
            &both,
        );
        check(
            &[
                call_chunk(None, None, Some("f"), r#"{"x":1}"#),
                call_chunk(None, None, Some("g"), r#"{"y":2}"#),
            ],
            &both,
        );
        check(
            &[
                call_chunk(Some(0), None, Some("f"), r#"{"x":1}"#),
                call_chunk(Some(0), None, Some("g"), r#"{"y":2}"#),
            ],
            &both,
        );
        check(
            &[
                call_chunk(None, a, Some("f"), r#"{"x""#),
                call_chunk(None, None, None, ":1}"),
                call_chunk(None, b, Some("g"), r#"{"y":2}"#),
            ],
            &both,
        );
    }

    #[test]
    fn repeated_name_or_id_continues_the_call() {
        let a = Some("a");
        let chunks = [call_chunk(Some(0), a, Some("f"), r#"{"x""#), call_chunk(Some(0), a, Some("f"), ":1}")];
        check(&chunks, &[("f", r#"{"x":1}"#)]);
        let chunks =
            [call_chunk(Some(0), Some(""), Some("f"), ""), call_chunk(Some(0), a, None, r#"{"x":1}"#)];
        check(&chunks, &[("f", r#"{"x":1}"#)]);
    }

    #[test]
    fn arguments_may_be_an_object_or_missing() {
        check(
            &[json!({ "index": 0, "function": { "name": "f", "arguments": { "x": 1 } } })],
            &[("f", r#"{"x":1}"#)],
        );
        check(&[json!({ "index": 0, "function": { "name": "f" } })], &[("f", "{}")]);
        check(&[json!({ "function": { "name": "f", "arguments": null } })], &[("f", "{}")]);
    }

    #[test]
    fn fields_of_the_wrong_type_count_as_absent() {
        let (outcome, _) = accumulate([json!({
            "id": 7,
            "created": 1.5,
            "service_tier": "standard",
            "usage": "none",
            "choices": [{
                "index": null,
                "finish_reason": "stop",
                "message": { "content": [{ "type": "text", "text": "hi" }], "tool_calls": null, "refusal": null },
            }],
        })]);
        let (step, flaw) = outcome.unwrap();
        assert_eq!((step.text.as_str(), step.response_id, step.usage, flaw), ("hi", None, None, None));
    }

    #[test]
    fn stop_reason_is_derived_from_finish_reason_and_calls() {
        for (reason, with_calls, without_calls) in [
            ("stop", StopReason::Done, StopReason::Done),
            ("eos", StopReason::Done, StopReason::Done),
            ("tool_calls", StopReason::Done, StopReason::Done),
            ("error", StopReason::Done, StopReason::Other("error".to_owned())),
            ("length", StopReason::Length, StopReason::Length),
            ("content_filter", StopReason::Filtered, StopReason::Filtered),
        ] {
            let call = json!({ "choices": [{ "delta": { "tool_calls": [call_chunk(Some(0), None, Some("f"), "")] } }] });
            assert_eq!(accumulate([call, finish(reason)]).0.unwrap().0.stop, with_calls, "{reason}");
            assert_eq!(accumulate([text("hi"), finish(reason)]).0.unwrap().0.stop, without_calls, "{reason}");
        }
    }

    #[test]
    fn refusal_becomes_the_text() {
        let refusal = json!({ "choices": [{ "message": { "content": null, "refusal": "No." }, "finish_reason": "stop" }] });
        let (outcome, deltas) = accumulate([refusal]);
        let (step, flaw) = outcome.unwrap();
        assert_eq!((step.text.as_str(), step.stop, flaw), ("No.", StopReason::Refused, None));
        assert_eq!(deltas, [ResponseDelta::Text("No.".to_owned())]);
    }

    #[test]
    fn thinking_in_the_text_is_separated() {
        let (outcome, deltas) =
            accumulate([text("<thi"), text("nk>hm</think>"), text("\nHi."), finish("stop")]);
        let (step, flaw) = outcome.unwrap();
        assert_eq!((step.thinking.as_str(), step.text.as_str(), flaw), ("hm", "Hi.", None));
        assert_eq!(deltas, [ResponseDelta::Thinking("hm".to_owned()), ResponseDelta::Text("Hi.".to_owned())]);
        let step = accumulate([text("<think>I will text them"), finish("length")]).0.unwrap().0;
        assert_eq!((step.thinking.as_str(), step.text.as_str()), ("I will text them", ""));
        let step = accumulate([text("hm</think>"), text("Hi."), finish("stop")]).0.unwrap().0;
        assert_eq!((step.thinking.as_str(), step.text.as_str()), ("hm", "Hi."));
    }

    #[test]
    fn thinking_parts_are_not_text() {
        let content = json!([
            { "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] },
            { "type": "reasoning", "text": "so" },
            { "type": "text", "text": "Hi." },
        ]);
        let (outcome, _) =
            accumulate([json!({ "choices": [{ "message": { "content": content } }] }), finish("stop")]);
        let step = outcome.unwrap().0;
        assert_eq!((step.thinking.as_str(), step.text.as_str()), ("hmso", "Hi."));
    }

    #[test]
    fn refusal_after_an_open_block_becomes_the_text() {
        let refusal = json!({ "choices": [{ "delta": { "refusal": "No." } }] });
        let step = accumulate([text("<think>hm"), refusal, finish("stop")]).0.unwrap().0;
        assert_eq!(
            (step.thinking.as_str(), step.text.as_str(), step.stop),
            ("hm", "No.", StopReason::Refused)
        );
    }

    #[test]
    fn flaw_of_a_response_is_reported() {
        let half_call = || json!({ "choices": [{ "delta": { "tool_calls": [call_chunk(Some(0), None, Some("f"), "{\"x")] } }] });
        for (responses, flaw) in [
            (vec![], Some(ResponseFlaw::Empty)),
            (vec![json!({ "choices": [] })], Some(ResponseFlaw::Empty)),
            (vec![text("hi")], Some(ResponseFlaw::CutOff)),
            (vec![text("hi"), finish("")], Some(ResponseFlaw::CutOff)),
            (vec![half_call(), finish("tool_calls")], Some(ResponseFlaw::Arguments)),
            (vec![half_call(), finish("length")], None),
            (vec![finish("stop")], None),
        ] {
            assert_eq!(accumulate(responses.clone()).0.unwrap().1, flaw, "{responses:?}");
        }
    }

    #[test]
    fn error_chunk_ends_the_response() {
        for (error, expected) in [
            (json!({ "code": 502, "message": "gone" }), ModelError::Unavailable("gone".to_owned())),
            (json!("gone"), ModelError::Unavailable("gone".to_owned())),
            (json!({ "message": "the context overflows: context size 4096" }), ModelError::ContextTooLong),
        ] {
            assert_eq!(accumulate([text("hi"), json!({ "error": error })]).0, Err(expected));
        }
    }

    #[test]
    fn oversized_response_is_rejected() {
        let half = "x".repeat(MAX_RESPONSE_BYTES / 2);
        let (outcome, deltas) = accumulate([text(&half), text(&half), text("x"), text("never read")]);
        assert_eq!(outcome, Err(ModelError::Malformed("the response is larger than 1 MiB".to_owned())));
        assert_eq!(deltas.len(), 3);
    }

    /// Returns the chunks of a response whose thinking, text and arguments are split after `chunk_length` characters.
    fn chunks(texts: &[String; 2], calls: &[(String, String)], chunk_length: usize) -> Vec<Value> {
        let split = |text: &str| -> Vec<String> {
            let characters: Vec<char> = text.chars().collect();
            characters.chunks(chunk_length).map(|part| part.iter().collect()).collect()
        };
        let mut chunks = Vec::new();
        for (field, text) in ["reasoning_content", "content"].into_iter().zip(texts) {
            chunks.extend(split(text).into_iter().map(|part| json!({ (field): part })));
        }
        for (index, (name, arguments)) in (0..).zip(calls) {
            let id = format!("call-{index}");
            let first = call_chunk(Some(index), Some(&id), Some(name), "");
            let rest = split(arguments).into_iter().map(|part| call_chunk(Some(index), None, None, &part));
            chunks.extend(std::iter::once(first).chain(rest).map(|call| json!({ "tool_calls": [call] })));
        }
        let chunks = chunks.into_iter().map(|delta| json!({ "choices": [{ "delta": delta }] }));
        chunks.chain([finish("stop")]).collect()
    }

    /// Returns the same response without streaming.
    fn whole_response(texts: &[String; 2], calls: &[(String, String)]) -> Value {
        let call = |(index, (name, arguments)): (u32, &(String, String))| {
            call_chunk(Some(index), Some(&format!("call-{index}")), Some(name), arguments)
        };
        let calls: Vec<Value> = (0..).zip(calls).map(call).collect();
        let message = json!({ "reasoning_content": texts[0], "content": texts[1], "tool_calls": calls });
        json!({ "choices": [{ "message": message, "finish_reason": "stop" }] })
    }

    /// Returns the same chunk from a server that sends "message" instead of "delta" in a stream.
    fn with_message_field(mut chunk: Value) -> Value {
        let choice = chunk["choices"][0].as_object_mut().unwrap();
        let delta = choice.remove("delta").unwrap();
        choice.insert("message".to_owned(), delta);
        chunk
    }

    /// Returns the thinking, the text and the calls that the sink received.
    fn collect_deltas(deltas: Vec<ResponseDelta>) -> (String, String, Vec<RawCall>) {
        let (mut thinking, mut text) = (String::new(), String::new());
        let mut calls: Vec<(String, String)> = Vec::new();
        for delta in deltas {
            match delta {
                ResponseDelta::Thinking(part) => thinking.push_str(&part),
                ResponseDelta::Text(part) => text.push_str(&part),
                ResponseDelta::ToolCall { ord, name, arguments } => {
                    let ord = ord as usize;
                    if ord == calls.len() {
                        calls.push((String::new(), String::new()));
                    }
                    calls[ord].0.push_str(&name.unwrap_or_default());
                    calls[ord].1.push_str(&arguments);
                }
            }
        }
        (thinking, text, calls.into_iter().map(raw_call).collect())
    }

    fn raw_call((name, arguments): (String, String)) -> RawCall {
        RawCall { name, arguments: ToolArguments::parse(json!(arguments)) }
    }

    /// Generates chunks with indexes, ids and names in unexpected positions.
    fn any_chunk() -> impl Strategy<Value = Value> {
        let name = select(vec![None, Some(""), Some("a"), Some("b")]);
        let arguments = select(vec!["", "{", "}", "{}", "{\"q\":", "\"up\"}", " "]);
        let call = (proptest::option::of(0..3_u32), name.clone(), name, arguments);
        let call = call.prop_map(|(index, id, name, arguments)| call_chunk(index, id, name, arguments));
        let text_field = select(vec!["reasoning", "reasoning_content", "content", "refusal"]);
        let delta = prop_oneof![
            4 => proptest::collection::vec(call, 1..3).prop_map(|calls| json!({ "tool_calls": calls })),
            2 => (text_field, any::<String>()).prop_map(|(field, text)| json!({ (field): text })),
        ];
        let reason = select(vec!["stop", "length", "tool_calls", ""]);
        prop_oneof![
            8 => delta.prop_map(|delta| json!({ "choices": [{ "delta": delta }] })),
            1 => reason.prop_map(finish),
        ]
    }

    proptest! {
        #[test]
        fn response_is_independent_of_chunk_boundaries(
            texts: [String; 2],
            calls in proptest::collection::vec(("[a-z]{1,9}", any::<String>()), 0..4),
            chunk_length in 1..9_usize,
        ) {
            let (whole, _) = accumulate(chunks(&texts, &calls, usize::MAX));
            let (split, deltas) = accumulate(chunks(&texts, &calls, chunk_length));
            assert_eq!(split, whole);
            assert_eq!(accumulate([whole_response(&texts, &calls)]).0, whole);
            let step = split.unwrap().0;
            assert_eq!(step.calls, calls.into_iter().map(raw_call).collect::<Vec<_>>());
            assert_eq!(collect_deltas(deltas), (step.thinking, step.text, step.calls));
        }

        #[test]
        fn streamed_and_whole_responses_are_equal(
            chunks in proptest::collection::vec(any_chunk(), 0..9),
        ) {
            let (outcome, deltas) = accumulate(chunks.clone());
            assert_eq!(accumulate(chunks.into_iter().map(with_message_field)).0, outcome);
            let step = outcome.unwrap().0;
            assert_eq!(collect_deltas(deltas), (step.thinking, step.text, step.calls));
        }
    }
}
