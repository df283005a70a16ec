//! The one sink of streamed deltas: written in order and in small batches while the response comes.

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

/// Deltas that share a commit at most, and their bytes.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 4 << 10;
/// How long deltas gather before they are written.
const GATHER: Duration = Duration::from_millis(50);

/// Takes the deltas of one attempt. Dropped, it writes nothing more: its attempt is given up.
pub(crate) struct Recorder {
    pieces: mpsc::UnboundedSender<Piece>,
    writer: AbortOnDropHandle<()>,
}

impl Recorder {
    pub(crate) fn new(db: &Db, clock: &Clock, attempt: Attempt) -> Self {
        let (pieces, queue) = mpsc::unbounded_channel();
        let writer = Writer { db: db.clone(), clock: clock.clone(), attempt, queue };
        Self { pieces, writer: AbortOnDropHandle::new(tokio::spawn(writer.run())) }
    }

    /// Never waits: what a response holds is bounded by its model's output budget.
    pub(crate) fn take(&mut self, delta: Delta) {
        let piece = match delta {
            Delta::Text(text) => Piece { part: Part::Text, ord: 0, text },
            Delta::Thinking(text) => Piece { part: Part::Thinking, ord: 0, text },
            Delta::ToolCall { ord, name, arguments } => {
                Piece { part: Part::ToolCall, ord, text: name.unwrap_or_default() + &arguments }
            }
        };
        // The writer only goes away with the program.
        let _ = self.pieces.send(piece);
    }

    /// Waits until everything taken is on disk.
    pub(crate) async fn finish(self) {
        drop(self.pieces);
        if let Err(error) = self.writer.await {
            tracing::error!(%error, "the writer of a stream ended early");
        }
    }
}

struct Writer {
    db: Db,
    clock: Clock,
    attempt: Attempt,
    queue: mpsc::UnboundedReceiver<Piece>,
}

impl Writer {
    async fn run(mut self) {
        while let Some(first) = self.queue.recv().await {
            let batch = self.gather(first).await;
            let (attempt, now) = (self.attempt, self.clock.now());
            let write = move |conn: &mut _| writing::append(conn, attempt, &batch, now);
            if let Err(error) = self.db.write(write).await {
                // The response itself is recorded at its end; only the live view suffers.
                tracing::warn!(turn = %attempt.turn, %error, "deltas were not recorded");
            }
        }
    }

    /// What comes shortly after `first`, joined block by block. Returns at once when nothing more can come.
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
