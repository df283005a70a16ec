//! Recorder of streamed deltas, which publishes them in order and in small batches while the response arrives.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::clock::Clock;
use crate::conversation::stream_events::BlockKind;
use crate::llm::ResponseDelta;
use crate::store::conversation::record::steps::BlockRecord;
use crate::store::stream::event_log::EventLog;
use crate::store::turns::model_steps::AttemptId;

/// Limits of a batch, as a number of deltas and as bytes of text.
const MAX_BATCH_DELTAS: usize = 64;
const MAX_BATCH_BYTES: usize = 4 << 10;
/// Time for which the deltas of a batch are collected.
const BATCH_TIME: Duration = Duration::from_millis(50);

/// Recorder of the deltas of one attempt. A dropped recorder publishes nothing more, because its attempt is abandoned.
pub(crate) struct DeltaRecorder {
    chunks: mpsc::UnboundedSender<BlockRecord>,
    publisher: AbortOnDropHandle<()>,
}

impl DeltaRecorder {
    pub(crate) fn new(log: EventLog, clock: Clock, attempt: AttemptId) -> Self {
        let (chunks, queue) = mpsc::unbounded_channel();
        let publisher = BatchPublisher { log, clock, attempt, queue };
        Self { chunks, publisher: AbortOnDropHandle::new(tokio::spawn(publisher.run())) }
    }

    /// Queues a delta without waiting. The queue is unbounded, because the model's output limit bounds the response.
    pub(crate) fn queue_delta(&mut self, delta: ResponseDelta) {
        let chunk = match delta {
            ResponseDelta::Text(text) => BlockRecord { kind: BlockKind::Text, ord: 0, text },
            ResponseDelta::Thinking(text) => BlockRecord { kind: BlockKind::Thinking, ord: 0, text },
            ResponseDelta::ToolCall { ord, name, arguments } => {
                BlockRecord { kind: BlockKind::ToolCall, ord, text: name.unwrap_or_default() + &arguments }
            }
        };
        // Sending fails only if the publisher has ended with the program.
        let _ = self.chunks.send(chunk);
    }

    /// Publishes the queued chunks.
    pub(crate) async fn finish(self) {
        drop(self.chunks);
        if let Err(error) = self.publisher.await {
            // Only the live view is affected, because the response is recorded at its end.
            tracing::error!(%error, "publisher of deltas ended early");
        }
    }
}

struct BatchPublisher {
    log: EventLog,
    clock: Clock,
    attempt: AttemptId,
    queue: mpsc::UnboundedReceiver<BlockRecord>,
}

impl BatchPublisher {
    /// Publishes batches until the queue is closed.
    async fn run(mut self) {
        while let Some(first) = self.queue.recv().await {
            let batch = self.gather_batch(first).await;
            self.log.append_chunks(self.attempt, &batch, self.clock.now());
        }
    }

    /// Collects the chunks that arrive shortly after `first`, and joins chunks of the same block. Returns at once when no
    /// more chunks can arrive.
    async fn gather_batch(&mut self, first: BlockRecord) -> Vec<BlockRecord> {
        let end = Instant::now() + BATCH_TIME;
        let (mut count, mut bytes) = (1, first.text.len());
        let mut batch = vec![first];
        while count < MAX_BATCH_DELTAS && bytes < MAX_BATCH_BYTES {
            let Ok(Some(chunk)) = timeout_at(end, self.queue.recv()).await else { break };
            count += 1;
            bytes += chunk.text.len();
            match batch.last_mut() {
                Some(last) if (last.kind, last.ord) == (chunk.kind, chunk.ord) => {
                    last.text.push_str(&chunk.text);
                }
                Some(_) | None => batch.push(chunk),
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
    use crate::store::database::db::Db;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::turns::model_steps;
    use crate::store::turns::turn_lifecycle::{self, NewTurn, TurnKind, TurnPlan};
    use crate::store::{Conn, QueryResult};

    fn create_attempt(conn: &mut Conn, now: Timestamp) -> QueryResult<(ConversationId, AttemptId)> {
        let user = users::ensure_user(
            conn,
            PhoneNumber::parse("+15550100001").unwrap(),
            FirstContactRole::Member,
            now,
        )?;
        let conversation = conversations::start_conversation(conn, user, "A conversation", now)?;
        let plan = TurnPlan::for_responder(Responder::Model);
        let new = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
        let attempt = AttemptId { turn: turn_lifecycle::create_turn(conn, new, now)?, step: 0, attempt: 1 };
        model_steps::start_attempt(conn, attempt, Responder::Model, "a model", now)?;
        Ok((conversation, attempt))
    }

    struct RecorderFixture {
        /// Keeps the database folder until the end of the test.
        _folder: tempfile::TempDir,
        db: Db,
        conversation: ConversationId,
        attempt: AttemptId,
        recorder: DeltaRecorder,
    }

    async fn create_recorder() -> RecorderFixture {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open_simulated(folder.path().join("a.db").to_str().unwrap(), 1).unwrap();
        let clock = Clock::from_runtime(Timestamp::UNIX_EPOCH);
        let now = clock.now();
        let (conversation, attempt) = db.write(move |conn| create_attempt(conn, now)).await.unwrap();
        let recorder = DeltaRecorder::new(db.event_log().clone(), clock, attempt);
        RecorderFixture { _folder: folder, db, conversation, attempt, recorder }
    }

    /// Returns the length of each delta in the log, and the start and end of each block.
    fn logged_blocks(db: &Db, conversation: ConversationId) -> Vec<String> {
        let since = db.event_log().events_since(conversation, EventSeq(0), 1_000).unwrap();
        let lines = since.events.iter().filter_map(|event| match &event.kind {
            StreamEventKind::BlockStart(block) => Some(format!("{:?} begins", block.kind)),
            StreamEventKind::BlockDelta(block, text) => Some(format!("{:?} {}", block.kind, text.len())),
            StreamEventKind::BlockEnd(block) => Some(format!("{:?} ends", block.kind)),
            _ => None,
        });
        lines.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn batched_deltas_share_an_event_per_block() {
        let RecorderFixture { _folder, db, conversation, mut recorder, .. } = create_recorder().await;
        (0..3).for_each(|_| recorder.queue_delta(ResponseDelta::Thinking("1234".to_owned())));
        (0..100).for_each(|_| recorder.queue_delta(ResponseDelta::Text("12".to_owned())));
        tokio::time::advance(BATCH_TIME).await;
        recorder.queue_delta(ResponseDelta::Text("x".repeat(MAX_BATCH_BYTES)));
        recorder.queue_delta(ResponseDelta::Text("12".to_owned()));
        recorder.finish().await;
        let expected = [
            "Thinking begins",
            "Thinking 12",
            "Thinking ends",
            "Text begins",
            "Text 122",
            "Text 4174",
            "Text 2",
        ];
        assert_eq!(logged_blocks(&db, conversation), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn deltas_after_an_abandoned_attempt_are_dropped() {
        let RecorderFixture { _folder, db, conversation, attempt, mut recorder } = create_recorder().await;
        db.write(move |conn| {
            model_steps::abandon_unfinished_attempt(conn, attempt.turn, Timestamp::UNIX_EPOCH)
        })
        .await
        .unwrap();
        recorder.queue_delta(ResponseDelta::Text("x".repeat(MAX_BATCH_BYTES)));
        recorder.finish().await;
        assert_eq!(logged_blocks(&db, conversation), Vec::<String>::new());
    }
}
