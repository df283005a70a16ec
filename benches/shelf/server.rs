//! Radarr and Sonarr with generated titles, whose records are as long as real ones.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use serde_json::{Value, json};

const FIRST: [&str; 20] = [
    "Silent", "Broken", "Last", "Golden", "Hidden", "Crimson", "Lost", "Winter", "Burning", "Electric",
    "Hollow", "Distant", "Savage", "Paper", "Midnight", "Velvet", "Iron", "Wild", "Second", "Perfect",
];
const SECOND: [&str; 25] = [
    "River",
    "Garden",
    "Kingdom",
    "Promise",
    "Station",
    "Harbor",
    "Mirror",
    "Mountain",
    "Letter",
    "Circus",
    "Empire",
    "Shadow",
    "Orchard",
    "Voyage",
    "Signal",
    "Widow",
    "Detective",
    "Summer",
    "Island",
    "Machine",
    "Highway",
    "Symphony",
    "Prophet",
    "Horizon",
    "Castle",
];
const THIRD: [&str; 40] = [
    "of Ashes",
    "in Winter",
    "Returns",
    "at Dawn",
    "of the North",
    "Rising",
    "for Two",
    "by the Sea",
    "Forever",
    "in Love",
    "of Stone",
    "Without End",
    "and the Fox",
    "on Fire",
    "of Secrets",
    "Unbound",
    "at War",
    "in Exile",
    "of Dreams",
    "Reborn",
    "and Sons",
    "Tonight",
    "of Glass",
    "in Paris",
    "of Wolves",
    "Undone",
    "at Sea",
    "of Memory",
    "in Black",
    "and Company",
    "of Thieves",
    "Falling",
    "by Night",
    "in the Dark",
    "of Silence",
    "Awakens",
    "at Home",
    "of Light",
    "in Space",
    "Revisited",
];
const GENRES: [&str; 12] = [
    "Action",
    "Comedy",
    "Drama",
    "Horror",
    "Science Fiction",
    "Thriller",
    "Romance",
    "Animation",
    "Family",
    "Crime",
    "Documentary",
    "Mystery",
];
/// Filler of the size of pictures, links and an overview in a real record.
const FILLER: usize = 2_600;

type Records = Arc<Vec<Bytes>>;

/// Responses of both servers, under one address.
pub(crate) fn api(movies: usize, shows: usize) -> Router {
    let movies: Records = Arc::new((0..movies).map(|number| movie(number).to_string().into()).collect());
    let shows: Records = Arc::new((0..shows).map(|number| show(number).to_string().into()).collect());
    Router::new()
        .route("/api/v3/movie", get(all))
        .route("/api/v3/movie/{id}", get(one))
        .with_state(movies)
        .merge(
            Router::new()
                .route("/api/v3/series", get(all))
                .route("/api/v3/series/{id}", get(one))
                .with_state(shows),
        )
}

pub(crate) fn movie_title(number: usize) -> String {
    format!(
        "{} {} {}",
        FIRST[number % FIRST.len()],
        SECOND[number / FIRST.len() % SECOND.len()],
        THIRD[number / (FIRST.len() * SECOND.len()) % THIRD.len()]
    )
}

/// Returns words that some forty titles contain.
pub(crate) fn words(number: usize) -> String {
    format!("{} {}", FIRST[number % FIRST.len()], SECOND[number % SECOND.len()]).to_lowercase()
}

async fn all(State(records): State<Records>) -> Response {
    let last = records.len() - 1;
    let pieces = (0..records.len()).flat_map(move |place| {
        let before = if place == 0 { "[" } else { "," };
        let behind = if place == last { "]" } else { "" };
        [Bytes::from(before), records[place].clone(), Bytes::from(behind)]
    });
    Body::from_stream(stream::iter(pieces.map(Ok::<_, std::io::Error>))).into_response()
}

async fn one(State(records): State<Records>, Path(id): Path<usize>) -> Response {
    match id.checked_sub(1).and_then(|place| records.get(place)) {
        Some(record) => record.clone().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn movie(number: usize) -> Value {
    let title = movie_title(number);
    let others: Vec<Value> = ["Der Film", "Le film", "El filme", "Il film", "De film"]
        .iter()
        .map(|language| json!({ "title": format!("{language}: {title}"), "sourceType": "tmdb" }))
        .collect();
    let on_disk = !number.is_multiple_of(10);
    json!({
        "id": number + 1, "tmdbId": 100_000 + number, "imdbId": format!("tt{number:07}"),
        "title": title, "originalTitle": title,
        "alternateTitles": others, "year": 1950 + number % 76, "monitored": !number.is_multiple_of(50),
        "hasFile": on_disk, "isAvailable": true, "qualityProfileId": number % 4 + 1,
        "sizeOnDisk": if on_disk { 4_000_000_000 + number as u64 * 100_000 } else { 0 },
        "genres": genres(number), "added": format!("20{:02}-{:02}-01T10:00:00Z", number % 26, number % 12 + 1),
        "ratings": { "imdb": { "votes": 900, "value": 4.0 + (number % 50) as f64 / 10.0, "type": "user" } },
        "collection": number.is_multiple_of(5).then(|| json!({ "title": format!("{title} Collection"), "tmdbId": number })),
        "path": format!("/films/{title}"), "overview": "x".repeat(FILLER), "images": [{ "coverType": "poster" }],
    })
}

fn show(number: usize) -> Value {
    let title = format!("The {} Show", movie_title(number * 7));
    let seasons: Vec<Value> = (0..=number % 8 + 1)
        .map(|season| {
            json!({ "seasonNumber": season, "monitored": true, "statistics": { "episodeFileCount": 9,
                "episodeCount": 10, "totalEpisodeCount": 10, "sizeOnDisk": 9_000_000_000_u64 } })
        })
        .collect();
    json!({
        "id": number + 1, "tvdbId": 200_000 + number, "imdbId": format!("tt{:07}", 500_000 + number), "title": title,
        "alternateTitles": [{ "title": format!("{title} UK"), "seasonNumber": -1 }],
        "year": 1980 + number % 46, "monitored": true, "qualityProfileId": number % 4 + 1,
        "genres": genres(number), "added": "2024-05-01T10:00:00Z", "ratings": { "votes": 900, "value": 7.5 },
        "seasons": seasons, "statistics": { "sizeOnDisk": 40_000_000_000_u64 },
        "path": format!("/tv/{title}"), "overview": "x".repeat(1_000),
    })
}

fn genres(number: usize) -> [&'static str; 3] {
    [0, 3, 7].map(|step| GENRES[(number + step) % GENRES.len()])
}
