//! Progress message, sent once to a user when a change takes longer than usual.

use std::time::Duration;

use super::Engine;
use super::reply_address::ReplyAddress;
use super::turn_loop::TurnContext;
use crate::store::turns::progress_message;
use crate::telemetry;

const STILL_WORKING: &str = "Still working on it.";
/// Minimum time before a progress message about a change that begins late in its turn. Most changes take less time.
const MIN_DELAY: Duration = Duration::from_secs(3);

impl Engine {
    /// Waits for a library change, or for the check of a change, and notifies the user once if the turn takes long.
    pub(super) async fn run_with_progress<T>(
        &self,
        scene: &TurnContext,
        change: impl Future<Output = T>,
    ) -> T {
        let due = scene.turn.progress_due_at().duration_since(self.now());
        let wait = Duration::try_from(due).unwrap_or_default().max(MIN_DELAY);
        tokio::pin!(change);
        tokio::select! {
            biased;
            () = tokio::time::sleep(wait) => {}
            done = &mut change => return done,
        }
        tokio::join!(change, self.send_progress(scene)).0
    }

    /// Queues the progress message. The message is optional: if it cannot be stored, the change continues.
    async fn send_progress(&self, scene: &TurnContext) {
        let (user, turn, now) = (scene.user.clone(), scene.live.id, self.now());
        let number = self.0.parts.settings.number.clone();
        let queue = move |conn: &mut _| {
            let text = ReplyAddress::load_for_user(conn, &user, number.as_ref())?
                .notification_message("", STILL_WORKING);
            progress_message::queue_progress_message(conn, turn, text, now)
        };
        match self.0.parts.db.write(queue).await {
            Ok(()) => self.0.parts.outbox.notify(),
            Err(error) => {
                tracing::warn!(%turn, error = telemetry::error_chain(&error), "failed to queue a progress message");
            }
        }
    }
}
