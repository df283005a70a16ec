//! Model behind an OpenAI-compatible server on loopback, which streams prepared responses one after the other.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

/// Tokens that the server counts for each response.
const USAGE: (u32, u32, u32) = (1000, 400, 20);

/// Content of one response.
pub(crate) enum Answer {
    Says(&'static str),
    Calls(&'static str, Value),
}

/// Server that runs until the test ends. After its last response it returns an error.
pub(crate) struct ModelServer {
    address: SocketAddr,
    stage: Arc<Stage>,
    /// Runtime of the server, if the test has none.
    _runtime: Option<tokio::runtime::Runtime>,
}

#[derive(Default)]
struct Stage {
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<Value>>,
}

impl ModelServer {
    pub(crate) fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let server = runtime.block_on(Self::start_here(answers));
        Self { _runtime: Some(runtime), ..server }
    }

    /// Starts the server within the runtime of a test.
    pub(crate) async fn start_here(answers: impl IntoIterator<Item = Answer>) -> Self {
        let stage =
            Arc::new(Stage { answers: Mutex::new(answers.into_iter().collect()), ..Stage::default() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/v1/chat/completions", post(complete)).with_state(stage.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, stage, _runtime: None }
    }

    /// Returns the URL of the server, as `LLM_BASE_URL`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Value> {
        self.stage.requests.lock().unwrap().clone()
    }
}

async fn complete(State(stage): State<Arc<Stage>>, Json(request): Json<Value>) -> Response {
    stage.requests.lock().unwrap().push(request);
    let Some(answer) = stage.answers.lock().unwrap().pop_front() else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "no answer is left").into_response();
    };
    let (delta, reason) = match answer {
        Answer::Says(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        Answer::Calls(tool, arguments) => {
            let function = json!({ "name": tool, "arguments": arguments.to_string() });
            let call = json!({ "index": 0, "id": "call_0", "type": "function", "function": function });
            (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        }
    };
    let (input, cached, output) = USAGE;
    let usage = json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": { "cached_tokens": cached } });
    let choice =
        |delta: Value, reason: Value| json!([{ "index": 0, "delta": delta, "finish_reason": reason }]);
    let stream: String = [
        json!({ "id": "a", "object": "chat.completion.chunk", "choices": choice(delta, Value::Null) }),
        json!({ "id": "a", "object": "chat.completion.chunk", "choices": choice(json!({}), json!(reason)) }),
        json!({ "id": "a", "object": "chat.completion.chunk", "choices": [], "usage": usage }),
    ]
    .map(|chunk| format!("data: {chunk}\n\n"))
    .concat();
    ([("content-type", "text/event-stream")], stream + "data: [DONE]\n\n").into_response()
}
