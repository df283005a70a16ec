//! Console: the operator's view and decisions in a browser. Each page has one file, with its template next to it.

mod answers;
pub(super) mod assets;
pub(super) mod audit;
mod audit_labels;
pub(super) mod changing;
mod chart;
pub(super) mod deliveries;
pub(super) mod facts;
mod fates;
mod frame;
pub(super) mod health;
pub(super) mod home;
pub(super) mod keys;
pub(super) mod memory;
mod said;
pub(super) mod sign_in;
pub(super) mod spend;
pub(super) mod talk;
mod trouble;
pub(super) mod user;
pub(super) mod users;
mod words;

use std::sync::Arc;

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::doctor::checkup::Checkup;
use crate::engine::Engine;
use crate::metrics::Metrics;
use crate::store::db::Db;
use crate::web::auth::Access;
use crate::web::health::Health;
use crate::web::places::Places;

/// Shared dependencies of the pages, the streams and the API.
#[derive(Clone)]
pub struct Console {
    pub engine: Engine,
    pub db: Db,
    pub clock: Clock,
    /// Time zone in which times are shown.
    pub zone: TimeZone,
    /// Access control of the console.
    pub access: Arc<Access>,
    /// Retention period for the text of messages.
    pub retention: SignedDuration,
    /// Token that ends the streams, so that the listener can close.
    pub stop: CancellationToken,
    pub streams: Places,
    /// Tokens that the model can read at once, if configured.
    pub context_window: Option<u64>,
    pub metrics: Metrics,
    pub health: Health,
    /// Tests of the health page.
    pub checkup: Checkup,
}
