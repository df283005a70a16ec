//! Configuration from environment variables, a `.env` file and stored settings, as typed values. Only this module reads
//! the environment.

mod assemble;
mod bootstrap;
mod comparison;
mod env_file;
mod env_line;
mod env_values;
mod environment;
mod expanded_value;
mod misspelling;
mod model_prices;
mod notes;
mod problems;
mod reader;
mod setting_name;
#[cfg(test)]
mod source_tests;
mod sources;
#[cfg(test)]
mod tests;
mod texting;
mod time_zone;
pub mod variables;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use jiff::tz::TimeZone;
use secrecy::SecretString;
use url::Url;

use crate::access_rules::{AccessRules, TrustedProxies};
use crate::conversation::grammar::triage::TriageLevel;
use crate::conversation::making_room::SpacePolicy;
use crate::conversation::model_cost::{DailyBudget, ModelPrices};
use crate::conversation::notifications::quiet_hours::QuietHours;
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::transcript::PhoneNumber;
use crate::conversation::viewer_accounts::WatchSharing;
use crate::engine::{MetadataSource, ModelSkipping, SmsReactions};
use crate::messaging::alert_targets::AlertTargets;
use crate::recovery_delays::RecoveryDelays;
use crate::telemetry::LogSettings;
pub use bootstrap::Bootstrap;
pub use comparison::ConfigSection;
pub use env_line::format_env_line;
pub use env_values::EnvFile;
pub use environment::{agent_key, read_env_file};
pub use expanded_value::ExpandedValue;
pub use misspelling::MisspelledName;
pub use model_prices::suggest_values;
pub use notes::{ConfigNotes, IneffectiveReason, IneffectiveSetting};
pub use problems::{ConfigProblem, ConfigProblems};
pub use setting_name::{SettingNameError, find_setting};
pub use sources::{BoundSecret, ConfigSources, StoredValue, ValueSource};
pub use texting::{Credentials, SmsGate, SmsGateCredentials, Telegram, Twilio};
pub use variables::{AllowedValues, AllowedWord, DefaultValue, SettingGroup, VARIABLES, Variable};

/// Returns the failpoint at which a crash test ends the program: `FAILPOINT=outbox.sent@2` is its second visit.
#[cfg(feature = "failpoints")]
pub fn failpoint() -> Option<(String, u32)> {
    let value = std::env::var("FAILPOINT").ok()?;
    let (name, visit) = value.split_once('@').unwrap_or((&value, "1"));
    Some((name.to_owned(), visit.parse().ok()?))
}

/// Returns the delays of a production build.
#[cfg(not(feature = "failpoints"))]
pub fn recovery_delays() -> RecoveryDelays {
    RecoveryDelays::STANDARD
}

/// Returns shorter delays for crash tests, whose peers respond immediately.
#[cfg(feature = "failpoints")]
pub fn recovery_delays() -> RecoveryDelays {
    RecoveryDelays {
        grace: Duration::from_millis(250),
        lookup_delays: [Duration::from_millis(300), Duration::from_millis(1_500)],
        poll_interval: Duration::from_secs(1),
        short_poll_interval: Duration::from_millis(400),
        min_message_age: jiff::SignedDuration::from_millis(1_500),
    }
}

/// Complete configuration. Its debug output contains no secrets and no complete phone numbers.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address on which the webhooks listen.
    pub listen: SocketAddr,
    pub console: Console,
    /// Base URL of the webhooks from outside. Always set with Twilio.
    pub public_url: Option<Url>,
    /// Proxies whose `X-Forwarded-For` header names the client of a webhook.
    pub trusted_proxies: TrustedProxies,
    pub database: PathBuf,
    /// File of the stored secrets.
    pub secrets_file: PathBuf,
    /// Zone in which times are shown.
    pub time_zone: TimeZone,
    /// Twilio account. Without one, only the other channels work.
    pub twilio: Option<Twilio>,
    pub smsgate: Option<SmsGate>,
    pub telegram: Option<Telegram>,
    /// Language model. Without one, the keyword responder answers.
    pub llm: Option<Llm>,
    /// Embeddings model. Without one, memory uses full-text search only.
    pub embeddings: Option<Embeddings>,
    pub libraries: Libraries,
    /// Servers on which people watch.
    pub media_servers: MediaServers,
    pub discovery: Discovery,
    pub notifications: Notifications,
    pub alerts: AlertTargets,
    pub people: People,
    pub conversation: Conversation,
    pub limits: Limits,
    /// Number of days for which messages are kept.
    pub retention_days: u32,
    pub log: LogSettings,
    pub notes: ConfigNotes,
}

/// Listener of the console and the API.
#[derive(Debug, Clone)]
pub struct Console {
    /// Address of the console. `None` turns it off.
    pub bind: Option<SocketAddr>,
    /// Access rules of the console.
    pub rules: AccessRules,
}

#[derive(Debug, Clone)]
pub struct Llm {
    /// API key. Many self-hosted servers require none.
    pub api_key: Option<SecretString>,
    pub base_url: Url,
    pub model: String,
    /// Context window of the model in tokens, if configured.
    pub context_window: Option<u64>,
    /// Reasoning effort of the model. `None` for the server's default.
    pub reasoning_effort: Option<String>,
    /// Request field for the token limit. `None` to choose it by server.
    pub token_field: Option<TokenField>,
    /// Highest limit of concurrent model calls. The limit itself adapts to the server.
    pub max_concurrent: usize,
    pub prices: ModelPrices,
}

/// Embeddings model that turns text into vectors.
#[derive(Debug, Clone)]
pub struct Embeddings {
    pub model: String,
    pub base_url: Url,
    pub api_key: Option<SecretString>,
    /// Minimum similarity of texts that match.
    pub floor: f32,
}

/// Request field that limits the length of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenField {
    MaxTokens,
    MaxCompletionTokens,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Libraries {
    pub sonarr: Option<Library>,
    pub radarr: Option<Library>,
    pub sonarr_four_k: Option<Library>,
    pub radarr_four_k: Option<Library>,
}

/// Servers on which people watch. Without one, a title counts as ready once its file is imported.
#[derive(Debug, Clone, PartialEq)]
pub struct MediaServers {
    pub jellyfin: Option<Library>,
    pub plex: Option<Library>,
    /// Tautulli that records the plays of Plex.
    pub tautulli: Option<Library>,
}

/// Sources in which titles are found, and the place of requests. Without a source, only Sonarr and Radarr suggest titles.
#[derive(Debug, Clone)]
pub struct Discovery {
    pub seerr: Option<Library>,
    /// TMDB, with its read access token.
    pub tmdb: Option<Library>,
    /// Code of the country whose streaming services are meant, such as `US`.
    pub region: String,
    pub requests: RequestBackend,
}

/// Place where titles are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestBackend {
    /// Additions go to Sonarr and Radarr.
    #[default]
    Direct,
    /// Additions become requests at Seerr, which decides on them.
    Seerr,
}

/// One Sonarr or Radarr instance, one media server, the Tautulli of one, or Seerr.
#[derive(Debug, Clone)]
pub struct Library {
    pub url: Url,
    pub api_key: SecretString,
}

/// Settings of the arr events that Sonarr and Radarr send.
#[derive(Debug, Clone)]
pub struct Notifications {
    /// Secret of the webhooks. Without one, no events are accepted.
    pub secret: Option<SecretString>,
    /// Base URL at which Sonarr and Radarr reach Dialarr. Defaults to the public URL.
    pub url: Option<Url>,
    /// Default quiet hours of users.
    pub quiet: Option<QuietHours>,
}

/// Users who are added at startup.
#[derive(Debug, Clone, PartialEq)]
pub struct People {
    pub admin: Option<PhoneNumber>,
    pub members: Vec<PhoneNumber>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// Idle time that ends a conversation.
    pub idle: Duration,
    /// Time limit of a confirmation prompt.
    pub confirm: Duration,
    pub confirm_code: ConfirmCode,
    /// Languages besides English in which yes and no are recognized, as two-letter codes.
    pub confirm_languages: Vec<String>,
    /// Debounce interval after which several messages become one turn.
    pub coalesce: Duration,
    pub reactions: SmsReactions,
    pub routing: TriageLevel,
    /// Text of the operator that each request to the model contains.
    pub prompt_addition: Option<String>,
    pub model_skipping: ModelSkipping,
    /// Who may know what a person has watched.
    pub watch_sharing: WatchSharing,
    pub notes: MetadataSource,
}

/// Limits on additions by members, on the message rate, and on the cost of a day. `None` means no limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    pub quota_movies: Option<RateLimit>,
    pub quota_seasons: Option<RateLimit>,
    /// Gigabytes that the titles of a member may hold.
    pub space_gb: Option<u32>,
    pub making_room: SpacePolicy,
    pub rate: Option<RateLimit>,
    pub budget: DailyBudget,
}

/// Deletions whose confirmation requires a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmCode {
    /// Deletions of several items, or of very large ones.
    Bulk,
    Always,
}
