//! Tests of requests for something to watch, with filters.

use serde_json::{Value, json};

use super::parser::parse_line;
use super::request::Request;

/// Checks the arguments of the only request of each text.
#[track_caller]
fn check(phrases: &[(&str, Value)]) {
    for (text, arguments) in phrases {
        let found: Vec<(&str, Value)> =
            parse_line(text).first_reading().iter().map(Request::intent).collect();
        assert_eq!(found, [("recommend", arguments.clone())], "{text:?}");
    }
}

/// Checks that no text asks for something to watch.
#[track_caller]
fn check_others(texts: &[&str]) {
    for text in texts {
        let requests = parse_line(text).first_reading();
        assert!(
            !requests.iter().any(|request| matches!(request, Request::Recommend(_))),
            "{text:?}: {requests:?}"
        );
    }
}

#[test]
fn recommendation_takes_a_person() {
    check(&[
        ("movies with Tilda Swinton", json!({ "person": "Tilda Swinton", "type": "movie" })),
        ("films starring Cher", json!({ "person": "Cher", "type": "movie" })),
        ("shows with Bryan Cranston in it", json!({ "person": "Bryan Cranston", "type": "series" })),
        ("anything with meryl streep?", json!({ "person": "meryl streep" })),
        ("find me a movie with will smith", json!({ "person": "will smith", "type": "movie" })),
        ("what has Tilda Swinton been in", json!({ "person": "Tilda Swinton" })),
        ("what else has margot robbie been in", json!({ "person": "margot robbie" })),
        ("which movies did greta gerwig direct", json!({ "person": "greta gerwig", "type": "movie" })),
        ("movies by Christopher Nolan", json!({ "person": "Christopher Nolan", "type": "movie" })),
        ("a film directed by agnes varda", json!({ "person": "agnes varda", "type": "movie" })),
        ("movies w/ the rock", json!({ "person": "the rock", "type": "movie" })),
        ("movies or shows with pedro pascal", json!({ "person": "pedro pascal" })),
    ]);
    check_others(&[
        "movies with subtitles",
        "movies with english subtitles",
        "movies with 4k",
        "movies with dragons",
        "movies with my wife",
        "movies with Tom Hanks and Meg Ryan",
        "movies by year",
        "play heat with bob",
        "the war with grandpa",
        "whats with heat",
        "what has alex been watching",
        "what have i been in",
        "add a movie with tom hanks",
        "delete all movies with tom hanks",
        "do we have movies with tom hanks",
        "what have we got with tom hanks",
    ]);
}

#[test]
fn recommendation_takes_years() {
    let movies = |years: &str| json!({ "years": years, "type": "movie" });
    check(&[
        ("movies from the 90s", movies("1990-1999")),
        ("movies from the nineties", movies("1990-1999")),
        ("80s movies", movies("1980-1989")),
        ("movies from the 80s and 90s", movies("1980-1999")),
        ("some good movies from 1995", movies("1995")),
        ("movies after 2015", movies("2015-")),
        ("movies made before 1980", movies("1900-1979")),
        ("movies between 1990 and 1995", movies("1990-1995")),
        ("thrillers from the early 2000s", json!({ "mood": "thrillers", "years": "2000-2004" })),
        ("what should we watch from the 70s", json!({ "years": "1970-1979" })),
    ]);
    check_others(&[
        "that 70s show",
        "2012 movie",
        "the 90s show",
        "get the movie from 1995",
        "add 90s movies",
    ]);
}

#[test]
fn recommendation_takes_a_streaming_service() {
    let service = |name: &str| json!({ "provider": name });
    check(&[
        ("new on Netflix", service("netflix")),
        ("what's on Netflix that we don't have", service("netflix")),
        ("what is on disney plus", service("disney plus")),
        ("what's on Disney+?", service("disney")),
        ("anything good on hbo max", service("hbo max")),
        ("what should we watch on hulu tonight", service("hulu")),
        ("movies on prime", json!({ "provider": "prime", "type": "movie" })),
        ("new netflix shows", json!({ "provider": "netflix", "type": "series" })),
        ("what movies are on mubi", json!({ "provider": "mubi", "type": "movie" })),
        ("anything scary on shudder", json!({ "provider": "shudder", "mood": "scary" })),
    ]);
    check_others(&[
        "is dune on netflix",
        "is dune on jellyfin",
        "is dune on plex",
        "whats new on plex",
        "whats on tv",
        "whats on tonight",
        "movies on jellyfin",
        "dark on netflix",
        "add max",
        "prime",
    ]);
}

#[test]
fn recommendation_may_be_of_what_is_popular() {
    check(&[
        ("trending", json!({ "trending": true })),
        ("what's trending", json!({ "trending": true })),
        ("what's popular right now", json!({ "trending": true })),
        ("what is everybody watching right now", json!({ "trending": true })),
        ("something trending", json!({ "trending": true })),
        ("trending shows", json!({ "trending": true, "type": "series" })),
        ("the most popular movies", json!({ "trending": true, "type": "movie" })),
        ("what's trending on netflix", json!({ "trending": true, "provider": "netflix" })),
    ]);
    check_others(&["what is everybody watching", "popular", "download trending movies"]);
}

#[test]
fn recommendation_takes_a_length_and_a_rating() {
    check(&[
        ("movies under 2 hours", json!({ "max_minutes": 120, "type": "movie" })),
        ("something shorter than 90 minutes", json!({ "max_minutes": 90 })),
        ("a movie under an hour and a half", json!({ "max_minutes": 90, "type": "movie" })),
        ("movies rated over 8", json!({ "min_rating": 8, "type": "movie" })),
        ("shows rated 7 or higher", json!({ "min_rating": 7, "type": "series" })),
        ("movies with a rating above 7.5", json!({ "min_rating": 7.5, "type": "movie" })),
        ("movies with more than 8 rating", json!({ "min_rating": 8, "type": "movie" })),
    ]);
    check_others(&["movies rated r", "movies with 8 episodes", "under 2 hours", "127 hours"]);
}

#[test]
fn recommendation_takes_moods_and_a_similar_title() {
    check(&[
        ("something like Severance but funny", json!({ "like": "Severance", "mood": "funny" })),
        ("shows like the bear on hulu", json!({ "like": "the bear", "type": "series", "provider": "hulu" })),
        ("shows like heat but a movie", json!({ "like": "heat", "type": "movie" })),
        ("similar to heat", json!({ "like": "heat" })),
        ("more like dune", json!({ "like": "dune" })),
        ("something like Dances with Wolves", json!({ "like": "Dances with Wolves" })),
        ("movies like stand by me", json!({ "like": "stand by me", "type": "movie" })),
        ("a feel good movie", json!({ "mood": "feel good", "type": "movie" })),
        ("a heist movie", json!({ "mood": "heist", "type": "movie" })),
        ("xmas movies", json!({ "mood": "xmas", "type": "movie" })),
        ("movies based on a true story", json!({ "mood": "based on a true story", "type": "movie" })),
        ("movies about time travel", json!({ "mood": "time travel", "type": "movie" })),
        ("recommend a horror film we dont have", json!({ "mood": "horror", "type": "movie" })),
    ]);
    check_others(&["war", "space", "heist movie", "add something funny", "delete scary movies"]);
}

#[test]
fn filters_of_a_recommendation_combine() {
    check(&[
        (
            "funny movies with steve martin from the 80s under 2 hours",
            json!({
                "mood": "funny", "person": "steve martin", "years": "1980-1989", "max_minutes": 120, "type": "movie",
            }),
        ),
        (
            "can you find a scary sci-fi show on hulu rated 8 or more please",
            json!({ "mood": "scary sci fi", "provider": "hulu", "min_rating": 8, "type": "series" }),
        ),
        (
            "I want to watch something funny with will ferrell that we don't have",
            json!({ "mood": "funny", "person": "will ferrell" }),
        ),
    ]);
}

#[test]
fn typing_errors_in_filters_are_corrected() {
    check(&[
        ("moveis with tilda swinton", json!({ "person": "tilda swinton", "type": "movie" })),
        (
            "funy movies with steve martin",
            json!({ "mood": "funny", "person": "steve martin", "type": "movie" }),
        ),
        ("whats on disny plus", json!({ "provider": "disney plus" })),
        ("something on netflx", json!({ "provider": "netflix" })),
        ("trendng shows", json!({ "trending": true, "type": "series" })),
        ("movies undr 2 hours", json!({ "max_minutes": 120, "type": "movie" })),
    ]);
}
