//! Middleware of the fake servers: checks the API key and injects the configured faults.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::Request;
use tower::ServiceExt;

use super::fake_server::ServerIdentity;
use super::responses;
use crate::http::InProcess;

/// Fault of one API request. Queued faults apply to the following requests in order.
#[derive(Debug, Clone, Copy)]
pub(super) enum RequestFault {
    /// The request is processed normally.
    NoFault,
    Status(u16),
    Hang,
    Html,
    /// The request is carried out, but there is no response.
    DropResponse,
    /// The response ends after the first half of its body.
    Truncated,
    /// The request is carried out, but the response has this status.
    CompletedWithStatus(u16),
}

#[derive(Debug, Clone)]
pub(super) struct RequestGuard {
    identity: &'static ServerIdentity,
    state: Arc<Mutex<GuardState>>,
}

#[derive(Debug, Default)]
struct GuardState {
    faults: VecDeque<RequestFault>,
    /// Faults of the next writes.
    write_faults: VecDeque<RequestFault>,
    /// End of the path of writes that fail, and their status.
    failing_writes: Option<(&'static str, u16)>,
    down: bool,
    writes: usize,
    lists: usize,
}

impl RequestGuard {
    pub(super) fn new(identity: &'static ServerIdentity) -> Self {
        Self { identity, state: Arc::default() }
    }

    pub(super) fn queue_fault(&self, fault: RequestFault) {
        self.lock_state().faults.push_back(fault);
    }

    pub(super) fn fail_write(&self, fault: RequestFault) {
        self.lock_state().write_faults.push_back(fault);
    }

    pub(super) fn fail_writes_to(&self, path: &'static str, status: u16) {
        self.lock_state().failing_writes = Some((path, status));
    }

    pub(super) fn set_down(&self, down: bool) {
        self.lock_state().down = down;
    }

    pub(super) fn write_count(&self) -> usize {
        self.lock_state().writes
    }

    /// Returns the number of requests for the whole library.
    pub(super) fn list_count(&self) -> usize {
        self.lock_state().lists
    }

    /// Returns a router that serves `api` under `/api/v3` behind the guard, with the other routes of a real server.
    pub(super) fn guard_router(&self, api: Router) -> Router {
        let ping = || async { axum::Json(serde_json::json!({ "status": "OK" })) };
        Router::new()
            .nest("/api/v3", api.fallback(|| async { StatusCode::NOT_FOUND }))
            .route("/ping", axum::routing::get(ping))
            .fallback(web_interface)
            .layer(from_fn_with_state(self.clone(), guard_request))
    }

    fn admit_request(&self, request: &Request<Body>) -> RequestAdmission {
        let mut state = self.lock_state();
        if state.down {
            return RequestAdmission::Down;
        }
        if !request.uri().path().starts_with("/api/") {
            return RequestAdmission::OutsideApi;
        }
        let is_write = !matches!(*request.method(), Method::GET | Method::HEAD);
        if is_write {
            state.writes += 1;
        }
        let is_list = ["/api/v3/movie", "/api/v3/series"].contains(&request.uri().path());
        let is_filtered = request.uri().query().is_some_and(|query| query.contains("Id="));
        if is_list && !is_write && !is_filtered {
            state.lists += 1;
        }
        let key = request.headers().get("x-api-key").map(HeaderValue::as_bytes);
        if key != Some(self.identity.api_key.as_bytes()) {
            return RequestAdmission::Unauthorized;
        }
        let failing =
            state.failing_writes.filter(|(path, _)| is_write && request.uri().path().ends_with(path));
        if let Some((_, status)) = failing {
            return RequestAdmission::Faulty(RequestFault::Status(status));
        }
        let write_fault = if is_write { state.write_faults.pop_front() } else { None };
        write_fault
            .or_else(|| state.faults.pop_front())
            .map_or(RequestAdmission::Allowed, RequestAdmission::Faulty)
    }

    fn lock_state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a function that calls a router without a socket.
pub(super) fn in_process(router: Router) -> InProcess {
    Arc::new(move |request: Request<Bytes>| {
        let router = router.clone();
        Box::pin(async move {
            let Ok(response) = router.oneshot(request.map(Body::from)).await;
            let (head, body) = response.into_parts();
            // The whole body is in memory, so reading it cannot fail.
            let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
            http::Response::from_parts(head, body)
        })
    })
}

enum RequestAdmission {
    Allowed,
    Unauthorized,
    OutsideApi,
    Down,
    Faulty(RequestFault),
}

async fn guard_request(State(guard): State<RequestGuard>, request: Request<Body>, next: Next) -> Response {
    match guard.admit_request(&request) {
        RequestAdmission::Allowed | RequestAdmission::Faulty(RequestFault::NoFault) => {
            with_server_headers(guard.identity, next.run(request).await)
        }
        RequestAdmission::OutsideApi => next.run(request).await,
        RequestAdmission::Unauthorized => StatusCode::UNAUTHORIZED.into_response(),
        RequestAdmission::Down => responses::starting_response(guard.identity),
        RequestAdmission::Faulty(RequestFault::Status(status)) => responses::failure_response(status),
        RequestAdmission::Faulty(RequestFault::Hang) => pending().await,
        RequestAdmission::Faulty(RequestFault::Html) => html_page(),
        RequestAdmission::Faulty(RequestFault::DropResponse) => {
            drop(next.run(request).await);
            pending().await
        }
        RequestAdmission::Faulty(RequestFault::Truncated) => {
            let body = to_bytes(next.run(request).await.into_body(), usize::MAX).await.unwrap_or_default();
            body.slice(..body.len() / 2).into_response()
        }
        RequestAdmission::Faulty(RequestFault::CompletedWithStatus(status)) => {
            drop(next.run(request).await);
            responses::failure_response(status)
        }
    }
}

fn with_server_headers(identity: &'static ServerIdentity, mut response: Response) -> Response {
    let version = HeaderValue::from_static(identity.version);
    response.headers_mut().insert(HeaderName::from_static("x-application-version"), version);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    response
}

/// Serves all other paths like the web interface: redirects to its sign-in page.
async fn web_interface(method: Method, uri: Uri) -> Response {
    if method == Method::GET {
        let login = format!("/login?returnUrl={}", uri.path());
        (StatusCode::FOUND, [(LOCATION, login)]).into_response()
    } else {
        StatusCode::METHOD_NOT_ALLOWED.into_response()
    }
}

fn html_page() -> Response {
    let html = "<!doctype html><html><head><title>Login</title></head><body></body></html>";
    ([(CONTENT_TYPE, "text/html")], html).into_response()
}
