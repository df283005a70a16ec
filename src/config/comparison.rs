//! Comparison of two configurations by section, to find out what a change affects.

use secrecy::{ExposeSecret, SecretString};

use super::{
    Config, Credentials, Discovery, Embeddings, Libraries, Library, Llm, Notifications, SmsGate,
    SmsGateCredentials, Telegram, Twilio,
};
use crate::messaging::alert_targets::{AlertWebhook, Ntfy, Pushover};
use crate::messaging::telegram::TelegramAccount;

/// Section of the configuration that is compared as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigSection {
    Database,
    Listeners,
    Logging,
    Console,
    TimeZone,
    Twilio,
    SmsGate,
    Telegram,
    Model,
    Embeddings,
    Libraries,
    MediaServers,
    Discovery,
    Notifications,
    Alerts,
    People,
    Conversation,
    Limits,
    Retention,
}

impl ConfigSection {
    pub fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Listeners => "listeners",
            Self::Logging => "logging",
            Self::Console => "console",
            Self::TimeZone => "time zone",
            Self::Twilio => "Twilio",
            Self::SmsGate => "phone",
            Self::Telegram => "Telegram",
            Self::Model => "model",
            Self::Embeddings => "embeddings",
            Self::Libraries => "libraries",
            Self::MediaServers => "media servers",
            Self::Discovery => "discovery",
            Self::Notifications => "notifications",
            Self::Alerts => "alerts",
            Self::People => "people",
            Self::Conversation => "conversation",
            Self::Limits => "limits",
            Self::Retention => "retention",
        }
    }
}

impl Config {
    /// Returns the sections in which the configurations differ.
    pub fn changed_sections(&self, other: &Self) -> Vec<ConfigSection> {
        let listeners = |config: &Self| (config.listen, config.console.bind, config.trusted_proxies.clone());
        let notifications = |config: &Self| (config.notifications.clone(), config.public_url.clone());
        let unchanged = [
            (ConfigSection::Database, self.database == other.database),
            (ConfigSection::Listeners, listeners(self) == listeners(other)),
            (ConfigSection::Logging, self.log == other.log),
            (ConfigSection::Console, self.console.rules == other.console.rules),
            (ConfigSection::TimeZone, self.time_zone == other.time_zone),
            (ConfigSection::Twilio, self.twilio == other.twilio),
            (ConfigSection::SmsGate, self.smsgate == other.smsgate),
            (ConfigSection::Telegram, self.telegram == other.telegram),
            (ConfigSection::Model, self.llm == other.llm),
            (ConfigSection::Embeddings, self.embeddings == other.embeddings),
            (ConfigSection::Libraries, self.libraries == other.libraries),
            (ConfigSection::MediaServers, self.media_servers == other.media_servers),
            (ConfigSection::Discovery, self.discovery == other.discovery),
            (ConfigSection::Notifications, notifications(self) == notifications(other)),
            (ConfigSection::Alerts, self.alerts == other.alerts),
            (ConfigSection::People, self.people == other.people),
            (ConfigSection::Conversation, self.conversation == other.conversation),
            (ConfigSection::Limits, self.limits == other.limits),
            (ConfigSection::Retention, self.retention_days == other.retention_days),
        ];
        unchanged.into_iter().filter(|(_, is_equal)| !is_equal).map(|(section, _)| section).collect()
    }
}

impl Libraries {
    /// Returns the configuration of the instance of this name.
    pub(crate) fn instance(&self, name: &str) -> Option<&Library> {
        match name {
            "sonarr" => self.sonarr.as_ref(),
            "radarr" => self.radarr.as_ref(),
            "sonarr-4k" => self.sonarr_four_k.as_ref(),
            "radarr-4k" => self.radarr_four_k.as_ref(),
            _ => None,
        }
    }
}

fn is_same_secret(one: &SecretString, other: &SecretString) -> bool {
    one.expose_secret() == other.expose_secret()
}

fn is_same_option(one: Option<&SecretString>, other: Option<&SecretString>) -> bool {
    one.map(ExposeSecret::expose_secret) == other.map(ExposeSecret::expose_secret)
}

impl PartialEq for Credentials {
    fn eq(&self, other: &Self) -> bool {
        let Self { user, password } = self;
        *user == other.user && is_same_secret(password, &other.password)
    }
}

impl PartialEq for SmsGateCredentials {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Password(one), Self::Password(other)) => one == other,
            (Self::Token(one), Self::Token(other)) => is_same_secret(one, other),
            (Self::Password(_), Self::Token(_)) | (Self::Token(_), Self::Password(_)) => false,
        }
    }
}

impl PartialEq for SmsGate {
    fn eq(&self, other: &Self) -> bool {
        let Self { url, phone_number, credentials, sim, webhook_key } = self;
        *url == other.url
            && *phone_number == other.phone_number
            && *credentials == other.credentials
            && *sim == other.sim
            && is_same_option(webhook_key.as_ref(), other.webhook_key.as_ref())
    }
}

impl PartialEq for Twilio {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            account_sid,
            auth_tokens,
            phone_number,
            messaging_service_sid,
            credentials,
            api_url,
            public_url,
            pictures,
        } = self;
        let has_same_tokens = auth_tokens.len() == other.auth_tokens.len()
            && auth_tokens.iter().zip(&other.auth_tokens).all(|(one, other)| is_same_secret(one, other));
        has_same_tokens
            && (account_sid, phone_number, messaging_service_sid)
                == (&other.account_sid, &other.phone_number, &other.messaging_service_sid)
            && (credentials, api_url, public_url, pictures)
                == (&other.credentials, &other.api_url, &other.public_url, &other.pictures)
    }
}

impl PartialEq for Telegram {
    fn eq(&self, other: &Self) -> bool {
        let Self { account: TelegramAccount { api_url, token: _, webhook_url }, token } = self;
        is_same_secret(token, &other.token)
            && (api_url, webhook_url) == (&other.account.api_url, &other.account.webhook_url)
    }
}

impl PartialEq for Discovery {
    fn eq(&self, other: &Self) -> bool {
        let Self { seerr, tmdb, region, requests } = self;
        (seerr, tmdb, region, requests) == (&other.seerr, &other.tmdb, &other.region, &other.requests)
    }
}

impl PartialEq for Llm {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            api_key,
            base_url,
            model,
            context_window,
            reasoning_effort,
            token_field,
            max_concurrent,
            prices,
        } = self;
        is_same_option(api_key.as_ref(), other.api_key.as_ref())
            && (base_url, model, context_window) == (&other.base_url, &other.model, &other.context_window)
            && (reasoning_effort, token_field) == (&other.reasoning_effort, &other.token_field)
            && (max_concurrent, prices) == (&other.max_concurrent, &other.prices)
    }
}

impl PartialEq for Embeddings {
    fn eq(&self, other: &Self) -> bool {
        let Self { model, base_url, api_key, floor } = self;
        is_same_option(api_key.as_ref(), other.api_key.as_ref())
            && (model, base_url, floor) == (&other.model, &other.base_url, &other.floor)
    }
}

impl PartialEq for Ntfy {
    fn eq(&self, other: &Self) -> bool {
        let Self { url, token } = self;
        *url == other.url && is_same_option(token.as_ref(), other.token.as_ref())
    }
}

impl PartialEq for Pushover {
    fn eq(&self, other: &Self) -> bool {
        let Self { token, user } = self;
        is_same_secret(token, &other.token) && is_same_secret(user, &other.user)
    }
}

impl PartialEq for AlertWebhook {
    fn eq(&self, other: &Self) -> bool {
        let Self { url, secret } = self;
        *url == other.url && is_same_option(secret.as_ref(), other.secret.as_ref())
    }
}

impl PartialEq for Library {
    fn eq(&self, other: &Self) -> bool {
        let Self { url, api_key } = self;
        *url == other.url && is_same_secret(api_key, &other.api_key)
    }
}

impl PartialEq for Notifications {
    fn eq(&self, other: &Self) -> bool {
        let Self { secret, url, quiet } = self;
        is_same_option(secret.as_ref(), other.secret.as_ref()) && (url, quiet) == (&other.url, &other.quiet)
    }
}
