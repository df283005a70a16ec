//! Conversion of the variables into a [`Config`]: defaults, ranges, and dependencies between variables.

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use secrecy::SecretString;
use url::{Host, Url};

use super::model_prices::{parse_money, read_prices};
use super::reader::{VariableReader, VariableValue};
use super::texting::{read_smsgate, read_telegram, read_twilio};
use super::time_zone::parse_zone;
use super::variables::{self, DEFAULT_LLM_BASE_URL, DEFAULT_TMDB_API_URL, Variable};
use super::{
    Bootstrap, Config, ConfigProblems, ConfigSources, ConfirmCode, Console, Conversation, Discovery,
    Embeddings, Libraries, Library, Limits, Llm, MediaServers, Notifications, People, RequestBackend,
    TokenField,
};
use crate::access_rules::{
    AccessRules, AllowedHosts, ConsolePassword, SignIn, TrustedProxies, is_private_host, parse_host,
    parse_network,
};
use crate::conversation::grammar::triage::TriageLevel;
use crate::conversation::making_room::{SilenceRule, SpacePolicy};
use crate::conversation::model_cost::{DailyBudget, ModelPrices};
use crate::conversation::notifications::quiet_hours::QuietHours;
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::transcript::PhoneNumber;
use crate::conversation::viewer_accounts::WatchSharing;
use crate::engine::{MetadataSource, ModelSkipping, SmsReactions};
use crate::llm::embeddings::DEFAULT_SIMILARITY_FLOOR;
use crate::messaging::alert_targets::{AlertTargets, AlertWebhook, Ntfy, Pushover};
use crate::telemetry::{self, LogFormat, LogSettings};

/// Highest limit of concurrent model calls.
const DEFAULT_CONCURRENT: u64 = 64;
/// The same for a server in a private network, whose hardware is shared by few users.
const DEFAULT_PRIVATE_CONCURRENT: u64 = 8;
const MAX_DAILY_TOKENS: u64 = 1_000_000_000_000;
/// Maximum length of the operator's addition to the prompt, which every request contains.
const MAX_PROMPT_ADDITION_CHARS: usize = 1_000;

impl Config {
    /// Builds the configuration, with the system time zone if `TZ` is not set. An empty value counts as not set, except
    /// that an empty `CONSOLE_BIND` turns the console off.
    pub fn from_sources(sources: &ConfigSources) -> Result<Self, ConfigProblems> {
        let mut reader = VariableReader::new(sources);
        let bootstrap = Bootstrap::from_reader(&mut reader);
        let public_url = reader.read_url(variables::PUBLIC_URL);
        let admin = reader.read_phone(variables::ADMIN_PHONE);
        let prices = read_prices(&mut reader);
        let notification_url = reader.read_url(variables::NOTIFICATION_URL).into_option();
        let mut config = Self {
            listen: bootstrap.listen,
            console: read_console(&mut reader, bootstrap.console_bind),
            twilio: read_twilio(&mut reader, &public_url, &admin),
            smsgate: read_smsgate(&mut reader, &admin),
            telegram: read_telegram(&mut reader, &public_url),
            notifications: Notifications {
                secret: reader.read_secret(variables::NOTIFICATION_SECRET).into_option(),
                url: notification_url.or_else(|| public_url.as_valid().cloned()),
                quiet: reader.read_with(variables::QUIET_HOURS, parse_quiet).unwrap_or(None),
            },
            public_url: public_url.into_option(),
            trusted_proxies: TrustedProxies::from_networks(
                reader.read_list(variables::TRUSTED_PROXIES, parse_proxy).unwrap_or(Vec::new()),
            ),
            database: bootstrap.database,
            secrets_file: bootstrap.secrets_file,
            time_zone: reader
                .read_with(variables::TZ, parse_zone)
                .into_option()
                .unwrap_or_else(TimeZone::system),
            llm: read_llm(&mut reader, &prices),
            embeddings: None,
            alerts: read_alerts(&mut reader),
            libraries: Libraries {
                sonarr: read_library(&mut reader, variables::SONARR_URL, variables::SONARR_API_KEY),
                radarr: read_library(&mut reader, variables::RADARR_URL, variables::RADARR_API_KEY),
                sonarr_four_k: read_library(
                    &mut reader,
                    variables::SONARR_4K_URL,
                    variables::SONARR_4K_API_KEY,
                ),
                radarr_four_k: read_library(
                    &mut reader,
                    variables::RADARR_4K_URL,
                    variables::RADARR_4K_API_KEY,
                ),
            },
            media_servers: read_media_servers(&mut reader),
            discovery: read_discovery(&mut reader),
            people: People {
                admin: admin.into_option(),
                members: reader
                    .read_list(variables::PHONE_WHITELIST, |entry| {
                        PhoneNumber::parse(entry).map_err(|error| error.to_string())
                    })
                    .unwrap_or(Vec::new()),
            },
            conversation: read_conversation(&mut reader),
            limits: read_limits(&mut reader, &prices),
            retention_days: u32::try_from(
                reader.read_number(variables::RETENTION_DAYS, 1..=36_500).unwrap_or(365),
            )
            .unwrap_or(u32::MAX),
            log: read_log(&mut reader),
            notes: sources.notes(),
        };
        config.embeddings = read_embeddings(&mut reader, config.llm.as_ref());
        reader.finish_with(config)
    }
}

fn read_console(reader: &mut VariableReader<'_>, bind: Option<SocketAddr>) -> Console {
    let password = reader
        .read_with(variables::CONSOLE_PASSWORD, |text| ConsolePassword::parse(text).map_err(str::to_owned));
    let configured_hosts = reader
        .read_list(variables::CONSOLE_HOSTS, |entry| {
            parse_host(entry).ok_or_else(|| "not a host name".to_owned())
        })
        .unwrap_or(Vec::new());
    let requires_sign_in =
        reader.read_choice(variables::CONSOLE_AUTH, &[("password", true), ("none", false)]).unwrap_or(true);
    let sign_in = match (requires_sign_in, password.into_option()) {
        (true, Some(password)) => SignIn::Password(password),
        (true, None) => SignIn::Links,
        (false, _) => SignIn::Open,
    };
    if let (SignIn::Open, Some(bind)) = (&sign_in, bind)
        && !bind.ip().is_loopback()
    {
        let reason = format!("none is for a console on loopback, but CONSOLE_BIND is {bind}");
        reader.report_problem(variables::CONSOLE_AUTH, reason);
    }
    if let (SignIn::Open, Some(name)) = (&sign_in, configured_hosts.iter().find(|name| !is_loopback(name))) {
        let reason = format!("none is for a console on loopback, but CONSOLE_HOSTS has {name}");
        reader.report_problem(variables::CONSOLE_AUTH, reason);
    }
    Console {
        bind,
        rules: AccessRules { sign_in, hosts: AllowedHosts::local().with_hosts(configured_hosts) },
    }
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(ip) => ip.is_loopback(),
        Host::Ipv6(ip) => ip.is_loopback(),
    }
}

fn read_llm(reader: &mut VariableReader<'_>, prices: &VariableValue<ModelPrices>) -> Option<Llm> {
    let api_key = reader.read_secret(variables::LLM_API_KEY);
    let base_url = reader.read_url(variables::LLM_BASE_URL);
    let model = reader.read_text(variables::LLM_MODEL);
    let context_window = reader.read_number(variables::LLM_CONTEXT_WINDOW, 1_000..=100_000_000).into_option();
    let efforts = variables::LLM_REASONING_EFFORT.values.words().iter();
    let efforts: Vec<_> =
        efforts.map(|(word, _)| (*word, Some((*word).to_owned()).filter(|word| word != "auto"))).collect();
    let reasoning_effort = reader.read_choice(variables::LLM_REASONING_EFFORT, &efforts).unwrap_or(None);
    let token_fields = [
        ("auto", None),
        ("max_tokens", Some(TokenField::MaxTokens)),
        ("max_completion_tokens", Some(TokenField::MaxCompletionTokens)),
    ];
    let token_field = reader.read_choice(variables::LLM_TOKEN_FIELD, &token_fields).unwrap_or(None);
    let max_concurrent = reader.read_number(variables::LLM_MAX_CONCURRENT, 1..=1000);
    if api_key.is_missing() && base_url.is_missing() {
        return None;
    }
    let model = reader.require_value(variables::LLM_MODEL, model, "with LLM_API_KEY or LLM_BASE_URL");
    if api_key.is_unusable() {
        return None;
    }
    let base_url = base_url.or_default(DEFAULT_LLM_BASE_URL)?;
    let is_private = base_url.host().is_some_and(|host| is_private_host(&host));
    let default_concurrent = if is_private { DEFAULT_PRIVATE_CONCURRENT } else { DEFAULT_CONCURRENT };
    Some(Llm {
        api_key: api_key.into_option(),
        base_url,
        model: model?,
        context_window,
        reasoning_effort,
        token_field,
        max_concurrent: usize::try_from(max_concurrent.unwrap_or(default_concurrent)).unwrap_or(usize::MAX),
        prices: prices.as_valid().copied().unwrap_or_default(),
    })
}

/// Reads the settings for embeddings, which default to the model's server. The model's key is sent to no other server.
fn read_embeddings(reader: &mut VariableReader<'_>, llm: Option<&Llm>) -> Option<Embeddings> {
    let model = reader.read_text(variables::EMBEDDINGS_MODEL);
    let base_url = reader.read_url(variables::EMBEDDINGS_BASE_URL);
    let api_key = reader.read_secret(variables::EMBEDDINGS_API_KEY);
    let floor =
        reader.read_with(variables::EMBEDDINGS_FLOOR, parse_similarity).unwrap_or(DEFAULT_SIMILARITY_FLOOR);
    let model = model.into_option()?;
    // An incomplete model configuration has already been reported.
    let has_llm = reader.is_set(variables::LLM_BASE_URL) || reader.is_set(variables::LLM_API_KEY);
    if base_url.is_missing() && !has_llm {
        reader.report_problem(
            variables::EMBEDDINGS_BASE_URL,
            "needed with EMBEDDINGS_MODEL without LLM_BASE_URL and LLM_API_KEY",
        );
    }
    let base_url = match base_url {
        VariableValue::Missing => llm?.base_url.clone(),
        VariableValue::Invalid | VariableValue::Unusable => return None,
        VariableValue::Valid(url) => url,
    };
    let lacks_shared_key = api_key.is_missing()
        && reader.lacks_shared_secret(variables::EMBEDDINGS_API_KEY, variables::LLM_API_KEY);
    if api_key.is_unusable() || lacks_shared_key {
        return None;
    }
    let same_server = llm.filter(|llm| llm.base_url == base_url);
    let api_key = api_key.into_option().or_else(|| same_server.and_then(|llm| llm.api_key.clone()));
    Some(Embeddings { model, base_url, api_key, floor })
}

fn read_limits(reader: &mut VariableReader<'_>, prices: &VariableValue<ModelPrices>) -> Limits {
    let cost = reader.read_with(variables::DAILY_COST, parse_money);
    if cost.as_valid().is_some() && prices.is_missing() {
        reader.report_problem(
            variables::LLM_PRICE_INPUT,
            "needed with DAILY_COST, which is never reached without a price",
        );
    }
    let mut rate = |variable, max, period| {
        reader.read_with(variable, parse_rate).unwrap_or(Some(RateLimit { max, period }))
    };
    let week = SignedDuration::from_hours(7 * 24);
    Limits {
        quota_movies: rate(variables::QUOTA_MOVIES, 10, week),
        quota_seasons: rate(variables::QUOTA_SEASONS, 10, week),
        rate: rate(variables::RATE_LIMIT, 10, SignedDuration::from_mins(1)),
        space_gb: read_gigabytes(reader, variables::SPACE_LIMIT_GB),
        making_room: read_space_policy(reader),
        budget: DailyBudget {
            tokens: reader
                .read_with(variables::DAILY_TOKENS, parse_daily_tokens)
                .unwrap_or(DailyBudget::STANDARD.tokens),
            cost: cost.into_option(),
        },
    }
}

/// Largest amount of space in a setting, in gigabytes.
const MAX_SPACE_GB: u64 = 1_000_000;

fn read_gigabytes(reader: &mut VariableReader<'_>, variable: Variable) -> Option<u32> {
    let amount = reader.read_number(variable, 1..=MAX_SPACE_GB).into_option();
    amount.and_then(|amount| u32::try_from(amount).ok())
}

fn read_space_policy(reader: &mut VariableReader<'_>) -> SpacePolicy {
    let meanings = [("stays", SilenceRule::Stays), ("may_go", SilenceRule::MayGo)];
    SpacePolicy {
        min_free_gb: read_gigabytes(reader, variables::MAKE_ROOM_BELOW_GB),
        monthly: reader
            .read_choice(variables::MAKE_ROOM_MONTHLY, &[("off", false), ("on", true)])
            .unwrap_or(false),
        silence: reader.read_choice(variables::MAKE_ROOM_SILENCE, &meanings).unwrap_or(SilenceRule::Stays),
    }
}

fn read_alerts(reader: &mut VariableReader<'_>) -> AlertTargets {
    let user = reader.read_secret(variables::PUSHOVER_USER);
    let token = reader.read_secret(variables::PUSHOVER_TOKEN);
    let pushover = reader.require_both((variables::PUSHOVER_USER, user), (variables::PUSHOVER_TOKEN, token));
    AlertTargets {
        ntfy: read_url_and_secret(reader, variables::NTFY_URL, variables::NTFY_TOKEN)
            .map(|(url, token)| Ntfy { url, token }),
        pushover: pushover.map(|(user, token)| Pushover { token, user }),
        webhook: read_url_and_secret(
            reader,
            variables::OPERATOR_WEBHOOK_URL,
            variables::OPERATOR_WEBHOOK_SECRET,
        )
        .map(|(url, secret)| AlertWebhook { url, secret }),
    }
}

/// Reads a URL with its optional secret. Returns `None` if the secret is set but cannot be used.
fn read_url_and_secret(
    reader: &mut VariableReader<'_>,
    url: Variable,
    secret: Variable,
) -> Option<(Url, Option<SecretString>)> {
    let url_value = reader.read_url(url);
    let secret_value = reader.read_secret(secret);
    if secret_value.is_missing() {
        return Some((url_value.into_option()?, None));
    }
    let url_value = reader.require_value(url, url_value, &format!("with {}", secret.name));
    Some((url_value?, Some(secret_value.into_option()?)))
}

fn read_media_servers(reader: &mut VariableReader<'_>) -> MediaServers {
    let tautulli = read_library(reader, variables::TAUTULLI_URL, variables::TAUTULLI_API_KEY);
    if tautulli.is_some() && !reader.is_set(variables::PLEX_URL) && !reader.is_set(variables::PLEX_TOKEN) {
        reader.report_problem(variables::PLEX_URL, "needed with TAUTULLI_URL, which only records Plex");
    }
    MediaServers {
        jellyfin: read_library(reader, variables::JELLYFIN_URL, variables::JELLYFIN_API_KEY),
        plex: read_library(reader, variables::PLEX_URL, variables::PLEX_TOKEN),
        tautulli,
    }
}

fn read_discovery(reader: &mut VariableReader<'_>) -> Discovery {
    let seerr = read_library(reader, variables::SEERR_URL, variables::SEERR_API_KEY);
    let backends = [("direct", RequestBackend::Direct), ("seerr", RequestBackend::Seerr)];
    let requests = reader.read_choice(variables::REQUESTS, &backends).unwrap_or(RequestBackend::Direct);
    if requests == RequestBackend::Seerr && seerr.is_none() {
        reader.report_problem(variables::SEERR_URL, "needed with REQUESTS=seerr");
    }
    let parse_region = |text: &str| {
        let is_code = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_code.then(|| text.to_ascii_uppercase()).ok_or_else(|| "not two letters of a country".to_owned())
    };
    let tmdb_url = reader.read_url(variables::TMDB_API_URL).or_default(DEFAULT_TMDB_API_URL);
    let tmdb_token = reader.read_secret(variables::TMDB_TOKEN).into_option();
    Discovery {
        seerr,
        tmdb: tmdb_url.zip(tmdb_token).map(|(url, api_key)| Library { url, api_key }),
        region: reader.read_with(variables::WATCH_REGION, parse_region).unwrap_or("US".to_owned()),
        requests,
    }
}

fn read_library(reader: &mut VariableReader<'_>, url: Variable, api_key: Variable) -> Option<Library> {
    let url_value = reader.read_url(url);
    let key_value = reader.read_secret(api_key);
    let (url, api_key) = reader.require_both((url, url_value), (api_key, key_value))?;
    Some(Library { url, api_key })
}

fn read_conversation(reader: &mut VariableReader<'_>) -> Conversation {
    let codes = [("bulk", ConfirmCode::Bulk), ("always", ConfirmCode::Always)];
    let reactions = [("silent", SmsReactions::Silent), ("text", SmsReactions::Text)];
    let triage_levels =
        [("heuristic", TriageLevel::Heuristic), ("off", TriageLevel::Off), ("ai", TriageLevel::Ai)];
    let skipping = [("never", ModelSkipping::Never), ("sure", ModelSkipping::IfSure)];
    let sharing = [("off", WatchSharing::Off), ("household", WatchSharing::Household)];
    let metadata_sources = [("model", MetadataSource::ByModel), ("code", MetadataSource::ByCode)];
    let idle_minutes = reader.read_number(variables::CONVERSATION_IDLE_MINUTES, 1..=10_080).unwrap_or(30);
    let confirm_minutes = reader.read_number(variables::CONFIRM_MINUTES, 1..=60).unwrap_or(5);
    Conversation {
        idle: Duration::from_secs(60 * idle_minutes),
        confirm: Duration::from_secs(60 * confirm_minutes),
        confirm_code: reader.read_choice(variables::CONFIRM_CODE, &codes).unwrap_or(ConfirmCode::Bulk),
        confirm_languages: reader.read_list(variables::CONFIRM_LANGS, parse_language).unwrap_or(Vec::new()),
        coalesce: Duration::from_millis(reader.read_number(variables::COALESCE_MS, 0..=4000).unwrap_or(1200)),
        reactions: reader.read_choice(variables::SMS_REACTIONS, &reactions).unwrap_or(SmsReactions::Silent),
        routing: reader
            .read_choice(variables::TURN_ROUTING, &triage_levels)
            .unwrap_or(TriageLevel::Heuristic),
        prompt_addition: reader.read_with(variables::PROMPT_ADDITION, parse_prompt_addition).into_option(),
        model_skipping: reader.read_choice(variables::LLM_SKIP, &skipping).unwrap_or(ModelSkipping::Never),
        watch_sharing: reader.read_choice(variables::WATCH_SHARING, &sharing).unwrap_or(WatchSharing::Off),
        notes: reader
            .read_choice(variables::MEMORY_NOTES, &metadata_sources)
            .unwrap_or(MetadataSource::ByModel),
    }
}

fn read_log(reader: &mut VariableReader<'_>) -> LogSettings {
    let formats = [("pretty", LogFormat::Pretty), ("json", LogFormat::Json)];
    let filter = reader.read_with(variables::RUST_LOG, |text| match telemetry::parse_filter(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("not a list of levels or target=level".to_owned()),
    });
    LogSettings {
        format: reader.read_choice(variables::LOG_FORMAT, &formats).unwrap_or(LogFormat::Pretty),
        filter: filter.unwrap_or(telemetry::DEFAULT_FILTER.to_owned()),
    }
}

fn parse_proxy(text: &str) -> Result<IpNet, String> {
    parse_network(text).ok_or_else(|| "not an IP address or a network such as 10.0.0.0/8".to_owned())
}

fn parse_prompt_addition(text: &str) -> Result<String, String> {
    if text.chars().count() > MAX_PROMPT_ADDITION_CHARS {
        return Err(format!("longer than {MAX_PROMPT_ADDITION_CHARS} characters"));
    }
    Ok(text.to_owned())
}

fn parse_similarity(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(similarity) if (0.0..=1.0).contains(&similarity) => Ok(similarity),
        _ => Err("not a number from 0 to 1".to_owned()),
    }
}

fn parse_rate(text: &str) -> Result<Option<RateLimit>, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    RateLimit::parse(text)
        .map(Some)
        .ok_or_else(|| "not off or a number within a time such as 10/7d".to_owned())
}

fn parse_daily_tokens(text: &str) -> Result<Option<u64>, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    let tokens = text.parse().ok().filter(|tokens| (1..=MAX_DAILY_TOKENS).contains(tokens));
    tokens.map(Some).ok_or_else(|| format!("not off or a whole number from 1 to {MAX_DAILY_TOKENS}"))
}

fn parse_quiet(text: &str) -> Result<Option<QuietHours>, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    QuietHours::parse(text).map(Some).ok_or_else(|| "not off or two hours of a day such as 22-7".to_owned())
}

fn parse_language(code: &str) -> Result<String, String> {
    let code = code.to_ascii_lowercase();
    let languages: Vec<&str> =
        variables::CONFIRM_LANGS.values.words().iter().map(|(word, _)| *word).collect();
    if languages.contains(&code.as_str()) {
        Ok(code)
    } else {
        Err(format!("not one of {}", languages.join(", ")))
    }
}
