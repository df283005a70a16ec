//! Task that runs every minute. It records that the program is running, which is a lower bound of the time at the next
//! start, and adds new text to the full-text indexes, in the same commit.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::live::Live;
use crate::store::database::db::{Db, DbError, Durability};
use crate::store::text_index::TextIndexProgress;
use crate::store::{boot, text_index};

const INTERVAL: Duration = Duration::from_mins(1);

/// Error of the last heartbeat; `None` if it was recorded.
pub(crate) type HeartbeatError = Live<Option<String>>;

pub(crate) struct Heartbeat {
    pub db: Db,
    pub clock: Clock,
    pub error: HeartbeatError,
}

impl Heartbeat {
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = stop.cancelled() => return,
            }
            let outcome = self.beat().await;
            if let Err(error) = &outcome {
                tracing::error!(%error, "failed to record a heartbeat and to index new text");
            }
            self.error.replace(outcome.err().map(|error| error.to_string()));
        }
    }

    async fn beat(&self) -> Result<(), DbError> {
        let record = |conn: &mut _, now| {
            boot::record_heartbeat(conn, now)?;
            text_index::index_new_text(conn)
        };
        let mut progress = self.db.write_in_order(Durability::Unsynced, || self.clock.now(), record).await?;
        while progress == TextIndexProgress::More {
            progress = self.db.write_unsynced(text_index::index_new_text).await?;
        }
        Ok(())
    }
}
