//! Text of users and tools in a prompt, without the marks of the context block.

pub(super) const CONTEXT_OPEN: &str = "[context]";
pub(super) const CONTEXT_CLOSE: &str = "[/context]";

/// Maximum length of a user's message; the rest is cut off.
pub(super) const MAX_TEXT_CHARS: usize = 4_000;

/// Returns the text of a user, truncated and without `[context]` marks.
pub(super) fn clean_user_text(text: &str) -> String {
    truncate_chars(&strip_context_marks(text), MAX_TEXT_CHARS).to_owned()
}

/// Removes the `[context]` marks from untrusted text, including nested ones.
pub(super) fn strip_context_marks(text: impl Into<String>) -> String {
    let mut text = text.into();
    while text.contains(CONTEXT_OPEN) || text.contains(CONTEXT_CLOSE) {
        text = text.replace(CONTEXT_OPEN, "").replace(CONTEXT_CLOSE, "");
    }
    text
}

pub(super) fn truncate_chars(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}
