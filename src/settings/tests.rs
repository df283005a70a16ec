//! Changes of stored settings, against a database and a secrets file.

use std::fs;

use jiff::Timestamp;
use secrecy::ExposeSecret;
use tempfile::TempDir;

use super::LiveSettings;
use super::change::{NeededSecret, SettingsChange, SettingsContext, SettingsOutcome, apply_changes};
use super::prepared_change::PreparedChange;
use crate::access_rules::{ConsolePassword, SignIn, matches_hash};
use crate::config::{Config, ConfigSources, VARIABLES, ValueSource, find_setting};
use crate::conversation::transcript::UserId;
use crate::store::audit::Actor;
use crate::store::console::NEWEST;
use crate::store::console::audit::load_audit_entries;
use crate::store::database::db::Db;
use crate::store::people::users::load_user;
use crate::store::settings::load_settings;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const SONARR: [(&str, &str); 2] = [("SONARR_URL", "http://sonarr:8989"), ("SONARR_API_KEY", "first-key")];

/// Household with a database, a secrets file and variables of the environment.
struct Household {
    folder: TempDir,
    db: Db,
    context: SettingsContext,
    live: LiveSettings,
}

impl Household {
    fn with_environment(environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dialarr.db").to_str().unwrap().to_owned();
        let db = Db::open_simulated(&path, 0).unwrap();
        let environment = environment.iter().copied().chain([("DATABASE_URL", path.as_str()), ("TZ", "UTC")]);
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let context = SettingsContext::from_sources(ConfigSources::from_environment(environment));
        let live = LiveSettings::new(db.clone(), context.clone());
        Self { folder, db, context, live }
    }

    fn new() -> Self {
        Self::with_environment(&[])
    }

    async fn apply(&self, change: SettingsChange) -> SettingsOutcome {
        self.live.apply_changes(change, Actor::Console, NOW).await.unwrap()
    }

    async fn set(&self, values: &[(&str, &str)]) -> SettingsOutcome {
        self.apply(setting(values)).await
    }

    async fn unset(&self, names: &[&str]) -> SettingsOutcome {
        let unset = names.iter().map(|name| (*name).to_owned()).collect();
        self.apply(SettingsChange { unset, ..SettingsChange::default() }).await
    }

    async fn config(&self) -> Config {
        Config::from_sources(&self.live.load_sources().await.unwrap()).unwrap()
    }

    /// Returns the URL and key of Sonarr.
    async fn sonarr(&self) -> Option<(String, String)> {
        let library = self.config().await.libraries.sonarr?;
        Some((library.url.to_string(), library.api_key.expose_secret().to_owned()))
    }

    fn secrets_text(&self) -> String {
        fs::read_to_string(self.context.secrets_file.path()).unwrap_or_default()
    }

    async fn stored_names(&self) -> Vec<String> {
        let rows = self.db.read(load_settings).await.unwrap();
        rows.into_iter().filter(|row| !row.is_removed()).map(|row| row.name).collect()
    }
}

fn setting(values: &[(&str, &str)]) -> SettingsChange {
    let set = values.iter().map(|(name, value)| (find_setting(name).unwrap(), (*value).into())).collect();
    SettingsChange { set, ..SettingsChange::default() }
}

#[track_caller]
fn version(outcome: &SettingsOutcome) -> i64 {
    let SettingsOutcome::Changed { version, .. } = outcome else { panic!("{outcome:?}") };
    *version
}

#[track_caller]
fn needed(outcome: &SettingsOutcome) -> Vec<(&'static str, ValueSource, Option<&str>)> {
    let SettingsOutcome::SecretNeeded(secrets) = outcome else { panic!("{outcome:?}") };
    let secrets = secrets.iter();
    secrets.map(|NeededSecret { variable, source, origin }| (*variable, *source, origin.as_deref())).collect()
}

fn library(url: &str, key: &str) -> Option<(String, String)> {
    Some((url.to_owned(), key.to_owned()))
}

#[tokio::test]
async fn stored_secret_is_only_in_the_secrets_file() {
    let home = Household::new();
    assert_eq!(version(&home.set(&SONARR).await), 1);
    assert_eq!(home.sonarr().await, library("http://sonarr:8989/", "first-key"));
    assert!(home.secrets_text().contains("first-key"));
    let files = fs::read_dir(home.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    for path in files.filter(|path| path != home.context.secrets_file.path()) {
        let bytes = fs::read(&path).unwrap();
        assert!(!bytes.windows(9).any(|part| part == b"first-key"), "{}", path.display());
    }
    let entries = home.db.read(|conn| load_audit_entries(conn, None, NEWEST, 10)).await.unwrap().rows;
    let recorded: Vec<_> =
        entries.iter().map(|entry| (entry.kind.as_str(), entry.detail.to_string())).collect();
    let detail = r#"{"by":"console","set":["SONARR_API_KEY","SONARR_URL"]}"#;
    assert_eq!(recorded, [("configure", detail.to_owned())]);
}

#[tokio::test]
async fn change_based_on_an_older_version_is_a_conflict() {
    let home = Household::new();
    let seen = version(&home.set(&[("RETENTION_DAYS", "30"), ("LLM_SKIP", "sure")]).await);
    home.set(&[("RETENTION_DAYS", "60")]).await;
    let change = |name: &str, value: &str| SettingsChange {
        expected_version: Some(seen),
        ..setting(&[(name, value)])
    };
    assert!(matches!(home.apply(change("RETENTION_DAYS", "90")).await, SettingsOutcome::Conflict));
    assert_eq!(version(&home.apply(change("LLM_SKIP", "never")).await), 3);
    home.unset(&["RETENTION_DAYS"]).await;
    assert!(matches!(home.apply(change("RETENTION_DAYS", "90")).await, SettingsOutcome::Conflict));
    assert_eq!(home.config().await.retention_days, 365);
}

#[tokio::test]
async fn invalid_change_is_refused_per_setting_and_stores_nothing() {
    let home = Household::with_environment(&[("RETENTION_DAYS", "10")]);
    let change = [("LLM_API_KEY", "sk-1"), ("RETENTION_DAYS", "0"), ("QUIET_HOURS", "late")];
    let SettingsOutcome::Invalid(problems) = home.set(&change).await else { panic!() };
    let variables: Vec<_> = problems.iter().map(|problem| problem.variable).collect();
    assert_eq!(variables, ["QUIET_HOURS", "LLM_MODEL", "RETENTION_DAYS"]);
    assert_eq!((home.stored_names().await, home.secrets_text()), (Vec::new(), String::new()));
}

#[tokio::test]
async fn address_of_a_listener_cannot_be_stored() {
    let home = Household::new();
    let port = VARIABLES.iter().copied().find(|variable| variable.name == "PORT").unwrap();
    let change = SettingsChange { set: vec![(port, "4000".into())], ..SettingsChange::default() };
    let SettingsOutcome::Invalid(problems) = home.apply(change).await else { panic!() };
    assert_eq!(problems.iter().map(|problem| problem.variable).collect::<Vec<_>>(), ["PORT"]);
    assert_eq!(home.stored_names().await, [""; 0]);
}

#[tokio::test]
async fn broken_configuration_is_repaired_one_setting_at_a_time() {
    let environment = [("LLM_SKIP", "loud"), ("PORT", "many")];
    let home = Household::with_environment(&environment);
    assert_eq!(version(&home.set(&[("RETENTION_DAYS", "30")]).await), 1);
    assert!(matches!(home.set(&[("LLM_SKIP", "loud")]).await, SettingsOutcome::Invalid(_)));
    let SettingsOutcome::Changed { overridden, .. } = home.set(&[("LLM_SKIP", "sure")]).await else {
        panic!()
    };
    assert_eq!(overridden, [("LLM_SKIP", ValueSource::Environment)]);
}

#[tokio::test]
async fn moved_server_needs_its_secret_in_the_same_change() {
    let home = Household::new();
    home.set(&SONARR).await;
    for url in ["https://sonarr:8989", "http://nas:8989", "http://sonarr:8990"] {
        let outcome = home.set(&[("SONARR_URL", url)]).await;
        let expected = ("SONARR_API_KEY", ValueSource::Stored, Some("http://sonarr:8989"));
        assert_eq!(needed(&outcome), [expected], "{url}");
    }
    home.set(&[("SONARR_URL", "http://sonarr:8989/tv")]).await;
    assert_eq!(home.sonarr().await, library("http://sonarr:8989/tv", "first-key"));
    home.set(&[("SONARR_URL", "http://nas:8989"), ("SONARR_API_KEY", "second-key")]).await;
    assert_eq!(home.sonarr().await, library("http://nas:8989/", "second-key"));
    assert!(!home.secrets_text().contains("first-key"), "{}", home.secrets_text());
}

#[tokio::test]
async fn token_belongs_to_the_server_of_its_secret_address() {
    let home = Household::new();
    home.set(&[("NTFY_TOKEN", "tk_1"), ("NTFY_URL", "https://ntfy.sh/hidden-topic")]).await;
    let ntfy = home.config().await.alerts.ntfy.unwrap();
    assert_eq!((ntfy.url.as_str(), ntfy.token.is_some()), ("https://ntfy.sh/hidden-topic", true));
    let rows = home.db.read(load_settings).await.unwrap();
    assert!(!format!("{rows:?}").contains("hidden-topic"), "{rows:?}");

    let outcome = home.set(&[("NTFY_URL", "https://ntfy.example/other")]).await;
    assert_eq!(needed(&outcome), [("NTFY_TOKEN", ValueSource::Stored, Some("https://ntfy.sh"))]);
    version(&home.set(&[("NTFY_URL", "https://ntfy.sh/other-topic")]).await);
}

#[tokio::test]
async fn secret_of_the_environment_is_not_sent_to_a_stored_server() {
    let home = Household::with_environment(&[("LLM_API_KEY", "sk-1"), ("LLM_MODEL", "m")]);
    let outcome = home.set(&[("LLM_BASE_URL", "https://llm.example/v1")]).await;
    let expected = ("LLM_API_KEY", ValueSource::Environment, Some("https://api.openai.com"));
    assert_eq!(needed(&outcome), [expected]);
    assert_eq!(version(&home.set(&[("LLM_BASE_URL", "https://api.openai.com/v2")]).await), 1);
}

#[tokio::test]
async fn removed_server_address_is_a_move_to_the_default_server() {
    let home = Household::new();
    let model = [("LLM_BASE_URL", "https://llm.example/v1"), ("LLM_API_KEY", "sk-1"), ("LLM_MODEL", "m")];
    home.set(&model).await;
    let outcome = home.unset(&["LLM_BASE_URL"]).await;
    let expected = ("LLM_API_KEY", ValueSource::Stored, Some("https://llm.example"));
    assert_eq!(needed(&outcome), [expected]);
    assert_eq!(version(&home.unset(&["LLM_BASE_URL", "LLM_API_KEY"]).await), 2);
    assert_eq!(home.secrets_text(), "{}");
}

#[tokio::test]
async fn crash_between_file_and_row_leaves_the_old_secret_in_force() {
    let home = Household::new();
    home.set(&SONARR).await;
    let context = home.context.clone();
    let crash = home.db.write(move |conn| {
        let change = setting(&[("SONARR_API_KEY", "second-key")]);
        let change = PreparedChange::new(change, &ConfigSources::default()).unwrap();
        let outcome = apply_changes(conn, &context, &change, Actor::Shell, NOW)?;
        assert!(matches!(outcome, SettingsOutcome::Changed { version: 2, .. }), "{outcome:?}");
        // No user has this id, so the transaction is not committed.
        load_user(conn, UserId(99))
    });
    crash.await.unwrap_err();
    assert!(home.secrets_text().contains("second-key"));
    assert_eq!(home.sonarr().await, library("http://sonarr:8989/", "first-key"));

    home.set(&[("SONARR_API_KEY", "third-key")]).await;
    assert_eq!(home.sonarr().await, library("http://sonarr:8989/", "third-key"));
    assert!(!home.secrets_text().contains("second-key"), "{}", home.secrets_text());
}

#[tokio::test]
async fn missing_secret_is_unusable_until_it_is_entered_again() {
    let home = Household::new();
    home.set(&SONARR).await;
    let empty = r#"{"SONARR_API_KEY": {"1": {"origin": "http://sonarr:8989", "value": " "}}}"#;
    for content in ["{}", empty, "not JSON"] {
        fs::write(home.context.secrets_file.path(), content).unwrap();
        let config = home.config().await;
        assert!(config.libraries.sonarr.is_none(), "{content}");
        assert_eq!(config.notes.ineffective_settings.len(), 1, "{content}");
    }
    // Other settings can be changed, and a damaged file is not overwritten.
    version(&home.set(&[("RETENTION_DAYS", "30")]).await);
    let outcome = home.set(&[("SONARR_API_KEY", "second-key")]).await;
    assert!(matches!(outcome, SettingsOutcome::SecretsFileFailed(_)), "{outcome:?}");
    fs::remove_file(home.context.secrets_file.path()).unwrap();
    home.set(&[("SONARR_API_KEY", "second-key")]).await;
    assert_eq!(home.sonarr().await, library("http://sonarr:8989/", "second-key"));
}

#[tokio::test]
async fn secrets_file_that_cannot_be_written_changes_no_setting() {
    let home = Household::with_environment(&[("SECRETS_FILE", "/nonexistent/secrets.json")]);
    let outcome = home.set(&SONARR).await;
    assert!(matches!(outcome, SettingsOutcome::SecretsFileFailed(_)), "{outcome:?}");
    assert_eq!(home.stored_names().await, [""; 0]);
}

#[tokio::test]
async fn equal_values_are_no_change() {
    let home = Household::new();
    home.set(&SONARR).await;
    assert!(matches!(home.set(&SONARR).await, SettingsOutcome::Unchanged));
    assert!(matches!(home.unset(&["LLM_MODEL"]).await, SettingsOutcome::Unchanged));
    assert_eq!(version(&home.set(&[("SONARR_API_KEY", "other-key")]).await), 2);
}

#[tokio::test]
async fn console_password_is_stored_only_as_its_hash() {
    let home = Household::new();
    assert_eq!(version(&home.set(&[("CONSOLE_PASSWORD", " correct horse ")]).await), 1);
    assert!(!home.secrets_text().contains("correct horse"), "{}", home.secrets_text());
    let SignIn::Password(ConsolePassword::Hash(hash)) = home.config().await.console.rules.sign_in else {
        panic!()
    };
    assert_eq!(matches_hash(&"correct horse".into(), hash.expose_secret()), Ok(true));

    for same in ["correct horse", hash.expose_secret()] {
        assert!(matches!(home.set(&[("CONSOLE_PASSWORD", same)]).await, SettingsOutcome::Unchanged));
    }
    assert_eq!(version(&home.set(&[("CONSOLE_PASSWORD", "battery staple")]).await), 2);
    assert!(matches!(home.set(&[("CONSOLE_PASSWORD", "short")]).await, SettingsOutcome::Invalid(_)));
}

#[tokio::test]
async fn concurrent_changes_lose_no_secret() {
    let home = Household::new();
    home.set(&SONARR).await;
    let keys: Vec<String> = (0..20).map(|number| format!("key-{number}")).collect();
    let changes = keys.iter().map(|key| {
        let live = home.live.clone();
        let change = setting(&[("SONARR_API_KEY", key)]);
        async move { live.apply_changes(change, Actor::Console, NOW).await.unwrap() }
    });
    let outcomes = futures_util::future::join_all(changes).await;
    let mut versions: Vec<i64> = outcomes.iter().map(version).collect();
    versions.sort_unstable();
    assert_eq!(versions, (2..=21).collect::<Vec<_>>());
    let (_, key) = home.sonarr().await.unwrap();
    assert!(keys.contains(&key), "{key}");
    assert_eq!(home.secrets_text().matches("key-").count(), 1, "{}", home.secrets_text());
}
