//! API keys: their purpose, their last characters, and the times of their creation and last use.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::frame::{Frame, Place, When, page};
use super::trouble::trouble;
use crate::store::access;
use crate::store::db::DbError;
use crate::web::auth::{Operator, SignedForm, keys};
use crate::web::console_state::ConsoleState;

/// Longest name, in characters.
const NAME: usize = 60;

#[derive(Template)]
#[template(path = "keys.html")]
struct Keys {
    frame: Frame,
    keys: Vec<Line>,
    /// Key that was just created, shown only on this one page.
    made: Option<String>,
    problem: Option<&'static str>,
}

struct Line {
    id: i64,
    name: String,
    ending: String,
    made: When,
    used: Option<When>,
}

#[derive(Deserialize)]
pub(in crate::web) struct Named {
    name: String,
}

#[derive(Deserialize)]
pub(in crate::web) struct Nothing {}

pub(in crate::web) async fn show(State(console): State<ConsoleState>, operator: Operator) -> Response {
    match lines(&console).await {
        Ok(keys) => page(&Keys { frame: frame(&operator), keys, made: None, problem: None }),
        Err(error) => trouble(error),
    }
}

pub(in crate::web) async fn make(
    State(console): State<ConsoleState>,
    operator: Operator,
    SignedForm(Named { name }): SignedForm<Named>,
) -> Response {
    let name = name.trim().to_owned();
    let length = name.chars().count();
    let (status, made, problem) = if length == 0 || length > NAME || name.chars().any(char::is_control) {
        let problem = "Say in 1 to 60 characters what the key is for.";
        (StatusCode::UNPROCESSABLE_ENTITY, None, Some(problem))
    } else {
        match keys::make(&console.db, name, console.clock.now()).await {
            Ok(key) => (StatusCode::OK, Some(key), None),
            Err(error) => return trouble(error),
        }
    };
    match lines(&console).await {
        Ok(keys) => {
            let content = Keys { frame: frame(&operator), keys, made, problem };
            (status, page(&content)).into_response()
        }
        Err(error) => trouble(error),
    }
}

pub(in crate::web) async fn revoke(
    State(console): State<ConsoleState>,
    Path(id): Path<i64>,
    SignedForm(Nothing {}): SignedForm<Nothing>,
) -> Response {
    match keys::revoke(&console, id).await {
        Ok(()) => Redirect::to("/keys").into_response(),
        Err(error) => trouble(error),
    }
}

fn frame(operator: &Operator) -> Frame {
    Frame::new(operator, Place::Keys, "API keys")
}

async fn lines(console: &ConsoleState) -> Result<Vec<Line>, DbError> {
    let now = console.clock.now();
    let when = |at| When::of(at, now, &console.zone);
    let line = |key: access::Key| Line {
        id: key.id,
        name: key.name,
        ending: key.ending,
        made: when(key.created_at),
        used: key.last_used_at.map(when),
    };
    Ok(console.db.read(access::keys).await?.into_iter().map(line).collect())
}
