//! Agent that acts for a person over the Model Context Protocol.

use std::time::Duration;

use bytes::Bytes;
use dialarr::http::HttpClient;
use dialarr::web;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::request::Builder;
use http::{Method, Request, Response};
use serde_json::{Value, json};

use super::TestApp;

/// Revision of the protocol without sessions.
pub(crate) const STATELESS: &str = "2026-07-28";
/// Revision before it.
pub(crate) const EARLIER: &str = "2025-11-25";

/// Agent with a key.
pub(crate) struct Agent<'a> {
    app: &'a TestApp,
    pub(crate) key: String,
    name: &'static str,
}

impl TestApp {
    /// Creates a key in the console with which Claude acts for the person with this number.
    pub(crate) async fn agent(&self, key_name: &str, phone: &str, scope: &str) -> Agent<'_> {
        let person = self.user_id_of(phone).await;
        let fields = [("name", key_name), ("person", person.as_str()), ("scope", scope)];
        let page = self.browser().await.submit("/keys/agents", &fields).await;
        let words = page.text();
        let key = words.split_whitespace().find(|word| word.starts_with("dlr_")).unwrap();
        Agent { app: self, key: key.to_owned(), name: "Claude" }
    }

    async fn user_id_of(&self, phone: &str) -> String {
        let lines =
            self.lines("SELECT user_id || ' ' || address AS line FROM user_addresses ORDER BY user_id").await;
        let found =
            lines.iter().find_map(|line| line.split_once(' ').filter(|(_, address)| *address == phone));
        found.unwrap().0.to_owned()
    }
}

impl<'a> Agent<'a> {
    /// Returns the same key in another program.
    pub(crate) fn named(&self, name: &'static str) -> Agent<'a> {
        Agent { app: self.app, key: self.key.clone(), name }
    }

    /// Returns an agent with a key that was created before a restart.
    pub(crate) fn with_key(app: &'a TestApp, key: String) -> Self {
        Self { app, key, name: "Claude" }
    }

    pub(crate) fn request(&self, method: &str, name: Option<&str>) -> Builder {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/mcp")
            .header(HOST, "localhost:3001")
            .header(AUTHORIZATION, format!("Bearer {}", self.key))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", STATELESS)
            .header("mcp-method", method);
        match name {
            Some(name) => request.header("mcp-name", name),
            None => request,
        }
    }

    pub(crate) fn body(&self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientInfo": { "name": self.name, "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        });
        json!({ "jsonrpc": "2.0", "id": 3, "method": method, "params": params })
    }

    pub(crate) async fn send(&self, request: Builder, body: &Value) -> Response<Bytes> {
        let console = web::in_process(web::console_router(self.app.app().console.clone()));
        let request = request.body(Bytes::from(body.to_string())).unwrap();
        HttpClient::in_process(console).send(request, Duration::from_secs(100)).await.unwrap()
    }

    /// Sends a request and returns the whole response.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
        let response = self.send(self.request(method, name.as_deref()), &self.body(method, params)).await;
        serde_json::from_slice(response.body()).unwrap_or_else(|_| panic!("{response:?}"))
    }

    /// Returns the names of the offered tools.
    pub(crate) async fn tools(&self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Calls a tool and returns the structured content of the result.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        let content = answer["result"]["structuredContent"].clone();
        assert!(content.is_object(), "{answer}");
        content
    }

    /// Reads a resource.
    pub(crate) async fn read(&self, uri: &str) -> Value {
        let answer = self.ask("resources/read", json!({ "uri": uri })).await;
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(text).unwrap()
    }

    /// Returns the id by which the library has a movie, as the agent finds it.
    pub(crate) async fn find_movie(&self, title: &str) -> Value {
        let found = self.call("find_in_library", json!({ "query": title })).await;
        found["results"][0]["id"].clone()
    }

    /// Asks to delete a movie.
    pub(crate) async fn delete_movie(&self, title: &str) -> Value {
        let id = self.find_movie(title).await;
        self.call("remove_media", json!({ "items": [{ "type": "movie", "id": id }], "delete_files": true }))
            .await
    }

    /// Returns what became of a call.
    pub(crate) async fn check(&self, asked: &Value) -> Value {
        self.call("check_ticket", json!({ "ticket": asked["ticket"] })).await
    }
}
