//! What an operator can set: environment variables and a `.env` file, as typed values.
//! The only reader of the environment.

mod assemble;
mod cut_value;
mod env_file;
mod environment;
mod misspelling;
mod problems;
mod reader;
#[cfg(test)]
mod tests;
mod time_zone;
mod variables;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use jiff::tz::TimeZone;
use secrecy::SecretString;
use url::Url;

use crate::access_rules::{AccessRules, TrustedProxies};
use crate::conversation::grammar::triage::TriageLevel;
use crate::conversation::model_cost::{DailyBudget, ModelPrices};
use crate::conversation::notifications::quiet_hours::QuietHours;
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::transcript::PhoneNumber;
use crate::engine::memory_indexing::MetadataSource;
use crate::engine::{PicturePolicy, SmsReactions};
use crate::recovery_delays::RecoveryDelays;
use crate::telemetry::LogSettings;
pub use cut_value::CutValue;
pub use misspelling::MisspelledName;
pub use problems::{ConfigProblem, ConfigProblems};

/// Where a crash test wants the program to die: `FAILPOINT=outbox.sent@2` is the second visit of that place.
#[cfg(feature = "failpoints")]
pub fn failpoint() -> Option<(String, u32)> {
    let value = std::env::var("FAILPOINT").ok()?;
    let (name, visit) = value.split_once('@').unwrap_or((&value, "1"));
    Some((name.to_owned(), visit.parse().ok()?))
}

/// The waits of real life, which nobody needs to set.
#[cfg(not(feature = "failpoints"))]
pub fn pace() -> RecoveryDelays {
    RecoveryDelays::STANDARD
}

/// Waits for crash tests, whose peers are on this machine and answer at once.
#[cfg(feature = "failpoints")]
pub fn pace() -> RecoveryDelays {
    RecoveryDelays {
        grace: Duration::from_millis(250),
        looks: [Duration::from_millis(300), Duration::from_millis(1_500)],
        list_every: Duration::from_secs(1),
        list_soon: Duration::from_millis(400),
        too_young: jiff::SignedDuration::from_millis(1_500),
    }
}

/// Everything that an operator decides. Its debug output shows no secret and no whole phone number.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the webhooks listen.
    pub listen: SocketAddr,
    pub console: Console,
    /// The base URL under which the webhooks are reached from outside; always there with Twilio.
    pub public_url: Option<Url>,
    /// Whose `X-Forwarded-For` names the client of a webhook.
    pub trusted_proxies: TrustedProxies,
    pub database: PathBuf,
    /// In which times are told.
    pub time_zone: TimeZone,
    /// `None`: no texts by phone; the other channels work.
    pub twilio: Option<Twilio>,
    /// `None`: the keyword brain answers.
    pub llm: Option<Llm>,
    /// `None`: memory is searched by words alone.
    pub embeddings: Option<Embeddings>,
    pub libraries: Libraries,
    pub notifications: Notifications,
    pub people: People,
    pub conversation: Conversation,
    pub limits: Limits,
    /// For how many days texts are kept readable.
    pub retention_days: u32,
    pub log: LogSettings,
    /// Names that are set, have no effect, and are much like a variable's.
    pub misspelt: Vec<MisspelledName>,
    pub cut: Vec<CutValue>,
}

/// The listener of the console and the API.
#[derive(Debug, Clone)]
pub struct Console {
    /// `None`: there is none.
    pub bind: Option<SocketAddr>,
    /// Who is let in.
    pub rules: AccessRules,
}

#[derive(Debug, Clone)]
pub struct Twilio {
    pub account_sid: String,
    /// What webhooks may be signed with, the main one first; never empty.
    pub auth_tokens: Vec<SecretString>,
    pub phone_number: PhoneNumber,
    pub messaging_service_sid: Option<String>,
    /// What our own requests sign in with.
    pub credentials: Credentials,
    pub api_url: Url,
    /// What signatures are checked against and status callbacks are built on.
    pub public_url: Url,
    pub pictures: PicturePolicy,
}

#[derive(Debug, Clone)]
pub struct Credentials {
    /// The API key's id, or the account's.
    pub user: String,
    pub password: SecretString,
}

#[derive(Debug, Clone)]
pub struct Llm {
    /// Many servers at home ask for none.
    pub api_key: Option<SecretString>,
    pub base_url: Url,
    pub model: String,
    /// Tokens that the model can read at once, where somebody said.
    pub context_window: Option<u64>,
    /// `None`: as suits the server.
    pub reasoning_effort: Option<String>,
    /// `None`: as suits the server.
    pub token_field: Option<TokenField>,
    pub max_concurrent: usize,
    pub prices: ModelPrices,
}

/// What turns texts into vectors.
#[derive(Debug, Clone)]
pub struct Embeddings {
    pub model: String,
    pub base_url: Url,
    pub api_key: Option<SecretString>,
    /// From which likeness on two texts count as alike.
    pub floor: f32,
}

/// The request field that limits the length of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenField {
    MaxTokens,
    MaxCompletionTokens,
}

#[derive(Debug, Clone)]
pub struct Libraries {
    pub sonarr: Option<Library>,
    pub radarr: Option<Library>,
    pub sonarr_four_k: Option<Library>,
    pub radarr_four_k: Option<Library>,
}

/// One Sonarr or Radarr.
#[derive(Debug, Clone)]
pub struct Library {
    pub url: Url,
    pub api_key: SecretString,
}

/// How Sonarr and Radarr report to us.
#[derive(Debug, Clone)]
pub struct Notifications {
    /// What they must present; `None`: nothing they report is taken in.
    pub secret: Option<SecretString>,
    /// The base URL under which they reach us, by default that of the webhooks.
    pub url: Option<Url>,
    /// The hours in which notices rest for whoever has set no others.
    pub quiet: Option<QuietHours>,
}

/// Whom we know before anyone has texted.
#[derive(Debug, Clone)]
pub struct People {
    pub admin: Option<PhoneNumber>,
    pub members: Vec<PhoneNumber>,
}

#[derive(Debug, Clone)]
pub struct Conversation {
    /// Silence that ends a conversation.
    pub idle: Duration,
    /// How long a question waits for its yes.
    pub confirm: Duration,
    pub confirm_code: ConfirmCode,
    /// Languages besides English in which yes and no are read, as two-letter codes.
    pub confirm_languages: Vec<String>,
    /// Quiet time after which several texts become one turn.
    pub coalesce: Duration,
    pub reactions: SmsReactions,
    pub routing: TriageLevel,
    pub notes: MetadataSource,
}

/// What a member may add, how fast one may text, and what a day may cost; `None` is without a limit.
#[derive(Debug, Clone)]
pub struct Limits {
    pub quota_movies: Option<RateLimit>,
    pub quota_seasons: Option<RateLimit>,
    pub rate: Option<RateLimit>,
    pub budget: DailyBudget,
}

/// Which deletions want a code in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmCode {
    /// Several items, or very large ones.
    Bulk,
    Always,
}
