//! The file that everything is in: it is moved or replaced while the program runs.

use std::fs;

use dialarr::arr::fake::item::movie;

use crate::harness::cli::Cli;
use crate::harness::reports::{SECRET, report};
use crate::harness::{ANN, TestApp};
use crate::health::wrong;

const AT_HOME: (&str, &str) = ("HOST", "127.0.0.1");
const ANY_PORT: (&str, &str) = ("PORT", "0");

/// Statuses of the answers to a text, a status callback and a report of Radarr.
async fn webhooks(app: &TestApp) -> [u16; 3] {
    let event = app.radarr().import_report("Dune");
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
async fn nothing_is_acknowledged_while_a_file_is_not_at_its_path() {
    let app = TestApp::start_without_model().await;
    app.radarr().add(movie("Dune").year(2021).tmdb(438_631));
    app.radarr().imports("Dune");
    assert_eq!(webhooks(&app).await, [200, 204, 200]);

    for (end, name) in [("", "database"), ("-wal", "write-ahead log")] {
        let (path, aside) = (app.database_path() + end, app.database_path() + ".aside");
        let stored = app.count("inbound_events").await;
        fs::rename(&path, &aside).unwrap();
        assert_eq!(webhooks(&app).await, [503; 3], "{name}");
        let missing = format!("database file: no file is at the path of the {name}");
        assert_eq!(wrong(&app, "/ready").await, (503, vec![missing]));
        // A restart would begin with an empty database.
        assert_eq!(wrong(&app, "/health").await, (200, vec![]));

        fs::write(&path, "").unwrap();
        assert_eq!(webhooks(&app).await, [503; 3], "{name}");
        let another = format!("database file: another file is at the path of the {name}");
        assert_eq!(wrong(&app, "/ready").await, (503, vec![another]));
        assert_eq!(app.count("inbound_events").await, stored);

        fs::rename(&aside, &path).unwrap();
        assert_eq!(webhooks(&app).await, [200, 204, 200], "{name}");
        assert_eq!(wrong(&app, "/ready").await, (200, vec![]));
    }
}

#[test]
fn doctor_finds_that_the_database_of_the_service_was_moved() {
    let cli = Cli::new();
    let served = cli.serve(&[AT_HOME, ANY_PORT]);
    let port = served.address.rsplit(':').next().unwrap().to_owned();
    fs::rename(cli.path("dialarr.db"), cli.path("moved.db")).unwrap();

    let ended = cli.run(&["doctor"], &[AT_HOME, ("PORT", &port)]);

    let said = "failure  service: database file: no file is at the path of the database\n         hint: put the file back";
    assert!(ended.output.contains(said), "{}", ended.output);
    assert_eq!(ended.code, Some(1));
}
