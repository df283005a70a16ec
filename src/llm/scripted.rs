//! Model that returns scripted responses, for tests. The model validates every request like the strictest server, and
//! panics at the first invalid request.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{DeltaSink, Model, ModelError, ModelResponse, RawCall, ResponseDelta};
use crate::conversation::model_request::{EncodedMessage, ModelMessage, ModelRequest};
use crate::conversation::transcript::{CallId, StopReason, ToolArguments};

/// Maximum total size of the texts of a valid request.
const MAX_REQUEST_BYTES: usize = 64 << 10;

/// One response of the script.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptedReply {
    Text(String),
    /// Names and arguments of the calls of one response.
    Calls(Vec<(String, ToolArguments)>),
    /// Failed call. A failure at the end of a script repeats forever.
    Error(ModelError),
    /// Any response, for stop reasons that the other variants cannot express: length limit, refused, filtered.
    Response(ModelResponse),
}

#[derive(Debug, Default)]
pub struct ScriptedModel {
    state: Mutex<ScriptState>,
}

#[derive(Debug, Default)]
struct ScriptState {
    script: VecDeque<ScriptedReply>,
    requests: Vec<ModelRequest>,
}

impl ScriptedModel {
    pub fn new(script: Vec<ScriptedReply>) -> Self {
        Self { state: Mutex::new(ScriptState { script: script.into(), requests: Vec::new() }) }
    }

    /// Replaces the rest of the script.
    pub fn replace_script(&self, script: Vec<ScriptedReply>) {
        self.lock_state().script = script.into();
    }

    /// Returns all requests so far, the oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.lock_state().requests.clone()
    }

    /// Returns the number of requests.
    pub fn request_count(&self) -> usize {
        self.lock_state().requests.len()
    }

    /// Returns the number of unused replies. A repeated failure at the end counts as unused.
    pub fn remaining_replies(&self) -> usize {
        self.lock_state().script.len()
    }

    fn lock_state(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    async fn next_response(
        &self,
        request: &ModelRequest,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError> {
        if let Err(problem) = check_request(request) {
            panic!("invalid model request: {problem}");
        }
        let reply = {
            let mut state = self.lock_state();
            state.requests.push(request.clone());
            match state.script.front() {
                Some(ScriptedReply::Error(error)) if state.script.len() == 1 => {
                    Some(ScriptedReply::Error(error.clone()))
                }
                _ => state.script.pop_front(),
            }
        };
        let response = match reply {
            None => plain_response(String::new(), Vec::new()),
            Some(ScriptedReply::Text(text)) => plain_response(text, Vec::new()),
            Some(ScriptedReply::Calls(calls)) => {
                let calls = calls.into_iter().map(|(name, arguments)| RawCall { name, arguments });
                plain_response(String::new(), calls.collect())
            }
            Some(ScriptedReply::Error(error)) => return Err(error),
            Some(ScriptedReply::Response(response)) => response,
        };
        stream_response(&response, sink);
        Ok(response)
    }
}

fn plain_response(text: String, calls: Vec<RawCall>) -> ModelResponse {
    ModelResponse {
        text,
        thinking: String::new(),
        calls,
        stop: StopReason::Done,
        usage: None,
        response_id: None,
    }
}

fn stream_response(response: &ModelResponse, sink: DeltaSink<'_>) {
    if !response.thinking.is_empty() {
        sink(ResponseDelta::Thinking(response.thinking.clone()));
    }
    if !response.text.is_empty() {
        sink(ResponseDelta::Text(response.text.clone()));
    }
    for (ord, call) in (0..).zip(&response.calls) {
        let arguments = match &call.arguments {
            ToolArguments::Object(map) => serde_json::Value::Object(map.clone()).to_string(),
            ToolArguments::Malformed(text) => text.clone(),
        };
        sink(ResponseDelta::ToolCall { ord, name: Some(call.name.clone()), arguments });
    }
}

/// Checks that the strictest server would accept the request. Past arguments need no check, because their type only
/// allows objects.
pub fn check_request(request: &ModelRequest) -> Result<(), String> {
    match request.messages.last().map(|message| &**message) {
        None => return Err("there is no message".to_owned()),
        Some(ModelMessage::Assistant { .. }) => {
            return Err("the last message is from the assistant".to_owned());
        }
        Some(ModelMessage::User(_) | ModelMessage::ToolResult { .. }) => {}
    }
    let mut names = HashSet::new();
    if let Some(duplicate) = request.tools.iter().find(|tool| !names.insert(tool.name)) {
        return Err(format!("the tool {} is listed twice", duplicate.name));
    }
    let size = request.byte_size();
    if size > MAX_REQUEST_BYTES {
        return Err(format!("{size} bytes exceed the limit of {MAX_REQUEST_BYTES}"));
    }
    check_call_results(&request.messages)
}

fn check_call_results(messages: &[EncodedMessage]) -> Result<(), String> {
    let mut seen: HashSet<&CallId> = HashSet::new();
    let mut open: Vec<&CallId> = Vec::new();
    for message in messages {
        match &**message {
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => check_no_open_call(&open)?,
            ModelMessage::ToolResult { call, .. } => {
                match open.iter().position(|open_call| *open_call == call) {
                    Some(position) => {
                        open.remove(position);
                    }
                    None if seen.contains(call) => {
                        return Err(format!("call {} has a second or late result", call.as_str()));
                    }
                    None => return Err(format!("there is no call for the result {}", call.as_str())),
                }
            }
        }
        if let ModelMessage::Assistant { calls, .. } = &**message {
            for call in calls {
                let id = call.id.as_str();
                if id.len() != 9 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                    return Err(format!("call id {id:?} does not consist of nine letters and digits"));
                }
                if !seen.insert(&call.id) {
                    return Err(format!("two calls have the id {id}"));
                }
                open.push(&call.id);
            }
        }
    }
    check_no_open_call(&open)
}

fn check_no_open_call(open: &[&CallId]) -> Result<(), String> {
    open.first().map_or(Ok(()), |call| Err(format!("call {} has no result", call.as_str())))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::conversation::model_request::{PromptCall, ToolChoice};
    use crate::conversation::offered_tools::OfferedTools;
    use crate::conversation::transcript::{EffectLevel, ToolAudience, ToolSpec};

    fn request(messages: Vec<ModelMessage>) -> ModelRequest {
        ModelRequest {
            system: String::new(),
            tools: OfferedTools::default(),
            tool_choice: ToolChoice::Auto,
            messages: messages.into_iter().map(EncodedMessage::from).collect(),
            max_output_tokens: 100,
            reply_schema: None,
        }
    }

    fn user(text: &str) -> ModelMessage {
        ModelMessage::User(text.to_owned())
    }

    fn assistant(calls: &[&str]) -> ModelMessage {
        let call = |id: &&str| PromptCall {
            id: CallId::from_stored(*id),
            name: "f".to_owned(),
            arguments: Map::new(),
        };
        ModelMessage::Assistant { text: String::new(), calls: calls.iter().map(call).collect() }
    }

    fn result(id: &str) -> ModelMessage {
        ModelMessage::ToolResult { call: CallId::from_stored(id), content: "{}".to_owned(), summary: None }
    }

    #[track_caller]
    fn check(messages: Vec<ModelMessage>, expected: Result<(), &str>) {
        assert_eq!(check_request(&request(messages)), expected.map_err(str::to_owned));
    }

    async fn ask(model: &ScriptedModel) -> (Result<ModelResponse, ModelError>, Vec<ResponseDelta>) {
        let mut deltas = Vec::new();
        let outcome = model.next_response(&request(vec![user("hi")]), &mut |delta| deltas.push(delta)).await;
        (outcome, deltas)
    }

    #[tokio::test]
    async fn replies_follow_the_script_and_are_then_empty() {
        let truncated =
            ModelResponse { stop: StopReason::Length, ..plain_response("Well,".to_owned(), Vec::new()) };
        let arguments = ToolArguments::parse(json!({ "q": "up" }));
        let model = ScriptedModel::new(vec![
            ScriptedReply::Error(ModelError::Timeout),
            ScriptedReply::Calls(vec![("find".to_owned(), arguments.clone())]),
            ScriptedReply::Text("Done.".to_owned()),
            ScriptedReply::Response(truncated.clone()),
        ]);
        assert_eq!(ask(&model).await, (Err(ModelError::Timeout), vec![]));
        let call = RawCall { name: "find".to_owned(), arguments };
        let delta = ResponseDelta::ToolCall {
            ord: 0,
            name: Some("find".to_owned()),
            arguments: r#"{"q":"up"}"#.to_owned(),
        };
        assert_eq!(ask(&model).await, (Ok(plain_response(String::new(), vec![call])), vec![delta]));
        let delta = ResponseDelta::Text("Done.".to_owned());
        assert_eq!(ask(&model).await, (Ok(plain_response("Done.".to_owned(), vec![])), vec![delta]));
        assert_eq!(ask(&model).await, (Ok(truncated), vec![ResponseDelta::Text("Well,".to_owned())]));
        assert_eq!(ask(&model).await, (Ok(plain_response(String::new(), vec![])), vec![]));
        assert_eq!((model.request_count(), model.requests()), (5, vec![request(vec![user("hi")]); 5]));
    }

    #[tokio::test]
    async fn last_error_repeats_until_the_next_script() {
        let model = ScriptedModel::new(vec![
            ScriptedReply::Text("Yes.".to_owned()),
            ScriptedReply::Error(ModelError::Timeout),
        ]);
        ask(&model).await.0.unwrap();
        for _ in 0..3 {
            assert_eq!(ask(&model).await.0, Err(ModelError::Timeout));
        }
        model.replace_script(vec![ScriptedReply::Text("Back.".to_owned())]);
        assert_eq!(ask(&model).await.0, Ok(plain_response("Back.".to_owned(), vec![])));
        assert_eq!(model.remaining_replies(), 0);
    }

    #[tokio::test]
    #[should_panic(expected = "invalid model request: there is no message")]
    async fn invalid_request_panics() {
        let outcome = ScriptedModel::default().next_response(&request(vec![]), &mut |_| {}).await;
        unreachable!("{outcome:?}");
    }

    #[test]
    fn every_call_needs_exactly_one_result() {
        let (a, b) = ("aaaaaaaa1", "bbbbbbbb2");
        check(vec![user("hi"), assistant(&[a, b]), result(b), result(a)], Ok(()));
        check(vec![user("hi"), assistant(&[]), user("again")], Ok(()));
        check(vec![user("hi"), assistant(&[a, b]), result(b)], Err("call aaaaaaaa1 has no result"));
        check(vec![assistant(&[a]), user("hi")], Err("call aaaaaaaa1 has no result"));
        check(vec![assistant(&[a]), result(a), result(a)], Err("call aaaaaaaa1 has a second or late result"));
        check(vec![user("hi"), result(a)], Err("there is no call for the result aaaaaaaa1"));
        check(vec![assistant(&[a, a]), result(a), result(a)], Err("two calls have the id aaaaaaaa1"));
    }

    #[test]
    fn request_ends_with_user_or_result_and_has_nine_character_ids() {
        check(vec![user("hi"), assistant(&[])], Err("the last message is from the assistant"));
        check(
            vec![assistant(&["call_12345"]), result("call_12345")],
            Err("call id \"call_12345\" does not consist of nine letters and digits"),
        );
    }

    #[test]
    fn oversized_request_or_duplicate_tool_is_rejected() {
        let long_text = "x".repeat(MAX_REQUEST_BYTES);
        check(vec![user(&long_text)], Ok(()));
        check(vec![user(&long_text), user("x")], Err("65537 bytes exceed the limit of 65536"));
        let tool = ToolSpec {
            name: "f",
            description: "Finds.",
            effect_level: EffectLevel::Read,
            audience: ToolAudience::Everyone,
            parameters: json!({}).into(),
        };
        let duplicate_tools =
            ModelRequest { tools: vec![tool.clone(), tool].into(), ..request(vec![user("hi")]) };
        assert_eq!(check_request(&duplicate_tools), Err("the tool f is listed twice".to_owned()));
    }
}
