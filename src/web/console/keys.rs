//! API keys page: creating, listing and revoking keys.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::error_page::error_response;
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use crate::store::console_access::{self, KeyScope};
use crate::store::database::db::DbError;
use crate::web::auth::{Operator, SignedForm, keys};
use crate::web::console_state::ConsoleState;

/// Longest name, in characters.
const MAX_NAME_CHARS: usize = 60;

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    layout: PageLayout,
    keys: Vec<KeyLine>,
    /// Key that was just created, shown only on this one page.
    created_key: Option<String>,
    problem: Option<&'static str>,
}

struct KeyLine {
    id: i64,
    name: String,
    ending: String,
    scope: &'static str,
    created_at: DisplayTime,
    last_used_at: Option<DisplayTime>,
}

#[derive(Deserialize)]
pub(in crate::web) struct KeyForm {
    name: String,
    #[serde(default)]
    scope: ScopeChoice,
}

/// Scope that the operator chooses for a new key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScopeChoice {
    #[default]
    Read,
    Write,
    Admin,
}

impl ScopeChoice {
    fn key_scope(self) -> KeyScope {
        match self {
            Self::Read => KeyScope::Read,
            Self::Write => KeyScope::Write,
            Self::Admin => KeyScope::Admin,
        }
    }
}

#[derive(Deserialize)]
pub(in crate::web) struct RevokeKeyForm {}

pub(in crate::web) async fn show_keys(State(console): State<ConsoleState>, operator: Operator) -> Response {
    match load_key_lines(&console).await {
        Ok(keys) => {
            render_page(&KeysPage { layout: keys_layout(&operator), keys, created_key: None, problem: None })
        }
        Err(error) => error_response(error),
    }
}

pub(in crate::web) async fn create_key(
    State(console): State<ConsoleState>,
    operator: Operator,
    SignedForm(KeyForm { name, scope }): SignedForm<KeyForm>,
) -> Response {
    let name = name.trim().to_owned();
    let length = name.chars().count();
    let (status, created_key, problem) =
        if length == 0 || length > MAX_NAME_CHARS || name.chars().any(char::is_control) {
            let problem = "Enter a purpose of 1 to 60 characters.";
            (StatusCode::UNPROCESSABLE_ENTITY, None, Some(problem))
        } else {
            match keys::create_key(&console.db, name, scope.key_scope(), console.clock.now()).await {
                Ok(key) => (StatusCode::OK, Some(key), None),
                Err(error) => return error_response(error),
            }
        };
    match load_key_lines(&console).await {
        Ok(keys) => {
            let content = KeysPage { layout: keys_layout(&operator), keys, created_key, problem };
            (status, render_page(&content)).into_response()
        }
        Err(error) => error_response(error),
    }
}

pub(in crate::web) async fn revoke_key(
    State(console): State<ConsoleState>,
    Path(id): Path<i64>,
    SignedForm(RevokeKeyForm {}): SignedForm<RevokeKeyForm>,
) -> Response {
    match keys::revoke_key(&console, id).await {
        Ok(()) => Redirect::to("/keys").into_response(),
        Err(error) => error_response(error),
    }
}

fn keys_layout(operator: &Operator) -> PageLayout {
    PageLayout::new(operator, ConsoleSection::Keys, "API keys")
}

async fn load_key_lines(console: &ConsoleState) -> Result<Vec<KeyLine>, DbError> {
    let now = console.clock.now();
    let when = |at| DisplayTime::from_timestamp(at, now, &console.zone());
    let line = |key: console_access::ApiKey| KeyLine {
        id: key.id,
        name: key.name,
        ending: key.ending,
        scope: scope_label(key.scope),
        created_at: when(key.created_at),
        last_used_at: key.last_used_at.map(when),
    };
    Ok(console.db.read(console_access::load_api_keys).await?.into_iter().map(line).collect())
}

fn scope_label(scope: KeyScope) -> &'static str {
    match scope {
        KeyScope::Read => "Read",
        KeyScope::Write => "Write",
        KeyScope::Admin => "Admin",
        KeyScope::Unscoped => "None (older key)",
    }
}
