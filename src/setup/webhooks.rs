//! Setup of all webhooks: those of the configured instances, of the number, of the messaging service and of the bot.

use super::arr_instance::{ConfiguredInstance, configured_instances};
use super::connect::{self, WebhookTarget};
use super::twilio_number::{self, WebhookUrls};
use super::{SetupOutcome, SetupRequest, own_phone, telegram_bot};
use crate::config::{self, Config};
use crate::http::HttpClient;
use crate::outbound_clients::{build_smsgate, build_telegram, build_twilio};

/// Outcome of the setup of one webhook.
pub(crate) struct WebhookSetup {
    /// Name such as `Sonarr webhook`.
    pub(crate) subject: String,
    pub(crate) outcome: SetupOutcome,
}

/// Plans or applies the changes that the webhooks need.
pub(crate) async fn set_up_webhooks(
    config: &Config,
    http: &HttpClient,
    request: SetupRequest,
) -> Vec<WebhookSetup> {
    let mut setups = Vec::new();
    for instance in configured_instances(&config.libraries, http) {
        let outcome = match WebhookTarget::from_config(config, &instance) {
            Some(target) => connect::set_up(&instance, &target, request).await,
            None => missing_target_outcome(config, &instance),
        };
        setups.push(WebhookSetup { subject: format!("{} webhook", instance.label), outcome });
    }
    match &config.twilio {
        Some(twilio) => setups.extend(set_up_twilio(twilio, http, request).await),
        None if config.smsgate.is_some() || config.telegram.is_some() => {}
        None => {
            let outcome = SetupOutcome::Skipped {
                reason: "no account is configured".to_owned(),
                hint: "set TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and TWILIO_PHONE_NUMBER".to_owned(),
            };
            setups.push(WebhookSetup { subject: "Twilio number".to_owned(), outcome });
        }
    }
    if let Some(phone) = &config.smsgate {
        let outcome = own_phone::set_up(&build_smsgate(phone, http), request).await;
        setups.push(WebhookSetup { subject: "Own phone".to_owned(), outcome });
    }
    if let Some(bot) = &config.telegram {
        let outcome = telegram_bot::set_up(&bot.account, &build_telegram(bot, http), request).await;
        setups.push(WebhookSetup { subject: "Telegram bot".to_owned(), outcome });
    }
    setups
}

async fn set_up_twilio(
    twilio: &config::Twilio,
    http: &HttpClient,
    request: SetupRequest,
) -> Vec<WebhookSetup> {
    let client = build_twilio(twilio, http);
    let urls = WebhookUrls::from_public_url(twilio.public_url.as_str());
    let phone = &twilio.phone_number;
    let number = WebhookSetup {
        subject: format!("Twilio number {}", phone.masked()),
        outcome: twilio_number::set_up(&client, phone, &urls, request).await,
    };
    let service = twilio_number::set_up_service(&client, &urls, request).await;
    let service =
        service.map(|outcome| WebhookSetup { subject: "Twilio messaging service".to_owned(), outcome });
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
