//! One setting that differs from its target, in words: the current value, and the target value.

use std::fmt;

use url::Url;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingDiff {
    what: &'static str,
    now: String,
    then: String,
}

impl SettingDiff {
    pub(super) fn new(what: &'static str, now: impl Into<String>, then: impl Into<String>) -> Self {
        Self { what, now: or_none(now.into()), then: or_none(then.into()) }
    }

    /// Compares two values; `None` if the setting is correct.
    pub(super) fn between(what: &'static str, now: &str, then: &str) -> Option<Self> {
        (now != then).then(|| Self::new(what, now, then))
    }

    /// Compares two addresses, whose secrets are not shown.
    pub(super) fn of_address(what: &'static str, now: &str, then: &str) -> Option<Self> {
        (now != then).then(|| Self::new(what, without_secrets(now), without_secrets(then)))
    }
}

impl fmt::Display for SettingDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.what, self.now, self.then)
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() { "none".to_owned() } else { text }
}

/// Removes names, passwords and queries of an address, which may be secrets.
pub(super) fn without_secrets(address: &str) -> String {
    if address.is_empty() {
        return String::new();
    }
    let Ok(mut url) = Url::parse(address) else { return "something that is no address".to_owned() };
    // An address without a host can hold neither part, and rejects the change.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let query = url.query().is_some();
    url.set_query(query.then_some("..."));
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_shown_without_possible_secrets() {
        let shown = ["https://me:pass@old.example/sms?token=1#rc=2", "", "old", "https://old.example/sms"]
            .map(without_secrets);
        let expected = [
            "https://old.example/sms?...#rc=2",
            "",
            "something that is no address",
            "https://old.example/sms",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn only_a_difference_is_a_change() {
        assert_eq!(SettingDiff::between("method", "POST", "POST"), None);
        let change = SettingDiff::between("method", "", "POST").map(|change| change.to_string());
        assert_eq!(change.as_deref(), Some("method: none -> POST"));
    }
}
