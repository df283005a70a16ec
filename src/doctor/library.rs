//! One Sonarr or Radarr: whether it can be used, what it says of itself, and whether it will report to us.

use super::{Finding, size};
use crate::arr::server::{Ailment, AilmentLevel, App};
use crate::arr::{ArrError, RootFolder, SystemStatus};
use crate::setup::Namesakes;
use crate::setup::arr_instance::ArrInstance;
use crate::setup::connect::{self, Hook, Plan};

/// Where a server is to report.
pub(super) enum Reporting {
    /// `None`: nobody said with which secret, or where we are.
    To(Option<Hook>),
    /// It is simulated, and reports to nobody.
    Simulated,
}

pub(super) async fn check(instance: &ArrInstance, reporting: Reporting) -> Vec<Finding> {
    let (label, app, server) = (instance.label, instance.app(), instance.server());
    let status = match server.status().await {
        Ok(status) => status,
        // What else could be asked would fail alike.
        Err(error) => return vec![unusable(label, &error)],
    };
    let first = identity(label, app, &status);
    if status.app_name != app.name() {
        return vec![first];
    }
    let (folders, profiles, ailments, webhook) =
        tokio::join!(server.root_folders(), server.profiles(), server.health(), reports(instance, reporting));
    let mut findings = vec![first];
    findings
        .push(folders.map_or_else(|error| unusable(label, &error), |folders| root_folders(label, &folders)));
    findings.push(match profiles {
        Ok(profiles) if profiles.is_empty() => Finding::failure(
            format!("{label}: no quality profile"),
            "make one: Settings, Profiles; without it nothing can be added",
        ),
        Ok(profiles) => Finding::ok(format!("{label}: quality profiles: {}", profiles.len())),
        Err(error) => unusable(label, &error),
    });
    match ailments {
        Ok(ailments) => findings.extend(health(label, &ailments)),
        Err(error) => findings.push(unusable(label, &error)),
    }
    findings.extend(webhook);
    findings
}

fn identity(label: &str, app: App, status: &SystemStatus) -> Finding {
    let SystemStatus { app_name, version, .. } = status;
    let (name, oldest) = match app {
        App::Sonarr => (app.name(), 4),
        App::Radarr => (app.name(), 5),
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
        (Some(free), 0) => Finding::ok(format!("{label}: root folders accessible, {} free", size(free))),
        (Some(_), _) => Finding::warning(
            format!("{label}: {unreachable} of {} root folders not accessible", folders.len()),
            hint,
        ),
    }
}

/// What it says itself, however bad: most of it does not keep texts from being answered.
fn health(label: &str, ailments: &[Ailment]) -> Vec<Finding> {
    let told: Vec<Finding> = ailments
        .iter()
        .filter(|ailment| ailment.level > AilmentLevel::Notice)
        .map(|ailment| {
            let what = format!("{label}: it says: {}", ailment.message.trim_end_matches('.'));
            Finding::warning(what, "see System, Status there")
        })
        .collect();
    if told.is_empty() {
        vec![Finding::ok(format!("{label}: finds nothing wrong with itself"))]
    } else {
        told
    }
}

async fn reports(instance: &ArrInstance, reporting: Reporting) -> Vec<Finding> {
    let label = instance.label;
    let hook = match reporting {
        Reporting::To(Some(hook)) => hook,
        Reporting::To(None) => {
            return vec![Finding::warning(
                format!(
                    "{label}: its webhook is off, so what is ready is told minutes later, and trouble not at all"
                ),
                "set NOTIFICATION_SECRET and NOTIFICATION_URL (or PUBLIC_URL), then dialarr setup --apply",
            )];
        }
        Reporting::Simulated => return Vec::new(),
    };
    let plan = match connect::plan(instance, &hook, Namesakes::Leave).await {
        Ok(plan) => plan,
        Err(error) => return vec![unusable(label, &error)],
    };
    let mut findings = vec![webhook(instance, &plan).await];
    findings.extend(plan.elsewhere.iter().map(|other| {
        Finding::warning(
            format!("{label}: the webhook {other} leads to another Dialarr, or to a former address"),
            "remove it if no other Dialarr uses it: Settings, Connect; or dialarr setup --apply --take-over",
        )
    }));
    findings
}

/// Whether our webhook is as it should be, and works.
async fn webhook(instance: &ArrInstance, plan: &Plan) -> Finding {
    let (label, Plan { connection, changes, doubles, .. }) = (instance.label, plan);
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
    match instance.server().test(connection).await {
        Ok(()) => Finding::ok(format!("{label}: webhook set, and its test came through")),
        Err(error) => Finding::warning(
            format!("{label}: webhook set, but its test did not come through: failed to {error}"),
            "start dialarr serve; after a change of NOTIFICATION_SECRET: dialarr setup --apply --renew-secret",
        ),
    }
}

fn unusable(label: &str, error: &ArrError) -> Finding {
    let hint = match error {
        ArrError::Unreachable(_) | ArrError::NoAnswer(_) => "check its URL, and whether it runs",
        ArrError::Unavailable(_) => "wait until it has started, then try again",
        ArrError::Unauthorized => "copy its API key again: Settings, General, Security",
        ArrError::WrongUrl(_) => "check its URL; a URL base such as /sonarr belongs to it",
        ArrError::Refused(_) | ArrError::NotFound | ArrError::Server { .. } | ArrError::Unreadable(_) => {
            "look into its log, and update it"
        }
    };
    Finding::failure(format!("{label}: failed to {error}"), hint)
}
