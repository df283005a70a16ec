//! Recorder of streamed deltas, and their only writer. Deltas are written in order and in small batches while the
//! response arrives.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::clock::Clock;
use crate::conversation::stream_events::BlockKind;
use crate::llm::ResponseDelta;
use crate::store::database::db::Db;
use crate::store::stream::delta_writer::{self, BlockChunk};
use crate::store::turns::model_steps::AttemptId;

/// Limits of the deltas that share a commit, as a number of deltas and as bytes.
const BATCH_DELTAS: usize = 64;
const BATCH_BYTES: usize = 4 << 10;
/// Time for which deltas are collected before they are written.
const GATHER_TIME: Duration = Duration::from_millis(50);

/// Recorder of the deltas of one attempt. A dropped recorder writes nothing more, because its attempt is given up.
pub(crate) struct DeltaRecorder {
    pieces: mpsc::UnboundedSender<BlockChunk>,
    writer: AbortOnDropHandle<Vec<BlockChunk>>,
}

impl DeltaRecorder {
    pub(crate) fn new(db: &Db, clock: &Clock, attempt: AttemptId) -> Self {
        let (pieces, queue) = mpsc::unbounded_channel();
        let writer = BatchWriter { db: db.clone(), clock: clock.clone(), attempt, queue };
        Self { pieces, writer: AbortOnDropHandle::new(tokio::spawn(writer.run())) }
    }

    /// Queues a delta without waiting. The queue needs no limit, because the model's output budget bounds the size of a
    /// response.
    pub(crate) fn queue_delta(&mut self, delta: ResponseDelta) {
        let piece = match delta {
            ResponseDelta::Text(text) => BlockChunk { kind: BlockKind::Text, ord: 0, text },
            ResponseDelta::Thinking(text) => BlockChunk { kind: BlockKind::Thinking, ord: 0, text },
            ResponseDelta::ToolCall { ord, name, arguments } => {
                BlockChunk { kind: BlockKind::ToolCall, ord, text: name.unwrap_or_default() + &arguments }
            }
        };
        // The writer ends only with the program.
        let _ = self.pieces.send(piece);
    }

    /// Waits until the queued pieces are on disk. Returns the last batch for the commit that records the response. The
    /// batch is empty if no piece of the response is in the log yet; the response is then logged as a whole.
    pub(crate) async fn finish(self) -> Vec<BlockChunk> {
        drop(self.pieces);
        self.writer.await.unwrap_or_else(|error| {
            tracing::error!(%error, "stream writer ended early");
            Vec::new()
        })
    }
}

struct BatchWriter {
    db: Db,
    clock: Clock,
    attempt: AttemptId,
    queue: mpsc::UnboundedReceiver<BlockChunk>,
}

impl BatchWriter {
    /// Writes batches until the queue is closed, and returns the last batch.
    async fn run(mut self) -> Vec<BlockChunk> {
        let mut is_begun = false;
        while let Some(first) = self.queue.recv().await {
            let batch = self.gather_batch(first).await;
            if self.queue.is_closed() && self.queue.is_empty() {
                return if is_begun { batch } else { Vec::new() };
            }
            is_begun = true;
            let (attempt, now) = (self.attempt, self.clock.now());
            let write = move |conn: &mut _| delta_writer::append_chunks(conn, attempt, &batch, now);
            if let Err(error) = self.db.write(write).await {
                // The response itself is recorded at its end, so only the live view is affected.
                tracing::warn!(turn = %attempt.turn, %error, "failed to record deltas");
            }
        }
        Vec::new()
    }

    /// Collects the pieces that arrive shortly after `first`, joined block by block. Returns at once when no more
    /// pieces can arrive.
    async fn gather_batch(&mut self, first: BlockChunk) -> Vec<BlockChunk> {
        let end = Instant::now() + GATHER_TIME;
        let (mut count, mut bytes) = (1, first.text.len());
        let mut batch = vec![first];
        while count < BATCH_DELTAS && bytes < BATCH_BYTES {
            let Ok(Some(piece)) = timeout_at(end, self.queue.recv()).await else { break };
            count += 1;
            bytes += piece.text.len();
            match batch.last_mut() {
                Some(last) if (last.kind, last.ord) == (piece.kind, piece.ord) => {
                    last.text.push_str(&piece.text);
                }
                Some(_) | None => batch.push(piece),
            }
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::conversation::stream_events::{EventSeq, StreamEventKind};
    use crate::conversation::transcript::{ConversationId, PhoneNumber, Responder};
    use crate::store::conversation::conversations;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::stream::event_reader::{self, EventsSince};
    use crate::store::turns::model_steps;
    use crate::store::turns::turn_lifecycle::{self, NewTurn, TurnKind, TurnPlan};
    use crate::store::{Conn, QueryResult};

    fn an_attempt(conn: &mut Conn, now: Timestamp) -> QueryResult<(ConversationId, AttemptId)> {
        let user = users::ensure_user(
            conn,
            &PhoneNumber::parse("+15550100001").unwrap(),
            FirstContactRole::Member,
            now,
        )?;
        let conversation = conversations::start_conversation(conn, user, "A talk", now)?;
        let plan = TurnPlan::for_responder(Responder::Model);
        let new = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
        let attempt = AttemptId { turn: turn_lifecycle::create_turn(conn, new, now)?, step: 0, attempt: 1 };
        model_steps::start_attempt(conn, attempt, Responder::Model, "a model", now)?;
        Ok((conversation, attempt))
    }

    struct Recording {
        /// Handle that prevents the deletion of the database folder.
        _folder: tempfile::TempDir,
        db: Db,
        conversation: ConversationId,
        attempt: AttemptId,
        recorder: DeltaRecorder,
    }

    async fn a_recording() -> Recording {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open_simulated(folder.path().join("a.db").to_str().unwrap(), 1).unwrap();
        let clock = Clock::from_runtime(Timestamp::UNIX_EPOCH);
        let now = clock.now();
        let (conversation, attempt) = db.write(move |conn| an_attempt(conn, now)).await.unwrap();
        let recorder = DeltaRecorder::new(&db, &clock, attempt);
        Recording { _folder: folder, db, conversation, attempt, recorder }
    }

    /// Returns the length of each delta in the log, with its part, and the start and end of each block.
    async fn logged(db: &Db, conversation: ConversationId) -> Vec<String> {
        let read =
            move |conn: &mut _| event_reader::load_events_since(conn, conversation, EventSeq(0), 1_000);
        let EventsSince::Events { events, .. } = db.read(read).await.unwrap() else {
            panic!("the log is there")
        };
        let lines = events.iter().filter_map(|event| match &event.kind {
            StreamEventKind::BlockStart(block) => Some(format!("{:?} begins", block.kind)),
            StreamEventKind::BlockDelta(block, text) => Some(format!("{:?} {}", block.kind, text.len())),
            StreamEventKind::BlockEnd(block) => Some(format!("{:?} ends", block.kind)),
            _ => None,
        });
        lines.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_deltas_share_a_row_and_blocks_end_at_the_next() {
        let Recording { _folder, db, conversation, mut recorder, .. } = a_recording().await;
        (0..3).for_each(|_| recorder.queue_delta(ResponseDelta::Thinking("1234".to_owned())));
        (0..100).for_each(|_| recorder.queue_delta(ResponseDelta::Text("12".to_owned())));
        tokio::time::advance(GATHER_TIME).await;
        recorder.queue_delta(ResponseDelta::Text("x".repeat(BATCH_BYTES)));
        recorder.queue_delta(ResponseDelta::Text("12".to_owned()));
        let rest = recorder.finish().await;
        let expected =
            ["Thinking begins", "Thinking 12", "Thinking ends", "Text begins", "Text 122", "Text 4174"];
        assert_eq!(logged(&db, conversation).await, expected);
        assert_eq!(rest, [BlockChunk { kind: BlockKind::Text, ord: 0, text: "12".to_owned() }]);
    }

    #[tokio::test(start_paused = true)]
    async fn immediate_response_is_not_streamed() {
        let Recording { _folder, db, conversation, mut recorder, .. } = a_recording().await;
        recorder.queue_delta(ResponseDelta::Text("Six downloads are running.".to_owned()));
        assert_eq!(recorder.finish().await, []);
        assert_eq!(logged(&db, conversation).await, Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn deltas_after_an_abandoned_attempt_are_dropped() {
        let Recording { _folder, db, conversation, attempt, mut recorder } = a_recording().await;
        db.write(move |conn| {
            model_steps::abandon_unfinished_attempt(conn, attempt.turn, Timestamp::UNIX_EPOCH)
        })
        .await
        .unwrap();
        recorder.queue_delta(ResponseDelta::Text("x".repeat(BATCH_BYTES)));
        recorder.finish().await;
        assert_eq!(logged(&db, conversation).await, Vec::<String>::new());
    }
}
