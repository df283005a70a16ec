//! Tasks that run beside the turns.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::clock_watch::ClockWatch;
use crate::engine::Engine;
use crate::heartbeat::Heartbeat;
use crate::live::Live;
use crate::maintenance::Maintenance;
use crate::messaging::outbox_relay::OutboxRelay;
use crate::missed_message_poller::{MissedMessagePoller, MissedMessageSource};
use crate::store::database::db::DbError;
use crate::store::database::file_watch::log_displaced_files;

/// Tasks that run beside the turns.
pub(crate) struct BackgroundTasks {
    pub(crate) relay: JoinHandle<()>,
    pub(crate) missed_messages: JoinHandle<()>,
    pub(crate) maintenance: JoinHandle<()>,
    pub(crate) addition_retries: JoinHandle<()>,
    pub(crate) indexing: JoinHandle<()>,
    pub(crate) file_watch: JoinHandle<()>,
    pub(crate) clock_watch: JoinHandle<()>,
    pub(crate) heartbeat: JoinHandle<()>,
}

impl BackgroundTasks {
    pub(crate) async fn spawn(
        engine: &Arc<Engine>,
        relay: &OutboxRelay,
        source: Live<Option<MissedMessageSource>>,
        maintenance: &Maintenance,
    ) -> Result<Self, DbError> {
        let Maintenance { db, clock, stop, .. } = maintenance;
        let clock_watch = ClockWatch { engine: engine.clone(), clock: clock.clone() };
        let clock_watch = tokio::spawn(clock_watch.run(stop.clone()));
        let heartbeat = Heartbeat { db: db.clone(), clock: clock.clone() };
        let heartbeat = tokio::spawn(heartbeat.run(stop.clone()));
        let relay = tokio::spawn({
            let (relay, stop) = (relay.clone(), stop.clone());
            async move { relay.run(stop).await }
        });
        if source.current().is_none() {
            engine.scheduler.recover_work().await?;
        }
        let poller =
            MissedMessagePoller { source, engine: engine.clone(), db: db.clone(), clock: clock.clone() };
        let missed_messages = tokio::spawn(poller.run(stop.clone()));
        let addition_retries = tokio::spawn(engine.additions.clone().run(stop.clone()));
        let indexing = tokio::spawn(engine.indexer.clone().run(stop.clone()));
        let file_watch = tokio::spawn(log_displaced_files(db.clone(), stop.clone()));
        engine.start_notifications();
        Ok(Self {
            relay,
            missed_messages,
            maintenance: tokio::spawn(maintenance.clone().run()),
            addition_retries,
            indexing,
            clock_watch,
            heartbeat,
            file_watch,
        })
    }
}
