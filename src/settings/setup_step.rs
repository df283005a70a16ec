//! Steps of the setup assistant, and which of them are done.

use serde::Deserialize;

use super::texting_way::TextingWay;
use crate::config::{ConfigSources, SettingGroup, ValueSource, Variable, variables};

/// Step of the setup assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SetupStep {
    Password,
    You,
    Library,
    Media,
    Discovery,
    Model,
    Texting,
    Webhooks,
    Finish,
}

/// Definition of a step.
struct StepParts {
    id: &'static str,
    label: &'static str,
    /// Settings that the step asks for.
    variables: &'static [Variable],
    /// Settings of which one has a value once the step is done.
    deciding: &'static [Variable],
    /// Group that the step can test.
    tested: Option<SettingGroup>,
}

impl SetupStep {
    pub const ALL: [Self; 9] = [
        Self::Password,
        Self::You,
        Self::Library,
        Self::Media,
        Self::Discovery,
        Self::Model,
        Self::Texting,
        Self::Webhooks,
        Self::Finish,
    ];
    /// Steps without which nobody can use Dialarr.
    const REQUIRED: [Self; 3] = [Self::Password, Self::You, Self::Library];
    /// Steps whose settings an installation without the assistant has in the environment or `.env`.
    const CONFIGURED_ELSEWHERE: [Self; 4] = [Self::You, Self::Library, Self::Model, Self::Texting];

    fn parts(self) -> StepParts {
        let step =
            |id, label, variables, deciding, tested| StepParts { id, label, variables, deciding, tested };
        match self {
            Self::Password => step(
                "password",
                "Password",
                &[variables::CONSOLE_PASSWORD],
                &[variables::CONSOLE_PASSWORD],
                None,
            ),
            Self::You => {
                let asked = &[variables::ADMIN_PHONE, variables::TZ];
                step("you", "You", asked, &[variables::ADMIN_PHONE], Some(SettingGroup::People))
            }
            Self::Library => {
                step("library", "Sonarr and Radarr", LIBRARY, LIBRARY_KEYS, Some(SettingGroup::Library))
            }
            Self::Media => {
                step("media", "Media servers", MEDIA, MEDIA_KEYS, Some(SettingGroup::MediaServers))
            }
            Self::Discovery => {
                step("discovery", "Discovery", DISCOVERY, DISCOVERY_KEYS, Some(SettingGroup::Discovery))
            }
            Self::Model => step("model", "Model", MODEL, &[variables::LLM_MODEL], Some(SettingGroup::Model)),
            Self::Texting => step(
                "texting",
                "Texting",
                TextingWay::Twilio.variables(),
                TextingWay::DECIDING,
                Some(SettingGroup::Texting),
            ),
            Self::Webhooks => step(
                "webhooks",
                "Webhooks",
                &[variables::NOTIFICATION_URL],
                &[variables::NOTIFICATION_SECRET],
                None,
            ),
            Self::Finish => step("finish", "Finish", &[], &[], None),
        }
    }

    /// Returns the word that names the step in URLs and forms.
    pub fn id(self) -> &'static str {
        self.parts().id
    }

    pub fn label(self) -> &'static str {
        self.parts().label
    }

    pub fn tested_group(self) -> Option<SettingGroup> {
        self.parts().tested
    }

    /// Returns the settings that the step asks for; those of the step about texting depend on the chosen way.
    pub fn variables(self) -> &'static [Variable] {
        self.parts().variables
    }

    /// Returns the step that follows.
    #[must_use]
    pub fn next(self) -> Self {
        Self::ALL.into_iter().skip_while(|step| *step != self).nth(1).unwrap_or(Self::Finish)
    }

    /// Returns whether the settings of the step are complete. The webhooks must also be installed.
    pub fn is_done(self, sources: &ConfigSources) -> bool {
        self.is_done_by(sources, |_| true) || self == Self::Password && requires_no_sign_in(sources)
    }

    fn is_done_by(self, sources: &ConfigSources, is_meant: impl Fn(ValueSource) -> bool) -> bool {
        let mut deciding = self.parts().deciding.iter();
        deciding.any(|variable| sources.has_value(*variable) && is_meant(sources.value_source(variable.name)))
    }
}

/// State of the setup, by which the assistant continues.
pub struct SetupProgress<'a> {
    pub sources: &'a ConfigSources,
    pub has_installed_webhooks: bool,
    /// True if there is an active admin, who may have joined with a code and without a phone number.
    pub has_admin: bool,
}

impl SetupProgress<'_> {
    pub fn is_done(&self, step: SetupStep) -> bool {
        match step {
            SetupStep::You => self.has_admin || step.is_done(self.sources),
            SetupStep::Webhooks => self.has_installed_webhooks && step.is_done(self.sources),
            SetupStep::Password
            | SetupStep::Library
            | SetupStep::Media
            | SetupStep::Discovery
            | SetupStep::Model
            | SetupStep::Texting
            | SetupStep::Finish => step.is_done(self.sources),
        }
    }

    /// Returns the step to show: the requested one, by default the first that is not done. The password comes first,
    /// because without one the console would belong to anybody who finds a sign-in link.
    pub fn choose_step(&self, requested: Option<SetupStep>) -> SetupStep {
        if !self.is_done(SetupStep::Password) {
            return SetupStep::Password;
        }
        // Most households have no media server and no source of titles that they want to set up here.
        let is_optional = |step: &SetupStep| matches!(step, SetupStep::Media | SetupStep::Discovery);
        let is_open = |step: &SetupStep| !is_optional(step) && !self.is_done(*step);
        let first_open = || SetupStep::ALL.into_iter().find(is_open);
        requested.or_else(first_open).unwrap_or(SetupStep::Finish)
    }
}

fn requires_no_sign_in(sources: &ConfigSources) -> bool {
    sources.plain_text(variables::CONSOLE_AUTH) == Some("none")
}

/// Returns whether the assistant is offered after a sign-in: required steps are open, and nothing is configured without
/// it.
pub fn is_setup_unfinished(sources: &ConfigSources, has_admin: bool) -> bool {
    let is_elsewhere = |source| matches!(source, ValueSource::Environment | ValueSource::EnvFile(_));
    let mut elsewhere = SetupStep::CONFIGURED_ELSEWHERE.into_iter();
    !elsewhere.any(|step| step.is_done_by(sources, is_elsewhere))
        && !SetupStep::REQUIRED
            .into_iter()
            .all(|step| step.is_done(sources) || step == SetupStep::You && has_admin)
}

const LIBRARY: &[Variable] = &[
    variables::SONARR_URL,
    variables::SONARR_API_KEY,
    variables::RADARR_URL,
    variables::RADARR_API_KEY,
    variables::SONARR_4K_URL,
    variables::SONARR_4K_API_KEY,
    variables::RADARR_4K_URL,
    variables::RADARR_4K_API_KEY,
];
const LIBRARY_KEYS: &[Variable] = &[
    variables::SONARR_API_KEY,
    variables::RADARR_API_KEY,
    variables::SONARR_4K_API_KEY,
    variables::RADARR_4K_API_KEY,
];
const MEDIA: &[Variable] = &[
    variables::JELLYFIN_URL,
    variables::JELLYFIN_API_KEY,
    variables::PLEX_URL,
    variables::PLEX_TOKEN,
    variables::TAUTULLI_URL,
    variables::TAUTULLI_API_KEY,
];
const MEDIA_KEYS: &[Variable] = &[variables::JELLYFIN_API_KEY, variables::PLEX_TOKEN];
const DISCOVERY: &[Variable] = &[
    variables::SEERR_URL,
    variables::SEERR_API_KEY,
    variables::REQUESTS,
    variables::TMDB_TOKEN,
    variables::WATCH_REGION,
];
const DISCOVERY_KEYS: &[Variable] = &[variables::SEERR_API_KEY, variables::TMDB_TOKEN];
const MODEL: &[Variable] = &[
    variables::LLM_BASE_URL,
    variables::LLM_API_KEY,
    variables::LLM_MODEL,
    variables::LLM_PRICE_INPUT,
    variables::LLM_PRICE_CACHED,
    variables::LLM_PRICE_OUTPUT,
];
#[cfg(test)]
mod tests {
    use super::*;

    fn sources(values: &[(&str, &str)]) -> ConfigSources {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ConfigSources::from_environment(values)
    }

    fn stored(values: &[(&str, &str)]) -> ConfigSources {
        let text = |value: &str| crate::config::StoredValue::Text(value.to_owned());
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), text(value)));
        ConfigSources::default().with_stored(values.collect())
    }

    #[test]
    fn setup_continues_at_the_first_open_step() {
        let step = |values: &[(&str, &str)], has_installed_webhooks, requested| {
            SetupProgress { sources: &sources(values), has_installed_webhooks, has_admin: false }
                .choose_step(requested)
        };
        let password = ("CONSOLE_PASSWORD", "a password");
        assert_eq!(step(&[], true, None), SetupStep::Password);
        assert_eq!(step(&[], true, Some(SetupStep::You)), SetupStep::Password);
        assert_eq!(step(&[password], true, None), SetupStep::You);
        assert_eq!(step(&[password], true, Some(SetupStep::Model)), SetupStep::Model);
        let complete = [
            password,
            ("ADMIN_PHONE", "+15550100123"),
            ("RADARR_API_KEY", "0123456789abcdef"),
            ("LLM_MODEL", "a-model"),
            ("TWILIO_PHONE_NUMBER", "+15550100100"),
            ("NOTIFICATION_SECRET", "0123456789abcdef"),
        ];
        assert_eq!(step(&complete, false, None), SetupStep::Webhooks);
        assert_eq!(step(&complete, true, None), SetupStep::Finish);
        assert_eq!(SetupStep::You.next(), SetupStep::Library);
        assert_eq!(SetupStep::Finish.next(), SetupStep::Finish);
    }

    #[test]
    fn installation_with_an_env_file_has_no_unfinished_setup() {
        assert!(is_setup_unfinished(&sources(&[("TZ", "UTC"), ("CONSOLE_PASSWORD", "a password")]), false));
        assert!(is_setup_unfinished(&stored(&[("ADMIN_PHONE", "+15550100123")]), false));
        assert!(!is_setup_unfinished(&sources(&[("ADMIN_PHONE", "+15550100123")]), false));
        assert!(!is_setup_unfinished(&sources(&[("RADARR_API_KEY", "0123456789abcdef")]), false));
    }

    #[test]
    fn admin_without_a_phone_number_completes_the_step() {
        let configured =
            stored(&[("CONSOLE_PASSWORD", "a password"), ("RADARR_API_KEY", "0123456789abcdef")]);
        let progress =
            |has_admin| SetupProgress { sources: &configured, has_installed_webhooks: false, has_admin };
        assert_eq!(progress(false).choose_step(None), SetupStep::You);
        assert_eq!(progress(true).choose_step(None), SetupStep::Model);
        assert!(is_setup_unfinished(&configured, false));
        assert!(!is_setup_unfinished(&configured, true));
    }
}
