//! All environment variables, each with an example of a valid value.

/// Name of a variable, and an example line that sets it correctly.
#[derive(Clone, Copy)]
pub(super) struct Variable {
    pub(super) name: &'static str,
    pub(super) example: &'static str,
}

/// Returns the variable with this name.
pub(super) fn find_variable(name: &str) -> Option<Variable> {
    ALL.iter().find(|variable| variable.name == name).copied()
}

macro_rules! variables {
    ($($name:ident = $value:literal),* $(,)?) => {$(
        pub(super) const $name: Variable =
            Variable { name: stringify!($name), example: concat!(stringify!($name), "=", $value) };
    )*
        pub(super) const ALL: &[Variable] = &[$($name),*];
    };
}

variables! {
    HOST = "0.0.0.0",
    PORT = "3000",
    PUBLIC_URL = "https://sms.example.org",
    TRUSTED_PROXIES = "127.0.0.1,172.16.0.0/12",
    CONSOLE_BIND = "127.0.0.1:3001",
    CONSOLE_PASSWORD = "'four words you remember'",
    CONSOLE_AUTH = "password",
    CONSOLE_HOSTS = "dialarr.home.lan,dialarr.example.org",
    DATABASE_URL = "dialarr.db",
    TZ = "Europe/Berlin",
    TWILIO_ACCOUNT_SID = "AC0123456789abcdef0123456789abcdef",
    TWILIO_AUTH_TOKEN = "0123456789abcdef",
    TWILIO_PHONE_NUMBER = "+15550100123",
    TWILIO_API_KEY_SID = "SK0123456789abcdef0123456789abcdef",
    TWILIO_API_KEY_SECRET = "0123456789abcdef",
    TWILIO_MESSAGING_SERVICE_SID = "MG0123456789abcdef0123456789abcdef",
    TWILIO_API_URL = "https://api.twilio.com",
    TWILIO_MMS = "off",
    LLM_API_KEY = "sk-0123456789",
    LLM_BASE_URL = "http://localhost:11434/v1",
    LLM_MODEL = "gpt-5.4-mini",
    LLM_CONTEXT_WINDOW = "128000",
    LLM_REASONING_EFFORT = "auto",
    LLM_TOKEN_FIELD = "auto",
    LLM_MAX_CONCURRENT = "64",
    LLM_PRICE_INPUT = "0.75",
    LLM_PRICE_CACHED = "0.075",
    LLM_PRICE_OUTPUT = "4.50",
    EMBEDDINGS_MODEL = "nomic-embed-text",
    EMBEDDINGS_BASE_URL = "http://localhost:11434/v1",
    EMBEDDINGS_API_KEY = "sk-0123456789",
    EMBEDDINGS_FLOOR = "0.30",
    SONARR_URL = "http://sonarr:8989",
    SONARR_API_KEY = "0123456789abcdef",
    RADARR_URL = "http://radarr:7878",
    RADARR_API_KEY = "0123456789abcdef",
    SONARR_4K_URL = "http://sonarr4k:8989",
    SONARR_4K_API_KEY = "0123456789abcdef",
    RADARR_4K_URL = "http://radarr4k:7878",
    RADARR_4K_API_KEY = "0123456789abcdef",
    NOTIFICATION_SECRET = "0123456789abcdef",
    NOTIFICATION_URL = "http://dialarr:3000",
    QUIET_HOURS = "22-7",
    ADMIN_PHONE = "+15550100123",
    PHONE_WHITELIST = "+15550100123,+15550100124",
    CONVERSATION_IDLE_MINUTES = "30",
    CONFIRM_MINUTES = "5",
    CONFIRM_CODE = "bulk",
    CONFIRM_LANGS = "es,fr",
    COALESCE_MS = "1200",
    SMS_REACTIONS = "silent",
    TURN_ROUTING = "heuristic",
    LLM_SKIP = "never",
    MEMORY_NOTES = "model",
    QUOTA_MOVIES = "10/7d",
    QUOTA_SEASONS = "10/7d",
    RATE_LIMIT = "10/1m",
    DAILY_TOKENS = "3000000",
    DAILY_COST = "2.50",
    RETENTION_DAYS = "365",
    LOG_FORMAT = "pretty",
    RUST_LOG = "info,dialarr=debug",
}
