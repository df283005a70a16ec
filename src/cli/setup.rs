//! `dialarr setup`: shows the settings that Sonarr, Radarr and the channels need for Dialarr, and applies them on request.

use anyhow::Context;
use clap::Args;

use crate::config::Config;
use crate::http::HttpClient;
use crate::setup::connect::ANOTHER_WEBHOOK;
use crate::setup::setting_diff::SettingDiff;
use crate::setup::webhooks::{WebhookSetup, set_up_webhooks};
use crate::setup::{ConflictPolicy, SetupMode, SetupOutcome, SetupRequest, WebhookSecret};

#[derive(Debug, Args, PartialEq, Eq)]
pub struct SetupArguments {
    /// Apply the changes and verify them; without this option, they are only shown
    #[arg(long)]
    apply: bool,
    /// Send the secret again, because it cannot be compared; use after changing NOTIFICATION_SECRET
    #[arg(long)]
    renew_secret: bool,
    /// Change a webhook that is named Dialarr but has another URL, instead of adding one; use after changing the URL
    #[arg(long)]
    take_over: bool,
}

fn print_outcome(outcome: &SetupOutcome, subject: &str) {
    match outcome {
        SetupOutcome::Skipped { reason, hint } => {
            print_line(&format!("{subject}: skipped, {reason}"));
            print_line(&format!("  hint: {hint}"));
        }
        SetupOutcome::UpToDate => print_line(&format!("{subject}: nothing to change")),
        SetupOutcome::Planned(changes) => print_diffs(subject, changes),
        SetupOutcome::Applied(changes) => {
            print_diffs(subject, changes);
            print_line(&format!("{subject}: done"));
        }
        SetupOutcome::Failed { changes, reason, hint } => {
            print_diffs(subject, changes);
            print_line(&format!("{subject}: failed to {reason}"));
            print_line(&format!("  hint: {hint}"));
        }
    }
}

fn print_diffs(subject: &str, changes: &[SettingDiff]) {
    changes.iter().for_each(|change| print_line(&format!("{subject}: {change}")));
}

#[expect(clippy::print_stdout, reason = "the command prints its outcome")]
fn print_line(line: &str) {
    println!("{line}");
}

pub(super) async fn run_setup(config: &Config, arguments: &SetupArguments) -> anyhow::Result<()> {
    let request = SetupRequest {
        mode: if arguments.apply { SetupMode::Apply } else { SetupMode::Show },
        secret: if arguments.renew_secret { WebhookSecret::Renew } else { WebhookSecret::Keep },
        conflict_policy: if arguments.take_over { ConflictPolicy::TakeOver } else { ConflictPolicy::Leave },
    };
    let http = HttpClient::network().context("set up the HTTP client; hint: install ca-certificates")?;
    let setups = set_up_webhooks(config, &http, request).await;
    setups.iter().for_each(|setup| print_outcome(&setup.outcome, &setup.subject));
    conclude_setup(&setups, request)
}

fn adds_webhook_beside_another(setup: &WebhookSetup) -> bool {
    let SetupOutcome::Planned(changes) = &setup.outcome else { return false };
    changes.iter().any(|change| change.name() == ANOTHER_WEBHOOK)
}

fn conclude_setup(setups: &[WebhookSetup], request: SetupRequest) -> anyhow::Result<()> {
    if setups.iter().any(|setup| matches!(setup.outcome, SetupOutcome::Planned(_))) {
        print_line("No changes were made");
        let renew = if request.secret == WebhookSecret::Renew { " --renew-secret" } else { "" };
        let take_over = if request.conflict_policy == ConflictPolicy::TakeOver { " --take-over" } else { "" };
        print_line(&format!("  hint: dialarr setup --apply{renew}{take_over}"));
        if request.conflict_policy == ConflictPolicy::Leave && setups.iter().any(adds_webhook_beside_another)
        {
            print_line("  hint: --take-over changes the other webhook instead of adding one");
        }
    }
    let failed = setups.iter().filter(|setup| matches!(setup.outcome, SetupOutcome::Failed { .. })).count();
    anyhow::ensure!(failed == 0, "set up {failed} of {}", setups.len());
    Ok(())
}
