//! Table of all settings: names, examples, and the properties that forms and the command line use.

use AllowedValues::{AnyOf, OneOf};
use DefaultValue::{Described, Missing, Value};

/// Default of `TWILIO_API_URL`.
pub(super) const DEFAULT_TWILIO_API_URL: &str = "https://api.twilio.com";
/// Default of `TELEGRAM_API_URL`.
pub(super) const DEFAULT_TELEGRAM_API_URL: &str = "https://api.telegram.org";
/// Default of `LLM_BASE_URL`.
/// Default of `TMDB_API_URL`.
pub(super) const DEFAULT_TMDB_API_URL: &str = "https://api.themoviedb.org/3";
pub(super) const DEFAULT_LLM_BASE_URL: &str = "https://api.openai.com/v1";
/// API of Pushover.
const PUSHOVER_API_URL: &str = "https://api.pushover.net";

/// Setting, which is an environment variable, a line of `.env`, or a stored row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    pub name: &'static str,
    /// Line that sets the variable correctly, such as `PORT=3000`.
    pub example: &'static str,
    pub group: SettingGroup,
    pub(super) kind: VariableKind,
    /// Label of the field in a form.
    pub label: &'static str,
    /// Sentence that explains the field.
    pub help: &'static str,
    pub values: AllowedValues,
    pub default: DefaultValue,
}

/// Value of a setting that is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultValue {
    Missing,
    /// Value as it could be written in `.env`.
    Value(&'static str),
    /// Phrase for a value that depends on other settings or on the machine, or that cannot be written.
    Described(&'static str),
}

/// Values that a setting can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedValues {
    /// Any value that the setting's own rules accept.
    Any,
    /// One of these words, the default first.
    OneOf(&'static [AllowedWord]),
    /// A list of any of these words.
    AnyOf(&'static [AllowedWord]),
}

impl AllowedValues {
    /// Returns the words; none if there are many values.
    pub fn words(self) -> &'static [AllowedWord] {
        match self {
            Self::Any => &[],
            Self::OneOf(words) | Self::AnyOf(words) => words,
        }
    }
}

/// Word that a setting can have, and its meaning for people.
pub type AllowedWord = (&'static str, &'static str);

/// Group of settings that belong into one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingGroup {
    Server,
    People,
    Library,
    MediaServers,
    Discovery,
    Model,
    Texting,
    Notifications,
    Console,
    Limits,
    Conversation,
}

/// Handling of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableKind {
    /// Needed before the database is opened or to reach the console, so it is never stored.
    EnvironmentOnly,
    Plain,
    /// Used only at the start.
    PlainAtStart,
    /// Secret, which is stored in the secrets file and shown nowhere.
    Secret(SecretServer),
}

/// Server to which a secret is sent: the first of these URL variables that has a value, or a default. A secret that is
/// sent nowhere, or is itself a URL, has neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SecretServer {
    pub(super) url_variables: &'static [&'static str],
    pub(super) default_url: Option<&'static str>,
}

impl SettingGroup {
    /// Returns the word that names the group in URLs and forms.
    pub fn id(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::People => "people",
            Self::Library => "library",
            Self::MediaServers => "media",
            Self::Discovery => "discovery",
            Self::Model => "model",
            Self::Texting => "texting",
            Self::Notifications => "notifications",
            Self::Console => "console",
            Self::Limits => "limits",
            Self::Conversation => "conversations",
        }
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::Server => "Server",
            Self::People => "People",
            Self::Library => "Sonarr and Radarr",
            Self::MediaServers => "Media servers",
            Self::Discovery => "Discovery",
            Self::Model => "Model",
            Self::Texting => "Texting",
            Self::Notifications => "Notifications",
            Self::Console => "Console",
            Self::Limits => "Limits",
            Self::Conversation => "Conversations",
        }
    }
}

impl Variable {
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, VariableKind::Secret(_))
    }

    pub fn is_storable(&self) -> bool {
        self.kind != VariableKind::EnvironmentOnly
    }

    /// Returns whether a change takes effect only at the next start.
    pub fn needs_restart(&self) -> bool {
        matches!(self.kind, VariableKind::EnvironmentOnly | VariableKind::PlainAtStart)
    }

    /// Returns the server of a secret; `None` for other settings.
    pub(super) fn secret_server(&self) -> Option<SecretServer> {
        match self.kind {
            VariableKind::Secret(server) => Some(server),
            VariableKind::EnvironmentOnly | VariableKind::Plain | VariableKind::PlainAtStart => None,
        }
    }
}

/// Returns the variable with this name.
pub fn find_variable(name: &str) -> Option<Variable> {
    VARIABLES.iter().find(|variable| variable.name == name).copied()
}

const ENVIRONMENT_ONLY: VariableKind = VariableKind::EnvironmentOnly;
const PLAIN: VariableKind = VariableKind::Plain;
const PLAIN_AT_START: VariableKind = VariableKind::PlainAtStart;
const UNBOUND_SECRET: VariableKind = secret_of(&[], None);

const fn secret_of(
    url_variables: &'static [&'static str],
    default_url: Option<&'static str>,
) -> VariableKind {
    VariableKind::Secret(SecretServer { url_variables, default_url })
}

macro_rules! variables {
    (@values) => { AllowedValues::Any };
    (@values $values:expr) => { $values };
    ($($group:ident {
        $($name:ident = $value:literal, $kind:expr, $default:expr, $label:literal, $help:literal $(, $values:expr)?;)*
    })*) => {
        $($(
            pub const $name: Variable = Variable {
                name: stringify!($name),
                example: concat!(stringify!($name), "=", $value),
                group: SettingGroup::$group,
                kind: $kind,
                label: $label,
                help: $help,
                values: variables!(@values $($values)?),
                default: $default,
            };
        )*)*
        /// All settings, group by group.
        pub const VARIABLES: &[Variable] = &[$($($name),*),*];
    };
}

variables! {
    Server {
        HOST = "0.0.0.0", ENVIRONMENT_ONLY, Value("0.0.0.0"),
            "Webhook address", "Address on which the webhooks listen.";
        PORT = "3000", ENVIRONMENT_ONLY, Value("3000"),
            "Webhook port", "Port on which the webhooks listen.";
        DATABASE_URL = "dialarr.db", ENVIRONMENT_ONLY, Value("dialarr.db"),
            "Database file", "Path of the SQLite database, which is created if it does not exist.";
        SECRETS_FILE = "dialarr.secrets.json", ENVIRONMENT_ONLY, Described("beside the database"),
            "Secrets file", "Path of the file with the stored secrets, by default beside the database.";
        LOG_FORMAT = "pretty", PLAIN_AT_START, Value("pretty"),
            "Log format", "Format of log lines.",
            OneOf(&[("pretty", "Text for people"), ("json", "JSON for machines")]);
        RUST_LOG = "info,dialarr=debug", PLAIN_AT_START, Described("info, without the HTTP libraries"),
            "Log filter", "Log level, or a list of target=level pairs.";
    }
    People {
        ADMIN_PHONE = "+15550100123", PLAIN, Missing,
            "Your phone number", "Phone number that becomes an admin, with the country code.";
        PHONE_WHITELIST = "+15550100123,+15550100124", PLAIN, Missing,
            "Members", "Phone numbers that become members without approval, separated by commas.";
        TZ = "Europe/Berlin", PLAIN, Described("the system's time zone"),
            "Time zone", "Time zone of displayed times, such as Europe/Berlin.";
    }
    Library {
        SONARR_URL = "http://sonarr:8989", PLAIN, Missing,
            "Sonarr URL", "Base URL of Sonarr, with a base path such as /sonarr if it has one.";
        SONARR_API_KEY = "0123456789abcdef", secret_of(&["SONARR_URL"], None), Missing,
            "Sonarr API key", "API key of Sonarr, from Settings, General, Security.";
        RADARR_URL = "http://radarr:7878", PLAIN, Missing,
            "Radarr URL", "Base URL of Radarr, with a base path such as /radarr if it has one.";
        RADARR_API_KEY = "0123456789abcdef", secret_of(&["RADARR_URL"], None), Missing,
            "Radarr API key", "API key of Radarr, from Settings, General, Security.";
        SONARR_4K_URL = "http://sonarr4k:8989", PLAIN, Missing,
            "Sonarr 4K URL", "Base URL of a second Sonarr, for 4K.";
        SONARR_4K_API_KEY = "0123456789abcdef", secret_of(&["SONARR_4K_URL"], None), Missing,
            "Sonarr 4K API key", "API key of the second Sonarr.";
        RADARR_4K_URL = "http://radarr4k:7878", PLAIN, Missing,
            "Radarr 4K URL", "Base URL of a second Radarr, for 4K.";
        RADARR_4K_API_KEY = "0123456789abcdef", secret_of(&["RADARR_4K_URL"], None), Missing,
            "Radarr 4K API key", "API key of the second Radarr.";
    }
    MediaServers {
        JELLYFIN_URL = "http://jellyfin:8096", PLAIN, Missing,
            "Jellyfin URL", "Base URL of Jellyfin, with a base path such as /jellyfin if it has one.";
        JELLYFIN_API_KEY = "0123456789abcdef0123456789abcdef", secret_of(&["JELLYFIN_URL"], None), Missing,
            "Jellyfin API key", "API key of Jellyfin, from Dashboard, API Keys.";
        PLEX_URL = "http://plex:32400", PLAIN, Missing,
            "Plex URL", "Base URL of Plex Media Server in the home network.";
        PLEX_TOKEN = "0123456789abcdefghij", secret_of(&["PLEX_URL"], None), Missing,
            "Plex token", "Token of the owner of the Plex server.";
        TAUTULLI_URL = "http://tautulli:8181", PLAIN, Missing,
            "Tautulli URL", "Base URL of Tautulli, which records the plays of Plex, with a base path if it has one.";
        TAUTULLI_API_KEY = "0123456789abcdef0123456789abcdef", secret_of(&["TAUTULLI_URL"], None), Missing,
            "Tautulli API key", "API key of Tautulli, from Settings, Web Interface.";
        WATCH_SHARING = "household", PLAIN, Value("off"),
            "Watching", "Who may ask what a person has watched.",
            OneOf(&[("off", "Only that person"), ("household", "Everybody")]);
    }
    Discovery {
        SEERR_URL = "http://seerr:5055", PLAIN, Missing,
            "Seerr URL", "Base URL of Seerr, Jellyseerr or Overseerr, with a base path if it has one.";
        SEERR_API_KEY = "0123456789abcdef", secret_of(&["SEERR_URL"], None), Missing,
            "Seerr API key", "API key of Seerr, from Settings, General.";
        TMDB_TOKEN = "eyJhbGciOiJIUzI1NiJ9.e30.abc", secret_of(&["TMDB_API_URL"], Some(DEFAULT_TMDB_API_URL)), Missing,
            "TMDB token", "Read access token of your own account at TMDB, which is not needed with Seerr.";
        TMDB_API_URL = "https://api.themoviedb.org/3", PLAIN, Value("https://api.themoviedb.org/3"),
            "TMDB API URL", "Base URL of the API of TMDB, which only tests and proxies change.";
        WATCH_REGION = "US", PLAIN, Value("US"),
            "Country", "Two letters of the country whose streaming services are meant.";
        REQUESTS = "seerr", PLAIN, Value("direct"),
            "Additions", "Where titles are requested.",
            OneOf(&[("direct", "At Sonarr and Radarr"), ("seerr", "At Seerr")]);
    }
    Model {
        LLM_API_KEY = "sk-0123456789", secret_of(&["LLM_BASE_URL"], Some(DEFAULT_LLM_BASE_URL)), Missing,
            "Model API key", "API key of the model server; many self-hosted servers need none.";
        LLM_BASE_URL = "http://localhost:11434/v1", PLAIN, Described("OpenAI, if a key is set"),
            "Model server", "Base URL of an OpenAI-compatible server, by default that of OpenAI.";
        LLM_MODEL = "gpt-5.4-mini", PLAIN, Missing,
            "Model", "Name of the model at its server.";
        LLM_MODELS = "gpt-5.4-mini 0.75/0.075/4.50, gpt-5.4 2.50/0.25/15", PLAIN, Missing,
            "Models to choose from", "Names of models of the same server, each with its prices for a million tokens: input/output or input/cached/output.";
        LLM_CONTEXT_WINDOW = "128000", PLAIN, Missing,
            "Context window", "Context size of the model in tokens, for the meter in the console.";
        LLM_REASONING_EFFORT = "auto", PLAIN, Value("auto"),
            "Reasoning effort", "Time that the model spends on thinking before it answers.",
            OneOf(&[
                ("auto", "Server default"), ("none", "None"), ("minimal", "Minimal"), ("low", "Low"),
                ("medium", "Medium"), ("high", "High"), ("xhigh", "Highest"),
            ]);
        LLM_TOKEN_FIELD = "auto", PLAIN, Value("auto"),
            "Token limit field", "Request field that limits the length of an answer.",
            OneOf(&[
                ("auto", "Chosen by server"), ("max_tokens", "max_tokens"),
                ("max_completion_tokens", "max_completion_tokens"),
            ]);
        LLM_MAX_CONCURRENT = "64", PLAIN, Described("64, or 8 for a loopback or private address"),
            "Concurrent requests", "Highest limit of concurrent requests to the model.";
        PROMPT_ADDITION = "The kids are 6 and 9.", PLAIN, Missing,
            "Addition to the prompt", "Text that the model reads in each request, at most 1,000 characters; it changes no rule that code checks.";
        LLM_PRICE_INPUT = "0.75", PLAIN, Missing,
            "Input price", "Price of a million input tokens, for a model whose prices are not in the list of models.";
        LLM_PRICE_CACHED = "0.075", PLAIN, Described("the input price"),
            "Cached input price", "Price of a million input tokens that the server had cached.";
        LLM_PRICE_OUTPUT = "4.50", PLAIN, Missing,
            "Output price", "Price of a million output tokens.";
        EMBEDDINGS_MODEL = "nomic-embed-text", PLAIN, Missing,
            "Embeddings model", "Model with which memory is also searched by meaning.";
        EMBEDDINGS_BASE_URL = "http://localhost:11434/v1", PLAIN, Described("that of the model"),
            "Embeddings server", "Base URL of the embeddings server, by default that of the model.";
        EMBEDDINGS_API_KEY = "sk-0123456789", secret_of(&["EMBEDDINGS_BASE_URL", "LLM_BASE_URL"], Some(DEFAULT_LLM_BASE_URL)), Described("that of the model"),
            "Embeddings API key", "API key of the embeddings server, by default that of the model at the same base URL.";
        EMBEDDINGS_FLOOR = "0.30", PLAIN, Value("0.30"),
            "Minimum similarity", "Similarity from 0 to 1 above which texts count as related.";
        MEMORY_NOTES = "model", PLAIN, Value("model"),
            "Summaries for memory", "Source of the summaries by which answers are found again.",
            OneOf(&[("model", "Written by the model"), ("code", "Made without the model")]);
    }
    Texting {
        PUBLIC_URL = "https://sms.example.org", PLAIN, Missing,
            "Public URL", "Base URL at which Twilio, or Telegram with its webhook on, calls Dialarr, without /webhook.";
        TRUSTED_PROXIES = "127.0.0.1,172.16.0.0/12", PLAIN_AT_START, Missing,
            "Trusted proxies", "Addresses or networks of the proxies and tunnels in front of the webhooks, separated by commas.";
        TWILIO_ACCOUNT_SID = "AC0123456789abcdef0123456789abcdef", PLAIN, Missing,
            "Account SID", "SID of the Twilio account, from its console.";
        TWILIO_AUTH_TOKEN = "0123456789abcdef", secret_of(&["TWILIO_API_URL"], Some(DEFAULT_TWILIO_API_URL)), Missing,
            "Auth token", "Auth token of the Twilio account, or a list of two during a token change.";
        TWILIO_PHONE_NUMBER = "+15550100123", PLAIN, Missing,
            "Phone number", "Number that people text.";
        TWILIO_API_KEY_SID = "SK0123456789abcdef0123456789abcdef", PLAIN, Missing,
            "API key SID", "SID of an API key that sends texts instead of the auth token.";
        TWILIO_API_KEY_SECRET = "0123456789abcdef", secret_of(&["TWILIO_API_URL"], Some(DEFAULT_TWILIO_API_URL)), Missing,
            "API key secret", "Secret of the Twilio API key.";
        TWILIO_MESSAGING_SERVICE_SID = "MG0123456789abcdef0123456789abcdef", PLAIN, Missing,
            "Messaging service SID", "SID of a messaging service that sends instead of the number.";
        TWILIO_API_URL = "https://api.twilio.com", PLAIN, Value("https://api.twilio.com"),
            "Twilio API URL", "Base URL of Twilio's API, which only tests and proxies change.";
        TWILIO_MMS = "off", PLAIN, Value("on"),
            "Posters as pictures", "Whether posters are sent as MMS.",
            OneOf(&[("on", "Sent"), ("off", "Not sent")]);
        SMSGATE_URL = "http://192.168.1.20:8080", PLAIN, Missing,
            "Address of the phone", "URL of SMS Gateway for Android on a phone of yours, with its port.";
        SMSGATE_PHONE_NUMBER = "+15550100123", PLAIN, Missing,
            "Number of the phone", "Number of the SIM in that phone, which people text.";
        SMSGATE_USER = "sms", PLAIN, Value("sms"),
            "User name of the phone", "User name that the app shows under Local server.";
        SMSGATE_PASSWORD = "0123abcd", secret_of(&["SMSGATE_URL"], None), Missing,
            "Password of the phone", "Password that the app shows under Local server.";
        SMSGATE_TOKEN = "eyJhbGciOiJIUzI1NiJ9.e30.x", secret_of(&["SMSGATE_URL"], None), Missing,
            "Token of the phone", "Access token that replaces user name and password.";
        SMSGATE_SIM = "1", PLAIN, Missing,
            "SIM of the phone", "SIM that sends and receives, counted from 1, in a phone with several.";
        SMSGATE_WEBHOOK_KEY = "a-long-random-word", UNBOUND_SECRET, Missing,
            "Signing key of the phone", "Key with which the app signs its webhooks, if it calls Dialarr.";
        TELEGRAM_BOT_TOKEN = "123456:ABC-DEF1234ghIkl", secret_of(&["TELEGRAM_API_URL"], Some(DEFAULT_TELEGRAM_API_URL)), Missing,
            "Token of the bot", "Token of a Telegram bot, as BotFather shows it.";
        TELEGRAM_WEBHOOK = "on", PLAIN, Value("off"),
            "Webhook of the bot", "Whether Telegram calls Dialarr at the public URL, which is not needed otherwise.",
            OneOf(&[("off", "Dialarr asks Telegram for messages"), ("on", "Telegram calls the public URL")]);
        TELEGRAM_API_URL = "https://api.telegram.org", PLAIN, Value("https://api.telegram.org"),
            "Telegram API URL", "Base URL of Telegram's Bot API, which only tests and proxies change.";
    }
    Notifications {
        NOTIFICATION_SECRET = "0123456789abcdef", UNBOUND_SECRET, Missing,
            "Webhook secret", "Long random password that Sonarr and Radarr send with their events.";
        NOTIFICATION_URL = "http://dialarr:3000", PLAIN, Described("the public URL"),
            "Webhook URL", "Base URL at which Sonarr and Radarr reach Dialarr, by default the public URL.";
        QUIET_HOURS = "22-7", PLAIN, Value("off"),
            "Quiet hours", "Hours in which notifications wait until morning, such as 22-7, or off.";
        NTFY_URL = "https://ntfy.sh/a-long-random-topic", UNBOUND_SECRET, Missing,
            "ntfy topic", "URL of the ntfy topic that gets the alerts for you.";
        NTFY_TOKEN = "tk_0123456789", secret_of(&["NTFY_URL"], None), Missing,
            "ntfy access token", "Access token of ntfy, for a topic that needs one.";
        PUSHOVER_TOKEN = "a0123456789", secret_of(&[], Some(PUSHOVER_API_URL)), Missing,
            "Pushover API token", "Token of an application that you created at Pushover for the alerts.";
        PUSHOVER_USER = "u0123456789", secret_of(&[], Some(PUSHOVER_API_URL)), Missing,
            "Pushover user key", "Your user key at Pushover.";
        OPERATOR_WEBHOOK_URL = "https://example.org/dialarr-alerts", UNBOUND_SECRET, Missing,
            "Alert webhook", "URL that gets the alerts for you as JSON.";
        OPERATOR_WEBHOOK_SECRET = "0123456789abcdef", secret_of(&["OPERATOR_WEBHOOK_URL"], None), Missing,
            "Alert webhook secret", "Secret with which the alerts to the webhook are signed.";
    }
    Console {
        CONSOLE_BIND = "127.0.0.1:3001", ENVIRONMENT_ONLY, Value("127.0.0.1:3001"),
            "Console address", "Address and port of the console and its API; empty turns both off.";
        CONSOLE_PASSWORD = "'four words you remember'", UNBOUND_SECRET, Missing,
            "Console password", "Password of at least 10 characters, or an argon2id hash of one.";
        CONSOLE_AUTH = "password", PLAIN, Value("password"),
            "Console sign-in", "Whether the console asks for a sign-in; only a console that other machines cannot reach may do without.",
            OneOf(&[("password", "Required"), ("none", "Not required")]);
        CONSOLE_HOSTS = "dialarr.home.lan,dialarr.example.org", PLAIN, Missing,
            "Console host names", "Further host names of the console, separated by commas.";
    }
    Limits {
        QUOTA_MOVIES = "10/7d", PLAIN, Value("10/7d"),
            "Movies per member", "Movies that a member may add within a period, such as 10/7d, or off.";
        QUOTA_SEASONS = "10/7d", PLAIN, Value("10/7d"),
            "Seasons per member", "Seasons that a member may add within a period, such as 10/7d, or off.";
        SPACE_LIMIT_GB = "200", PLAIN, Missing,
            "Space per member", "Gigabytes that the titles which a member asked for may hold before the member can add more.";
        MAKE_ROOM_BELOW_GB = "500", PLAIN, Missing,
            "Make room below", "Gigabytes of free space below which people are asked which titles could go.";
        MAKE_ROOM_MONTHLY = "on", PLAIN, Value("off"),
            "Make room monthly", "Whether people are asked every month which titles could go.",
            OneOf(&[("off", "No"), ("on", "Yes")]);
        MAKE_ROOM_SILENCE = "may_go", PLAIN, Value("stays"),
            "Without an answer", "What happens to a title that could go if somebody does not answer.",
            OneOf(&[("stays", "It stays"), ("may_go", "An admin may delete it")]);
        RATE_LIMIT = "10/1m", PLAIN, Value("10/1m"),
            "Texts per number", "Texts of one number that are answered within a period, such as 10/1m, or off.";
        DAILY_TOKENS = "3000000", PLAIN, Value("3000000"),
            "Tokens per day", "Tokens of all model calls of a day, or off.";
        DAILY_COST = "2.50", PLAIN, Missing,
            "Cost per day", "Cost of all model calls of a day, in the currency of the prices.";
        RETENTION_DAYS = "365", PLAIN, Value("365"),
            "Retention", "Days after which message texts are erased.";
    }
    Conversation {
        CONVERSATION_IDLE_MINUTES = "30", PLAIN, Value("30"),
            "Idle minutes", "Minutes of silence that end a conversation.";
        CONFIRM_MINUTES = "5", PLAIN, Value("5"),
            "Confirmation minutes", "Minutes for which a confirmation prompt accepts a yes.";
        CONFIRM_CODE = "bulk", PLAIN, Value("bulk"),
            "Confirmation codes", "Deletions that require a four-digit code.",
            OneOf(&[("bulk", "Several or large titles"), ("always", "Every deletion")]);
        CONFIRM_LANGS = "es,fr", PLAIN, Missing,
            "Confirmation languages", "Languages besides English in which yes and no are recognized.",
            AnyOf(&[
                ("es", "Spanish"), ("fr", "French"), ("de", "German"), ("pt", "Portuguese"), ("it", "Italian"),
                ("nl", "Dutch"),
            ]);
        COALESCE_MS = "1200", PLAIN, Value("1200"),
            "Pause before an answer", "Milliseconds of silence after which texts of one user are answered together.";
        SMS_REACTIONS = "silent", PLAIN, Value("silent"),
            "Reactions by text", "Reply to a text that the model answers only with an emoji.",
            OneOf(&[("silent", "None"), ("text", "The emoji")]);
        TURN_ROUTING = "heuristic", PLAIN, Value("heuristic"),
            "Texts without an answer", "Texts that get no answer; the model decides what is small talk.",
            OneOf(&[
                ("heuristic", "Thanks and single emoji"), ("off", "None"),
                ("ai", "Also small talk"),
            ]);
        LLM_SKIP = "never", PLAIN, Value("never"),
            "Answers without the model", "Questions that are answered without the model, which is faster and free; only those that change nothing.",
            OneOf(&[("never", "None"), ("sure", "Clear questions")]);
    }
}
