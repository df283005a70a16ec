//! Simulated TMDB.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::{CatalogDialect, FakeCatalog};
use crate::http::InProcess;
use crate::server_api::fake::{self, FakeEndpoint, FakeFaults, Query, faulty_response, json_response};

/// Simulated TMDB. Clones share its state.
#[derive(Debug, Clone)]
pub struct FakeTmdb {
    pub catalog: FakeCatalog,
    token: String,
    state: Arc<Mutex<ServerState>>,
}

#[derive(Debug, Default)]
struct ServerState {
    faults: FakeFaults,
    /// Seconds that a client must wait, if the number of requests is limited.
    limited_for: Option<u64>,
    requests: Vec<String>,
}

impl FakeTmdb {
    /// Creates a TMDB that accepts this read access token.
    pub fn new(token: &str, catalog: FakeCatalog) -> Self {
        Self { catalog, token: token.to_owned(), state: Arc::default() }
    }

    pub fn token(&self) -> SecretString {
        SecretString::from(self.token.as_str())
    }

    /// Answers every request with this status; `None` ends that.
    pub fn set_status(&self, status: Option<u16>) {
        self.lock().faults.status = status;
    }

    /// Refuses requests, and asks for a pause of these seconds; `None` ends that.
    pub fn limit_requests(&self, seconds: Option<u64>) {
        self.lock().limited_for = seconds;
    }

    /// Returns the paths of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.lock().requests.clone()
    }

    /// Returns the server without a socket.
    pub fn in_process(&self) -> InProcess {
        fake::in_process(self)
    }

    /// Returns the server as a router, for use behind a socket.
    pub fn router(&self) -> Router {
        fake::router(self)
    }

    fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakeEndpoint for FakeTmdb {
    async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        let path = request.uri().path().to_owned();
        let (faults, limited_for) = {
            let mut state = self.lock();
            state.requests.push(path.clone());
            (state.faults, state.limited_for)
        };
        if let Some(response) = faulty_response(faults).await {
            return response;
        }
        let bearer = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        if bearer != Some(format!("Bearer {}", self.token).as_str()) {
            return error_response(401, 7, "Invalid API key: You must be granted a valid key.");
        }
        if let Some(seconds) = limited_for {
            let mut response = error_response(429, 25, "Your request count is over the allowed limit.");
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
            return response;
        }
        let path = path.strip_prefix("/3").unwrap_or(&path);
        if path == "/authentication" {
            return json_response(
                &json!({ "success": true, "status_code": 1, "status_message": "Success." }),
            );
        }
        match self.catalog.answer(path, &Query::from_uri(request.uri()), CatalogDialect::Tmdb) {
            Some(answer) => json_response(&answer),
            None => error_response(404, 34, "The resource you requested could not be found."),
        }
    }
}

fn error_response(status: u16, code: u16, message: &str) -> Response<Bytes> {
    let body: Value = json!({ "success": false, "status_code": code, "status_message": message });
    let mut response = json_response(&body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
