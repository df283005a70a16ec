//! The console: what the operator watches and decides in a browser. A file per page, its template beside it.

pub(super) mod assets;
mod frame;
pub(super) mod home;

use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::engine::Engine;
use crate::metrics::Metrics;
use crate::store::db::Db;
use crate::web::sse::Places;
use crate::web::health::Health;

/// What the pages, the streams and the API work with.
#[derive(Clone)]
pub struct Console {
    pub engine: Engine,
    pub db: Db,
    pub clock: Clock,
    /// In which times are shown.
    pub zone: TimeZone,
    /// Ends the streams, so that the listener can close.
    pub stop: CancellationToken,
    pub streams: Places,
    pub metrics: Metrics,
    pub health: Health,
}
