//! Simulated Seerr with users, rights, quotas, requests and issues, for tests and the demo.

mod responder;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use bytes::Bytes;
use http::{Method, Request, Response};
use secrecy::SecretString;

use crate::clock::Clock;
use crate::conversation::transcript::MediaKind;
use crate::http::InProcess;
use crate::server_api::fake::{self, FakeEndpoint, FakeFaults, empty_response, faulty_response};
use state::SeerrState;

pub use state::{FakeIssue, FakeSeerrRequest, FakeSeerrUser, Permission};

/// Simulated Seerr. Clones share its state.
#[derive(Debug, Clone)]
pub struct FakeSeerr {
    key: String,
    clock: Clock,
    state: Arc<Mutex<SeerrState>>,
    titles: Option<TitleAnswers>,
}

/// Server that answers the questions about titles.
#[derive(Clone)]
struct TitleAnswers(InProcess);

impl std::fmt::Debug for TitleAnswers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TitleAnswers")
    }
}

/// Fault of the next write, which is carried out or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFault {
    /// The write is carried out, but its answer is lost: a proxy answers instead.
    LostAnswer,
    /// The write is carried out, but there is no answer.
    NoAnswer,
    /// The write fails with this status.
    Failed(u16),
}

impl FakeSeerr {
    /// Creates a Seerr with this key, whose only user is its owner, with the id 1.
    pub fn new(key: &str, clock: Clock) -> Self {
        let mut state = SeerrState::default();
        state.add_user("Owner", Permission::ADMIN);
        Self { key: key.to_owned(), clock, state: Arc::new(Mutex::new(state)), titles: None }
    }

    /// Lets another server answer the questions about titles. Without one, no title is found.
    #[must_use]
    pub fn with_titles(self, titles: InProcess) -> Self {
        Self { titles: Some(TitleAnswers(titles)), ..self }
    }

    pub fn key(&self) -> SecretString {
        SecretString::from(self.key.as_str())
    }

    /// Returns the server without a socket.
    pub fn in_process(&self) -> InProcess {
        fake::in_process(self)
    }

    /// Returns the server as a router, for use behind a socket.
    pub fn router(&self) -> Router {
        fake::router(self)
    }

    /// Adds a user with these permissions, and returns its id.
    pub fn add_user(&self, name: &str, permissions: u32) -> i64 {
        self.lock_state().add_user(name, permissions)
    }

    /// Changes a user, such as its quota or its account at Jellyfin.
    pub fn edit_user(&self, id: i64, change: impl FnOnce(&mut FakeSeerrUser)) {
        if let Some(user) = self.lock_state().users.iter_mut().find(|user| user.id == id) {
            change(user);
        }
    }

    pub fn remove_user(&self, id: i64) {
        self.lock_state().users.retain(|user| user.id != id);
    }

    /// Makes a request as a user, as at its website, and returns its id.
    pub fn request_movie(&self, user: i64, tmdb: i64) -> i64 {
        let now = self.clock.now();
        self.lock_state().add_request(user, (MediaKind::Movie, tmdb, None), (Vec::new(), false), now)
    }

    /// Makes a request for seasons as a user, as at its website, and returns its id.
    pub fn request_seasons(&self, user: i64, (tmdb, tvdb): (i64, i64), seasons: &[u32]) -> i64 {
        let now = self.clock.now();
        let title = (MediaKind::Series, tmdb, Some(tvdb));
        self.lock_state().add_request(user, title, (seasons.to_vec(), false), now)
    }

    /// Sets the status of a request, as a decision at the website or a failure does.
    pub fn set_request_status(&self, id: i64, status: i64) {
        if let Some(request) = self.lock_state().requests.iter_mut().find(|request| request.id == id) {
            request.status = status;
        }
    }

    pub fn remove_request(&self, id: i64) {
        self.lock_state().requests.retain(|request| request.id != id);
    }

    /// Records that a scan found a title.
    pub fn add_media(&self, kind: MediaKind, tmdb: i64) -> i64 {
        self.lock_state().media_id((kind, tmdb, None))
    }

    /// Lets requests for a movie be refused.
    pub fn blocklist(&self, tmdb: i64) {
        self.lock_state().blocklist.push(tmdb);
    }

    /// Returns the requests, oldest first.
    pub fn requests(&self) -> Vec<FakeSeerrRequest> {
        self.lock_state().requests.clone()
    }

    /// Returns the issues, oldest first.
    pub fn issues(&self) -> Vec<FakeIssue> {
        self.lock_state().issues.clone()
    }

    /// Returns the id of the user, the method and the path of each call.
    pub fn calls(&self) -> Vec<String> {
        self.lock_state().calls.clone()
    }

    /// Lets the next write fail in this way.
    pub fn fail_next_write(&self, fault: WriteFault) {
        self.lock_state().write_faults.push_back(fault);
    }

    /// Lets every call fail with a status, or succeed again.
    pub fn set_status(&self, status: Option<u16>) {
        self.lock_state().faults.status = status;
    }

    /// Lets every call wait without a response.
    pub fn set_silent(&self, is_silent: bool) {
        self.lock_state().faults.is_silent = is_silent;
    }

    fn lock_state(&self) -> MutexGuard<'_, SeerrState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn handle_request(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let (faults, fault): (FakeFaults, Option<WriteFault>) = {
            let mut state = self.lock_state();
            state.record_call(request);
            let fault = if request.method() == Method::POST { state.write_faults.pop_front() } else { None };
            (state.faults, fault)
        };
        if let Some(response) = faulty_response(faults).await {
            return response;
        }
        if let Some(WriteFault::Failed(status)) = fault {
            return empty_response(status);
        }
        let response = responder::respond(&mut self.lock_state(), request, (&self.key, self.clock.now()));
        let response = match (response, &self.titles) {
            (Some(response), _) => response,
            (None, Some(TitleAnswers(titles))) => titles(request.clone()).await,
            (None, None) => empty_response(404),
        };
        match fault {
            Some(WriteFault::LostAnswer) => empty_response(504),
            Some(WriteFault::NoAnswer) => std::future::pending().await,
            Some(WriteFault::Failed(_)) | None => response,
        }
    }
}

impl FakeEndpoint for FakeSeerr {
    async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        self.handle_request(&request).await
    }
}
