//! Checks before every request: the API key, and the configured faults of a server.

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

/// Fault of one API request: the next request that has no fault assigned yet.
#[derive(Debug, Clone, Copy)]
pub(super) enum RequestFault {
    /// No fault: the request is processed normally.
    Nothing,
    Status(u16),
    Hang,
    Html,
    LoseAnswer,
    /// Response that is cut off after its first half.
    Half,
    /// Response with this status, although the request is carried out.
    DoneBut(u16),
}

#[derive(Debug, Clone)]
pub(super) struct RequestGuard {
    identity: &'static ServerIdentity,
    state: Arc<Mutex<GateState>>,
}

#[derive(Debug, Default)]
struct GateState {
    faults: VecDeque<RequestFault>,
    /// Faults that wait for a request that changes data.
    write_faults: VecDeque<RequestFault>,
    /// Path for which every write fails, and the status.
    refused_writes: Option<(&'static str, u16)>,
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
        self.lock_state().refused_writes = Some((path, status));
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

    /// Places the guard in front of `api`, which is served under `/api/v3`, together with the other routes of a real
    /// server.
    pub(super) fn guard_router(&self, api: Router) -> Router {
        let ping = || async { axum::Json(serde_json::json!({ "status": "OK" })) };
        Router::new()
            .nest("/api/v3", api.fallback(|| async { StatusCode::NOT_FOUND }))
            .route("/ping", axum::routing::get(ping))
            .fallback(user_interface)
            .layer(from_fn_with_state(self.clone(), pass_or_fail))
    }

    fn admit_request(&self, request: &Request<Body>) -> RequestAdmission {
        let mut state = self.lock_state();
        if state.down {
            return RequestAdmission::Down;
        }
        if !request.uri().path().starts_with("/api/") {
            return RequestAdmission::Outside;
        }
        let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
        if writes {
            state.writes += 1;
        }
        let whole = ["/api/v3/movie", "/api/v3/series"].contains(&request.uri().path());
        let names_one = request.uri().query().is_some_and(|query| query.contains("Id="));
        if whole && !writes && !names_one {
            state.lists += 1;
        }
        let given = request.headers().get("x-api-key").map(HeaderValue::as_bytes);
        if given != Some(self.identity.api_key.as_bytes()) {
            return RequestAdmission::Stranger;
        }
        let refused = state.refused_writes.filter(|(path, _)| writes && request.uri().path().ends_with(path));
        if let Some((_, status)) = refused {
            return RequestAdmission::Faulty(RequestFault::Status(status));
        }
        let of_write = if writes { state.write_faults.pop_front() } else { None };
        of_write
            .or_else(|| state.faults.pop_front())
            .map_or(RequestAdmission::Welcome, RequestAdmission::Faulty)
    }

    fn lock_state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls a router without a socket.
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
    Welcome,
    Stranger,
    Outside,
    Down,
    Faulty(RequestFault),
}

async fn pass_or_fail(State(gate): State<RequestGuard>, request: Request<Body>, next: Next) -> Response {
    match gate.admit_request(&request) {
        RequestAdmission::Welcome | RequestAdmission::Faulty(RequestFault::Nothing) => {
            with_server_name(gate.identity, next.run(request).await)
        }
        RequestAdmission::Outside => next.run(request).await,
        RequestAdmission::Stranger => StatusCode::UNAUTHORIZED.into_response(),
        RequestAdmission::Down => responses::starting_response(gate.identity),
        RequestAdmission::Faulty(RequestFault::Status(status)) => responses::failure_response(status),
        RequestAdmission::Faulty(RequestFault::Hang) => pending().await,
        RequestAdmission::Faulty(RequestFault::Html) => html_page(),
        RequestAdmission::Faulty(RequestFault::LoseAnswer) => {
            drop(next.run(request).await);
            pending().await
        }
        RequestAdmission::Faulty(RequestFault::Half) => {
            let body = to_bytes(next.run(request).await.into_body(), usize::MAX).await.unwrap_or_default();
            body.slice(..body.len() / 2).into_response()
        }
        RequestAdmission::Faulty(RequestFault::DoneBut(status)) => {
            drop(next.run(request).await);
            responses::failure_response(status)
        }
    }
}

fn with_server_name(identity: &'static ServerIdentity, mut response: Response) -> Response {
    let version = HeaderValue::from_static(identity.version);
    response.headers_mut().insert(HeaderName::from_static("x-application-version"), version);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    response
}

/// Serves every other path, which belongs to the web interface behind its own sign-in.
async fn user_interface(method: Method, uri: Uri) -> Response {
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
