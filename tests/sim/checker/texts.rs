//! I6, I7, I8: each outbound message arrives once, in order, or has a reason not to; none goes to a user who opted out.

use serde_json::Value;
use url::form_urlencoded;

use super::{Evidence, bot, notifications, phone};
use crate::invitations::invited_confirmation;
use crate::plan::FAY;
use crate::records::{Records, by_id, number, word};
use crate::simulated_model::LIE;

/// Time between a claim and its request.
pub(super) const SLACK_MS: i64 = 30;
/// Longest time between a claim and its request to the phone, which is first asked what waits in it.
const LONGEST_SLACK_MS: i64 = 8_000 + SLACK_MS;
/// Our address of messages that are only shown on the pages: answers to texts of the operator.
pub(super) const CONSOLE: &str = "console";
/// Error code of Twilio for a recipient who opted out.
const OPTED_OUT_CODE: &str = "21610";
/// Time after which the program no longer waits for the response of a carrier.
const RESPONSE_TIMEOUT_MS: i64 = 15_000;

/// Message as a carrier was asked to send it.
pub(super) struct Sent {
    pub(super) row: i64,
    pub(super) to: String,
    /// Callback token of the attempt.
    pub(super) token: String,
    pub(super) asked_ms: i64,
    /// Longest time from an earlier attempt's claim to its request.
    pub(super) slack_ms: i64,
    /// Time when the message was accepted, and its id at the carrier.
    pub(super) taken: Option<(i64, String)>,
    pub(super) was_answered: bool,
    /// True if the carrier refused the message because the recipient opted out there.
    pub(super) is_to_opted_out: bool,
}

/// Returns whether the program received the response to a request, in time.
pub(super) fn was_answered(seen: &crate::network_faults::Seen) -> bool {
    let asked = seen.asked_at.as_millisecond();
    seen.answered_at.is_some_and(|at| at.as_millisecond() - asked < RESPONSE_TIMEOUT_MS)
}

pub(super) fn check(evidence: &mut Evidence<'_>) {
    let sent = sent(evidence);
    for row in evidence.records.outbox.iter().filter(|row| word(row, "from_addr") != CONSOLE) {
        copies(evidence, row, &sent);
    }
    order(evidence, &sent);
    opted_out(evidence, &sent);
    let unasked = evidence.records.outbox.iter().filter(|text| word(text, "kind") == "notice");
    let inviting = unasked.filter_map(|text| Some((text, invited_confirmation(word(text, "body"))?))).next();
    evidence
        .expect(inviting.is_none(), || format!("I34 a message that nobody asked for invites: {inviting:?}"));
    let lie = evidence.records.outbox.iter().find(|text| word(text, "body").contains(LIE));
    evidence.expect(lie.is_none(), || format!("T2 a false claim was sent: {lie:?}"));
}

fn sent(evidence: &Evidence<'_>) -> Vec<Sent> {
    let posts = evidence.seen.iter().filter(|seen| seen.peer == "twilio" && seen.what.starts_with("POST"));
    let read = |seen: &crate::network_faults::Seen| {
        let field = |name: &str| {
            form_urlencoded::parse(seen.body.as_bytes())
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned())
                .unwrap_or_default()
        };
        let callback = field("StatusCallback");
        let parameter = |name| callback.split(['?', '&']).find_map(|part| part.strip_prefix(name));
        let row = parameter("out=").and_then(|row| row.parse().ok());
        let refused = seen.done.as_ref().filter(|(_, status, _)| *status == 400);
        let taken = seen.done.as_ref().filter(|(_, status, _)| *status == 201).map(|(at, _, body)| {
            let resource: Value = serde_json::from_str(body).unwrap_or_default();
            (at.as_millisecond(), word(&resource, "sid").to_owned())
        });
        Sent {
            row: row.unwrap_or(0),
            to: field("To"),
            token: parameter("word=").unwrap_or_default().to_owned(),
            asked_ms: seen.asked_at.as_millisecond(),
            slack_ms: SLACK_MS,
            taken,
            was_answered: was_answered(seen),
            is_to_opted_out: refused.is_some_and(|(.., body)| body.contains(OPTED_OUT_CODE)),
        }
    };
    posts.map(read).chain(phone::sent(evidence)).chain(bot::sent(evidence)).collect()
}

fn copies(evidence: &mut Evidence<'_>, row: &Value, sent: &[Sent]) {
    let id = number(row, "id");
    let taken: Vec<&str> = sent
        .iter()
        .filter(|text| text.row == id)
        .filter_map(|text| text.taken.as_ref().map(|(_, sid)| sid.as_str()))
        .collect();
    // A message that the radio of the phone failed to send is handed over once more, and may fail again. The check of the
    // radio shows that it was sent at most once.
    let is_once = match taken[..] {
        [] | [_] => true,
        [one, other] => {
            let failed = &evidence.phone.failed;
            failed.contains(one) || failed.contains(other) || bot::may_be_doubled(evidence, row)
        }
        _ => false,
    };
    evidence.expect(is_once, || format!("I6 sent {} times as {taken:?}: {row}", taken.len()));
    let user = by_id(&evidence.records.users, number(row, "user_id")).cloned().unwrap_or_default();
    let opted_out_once = evidence
        .records
        .events
        .iter()
        .any(|event| event["user_id"] == user["id"] && word(event, "outcome_reason") == "opt_out")
        || !user["opted_out_at"].is_null();
    let fine = match word(row, "state") {
        "accepted" => taken.contains(&word(row, "provider_sid")),
        "suppressed" => {
            let unwanted = word(&user, "phone") == FAY && notifications::is_of_a_title(row);
            let is_refused = sent.iter().any(|text| text.row == id && text.is_to_opted_out);
            // A vote that ended before its question was sent.
            let asks_vote =
                evidence.records.vote_messages.iter().any(|asked| number(asked, "outbox_id") == id);
            let is_withdrawn = withdrawn(row) || asks_vote;
            opted_out_once || is_refused || word(&user, "status") == "blocked" || is_withdrawn || unwanted
        }
        "failed" => {
            number(row, "updated_at") > number(row, "deadline_at")
                || phone::may_fail(evidence, row, sent)
                || bot::may_fail(evidence, row)
        }
        _ => false,
    };
    evidence.expect(fine, || format!("I7 taken as {taken:?}: {row}"));
}

/// Returns whether a message is withdrawn once it is no longer true: the notice of a pause, or of a turn that is still
/// running, or the question of a vote that has closed.
fn withdrawn(row: &Value) -> bool {
    let key = word(row, "dedupe_key");
    key.starts_with("pause:")
        || key.ends_with(":progress")
        || key.starts_with("vote:")
        || key.starts_with("poll:")
}

fn order(evidence: &mut Evidence<'_>, sent: &[Sent]) {
    // A notification waits for the answer to a confirmation prompt, and replies do not wait for the notification. A message
    // whose carrier was removed before its response counts as failed, although the carrier may still accept it.
    let waits = |row: i64| {
        by_id(&evidence.records.outbox, row)
            .is_some_and(|row| word(row, "kind") == "notice" || word(row, "state") == "failed")
    };
    let mut taken: Vec<(&str, i64, i64)> = sent
        .iter()
        .filter(|text| !waits(text.row))
        .filter(|text| !phone::is_second_attempt(&text.token))
        .filter_map(|text| Some((text.to.as_str(), text.row, text.taken.as_ref()?.0)))
        .collect();
    taken.sort_unstable();
    for pair in taken.windows(2) {
        let in_order = pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].2;
        evidence.expect(in_order, || format!("I8 out of order: {:?} and {:?}", pair[0], pair[1]));
    }
}

/// Returns the time of the claim of a message, which checks the opt-out.
fn claimed_ms(records: &Records, text: &Sent) -> i64 {
    let row = by_id(&records.outbox, text.row);
    let claimed = row.map_or(0, |row| number(row, "attempt_at"));
    // An earlier attempt has no record of its claim.
    let is_of_this_attempt = (0..=LONGEST_SLACK_MS).contains(&(text.asked_ms - claimed));
    if is_of_this_attempt { claimed } else { text.asked_ms - text.slack_ms }
}

fn opted_out(evidence: &mut Evidence<'_>, sent: &[Sent]) {
    let records = evidence.records;
    for stop in records.events.iter().filter(|event| word(event, "outcome_reason") == "opt_out") {
        let phone = by_id(&records.users, number(stop, "user_id"))
            .map(|user| word(user, "phone"))
            .unwrap_or_default();
        // A STOP that could be another message takes effect once the carrier's record agrees.
        let time_column = if word(stop, "authority") == "certain" { "received_at" } else { "updated_at" };
        let stopped = number(stop, time_column);
        if stopped < number(stop, "received_at") {
            // The clock was set back in between, so the time of the verification is not known.
            continue;
        }
        let confirms = |text: &&Sent| {
            by_id(&records.outbox, text.row).is_some_and(|row| word(row, "dedupe_key").starts_with("optout:"))
        };
        let later = sent.iter().filter(|text| text.to == phone && claimed_ms(records, text) > stopped);
        // Without a carrier that does it, the program confirms a STOP.
        for text in later.filter(|text| !confirms(text)) {
            let back = records.events.iter().any(|event| {
                event["user_id"] == stop["user_id"]
                    && (word(event, "carrier_word") == "start"
                        || matches!(word(event, "body").to_lowercase().as_str(), "yes" | "start" | "unstop"))
                    && number(event, "received_at") <= text.asked_ms
                    // Received after the STOP, or sent after it and received before: messages can overtake each other.
                    && (number(event, "received_at") >= stopped
                        || number(event, "provider_at") >= number(stop, "provider_at"))
            });
            evidence.expect_in_time(back, || {
                format!("I7 text {} was sent to {phone}, who opted out: {stop}", text.row)
            });
        }
    }
}
