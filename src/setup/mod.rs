//! Setup of Sonarr, Radarr and the ways of texting for Dialarr: compares their settings with the target and applies the
//! differences.

pub(crate) mod arr_instance;
pub(crate) mod bot_name;
pub(crate) mod connect;
mod own_phone;
pub(crate) mod setting_diff;
pub(crate) mod telegram_bot;
pub(crate) mod twilio_number;
pub(crate) mod webhooks;

use setting_diff::SettingDiff;

/// Options of a setup run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetupRequest {
    pub(crate) mode: SetupMode,
    pub(crate) secret: WebhookSecret,
    pub(crate) conflict_policy: ConflictPolicy,
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

/// Policy for a webhook with Dialarr's name but another URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConflictPolicy {
    Leave,
    /// Changes such a webhook, unless another one already has the URL.
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
        reason: String,
        hint: String,
    },
    UpToDate,
    Planned(Vec<SettingDiff>),
    /// The changes were applied and verified.
    Applied(Vec<SettingDiff>),
    /// The changes failed. `reason` completes "failed to …".
    Failed {
        changes: Vec<SettingDiff>,
        reason: String,
        hint: String,
    },
}

impl SetupOutcome {
    fn planned(changes: Vec<SettingDiff>) -> Self {
        if changes.is_empty() { Self::UpToDate } else { Self::Planned(changes) }
    }

    /// Creates the failure for changes that were accepted but have no effect.
    fn unchanged(changes: Vec<SettingDiff>, remaining: &[SettingDiff]) -> Self {
        let remaining: Vec<String> = remaining.iter().map(ToString::to_string).collect();
        Self::Failed {
            changes,
            reason: format!("change the settings: still {}", remaining.join("; ")),
            hint: "set it manually as described in docs/SETUP.md, docs/TWILIO.md or docs/OWN_PHONE.md"
                .to_owned(),
        }
    }
}
