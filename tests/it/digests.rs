//! Weekly digests: their time, their contents, and the numbers of their lines.

use std::sync::Arc;

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::conversation::notifications::quiet_hours::QuietHours;
use dialarr::conversation::rating_caps::{MinimumAge, RatingCaps};
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::llm::keyword::KeywordResponder;
use dialarr::store::people::{age_limits, users};
use jiff::Timestamp;

use crate::harness::room::BOB_ACCOUNT;
use crate::harness::telegram::ANN_ACCOUNT;
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const HEAT: i64 = 949;
const THE_BEAR: i64 = 403_294;
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
const NONE: [String; 0] = [];
const SET: &str = "OK, you get a digest on Fridays at 22:00. Text DIGEST OFF to turn it off.";
const DIGEST: &str = "New this week:\n1. Heat (1995)\n2. The Bear season 2 (3 episodes)\nNext week:\n3. Severance, Sun \
                      Mon\n4. Dune: Part Three (2026), Wed\nText a number for more.";

/// Household of Ann, who is an admin, and Bob, on Friday at 21:04. Heat and a season of The Bear were imported, and two
/// titles come next week.
struct Home {
    app: TestApp,
}

impl Home {
    async fn start(setup: Setup) -> Self {
        let home = Self::without_news(setup).await;
        home.add_news().await;
        home
    }

    async fn without_news(setup: Setup) -> Self {
        let app = setup.keyword_responder().start().await;
        app.register_named_user("Ann", ANN, Has::EveryRight).await;
        app.register_named_user("Bob", BOB, Has::AddRight).await;
        Self { app }
    }

    async fn add_news(&self) {
        let (radarr, sonarr) = (self.app.radarr(), self.app.sonarr());
        radarr.add(movie("Heat").year(1995).tmdb(HEAT).certification("R"));
        radarr.add(movie("Dune: Part Three").year(2026).tmdb(2).digital(jiff::civil::date(2026, 11, 25)));
        sonarr
            .add(series("The Bear").year(2022).tvdb(THE_BEAR).seasons(2).episodes(6).certification("TV-14"));
        sonarr.add(series("Severance").year(2022).tvdb(371_980).seasons(2).certification("TV-MA"));
        for (title, at) in
            [("Severance S02E01", "2026-11-22T20:00:00Z"), ("Severance S02E02", "2026-11-23T20:00:00Z")]
        {
            sonarr.add_calendar_entry(title, time(at));
        }
        // The first reading of the history stores its start.
        self.app.later(0).await;
        sonarr.download_and_import("The Bear S02");
        self.app.receive_event("sonarr", &sonarr.import_event_json("The Bear S02")).await;
        radarr.download_and_import("Heat");
        self.app.receive_event("radarr", &radarr.import_event_json("Heat")).await;
        self.app.later(2 * MINUTE).await;
    }

    /// Lets Bob ask for a digest on Fridays at 22:00.
    async fn with_digest_of_bob(setup: Setup) -> Self {
        let home = Self::start(setup).await;
        assert_eq!(home.app.sms_from(BOB, "digest friday 22").await, SET);
        home
    }

    /// Returns what was sent to a person while some time passed.
    async fn sent_within(&self, phone: &str, seconds: i64) -> Vec<String> {
        let before = self.app.messages_to(phone).len();
        self.app.later(seconds).await;
        self.app.messages_to(phone).split_off(before)
    }

    async fn set_caps(&self, phone: &str, caps: RatingCaps) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.app.now());
        let set = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            age_limits::set_rating_caps(conn, user.id, caps, now)
        };
        self.app.app().db.write(set).await.unwrap();
    }
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[tokio::test]
async fn digest_comes_once_a_week_also_after_a_restart() {
    let mut home = Home::with_digest_of_bob(Setup::default()).await;
    assert_eq!(home.sent_within(BOB, 50 * MINUTE).await, NONE);
    assert_eq!(home.sent_within(BOB, 5 * MINUTE).await, [DIGEST]);
    assert_eq!(home.sent_within(BOB, MINUTE).await, NONE);
    home.app.restart().await;
    assert_eq!(home.sent_within(BOB, DAY).await, NONE);
    home.app.sonarr().add_calendar_entry("Severance S02E03", time("2026-11-30T20:00:00Z"));
    let next = home.sent_within(BOB, 6 * DAY).await;
    assert_eq!(next, ["Next week:\n1. Severance, Mon\nText a number for more."]);
    assert_eq!(home.app.messages_to(ANN), NONE);
}

#[tokio::test]
async fn number_of_a_line_gives_the_details_of_its_title() {
    let home = Home::with_digest_of_bob(Setup::default()).await;
    home.sent_within(BOB, HOUR).await;
    let details = home.app.sms_from(BOB, "2").await;
    assert!(details.starts_with("The Bear (2022)"), "{details}");
    // The digest is no longer our last message.
    let other = home.app.sms_from(BOB, "1").await;
    assert!(!other.contains("Heat"), "{other}");
}

#[tokio::test]
async fn number_that_the_digest_does_not_have_does_nothing() {
    let home = Home::with_digest_of_bob(Setup::default()).await;
    home.sent_within(BOB, HOUR).await;
    assert_eq!(home.app.sms_from(BOB, "9").await, "The digest has no line with that number.");
}

#[tokio::test]
async fn notification_after_the_digest_leaves_its_numbers_valid() {
    let home = Home::with_digest_of_bob(Setup::default()).await;
    home.sent_within(BOB, HOUR).await;
    home.app.radarr().add(movie("Alien").year(1979).tmdb(348));
    home.app.follow_movie(BOB, 348).await;
    home.app.radarr().download_and_import("Alien");
    home.app.receive_event("radarr", &home.app.radarr().import_event_json("Alien")).await;
    assert_eq!(home.sent_within(BOB, MINUTE).await, ["Alien (1979) is ready to watch."]);
    let details = home.app.sms_from(BOB, "1").await;
    assert!(details.starts_with("Heat (1995)"), "{details}");
}

#[tokio::test]
async fn approvals_wait_in_the_digest_of_an_admin_and_their_number_repeats_the_code() {
    let home = Home::without_news(Setup::default()).await;
    home.app.radarr().add(movie("Heat").year(1995).tmdb(HEAT).size_gb(12.0));
    home.app.sms("digest friday 22").await;
    home.app.sms_from(BOB, "digest friday 22").await;
    home.app.sms_from(BOB, "delete heat").await;
    home.app.sms_from(BOB, "yes").await;
    let request = home.app.last_to(ANN);
    assert!(request.contains("APPROVE "), "{request}");
    assert_eq!(
        home.sent_within(ANN, HOUR).await,
        ["Waiting for you:\n1. Bob wants to delete Heat (1995)\nText a number for more."]
    );
    assert_eq!(
        home.app.last_to(BOB),
        "Waiting for you:\n1. Heat (1995): an admin decides about it\nText a number for more."
    );
    assert_eq!(home.app.sms("1").await, request);
    assert_eq!(
        home.app.sms_from(BOB, "1").await,
        "An admin decides whether Heat (1995) is deleted. I text you the outcome."
    );
}

#[tokio::test]
async fn digest_is_sent_late_for_twelve_hours_and_then_left_out() {
    let home = Home::with_digest_of_bob(Setup::default()).await;
    assert_eq!(home.sent_within(BOB, 12 * HOUR).await, [DIGEST]);
    let home = Home::with_digest_of_bob(Setup::default()).await;
    assert_eq!(home.sent_within(BOB, 13 * HOUR + 50 * MINUTE).await, NONE);
    assert_eq!(home.sent_within(BOB, MINUTE).await, NONE);
}

#[tokio::test]
async fn digest_waits_for_the_end_of_the_quiet_hours() {
    let quiet = |settings: &mut dialarr::engine::HouseholdSettings| {
        settings.quiet_hours = QuietHours::new(21, 8);
    };
    let home = Home::start(Setup::default().with(quiet)).await;
    let reply = home.app.sms_from(BOB, "digest friday 22").await;
    assert_eq!(
        reply,
        "OK, you get a digest on Fridays at 22:00. Because of the quiet hours, it arrives on Saturdays at 8:00. Text \
         DIGEST OFF to turn it off."
    );
    assert_eq!(home.sent_within(BOB, 10 * HOUR).await, NONE);
    assert_eq!(home.sent_within(BOB, HOUR).await.len(), 1);
}

#[tokio::test]
async fn nobody_without_notifications_gets_a_digest() {
    let home = Home::with_digest_of_bob(Setup::default()).await;
    home.app.sms_from(BOB, "notify off").await;
    assert_eq!(home.sent_within(BOB, 2 * HOUR).await, NONE);
    home.app.sms_from(BOB, "notify on").await;
    assert_eq!(home.sent_within(BOB, HOUR).await, NONE);
    home.app.block(BOB).await;
    assert_eq!(home.sent_within(BOB, WEEK).await, NONE);
}

#[tokio::test]
async fn digest_that_is_turned_off_does_not_come() {
    let home = Home::with_digest_of_bob(Setup::default()).await;
    let off = "OK, no more digests. Text DIGEST FRIDAY 18 to get one again.";
    assert_eq!(home.app.sms_from(BOB, "stop the digest").await, off);
    assert_eq!(home.sent_within(BOB, 2 * HOUR).await, NONE);
    // The words are no opt-out.
    assert!(home.app.sms_from(BOB, "digest").await.starts_with("There is no digest here."));
    let unclear = home.app.sms_from(BOB, "digest daily 8").await;
    assert!(unclear.starts_with("A digest comes once a week."), "{unclear}");
}

#[tokio::test]
async fn digest_without_content_is_not_sent() {
    let home = Home::without_news(Setup::default()).await;
    home.app.sms_from(BOB, "digest friday 22").await;
    assert_eq!(home.sent_within(BOB, 2 * HOUR).await, NONE);
    home.app.sms_from(BOB, "digest").await;
    home.app.later(0).await;
    assert_eq!(home.app.last_to(BOB), "It would be empty now, so it would not be sent.");
}

#[tokio::test]
async fn digest_command_shows_the_time_and_the_contents() {
    let home = Home::with_digest_of_bob(Setup::default()).await;
    let shown = home.app.sms_from(BOB, "my digest").await;
    assert!(
        shown.starts_with("Your digest comes on Fridays at 22:00. I send what it would say now."),
        "{shown}"
    );
    home.app.later(0).await;
    assert_eq!(home.app.last_to(BOB), DIGEST);
    let details = home.app.sms_from(BOB, "1").await;
    assert!(details.starts_with("Heat (1995)"), "{details}");
    // The weekly digest comes nevertheless.
    assert_eq!(home.sent_within(BOB, HOUR).await, [DIGEST]);
}

#[tokio::test]
async fn digest_names_no_title_over_the_caps_of_its_reader() {
    let home = Home::with_digest_of_bob(Setup::default()).await;
    home.set_caps(BOB, RatingCaps { movies: Some(MinimumAge(13)), shows: Some(MinimumAge(14)) }).await;
    assert_eq!(
        home.sent_within(BOB, HOUR).await,
        ["New this week:\n1. The Bear season 2 (3 episodes)\nText a number for more."]
    );
}

#[tokio::test]
async fn caps_set_later_end_the_numbers_and_the_waiting_digest() {
    let home = Home::with_digest_of_bob(Setup::default()).await;
    assert_eq!(home.sent_within(BOB, HOUR).await, [DIGEST]);
    home.set_caps(BOB, RatingCaps { movies: Some(MinimumAge(13)), shows: None }).await;
    let reply = home.app.sms_from(BOB, "1").await;
    assert!(!reply.contains("Heat"), "{reply}");
    assert_eq!(home.app.app().db.read(lines).await.unwrap(), 0);
}

fn lines(conn: &mut dialarr::store::Conn) -> dialarr::store::QueryResult<i64> {
    use diesel::prelude::*;
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        n: i64,
    }
    let count: Count = diesel::sql_query("SELECT count(*) AS n FROM digest_lines").get_result(conn)?;
    Ok(count.n)
}

#[tokio::test]
async fn digest_waits_an_hour_for_a_server_and_then_comes_without_it() {
    let home = Home::with_digest_of_bob(Setup::default()).await;
    home.app.sonarr().set_down(true);
    assert_eq!(home.sent_within(BOB, HOUR).await, NONE);
    assert_eq!(home.sent_within(BOB, 30 * MINUTE).await, NONE);
    let smaller = home.sent_within(BOB, 30 * MINUTE).await;
    assert_eq!(
        smaller,
        [
            "New this week:\n1. Heat (1995)\n2. The Bear season 2 (3 episodes)\nNext week:\n3. Dune: Part Three (2026), \
          Wed\nText a number for more."
        ]
    );
}

#[tokio::test]
async fn addition_that_waits_is_in_the_digest_of_its_requester() {
    let home = Home::without_news(Setup::default()).await;
    home.app.radarr().add_to_catalog(movie("Heat").year(1995).tmdb(HEAT));
    home.app.sms_from(BOB, "digest friday 22").await;
    home.app.sms_from(BOB, "search heat").await;
    home.app.radarr().set_down(true);
    home.app.sms_from(BOB, "1").await;
    let digests = home.sent_within(BOB, 2 * HOUR).await;
    let waiting = "Waiting for you:\n1. Heat (1995) is not added yet\nText a number for more.";
    assert_eq!(digests.last().map(String::as_str), Some(waiting));
    assert_eq!(
        home.app.sms_from(BOB, "1").await,
        "Heat (1995) is not added yet. I keep trying, and text you the outcome."
    );
}

#[tokio::test]
async fn digest_has_two_segments_at_most() {
    let home = Home::with_digest_of_bob(Setup::default()).await;
    for number in 1..=20 {
        let title = format!("A Quite Long Title of a Movie {number}");
        home.app.radarr().add(movie(&title).year(2000).tmdb(5000 + number));
        home.app.radarr().download_and_import(&title);
        home.app.receive_event("radarr", &home.app.radarr().import_event_json(&title)).await;
    }
    let digest = home.sent_within(BOB, HOUR).await.remove(0);
    assert!(digest.len() <= 306, "{}", digest.len());
    assert!(digest.contains("\nand ") && digest.contains(" more\nNext week:\n"), "{digest}");
}

#[tokio::test]
async fn erased_texts_leave_no_lines_and_a_forgotten_person_no_digest() {
    let home = Home::with_digest_of_bob(Setup::default()).await;
    home.sent_within(BOB, HOUR).await;
    assert_eq!(home.app.app().db.read(lines).await.unwrap(), 4);
    home.app.sms_from(BOB, "forget all").await;
    assert_eq!(home.app.app().db.read(lines).await.unwrap(), 0);
    // The setting remains, as the quiet hours do.
    home.app.later(6 * DAY).await;
    assert!(home.app.sms_from(BOB, "digest").await.starts_with("Your digest comes on Fridays"));
}

#[tokio::test(start_paused = true)]
async fn room_has_a_digest_of_its_own_with_the_lowest_caps() {
    let mut world = World::start_with_bot_and(Arc::new(KeywordResponder::NoModel)).await;
    world.open_room().await;
    let (radarr, sonarr) = (world.radarr().clone(), world.sonarr().clone());
    radarr.add(
        movie("Up").year(2009).tmdb(14_160).certification("PG").digital(jiff::civil::date(2026, 11, 24)),
    );
    radarr
        .add(movie("Heat").year(1995).tmdb(HEAT).certification("R").digital(jiff::civil::date(2026, 11, 25)));
    sonarr.add(series("Dark").year(2017).tvdb(334_824).seasons(1).certification("TV-MA"));
    let reply = world.write_in_room(BOB_ACCOUNT, "@home_bot digest saturday 6").await.pop().unwrap();
    assert_eq!(reply, "OK, this group gets a digest on Saturdays at 6:00. Text DIGEST OFF to turn it off.");
    let now = world.now();
    let cap = move |conn: &mut _| {
        let bob = users::load_known_users(conn)?
            .into_iter()
            .find(|user| user.name.as_deref() == Some("Bob"))
            .unwrap();
        let caps = RatingCaps { movies: Some(MinimumAge(13)), shows: Some(MinimumAge(13)) };
        age_limits::set_rating_caps(conn, bob.id, caps, now)
    };
    world.write_database(cap).await;
    world.pass(9 * 3600).await;
    let digest = world.answers_in_room().pop().unwrap();
    assert_eq!(digest, "Next week:\n1. Up (2009), Tue\nText a number for more.");
    assert_eq!(world.private_texts(BOB_ACCOUNT).len(), 0);
    let before = world.answers_in_room().len();
    let details = world.write_in_room(ANN_ACCOUNT, "@home_bot 1").await.split_off(before).pop().unwrap();
    assert!(details.contains("Up"), "{details}");
}

#[tokio::test(start_paused = true)]
async fn digest_is_sent_on_its_own_and_not_again_after_a_crash() {
    let mut world = World::start_with(Arc::new(KeywordResponder::NoModel)).await;
    world.radarr().add(movie("Up").year(2009).tmdb(14_160).digital(jiff::civil::date(2026, 11, 24)));
    let set = world.sms("digest friday 22").await.pop().unwrap();
    assert_eq!(set, SET);
    world.kill().await;
    world.pass(2 * 3600).await;
    world.start_again().await;
    world.pass(60).await;
    let digest = "Next week:\n1. Up (2009), Tue\nText a number for more.";
    assert_eq!(world.sent_texts().pop().as_deref(), Some(digest));
    world.kill().await;
    world.start_again().await;
    world.pass(3600).await;
    assert_eq!(world.sent_texts().iter().filter(|text| *text == digest).count(), 1);
}
