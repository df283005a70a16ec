//! Invariants that hold regardless of when and how often the program was killed.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{Event, Ledger};
use super::people::{Consent, Entry, Line, Person, UserRequest};
use super::stage::{Stage, Title, Write};

/// Returns all violated invariants; an empty list means that all of them hold.
pub(crate) fn broken(stage: &Stage, people: &[Person]) -> Vec<String> {
    let ledger = Ledger::read(stage);
    let mut broken = stage.model.complaints();
    broken.extend(ledger.open.iter().map(|open| format!("left open: {}", open.what)));
    broken.extend(ledger.unremembered.iter().map(|lost| format!("not remembered: {}", lost.what)));
    broken.extend(outcomes(&ledger, people));
    broken.extend(replies(&ledger));
    broken.extend(sendings(stage, &ledger));
    broken.extend(writes(&stage.writes()));
    for person in people {
        broken.extend(person.diary.iter().flat_map(|entry| truths(stage, person, entry)));
    }
    broken
}

/// Checks that every message that the carrier had is known once, and has one outcome.
fn outcomes(ledger: &Ledger, people: &[Person]) -> Vec<String> {
    let events: BTreeMap<&str, &Event> =
        ledger.events.iter().map(|event| (event.external_id.as_str(), event)).collect();
    let entries = people.iter().flat_map(|person| &person.diary);
    let mut broken = Vec::new();
    let mut sent = BTreeSet::new();
    for line in entries.flat_map(|entry| &entry.lines) {
        let Line::Sent { sid, body, acknowledged } = line else { continue };
        sent.insert(sid.as_str());
        match events.get(sid.as_str()) {
            None => broken.push(format!("{body:?} is not known; acknowledged: {acknowledged}")),
            Some(event) if !matches!(event.outcome.as_deref(), Some("replied" | "failed_notified")) => {
                broken.push(format!("{body:?} has no answer: {event:?}"));
            }
            Some(_) => {}
        }
    }
    let nobodys = ledger.events.iter().filter(|event| !sent.contains(event.external_id.as_str()));
    broken.extend(nobodys.map(|event| format!("nobody said {event:?}")));
    broken
}

/// Checks that every turn that accepted messages answers them with one message.
fn replies(ledger: &Ledger) -> Vec<String> {
    let turns: BTreeSet<i64> = ledger.events.iter().filter_map(|event| event.turn_id).collect();
    let texts_of = |turn: i64| ledger.outbox.iter().filter(move |text| text.turn_id == Some(turn)).count();
    let mut broken: Vec<String> = turns
        .iter()
        .filter(|turn| texts_of(**turn) != 1)
        .map(|turn| format!("turn {turn} has {} texts", texts_of(*turn)))
        .collect();
    let stray = ledger.outbox.iter().filter(|text| text.turn_id.is_none_or(|turn| !turns.contains(&turn)));
    broken.extend(stray.map(|text| format!("a text answers nothing: {text:?}")));
    let turnless = ledger.events.iter().filter(|event| event.turn_id.is_none());
    broken.extend(turnless.map(|event| format!("no turn took up {event:?}")));
    broken
}

/// Checks that the carrier accepted the stored outbound messages, each one once.
fn sendings(stage: &Stage, ledger: &Ledger) -> Vec<String> {
    let mut broken = Vec::new();
    for text in ledger.outbox.iter().filter(|text| text.state != "accepted") {
        broken.push(format!("{} is {}", text.dedupe_key, text.state));
    }
    let written: BTreeMap<&str, (&str, &str)> = ledger
        .outbox
        .iter()
        .filter_map(|text| Some((text.provider_sid.as_deref()?, (text.to_addr.as_str(), text.body.as_str()))))
        .collect();
    for sent in stage.twilio.sent_messages() {
        if written.get(sent.sid.as_str()) != Some(&(sent.to.as_str(), sent.body.as_str())) {
            broken.push(format!("sent without or beside its row: {:?} to {}", sent.body, sent.to.as_str()));
        }
    }
    broken
}

/// Checks that each change of the library was carried out once, and that none was tried after it had succeeded.
fn writes(writes: &[Write]) -> Vec<String> {
    let mut done = BTreeSet::new();
    let mut broken = Vec::new();
    for write in writes {
        if !(200..300).contains(&write.status) {
            broken.push(format!("refused: {write:?}"));
        } else if !done.insert(&write.request) {
            broken.push(format!("done twice: {write:?}"));
        }
    }
    broken
}

/// Checks that the messages to a user are true.
fn truths(stage: &Stage, person: &Person, entry: &Entry) -> Vec<String> {
    let received: Vec<&str> = entry
        .lines
        .iter()
        .filter_map(|line| match line {
            Line::Received { body, .. } => Some(body.as_str()),
            Line::Sent { .. } => None,
        })
        .collect();
    let broken = match &entry.request {
        UserRequest::Add(title) => addition(stage, title, &received),
        UserRequest::Delete(titles, consent) => {
            titles.iter().flat_map(|title| deletion(stage, title, *consent, &received)).collect()
        }
        UserRequest::Look => Vec::new(),
    };
    broken.into_iter().map(|broken| format!("{broken}, {}: {:#?}", person.phone, entry.lines)).collect()
}

fn addition(stage: &Stage, title: &Title, received: &[&str]) -> Vec<&'static str> {
    let is_added = stage.radarr.added_ids().contains(&title.id);
    let says = |words: &str| received.iter().any(|text| text.contains(words));
    let reports_addition = says(&format!("Added {} (", title.name));
    let reports_presence =
        received.iter().any(|text| text.contains(&title.name) && text.contains(" already "));
    let reports_doubt = says("could not find out");
    match (is_added, reports_addition || reports_presence) {
        (true, false) if !reports_doubt => vec!["added, but not told so"],
        (false, true) => vec!["told to be added, but is not"],
        (true, _) | (false, false) => Vec::new(),
    }
}

fn deletion(stage: &Stage, title: &Title, consent: Consent, received: &[&str]) -> Vec<&'static str> {
    let is_gone = stage.radarr.removed_ids().contains(&title.id);
    let name = format!("{} (", title.name);
    // A sentence after the confirmation prompt that names the title.
    let says = |marks: &[&str]| {
        received.iter().filter(|text| !text.contains("Reply YES")).any(|text| {
            text.split(". ").any(|part| part.contains(&name) && marks.iter().any(|mark| part.contains(mark)))
        })
    };
    let reports_deletion = says(&["Deleted ", " already gone", " is deleted", " are deleted"]);
    let reports_keeping = says(&["kept", "Not deleted", "could not be deleted", "still there"]);
    let reports_doubt = says(&["could not find out"]);
    let mut broken = Vec::new();
    if is_gone && !reports_deletion && !reports_doubt {
        broken.push("deleted, but not told so");
    }
    if !is_gone && reports_deletion {
        broken.push("told to be deleted, but is not");
    }
    if is_gone && reports_keeping {
        broken.push("told to be kept, but is gone");
    }
    if is_gone && consent == Consent::No {
        broken.push("deleted without a yes");
    }
    if is_gone && !received.iter().any(|text| text.contains("Reply YES") && text.contains(&name)) {
        broken.push("deleted without a question that named it");
    }
    broken
}
