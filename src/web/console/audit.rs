//! Changes, each with its author.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;

use super::answers::{Asked, Shown};
use super::audit_labels::{KINDS, change_label};
use super::frame::{Frame, Place, When, page};
use super::words::{Named, turn_path};
use crate::conversation::text;
use crate::store::console::NEWEST;
use crate::store::console::audit::{self, Author, Line, Place as Stands, Subject};
use crate::store::console::who::Who;
use crate::web::auth::Operator;
use crate::web::console_state::ConsoleState;

const FITS: usize = 50;

/// Keys of a record that are shown outside its details: author, user, title and conversation. Ids and arguments of
/// calls mean nothing to a reader.
const ELSEWHERE: [&str; 10] =
    ["by", "title", "tool", "user", "text", "conversation", "status", "arguments", "id", "item"];
/// Most bytes of details that appear in the line itself.
const SHORT: usize = 120;

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
    by: Piece,
    what: String,
    about: Vec<Piece>,
    title: Option<String>,
    /// Details, such as `movies: 3`.
    details: Vec<String>,
}

/// Text fragment, some with a page of its own.
struct Piece {
    words: String,
    path: Option<String>,
}

pub(in crate::web) async fn show(
    State(console): State<ConsoleState>,
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
    fn of(line: &Line, console: &ConsoleState) -> Self {
        let known = KINDS.iter().find(|(word, _)| *word == line.kind);
        // A kind that the page does not know is shown unchanged, with all recorded details.
        let told_elsewhere = if known.is_some() { &ELSEWHERE[..] } else { &ELSEWHERE[..1] };
        let mut details = Vec::new();
        for (key, value) in line.detail.as_object().into_iter().flatten() {
            let is_name_of_subject = key == "name" && matches!(line.subject, Subject::Key(_));
            if !is_name_of_subject && !told_elsewhere.contains(&key.as_str()) {
                tell(&mut details, key, value);
            }
        }
        Self {
            at: console.when(line.at),
            by: match &line.by {
                Author::Person(who) => who.into(),
                Author::Shell => Piece::plain("You, at the shell"),
                Author::Console => Piece::plain("You, in the console"),
                Author::Key(name) => Piece::plain(&format!("API key {name}")),
                Author::Dialarr => Piece::plain("Dialarr"),
            },
            what: change_label(&line.kind, &line.detail).map(str::to_owned).unwrap_or_else(|| {
                known.map_or_else(|| line.kind.replace('_', " "), |(_, name)| (*name).to_owned())
            }),
            about: about(line),
            title: line.detail["title"].as_str().filter(|_| known.is_some()).map(str::to_owned),
            details,
        }
    }

    fn is_long(&self) -> bool {
        self.details.iter().map(String::len).sum::<usize>() > SHORT
    }
}

fn about(line: &Line) -> Vec<Piece> {
    let mut about = match &line.subject {
        Subject::Person(who) => vec![who.into()],
        Subject::Approval(who) => vec![Piece::plain("Request of "), who.into()],
        // Most calls belong to the user who is named as their author.
        Subject::Call { tool, at } if matches!(&line.by, Author::Person(who) if *who == at.with) => {
            vec![Piece::plain(&format!("{}, in ", tool.replace('_', " "))), at.into()]
        }
        Subject::Call { tool, at } => {
            let tool = tool.replace('_', " ");
            vec![Piece::plain(&format!("{tool} for ")), (&at.with).into(), Piece::plain(", in "), at.into()]
        }
        Subject::Turn(at) => {
            vec![Piece::plain("A text of "), (&at.with).into(), Piece::plain(", in "), at.into()]
        }
        Subject::Household => vec![Piece::plain("The household")],
        Subject::Console => vec![Piece::plain("The console")],
        Subject::Key(name) => vec![Piece::plain("Key "), Piece::to(name, "/keys".to_owned())],
        Subject::Other(word) => vec![Piece::plain(&word.replace([':', '_'], " "))],
    };
    if let Some(id) = line.detail["conversation"].as_i64() {
        about.extend([Piece::plain(", "), Piece::to("the conversation", format!("/conversations/{id}"))]);
    }
    about
}

impl Piece {
    fn plain(words: &str) -> Self {
        Self { words: words.to_owned(), path: None }
    }

    fn to(words: &str, path: String) -> Self {
        Self { words: words.to_owned(), path: Some(path) }
    }
}

impl From<&Who> for Piece {
    fn from(who: &Who) -> Self {
        let Named { name, path, .. } = Named::from(who);
        Self { words: name, path }
    }
}

impl From<&Stands> for Piece {
    fn from(at: &Stands) -> Self {
        Self::to(&at.name, turn_path(at.conversation, at.turn))
    }
}

/// Adds the record's value under a key, as text.
fn tell(details: &mut Vec<String>, key: &str, value: &Value) {
    let words = match value {
        Value::Object(inner) => {
            return inner.iter().for_each(|(key, value)| tell(details, key, value));
        }
        Value::Array(list) => {
            let plain = list.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned));
            plain.collect::<Vec<_>>().join(" ")
        }
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => match number.as_u64().filter(|_| key == "size_bytes") {
            Some(bytes) => return details.push(format!("size: {}", text::size(bytes))),
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

    use super::tell;

    #[test]
    fn what_was_recorded_is_told_in_words() {
        let mut details = Vec::new();
        let recorded =
            json!({ "delete_files": true, "ids": [3, "x"], "size_bytes": 21_400_000_000_u64, "own": null });
        tell(&mut details, "detail", &recorded);
        assert_eq!(details, ["delete files: yes", "ids: 3 x", "own: none", "size: 21.4 GB"]);
    }
}
