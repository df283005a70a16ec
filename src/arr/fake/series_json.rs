//! Wire format of a series and its episodes in Sonarr.

use std::ops::RangeInclusive;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::activity::{TitleEpisodes, USUAL_SEASON, parse_title_episodes};
use super::fake_server::{CalendarFixture, FakeLibraryState};
use super::media_fixtures::{FakeSeries, SeriesDetails, ShowEpisode, ShowSeason, series};
use super::responses::{merge_json, wire_time};
use super::search::split_year;

const SPECIALS: u32 = 2;

/// Creates a series that is known by its title only.
pub(super) fn stray_series(title: &str, index: usize) -> FakeSeries {
    let (name, year) = split_year(title);
    series(name).year(year.unwrap_or(0)).id(1_000_000 + i64::try_from(index).unwrap_or(0))
}

/// Returns the numbers of the episodes that a title refers to.
pub(super) fn episode_numbers(item: &FakeSeries, meant: &TitleEpisodes<'_>) -> RangeInclusive<u32> {
    let season = item.details.seasons.iter().find(|season| season.number == meant.season);
    let whole = 1..=season.map_or(USUAL_SEASON, |season| season.episodes);
    meant.episode.map_or(whole, |number| number..=number)
}

pub(super) fn episode_id(item: &FakeSeries, season: u32, number: u32) -> i64 {
    item.id * 100_000 + i64::from(season) * 1000 + i64::from(number)
}

/// Returns the episodes of a series with their air times. An episode that has not aired is not on disk.
pub(super) fn dated_episodes(
    library: &FakeLibraryState<SeriesDetails>,
    item: &FakeSeries,
) -> Vec<ShowEpisode> {
    let entries: Vec<&CalendarFixture> = calendar_entries(library, item).collect();
    let date = |mut one: ShowEpisode| {
        let scheduled = entries.iter().find(|entry| {
            parse_title_episodes(&entry.title).is_some_and(|meant| {
                meant.season == one.season && meant.episode.is_none_or(|number| number == one.number)
            })
        });
        one.airs = one.airs.or_else(|| scheduled.map(|entry| entry.at)).or_else(|| long_ago(&one));
        one.on_disk &= one.airs.is_some_and(|airs| airs <= library.clock.now());
        one
    };
    item.all_episodes().into_iter().map(date).collect()
}

fn calendar_entries<'a>(
    library: &'a FakeLibraryState<SeriesDetails>,
    item: &FakeSeries,
) -> impl Iterator<Item = &'a CalendarFixture> {
    let id = item.id;
    library.calendar.iter().filter(move |entry| {
        let show = parse_title_episodes(&entry.title).and_then(|meant| library.title_named(meant.show));
        show.is_some_and(|show| show.id == id)
    })
}

/// Returns a placeholder air time in the year 2000 or later, in episode order.
fn long_ago(one: &ShowEpisode) -> Option<Timestamp> {
    let days = SignedDuration::from_hours(24) * i32::try_from(one.season * 30 + one.number).ok()?;
    jiff::civil::date(2000, 1, 1)
        .at(20, 0, 0, 0)
        .to_zoned(TimeZone::UTC)
        .ok()?
        .timestamp()
        .checked_add(days)
        .ok()
}

/// Returns the JSON of an episode, including one that the series does not list.
pub(super) fn episode_json(
    library: &FakeLibraryState<SeriesDetails>,
    item: &FakeSeries,
    season: u32,
    number: u32,
) -> Value {
    let known =
        dated_episodes(library, item).into_iter().find(|one| (one.season, one.number) == (season, number));
    known.map_or_else(|| bare_episode_json(item, season, number), |one| described_episode_json(item, &one))
}

pub(super) fn described_episode_json(item: &FakeSeries, one: &ShowEpisode) -> Value {
    let ShowEpisode { season, number, monitored, on_disk, airs, last_search } = *one;
    let last =
        item.details.seasons.iter().find(|listed| listed.number == season).map(|listed| listed.episodes);
    let is_finale = last == Some(number) && item.details.finales.contains(&season);
    let mut body = bare_episode_json(item, season, number);
    let own = json!({
        "episodeFileId": if on_disk { episode_id(item, season, number) } else { 0 },
        "hasFile": on_disk,
        "monitored": monitored,
        "airDate": airs.map(|at| at.strftime("%Y-%m-%d").to_string()),
        "airDateUtc": airs.map(wire_time),
        "lastSearchTime": last_search.map(wire_time),
        "finaleType": is_finale.then_some("season"),
    });
    merge_json(&mut body, own);
    body
}

fn bare_episode_json(item: &FakeSeries, season: u32, number: u32) -> Value {
    json!({
        "id": episode_id(item, season, number),
        "seriesId": item.id,
        "seasonNumber": season,
        "episodeNumber": number,
        "episodeFileId": 0,
        "title": format!("Episode {number}"),
        "runtime": 45,
        "hasFile": false,
        "monitored": item.monitored,
    })
}

/// Returns the size of the file of one episode.
pub(super) fn file_bytes(item: &FakeSeries, all: &[ShowEpisode]) -> u64 {
    item.size_bytes / all.iter().filter(|one| one.on_disk).count().max(1) as u64
}

/// Returns the JSON of a series in the library.
pub(super) fn owned_series_json(library: &FakeLibraryState<SeriesDetails>, item: &FakeSeries) -> Value {
    let now = library.clock.now();
    let all = dated_episodes(library, item);
    let count = |such: &dyn Fn(&ShowEpisode) -> bool| {
        u32::try_from(all.iter().filter(|one| such(one)).count()).unwrap_or(u32::MAX)
    };
    let is_counted =
        |one: &ShowEpisode| one.on_disk || (one.monitored && one.airs.is_some_and(|at| at <= now));
    let on_disk = count(&|one| one.on_disk);
    let wanted = count(&is_counted);
    let of_specials = |such: &dyn Fn(&ShowEpisode) -> bool| count(&|one| one.season == 0 && such(one));
    let specials = match of_specials(&|_| true) {
        0 => SPECIALS,
        listed => listed,
    };
    let mut existing = specials;
    let mut seasons = vec![json!({
        "seasonNumber": 0,
        "monitored": item.details.specials_monitored,
        "statistics": statistics_json([of_specials(&|one| one.on_disk), of_specials(&is_counted), specials], 0),
    })];
    for season in &item.details.seasons {
        let files = count(&|one| one.season == season.number && one.on_disk);
        let counted = count(&|one| one.season == season.number && is_counted(one));
        existing += season.episodes;
        seasons.push(json!({
            "seasonNumber": season.number,
            "monitored": season.monitored,
            "statistics": statistics_json(
                [files, counted, season.episodes],
                item.size_bytes * u64::from(files) / u64::from(on_disk.max(1)),
            ),
        }));
    }
    let mut totals = statistics_json([on_disk, wanted, existing], item.size_bytes);
    totals["seasonCount"] = json!(item.details.seasons.len());
    let mut body = common_series_json(item);
    merge_json(&mut body, settings_of(library, item));
    merge_json(
        &mut body,
        json!({ "seasons": seasons, "statistics": totals, "nextAiring": next_airing(library, item, &all) }),
    );
    body
}

/// Returns the JSON of a series in the catalog: the seasons by number, without sizes.
pub(super) fn catalog_series_json(item: &FakeSeries) -> Value {
    let mut seasons = vec![json!({ "seasonNumber": 0, "monitored": item.details.specials_monitored })];
    let number =
        |season: &ShowSeason| json!({ "seasonNumber": season.number, "monitored": season.monitored });
    seasons.extend(item.details.seasons.iter().map(number));
    let mut statistics = statistics_json([0, 0, 0], 0);
    statistics["seasonCount"] = json!(item.details.seasons.len());
    let mut body = common_series_json(item);
    let own = json!({
        "folder": item.folder_name(),
        "qualityProfileId": 0,
        "seasonFolder": false,
        "monitored": true,
        "added": "0001-01-01T00:00:00Z",
        "seasons": seasons,
        "statistics": statistics,
    });
    merge_json(&mut body, own);
    body
}

/// Settings of a series in the library.
pub(super) fn settings_of(library: &FakeLibraryState<SeriesDetails>, item: &FakeSeries) -> Value {
    let root = library.roots.iter().find(|root| item.path.starts_with(&root.path));
    json!({
        "id": item.id,
        "path": item.path,
        "rootFolderPath": root.map(|root| &root.path),
        "qualityProfileId": library.profile_id(&item.profile).unwrap_or(0),
        "seasonFolder": true,
        "monitored": item.monitored,
        "monitorNewItems": if item.details.new_seasons { "all" } else { "none" },
        "added": wire_time(item.added),
    })
}

fn common_series_json(item: &FakeSeries) -> Value {
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
        "genres": item.genres,
        "tags": [],
        "images": item.images_json(),
        "ratings": { "votes": (item.popularity * 100.0).round(), "value": item.rating },
    })
}

/// Returns the number of files, of expected episodes, and of all episodes.
fn statistics_json([files, wanted, all]: [u32; 3], size: u64) -> Value {
    json!({
        "episodeFileCount": files,
        "episodeCount": wanted,
        "totalEpisodeCount": all,
        "sizeOnDisk": size,
        "percentOfEpisodes": f64::from(files) * 100.0 / f64::from(wanted.max(1)),
    })
}

/// Returns the next air time, from the calendar, whether the series lists the episode or not, and from the monitored
/// episodes.
fn next_airing(
    library: &FakeLibraryState<SeriesDetails>,
    item: &FakeSeries,
    all: &[ShowEpisode],
) -> Option<String> {
    let now = library.clock.now();
    let listed = all.iter().filter(|one| one.monitored).filter_map(|one| one.airs);
    let scheduled = calendar_entries(library, item).map(|entry| entry.at);
    scheduled.chain(listed).filter(|at| *at > now).min().map(wire_time)
}
