//! Quotas of additions and rate limits of messages.

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::conversation::rate_limit::RateLimit;
use jiff::SignedDuration;
use serde_json::json;

use crate::harness::model::{adds_movie, calls, removes_movie, says};
use crate::harness::{ANN, BOB, Has, TestApp};

const DAY: i64 = 24 * 60 * 60;

fn a_week(most: u32) -> Option<RateLimit> {
    Some(RateLimit { max: most, period: SignedDuration::from_hours(7 * 24) })
}

/// Starts with a weekly quota of two movies and three seasons for Bob.
async fn app_with_small_quotas() -> TestApp {
    let app = TestApp::with(|settings| {
        settings.quotas.movies = a_week(2);
        settings.quotas.seasons = a_week(3);
    })
    .await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    for (title, tmdb) in [("Alien", 348), ("Heat", 949), ("Arrival", 329_865), ("Sicario", 273_481)] {
        app.radarr().add_to_catalog(movie(title).year(2000).tmdb(tmdb));
    }
    app.sonarr().add_to_catalog(series("Severance").year(2022).tvdb(371_980).seasons(2));
    app.sonarr().add_to_catalog(series("Dark").year(2017).tvdb(334_824).seasons(2));
    app
}

async fn adds(app: &TestApp, who: &str, title: &str, tmdb: i64) -> String {
    let [searches, adds] = adds_movie(title, tmdb);
    app.model_plays([searches, adds, says("OK.")]);
    app.sms_from(who, &format!("add {title}")).await;
    app.results().pop().unwrap()
}

#[tokio::test]
async fn member_adds_up_to_the_quota_and_learns_its_renewal() {
    let app = app_with_small_quotas().await;
    adds(&app, BOB, "Alien", 348).await;
    app.pass(DAY);
    adds(&app, BOB, "Heat", 949).await;
    let refused = adds(&app, BOB, "Arrival", 329_865).await;
    assert_eq!(
        refused,
        r#"{"ask":"Ann","error":"quota","free_again":"Fri Nov 27 at 21:04","hint":"not added; tell the user the limit, when there is room again and whom to ask","left":0,"limit":"2 movies within 7 days"}"#
    );
    assert_eq!(app.radarr().added_ids(), [348, 949]);

    app.pass(6 * DAY);
    adds(&app, BOB, "Arrival", 329_865).await;
    assert_eq!(app.radarr().added_ids(), [348, 949, 329_865]);
}

#[tokio::test]
async fn quota_refusal_without_a_model_is_a_plain_sentence() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_user(BOB, Has::AddRight).await;
    app.sms("quota +15550100003 -9").await;
    app.radarr().add_to_catalog(movie("Alien").year(1979).tmdb(348));
    app.radarr().add_to_catalog(movie("Heat").year(1995).tmdb(949));
    assert_eq!(app.sms_from(BOB, "add alien").await, "Added Alien (1979).");
    assert_eq!(
        app.sms_from(BOB, "add heat").await,
        "That is over your limit of 1 movie within 7 days. There is room again on Fri Nov 27 at 21:04. Ask Ann if \
         you need more."
    );
}

#[tokio::test]
async fn existing_title_does_not_count_towards_the_quota() {
    let app = app_with_small_quotas().await;
    adds(&app, BOB, "Alien", 348).await;
    assert!(adds(&app, BOB, "Alien", 348).await.contains("already_exists"));
    adds(&app, BOB, "Heat", 949).await;
    assert!(adds(&app, BOB, "Alien", 348).await.contains("already_exists"));
    assert_eq!(app.radarr().added_ids(), [348, 949]);
}

#[tokio::test]
async fn deferred_additions_count_towards_the_quota() {
    let app = app_with_small_quotas().await;
    for (title, tmdb) in [("Alien", 348), ("Heat", 949), ("Arrival", 329_865)] {
        let [searches, adds] = adds_movie(title, tmdb);
        app.model_plays([searches, says("That one?"), adds, says("Well.")]);
        app.radarr().set_down(false);
        app.sms_from(BOB, &format!("search {title}")).await;
        app.radarr().set_down(true);
        app.sms_from(BOB, "add it").await;
    }
    assert!(app.results().pop().unwrap().contains("2 movies within 7 days"));
    assert_eq!(
        app.requests().await,
        ["+15550100003 queued radarr Alien (2000)", "+15550100003 queued radarr Heat (2000)"]
    );
}

#[tokio::test]
async fn show_counts_by_its_seasons() {
    let app = app_with_small_quotas().await;
    for (title, tvdb) in [("severance", 371_980), ("dark", 334_824)] {
        let searches = calls("search_media", json!({ "query": title }));
        app.model_plays([searches, calls("add_series", json!({ "tvdb": tvdb })), says("OK.")]);
        app.sms_from(BOB, &format!("add {title}")).await;
    }
    assert!(app.results().last().unwrap().contains("3 seasons within 7 days"));
    assert_eq!(app.sonarr().added_ids(), [371_980]);
}

#[tokio::test]
async fn admin_has_no_quota() {
    let app = app_with_small_quotas().await;
    for (title, tmdb) in [("Alien", 348), ("Heat", 949), ("Arrival", 329_865), ("Sicario", 273_481)] {
        adds(&app, ANN, title, tmdb).await;
    }
    assert_eq!(app.radarr().added_ids().len(), 4);
}

#[tokio::test]
async fn admin_raises_a_quota_by_message() {
    let app = app_with_small_quotas().await;
    adds(&app, BOB, "Alien", 348).await;
    adds(&app, BOB, "Heat", 949).await;
    assert_eq!(app.sms("quota bob").await, "Bob may add 2 movies within 7 days and 3 seasons within 7 days.");
    assert_eq!(
        app.sms("quota Bob +1").await,
        "Bob may add 3 movies within 7 days and 4 seasons within 7 days."
    );
    adds(&app, BOB, "Arrival", 329_865).await;
    assert_eq!(app.radarr().added_ids().len(), 3);
    assert_eq!(
        app.sms("quota Bob -100").await,
        "Bob may add 0 movies within 7 days and 0 seasons within 7 days."
    );
    assert_eq!(app.sms("quota Ann +5").await, "Ann is an admin and has no limit.");
    assert_eq!(app.sms("quota Zoe +5").await, "No user is named Zoe. Text USERS for the list.");
}

#[tokio::test]
async fn users_of_one_name_are_distinguished_by_number() {
    let app = app_with_small_quotas().await;
    app.register_named_user("Bob", "+15550100004", Has::AddRight).await;
    assert_eq!(
        app.sms("quota bob +5").await,
        "Several users are named bob. Use a phone number: +1 555 010 0003, +1 555 010 0004."
    );
    assert_eq!(
        app.sms("quota +1 555 010 0004 +5").await,
        "Bob may add 7 movies within 7 days and 8 seasons within 7 days."
    );
}

#[tokio::test]
async fn addition_with_a_lost_response_counts_once() {
    let mut app = app_with_small_quotas().await;
    app.sms("quota Bob +1").await;
    adds(&app, BOB, "Alien", 348).await;
    app.radarr().complete_next_write_with_status(500);
    let [searches, adds_heat] = adds_movie("Heat", 949);
    app.model_plays([searches, adds_heat, says("OK.")]);
    app.sms_from(BOB, "add heat").await;
    app.restart().await;
    adds(&app, BOB, "Arrival", 329_865).await;
    assert!(adds(&app, BOB, "Sicario", 273_481).await.contains("quota"));
    assert_eq!(app.radarr().added_ids(), [348, 949, 329_865]);
}

#[tokio::test]
async fn messages_over_the_rate_limit_get_one_reply() {
    let app = TestApp::start().await;
    app.model_plays((0..10).map(|_| says("Fine.")));
    for n in 0..10 {
        assert_eq!(app.sms(&format!("tell me about film {n}")).await, "Fine.");
    }
    assert_eq!(
        app.sms("tell me about film 10").await,
        "That is more than 10 texts within a minute, so I ignored the rest. Please resend later what you still need."
    );
    for n in 11..20 {
        assert_eq!(app.sms(&format!("tell me about film {n}")).await, "");
    }
    assert_eq!(app.stored_texts().await.len(), 20);
    assert_eq!(app.message_outcomes().await[19], "tell me about film 19: skipped rate_limited");

    app.pass(60);
    app.model_plays([says("Fine.")]);
    assert_eq!(app.sms("tell me about film 20").await, "Fine.");
}

#[tokio::test]
async fn protected_messages_are_processed_past_the_rate_limit() {
    let app = TestApp::start_without_model().await;
    for _ in 0..12 {
        app.sms("status").await;
    }
    assert_eq!(app.sms("what do you know").await, "I know nothing about you yet.");
    assert!(app.sms("no").await.starts_with("I did not understand that."));
    assert_eq!(
        app.sms("forget all").await,
        "OK, I erased our messages. I still have your number and permissions."
    );
    assert_eq!(app.sms("status").await, "");
}

#[tokio::test]
async fn protected_messages_have_a_limit_of_their_own() {
    let app = TestApp::start_without_model().await;
    for _ in 0..10 {
        assert_ne!(app.sms("what do you know").await, "");
    }
    assert!(
        app.sms("what do you know")
            .await
            .starts_with("That is more than 10 texts within a minute, so I ignored the rest.")
    );
    assert_eq!(app.sms("what do you know").await, "");
    assert_eq!(app.sms("status").await, "Nothing is downloading.");
}

#[tokio::test]
async fn rate_limit_of_a_user_does_not_affect_others() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    for _ in 0..12 {
        app.sms("status").await;
    }
    assert_eq!(app.sms_from(BOB, "status").await, "Nothing is downloading.");
}

#[tokio::test]
async fn forged_messages_do_not_use_up_a_rate_limit() {
    let app = TestApp::start_without_model().await;
    for _ in 0..40 {
        let mut forged = app.text(ANN, "status").into_signed_request().unwrap();
        forged
            .headers_mut()
            .insert("x-twilio-signature", "Zm9yZ2VkIGJ5IHNvbWVib2R5IGVsc2U=".parse().unwrap());
        assert_eq!(app.request(forged).await.status(), 403);
    }
    assert_eq!(app.sms("status").await, "Nothing is downloading.");
}

#[tokio::test]
async fn prompt_answers_and_opt_outs_bypass_the_rate_limit() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    for _ in 0..9 {
        app.sms("status").await;
    }
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    assert_eq!(app.sms("no").await, "OK, kept.");
    assert_eq!(app.sms("STOP").await, "");
    assert_eq!(app.people().await, ["+15550100002 active admin opted out"]);
}

#[tokio::test]
async fn pictures_without_text_count_towards_the_rate_limit() {
    let app = TestApp::start_without_model().await;
    for _ in 0..30 {
        app.pass(1);
        app.post(app.text(ANN, "").with_media("https://api.twilio.com/1", "image/jpeg")).await;
        app.settle().await;
    }
    assert_eq!(app.messages_to(ANN).len(), 11);
}

#[tokio::test]
async fn disabled_household_quota_keeps_personal_quotas() {
    let app = TestApp::with(|settings| {
        settings.quotas.movies = a_week(2);
        settings.quotas.seasons = None;
    })
    .await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    assert_eq!(
        app.sms("quota Bob +5").await,
        "Bob may add 7 movies within 7 days and any number of seasons."
    );
}
