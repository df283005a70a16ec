//! Program that uses the API with a key.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION, ORIGIN};
use http::request::Builder;
use http::{Method, Request};
use serde_json::Value;

use super::TestApp;
use super::browser::CONSOLE;

/// Script that uses the API with a key.
pub(crate) struct Program<'a> {
    app: &'a TestApp,
    key: String,
}

/// Response to an API request.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) location: Option<String>,
    pub(crate) body: String,
}

impl Answered {
    /// Parses the body; `null` where the body is not JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns the status, and the detail of a problem. A status above 399 is a problem.
    #[track_caller]
    pub(crate) fn problem(&self) -> (u16, String) {
        let json = self.json();
        assert_eq!(self.kind, "application/problem+json", "{self:?}");
        assert_eq!(json["status"], self.status, "{self:?}");
        (self.status, json["detail"].as_str().unwrap().to_owned())
    }
}

impl TestApp {
    /// Creates a key that can do what an admin can do by text.
    pub(crate) async fn program(&self) -> Program<'_> {
        self.program_with_scope("write").await
    }

    pub(crate) async fn program_with_scope(&self, scope: &str) -> Program<'_> {
        let page = self.browser().await.submit("/keys", &[("name", "Script"), ("scope", scope)]).await;
        let words = page.text();
        let key = words.split_whitespace().find(|word| word.starts_with("dlr_")).unwrap();
        Program { app: self, key: key.to_owned() }
    }
}

impl Program<'_> {
    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.send(self.to(Method::GET, path), "").await
    }

    pub(crate) async fn post(&self, path: &str, json: Value) -> Answered {
        self.send(self.to(Method::POST, path).header(CONTENT_TYPE, "application/json"), &json.to_string())
            .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answered {
        self.send(self.to(Method::DELETE, path), "").await
    }

    /// Sends a message as a user.
    pub(crate) async fn texts(&self, json: Value) -> Answered {
        self.post("/api/v1/messages", json).await
    }

    /// Sends a message with an additional header.
    pub(crate) async fn texts_with(&self, header: (&str, &str), json: Value) -> Answered {
        let request = self.to(Method::POST, "/api/v1/messages").header(CONTENT_TYPE, "application/json");
        self.send(request.header(header.0, header.1), &json.to_string()).await
    }

    pub(crate) fn to(&self, method: Method, path: &str) -> Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost:3001")
            .header(AUTHORIZATION, format!("Bearer {}", self.key))
    }

    pub(crate) async fn send(&self, request: Builder, body: &str) -> Answered {
        let response = self.app.ask_console(request.body(Bytes::from(body.to_owned())).unwrap()).await;
        let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        Answered {
            status: response.status().as_u16(),
            kind: header(CONTENT_TYPE).unwrap_or_default(),
            location: header(LOCATION),
            body: String::from_utf8(response.body().to_vec()).unwrap(),
        }
    }
}

impl<'a> Program<'a> {
    pub(crate) fn without_a_key(app: &'a TestApp) -> Self {
        Program { app, key: String::new() }
    }

    pub(crate) async fn send_without_key(&self, method: Method, path: &str) -> Answered {
        let request = Request::builder().method(method).uri(path).header(HOST, "localhost:3001");
        // Sends the request as if from one of the console's pages: a request from another origin is refused for that
        // reason.
        self.send(request.header(ORIGIN, CONSOLE), "").await
    }
}
