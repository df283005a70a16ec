//! Shared state of the handlers on the listener of the console and the API.

use std::sync::Arc;

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;

use super::auth::ConsoleAccess;
use super::health::HealthChecker;
use super::stream_limit::StreamLimit;
use crate::clock::Clock;
use crate::doctor::connection_test::ConnectionTester;
use crate::engine::Engine;
use crate::metrics::Metrics;
use crate::store::database::db::Db;

/// Shared state of the handlers of the pages, the streams and the API.
#[derive(Clone)]
pub struct ConsoleState {
    pub engine: Arc<Engine>,
    pub db: Db,
    pub clock: Clock,
    /// Time zone in which times are shown.
    pub zone: TimeZone,
    /// Access rules of the console and the API, and their state.
    pub access: Arc<ConsoleAccess>,
    /// Period for which the text of messages is stored.
    pub retention: SignedDuration,
    /// Token that ends the streams, so that the listener can close.
    pub stop: CancellationToken,
    pub streams: StreamLimit,
    /// Size of the model's context window in tokens, if configured.
    pub context_window: Option<u64>,
    pub metrics: Metrics,
    pub health: HealthChecker,
    /// Connection tests of the health page.
    pub connection_tester: ConnectionTester,
}
