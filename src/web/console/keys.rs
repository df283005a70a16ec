//! API keys page: creating, listing and revoking the keys of programs and of agents.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::error_page::error_response;
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use crate::conversation::agents::MAX_KEY_NAME_CHARS;
use crate::conversation::people::naming;
use crate::conversation::transcript::{User, UserId, UserStatus};
use crate::store::Conn;
use crate::store::console_access::{self, KeyScope};
use crate::store::database::db::DbError;
use crate::store::people::users;
use crate::web::auth::{Operator, SignedForm, keys};
use crate::web::console_state::ConsoleState;

/// Longest name, in characters.
const MAX_NAME_CHARS: usize = 60;

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    layout: PageLayout,
    keys: Vec<KeyLine>,
    /// People for whom an agent can act.
    people: Vec<PersonChoice>,
    /// Key that was just created, shown only on this one page.
    created_key: Option<CreatedKey>,
    problem: Option<&'static str>,
    agent_problem: Option<&'static str>,
}

struct PersonChoice {
    id: i64,
    name: String,
}

struct CreatedKey {
    key: String,
    is_for_agent: bool,
}

struct KeyLine {
    id: i64,
    name: String,
    ending: String,
    scope: &'static str,
    /// Name of the person for whom an agent acts.
    agent_of: Option<String>,
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
pub(in crate::web) struct AgentKeyForm {
    name: String,
    person: i64,
    #[serde(default)]
    scope: AgentScopeChoice,
}

/// Scope that the operator chooses for the key of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AgentScopeChoice {
    #[default]
    Read,
    Write,
}

impl AgentScopeChoice {
    fn key_scope(self) -> KeyScope {
        match self {
            Self::Read => KeyScope::Read,
            Self::Write => KeyScope::Write,
        }
    }
}

#[derive(Deserialize)]
pub(in crate::web) struct RevokeKeyForm {}

pub(in crate::web) async fn show_keys(State(console): State<ConsoleState>, operator: Operator) -> Response {
    render_keys(&console, &operator, KeyOutcome::Shown).await
}

pub(in crate::web) async fn create_key(
    State(console): State<ConsoleState>,
    operator: Operator,
    SignedForm(KeyForm { name, scope }): SignedForm<KeyForm>,
) -> Response {
    let Some(name) = check_name(&name, MAX_NAME_CHARS) else {
        return render_keys(
            &console,
            &operator,
            KeyOutcome::Refused("Enter a purpose of 1 to 60 characters."),
        )
        .await;
    };
    let key = keys::create_key(&console.db, (name, scope.key_scope(), None), console.clock.now()).await;
    match key {
        Ok(key) => {
            let created = CreatedKey { key, is_for_agent: false };
            render_keys(&console, &operator, KeyOutcome::Created(created)).await
        }
        Err(error) => error_response(error),
    }
}

/// Creates a key with which an agent acts for a person.
pub(in crate::web) async fn create_agent_key(
    State(console): State<ConsoleState>,
    operator: Operator,
    SignedForm(AgentKeyForm { name, person, scope }): SignedForm<AgentKeyForm>,
) -> Response {
    let people = match load_people(&console).await {
        Ok(people) => people,
        Err(error) => return error_response(error),
    };
    let name = check_name(&name, MAX_KEY_NAME_CHARS).filter(|name| !name.contains('"'));
    let Some(name) = name else {
        let problem = "Enter a name of 1 to 20 characters, without quotation marks.";
        return render_keys(&console, &operator, KeyOutcome::AgentRefused(problem)).await;
    };
    if !people.iter().any(|choice| choice.id == person) {
        let problem = "Choose a person who may use Dialarr.";
        return render_keys(&console, &operator, KeyOutcome::AgentRefused(problem)).await;
    }
    let new_key = (name, scope.key_scope(), Some(UserId(person)));
    match keys::create_key(&console.db, new_key, console.clock.now()).await {
        Ok(key) => {
            let created = CreatedKey { key, is_for_agent: true };
            render_keys(&console, &operator, KeyOutcome::Created(created)).await
        }
        Err(error) => error_response(error),
    }
}

/// Returns the trimmed name of a key, if it has a permitted length.
fn check_name(name: &str, max_chars: usize) -> Option<String> {
    let name = name.trim();
    let is_valid = (1..=max_chars).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    is_valid.then(|| name.to_owned())
}

/// Outcome of a request for the page.
enum KeyOutcome {
    Shown,
    Created(CreatedKey),
    Refused(&'static str),
    AgentRefused(&'static str),
}

async fn render_keys(console: &ConsoleState, operator: &Operator, outcome: KeyOutcome) -> Response {
    let (status, created_key, problem, agent_problem) = match outcome {
        KeyOutcome::Shown => (StatusCode::OK, None, None, None),
        KeyOutcome::Created(key) => (StatusCode::OK, Some(key), None, None),
        KeyOutcome::Refused(problem) => (StatusCode::UNPROCESSABLE_ENTITY, None, Some(problem), None),
        KeyOutcome::AgentRefused(problem) => (StatusCode::UNPROCESSABLE_ENTITY, None, None, Some(problem)),
    };
    let loaded = tokio::try_join!(load_key_lines(console), load_people(console));
    match loaded {
        Ok((keys, people)) => {
            let layout = keys_layout(operator);
            let page = KeysPage { layout, keys, people, created_key, problem, agent_problem };
            (status, render_page(&page)).into_response()
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
    let load = |conn: &mut Conn| Ok((console_access::load_api_keys(conn)?, users::load_known_users(conn)?));
    let (keys, known) = console.db.read(load).await?;
    let person_name = |person: UserId| {
        let user = known.iter().find(|user| user.id == person);
        user.map_or_else(|| "a former user".to_owned(), naming::display_name)
    };
    let line = |key: console_access::ApiKey| KeyLine {
        id: key.id,
        name: key.name,
        ending: key.ending,
        scope: scope_label(key.scope),
        agent_of: key.agent_of.map(person_name),
        created_at: when(key.created_at),
        last_used_at: key.last_used_at.map(when),
    };
    Ok(keys.into_iter().map(line).collect())
}

/// Loads the people for whom an agent can act.
async fn load_people(console: &ConsoleState) -> Result<Vec<PersonChoice>, DbError> {
    let known = console.db.read(users::load_known_users).await?;
    let can_have_agent = |user: &User| user.status == UserStatus::Active;
    let choice = |user: User| PersonChoice { id: user.id.0, name: naming::display_name(&user) };
    Ok(known.into_iter().filter(can_have_agent).map(choice).collect())
}

fn scope_label(scope: KeyScope) -> &'static str {
    match scope {
        KeyScope::Read => "Read",
        KeyScope::Write => "Write",
        KeyScope::Admin => "Admin",
        KeyScope::Unscoped => "None (older key)",
    }
}
