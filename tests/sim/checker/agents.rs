//! I35: a deletion that an agent asked for runs only on the word of the person of its key, with the code of a question that
//! names the agent; no text with an API key confirms or approves anything. I36: each ticket has one outcome, which is
//! "done" exactly if the titles left the library through its call, each once.

use std::sync::atomic::Ordering;

use serde_json::Value;

use super::{Evidence, Tally, deletions};
use crate::house_agents::{OPEN_STATES, SeenState};
use crate::network_faults::Seen;
use crate::records::{Records, by_id, number, word};
use crate::world::World;

/// Beginning of the ids of messages that were sent with an API key.
const PROGRAM_PREFIX: &str = "api:key-";
/// Beginning of the ids of messages that a button of the console created.
const BUTTON_PREFIX: &str = "button:";
/// Answer to a program that tries to confirm or to approve.
const NOT_IN_PERSON: &str = "Nothing was done.";
/// Outcomes with which nothing was deleted.
const UNTOUCHED_STATES: [&str; 5] = ["refused", "expired", "closed", "canceled", "dropped"];

pub(super) fn check(evidence: &mut Evidence<'_>, world: &World) {
    programs(evidence);
    let records = evidence.records;
    for asked in questions(records) {
        let keys = world.agents.keys.lock().unwrap().clone();
        let key = keys.iter().find(|key| key.id == number(asked, "key_id"));
        let is_of_person = key.is_some_and(|key| key.person.0 == number(asked, "user_id"));
        evidence.expect(is_of_person, || format!("I35 a call for another person than its key: {asked}"));
        let key_name = key.map_or("", |key| key.name.as_str());
        for call in deletions_of(records, asked) {
            asking(evidence, key_name, (asked, call));
            confirmation(evidence, asked, call);
        }
    }
    conversations(evidence);
    tickets(evidence, world);
}

/// Returns the calls of agents that ask their person about a deletion.
fn questions(records: &Records) -> impl Iterator<Item = &Value> {
    records.agent_calls.iter().filter(|asked| word(asked, "effect") == "destructive")
}

/// Returns the deletions of a call of an agent: the one that it asked for, and those that the person was asked about again,
/// because a title had changed.
fn deletions_of<'a>(records: &'a Records, asked: &Value) -> Vec<&'a Value> {
    let deletion_in = |turn: &Value| {
        let mut calls = records.calls.iter().filter(|call| word(call, "effect") == "destructive");
        calls.find(|call| !turn.is_null() && call["turn_id"] == *turn)
    };
    let mut deletions = Vec::new();
    let mut next = deletion_in(&asked["turn_id"]);
    while let Some(call) = next {
        deletions.push(call);
        next = deletion_in(&call["run_turn_id"]);
    }
    deletions
}

fn items_of<'a>(records: &'a Records, call: &Value) -> Vec<&'a Value> {
    records.items.iter().filter(|item| item["tool_call_id"] == call["id"]).collect()
}

/// Returns the prompts of the turn that asked about a deletion.
fn prompts_of<'a>(records: &'a Records, call: &'a Value) -> impl Iterator<Item = &'a Value> {
    let prompts = records.outbox.iter().filter(|text| word(text, "kind") == "confirm_prompt");
    prompts.filter(|text| text["turn_id"] == call["turn_id"])
}

/// Returns the code that a prompt asks for.
fn code_of(prompt: &Value) -> Option<&str> {
    let (_, rest) = word(prompt, "body").split_once("Reply YES ")?;
    let code = rest.split(' ').next()?;
    code.bytes().all(|byte| byte.is_ascii_digit()).then_some(code)
}

/// Checks that the person of the key alone is asked, about a deletion of this agent, with a code.
fn asking(evidence: &mut Evidence<'_>, key_name: &str, (asked, call): (&Value, &Value)) {
    for prompt in prompts_of(evidence.records, call) {
        let name = match word(asked, "client") {
            "" => "An agent",
            name => name,
        };
        let is_named = word(prompt, "body").contains(&format!("{name} (key \"{key_name}\") asks: "));
        evidence.expect(is_named && code_of(prompt).is_some(), || {
            format!("I35 a question does not name {name}, or has no code: {prompt}")
        });
        let is_private = prompt["user_id"] == asked["user_id"] && prompt["room_id"].is_null();
        evidence.expect(is_private, || format!("I35 another chat than that of the person: {prompt}"));
    }
}

/// Checks that a deletion starts only with a yes of the person, with the code of the question.
fn confirmation(evidence: &mut Evidence<'_>, asked: &Value, call: &Value) {
    let records = evidence.records;
    if call["confirmed_by"].is_null() {
        let started = items_of(records, call).into_iter().find(|item| number(item, "attempts") > 0);
        evidence.expect(started.is_none(), || format!("I35 an agent's deletion without a yes: {started:?}"));
        return;
    }
    let yes = by_id(&records.events, number(call, "confirmed_by")).cloned().unwrap_or_default();
    let is_of_person = yes["user_id"] == asked["user_id"] && !asked["user_id"].is_null();
    evidence.expect(is_of_person, || format!("I35 another person's yes: {yes} for {asked}"));
    let is_in_person =
        word(&yes, "channel") != "console" || word(&yes, "external_id").starts_with(BUTTON_PREFIX);
    evidence.expect(is_in_person, || format!("I35 a yes that its person did not give: {yes} for {asked}"));
    let code = prompts_of(records, call).find_map(code_of);
    let has_code = code.is_some_and(|code| word(&yes, "body").contains(code));
    evidence.expect(has_code, || format!("I35 a yes without the code {code:?}: {yes} for {asked}"));
}

/// Returns the texts that a program sent with an API key.
fn texts_of_programs(records: &Records) -> impl Iterator<Item = &Value> {
    records.events.iter().filter(|event| word(event, "external_id").starts_with(PROGRAM_PREFIX))
}

fn programs(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    for event in texts_of_programs(records) {
        let confirms = records.calls.iter().any(|call| call["confirmed_by"] == event["id"]);
        evidence.expect(!confirms, || format!("I35 a program confirms: {event}"));
        let turn = by_id(&records.turns, number(event, "turn_id"));
        let approved = turn.and_then(|turn| {
            records.approvals.iter().find(|approval| {
                word(approval, "state") == "approved"
                    && approval["settled_by"] == event["user_id"]
                    && approval["settled_at"] == turn["created_at"]
            })
        });
        evidence.expect(approved.is_none(), || format!("I35 a program approves {approved:?}: {event}"));
    }
}

/// Checks that the calls of an agent are turns of its own conversations, and that no message belongs to them.
fn conversations(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    for asked in records.agent_calls.iter().filter(|asked| !asked["turn_id"].is_null()) {
        let turn = by_id(&records.turns, number(asked, "turn_id")).cloned().unwrap_or_default();
        let conversation = by_id(&records.conversations, number(&turn, "conversation_id"));
        let is_own = conversation.is_some_and(|row| row["agent_key_id"] == asked["key_id"]);
        evidence.expect(is_own && turn["user_id"] == asked["user_id"], || {
            format!("I35 a call outside of the conversation of its agent: {asked} in {turn}")
        });
        let event = records.events.iter().find(|event| event["turn_id"] == turn["id"]);
        evidence.expect(event.is_none(), || format!("I35 a message in the turn of an agent: {event:?}"));
    }
}

fn tickets(evidence: &mut Evidence<'_>, world: &World) {
    let states = world.agents.states.lock().unwrap().clone();
    for seen in &states {
        let is_kept = questions(evidence.records).any(|asked| word(asked, "ticket") == seen.ticket);
        evidence.expect(is_kept, || format!("I36 an agent has a ticket that no row holds: {seen:?}"));
    }
    for asked in questions(evidence.records) {
        let seen: Vec<&SeenState> =
            states.iter().filter(|seen| seen.ticket == word(asked, "ticket")).collect();
        for pair in seen.windows(2) {
            let is_stable = OPEN_STATES.contains(&pair[0].state) || pair[0].state == pair[1].state;
            evidence.expect(is_stable, || format!("I36 a final outcome changed: {pair:?} of {asked}"));
        }
        if let Some(last) = seen.last() {
            outcome(evidence, asked, last.state);
        }
    }
}

/// Checks that the last outcome of a ticket is true.
fn outcome(evidence: &mut Evidence<'_>, asked: &Value, state: &str) {
    let records = evidence.records;
    let deletions = deletions_of(records, asked);
    let newest = deletions.last().map_or(&Value::Null, |call| &call["id"]);
    evidence.expect(asked["tool_call_id"] == *newest, || {
        format!("I36 the ticket stands for another call than the newest, {newest}: {asked}")
    });
    let is_over = !["waiting", "running"].contains(&state);
    evidence.expect(is_over, || format!("I36 {state} at the end: {asked}"));
    let Some(call) = deletions.last() else { return };
    let items = items_of(records, call);
    let is_gone =
        |item: &&Value| matches!(word(item, "result").trim_matches('"'), "deleted" | "already_gone");
    let are_gone = !items.is_empty() && items.iter().all(is_gone);
    evidence.expect((state == "done") == are_gone, || format!("I36 told {state} of {items:?}: {asked}"));
    let is_untouched = items.iter().all(|item| number(item, "attempts") == 0);
    let is_unconfirmed = UNTOUCHED_STATES.contains(&state) || state == "asked";
    evidence.expect(!is_unconfirmed || is_untouched, || {
        format!("I36 told {state}, and it was started: {items:?} of {asked}")
    });
    for item in items.into_iter().filter(|item| word(item, "result").trim_matches('"') == "deleted") {
        deleted_once(evidence, call, item);
    }
}

/// Checks that the library lost a title once, through the call that says so, unless another call was started that may have
/// deleted it.
fn deleted_once(evidence: &mut Evidence<'_>, call: &Value, item: &Value) {
    let records = evidence.records;
    let (kind, id) = (word(item, "kind"), number(item, "item_id"));
    let is_done = |seen: &&Seen| {
        let is_target = deletions::deletion(seen).is_some_and(|target| target == (kind, id));
        is_target && seen.done.as_ref().is_some_and(|(_, status, _)| (200..300).contains(status))
    };
    let done: Vec<&Seen> = evidence.seen.iter().filter(is_done).collect();
    evidence.expect(done.len() <= 1, || format!("I36 deleted {} times: {item}", done.len()));
    let begun = by_id(&records.turns, number(call, "run_turn_id"));
    let run = begun.map_or(i64::MAX, |turn| number(turn, "created_at"))..=number(call, "finished_at");
    let is_own = done.iter().any(|seen| run.contains(&seen.asked_at.as_millisecond()));
    let is_other = |other: &Value| {
        (word(other, "kind"), number(other, "item_id")) == (kind, id)
            && other["tool_call_id"] != item["tool_call_id"]
            && number(other, "attempts") > 0
    };
    let is_of_others = records.items.iter().any(is_other);
    evidence.expect_in_time(is_own || is_of_others, || format!("I36 not lost through its call: {item}"));
}

/// Counts the events that only a schedule with agents has.
pub(super) fn count(records: &Records, world: &World, tally: &mut Tally) {
    let states = world.agents.states.lock().unwrap().clone();
    let ended_as = |state: &str| {
        let last = |asked: &Value| states.iter().rfind(|seen| seen.ticket == word(asked, "ticket"));
        questions(records).filter(|asked| last(asked).is_some_and(|last| last.state == state)).count()
    };
    let deletions = || questions(records).flat_map(|asked| deletions_of(records, asked));
    let added = records.agent_calls.iter().filter(|asked| {
        let call = by_id(&records.calls, number(asked, "tool_call_id"));
        word(asked, "tool").starts_with("add_") && call.is_some_and(|call| word(call, "state") == "complete")
    });
    let refused = |said: &str| {
        let is_refused = |event: &&Value| {
            let turn = number(event, "turn_id");
            let mut answers = records.outbox.iter().filter(|text| number(text, "turn_id") == turn);
            turn > 0 && answers.any(|text| word(text, "body").contains(NOT_IN_PERSON))
        };
        let texts = texts_of_programs(records).filter(|event| word(event, "body").starts_with(said));
        texts.filter(is_refused).count()
    };
    tally.0.extend([
        ("calls of agents", records.agent_calls.len()),
        ("calls of agents cut off", world.agents.cut_off.load(Ordering::SeqCst)),
        ("titles that agents added", added.count()),
        ("questions of agents", deletions().map(|call| prompts_of(records, call).count()).sum()),
        ("questions of agents confirmed", deletions().filter(|call| !call["confirmed_by"].is_null()).count()),
        ("questions of agents refused", ended_as("refused")),
        ("questions of agents expired", ended_as("expired")),
        ("deletions of agents done", ended_as("done")),
        ("deletions of agents failed", ended_as("failed")),
        ("repeated calls with the same ticket", world.agents.same_tickets.load(Ordering::SeqCst)),
        ("questions that waited", states.iter().filter(|seen| seen.state == "waiting").count()),
        ("codes that programs texted", refused("YES 47")),
        ("approvals that programs tried", refused("approve")),
    ]);
}
