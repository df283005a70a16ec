//! Addresses of users: phone numbers, and accounts on channels without phone numbers.

use std::fmt;

use super::channel::{Channel, UserNames};

/// Phone number in E.164 format: `+`, then 7 to 15 digits that do not start with 0.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PhoneNumber(String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a phone number with country code such as +15550100123")]
pub struct InvalidPhoneNumber;

impl PhoneNumber {
    pub fn parse(text: &str) -> Result<Self, InvalidPhoneNumber> {
        let digits = text.strip_prefix('+').ok_or(InvalidPhoneNumber)?;
        let is_valid = (7..=15).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        if is_valid { Ok(Self(text.to_owned())) } else { Err(InvalidPhoneNumber) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Formats the number for users: in groups of digits for North America, otherwise unchanged.
    pub fn format_grouped(&self) -> String {
        match self.0.strip_prefix("+1") {
            Some(rest) if rest.len() == 10 => format!("+1 {} {} {}", &rest[..3], &rest[3..6], &rest[6..]),
            _ => self.0.clone(),
        }
    }

    /// Returns the masked form for logs, which shows only the last two digits.
    pub fn masked(&self) -> String {
        format!("+***{}", &self.0[self.0.len() - 2..])
    }
}

/// Masked debug output, so that a stray `{:?}` cannot put a number into a log.
impl fmt::Debug for PhoneNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

/// Address by which messages of a user are recognized, and to which messages are sent.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum UserAddress {
    /// Phone number, by which all channels with phone numbers know the user.
    Phone(PhoneNumber),
    Account(ChannelAccount),
}

/// Account on a channel without phone numbers.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ChannelAccount {
    channel_word: String,
    name: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an account of a channel such as word:name")]
pub struct InvalidAccount;

impl ChannelAccount {
    /// Maximum length of the name of an account.
    const MAX_NAME: usize = 64;

    pub fn new(channel_word: &str, name: &str) -> Result<Self, InvalidAccount> {
        let is_word = !channel_word.is_empty() && channel_word.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_name = (1..=Self::MAX_NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte));
        match is_word && is_name {
            true => Ok(Self { channel_word: channel_word.to_owned(), name: name.to_owned() }),
            false => Err(InvalidAccount),
        }
    }
}

impl UserAddress {
    /// Parses the stored form: a phone number, or `word:name` of an account.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(phone) = PhoneNumber::parse(text) {
            return Some(Self::Phone(phone));
        }
        let (word, name) = text.split_once(':')?;
        ChannelAccount::new(word, name).ok().map(Self::Account)
    }

    /// Returns the stored form.
    pub fn to_text(&self) -> String {
        match self {
            Self::Phone(phone) => phone.as_str().to_owned(),
            Self::Account(account) => format!("{}:{}", account.channel_word, account.name),
        }
    }

    /// Returns the address without its channel, as it follows the prefix of the channel.
    pub fn name(&self) -> &str {
        match self {
            Self::Phone(phone) => phone.as_str(),
            Self::Account(account) => &account.name,
        }
    }

    pub fn phone(&self) -> Option<&PhoneNumber> {
        match self {
            Self::Phone(phone) => Some(phone),
            Self::Account(_) => None,
        }
    }

    /// Returns whether the address is that of a group. Its name begins with a minus sign, as group chats have at Telegram.
    pub fn is_group(&self) -> bool {
        matches!(self, Self::Account(account) if account.name.starts_with('-'))
    }

    /// Formats the address for people: a number in groups of digits, or the channel and the account.
    pub fn format_grouped(&self) -> String {
        match self {
            Self::Phone(phone) => phone.format_grouped(),
            Self::Account(account) => format!("{} {}", account.channel_word, account.name),
        }
    }

    /// Returns whether a channel can send messages to the address.
    pub fn is_on(&self, channel: Channel) -> bool {
        channel.is_shown()
            || match self {
                Self::Phone(_) => channel.profile().user_names == UserNames::PhoneNumbers,
                Self::Account(account) => account.channel_word == channel.word(),
            }
    }
}

impl From<PhoneNumber> for UserAddress {
    fn from(phone: PhoneNumber) -> Self {
        Self::Phone(phone)
    }
}

impl From<&PhoneNumber> for UserAddress {
    fn from(phone: &PhoneNumber) -> Self {
        Self::Phone(phone.clone())
    }
}

impl From<&UserAddress> for UserAddress {
    fn from(address: &UserAddress) -> Self {
        address.clone()
    }
}

/// Masked debug output, like that of a phone number.
impl fmt::Debug for UserAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Phone(phone) => phone.fmt(f),
            Self::Account(account) => write!(f, "{}:***", account.channel_word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::channel_list::{SMSGATE, TERMINAL, TWILIO};

    #[test]
    fn stored_form_is_read_back_as_the_same_address() {
        for (text, name) in [("+15550100001", "+15550100001"), ("pigeon:501", "501")] {
            let address = UserAddress::parse(text).unwrap();
            assert_eq!((address.to_text().as_str(), address.name()), (text, name));
        }
        for text in ["", "501", "+1", ":501", "pigeon:", "Pigeon:501", "pigeon:5 1", "pigeon:+1:2"] {
            assert_eq!(UserAddress::parse(text), None, "{text}");
        }
    }

    #[test]
    fn phone_number_is_on_all_channels_with_phone_numbers() {
        let (phone, account) =
            (UserAddress::parse("+15550100001").unwrap(), UserAddress::parse("pigeon:501").unwrap());
        assert!(phone.is_on(TWILIO) && phone.is_on(SMSGATE));
        assert!(!account.is_on(TWILIO) && !account.is_on(SMSGATE) && account.is_on(TERMINAL));
    }

    #[test]
    fn debug_output_hides_the_account() {
        let account = UserAddress::parse("pigeon:501").unwrap();
        assert_eq!(
            format!("{account:?} {:?}", UserAddress::parse("+15550100123")),
            "pigeon:*** Some(+***23)"
        );
    }
}
