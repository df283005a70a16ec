//! Indication to a person that their answer is being written, on channels that show it.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::engine::reply_address::ReplyAddress;
use crate::messaging::channel_ports::ChannelPorts;

/// Time before the first indication. Answers by code are faster.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// Interval between indications, of which each lasts about five seconds.
const INTERVAL: Duration = Duration::from_secs(4);

/// Indication that ends when it is dropped.
pub(super) struct TypingIndicator(JoinHandle<()>);

impl TypingIndicator {
    /// Starts to indicate that an answer to this address is being written; `None` if its channel does not show that.
    pub(super) fn start(channels: &ChannelPorts, address: &ReplyAddress) -> Option<Self> {
        let channel = address.our_address().channel();
        let port = channels.get(channel).filter(|_| channel.profile().content.typing)?;
        let to = address.recipient();
        Some(Self(tokio::spawn(async move {
            tokio::time::sleep(FIRST_DELAY).await;
            loop {
                port.show_typing(&to).await;
                tokio::time::sleep(INTERVAL).await;
            }
        })))
    }
}

impl Drop for TypingIndicator {
    fn drop(&mut self) {
        self.0.abort();
    }
}
