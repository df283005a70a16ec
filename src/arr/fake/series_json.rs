//! How a show and its episodes look on Sonarr's wire.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::activity::{Episodes, USUAL_SEASON, episodes};
use super::answers::{merge, wire_time};
use super::item::{FakeSeries, Show, ShowSeason, series};
use super::search::split_year;
use super::world::{Dated, World};

const SPECIALS: u32 = 2;

/// A show that is known by its title only.
pub(super) fn stray(title: &str, place: usize) -> FakeSeries {
    let (name, year) = split_year(title);
    series(name).year(year.unwrap_or(0)).id(1_000_000 + i64::try_from(place).unwrap_or(0))
}

/// The numbers of the episodes that are meant.
pub(super) fn numbers(item: &FakeSeries, meant: &Episodes<'_>) -> RangeInclusive<u32> {
    let season = item.details.seasons.iter().find(|season| season.number == meant.season);
    let whole = 1..=season.map_or(USUAL_SEASON, |season| season.episodes);
    meant.episode.map_or(whole, |number| number..=number)
}

pub(super) fn episode_id(item: &FakeSeries, season: u32, number: u32) -> i64 {
    item.id * 100_000 + i64::from(season) * 1000 + i64::from(number)
}

/// Whether an episode is on disk.
pub(super) fn on_disk(item: &FakeSeries, season: u32, number: u32) -> bool {
    let seasons = item.seasons_on_disk();
    seasons.iter().any(|(other, on_disk)| other.number == season && number <= *on_disk)
}

pub(super) fn episode(item: &FakeSeries, season: u32, number: u32) -> Value {
    let has_file = on_disk(item, season, number);
    json!({
        "id": episode_id(item, season, number),
        "seriesId": item.id,
        "seasonNumber": season,
        "episodeNumber": number,
        "episodeFileId": if has_file { episode_id(item, season, number) } else { 0 },
        "title": format!("Episode {number}"),
        "runtime": 45,
        "hasFile": has_file,
        "monitored": item.monitored,
    })
}

/// A show of the library.
pub(super) fn owned(world: &World<Show>, item: &FakeSeries) -> Value {
    let mut on_disk = 0;
    let mut existing = SPECIALS;
    let mut wanted = 0;
    let mut seasons = vec![json!({
        "seasonNumber": 0,
        "monitored": item.details.specials_monitored,
        "statistics": statistics([0, 0, SPECIALS], 0),
    })];
    let parts = item.seasons_on_disk();
    let all: u32 = parts.iter().map(|(_, files)| files).sum();
    for (season, files) in parts {
        let counted = if season.monitored { season.episodes } else { files };
        let size = item.size_bytes * u64::from(files) / u64::from(all.max(1));
        on_disk += files;
        wanted += counted;
        existing += season.episodes;
        seasons.push(json!({
            "seasonNumber": season.number,
            "monitored": season.monitored,
            "statistics": statistics([files, counted, season.episodes], size),
        }));
    }
    let mut totals = statistics([on_disk, wanted, existing], item.size_bytes);
    totals["seasonCount"] = json!(item.details.seasons.len());
    let mut body = common(item);
    merge(&mut body, settings_of(world, item));
    merge(
        &mut body,
        json!({ "seasons": seasons, "statistics": totals, "nextAiring": next_airing(world, item) }),
    );
    body
}

/// A show as the catalogue tells it: the seasons by number, no sizes.
pub(super) fn catalogued(item: &FakeSeries) -> Value {
    let mut seasons = vec![json!({ "seasonNumber": 0, "monitored": item.details.specials_monitored })];
    let number =
        |season: &ShowSeason| json!({ "seasonNumber": season.number, "monitored": season.monitored });
    seasons.extend(item.details.seasons.iter().map(number));
    let mut statistics = statistics([0, 0, 0], 0);
    statistics["seasonCount"] = json!(item.details.seasons.len());
    let mut body = common(item);
    let own = json!({
        "folder": item.folder_name(),
        "qualityProfileId": 0,
        "seasonFolder": false,
        "monitored": true,
        "added": "0001-01-01T00:00:00Z",
        "seasons": seasons,
        "statistics": statistics,
    });
    merge(&mut body, own);
    body
}

/// What the library has decided about a show.
pub(super) fn settings_of(world: &World<Show>, item: &FakeSeries) -> Value {
    let root = world.roots.iter().find(|root| item.path.starts_with(&root.path));
    json!({
        "id": item.id,
        "path": item.path,
        "rootFolderPath": root.map(|root| &root.path),
        "qualityProfileId": world.profile_id(&item.profile).unwrap_or(0),
        "seasonFolder": true,
        "monitored": item.monitored,
        "added": "2024-01-01T00:00:00Z",
    })
}

fn common(item: &FakeSeries) -> Value {
    json!({
        "title": item.title,
        "sortTitle": item.title.to_lowercase(),
        "tvdbId": item.catalog_id,
        "titleSlug": item.catalog_id.to_string(),
        "year": item.year,
        "overview": item.overview,
        "status": if item.details.ended { "ended" } else { "continuing" },
        "ended": item.details.ended,
        "seriesType": item.details.kind,
        "monitorNewItems": "all",
        "useSceneNumbering": false,
        "runtime": 45,
        "languageProfileId": 1,
        "genres": [],
        "tags": [],
        "images": [],
        "ratings": { "votes": (item.popularity * 100.0).round(), "value": 7.9 },
    })
}

/// Files, episodes that should be there, and all episodes.
fn statistics([files, wanted, all]: [u32; 3], size: u64) -> Value {
    json!({
        "episodeFileCount": files,
        "episodeCount": wanted,
        "totalEpisodeCount": all,
        "sizeOnDisk": size,
        "percentOfEpisodes": f64::from(files) * 100.0 / f64::from(wanted.max(1)),
    })
}

fn next_airing(world: &World<Show>, item: &FakeSeries) -> Option<String> {
    let now = world.clock.now();
    let of_it = |entry: &&Dated| {
        let show = episodes(&entry.title).and_then(|meant| world.named(meant.show));
        entry.at > now && show.is_some_and(|show| show.id == item.id)
    };
    world.calendar.iter().filter(of_it).map(|entry| entry.at).min().map(wire_time)
}
