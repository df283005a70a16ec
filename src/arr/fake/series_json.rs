//! JSON of series and episodes in the fake Sonarr.

use std::ops::RangeInclusive;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::activity::{DEFAULT_SEASON_LENGTH, TitleEpisodes, parse_title_episodes};
use super::fake_server::{CalendarFixture, FakeLibraryState};
use super::media_fixtures::{FakeEpisode, FakeSeason, FakeSeries, SeriesDetails, series};
use super::responses::{merge_json, wire_time};
use super::search::split_year;

/// Number of specials of a series to which none were added.
const DEFAULT_SPECIALS: u32 = 2;

/// Creates the series for a title that is not in the library.
pub(super) fn series_outside_library(title: &str, index: usize) -> FakeSeries {
    let (name, year) = split_year(title);
    series(name).year(year.unwrap_or(0)).id(1_000_000 + i64::try_from(index).unwrap_or(0))
}

/// Returns the numbers of the episodes that a title refers to.
pub(super) fn episode_numbers(series: &FakeSeries, episodes: &TitleEpisodes<'_>) -> RangeInclusive<u32> {
    let season = series.details.seasons.iter().find(|season| season.number == episodes.season);
    let whole_season = 1..=season.map_or(DEFAULT_SEASON_LENGTH, |season| season.episodes);
    episodes.episode.map_or(whole_season, |number| number..=number)
}

pub(super) fn episode_id(series: &FakeSeries, season: u32, number: u32) -> i64 {
    series.id * 100_000 + i64::from(season) * 1000 + i64::from(number)
}

/// Returns the episodes of a series with their air times. An episode that has not aired is not on disk.
pub(super) fn episodes_with_air_times(
    state: &FakeLibraryState<SeriesDetails>,
    series: &FakeSeries,
) -> Vec<FakeEpisode> {
    let entries: Vec<&CalendarFixture> = calendar_entries(state, series).collect();
    let with_air_time = |mut episode: FakeEpisode| {
        let scheduled = entries.iter().find(|entry| {
            parse_title_episodes(&entry.title).is_some_and(|episodes| {
                episodes.season == episode.season
                    && episodes.episode.is_none_or(|number| number == episode.number)
            })
        });
        episode.airs_at = episode
            .airs_at
            .or_else(|| scheduled.map(|entry| entry.at))
            .or_else(|| placeholder_air_time(&episode));
        episode.on_disk &= episode.airs_at.is_some_and(|airs_at| airs_at <= state.clock.now());
        episode
    };
    series.all_episodes().into_iter().map(with_air_time).collect()
}

fn calendar_entries<'a>(
    state: &'a FakeLibraryState<SeriesDetails>,
    series: &FakeSeries,
) -> impl Iterator<Item = &'a CalendarFixture> {
    let id = series.id;
    state.calendar.iter().filter(move |entry| {
        let entry_series =
            parse_title_episodes(&entry.title).and_then(|episodes| state.find_title(episodes.series));
        entry_series.is_some_and(|entry_series| entry_series.id == id)
    })
}

/// Returns a placeholder air time in the year 2000 or later, in episode order.
fn placeholder_air_time(episode: &FakeEpisode) -> Option<Timestamp> {
    let days = SignedDuration::from_hours(24) * i32::try_from(episode.season * 30 + episode.number).ok()?;
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
    state: &FakeLibraryState<SeriesDetails>,
    series: &FakeSeries,
    season: u32,
    number: u32,
) -> Value {
    let listed = episodes_with_air_times(state, series)
        .into_iter()
        .find(|episode| (episode.season, episode.number) == (season, number));
    listed.map_or_else(
        || bare_episode_json(series, season, number),
        |episode| listed_episode_json(series, &episode),
    )
}

pub(super) fn listed_episode_json(series: &FakeSeries, episode: &FakeEpisode) -> Value {
    let FakeEpisode { season, number, monitored, on_disk, airs_at, last_search } = *episode;
    let last =
        series.details.seasons.iter().find(|listed| listed.number == season).map(|listed| listed.episodes);
    let is_finale = last == Some(number) && series.details.finales.contains(&season);
    let mut body = bare_episode_json(series, season, number);
    let fields = json!({
        "episodeFileId": if on_disk { episode_id(series, season, number) } else { 0 },
        "hasFile": on_disk,
        "monitored": monitored,
        "airDate": airs_at.map(|at| at.strftime("%Y-%m-%d").to_string()),
        "airDateUtc": airs_at.map(wire_time),
        "lastSearchTime": last_search.map(wire_time),
        "finaleType": is_finale.then_some("season"),
    });
    merge_json(&mut body, fields);
    body
}

fn bare_episode_json(series: &FakeSeries, season: u32, number: u32) -> Value {
    json!({
        "id": episode_id(series, season, number),
        "seriesId": series.id,
        "seasonNumber": season,
        "episodeNumber": number,
        "episodeFileId": 0,
        "title": format!("Episode {number}"),
        "runtime": 45,
        "hasFile": false,
        "monitored": series.monitored,
    })
}

/// Returns the file size of each episode on disk.
pub(super) fn episode_file_bytes(series: &FakeSeries, all: &[FakeEpisode]) -> u64 {
    series.size_bytes / all.iter().filter(|episode| episode.on_disk).count().max(1) as u64
}

/// Returns the JSON of a series in the library.
pub(super) fn library_series_json(state: &FakeLibraryState<SeriesDetails>, series: &FakeSeries) -> Value {
    let now = state.clock.now();
    let all = episodes_with_air_times(state, series);
    let count = |matches: &dyn Fn(&FakeEpisode) -> bool| {
        u32::try_from(all.iter().filter(|episode| matches(episode)).count()).unwrap_or(u32::MAX)
    };
    let is_expected = |episode: &FakeEpisode| {
        episode.on_disk || (episode.monitored && episode.airs_at.is_some_and(|at| at <= now))
    };
    let on_disk = count(&|episode| episode.on_disk);
    let expected = count(&is_expected);
    let count_specials =
        |matches: &dyn Fn(&FakeEpisode) -> bool| count(&|episode| episode.season == 0 && matches(episode));
    let specials = match count_specials(&|_| true) {
        0 => DEFAULT_SPECIALS,
        listed => listed,
    };
    let mut total = specials;
    let mut seasons = vec![json!({
        "seasonNumber": 0,
        "monitored": series.details.specials_monitored,
        "statistics": statistics_json([count_specials(&|episode| episode.on_disk), count_specials(&is_expected), specials], 0),
    })];
    for season in &series.details.seasons {
        let files = count(&|episode| episode.season == season.number && episode.on_disk);
        let season_expected = count(&|episode| episode.season == season.number && is_expected(episode));
        total += season.episodes;
        seasons.push(json!({
            "seasonNumber": season.number,
            "monitored": season.monitored,
            "statistics": statistics_json(
                [files, season_expected, season.episodes],
                series.size_bytes * u64::from(files) / u64::from(on_disk.max(1)),
            ),
        }));
    }
    let mut totals = statistics_json([on_disk, expected, total], series.size_bytes);
    totals["seasonCount"] = json!(series.details.seasons.len());
    let mut body = common_series_json(series);
    merge_json(&mut body, library_fields_json(state, series));
    merge_json(
        &mut body,
        json!({ "seasons": seasons, "statistics": totals, "nextAiring": next_airing(state, series, &all) }),
    );
    body
}

/// Returns the JSON of a series in the catalog, whose seasons have no statistics.
pub(super) fn catalog_series_json(series: &FakeSeries) -> Value {
    let mut seasons = vec![json!({ "seasonNumber": 0, "monitored": series.details.specials_monitored })];
    let season_json =
        |season: &FakeSeason| json!({ "seasonNumber": season.number, "monitored": season.monitored });
    seasons.extend(series.details.seasons.iter().map(season_json));
    let mut statistics = statistics_json([0, 0, 0], 0);
    statistics["seasonCount"] = json!(series.details.seasons.len());
    let mut body = common_series_json(series);
    let fields = json!({
        "folder": series.folder_name(),
        "qualityProfileId": 0,
        "seasonFolder": false,
        "monitored": true,
        "added": "0001-01-01T00:00:00Z",
        "seasons": seasons,
        "statistics": statistics,
    });
    merge_json(&mut body, fields);
    body
}

/// Returns the JSON fields that only a series in the library has.
pub(super) fn library_fields_json(state: &FakeLibraryState<SeriesDetails>, series: &FakeSeries) -> Value {
    let root_folder = state.root_folders.iter().find(|root| series.path.starts_with(&root.path));
    json!({
        "id": series.id,
        "path": series.path,
        "rootFolderPath": root_folder.map(|root| &root.path),
        "qualityProfileId": state.profile_id(&series.profile).unwrap_or(0),
        "seasonFolder": true,
        "monitored": series.monitored,
        "monitorNewItems": if series.details.new_seasons { "all" } else { "none" },
        "added": wire_time(series.added),
    })
}

fn common_series_json(series: &FakeSeries) -> Value {
    let mut body = json!({
        "title": series.title,
        "sortTitle": series.title.to_lowercase(),
        "tvdbId": series.catalog_id,
        "tmdbId": series.details.tmdb,
        "titleSlug": series.catalog_id.to_string(),
        "year": series.year,
        "overview": series.overview,
        "status": if series.details.ended { "ended" } else { "continuing" },
        "ended": series.details.ended,
        "seriesType": series.details.series_type,
        "monitorNewItems": "all",
        "useSceneNumbering": false,
        "runtime": series.minutes,
        "languageProfileId": 1,
        "genres": series.genres,
        "tags": [],
        "images": series.images_json(),
        "ratings": { "votes": (series.popularity * 100.0).round(), "value": series.rating },
    });
    if let Some(certification) = &series.certification {
        body["certification"] = json!(certification);
    }
    body
}

/// Returns the statistics JSON for the number of files, of expected episodes, and of all episodes.
fn statistics_json([files, expected, all]: [u32; 3], size: u64) -> Value {
    json!({
        "episodeFileCount": files,
        "episodeCount": expected,
        "totalEpisodeCount": all,
        "sizeOnDisk": size,
        "percentOfEpisodes": f64::from(files) * 100.0 / f64::from(expected.max(1)),
    })
}

/// Returns the next air time among the monitored episodes and the calendar entries of a series.
fn next_airing(
    state: &FakeLibraryState<SeriesDetails>,
    series: &FakeSeries,
    all: &[FakeEpisode],
) -> Option<String> {
    let now = state.clock.now();
    let listed = all.iter().filter(|episode| episode.monitored).filter_map(|episode| episode.airs_at);
    let scheduled = calendar_entries(state, series).map(|entry| entry.at);
    scheduled.chain(listed).filter(|at| *at > now).min().map(wire_time)
}
