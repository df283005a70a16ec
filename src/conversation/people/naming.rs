//! Names of users, and the search for a user by name.

use crate::conversation::transcript::{PhoneNumber, User};

/// Name of a user: letters, digits, spaces, hyphens and apostrophes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserName(String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a name: at most 30 letters, digits, spaces, hyphens and apostrophes")]
pub struct InvalidUserName;

impl UserName {
    const MAX_CHARS: usize = 30;

    pub fn parse(text: &str) -> Result<Self, InvalidUserName> {
        let name = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let may_stand = |mark: char| mark.is_alphanumeric() || " -'\u{2019}".contains(mark);
        let is_name = name.chars().count() <= Self::MAX_CHARS
            && name.chars().all(may_stand)
            && name.chars().any(char::is_alphanumeric);
        if is_name { Ok(Self(name)) } else { Err(InvalidUserName) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the display name of a user in messages to the household: the name, or the phone number.
pub fn display_name(user: &User) -> String {
    user.name.clone().unwrap_or_else(|| user.phone.format_grouped())
}

/// Formats the names of the admins, whom a user without a right may ask.
pub fn format_admin_contacts(admins: &[User]) -> String {
    admins.iter().find_map(|admin| admin.name.clone()).unwrap_or_else(|| "an admin".to_owned())
}

/// Returns every user who matches `who`: a phone number, or a name in any case.
pub fn find_users<'u>(users: &'u [User], who: &str) -> Vec<&'u User> {
    let digits: String = who.chars().filter(|c| c.is_ascii_digit() || *c == '+').collect();
    let phone = PhoneNumber::parse(&digits).ok();
    let wanted = who.trim_matches('"').to_lowercase();
    users
        .iter()
        .filter(|user| {
            let by_name = user.name.as_ref().is_some_and(|name| name.to_lowercase() == wanted);
            by_name || phone.as_ref().is_some_and(|phone| *phone == user.phone)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_letters_digits_spaces_hyphens_and_apostrophes() {
        for (text, name) in [("Sam", "Sam"), (" Mary-Jane  O'Hara ", "Mary-Jane O'Hara"), ("Zoë 2", "Zoë 2")]
        {
            assert_eq!(UserName::parse(text).unwrap().as_str(), name);
        }
        for text in ["", " ", "-", "Sam\u{7}", "<b>", "Sam!", "a name that is longer than thirty"] {
            assert_eq!(UserName::parse(text), Err(InvalidUserName), "{text}");
        }
    }
}
