//! Deletions of parts of a title, with prompts like any deletion: a season, a copy, a download.

use dialarr::arr::fake::activity::download;
use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::llm::scripted::ScriptedReply;
use jiff::Timestamp;
use serde_json::json;

use crate::harness::TestApp;
use crate::harness::model::{calls, finds, removes, says};

const NO_TITLES: [&str; 0] = [];

fn yesterday() -> Timestamp {
    "2026-03-05T10:00:00Z".parse().unwrap()
}

fn removes_season(series: i64, season: u32) -> [ScriptedReply; 2] {
    [finds("the bear"), removes(&json!([{ "type": "series", "id": series, "season": season }]))]
}

fn replaces_movie(id: i64) -> [ScriptedReply; 2] {
    [finds("dune"), calls("replace_copy", json!({ "type": "movie", "id": id }))]
}

fn removes_download(instance: &str, id: i64, replace: bool) -> [ScriptedReply; 2] {
    let arguments = json!({ "download_id": id, "instance": instance, "replace": replace });
    [calls("check_status", json!({})), calls("remove_download", arguments)]
}

impl TestApp {
    /// Starts with a show of three seasons on disk, and with a prompt to Ann about the second one.
    async fn asked_about_season_two(&self) -> i64 {
        let show = series("The Bear").year(2022).seasons(3).episodes(6).size_gb(12.0);
        let bear = self.sonarr().add(show);
        self.model_plays(removes_season(bear, 2));
        assert_eq!(
            self.sms("delete season 2 of the bear").await,
            "Delete season 2 of The Bear (2022), 2 files, 4 GB, and no longer search for it? Reply YES or NO."
        );
        bear
    }

    /// Starts with a movie that was downloaded yesterday, and with a prompt to Ann about its replacement.
    async fn asked_for_another_dune(&self) -> i64 {
        let dune = self.radarr().add(movie("Dune").year(2021).size_gb(21.4));
        self.radarr().add_import("Dune", yesterday());
        self.radarr().add_release("Dune");
        self.model_plays(replaces_movie(dune));
        assert_eq!(
            self.sms("dune has no sound, get another copy").await,
            "Delete this copy of Dune (2021), 21.4 GB, and look for another one? Reply YES or NO."
        );
        dune
    }
}

#[tokio::test]
async fn deleted_season_is_unmonitored() {
    let app = TestApp::start().await;
    let bear = app.asked_about_season_two().await;
    assert_eq!(app.sonarr().action_record().deleted_files, NO_TITLES);

    assert_eq!(app.sms("yes").await, "Deleted season 2 of The Bear (2022). Freed 4 GB.");
    let show = app.sonarr().title(bear).unwrap();
    assert_eq!(show.episodes_on_disk(), [(1, 1), (1, 2), (3, 1), (3, 2)]);
    assert_eq!(show.monitored_episodes(), [(1, 1), (1, 2), (3, 1), (3, 2)]);
    app.sonarr().add_release("The Bear S02");
    app.sonarr().run_rss();
    assert_eq!(app.sonarr().action_record().searches, NO_TITLES);
    assert_eq!(app.sms("yes").await, "Already done: season 2 of The Bear (2022) is deleted.");
}

#[tokio::test]
async fn monitored_episode_does_not_restore_its_deleted_season() {
    let app = TestApp::start().await;
    let bear = app.asked_about_season_two().await;
    app.sonarr().edit(bear, |show| *show = show.clone().unmonitored_episode(2, 1));

    app.sms("yes").await;
    assert_eq!(app.sonarr().title(bear).unwrap().monitored_episodes(), [(1, 1), (1, 2), (3, 1), (3, 2)]);
}

#[tokio::test]
async fn season_with_a_new_file_is_kept_and_prompted_again() {
    let app = TestApp::start().await;
    let show = series("The Bear").year(2022).seasons(3).episodes(6).size_gb(10.0).missing_episode(2, 2);
    let bear = app.sonarr().add(show);
    app.model_plays(removes_season(bear, 2));
    app.sms("delete season 2 of the bear").await;
    app.sonarr().add_to_queue(download("The Bear S02E02").size_gb(2.0));
    app.sonarr().finish_download("The Bear S02E02");

    assert_eq!(
        app.sms("yes").await,
        "Season 2 of The Bear (2022) changed since I asked, so I kept it. \
         Delete season 2 of The Bear (2022), 2 files, 4 GB, and no longer search for it? Reply YES or NO."
    );
    assert_eq!(app.sonarr().title(bear).unwrap().episodes_on_disk().len(), 6);
    assert_eq!(app.sms("yes").await, "Deleted season 2 of The Bear (2022). Freed 4 GB.");
}

#[tokio::test]
async fn season_without_files_is_not_prompted() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(series("The Bear").year(2022).seasons(2));
    app.model_plays(removes_season(bear, 2).into_iter().chain([says("There is nothing to delete.")]));
    assert_eq!(app.sms("delete season 2 of the bear").await, "There is nothing to delete.");
    assert_eq!(app.sonarr().title(bear).unwrap().monitored_episodes().len(), 16);
}

#[tokio::test]
async fn season_is_deleted_completely_despite_a_lost_response() {
    let app = TestApp::start().await;
    let bear = app.asked_about_season_two().await;
    app.sonarr().complete_next_write_with_status(502);

    assert_eq!(app.sms("yes").await, "Deleted season 2 of The Bear (2022). Freed 4 GB.");
    assert_eq!(app.sonarr().title(bear).unwrap().episodes_on_disk().len(), 4);
}

#[tokio::test]
async fn replaced_copy_is_deleted_blocklisted_and_searched_again() {
    let app = TestApp::start().await;
    let dune = app.asked_for_another_dune().await;
    assert_eq!(app.radarr().action_record().deleted_files, NO_TITLES);

    assert_eq!(app.sms("yes").await, "Deleted this copy of Dune (2021). I am looking for another copy.");
    let record = app.radarr().action_record();
    assert_eq!(record.deleted_files, ["Dune"]);
    assert_eq!(record.blocklist, ["Dune.1080p.WEB.H264-DEMO"]);
    assert!(app.radarr().title(dune).unwrap().monitored);
    app.radarr().finish_download("Dune");
    assert!(app.radarr().title(dune).unwrap().size_bytes > 0, "the other copy was on its way");
}

#[tokio::test]
async fn server_without_automatic_replacement_is_told_to_search() {
    let app = TestApp::start().await;
    app.radarr().set_replaces_failed(false);
    app.asked_for_another_dune().await;

    app.sms("yes").await;
    let record = app.radarr().action_record();
    assert_eq!((record.searches.len(), record.blocklist.len()), (1, 1));
}

#[tokio::test]
async fn copy_without_a_known_release_blocklists_nothing() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4).unmonitored());
    app.model_plays(replaces_movie(dune));
    app.sms("dune is broken, replace it").await;

    assert_eq!(app.sms("yes").await, "Deleted this copy of Dune (2021). I am looking for another copy.");
    let record = app.radarr().action_record();
    assert_eq!((record.searches.len(), record.blocklist.len()), (1, 0));
    assert!(app.radarr().title(dune).unwrap().monitored);
}

#[tokio::test]
async fn replacement_runs_once_despite_lost_responses() {
    for lost in 0..2 {
        let app = TestApp::start().await;
        app.asked_for_another_dune().await;
        for _ in 0..lost {
            app.radarr().allow_next_write();
        }
        app.radarr().complete_next_write_with_status(502);

        assert_eq!(
            app.sms("yes").await,
            "Deleted this copy of Dune (2021). I am looking for another copy.",
            "{lost}"
        );
        let record = app.radarr().action_record();
        assert_eq!((record.deleted_files.len(), record.blocklist.len()), (1, 1), "{lost}");
    }
}

#[tokio::test]
async fn copy_that_changed_meanwhile_is_kept() {
    let app = TestApp::start().await;
    let dune = app.asked_for_another_dune().await;
    app.radarr().edit(dune, |film| film.size_bytes = 40_000_000_000);

    assert_eq!(
        app.sms("yes").await,
        "This copy of Dune (2021) changed since I asked, so I kept it. \
         Delete this copy of Dune (2021), 40 GB, and look for another one? Reply YES or NO."
    );
    assert_eq!(app.radarr().action_record().deleted_files, NO_TITLES);
}

#[tokio::test]
async fn only_the_selected_episode_is_replaced() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(series("The Bear").year(2022).seasons(2).episodes(6).size_gb(6.0));
    app.sonarr().add_import("The Bear S02E03", yesterday());
    app.sonarr().add_release("The Bear S02E03");
    let replace = json!({ "type": "series", "id": bear, "season": 2, "episodes": [3] });
    app.model_plays([finds("the bear"), calls("replace_copy", replace)]);
    assert_eq!(
        app.sms("the bear s2e3 is out of sync").await,
        "Delete this copy of The Bear (2022) S02E03, 1 GB, and look for another one? Reply YES or NO."
    );

    assert_eq!(
        app.sms("yes").await,
        "Deleted this copy of The Bear (2022) S02E03. I am looking for another copy."
    );
    let record = app.sonarr().action_record();
    assert_eq!(record.deleted_files, ["The Bear S02E03"]);
    assert_eq!(record.blocklist, ["The.Bear.S02E03.1080p.WEB.H264-DEMO"]);
    assert!(record.searches.iter().all(|search| search == "The Bear S02E03"), "{:?}", record.searches);
    assert_eq!(app.sonarr().title(bear).unwrap().episodes_on_disk().len(), 5);
}

#[tokio::test]
async fn replacement_in_a_show_needs_a_season() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(series("The Bear").year(2022).seasons(2).size_gb(6.0));
    let replace = calls("replace_copy", json!({ "type": "series", "id": bear }));
    app.model_plays([finds("the bear"), replace, says("Which season?")]);
    assert_eq!(app.sms("my copy of the bear is bad").await, "Which season?");
}

#[tokio::test]
async fn stuck_download_is_removed_and_replaced() {
    let app = TestApp::start().await;
    app.radarr().add(movie("Dune").year(2021));
    app.radarr().add_stuck_download("Dune", "No files found");
    app.radarr().add_release("Dune");
    app.model_plays(removes_download("radarr", 1000, true));
    assert_eq!(
        app.sms("that stuck download, get another one").await,
        "Remove the download of Dune (2021) and look for another copy? Reply YES or NO."
    );

    assert_eq!(app.sms("yes").await, "Removed the download of Dune (2021). I am looking for another copy.");
    let record = app.radarr().action_record();
    assert_eq!((record.discarded, record.searches), (vec!["Dune".to_owned()], vec!["Dune".to_owned()]));
    assert_eq!(record.blocklist, ["Dune.1080p.WEB.H264-DEMO"]);
}

#[tokio::test]
async fn unwanted_download_is_removed_without_a_search() {
    let app = TestApp::start().await;
    app.sonarr().add(series("The Bear").seasons(2));
    app.sonarr().add_download("The Bear S02", 40, 30);
    app.sonarr().add_release("The Bear S02");
    app.model_plays(removes_download("sonarr", 1001, false));
    assert_eq!(
        app.sms("cancel the bear download").await,
        "Remove the download of The Bear season 2 without looking for another copy? Reply YES or NO."
    );

    assert_eq!(app.sms("yes").await, "Removed the download of The Bear season 2.");
    let record = app.sonarr().action_record();
    assert_eq!((record.discarded, record.searches), (vec!["The Bear S02".to_owned()], vec![]));
}

#[tokio::test]
async fn download_that_finished_meanwhile_is_not_touched() {
    let app = TestApp::start().await;
    app.radarr().add(movie("Dune").year(2021));
    app.radarr().add_download("Dune", 90, 1);
    app.model_plays(removes_download("radarr", 1000, false));
    app.sms("kill that download").await;
    app.radarr().finish_download("Dune");

    assert_eq!(app.sms("yes").await, "The download of Dune (2021) was already gone.");
    assert_eq!(app.radarr().action_record().discarded, NO_TITLES);
}

#[tokio::test]
async fn download_is_removed_once_despite_a_lost_response() {
    let app = TestApp::start().await;
    app.radarr().add(movie("Dune").year(2021));
    app.radarr().add_download("Dune", 40, 30);
    app.model_plays(removes_download("radarr", 1000, true));
    app.sms("kill that download and get another").await;
    app.radarr().complete_next_write_with_status(502);

    assert_eq!(app.sms("yes").await, "Removed the download of Dune (2021). I am looking for another copy.");
    assert_eq!(app.radarr().action_record().discarded, ["Dune"]);
}

#[tokio::test]
async fn replacement_needs_a_complaint_of_the_user() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(replaces_movie(dune).into_iter().chain([says("It is there.")]));
    assert_eq!(app.sms("how are you today").await, "It is there.");
    assert_eq!(app.radarr().action_record().deleted_files, NO_TITLES);
}

#[tokio::test]
async fn partly_deleted_copy_is_replaced_completely() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(series("The Bear").year(2022).seasons(2).episodes(10).size_gb(10.0));
    app.sonarr().add_import("The Bear S02", yesterday());
    app.model_plays([
        finds("the bear"),
        calls("replace_copy", json!({ "type": "series", "id": bear, "season": 2 })),
    ]);
    assert_eq!(
        app.sms("season 2 of the bear has no sound, get another copy").await,
        "Delete this copy of 5 episodes of season 2 of The Bear (2022), 5 GB, and look for another one? \
         Reply YES or NO."
    );
    // Two files are deleted before the confirmed deletion runs, as after an interrupted run.
    app.sonarr().edit(bear, |show| *show = show.clone().missing_episode(2, 1).missing_episode(2, 2));

    app.sms("yes").await;
    assert!(app.sonarr().action_record().searches.contains(&"The Bear S02".to_owned()));
    assert_eq!(app.sonarr().action_record().blocklist.len(), 1);
    assert_eq!(app.sonarr().title(bear).unwrap().episodes_on_disk().len(), 5);
}

#[tokio::test]
async fn season_stays_monitored_after_a_failed_deletion() {
    let app = TestApp::start().await;
    let bear = app.asked_about_season_two().await;
    let wanted = app.sonarr().title(bear).unwrap().monitored_episodes();
    app.sonarr().allow_next_write();
    app.sonarr().fail_next_write(409);

    app.sms("yes").await;
    let show = app.sonarr().title(bear).unwrap();
    assert_eq!((show.monitored_episodes(), show.episodes_on_disk().len()), (wanted, 6));
}

#[tokio::test]
async fn season_is_monitored_again_after_repeated_failed_deletions() {
    let app = TestApp::start().await;
    let bear = app.asked_about_season_two().await;
    let wanted = app.sonarr().title(bear).unwrap().monitored_episodes();
    // Each run unmonitors the season first, and then fails to delete its files.
    app.sonarr().fail_writes_to("/episodefile/bulk", 500);

    assert_eq!(
        app.sms("yes").await,
        "Sonarr could not do all of it. Please check season 2 of The Bear (2022)."
    );
    let show = app.sonarr().title(bear).unwrap();
    assert_eq!((show.monitored_episodes(), show.episodes_on_disk().len()), (wanted, 6));
    assert!(show.details.seasons[1].monitored);
}

#[tokio::test]
async fn specials_stay_monitored_after_a_failed_deletion() {
    let app = TestApp::start().await;
    let mut show = series("The Bear").year(2022).seasons(1).episodes(2).size_gb(4.0);
    show.details.specials_monitored = true;
    let bear = app.sonarr().add(show.specials(2));
    app.model_plays(removes_season(bear, 0));
    app.sms("delete the specials of the bear").await;
    app.sonarr().allow_next_write();
    app.sonarr().fail_next_write(409);

    app.sms("yes").await;
    let show = app.sonarr().title(bear).unwrap();
    assert_eq!(show.monitored_episodes(), [(1, 1), (1, 2), (0, 1), (0, 2)]);
    assert!(show.details.specials_monitored);
}
