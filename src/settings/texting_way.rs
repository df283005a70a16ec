//! Ways of texting between which the setup assistant offers a choice.

use serde::Deserialize;

use crate::config::{ConfigSources, Variable, variables};

/// Way of texting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextingWay {
    Twilio,
    /// Phone of the household with SMS Gateway for Android.
    Phone,
    /// Bot at Telegram.
    Telegram,
}

impl TextingWay {
    pub const ALL: [Self; 3] = [Self::Twilio, Self::Phone, Self::Telegram];
    /// Settings of which one has a value if a way is configured.
    pub const DECIDING: &[Variable] = &[
        Self::Twilio.deciding_variable(),
        Self::Phone.deciding_variable(),
        Self::Telegram.deciding_variable(),
    ];

    /// Returns the word that names the way in URLs and forms.
    pub fn id(self) -> &'static str {
        match self {
            Self::Twilio => "twilio",
            Self::Phone => "phone",
            Self::Telegram => "telegram",
        }
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::Twilio => "A number at Twilio",
            Self::Phone => "Your own phone",
            Self::Telegram => "A Telegram bot",
        }
    }

    /// Returns the settings that the way needs.
    pub fn variables(self) -> &'static [Variable] {
        match self {
            Self::Twilio => TWILIO,
            Self::Phone => PHONE,
            Self::Telegram => TELEGRAM,
        }
    }

    /// Returns the setting that has a value once the way is configured.
    pub const fn deciding_variable(self) -> Variable {
        match self {
            Self::Twilio => variables::TWILIO_PHONE_NUMBER,
            Self::Phone => variables::SMSGATE_PHONE_NUMBER,
            Self::Telegram => variables::TELEGRAM_BOT_TOKEN,
        }
    }

    /// Returns the setting with the number that people text; `None` for a way without a number.
    pub fn number_variable(self) -> Option<Variable> {
        match self {
            Self::Twilio | Self::Phone => Some(self.deciding_variable()),
            Self::Telegram => None,
        }
    }

    pub fn is_configured(self, sources: &ConfigSources) -> bool {
        sources.has_value(self.deciding_variable())
    }

    /// Returns whether messages come in without a webhook.
    pub fn is_polled(self, sources: &ConfigSources) -> bool {
        match self {
            Self::Twilio => false,
            Self::Phone => true,
            Self::Telegram => {
                let webhook = sources.plain_text(variables::TELEGRAM_WEBHOOK).unwrap_or_default();
                !webhook.trim().eq_ignore_ascii_case("on")
            }
        }
    }

    /// Returns the configured way, by default Twilio.
    pub fn from_sources(sources: &ConfigSources) -> Self {
        let configured = Self::ALL.into_iter().find(|way| way.is_configured(sources));
        configured.unwrap_or(Self::Twilio)
    }
}

const TWILIO: &[Variable] = &[
    variables::PUBLIC_URL,
    variables::TWILIO_ACCOUNT_SID,
    variables::TWILIO_AUTH_TOKEN,
    variables::TWILIO_PHONE_NUMBER,
    variables::TWILIO_API_KEY_SID,
    variables::TWILIO_API_KEY_SECRET,
];
const PHONE: &[Variable] = &[
    variables::SMSGATE_URL,
    variables::SMSGATE_USER,
    variables::SMSGATE_PASSWORD,
    variables::SMSGATE_PHONE_NUMBER,
    variables::SMSGATE_SIM,
];
const TELEGRAM: &[Variable] = &[variables::TELEGRAM_BOT_TOKEN];
