//! Details of titles and servers, and the reasons for missing titles.

use dialarr::arr::fake::activity::download;
use dialarr::arr::fake::media_fixtures::{movie, series};
use jiff::Timestamp;
use jiff::civil::date;
use serde_json::{Value, json};

use crate::harness::model::{calls, finds, says};
use crate::harness::{BOB, Has, TestApp};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

impl TestApp {
    /// Lets the model find a title and call one tool about it. Returns the text of that tool.
    async fn asked(&self, title: &str, tool: &str, arguments: Value) -> String {
        self.model_plays([finds(title), calls(tool, arguments), says(""), says("")]);
        let reply = self.sms("tell me about it").await;
        // The search has a sentence of its own, which comes first.
        reply
            .split_once(". ")
            .filter(|(first, _)| first.starts_with("In the library"))
            .map_or_else(|| reply.clone(), |(_, rest)| rest.to_owned())
    }

    async fn why_is_movie_missing(&self, title: &str, id: i64) -> String {
        self.asked(title, "why_missing", json!({ "type": "movie", "id": id })).await
    }
}

#[tokio::test]
async fn movie_details_have_quality_size_and_date() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    assert_eq!(
        app.asked("dune", "media_details", json!({ "type": "movie", "id": dune })).await,
        "Dune (2021): on disk in WEBDL-1080p, 21.4 GB. Added Jan 1, 2024."
    );
}

#[tokio::test]
async fn series_details_list_each_season() {
    let app = TestApp::start().await;
    let show = series("The Bear").year(2022).seasons(2).episodes(6).size_gb(5.0).missing_episode(2, 3);
    let bear = app.sonarr().add(show.airs(2, 3, at("2026-11-24T01:00:00Z")));
    assert_eq!(
        app.asked("the bear", "media_details", json!({ "type": "series", "id": bear })).await,
        "The Bear (2022): 2 seasons, 5 of 6 episodes on disk, 5 GB. The next episode airs Tue Nov 24 at 01:00."
    );
    assert_eq!(
        app.asked("the bear", "media_details", json!({ "type": "series", "id": bear, "season": 2 })).await,
        "2 of 3 episodes of season 2 of The Bear (2022) are on disk. The next one airs Tue Nov 24 at 01:00."
    );
    let season: Value = serde_json::from_str(app.results().last().unwrap()).unwrap();
    assert_eq!(
        season["episodes"],
        json!([
            "E01 Episode 1: on disk",
            "E02 Episode 2: on disk",
            "E03 Episode 3: airs Tue Nov 24 at 01:00"
        ])
    );
}

#[tokio::test]
async fn unknown_season_is_not_a_failure_of_sonarr() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(series("The Bear").year(2022).seasons(2));
    let details = json!({ "type": "series", "id": bear, "season": 9 });
    app.model_plays([finds("the bear"), calls("media_details", details), says("It has two seasons.")]);
    assert_eq!(app.sms("season 9 of the bear?").await, "It has two seasons.");
    assert!(app.results().last().unwrap().contains("no_such_season"));
}

#[tokio::test]
async fn missing_movie_is_explained_in_one_sentence() {
    let app = TestApp::start().await;
    let radarr = app.radarr();
    let dune = radarr.add(movie("Dune").year(2021));
    assert_eq!(
        app.why_is_movie_missing("dune", dune).await,
        "Dune (2021) was not looked for yet. Shall I look now?"
    );
    radarr.edit(dune, |film| film.details.last_search = Some(at("2026-11-19T18:00:00Z")));
    assert_eq!(
        app.why_is_movie_missing("dune", dune).await,
        "Dune (2021) was last looked for yesterday: there was no copy in HD-1080p. Shall I look again?"
    );
    radarr.add_health_problem("error", "IndexerStatusCheck", "All indexers are unavailable due to failures");
    assert_eq!(
        app.why_is_movie_missing("dune", dune).await,
        "Dune (2021) can't be found right now (All indexers are unavailable due to failures). An admin has to look at it."
    );
    radarr.add_to_queue(download("Dune").stuck("No files found are eligible for import"));
    assert_eq!(
        app.why_is_movie_missing("dune", dune).await,
        "Dune (2021) is downloaded, and stuck (No files found are eligible for import). Shall I get another copy?"
    );
}

#[tokio::test]
async fn unmonitored_or_unreleased_movie_is_explained() {
    let app = TestApp::start().await;
    let radarr = app.radarr();
    let heat = radarr.add(movie("Heat").year(1995).unmonitored());
    let dune = radarr.add(movie("Dune: Part Three").year(2026).unreleased().digital(date(2026, 12, 18)));
    assert_eq!(
        app.why_is_movie_missing("heat", heat).await,
        "Heat (1995) is not looked for, because it is switched off. Shall I switch it on?"
    );
    assert_eq!(
        app.why_is_movie_missing("dune", dune).await,
        "Dune: Part Three (2026) is not out before Fri Dec 18, 2026. It is fetched when it is."
    );
}

#[tokio::test]
async fn user_who_may_not_add_is_not_offered_a_search() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::NoRights).await;
    let dune = app.radarr().add(movie("Dune").year(2021));
    let why = json!({ "type": "movie", "id": dune });
    app.model_plays([finds("dune"), calls("why_missing", why), says(""), says("")]);
    assert!(
        app.sms_from(BOB, "why is dune not here")
            .await
            .ends_with("Dune (2021) was not looked for yet. An admin can help.")
    );
}

#[tokio::test]
async fn stuck_download_is_no_task_for_a_user_who_may_not_delete() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    let dune = app.radarr().add(movie("Dune").year(2021));
    app.radarr().add_stuck_download("Dune", "No files found are eligible for import");
    let why = json!({ "type": "movie", "id": dune });
    app.model_plays([finds("dune"), calls("why_missing", why), says("It is stuck. An admin can help.")]);
    app.sms_from(BOB, "why is dune not here").await;
    let results = app.results();
    assert!(results[1].contains(r#""next_step":"an admin can remove the download""#), "{results:?}");
}

#[tokio::test]
async fn missing_part_of_a_show_is_explained() {
    let app = TestApp::start().await;
    let show = series("The Bear").year(2022).seasons(2).episodes(6).size_gb(5.0);
    let bear = app.sonarr().add(show.missing_episode(2, 1).missing_episode(2, 3).airs(
        2,
        3,
        at("2027-04-10T01:00:00Z"),
    ));
    let why = |more: Value| {
        let mut arguments = json!({ "type": "series", "id": bear });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    assert_eq!(
        app.asked("the bear", "why_missing", why(json!({}))).await,
        "The Bear (2022) S02E01 was not looked for yet. Shall I look now?"
    );
    assert_eq!(
        app.asked("the bear", "why_missing", why(json!({ "season": 2, "episode": 3 }))).await,
        "The Bear (2022) S02E03 is not out before Sat Apr 10, 2027. It is fetched when it is."
    );
    assert_eq!(
        app.asked("the bear", "why_missing", why(json!({ "season": 1 }))).await,
        "The Bear (2022) S01E01, E02, E03 is there, 3.8 GB."
    );
    app.sonarr().add_download("The Bear S02E01", 40, 12);
    assert_eq!(
        app.asked("the bear", "why_missing", why(json!({ "season": 2 }))).await,
        "It is on its way: The Bear S02E01 40%, 12 min left."
    );
}

#[tokio::test]
async fn reason_is_given_without_a_health_status() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021));
    app.radarr().add_health_problem("error", "UpdateCheck", "New update");
    assert_eq!(
        app.why_is_movie_missing("dune", dune).await,
        "Dune (2021) was not looked for yet. Shall I look now?"
    );
}

#[tokio::test]
async fn free_space_and_health_problems_are_shown_without_paths() {
    let app = TestApp::start().await;
    app.radarr().add_health_problem("error", "RootFolderCheck", "Missing root folder: /mnt/films");
    app.radarr().add_health_problem("notice", "UpdateCheck", "New update is available");
    app.model_plays([calls("server_status", json!({})), says(""), says("")]);
    assert_eq!(
        app.sms("how much space is left").await,
        "Radarr: 1.2 TB free, no folder for it. It says: Missing root folder. Sonarr: 1.2 TB free, no problems."
            .replace(", no folder for it", "")
    );
    app.sonarr().set_down(true);
    app.radarr().clear_health_problems();
    app.model_plays([calls("server_status", json!({})), says(""), says("")]);
    assert_eq!(
        app.sms("and now").await,
        "Radarr: 1.2 TB free, no problems. Sonarr can't be reached right now."
    );
}
