//! Tests of the request grammar: labeled phrases, each intent, and properties of any text.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::labels::{Judgment, LabeledPhrase};
use super::parser::parse_line;
use super::request::Request;

#[derive(Deserialize)]
struct PhraseFile {
    phrases: Vec<LabeledPhrase>,
}

#[track_caller]
fn check_file(file: &str, at_least: usize) {
    let file: PhraseFile = serde_json::from_str(file).unwrap();
    let mut wrong = Vec::new();
    for phrase in &file.phrases {
        let (judgment, found) = phrase.judge();
        assert_ne!(judgment, Judgment::Harmful, "{:?}: {found}", phrase.text);
        if judgment != Judgment::Right {
            wrong.push(format!("{:?}: {found}", phrase.text));
        }
    }
    let right = file.phrases.len() - wrong.len();
    assert!(right >= at_least, "{right} are right; wrong:\n{}", wrong.join("\n"));
}

#[test]
fn labeled_phrases_are_parsed() {
    check_file(include_str!("../../../../tests/data/phrases.json"), 297);
    check_file(include_str!("../../../../tests/data/more_phrases.json"), 240);
}

#[test]
fn phrase_without_a_request_never_becomes_an_action() {
    let file: Value = serde_json::from_str(include_str!("../../../../tests/data/phrases.json")).unwrap();
    let phrases = file["phrases"].as_array().unwrap();
    let is_other =
        |phrase: &&Value| ["unknown", "pronoun_remove"].contains(&phrase["intent"].as_str().unwrap());
    for text in phrases.iter().filter(is_other).map(|phrase| phrase["text"].as_str().unwrap()) {
        let parsed = parse_line(text);
        let all = parsed.requests.iter().chain(&parsed.title_reading);
        assert!(!all.into_iter().any(Request::acts), "{text:?}");
    }
}

/// Checks that each text has the intent and the arguments.
#[track_caller]
fn check(intent: &str, arguments: &Value, texts: &[&str]) {
    for text in texts {
        let found: Vec<(&str, Value)> =
            parse_line(text).first_reading().iter().map(Request::intent).collect();
        assert_eq!(found, [(intent, arguments.clone())], "{text:?}");
    }
}

#[test]
fn add_takes_a_title_and_its_description() {
    check(
        "add",
        &json!({ "title": "dune" }),
        &["add dune", "can you grab dune pls", "we'd like dune", "put dune on plex"],
    );
    let described = json!({ "title": "the bear", "seasons": [3], "quality": "4k" });
    check("add", &described, &["get the bear s3 in 4k", "add season 3 of the bear in 4k please"]);
    check("add", &json!({ "title": "dune", "year": 2021, "type": "movie" }), &["add the movie dune (2021)"]);
}

#[test]
fn own_space_needs_my_or_i() {
    let own = [
        "my space",
        "MY SPCE?",
        "show me my space",
        "how much space do i use",
        "how much space do my titles take up?",
        "what space do my titles take",
        "how much disk space are my movies using",
        "how big are my shows",
    ];
    check("my_space", &json!({}), &own);
    check("space", &json!({}), &["space", "how much space is left", "disk space", "what is taking up space"]);
}

#[test]
fn drop_takes_numbers_and_other_words_are_titles() {
    check(
        "drop",
        &json!({ "numbers": [1] }),
        &["drop 1", "Drop #1.", "please drop number one", "drop the first one"],
    );
    check(
        "drop",
        &json!({ "numbers": [1, 3] }),
        &["drop 1 3", "drop 1 and 3", "drop 1, 3 please", "drp 1 3"],
    );
    check("remove", &json!({ "titles": ["heat"] }), &["drop heat"]);
    check("remove", &json!({ "titles": ["1917"] }), &["drop 1917"]);
}

#[test]
fn have_asks_for_a_title_season_or_episode() {
    check(
        "have",
        &json!({ "title": "heat" }),
        &["do we have heat", "have u got heat?", "is heat on plex", "have heat"],
    );
    check("have", &json!({ "title": "lost", "season": 2, "episode": 5 }), &["do we have lost s2e5"]);
}

#[test]
fn search_looks_a_title_up() {
    check("search", &json!({ "title": "heat" }), &["search heat", "look up heat", "find heat", "heat"]);
}

#[test]
fn status_asks_for_downloads_or_a_title() {
    check("status", &json!({}), &["status", "whats downloading", "is it done yet", "queue"]);
    check(
        "status",
        &json!({ "title": "heat" }),
        &["is heat done yet", "hows heat coming along", "eta on heat"],
    );
}

#[test]
fn why_asks_for_the_reason_of_an_absence() {
    check("why", &json!({ "title": "heat" }), &["why isnt heat here", "heat is stuck", "where is heat"]);
}

#[test]
fn upcoming_asks_for_dates() {
    check("upcoming", &json!({ "when": "today" }), &["whats on tonight", "anything airing today"]);
    check(
        "upcoming",
        &json!({ "title": "severance" }),
        &["when is severance back", "next episode of severance"],
    );
}

#[test]
fn recent_asks_for_additions() {
    check("recent", &json!({}), &["whats new", "recently added"]);
    check("recent", &json!({ "when": "yesterday" }), &["what did you add last night"]);
}

#[test]
fn space_and_missing_ask_about_the_library() {
    check("space", &json!({}), &["disk space", "how much space is left", "is the drive full"]);
    check("missing", &json!({}), &["whats missing", "missing episodes"]);
    check("missing", &json!({ "title": "lost" }), &["which episodes of lost are missing"]);
}

#[test]
fn remove_takes_titles_and_their_season() {
    check(
        "remove",
        &json!({ "titles": ["heat"] }),
        &["delete heat", "get rid of heat pls", "dleete heat", "take heat off plex"],
    );
    check("remove", &json!({ "titles": ["heat", "ronin"] }), &["delete heat and ronin"]);
    check("remove", &json!({ "titles": ["lost"], "season": 2 }), &["delete season 2 of lost"]);
    check("remove", &json!({ "titles": ["heat"], "keep_files": true }), &["remove heat but keep the files"]);
    check("pronoun_remove", &json!({}), &["delete it", "remove everything", "delete her", "bin them all"]);
}

#[test]
fn follow_and_unfollow_concern_notifications() {
    check("follow", &json!({ "title": "heat" }), &["tell me when heat is ready", "lmk once heat lands"]);
    check("follow", &json!({}), &["me too", "let me know when its ready"]);
    check("unfollow", &json!({ "title": "heat" }), &["stop telling me about heat", "unfollow heat"]);
}

#[test]
fn recommend_takes_a_mood_and_a_type() {
    check("recommend", &json!({}), &["what should we watch", "surprise me"]);
    check("recommend", &json!({ "mood": "funny" }), &["suggest something funny"]);
    check("recommend", &json!({ "mood": "scary", "type": "movie" }), &["recommend a scary movie"]);
}

#[test]
fn details_ask_about_a_title() {
    check(
        "details",
        &json!({ "title": "heat" }),
        &["whats heat about", "who is in heat", "how long is heat", "tell me about heat"],
    );
}

#[test]
fn watching_asks_for_recent_plays() {
    check(
        "recently_watched",
        &json!({}),
        &[
            "what was i watching",
            "what were we watching?",
            "what did i watch lately",
            "What did I watch last night",
            "what have i watched recently",
            "where did i stop",
            "where did I leave off last time?",
            "what was i in the middle of",
            "continue watching",
        ],
    );
    check(
        "recently_watched",
        &json!({ "by": "alex" }),
        &[
            "what did Alex watch",
            "what was alex watching",
            "whats alex watching",
            "what has alex watched lately",
        ],
    );
    check("recently_watched", &json!({ "by": "dad" }), &["what did dad watch yesterday"]);
    check("more", &json!({}), &["continue"]);
    check("unfollow", &json!({ "title": "heat" }), &["stop watching heat"]);
    check("details", &json!({ "title": "heat" }), &["where did i stop in heat"]);
}

#[test]
fn titles_are_selected_by_watching() {
    for (arguments, texts) in [
        (
            json!({ "watched": "unwatched" }),
            vec![
                "what have i not seen",
                "what haven't I watched yet?",
                "whats unwatched",
                "stuff i havent seen",
                "what do we have that i haven't watched",
            ],
        ),
        (
            json!({ "watched": "unwatched", "type": "movie" }),
            vec![
                "unwatched movies",
                "which movies haven't we seen",
                "show me all unseen films",
                "movies i have not seen",
            ],
        ),
        (
            json!({ "watched": "unwatched", "type": "series" }),
            vec!["unwatched shows", "list the unwatched tv shows"],
        ),
        (json!({ "watched": "unwatched", "watched_by": "alex" }), vec!["what has alex not seen"]),
        (
            json!({ "watched": "unwatched", "watched_by": "anyone", "type": "movie" }),
            vec!["which movies has nobody watched", "movies nobody has seen"],
        ),
        (
            json!({ "watched": "watched" }),
            vec![
                "what have i seen",
                "what have i watched",
                "what have i already finished",
                "what did i finish",
            ],
        ),
        (
            json!({ "watched": "started" }),
            vec![
                "what did i start",
                "what have i started and not finished",
                "what have I started but not finished?",
                "what haven't i finished",
            ],
        ),
        (
            json!({ "not_watched_days": 365, "watched_by": "anyone" }),
            vec!["what has nobody watched for a year", "what hasn't anyone watched in over a year"],
        ),
        (
            json!({ "not_watched_days": 180, "watched_by": "anyone" }),
            vec!["what has nobody watched in 6 months", "titles not watched in six months"],
        ),
        (
            json!({ "not_watched_days": 90, "watched_by": "anyone", "type": "movie" }),
            vec!["which movies has no one watched in 90 days", "movies nobody has watched for 90 days"],
        ),
        (json!({ "not_watched_days": 30 }), vec!["what have i not watched for a month"]),
    ] {
        check("watched_titles", &arguments, &texts);
    }
}

#[test]
fn recommendation_may_be_from_the_library() {
    for (arguments, texts) in [
        (
            json!({ "in_library": true }),
            vec![
                "recommend something from the library",
                "suggest something we have that i haven't seen",
                "something i have not seen",
                "What should I watch from what we have?",
                "what should we watch that we haven't seen",
                "what should i watch tonight that we already have",
            ],
        ),
        (
            json!({ "in_library": true, "type": "movie" }),
            vec!["recommend a movie from our library", "suggest a film i haven't seen yet"],
        ),
        (
            json!({ "in_library": true, "type": "movie", "mood": "scary" }),
            vec![
                "suggest a scary movie we have",
                "what scary movies do we have that i havent seen",
                "recommend a good scary movie i havent seen",
            ],
        ),
        (json!({ "in_library": true, "mood": "funny" }), vec!["something funny we already have"]),
    ] {
        check("recommend", &arguments, &texts);
    }
}

#[test]
fn several_people_can_watch_something_tonight() {
    for (arguments, texts) in [
        (
            json!({}),
            vec![
                "what can we all watch tonight",
                "what can we all watch",
                "What should we watch tonight?",
                "what should we put on tonight",
                "what can we watch together",
                "movie night",
                "movie night!",
                "hey, movie night tonight?",
                "what can everybody watch tonight",
                "what could we all wacth tonite",
                "something we can all watch",
                "find something for all of us to watch",
            ],
        ),
        (
            json!({ "people": ["sam", "dana"] }),
            vec![
                "what can sam and dana watch tonight",
                "what can Sam and Dana watch",
                "what should sam and dana and i watch tonight",
                "movie night with sam and dana",
                "what can we watch tonight with sam and dana",
            ],
        ),
        (json!({ "people": ["sam", "dana", "kim"] }), vec!["what can sam, dana and kim watch tonight"]),
        (json!({ "people": ["sam smith", "dana"] }), vec!["what can sam smith and dana watch"]),
        (
            json!({ "people": ["dana"] }),
            vec!["what can dana watch tonight", "what can i watch with dana tonight"],
        ),
        (
            json!({ "minutes": 120 }),
            vec![
                "what should we watch tonight, under 2 hours",
                "what can we all watch tonight in less than 2 hours",
                "what can we all watch tonight, we have 2 hours",
                "movie night, we only have two hours",
            ],
        ),
        (json!({ "type": "series" }), vec!["what show can we all watch tonight"]),
        (
            json!({ "type": "movie", "minutes": 90 }),
            vec!["which movie should we watch tonight, 90 minutes max"],
        ),
    ] {
        check("tonight", &arguments, &texts);
    }
    check("recommend", &json!({}), &["what should i watch tonight", "what should we watch"]);
}

#[test]
fn watching_of_a_title_is_in_its_details() {
    check(
        "details",
        &json!({ "title": "heat" }),
        &[
            "did i watch heat",
            "have i seen heat",
            "did i finish heat?",
            "have we watched heat yet",
            "who has seen heat",
            "when did i last watch heat",
            "how much of heat have i seen",
            "continue watching heat",
            "resume watching heat where i left off",
        ],
    );
    check(
        "details",
        &json!({ "title": "heat", "viewer": "alex" }),
        &[
            "did alex see heat",
            "did alex finish heat",
            "has Alex finished heat yet",
            "when did alex last watch heat",
        ],
    );
    check("details", &json!({ "title": "heat", "viewer": "my wife" }), &["has my wife finished heat yet"]);
    let shadows = json!({ "title": "what we do in the shadows" });
    check(
        "details",
        &shadows,
        &["have i seen what we do in the shadows", "continue watching what we do in the shadows"],
    );
    check("status", &json!({ "title": "heat" }), &["did heat finish downloading", "has heat finished yet"]);
}

#[test]
fn account_of_a_media_server_is_linked_by_its_name() {
    for (arguments, texts) in [
        (
            json!({ "name": "sam" }),
            vec![
                "link jellyfin sam",
                "link my jellyfin account sam",
                "i am sam on jellyfin",
                "im sam on plex",
                "link me to jellyfin as sam",
                "my plex username is sam",
            ],
        ),
        (json!({ "name": "Sam Smith" }), vec!["LINK PLEX Sam Smith"]),
        (json!({}), vec!["link jellyfin", "Link my Plex", "link my account on jellyfin please"]),
    ] {
        check("link_account", &arguments, &texts);
    }
    let at_seerr = json!({ "name": "sam", "seerr": true });
    check("link_account", &at_seerr, &["link seerr sam", "my overseerr username is sam"]);
    check("unlink_account", &json!({ "seerr": true }), &["unlink seerr", "disconnect me from jellyseerr"]);
    check("unlink_account", &json!({}), &["unlink jellyfin", "unlink plex", "Unlink my Jellyfin."]);
    check("have", &json!({ "title": "i am legend" }), &["i am legend on plex"]);
    for text in ["im watching heat on plex", "i am at home on plex", "link my phone", "unlink my phone"] {
        let requests = parse_line(text).first_reading();
        assert!(!requests.iter().any(Request::acts), "{text:?}: {requests:?}");
    }
}

#[test]
fn titles_with_words_about_watching_are_titles() {
    for title in [
        "what we do in the shadows",
        "the unseen",
        "someone is watching",
        "nobody",
        "the watcher",
        "what have you done to solange",
        "i am legend",
        "the last thing he wanted",
        "link",
    ] {
        check("add", &json!({ "title": title }), &[&format!("add {title}")]);
        check("search", &json!({ "title": title }), &[&format!("search {title}")]);
        check("have", &json!({ "title": title }), &[&format!("do we have {title}")]);
    }
    check("remove", &json!({ "titles": ["nobody"] }), &["delete nobody"]);
}

#[test]
fn more_and_pick_continue_a_list() {
    check("more", &json!({}), &["more", "what else", "show me more"]);
    check("pick", &json!({ "numbers": [2] }), &["2", "#2", "the second one", "number two please"]);
    check("pick", &json!({ "numbers": [1, 3] }), &["1 and 3"]);
}

#[test]
fn facts_and_quiet_hours_are_settings() {
    check("preferences_show", &json!({}), &["what do you know about me", "my preferences"]);
    check("forget", &json!({ "what": "2" }), &["forget 2", "forget number 2"]);
    check("forget", &json!({ "what": "everything" }), &["forget everything you know about me"]);
    check("quiet", &json!({ "hours": "22-7" }), &["quiet 22-7", "no texts between 10pm and 7am"]);
    check("quiet", &json!({ "off": true }), &["quiet off", "text me anytime"]);
}

#[test]
fn users_help_and_courtesies_are_recognized() {
    check("users", &json!({}), &["users", "who uses this"]);
    check("help", &json!({}), &["help", "what can you do"]);
    check("greeting", &json!({}), &["hi", "hello there"]);
    check("thanks", &json!({}), &["thanks!", "cheers mate"]);
    check("undo", &json!({}), &["undo", "nvm", "put it back"]);
}

#[test]
fn two_requests_are_read_in_order() {
    let intents = |text: &str| {
        let requests = parse_line(text).first_reading();
        requests.iter().map(|request| request.intent().0).collect::<Vec<_>>().join(" ")
    };
    for (text, expected) in [
        ("add dune and heat", "add add"),
        ("add beauty and the beast", "add"),
        ("delete heat and add dune", "remove add"),
        ("add dune and tell me when its ready", "add follow"),
        ("do we have heat? if not add it", "have add"),
        ("hi, add dune, thanks", "add"),
    ] {
        assert_eq!(intents(text), expected, "{text:?}");
    }
}

#[test]
fn title_is_not_cut_into_a_verb() {
    for text in ["Get Out", "Stop Making Sense", "Find Me Guilty", "Forget Paris"] {
        check("search", &json!({ "title": text }), &[text]);
        check("add", &json!({ "title": text }), &[&format!("add {text}")]);
        check("remove", &json!({ "titles": [text] }), &[&format!("delete {text}")]);
    }
}

/// Words that ask for a removal.
const REMOVAL_WORDS: &str = "remove delete rid erase trash ditch dump scrap bin nuke wipe purge toss drop down out away rm del \
    uninstall kill lose off delete need want watch watches watched go gone deleted removed trashed removing deleting erasing \
    trashing ditching chuck chucked without unmonitor monitoring keep keeping leave hate hated like done finished through seen \
    take clear throw kick clean pull yank boot get";

fn has_removal_word(text: &str) -> bool {
    let words = super::token::tokenize(text);
    words.iter().any(|token| {
        REMOVAL_WORDS
            .split_whitespace()
            .any(|word| token.word == word || super::spelling::is_misspelled(&token.word, word))
    })
}

/// Texts of words of the grammar, titles and other characters.
fn some_text() -> impl Strategy<Value = String> {
    let words = "add delete remove get rid of the it them all dune heat and , . ? please can you dont not never season 2 s02 \
        e03 (2021) \" ' is when done why no yes files keep but \u{1f600} \u{e9}t\u{e9} 4k what movie forget everything";
    let words: Vec<&str> = words.split(' ').collect();
    let word = prop_oneof![8 => prop::sample::select(words).prop_map(str::to_owned), 1 => "\\PC{0,6}"];
    prop::collection::vec(word, 0..12).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_text_is_parsed_without_a_panic(text in prop_oneof![any::<String>(), some_text()]) {
        parse_line(&text);
    }

    #[test]
    fn removal_needs_a_removal_word_and_a_title(text in some_text()) {
        for request in parse_line(&text).first_reading() {
            if let Request::Remove { titles, .. } = request {
                prop_assert!(has_removal_word(&text), "{text:?}");
                prop_assert!(!titles.is_empty());
                for title in titles {
                    prop_assert!(title.title.contains(char::is_alphanumeric) && title.reference.is_none(), "{text:?}");
                }
            }
        }
    }
}
