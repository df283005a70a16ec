//! Offers of the next season to people who have nearly watched what is there of a series.

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::conversation::next_season::{NextSeason, format_season_offer};
use dialarr::conversation::notifications::arr_events::ArrTitle;
use dialarr::conversation::notifications::quiet_hours::QuietHours;
use dialarr::conversation::rate_limit::RateLimit;
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};
use dialarr::media_servers::CatalogIds;
use dialarr::media_servers::fake::FakeJellyfin;
use dialarr::seerr::fake::Permission;
use dialarr::store::audit::Actor;
use dialarr::store::people::{users, viewer_accounts};
use jiff::SignedDuration;
use serde_json::json;

use crate::harness::model::{calls, finds, request_text, says};
use crate::harness::seerr::TRUSTED;
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

/// Ids at TMDB and TheTVDB.
const SEVERANCE: (i64, i64) = (95_396, 371_980);
const DARK: (i64, i64) = (70_523, 334_824);
const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;
const OFFER: &str = "You have 2 episodes of Severance left. Season 2 has 8 episodes, about 19 GB. Text GET SEASON 2 OF \
                     SEVERANCE (2022) to add it.";
const WORDS: &str = "GET SEASON 2 OF SEVERANCE (2022)";
const ADDED: &str = "Looking for season 2 of Severance (2022) now.";
const NONE: [String; 0] = [];

/// Household of Ann, who is an admin, and Bob. The first of two seasons of Severance is there, and not the second. Bob is
/// linked to an account of Jellyfin.
struct Home {
    app: TestApp,
    bob: u64,
    severance: u64,
}

impl Home {
    async fn start(setup: Setup) -> Self {
        let app = setup.jellyfin().start().await;
        app.register_named_user("Ann", ANN, Has::EveryRight).await;
        app.register_named_user("Bob", BOB, Has::AddRight).await;
        let severance = add_first_season(&app, ("Severance", 2022), SEVERANCE);
        let bob = app.jellyfin().add_user("bobby");
        let home = Self { app, bob, severance };
        home.link(BOB, MediaServerKind::Jellyfin, FakeJellyfin::user_id(bob)).await;
        home
    }

    /// Starts with Bob having watched all but two episodes of Severance.
    async fn with_two_episodes_left(setup: Setup) -> Self {
        let home = Self::start(setup).await;
        home.watch(home.severance, 1..=6);
        home
    }

    async fn link(&self, phone: &str, server: MediaServerKind, id: String) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.app.now());
        let account = ViewerAccount { server, id, name: "someone".to_owned() };
        let link = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            viewer_accounts::link_account(conn, user.id, &account, Actor::Console, now).map(drop)
        };
        self.app.app().db.write(link).await.unwrap();
    }

    /// Lets Bob finish episodes of the first season of a show.
    fn watch(&self, show: u64, episodes: std::ops::RangeInclusive<u64>) {
        let jellyfin = self.app.jellyfin();
        // The ids of the episodes follow that of their show.
        episodes.for_each(|number| jellyfin.watch(self.bob, show + number, 100));
    }

    /// Runs the check that otherwise runs every six hours, after some time.
    async fn check_after(&self, seconds: i64) -> Vec<String> {
        let before = self.app.messages_to(BOB).len();
        self.app.later(seconds).await;
        self.app.messages_to(BOB).split_off(before)
    }
}

/// Adds a series with two seasons of eight episodes, of which the first season is there, and shows it on Jellyfin.
fn add_first_season(app: &TestApp, (title, year): (&str, u16), (tmdb, tvdb): (i64, i64)) -> u64 {
    let fixture = series(title).year(year).tvdb(tvdb).tmdb(tmdb).seasons(2).episodes(16);
    app.sonarr().add(fixture.missing(8).size_gb(19.2).unmonitored_season(2));
    let ids = CatalogIds { tvdb: Some(tvdb), ..CatalogIds::default() };
    let show = app.jellyfin().add_show((title, year), ids, SignedDuration::ZERO);
    for number in 1..=8 {
        app.jellyfin().add_episode(show, (1, number));
    }
    show
}

#[tokio::test]
async fn next_season_is_offered_once_also_after_a_restart() {
    let mut home = Home::start(Setup::default()).await;
    home.watch(home.severance, 1..=5);
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.watch(home.severance, 6..=6);
    assert_eq!(home.check_after(HOUR).await, [OFFER]);
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.app.restart().await;
    home.watch(home.severance, 7..=7);
    assert_eq!(home.check_after(2 * DAY).await, NONE);
    assert_eq!(home.app.messages_to(ANN), NONE);
}

#[tokio::test]
async fn words_of_the_offer_add_the_season_without_a_model() {
    let home = Home::with_two_episodes_left(Setup::default().keyword_responder()).await;
    // The movie of the same name is not meant.
    home.app.radarr().add_to_catalog(movie("Severance").year(2006).tmdb(10_876));
    assert_eq!(home.check_after(HOUR).await, [OFFER]);
    assert_eq!(home.app.sms_from(BOB, WORDS).await, ADDED);
    let requests = home.app.requests().await;
    assert_eq!(requests, ["+15550100003 added sonarr Severance (2022) [2]"]);
    assert!(home.app.sonarr().titles()[0].monitored_episodes().contains(&(2, 8)));
}

#[tokio::test]
async fn words_of_the_offer_work_in_a_conversation_with_a_model() {
    let home = Home::with_two_episodes_left(Setup::default()).await;
    assert_eq!(home.check_after(HOUR).await, [OFFER]);
    let id = home.app.sonarr().titles()[0].id;
    let more = calls("get_more", json!({ "type": "series", "id": id, "seasons": ["2"] }));
    home.app.model_plays([finds("severance"), more, says(ADDED)]);
    assert_eq!(home.app.sms_from(BOB, WORDS).await, ADDED);
    assert!(request_text(&home.app.last_request()).contains(WORDS));
    assert!(home.app.sonarr().titles()[0].monitored_episodes().contains(&(2, 1)));
}

#[tokio::test]
async fn season_that_is_wanted_or_there_is_not_offered() {
    let home = Home::with_two_episodes_left(Setup::default()).await;
    let id = home.app.sonarr().titles()[0].id;
    home.app.sonarr().add_download("Severance S02", 10, 60);
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.app.sonarr().clear_queue();
    // Another library has the season, so Jellyfin shows it.
    home.app.jellyfin().add_episode(home.severance, (2, 1));
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.app.jellyfin().remove_episode(home.severance, (2, 1));
    home.app.sonarr().edit(id, |severance| severance.details.seasons[1].monitored = true);
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.app.sonarr().edit(id, |severance| severance.details.seasons[1].monitored = false);
    assert_eq!(home.check_after(HOUR).await, [OFFER]);
}

#[tokio::test]
async fn season_that_somebody_has_requested_is_not_offered() {
    let home = Home::with_two_episodes_left(Setup::default()).await;
    let request = "INSERT INTO requests (user_id, instance, kind, catalog_id, title, year, seasons, state, created_at, \
                   settled_at) VALUES (1, 'sonarr', 'series', 371980, 'Severance', 2022, '[2]', 'added', 1, 1)";
    home.app.execute(request).await;
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.app.execute("UPDATE requests SET seasons = '[1]'").await;
    assert_eq!(home.check_after(HOUR).await, [OFFER]);
}

#[tokio::test]
async fn offer_waits_until_the_quota_has_capacity() {
    let weekly = RateLimit { max: 2, period: SignedDuration::from_hours(7 * 24) };
    let home = Home::with_two_episodes_left(
        Setup::default().with(|settings| settings.quotas.seasons = Some(weekly)),
    )
    .await;
    let used = "INSERT INTO additions (user_id, kind, amount, at) VALUES (2, 'season', 2, 1000 * unixepoch('2026-11-20 \
                21:04'))";
    home.app.execute(used).await;
    assert_eq!(home.check_after(6 * DAY).await, NONE);
    assert_eq!(home.check_after(DAY).await, [OFFER]);
}

#[tokio::test]
async fn nothing_is_offered_to_users_who_may_not_add_or_are_muted() {
    let home = Home::with_two_episodes_left(Setup::default()).await;
    home.app.sms_from(BOB, "notifications off").await;
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.app.sms_from(BOB, "notifications on").await;
    home.app.register_user(BOB, Has::NoRights).await;
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.app.register_user(BOB, Has::AddRight).await;
    home.app.sms_from(BOB, "stop").await;
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.app.sms_from(BOB, "start").await;
    assert_eq!(home.check_after(HOUR).await, [OFFER]);
}

#[tokio::test]
async fn offer_in_quiet_hours_is_sent_after_them_unless_turned_off() {
    let quiet = Setup::default().with(|settings| settings.quiet_hours = QuietHours::new(22, 7));
    let home = Home::with_two_episodes_left(quiet).await;
    assert_eq!(home.check_after(2 * HOUR).await, NONE);
    assert_eq!(home.check_after(8 * HOUR).await, [OFFER]);

    let quiet = Setup::default().with(|settings| settings.quiet_hours = QuietHours::new(22, 7));
    let home = Home::with_two_episodes_left(quiet).await;
    assert_eq!(home.check_after(2 * HOUR).await, NONE);
    home.app.sms_from(BOB, "notifications off").await;
    assert_eq!(home.check_after(8 * HOUR).await, NONE);
}

#[tokio::test]
async fn one_season_is_offered_a_day_and_the_last_watched_series_first() {
    let home = Home::with_two_episodes_left(Setup::default()).await;
    let dark = add_first_season(&home.app, ("Dark", 2017), DARK);
    home.app.pass(HOUR);
    home.watch(dark, 1..=8);
    let of_dark = "You have watched the last episode of Dark here. Season 2 has 8 episodes, about 19 GB. Text GET SEASON 2 \
                   OF DARK (2017) to add it.";
    assert_eq!(home.check_after(HOUR).await, [of_dark]);
    assert_eq!(home.check_after(DAY - 1).await, NONE);
    assert_eq!(home.check_after(1).await, [OFFER]);
}

#[tokio::test]
async fn series_that_was_left_two_weeks_ago_is_not_offered() {
    let home = Home::with_two_episodes_left(Setup::default()).await;
    home.app.pass(14 * DAY);
    assert_eq!(home.check_after(1).await, NONE);
    home.app.jellyfin().watch(home.bob, home.severance + 7, 10);
    assert_eq!(home.check_after(1).await, [OFFER], "an episode was started again");
}

#[tokio::test]
async fn nothing_is_offered_while_a_server_does_not_answer() {
    let home = Home::with_two_episodes_left(Setup::default()).await;
    home.app.jellyfin().set_status(Some(503));
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.app.jellyfin().set_status(None);
    home.app.sonarr().set_down(true);
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.app.sonarr().set_down(false);
    assert_eq!(home.check_after(HOUR).await, [OFFER]);
}

#[tokio::test]
async fn offer_is_hidden_from_everybody_else_and_erased_after_a_day() {
    let home = Home::with_two_episodes_left(Setup::default()).await;
    home.app.model_plays([says("Hello.")]);
    home.app.sms_from(BOB, "hi").await;
    assert_eq!(home.check_after(1).await, [OFFER]);
    let mut browser = home.app.browser().await;
    let newest = "SELECT CAST(max(id) AS TEXT) AS line FROM conversations WHERE user_id = 2";
    let conversation = home.app.lines(newest).await.concat();
    let page = format!("/conversations/{conversation}");
    let pages =
        ["/", "/users/2", "/deliveries", "/conversations", "/conversations?q=severance", "/memory", &page];
    for path in pages {
        let page = browser.get(path).await;
        assert!(!page.html.contains("episodes of Severance"), "{path}: {}", page.text());
    }
    browser.get(&page).await.assert_shows(200, "(A message about what somebody has watched.)");
    let program = home.app.program().await;
    for api in [format!("/api/v1/conversations/{conversation}"), "/api/v1/deliveries".to_owned()] {
        let answered = program.get(&api).await;
        assert!(!answered.body.contains("episodes of Severance"), "{api}: {}", answered.body);
    }
    assert!(home.app.export_user(BOB).to_string().contains("episodes of Severance"));
    home.app.model_plays([says("Nothing.")]);
    home.app.sms("what did you tell bob?").await;
    assert!(!request_text(&home.app.last_request()).contains("Severance"));
    home.app.days_pass(2).await;
    let export = home.app.export_user(BOB);
    assert!(!export.to_string().contains("Severance"), "{export:#}");
    assert_eq!(home.check_after(1).await, NONE, "the offer is still known");
}

#[tokio::test]
async fn erased_user_is_offered_nothing() {
    let home = Home::with_two_episodes_left(Setup::default()).await;
    home.app.sms_from(BOB, "forget all").await;
    assert_eq!(home.check_after(HOUR).await, NONE);
}

#[tokio::test]
async fn season_is_offered_and_requested_through_seerr() {
    let home = Home::with_two_episodes_left(Setup::default().seerr()).await;
    assert_eq!(home.check_after(HOUR).await, NONE, "nobody may request in the name of nobody");
    let bobby = home.app.seerr().add_user("bobby", TRUSTED);
    home.link(BOB, MediaServerKind::Seerr, bobby.to_string()).await;
    let other = home.app.seerr().add_user("Sam", Permission::REQUEST);
    let request = home.app.seerr().request_seasons(other, SEVERANCE, &[2]);
    assert_eq!(home.check_after(HOUR).await, NONE, "somebody has requested it there");
    home.app.seerr().remove_request(request);
    home.app.seerr().set_status(Some(503));
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.app.seerr().set_status(None);
    assert_eq!(home.check_after(HOUR).await, [OFFER]);
    let id = home.app.sonarr().titles()[0].id;
    let more = calls("get_more", json!({ "type": "series", "id": id, "seasons": ["2"] }));
    home.app.model_plays([finds("severance"), more, says(""), says("")]);
    let reply = home.app.sms_from(BOB, WORDS).await;
    assert_eq!(reply, "Severance (2022), season 2 is on the way.");
    assert_eq!(home.app.seerr().requests()[0].seasons, [2]);
}

#[tokio::test]
async fn quota_of_seerr_counts_in_place_of_the_own_one() {
    let home = Home::with_two_episodes_left(Setup::default().seerr()).await;
    let bobby = home.app.seerr().add_user("bobby", TRUSTED);
    home.link(BOB, MediaServerKind::Seerr, bobby.to_string()).await;
    home.app.seerr().edit_user(bobby, |user| user.season_limit = Some(1));
    home.app.seerr().request_seasons(bobby, DARK, &[1]);
    assert_eq!(home.check_after(HOUR).await, NONE);
    home.app.seerr().edit_user(bobby, |user| user.season_limit = Some(2));
    assert_eq!(home.check_after(HOUR).await, [OFFER]);
}

#[test]
fn words_for_well_known_shows_are_understood() {
    let next = NextSeason { number: 2, aired: 10, listed: 10, size_bytes: None, episodes_left: 1 };
    let is_refused = |line: &&str| {
        let mut columns = line.split('\t');
        let (title, year) = (columns.next().unwrap().to_owned(), columns.next().unwrap().parse().unwrap());
        format_season_offer(&ArrTitle { id: 1, catalog_id: 1, title, year }, &next).is_none()
    };
    let shows = include_str!("../../src/arr/fake/well_known_shows.tsv").lines();
    let misleading =
        ["You\t2018", "24\t2001", "The 100\t2014", "From\t2022", "More\t2020", "Seasons\t2020", "Them\t2021"];
    let refused: Vec<&str> = shows.chain(misleading).filter(is_refused).collect();
    assert_eq!(refused, [""; 0]);
}
