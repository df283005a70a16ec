//! Check of a Sonarr or Radarr instance: API access, settings, health problems and webhook.

use super::{Finding, FindingGrade, INSTALL_WEBHOOKS, format_size};
use crate::arr::common_api::{HealthLevel, HealthProblem, ServerKind};
use crate::arr::{ArrError, RootFolder, SystemStatus};
use crate::setup::ConflictPolicy;
use crate::setup::arr_instance::ConfiguredInstance;
use crate::setup::connect::{self, WebhookPlan, WebhookTarget};

/// Check of the webhook of an instance.
pub(super) enum WebhookCheck {
    /// Compares the webhook with its target. `None` if the secret or the URL is not configured.
    Compare(Option<WebhookTarget>),
    /// Skips the check for a simulated server.
    Skip,
}

pub(super) async fn check_instance(
    instance: &ConfiguredInstance,
    webhook_check: WebhookCheck,
) -> Vec<Finding> {
    let (label, api) = (instance.label, instance.common_api());
    let identity = check_identity(instance).await;
    if identity.grade == FindingGrade::Failure {
        // Any further request would fail in the same way.
        return vec![identity];
    }
    let (folders, profiles, health_problems, webhook) = tokio::join!(
        api.fetch_root_folders(),
        api.fetch_profiles(),
        api.fetch_health(),
        check_webhook(instance, webhook_check)
    );
    let mut findings = vec![identity];
    findings.push(folders.map_or_else(
        |error| unusable_instance(label, &error),
        |folders| root_folders_finding(label, &folders),
    ));
    findings.push(match profiles {
        Ok(profiles) if profiles.is_empty() => Finding::failure(
            format!("{label}: no quality profile"),
            "create one in Settings, Profiles; without a profile, nothing can be added",
        ),
        Ok(profiles) => Finding::ok(format!("{label}: quality profiles: {}", profiles.len())),
        Err(error) => unusable_instance(label, &error),
    });
    match health_problems {
        Ok(health_problems) => findings.extend(health_findings(label, &health_problems)),
        Err(error) => findings.push(unusable_instance(label, &error)),
    }
    findings.extend(webhook);
    findings
}

/// Checks that the instance responds, with one request.
pub(super) async fn check_identity(instance: &ConfiguredInstance) -> Finding {
    match instance.common_api().fetch_status().await {
        Ok(status) => identity_finding(instance.label, instance.server_kind(), &status),
        Err(error) => unusable_instance(instance.label, &error),
    }
}

fn identity_finding(label: &str, kind: ServerKind, status: &SystemStatus) -> Finding {
    let SystemStatus { app_name, version, .. } = status;
    let (name, oldest) = match kind {
        ServerKind::Sonarr => (kind.name(), 4),
        ServerKind::Radarr => (kind.name(), 5),
    };
    if app_name != name {
        let found = if app_name.is_empty() { "something else" } else { app_name };
        let summary = format!("{label}: {found} responds at its URL");
        return Finding::failure(summary, format!("the URLs may be swapped; set the URL of {name}"));
    }
    match version.split('.').next().and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major < oldest => Finding::warning(
            format!("{label}: version {version} is older than {oldest}"),
            format!("update {name}; Dialarr supports version {oldest} and later"),
        ),
        Some(_) => Finding::ok(format!("{label}: reachable, version {version}")),
        None => Finding::warning(format!("{label}: reachable, of unknown version"), format!("update {name}")),
    }
}

fn root_folders_finding(label: &str, folders: &[RootFolder]) -> Finding {
    let hint = "check in Settings, Media Management, Root Folders that the disk is mounted and writable";
    let unreachable = folders.iter().filter(|folder| folder.free_bytes.is_none()).count();
    let most_free = folders.iter().filter_map(|folder| folder.free_bytes).max();
    match (most_free, unreachable) {
        (None, 0) => Finding::failure(format!("{label}: no root folder"), hint),
        (None, _) => Finding::failure(format!("{label}: no root folder is accessible"), hint),
        (Some(free), 0) => {
            Finding::ok(format!("{label}: root folders accessible, {} free", format_size(free)))
        }
        (Some(_), _) => Finding::warning(
            format!("{label}: {unreachable} of {} root folders not accessible", folders.len()),
            hint,
        ),
    }
}

/// Returns the health problems of an instance as warnings, whatever their level: most do not affect Dialarr.
fn health_findings(label: &str, health_problems: &[HealthProblem]) -> Vec<Finding> {
    let problems: Vec<Finding> = health_problems
        .iter()
        .filter(|problem| problem.level > HealthLevel::Notice)
        .map(|problem| {
            let summary = format!("{label}: reports: {}", problem.message.trim_end_matches('.'));
            Finding::warning(summary, "see System, Status in its web interface")
        })
        .collect();
    if problems.is_empty() {
        vec![Finding::ok(format!("{label}: reports no health problems"))]
    } else {
        problems
    }
}

pub(super) fn no_instance_finding() -> Finding {
    Finding::warning(
        "libraries: none is configured, so nothing can be requested",
        "set SONARR_URL and SONARR_API_KEY, or RADARR_URL and RADARR_API_KEY",
    )
}

async fn check_webhook(instance: &ConfiguredInstance, webhook_check: WebhookCheck) -> Vec<Finding> {
    let label = instance.label;
    let target = match webhook_check {
        WebhookCheck::Compare(Some(target)) => target,
        WebhookCheck::Compare(None) => {
            return vec![Finding::warning(
                format!(
                    "{label}: its webhook is off, so ready titles are announced minutes late, and problems not at all"
                ),
                "set NOTIFICATION_SECRET and NOTIFICATION_URL (or PUBLIC_URL), then install the webhooks in the setup \
                 assistant of the console, or with dialarr setup --apply",
            )];
        }
        WebhookCheck::Skip => return Vec::new(),
    };
    let plan = match connect::plan_webhook(instance, &target, ConflictPolicy::Leave).await {
        Ok(plan) => plan,
        Err(error) => return vec![unusable_instance(label, &error)],
    };
    let mut findings = vec![webhook_finding(instance, &plan).await];
    findings.extend(plan.conflicts.iter().map(|other| {
        Finding::warning(
            format!("{label}: the webhook {other} points to another Dialarr, or to an old URL"),
            "remove it in its settings, Connect, if no other Dialarr uses it",
        )
    }));
    findings
}

/// Checks that Dialarr's webhook is set up correctly and works.
async fn webhook_finding(instance: &ConfiguredInstance, plan: &WebhookPlan) -> Finding {
    let (label, WebhookPlan { entry, changes, duplicates, .. }) = (instance.label, plan);
    if !changes.is_empty() {
        let diffs: Vec<String> = changes.iter().map(ToString::to_string).collect();
        return Finding::warning(format!("{label}: webhook: {}", diffs.join("; ")), INSTALL_WEBHOOKS);
    }
    if *duplicates > 0 {
        return Finding::warning(
            format!("{label}: {} webhooks point here; one is enough", duplicates + 1),
            "remove all but one: Settings, Connect",
        );
    }
    match instance.common_api().try_connect_entry(entry).await {
        Ok(()) => Finding::ok(format!("{label}: webhook set, and its test succeeded")),
        Err(error) => Finding::warning(
            format!("{label}: webhook set, but the test was unsuccessful: failed to {error}"),
            "Dialarr must be running and reachable at NOTIFICATION_URL; after a change of NOTIFICATION_SECRET, install the \
             webhooks again in the setup assistant of the console, or with dialarr setup --apply --renew-secret",
        ),
    }
}

fn unusable_instance(label: &str, error: &ArrError) -> Finding {
    let hint = match error {
        ArrError::Unreachable(_) | ArrError::NoResponse(_) => "check its URL, and that it is running",
        ArrError::Unavailable(_) => "wait until it has started, then try again",
        ArrError::Unauthorized => "copy its API key again: Settings, General, Security",
        ArrError::WrongUrl(_) => "check its URL; a URL base such as /sonarr belongs to it",
        ArrError::Refused(_) | ArrError::NotFound | ArrError::Server { .. } | ArrError::Unreadable(_) => {
            "check its log, and update it"
        }
    };
    Finding::failure(format!("{label}: failed to {error}"), hint)
}
