//! Difference between the current and the target value of a setting.

use std::fmt;

use url::Url;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingDiff {
    name: &'static str,
    current: String,
    target: String,
}

impl SettingDiff {
    pub(super) fn new(name: &'static str, current: impl Into<String>, target: impl Into<String>) -> Self {
        Self { name, current: or_none(current.into()), target: or_none(target.into()) }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Compares two values. Returns `None` if they are equal.
    pub(super) fn between(name: &'static str, current: &str, target: &str) -> Option<Self> {
        (current != target).then(|| Self::new(name, current, target))
    }

    /// Compares two URLs, whose secrets are not shown.
    pub(super) fn between_urls(name: &'static str, current: &str, target: &str) -> Option<Self> {
        (current != target).then(|| Self::new(name, without_secrets(current), without_secrets(target)))
    }
}

impl fmt::Display for SettingDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.name, self.current, self.target)
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() { "none".to_owned() } else { text }
}

/// Removes user name, password and query from a URL, which may be secrets.
pub(super) fn without_secrets(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let Ok(mut url) = Url::parse(text) else { return "an invalid URL".to_owned() };
    // A URL without a host rejects the changes, but has neither part.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let has_query = url.query().is_some();
    url.set_query(has_query.then_some("..."));
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_shown_without_possible_secrets() {
        let shown = ["https://me:pass@old.example/sms?token=1#rc=2", "", "old", "https://old.example/sms"]
            .map(without_secrets);
        let expected = ["https://old.example/sms?...#rc=2", "", "an invalid URL", "https://old.example/sms"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn equal_values_have_no_diff() {
        assert_eq!(SettingDiff::between("method", "POST", "POST"), None);
        let diff = SettingDiff::between("method", "", "POST").map(|diff| diff.to_string());
        assert_eq!(diff.as_deref(), Some("method: none -> POST"));
    }
}
