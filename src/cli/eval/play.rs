//! Plays one scenario on the real store, engine, tools and outbox.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde_json::Value;

use super::expectation::{self, Observed};
use super::file::{File, LibraryEntry, QuotaEntry, RoleEntry, Scenario, TextEntry, TitleEntry};
use crate::app::App;
use crate::arr::fake::activity::Fakes;
use crate::arr::fake::item::{movie, series};
use crate::arr::fake::radarr::FakeRadarr;
use crate::arr::fake::sonarr::FakeSonarr;
use crate::clock::Clock;
use crate::conversation::prompt::{Message, ModelRequest};
use crate::conversation::transcript::{
    Added, Address, ChannelKind, Counted, MediaKind, PhoneNumber, Received, Rights, Role, UserId, Via,
};
use crate::engine::Codes;
use crate::llm::scripted::Scripted;
use crate::simulation::{self, OUR_NUMBER, Peers, Served, Write};
use crate::store::db::Db;
use crate::store::quotas::{self, Own};
use crate::store::users::{self, Newcomer};
use crate::store::{Conn, QueryResult, calls, pending};

/// A question is accepted this long after the text that led to it.
const ACCEPTANCE: Duration = Duration::from_secs(2);

/// The differences found, each with the number of its text.
pub(super) async fn play(file: &File, scenario: &Scenario) -> anyhow::Result<Vec<String>> {
    let stage = Stage::build(file, scenario).await?;
    let mut problems = Vec::new();
    for (number, text) in (1..).zip(&scenario.turns) {
        let observed = stage.text(file, text, number).await?;
        let differences = expectation::differences(&text.expect, &observed);
        problems.extend(differences.into_iter().map(|difference| format!("text {number}: {difference}")));
    }
    stage.app.drain().await;
    stage.app.close().await;
    Ok(problems)
}

struct Stage {
    app: App,
    peers: Peers,
    model: Arc<Scripted>,
    start: Timestamp,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn build(file: &File, scenario: &Scenario) -> anyhow::Result<Self> {
        let start = file.start()?;
        let clock = Clock::manual(start);
        let library = file.libraries.get(&scenario.library);
        let library = library.with_context(|| format!("find the library {:?}", scenario.library))?;
        let (radarr, sonarr) = serve(library, &clock);
        let peers = Peers::new(clock, radarr, sonarr, "https://dialarr.invalid");
        peers.twilio.latency(ACCEPTANCE);
        let folder = tempfile::tempdir().context("make a folder for the database")?;
        let database = folder.path().join("eval.db");
        let database = database.to_str().context("use a temporary folder that is not UTF-8")?;
        let model = Arc::new(Scripted::new(Vec::new()));
        let mut settings = simulation::settings(zone(&file.now));
        if let Some(code) = &file.code {
            settings.codes = Codes::Fixed(code.parse().context("read the code")?);
        }
        let mut blueprint = peers.blueprint(Db::open(database)?, settings, Some(model.clone()))?;
        blueprint.confirm_for = SignedDuration::from_secs(file.confirm_ttl_s);
        let app = App::start(blueprint).await?;
        introduce(&app, file, scenario, start).await?;
        Ok(Self { app, peers, model, start, _folder: folder })
    }

    async fn text(&self, file: &File, text: &TextEntry, number: usize) -> anyhow::Result<Observed> {
        let at = self.start + SignedDuration::from_secs(text.at);
        self.peers.clock.set(at);
        for (path, value) in &text.world {
            change(&self.peers, path, value)?;
        }
        let sent_before = self.peers.twilio.sent().len();
        let asked_before = self.model.requests().len();
        let calls_before = self.app.db.read(calls::last).await?;
        self.peers.take_writes();
        self.model.play(text.model.iter().map(super::file::ModelEntry::line).collect());
        let phone = phone(file, &text.from)?;
        self.app.engine.admit(received(&phone, text, number, at)).await?;
        self.app.engine.settled().await;
        self.app.relay.settled().await?;

        let requests = self.model.requests().split_off(asked_before);
        let replies = self.peers.twilio.sent().split_off(sent_before);
        let replies = replies.iter().filter(|sent| sent.to.as_str() == phone.as_str());
        let from = phone.clone();
        let (pending, calls) = self
            .app
            .db
            .read(move |conn| {
                let pending = match users::by_phone(conn, &from)? {
                    Some(user) => pending::open(conn, user.id)?,
                    None => None,
                };
                Ok((pending, calls::names_after(conn, calls_before)?))
            })
            .await?;
        let writes = self.peers.take_writes();
        Ok(Observed {
            quality: quality(&self.peers, &writes),
            writes: writes.iter().map(named).collect(),
            pending: pending
                .map(|open| open.items.iter().map(|(kind, id)| (word(*kind).to_owned(), *id)).collect()),
            calls,
            llm_calls: requests.len(),
            reply: replies.map(|sent| sent.body.as_str()).collect::<Vec<_>>().join("\n"),
            prompt: requests.iter().map(prompt_text).collect::<Vec<_>>().join("\n"),
            tools: requests
                .iter()
                .flat_map(|request| &request.tools)
                .map(|tool| tool.name.to_owned())
                .collect(),
            opted_out: self.opted_out(file).await?,
        })
    }

    async fn opted_out(&self, file: &File) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for (name, user) in &file.users {
            let phone = PhoneNumber::parse(&user.phone)?;
            let user = self.app.db.read(move |conn| users::by_phone(conn, &phone)).await?;
            if user.is_some_and(|user| user.opted_out) {
                names.push(name.clone());
            }
        }
        Ok(names)
    }
}

/// The zone of a time such as `2026-03-06T19:00:00-05:00`: its offset.
fn zone(now: &str) -> TimeZone {
    let offset = now.rfind(['+', '-']).filter(|at| *at > 10).map_or("", |at| &now[at..]);
    let zoned: Result<Zoned, _> = format!("{now}[{offset}]").parse();
    zoned.map_or(TimeZone::UTC, |zoned| zoned.time_zone().clone())
}

fn serve(library: &LibraryEntry, clock: &Clock) -> (FakeRadarr, FakeSonarr) {
    let (radarr, sonarr) = (FakeRadarr::at(clock.clone()), FakeSonarr::at(clock.clone()));
    let profiles: Vec<&str> = library.profiles.iter().map(String::as_str).collect();
    if !profiles.is_empty() {
        radarr.profiles(&profiles);
        sonarr.profiles(&profiles);
    }
    for entry in &library.movies {
        radarr.add(film(entry));
    }
    for entry in &library.catalog.movie {
        radarr.catalog(film(entry));
    }
    for entry in &library.series {
        sonarr.add(show(entry));
    }
    for entry in &library.catalog.series {
        sonarr.catalog(show(entry));
    }
    let fakes = Fakes { radarr: radarr.clone(), sonarr: sonarr.clone() };
    for entry in &library.queue {
        fakes.download(&entry.title, entry.percent, entry.eta_min);
    }
    for entry in &library.calendar {
        fakes.calendar(&entry.title, entry.date);
    }
    (radarr, sonarr)
}

fn film(entry: &TitleEntry) -> crate::arr::fake::item::FakeMovie {
    let mut film = movie(&entry.title).year(entry.year).overview(&entry.overview).size_gb(entry.size_gb);
    if let Some(id) = entry.id {
        film = film.id(id);
    }
    if let Some(tmdb) = entry.tmdb {
        film = film.tmdb(tmdb);
    }
    match &entry.quality {
        Some(quality) => film.profile(quality),
        None => film,
    }
}

fn show(entry: &TitleEntry) -> crate::arr::fake::item::FakeSeries {
    let mut show = series(&entry.title).year(entry.year).overview(&entry.overview).size_gb(entry.size_gb);
    show = show.seasons(entry.seasons.unwrap_or(1));
    if let Some(episodes) = entry.episodes {
        show = show.episodes(episodes);
    }
    if let Some(id) = entry.id {
        show = show.id(id);
    }
    if let Some(tvdb) = entry.tvdb {
        show = show.tvdb(tvdb);
    }
    match &entry.quality {
        Some(quality) => show.profile(quality),
        None => show,
    }
}

async fn introduce(app: &App, file: &File, scenario: &Scenario, now: Timestamp) -> anyhow::Result<()> {
    for (name, user) in file.users.iter().filter(|(_, user)| user.role != RoleEntry::Unknown) {
        let phone = PhoneNumber::parse(&user.phone)?;
        let quota = scenario.quota.get(name).copied();
        let rights = Rights {
            role: if user.role == RoleEntry::Admin { Role::Admin } else { Role::Member },
            // Who has a quota may add within it.
            add: user.role != RoleEntry::Restricted || quota.is_some(),
            delete: user.can_delete,
            four_k: false,
        };
        app.db
            .write(move |conn| {
                let id = users::ensure(conn, &phone, Newcomer::Member, now)?;
                users::set_rights(conn, id, rights, now)?;
                match quota {
                    Some(quota) => limit(conn, id, quota, now),
                    None => Ok(()),
                }
            })
            .await?;
    }
    Ok(())
}

/// The format counts additions of either kind alike.
fn limit(conn: &mut Conn, user: UserId, quota: QuotaEntry, now: Timestamp) -> QueryResult<()> {
    let own = Own { movies: Some(quota.adds_7d), seasons: Some(quota.adds_7d) };
    quotas::set_own(conn, user, own, now)?;
    for what in [Counted::Movies, Counted::Seasons] {
        quotas::count_unnamed(conn, user, Added { what, amount: quota.used }, now)?;
    }
    Ok(())
}

/// Sets one field of a library item, as `movies.7.size_gb`.
fn change(peers: &Peers, path: &str, value: &Value) -> anyhow::Result<()> {
    let parts: Vec<&str> = path.split('.').collect();
    let [library, id, field] = parts[..] else { anyhow::bail!("read the world change {path:?}") };
    let id: i64 = id.parse().with_context(|| format!("read the world change {path:?}"))?;
    let number = || value.as_f64().with_context(|| format!("read a number for {path:?}"));
    let text = || value.as_str().map(str::to_owned).with_context(|| format!("read a text for {path:?}"));
    match (library, field) {
        ("movies", "size_gb") => {
            let bytes = bytes(number()?);
            peers.radarr.edit(id, |item| item.size_bytes = bytes);
        }
        ("series", "size_gb") => {
            let bytes = bytes(number()?);
            peers.sonarr.edit(id, |item| item.size_bytes = bytes);
        }
        ("movies", "title") => {
            let title = text()?;
            peers.radarr.edit(id, |item| item.title = title);
        }
        ("series", "title") => {
            let title = text()?;
            peers.sonarr.edit(id, |item| item.title = title);
        }
        _ => anyhow::bail!("change the field {path:?}: not known"),
    }
    Ok(())
}

fn bytes(gigabytes: f64) -> u64 {
    (gigabytes * 1e9).max(0.0) as u64
}

fn phone(file: &File, name: &str) -> anyhow::Result<PhoneNumber> {
    let user = file.users.get(name).with_context(|| format!("find the user {name:?}"))?;
    PhoneNumber::parse(&user.phone).with_context(|| format!("read the number of {name:?}"))
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
        carrier_word: None,
        provider_at: at,
        received_at: at,
    }
}

fn named(write: &Write) -> (String, i64) {
    match write {
        Write::Added(Served::Radarr, id) => ("add_movie".to_owned(), *id),
        Write::Added(Served::Sonarr, id) => ("add_series".to_owned(), *id),
        Write::Removed(Served::Radarr, id) => ("remove_movie".to_owned(), *id),
        Write::Removed(Served::Sonarr, id) => ("remove_series".to_owned(), *id),
    }
}

fn quality(peers: &Peers, writes: &[Write]) -> Vec<(String, String)> {
    writes
        .iter()
        .filter_map(|write| match write {
            Write::Added(Served::Radarr, id) => Some((id.to_string(), peers.radarr.added_profile(*id)?)),
            Write::Added(Served::Sonarr, id) => Some((id.to_string(), peers.sonarr.added_profile(*id)?)),
            Write::Removed(..) => None,
        })
        .collect()
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
