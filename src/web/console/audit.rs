//! Changes, each with its author.

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

/// Keys of a record that are shown outside its details: author, user, title and conversation. Ids and arguments of
/// calls mean nothing to a reader.
const KEYS_SHOWN_ELSEWHERE: [&str; 10] =
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
    by: LinkedText,
    what: String,
    about: Vec<LinkedText>,
    title: Option<String>,
    /// Details, such as `movies: 3`.
    details: Vec<String>,
}

/// Text fragment, some with a page of its own.
struct LinkedText {
    words: String,
    path: Option<String>,
}

pub(in crate::web) async fn show_audit(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(query): PageParams<AuditQuery>,
) -> PageResult {
    let before = query.before.unwrap_or(NEWEST);
    let kind = KINDS.iter().map(|(word, _)| *word).find(|word| *word == query.kind);
    let listed =
        console.db.read(move |conn| audit::load_audit_entries(conn, kind, before, PAGE_ROWS)).await?;
    let chosen = kind.map(|kind| format!("kind={kind}&")).unwrap_or_default();
    Ok(render_page(&AuditPage {
        layout: PageLayout::new(&operator, ConsoleSection::Audit, "Audit"),
        kinds: KINDS.map(|(word, name)| (word, name, Some(word) == kind)).to_vec(),
        lines: listed.rows.iter().map(|line| AuditRow::from_line(line, &console)).collect(),
        older: listed.older.map(|id| format!("/audit?{chosen}before={id}")),
    }))
}

impl AuditRow {
    fn from_line(line: &AuditEntry, console: &ConsoleState) -> Self {
        let known = KINDS.iter().find(|(word, _)| *word == line.kind);
        // A kind that the page does not know is shown unchanged, with all recorded details.
        let hidden_keys =
            if known.is_some() { &KEYS_SHOWN_ELSEWHERE[..] } else { &KEYS_SHOWN_ELSEWHERE[..1] };
        let mut details = Vec::new();
        for (key, value) in line.detail.as_object().into_iter().flatten() {
            let is_name_of_subject = key == "name" && matches!(line.subject, AuditEntrySubject::Key(_));
            if !is_name_of_subject && !hidden_keys.contains(&key.as_str()) {
                push_detail(&mut details, key, value);
            }
        }
        Self {
            at: console.display_time(line.at),
            by: match &line.actor {
                AuditActor::User(who) => who.into(),
                AuditActor::Shell => LinkedText::without_link("You, at the shell"),
                AuditActor::Console => LinkedText::without_link("You, in the console"),
                AuditActor::Key(name) => LinkedText::without_link(&format!("API key {name}")),
                AuditActor::Dialarr => LinkedText::without_link("Dialarr"),
            },
            what: change_label(&line.kind, &line.detail).map(str::to_owned).unwrap_or_else(|| {
                known.map_or_else(|| line.kind.replace('_', " "), |(_, name)| (*name).to_owned())
            }),
            about: describe_subject(line),
            title: line.detail["title"].as_str().filter(|_| known.is_some()).map(str::to_owned),
            details,
        }
    }

    fn is_long(&self) -> bool {
        self.details.iter().map(String::len).sum::<usize>() > MAX_INLINE_BYTES
    }
}

fn describe_subject(line: &AuditEntry) -> Vec<LinkedText> {
    let mut about = match &line.subject {
        AuditEntrySubject::User(who) => vec![who.into()],
        AuditEntrySubject::Approval(who) => vec![LinkedText::without_link("Request of "), who.into()],
        // Most calls belong to the user who is named as their author.
        AuditEntrySubject::Call { tool, at } if matches!(&line.actor, AuditActor::User(who) if *who == at.user) =>
        {
            vec![LinkedText::without_link(&format!("{}, in ", tool.replace('_', " "))), at.into()]
        }
        AuditEntrySubject::Call { tool, at } => {
            let tool = tool.replace('_', " ");
            vec![
                LinkedText::without_link(&format!("{tool} for ")),
                (&at.user).into(),
                LinkedText::without_link(", in "),
                at.into(),
            ]
        }
        AuditEntrySubject::Turn(at) => {
            vec![
                LinkedText::without_link("A text of "),
                (&at.user).into(),
                LinkedText::without_link(", in "),
                at.into(),
            ]
        }
        AuditEntrySubject::Household => vec![LinkedText::without_link("The household")],
        AuditEntrySubject::Console => vec![LinkedText::without_link("The console")],
        AuditEntrySubject::Key(name) => {
            vec![LinkedText::without_link("Key "), LinkedText::with_link(name, "/keys".to_owned())]
        }
        AuditEntrySubject::Unresolved(word) => vec![LinkedText::without_link(&word.replace([':', '_'], " "))],
    };
    if let Some(id) = line.detail["conversation"].as_i64() {
        about.extend([
            LinkedText::without_link(", "),
            LinkedText::with_link("the conversation", format!("/conversations/{id}")),
        ]);
    }
    about
}

impl LinkedText {
    fn without_link(words: &str) -> Self {
        Self { words: words.to_owned(), path: None }
    }

    fn with_link(words: &str, path: String) -> Self {
        Self { words: words.to_owned(), path: Some(path) }
    }
}

impl From<&UserRef> for LinkedText {
    fn from(who: &UserRef) -> Self {
        let UserLink { name, path, .. } = UserLink::from(who);
        Self { words: name, path }
    }
}

impl From<&ConversationLink> for LinkedText {
    fn from(at: &ConversationLink) -> Self {
        Self::with_link(&at.name, turn_path(at.conversation, at.turn))
    }
}

/// Adds the record's value under a key, as text.
fn push_detail(details: &mut Vec<String>, key: &str, value: &Value) {
    let words = match value {
        Value::Object(inner) => {
            return inner.iter().for_each(|(key, value)| push_detail(details, key, value));
        }
        Value::Array(list) => {
            let plain = list.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned));
            plain.collect::<Vec<_>>().join(" ")
        }
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => match number.as_u64().filter(|_| key == "size_bytes") {
            Some(bytes) => return details.push(format!("size: {}", message_format::format_size(bytes))),
            None => number.to_string(),
        },
        Value::String(words) if key == "reason" => words.replace('_', " "),
        Value::String(words) => words.clone(),
    };
    details.push(format!("{}: {words}", key.replace('_', " ")));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::push_detail;

    #[test]
    fn recorded_details_are_described_in_words() {
        let mut details = Vec::new();
        let recorded =
            json!({ "delete_files": true, "ids": [3, "x"], "size_bytes": 21_400_000_000_u64, "own": null });
        push_detail(&mut details, "detail", &recorded);
        assert_eq!(details, ["delete files: yes", "ids: 3 x", "own: none", "size: 21.4 GB"]);
    }
}
