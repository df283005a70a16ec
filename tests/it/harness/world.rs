//! Test helpers for the events around a program: it is killed, started, and receives messages late. The clock stands
//! still except when a test lets time pass, so hours cost nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dialarr::access_rules::SignIn;
use dialarr::app::{App, AppBlueprint, ApplyError, Polling};
use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::arr::radarr::Radarr;
use dialarr::clock::Clock;
use dialarr::conversation::deletion::deletion_messages::CodePolicy;
use dialarr::conversation::grammar::triage::TriageLevel;
use dialarr::conversation::model_request::{ModelMessage, ModelRequest};
use dialarr::conversation::routing::senders::Senders;
use dialarr::conversation::transcript::{
    Address, MediaKind, PhoneNumber, ToolArguments, UserRights, UserRole,
};
use dialarr::engine::agents::{AgentCallOutcome, AgentKey, AgentScope};
use dialarr::engine::approvals::user_access::BlockOutcome;
use dialarr::engine::{self, Engine, HouseholdSettings};
use dialarr::http::{HttpClient, InProcess};
use dialarr::llm::Model;
use dialarr::llm::embeddings::Embedder;
use dialarr::llm::scripted::{ScriptedModel, ScriptedReply};
use dialarr::messaging::twilio::Twilio;
use dialarr::messaging::twilio::fake::{FakeTwilio, InboundForm};
use dialarr::response_budget::ResponseBudget;
use dialarr::seerr::fake::FakeSeerr;
use dialarr::simulation::{self, SimulatedPeers};
use dialarr::store::agent_tickets::CallRecord;
use dialarr::store::audit::Actor;
use dialarr::store::console_access::{self, KeyScope};
use dialarr::store::database::db::Db;
use dialarr::store::library::follows::{self, FollowReason, FollowedTitle};
use dialarr::store::people::users::{self, FirstContactRole};
use dialarr::store::privacy::erase_user_content;
use dialarr::store::privacy::forget::{ErasureOutcome, forget_user};
use dialarr::store::privacy::retention::{RetentionProgress, erase_expired_text};
use dialarr::store::queue::outbox::{self, NewOutboundMessage, OutboundKind};
use dialarr::store::{Conn, QueryResult};
use dialarr::tools::library::Instance;
use dialarr::web::console_state::ConsoleState;
use dialarr::web::{self, WebhookState, auth};
use diesel::connection::SimpleConnection;
use http::{Request, StatusCode};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::checked_folder::CheckedFolder;
use super::expected_events::{EventReport, ExpectedEvents};
use super::phone::HousePhone;
use super::reports::{SECRET, report};
use super::telegram::HouseBot;
use super::{ANN, PUBLIC_URL, stored};

/// Program and its world; Ann, who may delete, sends the messages.
pub(crate) struct World {
    /// Program; `None` while the program is down.
    app: Option<App>,
    peers: SimulatedPeers,
    script: Arc<ScriptedModel>,
    model: Arc<dyn Model>,
    /// Embedder; `None` by default, as for the program.
    embedder: Option<Arc<dyn Embedder>>,
    routing: TriageLevel,
    /// Servers in place of the usual ones.
    moved: MovedServers,
    house_phone: HousePhone,
    house_bot: HouseBot,
    folder: CheckedFolder,
}

/// Our number at the other carrier account.
pub(crate) const OTHER_NUMBER: &str = "+15550100009";

/// Servers to which Radarr and the carrier account were moved.
#[derive(Default)]
pub(crate) struct MovedServers {
    radarr: Option<FakeRadarr>,
    /// Number of moves of Radarr while a message arrived.
    radarr_moves: u32,
    has_other_account: bool,
    /// Methods and paths of the requests to the moved Radarr and about outbound messages to the other account.
    requests: Arc<Mutex<Vec<String>>>,
}

impl MovedServers {
    fn client(&self, server: InProcess) -> HttpClient {
        let requests = self.requests.clone();
        HttpClient::in_process(Arc::new(move |request| {
            requests.lock().unwrap().push(format!("{} {}", request.method(), request.uri().path()));
            server(request)
        }))
    }

    fn apply(&self, blueprint: &mut AppBlueprint, twilio: &FakeTwilio) {
        if let Some(radarr) = &self.radarr {
            let url = format!("http://other-radarr{}.invalid", self.radarr_moves).parse().unwrap();
            let client = Radarr::new(self.client(radarr.in_process()), url, radarr.api_key().into());
            blueprint.library.movies = vec![Instance::new("radarr", false, client)];
        }
        if self.has_other_account {
            let account = twilio.client_account("https://api.other.invalid");
            let carrier = Twilio::new(account, self.client(twilio.in_process()));
            blueprint.channels = blueprint.channels.clone().with(Arc::new(carrier));
            blueprint.polling = Polling::Off;
            blueprint.settings.senders = Senders::from_addresses(vec![Address::new(OTHER_NUMBER)]);
        }
    }
}

impl World {
    /// Starts a program with a model that plays a script.
    pub(crate) async fn start() -> Self {
        let script = Arc::new(ScriptedModel::new(Vec::new()));
        Self::build(script.clone(), script, TriageLevel::Heuristic).await
    }

    /// Starts a program that requests titles at a Seerr.
    pub(crate) async fn start_with_seerr() -> Self {
        let script = Arc::new(ScriptedModel::new(Vec::new()));
        let mut world = Self::down(script.clone(), script, TriageLevel::Heuristic, "2026-11-20T21:04:00Z");
        world.peers = world.peers.with_seerr();
        world.start_again().await;
        world.register_ann().await;
        world.pass(1).await;
        world
    }

    pub(crate) async fn start_with(model: Arc<dyn Model>) -> Self {
        Self::build(Arc::new(ScriptedModel::new(Vec::new())), model, TriageLevel::Heuristic).await
    }

    /// Starts a program whose model first decides whether a message needs a reply.
    pub(crate) async fn start_with_triage_by(model: Arc<dyn Model>) -> Self {
        Self::build(Arc::new(ScriptedModel::new(Vec::new())), model, TriageLevel::Ai).await
    }

    /// Restarts the program with an embedder from here on.
    pub(crate) async fn start_again_with(&mut self, embedder: Arc<dyn Embedder>) {
        self.embedder = Some(embedder);
        self.kill().await;
        self.start_again().await;
    }

    /// Starts the program on a database that an earlier program left behind, at a given time, with the titles that the
    /// libraries hold by then.
    pub(crate) async fn upgraded(
        at: &str,
        leave: impl FnOnce(&Path),
        fill: impl FnOnce(&SimulatedPeers),
    ) -> Self {
        let script = Arc::new(ScriptedModel::new(Vec::new()));
        let mut world = Self::down(script.clone(), script, TriageLevel::Heuristic, at);
        leave(&world.database());
        fill(&world.peers);
        world.start_again().await;
        world
    }

    fn down(script: Arc<ScriptedModel>, model: Arc<dyn Model>, routing: TriageLevel, at: &str) -> Self {
        let clock = Clock::from_runtime(at.parse().unwrap());
        let (radarr, sonarr) = (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock.clone()));
        let peers = SimulatedPeers::new(clock, radarr, sonarr, PUBLIC_URL);
        let folder = CheckedFolder::new();
        let house_phone = HousePhone::new(peers.clock.clone());
        let house_bot = HouseBot::new(peers.clock.clone());
        Self {
            app: None,
            peers,
            script,
            model,
            embedder: None,
            routing,
            moved: MovedServers::default(),
            house_phone,
            house_bot,
            folder,
        }
    }

    async fn build(script: Arc<ScriptedModel>, model: Arc<dyn Model>, routing: TriageLevel) -> Self {
        let mut world = Self::down(script, model, routing, "2026-11-20T21:04:00Z");
        world.start_again().await;
        world.register_ann().await;
        world.pass(1).await;
        world
    }

    /// Registers a user who may add titles.
    pub(crate) async fn register_user(&self, phone: &str) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.peers.clock.now());
        let rights = UserRights {
            role: UserRole::Member,
            add: true,
            delete: false,
            four_k: false,
            ..UserRights::MEMBER
        };
        let know = move |conn: &mut _| {
            let id = users::ensure_user(conn, &phone, FirstContactRole::Member, now)?;
            users::set_rights(conn, id, rights, now)
        };
        self.app.as_ref().unwrap().db.write(know).await.unwrap();
    }

    /// Registers an admin.
    pub(crate) async fn register_admin(&self, phone: &str) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.peers.clock.now());
        let know =
            move |conn: &mut _| users::ensure_user(conn, &phone, FirstContactRole::Admin, now).map(drop);
        self.app.as_ref().unwrap().db.write(know).await.unwrap();
    }

    async fn register_ann(&self) {
        let (phone, now) = (PhoneNumber::parse(ANN).unwrap(), self.peers.clock.now());
        let rights = UserRights {
            role: UserRole::Member,
            add: true,
            delete: true,
            four_k: false,
            ..UserRights::MEMBER
        };
        let know = move |conn: &mut _| {
            let id = users::ensure_user(conn, &phone, FirstContactRole::Member, now)?;
            users::set_rights(conn, id, rights, now)
        };
        self.app.as_ref().unwrap().db.write(know).await.unwrap();
    }

    pub(crate) async fn kill(&mut self) {
        self.app.take().unwrap().kill().await;
        self.pass(1).await;
    }

    /// Returns the number of syncs of the write-ahead log.
    pub(crate) fn log_syncs(&self) -> u64 {
        self.app.as_ref().unwrap().db.log_syncs().count()
    }

    /// Returns the size of the write-ahead log.
    pub(crate) fn log_bytes(&self) -> u64 {
        std::fs::metadata(self.database().with_extension("db-wal")).unwrap().len()
    }

    /// Returns the number of sent messages, additions and deletions.
    pub(crate) fn effect_count(&self) -> usize {
        self.sent_texts().len() + self.radarr().added_ids().len() + self.radarr().removed_ids().len()
    }

    /// Returns the size of the write-ahead log when it was last synced.
    pub(crate) fn synced_log_bytes(&self) -> u64 {
        self.app.as_ref().unwrap().db.log_syncs().synced_bytes()
    }

    pub(crate) async fn start_again(&mut self) {
        self.start_on(self.open_database()).await;
    }

    /// Starts the program, and lists all events that are expected from its start on.
    pub(crate) async fn start_again_expecting_events(&mut self) -> ExpectedEvents {
        let db = self.open_database();
        let expected = ExpectedEvents::begin(&db).await;
        self.start_on(db).await;
        expected
    }

    fn open_database(&self) -> Db {
        Db::open_simulated(self.database().to_str().unwrap(), 1).unwrap()
    }

    async fn start_on(&mut self, db: Db) {
        let settings = HouseholdSettings {
            triage_level: self.routing,
            ..simulation::simulation_settings(TimeZone::UTC)
        };
        let mut blueprint = self.peers.blueprint(settings, Some(self.model.clone())).unwrap();
        blueprint.arr_secret = Some(SECRET.into());
        blueprint.polling = Polling::On;
        blueprint.embedder.clone_from(&self.embedder);
        self.moved.apply(&mut blueprint, &self.peers.twilio);
        self.house_phone.apply(&mut blueprint);
        self.house_bot.apply(&mut blueprint);
        // Access to the console is not a part of this simulation.
        blueprint.console.sign_in = SignIn::Open;
        self.app = Some(App::start(db, self.peers.clock.clone(), blueprint).await.unwrap());
    }

    /// Moves Radarr to another server, at once if the program runs.
    pub(crate) async fn move_radarr(&mut self, radarr: &FakeRadarr) {
        self.moved.radarr = Some(radarr.clone());
        self.apply_moves().await;
    }

    /// Sends a message from Ann some time after the beginning of a change that moves Radarr and replaces the model.
    pub(crate) async fn text_during_a_move(
        &mut self,
        (body, wait_ms): (&str, u64),
        radarr: &FakeRadarr,
        model: Arc<dyn Model>,
    ) {
        (self.moved.radarr, self.model) = (Some(radarr.clone()), model);
        self.moved.radarr_moves += 1;
        let text = async {
            self.pass_ms(wait_ms).await;
            self.texts(body).await;
        };
        tokio::join!(self.apply_moves(), text);
    }

    /// Moves Radarr back to its first server, at the next start.
    pub(crate) fn move_radarr_back(&mut self) {
        self.moved.radarr = None;
    }

    /// Moves to another carrier account, at once if the program runs.
    pub(crate) async fn move_carrier(&mut self) {
        self.moved.has_other_account = true;
        self.apply_moves().await;
    }

    pub(super) fn house_phone(&self) -> &HousePhone {
        &self.house_phone
    }

    pub(super) fn house_phone_mut(&mut self) -> &mut HousePhone {
        &mut self.house_phone
    }

    pub(super) fn house_bot(&self) -> &HouseBot {
        &self.house_bot
    }

    pub(super) fn house_bot_mut(&mut self) -> &mut HouseBot {
        &mut self.house_bot
    }

    /// Applies the channels to the running program.
    pub(super) async fn apply_channels(&self) {
        let Some(app) = &self.app else { return };
        let apply = |current: &AppBlueprint| {
            let mut changed = current.clone();
            self.house_phone.apply(&mut changed);
            self.house_bot.apply(&mut changed);
            Ok::<_, ApplyError>(changed)
        };
        app.change_blueprint(apply).await.unwrap();
    }

    async fn apply_moves(&self) {
        let Some(app) = &self.app else { return };
        let apply = |current: &AppBlueprint| {
            let mut moved = AppBlueprint { model: Some(self.model.clone()), ..current.clone() };
            self.moved.apply(&mut moved, &self.peers.twilio);
            Ok::<_, ApplyError>(moved)
        };
        app.change_blueprint(apply).await.unwrap();
    }

    /// Returns the requests to the servers that were moved to.
    pub(crate) fn requests_to_moved_servers(&self) -> Vec<String> {
        self.moved.requests.lock().unwrap().clone()
    }

    /// Returns the memory budget that the responses of both libraries share.
    pub(crate) fn responses(&self) -> &ResponseBudget {
        &self.peers.responses
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("test.db")
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.app.as_ref().unwrap().engine
    }

    pub(crate) fn console(&self) -> ConsoleState {
        self.app.as_ref().unwrap().console.clone()
    }

    pub(crate) fn webhooks(&self) -> WebhookState {
        self.app.as_ref().unwrap().webhooks.clone()
    }

    /// Lists all events that are expected from here on.
    pub(crate) async fn expect_events(&self) -> ExpectedEvents {
        ExpectedEvents::begin(&self.app.as_ref().unwrap().db).await
    }

    /// Checks that the log contains exactly the expected events.
    pub(crate) async fn assert_events(&self, expected: ExpectedEvents) {
        assert_eq!(self.compare_events(expected).await.differences, Vec::<String>::new());
    }

    pub(crate) async fn compare_events(&self, expected: ExpectedEvents) -> EventReport {
        expected.compare(&self.app.as_ref().unwrap().db).await
    }

    /// Returns the result of a query, one line for each row.
    pub(crate) async fn lines(&self, query: &'static str) -> Vec<String> {
        stored::lines(&self.app.as_ref().unwrap().db, query).await
    }

    /// Calls tools as an agent that acts for a person, one after the other, and asks what became of the last call.
    pub(crate) async fn agent_calls(&self, phone: &str, calls: &[(&str, Value)]) -> Vec<CallRecord> {
        let (app, phone) = (self.app.as_ref().unwrap(), PhoneNumber::parse(phone).unwrap());
        let find = move |conn: &mut Conn| users::find_user_by_phone(conn, &phone);
        let person = app.db.read(find).await.unwrap().unwrap().id;
        let new_key = ("desk".to_owned(), KeyScope::Write, Some(person));
        auth::create_key(&app.db, new_key, self.now()).await.unwrap();
        let id = app.db.read(console_access::load_api_keys).await.unwrap()[0].id;
        let key = AgentKey { id, name: "desk".to_owned(), scope: AgentScope::Write, person };
        let mut records = Vec::new();
        for (tool, arguments) in calls {
            let call = (*tool, ToolArguments::parse(arguments.clone()));
            match app.engine.agents.call_tool(&key, None, call).await.unwrap() {
                AgentCallOutcome::Answered(record) => records.push(*record),
                refused => panic!("{tool}: {refused:?}"),
            }
        }
        let ticket = records.last().map(|record| record.ticket.clone()).unwrap_or_default();
        records.extend(app.engine.agents.find_call(&key, ticket).await.unwrap());
        records
    }

    /// Damages stored rows.
    pub(crate) async fn damage_rows(&self, statement: &'static str) {
        let damage = move |conn: &mut Conn| conn.batch_execute(statement);
        self.app.as_ref().unwrap().db.write(damage).await.unwrap();
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        self.pass_ms(seconds * 1_000).await;
    }

    pub(crate) async fn pass_ms(&self, milliseconds: u64) {
        let end = tokio::time::Instant::now() + Duration::from_millis(milliseconds);
        tokio::time::sleep_until(end).await;
    }

    /// Sets the wall clock forward or back, and gives a running program a moment to notice the step.
    pub(crate) async fn set_clock(&self, by: SignedDuration) {
        self.peers.clock.shift_wall_clock(by);
        self.pass_ms(1_500).await;
    }

    pub(crate) fn radarr(&self) -> &FakeRadarr {
        &self.peers.radarr
    }

    pub(crate) fn seerr(&self) -> &FakeSeerr {
        self.peers.seerr.as_ref().unwrap()
    }

    pub(crate) fn sonarr(&self) -> &FakeSonarr {
        &self.peers.sonarr
    }

    pub(crate) fn twilio(&self) -> &FakeTwilio {
        &self.peers.twilio
    }

    pub(crate) fn model_plays(&self, lines: impl IntoIterator<Item = ScriptedReply>) {
        self.script.replace_script(lines.into_iter().collect());
    }

    /// Returns the users' messages in the last request to the model.
    pub(crate) fn last_user_message(&self) -> String {
        let requests = self.script.requests();
        let user_text = |message: &ModelMessage| match message {
            ModelMessage::User(text) => Some(text.clone()),
            ModelMessage::Assistant { .. } | ModelMessage::ToolResult { .. } => None,
        };
        requests
            .last()
            .and_then(|request| request.messages.iter().rev().find_map(|message| user_text(message)))
            .unwrap_or_default()
    }

    /// Returns the last request to the model.
    pub(crate) fn last_request(&self) -> ModelRequest {
        self.script.requests().pop().unwrap()
    }

    /// Makes every deletion need a code.
    pub(crate) async fn require_codes(&self) {
        let app = self.app.as_ref().unwrap();
        let change = |current: &AppBlueprint| {
            let mut changed = current.clone();
            changed.settings.code_policy = CodePolicy::Always;
            Ok::<_, ApplyError>(changed)
        };
        app.change_blueprint(change).await.unwrap();
    }

    /// Returns the text of the last request to the model, including the history.
    pub(crate) fn last_request_text(&self) -> String {
        self.script.requests().last().map(super::model::request_text).unwrap_or_default()
    }

    /// Returns the last tool result that the model received.
    pub(crate) fn last_tool_result(&self) -> String {
        let requests = self.script.requests();
        let shown = |message: &ModelMessage| match message {
            ModelMessage::ToolResult { content, .. } => Some(content.clone()),
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => None,
        };
        requests
            .last()
            .and_then(|request| request.messages.iter().rev().find_map(|message| shown(message)))
            .unwrap_or_default()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.peers.clock.now()
    }

    /// Returns the result of a database query.
    pub(crate) async fn read_database<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> R {
        self.app.as_ref().unwrap().db.read(work).await.unwrap()
    }

    /// Writes to the database on the connection of the program.
    pub(crate) async fn write_database<R: Send + 'static>(
        &self,
        work: impl Fn(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> R {
        self.app.as_ref().unwrap().db.write(work).await.unwrap()
    }

    /// Returns the number of requests to the scripted model.
    pub(crate) fn model_request_count(&self) -> usize {
        self.script.request_count()
    }

    fn text(&self, body: &str) -> InboundForm {
        self.peers.twilio.inbound_form(ANN, body)
    }

    /// Sends a message from Ann that is accepted, whatever its outcome.
    pub(crate) async fn texts(&self, body: &str) {
        let status = self.deliver(self.text(body).into_signed_request().unwrap()).await;
        assert_eq!(status, 200, "the webhook takes the text");
    }

    /// Sends a message from Ann, and returns all replies so far ten seconds later.
    pub(crate) async fn sms(&self, body: &str) -> Vec<String> {
        self.texts(body).await;
        self.pass(10).await;
        self.sent_texts()
    }

    /// Sends a message from any user, and returns all messages to that user so far ten seconds later.
    pub(crate) async fn sms_from(&self, phone: &str, body: &str) -> Vec<String> {
        let text = self.peers.twilio.inbound_form(phone, body);
        assert_eq!(
            self.deliver(text.into_signed_request().unwrap()).await,
            200,
            "the webhook takes the text"
        );
        self.pass(10).await;
        self.messages_to(phone)
    }

    /// Returns every message that a user received so far.
    pub(crate) fn messages_to(&self, phone: &str) -> Vec<String> {
        let sent = self.peers.twilio.sent_messages().into_iter();
        sent.filter(|text| text.to.as_str().ends_with(phone)).map(|text| text.body).collect()
    }

    /// Returns the title requests, as [`super::TestApp::requests`] does.
    pub(crate) async fn requests(&self) -> Vec<String> {
        stored::lines(&self.app.as_ref().unwrap().db, stored::REQUESTS).await
    }

    /// Returns the followers of titles, as [`super::TestApp::follows`] does.
    pub(crate) async fn follows(&self) -> Vec<String> {
        stored::lines(&self.app.as_ref().unwrap().db, stored::FOLLOWS).await
    }

    /// Returns the additions that count towards a user's quota.
    pub(crate) async fn additions(&self) -> Vec<String> {
        let counted = "SELECT kind || ' ' || amount AS line FROM additions ORDER BY tool_call_id";
        stored::lines(&self.app.as_ref().unwrap().db, counted).await
    }

    /// Forgets a user, as the operator does.
    pub(crate) async fn forget_user(&self, phone: &str) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.peers.clock.now());
        let forget = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            forget_user(conn, user.id, Actor::Shell, now)
        };
        let forgotten = self.app.as_ref().unwrap().db.write(forget).await.unwrap();
        assert_eq!(forgotten, ErasureOutcome::Erased);
    }

    /// Blocks a user, as the operator does.
    pub(crate) async fn block_user(&self, phone: &str) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.peers.clock.now());
        let block = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            engine::approvals::user_access::block_user(conn, &user, Actor::Shell, now)
        };
        assert_eq!(self.app.as_ref().unwrap().db.write(block).await.unwrap(), BlockOutcome::Blocked);
    }

    /// Creates a message from Ann that the carrier has and never delivers.
    pub(crate) async fn miss_message(&self, body: &str) {
        drop(self.text(body).into_signed_request().unwrap());
        self.pass(1).await;
    }

    /// Creates such a message that the carrier's list omits for this many seconds.
    pub(crate) async fn miss_message_listed_after(&self, body: &str, seconds: i64) {
        drop(
            self.text(body)
                .with_listing_delay(SignedDuration::from_secs(seconds))
                .into_signed_request()
                .unwrap(),
        );
        self.pass(1).await;
    }

    /// Queues a message to Ann that no turn wrote. The program sends no such messages yet, so the message has the kind
    /// of a reply; it leaves with the next one.
    pub(crate) async fn queue_message(&self, body: &str) {
        let (phone, now) = (PhoneNumber::parse(ANN).unwrap(), self.peers.clock.now());
        let (to, from) = (Address::new(ANN), Address::new(simulation::OUR_NUMBER));
        let (key, body, kind) = (format!("notice:{body}"), body.to_owned(), OutboundKind::Reply);
        let queue = move |conn: &mut _| {
            let user = users::ensure_user(conn, &phone, FirstContactRole::Member, now)?;
            let (key, to, from, body) = (key.clone(), to.clone(), from.clone(), body.clone());
            let text = NewOutboundMessage {
                key,
                user,
                address: None,
                turn: None,
                kind,
                to,
                from,
                body,
                media: None,
                reacts_to: None,
                quotes: None,
                room: None,
                vote: None,
                segments: 1,
            };
            outbox::queue_message(conn, &text, now)
        };
        self.app.as_ref().unwrap().db.write(queue).await.unwrap();
    }

    /// Makes Ann wait for a series and for a movie of the library, and imports both, one reported and one not.
    pub(crate) async fn import_followed_titles(&self) {
        let app = self.app.as_ref().unwrap();
        self.peers.sonarr.add(series("The Bear").year(2022).tvdb(403_294).seasons(2));
        self.peers.radarr.add(movie("Heat").year(1995).tmdb(949));
        let (phone, now) = (PhoneNumber::parse(ANN).unwrap(), self.peers.clock.now());
        let followed = [("radarr", MediaKind::Movie, 949), ("sonarr", MediaKind::Series, 403_294)];
        let follow = move |conn: &mut _| {
            let ann = users::ensure_user(conn, &phone, FirstContactRole::Member, now)?;
            for (instance, kind, catalog_id) in followed {
                let what = FollowedTitle { instance: instance.to_owned(), kind, catalog_id, season: None };
                follows::follow_title(conn, ann, &what, FollowReason::Request, now)?;
            }
            Ok(())
        };
        app.db.write(follow).await.unwrap();
        for season in ["The Bear S01", "The Bear S02E01"] {
            self.peers.sonarr.download_and_import(season);
            self.pass(500).await;
        }
        self.peers.radarr.download_and_import("Heat");
        let event = self.peers.radarr.import_event_json("Heat");
        assert_eq!(self.deliver(report("radarr", &event, SECRET)).await, 200);
        let ill =
            self.peers.radarr.health_event_json("error", "IndexerSearchCheck", "No indexers are available");
        assert_eq!(self.deliver(report("radarr", &ill, SECRET)).await, 200);
        self.pass(800).await;
        app.run_maintenance_once().await;
    }

    /// Runs one round of the maintenance that runs every ten minutes.
    pub(crate) async fn run_maintenance(&self) {
        self.app.as_ref().unwrap().run_maintenance_once().await;
    }

    /// Erases old messages, as the maintenance does once all messages so far are old.
    pub(crate) async fn erase_old_texts(&self) {
        let now = self.peers.clock.now();
        let erased =
            self.app.as_ref().unwrap().db.write(move |conn| erase_expired_text(conn, now, 1_000, now)).await;
        assert_eq!(erased.unwrap(), RetentionProgress::Done);
    }

    pub(crate) async fn erase_texts_of_ann(&self) {
        let (phone, now) = (PhoneNumber::parse(ANN).unwrap(), self.peers.clock.now());
        let erase = move |conn: &mut _| {
            let ann = users::ensure_user(conn, &phone, FirstContactRole::Member, now)?;
            erase_user_content(conn, ann, now)
        };
        self.app.as_ref().unwrap().db.write(erase).await.unwrap();
        assert!(self.stored_texts().await.iter().all(String::is_empty));
    }

    /// Returns the usage, as [`super::TestApp::usage`] does.
    pub(crate) async fn usage(&self) -> Vec<String> {
        stored::lines(&self.app.as_ref().unwrap().db, stored::USAGE).await
    }

    /// Returns the bodies of the accepted inbound messages, oldest first.
    pub(crate) async fn stored_texts(&self) -> Vec<String> {
        stored::lines(&self.app.as_ref().unwrap().db, "SELECT body AS line FROM inbound_events ORDER BY id")
            .await
    }

    pub(crate) async fn deliver(&self, request: Request<Bytes>) -> u16 {
        self.deliver_with_body(request).await.0.as_u16()
    }

    /// Delivers a request to the webhooks, and returns the status and the body of the response.
    pub(crate) async fn deliver_with_body(&self, request: Request<Bytes>) -> (StatusCode, String) {
        let webhook = HttpClient::in_process(web::in_process(web::webhook_router(
            self.app.as_ref().unwrap().webhooks.clone(),
        )));
        let response = webhook.send(request, Duration::from_secs(20)).await.unwrap();
        (response.status(), String::from_utf8(response.body().to_vec()).unwrap())
    }

    /// Returns every message that the carrier accepted from the program.
    pub(crate) fn sent_texts(&self) -> Vec<String> {
        self.peers.twilio.sent_messages().into_iter().map(|text| text.body).collect()
    }
}
