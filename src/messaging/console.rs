//! Channel for messages that only the console shows.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{CarrierReceipt, ChannelPort, LookupError, OutboundMessage, SendError};
use crate::conversation::channel::Channel;
use crate::conversation::channel_list;

/// Channel that accepts each message without sending it, because the console shows the stored message.
#[derive(Debug, Clone, Copy)]
pub struct ConsoleChannel;

#[async_trait]
impl ChannelPort for ConsoleChannel {
    fn channel(&self) -> Channel {
        channel_list::CONSOLE
    }

    async fn send(&self, message: &OutboundMessage) -> Result<CarrierReceipt, SendError> {
        Ok(receipt_for_message(message))
    }

    /// Returns the message as accepted, because every stored message is shown.
    async fn find_accepted(
        &self,
        message: &OutboundMessage,
        _since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookupError> {
        Ok(vec![receipt_for_message(message)])
    }
}

fn receipt_for_message(message: &OutboundMessage) -> CarrierReceipt {
    CarrierReceipt { sid: format!("console-{}", message.id), created_at: None, poll: None }
}
