//! The one sink of streamed deltas: numbered in order, written in batches, kept with the turn.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::llm::Delta;
use crate::store::db::Db;
use crate::store::steps::Attempt;
use crate::store::stream::{self, Part, Piece};

/// Deltas that share a commit at most.
const BATCH: usize = 64;

/// Takes the deltas of one attempt.
pub struct Recorder {
    pieces: mpsc::UnboundedSender<Piece>,
    writer: JoinHandle<()>,
}

impl Recorder {
    pub fn new(db: &Db, clock: &Clock, attempt: Attempt) -> Self {
        let (pieces, queue) = mpsc::unbounded_channel();
        let writer = tokio::spawn(write(db.clone(), clock.clone(), attempt, queue));
        Self { pieces, writer }
    }

    /// Never waits: what a response holds is bounded by its model's output budget.
    pub fn take(&mut self, delta: Delta) {
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
    pub async fn finish(self) {
        drop(self.pieces);
        if let Err(error) = self.writer.await {
            tracing::error!(%error, "the writer of a stream ended early");
        }
    }
}

async fn write(db: Db, clock: Clock, attempt: Attempt, mut queue: mpsc::UnboundedReceiver<Piece>) {
    let mut pieces = Vec::new();
    // While a batch is written the next one gathers, so a fast stream costs few commits.
    while queue.recv_many(&mut pieces, BATCH).await > 0 {
        let batch = std::mem::take(&mut pieces);
        let now = clock.now();
        if let Err(error) = db.write(move |conn| stream::append(conn, attempt, &batch, now)).await {
            // The response itself is recorded at its end; only the live view suffers.
            tracing::warn!(turn = %attempt.turn, %error, "deltas were not recorded");
        }
    }
}
