//! Labels of turns, tool calls and messages on the pages.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::conversation::channel::Channel;
use crate::conversation::routing::inbound_message::MessageSource;
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::stream_events::{CallPhase, StreamTurnState};
use crate::store::conversation::conversations::EndReason;
use crate::store::conversation::record::messages::InboundRecord;

/// State as a badge: its label and its color, which never replaces the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateBadge {
    pub(super) label: &'static str,
    pub(super) class: &'static str,
}

const fn neutral_badge(label: &'static str) -> StateBadge {
    StateBadge { label, class: "" }
}

const fn good_badge(label: &'static str) -> StateBadge {
    StateBadge { label, class: "good" }
}

const fn warn_badge(label: &'static str) -> StateBadge {
    StateBadge { label, class: "warn" }
}

const fn bad_badge(label: &'static str) -> StateBadge {
    StateBadge { label, class: "bad" }
}

pub(super) fn turn_badge(state: StreamTurnState) -> StateBadge {
    match state {
        StreamTurnState::Created | StreamTurnState::InProgress => neutral_badge("Working"),
        StreamTurnState::WaitingForTools => neutral_badge("Working: waiting for tools"),
        StreamTurnState::Completed => good_badge("Answered"),
        StreamTurnState::Canceled => warn_badge("Canceled"),
        StreamTurnState::Failed => bad_badge("Failed"),
        StreamTurnState::Error => warn_badge("An attempt failed"),
    }
}

pub(super) fn call_badge(phase: CallPhase) -> StateBadge {
    match phase {
        CallPhase::Created => neutral_badge("Not started"),
        CallPhase::Held => warn_badge("Awaiting confirmation"),
        CallPhase::Running => neutral_badge("Running"),
        CallPhase::Unknown => warn_badge("Outcome unknown"),
        CallPhase::Complete => good_badge("Done"),
        CallPhase::Error => bad_badge("Failed"),
        CallPhase::Canceled => neutral_badge("Not run"),
    }
}

/// Author of an inbound message, or its source.
pub(super) fn author_label(message: &InboundRecord, key_names: &HashMap<i64, String>) -> String {
    match message.origin() {
        MessageOrigin::Sender => match &message.author {
            Some(author) => format!("{author}, {}", channel_label(message.channel, message.via)),
            None => channel_label(message.channel, message.via),
        },
        MessageOrigin::TestUser => "written in the console".to_owned(),
        MessageOrigin::Button => "you in the console".to_owned(),
        MessageOrigin::Operator => "you, in their name".to_owned(),
        MessageOrigin::ApiKey(key) => {
            format!("API key {}", key_names.get(&key).map_or("", String::as_str))
        }
        MessageOrigin::Session => "you over the API".to_owned(),
    }
}

fn channel_label(channel: Channel, via: MessageSource) -> String {
    let written = channel.profile().written;
    match via {
        MessageSource::Webhook | MessageSource::Poll | MessageSource::Local => written.to_owned(),
        MessageSource::Fallback => format!("{written}, second attempt"),
        MessageSource::Recovery => format!("{written}, recovered later"),
    }
}

/// Reason why a message got no reply.
pub(super) fn skip_reason_label(reason: &str) -> &'static str {
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
        "room_off" => "not answered: the group is off or blocked",
        "no_private_chat" => "not answered: no private chat",
        _ => "not answered",
    }
}

pub(super) fn end_reason_label(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Idle => "ended after inactivity",
        EndReason::Cleared => "ended by the user",
        EndReason::Blocked => "ended by a block",
        EndReason::Superseded => "ended by the operator",
    }
}

/// Formats a duration: `480 ms`, `12.4 s`.
pub(super) fn format_duration(from: Timestamp, to: Timestamp) -> String {
    let duration = Duration::try_from(to.duration_since(from)).unwrap_or_default();
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}
