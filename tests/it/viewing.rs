//! Deletions of a household with a media server: nothing is deleted while somebody is watching it.

use std::time::Duration;

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::media_servers::CatalogIds;
use jiff::SignedDuration;
use serde_json::json;

use crate::harness::model::{finds, removes, removes_movie, removes_movies, says};
use crate::harness::{Setup, TestApp};

const DUNE: i64 = 438_631;
const HEAT: i64 = 949;
const THE_BEAR: i64 = 403_294;
const PROMPT: &str = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
const BLIND_PROMPT: &str =
    "Delete Dune (2021) and its file, 21.4 GB? I can't see whether someone is watching. Reply YES or NO.";
const DELETED: &str = "Deleted Dune (2021). Freed 21.4 GB.";
const WATCHED: &str = "Someone is watching Dune (2021) right now, so I kept it.";

/// Household whose Jellyfin has Dune and Heat, and a person who can watch them.
struct Home {
    app: TestApp,
    viewer: u64,
    dune: u64,
}

impl Home {
    async fn start() -> Self {
        let app = Setup::default().jellyfin().start().await;
        app.radarr().add(movie("Dune").id(7).tmdb(DUNE).year(2021).size_gb(21.4));
        app.radarr().add(movie("Heat").id(8).tmdb(HEAT).year(1995).size_gb(18.2));
        let add = |title, tmdb| {
            let ids = CatalogIds { tmdb: Some(tmdb), ..CatalogIds::default() };
            app.jellyfin().add_movie(title, ids, SignedDuration::ZERO)
        };
        let dune = add(("Dune", 2021), DUNE);
        add(("Heat", 1995), HEAT);
        let viewer = app.jellyfin().add_user("Cleo");
        Self { app, viewer, dune }
    }

    fn watch_dune(&self) {
        self.app.jellyfin().start_playing(self.viewer, self.dune);
    }

    fn has_dune(&self) -> bool {
        !self.app.radarr().removed_ids().contains(&7)
    }

    async fn ask_to_delete_dune(&self) -> String {
        self.app.model_plays(removes_movie("dune", 7));
        self.app.sms("delete dune").await
    }
}

#[tokio::test]
async fn title_that_nobody_watches_is_deleted_as_usual() {
    let home = Home::start().await;
    assert_eq!(home.ask_to_delete_dune().await, PROMPT);
    assert_eq!(home.app.sms("yes").await, DELETED);
    assert!(!home.has_dune());
}

#[tokio::test]
async fn title_that_is_playing_is_not_asked_about() {
    let home = Home::start().await;
    home.watch_dune();
    let [finds, removes] = removes_movie("dune", 7);
    home.app.model_plays([finds, removes, says("It was kept.")]);
    assert_eq!(home.app.sms("delete dune").await, "It was kept.");
    let results = home.app.results();
    assert!(results.iter().any(|result| result.contains("being_watched")), "{results:?}");
    home.app.sms("yes").await;
    assert!(home.has_dune());
}

#[tokio::test]
async fn title_that_starts_to_play_after_the_prompt_is_kept() {
    let home = Home::start().await;
    assert_eq!(home.ask_to_delete_dune().await, PROMPT);
    home.watch_dune();
    assert_eq!(home.app.sms("yes").await, WATCHED);
    assert!(home.has_dune());
}

#[tokio::test]
async fn yes_counts_if_the_prompt_said_that_nobody_can_tell() {
    let home = Home::start().await;
    home.app.jellyfin().set_status(Some(500));
    assert_eq!(home.ask_to_delete_dune().await, BLIND_PROMPT);
    assert_eq!(home.app.sms("yes").await, DELETED);
    assert!(!home.has_dune());
}

/// Answers the prompt about Dune while the server does not answer, and runs a statement in the meantime. Returns the reply.
async fn reply_after_a_change_during_the_check(change: &'static str) -> (Home, String) {
    let home = Home::start().await;
    home.app.jellyfin().set_status(Some(500));
    assert_eq!(home.ask_to_delete_dune().await, BLIND_PROMPT);
    home.app.jellyfin().set_status(None);
    home.app.jellyfin().set_silent(true);
    let asked = home.app.jellyfin().requests().len();
    let during_the_check = async {
        while home.app.jellyfin().requests().len() == asked {
            tokio::task::yield_now().await;
        }
        home.app.run_statement(change).await;
        // The program waits for the server alone, up to eight seconds.
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(9)).await;
        tokio::time::resume();
    };
    let (reply, ()) = tokio::join!(home.app.sms("yes"), during_the_check);
    (home, reply)
}

#[tokio::test]
async fn right_lost_while_the_server_is_asked_keeps_the_title() {
    let change = "UPDATE users SET role = 'member', can_delete = 0";
    let (home, reply) = reply_after_a_change_during_the_check(change).await;
    assert_eq!(reply, "You may not delete titles, so I kept Dune (2021).");
    assert!(home.has_dune());
}

#[tokio::test]
async fn deletion_canceled_while_the_server_is_asked_keeps_the_title() {
    let change = "UPDATE turns SET cancel_requested_at = created_at WHERE finished_at IS NULL";
    let (home, reply) = reply_after_a_change_during_the_check(change).await;
    assert_eq!(reply, "I was interrupted and kept Dune (2021).");
    assert!(home.has_dune());
}

#[tokio::test]
async fn title_is_kept_if_it_turns_out_to_be_playing_after_all() {
    let home = Home::start().await;
    home.app.jellyfin().set_status(Some(500));
    assert_eq!(home.ask_to_delete_dune().await, BLIND_PROMPT);
    home.app.jellyfin().set_status(None);
    home.watch_dune();
    assert_eq!(home.app.sms("yes").await, WATCHED);
    assert!(home.has_dune());
}

#[tokio::test]
async fn prompt_is_repeated_if_the_server_stops_answering() {
    let home = Home::start().await;
    assert_eq!(home.ask_to_delete_dune().await, PROMPT);
    home.app.jellyfin().set_status(Some(500));
    let repeated =
        format!("I can no longer see whether someone is watching Dune (2021), so I kept it. {BLIND_PROMPT}");
    assert_eq!(home.app.sms("yes").await, repeated);
    assert!(home.has_dune());
    assert_eq!(home.app.sms("yes").await, DELETED);
    assert!(!home.has_dune());
}

#[tokio::test]
async fn other_titles_of_the_request_are_asked_about() {
    let home = Home::start().await;
    home.watch_dune();
    home.app.model_plays(removes_movies(&[("dune", 7), ("heat", 8)]));
    let prompt = format!("{WATCHED} Delete Heat (1995) and its file, 18.2 GB? Reply YES or NO.");
    assert_eq!(home.app.sms("delete dune and heat").await, prompt);
    home.app.sms("yes").await;
    assert!(home.has_dune() && home.app.radarr().removed_ids() == [8]);
}

#[tokio::test]
async fn other_season_of_a_show_may_be_watched_meanwhile() {
    let home = Home::start().await;
    home.app
        .sonarr()
        .add(series("The Bear").id(4).tvdb(THE_BEAR).year(2022).seasons(2).episodes(20).size_gb(40.0));
    let ids = CatalogIds { tvdb: Some(THE_BEAR), ..CatalogIds::default() };
    let bear = home.app.jellyfin().add_show(("The Bear", 2022), ids, SignedDuration::ZERO);
    let episode = home.app.jellyfin().add_episode(bear, (2, 1));
    home.app.jellyfin().start_playing(home.viewer, episode);
    let removes_season = |season: u32| {
        let items = json!([{ "type": "series", "id": 4, "season": season }]);
        [finds("the bear"), removes(&items)]
    };
    home.app.model_plays(removes_season(1));
    let prompt = home.app.sms("delete season 1 of the bear").await;
    assert!(prompt.starts_with("Delete season 1 of The Bear (2022)"), "{prompt}");
    home.app.sms("no").await;
    let [finds, removes] = removes_season(2);
    home.app.model_plays([finds, removes, says("It was kept.")]);
    assert_eq!(home.app.sms("delete season 2 of the bear").await, "It was kept.");
}
