//! Tasks that run beside the turns.

use tokio::task::JoinHandle;

use crate::alerts::alerter::Alerter;
use crate::channel_poller::{ChannelPoller, PolledChannels};
use crate::clock_watch::ClockWatch;
use crate::connections::monitor::ConnectionMonitor;
use crate::heartbeat::Heartbeat;
use crate::live::Live;
use crate::maintenance::Maintenance;
use crate::messaging::outbox_relay::OutboxRelay;
use crate::store::database::db::DbError;
use crate::store::database::file_watch::log_displaced_files;

/// Tasks that run beside the turns.
pub(crate) struct BackgroundTasks {
    pub(crate) relay: JoinHandle<()>,
    pub(crate) connections: JoinHandle<()>,
    pub(crate) alerts: JoinHandle<()>,
    pub(crate) channel_poller: JoinHandle<()>,
    pub(crate) maintenance: JoinHandle<()>,
    pub(crate) addition_retries: JoinHandle<()>,
    pub(crate) indexing: JoinHandle<()>,
    pub(crate) file_watch: JoinHandle<()>,
    pub(crate) clock_watch: JoinHandle<()>,
    pub(crate) heartbeat: JoinHandle<()>,
}

impl BackgroundTasks {
    pub(crate) async fn spawn(
        (monitor, alerter): (&ConnectionMonitor, &Alerter),
        relay: &OutboxRelay,
        polled: Live<PolledChannels>,
        maintenance: &Maintenance,
    ) -> Result<Self, DbError> {
        let Maintenance { engine, db, clock, stop } = maintenance;
        let connections = tokio::spawn(monitor.clone().run(stop.clone()));
        let alerts = tokio::spawn(alerter.clone().run(stop.clone()));
        let clock_watch = ClockWatch { engine: engine.clone(), clock: clock.clone() };
        let clock_watch = tokio::spawn(clock_watch.run(stop.clone()));
        let heartbeat =
            Heartbeat { db: db.clone(), clock: clock.clone(), error: monitor.heartbeat_error.clone() };
        let heartbeat = tokio::spawn(heartbeat.run(stop.clone()));
        let metrics = relay.metrics();
        let relay = tokio::spawn({
            let (relay, stop) = (relay.clone(), stop.clone());
            async move { relay.run(stop).await }
        });
        if polled.current().0.is_empty() {
            engine.scheduler.recover_work().await?;
        }
        let poller = ChannelPoller {
            channels: polled,
            engine: engine.clone(),
            db: db.clone(),
            clock: clock.clone(),
            metrics,
        };
        let channel_poller = tokio::spawn(poller.run(stop.clone()));
        let addition_retries = tokio::spawn(engine.additions.clone().run(stop.clone()));
        let indexing = tokio::spawn(engine.indexer.clone().run(stop.clone()));
        let file_watch = tokio::spawn(log_displaced_files(db.clone(), stop.clone()));
        engine.start_notifications();
        Ok(Self {
            relay,
            connections,
            alerts,
            channel_poller,
            maintenance: tokio::spawn(maintenance.clone().run()),
            addition_retries,
            indexing,
            clock_watch,
            heartbeat,
            file_watch,
        })
    }
}
