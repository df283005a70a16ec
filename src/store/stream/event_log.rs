//! Event log of all conversations, in memory. The writer publishes the events of a transaction after its commit; only
//! the deltas of running responses and the starts of reads are published without being stored.
//!
//! The newest events are kept. A reader whose cursor is older, or of an earlier process, starts again from a snapshot.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use diesel::RunQueryDsl;
use jiff::Timestamp;
use tokio::sync::watch;

use super::event_numbers;
use super::response_blocks::{StreamedBlocks, StreamedResponse};
use super::subscription::Subscription;
use crate::conversation::prompt::SharedTurn;
use crate::conversation::stream_events::{CallPhase, EventSeq, StreamEvent, StreamEventKind};
use crate::conversation::transcript::{CallRow, ConversationId, TurnId};
use crate::store::boot;
use crate::store::conversation::record::steps::BlockRecord;
use crate::store::turns::model_steps::AttemptId;
use crate::store::{Conn, QueryResult};

/// Limits of the log, as a number of events and as bytes of text.
const MAX_EVENTS: usize = 10_000;
const MAX_TEXT_BYTES: usize = 2 << 20;

/// Entry that a transaction adds to the log.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::store) enum LogEntry {
    Event(NewEvent),
    /// From here on, the output of the attempt can be streamed.
    AttemptStarted(AttemptId, ConversationId),
    AttemptEnded(AttemptId),
    /// All cursors become invalid.
    Reset,
    /// This process may assign the numbers up to this one.
    NumbersReserved(EventSeq),
    /// Finished turn as later prompts contain it. It is valid only for this version of the history.
    TurnFinished(SharedTurn, HistoryVersion),
}

/// Version of the stored history. It changes when the content of finished or running turns may have been erased.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryVersion(u64);

impl HistoryVersion {
    pub(in crate::store) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Event that has no number yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct NewEvent {
    pub(in crate::store) conversation: ConversationId,
    pub(in crate::store) turn: Option<TurnId>,
    pub(in crate::store) at: Timestamp,
    pub(in crate::store) kind: StreamEventKind,
}

/// Position in the log, with the state that belongs to it and is not in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPosition {
    pub cursor: EventSeq,
    /// Streamed output of the conversation's running attempts.
    pub streamed: StreamedBlocks,
}

/// Events of one conversation after a cursor, in order. All its events up to `up_to` are included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsSince {
    pub events: Vec<Arc<StreamEvent>>,
    pub up_to: EventSeq,
}

/// Handle to the log; clones share it.
#[derive(Debug, Clone, Default)]
pub struct EventLog(Arc<EventLogInner>);

#[derive(Debug, Default)]
struct EventLogInner {
    /// Held while a commit and its events become visible, and while a reader chooses the state that it reads. Locked
    /// before `state`.
    visibility: Mutex<()>,
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    /// Events of all conversations, oldest first.
    events: VecDeque<(ConversationId, Arc<StreamEvent>)>,
    /// Bytes of text in the events.
    text_bytes: usize,
    /// Every cursor below this one is invalid, unless a reader has followed its conversation since.
    floor: EventSeq,
    last: EventSeq,
    /// Last number that this process may assign.
    reserved: EventSeq,
    followed: HashMap<ConversationId, FollowedConversation>,
    attempts: HashMap<AttemptId, RunningAttempt>,
    /// Number of changes by shell commands that the log reflects.
    command_changes: i64,
}

/// Conversation with subscribers.
#[derive(Debug)]
struct FollowedConversation {
    wakeup: watch::Sender<()>,
    /// Every cursor below this one is invalid.
    floor: EventSeq,
}

/// Attempt whose row is in the state `started`.
#[derive(Debug)]
struct RunningAttempt {
    conversation: ConversationId,
    streamed: StreamedResponse,
}

impl EventLog {
    /// Creates an empty log, whose numbers follow all earlier ones.
    pub(in crate::store) fn load(conn: &mut Conn) -> QueryResult<Self> {
        let log = Self::default();
        let stored = event_numbers::load_stored_numbers(conn)?;
        let mut state = log.lock_state();
        (state.floor, state.last, state.reserved) = (stored.reserved, stored.reserved, stored.reserved);
        state.command_changes = stored.command_changes;
        drop(state);
        Ok(log)
    }

    fn lock_state(&self) -> MutexGuard<'_, LogState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delays every reader that chooses the state it reads, until the guard is dropped.
    pub(in crate::store) fn lock_visibility(&self) -> MutexGuard<'_, ()> {
        self.0.visibility.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves event numbers in a transaction that has recorded these entries, unless enough are left. Returns whether
    /// numbers were reserved.
    pub(in crate::store) fn reserve_numbers(
        &self,
        conn: &mut Conn,
        entries: &mut Vec<LogEntry>,
    ) -> QueryResult<bool> {
        let needed = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        let left = self.lock_state().unassigned_numbers().saturating_sub(needed);
        if entries.is_empty() || left >= event_numbers::SPARE {
            return Ok(false);
        }
        let reserved = event_numbers::reserve_block(conn)?;
        entries.push(LogEntry::NumbersReserved(reserved));
        Ok(true)
    }

    /// Publishes the entries of a transaction, and wakes the subscribers. The caller has held the visibility lock since
    /// before the commit.
    pub(in crate::store) fn publish(&self, entries: Vec<LogEntry>) {
        let mut state = self.lock_state();
        for entry in entries {
            match entry {
                LogEntry::Event(event) => state.append_event(event),
                LogEntry::AttemptStarted(attempt, conversation) => {
                    let streamed = StreamedResponse::default();
                    state.attempts.insert(attempt, RunningAttempt { conversation, streamed });
                }
                LogEntry::AttemptEnded(attempt) => drop(state.attempts.remove(&attempt)),
                LogEntry::Reset => state.reset(),
                LogEntry::NumbersReserved(reserved) => state.reserved = reserved,
                // Only the history cache reads it.
                LogEntry::TurnFinished(..) => {}
            }
        }
    }

    /// Publishes output of a running attempt: each chunk is consecutive text of one block. Output of an attempt that
    /// has ended is dropped, and so is output for which no numbers are left, until the next commit reserves some.
    pub fn append_chunks(&self, attempt: AttemptId, chunks: &[BlockRecord], at: Timestamp) {
        let mut state = self.lock_state();
        if state.unassigned_numbers() < event_numbers::SPARE / 2 {
            return;
        }
        let Some(running) = state.attempts.get_mut(&attempt) else { return };
        let conversation = running.conversation;
        let events: Vec<StreamEventKind> =
            chunks.iter().flat_map(|chunk| running.streamed.append_chunk(attempt, chunk)).collect();
        for kind in events {
            state.append_event(NewEvent { conversation, turn: Some(attempt.turn), at, kind });
        }
    }

    /// Publishes the start of a call that only reads, which is not stored. The start is not published while too few
    /// numbers are left.
    pub fn append_call_start(
        &self,
        conversation: ConversationId,
        (turn, call): (TurnId, CallRow),
        at: Timestamp,
    ) {
        let mut state = self.lock_state();
        if state.unassigned_numbers() < event_numbers::SPARE / 2 {
            return;
        }
        let kind = StreamEventKind::ToolCall(call, CallPhase::Running);
        state.append_event(NewEvent { conversation, turn: Some(turn), at, kind });
    }

    /// Returns the output that an attempt has streamed so far.
    pub(super) fn streamed_response(&self, attempt: AttemptId) -> StreamedResponse {
        self.lock_state().attempts.get(&attempt).map(|running| running.streamed.clone()).unwrap_or_default()
    }

    /// Returns the position in the log that fits the state which the transaction of `conn` reads. It must be the first
    /// read of the transaction, because the first read chooses this state.
    pub(in crate::store) fn load_position(
        &self,
        conn: &mut Conn,
        conversation: ConversationId,
    ) -> QueryResult<LogPosition> {
        let _visibility = self.lock_visibility();
        diesel::select(boot::CURRENT_EPOCH).get_result::<i64>(conn)?;
        let state = self.lock_state();
        let of_conversation =
            state.attempts.iter().filter(|(_, running)| running.conversation == conversation);
        let streamed = of_conversation.map(|(attempt, running)| (*attempt, running.streamed.blocks.clone()));
        Ok(LogPosition { cursor: state.last, streamed: streamed.collect() })
    }

    /// Returns the events of a conversation after a cursor, at most `limit`; `None` if the cursor is invalid: an event
    /// after it was dropped, or it was never reached.
    pub fn events_since(
        &self,
        conversation: ConversationId,
        after: EventSeq,
        limit: usize,
    ) -> Option<EventsSince> {
        let state = self.lock_state();
        let floor = state.followed.get(&conversation).map_or(state.floor, |followed| followed.floor);
        if after < floor || after > state.last {
            return None;
        }
        let first = state.events.partition_point(|(_, event)| event.seq <= after);
        let of_conversation = state.events.range(first..).filter(|(of, _)| *of == conversation);
        let events: Vec<Arc<StreamEvent>> =
            of_conversation.map(|(_, event)| event.clone()).take(limit).collect();
        let up_to = match events.last() {
            Some(event) if events.len() >= limit => event.seq,
            Some(_) | None => state.last,
        };
        Some(EventsSince { events, up_to })
    }

    /// Drops the events from before `before`.
    pub fn drop_events_before(&self, before: Timestamp) {
        let mut state = self.lock_state();
        while state.events.front().is_some_and(|(_, event)| event.at < before) {
            state.drop_oldest();
        }
    }

    /// Makes all cursors invalid if shell commands have made more changes than the log reflects.
    pub fn reset_after_command_changes(&self, command_changes: i64) {
        let mut state = self.lock_state();
        if state.command_changes < command_changes {
            state.command_changes = command_changes;
            state.reset();
        }
    }

    /// Returns the number of the last event of any conversation.
    pub fn last_number(&self) -> EventSeq {
        self.lock_state().last
    }

    pub fn is_followed(&self) -> bool {
        !self.lock_state().followed.is_empty()
    }

    /// Subscribes to a conversation.
    pub fn subscribe(&self, conversation: ConversationId) -> Subscription {
        let mut state = self.lock_state();
        let floor = state.floor;
        let followed = state
            .followed
            .entry(conversation)
            .or_insert_with(|| FollowedConversation { wakeup: watch::Sender::new(()), floor });
        Subscription { receiver: followed.wakeup.subscribe(), conversation, log: self.clone() }
    }

    /// Forgets the conversation if this subscription is its last.
    pub(super) fn end_subscription(&self, conversation: ConversationId) {
        let mut state = self.lock_state();
        let followed = state.followed.get(&conversation);
        if followed.is_some_and(|followed| followed.wakeup.receiver_count() <= 1) {
            state.followed.remove(&conversation);
        }
    }
}

impl LogState {
    fn unassigned_numbers(&self) -> i64 {
        self.reserved.0 - self.last.0
    }

    fn append_event(&mut self, event: NewEvent) {
        let NewEvent { conversation, turn, at, kind } = event;
        self.last.0 += 1;
        self.text_bytes += text_bytes(&kind);
        self.events.push_back((conversation, Arc::new(StreamEvent { seq: self.last, at, turn, kind })));
        if let Some(followed) = self.followed.get(&conversation) {
            followed.wakeup.send_replace(());
        }
        while self.events.len() > MAX_EVENTS || self.text_bytes > MAX_TEXT_BYTES {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some((conversation, event)) = self.events.pop_front() else { return };
        self.text_bytes -= text_bytes(&event.kind);
        self.floor = event.seq;
        if let Some(followed) = self.followed.get_mut(&conversation) {
            followed.floor = event.seq;
        }
    }

    /// Drops all events, and makes all cursors invalid, including the last one.
    fn reset(&mut self) {
        self.events.clear();
        self.text_bytes = 0;
        self.last.0 += 1;
        self.floor = self.last;
        for followed in self.followed.values_mut() {
            followed.floor = self.floor;
            followed.wakeup.send_replace(());
        }
    }
}

fn text_bytes(kind: &StreamEventKind) -> usize {
    match kind {
        StreamEventKind::BlockDelta(_, text) => text.len(),
        StreamEventKind::Turn(_)
        | StreamEventKind::BlockStart(_)
        | StreamEventKind::BlockEnd(_)
        | StreamEventKind::StepAbandoned { .. }
        | StreamEventKind::ToolCall(..)
        | StreamEventKind::InboundMessage(..)
        | StreamEventKind::OutboundMessage(..)
        | StreamEventKind::Prompt(..)
        | StreamEventKind::Reaction(..)
        | StreamEventKind::Conversation(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use diesel::prelude::*;
    use diesel::result::Error as QueryError;
    use jiff::SignedDuration;

    use super::*;
    use crate::conversation::stream_events::{BlockKind, ConversationChange, StreamBlock};
    use crate::conversation::transcript::{PhoneNumber, UserId};
    use crate::store::conversation::conversations::start_conversation;
    use crate::store::database::db::Db;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::schema::conversations;
    use crate::store::stream::event_numbers::SPARE;
    use crate::store::stream::recording;
    use crate::store::with_savepoint;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const ANN: ConversationId = ConversationId(1);
    const BOB: ConversationId = ConversationId(2);

    fn event(conversation: ConversationId, text: &str) -> LogEntry {
        let block = StreamBlock { step: 0, attempt: 1, kind: BlockKind::Text, ord: 0 };
        let kind = StreamEventKind::BlockDelta(block, text.to_owned());
        LogEntry::Event(NewEvent { conversation, turn: None, at: NOW, kind })
    }

    fn seqs(log: &EventLog, conversation: ConversationId, after: i64) -> Option<Vec<i64>> {
        let since = log.events_since(conversation, EventSeq(after), 3)?;
        Some(since.events.iter().map(|event| event.seq.0).collect())
    }

    #[test]
    fn cursor_is_valid_if_all_later_events_are_kept() {
        let log = EventLog::default();
        log.publish(vec![
            event(ANN, "1"),
            event(BOB, "2"),
            event(ANN, "3"),
            event(ANN, "4"),
            event(ANN, "5"),
        ]);
        assert_eq!(
            [-1, 0, 1, 4, 5, 6].map(|cursor| seqs(&log, ANN, cursor)),
            [None, Some(vec![1, 3, 4]), Some(vec![3, 4, 5]), Some(vec![5]), Some(vec![]), None]
        );
        let up_to = |cursor| log.events_since(ANN, EventSeq(cursor), 3).map(|since| since.up_to.0);
        assert_eq!([up_to(0), up_to(1), up_to(3)], [Some(4), Some(5), Some(5)]);
        log.publish(vec![LogEntry::Reset, event(BOB, "7")]);
        assert_eq!([5, 6, 7].map(|cursor| seqs(&log, BOB, cursor)), [None, Some(vec![7]), Some(vec![])]);
    }

    #[test]
    fn old_events_are_dropped() {
        let log = EventLog::default();
        log.publish(vec![event(ANN, "1"), event(BOB, "2")]);
        log.drop_events_before(NOW);
        assert_eq!(seqs(&log, ANN, 0), Some(vec![1]));
        log.drop_events_before(NOW + SignedDuration::from_secs(1));
        assert_eq!([0, 1, 2].map(|cursor| seqs(&log, ANN, cursor)), [None, None, Some(vec![])]);
    }

    #[test]
    fn log_is_limited_by_events_and_bytes() {
        let log = EventLog::default();
        let limit = i64::try_from(MAX_EVENTS).unwrap();
        (0..=limit).for_each(|_| log.publish(vec![event(ANN, "x")]));
        assert_eq!((seqs(&log, ANN, 0), seqs(&log, ANN, 1)), (None, Some(vec![2, 3, 4])));
        log.publish(vec![event(BOB, &"x".repeat(MAX_TEXT_BYTES))]);
        assert_eq!(log.lock_state().events.len(), 1);
        assert_eq!(seqs(&log, ANN, limit), None);
    }

    #[test]
    fn cursor_of_a_reader_survives_the_events_of_other_conversations() {
        let log = EventLog::default();
        log.publish(vec![event(ANN, "1")]);
        let subscription = log.subscribe(ANN);
        (0..2 * MAX_EVENTS).for_each(|_| log.publish(vec![event(BOB, "x")]));
        assert_eq!([0, 1].map(|cursor| seqs(&log, ANN, cursor)), [None, Some(vec![])]);
        drop(subscription);
        assert_eq!(seqs(&log, ANN, 1), None);
    }

    #[test]
    fn deltas_wait_for_a_commit_that_reserves_numbers() {
        let log = EventLog::default();
        let attempt = AttemptId { turn: TurnId(1), step: 0, attempt: 1 };
        let chunk = [BlockRecord { kind: BlockKind::Text, ord: 0, text: "x".to_owned() }];
        log.publish(vec![LogEntry::AttemptStarted(attempt, ANN)]);
        log.append_chunks(attempt, &chunk, NOW);
        assert_eq!(seqs(&log, ANN, 0), Some(vec![]));
        log.publish(vec![LogEntry::NumbersReserved(EventSeq(SPARE))]);
        log.append_chunks(attempt, &chunk, NOW);
        assert_eq!(seqs(&log, ANN, 0), Some(vec![1, 2]));
    }

    fn create_user(conn: &mut Conn, number: u32) -> QueryResult<UserId> {
        let phone = PhoneNumber::parse(&format!("+1555010{number:04}")).unwrap();
        users::ensure_user(conn, &phone, FirstContactRole::Member, NOW)
    }

    fn begin_conversation(conn: &mut Conn, number: u32) -> QueryResult<ConversationId> {
        let user = create_user(conn, number)?;
        start_conversation(conn, user, "A conversation", NOW)
    }

    #[tokio::test]
    async fn only_committed_events_are_published() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path().join("a.db").to_str().unwrap()).unwrap();
        let fail = |conn: &mut Conn| begin_conversation(conn, 1).and(Err::<(), _>(QueryError::NotFound));
        let partly_fail = move |conn: &mut Conn| {
            let kept = begin_conversation(conn, 2)?;
            assert_eq!(with_savepoint(conn, fail), Err(QueryError::NotFound));
            Ok(kept)
        };
        let (failed, kept) = tokio::join!(db.write(fail), db.write(partly_fail));
        assert!(failed.is_err());
        let published = db.event_log().lock_state().events.iter().map(|(of, _)| *of).collect::<Vec<_>>();
        assert_eq!(published, [kept.unwrap()]);
    }

    #[tokio::test]
    async fn events_of_a_failed_commit_are_discarded() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path().join("a.db").to_str().unwrap()).unwrap();
        // A violated deferred constraint makes the commit fail.
        let violate = |conn: &mut Conn| {
            diesel::sql_query("PRAGMA defer_foreign_keys=ON").execute(conn)?;
            start_conversation(conn, UserId(77), "A conversation", NOW)
        };
        assert!(db.write(violate).await.is_err());
        db.write(|conn| begin_conversation(conn, 1)).await.unwrap();
        assert_eq!(db.event_log().lock_state().events.len(), 1);
        db.close().await;
        let db = Db::open(folder.path().join("a.db").to_str().unwrap()).unwrap();
        let reserved = db.event_log().lock_state().reserved;
        assert_eq!(reserved.0, 2 * SPARE, "the failed commit reserved nothing");
    }

    #[tokio::test]
    async fn numbers_rise_across_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db").to_str().unwrap().to_owned();
        let mut last = EventSeq(0);
        for run in 1..4 {
            let db = Db::open(&path).unwrap();
            let conversation = db.write(move |conn| begin_conversation(conn, run)).await.unwrap();
            let log = db.event_log();
            let first = log.lock_state().events.front().unwrap().1.seq;
            assert!(first > last, "{first} > {last}");
            assert_eq!(log.events_since(conversation, last, 10).is_none(), run > 1);
            last = first;
            db.close().await;
        }
    }

    #[tokio::test]
    async fn position_fits_the_state_that_a_transaction_reads() {
        const WRITES: u32 = 300;
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path().join("a.db").to_str().unwrap()).unwrap();
        let writer = db.clone();
        let writes = tokio::spawn(async move {
            for number in 0..WRITES {
                writer.write(move |conn| begin_conversation(conn, number)).await.unwrap();
            }
        });
        let mut counts = Vec::new();
        while counts.last() != Some(&i64::from(WRITES)) {
            let count = |conn: &mut Conn, position: &LogPosition| {
                let count: i64 = conversations::table.count().get_result(conn)?;
                Ok((count, position.cursor.0))
            };
            let (count, cursor) = db.read_with_position(ANN, count).await.unwrap();
            assert_eq!(count, cursor, "each conversation has one event");
            counts.push(count);
        }
        writes.await.unwrap();
    }

    #[test]
    fn events_without_a_recording_are_discarded() {
        let mut conn = crate::store::scratch();
        let change = StreamEventKind::Conversation(ConversationChange::Begun);
        recording::record_event(&mut conn, TurnId(77), NOW, change).unwrap();
        assert_eq!(recording::entry_count(), 0);
    }
}
