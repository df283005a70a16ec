//! Proposals to make room: who is asked, what KEEP protects, and the deletions after REVIEW.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::making_room::{SilenceRule, SpacePolicy};
use dialarr::conversation::rating_caps::{MinimumAge, RatingCaps};
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::media_servers::CatalogIds;
use dialarr::store::people::{age_limits, users};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::harness::model::{calls, says};
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const CAT: &str = "+15550100004";

const ALIEN: i64 = 348;
const DUNE: i64 = 438_631;
const HEAT: i64 = 949;
const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;
const NONE: [String; 0] = [];

/// Household of Ann, an admin, Bob and Cat. Bob has finished Dune and Heat half a year ago, and Cat has finished Heat. Alien
/// is of nobody. All three movies are two years old.
struct Home {
    app: TestApp,
    bob: u64,
    cat: u64,
    dune: u64,
    heat: u64,
}

impl Home {
    async fn start(setup: Setup) -> Self {
        let app = setup.jellyfin().start().await;
        for (name, phone, has) in
            [("Ann", ANN, Has::EveryRight), ("Bob", BOB, Has::AddRight), ("Cat", CAT, Has::AddRight)]
        {
            app.register_named_user(name, phone, has).await;
        }
        let jellyfin = app.jellyfin();
        let (bob, cat) = (jellyfin.add_user("bobby"), jellyfin.add_user("cat"));
        let dune = add_movie(&app, ("Dune", 2021), (1, DUNE), 30.0);
        let heat = add_movie(&app, ("Heat", 1995), (2, HEAT), 18.0);
        add_movie(&app, ("Alien", 1979), (3, ALIEN), 12.0);
        let finished_at = days_ago(&app, 180);
        for (user, movie) in [(bob, dune), (bob, heat), (cat, heat)] {
            app.jellyfin().watch_at((user, movie), 100, finished_at);
        }
        let home = Self { app, bob, cat, dune, heat };
        home.app.link_viewer(BOB, bob).await;
        home.app.link_viewer(CAT, cat).await;
        home
    }

    async fn with_silence(silence: SilenceRule) -> Self {
        let policy = SpacePolicy { silence, ..SpacePolicy::default() };
        Self::start(Setup::default().keyword_responder().with(|settings| settings.making_room = policy)).await
    }

    async fn limit_bob(&self, caps: RatingCaps) {
        let (phone, now) = (PhoneNumber::parse(BOB).unwrap(), self.app.now());
        let limit = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            age_limits::set_rating_caps(conn, user.id, caps, now)
        };
        self.app.app().db.write(limit).await.unwrap();
    }

    /// Returns the titles of the newest proposal with their states.
    async fn states(&self) -> Vec<String> {
        let query = "SELECT title || ' ' || state AS line FROM space_proposal_titles \
                     WHERE proposal_id = (SELECT max(id) FROM space_proposals) ORDER BY number";
        self.app.lines(query).await
    }

    /// Runs the hourly work after some days, and returns the new messages to a person.
    async fn after_days(&self, days: i64, phone: &str) -> Vec<String> {
        let before = self.app.messages_to(phone).len();
        self.app.days_pass(days).await;
        self.app.messages_to(phone).split_off(before)
    }
}

fn days_ago(app: &TestApp, days: i64) -> Timestamp {
    app.now() - SignedDuration::from_hours(24 * days)
}

/// Returns the code of a confirmation prompt.
fn code_in(prompt: &str) -> String {
    let (_, rest) = prompt.split_once("YES ").unwrap();
    rest.split(' ').next().unwrap().to_owned()
}

/// Adds a movie that has been there for two years, also to Jellyfin.
fn add_movie(app: &TestApp, (title, year): (&str, u16), (id, tmdb): (i64, i64), size_gb: f64) -> u64 {
    let added = days_ago(app, 730);
    app.radarr().add(movie(title).id(id).tmdb(tmdb).year(year).size_gb(size_gb).added(added));
    let ids = CatalogIds { tmdb: Some(tmdb), ..CatalogIds::default() };
    app.jellyfin().add_movie((title, year), ids, SignedDuration::ZERO)
}

#[tokio::test]
async fn question_about_room_shows_what_could_go_and_asks_nobody() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    let preview = home.app.sms("make room?").await;
    assert_eq!(
        preview,
        "3 titles could go, 60 GB:\nDune (2021), 30 GB, last watched in May\nHeat (1995), 18 GB, last watched in May\n\
         Alien (1979), 12 GB, not watched in half a year\nText MAKE ROOM to ask the people concerned."
    );
    assert_eq!((home.states().await, home.app.messages_to(BOB)), (NONE.to_vec(), NONE.to_vec()));
    assert_eq!(home.app.sms_from(BOB, "make room").await, "Only an admin can do that. Please ask one.");
}

#[tokio::test]
async fn people_concerned_are_asked_and_silence_lets_titles_go() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    let started = home.app.sms("make room").await;
    assert_eq!(started, "3 titles could go, 60 GB. I asked Bob and Cat and tell you the result on Thursday.");
    assert_eq!(
        home.app.last_to(BOB),
        "Leaving Thursday to make room: 1 Dune (30 GB, you finished it in May) 2 Heat (18 GB, you finished it in May). \
         Reply KEEP 1 or KEEP ALL."
    );
    assert_eq!(
        home.app.last_to(CAT),
        "Leaving Thursday to make room: 1 Heat (18 GB, you finished it in May). Reply KEEP 1."
    );
    assert_eq!(home.app.sms_from(BOB, "keep 1").await, "Kept until Feb 18: Dune.");
    assert_eq!(home.after_days(7, ANN).await, ["2 titles may go, 30 GB. Text REVIEW to decide."]);
    assert_eq!(home.states().await, ["Dune stays", "Heat may_go", "Alien may_go"]);
}

#[tokio::test]
async fn review_deletes_after_the_usual_question_and_everybody_learns_it() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.sms("make room").await;
    home.app.sms_from(BOB, "keep dune").await;
    home.after_days(7, ANN).await;
    let asked = home.app.sms("REVIEW").await;
    let code = code_in(&asked);
    assert_eq!(
        asked,
        format!("Delete 2: Heat (1995), 18 GB; Alien (1979), 12 GB? Total 30 GB. Reply YES {code} or NO.")
    );
    let report = home.app.sms(&format!("yes {code}")).await;
    assert_eq!(report, "Deleted Heat (1995), Alien (1979). Freed 30 GB.");
    assert_eq!(home.app.radarr().removed_ids(), [2, 3]);
    assert_eq!(home.after_days(0, BOB).await, ["Heat was deleted to make room. Dune stays."]);
    assert_eq!(home.app.last_to(CAT), "Heat was deleted to make room.");
    assert_eq!(
        home.app.sms("review").await,
        "No titles wait for your decision. Text MAKE ROOM to look for some."
    );
}

#[tokio::test]
async fn silence_keeps_titles_unless_everybody_frees_them() {
    let home = Home::with_silence(SilenceRule::Stays).await;
    home.app.sms("make room").await;
    assert_eq!(
        home.app.last_to(CAT),
        "To make room by Thursday: 1 Heat (18 GB, you finished it in May). Reply FREE 1 if it may go, else KEEP 1. Titles \
         that nobody frees stay."
    );
    assert_eq!(home.app.sms_from(CAT, "free 1").await, "Heat may go.");
    assert_eq!(home.app.sms_from(BOB, "free dune").await, "Dune may go.");
    assert_eq!(home.after_days(7, ANN).await, ["2 titles may go, 42 GB. Text REVIEW to decide."]);
    assert_eq!(home.states().await, ["Dune may_go", "Heat stays", "Alien may_go"]);
}

#[tokio::test]
async fn keep_between_question_and_yes_stops_the_deletion() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.sms("make room").await;
    home.after_days(7, ANN).await;
    let asked = home.app.sms("review").await;
    let code = code_in(&asked);
    assert_eq!(home.app.sms_from(CAT, "keep heat").await, "Kept until Feb 25: Heat.");
    let report = home.app.sms(&format!("yes {code}")).await;
    assert_eq!(
        report,
        "Deleted Dune (2021), Alien (1979). Freed 42 GB. Somebody keeps Heat (1995), so I did not delete it. Text KEPT to see what is protected."
    );
    assert_eq!(home.app.radarr().removed_ids(), [1, 3]);
}

#[tokio::test]
async fn review_leaves_out_what_changed_or_is_watched_again() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.sms("make room").await;
    home.after_days(7, ANN).await;
    home.app.radarr().edit(1, |dune| dune.size_bytes *= 2);
    home.app.jellyfin().watch(home.cat, home.heat, 40);
    // What people have watched is read again after a while.
    home.app.pass(DAY / 2);
    let asked = home.app.sms("review").await;
    assert_eq!(asked, "Delete Alien (1979) and its file, 12 GB? Reply YES or NO.");
    assert_eq!(home.app.sms("no").await, "OK, kept.");
    assert_eq!(home.states().await, ["Dune may_go", "Heat may_go", "Alien stays"]);
    assert_eq!(home.app.radarr().removed_ids(), [0_i64; 0]);
}

#[tokio::test]
async fn title_that_is_playing_or_half_watched_or_new_is_not_proposed() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.jellyfin().start_playing(home.bob, home.dune);
    home.app.jellyfin().watch(home.cat, home.heat, 40);
    home.app.radarr().edit(3, |alien| alien.added = days_ago(&home.app, 20));
    assert_eq!(
        home.app.sms("make room").await,
        "I found nothing that could go: every title is new, kept, or still being watched."
    );
    assert_eq!(home.states().await, NONE);
}

#[tokio::test]
async fn media_server_that_does_not_answer_stops_the_proposal() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.jellyfin().set_status(Some(503));
    for text in ["make room", "make room?"] {
        assert_eq!(
            home.app.sms(text).await,
            "Jellyfin does not answer, so I can't tell what could go.",
            "{text}"
        );
    }
    assert_eq!(home.states().await, NONE);
}

#[tokio::test]
async fn second_proposal_does_not_start_while_one_is_open() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.sms("make room").await;
    assert_eq!(
        home.app.sms("make room").await,
        "The household is being asked already. You get the result on Thursday."
    );
    let proposals = home.app.lines("SELECT count(*) AS line FROM space_proposals").await;
    assert_eq!(proposals, ["1"]);
}

#[tokio::test]
async fn kept_title_is_proposed_again_only_after_ninety_days() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.sms("make room").await;
    home.app.sms_from(BOB, "keep all").await;
    home.app.sms_from(CAT, "keep 1").await;
    assert_eq!(
        home.app.sms_from(BOB, "kept").await,
        "Kept:\n1. Dune, until Feb 18\n2. Heat, until Feb 18\nText UNKEEP 1 if it is no longer needed."
    );
    home.after_days(20, ANN).await;
    assert!(!home.app.sms("make room?").await.contains("Dune"));
    assert_eq!(home.app.sms_from(BOB, "unkeep dune").await, "Dune is no longer kept.");
    assert_eq!(home.app.sms_from(BOB, "unkeep 1").await, "Heat is still kept by others.");
    assert!(home.app.sms("make room?").await.contains("Dune (2021), 30 GB"));
    assert!(!home.app.sms("make room?").await.contains("Heat"));
    home.after_days(91, ANN).await;
    assert!(home.app.sms("make room?").await.contains("Heat (1995), 18 GB"));
}

#[tokio::test]
async fn full_disk_starts_a_proposal_with_as_much_as_is_missing() {
    let policy =
        SpacePolicy { min_free_gb: Some(110), silence: SilenceRule::MayGo, ..SpacePolicy::default() };
    let home =
        Home::start(Setup::default().keyword_responder().with(|settings| settings.making_room = policy))
            .await;
    home.app.radarr().add_root_folder("/full", Some(95_000_000_000));
    home.app.later(HOUR).await;
    assert_eq!(home.states().await, ["Dune asked"]);
    assert_eq!(home.app.messages_to(CAT), NONE);
    // The next one starts a week after the end of this one.
    home.app.sms_from(BOB, "keep all").await;
    home.app.run_maintenance().await;
    home.app.later(6 * DAY).await;
    assert_eq!(home.states().await, ["Dune stays"]);
    home.app.later(2 * DAY).await;
    assert_eq!(home.states().await, ["Heat asked", "Alien asked"]);
}

#[tokio::test]
async fn monthly_proposal_starts_by_itself() {
    let policy = SpacePolicy { monthly: true, ..SpacePolicy::default() };
    let home =
        Home::start(Setup::default().keyword_responder().with(|settings| settings.making_room = policy))
            .await;
    home.app.later(HOUR).await;
    assert_eq!(home.states().await, ["Dune asked", "Heat asked", "Alien asked"]);
    assert!(home.app.last_to(BOB).starts_with("To make room by Thursday: 1 Dune"));
}

#[tokio::test]
async fn proposal_survives_restarts_and_asks_once() {
    let mut home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.sms("make room").await;
    home.app.restart().await;
    home.app.sms_from(CAT, "keep 1").await;
    home.app.restart().await;
    assert_eq!(home.after_days(7, ANN).await, ["2 titles may go, 42 GB. Text REVIEW to decide."]);
    home.app.restart().await;
    assert_eq!(home.after_days(1, ANN).await, NONE);
    assert_eq!(home.after_days(7, BOB).await, ["Dune and Heat stay."]);
    let questions = home.app.messages_to(BOB).into_iter().filter(|text| text.starts_with("Leaving"));
    assert_eq!(questions.count(), 1);
}

#[tokio::test]
async fn yes_or_ok_answers_no_question_about_room() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.sms("make room").await;
    for text in ["yes", "ok", "no", "1", "keep it"] {
        home.app.sms_from(BOB, text).await;
    }
    assert_eq!(home.states().await, ["Dune asked", "Heat asked", "Alien asked"]);
    assert_eq!(home.app.lines("SELECT count(*) AS line FROM kept_titles").await, ["0"]);
}

#[tokio::test]
async fn title_over_a_cap_is_not_named_to_the_person() {
    let home = Home::with_silence(SilenceRule::Stays).await;
    home.app.radarr().edit(1, |dune| dune.certification = Some("R".to_owned()));
    home.app.radarr().edit(2, |heat| heat.certification = Some("PG".to_owned()));
    home.limit_bob(RatingCaps { movies: Some(MinimumAge(13)), shows: None }).await;
    home.app.sms("make room").await;
    // Bob cannot be asked about Dune, so silence protects it.
    assert_eq!(home.states().await, ["Heat asked", "Alien asked"]);
    assert!(home.app.last_to(BOB).starts_with("To make room by Thursday: 1 Heat"));
    home.app.sms_from(BOB, "free 1").await;
    home.app.sms_from(CAT, "keep 1").await;
    home.app.run_maintenance().await;
    home.after_days(8, ANN).await;
    assert_eq!(home.app.last_to(BOB), "Of the titles that I asked you about, 0 left and 1 stayed.");
}

#[tokio::test]
async fn changed_cap_protects_what_the_person_was_asked_about() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.sms("make room").await;
    home.limit_bob(RatingCaps { movies: Some(MinimumAge(13)), shows: None }).await;
    assert_eq!(home.states().await, ["Dune stays", "Heat stays", "Alien asked"]);
    assert!(!home.app.sms_from(BOB, "keep 1").await.contains("Dune"));
}

#[tokio::test]
async fn deleted_title_gives_its_quota_back() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    // The first reading of the history only stores where it ends.
    home.app.later(60).await;
    let radarr = home.app.radarr();
    radarr.add_to_catalog(movie("Arrival").year(2016).tmdb(329_865));
    assert_eq!(home.app.sms_from(BOB, "add arrival").await, "Added Arrival (2016).");
    radarr.download_and_import("Arrival");
    let id = radarr.titles().into_iter().find(|title| title.title == "Arrival").unwrap().id;
    radarr.edit(id, |arrival| arrival.size_bytes = 9_000_000_000);
    let ids = CatalogIds { tmdb: Some(329_865), ..CatalogIds::default() };
    home.app.jellyfin().add_movie(("Arrival", 2016), ids, SignedDuration::ZERO);
    home.app.later(HOUR).await;
    home.app.days_pass(200).await;
    let counted =
        "SELECT (SELECT count(*) FROM additions) || ' ' || (SELECT count(*) FROM title_attributions) AS line";
    assert_eq!(home.app.lines(counted).await, ["1 1"]);
    home.app.sms("make room").await;
    assert!(home.app.last_to(BOB).contains("Arrival ("), "{}", home.app.last_to(BOB));
    home.after_days(7, ANN).await;
    let asked = home.app.sms("review").await;
    home.app.sms(&format!("yes {}", code_in(&asked))).await;
    assert_eq!(home.app.lines(counted).await, ["0 0"]);
}

#[tokio::test]
async fn model_may_look_but_deletes_only_after_words_that_ask_for_it() {
    let policy = SpacePolicy { silence: SilenceRule::MayGo, ..SpacePolicy::default() };
    let app = Home::start(Setup::default().with(|settings| settings.making_room = policy)).await.app;
    app.sms("make room").await;
    app.days_pass(7).await;
    let removal = json!({ "items": [{ "type": "movie", "id": 2 }], "delete_files": true });
    app.model_plays([
        calls("make_room", json!({ "step": "review" })),
        calls("remove_media", removal),
        says("I can't do that."),
    ]);
    assert_eq!(app.sms("what is up with the disk").await, "I can't do that.");
    assert!(app.results().iter().any(|result| result.contains("not_requested")), "{:?}", app.results());
    assert_eq!(app.lines("SELECT count(*) AS line FROM pending_actions").await, ["0"]);
}

#[tokio::test]
async fn page_shows_what_could_go_and_why() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    let mut browser = home.app.browser().await;
    let page = browser.get("/make-room").await;
    page.assert_shows(200, "Dune (2021) last watched in May");
    page.assert_shows(200, "Alien (1979) not watched in half a year");
    home.app.sms("make room").await;
    home.app.sms_from(BOB, "keep 1").await;
    let page = browser.get("/make-room").await;
    page.assert_shows(200, "Bob : keeps it");
    page.assert_shows(200, "Cat : no answer");
    page.assert_shows(200, "Dune (2021) kept by Bob");
    home.app.jellyfin().set_status(Some(503));
    browser.get("/make-room").await.assert_shows(200, "Jellyfin does not answer");
}

#[tokio::test]
async fn export_has_answers_and_kept_titles_and_forgetting_removes_them() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.sms("make room").await;
    home.app.sms_from(BOB, "keep 1").await;
    let export = home.app.export_user(BOB);
    assert_eq!(export["titles_kept"][0]["title"], "Dune");
    assert_eq!(export["answers_about_titles"][0]["answer"], "keep");
    home.app.forget_user(BOB);
    // Heat is still asked of Cat, but Bob can no longer answer.
    assert_eq!(home.states().await, ["Dune stays", "Heat stays", "Alien asked"]);
    assert_eq!(home.app.lines("SELECT count(*) AS line FROM kept_titles").await, ["0"]);
}

#[tokio::test]
async fn keep_all_keeps_titles_and_closes_a_prompt() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.execute("UPDATE users SET can_delete = 1 WHERE display_name = 'Bob'").await;
    home.app.sms("make room").await;
    home.app.sms_from(BOB, "delete alien").await;
    let reply = home.app.sms_from(BOB, "keep all").await;
    assert_eq!(reply, "OK, Alien (1979) is kept. Kept until Feb 18: Dune and Heat.");
    assert_eq!(home.states().await, ["Dune stays", "Heat stays", "Alien may_go"]);
    assert_eq!(home.app.lines("SELECT count(*) AS line FROM pending_actions").await, ["0"]);
}

#[tokio::test]
async fn digest_names_what_leaves_and_how_to_keep_it() {
    let home = Home::with_silence(SilenceRule::MayGo).await;
    home.app.sms("make room").await;
    home.app.sms_from(BOB, "digest friday 18").await;
    home.app.sms_from(BOB, "digest").await;
    home.app.later(1).await;
    let digest = home.app.last_to(BOB);
    assert!(digest.contains("Leaving:\n1. Dune (2021), Thu"), "{digest}");
    assert_eq!(home.app.sms_from(BOB, "1").await, "Text KEEP 1 to keep Dune (2021).");
    assert_eq!(home.app.sms_from(BOB, "keep 1").await, "Kept until Feb 18: Dune.");
}
