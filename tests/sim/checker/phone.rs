//! Invariants of the phone. I1: every text in its inbox is admitted, once. I4: a yes answers a prompt on the channel of the
//! prompt, and after its radio sent it. I6: the radio sends each message once, unless the phone died in between.

use std::collections::{BTreeMap, BTreeSet};

use dialarr::messaging::smsgate::fake::RadioedText;
use serde_json::Value;

use super::texts::{SLACK_MS, Sent, was_answered};
use super::{Evidence, Tally};
use crate::carriers::PhoneText;
use crate::network_faults::Seen;
use crate::plan::Act;
use crate::records::{by_id, number, word};
use crate::world::World;

/// Longest time from a response of the phone to the record of all states of that poll.
const STATES_RECORDED_MS: i64 = 1_000;

/// State of the phone at the end, and what the program could know of it.
pub(super) struct PhoneEvidence {
    texts: Vec<PhoneText>,
    radioed: Vec<RadioedText>,
    /// Ids of the messages that the phone failed to send.
    pub(super) failed: BTreeSet<String>,
    /// Ids under which another program stored a message.
    occupied: BTreeSet<String>,
    /// True if a carrier was added or removed.
    has_changing_carriers: bool,
    /// Times at which the phone showed that a message was sent, by its id.
    shown_as_sent: BTreeMap<String, Vec<i64>>,
}

/// Time from which a prompt can be answered, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening {
    pub(super) earliest: i64,
    pub(super) latest: i64,
}

impl PhoneEvidence {
    pub(super) fn of(world: &World, seen: &[Seen]) -> Self {
        let phone = &world.carriers.phone;
        let mut shown_as_sent: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for (id, at, state) in seen.iter().filter_map(shown_state) {
            if matches!(state.as_str(), "Sent" | "Delivered") {
                shown_as_sent.entry(id).or_default().push(at);
            }
        }
        Self {
            texts: phone.texts.lock().unwrap().clone(),
            radioed: phone.fake.radioed_texts(),
            failed: phone.fake.failed_ids().into_iter().collect(),
            occupied: phone.occupied.lock().unwrap().clone(),
            has_changing_carriers: world
                .plan
                .acts
                .iter()
                .any(|(_, act)| matches!(act, Act::ChangesCarriers(_))),
            shown_as_sent,
        }
    }

    /// Returns when a prompt opened, before an answer was received; `None` if it had not. A prompt on the phone opens once
    /// a poll shows that it was sent.
    pub(super) fn opening(&self, prompt: &Value, received: i64) -> Option<Opening> {
        if !is_on_phone(prompt) {
            let at = Some(number(prompt, "accepted_at")).filter(|at| *at > 0)?;
            return Some(Opening { earliest: at, latest: at });
        }
        let shown = self.shown_as_sent.get(word(prompt, "provider_sid"))?;
        let earliest = *shown.first()?;
        let latest = shown.iter().rev().find(|at| **at <= received).copied().unwrap_or(earliest);
        Some(Opening { earliest, latest: latest + STATES_RECORDED_MS })
    }
}

/// Returns the id of a message whose state a request showed, the time, and the state.
fn shown_state(seen: &Seen) -> Option<(String, i64, String)> {
    let id = seen.what.strip_prefix("GET /messages/").filter(|_| seen.peer == "phone")?;
    let (at, _, body) = seen.done.as_ref()?;
    let message: Value = serde_json::from_str(body).ok()?;
    Some((id.to_owned(), at.as_millisecond(), word(&message, "state").to_owned()))
}

fn is_on_phone(message: &Value) -> bool {
    word(message, "from_addr").starts_with("smsgate:")
}

/// Returns whether a callback token is that of the attempt after a failure of the radio.
pub(super) fn is_second_attempt(token: &str) -> bool {
    token.ends_with("-2")
}

/// Returns the requests to the phone to send a message.
pub(super) fn sent(evidence: &Evidence<'_>) -> Vec<Sent> {
    let is_sending = |seen: &&Seen| seen.peer == "phone" && seen.what.starts_with("POST /messages?");
    let read = |seen: &Seen| {
        let message: Value = serde_json::from_str(&seen.body).unwrap_or_default();
        let id = word(&message, "id");
        let is_row =
            |row: &&Value| word(row, "callback_word").trim_end_matches("-2") == id.trim_end_matches("-2");
        let row = evidence.records.outbox.iter().find(is_row).map_or(0, |row| number(row, "id"));
        let accepted = seen.done.as_ref().filter(|(_, status, _)| *status == 202);
        Sent {
            row,
            to: message["phoneNumbers"][0].as_str().unwrap_or_default().to_owned(),
            token: id.to_owned(),
            asked_ms: seen.asked_at.as_millisecond(),
            slack_ms: SLACK_MS,
            taken: accepted.map(|(at, ..)| (at.as_millisecond(), id.to_owned())),
            was_answered: was_answered(seen),
            is_to_opted_out: false,
        }
    };
    evidence.seen.iter().filter(is_sending).map(read).collect()
}

/// Returns whether a message may fail before its time: another program has its id, or the carrier that may have accepted
/// it was removed.
pub(super) fn may_fail(evidence: &Evidence<'_>, row: &Value, sent: &[Sent]) -> bool {
    let is_occupied = evidence.phone.occupied.contains(word(row, "callback_word"));
    let is_unanswered = |text: &Sent| text.row == number(row, "id") && !text.was_answered;
    is_occupied || (evidence.phone.has_changing_carriers && sent.iter().any(is_unanswered))
}

pub(super) fn check(evidence: &mut Evidence<'_>) {
    admissions(evidence);
    radio(evidence);
}

fn admissions(evidence: &mut Evidence<'_>) {
    let texts = evidence.phone.texts.clone();
    let records = evidence.records;
    let by_phone = || records.events.iter().filter(|event| word(event, "channel") == "smsgate");
    let known: BTreeSet<&str> = by_phone().map(|event| word(event, "external_id")).collect();
    let admitted: Vec<&PhoneText> =
        texts.iter().filter(|text| known.contains(text.external_id().as_str())).collect();
    for text in &texts {
        let is_admitted = admitted.iter().any(|other| other.is_same_message(text));
        evidence.expect(is_admitted, || format!("I1 never admitted: {text:?}"));
    }
    for (index, text) in admitted.iter().enumerate() {
        let is_twice =
            |other: &&&PhoneText| other.is_same_message(text) && other.external_id() != text.external_id();
        let copy = admitted[index + 1..].iter().find(is_twice);
        evidence.expect(copy.is_none(), || format!("I1 admitted twice: {text:?} and {copy:?}"));
    }
    let ids: BTreeSet<String> = texts.iter().map(PhoneText::external_id).collect();
    for event in by_phone() {
        let was_sent = ids.contains(word(event, "external_id"));
        evidence.expect(was_sent, || format!("I1 nobody sent {event}"));
    }
}

fn radio(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    let mut sent: Vec<(i64, i64, &str)> = Vec::new();
    let radioed = evidence.phone.radioed.clone();
    for text in radioed.iter().filter(|text| !text.is_repeat) {
        let is_row = |row: &&Value| {
            word(row, "callback_word").trim_end_matches("-2") == text.id.trim_end_matches("-2")
        };
        let row = records.outbox.iter().find(is_row);
        evidence.expect(row.is_some(), || format!("I6 the radio sent what no row holds: {text:?}"));
        let Some(row) = row else { continue };
        sent.push((number(row, "id"), text.sent_at.as_millisecond(), &text.to));
        let same = row["body"].as_str().is_none_or(|body| body.is_empty() || body == text.body);
        evidence.expect(same, || format!("I6 the radio sent another text: {text:?} for {row}"));
    }
    let mut rows: Vec<i64> = sent.iter().map(|(row, ..)| *row).collect();
    rows.sort_unstable();
    for pair in rows.windows(2).filter(|pair| pair[0] == pair[1]) {
        evidence.expect(false, || format!("I6 the radio sent row {} twice", pair[0]));
    }
    in_order(evidence, &sent);
}

/// Checks I8 at the radio, which may send the newest of several waiting messages first.
fn in_order(evidence: &mut Evidence<'_>, sent: &[(i64, i64, &str)]) {
    let records = evidence.records;
    let is_first_attempt = |row: i64| {
        by_id(&records.outbox, row).is_some_and(|row| {
            word(row, "kind") != "notice" && !is_second_attempt(word(row, "callback_word"))
        })
    };
    let mut sent: Vec<(&str, i64, i64)> = sent
        .iter()
        .filter(|(row, ..)| is_first_attempt(*row))
        .map(|(row, at, to)| (*to, *row, *at))
        .collect();
    sent.sort_unstable();
    for pair in sent.windows(2) {
        let in_order = pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].2;
        evidence.expect(in_order, || format!("I8 radioed out of order: {:?} and {:?}", pair[0], pair[1]));
    }
}

/// Checks that a yes arrived on the channel of its prompt, and at the phone after its radio sent the prompt.
pub(super) fn check_answer(evidence: &mut Evidence<'_>, yes: &Value, prompt: &Value) {
    let is_by_phone = word(yes, "channel") == "smsgate";
    evidence.expect(is_by_phone == is_on_phone(prompt), || {
        format!("I4 a yes on another channel than its question: {yes} for {prompt}")
    });
    if !is_by_phone {
        return;
    }
    let is_prompt = |text: &&RadioedText| text.id == word(prompt, "provider_sid");
    let radioed = evidence.phone.radioed.iter().find(is_prompt).map(|text| text.sent_at);
    let is_yes = |text: &&PhoneText| text.external_id() == word(yes, "external_id");
    let arrived = evidence.phone.texts.iter().find(is_yes).map(|text| text.arrived_at);
    let is_later = radioed.zip(arrived).is_some_and(|(radioed, arrived)| radioed <= arrived);
    evidence.expect(is_later, || {
        format!("I4 a yes that arrived at {arrived:?} before its question was sent at {radioed:?}: {yes}")
    });
}

/// Counts the events that only a schedule with a phone has.
pub(super) fn count(evidence: &Evidence<'_>, world: &World, tally: &mut Tally) {
    let records = evidence.records;
    let acts = |test: fn(&Act) -> bool| world.plan.acts.iter().filter(|(_, act)| test(act)).count();
    let is_conflict = |seen: &&Seen| {
        seen.peer == "phone" && seen.done.as_ref().is_some_and(|(_, status, _)| *status == 409)
    };
    let by_phone_yes = |call: &&Value| {
        let yes = by_id(&records.events, number(call, "confirmed_by"));
        yes.is_some_and(|yes| word(yes, "channel") == "smsgate")
    };
    let by_phone = |event: &&Value| word(event, "channel") == "smsgate";
    tally.0.extend([
        ("texts by the phone", records.events.iter().filter(by_phone).count()),
        ("sent by the phone", evidence.phone.radioed.len()),
        ("confirmed by the phone", records.calls.iter().filter(by_phone_yes).count()),
        ("known to the phone", evidence.seen.iter().filter(is_conflict).count()),
        ("not sent by the phone", evidence.phone.failed.len()),
        ("changes of the carriers", acts(|act| matches!(act, Act::ChangesCarriers(_)))),
        ("events at the phone", acts(|act| matches!(act, Act::Phone(_)))),
    ]);
}
