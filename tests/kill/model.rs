//! Language model behind an OpenAI-compatible streaming server. The model answers the request in the user's last
//! message: `add X`, `delete X and Y`, `do we have X`, or any other text for the downloads.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Language model of the tests. Clones share one model.
#[derive(Clone)]
pub(crate) struct FakeModel {
    complaints: Arc<Mutex<Vec<String>>>,
    /// Delay before each piece of a response; zero means no delay.
    pause: Duration,
}

/// Content of one response.
enum Answer {
    Says(String),
    Calls(Vec<(&'static str, Value)>),
}

impl FakeModel {
    pub(crate) fn new(pause: Duration) -> Self {
        Self { complaints: Arc::default(), pause }
    }

    pub(crate) fn router(&self) -> Router {
        Router::new().route("/v1/chat/completions", post(complete)).with_state(self.clone())
    }

    /// Returns the requests that a strict server would have rejected.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap().clone()
    }
}

/// Request, as far as the model reads it: it must not take the processor time that a real model would not take here.
#[derive(Deserialize)]
struct ModelRequest<'a> {
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    tools: Option<IgnoredAny>,
    tool_choice: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Message<'a> {
    role: &'a str,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Vec<RequestedCall<'a>>,
    tool_call_id: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
struct RequestedCall<'a> {
    id: &'a str,
}

impl Message<'_> {
    /// Returns the content, which is empty unless it is a text.
    fn text(&self) -> String {
        self.content.and_then(|content| serde_json::from_str(content.get()).ok()).unwrap_or_default()
    }
}

async fn complete(State(model): State<FakeModel>, request: Bytes) -> Response {
    let request: ModelRequest = serde_json::from_slice(&request).unwrap();
    if let Err(complaint) = check(&request.messages) {
        model.complaints.lock().unwrap().push(complaint);
    }
    let beat = (!model.pause.is_zero()).then(|| tokio::time::interval(model.pause));
    let pieces = pieces(answer(&request));
    let stream =
        futures_util::stream::unfold((pieces.into_iter(), beat), |(mut pieces, mut beat)| async move {
            let piece = pieces.next()?;
            if let Some(beat) = &mut beat {
                beat.tick().await;
            }
            Some((Ok::<_, Infallible>(piece), (pieces, beat)))
        });
    let mut response = Response::new(Body::from_stream(stream));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/event-stream"));
    response
}

/// Checks that every call has exactly one result, right after the call.
fn check(messages: &[Message<'_>]) -> Result<(), String> {
    let mut awaited: Vec<&str> = Vec::new();
    for message in messages {
        if message.role == "tool" {
            let Some(place) = awaited.iter().position(|id| Some(*id) == message.tool_call_id) else {
                return Err(format!("a result without its call: {message:?}"));
            };
            awaited.remove(place);
        } else if !awaited.is_empty() {
            return Err(format!("calls without results: {awaited:?}"));
        } else {
            awaited = message.tool_calls.iter().map(|call| call.id).collect();
        }
    }
    if awaited.is_empty() { Ok(()) } else { Err(format!("calls without results: {awaited:?}")) }
}

fn answer(request: &ModelRequest<'_>) -> Answer {
    let is_opening = |message: &Message<'_>| {
        message.role == "user" && message.content.is_some_and(|content| content.get().contains("[/context]"))
    };
    let Some(opening) = request.messages.iter().rposition(is_opening) else {
        return Answer::Says("Hello.".to_owned());
    };
    let ask = request.messages[opening].text();
    let ask = ask.rsplit("[/context]").next().unwrap_or_default().trim().to_owned();
    // In a group, each text begins with its author.
    let ask = ask.split_once(": ").map_or(ask.as_str(), |(_, text)| text).to_owned();
    let results: Vec<Value> = request.messages[opening..]
        .iter()
        .filter(|message| message.role == "tool")
        .map(|message| serde_json::from_str(&message.text()).unwrap_or_default())
        .map(|result: Value| if result["result"].is_object() { result["result"].clone() } else { result })
        .collect();
    if request.tools.is_none() || request.tool_choice.as_ref().is_some_and(|choice| choice == "none") {
        return Answer::Says("That is all there is to say.".to_owned());
    }
    if let Some(title) = ask.strip_prefix("add ") {
        add(title, &results)
    } else if let Some(titles) = ask.strip_prefix("delete ") {
        delete(&titles.split(" and ").collect::<Vec<_>>(), &results)
    } else if let Some(title) = ask.strip_prefix("do we have ") {
        match results.first() {
            None => Answer::Calls(vec![("find_in_library", json!({ "query": title }))]),
            Some(found) if named(found, title).is_some() => Answer::Says(format!("{title} is there.")),
            Some(_) => Answer::Says(format!("There is no {title}.")),
        }
    } else if results.is_empty() {
        Answer::Calls(vec![("check_status", json!({}))])
    } else {
        Answer::Says("Nothing is downloading.".to_owned())
    }
}

fn add(title: &str, results: &[Value]) -> Answer {
    match results {
        [] => Answer::Calls(vec![("search_media", json!({ "query": title, "type": "movie" }))]),
        [found] => match named(found, title) {
            Some(movie) => Answer::Calls(vec![("add_movie", json!({ "tmdb": movie["tmdb"] }))]),
            None => Answer::Says(format!("There is no movie named {title}.")),
        },
        [.., last] => Answer::Says(match last["status"].as_str() {
            Some("added") => format!("Added {title} ({}).", last["year"]),
            Some("already_exists") => format!("{title} ({}) is already in the library.", last["year"]),
            _ => format!("I could not find out whether {title} is there."),
        }),
    }
}

fn delete(titles: &[&str], results: &[Value]) -> Answer {
    if results.is_empty() {
        let find = |title: &&str| ("find_in_library", json!({ "query": title, "type": "movie" }));
        return Answer::Calls(titles.iter().map(find).collect());
    }
    let items: Vec<Value> = titles
        .iter()
        .filter_map(|title| results.iter().find_map(|found| named(found, title)))
        .map(|movie| json!({ "type": "movie", "id": movie["id"] }))
        .collect();
    if results.len() > titles.len() || items.len() < titles.len() {
        return Answer::Says("That is not in the library.".to_owned());
    }
    Answer::Calls(vec![("remove_media", json!({ "items": items, "delete_files": true }))])
}

fn named<'a>(found: &'a Value, title: &str) -> Option<&'a Value> {
    found["results"].as_array()?.iter().find(|movie| movie["title"] == title)
}

/// Returns the response as a server streams it: words and arguments in halves.
fn pieces(answer: Answer) -> Vec<String> {
    let (deltas, reason): (Vec<Value>, &str) = match answer {
        Answer::Says(text) => {
            let (start, end) = halves(&text);
            (vec![json!({ "role": "assistant", "content": start }), json!({ "content": end })], "stop")
        }
        Answer::Calls(calls) => {
            let deltas = calls.iter().enumerate().flat_map(|(index, (name, arguments))| {
                let arguments = arguments.to_string();
                let (start, end) = halves(&arguments);
                let id = format!("call_{index}");
                let function = json!({ "name": name, "arguments": start });
                [
                    json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": function }] }),
                    json!({ "tool_calls": [{ "index": index, "function": { "arguments": end } }] }),
                ]
            });
            (deltas.collect(), "tool_calls")
        }
    };
    let chunk = |delta: &Value, reason: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        format!(
            "data: {}\n\n",
            json!({ "id": "fake", "object": "chat.completion.chunk", "choices": [choice] })
        )
    };
    let mut pieces: Vec<String> = deltas.iter().map(|delta| chunk(delta, Value::Null)).collect();
    pieces.push(chunk(&json!({}), json!(reason)));
    pieces.push("data: [DONE]\n\n".to_owned());
    pieces
}

fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}
