//! `dialarr config`, and the start with stored settings.

use std::os::unix::fs::PermissionsExt;

use diesel::Connection;
use diesel::connection::SimpleConnection;
use diesel::sqlite::SqliteConnection;

use crate::harness::cli::{Cli, Ended};
use crate::harness::model_server::ModelServer;

const SERVE: [(&str, &str); 2] = [("HOST", "127.0.0.1"), ("PORT", "0")];
const SECRETS: &str = "dialarr.secrets.json";

/// Folder with the database of a service that has run once.
fn installation() -> Cli {
    let cli = Cli::new();
    cli.serve(&SERVE).terminate();
    cli
}

#[track_caller]
fn done(ended: Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    ended.output
}

/// Returns the lines of `config show` that name one of the settings, without their indentation.
fn shown(cli: &Cli, environment: &[(&str, &str)], names: &[&str]) -> String {
    let output = done(cli.run(&["config", "show"], environment));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = output.lines().map(words);
    let lines = lines.filter(|line| names.iter().any(|name| line.split(' ').next() == Some(name)));
    lines.collect::<Vec<_>>().join("\n")
}

fn set_sonarr(cli: &Cli, url: &str, key: &str) -> Ended {
    cli.run_typing(&["config", "set", &format!("SONARR_URL={url}"), "SONARR_API_KEY"], &format!("{key}\n"))
}

#[test]
fn stored_settings_are_shown_without_secrets() {
    let cli = installation();
    done(set_sonarr(&cli, "http://sonarr:8989", "sesame"));
    done(cli.run(&["config", "set", "RETENTION_DAYS=30", "QUIET_HOURS=22-7"], &[]));
    cli.write(".env", "TZ=UTC\nQUIET_HOURS=off\n");
    let names = ["SONARR_URL", "SONARR_API_KEY", "RADARR_API_KEY", "RETENTION_DAYS", "QUIET_HOURS", "TZ"];
    insta::assert_snapshot!(shown(&cli, &[("RETENTION_DAYS", "90")], &names), @r"
    TZ UTC (line 1 of .env)
    SONARR_URL http://sonarr:8989 (stored setting)
    SONARR_API_KEY set (stored setting)
    RADARR_API_KEY not set (default)
    QUIET_HOURS off (line 2 of .env, overrides a stored setting)
    RETENTION_DAYS 90 (environment, overrides a stored setting)
    ");
    assert_eq!(cli.mode(SECRETS), 0o600);
    done(cli.run(&["config", "unset", "RETENTION_DAYS", "SONARR_URL", "SONARR_API_KEY"], &[]));
    assert_eq!(shown(&cli, &[], &["RETENTION_DAYS"]), "RETENTION_DAYS not set (default)");
    assert_eq!(cli.read(SECRETS), b"{}");
}

#[test]
fn commands_store_only_the_hash_of_the_console_password() {
    let cli = installation();
    let has_hash = |text: &str| text.contains("$argon2id$") && !text.contains("correct horse");
    let set = || cli.run_typing(&["config", "set", "CONSOLE_PASSWORD"], "correct horse\n");
    done(set());
    let stored = String::from_utf8(cli.read(SECRETS)).unwrap();
    assert!(has_hash(&stored), "{stored}");
    assert_eq!(set().errors, "No changes\n");

    cli.write("plain.env", "CONSOLE_PASSWORD='correct horse'\n");
    cli.write("hash.env", &done(cli.run(&["config", "export", "--with-secrets"], &[])));
    assert!(has_hash(&String::from_utf8(cli.read("hash.env")).unwrap()));
    for file in ["plain.env", "hash.env"] {
        let imported = cli.run(&["config", "import", file], &[]);
        assert_eq!((imported.code, imported.errors.as_str()), (Some(0), "No changes\n"));
    }
    done(cli.run(&["config", "unset", "CONSOLE_PASSWORD"], &[]));
    done(cli.run(&["config", "import", "plain.env"], &[]));
    let stored = String::from_utf8(cli.read(SECRETS)).unwrap();
    assert!(has_hash(&stored), "{stored}");
}

#[test]
fn refused_settings_are_explained_without_their_values() {
    let cli = installation();
    done(set_sonarr(&cli, "http://sonarr:8989", "sesame"));
    let refused = |arguments: &[&str], environment: &[(&str, &str)]| {
        let ended = cli.run(&[&["config", "set"], arguments].concat(), environment);
        assert_eq!(ended.code, Some(1), "{}", ended.errors);
        ended.errors
    };
    let errors = [
        refused(&["SONARR_API_KEY=hunter2"], &[]),
        refused(&["PORT=4000"], &[]),
        refused(&["LLM_MODLE=hunter2"], &[]),
        refused(&["LLM_MODEL"], &[]),
        refused(&["LLM_MODEL="], &[]),
        refused(&["LLM_API_KEY"], &[]),
        refused(&["CONFIRM_MINUTES=hunter2", "QUIET_HOURS=late"], &[]),
        refused(&["SONARR_URL=http://nas:8989"], &[]),
        refused(&["LLM_BASE_URL=http://nas/v1"], &[("LLM_API_KEY", "sk-1"), ("LLM_MODEL", "m")]),
    ];
    insta::assert_snapshot!(errors.concat(), @r"
    error: failed to set SONARR_API_KEY: it is a secret; hint: dialarr config set SONARR_API_KEY, and type or pipe its value
    error: failed to set PORT: it is set only in the environment or .env, because it is needed before the stored settings are read
    error: failed to set LLM_MODLE: there is no such setting; did you mean LLM_MODEL?
    error: failed to set LLM_MODEL: a value is missing, e.g. LLM_MODEL=gpt-5.4-mini
    error: failed to set LLM_MODEL: the value is empty; hint: dialarr config unset LLM_MODEL
    error: failed to read a value of LLM_API_KEY: it is empty; hint: dialarr config unset LLM_API_KEY
    error: failed to change the settings:
      QUIET_HOURS: not off or two hours of a day such as 22-7, e.g. QUIET_HOURS=22-7
      CONFIRM_MINUTES: not a whole number from 1 to 60, e.g. CONFIRM_MINUTES=5
    error: failed to change the settings:
      SONARR_API_KEY belongs to http://sonarr:8989, and is not sent to another server; hint: add SONARR_API_KEY to the command, and enter the value for the new server
    error: failed to change the settings:
      LLM_API_KEY belongs to https://api.openai.com, and is not sent to another server; hint: change the URL in the same place as the secret (environment)
    ");
}

#[test]
fn imported_file_can_be_emptied_without_a_change() {
    let cli = installation();
    let file = "# Mine\nPORT=0\nTZ=UTC\nSONARR_URL=http://sonarr:8989\nSONARR_API_KEY='se$ame'\nLLM_BASE_URL=\n\
                SOMETHING=else\nTZ=Europe/Berlin\nCONSOLE_BIND=\n";
    cli.write(".env", file);
    insta::assert_snapshot!(done(cli.run(&["config", "import", ".env"], &[])), @r"
    Remove from .env, because these lines override the stored settings:
      line 3: TZ
      line 4: SONARR_URL
      line 5: SONARR_API_KEY
      line 6: LLM_BASE_URL
      line 8: TZ
    Keep in .env, because these settings cannot be stored:
      line 2: PORT
      line 9: CONSOLE_BIND
    Not imported, because there is no such setting:
      line 7: SOMETHING
    ");
    cli.write(".env", "PORT=0\n");
    let names = ["TZ", "SONARR_URL", "SONARR_API_KEY", "LLM_BASE_URL"];
    insta::assert_snapshot!(shown(&cli, &[], &names), @r"
    TZ UTC (stored setting)
    SONARR_URL http://sonarr:8989 (stored setting)
    SONARR_API_KEY set (stored setting)
    LLM_BASE_URL not set (default)
    ");
    let exported = done(cli.run(&["config", "export"], &[]));
    insta::assert_snapshot!(exported, @r"
    # SONARR_API_KEY is a secret, which --with-secrets includes.
    SONARR_URL=http://sonarr:8989
    TZ=UTC
    ");
    let exported = done(cli.run(&["config", "export", "--with-secrets"], &[]));
    assert_eq!(exported, "SONARR_API_KEY='se$ame'\nSONARR_URL=http://sonarr:8989\nTZ=UTC\n");
    let missing = cli.run(&["config", "import", "other.env"], &[]);
    assert_eq!((missing.code, missing.output.as_str()), (Some(1), ""));
}

#[test]
fn settings_are_changed_while_the_service_runs() {
    let cli = Cli::new();
    let served = cli.serve(&SERVE);
    let ended = cli.run(&["config", "set", "CONFIRM_MINUTES=7", "RUST_LOG=debug"], &[]);
    insta::assert_snapshot!(ended.errors, @r"
    Stored in dialarr.db
    The running service uses the change within a minute.
    hint: restart the service to use RUST_LOG
    ");
    assert_eq!(served.terminate().0, Some(0));
    assert_eq!(shown(&cli, &[], &["CONFIRM_MINUTES"]), "CONFIRM_MINUTES 7 (stored setting)");
}

#[test]
fn installation_with_a_file_only_starts_without_stored_settings() {
    let cli = Cli::new();
    cli.write(".env", "HOST=127.0.0.1\nPORT=0\nSONARR_URL=http://127.0.0.1:9\nSONARR_API_KEY=sesame\n");
    assert_eq!(cli.serve(&[]).terminate().0, Some(0));
    assert_eq!(cli.names(), [".env", "dialarr.db"]);
    let ended = cli.run(&["doctor"], &[]);
    assert!(ended.output.contains("ok       configuration: all values are valid\n"), "{}", ended.output);
    assert!(ended.output.contains("Sonarr"), "{}", ended.output);
}

#[test]
fn service_starts_with_stored_settings_and_stops_at_an_invalid_one() {
    let cli = installation();
    let path = cli.path("dialarr.db");
    let store = |row: &str| {
        let sql = format!("INSERT OR REPLACE INTO settings VALUES ({row}, 9, 0, 'shell')");
        SqliteConnection::establish(&path).unwrap().batch_execute(&sql).unwrap();
    };
    store("'PORT', 'many', NULL");
    assert_eq!(cli.serve(&SERVE).terminate().0, Some(0));
    store("'CONFIRM_MINUTES', 'hunter2', NULL");
    let ended = cli.run(&["serve"], &SERVE);
    assert_eq!(ended.code, Some(78));
    insta::assert_snapshot!(ended.errors, @r"
    error: failed to read the configuration
      CONFIRM_MINUTES, stored setting: not a whole number from 1 to 60, e.g. dialarr config set CONFIRM_MINUTES=5
      PORT, stored setting: ignored: it is set only in the environment or .env
    ");
    done(cli.run(&["config", "set", "CONFIRM_MINUTES=5"], &SERVE));
    assert_eq!(cli.serve(&SERVE).terminate().0, Some(0));
}

#[test]
fn doctor_reports_lost_overridden_and_exposed_settings() {
    let cli = installation();
    done(set_sonarr(&cli, "http://127.0.0.1:9", "sesame"));
    done(cli.run(&["config", "set", "RETENTION_DAYS=30"], &[]));
    cli.write(SECRETS, "{}");
    std::fs::set_permissions(cli.path(SECRETS), std::fs::Permissions::from_mode(0o644)).unwrap();
    let ended = cli.run(&["doctor"], &[("RETENTION_DAYS", "90")]);
    assert_eq!(ended.code, Some(1));
    let lines: Vec<&str> = ended.output.lines().collect();
    let end = lines.iter().position(|line| line.contains("database:")).unwrap();
    insta::assert_snapshot!(lines[..end].join("\n"), @r"
    ok       configuration: all values are valid
    ok       configuration: RETENTION_DAYS, stored setting: overridden (environment)
             hint: remove it there to use the stored value, or run dialarr config unset RETENTION_DAYS
    failure  configuration: SONARR_API_KEY, stored setting: not used, and what needs it is off: the secrets file has no version 1 of it
             hint: run dialarr config set SONARR_API_KEY, and enter the value again
    warning  secrets: other accounts can read dialarr.secrets.json (mode 644)
             hint: run chmod 600 dialarr.secrets.json; the next start does so too
    ");
    assert_eq!(cli.mode(SECRETS), 0o644);
    assert_eq!(cli.serve(&SERVE).terminate().0, Some(0));
    assert_eq!(cli.mode(SECRETS), 0o600);
}

#[test]
fn stored_secret_is_not_sent_to_a_server_of_the_environment() {
    let (theirs, other) = (ModelServer::start([]), ModelServer::start([]));
    let cli = installation();
    let url = format!("LLM_BASE_URL={}", theirs.url());
    done(cli.run_typing(&["config", "set", &url, "LLM_MODEL=a-model", "LLM_API_KEY"], "sk-hidden\n"));
    let doctor = |environment: &[(&str, &str)]| cli.run(&["doctor"], environment).output;
    let moved = doctor(&[("LLM_BASE_URL", &other.url())]);
    assert!(moved.contains("LLM_API_KEY, stored setting: not used"), "{moved}");
    assert_eq!((other.requests().len(), theirs.requests().len()), (0, 0));
    doctor(&[]);
    assert!(!theirs.requests().is_empty());
}

#[test]
fn backup_names_the_secrets_file_that_it_leaves_out() {
    let cli = installation();
    done(set_sonarr(&cli, "http://sonarr:8989", "sesame"));
    let ended = cli.run(&["backup", "copy.db"], &[]);
    insta::assert_snapshot!(ended.errors, @r"
    copied dialarr.db to copy.db
    the copy contains no stored secrets; hint: keep a copy of dialarr.secrets.json at a safe place
    ");
    assert!(!cli.read("copy.db").windows(6).any(|part| part == b"sesame"));
}
