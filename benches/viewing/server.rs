//! Jellyfin with generated titles, whose records are as long as real ones. It keeps none of them: each response is
//! generated.

use axum::extract::{Path, RawQuery};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::library_server::movie_title;
use crate::{EPISODES, MOVIES, SHOWS, USERS};

/// Number of titles that were saved since any time that is asked for.
const CHANGED: usize = 200;
/// Filler of the size of the streams of a file, which the server lists for each movie.
const FILLER: usize = 4_500;
const TICKS_OF_AN_HOUR: u64 = 36_000_000_000;

pub(crate) fn api() -> Router {
    Router::new()
        .route("/jellyfin/Items", get(items))
        .route("/jellyfin/UserItems/Resume", get(started_items))
        .route("/jellyfin/Shows/{show}/Episodes", get(episodes))
}

/// Parameters of a request, of which some may be repeated.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn parse(query: Option<String>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.parse().ok()
    }

    fn has(&self, name: &str, value: &str) -> bool {
        self.0.iter().any(|(known, given)| (known.as_str(), given.as_str()) == (name, value))
    }

    /// Returns the number of the user whose data is asked for.
    fn user(&self) -> Option<usize> {
        USERS.iter().position(|user| self.get("userId") == Some(*user))
    }
}

async fn items(RawQuery(query): RawQuery) -> Json<Value> {
    let parameters = Parameters::parse(query);
    if parameters.has("includeItemTypes", "Episode") {
        let finished = (0..500).map(|number| episode(number, number % 20, parameters.user()));
        return Json(json!({ "Items": finished.collect::<Vec<_>>(), "TotalRecordCount": 500 }));
    }
    let total = match parameters.get("minDateLastSaved") {
        Some(_) => CHANGED,
        None => MOVIES + SHOWS,
    };
    let start = parameters.number("startIndex").unwrap_or(0);
    let end = total.min(start + parameters.number("limit").unwrap_or(total));
    let page: Vec<Value> = (start..end).map(|number| title(number, &parameters)).collect();
    Json(json!({ "Items": page, "TotalRecordCount": total, "StartIndex": start }))
}

async fn started_items(RawQuery(query): RawQuery) -> Json<Value> {
    let user = Parameters::parse(query).user();
    let started: Vec<Value> = (0..500).map(|number| episode(number, 20, user)).collect();
    Json(json!({ "Items": started, "TotalRecordCount": 500 }))
}

async fn episodes(Path(show): Path<String>) -> Json<Value> {
    let number = usize::from_str_radix(&show, 16).unwrap_or_default().saturating_sub(MOVIES);
    let all: Vec<Value> = (0..EPISODES).map(|position| episode(number, position, None)).collect();
    Json(json!({ "Items": all, "TotalRecordCount": EPISODES }))
}

/// Returns the title at a position: the movies come first.
fn title(position: usize, parameters: &Parameters) -> Value {
    let mut title = match position.checked_sub(MOVIES) {
        None => movie(position, parameters),
        Some(show) => json!({
            "Id": item_id(position), "Name": format!("The {} Show", movie_title(show * 7)), "Type": "Series",
            "ProductionYear": 1980 + show % 46, "LocationType": "FileSystem", "Status": "Ended",
            "RecursiveItemCount": EPISODES,
            "ProviderIds": { "Tvdb": (200_000 + show).to_string(), "Imdb": format!("tt{:07}", 500_000 + show) },
        }),
    };
    if let Some(user) = parameters.user() {
        let played = is_played(position, user);
        title["UserData"] = json!({
            "Played": played, "PlayCount": 1, "IsFavorite": false, "PlaybackPositionTicks": 0,
            "UnplayedItemCount": if played { 0 } else { EPISODES - position % 3 }, "ItemId": item_id(position),
            "LastPlayedDate": "2026-11-12T20:15:00.0000000Z",
        });
    }
    title
}

fn movie(number: usize, parameters: &Parameters) -> Value {
    let mut movie = json!({
        "Id": item_id(number), "Name": movie_title(number), "Type": "Movie", "ProductionYear": 1950 + number % 76,
        "LocationType": "FileSystem", "ServerId": item_id(0), "RunTimeTicks": 2 * TICKS_OF_AN_HOUR,
        "ProviderIds": {
            "Tmdb": (100_000 + number).to_string(), "Imdb": format!("tt{number:07}"), "TmdbCollection": "8091",
        },
    });
    if parameters.has("fields", "MediaSources") {
        movie["MediaSources"] =
            json!([{ "Id": item_id(number), "Container": "mkv", "Filler": "x".repeat(FILLER) }]);
    }
    movie
}

fn episode(show: usize, position: usize, user: Option<usize>) -> Value {
    let mut episode = json!({
        "Id": item_id(MOVIES + SHOWS + show * EPISODES + position), "Name": format!("Episode {position}"),
        "Type": "Episode", "SeriesId": item_id(MOVIES + show), "SeriesName": movie_title(show * 7),
        "ParentIndexNumber": position / 10 + 1, "IndexNumber": position % 10 + 1, "LocationType": "FileSystem",
    });
    if user.is_some() {
        episode["UserData"] = json!({
            "Played": position < 20, "PlaybackPositionTicks": if position < 20 { 0 } else { TICKS_OF_AN_HOUR / 2 },
            "PlayedPercentage": 50.0, "LastPlayedDate": "2026-11-12T20:15:00.0000000Z",
        });
    }
    episode
}

/// Returns whether a user has finished a title: the first user half of them, the second one a third.
pub(crate) fn is_played(position: usize, user: usize) -> bool {
    position.is_multiple_of(user + 2)
}

fn item_id(number: usize) -> String {
    format!("{number:032x}")
}
