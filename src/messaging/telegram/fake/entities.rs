//! Commands and mentions in texts. Their offsets count UTF-16 units, as Telegram's do.

use serde_json::{Value, json};

struct TextEntity<'a> {
    kind: &'static str,
    offset: usize,
    text: &'a str,
}

/// Returns the fields of a message with a text.
pub(super) fn text_json(text: &str) -> Value {
    let mut message = json!({ "text": text });
    let entities: Vec<Value> = find_entities(text)
        .iter()
        .map(|entity| json!({ "type": entity.kind, "offset": entity.offset, "length": entity.text.len() }))
        .collect();
    if !entities.is_empty() {
        message["entities"] = entities.into();
    }
    message
}

/// Returns whether a text has a command for the bot or mentions it.
pub(super) fn are_addressed(text: &str, username: &str) -> bool {
    find_entities(text).iter().any(|entity| {
        let name = entity.text.split_once('@').map(|(_, name)| name);
        match name {
            Some(name) => name.eq_ignore_ascii_case(username),
            None => entity.kind == "bot_command",
        }
    })
}

/// Finds words that begin like a command or a mention. Both consist of ASCII, so their length is the same in UTF-16.
fn find_entities(text: &str) -> Vec<TextEntity<'_>> {
    let mut entities = Vec::new();
    let mut offset = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let kind = match word.chars().next() {
            Some('/') => Some("bot_command"),
            Some('@') => Some("mention"),
            Some(_) | None => None,
        };
        if let Some(kind) = kind {
            let is_name =
                |c: char| c.is_ascii_alphanumeric() || c == '_' || (c == '@' && kind == "bot_command");
            let end = word[1..].find(|c| !is_name(c)).map_or(word.len(), |end| end + 1);
            if end > 1 {
                entities.push(TextEntity { kind, offset, text: &word[..end] });
            }
        }
        offset += word.encode_utf16().count();
    }
    entities
}
