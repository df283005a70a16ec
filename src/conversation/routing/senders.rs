//! Our configured addresses, from which messages are sent that are no replies.

use crate::conversation::channel::Channel;
use crate::conversation::transcript::{Address, UserAddress};

/// Our configured addresses, at most one per channel. The first one is the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Senders(Vec<Address>);

impl Senders {
    pub fn from_addresses(addresses: Vec<Address>) -> Self {
        Self(addresses)
    }

    pub fn on_channel(&self, channel: Channel) -> Option<&Address> {
        self.0.iter().find(|address| address.channel() == channel)
    }

    /// Returns these addresses, or only `other` if there are none.
    #[must_use]
    pub fn or_address(&self, other: &Address) -> Self {
        if self.0.is_empty() { Self(vec![other.clone()]) } else { self.clone() }
    }

    /// Returns the address from which the user's address gets messages, if the user last wrote to `last`: the same
    /// messenger, else the address of the same channel, which may have changed, else the first that can send to it.
    pub fn choose(&self, last: Option<Address>, user: &UserAddress) -> Option<Address> {
        let default = self.0.iter().find(|address| user.is_on(address.channel())).cloned();
        let Some(last) = last.filter(|last| user.is_on(last.channel())) else { return default };
        match self.on_channel(last.channel()) {
            Some(current) if current.prefix() == last.prefix() => Some(current.clone()),
            Some(_) => Some(last),
            None => Some(default.unwrap_or(last)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Senders {
        Senders::from_addresses(texts.iter().map(|text| Address::new(*text)).collect())
    }

    #[track_caller]
    fn check(senders: &[&str], last: Option<&str>, expected: Option<&str>) {
        let chosen =
            addresses(senders).choose(last.map(Address::new), &UserAddress::parse("+15550100001").unwrap());
        assert_eq!(chosen.as_ref().map(Address::as_str), expected);
    }

    #[test]
    fn message_is_sent_on_the_last_channel_if_it_is_configured() {
        let both = ["+15550100000", "smsgate:+15550100009"];
        check(&both, None, Some("+15550100000"));
        check(&both, Some("+15550100007"), Some("+15550100000"));
        check(&both, Some("whatsapp:+15550100007"), Some("whatsapp:+15550100007"));
        check(&both, Some("smsgate:+15550100008"), Some("smsgate:+15550100009"));
        check(&both[..1], Some("smsgate:+15550100008"), Some("+15550100000"));
        check(&[], Some("+15550100007"), Some("+15550100007"));
        check(&[], None, None);
    }
}
