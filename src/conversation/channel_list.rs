//! List of the registered channels. Each has a folder or a file in `messaging`, with the code of its port.

use super::channel::{
    AddressForm, AddressPrefix, Alphabet, Channel, ChannelProfile, ContentSupport, DeliveryKnowledge,
    MessageCost, OptOutPolicy, PromptOpening, ReactionSupport, ReceivingWays, SenderKind, UserNames,
};

/// Length of a page in texts, which is two or three segments.
pub const SMS_PAGE_LENGTH: usize = 320;
/// Our address in the console.
pub(super) const CONSOLE_ADDRESS: &str = "console";
/// Our address in the terminal.
pub(super) const TERMINAL_ADDRESS: &str = "local";

/// SMS, WhatsApp and RCS through a Twilio account.
pub const TWILIO: Channel = Channel::from_profile(&ChannelProfile {
    word: "twilio",
    account_slot: "carrier",
    metric_label: "phone",
    written: "by phone",
    addresses: AddressForm::Prefixed(&[
        AddressPrefix { prefix: "", messenger: "sms" },
        AddressPrefix { prefix: "whatsapp:", messenger: "whatsapp" },
        AddressPrefix { prefix: "rcs:", messenger: "rcs" },
    ]),
    user_names: UserNames::PhoneNumbers,
    senders: SenderKind::Anyone,
    opt_out: OptOutPolicy::Carrier,
    delivery: DeliveryKnowledge::Reported,
    prompt_opening: PromptOpening::Accepted,
    receiving: ReceivingWays { webhook: true, polling: true, repeat_seconds: None },
    content: ContentSupport {
        pictures: true,
        reactions: ReactionSupport::AsMessage,
        typing: false,
        replies: false,
        buttons: false,
        polls: false,
        alphabet: Alphabet::Gsm7,
        max_length: 1600,
        page_length: SMS_PAGE_LENGTH,
    },
    cost: MessageCost::PerSegment,
});

/// Prefix of the addresses of a phone with SMS Gateway for Android.
pub const SMSGATE_PREFIX: &str = "smsgate:";

/// SMS through a phone with SMS Gateway for Android.
pub const SMSGATE: Channel = Channel::from_profile(&ChannelProfile {
    word: "smsgate",
    account_slot: "smsgate",
    metric_label: "own_phone",
    written: "by phone",
    addresses: AddressForm::Prefixed(&[AddressPrefix { prefix: SMSGATE_PREFIX, messenger: "sms" }]),
    user_names: UserNames::PhoneNumbers,
    senders: SenderKind::Anyone,
    opt_out: OptOutPolicy::Ours,
    delivery: DeliveryKnowledge::Polled,
    prompt_opening: PromptOpening::Sent,
    // The app may store a text twice, with different times.
    receiving: ReceivingWays { webhook: true, polling: true, repeat_seconds: Some(10) },
    content: ContentSupport {
        pictures: false,
        reactions: ReactionSupport::AsMessage,
        typing: false,
        replies: false,
        buttons: false,
        polls: false,
        alphabet: Alphabet::Gsm7,
        max_length: 1600,
        page_length: SMS_PAGE_LENGTH,
    },
    cost: MessageCost::Free,
});

/// Prefix of the addresses of bots and people at Telegram.
pub const TELEGRAM_PREFIX: &str = "telegram:";

/// Private chats with a bot at Telegram.
pub const TELEGRAM: Channel = Channel::from_profile(&ChannelProfile {
    word: "telegram",
    account_slot: "telegram",
    metric_label: "telegram",
    written: "on Telegram",
    addresses: AddressForm::Prefixed(&[AddressPrefix { prefix: TELEGRAM_PREFIX, messenger: "telegram" }]),
    user_names: UserNames::Accounts,
    senders: SenderKind::Anyone,
    opt_out: OptOutPolicy::Ours,
    delivery: DeliveryKnowledge::AcceptedOnly,
    prompt_opening: PromptOpening::Accepted,
    receiving: ReceivingWays { webhook: true, polling: true, repeat_seconds: None },
    content: ContentSupport {
        pictures: true,
        reactions: ReactionSupport::Placed,
        typing: true,
        replies: true,
        buttons: true,
        polls: true,
        alphabet: Alphabet::Unicode,
        max_length: 4096,
        page_length: 4096,
    },
    cost: MessageCost::Free,
});

/// Messages that only the console shows.
pub const CONSOLE: Channel = Channel::from_profile(&ChannelProfile {
    word: "console",
    account_slot: "console",
    metric_label: "console",
    written: "written in the console",
    addresses: AddressForm::Fixed(CONSOLE_ADDRESS),
    user_names: UserNames::PhoneNumbers,
    senders: SenderKind::Console,
    opt_out: OptOutPolicy::Ignored,
    delivery: DeliveryKnowledge::Shown,
    prompt_opening: PromptOpening::Accepted,
    receiving: ReceivingWays { webhook: false, polling: false, repeat_seconds: None },
    content: SHOWN_CONTENT,
    cost: MessageCost::Free,
});

/// Messages at the terminal of the machine.
pub const TERMINAL: Channel = Channel::from_profile(&ChannelProfile {
    word: "local",
    account_slot: "local",
    metric_label: "terminal",
    written: "written in the terminal",
    addresses: AddressForm::Fixed(TERMINAL_ADDRESS),
    user_names: UserNames::PhoneNumbers,
    senders: SenderKind::Terminal,
    opt_out: OptOutPolicy::Ignored,
    delivery: DeliveryKnowledge::Shown,
    prompt_opening: PromptOpening::Accepted,
    receiving: ReceivingWays { webhook: false, polling: false, repeat_seconds: None },
    content: SHOWN_CONTENT,
    cost: MessageCost::Free,
});

/// Content of the channels that show messages on the operator's machine. Texts are the same as by phone.
const SHOWN_CONTENT: ContentSupport = ContentSupport {
    pictures: true,
    reactions: ReactionSupport::Shown,
    typing: false,
    replies: false,
    buttons: false,
    polls: false,
    alphabet: Alphabet::Gsm7,
    max_length: 1600,
    page_length: SMS_PAGE_LENGTH,
};

/// All channels.
pub const CHANNELS: [Channel; 5] = [TWILIO, SMSGATE, TELEGRAM, CONSOLE, TERMINAL];

/// Returns the channel of a stored word; `None` if no channel has it.
pub fn find_channel(word: &str) -> Option<Channel> {
    CHANNELS.into_iter().find(|channel| channel.word() == word)
}

/// Returns the channel whose account has this slot.
pub fn find_account_channel(slot: &str) -> Option<Channel> {
    CHANNELS.into_iter().find(|channel| channel.profile().account_slot == slot)
}

/// Returns the channel of an address, and the prefix of the address. An address in no known form belongs to the first
/// channel, whose addresses need no prefix.
pub fn split_prefix(address: &str) -> (Channel, &str) {
    let scheme = address.split_once(':').map_or("", |(scheme, _)| &address[..=scheme.len()]);
    let has_address = |channel: &&Channel| match channel.profile().addresses {
        AddressForm::Fixed(own) => own == address,
        AddressForm::Prefixed(prefixes) => {
            !scheme.is_empty() && prefixes.iter().any(|known| known.prefix == scheme)
        }
    };
    match CHANNELS.iter().find(has_address) {
        Some(channel) if channel.is_remote() => (*channel, scheme),
        Some(channel) => (*channel, ""),
        None => (TWILIO, ""),
    }
}

/// Returns the messenger of an address of ours, as people name it.
pub fn messenger(address: &str) -> &'static str {
    let (channel, prefix) = split_prefix(address);
    match channel.profile().addresses {
        AddressForm::Fixed(own) => own,
        AddressForm::Prefixed(prefixes) => {
            prefixes.iter().find(|known| known.prefix == prefix).map_or("", |known| known.messenger)
        }
    }
}

/// Returns whether people know the addresses of a channel by this messenger.
pub fn is_messenger(name: &str) -> bool {
    CHANNELS.iter().any(|channel| match channel.profile().addresses {
        AddressForm::Fixed(_) => false,
        AddressForm::Prefixed(prefixes) => prefixes.iter().any(|known| known.messenger == name),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CHANNELS, CONSOLE, SMSGATE, TELEGRAM, TERMINAL, TWILIO, find_channel, split_prefix};

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
        assert_eq!(split_prefix("smsgate:+15550100001"), (SMSGATE, "smsgate:"));
        assert_eq!(split_prefix("telegram:501"), (TELEGRAM, "telegram:"));
        assert_eq!(split_prefix("pigeon:+15550100001"), (TWILIO, ""));
        assert_eq!(split_prefix("NETFLIX"), (TWILIO, ""));
        assert_eq!(split_prefix("console"), (CONSOLE, ""));
        assert_eq!(split_prefix("local"), (TERMINAL, ""));
    }
}
