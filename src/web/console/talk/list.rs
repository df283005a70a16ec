//! List of conversations, and the results of a search in their messages.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;

use crate::store::console::conversations::{self, Which};
use crate::store::console::search::{self, Below, Found, Piece, Speaker, Stands, Wanted};
use crate::store::console::{Listed, NEWEST};
use crate::web::auth::Operator;
use crate::web::console::answers::{Asked, Shown};
use crate::web::console::frame::{Frame, Place, When, page};
use crate::web::console::home::TalkLine;
use crate::web::console::said::{self, Said};
use crate::web::console::words::{Named, turn_path};
use crate::web::console_state::ConsoleState;

#[derive(Template)]
#[template(path = "conversations.html")]
struct Page {
    frame: Frame,
    typed: String,
    is_search: bool,
    found: Vec<Hit>,
    tabs: Vec<Tab>,
    talks: Vec<TalkLine>,
    /// Address of the rest of the list.
    next: Option<String>,
}

struct Tab {
    path: &'static str,
    name: &'static str,
    is_here: bool,
}

struct Hit {
    /// Page of the result: its conversation, or its user if it has no conversation; none if only its text remains.
    path: Option<String>,
    /// Name of the conversation.
    name: String,
    by: String,
    is_test: bool,
    when: When,
    pieces: Vec<Piece>,
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Asks {
    #[serde(default)]
    q: String,
    #[serde(default)]
    show: String,
    before: Option<i64>,
    /// Cursor of a search: only older messages than these of the user's and of ours follow.
    received: Option<i64>,
    sent: Option<i64>,
    #[serde(default, deserialize_with = "said::known")]
    said: Option<Said>,
}

/// Label instead of a conversation's name.
const OUTSIDE: &str = "Outside any conversation";

const TABS: [(&str, &str, Which); 4] = [
    ("/conversations", "All", Which::All),
    ("/conversations?show=open", "Open", Which::Open),
    ("/conversations?show=ended", "Ended", Which::Ended),
    ("/conversations?show=test", "Test", Which::Test),
];

pub(in crate::web) async fn show(
    State(console): State<ConsoleState>,
    operator: Operator,
    Asked(asks): Asked<Asks>,
) -> Shown {
    let which = match asks.show.as_str() {
        "open" => Which::Open,
        "ended" => Which::Ended,
        "test" => Which::Test,
        _ => Which::All,
    };
    let tab =
        |(path, name, of): (&'static str, &'static str, Which)| Tab { path, name, is_here: of == which };
    let mut content = Page {
        frame: Frame::new(&operator, Place::Conversations, "Conversations").saying(asks.said),
        typed: asks.q.chars().take(100).collect(),
        is_search: false,
        found: Vec::new(),
        tabs: TABS.into_iter().map(tab).collect(),
        talks: Vec::new(),
        next: None,
    };
    if let Some(wanted) = Wanted::read(&content.typed) {
        let below = Below {
            received: asks.received.unwrap_or(Below::NOTHING.received),
            sent: asks.sent.unwrap_or(Below::NOTHING.sent),
        };
        let (found, next) = console.db.read(move |conn| search::search(conn, &wanted, below)).await?;
        content.is_search = true;
        content.found = found.into_iter().map(|found| hit(&console, found)).collect();
        content.next = next.map(|below| {
            let typed = &content.typed;
            let query = [
                ("q", typed.clone()),
                ("received", below.received.to_string()),
                ("sent", below.sent.to_string()),
            ];
            // Strings can always be encoded in this form.
            format!("/conversations?{}", serde_urlencoded::to_string(query).unwrap_or_default())
        });
    } else {
        let before = asks.before.unwrap_or(NEWEST);
        let Listed { rows, older } =
            console.db.read(move |conn| conversations::list(conn, which, before)).await?;
        content.talks = rows.iter().map(|talk| TalkLine::of(talk, &console)).collect();
        content.next = older.map(|before| match which {
            Which::All => format!("/conversations?before={before}"),
            Which::Open => format!("/conversations?show=open&before={before}"),
            Which::Ended => format!("/conversations?show=ended&before={before}"),
            Which::Test => format!("/conversations?show=test&before={before}"),
        });
    }
    Ok(page(&content))
}

fn hit(console: &ConsoleState, found: Found) -> Hit {
    let with = Named::from(&found.with);
    let (path, name) = match (found.stands, found.by) {
        (Stands::InTurn(talk, turn), _) => (Some(turn_path(talk.id, turn)), talk.name),
        (Stands::Before(talk, next), by) => {
            let page = next.map(|turn| format!("?before={turn}")).unwrap_or_default();
            let entry = match by {
                Speaker::Them => "text",
                Speaker::Us => "notice",
            };
            (Some(format!("/conversations/{}{page}#{entry}-{}", talk.id, found.id)), talk.name)
        }
        (Stands::Outside, Speaker::Them) => (with.path.clone(), OUTSIDE.to_owned()),
        (Stands::Outside, Speaker::Us) => {
            let path = format!("/deliveries?user={}&before={}", found.with.id, found.id + 1);
            (with.path.as_ref().map(|_| path), OUTSIDE.to_owned())
        }
    };
    Hit {
        path,
        name,
        by: match found.by {
            Speaker::Them => with.name,
            Speaker::Us => format!("Dialarr to {}", with.name),
        },
        is_test: with.is_test,
        when: console.when(found.at),
        pieces: found.pieces,
    }
}
