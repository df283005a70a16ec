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
}

impl TextingWay {
    pub const ALL: [Self; 2] = [Self::Twilio, Self::Phone];

    /// Returns the word that names the way in URLs and forms.
    pub fn id(self) -> &'static str {
        match self {
            Self::Twilio => "twilio",
            Self::Phone => "phone",
        }
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::Twilio => "A number at Twilio",
            Self::Phone => "Your own phone",
        }
    }

    /// Returns the settings that the way needs.
    pub fn variables(self) -> &'static [Variable] {
        match self {
            Self::Twilio => TWILIO,
            Self::Phone => PHONE,
        }
    }

    /// Returns the setting with the number that people text.
    pub fn number_variable(self) -> Variable {
        match self {
            Self::Twilio => variables::TWILIO_PHONE_NUMBER,
            Self::Phone => variables::SMSGATE_PHONE_NUMBER,
        }
    }

    pub fn is_configured(self, sources: &ConfigSources) -> bool {
        sources.has_value(self.number_variable())
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
