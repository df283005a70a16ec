//! Forms that change a user, with the same actions as `dialarr users`.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use super::error_page::error_response;
use super::flash::FlashMessage;
use super::home::actions::ButtonForm;
use super::responses::{PageError, PageId, PageResult, redirect_with_flash};
use crate::conversation::digest::digest_command;
use crate::conversation::digest::schedule::DigestSchedule;
use crate::conversation::people::naming::UserName;
use crate::conversation::rating_caps::MinimumAge;
use crate::conversation::transcript::{UserId, UserRole};
use crate::engine::operator::decisions::{AccessOutcome, UserChangeOutcome};
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::code_misses::{self, LiftOutcome};
use crate::store::people::user_admin::{self, UserChanges, UserLimit};
use crate::store::privacy::export;
use crate::store::privacy::forget::{self, ErasureOutcome};
use crate::store::turns::daily_budget::Day;
use crate::web::auth::SignedForm;
use crate::web::console_state::ConsoleState;

/// Word that the operator must type to confirm the erasure of a user.
const ERASURE_WORD: &str = "FORGET";

/// Page that contains a button, to which the response redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FormOrigin {
    Home,
    #[default]
    #[serde(rename = "person")]
    User,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct UserButtonForm {
    #[serde(default)]
    from: FormOrigin,
}

impl UserButtonForm {
    fn return_path(self, id: i64) -> String {
        match self.from {
            FormOrigin::Home => "/".to_owned(),
            FormOrigin::User => format!("/users/{id}"),
        }
    }
}

pub(in crate::web) async fn approve_user(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(button): SignedForm<UserButtonForm>,
) -> PageResult {
    let outcome = console.engine.decisions.approve_access(UserId(id), Actor::Console).await?;
    Ok(redirect_with_flash(
        &button.return_path(id),
        access_change_flash(outcome, FlashMessage::UserApproved)?,
    ))
}

pub(in crate::web) async fn block_user(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(button): SignedForm<UserButtonForm>,
) -> PageResult {
    let outcome = console.engine.decisions.block_access(UserId(id), Actor::Console).await?;
    Ok(redirect_with_flash(&button.return_path(id), access_change_flash(outcome, FlashMessage::UserBlocked)?))
}

fn access_change_flash(outcome: AccessOutcome, success: FlashMessage) -> Result<FlashMessage, PageError> {
    match outcome {
        AccessOutcome::Changed => Ok(success),
        AccessOutcome::LastAdmin => Ok(FlashMessage::LastAdmin),
        AccessOutcome::UnknownUser => Err(PageError::NotFound),
    }
}

/// Allows deletions and approvals by text again after too many wrong codes.
pub(in crate::web) async fn lift_suspension(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    let (now, user) = (console.clock.now(), UserId(id));
    let today = Day::from_timestamp(now, &console.zone());
    let outcome = console.db.write(move |conn| match user_admin::find_known_user(conn, user)? {
        Some(_) => code_misses::lift_suspension(conn, user, &today, Actor::Console, now).map(Some),
        None => Ok(None),
    });
    let flash = match outcome.await? {
        None => return Err(PageError::NotFound),
        Some(LiftOutcome::Lifted) => FlashMessage::SuspensionLifted,
        Some(LiftOutcome::NotSuspended) => FlashMessage::UserNotSuspended,
    };
    Ok(redirect_with_flash(&format!("/users/{id}"), flash))
}

/// All settings that can be changed. Browsers omit unchecked checkboxes.
#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct UserSettingsForm {
    name: String,
    role: RoleChoice,
    add: Option<String>,
    delete: Option<String>,
    four_k: Option<String>,
    movies: String,
    seasons: String,
    space: String,
    movie_age: String,
    show_age: String,
    parent: Option<String>,
    #[serde(default)]
    digest: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RoleChoice {
    Admin,
    Member,
}

pub(in crate::web) async fn change_settings(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(form): SignedForm<UserSettingsForm>,
) -> PageResult {
    let path = format!("/users/{id}");
    let changes = match form.changes() {
        Ok(changes) => changes,
        Err(flash) => return Ok(redirect_with_flash(&path, flash)),
    };
    let outcome = console.engine.decisions.change_user(UserId(id), changes, Actor::Console).await?;
    let flash = match outcome {
        UserChangeOutcome::Changed => {
            console.engine.digests.wake_worker();
            FlashMessage::SettingsSaved
        }
        UserChangeOutcome::Unchanged => FlashMessage::NothingChanged,
        UserChangeOutcome::LastAdmin => FlashMessage::LastAdmin,
        UserChangeOutcome::UnknownUser => return Err(PageError::NotFound),
    };
    Ok(redirect_with_flash(&path, flash))
}

impl UserSettingsForm {
    /// Returns the settings of the form. An empty name leaves the name as it is.
    fn changes(&self) -> Result<UserChanges, FlashMessage> {
        let name = Some(self.name.trim()).filter(|name| !name.is_empty());
        Ok(UserChanges {
            role: Some(match self.role {
                RoleChoice::Admin => UserRole::Admin,
                RoleChoice::Member => UserRole::Member,
            }),
            name: name.map(UserName::parse).transpose().map_err(|_| FlashMessage::InvalidName)?,
            add: Some(self.add.is_some()),
            delete: Some(self.delete.is_some()),
            four_k: Some(self.four_k.is_some()),
            movies: Some(parse_limit(&self.movies)?),
            seasons: Some(parse_limit(&self.seasons)?),
            space: Some(parse_limit(&self.space)?),
            movie_cap: Some(parse_cap(&self.movie_age)?),
            show_cap: Some(parse_cap(&self.show_age)?),
            parent: Some(self.parent.is_some()),
            digest: Some(parse_digest(&self.digest)?),
        })
    }
}

fn parse_limit(text: &str) -> Result<UserLimit, FlashMessage> {
    match text.trim() {
        "" => Ok(UserLimit::Household),
        count => count.parse().map(UserLimit::Own).map_err(|_| FlashMessage::InvalidLimit),
    }
}

/// Parses the time of a digest. An empty text means that there is none.
pub(super) fn parse_digest(text: &str) -> Result<Option<DigestSchedule>, FlashMessage> {
    match text.trim() {
        "" | "off" => Ok(None),
        words => digest_command::parse_schedule(words).map(Some).ok_or(FlashMessage::InvalidDigest),
    }
}

fn parse_cap(text: &str) -> Result<Option<MinimumAge>, FlashMessage> {
    match text.trim() {
        "" => Ok(None),
        age => MinimumAge::parse(age).map(Some).ok_or(FlashMessage::InvalidAge),
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct EraseUserForm {
    word: String,
}

pub(in crate::web) async fn erase_user(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(form): SignedForm<EraseUserForm>,
) -> PageResult {
    let (now, user) = (console.clock.now(), UserId(id));
    if form.word.trim() != ERASURE_WORD {
        return Ok(redirect_with_flash(&format!("/users/{id}"), FlashMessage::ErasureNotConfirmed));
    }
    let outcome = console.db.write(move |conn| match user_admin::find_known_user(conn, user)? {
        Some(_) => forget::forget_user(conn, user, Actor::Console, now).map(Some),
        None => Ok(None),
    });
    Ok(match outcome.await? {
        None => return Err(PageError::NotFound),
        Some(ErasureOutcome::Erased) => redirect_with_flash("/users", FlashMessage::UserErased),
        Some(ErasureOutcome::LastAdmin) => {
            redirect_with_flash(&format!("/users/{id}"), FlashMessage::LastAdmin)
        }
        Some(ErasureOutcome::Busy) => redirect_with_flash(&format!("/users/{id}"), FlashMessage::UserBusy),
    })
}

/// Exports all data stored about a user, in readable form.
pub(in crate::web) async fn export_user(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    let (now, user) = (console.clock.now(), UserId(id));
    let export = console.db.write(move |conn| {
        if user_admin::find_known_user(conn, user)?.is_none() {
            return Ok(None);
        }
        let entry = NewAuditEntry {
            actor: Actor::Console,
            kind: "export",
            subject: AuditSubject::User(user),
            detail: json!({}),
        };
        audit::record_change(conn, &entry, now)?;
        export::export_user(conn, user).map(Some)
    });
    let Some(export) = export.await? else { return Err(PageError::NotFound) };
    let body = match serde_json::to_vec_pretty(&export) {
        Ok(body) => body,
        Err(error) => return Ok(error_response(error)),
    };
    let name = format!("attachment; filename=\"dialarr-user-{id}.json\"");
    let head = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (CONTENT_DISPOSITION, name),
        (CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((head, body).into_response())
}
