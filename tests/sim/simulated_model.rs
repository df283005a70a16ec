//! Model that follows simple rules, and fails in every way a model can.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dialarr::conversation::model_request::{ModelMessage, ModelRequest, ToolChoice};
use dialarr::conversation::transcript::{StopReason, ToolArguments};
use dialarr::llm::scripted::check_request;
use dialarr::llm::{DeltaSink, Model, ModelError, ModelResponse, RawCall, ResponseDelta};
use serde_json::{Value, json};

use crate::house_viewers::{HouseViewer, VIEWERS};
use crate::plan::{BRAZIL, Plan};
use crate::rng::Rng;
use crate::world::pass;

/// Response of the model when it did the requested work, or has nothing to do.
pub(crate) const CONTENT: &str = "All set.";
/// Response of the model about work that it never did.
pub(crate) const LIE: &str = "I've deleted everything, as you asked.";

/// Request that states what somebody has watched.
#[derive(Debug, Clone)]
pub(crate) struct ViewingRequest {
    pub viewer: HouseViewer,
    /// True if the request is part of a private conversation of this person.
    pub is_own: bool,
    pub last_message: String,
}

pub(crate) struct SimulatedModel {
    storm: u64,
    brisk: bool,
    pub calm: AtomicBool,
    rng: Mutex<Rng>,
    /// Requests that a strict server would reject.
    pub broken: Mutex<Vec<String>>,
    /// Requests that state what somebody has watched.
    pub viewing_requests: Mutex<Vec<ViewingRequest>>,
    pub calls: Mutex<u64>,
}

impl SimulatedModel {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            storm: plan.model,
            brisk: plan.brisk,
            calm: AtomicBool::new(plan.model == 0),
            rng: Mutex::new(Rng::of(plan.seed, "mind")),
            broken: Mutex::default(),
            viewing_requests: Mutex::default(),
            calls: Mutex::default(),
        }
    }

    /// Returns the failure of this call, if any, and the duration of the call.
    fn draw_failure(&self) -> (Option<u64>, Duration) {
        let mut rng = self.rng.lock().unwrap();
        let (hit, failure, time) = (rng.percent(self.storm), rng.below(13), rng.ms(200, 4_000));
        let time = if self.brisk { Duration::from_millis(10) } else { time };
        (Some(failure).filter(|_| hit && !self.calm.load(Ordering::SeqCst)), time)
    }
}

#[async_trait]
impl Model for SimulatedModel {
    fn name(&self) -> &str {
        "mind"
    }

    async fn next_response(
        &self,
        request: &ModelRequest,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError> {
        *self.calls.lock().unwrap() += 1;
        if let Err(broken) = check_request(request) {
            self.broken.lock().unwrap().push(broken);
        }
        self.viewing_requests.lock().unwrap().extend(viewing_requests(request));
        let (failure, time) = self.draw_failure();
        pass(time / 2).await;
        let mut answer = reply(request);
        sink(ResponseDelta::Text(answer.text.clone()));
        pass(time / 2).await;
        match failure {
            None => {}
            Some(0) => return Err(ModelError::RateLimited { retry_after: Some(Duration::from_secs(3)) }),
            Some(1) => return Err(ModelError::Unavailable("down".to_owned())),
            Some(2) => return Err(ModelError::Malformed("half a sentence".to_owned())),
            Some(3) => return Err(ModelError::ContextTooLong),
            Some(4) => return Err(ModelError::Unauthorized("no".to_owned())),
            Some(5) => return std::future::pending().await,
            Some(6) => panic!("the mind has lost itself"),
            Some(7) => answer.calls.extend(answer.calls.clone()),
            Some(8) => answer = says(LIE),
            Some(9) => answer = says(""),
            Some(10) => answer = calls(vec![("launch_rocket", json!({}))]),
            Some(11) => answer = calls(vec![("remove_media", json!({ "items": "everything" }))]),
            Some(_) => answer.stop = StopReason::Length,
        }
        Ok(answer)
    }
}

/// Returns the people whose watching a request states. The context block of each message names the user.
fn viewing_requests(request: &ModelRequest) -> Vec<ViewingRequest> {
    let texts: Vec<String> = request.messages.iter().map(|message| format!("{message:?}")).collect();
    let lines = || {
        request.messages.iter().flat_map(|message| match &**message {
            ModelMessage::User(text) => text.lines().collect(),
            ModelMessage::Assistant { .. } | ModelMessage::ToolResult { .. } => Vec::new(),
        })
    };
    let is_in_room = lines().any(|line| line.starts_with("group chat: "));
    let is_user = |name: &str| {
        let mut users = lines().filter_map(|line| line.strip_prefix("user: ")).peekable();
        users.peek().is_some() && users.all(|user| user == name)
    };
    let mentioned = VIEWERS.into_iter().filter(|viewer| {
        viewer.is_mentioned_in(&request.system) || texts.iter().any(|text| viewer.is_mentioned_in(text))
    });
    let last_message = texts.last().cloned().unwrap_or_default();
    let to_request = |viewer: HouseViewer| {
        let is_own = !is_in_room && is_user(viewer.name);
        ViewingRequest { viewer, is_own, last_message: last_message.clone() }
    };
    mentioned.map(to_request).collect()
}

/// Returns the response to the request in the last message and to the tool results since that message.
fn reply(request: &ModelRequest) -> ModelResponse {
    let last =
        request.messages.iter().rposition(|message| matches!(**message, ModelMessage::User(_))).unwrap_or(0);
    let request_line = match &*request.messages[last] {
        ModelMessage::User(text) => {
            // In a room, each line begins with its author.
            let lines = text.lines().map(strip_author);
            lines.rev().find(|line| is_request(line)).unwrap_or_default().to_owned()
        }
        ModelMessage::Assistant { .. } | ModelMessage::ToolResult { .. } => String::new(),
    };
    let results: Vec<Value> = request.messages[last..]
        .iter()
        .filter_map(|message| match &**message {
            ModelMessage::ToolResult { content, .. } => {
                Some(serde_json::from_str(content).unwrap_or_default())
            }
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => None,
        })
        .collect();
    if request.tool_choice == ToolChoice::None {
        return says(CONTENT);
    }
    match (request_line.split_once(' '), results.len()) {
        (Some(("add", title)), 0) => calls(vec![("search_media", json!({ "query": title }))]),
        (Some(("find", title)), 0) => calls(vec![("search_media", json!({ "query": title }))]),
        (Some(("add", title)), 1) | (Some(("want", title)), 0) => calls(vec![add(title)]),
        (Some(("delete", titles)), done) => delete(titles, &results, done, may_only_ask(request)),
        (Some(("recommend", what)), 0) => calls(vec![("recommend", criteria(what))]),
        (Some(("what", "can we all watch tonight")), 0) => calls(vec![("tonight", json!({}))]),
        (Some(("what", "can we all watch tonight")), _) => says(CONTENT),
        (Some(("what", "was i watching")), 0) => calls(vec![("recently_watched", json!({}))]),
        (Some(("what", "was that again")), 0) => says(&repeat_answer(request)),
        (Some(("what", question)), 0) if question.starts_with("did ") => {
            let person = question.split(' ').nth(1).unwrap_or_default();
            calls(vec![("recently_watched", json!({ "by": person }))])
        }
        (Some(("what", question)), _) if question != "is new?" => says(&describe_watching(&results)),
        (Some(("details", title)), 0) => calls(vec![("find_in_library", json!({ "query": title }))]),
        (Some(("details", _)), 1) => match results.iter().find_map(found) {
            Some(item) => calls(vec![("media_details", item)]),
            None => says("I can't find that."),
        },
        (Some(("details", _)), _) => says(&describe_watching(&results)),
        (Some(("what", _)), 0) => calls(vec![("recently_added", json!({})), ("check_status", json!({}))]),
        _ => says(CONTENT),
    }
}

/// Returns a line of a message without the name that it begins with in a room.
fn strip_author(line: &str) -> &str {
    let is_author = |name: &str| name == "Somebody" || VIEWERS.iter().any(|viewer| viewer.name == name);
    line.split_once(": ").filter(|(name, _)| is_author(name)).map_or(line, |(_, said)| said)
}

/// Returns what the model last said about watching, as far as the request shows it.
fn repeat_answer(request: &ModelRequest) -> String {
    let said = request.messages.iter().rev().find_map(|message| match &**message {
        ModelMessage::Assistant { text, .. } if text.starts_with("You ") => Some(text.clone()),
        ModelMessage::User(_) | ModelMessage::Assistant { .. } | ModelMessage::ToolResult { .. } => None,
    });
    said.unwrap_or_else(|| CONTENT.to_owned())
}

/// Returns a sentence with the first play in the results, or the states of a title.
fn describe_watching(results: &[Value]) -> String {
    let play = results.iter().find_map(|result| {
        let play = &result["results"][0]["plays"][0];
        Some(format!("watched {}, {}", play["title"].as_str()?, play["progress"].as_str()?))
    });
    let state = || results.iter().find_map(|result| Some(result["watched"]["you"].as_str()?.to_owned()));
    play.or_else(state).map_or_else(|| CONTENT.to_owned(), |watched| format!("You {watched}."))
}

fn is_request(line: &str) -> bool {
    ["add ", "find ", "want ", "delete ", "what ", "details ", "recommend "]
        .iter()
        .any(|verb| line.starts_with(verb))
}

/// Returns the call that adds a title.
pub(crate) fn add(title: &str) -> (&'static str, Value) {
    let tmdb = |id: i64| ("add_movie", json!({ "tmdb": id }));
    match title {
        "Arrival" => tmdb(329_865),
        "Sicario" => tmdb(273_481),
        "Tenet" => tmdb(577_922),
        "Dune" => tmdb(438_631),
        "Heat" => tmdb(949),
        "Alien" => tmdb(348),
        "Brazil" => tmdb(BRAZIL),
        "Dark" => ("add_series", json!({ "tvdb": 334_824, "seasons": "all" })),
        _ => ("add_series", json!({ "tvdb": 371_980, "seasons": "all" })),
    }
}

fn criteria(what: &str) -> Value {
    match what.split_once(' ') {
        Some(("like", title)) => json!({ "like": title }),
        Some(("by", person)) => json!({ "person": person }),
        _ => json!({ "trending": true }),
    }
}

fn may_only_ask(request: &ModelRequest) -> bool {
    request.tools.iter().any(|tool| tool.name == "request_removal")
}

/// Searches for each title, one after the other, and then requests the deletion of the titles that were found.
fn delete(titles: &str, results: &[Value], done: usize, may_only_ask: bool) -> ModelResponse {
    let titles: Vec<&str> = titles.split(" and ").collect();
    if let Some(title) = titles.get(done) {
        return calls(vec![("find_in_library", json!({ "query": title }))]);
    }
    if done > titles.len() {
        return says(CONTENT);
    }
    let items: Vec<Value> = results.iter().filter_map(found).collect();
    if items.is_empty() {
        return says("I can't find that.");
    }
    if may_only_ask {
        return calls(items.into_iter().map(|item| ("request_removal", item)).collect());
    }
    calls(vec![("remove_media", json!({ "items": items, "delete_files": true }))])
}

/// Returns the first object in a result that has a kind and an id.
pub(crate) fn found(result: &Value) -> Option<Value> {
    match result {
        Value::Object(map) => match (map.get("type"), map.get("id").and_then(Value::as_i64)) {
            (Some(kind), Some(id)) => Some(json!({ "type": kind, "id": id })),
            _ => map.values().find_map(found),
        },
        Value::Array(values) => values.iter().find_map(found),
        _ => None,
    }
}

fn says(text: &str) -> ModelResponse {
    ModelResponse {
        text: text.to_owned(),
        thinking: String::new(),
        calls: Vec::new(),
        stop: StopReason::Done,
        usage: None,
        response_id: None,
    }
}

fn calls(wanted: Vec<(&str, Value)>) -> ModelResponse {
    let call = |(name, arguments): (&str, Value)| RawCall {
        name: name.to_owned(),
        arguments: ToolArguments::parse(arguments),
    };
    ModelResponse { calls: wanted.into_iter().map(call).collect(), ..says("") }
}
