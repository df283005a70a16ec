//! JSON of movies in the fake Radarr.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::fake_server::FakeLibraryState;
use super::media_fixtures::{FakeMovie, MovieDetails, movie};
use super::responses::{merge_json, wire_date, wire_time};
use super::search::split_year;

/// Creates the movie for a title that is not in the library.
pub(super) fn movie_outside_library(title: &str, at: Timestamp, index: usize) -> FakeMovie {
    let (name, year) = split_year(title);
    let mut movie = movie(name).year(year.unwrap_or(0)).unreleased();
    movie.id = 1_000_000 + i64::try_from(index).unwrap_or(0);
    movie.details.digital = Some(at.to_zoned(jiff::tz::TimeZone::UTC).date());
    movie
}

/// Returns the JSON of a movie in the library.
pub(super) fn library_movie_json(state: &FakeLibraryState<MovieDetails>, movie: &FakeMovie) -> Value {
    let has_file = movie.size_bytes > 0;
    let root_folder = state.root_folders.iter().find(|root| movie.path.starts_with(&root.path));
    let file = has_file.then(|| {
        json!({
            "id": movie.id,
            "movieId": movie.id,
            "relativePath": format!("{}.mkv", movie.folder_name()),
            "size": movie.size_bytes,
            "quality": { "quality": { "id": 3, "name": movie.file_quality } },
        })
    });
    let mut body = common_movie_json(movie);
    let fields = json!({
        "id": movie.id,
        "path": movie.path,
        "folderName": movie.path,
        "rootFolderPath": root_folder.map(|root| &root.path),
        "qualityProfileId": state.profile_id(&movie.profile).unwrap_or(0),
        "hasFile": has_file,
        "movieFileId": if has_file { movie.id } else { 0 },
        "movieFile": file,
        "sizeOnDisk": movie.size_bytes,
        "monitored": movie.monitored,
        "minimumAvailability": movie.details.availability,
        "isAvailable": is_available(state, &movie.details),
        "added": wire_time(movie.added),
        "lastSearchTime": movie.details.last_search.map(wire_time),
        "statistics": { "movieFileCount": i32::from(has_file), "sizeOnDisk": movie.size_bytes, "releaseGroups": [] },
    });
    merge_json(&mut body, fields);
    body
}

/// Returns the JSON of a movie that is in the catalog but not in the library.
pub(super) fn catalog_movie_json(movie: &FakeMovie) -> Value {
    let mut body = common_movie_json(movie);
    let fields = json!({
        "folder": movie.folder_name(),
        "folderName": "",
        "qualityProfileId": 0,
        "movieFileId": 0,
        "monitored": false,
        "minimumAvailability": "tba",
        "added": "0001-01-01T00:00:00Z",
    });
    merge_json(&mut body, fields);
    body
}

/// Returns whether a movie has reached its minimum availability.
pub(super) fn is_available(state: &FakeLibraryState<MovieDetails>, details: &MovieDetails) -> bool {
    let today = state.clock.now().to_zoned(jiff::tz::TimeZone::UTC).date();
    match details.availability {
        "announced" => true,
        "inCinemas" => details.available || details.cinema.is_some_and(|date| date <= today),
        _ => details.available,
    }
}

fn common_movie_json(movie: &FakeMovie) -> Value {
    let MovieDetails { available, cinema, digital, physical, .. } = movie.details;
    let collection =
        movie.details.collection.as_ref().map(|(id, title)| json!({ "title": title, "tmdbId": id }));
    let status = match (available, cinema) {
        (true, _) => "released",
        (false, Some(_)) => "inCinemas",
        (false, None) => "announced",
    };
    let mut body = json!({
        "title": movie.title,
        "originalTitle": movie.title,
        "sortTitle": movie.title.to_lowercase(),
        "tmdbId": movie.catalog_id,
        "titleSlug": movie.catalog_id.to_string(),
        "year": movie.year,
        "overview": movie.overview,
        "status": status,
        "isAvailable": available,
        "inCinemas": wire_date(cinema),
        "digitalRelease": wire_date(digital),
        "physicalRelease": wire_date(physical),
        "runtime": movie.minutes,
        "genres": movie.genres,
        "collection": collection,
        "tags": [],
        "images": movie.images_json(),
        "ratings": { "tmdb": { "votes": 1200, "value": movie.rating, "type": "user" } },
        "popularity": movie.popularity,
    });
    if let Some(certification) = &movie.certification {
        body["certification"] = json!(certification);
    }
    body
}
