//! Connections that wait for a request. When a listener has no slot left, the connection that has waited longest makes
//! room for a new one.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Idle connections of one listener; clones share them.
#[derive(Clone, Default)]
pub(super) struct IdleConnections(Arc<IdleInner>);

#[derive(Default)]
struct IdleInner {
    table: Mutex<IdleTable>,
    /// Notified when a connection becomes idle.
    became_idle: Notify,
}

#[derive(Default)]
struct IdleTable {
    last_number: u64,
    /// Signals that close the idle connections, the longest idle first.
    idle: BTreeMap<u64, CancellationToken>,
}

/// Activity of one connection, which is idle from its opening to the header of its first request, and from the end of a
/// response to the next header.
pub(super) struct ConnectionActivity {
    connections: IdleConnections,
    closing: CancellationToken,
    /// Number of the entry in the table while the connection is idle.
    idle_number: Mutex<Option<u64>>,
}

/// Request in progress. The connection is idle again once this value is dropped.
pub(super) struct ActiveRequest(Arc<ConnectionActivity>);

/// Response body during which its connection is not idle.
pub(super) struct TrackedBody {
    body: Body,
    _request: ActiveRequest,
}

impl IdleConnections {
    /// Adds a connection that was just opened.
    pub(super) fn add_connection(&self) -> Arc<ConnectionActivity> {
        let closing = CancellationToken::new();
        let idle_number = Mutex::new(Some(self.add_idle(closing.clone())));
        Arc::new(ConnectionActivity { connections: self.clone(), closing, idle_number })
    }

    /// Closes the connection that has been idle longest. Returns false if no connection is idle.
    pub(super) fn close_longest_idle(&self) -> bool {
        let longest_idle = self.lock_table().idle.pop_first();
        longest_idle.inspect(|(_, closing)| closing.cancel()).is_some()
    }

    /// Waits until another connection becomes idle.
    pub(super) async fn wait_for_idle(&self) {
        self.0.became_idle.notified().await;
    }

    fn add_idle(&self, closing: CancellationToken) -> u64 {
        let mut table = self.lock_table();
        table.last_number += 1;
        let number = table.last_number;
        table.idle.insert(number, closing);
        self.0.became_idle.notify_one();
        number
    }

    fn lock_table(&self) -> MutexGuard<'_, IdleTable> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionActivity {
    /// Ends the idle time of the connection until the returned value is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        self.end_idle_time();
        ActiveRequest(self.clone())
    }

    pub(super) fn is_idle(&self) -> bool {
        self.lock_idle_number().is_some()
    }

    /// Waits until the connection has to make room for another one.
    pub(super) async fn wait_closing(&self) {
        self.closing.cancelled().await;
    }

    fn end_idle_time(&self) {
        if let Some(number) = self.lock_idle_number().take() {
            self.connections.lock_table().idle.remove(&number);
        }
    }

    fn lock_idle_number(&self) -> MutexGuard<'_, Option<u64>> {
        self.idle_number.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let number = self.0.connections.add_idle(self.0.closing.clone());
        *self.0.lock_idle_number() = Some(number);
    }
}

impl Drop for ConnectionActivity {
    fn drop(&mut self) {
        self.end_idle_time();
    }
}

impl TrackedBody {
    pub(super) fn new(body: Body, request: ActiveRequest) -> Self {
        Self { body, _request: request }
    }
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
