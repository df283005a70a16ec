//! Plays one scenario on the real store, engine, tools and outbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use super::expectation::{self, JudgmentMode, ObservedEffects, UserMessages};
use super::file::{Scenario, ScenarioFile, TextEntry};
use super::recording_model::{ModelActivity, RecordingModel};
use super::run_stats::{MessageCost, ScenarioRun};
use super::scenario_servers::{NamedWrite, ScenarioServers};
use super::scenario_users;
use crate::app::App;
use crate::clock::Clock;
use crate::conversation::model_cost::ModelPrices;
use crate::conversation::model_request::{ModelMessage, ModelRequest};
use crate::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{Address, ChannelKind, MediaKind, PhoneNumber};
use crate::engine::{CodeSource, SmsReactions};
use crate::llm::Model;
use crate::llm::scripted::ScriptedModel;
use crate::messaging::fake::SentMessage;
use crate::messaging::segments::SegmentCount;
use crate::simulation::{self, OUR_NUMBER};
use crate::store::Conn;
use crate::store::confirmation::pending_action;
use crate::store::database::db::Db;
use crate::store::people::users;
use crate::store::turns::calls;

/// Delay after which a confirmation prompt is accepted, counted from the message that led to it.
const ACCEPTANCE_DELAY: Duration = Duration::from_secs(2);
/// Interval between two messages after which the program runs its regular maintenance.
const MAINTENANCE_INTERVAL: SignedDuration = SignedDuration::from_mins(10);

/// Model that answers the messages.
#[derive(Clone)]
pub(super) enum EvalModel {
    /// Script of the file, which proves what code rejects regardless of the model's response.
    Scripted,
    /// Real model, which does not receive the script.
    Live { model: Arc<dyn Model>, prices: ModelPrices },
}

/// Plays the messages one after the other, and continues after a message whose reply is not the expected one.
pub(super) async fn run_scenario(
    file: &ScenarioFile,
    scenario: &Scenario,
    model_kind: &EvalModel,
) -> anyhow::Result<ScenarioRun> {
    let stage = ScenarioStage::build_stage(file, scenario, model_kind).await?;
    let mut run = ScenarioRun::default();
    for (number, text) in (1..).zip(&scenario.turns) {
        let (observed, played) = stage.send_text(file, text, number).await?;
        let problems = expectation::differences(&text.expect, &observed, model_kind.judgment_mode());
        run.problems.extend(problems.into_iter().map(|problem| format!("text {number}: {problem}")));
        run.texts.push(played);
    }
    stage.app.drain_turns().await;
    stage.app.close().await;
    Ok(run)
}

impl EvalModel {
    fn judgment_mode(&self) -> JudgmentMode {
        match self {
            Self::Scripted => JudgmentMode::Path,
            Self::Live { .. } => JudgmentMode::End,
        }
    }
}

struct ScenarioStage {
    app: App,
    world: ScenarioServers,
    model: Arc<RecordingModel>,
    /// Scripted model; `None` with a real model.
    script: Option<Arc<ScriptedModel>>,
    start: Timestamp,
    _folder: tempfile::TempDir,
}

impl ScenarioStage {
    async fn build_stage(
        file: &ScenarioFile,
        scenario: &Scenario,
        model_kind: &EvalModel,
    ) -> anyhow::Result<Self> {
        let start = file.start_time()?;
        let clock = Clock::stopped_at(start);
        let library = file.libraries.get(&scenario.library);
        let library = library.with_context(|| format!("find the library {:?}", scenario.library))?;
        let world = ScenarioServers::from_entry(library, &clock);
        world.peers.twilio.set_latency(ACCEPTANCE_DELAY);
        let folder = tempfile::tempdir().context("make a folder for the database")?;
        let database = folder.path().join("eval.db");
        let database = database.to_str().context("use a temporary folder that is not UTF-8")?;
        let mut settings = simulation::simulation_settings(scenario_zone(&file.now));
        if let Some(code) = &file.code {
            settings.codes = CodeSource::Fixed(code.parse().context("read the code")?);
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
        let mut blueprint = world.peers.blueprint(Db::open(database)?, settings, Some(model.clone()))?;
        blueprint.confirm_for = SignedDuration::from_secs(file.confirm_ttl_s);
        world.add_instances(&mut blueprint.library)?;
        let app = App::start(blueprint).await?;
        scenario_users::insert_users(&app.db, file, scenario, start).await?;
        Ok(Self { app, world, model, script, start, _folder: folder })
    }

    async fn send_text(
        &self,
        file: &ScenarioFile,
        text: &TextEntry,
        number: usize,
    ) -> anyhow::Result<(ObservedEffects, MessageCost)> {
        let clock = &self.world.peers.clock;
        let at = self.start + SignedDuration::from_secs(text.at);
        let sent_before = self.world.peers.twilio.sent_messages().len();
        let calls_before = self.app.db.read(calls::load_newest_call_id).await?;
        let four_k_writes_before = self.world.four_k_writes().len();
        let passed = at.duration_since(clock.now());
        clock.set(at);
        for (path, value) in &text.world {
            if path.starts_with("people.") {
                scenario_users::change_user(&self.app.db, file, path, value, at).await?;
            } else {
                self.world.change_value(path, value)?;
            }
        }
        if passed >= MAINTENANCE_INTERVAL {
            self.app.run_maintenance_once().await;
        }
        self.world.take_writes();
        self.model.take_activity();
        if let Some(script) = &self.script {
            script.replace_script(text.model.iter().map(super::file::ModelEntry::script_line).collect());
        }
        let phone = scenario_users::user_phone(file, &text.from)?;
        let started = Instant::now();
        self.app.engine.admission.admit_message(received_message(&phone, text, number, at)).await?;
        self.app.engine.scheduler.wait_until_idle().await;
        self.app.relay.wait_until_settled().await?;
        let took = started.elapsed();

        let mut writes = self.world.take_writes();
        writes.extend(self.world.four_k_writes().into_iter().skip(four_k_writes_before));
        let sent = self.world.peers.twilio.sent_messages().split_off(sent_before);
        let came = MessageEffects { seen: self.model.take_activity(), sent, writes };
        let asked = self.script.is_none() && !came.seen.requests.is_empty();
        // A picture is another kind of message, with its own price.
        let words_only = came.sent.iter().filter(|sent| sent.media.is_empty());
        let played = MessageCost {
            latency: asked.then_some(took),
            tokens: came.seen.tokens,
            segments: words_only.map(|sent| SegmentCount::from_text(&sent.body).count).collect(),
            calls: self.app.db.read(move |conn| calls::load_tools_called_after(conn, calls_before)).await?,
        };
        Ok((self.observe_effects(file, text, came, &played).await?, played))
    }

    async fn observe_effects(
        &self,
        file: &ScenarioFile,
        text: &TextEntry,
        came: MessageEffects,
        played: &MessageCost,
    ) -> anyhow::Result<ObservedEffects> {
        let MessageEffects { seen, sent, writes } = came;
        let from = scenario_users::user_phone(file, &text.from)?;
        let look = move |conn: &mut Conn| match users::find_user_by_phone(conn, &from)? {
            Some(user) => pending_action::load_pending_action(conn, user.id),
            None => Ok(None),
        };
        let pending = self.app.db.read(look).await?;
        let items = pending
            .map(|open| open.items.iter().map(|(kind, id)| (kind_word(*kind).to_owned(), *id)).collect());
        let mut told = BTreeMap::new();
        for name in file.users.keys() {
            told.insert(name.clone(), messages_to_user(&sent, &scenario_users::user_phone(file, name)?));
        }
        let mut state = BTreeMap::new();
        for path in text.expect.state.keys() {
            let current = match path.split('.').next() {
                Some("people") => scenario_users::read_user_value(&self.app.db, file, path).await?,
                Some("followers") => scenario_users::read_followers(&self.app.db, file, path).await?,
                Some(_) | None => self.world.read_value(path)?,
            };
            state.insert(path.clone(), current);
        }
        let offered = seen.requests.iter().flat_map(|request| &request.tools);
        Ok(ObservedEffects {
            quality: self.world.written_qualities(&writes),
            writes,
            pending: items,
            calls: played.calls.iter().map(|(name, _)| name.clone()).collect(),
            llm_calls: seen.requests.len(),
            reply: told.get(&text.from).cloned().unwrap_or_default(),
            told,
            state,
            prompt: seen.requests.iter().map(prompt_text).collect::<Vec<_>>().join("\n"),
            tools: offered.map(|tool| tool.name.to_owned()).collect(),
            opted_out: scenario_users::opted_out(&self.app.db, file).await?,
            failure: seen.failure.map(|error| error.to_string()),
        })
    }
}

/// Effects of a message, before they are checked.
struct MessageEffects {
    seen: ModelActivity,
    /// Messages sent to any user.
    sent: Vec<SentMessage>,
    writes: Vec<NamedWrite>,
}

/// Returns the zone of a time such as `2026-03-06T19:00:00-05:00`: its offset.
fn scenario_zone(now: &str) -> TimeZone {
    let offset = now.rfind(['+', '-']).filter(|at| *at > 10).map_or("", |at| &now[at..]);
    let zoned: Result<Zoned, _> = format!("{now}[{offset}]").parse();
    zoned.map_or(TimeZone::UTC, |zoned| zoned.time_zone().clone())
}

fn received_message(from: &PhoneNumber, text: &TextEntry, number: usize, at: Timestamp) -> ReceivedMessage {
    ReceivedMessage {
        channel: ChannelKind::Twilio,
        external_id: format!("SM{number:032x}"),
        from: from.clone(),
        to: Address::new(OUR_NUMBER),
        body: text.text.clone(),
        media: Vec::new(),
        via: MessageSource::Webhook,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        provider_at: at,
        received_at: at,
    }
}

/// Returns the messages that one user received.
fn messages_to_user(sent: &[SentMessage], phone: &PhoneNumber) -> UserMessages {
    let texts: Vec<&SentMessage> = sent.iter().filter(|sent| sent.to.as_str() == phone.as_str()).collect();
    let pictures = texts.iter().filter(|sent| !sent.media.is_empty()).count();
    let words = texts.iter().map(|sent| sent.body.as_str()).collect::<Vec<_>>().join("\n");
    UserMessages { texts: texts.len(), pictures, words }
}

fn kind_word(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Movie => "movie",
        MediaKind::Series => "series",
    }
}

fn prompt_text(request: &ModelRequest) -> String {
    let texts = request.messages.iter().map(|message| match message {
        ModelMessage::User(text) | ModelMessage::Assistant { text, .. } => text.as_str(),
        ModelMessage::ToolResult { content, .. } => content.as_str(),
    });
    std::iter::once(request.system.as_str()).chain(texts).collect::<Vec<_>>().join("\n")
}
