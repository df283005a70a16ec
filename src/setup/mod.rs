//! What Sonarr, Radarr and Twilio have to be told of us: as it is, as it should be, and making it so.

pub(crate) mod arr_instance;
pub(crate) mod connect;
pub(crate) mod setting_diff;
pub(crate) mod twilio_number;

use setting_diff::SettingDiff;

/// What is asked for.
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

/// What becomes of a webhook with our name that leads elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConflictPolicy {
    Leave,
    /// It is led here, unless another one leads here already.
    TakeOver,
}

impl SetupRequest {
    fn applies(self) -> bool {
        self.mode == SetupMode::Apply
    }
}

/// What became of one part of the setup.
pub(crate) enum SetupOutcome {
    Skipped {
        why: String,
        hint: String,
    },
    AsItShouldBe,
    Planned(Vec<SettingDiff>),
    /// And read back.
    Done(Vec<SettingDiff>),
    /// `why` fits after "failed to".
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

    /// It was accepted, and reading it back shows otherwise.
    fn unchanged(changes: Vec<SettingDiff>, left: &[SettingDiff]) -> Self {
        let left: Vec<String> = left.iter().map(ToString::to_string).collect();
        Self::Failed {
            changes,
            why: format!("see it changed: still {}", left.join("; ")),
            hint: "set it by hand: docs/OPERATIONS.md says how".to_owned(),
        }
    }
}
