//! Precedence of the sources, and stored secrets that cannot be used.

use std::collections::{BTreeMap, HashMap};

use super::env_values::EnvFile;
use super::{
    BoundSecret, Config, ConfigSources, IneffectiveReason, StoredValue, VARIABLES, ValueSource, Variable,
};
use crate::access_rules::SignIn;

const OPENAI: &str = "https://api.openai.com";
const TWILIO: &str = "TWILIO_ACCOUNT_SID=AC1\nTWILIO_PHONE_NUMBER=+15550100100\nPUBLIC_URL=https://sms.example.org\n\
                      ADMIN_PHONE=+15550100123";

fn text(value: &str) -> StoredValue {
    StoredValue::Text(value.to_owned())
}

fn secret(origin: &str) -> StoredValue {
    let origin = (!origin.is_empty()).then(|| origin.to_owned());
    StoredValue::Secret(BoundSecret { value: "0123456789abcdef".into(), origin })
}

fn missing() -> StoredValue {
    StoredValue::Unusable("the secrets file has no version 1 of it".to_owned())
}

/// Builds the sources from lines of the environment, the text of `.env`, and stored values.
fn sources<const N: usize>(environment: &str, file: &str, stored: [(&str, StoredValue); N]) -> ConfigSources {
    let environment: HashMap<String, String> = environment
        .lines()
        .filter_map(|line| line.trim().split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let file = EnvFile::parse(file, &environment);
    let stored: BTreeMap<String, StoredValue> =
        stored.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    ConfigSources::new(environment, file).with_stored(stored)
}

fn reasons(config: &Config) -> Vec<(&str, &IneffectiveReason)> {
    let settings = config.notes.ineffective_settings.iter();
    settings.map(|setting| (setting.name.as_str(), &setting.reason)).collect()
}

#[test]
fn environment_overrides_the_file_and_both_override_stored_values() {
    let level = |environment: &str, file: &str| {
        let sources = sources(environment, file, [("RETENTION_DAYS", text("30"))]);
        let config = Config::from_sources(&sources).unwrap();
        (config.retention_days, sources.value_source("RETENTION_DAYS"))
    };
    assert_eq!(level("", ""), (30, ValueSource::Stored));
    assert_eq!(level("", "TZ=UTC\nRETENTION_DAYS=60"), (60, ValueSource::EnvFile(2)));
    assert_eq!(level("RETENTION_DAYS=90", "RETENTION_DAYS=60"), (90, ValueSource::Environment));
    assert_eq!(level("", "RETENTION_DAYS="), (30, ValueSource::Stored));
    assert_eq!(level("RETENTION_DAYS=", "RETENTION_DAYS=60"), (30, ValueSource::Stored));
    assert_eq!(sources("", "", []).value_source("RETENTION_DAYS"), ValueSource::Default);
}

#[test]
fn overridden_and_unknown_rows_and_rows_of_listeners_have_no_effect() {
    let rows = [("PORT", text("4000")), ("NEW_THING", text("1")), ("LLM_SKIP", text("loud"))];
    let config = Config::from_sources(&sources("LLM_SKIP=sure", "", rows)).unwrap();
    assert_eq!(config.listen.port(), 3000);
    let overridden = IneffectiveReason::Overridden(ValueSource::Environment);
    let expected = [
        ("LLM_SKIP", &overridden),
        ("NEW_THING", &IneffectiveReason::Unknown),
        ("PORT", &IneffectiveReason::EnvironmentOnly),
    ];
    assert_eq!(reasons(&config), expected);
}

#[test]
fn invalid_stored_value_is_reported_with_the_command_that_repairs_it() {
    let rows = [("RETENTION_DAYS", text("soon")), ("PORT", text("x"))];
    let problems = Config::from_sources(&sources("HOST=x", "LLM_SKIP=x", rows)).unwrap_err();
    insta::assert_snapshot!(problems, @r"
    read the configuration
      HOST: not an IP address, e.g. HOST=0.0.0.0
      LLM_SKIP, line 1 of .env: not one of never, sure, e.g. LLM_SKIP=never
      RETENTION_DAYS, stored setting: not a whole number from 1 to 36500, e.g. dialarr config set RETENTION_DAYS=365
      PORT, stored setting: ignored: it is set only in the environment or .env
    ");
}

#[test]
fn missing_secret_turns_its_connection_off_without_a_fallback() {
    let check = |environment: &str, name: &str| {
        let config = Config::from_sources(&sources(environment, "", [(name, missing())])).unwrap();
        assert_eq!(reasons(&config).len(), 1, "{name}");
        config
    };
    assert!(check("SONARR_URL=http://sonarr:8989", "SONARR_API_KEY").libraries.sonarr.is_none());
    assert!(check(TWILIO, "TWILIO_AUTH_TOKEN").twilio.is_none());
    let key = format!("{TWILIO}\nTWILIO_AUTH_TOKEN=token\nTWILIO_API_KEY_SID=SK1");
    assert!(check(&key, "TWILIO_API_KEY_SECRET").twilio.is_none());
    assert!(check("", "TELEGRAM_BOT_TOKEN").telegram.is_none());
    assert!(check("", "NOTIFICATION_SECRET").notifications.secret.is_none());
    assert!(matches!(check("", "CONSOLE_PASSWORD").console.rules.sign_in, SignIn::Links));
    let model = "LLM_MODEL=m\nLLM_BASE_URL=https://llm.example/v1\nEMBEDDINGS_MODEL=e";
    let config = check(model, "LLM_API_KEY");
    assert!(config.llm.is_none() && config.embeddings.is_none());
    let config = check(&format!("{model}\nEMBEDDINGS_BASE_URL=https://llm.example/v1"), "LLM_API_KEY");
    assert!(config.embeddings.is_none());
    let config = check(&format!("{model}\nEMBEDDINGS_BASE_URL=http://ollama:11434/v1"), "LLM_API_KEY");
    assert!(config.embeddings.is_some());
    let config = check(&format!("{model}\nLLM_API_KEY=sk-1"), "EMBEDDINGS_API_KEY");
    assert!(config.llm.is_some() && config.embeddings.is_none());
}

#[test]
fn stored_secret_is_used_only_for_its_scheme_host_and_port() {
    let is_used = |origin: &str, url: &str| {
        let environment = format!("LLM_MODEL=m\nLLM_BASE_URL={url}");
        let rows = [("LLM_API_KEY", secret(origin))];
        Config::from_sources(&sources(&environment, "", rows)).unwrap().llm.is_some()
    };
    assert!(is_used(OPENAI, ""));
    assert!(is_used("https://llm.example", "https://llm.example/v1"));
    assert!(is_used("https://llm.example", "https://LLM.example:443/other/v1"));
    for url in ["http://llm.example/v1", "https://llm.example:8443/v1", "https://llm.example.org/v1", ""] {
        assert!(!is_used("https://llm.example", url), "{url}");
    }
}

#[test]
fn stored_bot_token_is_sent_to_no_other_server() {
    let is_used = |url: &str| {
        let origin = Some("https://api.telegram.org".to_owned());
        let token = StoredValue::Secret(BoundSecret { value: "501:AAE-x_9".into(), origin });
        let sources = sources(&format!("TELEGRAM_API_URL={url}"), "", [("TELEGRAM_BOT_TOKEN", token)]);
        Config::from_sources(&sources).unwrap().telegram.is_some()
    };
    assert!(is_used("") && is_used("https://api.telegram.org:443/"));
    for url in ["http://api.telegram.org", "https://api.telegram.org:8443", "https://telegram.example"] {
        assert!(!is_used(url), "{url}");
    }
}

#[test]
fn each_secret_belongs_to_its_own_server() {
    let environment = "LLM_BASE_URL=https://llm.example/v1\nSONARR_4K_URL=http://sonarr4k:8989/sonarr";
    let sources = sources(environment, "", []);
    let secrets = VARIABLES.iter().filter(|variable| variable.is_secret());
    let origins: Vec<String> = secrets
        .map(|secret| format!("{} {}", secret.name, sources.server_origin(*secret).unwrap_or("-".to_owned())))
        .collect();
    insta::assert_snapshot!(origins.join("\n"), @r"
    SONARR_API_KEY -
    RADARR_API_KEY -
    SONARR_4K_API_KEY http://sonarr4k:8989
    RADARR_4K_API_KEY -
    JELLYFIN_API_KEY -
    PLEX_TOKEN -
    TAUTULLI_API_KEY -
    SEERR_API_KEY -
    TMDB_TOKEN https://api.themoviedb.org
    LLM_API_KEY https://llm.example
    EMBEDDINGS_API_KEY https://llm.example
    TWILIO_AUTH_TOKEN https://api.twilio.com
    TWILIO_API_KEY_SECRET https://api.twilio.com
    SMSGATE_PASSWORD -
    SMSGATE_TOKEN -
    SMSGATE_WEBHOOK_KEY -
    TELEGRAM_BOT_TOKEN https://api.telegram.org
    NOTIFICATION_SECRET -
    NTFY_URL -
    NTFY_TOKEN -
    PUSHOVER_TOKEN https://api.pushover.net
    PUSHOVER_USER https://api.pushover.net
    OPERATOR_WEBHOOK_URL -
    OPERATOR_WEBHOOK_SECRET -
    CONSOLE_PASSWORD -
    ");
}

#[test]
fn every_setting_has_a_label_and_one_sentence_of_help() {
    for Variable { name, label, help, .. } in VARIABLES {
        assert!(!label.is_empty() && !label.ends_with('.'), "{name}");
        assert!(help.ends_with('.') && !help[..help.len() - 1].contains(". "), "{name}");
    }
}

#[test]
fn words_of_the_table_are_those_that_are_accepted() {
    for variable in VARIABLES.iter().filter(|variable| !variable.values.words().is_empty()) {
        let words: Vec<&str> = variable.values.words().iter().map(|(word, _)| *word).collect();
        let value = |word: &str| (variable.name.to_owned(), word.to_owned());
        let reasons = |word: &str| {
            let needed = [
                ("TZ", "UTC"),
                ("CONSOLE_BIND", "127.0.0.1:3001"),
                ("SEERR_URL", "http://seerr:5055"),
                ("SEERR_API_KEY", "0123456789abcdef"),
            ];
            let needed = needed.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let sources = ConfigSources::from_environment(needed.into_iter().chain([value(word)]));
            let problems = Config::from_sources(&sources).map_or_else(|error| error.list, |_| Vec::new());
            problems.into_iter().map(|problem| problem.reason).collect::<Vec<_>>()
        };
        for word in &words {
            assert_eq!(reasons(word), [""; 0], "{}={word}", variable.name);
        }
        let refused = reasons("neither");
        assert!(refused.concat().ends_with(&format!("not one of {}", words.join(", "))), "{refused:?}");
        let (_, example) = variable.example.split_once('=').unwrap();
        assert!(example.split(',').all(|word| words.contains(&word)), "{}", variable.example);
    }
}

#[test]
fn every_variable_of_the_table_is_read() {
    let files = [
        include_str!("assemble.rs"),
        include_str!("bootstrap.rs"),
        include_str!("model_prices.rs"),
        include_str!("texting.rs"),
    ];
    let code = files.concat();
    for variable in VARIABLES {
        let is_used = |end: char| code.contains(&format!("variables::{}{end}", variable.name));
        assert!([')', ','].into_iter().any(is_used), "{}", variable.name);
    }
}
