//! `dialarr setup`: shows what Sonarr, Radarr and Twilio would have to be told of Dialarr, and with `--apply` tells them.

use anyhow::Context;
use clap::Args;

use crate::config::{self, Config};
use crate::http::Http;
use crate::outbound_clients::build_twilio;
use crate::setup::arr_instance::{ArrInstance, configured_instances};
use crate::setup::change::Change;
use crate::setup::connect::{self, Hook};
use crate::setup::number::{self, Addresses};
use crate::setup::{Mode, Namesakes, Outcome, Secret, Work};

#[derive(Debug, Args, PartialEq, Eq)]
pub struct Setup {
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

fn print(outcome: &Outcome, what: &str) {
    match outcome {
        Outcome::Skipped { why, hint } => {
            say(&format!("{what}: skipped, {why}"));
            say(&format!("  hint: {hint}"));
        }
        Outcome::AsItShouldBe => say(&format!("{what}: nothing to change")),
        Outcome::Planned(changes) => list(what, changes),
        Outcome::Done(changes) => {
            list(what, changes);
            say(&format!("{what}: done"));
        }
        Outcome::Failed { changes, why, hint } => {
            list(what, changes);
            say(&format!("{what}: failed to {why}"));
            say(&format!("  hint: {hint}"));
        }
    }
}

fn list(what: &str, changes: &[Change]) {
    changes.iter().for_each(|change| say(&format!("{what}: {change}")));
}

#[expect(clippy::print_stdout, reason = "what it says is what the command is for")]
fn say(line: &str) {
    println!("{line}");
}

pub(super) async fn run(config: &Config, asked: &Setup) -> anyhow::Result<()> {
    let work = Work {
        mode: if asked.apply { Mode::Apply } else { Mode::Show },
        secret: if asked.renew_secret { Secret::Renew } else { Secret::Keep },
        namesakes: if asked.take_over { Namesakes::TakeOver } else { Namesakes::Leave },
    };
    let http = Http::network().context("set up the HTTP client; hint: install ca-certificates")?;
    let mut told = Vec::new();
    for instance in configured_instances(&config.libraries, &http) {
        let what = format!("{} webhook", instance.label);
        let outcome = match Hook::from_config(config, &instance) {
            Some(hook) => connect::set_up(&instance, &hook, work).await,
            None => no_hook(config, &instance),
        };
        print(&outcome, &what);
        told.push(outcome);
    }
    match &config.twilio {
        Some(twilio) => told.extend(at_twilio(twilio, &http, work).await),
        None => {
            let outcome = Outcome::Skipped {
                why: "no account is configured".to_owned(),
                hint: "set TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and TWILIO_PHONE_NUMBER".to_owned(),
            };
            print(&outcome, "Twilio number");
            told.push(outcome);
        }
    }
    conclude(&told, work)
}

async fn at_twilio(twilio: &config::Twilio, http: &Http, work: Work) -> Vec<Outcome> {
    let client = build_twilio(twilio, http);
    let addresses = Addresses::below(twilio.public_url.as_str());
    let phone = &twilio.phone_number;
    let number = number::set_up(&client, phone, &addresses, work).await;
    print(&number, &format!("Twilio number {}", phone.masked()));
    let service = number::set_up_service(&client, &addresses, work).await;
    if let Some(service) = &service {
        print(service, "Twilio messaging service");
    }
    [number].into_iter().chain(service).collect()
}

fn no_hook(config: &Config, instance: &ArrInstance) -> Outcome {
    let (why, hint) = if config.notifications.secret.is_none() {
        ("no secret is configured", "set NOTIFICATION_SECRET to a long random word".to_owned())
    } else {
        (
            "no address is configured",
            format!("set NOTIFICATION_URL to where {} reaches Dialarr", instance.label),
        )
    };
    Outcome::Skipped { why: why.to_owned(), hint }
}

fn conclude(told: &[Outcome], work: Work) -> anyhow::Result<()> {
    if told.iter().any(|outcome| matches!(outcome, Outcome::Planned(_))) {
        say("Nothing was changed yet");
        let renew = if work.secret == Secret::Renew { " --renew-secret" } else { "" };
        let take_over = if work.namesakes == Namesakes::TakeOver { " --take-over" } else { "" };
        say(&format!("  hint: dialarr setup --apply{renew}{take_over}"));
    }
    let failed = told.iter().filter(|outcome| matches!(outcome, Outcome::Failed { .. })).count();
    anyhow::ensure!(failed == 0, "set up {failed} of {}", told.len());
    Ok(())
}
