//! Channel for messages to a user at the terminal.

use std::io::{self, Write};

use async_trait::async_trait;
use jiff::Timestamp;

use super::{CarrierReceipt, ChannelPort, LookupError, OutboundMessage, SendError};
use crate::conversation::channel::Channel;
use crate::conversation::channel_list;

/// Channel that prints each message to standard output and accepts it at once.
#[derive(Debug, Clone, Copy)]
pub struct TerminalChannel;

#[async_trait]
impl ChannelPort for TerminalChannel {
    fn channel(&self) -> Channel {
        channel_list::TERMINAL
    }

    async fn send(&self, message: &OutboundMessage) -> Result<CarrierReceipt, SendError> {
        print_message(message, &mut io::stdout().lock())
            .map_err(|error| SendError::Permanent { code: None, meaning: error.to_string() })?;
        Ok(CarrierReceipt { sid: format!("terminal-{}", message.id), created_at: None, poll: None })
    }

    /// Returns nothing, because a terminal keeps no record. A message that may not have been printed is printed again.
    async fn find_accepted(
        &self,
        _message: &OutboundMessage,
        _since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookupError> {
        Ok(Vec::new())
    }
}

/// Prints a message. Unlike with `println!`, a closed pipe is an error that the outbox records, not a panic.
fn print_message(message: &OutboundMessage, out: &mut impl Write) -> io::Result<()> {
    for line in message.body.lines().chain(message.media.iter().map(String::as_str)) {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::print_message;
    use crate::conversation::transcript::{Address, OutboxId};
    use crate::messaging::OutboundMessage;
    use crate::store::queue::callbacks::CallbackToken;

    #[test]
    fn message_is_printed_with_its_media_last() {
        let message = OutboundMessage {
            id: OutboxId(1),
            attempt: 1,
            to: Address::new("+15550100001"),
            from: Address::new("+15550100000"),
            body: "Added Dune.\nReply MORE".into(),
            media: vec!["https://sms.example/poster.jpg".into()],
            reacts_to: None,
            quotes: None,
            poll: None,
            buttons: Vec::new(),
            valid_for: Duration::from_secs(3600),
            callback_token: CallbackToken::from_stored("0123"),
        };
        let mut out = Vec::new();
        print_message(&message, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "Added Dune.\nReply MORE\nhttps://sms.example/poster.jpg\n"
        );
    }
}
