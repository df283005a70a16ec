//! Settings page: one form for each group of settings.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;

use super::flash::{self, FlashMessage};
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use super::responses::{PageError, PageParams, PageResult, redirect_with_flash};
use super::setting_field::FieldInput;
use super::settings_form::{FormOutcome, FormScope, SettingSection, SettingsForm};
use super::settings_save::{FormSave, check_scope, load_settings, save_form};
use crate::conversation::library_sample::server_label;
use crate::engine::moved_servers::SameServerOutcome;
use crate::store::audit::Actor;
use crate::store::service_identities::MovedInstance;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    layout: PageLayout,
    is_simulated: bool,
    /// Reason why earlier settings are still in use.
    failure: Option<String>,
    needing_restart: Vec<&'static str>,
    /// Number of the newest change that the page shows.
    version: i64,
    moved: Vec<MovedServer>,
    sections: Vec<SettingSection>,
}

/// Instance of Sonarr or Radarr that was moved to another server.
struct MovedServer {
    slot: String,
    label: String,
    moved_at: DisplayTime,
    /// Time of the move, by which a form of an earlier move is recognized.
    moved_at_ms: i64,
}

#[derive(Debug, Clone, Copy, Default, serde::Deserialize)]
pub(in crate::web) struct SettingsQuery {
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
}

pub(in crate::web) async fn show_settings(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(query): PageParams<SettingsQuery>,
) -> PageResult {
    settings_page(&console, settings_layout(&operator).with_flash(query.flash), None).await
}

pub(in crate::web) async fn change_settings(
    State(console): State<ConsoleState>,
    operator: Operator,
    headers: HeaderMap,
    SignedForm(fields): SignedForm<BTreeMap<String, String>>,
) -> PageResult {
    let settings = console.settings.as_ref().ok_or(PageError::NotFound)?;
    let id = fields.get("group").map(String::as_str);
    let scope = FormScope::groups().into_iter().find(|scope| Some(scope.id) == id);
    let form = SettingsForm::parse(scope.ok_or(PageError::NotFound)?, fields).ok_or(PageError::NotFound)?;
    let (_, sources) = load_settings(settings).await?;
    let layout = settings_layout(&operator);
    match save_form(&console, settings, &headers, form.change(&sources)).await? {
        FormSave::Saved { flash, .. } if form.requests_test() => {
            let report = check_scope(&console, &form.scope).await;
            let outcome = report.map(|report| (&form, FormOutcome::Tested(report)));
            settings_page(&console, layout.with_flash(flash), outcome).await
        }
        FormSave::Saved { flash, session } => {
            let flash = flash.unwrap_or(FlashMessage::NothingChanged);
            let path = format!("/settings#{}", form.scope.id);
            Ok((session, redirect_with_flash(&path, flash)).into_response())
        }
        FormSave::Refused(status, refusal) => {
            let outcome = Some((&form, FormOutcome::Refused(refusal)));
            let page: Response = settings_page(&console, layout, outcome).await?;
            Ok((status, page).into_response())
        }
    }
}

fn settings_layout(operator: &Operator) -> PageLayout {
    PageLayout::new(operator, ConsoleSection::Settings, "Settings")
}

/// Renders the page, with the outcome of a submitted form in its section.
async fn settings_page(
    console: &ConsoleState,
    layout: PageLayout,
    mut outcome: Option<(&SettingsForm, FormOutcome)>,
) -> PageResult {
    let Some(settings) = &console.settings else {
        return Ok(render_page(&SettingsPage {
            layout,
            is_simulated: true,
            failure: None,
            needing_restart: Vec::new(),
            version: 0,
            moved: Vec::new(),
            sections: Vec::new(),
        }));
    };
    let (version, sources) = load_settings(settings).await?;
    let current = settings.current_use();
    let section = |scope: FormScope| {
        let outcome = outcome.take_if(|(form, _)| form.scope.id == scope.id);
        scope.into_section(&sources, outcome)
    };
    Ok(render_page(&SettingsPage {
        layout,
        is_simulated: false,
        failure: current.failure.clone(),
        needing_restart: current.needing_restart.clone(),
        version,
        moved: moved_servers(console).await?,
        sections: FormScope::groups().into_iter().map(section).collect(),
    }))
}

async fn moved_servers(console: &ConsoleState) -> Result<Vec<MovedServer>, PageError> {
    let moved = console.engine.moved_servers.list_moved().await?;
    let describe = |moved: MovedInstance| MovedServer {
        label: server_label(&moved.slot).to_owned(),
        moved_at: console.display_time(moved.moved_at),
        moved_at_ms: moved.moved_at.as_millisecond(),
        slot: moved.slot,
    };
    Ok(moved.into_iter().map(describe).collect())
}

#[derive(serde::Deserialize)]
pub(in crate::web) struct MovedServerForm {
    slot: String,
    moved_at: i64,
}

pub(in crate::web) async fn confirm_same_server(
    State(console): State<ConsoleState>,
    SignedForm(form): SignedForm<MovedServerForm>,
) -> PageResult {
    let outcome = console.engine.moved_servers.confirm_same_server(&form.slot, Actor::Console).await?;
    let flash = match outcome {
        SameServerOutcome::Confirmed => FlashMessage::SameServer,
        SameServerOutcome::NotMoved => FlashMessage::ServerNotMoved,
        SameServerOutcome::Different => FlashMessage::OtherServer,
        SameServerOutcome::TooFewTitles => FlashMessage::UnknownServer,
        SameServerOutcome::Unreachable(error) => {
            tracing::warn!(slot = form.slot, error, "failed to compare a moved server");
            FlashMessage::ServerUnreachable
        }
    };
    Ok(redirect_with_flash("/settings", flash))
}

pub(in crate::web) async fn confirm_other_server(
    State(console): State<ConsoleState>,
    SignedForm(form): SignedForm<MovedServerForm>,
) -> PageResult {
    let moved_at = Timestamp::from_millisecond(form.moved_at).map_err(|_| PageError::NotFound)?;
    let moved = MovedInstance { slot: form.slot, moved_at };
    let is_recorded = console.engine.moved_servers.confirm_other_server(moved, Actor::Console).await?;
    let flash = if is_recorded { FlashMessage::NewServer } else { FlashMessage::ServerNotMoved };
    Ok(redirect_with_flash("/settings", flash))
}
