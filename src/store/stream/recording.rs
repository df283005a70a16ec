//! Recording of the events and the claimed messages of the writer's open transaction. Store functions record an event
//! where they change a state that readers see. After the commit, the writer publishes what was recorded.
//!
//! A [`Conn`] cannot carry the recording, so it is in a thread-local variable of the thread that runs the transaction.
//! Without a recording, as in the unit tests of the store, events are discarded.

use std::cell::RefCell;
use std::collections::HashMap;

use diesel::prelude::*;
use jiff::Timestamp;

use super::event_log::{EventLog, HistoryVersion, LogEntry, NewEvent};
use super::response_blocks::StreamedResponse;
use crate::conversation::prompt::PastTurn;
use crate::conversation::stream_events::StreamEventKind;
use crate::conversation::transcript::{ConversationId, TurnId};
use crate::store::queue::claimed_messages::ClaimedMessages;
use crate::store::queue::outbox::DueMessage;
use crate::store::schema::turns;
use crate::store::turns::model_steps::AttemptId;
use crate::store::{Conn, QueryResult};

/// Maximum number of turns whose conversations are remembered.
const MAX_KNOWN_TURNS: usize = 1024;

thread_local! {
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// Entry that a transaction has recorded.
#[derive(Debug)]
enum RecordedEntry {
    Log(LogEntry),
    ClaimedMessage(DueMessage),
    WaitingMessage,
    HistoryChanged,
}

/// Everything that a transaction has recorded, to be published after its commit.
#[derive(Debug, Default)]
pub(in crate::store) struct RecordedEntries {
    pub(in crate::store) log: Vec<LogEntry>,
    /// Messages to hand to the outbox relay, once their claims are on disk.
    pub(in crate::store) claimed_messages: Vec<DueMessage>,
    /// Whether a message waits in the outbox for the relay.
    pub(in crate::store) has_waiting_message: bool,
    /// Whether cached turns may have changed that no event names.
    pub(in crate::store) has_changed_history: bool,
}

/// Recording of a transaction.
#[derive(Debug, Default)]
pub(in crate::store) struct Recording {
    log: EventLog,
    claimed_messages: ClaimedMessages,
    entries: Vec<RecordedEntry>,
    /// Conversations of recent turns, which never change.
    conversations: HashMap<TurnId, ConversationId>,
}

impl Recording {
    pub(in crate::store) fn new(log: EventLog, claimed_messages: ClaimedMessages) -> Self {
        Self { log, claimed_messages, ..Self::default() }
    }

    /// Returns the result of `work`, while everything that it records is added to this recording.
    pub(in crate::store) fn record_during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        RECORDING.set(Some(std::mem::take(self)));
        let result = work();
        *self = RECORDING.take().unwrap_or_default();
        result
    }

    pub(in crate::store) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(in crate::store) fn take_entries(&mut self) -> RecordedEntries {
        let mut recorded = RecordedEntries::default();
        for entry in std::mem::take(&mut self.entries) {
            match entry {
                RecordedEntry::Log(entry) => recorded.log.push(entry),
                RecordedEntry::ClaimedMessage(message) => recorded.claimed_messages.push(message),
                RecordedEntry::WaitingMessage => recorded.has_waiting_message = true,
                RecordedEntry::HistoryChanged => recorded.has_changed_history = true,
            }
        }
        recorded
    }

    /// Discards the entries from this position on. A turn that was rolled back may leave its id to another turn.
    pub(in crate::store) fn truncate(&mut self, position: usize) {
        self.entries.truncate(position);
        self.conversations.clear();
    }
}

/// Owner of a changed row, from its columns. The event belongs to the conversation or, if it is `None`, to the
/// conversation of the turn.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct EventOwner {
    pub(in crate::store) turn: Option<TurnId>,
    pub(in crate::store) conversation: Option<ConversationId>,
}

impl From<TurnId> for EventOwner {
    fn from(turn: TurnId) -> Self {
        Self { turn: Some(turn), conversation: None }
    }
}

impl From<ConversationId> for EventOwner {
    fn from(conversation: ConversationId) -> Self {
        Self { turn: None, conversation: Some(conversation) }
    }
}

fn with_recording<T>(work: impl FnOnce(&mut Recording) -> T) -> Option<T> {
    RECORDING.with_borrow_mut(|recording| recording.as_mut().map(work))
}

/// Returns the number of recorded entries.
pub(in crate::store) fn entry_count() -> usize {
    with_recording(|recording| recording.entries.len()).unwrap_or(0)
}

/// Discards the entries from this position on, because their changes were rolled back.
pub(in crate::store) fn discard_from(position: usize) {
    with_recording(|recording| recording.truncate(position));
}

/// Records an event of this transaction. A row that belongs to no conversation has no events.
pub(in crate::store) fn record_event(
    conn: &mut Conn,
    owner: impl Into<EventOwner>,
    at: Timestamp,
    kind: StreamEventKind,
) -> QueryResult<()> {
    let EventOwner { turn, conversation } = owner.into();
    let conversation = match (conversation, turn) {
        (Some(conversation), _) => Some(conversation),
        (None, Some(turn)) => find_conversation(conn, turn)?,
        (None, None) => None,
    };
    if let Some(conversation) = conversation {
        record_entry(LogEntry::Event(NewEvent { conversation, turn, at, kind }));
    }
    Ok(())
}

pub(super) fn record_entry(entry: LogEntry) {
    with_recording(|recording| recording.entries.push(RecordedEntry::Log(entry)));
}

/// Returns whether the transaction may claim the messages that it queues.
pub(in crate::store) fn may_claim_messages() -> bool {
    with_recording(|recording| recording.claimed_messages.have_room()).unwrap_or(false)
}

/// Records a message that the transaction has claimed.
pub(in crate::store) fn record_claimed_message(message: DueMessage) {
    with_recording(|recording| recording.entries.push(RecordedEntry::ClaimedMessage(message)));
}

/// Records that a message waits in the outbox for the relay.
pub(in crate::store) fn record_waiting_message() {
    with_recording(|recording| recording.entries.push(RecordedEntry::WaitingMessage));
}

/// Records a change of finished turns that is no event, such as the erasure of their content.
pub(in crate::store) fn record_changed_history() {
    with_recording(|recording| recording.entries.push(RecordedEntry::HistoryChanged));
}

/// Records a turn that the transaction has finished, for the history cache.
pub(in crate::store) fn record_finished_turn(turn: PastTurn, loaded_at: HistoryVersion) {
    record_entry(LogEntry::TurnFinished(turn.into(), loaded_at));
}

/// Records that all cursors become invalid, because content that readers have received is erased.
pub(in crate::store) fn record_reset() {
    record_entry(LogEntry::Reset);
}

/// Returns the output that an attempt has streamed so far.
pub(super) fn streamed_response(attempt: AttemptId) -> StreamedResponse {
    with_recording(|recording| recording.log.streamed_response(attempt)).unwrap_or_default()
}

/// Finds the conversation of a turn; `None` if nothing is being recorded.
pub(super) fn find_conversation(conn: &mut Conn, turn: TurnId) -> QueryResult<Option<ConversationId>> {
    let Some(known) = with_recording(|recording| recording.conversations.get(&turn).copied()) else {
        return Ok(None);
    };
    if known.is_some() {
        return Ok(known);
    }
    let conversation = turns::table.find(turn).select(turns::conversation_id).first(conn)?;
    remember_conversation(turn, conversation);
    Ok(Some(conversation))
}

/// Remembers the conversation of a turn, so that it is not loaded for each event.
pub(in crate::store) fn remember_conversation(turn: TurnId, conversation: ConversationId) {
    with_recording(|recording| {
        if recording.conversations.len() >= MAX_KNOWN_TURNS {
            recording.conversations.clear();
        }
        recording.conversations.insert(turn, conversation);
    });
}
