//! Change of the configuration while the program runs.

use crate::app::{App, AppBlueprint, ApplyError};
use crate::config::{Config, ConfigSection};
use crate::wiring;

/// Error that prevents a changed configuration from taking effect. The program continues with the earlier one.
#[derive(Debug, thiserror::Error)]
pub enum ReconfigurationError {
    #[error("build the clients of the changed configuration: {0:#}")]
    Build(anyhow::Error),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl App {
    /// Applies a changed configuration, and returns its changed sections. Only the clients of changed sections are
    /// built again. [`ConfigSection::needs_restart`] returns which sections take effect only at the next start.
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
            }
            Ok::<_, ReconfigurationError>(blueprint)
        };
        self.change_blueprint(rebuild).await?;
        let names: Vec<&str> = changed.iter().map(|section| section.name()).collect();
        tracing::info!(sections = names.join(", "), "applied a changed configuration");
        Ok(changed)
    }
}
