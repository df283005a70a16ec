//! Settings of each way of texting, and their conversion: an account at Twilio, a phone, and a bot at Telegram.

use secrecy::SecretString;
use url::Url;

use super::reader::{VariableReader, VariableValue, parse_secret};
use super::variables::{self, DEFAULT_TELEGRAM_API_URL, DEFAULT_TWILIO_API_URL};
use crate::conversation::transcript::PhoneNumber;
use crate::engine::PicturePolicy;
use crate::messaging::telegram::{BotToken, TelegramAccount};

const WITH_TWILIO: &str = "with Twilio";
const WITH_PHONE: &str = "with a phone";
/// User name that the app chooses.
const DEFAULT_SMSGATE_USER: &str = "sms";
/// Path of the bot's webhook below the public URL.
const TELEGRAM_WEBHOOK_PATH: &str = "/webhook/telegram";

#[derive(Debug, Clone)]
pub struct Twilio {
    pub account_sid: String,
    /// Auth tokens that may sign webhooks, the primary one first. Never empty.
    pub auth_tokens: Vec<SecretString>,
    pub phone_number: PhoneNumber,
    pub messaging_service_sid: Option<String>,
    /// Credentials of Dialarr's own requests.
    pub credentials: Credentials,
    pub api_url: Url,
    /// Base URL for signature checks and status callbacks.
    pub public_url: Url,
    pub pictures: PicturePolicy,
}

/// Phone with SMS Gateway for Android.
#[derive(Debug, Clone)]
pub struct SmsGate {
    pub url: Url,
    pub phone_number: PhoneNumber,
    pub credentials: SmsGateCredentials,
    /// SIM that sends and receives, in a phone with several.
    pub sim: Option<u8>,
    /// Key of the signatures of webhooks.
    pub webhook_key: Option<SecretString>,
}

#[derive(Debug, Clone)]
pub enum SmsGateCredentials {
    Password(Credentials),
    Token(SecretString),
}

/// Bot at Telegram.
#[derive(Debug, Clone)]
pub struct Telegram {
    pub account: TelegramAccount,
    /// Token of the account, by which configurations are compared.
    pub(super) token: SecretString,
}

#[derive(Debug, Clone)]
pub struct Credentials {
    /// Id of the API key or of the account.
    pub user: String,
    pub password: SecretString,
}

/// Reads the account at Twilio.
pub(super) fn read_twilio(
    reader: &mut VariableReader<'_>,
    public_url: &VariableValue<Url>,
    admin: &VariableValue<PhoneNumber>,
) -> Option<Twilio> {
    let account_sid = reader.read_sid(variables::TWILIO_ACCOUNT_SID, "AC");
    let auth_tokens = reader.read_list(variables::TWILIO_AUTH_TOKEN, parse_secret);
    let phone_number = reader.read_phone(variables::TWILIO_PHONE_NUMBER);
    let key_sid = reader.read_sid(variables::TWILIO_API_KEY_SID, "SK");
    let key_secret = reader.read_secret(variables::TWILIO_API_KEY_SECRET);
    let service_sid = reader.read_sid(variables::TWILIO_MESSAGING_SERVICE_SID, "MG");
    let api_url = reader.read_url(variables::TWILIO_API_URL);
    let pictures = reader
        .read_choice(variables::TWILIO_MMS, &[("on", PicturePolicy::Sent), ("off", PicturePolicy::NotSent)]);
    let has_no_number = account_sid.is_missing() && auth_tokens.is_missing() && phone_number.is_missing();
    if has_no_number && key_sid.is_missing() && key_secret.is_missing() && service_sid.is_missing() {
        return None;
    }
    // Every missing value is reported before the first `?` returns.
    let account_sid = reader.require_value(variables::TWILIO_ACCOUNT_SID, account_sid, WITH_TWILIO);
    let auth_tokens = reader.require_value(variables::TWILIO_AUTH_TOKEN, auth_tokens, WITH_TWILIO);
    let phone_number = reader.require_value(variables::TWILIO_PHONE_NUMBER, phone_number, WITH_TWILIO);
    let key_sid = (variables::TWILIO_API_KEY_SID, key_sid);
    let has_unusable_key = key_secret.is_unusable();
    let key = reader.require_both(key_sid, (variables::TWILIO_API_KEY_SECRET, key_secret));
    if public_url.is_missing() {
        reader.report_problem(variables::PUBLIC_URL, format!("needed {WITH_TWILIO}"));
    }
    if admin.is_missing() {
        reader.report_problem(variables::ADMIN_PHONE, format!("needed {WITH_TWILIO}"));
    }
    let (account_sid, auth_tokens) = (account_sid?, auth_tokens?);
    let (user, password) = match key {
        Some(key) => key,
        // The auth token does not replace an API key that cannot be used.
        None if has_unusable_key => return None,
        None => (account_sid.clone(), auth_tokens.first()?.clone()),
    };
    Some(Twilio {
        account_sid,
        auth_tokens,
        phone_number: phone_number?,
        messaging_service_sid: service_sid.into_option(),
        credentials: Credentials { user, password },
        api_url: api_url.or_default(DEFAULT_TWILIO_API_URL)?,
        public_url: public_url.as_valid()?.clone(),
        pictures: pictures.unwrap_or(PicturePolicy::Sent),
    })
}

/// Reads the phone with SMS Gateway for Android.
pub(super) fn read_smsgate(
    reader: &mut VariableReader<'_>,
    admin: &VariableValue<PhoneNumber>,
) -> Option<SmsGate> {
    let url = reader.read_url(variables::SMSGATE_URL);
    let phone_number = reader.read_phone(variables::SMSGATE_PHONE_NUMBER);
    let user = reader.read_text(variables::SMSGATE_USER);
    let password = reader.read_secret(variables::SMSGATE_PASSWORD);
    let token = reader.read_secret(variables::SMSGATE_TOKEN);
    let sim = reader.read_number(variables::SMSGATE_SIM, 1..=3).into_option();
    let webhook_key = reader.read_secret(variables::SMSGATE_WEBHOOK_KEY);
    if url.is_missing() && phone_number.is_missing() && password.is_missing() && token.is_missing() {
        return None;
    }
    // Every missing value is reported before the first `?` returns.
    let url = reader.require_value(variables::SMSGATE_URL, url, WITH_PHONE);
    let phone_number = reader.require_value(variables::SMSGATE_PHONE_NUMBER, phone_number, WITH_PHONE);
    let has_unusable_token = token.is_unusable();
    let credentials = match token.into_option() {
        Some(token) => Some(SmsGateCredentials::Token(token)),
        // The password does not replace a token that cannot be used.
        None if has_unusable_token => None,
        None => {
            let password = reader.require_value(variables::SMSGATE_PASSWORD, password, WITH_PHONE);
            let user = user.into_option().unwrap_or_else(|| DEFAULT_SMSGATE_USER.to_owned());
            password.map(|password| SmsGateCredentials::Password(Credentials { user, password }))
        }
    };
    if admin.is_missing() {
        reader.report_problem(variables::ADMIN_PHONE, format!("needed {WITH_PHONE}"));
    }
    Some(SmsGate {
        url: url?,
        phone_number: phone_number?,
        credentials: credentials?,
        sim: sim.and_then(|sim| u8::try_from(sim).ok()),
        webhook_key: webhook_key.into_option(),
    })
}

/// Reads the bot at Telegram, whose updates are polled unless the webhook is on.
pub(super) fn read_telegram(
    reader: &mut VariableReader<'_>,
    public_url: &VariableValue<Url>,
) -> Option<Telegram> {
    let token = reader.read_with(variables::TELEGRAM_BOT_TOKEN, |text| {
        let token = BotToken::parse(text).map_err(|error| error.to_string())?;
        Ok((token, SecretString::from(text)))
    });
    let api_url = reader.read_url(variables::TELEGRAM_API_URL);
    let has_webhook =
        reader.read_choice(variables::TELEGRAM_WEBHOOK, &[("off", false), ("on", true)]).unwrap_or(false);
    if token.is_missing() {
        return None;
    }
    if has_webhook && public_url.is_missing() {
        reader.report_problem(variables::PUBLIC_URL, "needed with TELEGRAM_WEBHOOK=on");
    }
    let webhook_url = |base: &Url| format!("{}{TELEGRAM_WEBHOOK_PATH}", base.as_str().trim_end_matches('/'));
    let (bot_token, token) = token.into_option()?;
    let account = TelegramAccount {
        api_url: api_url.or_default(DEFAULT_TELEGRAM_API_URL)?.into(),
        token: bot_token,
        webhook_url: public_url.as_valid().filter(|_| has_webhook).map(webhook_url),
    };
    Some(Telegram { account, token })
}
