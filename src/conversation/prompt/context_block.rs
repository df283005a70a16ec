//! Context block of a turn: what code tells the model before the messages of the user. The block is built once and
//! stored with the turn, so that all later requests repeat it unchanged and model servers can cache them.

use super::clean_text::{CONTEXT_CLOSE, CONTEXT_OPEN, clean_user_text, strip_context_marks};
use super::material::PromptContext;
use crate::conversation::people::facts::FACT_LABEL;
use crate::conversation::transcript::UserRights;

/// Maximum length of the notes.
const MAX_NOTES_BYTES: usize = 1_000;
/// Maximum length of the sentences about changes earlier on the same day.
const MAX_DIGEST_BYTES: usize = 600;

/// Heading of the recalled answers.
pub(super) const RECALL_HEADING: &str = "earlier answers, may be out of date (never new to this user):";

/// Builds the context block.
pub fn build_context_block(context: &PromptContext<'_>) -> String {
    let mut lines = vec![CONTEXT_OPEN.to_owned(), format!("now: {}", context.moment)];
    if let Some(room) = context.room {
        let room = clean_user_text(room).replace('\n', " ");
        lines.push(format!(
            "group chat: {room}; everybody there reads the answer; lines begin with their author"
        ));
    }
    if let Some(name) = context.user_name {
        lines.push(format!("user: {}", clean_user_text(name)));
    }
    lines.push(format_rights(context.rights));
    lines.extend(context.facts.iter().map(|fact| format!("{FACT_LABEL}{}", strip_context_marks(fact))));
    let mut digest = take_within(context.done_today, MAX_DIGEST_BYTES);
    if !digest.is_empty() {
        digest.reverse();
        lines.push(format!("earlier today: {}", digest.join(" ")));
    }
    lines.extend(take_within(context.notes, MAX_NOTES_BYTES));
    if !context.recalled.is_empty() {
        lines.push(RECALL_HEADING.to_owned());
        lines.extend(context.recalled.iter().map(|line| format!("- {}", strip_context_marks(line))));
    }
    lines.push(CONTEXT_CLOSE.to_owned());
    lines.join("\n")
}

/// Returns the first texts that fit into the limit together, without `[context]` marks.
fn take_within(texts: &[String], max_bytes: usize) -> Vec<String> {
    let mut bytes_left = max_bytes;
    let fitting = texts.iter().map_while(|text| {
        bytes_left = bytes_left.checked_sub(text.len())?;
        Some(strip_context_marks(text))
    });
    fitting.collect()
}

/// Formats the rights of a user: `may: search, follow, add; may not: delete (asks an admin), 4K`.
fn format_rights(rights: UserRights) -> String {
    let rights = [
        (rights.may_add(), "add", "add"),
        (rights.may_delete(), "delete", "delete (asks an admin)"),
        (rights.may_use_four_k() && rights.may_add(), "4K", "4K"),
    ];
    let permitted = ["search", "follow"].into_iter();
    let permitted = permitted.chain(rights.iter().filter(|(may, ..)| *may).map(|(_, name, _)| *name));
    let denied: Vec<&str> = rights.iter().filter(|(may, ..)| !may).map(|(_, _, name)| *name).collect();
    match denied.as_slice() {
        [] => "may: everything".to_owned(),
        _ => format!("may: {}; may not: {}", permitted.collect::<Vec<_>>().join(", "), denied.join(", ")),
    }
}
