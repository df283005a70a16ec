//! Channel for messages of test conversations: nothing is sent.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Accepted, Channel, LookError, Outgoing, SendError};
use crate::conversation::verification::TextFields;

/// Channel that accepts each message at once: the console shows the stored message.
#[derive(Debug, Clone, Copy)]
pub struct Sink;

#[async_trait]
impl Channel for Sink {
    async fn send(&self, text: &Outgoing) -> Result<Accepted, SendError> {
        Ok(shown(text))
    }

    /// A stored message is shown, so it counts as accepted.
    async fn find(&self, text: &Outgoing, _since: Timestamp) -> Result<Vec<Accepted>, LookError> {
        Ok(vec![shown(text)])
    }

    /// Returns nothing: this channel receives no messages.
    async fn fetch_received(&self, _sid: &str) -> Result<Option<TextFields>, LookError> {
        Ok(None)
    }
}

fn shown(text: &Outgoing) -> Accepted {
    Accepted { sid: format!("console-{}", text.id), created_at: None }
}
