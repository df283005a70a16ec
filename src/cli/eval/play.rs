//! Plays one scenario on the real store, engine, tools and outbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use super::expectation::{self, Judging, Observed, Said};
use super::file::{File, Scenario, TextEntry};
use super::measure::{Played, Run};
use super::people;
use super::watched::{Seen, Watched};
use super::world::{NamedWrite, World};
use crate::app::App;
use crate::clock::Clock;
use crate::conversation::inbound_message::{Received, Via};
use crate::conversation::model_request::{Message, ModelRequest};
use crate::conversation::spending::Prices;
use crate::conversation::transcript::{Address, ChannelKind, MediaKind, PhoneNumber};
use crate::conversation::verification::FieldAuthority;
use crate::engine::{Codes, SmsReactions};
use crate::llm::Model;
use crate::llm::scripted::Scripted;
use crate::messaging::fake::SentText;
use crate::messaging::segments::Segments;
use crate::simulation::{self, OUR_NUMBER};
use crate::store::db::Db;
use crate::store::{Conn, calls, pending, users};

/// A question is accepted this long after the text that led to it.
const ACCEPTANCE: Duration = Duration::from_secs(2);
/// Between two texts this far apart the program does what it does every few minutes.
const UPKEEP_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// Who answers.
#[derive(Clone)]
pub(super) enum Brain {
    /// The script of the file, which proves what code holds back whatever a model says.
    Scripted,
    /// A real model, which the script is not told to.
    Live { model: Arc<dyn Model>, prices: Prices },
}

/// Plays the texts one after the other, and goes on after one that was not answered as it should be.
pub(super) async fn play(file: &File, scenario: &Scenario, brain: &Brain) -> anyhow::Result<Run> {
    let stage = Stage::build(file, scenario, brain).await?;
    let mut run = Run::default();
    for (number, text) in (1..).zip(&scenario.turns) {
        let (observed, played) = stage.text(file, text, number).await?;
        let problems = expectation::differences(&text.expect, &observed, brain.judging());
        run.problems.extend(problems.into_iter().map(|problem| format!("text {number}: {problem}")));
        run.texts.push(played);
    }
    stage.app.drain().await;
    stage.app.close().await;
    Ok(run)
}

impl Brain {
    fn judging(&self) -> Judging {
        match self {
            Self::Scripted => Judging::Path,
            Self::Live { .. } => Judging::End,
        }
    }
}

struct Stage {
    app: App,
    world: World,
    model: Arc<Watched>,
    /// `None` in front of a real model.
    script: Option<Arc<Scripted>>,
    start: Timestamp,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn build(file: &File, scenario: &Scenario, brain: &Brain) -> anyhow::Result<Self> {
        let start = file.start()?;
        let clock = Clock::manual(start);
        let library = file.libraries.get(&scenario.library);
        let library = library.with_context(|| format!("find the library {:?}", scenario.library))?;
        let world = World::build(library, &clock);
        world.peers.twilio.latency(ACCEPTANCE);
        let folder = tempfile::tempdir().context("make a folder for the database")?;
        let database = folder.path().join("eval.db");
        let database = database.to_str().context("use a temporary folder that is not UTF-8")?;
        let mut settings = simulation::settings(zone(&file.now));
        if let Some(code) = &file.code {
            settings.codes = Codes::Fixed(code.parse().context("read the code")?);
        }
        if scenario.reactions_as_text {
            settings.reactions = SmsReactions::Text;
        }
        let (script, model): (_, Arc<dyn Model>) = match brain {
            Brain::Scripted => {
                let script = Arc::new(Scripted::new(Vec::new()));
                (Some(script.clone()), script)
            }
            Brain::Live { model, prices } => {
                settings.prices = *prices;
                (None, model.clone())
            }
        };
        let model = Arc::new(Watched::new(model));
        let mut blueprint = world.peers.blueprint(Db::open(database)?, settings, Some(model.clone()))?;
        blueprint.confirm_for = SignedDuration::from_secs(file.confirm_ttl_s);
        world.extend(&mut blueprint.library)?;
        let app = App::start(blueprint).await?;
        people::introduce(&app.db, file, scenario, start).await?;
        Ok(Self { app, world, model, script, start, _folder: folder })
    }

    async fn text(&self, file: &File, text: &TextEntry, number: usize) -> anyhow::Result<(Observed, Played)> {
        let clock = &self.world.peers.clock;
        let at = self.start + SignedDuration::from_secs(text.at);
        let sent_before = self.world.peers.twilio.sent().len();
        let calls_before = self.app.db.read(calls::last).await?;
        let four_k_writes_before = self.world.four_k_writes().len();
        let passed = at.duration_since(clock.now());
        clock.set(at);
        for (path, value) in &text.world {
            if path.starts_with("people.") {
                people::change(&self.app.db, file, path, value, at).await?;
            } else {
                self.world.change(path, value)?;
            }
        }
        if passed >= UPKEEP_AFTER {
            self.app.keep_up_once().await;
        }
        self.world.take_writes();
        self.model.take();
        if let Some(script) = &self.script {
            script.play(text.model.iter().map(super::file::ModelEntry::line).collect());
        }
        let phone = people::phone(file, &text.from)?;
        let started = Instant::now();
        self.app.engine.admit(received(&phone, text, number, at)).await?;
        self.app.engine.settled().await;
        self.app.relay.settled().await?;
        let took = started.elapsed();

        let mut writes = self.world.take_writes();
        writes.extend(self.world.four_k_writes().into_iter().skip(four_k_writes_before));
        let sent = self.world.peers.twilio.sent().split_off(sent_before);
        let came = Came { seen: self.model.take(), sent, writes };
        let asked = self.script.is_none() && !came.seen.requests.is_empty();
        // A picture is another kind of message, with a price of its own.
        let words_only = came.sent.iter().filter(|sent| sent.media.is_empty());
        let played = Played {
            latency: asked.then_some(took),
            tokens: came.seen.tokens,
            segments: words_only.map(|sent| Segments::of(&sent.body).count).collect(),
            calls: self.app.db.read(move |conn| calls::called_after(conn, calls_before)).await?,
        };
        Ok((self.observe(file, text, came, &played).await?, played))
    }

    async fn observe(
        &self,
        file: &File,
        text: &TextEntry,
        came: Came,
        played: &Played,
    ) -> anyhow::Result<Observed> {
        let Came { seen, sent, writes } = came;
        let from = people::phone(file, &text.from)?;
        let look = move |conn: &mut Conn| match users::by_phone(conn, &from)? {
            Some(user) => pending::open(conn, user.id),
            None => Ok(None),
        };
        let pending = self.app.db.read(look).await?;
        let items =
            pending.map(|open| open.items.iter().map(|(kind, id)| (word(*kind).to_owned(), *id)).collect());
        let mut told = BTreeMap::new();
        for name in file.users.keys() {
            told.insert(name.clone(), said(&sent, &people::phone(file, name)?));
        }
        let mut state = BTreeMap::new();
        for path in text.expect.state.keys() {
            let stands = match path.split('.').next() {
                Some("people") => people::read(&self.app.db, file, path).await?,
                Some("followers") => people::followers(&self.app.db, file, path).await?,
                Some(_) | None => self.world.read(path)?,
            };
            state.insert(path.clone(), stands);
        }
        let offered = seen.requests.iter().flat_map(|request| &request.tools);
        Ok(Observed {
            quality: self.world.qualities(&writes),
            writes,
            pending: items,
            calls: played.calls.iter().map(|(name, _)| name.clone()).collect(),
            llm_calls: seen.requests.len(),
            reply: told.get(&text.from).cloned().unwrap_or_default(),
            told,
            state,
            prompt: seen.requests.iter().map(prompt_text).collect::<Vec<_>>().join("\n"),
            tools: offered.map(|tool| tool.name.to_owned()).collect(),
            opted_out: people::opted_out(&self.app.db, file).await?,
            failure: seen.failure.map(|error| error.to_string()),
        })
    }
}

/// What came of a text, before it is looked into.
struct Came {
    seen: Seen,
    /// To anyone.
    sent: Vec<SentText>,
    writes: Vec<NamedWrite>,
}

/// The zone of a time such as `2026-03-06T19:00:00-05:00`: its offset.
fn zone(now: &str) -> TimeZone {
    let offset = now.rfind(['+', '-']).filter(|at| *at > 10).map_or("", |at| &now[at..]);
    let zoned: Result<Zoned, _> = format!("{now}[{offset}]").parse();
    zoned.map_or(TimeZone::UTC, |zoned| zoned.time_zone().clone())
}

fn received(from: &PhoneNumber, text: &TextEntry, number: usize, at: Timestamp) -> Received {
    Received {
        channel: ChannelKind::Twilio,
        external_id: format!("SM{number:032x}"),
        from: from.clone(),
        to: Address::new(OUR_NUMBER),
        body: text.text.clone(),
        media: Vec::new(),
        via: Via::Webhook,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        provider_at: at,
        received_at: at,
    }
}

/// What one person was sent.
fn said(sent: &[SentText], phone: &PhoneNumber) -> Said {
    let texts: Vec<&SentText> = sent.iter().filter(|sent| sent.to.as_str() == phone.as_str()).collect();
    let pictures = texts.iter().filter(|sent| !sent.media.is_empty()).count();
    let words = texts.iter().map(|sent| sent.body.as_str()).collect::<Vec<_>>().join("\n");
    Said { texts: texts.len(), pictures, words }
}

fn word(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Movie => "movie",
        MediaKind::Series => "series",
    }
}

fn prompt_text(request: &ModelRequest) -> String {
    let said = request.messages.iter().map(|message| match message {
        Message::User(text) | Message::Assistant { text, .. } => text.as_str(),
        Message::ToolResult { content, .. } => content.as_str(),
    });
    std::iter::once(request.system.as_str()).chain(said).collect::<Vec<_>>().join("\n")
}
