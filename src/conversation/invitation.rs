//! Invitations: a link that makes the person who opens it a member, once.

use std::fmt;

use jiff::SignedDuration;

/// Period in which an invitation can be used.
pub const INVITATION_VALIDITY: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Reply to an admin who invites somebody while no channel has links.
pub const NO_LINKS: &str = "I can only invite with a link on Telegram, and no Telegram bot is set up. New people can simply text me.";
/// Reply to a person who uses an invitation and is known already.
pub const ALREADY_IN: &str = "You are in already. The link still works for somebody new.";

/// Code of an invitation: 24 letters and digits, which cannot be guessed.
#[derive(Clone, PartialEq, Eq)]
pub struct InvitationCode(String);

impl InvitationCode {
    const LENGTH: usize = 24;
    /// 32 characters without those that look alike.
    const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

    /// Returns the code of a random number, of which 120 bits are used.
    pub fn from_random(mut number: u128) -> Self {
        let mut code = String::with_capacity(Self::LENGTH);
        for _ in 0..Self::LENGTH {
            code.push(char::from(Self::ALPHABET[(number % 32) as usize]));
            number /= 32;
        }
        Self(code)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the payload of a link with the code.
    pub fn to_payload(&self) -> String {
        format!("invite-{}", self.0)
    }
}

/// Masked debug output, so that no code is logged.
impl fmt::Debug for InvitationCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InvitationCode")
    }
}

/// Parses the whole of `text` as the use of an invitation: "invite CODE", as a link makes the app send it.
pub fn parse_invitation(text: &str) -> Option<InvitationCode> {
    let (word, code) = text.trim().split_once(' ')?;
    let code = code.trim();
    let is_code = code.len() == InvitationCode::LENGTH
        && code.bytes().all(|byte| InvitationCode::ALPHABET.contains(&byte));
    (word.eq_ignore_ascii_case("invite") && is_code).then(|| InvitationCode(code.to_owned()))
}

/// Formats the reply to an admin with the link.
pub fn format_link(name: &str, url: &str) -> String {
    format!("Send this link to {name}. It works once, within 7 days: {url}")
}

/// Formats the reply as the history keeps it, without the link.
pub fn format_sent(name: &str) -> String {
    format!("I sent you a link for {name}.")
}

/// Formats the notification of the admin who invited a person.
pub fn format_accepted(name: &str) -> String {
    format!("{name} has used your invitation and can write to me now.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_read_back_from_the_text_of_its_link() {
        let code = InvitationCode::from_random(u128::MAX - 12_345);
        assert_eq!(code.as_str().len(), 24);
        assert_eq!(parse_invitation(&code.to_payload().replace('-', " ")), Some(code));
    }

    #[test]
    fn other_texts_about_invitations_are_no_codes() {
        for text in
            ["invite", "invite Sam", "invite my brother", "link 123456", "invite abcdefghijkmnpqrstuvwxy!"]
        {
            assert_eq!(parse_invitation(text), None, "{text}");
        }
    }
}
