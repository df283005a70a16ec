//! Suggestions of movies that fit the library, and their reasons.

use dialarr::arr::fake::media_fixtures::movie;
use serde_json::{Value, json};

use crate::harness::TestApp;
use crate::harness::model::{calls, says};

/// Starts a household that likes crime movies. Radarr suggests one, and some that must be left out.
async fn household() -> TestApp {
    let app = TestApp::start().await;
    let radarr = app.radarr();
    radarr.add(movie("Heat").year(1995).tmdb(949).genres(&["Crime", "Drama"]).size_gb(18.2));
    radarr.add(movie("Casino").year(1995).tmdb(524).genres(&["Crime"]));
    radarr.add(movie("Alien").year(1979).tmdb(348).genres(&["Horror"]).collection(8091, "Alien Collection"));
    radarr.add_to_catalog(
        movie("Aliens").year(1986).tmdb(679).genres(&["Action"]).collection(8091, "Alien Collection"),
    );
    radarr.add_suggestion(movie("Goodfellas").year(1990).tmdb(769).genres(&["Crime", "Drama"]).rating(8.5));
    radarr.add_suggestion(movie("The Thing").year(1982).tmdb(1091).genres(&["Horror"]).rating(8.0));
    radarr.add_suggestion(movie("Heat").year(1995).tmdb(949).genres(&["Crime"]).rating(9.0));
    let hated = radarr.add_suggestion(movie("Gigli").year(2003).tmdb(8046).genres(&["Crime"]).rating(9.9));
    radarr.exclude_movie(hated);
    radarr.add_popular(movie("Barbie").year(2023).tmdb(346_698).genres(&["Comedy"]).rating(7.0));
    app
}

impl TestApp {
    /// Returns the text of the tool, with the title and the reason of each movie for the model.
    async fn recommended(&self, arguments: Value) -> (String, Vec<String>) {
        self.model_plays([calls("recommend", arguments), says(""), says("")]);
        let reply = self.sms("what should I watch?").await;
        let result: Value = serde_json::from_str(self.results().last().unwrap()).unwrap();
        let film =
            |it: &Value| format!("{}: {}", it["title"].as_str().unwrap(), it["because"].as_str().unwrap());
        let films = result["results"].as_array().map(|films| films.iter().map(film).collect());
        (reply, films.unwrap_or_default())
    }

    async fn check(&self, arguments: Value, reply: &str, films: &[&str]) {
        let films = films.iter().map(ToString::to_string).collect();
        assert_eq!(self.recommended(arguments).await, (reply.to_owned(), films));
    }
}

#[tokio::test]
async fn suggestions_fit_the_library_and_have_reasons() {
    let app = household().await;
    app.check(
        json!({}),
        "You might like Goodfellas (1990), The Thing (1982) and Barbie (2023).",
        &[
            "Goodfellas: the library has 2 of Crime",
            "The Thing: the library has 1 of Horror",
            "Barbie: popular at present",
        ],
    )
    .await;
}

#[tokio::test]
async fn genre_narrows_the_suggestions() {
    let app = household().await;
    let horror = ["The Thing: the library has 1 of Horror"];
    app.check(json!({ "genre": "horror" }), "You might like The Thing (1982).", &horror).await;
    app.check(json!({ "genre": "western" }), "Radarr suggests nothing of that kind right now.", &[]).await;
}

#[tokio::test]
async fn rest_of_a_collection_is_suggested_first() {
    let app = household().await;
    app.check(
        json!({ "like": "alien" }),
        "You might like Aliens (1986) and The Thing (1982).",
        &["Aliens: of Alien Collection, of which the library has 1", "The Thing: Horror like Alien (1979)"],
    )
    .await;
    app.check(
        json!({ "like": "barbie" }),
        "You might like Barbie (2023).",
        &["Barbie: Comedy like Barbie (2023)"],
    )
    .await;
    app.check(json!({ "like": "zzyzx" }), "I found no movie \"zzyzx\".", &[]).await;
}

#[tokio::test]
async fn suggested_title_can_be_added_directly() {
    let app = household().await;
    app.recommended(json!({})).await;
    app.model_plays([calls("add_movie", json!({ "tmdb": 769 })), says(""), says("")]);
    assert_eq!(app.sms("add the first").await, "Added Goodfellas (1990).");
    assert_eq!(app.radarr().added_ids(), [769]);
}

#[tokio::test]
async fn unreachable_radarr_is_named_once() {
    let app = household().await;
    app.radarr().set_down(true);
    app.check(json!({}), "Radarr can't be reached right now.", &[]).await;
}
