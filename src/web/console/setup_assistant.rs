//! Setup assistant: the forms of the settings page, step by step.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::layout::{ConsoleSection, PageLayout, render_page};
use super::model_preset::{PresetOption, apply_preset, list_presets};
use super::operator_name::NameField;
use super::responses::{PageError, PageParams, PageResult};
use super::setting_field::FieldInput;
use super::settings_form::{FormOutcome, FormScope, Refusal, SettingSection, SettingsForm};
use super::settings_save::{FormSave, check_scope, load_settings, save_form};
use super::setup_texting::{self, Contact, TextingChoice};
use super::setup_webhooks::{self, WebhookLine};
use super::test_report::TestReport;
use crate::config::{ConfigProblem, ConfigSources, ValueSource, Variable};
use crate::settings::setup_step::{SetupProgress, SetupStep};
use crate::settings::texting_way::TextingWay;
use crate::store::audit;
use crate::store::people::users;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

pub(super) const SETUP_PATH: &str = "/setup";

#[derive(Template)]
#[template(path = "setup.html")]
struct SetupPage {
    layout: PageLayout,
    /// Reason why earlier settings are still in use.
    failure: Option<String>,
    steps: Vec<StepLink>,
    step: SetupStep,
    number: usize,
    next_path: String,
    version: i64,
    section: SettingSection,
    /// Name of the operator, at the step that asks for it.
    name: Option<NameField>,
    /// Model servers, at the step that asks for one.
    presets: Vec<PresetOption>,
    /// Webhooks with their changes, once their secret and URL are known.
    webhooks: Vec<WebhookLine>,
    /// True if a button makes the changes.
    can_install: bool,
    texting: TextingChoice,
    /// Number or bot to write to, at the end.
    contact: Option<Contact>,
    has_installed_webhooks: bool,
    /// True if nobody can approve newcomers.
    lacks_admin: bool,
}

struct StepLink {
    label: &'static str,
    path: String,
    is_current: bool,
    state: StepState,
}

/// State of a step, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepState {
    Open,
    Done,
    /// The step is done, and a connection of it does not work.
    Failing,
}

/// Request for a page of the assistant.
pub(super) struct SetupPageRequest<'a> {
    pub(super) console: &'a ConsoleState,
    pub(super) operator: &'a Operator,
    pub(super) headers: &'a HeaderMap,
}

/// Content that a step shows besides the current settings.
#[derive(Default)]
pub(super) struct StepOutcome<'a> {
    pub(super) form: Option<(&'a SettingsForm, FormOutcome)>,
    /// Chosen way of texting; `None` for the configured one.
    pub(super) way: Option<TextingWay>,
    /// Preset of the submitted form.
    pub(super) preset: Option<&'a str>,
    /// Name of a submitted form that was not saved.
    pub(super) name: Option<NameField>,
    /// Outcome of the installation of the webhooks.
    pub(super) webhooks: Option<Vec<WebhookLine>>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(in crate::web) struct SetupQuery {
    step: Option<SetupStep>,
    way: Option<TextingWay>,
}

pub(in crate::web) async fn show_setup(
    State(console): State<ConsoleState>,
    operator: Operator,
    headers: HeaderMap,
    PageParams(query): PageParams<SetupQuery>,
) -> PageResult {
    let request = SetupPageRequest { console: &console, operator: &operator, headers: &headers };
    request.render_step(query.step, StepOutcome { way: query.way, ..StepOutcome::default() }).await
}

pub(in crate::web) async fn save_step(
    State(console): State<ConsoleState>,
    operator: Operator,
    headers: HeaderMap,
    SignedForm(mut fields): SignedForm<BTreeMap<String, String>>,
) -> PageResult {
    let request = SetupPageRequest { console: &console, operator: &operator, headers: &headers };
    let step = fields.get("step").and_then(|id| SetupStep::ALL.into_iter().find(|step| step.id() == id));
    let step = step.ok_or(PageError::NotFound)?;
    let progress = request.load_progress().await?;
    if progress.as_progress().choose_step(Some(step)) != step {
        return Ok(Redirect::to(SETUP_PATH).into_response());
    }
    let name = fields.get("name").map(|text| NameField::from_entered(text));
    let preset = apply_preset(&mut fields, &progress.sources);
    let way = fields.get("way").and_then(|id| TextingWay::ALL.into_iter().find(|way| way.id() == id));
    let scope = FormScope::from_step(step, way.unwrap_or(TextingWay::Twilio));
    let form = SettingsForm::parse(scope, fields).ok_or(PageError::NotFound)?;
    let mut outcome = StepOutcome { preset, way, ..StepOutcome::default() };
    match request.save_answers(&progress.sources, step, &form, name.as_ref()).await? {
        FormSave::Saved { .. } if form.requests_test() => {
            let report = check_scope(&console, &form.scope).await;
            outcome.form = report.map(|report| (&form, FormOutcome::Tested(report)));
            request.render_step(Some(step), outcome).await
        }
        FormSave::Saved { session, .. } => {
            let next = match (step, way) {
                // The changes at the webhooks are shown before they are made.
                (SetupStep::Webhooks, _) => step_path(step),
                // A test text follows.
                (SetupStep::Texting, Some(TextingWay::Phone)) => setup_texting::way_path(TextingWay::Phone),
                _ => step_path(step.next()),
            };
            Ok((session, Redirect::to(&next)).into_response())
        }
        FormSave::Refused(status, refusal) => {
            (outcome.form, outcome.name) = (Some((&form, FormOutcome::Refused(refusal))), name);
            let page: Response = request.render_step(Some(step), outcome).await?;
            Ok((status, page).into_response())
        }
    }
}

/// Settings of the assistant, with their version and the state of the webhooks.
pub(super) struct LoadedSetup {
    version: i64,
    sources: ConfigSources,
    has_installed_webhooks: bool,
    has_admin: bool,
}

impl LoadedSetup {
    pub(super) fn as_progress(&self) -> SetupProgress<'_> {
        SetupProgress {
            sources: &self.sources,
            has_installed_webhooks: self.has_installed_webhooks,
            has_admin: self.has_admin,
        }
    }
}

impl SetupPageRequest<'_> {
    pub(super) async fn load_progress(&self) -> Result<LoadedSetup, PageError> {
        let settings = self.console.settings.as_ref().ok_or(PageError::NotFound)?;
        let (version, sources) = load_settings(settings).await?;
        let read = |conn: &mut _| Ok((audit::has_installed_webhooks(conn)?, users::has_admin(conn)?));
        let (has_installed_webhooks, has_admin) = self.console.db.read(read).await?;
        Ok(LoadedSetup { version, sources, has_installed_webhooks, has_admin })
    }

    /// Returns whether a connection of the step does not work. Texting needs the webhooks, which are installed after it.
    fn fails(&self, step: SetupStep, has_installed_webhooks: bool) -> bool {
        if step == SetupStep::Texting && !has_installed_webhooks {
            return false;
        }
        let Some(group) = step.tested_group() else { return false };
        let connections = self.console.connections.current();
        connections.iter().any(|state| state.kind.group() == Some(group) && state.failure().is_some())
    }

    /// Saves a step with the name of the operator.
    async fn save_answers(
        &self,
        sources: &ConfigSources,
        step: SetupStep,
        form: &SettingsForm,
        name: Option<&NameField>,
    ) -> Result<FormSave, PageError> {
        let settings = self.console.settings.as_ref().ok_or(PageError::NotFound)?;
        let refuse =
            |problems| FormSave::Refused(StatusCode::UNPROCESSABLE_ENTITY, Refusal::Invalid(problems));
        if name.is_some_and(|name| name.problem.is_some()) {
            return Ok(refuse(Vec::new()));
        }
        let mut change = form.change(sources);
        match step {
            SetupStep::Password if change.set.is_empty() && !step.is_done(sources) => {
                return Ok(refuse(step.variables().iter().copied().map(missing_value).collect()));
            }
            SetupStep::Webhooks => setup_webhooks::add_missing_secret(&mut change, sources),
            SetupStep::Password
            | SetupStep::You
            | SetupStep::Library
            | SetupStep::Media
            | SetupStep::Discovery
            | SetupStep::Model
            | SetupStep::Texting
            | SetupStep::Finish => {}
        }
        let saved = save_form(self.console, settings, self.headers, change).await?;
        if let (FormSave::Saved { .. }, Some(name)) = (&saved, name) {
            name.store(self.console, &settings.load_sources().await?).await?;
        }
        Ok(saved)
    }

    /// Lists the steps with their states. `failed_test` is the result of a test of the current step.
    fn list_steps(
        &self,
        loaded: &LoadedSetup,
        current: SetupStep,
        failed_test: Option<bool>,
    ) -> Vec<StepLink> {
        let progress = loaded.as_progress();
        let fails = |step: SetupStep| {
            let tested = failed_test.filter(|_| step == current);
            tested.unwrap_or_else(|| self.fails(step, loaded.has_installed_webhooks))
        };
        let link = |step: SetupStep| StepLink {
            label: step.label(),
            path: step_path(step),
            is_current: step == current,
            state: match progress.is_done(step) {
                true if fails(step) => StepState::Failing,
                true => StepState::Done,
                false => StepState::Open,
            },
        };
        SetupStep::ALL.into_iter().map(link).collect()
    }

    /// Renders a step, by default the first one that is not done.
    pub(super) async fn render_step(&self, step: Option<SetupStep>, outcome: StepOutcome<'_>) -> PageResult {
        let settings = self.console.settings.as_ref().ok_or(PageError::NotFound)?;
        let loaded = self.load_progress().await?;
        let (progress, sources) = (loaded.as_progress(), &loaded.sources);
        let step = progress.choose_step(step);
        let way = outcome.way.unwrap_or_else(|| TextingWay::from_sources(sources));
        let mut section = FormScope::from_step(step, way).into_section(sources, outcome.form);
        let (mut name, mut presets, mut webhooks, mut contact) = (None, Vec::new(), Vec::new(), None);
        match step {
            SetupStep::You => {
                name = match outcome.name {
                    Some(entered) => Some(entered),
                    None => Some(NameField::load(self.console, sources).await?),
                }
            }
            SetupStep::Model => presets = list_presets(sources, outcome.preset),
            SetupStep::Webhooks => {
                setup_webhooks::suggest_url(&mut section, sources, self.headers);
                webhooks = match outcome.webhooks {
                    Some(installed) => installed,
                    None => setup_webhooks::plan_webhooks(sources).await,
                };
            }
            SetupStep::Finish => contact = Contact::load(self.console, sources, way).await,
            SetupStep::Password
            | SetupStep::Library
            | SetupStep::Media
            | SetupStep::Discovery
            | SetupStep::Texting => {}
        }
        // The connections are checked only after their test.
        let failed_test = section.test.as_ref().map(TestReport::has_failure);
        Ok(render_page(&SetupPage {
            layout: PageLayout::new(self.operator, ConsoleSection::Settings, "Setup"),
            failure: settings.current_use().failure.clone(),
            steps: self.list_steps(&loaded, step, failed_test),
            number: 1 + SetupStep::ALL.into_iter().take_while(|other| *other != step).count(),
            next_path: step_path(step.next()),
            contact,
            has_installed_webhooks: loaded.has_installed_webhooks || way.is_polled(sources),
            lacks_admin: !loaded.has_admin,
            texting: TextingChoice::load(self.console, sources, way).await?,
            can_install: webhooks.iter().any(|webhook| webhook.is_planned),
            step,
            version: loaded.version,
            section,
            name,
            presets,
            webhooks,
        }))
    }
}

/// Returns the problem of a step that cannot be left without a value.
fn missing_value(variable: Variable) -> ConfigProblem {
    ConfigProblem {
        variable: variable.name,
        source: ValueSource::Default,
        reason: "enter a password".to_owned(),
        example: variable.example,
    }
}

pub(super) fn step_path(step: SetupStep) -> String {
    format!("{SETUP_PATH}?step={}", step.id())
}
