//! What was changed, and by whom.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;

use super::Console;
use super::answers::{Asked, Shown};
use super::frame::{Frame, Place, When, page};
use super::words::Named;
use crate::store::console::NEWEST;
use crate::store::console::audit::{self, Author, Line, Subject};
use crate::web::auth::Operator;

const FITS: usize = 50;

/// The kinds of changes, in words.
const KINDS: [(&str, &str); 34] = [
    ("write", "Began a change"),
    ("write_done", "Made a change"),
    ("write_settled", "Found a change made"),
    ("refused", "Refused"),
    ("delete", "Began a deletion"),
    ("delete_done", "Ended a deletion"),
    ("approve", "Let in"),
    ("block", "Blocked"),
    ("set", "Changed settings"),
    ("quota", "Changed the limit"),
    ("approve_deletion", "Approved a deletion"),
    ("deny_deletion", "Denied a deletion"),
    ("approve_question", "Answered a question with yes"),
    ("reject_question", "Answered a question with no"),
    ("cancel_turn", "Ended a turn"),
    ("resume_turn", "Resumed a turn"),
    ("reopen", "Opened a conversation again"),
    ("clear", "Ended a conversation"),
    ("test_conversation", "Began a test conversation"),
    ("text_as", "Texted as somebody"),
    ("tell_everyone", "Told everyone"),
    ("pause", "Paused"),
    ("resume", "Resumed"),
    ("forget", "Erased everything"),
    ("forget_all", "Erased what was said"),
    ("export", "Exported"),
    ("send_again", "Sent a text again"),
    ("sign_in_link", "Made a sign-in link"),
    ("sign_in", "Signed in"),
    ("sign_out", "Signed out"),
    ("sign_in_failed", "Failed to sign in"),
    ("password", "Changed the password"),
    ("key_made", "Made an API key"),
    ("key_revoked", "Revoked an API key"),
];

#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct Query {
    #[serde(default)]
    kind: String,
    before: Option<i64>,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Audit {
    frame: Frame,
    kinds: Vec<(&'static str, &'static str, bool)>,
    lines: Vec<Row>,
    older: Option<String>,
}

struct Row {
    at: When,
    by: Person,
    what: String,
    subject: Person,
    about: Option<String>,
    detail: Option<String>,
}

/// Somebody or something, with a page of its own or without.
struct Person {
    name: String,
    path: Option<String>,
}

pub(in crate::web) async fn show(
    State(console): State<Console>,
    operator: Operator,
    Asked(query): Asked<Query>,
) -> Shown {
    let before = query.before.unwrap_or(NEWEST);
    let kind = KINDS.iter().map(|(word, _)| *word).find(|word| *word == query.kind);
    let listed = console.db.read(move |conn| audit::list(conn, kind, before, FITS)).await?;
    let chosen = kind.map(|kind| format!("kind={kind}&")).unwrap_or_default();
    Ok(page(&Audit {
        frame: Frame::new(&operator, Place::Audit, "Audit"),
        kinds: KINDS.map(|(word, name)| (word, name, Some(word) == kind)).to_vec(),
        lines: listed.rows.iter().map(|line| Row::of(line, &console)).collect(),
        older: listed.older.map(|id| format!("/audit?{chosen}before={id}")),
    }))
}

impl Row {
    fn of(line: &Line, console: &Console) -> Self {
        let known = KINDS.iter().find(|(word, _)| *word == line.kind);
        Self {
            at: console.when(line.at),
            by: match &line.by {
                Author::Person(who) => Person::from(Named::from(who)),
                Author::Shell => Person::nobody("You, at the shell"),
                Author::Console => Person::nobody("You, in the console"),
                Author::Key(name) => Person::nobody(&format!("API key {name}")),
                Author::Dialarr => Person::nobody("Dialarr"),
            },
            what: known.map_or_else(|| line.kind.replace('_', " "), |(_, name)| (*name).to_owned()),
            subject: match &line.subject {
                Subject::Person(who) => Person::from(Named::from(who)),
                Subject::Approval(who) => {
                    let named = Person::from(Named::from(who));
                    Person { name: format!("Request of {}", named.name), path: named.path }
                }
                Subject::Call { tool, conversation } => Person {
                    name: tool.replace('_', " "),
                    path: Some(format!("/conversations/{conversation}")),
                },
                Subject::Other(word) => Person::nobody(&word.replace([':', '_'], " ")),
            },
            about: line.detail["title"].as_str().map(str::to_owned),
            detail: detail(&line.detail),
        }
    }
}

impl Person {
    fn nobody(name: &str) -> Self {
        Self { name: name.to_owned(), path: None }
    }
}

impl From<Named> for Person {
    fn from(named: Named) -> Self {
        Self { name: named.name, path: named.path }
    }
}

/// What the record holds beside who did it; nothing where that is all.
fn detail(detail: &Value) -> Option<String> {
    let mut detail = detail.as_object()?.clone();
    detail.remove("by");
    if detail.is_empty() {
        return None;
    }
    serde_json::to_string_pretty(&detail).ok()
}
