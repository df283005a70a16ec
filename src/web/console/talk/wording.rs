//! Labels of states on the pages.

use std::time::Duration;

use jiff::Timestamp;

use crate::conversation::inbound_message::Via;
use crate::conversation::stream::{CallPhase, TurnState};
use crate::conversation::transcript::ChannelKind;
use crate::store::console::thread::texts::{Received, Writer};
use crate::store::conversations::EndReason;

/// State as a badge: its label and its color, which never replaces the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Badge {
    pub(super) words: &'static str,
    pub(super) class: &'static str,
}

const fn plain(words: &'static str) -> Badge {
    Badge { words, class: "" }
}

const fn good(words: &'static str) -> Badge {
    Badge { words, class: "good" }
}

const fn warn(words: &'static str) -> Badge {
    Badge { words, class: "warn" }
}

const fn bad(words: &'static str) -> Badge {
    Badge { words, class: "bad" }
}

pub(super) fn turn(state: TurnState) -> Badge {
    match state {
        TurnState::Created | TurnState::InProgress => plain("Working"),
        TurnState::WaitingForTools => plain("Working: waiting for tools"),
        TurnState::Completed => good("Answered"),
        TurnState::Canceled => warn("Taken back"),
        TurnState::Failed => bad("Failed"),
        TurnState::Error => warn("An attempt failed"),
    }
}

pub(super) fn call(phase: CallPhase) -> Badge {
    match phase {
        CallPhase::Created => plain("Not started"),
        CallPhase::Held => warn("Waits for a yes"),
        CallPhase::Running => plain("Running"),
        CallPhase::Unknown => warn("Not known whether it was done"),
        CallPhase::Complete => good("Done"),
        CallPhase::Error => bad("Failed"),
        CallPhase::Canceled => plain("Not run"),
    }
}

/// Author of an inbound message, or its source.
pub(super) fn writer(text: &Received) -> String {
    match &text.by {
        Writer::Sender => channel(text.channel, text.via).to_owned(),
        Writer::Typed => "typed in the console".to_owned(),
        Writer::Button => "you in the console".to_owned(),
        Writer::Key(name) => format!("API key {name}"),
        Writer::Session => "you over the API".to_owned(),
    }
}

fn channel(channel: ChannelKind, via: Via) -> &'static str {
    match (channel, via) {
        (ChannelKind::Twilio, Via::Webhook | Via::Local) => "by phone",
        (ChannelKind::Twilio, Via::Fallback) => "by phone, at the second try",
        (ChannelKind::Twilio, Via::Recovery) => "by phone, fetched later",
        (ChannelKind::Console, _) => "typed in the console",
        (ChannelKind::Local, _) => "typed in the terminal",
    }
}

/// Reason for which a message got no reply.
pub(super) fn skipped(reason: &str) -> &'static str {
    match reason {
        "blocked" => "not answered: blocked",
        "opted_out" => "not answered: opted out",
        "opt_out" => "opted out",
        "opted_in" => "opted in",
        "carrier_help" => "answered by the carrier",
        "reaction" => "a reaction",
        "small_talk" => "not answered: small talk",
        "empty" => "not answered: empty",
        "rate_limited" => "not answered: too many texts at once",
        "reacted" => "answered with a reaction",
        _ => "not answered",
    }
}

pub(super) fn end(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Idle => "ended by silence",
        EndReason::Cleared => "ended by the user",
        EndReason::Blocked => "ended by a block",
        EndReason::Operator => "ended by the operator",
    }
}

/// Formats a duration: `480 ms`, `12.4 s`.
pub(super) fn took(from: Timestamp, to: Timestamp) -> String {
    let took = Duration::try_from(to.duration_since(from)).unwrap_or_default();
    if took < Duration::from_secs(1) {
        format!("{} ms", took.as_millis())
    } else {
        format!("{:.1} s", took.as_secs_f64())
    }
}
