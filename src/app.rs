//! Composition root: builds a running program from a configuration, or from fakes. Holds the one list of tools.

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

/// Time that running turns get to end after a signal; with the steps that follow, the program exits within 10 s.
const TURN_SHUTDOWN_TIME: Duration = Duration::from_secs(6);
/// Time that messages being sent get after the turns have ended.
const MESSAGE_SHUTDOWN_TIME: Duration = Duration::from_secs(2);
/// Time limit of each reading of the carrier's message list.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Parts of a program, with real or simulated peers.
pub struct AppBlueprint {
    pub db: Db,
    pub clock: Clock,
    pub settings: HouseholdSettings,
    /// Time that a confirmation prompt waits for its YES.
    pub confirm_for: SignedDuration,
    /// Time that the text of messages is stored.
    pub retention: SignedDuration,
    pub admin: Option<PhoneNumber>,
    pub members: Vec<PhoneNumber>,
    pub model: Option<Arc<dyn Model>>,
    /// Embedder that turns text into vectors; `None`: memory is searched by keywords alone.
    pub embedder: Option<Arc<dyn Embedder>>,
    pub library: ArrInstances,
    pub channels: OutboundChannels,
    pub trust: Option<Arc<TwilioVerification>>,
    /// Secret that Sonarr and Radarr must present with their events; `None`: no events from them are accepted.
    pub report_secret: Option<SecretString>,
    /// Configuration that the health page tests connections with; `None` with simulated peers.
    pub config: Option<Arc<Config>>,
    /// Source of the messages that never reached this service; `None` without an account.
    pub missed: Option<MissedMessageSource>,
    /// Number of tokens that the model can read at once, if configured.
    pub context_window: Option<u64>,
    /// Access rules of the console.
    pub console: AccessRules,
}

/// Carrier's record of the messages sent to one of the service's numbers.
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
    inbox: Option<JoinHandle<()>>,
    maintenance: JoinHandle<()>,
    retries: JoinHandle<()>,
    learning: JoinHandle<()>,
    files: JoinHandle<()>,
    watch: JoinHandle<()>,
}

impl BackgroundTasks {
    async fn spawn(
        engine: &Arc<Engine>,
        relay: &OutboxRelay,
        missed: Option<MissedMessageSource>,
        delays: RecoveryDelays,
        maintenance: &Maintenance,
    ) -> Result<Self, DbError> {
        let Maintenance { db, clock, stop, .. } = maintenance;
        let watch = ClockWatch { engine: engine.clone(), db: db.clone(), clock: clock.clone() };
        let watch = tokio::spawn(watch.run(stop.clone()));
        let relay = tokio::spawn({
            let (relay, stop) = (relay.clone(), stop.clone());
            async move { relay.run(stop).await }
        });
        let inbox = match missed {
            None => {
                engine.scheduler.recover_work().await?;
                None
            }
            Some(MissedMessageSource { twilio, number }) => {
                let min_age = delays.too_young;
                let (db, clock, deferred_ids) = (db.clone(), clock.clone(), Arc::default());
                let (admission, scheduler) = (engine.admission.clone(), engine.scheduler.clone());
                let inbox = InboundLog { twilio, number, db, clock, min_age, deferred_ids };
                Some(tokio::spawn(fetch_missed(inbox, admission, scheduler, delays, stop.clone())))
            }
        };
        let retries = tokio::spawn(engine.additions.clone().run(stop.clone()));
        let learning = tokio::spawn(engine.indexer.clone().run(stop.clone()));
        let files = tokio::spawn(log_displaced_files(db.clone(), stop.clone()));
        Ok(Self {
            relay,
            inbox,
            maintenance: tokio::spawn(maintenance.clone().run()),
            retries,
            learning,
            watch,
            files,
        })
    }
}

/// Error that prevents the program from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("take up what the last run left")]
    LastRun(#[from] DbError),
    #[error("take over the console's password")]
    Password(#[from] PasswordError),
}

/// Begins a run in the database, with the configured users, and returns the run's time: a program that starts knows
/// only the wall clock.
async fn begin_run(
    db: &Db,
    clock: &Clock,
    settings: &HouseholdSettings,
    (admin, members): (Option<PhoneNumber>, Vec<PhoneNumber>),
) -> Result<Timestamp, DbError> {
    clock.adopt_step();
    let (now, settings) = (clock.now(), settings.clone());
    let downtime =
        db.write(move |conn| initialize_store(conn, (admin.as_ref(), &members), &settings, now)).await?;
    if let Downtime::Uncertain(step) = downtime {
        let behind = step.unsigned_abs().as_secs();
        tracing::warn!(seconds = behind, "wall clock is behind the last run, time between is unknown");
    }
    Ok(now)
}

impl App {
    /// Opens the database, registers the configured users, resumes unfinished work and starts to send messages.
    pub async fn start(blueprint: AppBlueprint) -> Result<Self, StartError> {
        let AppBlueprint { db, clock, settings, embedder, admin, members, missed, .. } = blueprint;
        let floor = settings.similarity_floor;
        let tester = ConnectionTester::new(blueprint.config, &blueprint.library, embedder.clone(), floor);
        let (library, delays) = (Arc::new(blueprint.library), settings.recovery_delays);
        let now = begin_run(&db, &clock, &settings, (admin, members)).await?;
        let tools = all_tools(&library, settings.pictures);
        let metrics = Metrics::new(tools.iter().map(|tool| tool.spec().name).collect(), now);
        let (confirm_for, zone, quiet) = (blueprint.confirm_for, settings.zone.clone(), settings.quiet_hours);
        let terms = AcceptancePolicy { confirm_for, zone, quiet };
        let access = Arc::new(ConsoleAccess::from_rules(blueprint.console, &db, now).await?);
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
        let relay = OutboxRelay::new(outbox_relay::RelayParts {
            db: db.clone(),
            clock: clock.clone(),
            channels: blueprint.channels,
            signal,
            timeouts: RelayTimeouts { acceptance_policy: terms.clone(), lookup_delays: delays.looks },
            metrics: metrics.clone(),
        });
        let maintenance = Maintenance {
            expiry: engine.expiry.clone(),
            db: db.clone(),
            clock: clock.clone(),
            retention: blueprint.retention,
            stop: stop.clone(),
        };
        let tasks = BackgroundTasks::spawn(&engine, &relay, missed, delays, &maintenance).await?;
        engine.start_notifications();
        let health = HealthChecker::new(db.clone(), clock.clone());
        let webhooks = WebhookState {
            admission: engine.admission.clone(),
            arr_events: engine.arr_events.clone(),
            db: db.clone(),
            clock: clock.clone(),
            acceptance_policy: terms.clone(),
            twilio: blueprint.trust,
            arr_secret: blueprint.report_secret,
            metrics: metrics.clone(),
            health: health.clone(),
        };
        let console = ConsoleState {
            engine: engine.clone(),
            db: db.clone(),
            clock: clock.clone(),
            zone: terms.zone,
            access,
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

    /// Ends running work within 10 s: running turns and messages get a moment to end, and the rest resumes at the next
    /// start. Call this before the listener closes, so that messages are accepted until the end.
    pub async fn drain_turns(&self) {
        self.engine.drain(TURN_SHUTDOWN_TIME).await;
        self.stop.cancel();
    }

    /// Closes the database, once no task uses it any longer.
    pub async fn close(self) {
        self.stop.cancel();
        let Self { engine, relay, webhooks, console, db, clock, maintenance, tasks, .. } = self;
        if let Some(task) = tasks.inbox {
            // The task only reads, and the messages that it admitted are stored.
            task.abort();
            let _ = task.await;
        }
        // The unfinished work of each task is stored as not done, or found by the next start; the last task only reads.
        for task in [tasks.watch, tasks.learning, tasks.files] {
            task.abort();
            let _ = task.await;
        }
        // No task sends work to the engine any longer; an engine task that still runs would keep the database open.
        engine.abort().await;
        if tokio::time::timeout(MESSAGE_SHUTDOWN_TIME, tasks.relay).await.is_err() {
            // The intent to send remains stored; the next start determines the outcome.
            relay.abort_sends().await;
        }
        let retries = tasks.retries.abort_handle();
        if tokio::time::timeout(MESSAGE_SHUTDOWN_TIME, tasks.retries).await.is_err() {
            // The intent to add remains stored; the next start determines the outcome.
            retries.abort();
        }
        // The stop signal woke this task; as with messages, the wait for its last piece of work is bounded.
        match tokio::time::timeout(MESSAGE_SHUTDOWN_TIME, tasks.maintenance).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "database maintenance had ended early"),
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

/// Registers the configured users and begins a run.
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
    // The household's quiet hours may differ from those at the last start.
    reschedule_notifications(conn, settings, None, now)?;
    Ok(downtime)
}

/// Admits the messages that the carrier's list holds and the database does not.
async fn fetch_missed_messages(inbox: &InboundLog, admission: &Admission) -> anyhow::Result<PollDelay> {
    let reading = inbox.read_page().await?;
    failpoint::reached("missed.read");
    for text in &reading.messages {
        // The message is received now, not when the reading of the list began: replies may have been sent in the
        // meantime.
        admission.admit_message(ReceivedMessage { received_at: inbox.clock.now(), ..text.clone() }).await?;
        failpoint::reached("missed.admitted");
    }
    inbox.record_admitted(&reading).await?;
    Ok(reading.next)
}

/// Reads the carrier's list at the start, before any turn begins, so that old messages come before new ones; then every
/// few minutes. A carrier that does not answer delays the start only briefly.
async fn fetch_missed(
    inbox: InboundLog,
    admission: Arc<Admission>,
    scheduler: TurnScheduler,
    delays: RecoveryDelays,
    stop: CancellationToken,
) {
    let mut first = true;
    while !stop.is_cancelled() {
        let fetched = tokio::select! {
            fetched = tokio::time::timeout(FETCH_TIMEOUT, fetch_missed_messages(&inbox, &admission)) => fetched,
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
        if std::mem::take(&mut first)
            && let Err(error) = scheduler.recover_work().await
        {
            tracing::error!(%error, "failed to resume unfinished work");
            first = true;
        }
        let pause = match next {
            PollDelay::Later => delays.list_every,
            PollDelay::Soon => delays.list_soon,
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
    }
}

impl App {
    /// Runs one round of the maintenance that otherwise runs every ten minutes.
    pub async fn keep_up_once(&self) {
        self.maintenance.run_once().await;
    }

    /// Reads the arr events that were not reported, sends all notifications that are due, and checks the followed
    /// seasons.
    pub async fn give_notice_once(&self) -> anyhow::Result<()> {
        self.engine.reconciler.reconcile_instances().await;
        self.engine.notifier.send_due_notifications().await?;
        self.engine.season_checker.check_seasons().await;
        Ok(())
    }

    /// Stops immediately, as a kill would, and leaves the database as it is: for crash tests.
    pub async fn kill(self) {
        let BackgroundTasks { relay, inbox, maintenance, retries, learning, watch, files } = self.tasks;
        for task in [relay, maintenance, retries, learning, watch, files].into_iter().chain(inbox) {
            task.abort();
            // An aborted task ends with an error that reports the abort.
            let _ = task.await;
        }
        // Aborted last, because these tasks give it work.
        self.engine.abort().await;
        let Self { engine, relay, webhooks, console, db, maintenance, .. } = self;
        relay.abort_sends().await;
        drop((engine, relay, webhooks, console, maintenance));
        db.close().await;
    }
}

/// Lists all tools; the rights of a user decide which tools are offered.
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
