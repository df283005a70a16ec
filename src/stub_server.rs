//! HTTP server for unit tests. It computes each response from the request body, and records the requests.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, Uri};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

pub(crate) type StubResponse = Response<Bytes>;

/// Server on a free local port, which stops when it is dropped.
pub(crate) struct StubServer {
    uri: String,
    requests: Arc<Mutex<Vec<StubRequest>>>,
    task: AbortHandle,
}

/// Recorded request.
#[derive(Debug, Clone)]
pub(crate) struct StubRequest {
    pub(crate) headers: HeaderMap,
    /// JSON of the body; `null` if the body is not JSON.
    pub(crate) body: Value,
}

impl StubServer {
    /// Starts a server that responds to requests for `path` and with 404 to all others.
    pub(crate) async fn start<F>(path: &'static str, respond: F) -> Self
    where
        F: Fn(&Value) -> StubResponse + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<StubRequest>>>::default();
        let (received, respond) = (requests.clone(), Arc::new(respond));
        let router = Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let response = if uri.path() == path { respond(&body) } else { empty_response(404) };
            received.lock().unwrap().push(StubRequest { headers, body });
            async { response.map(Body::from) }
        });
        let server = tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        Self { uri, requests, task: server.abort_handle() }
    }

    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns all requests so far, oldest first.
    pub(crate) fn requests(&self) -> Vec<StubRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for StubServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn empty_response(status: u16) -> StubResponse {
    Response::builder().status(status).body(Bytes::new()).unwrap()
}

pub(crate) fn json_response(status: u16, body: &Value) -> StubResponse {
    raw_response(status, "application/json", body.to_string())
}

pub(crate) fn raw_response(status: u16, content_type: &str, body: impl Into<Bytes>) -> StubResponse {
    Response::builder().status(status).header(CONTENT_TYPE, content_type).body(body.into()).unwrap()
}

pub(crate) fn redirect_response(target: &str) -> StubResponse {
    Response::builder().status(307).header(LOCATION, target).body(Bytes::new()).unwrap()
}

/// Adds the header that asks the client to wait this many seconds before it tries again.
pub(crate) fn with_retry_after(mut response: StubResponse, seconds: u32) -> StubResponse {
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}
