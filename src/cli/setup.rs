//! `dialarr setup`: shows the settings that Sonarr, Radarr and Twilio need for Dialarr, and applies them on request.

use anyhow::Context;
use clap::Args;

use crate::config::{self, Config};
use crate::http::HttpClient;
use crate::outbound_clients::build_twilio;
use crate::setup::arr_instance::{ConfiguredInstance, configured_instances};
use crate::setup::connect::{self, WebhookTarget};
use crate::setup::setting_diff::SettingDiff;
use crate::setup::twilio_number::{self, WebhookUrls};
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
    let mut outcomes = Vec::new();
    for instance in configured_instances(&config.libraries, &http) {
        let subject = format!("{} webhook", instance.label);
        let outcome = match WebhookTarget::from_config(config, &instance) {
            Some(target) => connect::set_up(&instance, &target, request).await,
            None => missing_target_outcome(config, &instance),
        };
        print_outcome(&outcome, &subject);
        outcomes.push(outcome);
    }
    match &config.twilio {
        Some(twilio) => outcomes.extend(set_up_twilio(twilio, &http, request).await),
        None => {
            let outcome = SetupOutcome::Skipped {
                reason: "no account is configured".to_owned(),
                hint: "set TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and TWILIO_PHONE_NUMBER".to_owned(),
            };
            print_outcome(&outcome, "Twilio number");
            outcomes.push(outcome);
        }
    }
    conclude_setup(&outcomes, request)
}

async fn set_up_twilio(
    twilio: &config::Twilio,
    http: &HttpClient,
    request: SetupRequest,
) -> Vec<SetupOutcome> {
    let client = build_twilio(twilio, http);
    let urls = WebhookUrls::from_public_url(twilio.public_url.as_str());
    let phone = &twilio.phone_number;
    let number = twilio_number::set_up(&client, phone, &urls, request).await;
    print_outcome(&number, &format!("Twilio number {}", phone.masked()));
    let service = twilio_number::set_up_service(&client, &urls, request).await;
    if let Some(service) = &service {
        print_outcome(service, "Twilio messaging service");
    }
    [number].into_iter().chain(service).collect()
}

fn missing_target_outcome(config: &Config, instance: &ConfiguredInstance) -> SetupOutcome {
    let (reason, hint) = if config.notifications.secret.is_none() {
        ("no secret is configured", "set NOTIFICATION_SECRET to a long random string".to_owned())
    } else {
        (
            "no URL is configured",
            format!("set NOTIFICATION_URL to the URL at which {} reaches Dialarr", instance.label),
        )
    };
    SetupOutcome::Skipped { reason: reason.to_owned(), hint }
}

fn conclude_setup(outcomes: &[SetupOutcome], request: SetupRequest) -> anyhow::Result<()> {
    if outcomes.iter().any(|outcome| matches!(outcome, SetupOutcome::Planned(_))) {
        print_line("No changes were made");
        let renew = if request.secret == WebhookSecret::Renew { " --renew-secret" } else { "" };
        let take_over = if request.conflict_policy == ConflictPolicy::TakeOver { " --take-over" } else { "" };
        print_line(&format!("  hint: dialarr setup --apply{renew}{take_over}"));
    }
    let failed = outcomes.iter().filter(|outcome| matches!(outcome, SetupOutcome::Failed { .. })).count();
    anyhow::ensure!(failed == 0, "set up {failed} of {}", outcomes.len());
    Ok(())
}
