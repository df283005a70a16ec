//! Address for agents: the Model Context Protocol (MCP) over streamable HTTP, beside the API. The request guard admits only
//! keys for agents.

mod answers;
mod resources;
mod server;
mod tool_descriptions;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::console_state::ConsoleState;
use server::AgentServer;

/// Path of the address for agents.
pub const AGENT_PATH: &str = "/mcp";
/// Largest request.
const MAX_REQUEST_BYTES: usize = 64 * 1024;

/// Answers a request of an agent. There are no sessions: each request is complete, also those of earlier revisions of MCP.
pub(super) async fn answer_agent(State(console): State<ConsoleState>, request: Request) -> Response {
    // The request guard has checked the host name and the origin by rules that change while the program runs.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(MAX_REQUEST_BYTES)
        .with_cancellation_token(console.stop.child_token());
    let agents = AgentServer::new(console.engine);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(agents.clone()), sessions, config);
    service.handle(request).await.into_response()
}
