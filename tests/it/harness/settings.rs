//! Stored settings of a running program, and the component that applies them.

use dialarr::config::{Config, ConfigSources, find_setting};
use dialarr::reconfiguration::SettingsApplier;
use dialarr::settings::LiveSettings;
use dialarr::settings::change::{SettingsChange, SettingsContext, SettingsOutcome};
use dialarr::store::audit::Actor;
use jiff::Timestamp;

use super::TestApp;

/// Stored settings of a program, with a secrets file in their own folder.
pub(crate) struct StoredSettings {
    pub(crate) context: SettingsContext,
    pub(crate) settings: LiveSettings,
    pub(crate) applier: SettingsApplier,
    pub(crate) folder: tempfile::TempDir,
}

impl StoredSettings {
    pub(crate) fn of(app: &TestApp) -> Self {
        Self::with_environment(app, &[])
    }

    pub(crate) fn with_environment(app: &TestApp, environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secrets.json").to_str().unwrap().to_owned();
        let values = environment.iter().copied().chain([("SECRETS_FILE", file.as_str()), ("TZ", "UTC")]);
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let sources = ConfigSources::from_environment(values);
        let context = SettingsContext::from_sources(sources.clone());
        let settings = LiveSettings::new(app.app().db.clone(), context.clone());
        let config = Config::from_sources(&sources).unwrap();
        let applier = SettingsApplier::new(settings.clone(), sources, config);
        Self { context, settings, applier, folder }
    }

    pub(crate) async fn set(&self, values: &[(&str, &str)]) {
        let now = Timestamp::UNIX_EPOCH;
        let outcome = self.settings.apply_changes(change(values), Actor::Console, now).await.unwrap();
        assert!(matches!(outcome, SettingsOutcome::Changed { .. }), "{outcome:?}");
    }
}

/// Runs a test of a program whose stored settings are offered in the console and applied.
pub(crate) async fn with_settings(
    environment: &[(&str, &str)],
    test: impl AsyncFnOnce(&TestApp, &LiveSettings),
) {
    let mut app = TestApp::start_without_model().await;
    let mut stored = StoredSettings::with_environment(&app, environment);
    app.offer_settings(stored.settings.clone());
    tokio::select! {
        never = stored.applier.run(app.app()) => match never {},
        () = test(&app, &stored.settings) => {}
    }
}

/// Returns a change that sets these values.
pub(crate) fn change(values: &[(&str, &str)]) -> SettingsChange {
    let set = values.iter().map(|(name, value)| (find_setting(name).unwrap(), (*value).into())).collect();
    SettingsChange { set, ..SettingsChange::default() }
}
