//! Requests and responses that the simulated servers have in common.

use std::sync::Arc;

use axum::Router;
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use serde_json::Value;
use url::form_urlencoded;

use crate::http::InProcess;

/// Faults of a simulated server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FakeFaults {
    /// Requests never get a response.
    pub(crate) is_silent: bool,
    /// Status of every response.
    pub(crate) status: Option<u16>,
}

/// Simulated server that answers requests.
pub(crate) trait FakeEndpoint: Clone + Send + Sync + 'static {
    fn respond(&self, request: Request<Bytes>) -> impl Future<Output = Response<Bytes>> + Send;
}

pub(crate) fn in_process<S: FakeEndpoint>(server: &S) -> InProcess {
    let server = server.clone();
    Arc::new(move |request| {
        let server = server.clone();
        async move { server.respond(request).await }.boxed()
    })
}

pub(crate) fn router<S: FakeEndpoint>(server: &S) -> Router {
    let server = server.clone();
    Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
        let mut request = Request::new(body);
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
        server.respond(request).await.map(axum::body::Body::from)
    })
}

/// Returns the response of a server with faults; `None` if it has none.
pub(crate) async fn faulty_response(faults: FakeFaults) -> Option<Response<Bytes>> {
    if faults.is_silent {
        return std::future::pending().await;
    }
    faults.status.map(empty_response)
}

/// Returns whether a value of the query has a reserved character that is not encoded, for which Seerr refuses a request.
pub(crate) fn has_reserved_characters(uri: &Uri) -> bool {
    let values = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    values.into_iter().any(|(_, value)| {
        value.contains([
            ':', '/', '?', '#', '[', ']', '@', '!', '$', '&', '\'', '(', ')', '*', '+', ',', ';', '=',
        ])
    })
}

/// Query parameters of a request.
#[derive(Default)]
pub(crate) struct Query(pub(crate) Vec<(String, String)>);

impl Query {
    /// Reads the query. A list may be one parameter with commas, or several parameters of one name.
    pub(crate) fn from_uri(uri: &Uri) -> Self {
        let mut query: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            match query.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => *values = format!("{values},{value}"),
                None => query.push((name.into_owned(), value.into_owned())),
            }
        }
        Self(query)
    }

    /// Returns whether a parameter has this truth value, in any case.
    pub(crate) fn is(&self, name: &str, value: bool) -> bool {
        self.get(name).is_some_and(|given| given.eq_ignore_ascii_case(if value { "true" } else { "false" }))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.parse().ok()
    }
}

pub(crate) fn json_response(body: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(crate) fn empty_response(status: u16) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
