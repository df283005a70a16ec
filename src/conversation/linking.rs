//! Linking of another phone or account to a user, by codes that are sent in messages.

use jiff::SignedDuration;

use crate::conversation::channel_list;
use crate::conversation::transcript::{PhoneNumber, UserAddress};

/// Period in which a code can be used.
pub const CODE_VALIDITY: SignedDuration = SignedDuration::from_mins(10);
/// Number of wrong codes after which all open codes end.
pub const MAX_MISSES: i64 = 5;
/// Maximum number of addresses of a user.
pub const MAX_ADDRESSES: usize = 8;

/// Code of six digits, which links an address to a user.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkCode(String);

impl LinkCode {
    const DIGITS: usize = 6;

    /// Returns the code with this number; `None` if it has more than six digits.
    pub fn from_number(number: u32) -> Option<Self> {
        (number < 1_000_000).then(|| Self(format!("{number:06}")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Masked debug output, so that no code is logged.
impl std::fmt::Debug for LinkCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("******")
    }
}

/// Command about linked addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkCommand {
    /// Send a code for another phone or account.
    Start,
    Use(LinkCode),
}

/// Parses the whole of `text` as a command about linked addresses: "link", "link my phone", "link 123456".
pub fn parse_link_command(text: &str) -> Option<LinkCommand> {
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let (first, rest) = words.split_first()?;
    if first != "link" {
        return None;
    }
    let digits: String = rest.concat();
    if digits.len() == LinkCode::DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(LinkCommand::Use(LinkCode(digits)));
    }
    let is_about_phone = rest.iter().all(|word| LINKED_WORDS.contains(&word.as_str()));
    is_about_phone.then_some(LinkCommand::Start)
}

/// Words after "link" that name what is linked.
const LINKED_WORDS: [&str; 13] = [
    "a", "an", "my", "this", "another", "other", "new", "second", "phone", "number", "account", "app",
    "please",
];

/// Address at which a user prefers notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreferredAddress {
    /// The address from which the command was sent.
    Here,
    /// The address that the user last used.
    LastUsed,
    Phone(PhoneNumber),
    /// Messenger of the address, such as "whatsapp".
    Messenger(String),
}

/// Parses the whole of `text` as a command that chooses where notifications go: "text me here", "text me on WhatsApp".
pub fn parse_preferred_address(text: &str) -> Option<PreferredAddress> {
    let text = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    let rest = ["text me ", "notify me ", "message me "].iter().find_map(|start| text.strip_prefix(start))?;
    let target =
        ["on ", "at ", "by ", "through "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
    let target = target.trim();
    match target {
        "here" | "this number" | "this phone" | "this account" | "this one" => {
            return Some(PreferredAddress::Here);
        }
        "anywhere" | "where i last texted" | "where i last wrote" | "my last number" => {
            return Some(PreferredAddress::LastUsed);
        }
        _ => {}
    }
    let digits: String = target.chars().filter(|c| c.is_ascii_digit() || *c == '+').collect();
    if target.starts_with('+') {
        return PhoneNumber::parse(&digits).ok().map(PreferredAddress::Phone);
    }
    let is_messenger = rest != target && channel_list::is_messenger(target);
    is_messenger.then(|| PreferredAddress::Messenger(target.to_owned()))
}

/// Formats the answer to "link".
pub fn format_first_code(code: &LinkCode) -> String {
    format!(
        "Text LINK {} to me from your other phone or app within 10 minutes. Give the code to nobody: it lets them act \
         as you.",
        code.as_str()
    )
}

/// Formats the message to a new phone number, whose code proves that the number is the user's.
pub fn format_second_code(code: &LinkCode) -> String {
    format!(
        "Almost done. Now text LINK {} from the phone or app that you already use with me, within 10 minutes.",
        code.as_str()
    )
}

/// Formats the message to an address that was linked.
pub fn format_welcome(name: &str) -> String {
    format!("Linked. I know you as {name} here too.")
}

/// Formats the message to the other addresses of the user.
pub fn format_linked(address: &UserAddress) -> String {
    format!(
        "{} is yours too now: texts from it count as yours. If this was not you, tell the person who runs me.",
        address.format_grouped()
    )
}

/// Formats the notification of the admins.
pub fn format_admin_notice(name: &str, address: &UserAddress) -> String {
    format!("{name} linked {}: texts from it count as {name}'s.", address.format_grouped())
}

/// Formats the answer to a command that chooses where notifications go.
pub fn format_preference(address: Option<&UserAddress>) -> String {
    match address {
        Some(address) => {
            format!("OK, news goes to {}. Answers still go where you ask.", address.format_grouped())
        }
        None => "OK, news goes to where you last texted me.".to_owned(),
    }
}

pub const CODE_REFUSED: &str = "That code does not work, or it is too old. Text LINK for a new one.";
pub const ADDRESS_TAKEN: &str =
    "This one belongs to somebody else I know, so I can't link it. The person who runs me can join the two.";
pub const ALREADY_YOURS: &str = "This one is yours already. Text the code from the other phone or app.";
pub const TYPE_ELSEWHERE: &str = "Text this code from the phone or app that you already use with me.";
pub const TOO_MANY: &str =
    "You have too many phones and apps already. The person who runs me can remove one.";
pub const ADDRESS_UNKNOWN: &str =
    "I don't know that phone or app of yours. Text me from it first, or text LINK.";
pub const FIRST_ADMIN: &str = "Welcome. You run this household now: people who text me need your approval. Text COMMANDS \
                               for what I can do.";

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Option<LinkCommand> {
        Some(LinkCommand::Use(LinkCode(text.to_owned())))
    }

    #[test]
    fn link_command_is_a_whole_message_with_or_without_code() {
        for text in ["link", "LINK", " Link my phone. ", "link another number please", "Link this phone!"] {
            assert_eq!(parse_link_command(text), Some(LinkCommand::Start), "{text}");
        }
        for text in ["link 048213", "LINK 048213.", "Link: 048 213", "link 048-213"] {
            assert_eq!(parse_link_command(text), code("048213"), "{text}");
        }
        for text in [
            "",
            "link 12345",
            "link 1234567",
            "linked 123456",
            "link to the past",
            "add link 123456",
            "link jellyfin",
            "link my plex account",
            "link jellyfin sam",
        ] {
            assert_eq!(parse_link_command(text), None, "{text}");
        }
    }

    #[test]
    fn preferred_address_is_a_place_a_number_or_a_messenger() {
        for (text, expected) in [
            ("Text me here.", PreferredAddress::Here),
            ("text me on this number", PreferredAddress::Here),
            ("text me where I last texted", PreferredAddress::LastUsed),
            ("text me on WhatsApp", PreferredAddress::Messenger("whatsapp".to_owned())),
            ("Notify me by sms", PreferredAddress::Messenger("sms".to_owned())),
            (
                "text me at +1 555 010 0009",
                PreferredAddress::Phone(PhoneNumber::parse("+15550100009").unwrap()),
            ),
        ] {
            assert_eq!(parse_preferred_address(text), Some(expected), "{text}");
        }
        for text in ["text me", "text me when dune is ready", "text me on friday", "notify me on release"] {
            assert_eq!(parse_preferred_address(text), None, "{text}");
        }
    }
}
