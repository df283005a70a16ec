//! Check of one Sonarr or Radarr: availability, its own health report, and the webhook that sends events to Dialarr.

use super::{Finding, format_size};
use crate::arr::common_api::{HealthLevel, HealthProblem, ServerKind};
use crate::arr::{ArrError, RootFolder, SystemStatus};
use crate::setup::ConflictPolicy;
use crate::setup::arr_instance::ArrInstance;
use crate::setup::connect::{self, WebhookPlan, WebhookTarget};

/// Expected webhook of a server.
pub(super) enum WebhookCheck {
    /// Target of the webhook; `None`: the secret or Dialarr's address is not configured.
    To(Option<WebhookTarget>),
    /// The server is simulated, and sends no events.
    Simulated,
}

pub(super) async fn check_instance(instance: &ArrInstance, reporting: WebhookCheck) -> Vec<Finding> {
    let (label, app, server) = (instance.label, instance.server_kind(), instance.common_api());
    let status = match server.fetch_status().await {
        Ok(status) => status,
        // Any further request would fail in the same way.
        Err(error) => return vec![unusable_instance(label, &error)],
    };
    let first = identity_finding(label, app, &status);
    if status.app_name != app.name() {
        return vec![first];
    }
    let (folders, profiles, health_problems, webhook) = tokio::join!(
        server.fetch_root_folders(),
        server.fetch_profiles(),
        server.fetch_health(),
        check_webhook(instance, reporting)
    );
    let mut findings = vec![first];
    findings.push(
        folders
            .map_or_else(|error| unusable_instance(label, &error), |folders| root_folders(label, &folders)),
    );
    findings.push(match profiles {
        Ok(profiles) if profiles.is_empty() => Finding::failure(
            format!("{label}: no quality profile"),
            "make one: Settings, Profiles; without it nothing can be added",
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

fn identity_finding(label: &str, app: ServerKind, status: &SystemStatus) -> Finding {
    let SystemStatus { app_name, version, .. } = status;
    let (name, oldest) = match app {
        ServerKind::Sonarr => (app.name(), 4),
        ServerKind::Radarr => (app.name(), 5),
    };
    if app_name != name {
        let found = if app_name.is_empty() { "something else" } else { app_name };
        let what = format!("{label}: {found} answers at its URL");
        return Finding::failure(what, format!("the URLs may be mixed up; set the one of {name}"));
    }
    match version.split('.').next().and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major < oldest => Finding::warning(
            format!("{label}: version {version} is older than {oldest}"),
            format!("update {name}; what Dialarr does was made for {oldest} and later"),
        ),
        Some(_) => Finding::ok(format!("{label}: reachable, version {version}")),
        None => Finding::warning(format!("{label}: reachable, of unknown version"), format!("update {name}")),
    }
}

fn root_folders(label: &str, folders: &[RootFolder]) -> Finding {
    let hint = "see Settings, Media Management, Root Folders: whether the disk is mounted and may be written";
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

/// Returns the health problems that a server reports, at any level: most of them do not keep messages from being
/// answered.
fn health_findings(label: &str, health_problems: &[HealthProblem]) -> Vec<Finding> {
    let problems: Vec<Finding> = health_problems
        .iter()
        .filter(|problem| problem.level > HealthLevel::Notice)
        .map(|problem| {
            let what = format!("{label}: it says: {}", problem.message.trim_end_matches('.'));
            Finding::warning(what, "see System, Status there")
        })
        .collect();
    if problems.is_empty() {
        vec![Finding::ok(format!("{label}: finds nothing wrong with itself"))]
    } else {
        problems
    }
}

async fn check_webhook(instance: &ArrInstance, reporting: WebhookCheck) -> Vec<Finding> {
    let label = instance.label;
    let hook = match reporting {
        WebhookCheck::To(Some(hook)) => hook,
        WebhookCheck::To(None) => {
            return vec![Finding::warning(
                format!(
                    "{label}: its webhook is off, so what is ready is told minutes later, and trouble not at all"
                ),
                "set NOTIFICATION_SECRET and NOTIFICATION_URL (or PUBLIC_URL), then dialarr setup --apply",
            )];
        }
        WebhookCheck::Simulated => return Vec::new(),
    };
    let plan = match connect::plan_webhook(instance, &hook, ConflictPolicy::Leave).await {
        Ok(plan) => plan,
        Err(error) => return vec![unusable_instance(label, &error)],
    };
    let mut findings = vec![webhook_finding(instance, &plan).await];
    findings.extend(plan.elsewhere.iter().map(|other| {
        Finding::warning(
            format!("{label}: the webhook {other} leads to another Dialarr, or to a former address"),
            "remove it if no other Dialarr uses it: Settings, Connect; or dialarr setup --apply --take-over",
        )
    }));
    findings
}

/// Checks that Dialarr's webhook is set up correctly and works.
async fn webhook_finding(instance: &ArrInstance, plan: &WebhookPlan) -> Finding {
    let (label, WebhookPlan { connection, changes, doubles, .. }) = (instance.label, plan);
    if !changes.is_empty() {
        let differ: Vec<String> = changes.iter().map(ToString::to_string).collect();
        return Finding::warning(format!("{label}: webhook: {}", differ.join("; ")), "dialarr setup --apply");
    }
    if *doubles > 0 {
        return Finding::warning(
            format!("{label}: {} webhooks lead here, and one is enough", doubles + 1),
            "remove all but one: Settings, Connect",
        );
    }
    match instance.common_api().test_connect_entry(connection).await {
        Ok(()) => Finding::ok(format!("{label}: webhook set, and its test came through")),
        Err(error) => Finding::warning(
            format!("{label}: webhook set, but its test did not come through: failed to {error}"),
            "start dialarr serve; after a change of NOTIFICATION_SECRET: dialarr setup --apply --renew-secret",
        ),
    }
}

fn unusable_instance(label: &str, error: &ArrError) -> Finding {
    let hint = match error {
        ArrError::Unreachable(_) | ArrError::NoResponse(_) => "check its URL, and whether it runs",
        ArrError::Unavailable(_) => "wait until it has started, then try again",
        ArrError::Unauthorized => "copy its API key again: Settings, General, Security",
        ArrError::WrongUrl(_) => "check its URL; a URL base such as /sonarr belongs to it",
        ArrError::Refused(_) | ArrError::NotFound | ArrError::Server { .. } | ArrError::Unreadable(_) => {
            "look into its log, and update it"
        }
    };
    Finding::failure(format!("{label}: failed to {error}"), hint)
}
