//! Caps on age ratings: what a person with a cap reads, and what the parents decide.

use std::sync::Arc;

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::conversation::people::naming::UserName;
use dialarr::conversation::rating_caps::{MinimumAge, RatingCaps};
use dialarr::conversation::transcript::{MediaKind, PhoneNumber, User, UserRole};
use dialarr::llm::keyword::KeywordResponder;
use dialarr::store::audit::Actor;
use dialarr::store::library::follows::{self, FollowReason, FollowedTitle};
use dialarr::store::people::user_admin::{self, UserChanges};
use dialarr::store::people::{age_limits, users};
use serde_json::json;

use crate::harness::model::{calls, says};
use crate::harness::reports::{SECRET, report};
use crate::harness::world::World;
use crate::harness::{ANN, BOB};

const DANA: &str = "+15550100004";
const MINUTE: u64 = 60;
const HEAT: i64 = 949;
const UP: i64 = 14_160;
const PG_13: RatingCaps = RatingCaps { movies: Some(MinimumAge(13)), shows: Some(MinimumAge(10)) };
const ALREADY_ASKED: &str = "I already asked Bob.";

/// Household in which Ann has caps and Bob is an admin. The catalogs know titles below and above the caps.
struct Home {
    world: World,
}

impl Home {
    async fn start() -> Self {
        Self::with(World::start_with(Arc::new(KeywordResponder::NoModel)).await).await
    }

    async fn with_model() -> Self {
        Self::with(World::start().await).await
    }

    async fn with(world: World) -> Self {
        world.register_admin(BOB).await;
        let home = Self { world };
        home.name(BOB, "Bob").await;
        home.name(ANN, "Ann").await;
        home.set_caps(ANN, PG_13).await;
        let radarr = home.world.radarr();
        radarr.add_to_catalog(movie("Heat").year(1995).tmdb(HEAT).certification("R"));
        radarr.add_to_catalog(movie("Up").year(2009).tmdb(UP).certification("PG"));
        radarr.add_to_catalog(movie("Home Video").year(2001).tmdb(77));
        let sonarr = home.world.sonarr();
        sonarr.add_to_catalog(series("Dark").year(2017).tvdb(334_824).seasons(3).certification("TV-MA"));
        sonarr.add_to_catalog(series("Bluey").year(2018).tvdb(353_546).certification("TV-Y"));
        home
    }

    async fn change(
        &self,
        phone: &str,
        change: impl Fn(&mut dialarr::store::Conn, User) + Send + Sync + 'static,
    ) {
        let phone = PhoneNumber::parse(phone).unwrap();
        let write = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            change(conn, user);
            Ok(())
        };
        self.world.write_database(write).await;
    }

    async fn name(&self, phone: &str, name: &'static str) {
        let now = self.world.now();
        let name = UserName::parse(name).unwrap();
        self.change(phone, move |conn, user| users::set_name(conn, user.id, &name, now).unwrap()).await;
    }

    async fn set_caps(&self, phone: &str, caps: RatingCaps) {
        let now = self.world.now();
        let change = move |conn: &mut _, user: User| {
            age_limits::set_rating_caps(conn, user.id, caps, now).unwrap();
        };
        self.change(phone, change).await;
    }

    async fn ann(&self, body: &str) -> String {
        self.world.sms_from(ANN, body).await.pop().unwrap_or_default()
    }

    async fn bob(&self, body: &str) -> String {
        self.world.sms_from(BOB, body).await.pop().unwrap_or_default()
    }

    /// Lets Ann ask for Heat, and returns the code that the parent got.
    async fn code_for_heat(&self, parent: &str) -> String {
        let reply = self.ann("add heat").await;
        assert!(reply.starts_with("I asked "), "{reply}");
        let request = self.world.messages_to(parent).pop().unwrap();
        let expected = "Ann asks for Heat (1995), rated R. Reply APPROVE ";
        let code: String = request.strip_prefix(expected).expect(&request).chars().take(4).collect();
        assert_eq!(request, format!("{expected}{code} or DENY {code}"));
        code
    }
}

#[tokio::test(start_paused = true)]
async fn title_over_the_cap_is_not_found_and_one_within_is_added() {
    let home = Home::start().await;
    assert_eq!(home.ann("search for heat").await, "I found nothing for \"heat\".");
    home.ann("add up").await;
    assert_eq!(home.world.radarr().added_ids(), [UP]);
    assert_eq!(home.ann("do we have heat").await, "Nothing in the library matches \"heat\".");
}

#[tokio::test(start_paused = true)]
async fn title_without_a_rating_or_of_an_unknown_country_is_over_the_cap() {
    let home = Home::start().await;
    assert_eq!(home.ann("search for home video").await, "I found nothing for \"home video\".");
    home.world.radarr().set_certification_country("it");
    assert_eq!(home.ann("search for up").await, "I found nothing for \"up\".");
}

#[tokio::test(start_paused = true)]
async fn approved_title_is_added_for_the_person_who_asked() {
    let home = Home::start().await;
    let code = home.code_for_heat(BOB).await;
    assert_eq!(home.ann("add heat").await, ALREADY_ASKED);
    assert_eq!(home.bob(&format!("approve {code}")).await, "OK, Ann may have Heat (1995). I am adding it.");
    home.world.pass(3 * MINUTE).await;
    assert_eq!(home.world.radarr().added_ids(), [HEAT]);
    assert_eq!(home.world.messages_to(ANN).pop().unwrap(), "Heat (1995) is added now.");
    assert_eq!(home.bob(&format!("approve {code}")).await, "That was already approved by Bob.");
    home.world.pass(3 * MINUTE).await;
    assert_eq!(home.world.radarr().added_ids(), [HEAT]);
    assert!(home.ann("do we have heat").await.contains("Heat (1995)"));
}

#[tokio::test(start_paused = true)]
async fn denied_title_stays_hidden_and_its_name_untold() {
    let home = Home::start().await;
    let code = home.code_for_heat(BOB).await;
    assert_eq!(home.bob(&format!("deny {code}")).await, "OK, Ann may not have Heat (1995).");
    assert_eq!(home.world.messages_to(ANN).pop().unwrap(), "Bob did not approve what you asked for.");
    home.world.pass(3 * MINUTE).await;
    assert_eq!(home.world.radarr().added_ids(), Vec::<i64>::new());
    assert!(home.world.messages_to(ANN).iter().all(|text| !text.contains("1995")));
}

#[tokio::test(start_paused = true)]
async fn request_that_nobody_decides_expires_with_a_message() {
    let home = Home::start().await;
    home.code_for_heat(BOB).await;
    home.world.pass(25 * 60 * MINUTE).await;
    let last = home.world.messages_to(ANN).pop().unwrap();
    assert_eq!(last, "Your request expired. You can ask again.");
}

#[tokio::test(start_paused = true)]
async fn named_parent_decides_about_titles_and_nothing_else() {
    let home = Home::start().await;
    home.world.register_user(DANA).await;
    home.name(DANA, "Dana").await;
    let now = home.world.now();
    home.change(DANA, move |conn, user| age_limits::set_parent(conn, user.id, true, now).unwrap()).await;
    let code = home.code_for_heat(DANA).await;
    assert_eq!(home.world.messages_to(BOB), Vec::<String>::new());
    let dana = async |body: String| home.world.sms_from(DANA, &body).await.pop().unwrap();
    assert_eq!(dana(format!("approve {code}")).await, "OK, Ann may have Heat (1995). I am adding it.");
    home.world.radarr().add(movie("Jaws").year(1975).tmdb(578).size_gb(9.0).certification("PG"));
    home.world.sms_from(DANA, "delete jaws").await;
    let removal = home.world.messages_to(BOB).pop().unwrap_or_default();
    let other_code: String = removal.split("APPROVE ").nth(1).expect(&removal).chars().take(4).collect();
    assert!(dana(format!("approve {other_code}")).await.starts_with("No open request has that code."));
    assert_eq!(home.world.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn request_survives_a_restart_before_the_decision() {
    let mut home = Home::start().await;
    let code = home.code_for_heat(BOB).await;
    home.world.kill().await;
    home.world.start_again().await;
    home.bob(&format!("approve {code}")).await;
    home.world.kill().await;
    home.world.start_again().await;
    home.world.pass(6 * MINUTE).await;
    assert_eq!(home.world.radarr().added_ids(), [HEAT]);
}

#[tokio::test(start_paused = true)]
async fn follower_with_a_cap_is_not_told_of_a_title_over_it() {
    let home = Home::start().await;
    let now = home.world.now();
    home.world.radarr().add(movie("Heat").year(1995).tmdb(HEAT).certification("R"));
    home.world.radarr().add(movie("Up").year(2009).tmdb(UP).certification("PG"));
    home.change(ANN, move |conn, user| {
        for catalog_id in [HEAT, UP] {
            let instance = "radarr".to_owned();
            let title = FollowedTitle { instance, kind: MediaKind::Movie, catalog_id, season: None };
            follows::follow_title(conn, user.id, &title, FollowReason::Request, now).unwrap();
        }
    })
    .await;
    home.world.run_maintenance().await;
    for title in ["Heat", "Up"] {
        home.world.radarr().download_and_import(title);
        let event = home.world.radarr().import_event_json(title);
        assert_eq!(home.world.deliver(report("radarr", &event, SECRET)).await, 200);
    }
    home.world.pass(30 * MINUTE).await;
    assert_eq!(home.world.messages_to(ANN), ["Up (2009) is ready to watch."]);
}

#[tokio::test(start_paused = true)]
async fn conversation_from_before_the_cap_is_not_repeated() {
    let home = Home::with_model().await;
    home.set_caps(ANN, RatingCaps::UNLIMITED).await;
    home.world
        .model_plays([calls("search_media", json!({ "query": "heat" })), says("Heat (1995) is a movie.")]);
    home.ann("search for heat").await;
    home.set_caps(ANN, PG_13).await;
    home.world.model_plays([says("Hello.")]);
    home.ann("hello again").await;
    assert!(!home.world.last_request_text().contains("Heat"), "{}", home.world.last_request_text());
}

#[tokio::test(start_paused = true)]
async fn answer_from_before_the_cap_is_not_recalled() {
    let home = Home::with_model().await;
    home.set_caps(ANN, RatingCaps::UNLIMITED).await;
    home.world.model_plays([says("Heat from 1995 is about robbers in the city.")]);
    home.ann("which film is about robbers in the city").await;
    home.world.pass(30 * MINUTE).await;
    for (caps, is_recalled) in [(RatingCaps::UNLIMITED, true), (PG_13, false)] {
        home.set_caps(ANN, PG_13).await;
        home.set_caps(ANN, caps).await;
        home.world.model_plays([says("Hello.")]);
        home.ann("the film about robbers in the city again").await;
        let request = home.world.last_request_text();
        assert_eq!(request.contains("Heat from 1995"), is_recalled, "{request}");
    }
}

#[tokio::test(start_paused = true)]
async fn person_with_a_cap_is_not_asked_in_votes_of_others() {
    let home = Home::start().await;
    home.world.register_user(DANA).await;
    home.name(DANA, "Dana").await;
    let started = home.bob("vote heat, up, alien").await;
    assert!(started.contains("Dana"), "{started}");
    assert!(home.world.messages_to(DANA).pop().unwrap_or_default().contains("heat"));
    assert_eq!(home.world.messages_to(ANN), Vec::<String>::new());
    assert!(!home.ann("vote").await.contains("heat"));
}

#[tokio::test(start_paused = true)]
async fn admin_with_stored_caps_starts_over_as_a_member() {
    let home = Home::start().await;
    home.world.register_admin(DANA).await;
    home.set_caps(DANA, PG_13).await;
    let found = home.world.sms_from(DANA, "search for heat").await.pop().unwrap();
    assert!(found.contains("Heat (1995)"), "{found}");
    let now = home.world.now();
    home.change(DANA, move |conn, user| {
        let changes = UserChanges { role: Some(UserRole::Member), ..UserChanges::default() };
        user_admin::change_user(conn, user.id, &changes, Actor::Shell, now).unwrap();
    })
    .await;
    let open = "SELECT count(*) AS line FROM conversations JOIN users ON users.id = conversations.user_id \
        WHERE ended_at IS NULL AND movie_cap IS NOT NULL AND role = 'member' AND display_name IS NULL";
    assert_eq!(home.world.lines(open).await, ["0"]);
    let hidden = home.world.sms_from(DANA, "search for heat").await.pop().unwrap();
    assert_eq!(hidden, "I found nothing for \"heat\".");
}

#[tokio::test(start_paused = true)]
async fn title_that_does_not_begin_with_the_words_is_not_asked_for() {
    let home = Home::start().await;
    home.world.radarr().add_to_catalog(movie("Heathers Forever").year(1990).tmdb(88).certification("R"));
    home.ann("add forever").await;
    assert_eq!(home.world.messages_to(BOB), Vec::<String>::new());
}
