//! Name of a bot at Telegram, and the links that open a chat with it.

use std::fmt;

/// Name of a bot, which is shown as `@name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BotName(String);

impl BotName {
    /// Parses a name without `@`. Returns `None` if a link cannot contain it.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name.then(|| Self(name.to_owned()))
    }

    /// Returns the link that opens the chat.
    pub(crate) fn chat_link(&self) -> String {
        format!("https://t.me/{}", self.0)
    }

    /// Returns the link that opens the chat, in which one tap sends a code that links the account.
    pub(crate) fn code_link(&self, code: &str) -> String {
        format!("{}?start=link-{code}", self.chat_link())
    }
}

impl fmt::Display for BotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_contain_only_names_of_bots() {
        let name = BotName::parse("our_Films_bot").unwrap();
        assert_eq!(name.to_string(), "@our_Films_bot");
        assert_eq!(name.code_link("048213"), "https://t.me/our_Films_bot?start=link-048213");
        for text in ["", "@films_bot", "films bot", "films/../bot", "films?x"] {
            assert_eq!(BotName::parse(text), None, "{text}");
        }
    }
}
