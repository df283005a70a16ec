//! Invariants of the bot. I1: every text and press is admitted, once, and an edit changes none. I4: a yes was written after
//! its prompt, by the person who was asked, and a press belongs to the last copy of the prompt. I6: a message is sent a
//! second time only after a lost answer or an end of the program, and a notification never.

use std::collections::BTreeMap;

use http::Uri;
use serde_json::Value;

use super::texts::Sent;
use super::{Evidence, Tally};
use crate::bot_plan::BotAct;
use crate::house_bot::{
    self, BotDelivery, BotPress, BotStart, BotText, ROOM, RunEnd, is_sending, message_id, query_number,
};
use crate::network_faults::Seen;
use crate::plan::Act;
use crate::records::{Records, by_id, number, word};
use crate::timeline::Times;
use crate::world::World;

/// Time after which the program no longer waits for an answer of Telegram, with a margin.
const ANSWER_TIMEOUT_MS: i64 = 9_900;
/// Time after which the program certainly no longer waits for an answer.
const LONGEST_WAIT_MS: i64 = 10_100;
/// Longest time from an answer of Telegram to its record.
const RECORDED_MS: i64 = 1_000;
/// Longest time between a claim and its request, which waits for its turn below the limits of Telegram.
const SLACK_MS: i64 = 5_100;
/// Beginning of the failure of a message whose outcome is never known.
const MAY_HAVE_ARRIVED: &str = "may have arrived";

/// Request to send a message.
#[derive(Debug, Clone)]
struct BotRequest {
    row: i64,
    to: String,
    asked_ms: i64,
    /// Time at which the program got the answer.
    answered_ms: Option<i64>,
    /// Status of the answer that the program got.
    status: Option<u16>,
    delivery: Option<BotDelivery>,
}

/// State of Telegram at the end, and what the program could know of it.
pub(super) struct BotEvidence {
    is_used: bool,
    texts: Vec<BotText>,
    presses: Vec<BotPress>,
    requests: Vec<BotRequest>,
    starts: Vec<BotStart>,
    run_ends: Vec<RunEnd>,
    /// True if a record could fail on a full disk.
    has_disk_faults: bool,
}

impl BotEvidence {
    pub(super) fn of(world: &World, seen: &[Seen]) -> Self {
        let bot = &world.carriers.bot;
        let deliveries = bot.deliveries.lock().unwrap().clone();
        let is_disk_fault = |(_, act): &(u64, Act)| matches!(act, Act::DiskFills(_));
        Self {
            is_used: world.plan.bot.is_some(),
            texts: bot.texts.lock().unwrap().clone(),
            presses: bot.presses.lock().unwrap().clone(),
            requests: seen.iter().filter_map(|seen| read_request(seen, &deliveries)).collect(),
            starts: bot.starts.lock().unwrap().clone(),
            run_ends: bot.run_ends.lock().unwrap().clone(),
            has_disk_faults: world.plan.acts.iter().any(is_disk_fault),
        }
    }

    /// Returns the true time at which a person wrote a text or pressed a button.
    fn sent_at(&self, id: &str) -> Option<i64> {
        let text = self.texts.iter().find(|text| text.external_id() == id).map(|text| text.sent_at);
        let press = || self.presses.iter().find(|press| press.external_id == id);
        text.or_else(|| press().map(|press| press.sent_at))
    }

    /// Returns the row that a request to send a message named.
    pub(super) fn row_of(&self, request: usize) -> Option<i64> {
        let made =
            |known: &&BotRequest| known.delivery.as_ref().is_some_and(|delivery| delivery.request == request);
        self.requests.iter().find(made).map(|known| known.row)
    }

    fn requests_for(&self, row: i64) -> Vec<&BotRequest> {
        let mut requests: Vec<&BotRequest> =
            self.requests.iter().filter(|request| request.row == row).collect();
        requests.sort_by_key(|request| request.asked_ms);
        requests
    }
}

impl BotRequest {
    /// Returns whether the program knew that Telegram did not accept the message.
    fn was_refused(&self) -> bool {
        self.answered_in_time() && self.status.is_some_and(|status| (400..500).contains(&status))
    }

    /// Returns whether the program may have known that, from an answer at the end of its wait.
    fn may_have_been_refused(&self) -> bool {
        let waited = self.answered_ms.map(|at| at - self.asked_ms);
        let is_refusal = self.status.is_some_and(|status| (400..500).contains(&status));
        is_refusal && waited.is_some_and(|waited| waited < LONGEST_WAIT_MS)
    }

    fn answered_in_time(&self) -> bool {
        self.answered_ms.is_some_and(|at| at - self.asked_ms < ANSWER_TIMEOUT_MS)
    }
}

fn read_request(seen: &Seen, deliveries: &[BotDelivery]) -> Option<BotRequest> {
    let uri: Uri = seen.what.strip_prefix("POST ")?.parse().ok()?;
    if seen.peer != "telegram" || !is_sending(uri.path()) {
        return None;
    }
    let body: Value = serde_json::from_str(&seen.body).unwrap();
    let request = query_number(&uri, "request")?;
    Some(BotRequest {
        row: query_number(&uri, "row").map_or(0, |row| row as i64),
        to: house_bot::person(number(&body, "chat_id")),
        asked_ms: seen.asked_at.as_millisecond(),
        answered_ms: seen.told_at.map(|(at, _)| at.as_millisecond()),
        status: seen.told_at.map(|(_, status)| status),
        delivery: deliveries.iter().find(|delivery| delivery.request == request).cloned(),
    })
}

/// Replaces the times of the messages of people, which Telegram states in whole seconds and not at all for presses.
pub(super) fn state_times(evidence: &BotEvidence, events: &mut [Value]) {
    for event in events.iter_mut().filter(|event| word(event, "channel") == "telegram") {
        let sent_at = evidence.sent_at(word(event, "external_id"));
        event["provider_at"] = sent_at.unwrap_or_else(|| number(event, "received_at")).into();
    }
}

/// Hides these times from a translation that could not trace them back to a moment.
pub(super) fn hide_times(events: &mut [Value]) {
    for event in events.iter_mut().filter(|event| word(event, "channel") == "telegram") {
        event["provider_at"] = 0.into();
    }
}

/// Returns the requests to Telegram to send a message.
pub(super) fn sent(evidence: &Evidence<'_>) -> Vec<Sent> {
    // The messages to different people in a group have no order.
    let recipient = |request: &BotRequest| {
        let row = by_id(&evidence.records.outbox, request.row).filter(|row| !row["room_id"].is_null());
        row.map_or_else(|| request.to.clone(), |row| format!("{} for {}", request.to, row["user_id"]))
    };
    let read = |request: &BotRequest| Sent {
        row: request.row,
        to: recipient(request),
        token: String::new(),
        asked_ms: request.asked_ms,
        slack_ms: SLACK_MS,
        taken: request.delivery.as_ref().map(|delivery| (delivery.at, sid(delivery))),
        was_answered: request.answered_in_time(),
        is_to_opted_out: request.was_refused() && request.status == Some(403),
    };
    evidence.bot.requests.iter().map(read).collect()
}

fn sid(delivery: &BotDelivery) -> String {
    message_id(delivery.message.chat_id, delivery.message.message_id)
}

/// Returns whether a message may have arrived twice: it is no notification, and the program could not know of the first
/// copy.
pub(super) fn may_be_doubled(evidence: &Evidence<'_>, row: &Value) -> bool {
    let requests = evidence.bot.requests_for(number(row, "id"));
    let mut delivered = requests.iter().filter(|request| request.delivery.is_some());
    let (Some(first), Some(second)) = (delivered.next(), delivered.next()) else { return false };
    word(row, "kind") != "notice" && is_outcome_lost(&evidence.bot, first, second.asked_ms)
}

/// Returns whether the outcome of a request may be missing from the database when the next one is made.
fn is_outcome_lost(bot: &BotEvidence, request: &BotRequest, next: i64) -> bool {
    let recorded = request.answered_ms.map(|at| at + RECORDED_MS);
    let ends_before_record = |end: &RunEnd| {
        let is_unrecorded = recorded.is_none_or(|recorded| end.from <= recorded);
        let is_between = request.asked_ms <= end.to && end.from < next;
        // A commit behind the last sync may be lost much later.
        is_between && (is_unrecorded || end.is_power_cut || bot.has_disk_faults)
    };
    !request.answered_in_time() || is_server_error(request) || bot.run_ends.iter().any(ends_before_record)
}

fn is_server_error(request: &BotRequest) -> bool {
    request.status.is_some_and(|status| status >= 500)
}

/// Returns whether a message may fail before its time: its outcome is not known, and it may not be sent again.
pub(super) fn may_fail(evidence: &Evidence<'_>, row: &Value) -> bool {
    if !word(row, "error").contains(MAY_HAVE_ARRIVED) {
        return false;
    }
    let (bot, created) = (&evidence.bot, number(row, "created_at"));
    let requests = bot.requests_for(number(row, "id"));
    let lost = requests.iter().filter(|request| is_outcome_lost(bot, request, i64::MAX)).count();
    let is_ambiguous = evidence.times == Times::Ambiguous;
    let ends = bot.run_ends.iter().filter(|end| is_ambiguous || created <= end.to).count();
    let attempts = if word(row, "kind") == "notice" { 1 } else { 2 };
    lost + ends >= attempts && number(row, "attempts") >= attempts as i64
}

pub(super) fn check(evidence: &mut Evidence<'_>) {
    if !evidence.bot.is_used {
        return;
    }
    admissions(evidence);
    secrecy(evidence);
    copies(evidence);
    offsets(evidence);
}

fn admissions(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    let mut expected: BTreeMap<String, (usize, Option<String>, bool)> = BTreeMap::new();
    for text in &evidence.bot.texts {
        let body = text.body.trim_start_matches('/').to_owned();
        expected.insert(text.external_id(), (1, Some(body), may_be_ignored(records, text.chat, text.person)));
    }
    for press in &evidence.bot.presses {
        let is_ignored = may_be_ignored(records, press.chat, press.person);
        expected.insert(press.external_id.clone(), (usize::from(press.is_readable), None, is_ignored));
    }
    for (id, (times, body, may_be_ignored)) in &expected {
        let events: Vec<&Value> =
            records.events.iter().filter(|event| word(event, "external_id") == id).collect();
        let is_expected = events.len() == *times || *may_be_ignored && events.is_empty();
        evidence.expect(is_expected, || format!("I1 {id} was admitted {} times", events.len()));
        for event in events {
            let is_same = body.as_ref().is_none_or(|body| ["", body].contains(&word(event, "body")));
            evidence.expect(is_same, || format!("I1 admitted with other words than {body:?}: {event}"));
        }
    }
    for event in records.events.iter().filter(|event| word(event, "channel") == "telegram") {
        let id = word(event, "external_id");
        let was_sent = id.starts_with("membership.") || expected.contains_key(id);
        evidence.expect(was_sent, || format!("I1 nobody sent {event}"));
    }
}

/// Returns whether a message may be ignored, because its author was blocked, or the group was not approved.
pub(crate) fn may_be_ignored(records: &Records, chat: i64, person: i64) -> bool {
    // The group waits for an admin if the person who added the bot was none any more.
    let is_active =
        |account: i64| user_with(records, account).is_some_and(|user| word(user, "status") == "active");
    chat == ROOM && !(is_active(person) && is_active(ROOM))
}

/// Returns the user with an account.
fn user_with(records: &Records, account: i64) -> Option<&Value> {
    records.users.iter().find(|user| word(user, "phone") == house_bot::person(account))
}

/// Checks that no message to the group contains a code.
fn secrecy(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    for row in records.outbox.iter().filter(|row| !row["room_id"].is_null()) {
        let has_code = word(row, "body").contains("APPROVE ") || word(row, "body").contains("YES 4");
        evidence.expect(!has_code, || format!("I22 a code was sent to the group: {row}"));
    }
}

/// Checks what Telegram was asked to send: a reply at most twice with an unknown outcome, a notification once, and each
/// copy with other buttons.
fn copies(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    let mut rows: BTreeMap<i64, Vec<BotRequest>> = BTreeMap::new();
    for request in evidence.bot.requests.clone() {
        rows.entry(request.row).or_default().push(request);
    }
    for (row, requests) in rows {
        let Some(row) = by_id(&records.outbox, row) else {
            evidence
                .expect(false, || format!("I6 the bot was asked to send what no row holds: {requests:?}"));
            continue;
        };
        let limit = if word(row, "kind") == "notice" { 1 } else { 2 };
        let open = requests.iter().filter(|request| !request.may_have_been_refused()).count();
        evidence.expect(open <= limit, || format!("I6 handed over {open} times: {row}"));
        let mut data: Vec<&str> = Vec::new();
        for delivery in requests.iter().filter_map(|request| request.delivery.as_ref()) {
            let text = &delivery.message.text;
            // A poll shows the options of the text itself.
            let is_poll = delivery.message.poll.is_some() && word(row, "body").starts_with(text.as_str());
            let is_same = is_poll || ["", text].contains(&word(row, "body"));
            evidence.expect(is_same, || format!("I6 the bot sent {text:?} for {row}"));
            data.extend(delivery.message.buttons.iter().flatten().map(|button| button.data.as_str()));
        }
        let all = data.len();
        data.sort_unstable();
        data.dedup();
        evidence.expect(data.len() == all, || format!("I6 two copies have the same buttons: {row}"));
    }
}

/// Checks that the first request for updates after each start continues from the stored offset.
fn offsets(evidence: &mut Evidence<'_>) {
    let starts = evidence.bot.starts.clone();
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(i64::MAX, |next| next.at);
        let is_first = |seen: &&Seen| {
            seen.what.ends_with("/getUpdates") && (start.at..end).contains(&seen.asked_at.as_millisecond())
        };
        let Some(first) = evidence.seen.iter().find(is_first) else { continue };
        let parameters: Value = serde_json::from_str(&first.body).unwrap();
        let offset = parameters["offset"].as_i64();
        evidence.expect(offset == start.offset, || {
            format!("I1 a start continued from {offset:?} in place of {:?}", start.offset)
        });
    }
}

/// Checks that a yes to the bot was written after its prompt was sent, by the person who was asked, in their own words or
/// by the button of the last copy.
pub(super) fn check_answer(evidence: &mut Evidence<'_>, yes: &Value, prompt: &Value) {
    if word(yes, "channel") != "telegram" {
        return;
    }
    let id = word(yes, "external_id");
    let copy = evidence.bot.requests.iter().filter_map(|request| request.delivery.as_ref());
    let copy = copy.clone().find(|delivery| sid(delivery) == word(prompt, "provider_sid")).cloned();
    let Some(copy) = copy else {
        evidence.expect(false, || format!("I4 a yes to a question that did not arrive: {yes} for {prompt}"));
        return;
    };
    let asked = by_id(&evidence.records.users, number(prompt, "user_id"));
    let asked = asked.map(|user| house_bot::account(word(user, "phone")));
    let text = evidence.bot.texts.iter().find(|text| text.external_id() == id);
    let press = evidence.bot.presses.iter().find(|press| press.external_id == id);
    let (is_own, sent_at) = match (text, press) {
        (Some(text), _) => {
            let is_here = text.chat == copy.message.chat_id && Some(text.person) == asked;
            (!text.is_forwarded && is_here, text.sent_at)
        }
        (None, Some(press)) => {
            let is_current =
                (press.chat, press.message_id) == (copy.message.chat_id, copy.message.message_id);
            let buttons = copy.message.buttons.iter().flatten();
            let is_button = buttons.clone().any(|button| button.data == press.data && button.label == "Yes");
            let is_on_prompt = yes["pressed_message"] == prompt["id"];
            let is_own = Some(press.person) == asked;
            (is_current && is_button && is_on_prompt && is_own, press.sent_at)
        }
        (None, None) => (false, 0),
    };
    evidence.expect(is_own, || format!("I4 a yes that does not answer its question: {yes} for {prompt}"));
    evidence.expect(copy.at <= sent_at, || {
        format!("I4 a yes that was sent at {sent_at} before its question was at {}: {yes}", copy.at)
    });
}

pub(super) fn is_press(event: &Value) -> bool {
    !event["pressed_message"].is_null()
}

/// Counts the events that only a schedule with a bot has.
pub(super) fn count(evidence: &Evidence<'_>, world: &World, tally: &mut Tally) {
    let (records, bot) = (evidence.records, &evidence.bot);
    let acts = |test: fn(BotAct) -> bool| {
        world.plan.acts.iter().filter(|(_, act)| matches!(act, Act::Bot(act) if test(*act))).count()
    };
    let confirmed = |by_press: bool| {
        let yes = |call: &&Value| {
            let yes = by_id(&records.events, number(call, "confirmed_by"));
            yes.is_some_and(|yes| word(yes, "channel") == "telegram" && is_press(yes) == by_press)
        };
        records.calls.iter().filter(yes).count()
    };
    let presses = records.events.iter().filter(|event| is_press(event));
    let doubled = |row: &&Value| {
        let requests = bot.requests_for(number(row, "id"));
        requests.iter().filter(|request| request.delivery.is_some()).count() > 1
    };
    let given_up = |row: &&Value| word(row, "error").contains(MAY_HAVE_ARRIVED);
    let lost = |request: &&BotRequest| request.delivery.is_some() && is_outcome_lost(bot, request, i64::MAX);
    let is_member = |event: &&Value| word(event, "external_id").starts_with("membership.");
    let refused = |status| bot.requests.iter().filter(|request| request.status == Some(status)).count();
    tally.0.extend([
        ("texts to the bot", bot.texts.len()),
        ("sent by the bot", bot.requests.iter().filter(|request| request.delivery.is_some()).count()),
        ("presses", presses.clone().count()),
        ("presses of void buttons", presses.filter(|press| press["pressed_message"] == 0).count()),
        ("confirmed by a press", confirmed(true)),
        ("confirmed in words to the bot", confirmed(false)),
        ("outcomes lost at the bot", bot.requests.iter().filter(lost).count()),
        ("sent twice by the bot", records.outbox.iter().filter(doubled).count()),
        ("given up at the bot", records.outbox.iter().filter(given_up).count()),
        ("limited by Telegram", refused(429)),
        ("blocks of the bot", records.events.iter().filter(is_member).count()),
        ("texts in the group", bot.texts.iter().filter(|text| text.chat == ROOM).count()),
        ("presses in the group", bot.presses.iter().filter(|press| press.chat == ROOM).count()),
        ("sent to the group", records.outbox.iter().filter(|row| !row["room_id"].is_null()).count()),
        ("forwarded to the bot", bot.texts.iter().filter(|text| text.is_forwarded).count()),
        ("edits", acts(|act| matches!(act, BotAct::Edits(_)))),
        ("old buttons", acts(|act| matches!(act, BotAct::PressesOldButton(_)))),
        ("forged presses", acts(|act| matches!(act, BotAct::ForgesPress(..)))),
        ("repeated updates", acts(|act| matches!(act, BotAct::RepeatsUpdates(_)))),
        ("sleeps of Telegram", acts(|act| act == BotAct::Sleeps)),
        ("starts of the bot", if bot.is_used { bot.starts.len() } else { 0 }),
    ]);
}
