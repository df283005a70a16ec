//! Assembly of a model response from its pieces. The rules tolerate servers that number their calls wrongly, omit ids
//! or end without a final chunk.

use serde_json::Value;

use super::chat_completions::{
    CallPiece, ChatResponse, ContentPart, MessagePiece, ResponseChoice, TokenCount,
};
use super::server_refusal;
use super::thinking_splitter::{self, ThinkingSplitter};
use super::{DeltaSink, ModelError, ModelResponse, RawCall, ResponseDelta};
use crate::conversation::model_cost::TokenUsage;
use crate::conversation::transcript::{StopReason, ToolArguments};

/// Maximum size of a stored response, with all parts together.
const MAX_ANSWER_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct ResponseAccumulator {
    text: String,
    thinking: String,
    /// Splitter that removes thinking from the text if the server left it there.
    splitter: ThinkingSplitter,
    calls: Vec<OpenCall>,
    refused: bool,
    answered: bool,
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

/// Flaw that makes a received response untrustworthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFlaw {
    /// The response has no usable content.
    Empty,
    /// The response ended without a finish reason.
    CutOff,
    /// The response has a call whose arguments are not an object.
    Arguments,
}

impl ResponseAccumulator {
    /// Adds a chunk or a whole response and passes its content on to the sink.
    pub fn push(&mut self, answer: &ChatResponse, sink: DeltaSink<'_>) -> Result<(), ModelError> {
        if let Some(error) = server_refusal::error_in_response(&answer.error) {
            return Err(error);
        }
        if let Some(id) = answer.id.as_ref().filter(|id| !id.is_empty()) {
            self.response_id.get_or_insert_with(|| id.clone());
        }
        if let Some(tokens) = answer.usage.as_ref().and_then(TokenCount::tokens) {
            self.usage = Some(tokens);
        }
        // The request asks for only one choice. More choices would mix two answers.
        if let Some(choice) = answer.choices.iter().find(|choice| choice.index == 0) {
            self.add_choice(choice, sink);
        }
        if self.size > MAX_ANSWER_BYTES {
            return Err(ModelError::Garbled("the answer is larger than 1 MiB".to_owned()));
        }
        Ok(())
    }

    pub fn flaw(&self) -> Option<ResponseFlaw> {
        if !self.answered {
            return Some(ResponseFlaw::Empty);
        }
        match self.stop_reason() {
            // A cut at the length limit leaves calls incomplete, and a second request would end the same way.
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

    /// Returns the whole response. Text that was held back as a possible tag is sent to the sink first.
    pub fn into_response(mut self, sink: DeltaSink<'_>) -> ModelResponse {
        self.finish_text(sink);
        let (thinking, text) = match thinking_splitter::split_unopened(&self.text) {
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
        for piece in choice.delta.iter().chain(&choice.message) {
            self.answered = true;
            self.add_piece(piece, sink);
        }
        if let Some(reason) = choice.finish_reason.as_ref().filter(|reason| !reason.is_empty()) {
            self.answered = true;
            self.finish_reason = Some(reason.clone());
        }
    }

    fn add_piece(&mut self, piece: &MessagePiece, sink: DeltaSink<'_>) {
        // Some servers send the same thought under both names.
        let thinking =
            [&piece.reasoning_content, &piece.reasoning].into_iter().flatten().find(|text| !text.is_empty());
        if let Some(thinking) = thinking {
            self.size += thinking.len();
            self.emit_delta(ResponseDelta::Thinking(thinking.clone()), sink);
        }
        for (part, text) in piece.content() {
            self.size += text.len();
            match part {
                ContentPart::Thinking => self.emit_delta(ResponseDelta::Thinking(text), sink),
                ContentPart::Text => {
                    let split = self.splitter.push(&text);
                    split.into_iter().for_each(|delta| self.emit_delta(delta, sink));
                }
            }
        }
        if let Some(refusal) = piece.refusal.as_ref().filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            self.size += refusal.len();
            self.finish_text(sink);
            self.emit_delta(ResponseDelta::Text(refusal.clone()), sink);
        }
        for call in &piece.tool_calls {
            self.add_call(call, sink);
        }
    }

    /// Ends the text at its current length. The text that was held back is not a tag.
    fn finish_text(&mut self, sink: DeltaSink<'_>) {
        if let Some(rest) = self.splitter.finish() {
            self.emit_delta(rest, sink);
        }
    }

    fn emit_delta(&mut self, delta: ResponseDelta, sink: DeltaSink<'_>) {
        match &delta {
            ResponseDelta::Thinking(text) => self.thinking.push_str(text),
            ResponseDelta::Text(text) => self.text.push_str(text),
            // `add_call` assembles calls from their pieces.
            ResponseDelta::ToolCall { .. } => {}
        }
        sink(delta);
    }

    fn add_call(&mut self, piece: &CallPiece, sink: DeltaSink<'_>) {
        let id = piece.id.as_deref().unwrap_or_default();
        let name = piece.function.name.as_deref().unwrap_or_default();
        let arguments = match &piece.function.arguments {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.size += id.len() + name.len() + arguments.len();
        let ord = self.find_continued_call(piece.index, id, name).unwrap_or_else(|| {
            self.size += size_of::<OpenCall>();
            self.calls.push(OpenCall {
                index: piece.index,
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

    /// Returns the index of the call that a piece continues, or `None` if the piece starts another call.
    fn find_continued_call(&self, index: Option<u32>, id: &str, name: &str) -> Option<usize> {
        if !id.is_empty() {
            let same = |call: &OpenCall| call.id == id && (index.is_none() || call.index == index);
            if let Some(ord) = self.calls.iter().rposition(same) {
                return Some(ord);
            }
        }
        let ord = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let last = &self.calls[ord];
        let another_id = !id.is_empty() && (!last.id.is_empty() || index.is_none());
        // Without an id, a name after complete arguments can only belong to a new call.
        let another_name = id.is_empty()
            && !name.is_empty()
            && !last.name.is_empty()
            && (index.is_none() || last.is_complete());
        (!another_id && !another_name).then_some(ord)
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

    type Read = (Result<(ModelResponse, Option<ResponseFlaw>), ModelError>, Vec<ResponseDelta>);

    fn read(answers: impl IntoIterator<Item = Value>) -> Read {
        let mut accumulator = ResponseAccumulator::default();
        let mut deltas = Vec::new();
        for answer in answers {
            let answer = serde_json::from_value(answer).unwrap();
            if let Err(error) = accumulator.push(&answer, &mut |delta| deltas.push(delta)) {
                return (Err(error), deltas);
            }
        }
        let flaw = accumulator.flaw();
        let step = accumulator.into_response(&mut |delta| deltas.push(delta));
        (Ok((step, flaw)), deltas)
    }

    /// Checks the calls that are assembled from streamed pieces, each as a name and arguments.
    #[track_caller]
    fn check(pieces: &[Value], expected: &[(&str, &str)]) {
        let chunks =
            pieces.iter().map(|piece| json!({ "choices": [{ "delta": { "tool_calls": [piece] } }] }));
        let (step, flaw) = read(chunks.chain([finish("tool_calls")])).0.unwrap();
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

    fn piece(index: Option<u32>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
        json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } })
    }

    #[test]
    fn chunks_are_forwarded_in_order_and_accumulated() {
        let (outcome, deltas) = read([
            json!({ "id": "r1", "choices": [{ "delta": { "role": "assistant", "reasoning": "hm" } }] }),
            text("On "),
            text("it."),
            json!({ "choices": [{ "delta": { "tool_calls": [piece(Some(0), Some("a"), Some("find"), "{\"q\":")] } }] }),
            json!({ "choices": [{ "delta": { "tool_calls": [piece(Some(0), None, None, "\"up\"}")] } }] }),
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
            let (outcome, _) = read([text("Hi."), finish("stop"), json!({ "choices": [], "usage": usage })]);
            assert_eq!(outcome.unwrap().0.usage, expected, "{usage}");
        }
    }

    #[test]
    fn calls_are_separated_by_index_and_id() {
        let (a, b) = (Some("a"), Some("b"));
        let both = [("f", r#"{"x":1}"#), ("g", r#"{"y":2}"#)];
        check(
            &[
                piece(Some(0), a, Some("f"), r#"{"x""#),
                piece(Some(1), b, Some("g"), r#"{"y":"#),
                piece(Some(0), None, None, ":1}"),
                piece(Some(1), None, None, "2}"),
            ],
            &both,
        );
        check(
            &[
                piece(Some(0), a, Some("f"), r#"{"x":1}"#),
                piece(Some(0), b, Some("g"), r#"{"y""#),
                piece(Some(0), None, None, ":2}"),
            ],
            &both,
        );
        check(&[piece(None, a, Some("f"), r#"{"x":1}"#), piece(None, b, Some("g"), r#"{"y":2}"#)], &both);
        check(
            &[piece(None, None, Some("f"), r#"{"x":1}"#), piece(None, None, Some("g"), r#"{"y":2}"#)],
            &both,
        );
        check(
            &[piece(Some(0), None, Some("f"), r#"{"x":1}"#), piece(Some(0), None, Some("g"), r#"{"y":2}"#)],
            &both,
        );
        check(
            &[
                piece(None, a, Some("f"), r#"{"x""#),
                piece(None, None, None, ":1}"),
                piece(None, b, Some("g"), r#"{"y":2}"#),
            ],
            &both,
        );
    }

    #[test]
    fn repeated_name_or_id_starts_no_other_call() {
        let a = Some("a");
        let pieces = [piece(Some(0), a, Some("f"), r#"{"x""#), piece(Some(0), a, Some("f"), ":1}")];
        check(&pieces, &[("f", r#"{"x":1}"#)]);
        let pieces = [piece(Some(0), Some(""), Some("f"), ""), piece(Some(0), a, None, r#"{"x":1}"#)];
        check(&pieces, &[("f", r#"{"x":1}"#)]);
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
        let (outcome, _) = read([json!({
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
    fn stop_reason_depends_on_calls() {
        for (reason, with_calls, without_calls) in [
            ("stop", StopReason::Done, StopReason::Done),
            ("eos", StopReason::Done, StopReason::Done),
            ("tool_calls", StopReason::Done, StopReason::Done),
            ("error", StopReason::Done, StopReason::Other("error".to_owned())),
            ("length", StopReason::Length, StopReason::Length),
            ("content_filter", StopReason::Filtered, StopReason::Filtered),
        ] {
            let call =
                json!({ "choices": [{ "delta": { "tool_calls": [piece(Some(0), None, Some("f"), "")] } }] });
            assert_eq!(read([call, finish(reason)]).0.unwrap().0.stop, with_calls, "{reason}");
            assert_eq!(read([text("hi"), finish(reason)]).0.unwrap().0.stop, without_calls, "{reason}");
        }
    }

    #[test]
    fn refusal_becomes_the_text() {
        let refusal = json!({ "choices": [{ "message": { "content": null, "refusal": "No." }, "finish_reason": "stop" }] });
        let (outcome, deltas) = read([refusal]);
        let (step, flaw) = outcome.unwrap();
        assert_eq!((step.text.as_str(), step.stop, flaw), ("No.", StopReason::Refused, None));
        assert_eq!(deltas, [ResponseDelta::Text("No.".to_owned())]);
    }

    #[test]
    fn thinking_within_the_text_is_separated() {
        let (outcome, deltas) = read([text("<thi"), text("nk>hm</think>"), text("\nHi."), finish("stop")]);
        let (step, flaw) = outcome.unwrap();
        assert_eq!((step.thinking.as_str(), step.text.as_str(), flaw), ("hm", "Hi.", None));
        assert_eq!(deltas, [ResponseDelta::Thinking("hm".to_owned()), ResponseDelta::Text("Hi.".to_owned())]);
        let step = read([text("<think>I will text them"), finish("length")]).0.unwrap().0;
        assert_eq!((step.thinking.as_str(), step.text.as_str()), ("I will text them", ""));
        let step = read([text("hm</think>"), text("Hi."), finish("stop")]).0.unwrap().0;
        assert_eq!((step.thinking.as_str(), step.text.as_str()), ("hm", "Hi."));
    }

    #[test]
    fn typed_thinking_parts_are_no_text() {
        let content = json!([
            { "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] },
            { "type": "reasoning", "text": "so" },
            { "type": "text", "text": "Hi." },
        ]);
        let (outcome, _) =
            read([json!({ "choices": [{ "message": { "content": content } }] }), finish("stop")]);
        let step = outcome.unwrap().0;
        assert_eq!((step.thinking.as_str(), step.text.as_str()), ("hmso", "Hi."));
    }

    #[test]
    fn refusal_after_an_open_block_becomes_the_text() {
        let refusal = json!({ "choices": [{ "delta": { "refusal": "No." } }] });
        let step = read([text("<think>hm"), refusal, finish("stop")]).0.unwrap().0;
        assert_eq!(
            (step.thinking.as_str(), step.text.as_str(), step.stop),
            ("hm", "No.", StopReason::Refused)
        );
    }

    #[test]
    fn untrusted_response_names_its_flaw() {
        let halves = || json!({ "choices": [{ "delta": { "tool_calls": [piece(Some(0), None, Some("f"), "{\"x")] } }] });
        for (answers, flaw) in [
            (vec![], Some(ResponseFlaw::Empty)),
            (vec![json!({ "choices": [] })], Some(ResponseFlaw::Empty)),
            (vec![text("hi")], Some(ResponseFlaw::CutOff)),
            (vec![text("hi"), finish("")], Some(ResponseFlaw::CutOff)),
            (vec![halves(), finish("tool_calls")], Some(ResponseFlaw::Arguments)),
            (vec![halves(), finish("length")], None),
            (vec![finish("stop")], None),
        ] {
            assert_eq!(read(answers.clone()).0.unwrap().1, flaw, "{answers:?}");
        }
    }

    #[test]
    fn error_chunk_ends_the_response() {
        for (error, expected) in [
            (json!({ "code": 502, "message": "gone" }), ModelError::Unavailable("gone".to_owned())),
            (json!("gone"), ModelError::Unavailable("gone".to_owned())),
            (json!({ "message": "the context overflows: context size 4096" }), ModelError::ContextTooLong),
        ] {
            assert_eq!(read([text("hi"), json!({ "error": error })]).0, Err(expected));
        }
    }

    #[test]
    fn oversized_response_is_stopped() {
        let much = "x".repeat(MAX_ANSWER_BYTES / 2);
        let (outcome, deltas) = read([text(&much), text(&much), text("x"), text("never read")]);
        assert_eq!(outcome, Err(ModelError::Garbled("the answer is larger than 1 MiB".to_owned())));
        assert_eq!(deltas.len(), 3);
    }

    /// Returns the chunks of the answer, with its text, thoughts and arguments in pieces of `letters` letters.
    fn chunks(words: &[String; 2], calls: &[(String, String)], letters: usize) -> Vec<Value> {
        let pieces = |text: &str| -> Vec<String> {
            let letters_of: Vec<char> = text.chars().collect();
            letters_of.chunks(letters).map(|piece| piece.iter().collect()).collect()
        };
        let mut chunks = Vec::new();
        for (field, words) in ["reasoning_content", "content"].into_iter().zip(words) {
            chunks.extend(pieces(words).into_iter().map(|piece| json!({ (field): piece })));
        }
        for (index, (name, arguments)) in (0..).zip(calls) {
            let id = format!("call-{index}");
            let first = piece(Some(index), Some(&id), Some(name), "");
            let rest = pieces(arguments).into_iter().map(|cut| piece(Some(index), None, None, &cut));
            chunks.extend(std::iter::once(first).chain(rest).map(|call| json!({ "tool_calls": [call] })));
        }
        let chunks = chunks.into_iter().map(|delta| json!({ "choices": [{ "delta": delta }] }));
        chunks.chain([finish("stop")]).collect()
    }

    /// Returns the answer of a server that does not stream.
    fn at_once(words: &[String; 2], calls: &[(String, String)]) -> Value {
        let call = |(index, (name, arguments)): (u32, &(String, String))| {
            piece(Some(index), Some(&format!("call-{index}")), Some(name), arguments)
        };
        let calls: Vec<Value> = (0..).zip(calls).map(call).collect();
        let message = json!({ "reasoning_content": words[0], "content": words[1], "tool_calls": calls });
        json!({ "choices": [{ "message": message, "finish_reason": "stop" }] })
    }

    /// Returns the same chunk from a server that uses one field name for pieces and whole messages.
    fn as_message(mut chunk: Value) -> Value {
        let choice = chunk["choices"][0].as_object_mut().unwrap();
        let delta = choice.remove("delta").unwrap();
        choice.insert("message".to_owned(), delta);
        chunk
    }

    /// Returns the thoughts, the text and the calls that the sink received.
    fn collect_deltas(deltas: Vec<ResponseDelta>) -> (String, String, Vec<RawCall>) {
        let (mut thinking, mut text) = (String::new(), String::new());
        let mut calls: Vec<(String, String)> = Vec::new();
        for delta in deltas {
            match delta {
                ResponseDelta::Thinking(piece) => thinking.push_str(&piece),
                ResponseDelta::Text(piece) => text.push_str(&piece),
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

    /// Generates server chunks with numbers, ids and names in unexpected positions.
    fn any_chunk() -> impl Strategy<Value = Value> {
        let word = select(vec![None, Some(""), Some("a"), Some("b")]);
        let arguments = select(vec!["", "{", "}", "{}", "{\"q\":", "\"up\"}", " "]);
        let call = (proptest::option::of(0..3_u32), word.clone(), word, arguments);
        let call = call.prop_map(|(index, id, name, arguments)| piece(index, id, name, arguments));
        let words = select(vec!["reasoning", "reasoning_content", "content", "refusal"]);
        let delta = prop_oneof![
            4 => proptest::collection::vec(call, 1..3).prop_map(|calls| json!({ "tool_calls": calls })),
            2 => (words, any::<String>()).prop_map(|(name, words)| json!({ (name): words })),
        ];
        let reason = select(vec!["stop", "length", "tool_calls", ""]);
        prop_oneof![
            8 => delta.prop_map(|delta| json!({ "choices": [{ "delta": delta }] })),
            1 => reason.prop_map(finish),
        ]
    }

    proptest! {
        #[test]
        fn response_split_anywhere_accumulates_to_the_same(
            words: [String; 2],
            calls in proptest::collection::vec(("[a-z]{1,9}", any::<String>()), 0..4),
            letters in 1..9_usize,
        ) {
            let (whole, _) = read(chunks(&words, &calls, usize::MAX));
            let (cut, deltas) = read(chunks(&words, &calls, letters));
            assert_eq!(cut, whole);
            assert_eq!(read([at_once(&words, &calls)]).0, whole);
            let step = cut.unwrap().0;
            assert_eq!(step.calls, calls.into_iter().map(raw_call).collect::<Vec<_>>());
            assert_eq!(collect_deltas(deltas), (step.thinking, step.text, step.calls));
        }

        #[test]
        fn streamed_and_whole_responses_are_equal(
            chunks in proptest::collection::vec(any_chunk(), 0..9),
        ) {
            let (outcome, deltas) = read(chunks.clone());
            assert_eq!(read(chunks.into_iter().map(as_message)).0, outcome);
            let step = outcome.unwrap().0;
            assert_eq!(collect_deltas(deltas), (step.thinking, step.text, step.calls));
        }
    }
}
