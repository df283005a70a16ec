//! Yes, no, late, twice, something else entirely.

use dialarr::arr::fake::item::{movie, series};
use serde_json::json;

use crate::harness::TestApp;
use crate::harness::model::{calls, removes_movie};

#[tokio::test]
async fn a_second_yes_deletes_nothing_more() {
    let app = TestApp::start().await;
    let severance = app.sonarr().add(series("Severance").year(2022).seasons(2).size_gb(41.0));
    app.model_plays([
        calls("find_in_library", json!({ "query": "severance" })),
        calls(
            "remove_media",
            json!({ "items": [{ "type": "series", "id": severance }], "delete_files": true }),
        ),
    ]);

    assert_eq!(
        app.sms("delete severance").await,
        "Delete Severance (2022), 2 seasons and the files, 41 GB? Reply YES or NO."
    );
    assert_eq!(app.sms("yes").await, "Deleted Severance (2022). Freed 41 GB.");
    assert_eq!(app.sms("yes").await, "Already done: Severance (2022) is deleted.");

    assert_eq!(app.sonarr().removals(), [severance]);
}

#[tokio::test]
async fn an_item_that_changed_is_kept_and_asked_about_afresh() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));

    app.sms("delete dune").await;
    app.radarr().edit(dune, |item| item.size_bytes = 30_000_000_000);

    assert_eq!(
        app.sms("yes").await,
        "Dune (2021) changed since I asked, so I kept it. Delete Dune (2021) and its file, 30 GB? Reply YES or NO."
    );
    assert_eq!(app.radarr().removals(), Vec::<i64>::new());
    assert_eq!(app.sms("yes").await, "Deleted Dune (2021). Freed 30 GB.");
}
