//! Change of the configuration while the program runs, and its cause: changes of the stored settings.

use std::convert::Infallible;
use std::time::Duration;

use crate::app::{App, AppBlueprint, ApplyError};
use crate::config::{Config, ConfigProblems, ConfigSection, ConfigSources};
use crate::settings::{LiveSettings, SettingsUse};
use crate::store::database::db::DbError;
use crate::wiring;

/// Interval at which the program looks for changes by commands, and tries a failed change again.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Error that prevents a changed configuration from taking effect. The program continues with the earlier one.
#[derive(Debug, thiserror::Error)]
pub enum ReconfigurationError {
    #[error("build the clients of the changed configuration: {0:#}")]
    Build(anyhow::Error),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Invalid(#[from] ConfigProblems),
    #[error("read the stored settings")]
    Read(#[from] DbError),
}

impl App {
    /// Applies a changed configuration, and returns its changed sections. Only the clients of changed sections are
    /// built again. [`Variable::needs_restart`](crate::config::Variable::needs_restart) returns which settings take
    /// effect only at the next start.
    pub async fn apply_configuration(
        &self,
        config: &Config,
    ) -> Result<Vec<ConfigSection>, ReconfigurationError> {
        let mut changed = Vec::new();
        let now = self.console.clock.now();
        let rebuild = |current: &AppBlueprint| {
            let blueprint =
                wiring::build_blueprint(config, Some(current)).map_err(ReconfigurationError::Build)?;
            changed = current.config.as_ref().map(|old| old.changed_sections(config)).unwrap_or_default();
            if changed.contains(&ConfigSection::Libraries) {
                blueprint.library.preload_caches(now);
            } else if changed.contains(&ConfigSection::MediaServers) {
                blueprint.library.media_servers.preload_titles(now);
            }
            Ok::<_, ReconfigurationError>(blueprint)
        };
        self.change_blueprint(rebuild).await?;
        let names: Vec<&str> = changed.iter().map(|section| section.name()).collect();
        tracing::info!(sections = names.join(", "), "applied a changed configuration");
        Ok(changed)
    }
}

/// Component that applies changes of the stored settings to the running program, whether the console or a command has
/// made them.
pub struct SettingsApplier {
    settings: LiveSettings,
    /// Sources with which the program was started.
    start: ConfigSources,
    /// Configuration in use.
    config: Config,
}

impl SettingsApplier {
    /// Creates the component for a program that was started with the configuration of these sources.
    pub fn new(settings: LiveSettings, start: ConfigSources, config: Config) -> Self {
        Self { settings, start, config }
    }

    /// Applies each change for as long as the future is polled, the first time at once: a command may have changed a
    /// setting during the start.
    pub async fn run(&mut self, app: &App) -> Infallible {
        loop {
            self.apply_newest(app).await;
            tokio::select! {
                () = self.settings.wait_for_change() => {}
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
        }
    }

    /// Applies the newest stored settings unless they are in use. If that fails, the earlier ones stay in use, and the
    /// failure is logged once.
    pub async fn apply_newest(&mut self, app: &App) {
        let earlier = self.settings.current_use();
        let (version, result) = match self.settings.load_version().await {
            Ok(version) if earlier.version == Some(version) && earlier.failure.is_none() => return,
            Ok(version) => (Some(version), self.apply(app).await),
            Err(error) => (earlier.version, Err(error.into())),
        };
        let current = match result {
            Ok(needing_restart) => SettingsUse { version, failure: None, needing_restart },
            Err(error) => {
                let needing_restart = earlier.needing_restart.clone();
                SettingsUse { version, failure: Some(describe_error(&error)), needing_restart }
            }
        };
        if *earlier == current {
            return;
        }
        if let Some(error) = &current.failure {
            tracing::error!(
                error,
                "changed settings are not in use; hint: correct them in the console or with dialarr config"
            );
        }
        if !current.needing_restart.is_empty() {
            let settings = current.needing_restart.join(", ");
            tracing::warn!(settings, "changed settings take effect after a restart");
        }
        self.settings.record_use(current);
    }

    /// Applies the stored settings, and returns the changed ones that take effect only at the next start.
    async fn apply(&mut self, app: &App) -> Result<Vec<&'static str>, ReconfigurationError> {
        let sources = self.settings.load_sources().await?;
        let config = Config::from_sources(&sources)?;
        if !self.config.changed_sections(&config).is_empty() {
            app.apply_configuration(&config).await?;
            self.config = config;
            wiring::log_configuration_warnings(&self.config);
        }
        Ok(sources.changes_for_restart(&self.start))
    }
}

/// Describes an error with its causes.
fn describe_error(error: &ReconfigurationError) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(format!("failed to {error}"), |text, cause| format!("{text}: {cause}"))
}
