//! Texts that never reached our webhook: found in the carrier's list and admitted like any other.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use super::LookError;
use super::twilio::Twilio;
use crate::clock::Clock;
use crate::conversation::transcript::{Address, Received};
use crate::store::db::{Db, DbError};
use crate::store::offsets;

/// How often the list is read.
pub const EVERY: Duration = Duration::from_secs(300);
/// How soon it is read again when a text was too young.
pub const SOON: Duration = Duration::from_secs(30);
/// Read again before the cursor: the list may show a text later than it lists it.
const OVERLAP: SignedDuration = SignedDuration::from_hours(1);
/// The webhook of a text this young may still be under way, and what comes by it counts for more.
const TOO_YOUNG: SignedDuration = SignedDuration::from_secs(30);

/// The list of texts to one of our numbers.
#[derive(Clone)]
pub struct Inbox {
    pub twilio: Arc<Twilio>,
    pub number: Address,
    pub db: Db,
    pub clock: Clock,
}

/// When to read the list again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Later,
    Soon,
}

#[derive(Debug, thiserror::Error)]
pub enum FetchError<E> {
    #[error(transparent)]
    Look(#[from] LookError),
    #[error(transparent)]
    Db(#[from] DbError),
    #[error("admit a missed text")]
    Admit(#[source] E),
}

impl Inbox {
    /// Admits every text of the list, oldest first; known ones change nothing. The cursor moves only once all are in.
    pub async fn fetch<E>(
        &self,
        admit: impl AsyncFn(Received) -> Result<(), E>,
    ) -> Result<Next, FetchError<E>> {
        let source = format!("twilio:{}", self.number.as_str());
        let now = self.clock.now();
        let name = source.clone();
        let Some(cursor) = self.db.read(move |conn| offsets::get(conn, &name)).await? else {
            // What was sent before the first start was not sent to this program.
            self.db.write(move |conn| offsets::set(conn, &source, now, now)).await?;
            return Ok(Next::Later);
        };
        let texts = self.twilio.received_since(&self.number, cursor - OVERLAP, now).await?;
        let (old, young): (Vec<_>, Vec<_>) =
            texts.into_iter().partition(|text| text.provider_at <= now - TOO_YOUNG);
        let newest = old.iter().map(|text| text.provider_at).fold(cursor, Ord::max);
        for text in old {
            admit(text).await.map_err(FetchError::Admit)?;
        }
        self.db.write(move |conn| offsets::set(conn, &source, newest, now)).await?;
        Ok(if young.is_empty() { Next::Later } else { Next::Soon })
    }
}
