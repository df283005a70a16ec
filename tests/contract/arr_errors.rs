//! Classification of each recorded failure, without internals of the server.

use anyhow::{Context, Result};
use dialarr::arr::radarr::Radarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr::arr::{Availability, NewMovie, NewSeries, WantedEpisodes};
use dialarr::http::HttpClient;
use secrecy::SecretString;

use crate::arr::{always, recordings};

/// Outcome of a wrong addition by the recording's name; the names are the same for both servers.
fn expected(name: &str) -> Option<&'static str> {
    Some(match name {
        "error_400_bad_profile_and_root.json" => {
            r#"Refused(["Quality Profile does not exist", "Root folder does not exist"])"#
        }
        "error_400_movie_exists.json" | "error_400_series_exists.json" | "error_400_path_and_exists.json" => {
            "AlreadyExists"
        }
        "error_400_release_push_parse.json" => r#"Refused(["Unable to parse"])"#,
        "error_409_release_grab.json" => r#"Refused(["Getting release from indexer failed"])"#,
        "error_409_root_folder_missing.json" => r#"Refused(["Series' root folder doesn't exist."])"#,
        "error_500_null_source.json" => {
            r#"Server { status: 500, message: "Value cannot be null. (Parameter 'source')" }"#
        }
        "error_500_delete_missing_series.json" => {
            r#"Server { status: 500, message: "Expected query to return 1 rows but returned 0" }"#
        }
        "error_500_unknown_command.json" => {
            r#"Server { status: 500, message: "Sequence contains no matching element" }"#
        }
        "html_login_page.html" => r#"WrongUrl("the response is a web page")"#,
        _ if name.starts_with("error_404_") => "NotFound",
        _ => return None,
    })
}

/// Failures whose wording differs between the servers.
fn expected_kind(name: &str) -> Option<&'static str> {
    match name {
        "error_400_model_state.json" => Some("Refused([\"The JSON value could not be converted"),
        _ if name.starts_with("error_503_") => Some("Unavailable("),
        _ => None,
    }
}

fn check(name: &str, outcome: &str) {
    match (expected(name), expected_kind(name)) {
        (Some(expected), _) => assert_eq!(outcome, expected, "{name}"),
        (None, Some(kind)) => assert!(outcome.starts_with(kind), "{name} told as {outcome}"),
        (None, None) => panic!("no expectation for {name}, told as {outcome}"),
    }
    assert!(!outcome.contains("Exception") && !outcome.contains(" in ./"), "{name} told as {outcome}");
}

fn failing(name: &str, recording: String) -> Result<HttpClient> {
    if name.ends_with(".html") {
        return Ok(always(200, "text/html", recording));
    }
    let status = name.split('_').nth(1).context("no status in the name")?;
    Ok(always(status.parse()?, "application/json; charset=utf-8", recording))
}

#[tokio::test]
async fn radarr_errors_are_classified() -> Result<()> {
    let movie = NewMovie {
        tmdb: 603,
        title: "The Matrix".into(),
        profile: 4,
        root_folder: "/films".into(),
        availability: Availability::Released,
    };
    for (name, recording) in recordings("radarr", &["error_", "html_"])? {
        let http = failing(&name, recording)?;
        let radarr = Radarr::new(http, "http://radarr".parse()?, SecretString::from("key"));
        let outcome = match radarr.add_movie(&movie).await {
            Ok(addition) => format!("{addition:?}"),
            Err(error) => format!("{error:?}"),
        };
        check(&name, &outcome);
    }
    Ok(())
}

#[tokio::test]
async fn sonarr_errors_are_classified() -> Result<()> {
    let series = NewSeries {
        tvdb: 81189,
        title: "Breaking Bad".into(),
        series_type: "standard".into(),
        profile: 1,
        root_folder: "/tv".into(),
        wanted: WantedEpisodes::Seasons(vec![(1, true)]),
    };
    for (name, recording) in recordings("sonarr", &["error_", "html_"])? {
        let http = failing(&name, recording)?;
        let sonarr = Sonarr::new(http, "http://sonarr".parse()?, SecretString::from("key"));
        let outcome = match sonarr.add_series(&series).await {
            Ok(addition) => format!("{addition:?}"),
            Err(error) => format!("{error:?}"),
        };
        check(&name, &outcome);
    }
    Ok(())
}
