//! Requests of an agent: whatever it sends, nothing is deleted without the person, results are bounded, and the key is not
//! repeated.
#![no_main]

use std::cell::RefCell;

use dialarr_fuzz::agents::AgentProgram;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

const REVISION: &str = "2026-07-28";
const METHODS: [&str; 6] =
    ["tools/call", "tools/list", "resources/read", "resources/list", "server/discover", "initialize"];
/// Largest structured content.
const MAX_CONTENT_BYTES: usize = 8 * 1024;

thread_local! {
    static PROGRAM: RefCell<AgentProgram> = RefCell::default();
}

fuzz_target!(|data: &[u8]| {
    let [how, input @ ..] = data else { return };
    let (headers, body) = if how % 2 == 0 { request(*how, input) } else { (Vec::new(), input.to_vec()) };
    let seen = PROGRAM.with_borrow_mut(|program| program.post(&headers, &body));
    let status = seen.response.status().as_u16();
    assert!(status < 500, "{status}");
    assert!(seen.removed.is_empty(), "deleted on the word of an agent");
    let text = String::from_utf8_lossy(seen.response.body());
    assert!(!text.contains(&seen.key), "the key is repeated");
    if let Ok(answer) = serde_json::from_slice::<Value>(seen.response.body()) {
        let content = &answer["result"]["structuredContent"];
        assert!(content.to_string().len() <= MAX_CONTENT_BYTES, "{} bytes", content.to_string().len());
    }
});

/// Returns a well-formed request with the input as its parameters.
fn request(how: u8, input: &[u8]) -> (Vec<(&'static str, String)>, Vec<u8>) {
    let method = METHODS[usize::from(how / 2) % METHODS.len()];
    let mut params = serde_json::from_slice(input).unwrap_or_else(|_| json!({}));
    if !params.is_object() {
        params = json!({ "name": "find_in_library", "arguments": params });
    }
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": { "name": "fuzz", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut headers = vec![("mcp-protocol-version", REVISION.to_owned()), ("mcp-method", method.to_owned())];
    if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
        headers.push(("mcp-name", name.to_owned()));
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    (headers, body.to_string().into_bytes())
}
