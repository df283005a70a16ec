//! Operator's changes of a user, the same as by `dialarr users`.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use super::answers::{Failure, Id, Shown, back};
use super::home::Press;
use super::said::Said;
use super::trouble::trouble;
use crate::conversation::naming::Name;
use crate::conversation::transcript::{Role, UserId};
use crate::engine::operator::Joining;
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::code_misses::{self, LiftOutcome};
use crate::store::privacy::export;
use crate::store::privacy::forget::{self, Forgetting};
use crate::store::roster::{self, Changed, Changes, Limit, Person};
use crate::store::spend::Day;
use crate::web::auth::SignedForm;
use crate::web::console_state::ConsoleState;

/// Word that the operator must type to erase a user.
const WORD: &str = "FORGET";

/// Page of a button, which is also the page to return to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stands {
    Home,
    #[default]
    Person,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct Button {
    #[serde(default)]
    from: Stands,
}

impl Button {
    fn path(self, id: i64) -> String {
        match self.from {
            Stands::Home => "/".to_owned(),
            Stands::Person => format!("/users/{id}"),
        }
    }
}

pub(in crate::web) async fn approve(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(button): SignedForm<Button>,
) -> Shown {
    let joining = console.engine.let_in(UserId(id), By::Console).await?;
    Ok(back(&button.path(id), joined(joining, Said::LetIn)?))
}

pub(in crate::web) async fn block(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(button): SignedForm<Button>,
) -> Shown {
    let joining = console.engine.shut_out(UserId(id), By::Console).await?;
    Ok(back(&button.path(id), joined(joining, Said::Blocked)?))
}

fn joined(joining: Joining, done: Said) -> Result<Said, Failure> {
    match joining {
        Joining::Done => Ok(done),
        Joining::LastAdmin => Ok(Said::LastAdmin),
        Joining::Nobody => Err(Failure::Missing),
    }
}

/// Allows deletions and approvals by text again after too many wrong codes.
pub(in crate::web) async fn lift_suspension(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(Press {}): SignedForm<Press>,
) -> Shown {
    let (now, user) = (console.clock.now(), UserId(id));
    let today = Day::of(now, &console.zone);
    let lifting = console.db.write(move |conn| match roster::known(conn, user)? {
        Some(_) => code_misses::lift(conn, user, &today, By::Console, now).map(Some),
        None => Ok(None),
    });
    let said = match lifting.await? {
        None => return Err(Failure::Missing),
        Some(LiftOutcome::Lifted) => Said::SuspensionLifted,
        Some(LiftOutcome::NotSuspended) => Said::NotSuspended,
    };
    Ok(back(&format!("/users/{id}"), said))
}

/// All settings that can be changed; a browser does not send a box that is not ticked.
#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct Wanted {
    name: String,
    role: Choice,
    add: Option<String>,
    delete: Option<String>,
    four_k: Option<String>,
    movies: String,
    seasons: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Choice {
    Admin,
    Member,
}

pub(in crate::web) async fn change(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(wanted): SignedForm<Wanted>,
) -> Shown {
    let now = console.clock.now();
    let user = UserId(id);
    let said = console.db.write(move |conn| {
        if roster::known(conn, user)?.is_none() {
            return Ok(None);
        }
        let person = roster::person(conn, user)?;
        let changes = match wanted.read(&person) {
            Err(said) => return Ok(Some(said)),
            Ok(changes) if changes == Changes::default() => return Ok(Some(Said::Unchanged)),
            Ok(changes) => changes,
        };
        Ok(Some(match roster::change(conn, user, &changes, By::Console, now)? {
            Changed::Changed => Said::Saved,
            Changed::LastAdmin => Said::LastAdmin,
        }))
    });
    let Some(said) = said.await? else { return Err(Failure::Missing) };
    Ok(back(&format!("/users/{id}"), said))
}

impl Wanted {
    /// Returns the settings that differ from the current ones.
    fn read(&self, person: &Person) -> Result<Changes, Said> {
        let user = &person.user;
        let role = match self.role {
            Choice::Admin => Role::Admin,
            Choice::Member => Role::Member,
        };
        let name = match self.name.trim() {
            "" => None,
            name if user.name.as_deref() == Some(name) => None,
            name => Some(Name::parse(name).map_err(|_| Said::BadName)?),
        };
        let flag =
            |wanted: &Option<String>, known: bool| Some(wanted.is_some()).filter(|flag| *flag != known);
        Ok(Changes {
            role: Some(role).filter(|role| *role != user.rights.role),
            name,
            add: flag(&self.add, user.rights.add),
            delete: flag(&self.delete, user.rights.delete),
            four_k: flag(&self.four_k, user.rights.four_k),
            movies: Some(limit(&self.movies)?).filter(|limit| *limit != person.movies),
            seasons: Some(limit(&self.seasons)?).filter(|limit| *limit != person.seasons),
        })
    }
}

fn limit(text: &str) -> Result<Limit, Said> {
    match text.trim() {
        "" => Ok(Limit::Household),
        count => count.parse().map(Limit::Own).map_err(|_| Said::BadLimit),
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct Typed {
    word: String,
}

pub(in crate::web) async fn forget(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(typed): SignedForm<Typed>,
) -> Shown {
    let (now, user) = (console.clock.now(), UserId(id));
    if typed.word.trim() != WORD {
        return Ok(back(&format!("/users/{id}"), Said::NotTyped));
    }
    let forgetting = console.db.write(move |conn| match roster::known(conn, user)? {
        Some(_) => forget::forget(conn, user, By::Console, now).map(Some),
        None => Ok(None),
    });
    Ok(match forgetting.await? {
        None => return Err(Failure::Missing),
        Some(Forgetting::Forgotten) => back("/users", Said::Forgotten),
        Some(Forgetting::LastAdmin) => back(&format!("/users/{id}"), Said::LastAdmin),
        Some(Forgetting::Busy) => back(&format!("/users/{id}"), Said::Busy),
    })
}

/// Exports all data stored about a user, in readable form.
pub(in crate::web) async fn export(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(Press {}): SignedForm<Press>,
) -> Shown {
    let (now, user) = (console.clock.now(), UserId(id));
    let export = console.db.write(move |conn| {
        if roster::known(conn, user)?.is_none() {
            return Ok(None);
        }
        let entry =
            Entry { by: By::Console, kind: "export", subject: Subject::User(user), detail: json!({}) };
        audit::record(conn, &entry, now)?;
        export::export(conn, user).map(Some)
    });
    let Some(export) = export.await? else { return Err(Failure::Missing) };
    let body = match serde_json::to_vec_pretty(&export) {
        Ok(body) => body,
        Err(error) => return Ok(trouble(error)),
    };
    let name = format!("attachment; filename=\"dialarr-user-{id}.json\"");
    let head = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (CONTENT_DISPOSITION, name),
        (CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((head, body).into_response())
}
