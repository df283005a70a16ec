//! Runs one scenario with the real store, engine, tools and outbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use super::expectation::{self, CheckMode, ObservedEffects, UserMessages};
use super::recording_model::{ModelActivity, RecordingModel};
use super::run_stats::{MessageStats, ScenarioRun};
use super::scenario_file::{MessageEntry, Scenario, ScenarioFile};
use super::scenario_jellyfin;
use super::scenario_room::{self, RoomAction, ScenarioRoom};
use super::scenario_servers::{NamedWrite, ScenarioServers};
use super::scenario_users;
use crate::app::App;
use crate::clock::Clock;
use crate::conversation::channel_list;
use crate::conversation::grammar::keyword_grammar::{MODEL_OFF_PREFIX, NOT_UNDERSTOOD};
use crate::conversation::model_cost::ModelPrices;
use crate::conversation::model_request::{ModelMessage, ModelRequest};
use crate::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::text::segments::SegmentCount;
use crate::conversation::transcript::{Address, MediaKind, PhoneNumber};
use crate::conversation::turn::FallbackReply;
use crate::engine::{CodeSource, SmsReactions};
use crate::llm::Model;
use crate::llm::scripted::ScriptedModel;
use crate::messaging::twilio::fake::SentMessage;
use crate::messaging::{Gesture, OutboundMessage};
use crate::simulation::{self, OUR_NUMBER};
use crate::store::Conn;
use crate::store::confirmation::pending_action;
use crate::store::database::db::Db;
use crate::store::people::users;
use crate::store::text_index;
use crate::store::turns::calls;

/// Latency of the simulated carrier, after which it has accepted a confirmation prompt.
const CARRIER_LATENCY: Duration = Duration::from_secs(2);
/// Time between two messages after which the program runs its maintenance, and has indexed the earlier messages.
const MAINTENANCE_INTERVAL: SignedDuration = SignedDuration::from_mins(10);

/// Model that answers the messages.
#[derive(Clone)]
pub(super) enum EvalModel {
    /// Script of the file. It shows what code rejects whatever the model returns.
    Scripted,
    /// Real model, which ignores the script.
    Live { model: Arc<dyn Model>, prices: ModelPrices },
}

/// Sends the messages one after another, and continues after a message with unexpected effects.
pub(super) async fn run_scenario(
    file: &ScenarioFile,
    scenario: &Scenario,
    model_kind: &EvalModel,
) -> anyhow::Result<ScenarioRun> {
    let harness = ScenarioHarness::start(file, scenario, model_kind).await?;
    let mut run = ScenarioRun::default();
    for (number, message) in (1..).zip(&scenario.turns) {
        let (observed, mut stats) = harness.send_message(file, message, number).await?;
        let problems = expectation::find_differences(&message.expect, &observed, model_kind.check_mode());
        stats.is_lost = !problems.is_empty();
        run.problems.extend(problems.into_iter().map(|problem| format!("text {number}: {problem}")));
        run.messages.push(stats);
    }
    harness.app.drain_turns().await;
    harness.app.close().await;
    Ok(run)
}

impl EvalModel {
    fn check_mode(&self) -> CheckMode {
        match self {
            Self::Scripted => CheckMode::Scripted,
            Self::Live { .. } => CheckMode::Live,
        }
    }
}

struct ScenarioHarness {
    app: App,
    servers: ScenarioServers,
    model: Arc<RecordingModel>,
    /// Scripted model. `None` with a real model.
    script: Option<Arc<ScriptedModel>>,
    /// Group with a bot, if the scenario has one.
    room: Option<ScenarioRoom>,
    start: Timestamp,
    _folder: tempfile::TempDir,
}

impl ScenarioHarness {
    async fn start(file: &ScenarioFile, scenario: &Scenario, model_kind: &EvalModel) -> anyhow::Result<Self> {
        let start = file.start_time()?;
        let clock = Clock::stopped_at(start);
        let library = file.libraries.get(&scenario.library);
        let library = library.with_context(|| format!("find the library {:?}", scenario.library))?;
        let servers = ScenarioServers::from_entry(library, &clock)?;
        servers.peers.twilio.set_latency(CARRIER_LATENCY);
        let folder = tempfile::tempdir().context("create a folder for the database")?;
        let database = folder.path().join("eval.db");
        let database = database.to_str().context("use a temporary folder that is not UTF-8")?;
        let mut settings = simulation::simulation_settings(scenario_zone(&file.now));
        if let Some(code) = &file.code {
            settings.codes = CodeSource::Fixed(code.parse().context("parse the code")?);
        }
        if let Some(jellyfin) = &library.jellyfin {
            settings.watch_sharing = jellyfin.sharing();
        }
        if scenario.reactions_as_text {
            settings.reactions = SmsReactions::Text;
        }
        let (script, model): (_, Arc<dyn Model>) = match model_kind {
            EvalModel::Scripted => {
                let script = Arc::new(ScriptedModel::new(Vec::new()));
                (Some(script.clone()), script)
            }
            EvalModel::Live { model, prices } => {
                settings.prices = *prices;
                (None, model.clone())
            }
        };
        let model = Arc::new(RecordingModel::new(model));
        settings.confirm_for = SignedDuration::from_secs(file.confirm_ttl_s);
        let mut blueprint = servers.peers.blueprint(settings, Some(model.clone()))?;
        servers.add_instances(&mut blueprint.library)?;
        let room = scenario.room.as_ref().map(|_| ScenarioRoom::default());
        if let Some(room) = &room {
            room.apply(&mut blueprint);
        }
        let app = App::start(Db::open(database)?, servers.peers.clock.clone(), blueprint).await?;
        scenario_users::insert_users(&app.db, file, scenario, start).await?;
        scenario_jellyfin::link_viewers(&app.db, file, &servers.viewers, start).await?;
        if let Some(members) = &scenario.room {
            scenario_room::open_room(&app.db, file, members, start).await?;
            for message in scenario_room::first_messages(file, members, start)? {
                app.engine.admission.admit_message(message).await?;
            }
            app.engine.scheduler.wait_until_idle().await;
            app.relay.wait_until_settled().await?;
        }
        Ok(Self { app, servers, model, script, room, start, _folder: folder })
    }

    /// Lets a person write or press a button.
    async fn perform(
        &self,
        file: &ScenarioFile,
        message: &MessageEntry,
        (number, at): (usize, Timestamp),
    ) -> anyhow::Result<()> {
        let action = match &self.room {
            Some(room) => room.read_action(file, message, (number, at))?,
            None => {
                let phone = scenario_users::user_phone(file, &message.from)?;
                RoomAction::Message(Box::new(received_message(&phone, message, number, at)))
            }
        };
        match action {
            RoomAction::Message(received) => {
                self.app.engine.admission.admit_message(*received).await?;
            }
            RoomAction::Answer(answer) => {
                self.app.engine.gestures.record(Gesture::PollAnswer(answer)).await?;
            }
        }
        Ok(())
    }

    /// Returns the messages that were sent since these numbers of messages by phone and by the bot.
    fn sent_after(&self, (by_phone, by_bot): (usize, usize)) -> Vec<SentText> {
        let by_phone =
            self.servers.peers.twilio.sent_messages().split_off(by_phone).into_iter().map(SentText::from);
        let by_bot = self.room.iter().flat_map(|room| room.sent_after(by_bot)).map(SentText::from);
        by_phone.chain(by_bot).collect()
    }

    async fn send_message(
        &self,
        file: &ScenarioFile,
        message: &MessageEntry,
        number: usize,
    ) -> anyhow::Result<(ObservedEffects, MessageStats)> {
        let clock = &self.servers.peers.clock;
        let at = self.start + SignedDuration::from_secs(message.at);
        let sent_before = (
            self.servers.peers.twilio.sent_messages().len(),
            self.room.as_ref().map_or(0, |room| room.sent_after(0).len()),
        );
        let calls_before = self.app.db.read(calls::load_newest_call_id).await?;
        let four_k_writes_before = self.servers.four_k_writes().len();
        let elapsed = at.duration_since(clock.now());
        clock.set(at);
        for (path, value) in &message.changes {
            if path.starts_with("people.") {
                scenario_users::change_user(&self.app.db, file, path, value, at).await?;
            } else {
                self.servers.change_value(path, value)?;
            }
        }
        if elapsed >= MAINTENANCE_INTERVAL {
            self.app.run_maintenance_once().await;
            self.app.db.write(text_index::index_new_text).await?;
            self.app.engine.digests.send_due_digests().await?;
            self.app.relay.wait_until_settled().await?;
        }
        self.servers.take_writes();
        self.model.take_activity();
        if let Some(script) = &self.script {
            script.replace_script(
                message.model.iter().map(super::scenario_file::ModelEntry::to_scripted_reply).collect(),
            );
        }
        let started = Instant::now();
        self.perform(file, message, (number, at)).await?;
        self.app.engine.scheduler.wait_until_idle().await;
        // The worker may not have noticed yet that a text asks for the digest.
        self.app.engine.digests.send_due_digests().await?;
        self.app.relay.wait_until_settled().await?;
        let latency = started.elapsed();

        let mut writes = self.servers.take_writes();
        writes.extend(self.servers.four_k_writes().into_iter().skip(four_k_writes_before));
        let sent = self.sent_after(sent_before);
        let effects = MessageEffects { activity: self.model.take_activity(), sent, writes };
        let used_model = self.script.is_none() && !effects.activity.requests.is_empty();
        // Messages with media are not billed by segments.
        let texts = effects.sent.iter().filter(|sent| !sent.has_media);
        let stats = MessageStats {
            latency: used_model.then_some(latency),
            tokens: effects.activity.tokens,
            segments: texts.map(|sent| SegmentCount::from_text(&sent.body).count).collect(),
            calls: self.app.db.read(move |conn| calls::load_tools_called_after(conn, calls_before)).await?,
            model_requests: effects.activity.requests.len(),
            is_lost: false,
            is_dead_end: effects.sent.iter().any(|sent| is_fallback_reply(&sent.body)),
        };
        Ok((self.observe_effects(file, message, effects, &stats).await?, stats))
    }

    async fn observe_effects(
        &self,
        file: &ScenarioFile,
        message: &MessageEntry,
        effects: MessageEffects,
        stats: &MessageStats,
    ) -> anyhow::Result<ObservedEffects> {
        let MessageEffects { activity, sent, writes } = effects;
        let from = scenario_users::user_phone(file, &message.from)?;
        let query = move |conn: &mut Conn| match users::find_user_by_phone(conn, &from)? {
            Some(user) => pending_action::load_pending_action(conn, user.id),
            None => Ok(None),
        };
        let pending = self.app.db.read(query).await?;
        let items = pending
            .map(|action| action.items.iter().map(|(kind, id)| (kind_text(*kind).to_owned(), *id)).collect());
        let mut messages_by_user = BTreeMap::new();
        for name in file.users.keys() {
            let phone = scenario_users::user_phone(file, name)?;
            let account = scenario_room::account_of(file, name)?.to_text();
            messages_by_user.insert(name.clone(), messages_to(&sent, &[phone.as_str(), &account]));
        }
        let mut state = BTreeMap::new();
        for path in message.expect.state.keys() {
            let value = match path.split('.').next() {
                Some("people") => scenario_users::read_user_value(&self.app.db, file, path).await?,
                Some("followers") => scenario_users::read_followers(&self.app.db, file, path).await?,
                Some(_) | None => self.servers.read_value(path)?,
            };
            state.insert(path.clone(), value);
        }
        let offered = activity.requests.iter().flat_map(|request| request.tools.iter());
        Ok(ObservedEffects {
            quality: self.servers.written_qualities(&writes),
            writes,
            pending: items,
            calls: stats.calls.iter().map(|(name, _)| name.clone()).collect(),
            llm_calls: activity.requests.len(),
            reply: messages_by_user.get(&message.from).cloned().unwrap_or_default(),
            messages_by_user,
            room: messages_to(&sent, &[scenario_room::ROOM]),
            state,
            prompt: activity.requests.iter().map(prompt_text).collect::<Vec<_>>().join("\n"),
            tools: offered.map(|tool| tool.name.to_owned()).collect(),
            opted_out: scenario_users::load_opted_out(&self.app.db, file).await?,
            failure: activity.failure.map(|error| error.to_string()),
        })
    }
}

/// Raw effects of a message.
struct MessageEffects {
    activity: ModelActivity,
    /// Messages sent to any user.
    sent: Vec<SentText>,
    writes: Vec<NamedWrite>,
}

/// Message of the program on any channel.
struct SentText {
    to: String,
    body: String,
    has_media: bool,
}

impl From<SentMessage> for SentText {
    fn from(sent: SentMessage) -> Self {
        Self { to: sent.to.as_str().to_owned(), body: sent.body, has_media: !sent.media.is_empty() }
    }
}

impl From<OutboundMessage> for SentText {
    fn from(sent: OutboundMessage) -> Self {
        Self { to: sent.to.as_str().to_owned(), body: sent.body, has_media: !sent.media.is_empty() }
    }
}

/// Returns the time zone with the UTC offset of a time such as `2026-03-06T19:00:00-05:00`.
fn scenario_zone(now: &str) -> TimeZone {
    let offset = now.rfind(['+', '-']).filter(|index| *index > 10).map_or("", |index| &now[index..]);
    let zoned: Result<Zoned, _> = format!("{now}[{offset}]").parse();
    zoned.map_or(TimeZone::UTC, |zoned| zoned.time_zone().clone())
}

fn received_message(
    from: &PhoneNumber,
    message: &MessageEntry,
    number: usize,
    at: Timestamp,
) -> ReceivedMessage {
    ReceivedMessage {
        channel: channel_list::TWILIO,
        external_id: format!("SM{number:032x}"),
        from: from.into(),
        to: Address::new(OUR_NUMBER),
        body: message.text.clone(),
        media: Vec::new(),
        via: MessageSource::Webhook,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        pressed: None,
        room: None,
        provider_at: at,
        received_at: at,
    }
}

/// Returns whether a message is a fixed reply that replaces an answer.
fn is_fallback_reply(body: &str) -> bool {
    let fallbacks = FallbackReply::ALL.map(FallbackReply::text);
    fallbacks.iter().chain(&[NOT_UNDERSTOOD, MODEL_OFF_PREFIX]).any(|text| body.contains(text))
}

/// Returns the messages to any of these addresses.
fn messages_to(sent: &[SentText], addresses: &[&str]) -> UserMessages {
    let texts: Vec<&SentText> = sent.iter().filter(|sent| addresses.contains(&sent.to.as_str())).collect();
    let pictures = texts.iter().filter(|sent| sent.has_media).count();
    let text = texts.iter().map(|sent| sent.body.as_str()).collect::<Vec<_>>().join("\n");
    UserMessages { texts: texts.len(), pictures, text }
}

fn kind_text(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Movie => "movie",
        MediaKind::Series => "series",
    }
}

fn prompt_text(request: &ModelRequest) -> String {
    let texts = request.messages.iter().map(|message| match &**message {
        ModelMessage::User(text) | ModelMessage::Assistant { text, .. } => text.as_str(),
        ModelMessage::ToolResult { content, .. } => content.as_str(),
    });
    std::iter::once(request.system.as_str()).chain(texts).collect::<Vec<_>>().join("\n")
}
