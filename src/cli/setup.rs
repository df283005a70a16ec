//! `dialarr setup`: shows the settings that Sonarr, Radarr and Twilio need for Dialarr, and applies them with
//! `--apply`.

use anyhow::Context;
use clap::Args;

use crate::config::{self, Config};
use crate::http::HttpClient;
use crate::outbound_clients::build_twilio;
use crate::setup::arr_instance::{ArrInstance, configured_instances};
use crate::setup::connect::{self, WebhookTarget};
use crate::setup::setting_diff::SettingDiff;
use crate::setup::twilio_number::{self, WebhookAddresses};
use crate::setup::{ConflictPolicy, SetupMode, SetupOutcome, SetupRequest, WebhookSecret};

#[derive(Debug, Args, PartialEq, Eq)]
pub struct SetupArguments {
    /// Do it, and read it back; without this it is only shown
    #[arg(long)]
    apply: bool,
    /// Send the secret again, which cannot be compared; for use after NOTIFICATION_SECRET was changed
    #[arg(long)]
    renew_secret: bool,
    /// Change a webhook that is named Dialarr and leads elsewhere, in place of making another; for use after the address
    /// was changed
    #[arg(long)]
    take_over: bool,
}

fn print_outcome(outcome: &SetupOutcome, what: &str) {
    match outcome {
        SetupOutcome::Skipped { why, hint } => {
            print_line(&format!("{what}: skipped, {why}"));
            print_line(&format!("  hint: {hint}"));
        }
        SetupOutcome::AsItShouldBe => print_line(&format!("{what}: nothing to change")),
        SetupOutcome::Planned(changes) => print_diffs(what, changes),
        SetupOutcome::Done(changes) => {
            print_diffs(what, changes);
            print_line(&format!("{what}: done"));
        }
        SetupOutcome::Failed { changes, why, hint } => {
            print_diffs(what, changes);
            print_line(&format!("{what}: failed to {why}"));
            print_line(&format!("  hint: {hint}"));
        }
    }
}

fn print_diffs(what: &str, changes: &[SettingDiff]) {
    changes.iter().for_each(|change| print_line(&format!("{what}: {change}")));
}

#[expect(clippy::print_stdout, reason = "what it says is what the command is for")]
fn print_line(line: &str) {
    println!("{line}");
}

pub(super) async fn run_setup(config: &Config, asked: &SetupArguments) -> anyhow::Result<()> {
    let work = SetupRequest {
        mode: if asked.apply { SetupMode::Apply } else { SetupMode::Show },
        secret: if asked.renew_secret { WebhookSecret::Renew } else { WebhookSecret::Keep },
        namesakes: if asked.take_over { ConflictPolicy::TakeOver } else { ConflictPolicy::Leave },
    };
    let http = HttpClient::network().context("set up the HTTP client; hint: install ca-certificates")?;
    let mut outcomes = Vec::new();
    for instance in configured_instances(&config.libraries, &http) {
        let what = format!("{} webhook", instance.label);
        let outcome = match WebhookTarget::from_config(config, &instance) {
            Some(hook) => connect::set_up(&instance, &hook, work).await,
            None => no_hook(config, &instance),
        };
        print_outcome(&outcome, &what);
        outcomes.push(outcome);
    }
    match &config.twilio {
        Some(twilio) => outcomes.extend(at_twilio(twilio, &http, work).await),
        None => {
            let outcome = SetupOutcome::Skipped {
                why: "no account is configured".to_owned(),
                hint: "set TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and TWILIO_PHONE_NUMBER".to_owned(),
            };
            print_outcome(&outcome, "Twilio number");
            outcomes.push(outcome);
        }
    }
    conclude_setup(&outcomes, work)
}

async fn at_twilio(twilio: &config::Twilio, http: &HttpClient, work: SetupRequest) -> Vec<SetupOutcome> {
    let client = build_twilio(twilio, http);
    let addresses = WebhookAddresses::from_public_url(twilio.public_url.as_str());
    let phone = &twilio.phone_number;
    let number = twilio_number::set_up(&client, phone, &addresses, work).await;
    print_outcome(&number, &format!("Twilio number {}", phone.masked()));
    let service = twilio_number::set_up_service(&client, &addresses, work).await;
    if let Some(service) = &service {
        print_outcome(service, "Twilio messaging service");
    }
    [number].into_iter().chain(service).collect()
}

fn no_hook(config: &Config, instance: &ArrInstance) -> SetupOutcome {
    let (why, hint) = if config.notifications.secret.is_none() {
        ("no secret is configured", "set NOTIFICATION_SECRET to a long random word".to_owned())
    } else {
        (
            "no address is configured",
            format!("set NOTIFICATION_URL to where {} reaches Dialarr", instance.label),
        )
    };
    SetupOutcome::Skipped { why: why.to_owned(), hint }
}

fn conclude_setup(outcomes: &[SetupOutcome], work: SetupRequest) -> anyhow::Result<()> {
    if outcomes.iter().any(|outcome| matches!(outcome, SetupOutcome::Planned(_))) {
        print_line("Nothing was changed yet");
        let renew = if work.secret == WebhookSecret::Renew { " --renew-secret" } else { "" };
        let take_over = if work.namesakes == ConflictPolicy::TakeOver { " --take-over" } else { "" };
        print_line(&format!("  hint: dialarr setup --apply{renew}{take_over}"));
    }
    let failed = outcomes.iter().filter(|outcome| matches!(outcome, SetupOutcome::Failed { .. })).count();
    anyhow::ensure!(failed == 0, "set up {failed} of {}", outcomes.len());
    Ok(())
}
