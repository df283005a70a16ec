//! Run of one schedule from its start to its verdict.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dialarr::app::App;
use dialarr::conversation::transcript::UserRole;
use dialarr::store::audit::Actor;
use dialarr::store::people::pauses;
use jiff::SignedDuration;

use crate::bot_people;
use crate::checker;
use crate::disk_faults::{fill_disk, free_disk};
use crate::expected_events::ExpectedEvents;
use crate::forgeries;
use crate::house_agents::OPEN_STATES;
use crate::people;
use crate::phone_people;
use crate::plan::{ANN, Act, BRAZIL, DeliveryMode, FAY, Plan, Stop};
use crate::records::{Records, number, word};
use crate::rng::Rng;
use crate::world::{World, pass};

/// Time in which everything must come to rest once failures stop: the longest pause of the outbox, two checks for a
/// lost message, a reading of the list, and the half hour between two tries of an addition, with some margin.
const REST_WITHIN: Duration = Duration::from_secs(45 * 60);

/// Time before the close of a vote, or the expiry of an agent's question, at which the program is not at rest.
const REST_MS: i64 = 2 * 60 * 1000;

/// Result of a schedule.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub violations: Vec<String>,
    pub journal: Vec<String>,
    pub tally: checker::Tally,
    /// Changes that Sonarr and Radarr carried out.
    pub changes: Vec<String>,
    /// Outbound messages, in order.
    pub sent_texts: Vec<String>,
    /// Time of the last change or message, in milliseconds after the start.
    pub last_effect_ms: u64,
}

impl Verdict {
    pub(crate) fn last_words(&self) -> Option<&String> {
        self.sent_texts.last()
    }
}

/// Runs `plan` on a copy of the `template` database in `folder`.
pub(crate) fn run(plan: &Plan, template: &Path, folder: &Path) -> Verdict {
    let database = folder.join(format!("{}.db", plan.seed));
    std::fs::copy(template, &database).unwrap();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let verdict = runtime.block_on(play(plan, &database));
    drop(runtime);
    for end in ["", "-wal", "-shm"] {
        // Some of the files do not exist at the end.
        let _ = std::fs::remove_file(format!("{}{end}", database.display()));
    }
    verdict
}

async fn play(plan: &Plan, database: &Path) -> Verdict {
    let world = World::new(plan, database.to_owned());
    people::react(&world, plan);
    world.run_jellyfin();
    world.run_seerr();
    let app = world.start().await;
    world.introduce_people(&app).await;
    world.arrange_digests(&app).await;
    world.give_keys(&app.db).await;
    let expected_events = ExpectedEvents::begin(&app.db).await;
    let mut stage = Stage {
        world: world.clone(),
        app: Some(app),
        seed: plan.seed,
        lost_rights: Vec::new(),
        expected_events,
    };
    let (start, begun) = (tokio::time::Instant::now(), world.true_clock.now());
    for (at, act) in &plan.acts {
        tokio::time::sleep_until(start + Duration::from_millis(*at)).await;
        stage.perform(act).await;
    }
    let mut violations = stage.come_to_rest().await;
    world.pass_due_digest().await;
    let (records, unexpected) = stage.check_start_at_rest().await;
    violations.extend(unexpected);
    let (broken, tally) = checker::check(&world, &records, &stage.lost_rights);
    violations.extend(broken);
    let seen = world.seen.lock().unwrap().clone();
    let effects = seen.iter().filter(|seen| !seen.what.starts_with("GET")).filter_map(|seen| {
        let (at, status, _) = seen.done.as_ref()?;
        (200..300).contains(status).then_some((seen, *at))
    });
    let mut changes: Vec<String> = effects
        .clone()
        .filter(|(seen, _)| !["twilio", "phone", "telegram"].contains(&seen.peer))
        .map(|(seen, _)| seen.what.clone())
        .collect();
    changes.sort();
    let last = effects.map(|(_, at)| at).max();
    let last_effect_ms =
        last.map_or(0, |at| u64::try_from(at.duration_since(begun).as_millis()).unwrap_or(0));
    let sent_texts = world.peers.twilio.sent_messages().into_iter().map(|text| text.body).collect();
    Verdict { violations, journal: world.journal.lines(), tally, changes, sent_texts, last_effect_ms }
}

struct Stage {
    world: World,
    /// Program; `None` while the program is down.
    app: Option<App>,
    seed: u64,
    /// Users who may no longer delete, and the time when they lost the right, in milliseconds.
    lost_rights: Vec<(&'static str, i64)>,
    /// Events that are expected of the last run of the program.
    expected_events: ExpectedEvents,
}

impl Stage {
    async fn perform(&mut self, act: &Act) {
        match act {
            Act::Text { from, body, way } => people::text(&self.world, from, body, *way),
            Act::Stop { how } => {
                if let Some(app) = self.app.take() {
                    match how {
                        Stop::Kill => self.world.kill(app).await,
                        Stop::Drain => self.world.drain(app).await,
                        Stop::PowerCut(kept_percent) => self.world.cut_power(app, *kept_percent).await,
                    }
                }
            }
            Act::Start { interrupted } => {
                if self.app.is_none() {
                    if *interrupted {
                        let wait = Rng::of(self.seed, "start").ms(0, 12);
                        self.world.start_in_vain(wait).await;
                    }
                    self.start().await;
                }
            }
            Act::LibrariesDown(down) => self.set_libraries_down(*down),
            Act::LosesRights(who) => {
                if let Some(app) = &self.app {
                    self.world.give_rights(&app.db, who, UserRole::Member, false).await;
                    self.world.journal.note(format!("{who} may not delete any more"));
                    self.lost_rights.push((who, self.world.true_clock.now().as_millisecond()));
                }
            }
            Act::Forged(body) => forgeries::bring(&self.world, body),
            Act::Reconfigures { dropped_after } => {
                if let Some(app) = &self.app {
                    self.world.reconfigure(app, Duration::from_millis(*dropped_after)).await;
                }
            }
            Act::ChangesSetting(change) => {
                self.world.change_setting(*change);
                self.reconfigure().await;
            }
            Act::SetClock(by) => self.world.set_clock(*by),
            Act::Imports(title) => {
                if self.world.peers.radarr.added_ids().contains(&BRAZIL) {
                    self.world.journal.note(format!("{title} is imported"));
                    self.world.peers.radarr.download_and_import(title);
                }
            }
            Act::DiskFills(fault) => {
                if let Some(app) = &self.app {
                    self.world.journal.note(format!("the disk is full {fault:?}"));
                    fill_disk(&app.db, *fault).await;
                }
            }
            Act::DiskIsFreed => self.free_disk().await,
            Act::ChangesCarriers(carriers) => {
                self.world.change_carriers(*carriers);
                self.reconfigure().await;
            }
            Act::Phone(act) => self.world.disturb_phone(*act),
            Act::Bot(act) => self.world.disturb_bot(*act),
            Act::OperatorWrites(message) => {
                if let Some(app) = &self.app {
                    message.write(&self.world, app).await;
                }
            }
            Act::Agent(agent, act) => self.world.use_agent(*agent, *act),
            Act::Grows => self.world.peers.radarr.edit(1, |dune| dune.size_bytes = 30_000_000_000),
        }
    }

    fn set_libraries_down(&self, down: bool) {
        self.world.journal.note(format!("libraries down: {down}"));
        self.world.peers.radarr.set_down(down);
        self.world.peers.sonarr.set_down(down);
    }

    async fn reconfigure(&self) {
        if let Some(app) = &self.app {
            self.world.reconfigure(app, Duration::from_mins(1)).await;
        }
    }

    async fn free_disk(&self) {
        if let Some(app) = &self.app {
            self.world.journal.note("the disk has space again");
            free_disk(&app.db).await;
        }
    }

    async fn start(&mut self) {
        let app = self.world.start().await;
        self.expected_events = ExpectedEvents::begin(&app.db).await;
        self.app = Some(app);
    }

    /// Stops all failures, and waits until all work ends.
    async fn come_to_rest(&mut self) -> Vec<String> {
        self.world.calm_down();
        self.free_disk().await;
        self.world.journal.note("nothing goes wrong from here on");
        match self.app {
            None => self.start().await,
            // All carriers are configured again.
            Some(_) if self.world.plan.phone.is_some() => self.reconfigure().await,
            Some(_) => {}
        }
        // Late effects and lost responses are still in progress.
        pass(Duration::from_secs(60)).await;
        if self.world.plan.has_offers() {
            self.pass_until_plays_are_past().await;
            self.check_viewers().await;
        }
        if self.world.plan.has_digests() {
            // The program checks its digests every half an hour.
            pass(Duration::from_secs(31 * 60)).await;
        }
        if self.world.peers.radarr.added_ids().contains(&BRAZIL) {
            // The import of that title is read within five minutes.
            pass(Duration::from_secs(6 * 60)).await;
        }
        let writes = self.world.plan.acts.iter().any(|(_, act)| matches!(act, Act::Text { from: FAY, .. }));
        if writes || self.world.has_room() {
            // Notifications and results of votes that wait for the morning are released.
            people::text(&self.world, FAY, "quiet off", DeliveryMode::Straight);
        }
        let deadline = tokio::time::Instant::now() + REST_WITHIN;
        loop {
            // A question that has expired is closed when somebody asks about it.
            self.world.check_tickets(|last| last.is_none_or(|last| OPEN_STATES.contains(&last))).await;
            if paused(&Records::of(&self.world.database)) {
                self.resume().await;
                // An admin who opts in again is offered seasons at the next start.
                if self.world.plan.has_offers() {
                    self.check_viewers().await;
                }
            }
            let restless = match self.world.under_way.load(Ordering::SeqCst) {
                0 => restless(&self.world, &Records::of(&self.world.database)),
                some => vec![format!("{some} texts or callbacks are on their way")],
            };
            if restless.is_empty() {
                return Vec::new();
            }
            if tokio::time::Instant::now() > deadline {
                return restless.into_iter().map(|what| format!("I11 never came to rest: {what}")).collect();
            }
            pass(Duration::from_secs(20)).await;
        }
    }

    /// Waits until a clock that was set back a little has passed the time of every play. Until then, the plays are in the
    /// future, and no season is offered for them.
    async fn pass_until_plays_are_past(&self) {
        let behind = self.world.true_clock.now().duration_since(self.world.now());
        if behind.is_positive() && behind < SignedDuration::from_hours(1) {
            pass(behind.unsigned_abs()).await;
        }
    }

    /// Starts the program again, which offers seasons soon after its start, so that no offer remains for a later start.
    async fn check_viewers(&mut self) {
        if let Some(app) = self.app.take() {
            self.world.drain(app).await;
        }
        self.start().await;
        pass(Duration::from_secs(60)).await;
    }

    /// Ends the pause as the admin, or as the operator if the admin was demoted.
    async fn resume(&self) {
        let lost = self.lost_rights.iter().any(|(who, _)| *who == ANN);
        match &self.app {
            Some(app) if lost => {
                let now = self.world.now();
                app.db.write(move |conn| pauses::end_pause(conn, Actor::Shell, now)).await.unwrap();
                app.engine.scheduler.recover_work().await.unwrap();
            }
            _ => {
                // Ann may have opted out in the meantime.
                people::text(&self.world, ANN, "START", DeliveryMode::Straight);
                pass(Duration::from_secs(5)).await;
                people::text(&self.world, ANN, "resume", DeliveryMode::Straight);
            }
        }
    }

    /// Checks that all events were published, and that a start on a database at rest changes nothing. Returns the records
    /// at rest.
    async fn check_start_at_rest(&mut self) -> (Records, Vec<String>) {
        let mut violations = Vec::new();
        if let Some(app) = self.app.take() {
            let report = self.expected_events.compare(&app.db).await;
            let states = report.states;
            violations.extend(report.differences.iter().map(|what| format!("I19 {what}; all: {states:?}")));
            self.world.kill(app).await;
        }
        let mut before = Records::of(&self.world.database);
        let mut after = self.start_once_more().await;
        if before.services != after.services {
            // This start has finished a move whose end could not be stored, as on a full disk. The move also ends the
            // requests to delete titles of the server, and notifies their users.
            before.services.clone_from(&after.services);
            before.approvals.clone_from(&after.approvals);
            before.outbox.clone_from(&after.outbox);
            if before == after {
                after = self.start_once_more().await;
            }
        }
        if before != after {
            let changes = before.changed_rows(&after);
            violations.push(format!("I14 a start at rest changed something: {changes:?}"));
        }
        (after, violations)
    }

    /// Runs the program for a while without events, and returns the records after it.
    async fn start_once_more(&mut self) -> Records {
        pass(Duration::from_secs(1)).await;
        let app = self.world.start().await;
        pass(Duration::from_secs(45)).await;
        self.world.check_tickets(|_| true).await;
        self.world.kill(app).await;
        Records::of(&self.world.database)
    }
}

fn paused(records: &Records) -> bool {
    records.pauses.iter().any(|pause| pause["ended_at"].is_null())
}

/// Returns the work that is still to be done.
fn restless(world: &World, records: &Records) -> Vec<String> {
    let mut restless = Vec::new();
    let known = |sid: &String| records.events.iter().any(|event| word(event, "external_id") == sid);
    restless.extend(
        world
            .sent_in
            .lock()
            .unwrap()
            .iter()
            .filter(|sid| !known(sid))
            .map(|sid| format!("{sid} not admitted")),
    );
    restless.extend(phone_people::unfinished(world, records));
    restless.extend(bot_people::unfinished(world, records));
    restless.extend(checker::unfinished_requests(world, records));
    restless.extend(checker::unfinished_digests(world, records));
    let waits = |asked: &&serde_json::Value| asked["turn_id"].is_null() && asked["dropped"].is_null();
    restless.extend(records.agent_calls.iter().filter(waits).map(|asked| format!("call {asked}")));
    let open = records.events.iter().filter(|event| matches!(word(event, "state"), "pending" | "processing"));
    restless.extend(open.map(|event| format!("event {event}")));
    let live = records.turns.iter().filter(|turn| turn["finished_at"].is_null());
    restless.extend(live.map(|turn| format!("turn {turn}")));
    let waits =
        |text: &&serde_json::Value| matches!(word(text, "state"), "queued" | "attempting" | "unknown");
    restless.extend(records.outbox.iter().filter(waits).map(|text| format!("text {text}")));
    let now = world.now().as_millisecond();
    let is_due =
        |vote: &&serde_json::Value| vote["closed_at"].is_null() && number(vote, "closes_at") <= now + REST_MS;
    restless.extend(records.votes.iter().filter(is_due).map(|vote| format!("vote {vote}")));
    let is_of_agent = |asked: &&serde_json::Value| {
        records.agent_calls.iter().any(|call| call["tool_call_id"] == asked["tool_call_id"])
    };
    let expires_soon = |asked: &&serde_json::Value| {
        (now - REST_MS..=now + REST_MS).contains(&asked["expires_at"].as_i64().unwrap_or_default())
    };
    let questions = records.pending.iter().filter(is_of_agent).filter(expires_soon);
    restless.extend(questions.map(|asked| format!("question of an agent {asked}")));
    let waits_to_play = records.arr_events.iter().filter(|event| event["handled_at"].is_null());
    restless
        .extend(waits_to_play.filter(|_| world.jellyfin.is_some()).map(|event| format!("import {event}")));
    let tried = records.requests.iter().filter(|asked| !asked["next_try_at"].is_null());
    restless.extend(tried.map(|asked| format!("request {asked}")));
    restless
}
