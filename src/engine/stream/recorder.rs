//! Recorder of streamed deltas, the only one: they are written in order and in small batches while the response
//! arrives.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::clock::Clock;
use crate::conversation::stream::Part;
use crate::llm::Delta;
use crate::store::db::Db;
use crate::store::steps::Attempt;
use crate::store::stream::writing::{self, Piece};

/// Maximum number of deltas that share a commit, and of their bytes.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 4 << 10;
/// Time for which deltas are collected before they are written.
const GATHER: Duration = Duration::from_millis(50);

/// Recorder of the deltas of one attempt. If dropped, it writes nothing more: its attempt is given up.
pub(crate) struct Recorder {
    pieces: mpsc::UnboundedSender<Piece>,
    writer: AbortOnDropHandle<Vec<Piece>>,
}

impl Recorder {
    pub(crate) fn new(db: &Db, clock: &Clock, attempt: Attempt) -> Self {
        let (pieces, queue) = mpsc::unbounded_channel();
        let writer = Writer { db: db.clone(), clock: clock.clone(), attempt, queue };
        Self { pieces, writer: AbortOnDropHandle::new(tokio::spawn(writer.run())) }
    }

    /// Queues a delta without waiting: the size of a response is bounded by its model's output budget.
    pub(crate) fn take(&mut self, delta: Delta) {
        let piece = match delta {
            Delta::Text(text) => Piece { part: Part::Text, ord: 0, text },
            Delta::Thinking(text) => Piece { part: Part::Thinking, ord: 0, text },
            Delta::ToolCall { ord, name, arguments } => {
                Piece { part: Part::ToolCall, ord, text: name.unwrap_or_default() + &arguments }
            }
        };
        // The writer ends only when the program does.
        let _ = self.pieces.send(piece);
    }

    /// Waits until the queued pieces are on disk. The last batch is left for the commit that records the response:
    /// these pieces, or nothing if no piece of the response is in the log yet, which is then logged as a whole.
    pub(crate) async fn finish(self) -> Vec<Piece> {
        drop(self.pieces);
        self.writer.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the writer of a stream ended early");
            Vec::new()
        })
    }
}

struct Writer {
    db: Db,
    clock: Clock,
    attempt: Attempt,
    queue: mpsc::UnboundedReceiver<Piece>,
}

impl Writer {
    /// Writes batches until the queue is closed, and returns the last batch.
    async fn run(mut self) -> Vec<Piece> {
        let mut is_begun = false;
        while let Some(first) = self.queue.recv().await {
            let batch = self.gather(first).await;
            if self.queue.is_closed() && self.queue.is_empty() {
                return if is_begun { batch } else { Vec::new() };
            }
            is_begun = true;
            let (attempt, now) = (self.attempt, self.clock.now());
            let write = move |conn: &mut _| writing::append(conn, attempt, &batch, now);
            if let Err(error) = self.db.write(write).await {
                // The response itself is recorded at its end; only the live view suffers.
                tracing::warn!(turn = %attempt.turn, %error, "deltas were not recorded");
            }
        }
        Vec::new()
    }

    /// Collects the pieces that arrive shortly after `first`, joined block by block. Returns at once when nothing more
    /// can arrive.
    async fn gather(&mut self, first: Piece) -> Vec<Piece> {
        let end = Instant::now() + GATHER;
        let (mut count, mut bytes) = (1, first.text.len());
        let mut batch = vec![first];
        while count < BATCH && bytes < BATCH_BYTES {
            let Ok(Some(piece)) = timeout_at(end, self.queue.recv()).await else { break };
            count += 1;
            bytes += piece.text.len();
            match batch.last_mut() {
                Some(last) if (last.part, last.ord) == (piece.part, piece.ord) => {
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
    use crate::conversation::stream::{Seq, What};
    use crate::conversation::transcript::{Brain, ConversationId, PhoneNumber};
    use crate::store::stream::reading::{self, Since};
    use crate::store::turns::{self, Kind, NewTurn, Plan};
    use crate::store::users::{self, Newcomer};
    use crate::store::{Conn, QueryResult, conversations, steps};

    fn an_attempt(conn: &mut Conn, now: Timestamp) -> QueryResult<(ConversationId, Attempt)> {
        let user = users::ensure(conn, &PhoneNumber::parse("+15550100001").unwrap(), Newcomer::Member, now)?;
        let conversation = conversations::begin(conn, user, "A talk", now)?;
        let plan = Plan::by(Brain::Model);
        let new = NewTurn { user, conversation, kind: Kind::Chat, plan: &plan };
        let attempt = Attempt { turn: turns::create(conn, new, now)?, step: 0, attempt: 1 };
        steps::start(conn, attempt, Brain::Model, "a model", now)?;
        Ok((conversation, attempt))
    }

    struct Recording {
        /// Keeps the folder of the database file alive.
        _folder: tempfile::TempDir,
        db: Db,
        conversation: ConversationId,
        attempt: Attempt,
        recorder: Recorder,
    }

    async fn a_recording() -> Recording {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open_simulated(folder.path().join("a.db").to_str().unwrap(), 1).unwrap();
        let clock = Clock::runtime(Timestamp::UNIX_EPOCH);
        let now = clock.now();
        let (conversation, attempt) = db.write(move |conn| an_attempt(conn, now)).await.unwrap();
        let recorder = Recorder::new(&db, &clock, attempt);
        Recording { _folder: folder, db, conversation, attempt, recorder }
    }

    /// Length of each delta in the log, with its part, and the begin and end of each block.
    async fn logged(db: &Db, conversation: ConversationId) -> Vec<String> {
        let read = move |conn: &mut _| reading::since(conn, conversation, Seq(0), 1_000);
        let Since::Events { events, .. } = db.read(read).await.unwrap() else { panic!("the log is there") };
        let lines = events.iter().filter_map(|event| match &event.what {
            What::BlockStart(block) => Some(format!("{:?} begins", block.part)),
            What::BlockDelta(block, text) => Some(format!("{:?} {}", block.part, text.len())),
            What::BlockEnd(block) => Some(format!("{:?} ends", block.part)),
            _ => None,
        });
        lines.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn deltas_that_come_together_share_a_row_and_blocks_end_where_others_begin() {
        let Recording { _folder, db, conversation, mut recorder, .. } = a_recording().await;
        (0..3).for_each(|_| recorder.take(Delta::Thinking("1234".to_owned())));
        (0..100).for_each(|_| recorder.take(Delta::Text("12".to_owned())));
        tokio::time::advance(GATHER).await;
        recorder.take(Delta::Text("x".repeat(BATCH_BYTES)));
        recorder.take(Delta::Text("12".to_owned()));
        let rest = recorder.finish().await;
        let expected =
            ["Thinking begins", "Thinking 12", "Thinking ends", "Text begins", "Text 122", "Text 4174"];
        assert_eq!(logged(&db, conversation).await, expected);
        assert_eq!(rest, [Piece { part: Part::Text, ord: 0, text: "12".to_owned() }]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_at_once_is_left_to_the_response() {
        let Recording { _folder, db, conversation, mut recorder, .. } = a_recording().await;
        recorder.take(Delta::Text("Six downloads are running.".to_owned()));
        assert_eq!(recorder.finish().await, []);
        assert_eq!(logged(&db, conversation).await, Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_an_attempt_was_given_up_is_left_out() {
        let Recording { _folder, db, conversation, attempt, mut recorder } = a_recording().await;
        db.write(move |conn| steps::abandon_unfinished(conn, attempt.turn, Timestamp::UNIX_EPOCH))
            .await
            .unwrap();
        recorder.take(Delta::Text("x".repeat(BATCH_BYTES)));
        recorder.finish().await;
        assert_eq!(logged(&db, conversation).await, Vec::<String>::new());
    }
}
