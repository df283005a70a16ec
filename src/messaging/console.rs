//! Channel for messages of test conversations: nothing is sent.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{CarrierReceipt, LookError, MessageChannel, OutboundMessage, SendError};
use crate::conversation::routing::verification::MessageFields;

/// Channel that accepts each message at once: the console shows the stored message.
#[derive(Debug, Clone, Copy)]
pub struct ConsoleChannel;

#[async_trait]
impl MessageChannel for ConsoleChannel {
    async fn send(&self, text: &OutboundMessage) -> Result<CarrierReceipt, SendError> {
        Ok(receipt_of_shown(text))
    }

    /// Returns the message as accepted: every stored message is shown.
    async fn find_accepted(
        &self,
        text: &OutboundMessage,
        _since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookError> {
        Ok(vec![receipt_of_shown(text)])
    }

    /// Returns nothing: this channel receives no messages.
    async fn fetch_received(&self, _sid: &str) -> Result<Option<MessageFields>, LookError> {
        Ok(None)
    }
}

fn receipt_of_shown(text: &OutboundMessage) -> CarrierReceipt {
    CarrierReceipt { sid: format!("console-{}", text.id), created_at: None }
}
