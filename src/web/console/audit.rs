//! Audit log page: recorded changes with their authors.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;

use super::audit_labels::{KINDS, change_label};
use super::format::{UserLink, turn_path};
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use super::responses::{PageParams, PageResult};
use crate::conversation::text::message_format;
use crate::store::console::NEWEST;
use crate::store::console::audit::{self, AuditActor, AuditEntry, AuditEntrySubject, ConversationLink};
use crate::store::console::user_ref::UserRef;
use crate::web::auth::Operator;
use crate::web::console_state::ConsoleState;

const PAGE_ROWS: usize = 50;

/// Keys of an entry that are not listed in its details: those shown elsewhere in the row, and ids and arguments of
/// calls, which mean nothing to a reader.
const KEYS_WITHOUT_DETAIL: [&str; 10] =
    ["by", "title", "tool", "user", "text", "conversation", "status", "arguments", "id", "item"];
/// Most bytes of details that appear in the line itself.
const MAX_INLINE_BYTES: usize = 120;

#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct AuditQuery {
    #[serde(default)]
    kind: String,
    before: Option<i64>,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    layout: PageLayout,
    kinds: Vec<(&'static str, &'static str, bool)>,
    lines: Vec<AuditRow>,
    older: Option<String>,
}

struct AuditRow {
    at: DisplayTime,
    actor: LinkedText,
    action: String,
    subject: Vec<LinkedText>,
    title: Option<String>,
    /// Details such as `movies: 3`.
    details: Vec<String>,
}

/// Text with an optional link.
struct LinkedText {
    text: String,
    path: Option<String>,
}

pub(in crate::web) async fn show_audit(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(query): PageParams<AuditQuery>,
) -> PageResult {
    let before = query.before.unwrap_or(NEWEST);
    let kind = KINDS.iter().map(|(kind, _)| *kind).find(|kind| *kind == query.kind);
    let entries =
        console.db.read(move |conn| audit::load_audit_entries(conn, kind, before, PAGE_ROWS)).await?;
    let filter = kind.map(|kind| format!("kind={kind}&")).unwrap_or_default();
    Ok(render_page(&AuditPage {
        layout: PageLayout::new(&operator, ConsoleSection::Audit, "Audit"),
        kinds: KINDS.map(|(option, name)| (option, name, Some(option) == kind)).to_vec(),
        lines: entries.rows.iter().map(|entry| AuditRow::from_entry(entry, &console)).collect(),
        older: entries.older.map(|id| format!("/audit?{filter}before={id}")),
    }))
}

impl AuditRow {
    fn from_entry(entry: &AuditEntry, console: &ConsoleState) -> Self {
        let known = KINDS.iter().find(|(kind, _)| *kind == entry.kind);
        // A kind that the page does not know is shown unchanged, with all recorded details.
        let hidden_keys = if known.is_some() { &KEYS_WITHOUT_DETAIL[..] } else { &KEYS_WITHOUT_DETAIL[..1] };
        let mut details = Vec::new();
        for (key, value) in entry.detail.as_object().into_iter().flatten() {
            let is_name_of_subject = key == "name" && matches!(entry.subject, AuditEntrySubject::Key(_));
            if !is_name_of_subject && !hidden_keys.contains(&key.as_str()) {
                push_detail(&mut details, key, value);
            }
        }
        Self {
            at: console.display_time(entry.at),
            actor: match &entry.actor {
                AuditActor::User(user) => user.into(),
                AuditActor::Shell => LinkedText::without_link("You, at the shell"),
                AuditActor::Console => LinkedText::without_link("You, in the console"),
                AuditActor::Key(name) => LinkedText::without_link(&format!("API key {name}")),
                AuditActor::Dialarr => LinkedText::without_link("Dialarr"),
            },
            action: change_label(&entry.kind, &entry.detail).map(str::to_owned).unwrap_or_else(|| {
                known.map_or_else(|| entry.kind.replace('_', " "), |(_, name)| (*name).to_owned())
            }),
            subject: describe_subject(entry),
            title: entry.detail["title"].as_str().filter(|_| known.is_some()).map(str::to_owned),
            details,
        }
    }

    fn is_long(&self) -> bool {
        self.details.iter().map(String::len).sum::<usize>() > MAX_INLINE_BYTES
    }
}

fn is_actor(actor: &AuditActor, user: &UserRef) -> bool {
    matches!(actor, AuditActor::User(actor) if actor == user)
}

fn describe_subject(entry: &AuditEntry) -> Vec<LinkedText> {
    let mut subject = match &entry.subject {
        AuditEntrySubject::User(user) => vec![user.into()],
        AuditEntrySubject::Approval(user) => vec![LinkedText::without_link("Request from "), user.into()],
        // Most calls belong to the user who is named as their author.
        AuditEntrySubject::Call { tool, at: link } if is_actor(&entry.actor, &link.user) => {
            vec![LinkedText::without_link(&format!("{}, in ", tool.replace('_', " "))), link.into()]
        }
        AuditEntrySubject::Call { tool, at: link } => {
            let tool = tool.replace('_', " ");
            vec![
                LinkedText::without_link(&format!("{tool} for ")),
                (&link.user).into(),
                LinkedText::without_link(", in "),
                link.into(),
            ]
        }
        AuditEntrySubject::Turn(link) => {
            vec![
                LinkedText::without_link("A text from "),
                (&link.user).into(),
                LinkedText::without_link(", in "),
                link.into(),
            ]
        }
        AuditEntrySubject::Household => vec![LinkedText::without_link("The household")],
        AuditEntrySubject::Console => vec![LinkedText::without_link("The console")],
        AuditEntrySubject::Settings => vec![LinkedText::without_link("The configuration")],
        AuditEntrySubject::Webhooks => vec![LinkedText::without_link("The webhooks")],
        AuditEntrySubject::Key(name) => {
            vec![LinkedText::without_link("Key "), LinkedText::with_link(name, "/keys".to_owned())]
        }
        AuditEntrySubject::Unresolved(subject) => {
            vec![LinkedText::without_link(&subject.replace([':', '_'], " "))]
        }
    };
    if let Some(id) = entry.detail["conversation"].as_i64() {
        subject.extend([
            LinkedText::without_link(", "),
            LinkedText::with_link("the conversation", format!("/conversations/{id}")),
        ]);
    }
    subject
}

impl LinkedText {
    fn without_link(text: &str) -> Self {
        Self { text: text.to_owned(), path: None }
    }

    fn with_link(text: &str, path: String) -> Self {
        Self { text: text.to_owned(), path: Some(path) }
    }
}

impl From<&UserRef> for LinkedText {
    fn from(user: &UserRef) -> Self {
        let UserLink { name, path, .. } = UserLink::from(user);
        Self { text: name, path }
    }
}

impl From<&ConversationLink> for LinkedText {
    fn from(link: &ConversationLink) -> Self {
        Self::with_link(&link.name, turn_path(link.conversation, link.turn))
    }
}

/// Adds the recorded value of a key as text.
fn push_detail(details: &mut Vec<String>, key: &str, value: &Value) {
    let text = match value {
        Value::Object(inner) => {
            return inner.iter().for_each(|(key, value)| push_detail(details, key, value));
        }
        Value::Array(list) => {
            let plain = list.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            plain.collect::<Vec<_>>().join(" ")
        }
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => match number.as_u64().filter(|_| key == "size_bytes") {
            Some(bytes) => return details.push(format!("size: {}", message_format::format_size(bytes))),
            None => number.to_string(),
        },
        Value::String(text) if key == "reason" => text.replace('_', " "),
        Value::String(text) => text.clone(),
    };
    details.push(format!("{}: {text}", key.replace('_', " ")));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::push_detail;

    #[test]
    fn recorded_details_are_formatted_as_text() {
        let mut details = Vec::new();
        let recorded =
            json!({ "delete_files": true, "ids": [3, "x"], "size_bytes": 21_400_000_000_u64, "own": null });
        push_detail(&mut details, "detail", &recorded);
        assert_eq!(details, ["delete files: yes", "ids: 3 x", "own: none", "size: 21.4 GB"]);
    }
}
