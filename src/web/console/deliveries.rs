//! Outbound messages, and the delivery status of each.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;

use super::answers::{Asked, Failure, Id, Shown, back};
use super::fates::{self, Mark};
use super::frame::{Frame, Place, When, page};
use super::home::Press;
use super::said::{self, Said};
use super::words::Named;
use crate::conversation::transcript::UserId;
use crate::store::console::deliveries::{self, Delivery, Which};
use crate::store::console::fate::Fate;
use crate::store::console::{NEWEST, who};
use crate::store::resending::Again;
use crate::store::roster;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

const FITS: usize = 50;

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct Query {
    #[serde(default)]
    which: Filter,
    user: Option<i64>,
    before: Option<i64>,
    #[serde(default, deserialize_with = "said::known")]
    said: Option<Said>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Filter {
    #[default]
    All,
    Waiting,
    Failed,
}

#[derive(Template)]
#[template(path = "deliveries.html")]
struct Deliveries {
    frame: Frame,
    filters: Vec<(&'static str, &'static str, bool)>,
    /// User whose messages are listed.
    only: Option<Named>,
    texts: Vec<Text>,
    empty: &'static str,
    older: Option<String>,
}

struct Text {
    id: i64,
    at: When,
    to: Named,
    body: String,
    has_picture: bool,
    path: Option<String>,
    segments: u32,
    state: Mark,
    why: Option<String>,
    may_be_sent_again: bool,
}

pub(in crate::web) async fn show(
    State(console): State<ConsoleState>,
    operator: Operator,
    Asked(query): Asked<Query>,
) -> Shown {
    let before = query.before.unwrap_or(NEWEST);
    let read = console.db.read(move |conn| {
        let only = match query.user {
            Some(id) if roster::known(conn, UserId(id))?.is_none() => return Ok(None),
            Some(id) => Some(who::by_id(conn, UserId(id))?),
            None => None,
        };
        let which = match (&only, query.which) {
            (Some(who), _) => Which::To(who.id),
            (None, Filter::All) => Which::All,
            (None, Filter::Waiting) => Which::Waiting,
            (None, Filter::Failed) => Which::Failed,
        };
        Ok(Some((only, deliveries::list(conn, which, before, FITS)?)))
    });
    let Some((only, listed)) = read.await? else { return Err(Failure::Missing) };
    let (word, empty) = match query.which {
        Filter::All => ("all", "No text was sent yet."),
        Filter::Waiting => ("waiting", "No text waits: everything was handed over."),
        Filter::Failed => ("failed", "Every text so far was taken."),
    };
    let filters = [
        ("all", "All", Filter::All),
        ("waiting", "Waiting", Filter::Waiting),
        ("failed", "Failed", Filter::Failed),
    ];
    let here = |of: Filter| only.is_none() && of == query.which;
    let older = listed.older.map(|id| match &only {
        Some(who) => format!("/deliveries?user={}&before={id}", who.id),
        None => format!("/deliveries?which={word}&before={id}"),
    });
    Ok(page(&Deliveries {
        frame: Frame::new(&operator, Place::Deliveries, "Deliveries").saying(query.said),
        filters: filters.map(|(word, name, of)| (word, name, here(of))).to_vec(),
        only: only.as_ref().map(Named::from),
        texts: listed.rows.iter().map(|text| Text::of(text, &console)).collect(),
        empty,
        older,
    }))
}

impl Text {
    fn of(text: &Delivery, console: &ConsoleState) -> Self {
        Self {
            id: text.id,
            may_be_sent_again: text.may_be_sent_again,
            at: console.when(text.at),
            to: Named::from(&text.to),
            body: text.body.clone(),
            has_picture: text.has_picture,
            path: text.conversation.map(|id| format!("/conversations/{id}")),
            // A message that is only shown uses no segments.
            segments: if text.fate == Fate::Shown { 0 } else { text.segments },
            state: fates::mark(text.fate),
            why: fates::reason(text.fate, &text.why),
        }
    }
}

pub(in crate::web) async fn send_again(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(Press {}): SignedForm<Press>,
) -> Shown {
    match console.engine.send_again(id).await? {
        Again::Queued => Ok(back("/deliveries", Said::SentAgain)),
        Again::No => Ok(back("/deliveries", Said::NotSentAgain)),
        Again::Unknown => Err(Failure::Missing),
    }
}
