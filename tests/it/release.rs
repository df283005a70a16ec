//! Releases: version, health command, and the refusal of a later version's data.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use diesel::connection::SimpleConnection;
use diesel::{Connection, SqliteConnection};

use crate::harness::cli::Cli;

#[path = "../../build.rs"]
#[expect(dead_code, clippy::print_stdout, reason = "cargo runs it as a program, which speaks to cargo")]
mod build;

const AT_HOME: (&str, &str) = ("HOST", "127.0.0.1");

#[test]
fn version_option_prints_the_version() {
    let ended = Cli::new().run(&["--version"], &[]);
    assert_eq!(
        (ended.code, ended.output.trim_end()),
        (Some(0), concat!("dialarr ", env!("DIALARR_VERSION")))
    );
    assert!(env!("DIALARR_VERSION").starts_with(env!("CARGO_PKG_VERSION")));
}

#[test]
fn version_contains_a_known_commit() {
    assert_eq!(build::version("0.1.0", ""), "0.1.0");
    assert_eq!(build::version("0.1.0", "7f8a2b9c0d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a"), "0.1.0 (7f8a2b9c0d1e)");
    assert_eq!(build::version("0.1.0", "v1\ncargo:x=y"), "0.1.0 (v1cargoxy)");
}

#[track_caller]
fn git(folder: &Path, arguments: &[&str]) {
    let who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"];
    let ended = Command::new("git").arg("-C").arg(folder).args(who).args(arguments).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

#[test]
fn commit_is_that_of_the_checkout_only() {
    let folder = tempfile::tempdir().unwrap();
    let unpacked = folder.path().join("dialarr-0.1.0");
    std::fs::create_dir(&unpacked).unwrap();
    git(folder.path(), &["init", "-q"]);
    assert_eq!(build::commit_of(folder.path()), None, "there is none yet");
    git(folder.path(), &["commit", "-q", "--allow-empty", "-m", "Begin"]);

    let commit = build::commit_of(folder.path()).unwrap();
    assert_eq!((commit.len(), build::commit_of(&unpacked)), (40, None));
    let watched = build::changed_by_a_commit(folder.path());
    assert_eq!(watched, [folder.path().join(".git/HEAD"), folder.path().join(".git/logs/HEAD")]);
    assert!(build::changed_by_a_commit(&unpacked).is_empty());

    let before = std::fs::read(&watched[1]).unwrap();
    git(folder.path(), &["commit", "-q", "--allow-empty", "-m", "Go on"]);
    assert_ne!(std::fs::read(&watched[1]).unwrap(), before);
    assert_ne!(build::commit_of(folder.path()).unwrap(), commit);
}

#[test]
fn health_command_queries_the_running_service() {
    let cli = Cli::new();
    let served = cli.serve(&[AT_HOME, ("PORT", "0")]);
    let port = served.address.rsplit(':').next().unwrap().to_owned();
    let asked = [AT_HOME, ("PORT", port.as_str())];

    let well = cli.run(&["health"], &asked);
    let body = r#"{"status":"ok","checks":[{"name":"database","ok":true,"detail":"responds"}]}"#;
    assert_eq!((well.code, well.output.trim_end()), (Some(0), body));

    served.terminate();
    let gone = cli.run(&["health"], &asked);
    let message = gone.errors.lines().next().unwrap_or_default();
    let expected =
        format!("error: failed to query the service at 127.0.0.1:{port}; hint: check that it is running");
    assert_eq!((gone.code, message), (Some(1), expected.as_str()));
}

#[test]
fn health_command_fails_if_the_service_does() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let failing = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let read = stream.read(&mut [0; 1024]).unwrap();
        assert!(read > 0);
        let answer = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let ended = Cli::new().run(&["health"], &[AT_HOME, ("PORT", &port)]);
    failing.join().unwrap();
    let expected = format!(
        "error: failed to pass the health check of 127.0.0.1:{port}: HTTP/1.1 503 Service Unavailable {{}}\n"
    );
    assert_eq!((ended.code, ended.errors), (Some(1), expected));
}

#[test]
fn database_of_a_later_version_is_refused_unchanged() {
    let cli = Cli::new();
    cli.serve(&[AT_HOME, ("PORT", "0")]).terminate();
    let later = "INSERT INTO __diesel_schema_migrations (version) VALUES ('20991231000000');
                 CREATE TABLE of_tomorrow (id INTEGER) STRICT; PRAGMA wal_checkpoint(TRUNCATE)";
    SqliteConnection::establish(&cli.path("dialarr.db")).unwrap().batch_execute(later).unwrap();
    let before = cli.read("dialarr.db");

    let refused = cli.run(&["serve"], &[AT_HOME, ("PORT", "0")]);
    let message = refused.errors.lines().last().unwrap_or_default();
    let expected = format!(
        "error: failed to use dialarr.db: a later version of dialarr has migrated it (20991231000000), and this is {}; \
         hint: run that version again, or restore a copy from before the migration",
        env!("DIALARR_VERSION")
    );
    assert_eq!((refused.code, message), (Some(78), expected.as_str()));
    let refused = cli.run(&["users", "list"], &[]);
    assert_eq!((refused.code, refused.errors), (Some(78), format!("{expected}\n")));

    assert_eq!(cli.read("dialarr.db"), before);
    assert_eq!(cli.names(), ["dialarr.db"]);
}
