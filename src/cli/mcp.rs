//! `dialarr mcp`: connects a local agent that speaks the Model Context Protocol over standard input and output to the running
//! service. Each line is one message, which is passed on to the address for agents.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::console::console_url;
use crate::config::{self, Bootstrap};
use crate::http::HttpClient;

/// Time limit of one message. A call is answered with a ticket long before.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(120);
/// Largest message of an agent, as the service accepts it.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// Maximum number of messages that are passed on at the same time.
const MAX_OPEN_MESSAGES: usize = 8;
/// Key of the revision in the metadata of a request.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// Codes of JSON-RPC for a line that is no JSON, and for a failure of the server.
const PARSE_ERROR: i64 = -32_700;
const INTERNAL_ERROR: i64 = -32_603;

#[derive(Debug, clap::Args, PartialEq, Eq)]
pub struct McpArguments {
    /// Address of the service for agents [default: /mcp at CONSOLE_BIND]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// File that contains the key for the agent; without it, DIALARR_AGENT_KEY is the key
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// Address for agents, and the key.
#[derive(Clone)]
pub struct AgentAddress {
    pub url: String,
    pub key: String,
}

pub(super) async fn run_mcp(
    arguments: &McpArguments,
    bootstrap: impl FnOnce() -> anyhow::Result<Bootstrap>,
) -> anyhow::Result<()> {
    let key = match &arguments.key_file {
        Some(file) => fs::read_to_string(file).context("read the file with the key")?,
        None => config::agent_key().context(
            "find the key for the agent; hint: create one in the console and set DIALARR_AGENT_KEY, or name its file with --key-file",
        )?,
    };
    let url = match &arguments.url {
        Some(url) => url.clone(),
        None => {
            let bind = bootstrap()?.console_bind.context(
                "find the service: the console is off because CONSOLE_BIND is empty; hint: name the address with --url",
            )?;
            format!("{}/mcp", console_url(bind))
        }
    };
    let address = AgentAddress { url, key: key.trim().to_owned() };
    let client = HttpClient::network().context("create an HTTP client")?;
    let input = tokio::io::BufReader::new(tokio::io::stdin());
    pass_messages(client, address, input, tokio::io::stdout()).await
}

/// Passes on each line of `input`, and writes each answer as one line, until the input ends and all messages are answered.
pub async fn pass_messages(
    client: HttpClient,
    address: AgentAddress,
    input: impl AsyncBufRead + Unpin,
    mut output: impl AsyncWrite + Unpin + Send + 'static,
) -> anyhow::Result<()> {
    let (answers, mut answered) = mpsc::channel::<Value>(MAX_OPEN_MESSAGES);
    let writer = tokio::spawn(async move {
        while let Some(answer) = answered.recv().await {
            output.write_all(format!("{answer}\n").as_bytes()).await?;
            output.flush().await?;
        }
        Ok::<(), std::io::Error>(())
    });
    let bridge = Arc::new(Bridge { client, address, agreed_version: Mutex::default() });
    let slots = Arc::new(Semaphore::new(MAX_OPEN_MESSAGES));
    let mut open = JoinSet::new();
    let mut lines = input.split(b'\n');
    while let Some(line) = lines.next_segment().await.context("read a message of the agent")? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let slot = slots.clone().acquire_owned().await?;
        let (bridge, answers) = (bridge.clone(), answers.clone());
        open.spawn(async move {
            if let Some(answer) = bridge.pass_message(&line).await {
                // The agent has closed its input if the answer cannot be written.
                let _ = answers.send(answer).await;
            }
            drop(slot);
        });
        while open.try_join_next().is_some() {}
    }
    while open.join_next().await.is_some() {}
    drop(answers);
    writer.await.context("write the answers")?.context("write an answer")
}

struct Bridge {
    client: HttpClient,
    address: AgentAddress,
    /// Revision on which an earlier client has agreed with the service. Its later messages do not state it.
    agreed_version: Mutex<Option<String>>,
}

impl Bridge {
    /// Passes on one message. Returns the answer; `None` for a message that gets none.
    async fn pass_message(&self, line: &[u8]) -> Option<Value> {
        if line.len() > MAX_MESSAGE_BYTES {
            return Some(error_answer(&Value::Null, PARSE_ERROR, "The message is too long."));
        }
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            return Some(error_answer(&Value::Null, PARSE_ERROR, "The line is not a JSON message."));
        };
        let id = message.get("id").cloned();
        let sent = match self.build_request(&message) {
            Ok(request) => self.client.send(request, MESSAGE_TIMEOUT).await,
            Err(_) => return id.map(|id| error_answer(&id, PARSE_ERROR, "The message is malformed.")),
        };
        let response = match sent {
            Ok(response) => response,
            Err(error) => {
                tracing::warn!(%error, "failed to pass on a message");
                return id.map(|id| error_answer(&id, INTERNAL_ERROR, "The service cannot be reached."));
            }
        };
        let id = id?;
        match serde_json::from_slice::<Value>(response.body()) {
            Ok(answer) if answer.get("jsonrpc").is_some() => {
                self.remember_version(&answer);
                Some(answer)
            }
            Ok(_) | Err(_) => Some(error_answer(&id, INTERNAL_ERROR, refusal_text(response.status()))),
        }
    }

    fn build_request(&self, message: &Value) -> Result<Request<Bytes>, http::Error> {
        let method = message["method"].as_str().unwrap_or_default();
        let params = &message["params"];
        let stated = params["_meta"][VERSION_KEY].as_str().map(str::to_owned);
        let mut request = Request::post(&self.address.url)
            .header(AUTHORIZATION, format!("Bearer {}", self.address.key))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(version) = stated.or_else(|| self.agreed_version()) {
            request = request.header("mcp-protocol-version", version);
        }
        if !method.is_empty() {
            request = request.header("mcp-method", method);
        }
        // These are the fields that the service compares with the body.
        if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
            request = request.header("mcp-name", name);
        }
        request.body(Bytes::from(message.to_string()))
    }

    fn agreed_version(&self) -> Option<String> {
        self.agreed_version.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers the revision in the answer to `initialize`.
    fn remember_version(&self, answer: &Value) {
        if let Some(version) = answer["result"]["protocolVersion"].as_str() {
            *self.agreed_version.lock().unwrap_or_else(PoisonError::into_inner) = Some(version.to_owned());
        }
    }
}

fn refusal_text(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "The service refuses the key.",
        StatusCode::MISDIRECTED_REQUEST => {
            "The service does not serve this host name. Add it to CONSOLE_HOSTS."
        }
        StatusCode::PAYLOAD_TOO_LARGE => "The message is too long.",
        _ => "The service gave no answer.",
    }
}

fn error_answer(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
