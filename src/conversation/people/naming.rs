//! Names of users, and the search for users by name.

use crate::conversation::transcript::{PhoneNumber, User, UserAddress};

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
        let is_allowed = |c: char| c.is_alphanumeric() || " -'\u{2019}".contains(c);
        let is_name = name.chars().count() <= Self::MAX_CHARS
            && name.chars().all(is_allowed)
            && name.chars().any(char::is_alphanumeric);
        if is_name { Ok(Self(name)) } else { Err(InvalidUserName) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the display name of a user in messages to the household: the name, or the phone number.
pub fn display_name(user: &User) -> String {
    user.name.clone().unwrap_or_else(|| format_address(user))
}

/// Formats the first address of a user, which an erased user does not have.
pub fn format_address(user: &User) -> String {
    user.address.as_ref().map_or_else(|| "a former user".to_owned(), UserAddress::format_grouped)
}

/// Returns the name of an admin whom a user may ask for permission, or "an admin" if no admin has a name.
pub fn format_admin_contacts(admins: &[User]) -> String {
    admins.iter().find_map(|admin| admin.name.clone()).unwrap_or_else(|| "an admin".to_owned())
}

/// Returns the names of the parents whom a user asks, or "an admin" if none of them has a name.
pub fn format_parents(parents: &[User]) -> String {
    let names: Vec<&str> = parents.iter().filter_map(|parent| parent.name.as_deref()).collect();
    match names.as_slice() {
        [] => "an admin".to_owned(),
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        [name, ..] => (*name).to_owned(),
    }
}

/// Parses a phone number that a user typed in the place of a name, with any separators.
pub fn parse_typed_number(query: &str) -> Option<PhoneNumber> {
    let digits: String = query.chars().filter(|c| c.is_ascii_digit() || *c == '+').collect();
    PhoneNumber::parse(&digits).ok()
}

/// Returns whether two names are the same, ignoring case, surrounding spaces and quotation marks.
pub fn is_same_name(a: &str, b: &str) -> bool {
    let plain = |name: &str| name.trim().trim_matches('"').to_lowercase();
    plain(a) == plain(b)
}

/// Returns the users with a name, ignoring case and quotation marks.
pub fn find_users_by_name(users: Vec<User>, query: &str) -> Vec<User> {
    let has_name = |user: &User| user.name.as_ref().is_some_and(|name| is_same_name(name, query));
    users.into_iter().filter(has_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_letters_digits_spaces_hyphens_and_apostrophes() {
        for (text, expected) in
            [("Sam", "Sam"), (" Mary-Jane  O'Hara ", "Mary-Jane O'Hara"), ("Zoë 2", "Zoë 2")]
        {
            assert_eq!(UserName::parse(text).unwrap().as_str(), expected);
        }
        for text in ["", " ", "-", "Sam\u{7}", "<b>", "Sam!", "a name that is longer than thirty"] {
            assert_eq!(UserName::parse(text), Err(InvalidUserName), "{text}");
        }
    }
}
