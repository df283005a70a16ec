//! Port of the bot that tells the simulated Telegram which row of the outbox a request sends. The Bot API has no field for it.

use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use dialarr::conversation::channel::Channel;
use dialarr::conversation::routing::inbound_message::ReceivedMessage;
use dialarr::conversation::transcript::Address;
use dialarr::messaging::telegram::Telegram;
use dialarr::messaging::{
    CarrierReceipt, ChannelPort, InboundPage, LookupError, OutboundMessage, Poll, SendError,
};
use jiff::Timestamp;
use tokio::time::Instant;

tokio::task_local! {
    /// Row that the current task sends.
    static ROW: i64;
}

/// Returns the row that the current task sends.
pub(crate) fn row_being_sent() -> Option<i64> {
    ROW.try_with(|row| *row).ok()
}

pub(crate) struct NumberedPort(pub(crate) Telegram);

#[async_trait]
impl ChannelPort for NumberedPort {
    fn channel(&self) -> Channel {
        self.0.channel()
    }

    fn reserve_slot(&self, message: &OutboundMessage) -> Result<Option<Instant>, SendError> {
        self.0.reserve_slot(message)
    }

    async fn send(&self, message: &OutboundMessage) -> Result<CarrierReceipt, SendError> {
        ROW.scope(message.id.0, self.0.send(message)).await
    }

    async fn find_accepted(
        &self,
        message: &OutboundMessage,
        since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookupError> {
        self.0.find_accepted(message, since).await
    }

    fn source(&self) -> Option<String> {
        self.0.source()
    }

    async fn poll_received(&self, poll: &Poll) -> Result<InboundPage, LookupError> {
        self.0.poll_received(poll).await
    }

    fn poll_timeout(&self) -> Duration {
        self.0.poll_timeout()
    }

    fn acknowledgement(&self, message: &ReceivedMessage) -> Option<(&'static str, Cow<'static, str>)> {
        self.0.acknowledgement(message)
    }

    fn start_link(&self) -> Option<String> {
        self.0.start_link()
    }

    async fn show_typing(&self, to: &Address) {
        self.0.show_typing(to).await;
    }

    fn record_timeout(&self) {
        self.0.record_timeout();
    }

    fn last_outcome(&self) -> Option<Result<(), String>> {
        self.0.last_outcome()
    }

    fn account_identity(&self) -> Option<String> {
        self.0.account_identity()
    }
}
