//! Test helpers for whole-app tests: a running program among simulated peers.

pub(crate) mod agent;
pub(crate) mod alert_server;
pub(crate) mod browser;
pub(crate) mod checked_folder;
pub(crate) mod cli;
pub(crate) mod expected_events;
pub(crate) mod forms;
pub(crate) mod invitations;
pub(crate) mod model;
pub(crate) mod model_server;
pub(crate) mod old_database;
mod operator;
pub(crate) mod phone;
pub(crate) mod program;
pub(crate) mod reports;
pub(crate) mod room;
pub(crate) mod seen;
pub(crate) mod seerr;
pub(crate) mod served;
pub(crate) mod settings;
mod setup;
pub(crate) mod statements;
mod stored;
pub(crate) mod streams;
pub(crate) mod telegram;
pub(crate) mod threads;
pub(crate) mod wire;
pub(crate) mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use dialarr::app::{App, AppBlueprint, ApplyError};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::arr::radarr::Radarr;
use dialarr::clock::Clock;
use dialarr::conversation::channel_list;
use dialarr::conversation::lifecycle::ConversationLifecycle;
use dialarr::conversation::model_request::{ModelMessage, ModelRequest};
use dialarr::conversation::people::naming::UserName;
use dialarr::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use dialarr::conversation::routing::senders::Senders;
use dialarr::conversation::routing::verification::FieldAuthority;
use dialarr::conversation::transcript::{Address, PhoneNumber, UserRights, UserRole, UserStatus};
use dialarr::discovery::fake::FakeTmdb;
use dialarr::engine;
use dialarr::engine::HouseholdSettings;
use dialarr::engine::approvals::user_access::BlockOutcome;
use dialarr::http::HttpClient;
use dialarr::llm::scripted::{ScriptedModel, ScriptedReply};
use dialarr::media_servers::fake::FakeHousehold;
use dialarr::messaging::twilio::fake::{FakeTwilio, InboundForm};
use dialarr::messaging::twilio::signature::SignatureVerifier;
use dialarr::messaging::twilio::{Twilio, TwilioReceiving};
use dialarr::response_budget::ResponseBudget;
use dialarr::seerr::fake::FakeSeerr;
use dialarr::settings::LiveSettings;
use dialarr::simulation::SimulatedPeers;
use dialarr::store::audit::Actor;
use dialarr::store::conversation::conversations;
use dialarr::store::database::db::Db;
use dialarr::store::people::join_requests;
use dialarr::store::people::users::{self, FirstContactRole};
use dialarr::tools::library::{ArrInstances, Instance};
use dialarr::web;
use futures_util::future::join_all;
use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};

pub(crate) use setup::Setup;

pub(crate) const ANN: &str = "+15550100002";
pub(crate) const BOB: &str = "+15550100003";
pub(crate) const PUBLIC_URL: &str = "https://sms.example.org";

/// Rights of a user besides asking.
pub(crate) enum Has {
    EveryRight,
    NoRights,
    AddRight,
}

/// Running program. `sms` sends a message as Ann, an admin, and returns the replies to her.
pub(crate) struct TestApp {
    /// Program; `None` only while the program is down.
    app: Option<App>,
    world: World,
}

/// State that outlives a crash of the program.
struct World {
    setup: Setup,
    peers: SimulatedPeers,
    folder: checked_folder::CheckedFolder,
}

impl TestApp {
    /// Starts a program with a model that plays a script.
    pub(crate) async fn start() -> Self {
        Setup::default().start().await
    }

    /// Starts a program without a model: the keyword responder answers.
    pub(crate) async fn start_without_model() -> Self {
        Setup::default().keyword_responder().start().await
    }

    /// Starts a program with a second Radarr, for 4K.
    pub(crate) async fn start_with_four_k(four_k: &FakeRadarr) -> Self {
        Setup::default().four_k(four_k).start().await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut HouseholdSettings)) -> Self {
        Setup::default().with(change).start().await
    }

    /// Stops the program as if killed, and starts it again on the same database.
    pub(crate) async fn restart(&mut self) {
        if let Some(app) = self.app.take() {
            app.kill().await;
        }
        self.app = Some(self.world.run().await);
    }

    /// Restarts the program with another configuration.
    pub(crate) async fn restart_with(&mut self, change: impl FnOnce(Setup) -> Setup) {
        self.world.setup = change(std::mem::take(&mut self.world.setup));
        self.restart().await;
    }

    /// Applies another configuration to the running program.
    pub(crate) async fn reconfigure(&mut self, change: impl FnOnce(Setup) -> Setup) {
        self.world.setup = change(std::mem::take(&mut self.world.setup));
        let changed = self.world.blueprint();
        self.app().change_blueprint(|_| Ok::<_, ApplyError>(changed)).await.unwrap();
    }

    /// Offers stored settings in the console.
    pub(crate) fn offer_settings(&mut self, settings: LiveSettings) {
        self.app = self.app.take().map(|app| app.with_settings(settings));
    }

    pub(crate) fn radarr(&self) -> &FakeRadarr {
        &self.world.peers.radarr
    }

    pub(crate) fn tmdb(&self) -> &FakeTmdb {
        self.world.peers.tmdb.as_ref().unwrap()
    }

    /// Returns the titles and people of the simulated Jellyfin.
    pub(crate) fn jellyfin(&self) -> &FakeHousehold {
        &self.world.peers.jellyfin.as_ref().unwrap().household
    }

    pub(crate) fn seerr(&self) -> &FakeSeerr {
        self.world.peers.seerr.as_ref().unwrap()
    }

    pub(crate) fn sonarr(&self) -> &FakeSonarr {
        &self.world.peers.sonarr
    }

    /// Returns the memory budget that the responses of both libraries share.
    pub(crate) fn responses(&self) -> &ResponseBudget {
        &self.world.peers.responses
    }

    pub(crate) fn twilio(&self) -> &FakeTwilio {
        &self.world.peers.twilio
    }

    pub(crate) fn app(&self) -> &App {
        self.app.as_ref().unwrap()
    }

    pub(crate) fn model(&self) -> &ScriptedModel {
        self.world.setup.scripted().unwrap()
    }

    /// Sets the model's responses from here on.
    pub(crate) fn model_plays(&self, lines: impl IntoIterator<Item = ScriptedReply>) {
        self.model().replace_script(lines.into_iter().collect());
    }

    /// Returns the last request to the model.
    pub(crate) fn last_request(&self) -> ModelRequest {
        self.model().requests().pop().unwrap()
    }

    /// Returns the results of all tool calls in the last request, as the model reads them.
    pub(crate) fn results(&self) -> Vec<String> {
        let result = |message: &ModelMessage| match message {
            ModelMessage::ToolResult { content, .. } => Some(content.clone()),
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => None,
        };
        self.last_request().messages.iter().filter_map(|message| result(message)).collect()
    }

    /// Returns the path of the database, for tests that interfere with it.
    pub(crate) fn database_path(&self) -> String {
        self.world.folder.path().join("test.db").to_str().unwrap().to_owned()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.world.peers.clock.now()
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.world.peers.clock.advance(std::time::Duration::from_secs(seconds.unsigned_abs()));
    }

    /// Sets the clock back, as an operator who corrects it does.
    pub(crate) fn clock_is_set_back(&self, seconds: i64) {
        let Clock::Manual(now) = &self.world.peers.clock else { panic!("no clock of ours") };
        let mut now = now.lock().unwrap();
        *now -= SignedDuration::from_secs(seconds);
    }

    /// Sends a message as Ann, one second after the last one, and returns the replies to her.
    pub(crate) async fn sms(&self, body: &str) -> String {
        self.sms_from(ANN, body).await
    }

    pub(crate) async fn sms_from(&self, from: &str, body: &str) -> String {
        self.pass(1);
        let before = self.twilio().sent_messages().len();
        let status = self.post(self.text(from, body)).await;
        assert_eq!(status, 200, "the webhook takes the text");
        self.settle().await;
        self.texts_to(from, before)
    }

    /// Types in the terminal, as `dialarr chat` accepts it.
    pub(crate) async fn types(&self, phone: &str, body: &str) {
        self.pass(1);
        let now = self.now();
        let typed = ReceivedMessage {
            channel: channel_list::TERMINAL,
            external_id: format!("local-{now}"),
            from: PhoneNumber::parse(phone).unwrap().into(),
            to: Address::local(),
            body: body.to_owned(),
            media: Vec::new(),
            via: MessageSource::Local,
            authority: FieldAuthority::Certain,
            carrier_word: None,
            pressed: None,
            room: None,
            provider_at: now,
            received_at: now,
        };
        self.app().engine.admission.admit_message(typed).await.unwrap();
        self.settle().await;
    }

    /// Sends messages of one user that arrive in the same instant. Returns the replies to all of them.
    pub(crate) async fn sms_at_once(&self, bodies: &[&str]) -> String {
        self.pass(1);
        let before = self.twilio().sent_messages().len();
        let posts = bodies.iter().map(|body| self.post(self.text(ANN, body)));
        assert!(join_all(posts).await.iter().all(|status| *status == 200));
        self.settle().await;
        self.texts_to(ANN, before)
    }

    /// Sends messages that arrive while the program stops: all of them wait when the program starts again.
    pub(crate) async fn sms_during_restart(&mut self, bodies: &[&str]) -> String {
        self.pass(1);
        let before = self.twilio().sent_messages().len();
        self.app().engine.abort().await;
        for body in bodies {
            assert_eq!(self.post(self.text(ANN, body)).await, 200);
        }
        self.restart().await;
        self.settle().await;
        self.texts_to(ANN, before)
    }

    /// Returns the messages to a user after the first `before` messages to any user.
    pub(crate) fn texts_to(&self, phone: &str, before: usize) -> String {
        let sent = self.twilio().sent_messages();
        let texts: Vec<&str> = sent[before..]
            .iter()
            .filter(|text| text.to.as_str().ends_with(phone))
            .map(|text| text.body.as_str())
            .collect();
        texts.join("\n")
    }

    /// Creates a message on its way to Dialarr's number.
    pub(crate) fn text(&self, from: &str, body: &str) -> InboundForm {
        self.twilio().inbound_form(from, body)
    }

    /// Delivers a message to the webhook, without a wait for its effects.
    pub(crate) async fn post(&self, text: InboundForm) -> u16 {
        self.request(text.into_signed_request().unwrap()).await.status().as_u16()
    }

    pub(crate) async fn request(&self, request: Request<Bytes>) -> Response<Bytes> {
        let webhook =
            HttpClient::in_process(web::in_process(web::webhook_router(self.app().webhooks.clone())));
        webhook.send(request, std::time::Duration::from_secs(20)).await.unwrap()
    }

    /// Waits until no message is being processed and all messages that can be sent are sent.
    pub(crate) async fn settle(&self) {
        self.app().engine.scheduler.wait_until_idle().await;
        self.app().relay.wait_until_settled().await.unwrap();
    }

    /// Registers a user as active.
    pub(crate) async fn register_user(&self, phone: &str, has: Has) {
        let rights = match has {
            Has::EveryRight => UserRights {
                role: UserRole::Admin,
                add: true,
                delete: true,
                four_k: true,
                ..UserRights::MEMBER
            },
            Has::AddRight => UserRights {
                role: UserRole::Member,
                add: true,
                delete: false,
                four_k: false,
                ..UserRights::MEMBER
            },
            Has::NoRights => UserRights {
                role: UserRole::Member,
                add: false,
                delete: false,
                four_k: false,
                ..UserRights::MEMBER
            },
        };
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.world.peers.clock.now());
        self.app()
            .db
            .write(move |conn| {
                let id = users::ensure_user(conn, &phone, FirstContactRole::Member, now)?;
                users::set_status(conn, id, UserStatus::Active, now)?;
                users::set_rights(conn, id, rights, now)
            })
            .await
            .unwrap();
    }

    /// Registers a user as active, with a name.
    pub(crate) async fn register_named_user(&self, name: &'static str, phone: &str, has: Has) {
        self.register_user(phone, has).await;
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.now());
        let introduce = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            join_requests::record_introduction(conn, user.id, &UserName::parse(name).unwrap(), now)
        };
        self.app().db.write(introduce).await.unwrap();
    }

    /// Returns every message that a user received so far.
    pub(crate) fn messages_to(&self, phone: &str) -> Vec<String> {
        let sent = self.twilio().sent_messages().into_iter();
        sent.filter(|text| text.to.as_str().ends_with(phone)).map(|text| text.body).collect()
    }

    /// Returns the last message that a user received.
    pub(crate) fn last_to(&self, phone: &str) -> String {
        self.messages_to(phone).pop().unwrap_or_default()
    }

    /// Runs the maintenance that the program runs automatically every few minutes.
    pub(crate) async fn run_maintenance(&self) {
        self.app().run_maintenance_once().await;
        self.settle().await;
    }

    /// Returns the lifecycle note that the last reply to a user carries about its conversation.
    pub(crate) async fn lifecycle(&self, phone: &str) -> String {
        let phone = PhoneNumber::parse(phone).unwrap();
        let read = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            conversations::load_last_lifecycle(conn, user.id)
        };
        let ConversationLifecycle { is_new_conversation, conversation_id, conversation_name, started_at } =
            self.app().db.read(read).await.unwrap().unwrap();
        let new = if is_new_conversation { "new " } else { "" };
        format!("{new}conversation {conversation_id} {conversation_name} since {started_at:.0}")
    }

    /// Blocks a user, as the operator does.
    pub(crate) async fn block(&self, phone: &str) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.now());
        let block = move |conn: &mut _| {
            let id = users::ensure_user(conn, &phone, FirstContactRole::Member, now)?;
            let user = users::load_user(conn, id)?;
            engine::approvals::user_access::block_user(conn, &user, Actor::Shell, now)
        };
        assert_eq!(self.app().db.write(block).await.unwrap(), BlockOutcome::Blocked);
    }

    /// Approves a user, as the operator does at the shell.
    pub(crate) async fn approve(&self, phone: &str) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.now());
        let approve = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            engine::approvals::user_access::approve_user(conn, &user, Actor::Shell, &Senders::default(), now)
        };
        self.app().db.write(approve).await.unwrap();
    }
}

impl World {
    async fn run(&self) -> App {
        let database = self.folder.path().join("test.db");
        let db = Db::open(database.to_str().unwrap()).unwrap();
        App::start(db, self.peers.clock.clone(), self.blueprint()).await.unwrap()
    }

    fn blueprint(&self) -> AppBlueprint {
        let setup = &self.setup;
        let mut blueprint = self.peers.blueprint(setup.settings.clone(), setup.responder.model()).unwrap();
        blueprint.admin.clone_from(&setup.admin);
        blueprint.members.clone_from(&setup.members);
        blueprint.arr_secret.clone_from(&setup.report_secret);
        blueprint.console = setup.console.clone();
        blueprint.alerts.clone_from(&setup.alerts);
        blueprint.public_address.clone_from(&setup.public_address);
        blueprint.embedder.clone_from(&setup.embedder);
        if let Some(tokens) = &setup.tokens {
            let verifier = SignatureVerifier { tokens: tokens.clone(), shared_keys: BTreeMap::new() };
            let mut account = self.peers.twilio.client_account("https://api.twilio.invalid");
            account.public_url.clone_from(&setup.public_url);
            let receiving = TwilioReceiving { verifier, ..self.peers.twilio_receiving() };
            let http = HttpClient::in_process(self.peers.twilio.in_process());
            let port = Twilio::new(account, http).with_receiving(receiving);
            blueprint.channels = blueprint.channels.with(Arc::new(port));
        }
        if setup.is_unconfigured {
            blueprint.library = ArrInstances::default();
            blueprint.channels.remove(channel_list::TWILIO);
        }
        if !setup.has_sonarr {
            blueprint.library.series.clear();
        }
        if let Some(four_k) = &setup.four_k {
            let client = Radarr::new(
                HttpClient::in_process(four_k.in_process()),
                "http://radarr4k.invalid".parse().unwrap(),
                four_k.api_key().into(),
            );
            blueprint.library.movies.push(Instance::new("radarr-4k", true, client));
        }
        blueprint
    }
}

impl Drop for TestApp {
    /// A script that was not played to its end means that the test did not test what its name claims.
    fn drop(&mut self) {
        let left = self.world.setup.scripted().map_or(0, ScriptedModel::remaining_replies);
        if left > 0 && !std::thread::panicking() {
            panic!("{left} lines of the model's script were not played");
        }
    }
}
