//! How the variables become a [`Config`]: defaults, ranges, and which ones need each other.
//! Every variable is looked up every time, so that a recording lookup sees the whole list.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use url::{Host, Url};

use super::problems::Problems;
use super::reader::{Reader, Reading, parse_secret};
use super::time_zone::parse_zone;
use super::variables::{self, Variable};
use super::{
    Config, ConfirmCode, Console, Conversation, Credentials, Embeddings, Libraries, Library, Limits, Llm,
    Notifications, People, TokenField, Twilio,
};
use crate::access_rules::{AccessRules, Hosts, Password, SignIn, TrustedProxies, parse_host, parse_network};
use crate::conversation::quiet::Quiet;
use crate::conversation::rate::Rate;
use crate::conversation::spending::{Budget, Prices};
use crate::conversation::transcript::PhoneNumber;
use crate::conversation::triage::Routing;
use crate::engine::learning::Notes;
use crate::engine::{Pictures, SmsReactions};
use crate::llm::embeddings::USUAL_FLOOR;
use crate::telemetry::{self, LogFormat, LogSettings};

const TWILIO_API_URL: &str = "https://api.twilio.com";
const LLM_BASE_URL: &str = "https://api.openai.com/v1";
const LANGUAGES: [&str; 6] = ["es", "fr", "de", "pt", "it", "nl"];
const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];
/// About 430 texts to a model.
const DAILY_TOKENS: u64 = 3_000_000;
const MOST_DAILY_TOKENS: u64 = 1_000_000_000_000;
const WITH_TWILIO: &str = "with Twilio";

impl Config {
    /// Looks at nothing but `lookup` (and the system's zone when `TZ` is not set). An empty value is not set, except that
    /// an empty `CONSOLE_BIND` turns the console off.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Problems> {
        let mut reader = Reader::new(&lookup);
        let host = reader
            .read(variables::HOST, |text| text.parse::<IpAddr>().map_err(|_| "not an IP address".to_owned()));
        let port = reader.read(variables::PORT, |text| {
            text.parse::<u16>().map_err(|_| "not a port from 0 to 65535".to_owned())
        });
        let public_url = reader.url(variables::PUBLIC_URL);
        let admin = reader.phone(variables::ADMIN_PHONE);
        let prices = prices(&mut reader);
        let notification_url = reader.url(variables::NOTIFICATION_URL).given();
        let mut config = Self {
            listen: SocketAddr::new(host.or(Ipv4Addr::UNSPECIFIED.into()), port.or(3000)),
            console: console(&mut reader),
            twilio: twilio(&mut reader, &public_url, &admin),
            notifications: Notifications {
                secret: reader.secret(variables::NOTIFICATION_SECRET).given(),
                url: notification_url.or_else(|| public_url.as_given().cloned()),
                quiet: reader.read(variables::QUIET_HOURS, parse_quiet).or(None),
            },
            public_url: public_url.given(),
            trusted_proxies: TrustedProxies::from_networks(
                reader.list(variables::TRUSTED_PROXIES, parse_proxy).or(Vec::new()),
            ),
            database: reader.text(variables::DATABASE_URL).or("dialarr.db".to_owned()).into(),
            time_zone: reader.read(variables::TZ, parse_zone).given().unwrap_or_else(TimeZone::system),
            llm: llm(&mut reader, &prices),
            embeddings: None,
            libraries: Libraries {
                sonarr: library(&mut reader, variables::SONARR_URL, variables::SONARR_API_KEY),
                radarr: library(&mut reader, variables::RADARR_URL, variables::RADARR_API_KEY),
                sonarr_four_k: library(&mut reader, variables::SONARR_4K_URL, variables::SONARR_4K_API_KEY),
                radarr_four_k: library(&mut reader, variables::RADARR_4K_URL, variables::RADARR_4K_API_KEY),
            },
            people: People {
                admin: admin.given(),
                members: reader
                    .list(variables::PHONE_WHITELIST, |entry| {
                        PhoneNumber::parse(entry).map_err(|error| error.to_string())
                    })
                    .or(Vec::new()),
            },
            conversation: conversation(&mut reader),
            limits: limits(&mut reader, &prices),
            retention_days: u32::try_from(reader.number(variables::RETENTION_DAYS, 1..=36_500).or(365))
                .unwrap_or(u32::MAX),
            log: log(&mut reader),
            misspelt: Vec::new(),
            cut: Vec::new(),
        };
        config.embeddings = embeddings(&mut reader, config.llm.as_ref());
        reader.finish(config)
    }
}

fn console(reader: &mut Reader<'_>) -> Console {
    let is_off = reader.is_emptied(variables::CONSOLE_BIND);
    let bind = reader
        .read(variables::CONSOLE_BIND, |text| {
            text.parse::<SocketAddr>().map_err(|_| "not an IP address and a port".to_owned())
        })
        .or(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 3001));
    let bind = (!is_off).then_some(bind);
    let password =
        reader.read(variables::CONSOLE_PASSWORD, |text| Password::parse(text).map_err(str::to_owned));
    let known = Hosts::local().and(bind.map(|address| match address.ip() {
        IpAddr::V4(ip) => Host::Ipv4(ip),
        IpAddr::V6(ip) => Host::Ipv6(ip),
    }));
    let further = reader
        .list(variables::CONSOLE_HOSTS, |entry| parse_host(entry).ok_or_else(|| "not a host name".to_owned()))
        .or(Vec::new());
    let signs_in = reader.choice(variables::CONSOLE_AUTH, &[("password", true), ("none", false)]).or(true);
    let sign_in = match (signs_in, password.given()) {
        (true, Some(password)) => SignIn::Password(password),
        (true, None) => SignIn::Links,
        (false, _) => SignIn::Open,
    };
    if let (SignIn::Open, Some(bind)) = (&sign_in, bind)
        && !bind.ip().is_loopback()
    {
        let wrong = format!("none is for a console on loopback, but CONSOLE_BIND is {bind}");
        reader.report(variables::CONSOLE_AUTH, wrong);
    }
    if let (SignIn::Open, Some(name)) = (&sign_in, further.iter().find(|name| !is_loopback(name))) {
        let wrong = format!("none is for a console on loopback, but CONSOLE_HOSTS has {name}");
        reader.report(variables::CONSOLE_AUTH, wrong);
    }
    Console { bind, rules: AccessRules { sign_in, hosts: known.and(further) } }
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(ip) => ip.is_loopback(),
        Host::Ipv6(ip) => ip.is_loopback(),
    }
}

fn twilio(
    reader: &mut Reader<'_>,
    public_url: &Reading<Url>,
    admin: &Reading<PhoneNumber>,
) -> Option<Twilio> {
    let account_sid = reader.sid(variables::TWILIO_ACCOUNT_SID, "AC");
    let auth_tokens = reader.list(variables::TWILIO_AUTH_TOKEN, parse_secret);
    let phone_number = reader.phone(variables::TWILIO_PHONE_NUMBER);
    let key_sid = reader.sid(variables::TWILIO_API_KEY_SID, "SK");
    let key_secret = reader.secret(variables::TWILIO_API_KEY_SECRET);
    let service_sid = reader.sid(variables::TWILIO_MESSAGING_SERVICE_SID, "MG");
    let api_url = reader.url(variables::TWILIO_API_URL);
    let pictures = reader.choice(variables::TWILIO_MMS, &[("on", Pictures::Sent), ("off", Pictures::Kept)]);
    let no_number = account_sid.is_absent() && auth_tokens.is_absent() && phone_number.is_absent();
    if no_number && key_sid.is_absent() && key_secret.is_absent() && service_sid.is_absent() {
        return None;
    }
    // Every gap is reported before the first `?` gives up.
    let account_sid = reader.require(variables::TWILIO_ACCOUNT_SID, account_sid, WITH_TWILIO);
    let auth_tokens = reader.require(variables::TWILIO_AUTH_TOKEN, auth_tokens, WITH_TWILIO);
    let phone_number = reader.require(variables::TWILIO_PHONE_NUMBER, phone_number, WITH_TWILIO);
    let key_sid = (variables::TWILIO_API_KEY_SID, key_sid);
    let key = both(reader, key_sid, (variables::TWILIO_API_KEY_SECRET, key_secret));
    if public_url.is_absent() {
        reader.report(variables::PUBLIC_URL, format!("needed {WITH_TWILIO}"));
    }
    if admin.is_absent() {
        reader.report(variables::ADMIN_PHONE, format!("needed {WITH_TWILIO}"));
    }
    let (account_sid, auth_tokens) = (account_sid?, auth_tokens?);
    let (user, password) = match key {
        Some(key) => key,
        None => (account_sid.clone(), auth_tokens.first()?.clone()),
    };
    Some(Twilio {
        account_sid,
        auth_tokens,
        phone_number: phone_number?,
        messaging_service_sid: service_sid.given(),
        credentials: Credentials { user, password },
        api_url: url_or(api_url, TWILIO_API_URL)?,
        public_url: public_url.as_given()?.clone(),
        pictures: pictures.or(Pictures::Sent),
    })
}

fn llm(reader: &mut Reader<'_>, prices: &Reading<Prices>) -> Option<Llm> {
    let api_key = reader.secret(variables::LLM_API_KEY);
    let base_url = reader.url(variables::LLM_BASE_URL);
    let model = reader.text(variables::LLM_MODEL);
    let context_window = reader.number(variables::LLM_CONTEXT_WINDOW, 1_000..=100_000_000).given();
    let mut efforts = vec![("auto", None)];
    efforts.extend(EFFORTS.map(|effort| (effort, Some(effort.to_owned()))));
    let reasoning_effort = reader.choice(variables::LLM_REASONING_EFFORT, &efforts).or(None);
    let token_fields = [
        ("auto", None),
        ("max_tokens", Some(TokenField::MaxTokens)),
        ("max_completion_tokens", Some(TokenField::MaxCompletionTokens)),
    ];
    let token_field = reader.choice(variables::LLM_TOKEN_FIELD, &token_fields).or(None);
    let max_concurrent = reader.number(variables::LLM_MAX_CONCURRENT, 1..=1000).or(8);
    if api_key.is_absent() && base_url.is_absent() {
        return None;
    }
    let model = reader.require(variables::LLM_MODEL, model, "with LLM_API_KEY or LLM_BASE_URL");
    Some(Llm {
        api_key: api_key.given(),
        base_url: url_or(base_url, LLM_BASE_URL)?,
        model: model?,
        context_window,
        reasoning_effort,
        token_field,
        max_concurrent: usize::try_from(max_concurrent).unwrap_or(usize::MAX),
        prices: prices.as_given().copied().unwrap_or_default(),
    })
}

/// By default at the model's server. The model's key is used there alone: no other server is to see it.
fn embeddings(reader: &mut Reader<'_>, llm: Option<&Llm>) -> Option<Embeddings> {
    let model = reader.text(variables::EMBEDDINGS_MODEL);
    let base_url = reader.url(variables::EMBEDDINGS_BASE_URL);
    let api_key = reader.secret(variables::EMBEDDINGS_API_KEY);
    let floor = reader.read(variables::EMBEDDINGS_FLOOR, parse_likeness).or(USUAL_FLOOR);
    let model = model.given()?;
    // A model's server that lacks something else has been reported.
    let has_llm = reader.is_set(variables::LLM_BASE_URL) || reader.is_set(variables::LLM_API_KEY);
    if base_url.is_absent() && !has_llm {
        reader.report(
            variables::EMBEDDINGS_BASE_URL,
            "needed with EMBEDDINGS_MODEL without LLM_BASE_URL and LLM_API_KEY",
        );
    }
    let base_url = match base_url {
        Reading::Absent => llm?.base_url.clone(),
        Reading::Wrong => return None,
        Reading::Given(url) => url,
    };
    let shared = llm.filter(|llm| llm.base_url == base_url);
    let api_key = api_key.given().or_else(|| shared.and_then(|llm| llm.api_key.clone()));
    Some(Embeddings { model, base_url, api_key, floor })
}

/// Cached input costs as much as other input where it has no price of its own.
fn prices(reader: &mut Reader<'_>) -> Reading<Prices> {
    let input = reader.read(variables::LLM_PRICE_INPUT, parse_money);
    let cached = reader.read(variables::LLM_PRICE_CACHED, parse_money);
    let output = reader.read(variables::LLM_PRICE_OUTPUT, parse_money);
    if input.is_absent() && cached.is_absent() && output.is_absent() {
        return Reading::Absent;
    }
    let input = input.or(0);
    Reading::Given(Prices { input, cached: cached.or(input), output: output.or(0) })
}

fn limits(reader: &mut Reader<'_>, prices: &Reading<Prices>) -> Limits {
    let cost = reader.read(variables::DAILY_COST, parse_money);
    if cost.as_given().is_some() && prices.is_absent() {
        reader.report(
            variables::LLM_PRICE_INPUT,
            "needed with DAILY_COST, which is never reached without a price",
        );
    }
    let mut rate = |variable, most, within| reader.read(variable, parse_rate).or(Some(Rate { most, within }));
    let week = SignedDuration::from_hours(7 * 24);
    Limits {
        quota_movies: rate(variables::QUOTA_MOVIES, 10, week),
        quota_seasons: rate(variables::QUOTA_SEASONS, 10, week),
        rate: rate(variables::RATE_LIMIT, 10, SignedDuration::from_mins(1)),
        budget: Budget {
            tokens: reader.read(variables::DAILY_TOKENS, parse_daily_tokens).or(Some(DAILY_TOKENS)),
            cost: cost.given(),
        },
    }
}

fn library(reader: &mut Reader<'_>, url: Variable, api_key: Variable) -> Option<Library> {
    let given_url = reader.url(url);
    let given_key = reader.secret(api_key);
    let (url, api_key) = both(reader, (url, given_url), (api_key, given_key))?;
    Some(Library { url, api_key })
}

fn conversation(reader: &mut Reader<'_>) -> Conversation {
    let codes = [("bulk", ConfirmCode::Bulk), ("always", ConfirmCode::Always)];
    let reactions = [("silent", SmsReactions::Silent), ("text", SmsReactions::Text)];
    let routings = [("off", Routing::Off), ("heuristic", Routing::Heuristic), ("ai", Routing::Ai)];
    let notes = [("model", Notes::ByModel), ("code", Notes::ByCode)];
    let idle_minutes = reader.number(variables::CONVERSATION_IDLE_MINUTES, 1..=10_080).or(30);
    let confirm_minutes = reader.number(variables::CONFIRM_MINUTES, 1..=60).or(5);
    Conversation {
        idle: Duration::from_secs(60 * idle_minutes),
        confirm: Duration::from_secs(60 * confirm_minutes),
        confirm_code: reader.choice(variables::CONFIRM_CODE, &codes).or(ConfirmCode::Bulk),
        confirm_languages: reader.list(variables::CONFIRM_LANGS, parse_language).or(Vec::new()),
        coalesce: Duration::from_millis(reader.number(variables::COALESCE_MS, 0..=4000).or(1200)),
        reactions: reader.choice(variables::SMS_REACTIONS, &reactions).or(SmsReactions::Silent),
        routing: reader.choice(variables::TURN_ROUTING, &routings).or(Routing::Heuristic),
        notes: reader.choice(variables::MEMORY_NOTES, &notes).or(Notes::ByModel),
    }
}

fn log(reader: &mut Reader<'_>) -> LogSettings {
    let formats = [("pretty", LogFormat::Pretty), ("json", LogFormat::Json)];
    let filter = reader.read(variables::RUST_LOG, |text| match telemetry::filter(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("not a list of levels or target=level".to_owned()),
    });
    LogSettings {
        format: reader.choice(variables::LOG_FORMAT, &formats).or(LogFormat::Pretty),
        filter: filter.or(telemetry::DEFAULT_FILTER.to_owned()),
    }
}

/// Two values that are of use only together.
fn both<A, B>(
    reader: &mut Reader<'_>,
    (first, a): (Variable, Reading<A>),
    (second, b): (Variable, Reading<B>),
) -> Option<(A, B)> {
    if a.is_absent() && b.is_absent() {
        return None;
    }
    let a = reader.require(first, a, &format!("with {}", second.name));
    let b = reader.require(second, b, &format!("with {}", first.name));
    a.zip(b)
}

/// `None` only if the value was wrong, which has been reported.
fn url_or(url: Reading<Url>, default: &str) -> Option<Url> {
    match url {
        // The defaults are constants that parse, which the tests see.
        Reading::Absent => Url::parse(default).ok(),
        Reading::Wrong => None,
        Reading::Given(url) => Some(url),
    }
}

fn parse_proxy(text: &str) -> Result<IpNet, String> {
    parse_network(text).ok_or_else(|| "not an IP address or a network such as 10.0.0.0/8".to_owned())
}

/// Millionths of a currency, from a decimal number such as `0.75`.
fn parse_money(text: &str) -> Result<u64, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let millionths = (digits(whole) && digits(part) && part.len() <= 6 && whole.len() <= 9)
        .then(|| format!("{whole}{part:0<6}").parse().ok())
        .flatten();
    millionths.ok_or_else(|| "not a price such as 0.75".to_owned())
}

fn parse_likeness(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(likeness) if (0.0..=1.0).contains(&likeness) => Ok(likeness),
        _ => Err("not a number from 0 to 1".to_owned()),
    }
}

fn parse_rate(text: &str) -> Result<Option<Rate>, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    Rate::parse(text).map(Some).ok_or_else(|| "not off or a number within a time such as 10/7d".to_owned())
}

fn parse_daily_tokens(text: &str) -> Result<Option<u64>, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    let tokens = text.parse().ok().filter(|tokens| (1..=MOST_DAILY_TOKENS).contains(tokens));
    tokens.map(Some).ok_or_else(|| format!("not off or a whole number from 1 to {MOST_DAILY_TOKENS}"))
}

fn parse_quiet(text: &str) -> Result<Option<Quiet>, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    Quiet::parse(text).map(Some).ok_or_else(|| "not off or two hours of a day such as 22-7".to_owned())
}

fn parse_language(code: &str) -> Result<String, String> {
    let code = code.to_ascii_lowercase();
    if LANGUAGES.contains(&code.as_str()) {
        Ok(code)
    } else {
        Err(format!("not one of {}", LANGUAGES.join(", ")))
    }
}
