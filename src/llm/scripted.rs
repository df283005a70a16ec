//! Model that plays a script, to test the program's behavior for given responses. It checks every request like the
//! strictest of servers, and panics at the first that breaks a rule.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{Delta, DeltaSink, Model, ModelError, RawCall, StepOut};
use crate::conversation::model_request::{Message, ModelRequest};
use crate::conversation::transcript::{Arguments, CallId, Stop};

/// Largest request that is accepted, all texts together.
const MAX_REQUEST_BYTES: usize = 64 << 10;

/// One response of the script.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    Says(String),
    /// Names and arguments of the calls of one response.
    Calls(Vec<(String, Arguments)>),
    /// A failure. As the last line of a script it repeats forever.
    Fails(ModelError),
    /// A whole step, for stops that the other lines cannot express: cut off, refused, filtered.
    Step(StepOut),
}

#[derive(Debug, Default)]
pub struct Scripted {
    stage: Mutex<Stage>,
}

#[derive(Debug, Default)]
struct Stage {
    script: VecDeque<Line>,
    requests: Vec<ModelRequest>,
}

impl Scripted {
    pub fn new(script: Vec<Line>) -> Self {
        Self { stage: Mutex::new(Stage { script: script.into(), requests: Vec::new() }) }
    }

    /// Replaces the rest of the script.
    pub fn play(&self, script: Vec<Line>) {
        self.stage().script = script.into();
    }

    /// Returns all requests so far, the oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.stage().requests.clone()
    }

    /// Returns the number of requests.
    pub fn calls(&self) -> usize {
        self.stage().requests.len()
    }

    /// Returns the number of unused lines; a failure that repeats forever counts as unused.
    pub fn left(&self) -> usize {
        self.stage().script.len()
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    async fn step(&self, request: &ModelRequest, sink: DeltaSink<'_>) -> Result<StepOut, ModelError> {
        if let Err(broken) = check_request(request) {
            panic!("the request to the model breaks a rule: {broken}");
        }
        let line = {
            let mut stage = self.stage();
            stage.requests.push(request.clone());
            match stage.script.front() {
                Some(Line::Fails(error)) if stage.script.len() == 1 => Some(Line::Fails(error.clone())),
                _ => stage.script.pop_front(),
            }
        };
        let step = match line {
            None => plain(String::new(), Vec::new()),
            Some(Line::Says(text)) => plain(text, Vec::new()),
            Some(Line::Calls(calls)) => {
                let calls = calls.into_iter().map(|(name, arguments)| RawCall { name, arguments });
                plain(String::new(), calls.collect())
            }
            Some(Line::Fails(error)) => return Err(error),
            Some(Line::Step(step)) => step,
        };
        tell(&step, sink);
        Ok(step)
    }
}

fn plain(text: String, calls: Vec<RawCall>) -> StepOut {
    StepOut { text, thinking: String::new(), calls, stop: Stop::Done, usage: None, response_id: None }
}

fn tell(step: &StepOut, sink: DeltaSink<'_>) {
    if !step.thinking.is_empty() {
        sink(Delta::Thinking(step.thinking.clone()));
    }
    if !step.text.is_empty() {
        sink(Delta::Text(step.text.clone()));
    }
    for (ord, call) in (0..).zip(&step.calls) {
        let arguments = match &call.arguments {
            Arguments::Object(map) => serde_json::Value::Object(map.clone()).to_string(),
            Arguments::Malformed(text) => text.clone(),
        };
        sink(Delta::ToolCall { ord, name: Some(call.name.clone()), arguments });
    }
}

/// Checks that the strictest of servers would accept the request. Past arguments need no check for being objects: their
/// type has no other form.
pub fn check_request(request: &ModelRequest) -> Result<(), String> {
    match request.messages.last() {
        None => return Err("there is no message".to_owned()),
        Some(Message::Assistant { .. }) => return Err("the last message is the assistant's".to_owned()),
        Some(Message::User(_) | Message::ToolResult { .. }) => {}
    }
    let mut names = HashSet::new();
    if let Some(twice) = request.tools.iter().find(|tool| !names.insert(tool.name)) {
        return Err(format!("the tool {} is listed twice", twice.name));
    }
    let size = request.size();
    if size > MAX_REQUEST_BYTES {
        return Err(format!("{size} bytes are more than {MAX_REQUEST_BYTES}"));
    }
    check_pairs(&request.messages)
}

fn check_pairs(messages: &[Message]) -> Result<(), String> {
    let mut seen: HashSet<&CallId> = HashSet::new();
    let mut open: Vec<&CallId> = Vec::new();
    for message in messages {
        match message {
            Message::User(_) | Message::Assistant { .. } => no_open_call(&open)?,
            Message::ToolResult { call, .. } => match open.iter().position(|other| *other == call) {
                Some(position) => {
                    open.remove(position);
                }
                None if seen.contains(call) => {
                    return Err(format!("call {} has a second result, or a late one", call.as_str()));
                }
                None => return Err(format!("a result answers no call: {}", call.as_str())),
            },
        }
        if let Message::Assistant { calls, .. } = message {
            for call in calls {
                let id = call.id.as_str();
                if id.len() != 9 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                    return Err(format!("call id {id:?} is not nine letters and digits"));
                }
                if !seen.insert(&call.id) {
                    return Err(format!("two calls have the id {id}"));
                }
                open.push(&call.id);
            }
        }
    }
    no_open_call(&open)
}

fn no_open_call(open: &[&CallId]) -> Result<(), String> {
    open.first().map_or(Ok(()), |call| Err(format!("call {} has no result", call.as_str())))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::conversation::model_request::{PromptCall, ToolChoice};
    use crate::conversation::transcript::{Audience, Tier, ToolSpec};

    fn request(messages: Vec<Message>) -> ModelRequest {
        ModelRequest {
            system: String::new(),
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            messages,
            max_output_tokens: 100,
            reply_schema: None,
        }
    }

    fn user(text: &str) -> Message {
        Message::User(text.to_owned())
    }

    fn assistant(calls: &[&str]) -> Message {
        let call =
            |id: &&str| PromptCall { id: CallId::stored(*id), name: "f".to_owned(), arguments: Map::new() };
        Message::Assistant { text: String::new(), calls: calls.iter().map(call).collect() }
    }

    fn result(id: &str) -> Message {
        Message::ToolResult { call: CallId::stored(id), content: "{}".to_owned(), summary: None }
    }

    #[track_caller]
    fn check(messages: Vec<Message>, expected: Result<(), &str>) {
        assert_eq!(check_request(&request(messages)), expected.map_err(str::to_owned));
    }

    async fn ask(model: &Scripted) -> (Result<StepOut, ModelError>, Vec<Delta>) {
        let mut deltas = Vec::new();
        let outcome = model.step(&request(vec![user("hi")]), &mut |delta| deltas.push(delta)).await;
        (outcome, deltas)
    }

    #[tokio::test]
    async fn the_lines_are_played_in_order_and_silence_follows() {
        let cut = StepOut { stop: Stop::Length, ..plain("Well,".to_owned(), Vec::new()) };
        let arguments = Arguments::parse(json!({ "q": "up" }));
        let model = Scripted::new(vec![
            Line::Fails(ModelError::Timeout),
            Line::Calls(vec![("find".to_owned(), arguments.clone())]),
            Line::Says("Done.".to_owned()),
            Line::Step(cut.clone()),
        ]);
        assert_eq!(ask(&model).await, (Err(ModelError::Timeout), vec![]));
        let call = RawCall { name: "find".to_owned(), arguments };
        let delta =
            Delta::ToolCall { ord: 0, name: Some("find".to_owned()), arguments: r#"{"q":"up"}"#.to_owned() };
        assert_eq!(ask(&model).await, (Ok(plain(String::new(), vec![call])), vec![delta]));
        let said = Delta::Text("Done.".to_owned());
        assert_eq!(ask(&model).await, (Ok(plain("Done.".to_owned(), vec![])), vec![said]));
        assert_eq!(ask(&model).await, (Ok(cut), vec![Delta::Text("Well,".to_owned())]));
        assert_eq!(ask(&model).await, (Ok(plain(String::new(), vec![])), vec![]));
        assert_eq!((model.calls(), model.requests()), (5, vec![request(vec![user("hi")]); 5]));
    }

    #[tokio::test]
    async fn a_final_failure_repeats_until_there_is_another_script() {
        let model = Scripted::new(vec![Line::Says("Yes.".to_owned()), Line::Fails(ModelError::Timeout)]);
        ask(&model).await.0.unwrap();
        for _ in 0..3 {
            assert_eq!(ask(&model).await.0, Err(ModelError::Timeout));
        }
        model.play(vec![Line::Says("Back.".to_owned())]);
        assert_eq!(ask(&model).await.0, Ok(plain("Back.".to_owned(), vec![])));
        assert_eq!(model.left(), 0);
    }

    #[tokio::test]
    #[should_panic(expected = "the request to the model breaks a rule: there is no message")]
    async fn a_request_that_breaks_a_rule_is_not_answered() {
        let step = Scripted::default().step(&request(vec![]), &mut |_| {}).await;
        unreachable!("{step:?}");
    }

    #[test]
    fn every_call_needs_exactly_one_result_in_its_place() {
        let (a, b) = ("aaaaaaaa1", "bbbbbbbb2");
        check(vec![user("hi"), assistant(&[a, b]), result(b), result(a)], Ok(()));
        check(vec![user("hi"), assistant(&[]), user("again")], Ok(()));
        check(vec![user("hi"), assistant(&[a, b]), result(b)], Err("call aaaaaaaa1 has no result"));
        check(vec![assistant(&[a]), user("hi")], Err("call aaaaaaaa1 has no result"));
        check(
            vec![assistant(&[a]), result(a), result(a)],
            Err("call aaaaaaaa1 has a second result, or a late one"),
        );
        check(vec![user("hi"), result(a)], Err("a result answers no call: aaaaaaaa1"));
        check(vec![assistant(&[a, a]), result(a), result(a)], Err("two calls have the id aaaaaaaa1"));
    }

    #[test]
    fn a_request_ends_with_the_user_or_a_result_and_has_short_ids() {
        check(vec![user("hi"), assistant(&[])], Err("the last message is the assistant's"));
        check(
            vec![assistant(&["call_12345"]), result("call_12345")],
            Err("call id \"call_12345\" is not nine letters and digits"),
        );
    }

    #[test]
    fn a_request_is_small_and_lists_each_tool_once() {
        let much = "x".repeat(MAX_REQUEST_BYTES);
        check(vec![user(&much)], Ok(()));
        check(vec![user(&much), user("x")], Err("65537 bytes are more than 65536"));
        let tool = ToolSpec {
            name: "f",
            description: "Finds.",
            tier: Tier::Read,
            audience: Audience::Everyone,
            parameters: json!({}).into(),
        };
        let twice = ModelRequest { tools: vec![tool.clone(), tool], ..request(vec![user("hi")]) };
        assert_eq!(check_request(&twice), Err("the tool f is listed twice".to_owned()));
    }
}
