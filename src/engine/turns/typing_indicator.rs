//! Typing indicator, on channels that have one.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::engine::reply_address::ReplyAddress;
use crate::messaging::channel_ports::ChannelPorts;

/// Time before the indicator is first shown. Answers by code are faster.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// Interval at which it is shown again. A channel shows it for about five seconds.
const INTERVAL: Duration = Duration::from_secs(4);

/// Typing indicator that is shown until it is dropped.
pub(super) struct TypingIndicator(JoinHandle<()>);

impl TypingIndicator {
    /// Shows the indicator to a recipient; `None` if the channel has no indicator.
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
