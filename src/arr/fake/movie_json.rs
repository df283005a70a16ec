//! Wire format of a movie in Radarr.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::fake_server::FakeLibraryState;
use super::media_fixtures::{FakeMovie, MovieDetails, movie};
use super::responses::{merge_json, wire_date, wire_time};
use super::search::split_year;

/// Creates a movie that is known by its title only.
pub(super) fn stray_movie(title: &str, at: Timestamp, index: usize) -> FakeMovie {
    let (name, year) = split_year(title);
    let mut film = movie(name).year(year.unwrap_or(0)).unreleased();
    film.id = 1_000_000 + i64::try_from(index).unwrap_or(0);
    film.details.digital = Some(at.to_zoned(jiff::tz::TimeZone::UTC).date());
    film
}

/// Returns the JSON of a movie in the library.
pub(super) fn owned_movie_json(library: &FakeLibraryState<MovieDetails>, item: &FakeMovie) -> Value {
    let has_file = item.size_bytes > 0;
    let root = library.roots.iter().find(|root| item.path.starts_with(&root.path));
    let file = has_file.then(|| {
        json!({
            "id": item.id,
            "movieId": item.id,
            "relativePath": format!("{}.mkv", item.folder_name()),
            "size": item.size_bytes,
            "quality": { "quality": { "id": 3, "name": item.file_quality } },
        })
    });
    let mut body = common_movie_json(item);
    let own = json!({
        "id": item.id,
        "path": item.path,
        "folderName": item.path,
        "rootFolderPath": root.map(|root| &root.path),
        "qualityProfileId": library.profile_id(&item.profile).unwrap_or(0),
        "hasFile": has_file,
        "movieFileId": if has_file { item.id } else { 0 },
        "movieFile": file,
        "sizeOnDisk": item.size_bytes,
        "monitored": item.monitored,
        "minimumAvailability": item.details.availability,
        "isAvailable": is_available(library, &item.details),
        "added": wire_time(item.added),
        "lastSearchTime": item.details.last_search.map(wire_time),
        "statistics": { "movieFileCount": i32::from(has_file), "sizeOnDisk": item.size_bytes, "releaseGroups": [] },
    });
    merge_json(&mut body, own);
    body
}

/// Returns the JSON of a movie that is in the catalog but not in the library.
pub(super) fn catalog_movie_json(item: &FakeMovie) -> Value {
    let mut body = common_movie_json(item);
    let own = json!({
        "folder": item.folder_name(),
        "folderName": "",
        "qualityProfileId": 0,
        "movieFileId": 0,
        "monitored": false,
        "minimumAvailability": "tba",
        "added": "0001-01-01T00:00:00Z",
    });
    merge_json(&mut body, own);
    body
}

/// Returns whether a movie is available by its minimum availability in the library.
pub(super) fn is_available(library: &FakeLibraryState<MovieDetails>, film: &MovieDetails) -> bool {
    let today = library.clock.now().to_zoned(jiff::tz::TimeZone::UTC).date();
    match film.availability {
        "announced" => true,
        "inCinemas" => film.available || film.cinema.is_some_and(|date| date <= today),
        _ => film.available,
    }
}

fn common_movie_json(item: &FakeMovie) -> Value {
    let MovieDetails { available, cinema, digital, physical, .. } = item.details;
    let collection =
        item.details.collection.as_ref().map(|(id, title)| json!({ "title": title, "tmdbId": id }));
    let status = match (available, cinema) {
        (true, _) => "released",
        (false, Some(_)) => "inCinemas",
        (false, None) => "announced",
    };
    json!({
        "title": item.title,
        "originalTitle": item.title,
        "sortTitle": item.title.to_lowercase(),
        "tmdbId": item.catalog_id,
        "titleSlug": item.catalog_id.to_string(),
        "year": item.year,
        "overview": item.overview,
        "status": status,
        "isAvailable": available,
        "inCinemas": wire_date(cinema),
        "digitalRelease": wire_date(digital),
        "physicalRelease": wire_date(physical),
        "runtime": 115,
        "genres": item.genres,
        "collection": collection,
        "tags": [],
        "images": item.images_json(),
        "ratings": { "tmdb": { "votes": 1200, "value": item.rating, "type": "user" } },
        "popularity": item.popularity,
    })
}
