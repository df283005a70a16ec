//! Crash test: `dialarr config set`, killed between the secrets file and the row that names the secret.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use dialarr::store::database::db::Db;

use super::stage::program;

/// Failpoint after the secrets file is written and before its row is committed.
pub(crate) const SECRETS_WRITTEN: &str = "settings.secrets_written";

/// Stores a key of Sonarr, with a failpoint at which the command dies.
fn set_key(folder: &Path, url: &[&str], key: &str, failpoint: Option<&str>) -> Output {
    let mut command = command(folder, &["config", "set", "SONARR_API_KEY"]);
    command.args(url).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.envs(failpoint.map(|place| ("FAILPOINT", place))).spawn().unwrap();
    child.stdin.take().unwrap().write_all(key.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).env_clear().current_dir(folder);
    command
}

fn exported(folder: &Path) -> String {
    let output = command(folder, &["config", "export", "--with-secrets"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn config_set_killed_after_the_secrets_file_keeps_the_old_secret() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("dialarr.db");
    drop(Db::open_simulated(database.to_str().unwrap(), 0).unwrap());
    let url = ["SONARR_URL=http://sonarr:8989"];
    assert!(set_key(folder.path(), &url, "first-key", None).status.success());

    let killed = set_key(folder.path(), &[], "second-key", Some(SECRETS_WRITTEN));

    assert_eq!(killed.status.code(), None, "{}", String::from_utf8_lossy(&killed.stderr));
    let secrets = || std::fs::read_to_string(folder.path().join("dialarr.secrets.json")).unwrap();
    assert!(secrets().contains("second-key"));
    let lines = |key: &str| format!("SONARR_API_KEY={key}\nSONARR_URL=http://sonarr:8989\n");
    assert_eq!(exported(folder.path()), lines("first-key"));
    assert!(set_key(folder.path(), &[], "third-key", None).status.success());
    assert_eq!(exported(folder.path()), lines("third-key"));
    assert!(!secrets().contains("first-key") && !secrets().contains("second-key"));
}
