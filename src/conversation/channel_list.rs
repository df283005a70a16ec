//! List of the registered channels. Each has a folder or a file in `messaging`, with the code of its port.

use super::channel::{
    AddressForm, Alphabet, Channel, ChannelProfile, ContentSupport, DeliveryKnowledge, MessageCost,
    OptOutPolicy, ReceivingWays, SenderKind,
};

/// Our address in the console.
pub(super) const CONSOLE_ADDRESS: &str = "console";
/// Our address in the terminal.
pub(super) const TERMINAL_ADDRESS: &str = "local";

/// SMS, WhatsApp and RCS through a Twilio account.
pub const TWILIO: Channel = Channel::from_profile(&ChannelProfile {
    word: "twilio",
    metric_label: "phone",
    written: "by phone",
    addresses: AddressForm::Prefixed(&["", "whatsapp:", "rcs:"]),
    senders: SenderKind::Anyone,
    opt_out: OptOutPolicy::Carrier,
    delivery: DeliveryKnowledge::Reported,
    receiving: ReceivingWays { webhook: true, polling: true },
    content: ContentSupport {
        pictures: true,
        reactions: false,
        typing: false,
        replies: false,
        alphabet: Alphabet::Gsm7,
        max_length: 1600,
    },
    cost: MessageCost::PerSegment,
});

/// Messages that only the console shows.
pub const CONSOLE: Channel = Channel::from_profile(&ChannelProfile {
    word: "console",
    metric_label: "console",
    written: "written in the console",
    addresses: AddressForm::Fixed(CONSOLE_ADDRESS),
    senders: SenderKind::Console,
    opt_out: OptOutPolicy::Ignored,
    delivery: DeliveryKnowledge::Shown,
    receiving: ReceivingWays { webhook: false, polling: false },
    content: SHOWN_CONTENT,
    cost: MessageCost::Free,
});

/// Messages at the terminal of the machine.
pub const TERMINAL: Channel = Channel::from_profile(&ChannelProfile {
    word: "local",
    metric_label: "terminal",
    written: "written in the terminal",
    addresses: AddressForm::Fixed(TERMINAL_ADDRESS),
    senders: SenderKind::Terminal,
    opt_out: OptOutPolicy::Ignored,
    delivery: DeliveryKnowledge::Shown,
    receiving: ReceivingWays { webhook: false, polling: false },
    content: SHOWN_CONTENT,
    cost: MessageCost::Free,
});

/// Content of the channels that show messages on the operator's machine. Texts are the same as by phone.
const SHOWN_CONTENT: ContentSupport = ContentSupport {
    pictures: true,
    reactions: true,
    typing: false,
    replies: false,
    alphabet: Alphabet::Gsm7,
    max_length: 1600,
};

/// All channels.
pub const CHANNELS: [Channel; 3] = [TWILIO, CONSOLE, TERMINAL];

/// Returns the channel of a stored word; `None` if no channel has it.
pub fn find_channel(word: &str) -> Option<Channel> {
    CHANNELS.into_iter().find(|channel| channel.word() == word)
}

/// Returns the channel of an address, and the prefix of the address. An address in no known form belongs to the first
/// channel, whose addresses need no prefix.
pub fn split_prefix(address: &str) -> (Channel, &str) {
    let scheme = address.split_once(':').map_or("", |(scheme, _)| &address[..=scheme.len()]);
    let has_address = |channel: &&Channel| match channel.profile().addresses {
        AddressForm::Fixed(own) => own == address,
        AddressForm::Prefixed(prefixes) => !scheme.is_empty() && prefixes.contains(&scheme),
    };
    match CHANNELS.iter().find(has_address) {
        Some(channel) if channel.is_remote() => (*channel, scheme),
        Some(channel) => (*channel, ""),
        None => (TWILIO, ""),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CHANNELS, CONSOLE, TERMINAL, TWILIO, find_channel, split_prefix};

    #[test]
    fn each_channel_is_found_by_its_own_word() {
        let words: BTreeSet<&str> = CHANNELS.iter().map(|channel| channel.word()).collect();
        assert_eq!(words.len(), CHANNELS.len());
        for channel in CHANNELS {
            assert_eq!(find_channel(channel.word()), Some(channel));
        }
        assert_eq!(find_channel("pigeon"), None);
    }

    #[test]
    fn address_tells_its_channel_and_prefix() {
        assert_eq!(split_prefix("+15550100001"), (TWILIO, ""));
        assert_eq!(split_prefix("whatsapp:+15550100001"), (TWILIO, "whatsapp:"));
        assert_eq!(split_prefix("pigeon:+15550100001"), (TWILIO, ""));
        assert_eq!(split_prefix("NETFLIX"), (TWILIO, ""));
        assert_eq!(split_prefix("console"), (CONSOLE, ""));
        assert_eq!(split_prefix("local"), (TERMINAL, ""));
    }
}
