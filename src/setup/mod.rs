//! Settings that Sonarr, Radarr and Twilio need for Dialarr: their current state, their target state, and the changes
//! between them.

pub(crate) mod arr_instance;
pub(crate) mod connect;
pub(crate) mod setting_diff;
pub(crate) mod twilio_number;

use setting_diff::SettingDiff;

/// Requested work of a setup run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetupRequest {
    pub(crate) mode: SetupMode,
    pub(crate) secret: WebhookSecret,
    pub(crate) namesakes: ConflictPolicy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetupMode {
    Show,
    Apply,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WebhookSecret {
    Keep,
    Renew,
}

/// Policy for a webhook with Dialarr's name that leads elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConflictPolicy {
    Leave,
    /// Such a webhook is redirected here, unless another one leads here already.
    TakeOver,
}

impl SetupRequest {
    fn applies(self) -> bool {
        self.mode == SetupMode::Apply
    }
}

/// Outcome of one part of the setup.
pub(crate) enum SetupOutcome {
    Skipped {
        why: String,
        hint: String,
    },
    AsItShouldBe,
    Planned(Vec<SettingDiff>),
    /// The changes were applied and read back.
    Done(Vec<SettingDiff>),
    /// The changes failed. `why` fits after "failed to".
    Failed {
        changes: Vec<SettingDiff>,
        why: String,
        hint: String,
    },
}

impl SetupOutcome {
    fn planned(changes: Vec<SettingDiff>) -> Self {
        if changes.is_empty() { Self::AsItShouldBe } else { Self::Planned(changes) }
    }

    /// Builds the failure for changes that were accepted, but that are not there when read back.
    fn unchanged(changes: Vec<SettingDiff>, left: &[SettingDiff]) -> Self {
        let left: Vec<String> = left.iter().map(ToString::to_string).collect();
        Self::Failed {
            changes,
            why: format!("see it changed: still {}", left.join("; ")),
            hint: "set it by hand: docs/OPERATIONS.md says how".to_owned(),
        }
    }
}
