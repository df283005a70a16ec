//! What several people can watch tonight: the choice of the titles, the vote about them, and who reads what.

use dialarr::arr::fake::media_fixtures::{FakeMovie, movie, series};
use dialarr::conversation::rating_caps::{MinimumAge, RatingCaps};
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::conversation::viewer_accounts::{MediaServerKind, ViewerAccount, WatchSharing};
use dialarr::media_servers::CatalogIds;
use dialarr::media_servers::fake::FakeJellyfin;
use dialarr::store::audit::Actor;
use dialarr::store::people::{age_limits, users, viewer_accounts};
use jiff::SignedDuration;
use serde_json::json;

use crate::harness::model::{calls, says};
use crate::harness::room::{BOB_ACCOUNT, FAMILY};
use crate::harness::telegram::ANN_ACCOUNT;
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const DANA: &str = "+15550100004";
const HEAT: i64 = 949;
const ALIEN: i64 = 348;
const UP: i64 = 14_160;
const COCO: i64 = 354_912;
const DUNE: i64 = 438_631;
/// Titles over the caps of Dana.
const OVER_THE_CAP: [&str; 2] = ["Heat", "Alien"];
const PG_13: RatingCaps = RatingCaps { movies: Some(MinimumAge(13)), shows: None };
const NO_VOTE: &str = "Nobody is voting right now. Text VOTE and some titles to start, like VOTE Dune, Heat.";
const NOT_ANSWERED: &str =
    "Jellyfin does not answer, so I can't tell what you can watch. Please ask me again later.";

/// Household of Ann, who is an admin, Bob and Dana. The library has five movies.
struct Home {
    app: TestApp,
}

fn movies() -> Vec<FakeMovie> {
    let add = |title: &str, year, tmdb| movie(title).tmdb(tmdb).year(year).size_gb(9.0);
    vec![
        add("Heat", 1995, HEAT).minutes(170).rating(8.9).genres(&["Crime"]).certification("R"),
        add("Alien", 1979, ALIEN).minutes(117).rating(8.5).genres(&["Horror"]).certification("R"),
        add("Up", 2009, UP).minutes(96).rating(8.0).genres(&["Animation"]).certification("PG"),
        add("Coco", 2017, COCO).minutes(105).rating(7.5).genres(&["Family"]).certification("PG"),
        add("Dune", 2021, DUNE).minutes(155).rating(7.0).genres(&["Drama"]).certification("PG-13"),
    ]
}

fn keyword() -> Setup {
    Setup::default().keyword_responder().with(|settings| settings.watch_sharing = WatchSharing::Household)
}

impl Home {
    async fn start(setup: Setup) -> Self {
        let app = setup.start().await;
        app.register_named_user("Ann", ANN, Has::EveryRight).await;
        app.register_named_user("Bob", BOB, Has::AddRight).await;
        app.register_named_user("Dana", DANA, Has::AddRight).await;
        for movie in movies() {
            app.radarr().add(movie);
        }
        Self { app }
    }

    /// Starts with a Jellyfin that has all movies, and accounts of Ann, Bob and Dana there. Bob has seen Alien, and Ann Heat.
    async fn with_jellyfin(setup: Setup) -> Self {
        let home = Self::start(setup.jellyfin()).await;
        let jellyfin = home.app.jellyfin();
        let items: Vec<u64> = movies()
            .into_iter()
            .map(|movie| {
                let ids = CatalogIds { tmdb: Some(movie.catalog_id), ..CatalogIds::default() };
                jellyfin.add_movie((&movie.title, movie.year), ids, SignedDuration::ZERO)
            })
            .collect();
        let accounts = [ANN, BOB, DANA].map(|phone| (phone, jellyfin.add_user(phone)));
        jellyfin.watch(accounts[0].1, items[0], 100);
        jellyfin.watch(accounts[1].1, items[1], 100);
        for (phone, account) in accounts {
            home.link(phone, account).await;
        }
        home
    }

    async fn link(&self, phone: &str, account: u64) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.app.now());
        let id = FakeJellyfin::user_id(account);
        let account = ViewerAccount { server: MediaServerKind::Jellyfin, id, name: "someone".to_owned() };
        let link = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            viewer_accounts::link_account(conn, user.id, &account, Actor::Console, now).map(drop)
        };
        self.app.app().db.write(link).await.unwrap();
    }

    async fn unlink_dana(&self) {
        self.app.execute("DELETE FROM viewer_accounts WHERE user_id = 3").await;
    }

    async fn set_caps(&self, phone: &str, caps: RatingCaps) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.app.now());
        let set = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            age_limits::set_rating_caps(conn, user.id, caps, now)
        };
        self.app.app().db.write(set).await.unwrap();
    }

    async fn votes(&self) -> usize {
        self.app.count("votes").await
    }

    /// Lets everybody choose a number, and returns the result as Ann reads it.
    async fn everybody_votes(&self, numbers: [u8; 3]) -> String {
        for (phone, number) in [ANN, BOB, DANA].into_iter().zip(numbers) {
            self.app.sms_from(phone, &format!("vote {number}")).await;
        }
        self.app.last_to(ANN)
    }
}

#[tokio::test]
async fn household_votes_on_what_nobody_has_seen_and_reads_who_won() {
    let home = Home::with_jellyfin(keyword()).await;
    let reply = home.app.sms("what can we all watch tonight").await;
    let options = "What should we watch tonight?\n1. Up (2009), 1 h 36 min, Animation\n2. Coco (2017), 1 h 45 min, Family\n3. \
                   Dune (2021), 2 h 35 min, Drama\n";
    let hint = "Reply VOTE and a number until ";
    assert!(
        reply.starts_with(&format!("I asked Bob and Dana. {options}None of you has seen them.\n{hint}")),
        "{reply}"
    );
    for phone in [BOB, DANA] {
        let asked = home.app.messages_to(phone);
        assert_eq!(asked.len(), 1);
        assert!(asked[0].starts_with(&format!("Ann asks: {options}{hint}")), "{asked:?}");
    }
    assert!(home.app.sms("3").await.starts_with("OK, your vote is Dune (2021)."));
    assert!(home.app.sms_from(BOB, "1").await.starts_with("OK, your vote is Up (2009)."));
    home.app.sms_from(DANA, "vote up").await;
    for phone in [ANN, BOB, DANA] {
        let results: Vec<String> =
            home.app.messages_to(phone).into_iter().filter(|text| text.contains("wins")).collect();
        let result = "What should we watch tonight? Up (2009) wins with 2 of 3 votes. Others: Dune (2021) 1.";
        assert_eq!(results, [result]);
    }
    assert_eq!(home.app.lines("SELECT CAST(winner AS TEXT) AS line FROM votes").await, ["1"]);
}

#[tokio::test]
async fn person_with_a_cap_takes_part_and_reads_nothing_over_it() {
    let home = Home::start(keyword()).await;
    home.set_caps(DANA, PG_13).await;
    let reply = home.app.sms("movie night").await;
    assert!(reply.contains("1. Up (2009)") && reply.starts_with("I asked Bob and Dana."), "{reply}");
    home.everybody_votes([1, 2, 2]).await;
    for text in home.app.messages_to(DANA) {
        assert!(!OVER_THE_CAP.iter().any(|title| text.contains(title)), "{text}");
    }
    assert!(home.app.last_to(DANA).contains("Coco (2017) wins with 2 of 3 votes."));
    // Without Dana, the others choose among all titles, and Dana reads nothing of it.
    let before = home.app.messages_to(DANA).len();
    let reply = home.app.sms("what can i watch with bob tonight").await;
    assert!(reply.starts_with("I asked Bob. What should we watch tonight?\n1. Heat (1995)"), "{reply}");
    assert_eq!(home.app.sms_from(DANA, "vote").await, NO_VOTE);
    assert_eq!(home.app.sms_from(DANA, "vote 1").await, NO_VOTE);
    let others = "Other people are voting right now. Try again when they are done.";
    assert_eq!(home.app.sms_from(DANA, "vote up, coco").await, others);
    assert_eq!(home.app.sms_from(DANA, "movie night").await, others);
    assert_eq!(home.app.messages_to(DANA).len(), before + 4);
    home.app.sms("vote 1").await;
    home.app.sms_from(BOB, "vote 1").await;
    assert!(home.app.last_to(BOB).contains("Heat (1995) wins with 2 of 2 votes."));
    assert_eq!(home.app.messages_to(DANA).len(), before + 4);
}

#[tokio::test]
async fn cap_that_is_lowered_during_the_vote_hides_its_titles() {
    let home = Home::start(keyword()).await;
    home.app.sms("what can we all watch tonight").await;
    let before = home.app.messages_to(DANA).len();
    home.set_caps(DANA, PG_13).await;
    assert_eq!(home.app.sms_from(DANA, "vote 1").await, NO_VOTE);
    home.app.sms("vote 1").await;
    home.app.sms_from(BOB, "vote 1").await;
    home.app.sms("close vote").await;
    assert!(home.app.last_to(BOB).contains("Heat (1995) wins"));
    assert_eq!(home.app.messages_to(DANA).len(), before + 1);
}

#[tokio::test]
async fn person_without_an_account_is_named_as_unknown() {
    let home = Home::with_jellyfin(keyword()).await;
    home.unlink_dana().await;
    let reply = home.app.sms("what can dana and i watch tonight").await;
    assert!(reply.starts_with("I asked Dana. What should we watch tonight?\n1. Alien (1979)"), "{reply}");
    assert!(reply.contains("\nI can't see what Dana has watched.\n"), "{reply}");
    assert!(!reply.contains("has seen"), "{reply}");
}

#[tokio::test]
async fn household_that_does_not_share_reads_no_word_about_watching() {
    let home = Home::with_jellyfin(Setup::default().keyword_responder()).await;
    let reply = home.app.sms("what can we all watch tonight").await;
    assert!(reply.contains("1. Up (2009)") && !reply.contains("seen"), "{reply}");
}

#[tokio::test]
async fn name_that_is_unknown_or_ambiguous_is_asked_about() {
    let home = Home::start(keyword()).await;
    assert_eq!(
        home.app.sms("what can zed and bob watch tonight").await,
        "I don't know anybody called \"zed\". Who do you mean?"
    );
    home.app.register_named_user("Bob Gray", "+15550100005", Has::AddRight).await;
    home.app.register_named_user("Bob Stone", "+15550100006", Has::AddRight).await;
    home.app.execute("UPDATE users SET display_name = 'Robert' WHERE display_name = 'Bob'").await;
    assert_eq!(home.app.sms("what can bob watch tonight").await, "Who do you mean, Bob Gray or Bob Stone?");
    assert_eq!(home.votes().await, 0);
}

#[tokio::test]
async fn nothing_is_proposed_while_the_media_server_does_not_answer() {
    let home = Home::with_jellyfin(keyword()).await;
    home.app.jellyfin().set_status(Some(503));
    assert_eq!(home.app.sms("what can we all watch tonight").await, NOT_ANSWERED);
    // Nobody is linked, but it is not known either what can be played.
    home.app.execute("DELETE FROM viewer_accounts").await;
    home.app.later(60).await;
    assert_eq!(home.app.sms("what can we all watch tonight").await, NOT_ANSWERED);
    assert_eq!((home.votes().await, home.app.messages_to(BOB).len()), (0, 0));
    home.app.jellyfin().set_status(None);
    home.app.later(60).await;
    let reply = home.app.sms("what can we all watch tonight").await;
    assert!(reply.contains("1. Heat (1995)") && reply.contains("what some of you have watched"), "{reply}");
}

#[tokio::test]
async fn titles_fit_the_time_and_can_be_played() {
    let home = Home::with_jellyfin(keyword()).await;
    home.app.radarr().add(movie("Short").year(2001).tmdb(77).minutes(80).size_gb(1.0).rating(9.9));
    let reply = home.app.sms("what should we watch tonight, under 100 minutes").await;
    assert_eq!(reply, "You could watch:\n- Up (2009), 1 h 36 min, Animation\nNone of you has seen them.");
    let reply = home.app.sms("what can we all watch tonight in 30 minutes").await;
    assert_eq!(reply, "I found nothing in the library of up to 30 min for tonight.");
    assert_eq!(home.votes().await, 0);
}

#[tokio::test]
async fn person_alone_gets_suggestions_and_no_vote() {
    let app = keyword().start().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    for movie in movies() {
        app.radarr().add(movie);
    }
    let reply = app.sms("movie night").await;
    assert_eq!(
        reply,
        "You could watch:\n- Heat (1995), 2 h 50 min, Crime\n- Alien (1979), 1 h 57 min, Horror\n- Up (2009), 1 h 36 \
         min, Animation"
    );
    assert_eq!(app.count("votes").await, 0);
}

#[tokio::test]
async fn person_who_cannot_be_asked_is_not_texted_but_counts() {
    let home = Home::with_jellyfin(keyword()).await;
    home.app.sms_from(BOB, "notify off").await;
    let before = home.app.messages_to(BOB).len();
    // Without a name, only those who can be asked take part, so that Alien is new to all of them.
    let reply = home.app.sms("what can we all watch tonight").await;
    assert!(reply.starts_with("I asked Dana. What should we watch tonight?\n1. Alien (1979)"), "{reply}");
    home.app.sms("close vote").await;
    let reply = home.app.sms("what can bob and dana watch tonight").await;
    assert!(reply.starts_with("I asked Dana. What should we watch tonight?\n1. Up (2009)"), "{reply}");
    assert!(reply.contains("I can't text Bob right now."), "{reply}");
    assert_eq!(home.app.messages_to(BOB).len(), before);
}

#[tokio::test]
async fn tie_goes_to_the_person_whose_choice_lost_most_recently() {
    let home = Home::start(keyword()).await;
    home.app.sms("what can we all watch tonight").await;
    assert!(home.everybody_votes([1, 1, 3]).await.contains("Heat (1995) wins with 2 of 3 votes."));
    home.app.later(3600).await;
    home.app.sms("what can dana and i watch tonight").await;
    home.app.sms("vote 1").await;
    home.app.sms_from(DANA, "vote 2").await;
    let result = "What should we watch tonight? It is a tie between Heat (1995) and Alien (1979) with 1 vote each. Alien \
                  (1979) wins, because the choice of Dana lost most recently.";
    assert_eq!((home.app.last_to(ANN).as_str(), home.app.last_to(DANA).as_str()), (result, result));
    // Now Ann's choice is the one that lost last.
    home.app.sms("what can dana and i watch tonight").await;
    home.app.sms("vote 3").await;
    home.app.sms_from(DANA, "vote 2").await;
    assert!(
        home.app.last_to(DANA).ends_with("Up (2009) wins, because the choice of Ann lost most recently.")
    );
    assert_eq!(home.app.lines("SELECT CAST(winner AS TEXT) AS line FROM votes").await, ["1", "2", "3"]);
}

#[tokio::test]
async fn tie_of_people_who_lost_nothing_goes_to_the_lower_number() {
    let home = Home::start(keyword()).await;
    home.app.sms("what can we all watch tonight").await;
    let result = home.everybody_votes([3, 2, 1]).await;
    assert!(
        result.ends_with("with 1 vote each. Heat (1995) wins, because it is first in the list."),
        "{result}"
    );
}

#[tokio::test]
async fn number_picks_from_the_last_list_and_is_asked_about_otherwise() {
    let home = Home::start(keyword()).await;
    home.app.radarr().add_to_catalog(movie("Dune").year(1984).tmdb(841));
    home.app.sms("what can we all watch tonight").await;
    home.app.sms_from(BOB, "do we have dune").await;
    assert_eq!(home.app.sms_from(BOB, "2").await, "Do you mean the vote? Text VOTE 2 for the vote.");
    let list = home.app.sms_from(BOB, "search dune").await;
    assert!(list.contains("2. Dune"), "{list}");
    let picked = home.app.sms_from(BOB, "2").await;
    assert!(picked.contains("Dune") && !picked.contains("vote"), "{picked}");
    home.app.sms_from(BOB, "status").await;
    assert_eq!(
        home.app.sms_from(BOB, "2").await,
        "Do you mean the vote or the list? Text VOTE 2 for the vote, or ask me for the list again."
    );
    assert_eq!(home.app.count("ballots").await, 0);
    assert!(home.app.sms_from(BOB, "vote 2").await.starts_with("OK, your vote is Alien (1979)."));
    // The question is the last message to Dana.
    assert!(home.app.sms_from(DANA, "1").await.starts_with("OK, your vote is Heat (1995)."));
}

#[tokio::test]
async fn model_starts_the_vote_and_adds_no_words_to_its_question() {
    let home = Home::start(Setup::default()).await;
    let call = calls("tonight", json!({ "people": ["Bob"], "minutes": 120 }));
    home.app.model_plays([call, says("I asked Bob to pick one!")]);
    let reply = home.app.sms("find something for Bob and me, we have two hours").await;
    assert!(reply.starts_with("I asked Bob. What should we watch tonight?\n1. Alien (1979)"), "{reply}");
    assert!(!reply.contains("pick one"), "{reply}");
    assert_eq!(home.app.messages_to(ANN).len(), 1);
    assert!(home.app.sms("2").await.starts_with("OK, your vote is Up (2009)."));
    home.app.model_plays([calls("tonight", json!({})), says("There is one already.")]);
    assert_eq!(home.app.sms("find something for everybody").await, "There is one already.");
    assert!(home.app.results().last().unwrap().contains("There is a vote already."));
    assert_eq!(home.votes().await, 1);
}

#[tokio::test]
async fn show_that_is_new_to_everybody_can_be_chosen() {
    let home = Home::start(keyword()).await;
    for (title, tvdb, certification) in [("Bluey", 1, "TV-Y"), ("Dark", 2, "TV-MA"), ("Lego", 3, "TV-G")] {
        let fixture = series(title).tvdb(tvdb).year(2018).seasons(1).episodes(3).size_gb(3.0);
        home.app.sonarr().add(fixture.minutes(25).certification(certification));
    }
    home.set_caps(BOB, RatingCaps { movies: None, shows: Some(MinimumAge(7)) }).await;
    let reply = home.app.sms("what show can we all watch tonight").await;
    assert!(reply.contains("1. Bluey (2018), 25 min\n2. Lego (2018), 25 min\n"), "{reply}");
    assert!(!reply.contains("Dark"), "{reply}");
}

#[tokio::test]
async fn vote_is_exported_and_erased_with_its_choices() {
    let home = Home::start(keyword()).await;
    home.app.sms("what can we all watch tonight").await;
    home.everybody_votes([1, 1, 2]).await;
    let export = home.app.export_user(ANN);
    let vote = &export["votes_started"][0];
    assert_eq!((&vote["winner"], &vote["checked_kind"]), (&json!(1), &json!("movie")));
    assert_eq!(vote["reasons"][0], json!("2 h 50 min, Crime"));
    assert_eq!(home.app.export_user(DANA)["votes_given"][0]["choice"], json!(2));
    home.app.sms_from(DANA, "forget all").await;
    assert_eq!(home.app.count("ballots").await, 2);
    home.app.sms("forget all").await;
    assert_eq!((home.votes().await, home.app.count("ballots").await), (0, 0));
}

#[tokio::test]
async fn vote_goes_on_after_a_restart() {
    let mut home = Home::start(keyword()).await;
    home.app.sms("what can we all watch tonight").await;
    home.app.restart().await;
    home.app.sms_from(BOB, "2").await;
    home.app.restart().await;
    home.app.sms("2").await;
    home.app.sms_from(DANA, "1").await;
    for phone in [ANN, BOB, DANA] {
        let results = home.app.messages_to(phone).into_iter().filter(|text| text.contains("wins")).count();
        assert_eq!(results, 1);
    }
}

impl World {
    async fn add_movies(&self) {
        for movie in movies() {
            self.radarr().add(movie);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn group_votes_in_a_poll_within_the_lowest_cap() {
    let world = World::start_in_room().await;
    world.add_movies().await;
    world.write_in_room(BOB_ACCOUNT, "good evening").await;
    let caps = |conn: &mut _| {
        let bob = users::load_known_users(conn)?.into_iter().find(|user| user.name.as_deref() == Some("Bob"));
        age_limits::set_rating_caps(conn, bob.unwrap().id, PG_13, jiff::Timestamp::UNIX_EPOCH)
    };
    world.write_database(caps).await;
    world.model_plays([calls("tonight", json!({})), says(""), says("")]);
    let texts = world.write_in_room(ANN_ACCOUNT, "@home_bot what can we all watch tonight").await;
    assert!(texts.last().unwrap().starts_with("Choose in the poll until "), "{texts:?}");
    let sent = world.telegram().sent_messages().into_iter().rev();
    let (message, poll) = sent.filter_map(|sent| Some((sent.message_id, sent.poll?))).next().unwrap();
    assert_eq!(
        poll.options,
        [
            "Up (2009), 1 h 36 min, Animation",
            "Coco (2017), 1 h 45 min, Family",
            "Dune (2021), 2 h 35 min, Drama"
        ]
    );
    for (person, option) in [(ANN_ACCOUNT, 0), (BOB_ACCOUNT, 2)] {
        assert!(world.telegram().vote(person, FAMILY, message, &[option]));
    }
    world.pass(2 * 3600).await;
    let result = world.answers_in_room().pop().unwrap();
    assert_eq!(
        result,
        "What should we watch tonight? It is a tie between Up (2009) and Dune (2021) with 1 vote each. Up (2009) wins, \
         because it is first in the list."
    );
}
