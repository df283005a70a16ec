//! Shared state of the handlers on the listener of the console and the API.

use std::sync::Arc;

use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;

use super::auth::ConsoleAccess;
use super::health::HealthChecker;
use super::posters::PosterCache;
use super::stream_limit::StreamLimit;
use crate::clock::Clock;
use crate::connections::states::ConnectionStates;
use crate::doctor::connection_test::ConnectionTester;
use crate::engine::Engine;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::settings::LiveSettings;
use crate::store::database::db::Db;

/// Shared state of the handlers of the pages, the streams and the API.
#[derive(Clone)]
pub struct ConsoleState {
    pub engine: Arc<Engine>,
    pub db: Db,
    pub clock: Clock,
    /// Access rules of the console and the API, and their state.
    pub access: Arc<ConsoleAccess>,
    /// Token that ends the streams, so that the listener can close.
    pub stop: CancellationToken,
    pub streams: StreamLimit,
    pub posters: PosterCache,
    pub metrics: Metrics,
    pub health: HealthChecker,
    /// Connection tests of the health page.
    pub connection_tester: Live<ConnectionTester>,
    pub connections: ConnectionStates,
    /// Stored settings; `None` with simulated peers.
    pub settings: Option<LiveSettings>,
}

impl ConsoleState {
    /// Returns the time zone in which times are shown.
    pub(super) fn zone(&self) -> TimeZone {
        self.engine.settings().zone.clone()
    }
}
