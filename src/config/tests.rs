use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use insta::assert_snapshot;
use secrecy::ExposeSecret;

use super::environment::read_from;
use super::{Config, ConfigProblems, ConfigSources, ConfirmCode, RequestBackend, TokenField};
use crate::access_rules::{AllowedHosts, ConsolePassword, SignIn, TrustedProxies, parse_host, parse_network};
use crate::conversation::model_cost::ModelPrices;
use crate::conversation::notifications::quiet_hours::QuietHours;
use crate::telemetry::LogFormat;

const TWILIO: &str = "
    TWILIO_ACCOUNT_SID=AC00000000000000000000000000000001
    TWILIO_AUTH_TOKEN=firsttoken
    TWILIO_PHONE_NUMBER=+15550100100
    PUBLIC_URL=https://sms.example.org
    ADMIN_PHONE=+15550100123";

/// Builds the configuration from `NAME=value` lines.
fn config_from_lines(lines: &str) -> Result<Config, ConfigProblems> {
    Config::from_sources(&ConfigSources::from_environment(parse_lines(lines)))
}

fn parse_lines(lines: &str) -> HashMap<String, String> {
    let values = lines.lines().filter_map(|line| line.trim().split_once('='));
    values.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn valid_config(lines: &str) -> Config {
    config_from_lines(lines).unwrap()
}

#[track_caller]
fn check(lines: &str, expected: &str) {
    let message = config_from_lines(lines).err().map(|problems| problems.to_string()).unwrap_or_default();
    assert_eq!(message.trim_start_matches("read the configuration\n  "), expected);
}

#[test]
fn empty_environment_is_a_working_configuration() {
    let config = valid_config("TZ=UTC");
    assert_snapshot!(format!("{config:#?}"));
}

#[test]
fn empty_value_is_not_set() {
    let config = valid_config("PORT=\nTWILIO_AUTH_TOKEN=\nLLM_BASE_URL=  \nTZ=UTC\nPHONE_WHITELIST=");
    assert_eq!(format!("{config:?}"), format!("{:?}", valid_config("TZ=UTC")));
}

#[test]
fn every_problem_is_reported_at_once_with_an_example() {
    let problems = config_from_lines(
        "
        HOST=everywhere
        PORT=70000
        TZ=Mars/Olympus
        TWILIO_ACCOUNT_SID=SK00000000000000000000000000000001
        TWILIO_API_KEY_SID=SK00000000000000000000000000000001
        TWILIO_PHONE_NUMBER=555 0100
        LLM_API_KEY=sk-one two
        LLM_REASONING_EFFORT=plenty
        SONARR_URL=sonarr:8989
        RADARR_API_KEY=0123
        RADARR_4K_URL=http://radarr/?apikey=0123
        PHONE_WHITELIST=+15550100124, 5550100125
        CONFIRM_MINUTES=0
        CONFIRM_LANGS=es,tlh
        RUST_LOG=dialarr=loud",
    )
    .unwrap_err();
    assert_snapshot!(problems);
}

#[test]
fn twilio_needs_a_number_a_public_url_and_an_admin() {
    check(
        "TWILIO_AUTH_TOKEN=firsttoken",
        "TWILIO_ACCOUNT_SID: needed with Twilio, e.g. TWILIO_ACCOUNT_SID=AC0123456789abcdef0123456789abcdef
  TWILIO_PHONE_NUMBER: needed with Twilio, e.g. TWILIO_PHONE_NUMBER=+15550100123
  PUBLIC_URL: needed with Twilio, e.g. PUBLIC_URL=https://sms.example.org
  ADMIN_PHONE: needed with Twilio, e.g. ADMIN_PHONE=+15550100123",
    );
}

#[test]
fn bot_needs_neither_an_admin_nor_a_public_url() {
    let bot = valid_config("TELEGRAM_BOT_TOKEN=501:AAE-x_9").telegram.unwrap().account;
    assert_eq!(bot.address().as_str(), "telegram:501");
    assert_eq!((bot.api_url.as_str(), bot.webhook_url), ("https://api.telegram.org/", None));
    assert!(valid_config("TELEGRAM_WEBHOOK=on\nTELEGRAM_API_URL=http://localhost:8081").telegram.is_none());
}

#[test]
fn malformed_bot_token_is_reported_with_an_example() {
    for token in ["501", "501:", "bot501:AAE", "501:A E", "@films_bot"] {
        check(
            &format!("TELEGRAM_BOT_TOKEN={token}"),
            "TELEGRAM_BOT_TOKEN: not a bot token such as 123456:ABC-DEF1234ghIkl, as BotFather shows it, \
             e.g. TELEGRAM_BOT_TOKEN=123456:ABC-DEF1234ghIkl",
        );
    }
}

#[test]
fn webhook_of_a_bot_is_below_the_public_url() {
    let webhook = "TELEGRAM_BOT_TOKEN=501:AAE-x_9\nTELEGRAM_WEBHOOK=on";
    check(webhook, "PUBLIC_URL: needed with TELEGRAM_WEBHOOK=on, e.g. PUBLIC_URL=https://sms.example.org");
    let url =
        |lines: &str| valid_config(&format!("{webhook}\n{lines}")).telegram.unwrap().account.webhook_url;
    let expected = "https://sms.example.org/dialarr/webhook/telegram";
    assert_eq!(url("PUBLIC_URL=https://sms.example.org/dialarr/").as_deref(), Some(expected));
    assert_eq!(url("PUBLIC_URL=https://sms.example.org/dialarr\nTELEGRAM_WEBHOOK=off"), None);
}

#[test]
fn wrong_value_is_not_also_reported_as_missing() {
    check(
        &TWILIO.replace("https://", "ftp://"),
        "PUBLIC_URL: not a URL that starts with http:// or https://, e.g. PUBLIC_URL=https://sms.example.org",
    );
}

#[test]
fn trusted_proxies_are_addresses_and_networks() {
    let list = "TRUSTED_PROXIES=127.0.0.1, 172.17.0.1/12 ,fd00::/8";
    let expected = ["127.0.0.1", "172.16.0.0/12", "fd00::/8"].map(|text| parse_network(text).unwrap());
    assert_eq!(valid_config(list).trusted_proxies, TrustedProxies::from_networks(expected.into()));
    check(
        "TRUSTED_PROXIES=127.0.0.1,caddy",
        "TRUSTED_PROXIES: entry 2 is not an IP address or a network such as 10.0.0.0/8, \
         e.g. TRUSTED_PROXIES=127.0.0.1,172.16.0.0/12",
    );
}

#[test]
fn model_on_the_home_network_gets_fewer_concurrent_calls() {
    let limit = |lines: &str| valid_config(&format!("LLM_MODEL=m\n{lines}")).llm.unwrap().max_concurrent;
    assert_eq!(limit("LLM_API_KEY=sk-1"), 64);
    assert_eq!(limit("LLM_BASE_URL=http://192.168.1.5:8080/v1"), 8);
    assert_eq!(limit("LLM_BASE_URL=http://ollama:11434/v1\nLLM_MAX_CONCURRENT=16"), 16);
}

#[test]
fn key_or_server_requires_a_model_name() {
    let missing = "LLM_MODEL: needed with LLM_API_KEY or LLM_BASE_URL, e.g. LLM_MODEL=gpt-5.4-mini";
    check("LLM_API_KEY=sk-1", missing);
    check("LLM_BASE_URL=http://localhost:11434/v1", missing);
    check("LLM_MODEL=llama", "");
}

#[test]
fn listed_prices_of_the_active_model_precede_the_price_variables() {
    let list = "LLM_BASE_URL=https://llm.example/v1\nLLM_MODELS=small 0.75/0.075/4.50, large 2/15, other\nLLM_PRICE_INPUT=9";
    let prices = |model: &str| valid_config(&format!("{list}\nLLM_MODEL={model}")).llm.unwrap().prices;
    let expected = |input, cached, output| ModelPrices { input, cached, output };
    assert_eq!(prices("small"), expected(750_000, 75_000, 4_500_000));
    assert_eq!(prices("large"), expected(2_000_000, 2_000_000, 15_000_000));
    assert_eq!(prices("other"), expected(9_000_000, 9_000_000, 0));
    assert_eq!(prices("unlisted"), expected(9_000_000, 9_000_000, 0));
}

#[test]
fn embeddings_use_the_models_server_unless_another_is_set() {
    let server = |lines: &str| {
        let embeddings = valid_config(lines).embeddings.unwrap();
        let key = embeddings.api_key.map(|key| key.expose_secret().to_owned());
        (embeddings.base_url.to_string(), key)
    };
    let expected = |url: &str, key: Option<&str>| (url.to_owned(), key.map(str::to_owned));
    let llm = "LLM_API_KEY=sk-1\nLLM_MODEL=gpt-5.4-mini\nEMBEDDINGS_MODEL=text-embedding-3-small";
    let openai = "https://api.openai.com/v1";
    assert_eq!(server(llm), expected(openai, Some("sk-1")));
    assert_eq!(server(&format!("{llm}\nEMBEDDINGS_API_KEY=sk-2")), expected(openai, Some("sk-2")));
    let here = "http://localhost:11434/v1";
    assert_eq!(
        server(&format!("EMBEDDINGS_MODEL=all-minilm\nEMBEDDINGS_BASE_URL={here}")),
        expected(here, None)
    );
    let both_here = "LLM_MODEL=llama\nEMBEDDINGS_MODEL=all-minilm";
    assert_eq!(server(&format!("LLM_BASE_URL={here}\n{both_here}")), expected(here, None));
    assert!(valid_config("EMBEDDINGS_BASE_URL=http://localhost:11434/v1").embeddings.is_none());
}

#[test]
fn model_key_is_sent_to_no_other_server() {
    let key = |base: &str| {
        let llm = "LLM_API_KEY=sk-1\nLLM_BASE_URL=https://llm.example/v1\nLLM_MODEL=m\nEMBEDDINGS_MODEL=e";
        let embeddings = valid_config(&format!("{llm}\nEMBEDDINGS_BASE_URL={base}")).embeddings.unwrap();
        embeddings.api_key.map(|key| key.expose_secret().to_owned())
    };
    assert_eq!(key("https://llm.example/v1/").as_deref(), Some("sk-1"));
    for other in [
        "http://llm.example/v1",
        "https://llm.example:8443/v1",
        "https://llm.example/other/v1",
        "https://llm.example.org/v1",
        "https://api.openai.com/v1",
    ] {
        assert_eq!(key(other), None, "{other}");
    }
}

#[test]
fn embeddings_model_needs_a_server_and_a_similarity_floor() {
    check(
        "EMBEDDINGS_MODEL=all-minilm\nEMBEDDINGS_API_KEY=sk-1",
        "EMBEDDINGS_BASE_URL: needed with EMBEDDINGS_MODEL without LLM_BASE_URL and LLM_API_KEY, \
         e.g. EMBEDDINGS_BASE_URL=http://localhost:11434/v1",
    );
    check(
        "EMBEDDINGS_MODEL=all-minilm\nLLM_API_KEY=sk-1",
        "LLM_MODEL: needed with LLM_API_KEY or LLM_BASE_URL, e.g. LLM_MODEL=gpt-5.4-mini",
    );
    let floor = |floor: &str| {
        let model = "EMBEDDINGS_MODEL=m\nEMBEDDINGS_BASE_URL=http://localhost:11434/v1";
        valid_config(&format!("{model}\nEMBEDDINGS_FLOOR={floor}")).embeddings.unwrap().floor
    };
    assert_eq!(["", "0", "0.45", "1"].map(floor), [0.3, 0.0, 0.45, 1.0]);
    for invalid in ["1.01", "-0.1", "NaN", "0,3", "inf"] {
        let problem = "not a number from 0 to 1, e.g. EMBEDDINGS_FLOOR=0.30";
        check(&format!("EMBEDDINGS_FLOOR={invalid}"), &format!("EMBEDDINGS_FLOOR: {problem}"));
    }
}

#[test]
fn tautulli_is_used_only_with_plex() {
    let tautulli = "TAUTULLI_URL=http://tautulli:8181\nTAUTULLI_API_KEY=key";
    check(
        tautulli,
        "PLEX_URL: needed with TAUTULLI_URL, which only records Plex, e.g. PLEX_URL=http://plex:32400",
    );
    let incomplete = "PLEX_TOKEN: needed with PLEX_URL, e.g. PLEX_TOKEN=0123456789abcdefghij";
    check(&format!("{tautulli}\nPLEX_URL=http://plex:32400"), incomplete);
    let servers =
        valid_config(&format!("{tautulli}\nPLEX_URL=http://plex:32400\nPLEX_TOKEN=token")).media_servers;
    assert!(servers.plex.is_some() && servers.tautulli.is_some());
}

#[test]
fn sources_of_titles_are_read_with_their_defaults() {
    check("REQUESTS=seerr", "SEERR_URL: needed with REQUESTS=seerr, e.g. SEERR_URL=http://seerr:5055");
    check(
        "SEERR_URL=http://seerr:5055",
        "SEERR_API_KEY: needed with SEERR_URL, e.g. SEERR_API_KEY=0123456789abcdef",
    );
    check("WATCH_REGION=USA", "WATCH_REGION: not two letters of a country, e.g. WATCH_REGION=US");
    let discovery = valid_config("TMDB_TOKEN=a-token\nWATCH_REGION=de").discovery;
    let tmdb = discovery.tmdb.unwrap();
    assert_eq!((tmdb.url.as_str(), discovery.region.as_str()), ("https://api.themoviedb.org/3", "DE"));
    assert_eq!(discovery.requests, RequestBackend::Direct);
}

#[test]
fn cost_limit_needs_a_price() {
    check(
        "DAILY_COST=2.50",
        "LLM_PRICE_INPUT: needed with DAILY_COST, which is never reached without a price, e.g. LLM_PRICE_INPUT=0.75",
    );
    check("DAILY_COST=2.50\nLLM_PRICE_OUTPUT=4.50", "");
    check("DAILY_COST=2.50\nLLM_MODEL=m\nLLM_MODELS=m 1/2", "");
    check(
        "LLM_MODELS=one, two cheap",
        "LLM_MODELS: entry 2 is not a name with prices such as 0.75/0.075/4.50, e.g. LLM_MODELS=gpt-5.4-mini 0.75/0.075/4.50, gpt-5.4 2.50/0.25/15",
    );
    check(
        &format!("PROMPT_ADDITION={}", "x".repeat(1_001)),
        "PROMPT_ADDITION: longer than 1000 characters, e.g. PROMPT_ADDITION=The kids are 6 and 9.",
    );
    check(
        "DAILY_COST=2.50\nLLM_PRICE_INPUT=cheap",
        "LLM_PRICE_INPUT: not a price such as 0.75, e.g. LLM_PRICE_INPUT=0.75",
    );
}

#[test]
fn first_token_signs_requests_without_an_api_key() {
    let credentials = |lines: &str| {
        let twilio = valid_config(lines).twilio.unwrap();
        let tokens: Vec<String> =
            twilio.auth_tokens.iter().map(|token| token.expose_secret().to_owned()).collect();
        (twilio.credentials.user, twilio.credentials.password.expose_secret().to_owned(), tokens.join(" "))
    };
    let rotating = TWILIO.replace("firsttoken", "firsttoken, secondtoken");
    assert_eq!(
        credentials(&rotating),
        (
            "AC00000000000000000000000000000001".to_owned(),
            "firsttoken".to_owned(),
            "firsttoken secondtoken".to_owned()
        )
    );
    let with_key = format!("{rotating}\nTWILIO_API_KEY_SID=SK1\nTWILIO_API_KEY_SECRET=keysecret");
    assert_eq!(
        credentials(&with_key),
        ("SK1".to_owned(), "keysecret".to_owned(), "firsttoken secondtoken".to_owned())
    );
}

#[test]
fn base_urls_keep_their_path_without_the_last_slash() {
    let config = valid_config("SONARR_URL=http://nas.lan/sonarr/\nSONARR_API_KEY=0123");
    assert_eq!(config.libraries.sonarr.unwrap().url.as_str(), "http://nas.lan/sonarr");
}

#[test]
fn notification_url_defaults_to_the_public_url() {
    let notification_url = |lines: &str| valid_config(lines).notifications.url.map(String::from);
    assert_eq!(notification_url("NOTIFICATION_SECRET=0123456789abcdef"), None);
    let public = "PUBLIC_URL=https://sms.example.org/dialarr/";
    assert_eq!(notification_url(public).as_deref(), Some("https://sms.example.org/dialarr"));
    let both = format!("{public}\nNOTIFICATION_URL=http://dialarr:3000");
    assert_eq!(notification_url(&both).as_deref(), Some("http://dialarr:3000/"));
}

#[test]
fn quiet_hours_are_two_hours_of_a_day_or_off() {
    let quiet = |hours: &str| valid_config(&format!("QUIET_HOURS={hours}")).notifications.quiet;
    assert_eq!([quiet("off"), quiet("22-7")], [None, QuietHours::parse("22-7")]);
    check(
        "QUIET_HOURS=late",
        "QUIET_HOURS: not off or two hours of a day such as 22-7, e.g. QUIET_HOURS=22-7",
    );
}

#[test]
fn url_with_a_password_is_rejected() {
    check(
        "RADARR_URL=http://me:hunter2@radarr:7878\nRADARR_API_KEY=0123",
        "RADARR_URL: a URL with a user name or password, which logs would show, e.g. RADARR_URL=http://radarr:7878",
    );
}

#[test]
fn empty_address_disables_the_console_and_none_is_the_default() {
    let bind = |lines: &str| valid_config(lines).console.bind.map(|address| address.to_string());
    assert_eq!(bind("").as_deref(), Some("127.0.0.1:3001"));
    assert_eq!(bind("CONSOLE_BIND=[::]:80").as_deref(), Some("[::]:80"));
    assert_eq!(bind("CONSOLE_BIND="), None);
    check(
        "CONSOLE_BIND=3001",
        "CONSOLE_BIND: not an IP address and a port, e.g. CONSOLE_BIND=127.0.0.1:3001",
    );
}

#[test]
fn console_without_sign_in_is_for_loopback_only() {
    let sign_in = |lines: &str| valid_config(lines).console.rules.sign_in;
    assert!(matches!(sign_in(""), SignIn::Links));
    assert!(matches!(sign_in("CONSOLE_PASSWORD=correct horse"), SignIn::Password(ConsolePassword::Plain(_))));
    assert!(matches!(sign_in("CONSOLE_AUTH=None"), SignIn::Open));
    assert!(matches!(sign_in("CONSOLE_AUTH=none\nCONSOLE_BIND=[::1]:3001"), SignIn::Open));
    for bind in ["0.0.0.0:3001", "[::]:3001", "192.168.1.9:3001"] {
        check(
            &format!("CONSOLE_AUTH=none\nCONSOLE_BIND={bind}"),
            &format!(
                "CONSOLE_AUTH: none is for a console on loopback, but CONSOLE_BIND is {bind}, e.g. CONSOLE_AUTH=password"
            ),
        );
    }
    assert!(matches!(sign_in("CONSOLE_AUTH=none\nCONSOLE_HOSTS=localhost"), SignIn::Open));
    check(
        "CONSOLE_AUTH=none\nCONSOLE_HOSTS=dialarr.example.org",
        "CONSOLE_AUTH: none is for a console on loopback, but CONSOLE_HOSTS has dialarr.example.org, \
         e.g. CONSOLE_AUTH=password",
    );
}

#[test]
fn password_hash_must_be_complete() {
    check(
        "CONSOLE_PASSWORD=$argon2id$v=19$m=19456,t=2,p=1",
        "CONSOLE_PASSWORD: not a complete argon2id hash, e.g. CONSOLE_PASSWORD='four words you remember'",
    );
    check(
        "CONSOLE_PASSWORD==19=19456,t=2,p=1",
        "CONSOLE_PASSWORD: only a part of an argon2id hash; put the complete hash in single quotes, \
         e.g. CONSOLE_PASSWORD='four words you remember'",
    );
}

#[test]
fn daily_tokens_default_to_three_million() {
    let tokens = |lines: &str| valid_config(lines).limits.budget.tokens;
    assert_eq!([tokens(""), tokens("DAILY_TOKENS=")], [Some(3_000_000); 2]);
    assert_eq!(tokens("DAILY_TOKENS=500000"), Some(500_000));
    assert_eq!([tokens("DAILY_TOKENS=off"), tokens("DAILY_TOKENS=OFF")], [None; 2]);
    for invalid in ["0", "-1", "none", "3,000,000"] {
        check(
            &format!("DAILY_TOKENS={invalid}"),
            "DAILY_TOKENS: not off or a whole number from 1 to 1000000000000, e.g. DAILY_TOKENS=3000000",
        );
    }
}

#[test]
fn password_hash_is_accepted_in_any_quotes() {
    let hash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzYWx0$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
    for quoted in [hash.to_owned(), format!("\"{hash}\""), format!("'{hash}'")] {
        let config = load(&format!("CONSOLE_PASSWORD={quoted}"), "").unwrap();
        let SignIn::Password(ConsolePassword::Hash(known)) = config.console.rules.sign_in else {
            panic!("{quoted}")
        };
        assert_eq!(known.expose_secret(), hash, "{quoted}");
    }
}

#[test]
fn formerly_expanded_value_is_reported_with_its_line() {
    let file = "LLM_API_KEY=se$cret\nSONARR_API_KEY='se$cret'\nRADARR_API_KEY=\"se\\$cret\"\nOTHER=$a\n\
                NOTIFICATION_SECRET=\"se$cret\"\nNOTIFICATION_SECRET=$later\nRADARR_4K_API_KEY=$a";
    let expanded = |real: &str| {
        let problems = load(&format!("{file}\nPORT=x"), real).unwrap_err();
        let values = problems.notes.expanded_values.into_iter().map(|value| (value.variable, value.line));
        values.collect::<Vec<_>>()
    };
    let expected = [("LLM_API_KEY", 1), ("NOTIFICATION_SECRET", 5), ("RADARR_4K_API_KEY", 7)];
    assert_eq!(expanded(""), expected);
    assert_eq!(expanded("RADARR_4K_API_KEY="), expected[..2]);
    let shown = load("TZ=UTC\nNOTIFICATION_SECRET=se$cret", "").unwrap().notes.expanded_values[0].to_string();
    assert_eq!(
        shown,
        "NOTIFICATION_SECRET, line 2 of .env: the value has a $; earlier versions removed the $ and the name after it; \
         put the value in single quotes, and use the full value wherever you entered the shortened one"
    );
}

#[test]
fn reference_to_another_variable_is_rejected() {
    for (file, real) in [
        ("TZ=UTC\nNOTIFICATION_SECRET=${TOKEN}", ""),
        ("TZ=UTC\nNOTIFICATION_SECRET=a$TOKEN", "TOKEN=hunter2"),
        ("TOKEN=hunter2\nNOTIFICATION_SECRET=\"$TOKEN\"", ""),
    ] {
        assert_eq!(
            load(file, real).unwrap_err().to_string(),
            "read the configuration
  NOTIFICATION_SECRET, line 2 of .env: refers to another variable with $, which is not expanded; write the value itself, \
             or put it in single quotes if the $ belongs to it, e.g. NOTIFICATION_SECRET=0123456789abcdef"
        );
    }
    let quoted = load("NOTIFICATION_SECRET='${TOKEN}'", "").unwrap().notifications.secret.unwrap();
    assert_eq!(quoted.expose_secret(), "${TOKEN}");
}

#[test]
fn file_may_have_a_byte_order_mark_and_must_be_utf_8() {
    assert_eq!(load("\u{FEFF}PORT=4000", "").unwrap().listen.port(), 4000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".env");
    fs::write(&path, b"TZ=UTC\nLLM_API_KEY=\xFF").unwrap();
    assert_eq!(
        load_from(&path, HashMap::new()).unwrap_err().to_string(),
        "read the configuration\n  .env, line 2: not UTF-8, e.g. LLM_MODEL='quote what has $, # or spaces'"
    );
}

#[test]
fn console_hosts_are_added_to_the_local_ones() {
    let hosts = |lines: &str| valid_config(lines).console.rules.hosts;
    let local_and =
        |names: &[&str]| AllowedHosts::local().with_hosts(names.iter().map(|name| parse_host(name).unwrap()));
    assert_eq!(hosts("CONSOLE_HOSTS=Dialarr.home.lan, nas:3001"), local_and(&["dialarr.home.lan", "nas"]));
    assert_eq!(hosts("CONSOLE_BIND=192.168.1.9:3001"), AllowedHosts::local());
    check(
        "CONSOLE_HOSTS=nas,https://nas",
        "CONSOLE_HOSTS: entry 2 is not a host name, e.g. CONSOLE_HOSTS=dialarr.home.lan,dialarr.example.org",
    );
}

#[test]
fn choices_ignore_case() {
    let config = valid_config(
        "
        LLM_BASE_URL=http://localhost:11434/v1
        LLM_MODEL=llama
        LLM_REASONING_EFFORT=None
        LLM_TOKEN_FIELD=MAX_TOKENS
        CONFIRM_CODE=Always
        CONFIRM_LANGS=ES, fr
        COALESCE_MS=0
        LOG_FORMAT=JSON",
    );
    let llm = config.llm.unwrap();
    assert_eq!(
        (llm.reasoning_effort.as_deref(), llm.token_field),
        (Some("none"), Some(TokenField::MaxTokens))
    );
    assert_eq!(config.conversation.confirm_code, ConfirmCode::Always);
    assert_eq!(config.conversation.confirm_languages, ["es", "fr"]);
    assert_eq!(config.conversation.coalesce, Duration::ZERO);
    assert_eq!(config.log.format, LogFormat::Json);
}

#[test]
fn debug_output_shows_no_secret_and_no_whole_phone_number() {
    let config = valid_config(&format!(
        "{TWILIO}
        TZ=UTC
        TWILIO_API_KEY_SID=SK1
        TWILIO_API_KEY_SECRET=keysecret
        LLM_API_KEY=llmsecret
        LLM_MODEL=gpt-5.4-mini
        EMBEDDINGS_MODEL=text-embedding-3-small
        EMBEDDINGS_API_KEY=embedsecret
        SONARR_URL=http://sonarr:8989
        SONARR_API_KEY=sonarrsecret
        NOTIFICATION_SECRET=reportsecret
        NTFY_URL=https://ntfy.sh/topicsecret
        OPERATOR_WEBHOOK_URL=https://example.org/hooksecret
        CONSOLE_PASSWORD=consolesecret
        TELEGRAM_BOT_TOKEN=501:telegramsecret
        PHONE_WHITELIST=+15550100124,+15550100125"
    ));
    let shown = format!("{config:#?}");
    let secrets = [
        "firsttoken",
        "keysecret",
        "llmsecret",
        "embedsecret",
        "sonarrsecret",
        "reportsecret",
        "topicsecret",
        "hooksecret",
        "consolesecret",
        "telegramsecret",
        "5550100",
    ];
    let leaked: Vec<&str> = secrets.into_iter().filter(|secret| shown.contains(secret)).collect();
    assert_eq!(leaked, Vec::<&str>::new(), "{shown}");
}

#[test]
fn environment_overrides_the_file_even_when_empty() {
    let config = load("PORT=4000\nDATABASE_URL=file.db\nHOST=127.0.0.1", "PORT=5000\nHOST=").unwrap();
    assert_eq!(config.listen.to_string(), "0.0.0.0:5000");
    assert_eq!(config.database, Path::new("file.db"));
}

#[test]
fn malformed_lines_are_reported_with_bad_values_and_not_quoted() {
    let file = "LLM_MODEL='a # b'\nhunter2 is my password\nexport PORT=none\nHOST=127.0.0.1\n";
    assert_eq!(
        load(file, "").unwrap_err().to_string(),
        "read the configuration
  .env, line 2: not NAME=value, e.g. LLM_MODEL='quote what has $, # or spaces'
  PORT, line 3 of .env: not a port from 0 to 65535, e.g. PORT=3000"
    );
}

#[test]
fn misspelled_name_is_reported_without_its_value() {
    let misspelled_names =
        |config: Config| config.notes.misspelled_names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let config =
        load("LLM_MODLE=hunter2\nRATE_LIMIT=off", "LLM_MODLE=gpt\nADMIN_PHONES=+15550100123").unwrap();
    assert_eq!(
        misspelled_names(config),
        [
            "ADMIN_PHONES: unknown setting; did you mean ADMIN_PHONE?",
            "LLM_MODLE: unknown setting; did you mean LLM_MODEL?"
        ]
    );
    assert_eq!(misspelled_names(load("SOMETHING=else", "PATH=/bin").unwrap()), [""; 0]);
}

#[test]
fn misspelled_name_is_reported_beside_the_missing_variable() {
    assert_eq!(
        load("LLM_API_KEY=sk-1\nLLM_MODLE=hunter2", "").unwrap_err().to_string(),
        "read the configuration
  LLM_MODEL: needed with LLM_API_KEY or LLM_BASE_URL, e.g. LLM_MODEL=gpt-5.4-mini
  LLM_MODLE: unknown setting; did you mean LLM_MODEL?"
    );
}

#[test]
fn missing_file_is_not_an_error() {
    let config = load_from(Path::new("/nonexistent/.env"), HashMap::new()).unwrap();
    assert_eq!(format!("{config:?}"), format!("{:?}", valid_config("")));
}

fn load(file: &str, real: &str) -> Result<Config, ConfigProblems> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".env");
    fs::write(&path, file).unwrap();
    load_from(&path, parse_lines(real))
}

fn load_from(path: &Path, environment: HashMap<String, String>) -> Result<Config, ConfigProblems> {
    Config::from_sources(&read_from(path, environment))
}
