//! Complete parsing of Sonarr's recorded responses.

use anyhow::{Context, Result};
use dialarr::arr::sonarr::Sonarr;
use dialarr::arr::{CalendarDate, CalendarEntry, Season, Series};
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::Value;

use crate::arr::{
    check_downloads, flag, genres, imdb, imports, moment, number, profiles, recordings, records,
    root_folders, serving, status, text,
};

fn sonarr(body: &Value) -> Result<Sonarr> {
    Ok(Sonarr::new(serving(body), "http://sonarr".parse()?, SecretString::from("key")))
}

fn season(raw: &Value) -> Result<Season> {
    Ok(Season {
        number: number(raw, "seasonNumber").try_into()?,
        monitored: flag(raw, "monitored"),
        episodes_on_disk: number(&raw["statistics"], "episodeFileCount").try_into()?,
        episodes: number(&raw["statistics"], "totalEpisodeCount").try_into()?,
        size_bytes: number(&raw["statistics"], "sizeOnDisk").try_into()?,
    })
}

fn series(raw: &Value) -> Result<Series> {
    let listed = raw["seasons"].as_array().context("a series without seasons")?;
    let specials = listed.iter().find(|it| it["seasonNumber"] == 0).map(season).transpose()?;
    let seasons =
        listed.iter().filter(|it| it["seasonNumber"] != 0).map(season).collect::<Result<Vec<_>>>()?;
    Ok(Series {
        id: raw["id"].as_i64(),
        tvdb: number(raw, "tvdbId"),
        tmdb: raw["tmdbId"].as_i64().filter(|id| *id > 0),
        imdb: imdb(raw),
        title: text(raw, "title"),
        year: number(raw, "year").try_into()?,
        overview: text(raw, "overview"),
        monitored: flag(raw, "monitored"),
        ended: flag(raw, "ended"),
        series_type: text(raw, "seriesType"),
        episodes_on_disk: seasons.iter().map(|season| season.episodes_on_disk).sum(),
        episodes: seasons.iter().map(|season| season.episodes).sum(),
        seasons,
        specials,
        size_bytes: number(&raw["statistics"], "sizeOnDisk").try_into()?,
        path: text(raw, "path"),
        profile: number(raw, "qualityProfileId"),
        next_airing: moment(raw, "nextAiring")?,
        new_seasons: raw["monitorNewItems"] == "all",
        genres: genres(raw),
        certification: raw["certification"].as_str().unwrap_or_default().to_owned(),
        rating: raw["ratings"]["value"].as_f64().filter(|rating| *rating > 0.0),
        added: moment(raw, "added")?,
    })
}

/// The server's counts with specials equal the parsed counts plus the specials.
fn check_counts(raw: &Value, series: &Series) {
    let specials = raw["seasons"].as_array().into_iter().flatten().find(|it| it["seasonNumber"] == 0);
    let specials = specials.map_or(Value::Null, |it| it["statistics"].clone());
    let total = i64::from(series.episodes) + number(&specials, "totalEpisodeCount");
    let on_disk = i64::from(series.episodes_on_disk) + number(&specials, "episodeFileCount");
    assert_eq!(total, number(&raw["statistics"], "totalEpisodeCount"), "{}", series.title);
    assert_eq!(on_disk, number(&raw["statistics"], "episodeFileCount"), "{}", series.title);
}

#[tokio::test]
async fn series_keep_every_field_in_catalog_and_library() -> Result<()> {
    for (name, recording) in recordings("sonarr", &["series_", "add_series_201"])? {
        let raw = records(&name, &recording)?;
        let expected: Vec<Series> = raw.iter().map(series).collect::<Result<_>>()?;
        let sonarr = sonarr(&Value::Array(raw.clone()))?;
        assert_eq!(sonarr.lookup_series("any").await?, expected, "{name}");
        if let Some(last) = expected.last() {
            assert_eq!(sonarr.fetch_series_by_tvdb(last.tvdb).await?.as_ref(), Some(last), "{name}");
        }
        for (raw, expected) in raw.iter().zip(expected) {
            if !name.starts_with("series_lookup") {
                check_counts(raw, &expected);
            }
            assert_eq!(self::sonarr(raw)?.fetch_series(1).await?, Some(expected), "{name}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_calendar_episode_has_its_time() -> Result<()> {
    for (name, recording) in recordings("sonarr", &["calendar_"])? {
        for raw in records(&name, &recording)? {
            let entries = sonarr(&Value::Array(vec![raw.clone()]))?
                .fetch_calendar(Timestamp::UNIX_EPOCH, Timestamp::MAX)
                .await?;
            let numbers =
                format!(" S{:02}E{:02}", number(&raw, "seasonNumber"), number(&raw, "episodeNumber"));
            let title = match raw["series"]["title"].as_str() {
                Some(series) => format!("{series}{numbers}"),
                None => text(&raw, "title"),
            };
            let at = moment(&raw, "airDateUtc")?.context("an episode without a time")?;
            let (series, on_disk) = (text(&raw["series"], "title"), flag(&raw, "hasFile"));
            let expected = CalendarEntry { title, series, date: CalendarDate::Airs(at), on_disk };
            assert_eq!(entries, [expected], "{name}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn no_queued_download_is_lost() -> Result<()> {
    for (name, recording) in recordings("sonarr", &["queue_"])? {
        let raw: Value = serde_json::from_str(&recording)?;
        if raw.get("records").is_some() {
            check_downloads(&raw, &sonarr(&raw)?.fetch_downloads().await?).context(name)?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_imported_series_is_listed() -> Result<()> {
    for (name, recording) in recordings("sonarr", &["history_"])? {
        let (raw, shows) = imports(&serde_json::from_str(&recording)?, "seriesId");
        let imports = sonarr(&raw)?.fetch_imports_since(Timestamp::UNIX_EPOCH).await?;
        // These were recorded without episodes, so that their seasons are unknown.
        assert_eq!(imports.len(), shows.len(), "{name}");
        assert!(imports.iter().all(|it| !it.title.is_empty()), "{name}");
        assert!(imports.is_sorted_by(|one, other| one.at >= other.at), "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn profiles_folders_and_status_are_complete() -> Result<()> {
    for (name, recording) in recordings("sonarr", &["qualityprofiles", "rootfolder", "system_status"])? {
        let raw = records(&name, &recording)?;
        if name.starts_with("qualityprofiles") {
            assert_eq!(sonarr(&Value::Array(raw.clone()))?.fetch_profiles().await?, profiles(&raw), "{name}");
        } else if name.starts_with("rootfolder") {
            assert_eq!(
                sonarr(&Value::Array(raw.clone()))?.fetch_root_folders().await?,
                root_folders(&raw),
                "{name}"
            );
        } else {
            assert_eq!(sonarr(&raw[0])?.common_api().fetch_status().await?, status(&raw[0]), "{name}");
        }
    }
    Ok(())
}
