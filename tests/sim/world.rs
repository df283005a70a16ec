//! Program among its simulated peers and users, from the first start of a schedule to the last.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dialarr::app::{App, AppBlueprint, ApplyError, Polling};
use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::arr::radarr::Radarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::{UserAddress, UserRights, UserRole, UserStatus};
use dialarr::discovery::fake::FakeTmdb;
use dialarr::engine::{CodeSource, Engine, HouseholdSettings};
use dialarr::http::{HttpClient, InProcess};
use dialarr::llm::Model;
use dialarr::simulation::{self, SimulatedPeers};
use dialarr::store::database::db::Db;
use dialarr::store::people::users::{self, FirstContactRole};
use dialarr::tools::library::{ArrInstances, Instance};
use dialarr::web;
use http::Request;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::bot_people;
use crate::carriers::WorldCarriers;
use crate::disk_faults::DiskImage;
use crate::house_agents::HouseAgents;
use crate::house_bot;
use crate::house_jellyfin::HouseJellyfin;
use crate::house_seerr::{self, HouseSeerr};
use crate::house_series;
use crate::house_tonight;
use crate::network_faults::{NetworkFaults, Seen};
use crate::operator::WrittenText;
use crate::plan::{ANN, BOB, BRAZIL, FAY, PEOPLE, Plan, SettingChange};
use crate::proposal_plan;
use crate::records::Records;
use crate::rng::Rng;
use crate::simulated_model::SimulatedModel;
use crate::timeline::Timeline;

const PUBLIC_URL: &str = "https://sms.example.org";
/// Secret that no row may contain.
pub(crate) const SECRET: &str = "a-simulated-token";

/// Lets the paused clock advance.
pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep_until(tokio::time::Instant::now() + time).await;
}

/// Journal of events, for the analysis of a failure.
#[derive(Clone)]
pub(crate) struct Journal {
    clock: Clock,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Journal {
    pub(crate) fn note(&self, line: impl AsRef<str>) {
        let at = self.clock.now().strftime("%d %H:%M:%S%.3f");
        self.lines.lock().unwrap().push(format!("{at} {}", line.as_ref()));
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

/// Entry point of the program's listener, while the program runs.
#[derive(Clone)]
struct WebhookEndpoint {
    webhooks: InProcess,
    engine: Arc<Engine>,
    closed: CancellationToken,
}

/// Settings that a schedule changes.
#[derive(Debug, Default)]
struct ChangedSettings {
    radarr_moves: usize,
    sonarr_moves: usize,
    uses_keywords: bool,
}

/// World of a schedule. Clones share all state.
#[derive(Clone)]
pub(crate) struct World {
    pub peers: SimulatedPeers,
    pub carriers: Arc<WorldCarriers>,
    /// Media server; `None` in most schedules.
    pub jellyfin: Option<Arc<HouseJellyfin>>,
    /// Seerr, and TMDB; `None` in most schedules.
    pub seerr: Option<Arc<HouseSeerr>>,
    pub tmdb: Option<FakeTmdb>,
    /// Agents, of which most schedules have none.
    pub agents: Arc<HouseAgents>,
    pub model: Arc<SimulatedModel>,
    pub journal: Journal,
    /// Time that no step changes.
    pub true_clock: Clock,
    /// Times that the clock of the program showed.
    pub timeline: Arc<Mutex<Timeline>>,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    /// SIDs of the messages that users sent, and of those that were acknowledged.
    pub sent_in: Arc<Mutex<BTreeSet<String>>>,
    pub acknowledged: Arc<Mutex<BTreeSet<String>>>,
    /// Texts that the operator wrote.
    pub written: Arc<Mutex<Vec<WrittenText>>>,
    /// Number of messages and callbacks that users and the carrier have begun to send.
    pub under_way: Arc<AtomicUsize>,
    /// Number of recorded model calls that losses of power have undone.
    pub lost_attempts: Arc<AtomicUsize>,
    pub database: PathBuf,
    pub settings: HouseholdSettings,
    pub(crate) calm: Arc<AtomicBool>,
    /// A power cut has happened, and the program is about to end.
    power_is_off: Arc<AtomicBool>,
    endpoint: Arc<Mutex<Option<WebhookEndpoint>>>,
    pub plan: Arc<Plan>,
    starts: Arc<Mutex<u64>>,
    changed_settings: Arc<Mutex<ChangedSettings>>,
}

impl World {
    pub(crate) fn new(plan: &Plan, database: PathBuf) -> Self {
        let start: Timestamp = "2026-11-20T21:04:00Z".parse().unwrap();
        let (clock, true_clock) = (Clock::from_runtime(start), Clock::from_runtime(start));
        let (radarr, sonarr) = (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock.clone()));
        if plan.has_tonight() {
            for movie in house_tonight::rated_movies() {
                radarr.add(movie);
            }
        } else {
            let (mut dune, mut heat) =
                (movie("Dune").year(2021).tmdb(438_631), movie("Heat").year(1995).tmdb(949));
            if plan.makes_room() {
                (dune, heat) =
                    (dune.added(proposal_plan::added_at(start)), heat.added(proposal_plan::added_at(start)));
            }
            radarr.add(dune.size_gb(21.4));
            radarr.add(heat.size_gb(18.2));
            radarr.add(movie("Alien").year(1979).tmdb(348).size_gb(120.0));
        }
        radarr.add_to_catalog(movie("Arrival").year(2016).tmdb(329_865));
        radarr.add_to_catalog(movie("Sicario").year(2015).tmdb(273_481));
        radarr.add_to_catalog(movie("Tenet").year(2020).tmdb(577_922));
        radarr.add_to_catalog(movie("Brazil").year(1985).tmdb(BRAZIL));
        sonarr.add(series("Severance").year(2022).tvdb(371_980).seasons(2).size_gb(41.0));
        if plan.has_offers() {
            sonarr.add(house_series::first_season());
        }
        sonarr.add_to_catalog(series("Dark").year(2017).tvdb(334_824).seasons(3));
        let mut settings = simulation::simulation_settings(TimeZone::UTC);
        settings.codes = CodeSource::Fixed(47);
        settings.debounce = Duration::from_millis(if plan.brisk { 0 } else { 1_200 });
        let (seerr, tmdb) = house_seerr::create_catalogs(plan, &true_clock);
        Self {
            seerr,
            tmdb,
            agents: Arc::default(),
            jellyfin: plan.jellyfin.map(|_| Arc::new(HouseJellyfin::new(plan, clock.clone()))),
            carriers: Arc::new(WorldCarriers::new(plan, clock.clone(), true_clock.clone())),
            peers: SimulatedPeers::new(clock, radarr, sonarr, PUBLIC_URL),
            model: Arc::new(SimulatedModel::new(plan)),
            journal: Journal { clock: true_clock.clone(), lines: Arc::default() },
            true_clock,
            timeline: Arc::new(Mutex::new(Timeline::new(start.as_millisecond()))),
            seen: Arc::default(),
            sent_in: Arc::default(),
            acknowledged: Arc::default(),
            written: Arc::default(),
            under_way: Arc::default(),
            lost_attempts: Arc::default(),
            database,
            settings,
            calm: Arc::default(),
            power_is_off: Arc::default(),
            endpoint: Arc::default(),
            plan: Arc::new(plan.clone()),
            starts: Arc::default(),
            changed_settings: Arc::default(),
        }
    }

    /// Runs a later action of the users or the carrier.
    pub(crate) fn later(&self, what: impl Future<Output = ()> + Send + 'static) {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let under_way = self.under_way.clone();
        tokio::spawn(async move {
            what.await;
            under_way.fetch_sub(1, Ordering::SeqCst);
        });
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.peers.clock.now()
    }

    /// Sets the wall clock forward or back, and records the moment from which the program follows it.
    pub(crate) fn set_clock(&self, by: SignedDuration) {
        self.journal.note(format!("the clock is set by {by}"));
        self.peers.clock.shift_wall_clock(by);
        let (clock, true_clock, timeline) =
            (self.peers.clock.clone(), self.true_clock.clone(), self.timeline.clone());
        tokio::spawn(async move {
            while clock.pending_step().is_some() {
                pass(Duration::from_millis(100)).await;
            }
            let moment = true_clock.now().as_millisecond();
            timeline.lock().unwrap().note(moment, clock.now().as_millisecond() - moment);
        });
    }

    /// Stops all failures from here on.
    pub(crate) fn calm_down(&self) {
        self.calm.store(true, Ordering::SeqCst);
        self.model.calm.store(true, Ordering::SeqCst);
        self.peers.radarr.set_down(false);
        self.peers.sonarr.set_down(false);
        if self.plan.phone.is_some() || self.plan.bot.is_some() {
            self.carriers.calm_down();
        }
    }

    pub(crate) async fn start(&self) -> App {
        let app = self.start_app().await;
        let webhooks = web::in_process(web::webhook_router(app.webhooks.clone()));
        let (engine, closed) = (app.engine.clone(), CancellationToken::new());
        *self.endpoint.lock().unwrap() = Some(WebhookEndpoint { webhooks, engine, closed });
        self.journal.note("STARTED");
        app
    }

    /// Changes a stored setting, which the next reconfiguration or start uses.
    pub(crate) fn change_setting(&self, change: SettingChange) {
        self.journal.note(format!("a setting changes: {change:?}"));
        let mut settings = self.changed_settings.lock().unwrap();
        match change {
            SettingChange::MovesRadarr => settings.radarr_moves += 1,
            SettingChange::MovesSonarr => settings.sonarr_moves += 1,
            SettingChange::SwitchesModel => settings.uses_keywords = !settings.uses_keywords,
        }
    }

    /// Replaces all configured parts of the program, or drops the change after a while.
    pub(crate) async fn reconfigure(&self, app: &App, dropped_after: Duration) {
        let change = app.change_blueprint(|_| Ok::<_, ApplyError>(self.blueprint()));
        let outcome = tokio::time::timeout(dropped_after, change).await;
        self.journal.note(format!("the configuration changes: {outcome:?}"));
    }

    /// Begins a start of the program that does not finish.
    pub(crate) async fn start_in_vain(&self, after: Duration) {
        let from = self.true_clock.now().as_millisecond();
        if let Ok(app) = tokio::time::timeout(after, self.start_app()).await {
            app.kill().await;
        }
        self.carriers.bot.note_run_end(from, false);
        pass(Duration::from_millis(500)).await;
    }

    pub(crate) async fn kill(&self, app: App) {
        self.close_endpoint();
        self.journal.note("KILLED");
        let from = self.true_clock.now().as_millisecond();
        app.kill().await;
        self.carriers.bot.note_run_end(from, false);
    }

    pub(crate) async fn cut_power(&self, app: App, kept_percent: u64) {
        self.close_endpoint();
        self.journal.note(format!("POWER CUT, {kept_percent} % of the commits that are not synced are kept"));
        let from = self.true_clock.now().as_millisecond();
        self.power_is_off.store(true, Ordering::SeqCst);
        let image = DiskImage::of(&self.database, &app.db, kept_percent);
        let recorded = Records::of(&self.database).model_attempts();
        // The record of a call may still wait for its commit, at most one of each user.
        let calls = usize::try_from(*self.model.calls.lock().unwrap()).unwrap();
        let known = recorded + self.lost_attempts.load(Ordering::SeqCst);
        let waiting = calls.saturating_sub(known).min(PEOPLE.len() + 2);
        app.kill().await;
        self.power_is_off.store(false, Ordering::SeqCst);
        self.carriers.bot.note_run_end(from, true);
        image.restore(&self.database);
        // A connection changes the files when it closes, so the attempts are counted in a copy.
        let copy = self.database.with_extension("cut.db");
        image.restore(&copy);
        let kept = Records::of(&copy).model_attempts();
        for file in [copy.clone(), copy.with_extension("db-wal"), copy.with_extension("db-shm")] {
            // The last connection removes the other files.
            let _ = std::fs::remove_file(file);
        }
        self.lost_attempts.fetch_add(recorded - kept + waiting, Ordering::SeqCst);
    }

    pub(crate) async fn drain(&self, app: App) {
        self.journal.note("DRAINS");
        let from = self.true_clock.now().as_millisecond();
        app.drain_turns().await;
        self.close_endpoint();
        app.close().await;
        // A process that has ended holds nothing; in this simulation the last tasks need time to notice the end.
        pass(Duration::from_millis(500)).await;
        self.carriers.bot.note_run_end(from, false);
        self.journal.note("DRAINED");
    }

    fn close_endpoint(&self) {
        if let Some(endpoint) = self.endpoint.lock().unwrap().take() {
            endpoint.closed.cancel();
        }
    }

    /// Delivers a request of Twilio's; `None` if there was no response.
    pub(crate) async fn bring(&self, request: Request<Bytes>) -> Option<u16> {
        let endpoint = self.endpoint.lock().unwrap().clone()?;
        tokio::select! {
            answer = tokio::time::timeout(Duration::from_secs(15), (endpoint.webhooks)(request)) =>
                answer.ok().map(|response| response.status().as_u16()),
            () = endpoint.closed.cancelled() => None,
        }
    }

    /// Returns the engine while the program runs, and a token that is canceled when it stops.
    pub(crate) fn running_engine(&self) -> Option<(Arc<Engine>, CancellationToken)> {
        let endpoint = self.endpoint.lock().unwrap();
        endpoint.as_ref().map(|endpoint| (endpoint.engine.clone(), endpoint.closed.clone()))
    }

    /// Introduces all users with their initial rights: an admin, one who may not delete, three who may.
    pub(crate) async fn introduce_people(&self, app: &App) {
        for phone in PEOPLE.into_iter().chain([FAY]) {
            let role = if phone == ANN { UserRole::Admin } else { UserRole::Member };
            self.give_rights(&app.db, phone, role, phone != BOB).await;
        }
        self.cap_a_person(&app.db).await;
        self.link_viewers(&app.db).await;
        self.link_requesters(&app.db).await;
        proposal_plan::attribute_titles(self, &app.db).await;
        if self.plan.bot.is_some() {
            bot_people::open_chats(self);
        }
    }

    pub(crate) async fn give_rights(&self, db: &Db, phone: &str, role: UserRole, delete: bool) {
        let rights = UserRights { role, add: true, delete, four_k: false, ..UserRights::MEMBER };
        let (address, now) = (self.address_of(phone), self.now());
        let give = move |conn: &mut _| {
            let id = users::ensure_user(conn, address.clone(), FirstContactRole::Member, now)?;
            users::set_status(conn, id, UserStatus::Active, now)?;
            users::set_rights(conn, id, rights, now)
        };
        db.write(give).await.unwrap();
    }

    /// Returns the address of a person on the carrier of the schedule.
    pub(crate) fn address_of(&self, phone: &str) -> UserAddress {
        let address = match self.plan.bot {
            Some(_) => format!("telegram:{}", house_bot::account(phone)),
            None => phone.to_owned(),
        };
        UserAddress::parse(&address).unwrap()
    }

    pub(crate) fn network_faults(&self, name: &'static str, storm: u64) -> NetworkFaults {
        NetworkFaults {
            name,
            clock: self.peers.clock.clone(),
            true_clock: self.true_clock.clone(),
            storm,
            brisk: self.plan.brisk,
            calm: self.calm.clone(),
            power_is_off: self.power_is_off.clone(),
            rng: Arc::new(Mutex::new(Rng::of(self.plan.seed + *self.starts.lock().unwrap(), name))),
            seen: self.seen.clone(),
            journal: self.journal.clone(),
        }
    }

    async fn start_app(&self) -> App {
        *self.starts.lock().unwrap() += 1;
        let seed = self.plan.seed ^ (*self.starts.lock().unwrap() << 32);
        self.carriers.bot.note_start(&self.database);
        let db = Db::open_simulated(self.database.to_str().unwrap(), seed).unwrap();
        App::start(db, self.peers.clock.clone(), self.blueprint()).await.unwrap()
    }

    fn blueprint(&self) -> AppBlueprint {
        let (channels, senders) = self.carrier_ports();
        let uses_keywords = self.changed_settings.lock().unwrap().uses_keywords;
        let model = (!uses_keywords).then(|| -> Arc<dyn Model> { self.model.clone() });
        let settings = HouseholdSettings { senders, ..self.settings.clone() };
        let usual = self.peers.blueprint(settings, model).unwrap();
        // Half of the households have no embeddings, so that first model calls start together with their turns.
        let embedder = usual.embedder.clone().filter(|_| Rng::of(self.plan.seed, "embeddings").percent(50));
        AppBlueprint { library: self.library(), channels, polling: Polling::On, embedder, ..usual }
    }

    fn library(&self) -> ArrInstances {
        let radarr = self.network_faults("radarr", self.plan.radarr).before(self.peers.radarr.in_process());
        let sonarr = self.network_faults("sonarr", self.plan.sonarr).before(self.peers.sonarr.in_process());
        let ChangedSettings { radarr_moves, sonarr_moves, .. } = *self.changed_settings.lock().unwrap();
        let radarr = Radarr::new(
            HttpClient::in_process(radarr),
            format!("http://radarr{radarr_moves}.invalid").parse().unwrap(),
            self.peers.radarr.api_key().to_owned().into(),
        );
        let sonarr = Sonarr::new(
            HttpClient::in_process(sonarr),
            format!("http://sonarr{sonarr_moves}.invalid").parse().unwrap(),
            self.peers.sonarr.api_key().to_owned().into(),
        );
        ArrInstances {
            movies: vec![Instance::new("radarr", false, radarr)],
            series: vec![Instance::new("sonarr", false, sonarr)],
            media_servers: self.media_servers(),
            discovery: self.discovery(),
            requests: self.requests(),
        }
    }
}
