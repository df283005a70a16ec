//! The database file: moved, replaced, truncated or foreign, and its copies.

use std::fs;
use std::path::Path;

use dialarr::arr::fake::media_fixtures::movie;
use diesel::connection::SimpleConnection;
use diesel::{Connection, SqliteConnection};

use crate::harness::cli::{Cli, Ended};
use crate::harness::reports::{SECRET, report};
use crate::harness::{ANN, TestApp};
use crate::health::wrong;

const AT_HOME: (&str, &str) = ("HOST", "127.0.0.1");
const ANY_PORT: (&str, &str) = ("PORT", "0");
/// Prefix of a command that limits its files to the size of a new database, which simulates a full disk.
const NO_ROOM: &str = "trap '' XFSZ; ulimit -f 100; ";
/// The same prefix, with a signal that kills the program at the limit.
const KILLED: &str = "ulimit -c 0; ulimit -f 100; ";

/// Returns the statuses of the responses to a message, a status callback and an arr event of Radarr.
async fn webhooks(app: &TestApp) -> [u16; 3] {
    let event = app.radarr().import_event_json("Dune");
    let answers = [
        app.post(app.text(ANN, "status")).await,
        app.report_of("SM0123456789abcdef0123456789abcdef", "delivered", "out=1&n=1").await,
        app.status_of(report("radarr", &event, SECRET)).await,
    ];
    app.settle().await;
    app.pass(2);
    answers
}

#[tokio::test]
async fn webhooks_are_refused_while_the_database_file_is_moved() {
    let app = TestApp::start_without_model().await;
    app.radarr().add(movie("Dune").year(2021).tmdb(438_631));
    app.radarr().download_and_import("Dune");
    assert_eq!(webhooks(&app).await, [200, 204, 200]);

    for (end, name) in [("", "database"), ("-wal", "write-ahead log")] {
        let (path, aside) = (app.database_path() + end, app.database_path() + ".aside");
        let stored = app.count("inbound_events").await;
        fs::rename(&path, &aside).unwrap();
        assert_eq!(webhooks(&app).await, [503; 3], "{name}");
        let missing = format!("database file: the {name} is missing");
        assert_eq!(wrong(&app, "/ready").await, (503, vec![missing]));
        // A restart would begin with an empty database.
        assert_eq!(wrong(&app, "/health").await, (200, vec![]));

        fs::write(&path, "").unwrap();
        assert_eq!(webhooks(&app).await, [503; 3], "{name}");
        let another = format!("database file: the {name} was replaced by another file");
        assert_eq!(wrong(&app, "/ready").await, (503, vec![another]));
        assert_eq!(app.count("inbound_events").await, stored);

        fs::rename(&aside, &path).unwrap();
        assert_eq!(webhooks(&app).await, [200, 204, 200], "{name}");
        assert_eq!(wrong(&app, "/ready").await, (200, vec![]));
    }
}

#[test]
fn doctor_detects_a_moved_database_of_the_service() {
    let cli = Cli::new();
    let served = cli.serve(&[AT_HOME, ANY_PORT]);
    let port = served.address.rsplit(':').next().unwrap().to_owned();
    fs::rename(cli.path("dialarr.db"), cli.path("moved.db")).unwrap();

    let ended = cli.run(&["doctor"], &[AT_HOME, ("PORT", &port)]);

    let message = "failure  service: database file: the database is missing\n         hint: restore the file";
    assert!(ended.output.contains(message), "{}", ended.output);
    assert_eq!(ended.code, Some(1));
}

/// Function that writes a file in place of the database.
type LayFile<'a> = &'a dyn Fn(&Cli);

/// Returns every file of the folder with its content.
fn files(cli: &Cli) -> Vec<(String, Vec<u8>)> {
    cli.names().into_iter().map(|name| (name.clone(), cli.read(&name))).collect()
}

fn cut_off(cli: &Cli, length: impl FnOnce(u64) -> u64) {
    cli.serve(&[AT_HOME, ANY_PORT]).terminate();
    let file = fs::OpenOptions::new().write(true).open(cli.path("dialarr.db")).unwrap();
    file.set_len(length(file.metadata().unwrap().len())).unwrap();
}

#[test]
fn foreign_database_file_is_refused_unchanged() {
    let songs = "CREATE TABLE songs (id INTEGER)";
    let faults: [(&str, LayFile); 5] = [
        ("it is not an SQLite database", &|cli| cli.write("dialarr.db", &"No database. ".repeat(400))),
        ("it is the database of another program", &|cli| {
            SqliteConnection::establish(&cli.path("dialarr.db")).unwrap().batch_execute(songs).unwrap();
        }),
        ("it is damaged or incomplete", &|cli| cut_off(cli, |length| length / 2)),
        ("it is missing or empty, but its write-ahead log is not", &|cli| {
            cut_off(cli, |_| 0);
            cli.write("dialarr.db-wal", "what was committed last");
        }),
        ("it is missing or empty, but its write-ahead log is not", &|cli| {
            cli.write("dialarr.db-wal", "what was committed last");
        }),
    ];
    for (fault, lay) in faults {
        let cli = Cli::new();
        lay(&cli);
        let before = files(&cli);
        let refused = cli.run(&["serve"], &[AT_HOME, ANY_PORT]);
        let message = refused.errors.lines().last().unwrap_or_default();
        assert!(message.starts_with(&format!("error: failed to use dialarr.db: {fault}")), "{message}");
        assert_eq!(refused.code, Some(78), "{fault}");
        assert_eq!(cli.run(&["users", "list"], &[]).code, Some(78), "{fault}");
        assert_eq!(files(&cli), before, "{fault}");
    }
}

#[test]
fn failed_or_killed_backup_leaves_no_copy() {
    let cli = Cli::new();
    cli.serve(&[AT_HOME, ANY_PORT]).terminate();
    let backup = |limit: &str| cli.run_script(&format!("{limit}exec \"$0\" backup copy.db"));

    let failed = backup(NO_ROOM);
    // The mark tells the service that the backup failed.
    let marked = ["dialarr.db", "dialarr.db.backup-failed"].map(str::to_owned).to_vec();
    assert_eq!((failed.code, cli.names()), (Some(1), marked), "{}", failed.errors);

    assert_eq!(backup(KILLED).code, None);
    assert!(!Path::new(&cli.path("copy.db")).exists());
    assert_eq!(backup("").code, Some(0));
    assert_eq!(cli.names(), ["copy.db", "dialarr.db"]);
}

#[test]
fn documented_nightly_copy_keeps_the_last_complete_file() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/BACKUP.md");
    let document = fs::read_to_string(document).unwrap();
    let line = document.lines().find_map(|line| line.strip_prefix("10 4 * * * dialarr ")).unwrap();
    let line = line.replace("\\%", "%").replace("/var/lib/dialarr", ".");
    let script = line.replace("dialarr backup", "\"$0\" backup");
    let cli = Cli::new();
    cli.serve(&[AT_HOME, ANY_PORT]).terminate();
    let night = |limit: &str| -> Ended { cli.run_script(&format!("{limit}{script}")) };

    assert_eq!(night("").code, Some(0));
    let names = cli.names();
    let copy = cli.read(&names[0]);
    assert!(names[0].starts_with("copy-") && copy.starts_with(b"SQLite format 3\0"), "{names:?}");
    for limit in [NO_ROOM, KILLED] {
        assert_ne!(night(limit).code, Some(0));
        assert_eq!(cli.read(&names[0]), copy);
    }
    assert_eq!(night("").code, Some(0));
    assert_eq!(cli.names(), names);
}
