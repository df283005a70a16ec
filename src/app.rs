//! Composition root: starts the program from a blueprint, with real or simulated peers, and shuts it down.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::SecretString;
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;

use crate::access_rules::AccessRules;
use crate::alerts::alerter::Alerter;
use crate::background_tasks::BackgroundTasks;
use crate::channel_poller::PolledChannels;
use crate::clock::Clock;
use crate::config::Config;
use crate::configured_users::{self, ConfiguredUsers};
use crate::connections::monitor::ConnectionMonitor;
use crate::conversation::channel_list;
use crate::conversation::transcript::PhoneNumber;
use crate::doctor::connection_test::{ConnectionTester, TestedParts};
use crate::doctor::phone::PublicAddress;
use crate::engine::clock_step::end_uncertain_waits;
use crate::engine::send_time::reschedule_notifications;
use crate::engine::service_moves::end_work_on_earlier_servers;
use crate::engine::{Engine, EngineConfiguration, EngineParts, HouseholdSettings};
use crate::live::Live;
use crate::llm::Model;
use crate::llm::embeddings::Embedder;
use crate::maintenance::Maintenance;
use crate::messaging::ChannelPort;
use crate::messaging::alert_sender::AlertSender;
use crate::messaging::channel_ports::ChannelPorts;
use crate::messaging::outbox_relay::{self, OutboxRelay, OutboxSignal, RelaySettings};
use crate::messaging::smsgate::SmsGate;
use crate::messaging::telegram::Telegram;
use crate::messaging::twilio::Twilio;
use crate::metrics::Metrics;
use crate::settings::LiveSettings;
use crate::store::boot::{self, Downtime};
use crate::store::database::db::{Db, DbError};
use crate::store::service_identities::{self, ServiceIdentity};
use crate::store::turns::{budget_blocks, running_calls::RunningCalls};
use crate::store::{Conn, QueryResult};
use crate::tool_list::{all_tool_names, all_tools};
use crate::tools::library::ArrInstances;
use crate::tools::registry::ToolRegistry;
use crate::web::auth::{ConsoleAccess, PasswordError};
use crate::web::console_state::ConsoleState;
use crate::web::health::HealthChecker;
use crate::web::posters::PosterCache;
use crate::web::stream_limit::StreamLimit;
use crate::web::{WebhookSettings, WebhookState};

/// Grace period for running turns after a shutdown signal. With the steps that follow, the program exits within 10 s.
const TURN_GRACE_PERIOD: Duration = Duration::from_secs(6);
/// Grace period for each background task after the turns have ended.
const TASK_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Configured dependencies from which a program is started, with real or simulated peers, and which can be replaced
/// while it runs.
#[derive(Clone)]
pub struct AppBlueprint {
    pub settings: HouseholdSettings,
    pub admin: Option<PhoneNumber>,
    pub members: Vec<PhoneNumber>,
    pub model: Option<Arc<dyn Model>>,
    /// Embedder that turns text into vectors; without it, only full-text search is used.
    pub embedder: Option<Arc<dyn Embedder>>,
    pub library: ArrInstances,
    /// Channels by which messages are sent and received.
    pub channels: ChannelPorts,
    /// Whether the channels' lists of received messages are polled.
    pub polling: Polling,
    /// Secret that Sonarr and Radarr must present with their events; without it, no events are accepted.
    pub arr_secret: Option<SecretString>,
    /// Configuration with which the health page tests connections; `None` with simulated peers.
    pub config: Option<Arc<Config>>,
    /// Clients of the configured Twilio account, phone and bot, whose settings are tested.
    pub twilio: Option<Arc<Twilio>>,
    pub smsgate: Option<Arc<SmsGate>>,
    pub telegram: Option<Arc<Telegram>>,
    /// Public address of the webhooks; `None` without an account.
    pub public_address: Option<PublicAddress>,
    /// Sender of alerts to the operator; `None` without a target.
    pub alerts: Option<AlertSender>,
    /// Access rules of the console.
    pub console: AccessRules,
}

/// Polling of the channels' lists of received messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polling {
    On,
    /// Another program polls, or none.
    Off,
}

impl AppBlueprint {
    fn configured_users(&self) -> ConfiguredUsers<'_> {
        ConfiguredUsers { admin: self.admin.as_ref(), members: &self.members }
    }

    fn polled_channels(&self) -> PolledChannels {
        match self.polling {
            Polling::On => {
                let has_source = |port: &&Arc<dyn ChannelPort>| port.source().is_some();
                PolledChannels(self.channels.iter().filter(has_source).cloned().collect())
            }
            Polling::Off => PolledChannels::default(),
        }
    }

    fn engine_configuration(&self) -> EngineConfiguration {
        let library = Arc::new(self.library.clone());
        EngineConfiguration {
            settings: self.settings.clone(),
            model: self.model.clone(),
            embedder: self.embedder.clone(),
            tools: Arc::new(ToolRegistry::new(all_tools(&library, self.settings.pictures))),
            library,
            channels: self.channels.clone(),
        }
    }

    fn relay_settings(&self) -> RelaySettings {
        RelaySettings {
            channels: self.channels.clone(),
            senders: self.settings.senders.clone(),
            acceptance_policy: self.settings.acceptance_policy(),
            lookup_delays: self.settings.recovery_delays.lookup_delays,
        }
    }

    fn webhook_settings(&self) -> WebhookSettings {
        WebhookSettings {
            acceptance_policy: self.settings.acceptance_policy(),
            channels: self.channels.clone(),
            arr_secret: self.arr_secret.clone(),
        }
    }

    /// Returns the server behind each configured slot.
    fn identities(&self) -> Vec<ServiceIdentity> {
        let account = |port: &Arc<dyn ChannelPort>| {
            Some((port.channel().profile().account_slot, port.account_identity()?))
        };
        let services = self.library.identities().into_iter().chain(self.channels.iter().filter_map(account));
        services.map(|(slot, identity)| ServiceIdentity { slot, identity }).collect()
    }

    fn connection_tester(&self, engine: &Engine, test_ended: &Arc<Notify>) -> ConnectionTester {
        ConnectionTester::new(TestedParts {
            library: self.library.clone(),
            config: self.config.clone(),
            embedder: self.embedder.clone(),
            floor: self.settings.similarity_floor,
            alerts: self.alerts.clone(),
            carrier: self.channels.get(channel_list::TWILIO),
            twilio: self.twilio.clone(),
            smsgate: self.smsgate.clone(),
            telegram: self.telegram.clone(),
            models: engine.model_caller(),
            test_ended: test_ended.clone(),
            public_address: self.public_address.clone(),
        })
    }
}

/// Running program.
pub struct App {
    pub engine: Arc<Engine>,
    pub relay: OutboxRelay,
    pub webhooks: WebhookState,
    pub console: ConsoleState,
    pub db: Db,
    clock: Clock,
    stop: CancellationToken,
    maintenance: Maintenance,
    monitor: ConnectionMonitor,
    alerter: Alerter,
    polled: Live<PolledChannels>,
    /// Blueprint of the parts that are in use.
    blueprint: Mutex<AppBlueprint>,
    tasks: BackgroundTasks,
}

/// Error that prevents the program from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("recover the work of the last run")]
    LastRun(#[from] DbError),
    #[error("apply the console password")]
    Password(#[from] PasswordError),
}

/// Error that prevents a changed blueprint from taking effect.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("register the configured users")]
    Users(#[from] DbError),
    #[error("apply the console password")]
    Password(#[from] PasswordError),
}

/// Starts a run in the database, with the configured users, and returns its start time, which is the time of the wall
/// clock.
async fn begin_run(db: &Db, clock: &Clock, blueprint: &AppBlueprint) -> Result<Timestamp, DbError> {
    clock.adopt_step();
    let (now, boot_id) = (clock.now(), db.boot_id().map(str::to_owned));
    let blueprint = blueprint.clone();
    let begin = move |conn: &mut Conn| {
        budget_blocks::discard_blocks_of_boot(conn, boot_id.as_deref())?;
        initialize_store(conn, &blueprint, now)
    };
    if let Downtime::Uncertain(step) = db.write(begin).await? {
        let seconds = step.unsigned_abs().as_secs();
        tracing::warn!(seconds, "wall clock is behind the last run, downtime is unknown");
    }
    Ok(now)
}

impl App {
    /// Registers the configured users, resumes unfinished work and starts to send messages.
    pub async fn start(db: Db, clock: Clock, blueprint: AppBlueprint) -> Result<Self, StartError> {
        let now = begin_run(&db, &clock, &blueprint).await?;
        let metrics = Metrics::new(all_tool_names(), now);
        let access = Arc::new(ConsoleAccess::from_rules(blueprint.console.clone(), &db, now).await?);
        let (signal, stop) = (OutboxSignal::default(), CancellationToken::new());
        let engine = Arc::new(Engine::new(&EngineParts {
            db: db.clone(),
            clock: clock.clone(),
            metrics: metrics.clone(),
            outbox: signal.clone(),
            running_calls: RunningCalls::default(),
            live: Live::new(blueprint.engine_configuration().into_parts(None, &clock, &metrics)),
        }));
        let relay = OutboxRelay::new(outbox_relay::RelayParts {
            db: db.clone(),
            clock: clock.clone(),
            settings: Live::new(blueprint.relay_settings()),
            signal,
            metrics: metrics.clone(),
        });
        let maintenance =
            Maintenance { engine: engine.clone(), db: db.clone(), clock: clock.clone(), stop: stop.clone() };
        let polled = Live::new(blueprint.polled_channels());
        let test_ended = Arc::default();
        let connection_tester = Live::new(blueprint.connection_tester(&engine, &test_ended));
        let monitor = ConnectionMonitor::new(&maintenance, (connection_tester.clone(), test_ended));
        let alerter = Alerter::new(&monitor, Live::new(blueprint.alerts.clone()));
        let tasks =
            BackgroundTasks::spawn((&monitor, &alerter), &relay, polled.clone(), &maintenance).await?;
        let health = HealthChecker::new(db.clone(), clock.clone());
        let webhooks = WebhookState {
            admission: engine.admission.clone(),
            gestures: engine.gestures.clone(),
            arr_events: engine.arr_events.clone(),
            db: db.clone(),
            clock: clock.clone(),
            settings: Live::new(blueprint.webhook_settings()),
            metrics: metrics.clone(),
            health: health.clone(),
        };
        let console = ConsoleState {
            engine: engine.clone(),
            db: db.clone(),
            clock: clock.clone(),
            access,
            stop: stop.clone(),
            streams: StreamLimit::default(),
            posters: PosterCache::new(db.folder().join("posters")),
            metrics,
            health,
            connection_tester,
            connections: monitor.states.clone(),
            settings: None,
        };
        Ok(Self {
            engine,
            relay,
            webhooks,
            console,
            db,
            clock,
            stop,
            maintenance,
            monitor,
            alerter,
            polled,
            blueprint: Mutex::new(blueprint),
            tasks,
        })
    }

    /// Offers the stored settings in the console. Call this before the listener opens.
    #[must_use]
    pub fn with_settings(mut self, settings: LiveSettings) -> Self {
        self.console.settings = Some(settings);
        self
    }

    /// Replaces the configured parts by those of a blueprint that `change` makes from the current one. Running turns end
    /// on the parts with which they began. If anything fails, the current parts stay in use.
    pub async fn change_blueprint<E: From<ApplyError>>(
        &self,
        change: impl FnOnce(&AppBlueprint) -> Result<AppBlueprint, E>,
    ) -> Result<(), E> {
        let mut current = self.blueprint.lock().await;
        let changed = change(&current)?;
        self.apply_blueprint(&changed, current.admin.clone()).await?;
        *current = changed;
        Ok(())
    }

    async fn apply_blueprint(
        &self,
        blueprint: &AppBlueprint,
        earlier_admin: Option<PhoneNumber>,
    ) -> Result<(), ApplyError> {
        let now = self.clock.now();
        let prepared = blueprint.clone();
        let prepare = move |conn: &mut Conn| {
            let (configured, senders) = (prepared.configured_users(), &prepared.settings.senders);
            configured_users::register_users(conn, configured, now)?;
            configured_users::change_admin(conn, earlier_admin.as_ref(), configured, senders, now)?;
            end_work_on_earlier_servers(conn, &prepared.identities(), &prepared.settings, now)
        };
        self.db.write(prepare).await?;
        self.console.access.apply_rules(blueprint.console.clone(), &self.db, now).await?;
        // From here on, nothing waits or fails, so that all parts are replaced together.
        self.engine.apply_configuration(blueprint.engine_configuration());
        self.relay.apply_settings(blueprint.relay_settings());
        self.webhooks.settings.replace(blueprint.webhook_settings());
        let tester = blueprint.connection_tester(&self.engine, &self.monitor.test_ended);
        self.console.connection_tester.replace(tester);
        self.alerter.sender.replace(blueprint.alerts.clone());
        let polled = blueprint.polled_channels();
        if *self.polled.current() != polled {
            self.polled.replace(polled);
        }
        if let Err(error) = self.finish_change(blueprint.clone()).await {
            // The next start or change finds the earlier identities and finishes this one.
            tracing::error!(%error, "failed to store the end of a changed configuration");
        }
        Ok(())
    }

    /// Ends the work that turns began on earlier servers while the parts were replaced, and applies the quiet hours to
    /// waiting notifications.
    async fn finish_change(&self, blueprint: AppBlueprint) -> Result<(), DbError> {
        let now = self.clock.now();
        let finish = move |conn: &mut Conn| {
            let identities = blueprint.identities();
            end_work_on_earlier_servers(conn, &identities, &blueprint.settings, now)?;
            service_identities::store_identities(conn, &identities, now)?;
            reschedule_notifications(conn, &blueprint.settings, None, now)
        };
        self.db.write(finish).await?;
        self.engine.wake_workers();
        Ok(())
    }

    /// Waits for running turns up to the grace period, and stops the background tasks. Unfinished turns resume at the
    /// next start. Call this before the listener closes, so that messages are accepted until the end.
    pub async fn drain_turns(&self) {
        self.engine.drain(TURN_GRACE_PERIOD).await;
        self.stop.cancel();
    }

    /// Stops all tasks and closes the database.
    pub async fn close(self) {
        self.stop.cancel();
        let Self {
            engine, relay, webhooks, console, db, clock, maintenance, monitor, alerter, tasks, ..
        } = self;
        // The next start repeats what these tasks have not finished.
        let unfinished = [
            tasks.connections,
            tasks.alerts,
            tasks.channel_poller,
            tasks.clock_watch,
            tasks.heartbeat,
            tasks.indexing,
            tasks.file_watch,
        ];
        for task in unfinished {
            task.abort();
            let _ = task.await;
        }
        // No task gives work to the engine from here on. A running engine task would keep the database open.
        engine.abort().await;
        if tokio::time::timeout(TASK_GRACE_PERIOD, tasks.relay).await.is_err() {
            // The intent to send remains stored; the next start determines the outcome.
            relay.abort_sends().await;
        }
        if let Err(error) = relay.release_claimed_messages().await {
            tracing::warn!(%error, "failed to release messages that were not sent");
        }
        let addition_retries = tasks.addition_retries.abort_handle();
        if tokio::time::timeout(TASK_GRACE_PERIOD, tasks.addition_retries).await.is_err() {
            // The intent to add remains stored; the next start determines the outcome.
            addition_retries.abort();
        }
        // The stop signal wakes this task, which finishes its current transaction.
        match tokio::time::timeout(TASK_GRACE_PERIOD, tasks.maintenance).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "database maintenance had stopped early"),
            Err(_) => tracing::warn!("database maintenance did not stop in time"),
        }
        let now: Timestamp = clock.now();
        if let Err(error) = db.write(move |conn| boot::record_clean_shutdown(conn, now)).await {
            tracing::warn!(%error, "failed to record the end of this run");
        }
        drop((engine, relay, webhooks, console, maintenance, monitor, alerter));
        db.close().await;
    }
}

/// Registers the configured users and starts a run.
fn initialize_store(conn: &mut Conn, blueprint: &AppBlueprint, now: Timestamp) -> QueryResult<Downtime> {
    let settings = &blueprint.settings;
    configured_users::register_users(conn, blueprint.configured_users(), now)?;
    let downtime = boot::recover_interrupted_work(conn, now)?;
    if let Downtime::Uncertain(step) = downtime {
        end_uncertain_waits(conn, settings, step, now)?;
    }
    let identities = blueprint.identities();
    end_work_on_earlier_servers(conn, &identities, settings, now)?;
    service_identities::store_identities(conn, &identities, now)?;
    // The quiet hours of the household may have changed since the last start.
    reschedule_notifications(conn, settings, None, now)?;
    Ok(downtime)
}

impl App {
    /// Runs one round of maintenance, which otherwise runs every ten minutes.
    pub async fn run_maintenance_once(&self) {
        self.maintenance.run_once().await;
    }

    /// Checks all connections, which otherwise happens every minute.
    pub async fn check_connections_once(&self) -> Result<(), DbError> {
        self.monitor.run_once().await
    }

    /// Stores and sends the alerts that are due, which otherwise happens every minute.
    pub async fn send_alerts_once(&self) -> Result<(), DbError> {
        self.alerter.run_once().await
    }

    /// Reads the arr events whose webhook was missed, sends what is due, and runs the periodic checks.
    pub async fn send_notifications_once(&self) -> anyhow::Result<()> {
        self.engine.reconciler.reconcile_instances().await;
        self.engine.notifier.send_due_notifications().await?;
        self.engine.checkers.run_once().await;
        self.engine.digests.send_due_digests().await?;
        Ok(())
    }

    /// Stops immediately as if the process was killed, for crash tests. The database is left as it is.
    pub async fn kill(self) {
        let BackgroundTasks {
            relay,
            connections,
            alerts,
            channel_poller,
            maintenance,
            addition_retries,
            indexing,
            clock_watch,
            heartbeat,
            file_watch,
        } = self.tasks;
        let tasks = [
            relay,
            connections,
            alerts,
            channel_poller,
            maintenance,
            addition_retries,
            indexing,
            clock_watch,
            heartbeat,
            file_watch,
        ];
        for task in tasks {
            task.abort();
            // The error only reports that the task was aborted.
            let _ = task.await;
        }
        // The engine is aborted last, because the tasks give it work.
        self.engine.abort().await;
        let Self { engine, relay, webhooks, console, db, maintenance, monitor, alerter, .. } = self;
        relay.abort_sends().await;
        drop((engine, relay, webhooks, console, maintenance, monitor, alerter));
        db.close().await;
    }
}
