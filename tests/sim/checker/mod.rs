//! Checker of a schedule's invariants, based only on the database and on the requests that the peers received.

mod agents;
mod bot;
mod deletions;
mod digests;
mod guesses;
mod household;
mod making_room;
mod notifications;
mod phone;
mod requests;
mod seerr;
mod texts;
mod tonight;
mod viewing;
mod votes;

use std::sync::atomic::Ordering;

use serde_json::Value;

use self::bot::BotEvidence;
pub(crate) use self::bot::may_be_ignored;
pub(crate) use self::digests::unfinished as unfinished_digests;
use self::phone::PhoneEvidence;
pub(crate) use self::seerr::unfinished as unfinished_requests;
use crate::network_faults::Seen;
use crate::operator;
use crate::plan::BRAZIL;
use crate::records::{Records, number, word};
use crate::timeline::Times;
use crate::world::{SECRET, World};

/// Number of schedules from which on every event is expected, as in the release run of CI.
const MANY_SCHEDULES: u64 = 1_000;

/// Counters of the events that a simulation is meant to produce, so that an empty simulation is noticed.
#[derive(Debug, Default)]
pub(crate) struct Tally(Vec<(&'static str, usize)>);

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            match self.0.iter_mut().find(|(known, _)| known == what) {
                Some((_, sum)) => *sum += times,
                None => self.0.push((what, *times)),
            }
        }
    }

    /// Asserts that the simulation produced its events: all of them in a run of many schedules, and nine in ten in a
    /// short run, where the timing of the threads decides whether the rarest ones happen.
    #[track_caller]
    pub(crate) fn assert_everything_happened(&self, schedules: u64) {
        eprintln!("{:?}", self.0);
        let never: Vec<_> = self.0.iter().filter(|(_, times)| *times == 0).collect();
        let allowed = if schedules < MANY_SCHEDULES { self.0.len() / 10 } else { 0 };
        assert!(never.len() <= allowed, "these never happened in {schedules} schedules: {never:?}");
    }
}

/// Evidence of a check: the stored rows and the recorded requests.
struct Evidence<'a> {
    records: &'a Records,
    seen: &'a [Seen],
    phone: PhoneEvidence,
    bot: BotEvidence,
    lost_rights: &'a [(&'static str, i64)],
    times: Times,
    broken: Vec<String>,
}

impl Evidence<'_> {
    /// Expects a condition that can only be checked where every time is known.
    fn expect_in_time(&mut self, holds: bool, broken: impl FnOnce() -> String) {
        self.expect(holds || self.times == Times::Ambiguous, broken);
    }

    fn expect(&mut self, holds: bool, broken: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(broken());
        }
    }
}

pub(crate) fn check(
    world: &World,
    records: &Records,
    lost_rights: &[(&'static str, i64)],
) -> (Vec<String>, Tally) {
    let seen = world.seen.lock().unwrap().clone();
    let timeline = world.timeline.lock().unwrap().clone();
    let mut translated = records.clone();
    let bot = BotEvidence::of(world, &seen);
    bot::hide_times(&mut translated.events);
    let times = timeline.translate(&mut translated);
    bot::state_times(&bot, &mut translated.events);
    let records = &translated;
    let phone = PhoneEvidence::of(world, &seen);
    let mut evidence = Evidence { records, seen: &seen, phone, bot, lost_rights, times, broken: Vec::new() };
    admissions(&mut evidence, world);
    phone::check(&mut evidence);
    bot::check(&mut evidence);
    forgeries(&mut evidence, world);
    outcomes(&mut evidence);
    turns(&mut evidence);
    model(&mut evidence, world);
    calls(&mut evidence);
    additions(&mut evidence);
    deletions::check(&mut evidence);
    texts::check(&mut evidence);
    household::check(&mut evidence);
    making_room::check(&mut evidence);
    requests::check(&mut evidence);
    notifications::check(&mut evidence);
    votes::check(&mut evidence, world);
    tonight::check(&mut evidence, world);
    digests::check(&mut evidence, timeline.steps());
    viewing::check(&mut evidence, world);
    seerr::check(&mut evidence, world);
    agents::check(&mut evidence, world);
    // A day of the program is not a day of the schedule if the clock was set.
    if timeline.steps() == 0 {
        guesses::check(&mut evidence);
        notifications::check_quiet_hours(&mut evidence, &world.plan);
    }
    let secrets = format!("{records:?}").contains(SECRET);
    evidence.expect(!secrets, || "I13 a row holds a secret".to_owned());
    let mut tally = tally(records, &seen);
    phone::count(&evidence, world, &mut tally);
    bot::count(&evidence, world, &mut tally);
    votes::count(&evidence, world, &mut tally);
    tonight::count(records, &mut tally);
    digests::count(&evidence, &mut tally);
    viewing::count(records, world, &mut tally);
    seerr::count(records, &seen, world, &mut tally);
    making_room::count(records, &mut tally);
    agents::count(records, world, &mut tally);
    let mut broken = evidence.broken;
    broken.extend(operator::check(world, records));
    tally.0.push(("texts of the operator", world.written.lock().unwrap().len()));
    tally.0.push(("forged", forged(records, world).count()));
    tally.0.push(("clock steps", timeline.steps()));
    tally.0.push(("steps with all times known", if times == Times::Known { timeline.steps() } else { 0 }));
    (broken, tally)
}

/// Checks I1: every message that the carrier accepted is admitted, once.
fn admissions(evidence: &mut Evidence<'_>, world: &World) {
    let records = evidence.records;
    for sid in world.sent_in.lock().unwrap().iter() {
        let times = records.events.iter().filter(|event| word(event, "external_id") == sid).count();
        evidence.expect(times == 1, || format!("I1 {sid} was admitted {times} times"));
    }
    for sid in world.acknowledged.lock().unwrap().iter() {
        let known = records.events.iter().any(|event| word(event, "external_id") == sid);
        evidence.expect(known, || format!("I1 {sid} was acknowledged and not kept"));
    }
}

/// Returns the messages that came by webhook and that no user sent.
fn forged<'a>(records: &'a Records, world: &World) -> impl Iterator<Item = &'a Value> {
    let sent_in = world.sent_in.lock().unwrap().clone();
    let by_webhook = |event: &&Value| matches!(word(event, "via"), "webhook" | "fallback");
    let unsent = move |event: &&Value| !sent_in.contains(word(event, "external_id"));
    // The texts to the phone are checked separately.
    let by_twilio = |event: &&Value| word(event, "channel") == "twilio";
    records.events.iter().filter(by_webhook).filter(by_twilio).filter(unsent)
}

/// Checks I17: a recorded message that is reassembled confirms nothing, commands nothing, and changes no opt-out.
fn forgeries(evidence: &mut Evidence<'_>, world: &World) {
    let records = evidence.records;
    for event in forged(records, world) {
        let unknown = matches!(word(event, "authority"), "ambiguous" | "unverified");
        evidence.expect(unknown, || format!("I17 a forged text counts: {event}"));
        let confirms = records.calls.iter().any(|call| call["confirmed_by"] == event["id"]);
        evidence.expect(!confirms, || format!("I17 a forged text confirms: {event}"));
        let opts = matches!(word(event, "outcome_reason"), "opt_out" | "opted_in");
        evidence.expect(!opts, || format!("I17 a forged text changes an opt-out: {event}"));
        let turn = records.turns.iter().find(|turn| turn["id"] == event["turn_id"]);
        let orders = turn.is_some_and(|turn| {
            records.pauses.iter().any(|pause| pause["begun_at"] == turn["created_at"])
                || records.approvals.iter().any(|asked| asked["settled_at"] == turn["created_at"])
        });
        evidence.expect(!orders, || format!("I17 a forged text orders: {event}"));
    }
}

/// Checks I2: every message has one outcome, and an answered one has one reply. Checks I18: closing a confirmation
/// prompt does not answer a request.
fn outcomes(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    for event in &records.events {
        let (turn, id) = (number(event, "turn_id"), number(event, "id"));
        let denied = records.turns.iter().any(|row| number(row, "id") == turn && word(row, "kind") == "deny");
        let unanswered = denied && word(event, "body").starts_with("add ");
        evidence.expect(!unanswered, || format!("I18 a request counts as an answer to a question: {event}"));
        let answers = records
            .outbox
            .iter()
            .filter(|text| {
                word(text, "dedupe_key") == format!("event:{id}:reply")
                    || (turn > 0 && number(text, "turn_id") == turn)
            })
            // A prompt with a code goes to the private chat, and the room reads that.
            .filter(|text| text["room_id"] == event["room_id"])
            .count();
        let (expected, reason) = match word(event, "outcome") {
            "replied" | "failed_notified" => (1, true),
            "skipped" => (0, !word(event, "outcome_reason").is_empty()),
            _ => (usize::MAX, false),
        };
        evidence.expect(answers == expected && reason, || format!("I2 {answers} answers to {event}"));
    }
}

/// Checks I10: a user has one turn after the other, one confirmation prompt, one conversation.
fn turns(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    for user in records.users.iter().map(|user| number(user, "id")) {
        let of_user = |rows: &[Value]| -> Vec<Value> {
            rows.iter().filter(|row| number(row, "user_id") == user).cloned().collect()
        };
        for pair in of_user(&records.turns).windows(2) {
            let in_turn = number(&pair[1], "created_at") >= number(&pair[0], "finished_at");
            evidence
                .expect_in_time(in_turn, || format!("I10 two turns at once: {} and {}", pair[0], pair[1]));
        }
        // An agent has a conversation of its own, beside that of its person.
        let mut open = of_user(&records.conversations);
        open.retain(|row| row["ended_at"].is_null());
        let mut owners: Vec<i64> = open.iter().map(|row| number(row, "agent_key_id")).collect();
        owners.sort_unstable();
        owners.dedup();
        evidence.expect(open.len() == owners.len(), || format!("I10 user {user} has conversations {open:?}"));
        let pending = of_user(&records.pending).len();
        evidence.expect(pending <= 1, || format!("I10 user {user} has {pending} questions"));
    }
    for conversation in records.conversations.iter().map(|row| number(row, "id")) {
        let turns = records.turns.iter().filter(|turn| number(turn, "conversation_id") == conversation);
        for pair in turns.collect::<Vec<_>>().windows(2) {
            // The time of a turn was read before it waited for the writer.
            let begun = number(pair[1], "created_at") + household::LONGEST_WRITE_WAIT_MS;
            evidence.expect_in_time(begun >= number(pair[0], "finished_at"), || {
                format!("I10 two turns of a conversation at once: {} and {}", pair[0], pair[1])
            });
        }
    }
}

/// Checks I3 and I9: one result per step, an attempt recorded for each call unless a loss of power undid the record, and
/// requests that any server accepts.
fn model(evidence: &mut Evidence<'_>, world: &World) {
    for broken in world.model.broken.lock().unwrap().iter() {
        evidence.broken.push(format!("I9 a request breaks a rule: {broken}"));
    }
    let steps = &evidence.records.steps;
    let attempts = evidence.records.model_attempts() + world.lost_attempts.load(Ordering::SeqCst);
    let calls = *world.model.calls.lock().unwrap();
    evidence.expect(calls <= attempts as u64, || {
        format!("I3 {calls} model calls and {attempts} recorded attempts")
    });
    let key = |step: &Value| (number(step, "turn_id"), number(step, "step"));
    let mut done: Vec<_> = steps.iter().filter(|step| word(step, "state") == "complete").map(key).collect();
    let all = done.len();
    done.sort_unstable();
    done.dedup();
    evidence.expect(done.len() == all, || "I3 a step was completed twice".to_owned());
    let open = steps.iter().find(|step| word(step, "state") == "started");
    evidence.expect(open.is_none(), || format!("I3 an attempt never ended: {open:?}"));
}

/// Checks I9: every call has ended, or its confirmation prompt is open.
fn calls(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    for call in &records.calls {
        let asked = records.pending.iter().any(|open| open["tool_call_id"] == call["id"]);
        let ended = matches!(word(call, "state"), "complete" | "error" | "canceled");
        let held = word(call, "state") == "held" && asked;
        evidence.expect(ended || held, || format!("I9 a call without an end: {call}"));
    }
}

/// Checks I5: nothing is added except for a call that is running, and no more often than that call was started.
fn additions(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    let posts: Vec<&Seen> = evidence.seen.iter().filter(|seen| addition(seen).is_some()).collect();
    // The requests of a user whose messages were erased leave no rows.
    for post in posts.iter().filter(|post| addition(post) != Some(BRAZIL)) {
        let id = addition(post).unwrap_or_default();
        let at = post.asked_at.as_millisecond();
        let running = |call: &&Value| {
            number(call, "created_at") <= at
                && (call["finished_at"].is_null() || at <= number(call, "finished_at"))
        };
        let called = records.calls.iter().filter(|call| asks_to_add(call, id)).any(|call| running(&call));
        let asked = called || requests::tried(records, id, at);
        evidence.expect_in_time(asked, || format!("I5 an addition that no running call asked for: {post:?}"));
        let times = posts.iter().filter(|other| addition(other) == Some(id)).count() as i64;
        let starts: i64 = records
            .calls
            .iter()
            .filter(|call| asks_to_add(call, id))
            .map(|call| number(call, "attempts"))
            .sum();
        let starts = starts + requests::tries(records, id);
        evidence.expect(times <= starts, || format!("I5 {id} was added {times} times in {starts} starts"));
    }
}

/// Returns the catalog number that a request adds.
fn addition(seen: &Seen) -> Option<i64> {
    let field = match seen.what.as_str() {
        "POST /api/v3/movie" => "tmdbId",
        "POST /api/v3/series" => "tvdbId",
        _ => return None,
    };
    serde_json::from_str::<Value>(&seen.body).ok()?[field].as_i64()
}

fn asks_to_add(call: &Value, id: i64) -> bool {
    let request = word(call, "request");
    // The arguments in a conversation about what somebody has watched are erased after a day.
    let is_erased = request == "{}";
    word(call, "tool_name").starts_with("add_") && (is_erased || request.contains(&id.to_string()))
}

fn is(asked: &Value, kind: &str, state: &str) -> bool {
    (word(asked, "kind"), word(asked, "state")) == (kind, state)
}

fn tally(records: &Records, seen: &[Seen]) -> Tally {
    let events = |column: &'static str, value: &'static str| {
        records.events.iter().filter(|event| word(event, column) == value).count()
    };
    let outbox = |test: &dyn Fn(&Value) -> bool| records.outbox.iter().filter(|text| test(text)).count();
    Tally(vec![
        ("texts", records.events.len()),
        ("replied", events("outcome", "replied")),
        ("recovered", events("via", "recovery")),
        ("by the fallback", events("via", "fallback")),
        ("opted out", events("outcome_reason", "opt_out")),
        ("taken back", events("outcome_reason", "taken_back")),
        ("additions", seen.iter().filter(|seen| addition(seen).is_some()).count()),
        ("added later", records.requests.iter().filter(|asked| requests::was_added_later(asked)).count()),
        ("deletions", seen.iter().filter(|seen| deletions::deletion(seen).is_some()).count()),
        ("let in", records.approvals.iter().filter(|asked| is(asked, "join", "approved")).count()),
        ("wishes approved", records.approvals.iter().filter(|asked| is(asked, "delete", "approved")).count()),
        ("wishes denied", records.approvals.iter().filter(|asked| is(asked, "delete", "denied")).count()),
        ("pauses", records.pauses.len()),
        ("suspended", records.notes.iter().filter(|note| word(note, "kind") == "suspend_codes").count()),
        ("notifications", outbox(&|text| notifications::is_of_a_title(text))),
        ("notifications held until morning", outbox(&|text| notifications::waited_for_an_hour(text))),
        ("everything forgotten", notifications::forgotten(records).count()),
        ("requests between noes", notifications::requests_between_noes(records)),
        ("questions", outbox(&|text| word(text, "kind") == "confirm_prompt")),
        ("sent again", outbox(&|text| number(text, "attempts") > 1)),
        ("fate was open", outbox(&|text| !text["unknown_at"].is_null())),
        ("suppressed", outbox(&|text| word(text, "state") == "suppressed")),
        ("resumed", records.turns.iter().filter(|turn| number(turn, "attempts") > 0).count()),
        (
            "attempts abandoned",
            records.steps.iter().filter(|step| word(step, "state") == "abandoned").count(),
        ),
    ])
}
