//! Composition root: starts the program from a blueprint, with real or simulated peers, and shuts it down. Contains the
//! list of all tools.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::access_rules::AccessRules;
use crate::clock::Clock;
use crate::clock_watch::ClockWatch;
use crate::config::Config;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::transcript::{Address, PhoneNumber};
use crate::doctor::connection_test::ConnectionTester;
pub(crate) use crate::engine::PicturePolicy;
use crate::engine::clock_step::end_uncertain_waits;
use crate::engine::inbound::admission::Admission;
use crate::engine::inbound::scheduler::TurnScheduler;
use crate::engine::notifications::send_time::reschedule_notifications;
use crate::engine::{Engine, EngineParts, HouseholdSettings};
use crate::failpoint;
use crate::heartbeat::Heartbeat;
use crate::llm::Model;
use crate::llm::embeddings::Embedder;
use crate::llm::keyword::KeywordResponder;
use crate::maintenance::Maintenance;
use crate::messaging::missed_messages::{InboundLog, PollDelay};
use crate::messaging::outbox_relay::{self, OutboundChannels, OutboxRelay, OutboxSignal, RelayTimeouts};
use crate::messaging::twilio::Twilio;
use crate::metrics::Metrics;
use crate::recovery_delays::RecoveryDelays;
use crate::store::boot::{self, Downtime};
use crate::store::database::db::{Db, DbError};
use crate::store::database::file_watch::log_displaced_files;
use crate::store::people::users::{self, FirstContactRole};
use crate::store::queue::delivery_reports::AcceptancePolicy;
use crate::store::turns::budget_blocks;
use crate::store::{Conn, QueryResult};
use crate::tools::Tool;
use crate::tools::actions::ReactToMessage;
use crate::tools::activity::{CheckStatus, RecentlyAdded, UpcomingReleases};
use crate::tools::add_movie::AddMovie;
use crate::tools::add_series::AddSeries;
use crate::tools::find_in_library::FindInLibrary;
use crate::tools::follow_title::TellMeWhenReady;
use crate::tools::library::ArrInstances;
use crate::tools::library_changes::change_media::ChangeMedia;
use crate::tools::library_changes::get_more::GetMore;
use crate::tools::media_details::MediaDetails;
use crate::tools::memory::{ForgetFact, RememberFact};
use crate::tools::recommend::RecommendMovies;
use crate::tools::registry::ToolRegistry;
use crate::tools::remove_download::RemoveDownload;
use crate::tools::remove_media::RemoveMedia;
use crate::tools::replace_copy::ReplaceCopy;
use crate::tools::request_removal::RequestRemoval;
use crate::tools::search_media::SearchMedia;
use crate::tools::send_poster::SendPoster;
use crate::tools::server_status::ServerStatus;
use crate::tools::typed_tool::{adapt_deletion, adapt_tool};
use crate::tools::why_missing::WhyMissing;
use crate::web::auth::{ConsoleAccess, PasswordError};
use crate::web::console_state::ConsoleState;
use crate::web::health::HealthChecker;
use crate::web::stream_limit::StreamLimit;
use crate::web::{TwilioVerification, WebhookState};

/// Grace period for running turns after a shutdown signal. With the steps that follow, the program exits within 10 s.
const TURN_GRACE_PERIOD: Duration = Duration::from_secs(6);
/// Grace period for each background task after the turns have ended.
const TASK_GRACE_PERIOD: Duration = Duration::from_secs(2);
/// Time limit for fetching the carrier's list of messages once.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Dependencies from which a program is started, with real or simulated peers.
pub struct AppBlueprint {
    pub db: Db,
    pub clock: Clock,
    pub settings: HouseholdSettings,
    /// Time for which a confirmation prompt waits for a YES.
    pub confirm_for: SignedDuration,
    /// Retention period of message text.
    pub retention: SignedDuration,
    pub admin: Option<PhoneNumber>,
    pub members: Vec<PhoneNumber>,
    pub model: Option<Arc<dyn Model>>,
    /// Embedder that turns text into vectors; without it, only full-text search is used.
    pub embedder: Option<Arc<dyn Embedder>>,
    pub library: ArrInstances,
    pub channels: OutboundChannels,
    /// Verification of webhooks from Twilio; without it, they are rejected.
    pub twilio_verification: Option<Arc<TwilioVerification>>,
    /// Secret that Sonarr and Radarr must present with their events; without it, no events are accepted.
    pub arr_secret: Option<SecretString>,
    /// Configuration with which the health page tests connections; `None` with simulated peers.
    pub config: Option<Arc<Config>>,
    /// Source of messages whose webhook was missed; `None` without a Twilio account.
    pub missed_messages: Option<MissedMessageSource>,
    /// Context window of the model in tokens, if configured.
    pub context_window: Option<u64>,
    /// Access rules of the console.
    pub console: AccessRules,
}

/// Carrier's list of the messages sent to one of the service's numbers.
pub struct MissedMessageSource {
    pub twilio: Arc<Twilio>,
    pub number: Address,
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
    tasks: BackgroundTasks,
}

/// Tasks that run beside the turns.
struct BackgroundTasks {
    relay: JoinHandle<()>,
    missed_messages: Option<JoinHandle<()>>,
    maintenance: JoinHandle<()>,
    addition_retries: JoinHandle<()>,
    indexing: JoinHandle<()>,
    file_watch: JoinHandle<()>,
    clock_watch: JoinHandle<()>,
    heartbeat: JoinHandle<()>,
}

impl BackgroundTasks {
    async fn spawn(
        engine: &Arc<Engine>,
        relay: &OutboxRelay,
        missed_messages: Option<MissedMessageSource>,
        delays: RecoveryDelays,
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
        let missed_messages = match missed_messages {
            None => {
                engine.scheduler.recover_work().await?;
                None
            }
            Some(MissedMessageSource { twilio, number }) => {
                let (db, clock) = (db.clone(), clock.clone());
                let (admission, scheduler) = (engine.admission.clone(), engine.scheduler.clone());
                let inbound_log = InboundLog {
                    twilio,
                    number,
                    db,
                    clock,
                    min_age: delays.min_message_age,
                    deferred_ids: Arc::default(),
                };
                Some(tokio::spawn(poll_missed_messages(
                    inbound_log,
                    admission,
                    scheduler,
                    delays,
                    stop.clone(),
                )))
            }
        };
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

/// Error that prevents the program from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("recover the work of the last run")]
    LastRun(#[from] DbError),
    #[error("apply the console password")]
    Password(#[from] PasswordError),
}

/// Starts a run in the database, with the configured users, and returns its start time, which is the time of the wall
/// clock.
async fn begin_run(
    db: &Db,
    clock: &Clock,
    settings: &HouseholdSettings,
    (admin, members): (Option<PhoneNumber>, Vec<PhoneNumber>),
) -> Result<Timestamp, DbError> {
    clock.adopt_step();
    let (now, settings, boot_id) = (clock.now(), settings.clone(), db.boot_id().map(str::to_owned));
    let begin = move |conn: &mut Conn| {
        budget_blocks::discard_blocks_of_boot(conn, boot_id.as_deref())?;
        initialize_store(conn, (admin.as_ref(), &members), &settings, now)
    };
    if let Downtime::Uncertain(step) = db.write(begin).await? {
        let seconds = step.unsigned_abs().as_secs();
        tracing::warn!(seconds, "wall clock is behind the last run, downtime is unknown");
    }
    Ok(now)
}

impl App {
    /// Opens the database, registers the configured users, resumes unfinished work and starts to send messages.
    pub async fn start(blueprint: AppBlueprint) -> Result<Self, StartError> {
        let AppBlueprint { db, clock, settings, embedder, admin, members, missed_messages, .. } = blueprint;
        let (library, delays, floor) =
            (Arc::new(blueprint.library), settings.recovery_delays, settings.similarity_floor);
        let tester = ConnectionTester::new(blueprint.config, &library, embedder.clone(), floor);
        let now = begin_run(&db, &clock, &settings, (admin, members)).await?;
        let tools = all_tools(&library, settings.pictures);
        let metrics = Metrics::new(tools.iter().map(|tool| tool.spec().name).collect(), now);
        let (confirm_for, quiet) = (blueprint.confirm_for, settings.quiet_hours);
        let policy = AcceptancePolicy { confirm_for, zone: settings.zone.clone(), quiet };
        let console_access = Arc::new(ConsoleAccess::from_rules(blueprint.console, &db, now).await?);
        let (signal, stop) = (OutboxSignal::default(), CancellationToken::new());
        let engine = Arc::new(Engine::new(&EngineParts {
            db: db.clone(),
            clock: clock.clone(),
            settings: Arc::new(settings),
            keyword: Arc::new(KeywordResponder::from_model(blueprint.model.as_ref())),
            model: blueprint.model,
            embedder,
            tools: Arc::new(ToolRegistry::new(tools)),
            metrics: metrics.clone(),
            library,
            outbox: signal.clone(),
            carrier: blueprint.channels.carrier.clone(),
        }));
        let lookup_delays = delays.lookup_delays;
        let relay = OutboxRelay::new(outbox_relay::RelayParts {
            db: db.clone(),
            clock: clock.clone(),
            channels: blueprint.channels,
            signal,
            timeouts: RelayTimeouts { acceptance_policy: policy.clone(), lookup_delays },
            metrics: metrics.clone(),
        });
        let maintenance = Maintenance {
            expiry: engine.expiry.clone(),
            db: db.clone(),
            clock: clock.clone(),
            retention: blueprint.retention,
            stop: stop.clone(),
        };
        let tasks = BackgroundTasks::spawn(&engine, &relay, missed_messages, delays, &maintenance).await?;
        let health = HealthChecker::new(db.clone(), clock.clone());
        let webhooks = WebhookState {
            admission: engine.admission.clone(),
            arr_events: engine.arr_events.clone(),
            db: db.clone(),
            clock: clock.clone(),
            acceptance_policy: policy.clone(),
            twilio: blueprint.twilio_verification,
            arr_secret: blueprint.arr_secret,
            metrics: metrics.clone(),
            health: health.clone(),
        };
        let console = ConsoleState {
            engine: engine.clone(),
            db: db.clone(),
            clock: clock.clone(),
            zone: policy.zone,
            access: console_access,
            retention: blueprint.retention,
            stop: stop.clone(),
            streams: StreamLimit::default(),
            context_window: blueprint.context_window,
            metrics,
            health,
            connection_tester: tester,
        };
        Ok(Self { engine, relay, webhooks, console, db, clock, stop, maintenance, tasks })
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
        let Self { engine, relay, webhooks, console, db, clock, maintenance, tasks, .. } = self;
        if let Some(task) = tasks.missed_messages {
            // The messages that the task has admitted are stored, and the next start fetches the others.
            task.abort();
            let _ = task.await;
        }
        // The next start repeats what these tasks have not finished.
        for task in [tasks.clock_watch, tasks.heartbeat, tasks.indexing, tasks.file_watch] {
            task.abort();
            let _ = task.await;
        }
        // No task gives work to the engine from here on. A running engine task would keep the database open.
        engine.abort().await;
        if tokio::time::timeout(TASK_GRACE_PERIOD, tasks.relay).await.is_err() {
            // The intent to send remains stored; the next start determines the outcome.
            relay.abort_sends().await;
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
        drop((engine, relay, webhooks, console, maintenance));
        db.close().await;
    }
}

/// Registers the configured users and starts a run.
fn initialize_store(
    conn: &mut Conn,
    (admin, members): (Option<&PhoneNumber>, &[PhoneNumber]),
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<Downtime> {
    if let Some(phone) = admin {
        users::ensure_user(conn, phone, FirstContactRole::Admin, now)?;
    }
    for phone in members {
        users::ensure_user(conn, phone, FirstContactRole::Member, now)?;
    }
    let downtime = boot::recover_interrupted_work(conn, now)?;
    if let Downtime::Uncertain(step) = downtime {
        end_uncertain_waits(conn, settings, step, now)?;
    }
    // The quiet hours of the household may have changed since the last start.
    reschedule_notifications(conn, settings, None, now)?;
    Ok(downtime)
}

/// Admits the messages of the carrier's list that are not in the database.
async fn fetch_missed_messages(inbound_log: &InboundLog, admission: &Admission) -> anyhow::Result<PollDelay> {
    let page = inbound_log.read_page().await?;
    failpoint::reached("missed.read");
    for message in &page.messages {
        // The message is received now, not when the list was requested: replies may have been sent in the meantime.
        let received_at = inbound_log.clock.now();
        admission.admit_message(ReceivedMessage { received_at, ..message.clone() }).await?;
        failpoint::reached("missed.admitted");
    }
    inbound_log.record_admitted(&page).await?;
    Ok(page.next)
}

/// Fetches missed messages at the start, before any turn runs, so that old messages are processed before new ones, and
/// then every few minutes. A carrier that does not respond delays the start by at most [`FETCH_TIMEOUT`].
async fn poll_missed_messages(
    inbound_log: InboundLog,
    admission: Arc<Admission>,
    scheduler: TurnScheduler,
    delays: RecoveryDelays,
    stop: CancellationToken,
) {
    let mut is_first_poll = true;
    while !stop.is_cancelled() {
        let fetched = tokio::select! {
            fetched = tokio::time::timeout(FETCH_TIMEOUT, fetch_missed_messages(&inbound_log, &admission)) => fetched,
            () = stop.cancelled() => return,
        };
        let next = match fetched {
            Ok(Ok(next)) => next,
            Ok(Err(error)) => {
                tracing::warn!(error = format!("{error:#}"), "failed to fetch missed messages");
                PollDelay::Soon
            }
            Err(_) => {
                tracing::warn!("timed out fetching missed messages");
                PollDelay::Soon
            }
        };
        if std::mem::take(&mut is_first_poll)
            && let Err(error) = scheduler.recover_work().await
        {
            tracing::error!(%error, "failed to resume unfinished work");
            is_first_poll = true;
        }
        let pause = match next {
            PollDelay::Later => delays.poll_interval,
            PollDelay::Soon => delays.short_poll_interval,
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
    }
}

impl App {
    /// Runs one round of maintenance, which otherwise runs every ten minutes.
    pub async fn run_maintenance_once(&self) {
        self.maintenance.run_once().await;
    }

    /// Reads the arr events whose webhook was missed, sends all notifications that are due, and checks the followed
    /// seasons.
    pub async fn send_notifications_once(&self) -> anyhow::Result<()> {
        self.engine.reconciler.reconcile_instances().await;
        self.engine.notifier.send_due_notifications().await?;
        self.engine.season_checker.check_seasons().await;
        Ok(())
    }

    /// Stops immediately as if the process was killed, for crash tests. The database is left as it is.
    pub async fn kill(self) {
        let BackgroundTasks {
            relay,
            missed_messages,
            maintenance,
            addition_retries,
            indexing,
            clock_watch,
            heartbeat,
            file_watch,
        } = self.tasks;
        let tasks = [relay, maintenance, addition_retries, indexing, clock_watch, heartbeat, file_watch];
        for task in tasks.into_iter().chain(missed_messages) {
            task.abort();
            // The error only reports that the task was aborted.
            let _ = task.await;
        }
        // The engine is aborted last, because the tasks give it work.
        self.engine.abort().await;
        let Self { engine, relay, webhooks, console, db, maintenance, .. } = self;
        relay.abort_sends().await;
        drop((engine, relay, webhooks, console, maintenance));
        db.close().await;
    }
}

/// Returns all tools. The permissions of a user determine which of them are offered.
pub fn all_tools(library: &Arc<ArrInstances>, pictures: PicturePolicy) -> Vec<Arc<dyn Tool>> {
    let mut tools = vec![
        adapt_tool::<SearchMedia>(library),
        adapt_tool::<FindInLibrary>(library),
        adapt_tool::<AddMovie>(library),
        adapt_tool::<AddSeries>(library),
        adapt_tool::<GetMore>(library),
        adapt_tool::<ChangeMedia>(library),
        adapt_tool::<MediaDetails>(library),
        adapt_tool::<WhyMissing>(library),
        adapt_tool::<CheckStatus>(library),
        adapt_tool::<ServerStatus>(library),
        adapt_tool::<UpcomingReleases>(library),
        adapt_tool::<RecentlyAdded>(library),
        adapt_tool::<RecommendMovies>(library),
        adapt_deletion::<RemoveMedia>(library),
        adapt_deletion::<RemoveDownload>(library),
        adapt_deletion::<ReplaceCopy>(library),
        adapt_tool::<RequestRemoval>(library),
        adapt_tool::<TellMeWhenReady>(library),
        adapt_tool::<RememberFact>(library),
        adapt_tool::<ForgetFact>(library),
        adapt_tool::<ReactToMessage>(library),
    ];
    match pictures {
        PicturePolicy::Sent => tools.push(adapt_tool::<SendPoster>(library)),
        PicturePolicy::NotSent => {}
    }
    tools
}
