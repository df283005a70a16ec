//! Complete parsing of Radarr's recorded responses.

use anyhow::{Context, Result};
use dialarr::arr::radarr::Radarr;
use dialarr::arr::{
    Availability, CalendarDate, CalendarEntry, Movie, MovieCollection, ReleaseKind, ReleaseStatus,
};
use jiff::Timestamp;
use jiff::civil::{Date, date};
use secrecy::SecretString;
use serde_json::Value;

use crate::arr::{
    check_downloads, day, file, flag, genres, imdb, imports, moment, number, profiles, recordings, records,
    root_folders, serving, status, text,
};

fn radarr(body: &Value) -> Result<Radarr> {
    Ok(Radarr::new(serving(body), "http://radarr".parse()?, SecretString::from("key")))
}

fn movie(raw: &Value) -> Result<Movie> {
    let id = raw["id"].as_i64();
    Ok(Movie {
        id,
        tmdb: number(raw, "tmdbId"),
        imdb: imdb(raw),
        title: text(raw, "title"),
        year: number(raw, "year").try_into()?,
        overview: text(raw, "overview"),
        has_file: flag(raw, "hasFile"),
        monitored: flag(raw, "monitored"),
        available: if id.is_some() { flag(raw, "isAvailable") } else { raw["status"] == "released" },
        size_bytes: number(raw, "sizeOnDisk").try_into()?,
        path: text(raw, "path"),
        profile: number(raw, "qualityProfileId"),
        popularity: raw["popularity"].as_f64().unwrap_or_default(),
        cinema: day(raw, "inCinemas")?,
        digital: day(raw, "digitalRelease")?,
        physical: day(raw, "physicalRelease")?,
        status: match raw["status"].as_str() {
            Some("announced") => ReleaseStatus::Announced,
            Some("inCinemas") => ReleaseStatus::InCinemas,
            Some("released") => ReleaseStatus::Released,
            Some(_) | None => ReleaseStatus::Unclear,
        },
        availability: match raw["minimumAvailability"].as_str() {
            Some("announced" | "tba") => Availability::Announced,
            Some("inCinemas") => Availability::InCinemas,
            Some(_) | None => Availability::Released,
        },
        file: raw["movieFile"].is_object().then(|| file(&raw["movieFile"])).transpose()?,
        genres: genres(raw),
        certification: raw["certification"].as_str().unwrap_or_default().to_owned(),
        rating: raw["ratings"]["tmdb"]["value"].as_f64().filter(|rating| *rating > 0.0),
        added: moment(raw, "added")?,
        last_search: moment(raw, "lastSearchTime")?,
        collection: raw["collection"]["tmdbId"]
            .as_i64()
            .map(|tmdb| MovieCollection { tmdb, title: text(&raw["collection"], "title") }),
    })
}

#[tokio::test]
async fn movies_keep_every_field_in_catalog_and_library() -> Result<()> {
    for (name, recording) in recordings("radarr", &["movie_", "wanted_missing", "add_movie_201"])? {
        let raw = records(&name, &recording)?;
        let expected: Vec<Movie> = raw.iter().map(movie).collect::<Result<_>>()?;
        let radarr = radarr(&Value::Array(raw.clone()))?;
        assert_eq!(radarr.lookup_movies("any").await?, expected, "{name}");
        if let Some(last) = expected.last() {
            assert_eq!(radarr.fetch_movie_by_tmdb(last.tmdb).await?.as_ref(), Some(last), "{name}");
        }
        for (raw, expected) in raw.iter().zip(expected) {
            assert_eq!(self::radarr(raw)?.fetch_movie(1).await?, Some(expected), "{name}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_calendar_release_has_its_day() -> Result<()> {
    for (name, recording) in recordings("radarr", &["calendar_"])? {
        for raw in records(&name, &recording)? {
            let releases = [
                ("inCinemas", ReleaseKind::Cinema),
                ("digitalRelease", ReleaseKind::Digital),
                ("physicalRelease", ReleaseKind::Physical),
            ];
            for (key, release) in releases {
                let Some(day) = day(&raw, key)? else { continue };
                let entries = upcoming(&raw, day).await?;
                let [entries] = entries.as_slice() else { anyhow::bail!("{name} tells {entries:?}") };
                assert!(entries.title.starts_with(&text(&raw, "title")), "{entries:?}");
                assert_eq!(entries.on_disk, flag(&raw, "hasFile"), "{entries:?}");
                // A movie may have two releases on one day.
                let same_day = releases.iter().filter(|(other, _)| raw[*other] == raw[key]).count() > 1;
                assert!(same_day || entries.date == CalendarDate::Released(day, release), "{entries:?}");
            }
            assert_eq!(upcoming(&raw, date(1900, 1, 1)).await?, []);
        }
    }
    Ok(())
}

async fn upcoming(raw: &Value, day: Date) -> Result<Vec<CalendarEntry>> {
    Ok(radarr(&Value::Array(vec![raw.clone()]))?.fetch_calendar(day, day).await?)
}

#[tokio::test]
async fn no_queued_download_is_lost() -> Result<()> {
    for (name, recording) in recordings("radarr", &["queue_"])? {
        let raw: Value = serde_json::from_str(&recording)?;
        check_downloads(&raw, &radarr(&raw)?.fetch_downloads().await?).context(name)?;
    }
    Ok(())
}

#[tokio::test]
async fn every_imported_movie_is_listed_once_with_its_latest_time() -> Result<()> {
    for (name, recording) in recordings("radarr", &["history_"])? {
        let (raw, movies) = imports(&serde_json::from_str(&recording)?, "movieId");
        let mut expected: Vec<Timestamp> = Vec::new();
        for rows in movies.values() {
            let dates = rows.iter().map(|row| moment(row, "date")).collect::<Result<Vec<_>>>()?;
            expected.extend(dates.into_iter().flatten().max());
        }
        expected.sort_by(|one, other| other.cmp(one));
        let imports = radarr(&raw)?.fetch_imports_since(Timestamp::UNIX_EPOCH).await?;
        assert_eq!(imports.iter().map(|it| it.at).collect::<Vec<_>>(), expected, "{name}");
        assert!(imports.iter().all(|it| !it.title.is_empty()), "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn profiles_folders_and_status_are_complete() -> Result<()> {
    for (name, recording) in recordings("radarr", &["qualityprofiles"])? {
        let raw = records(&name, &recording)?;
        let parsed = radarr(&Value::Array(raw.clone()))?.fetch_profiles().await?;
        assert_eq!(parsed, profiles(&raw), "{name}");
    }
    for (name, recording) in recordings("radarr", &["rootfolder"])? {
        let raw = records(&name, &recording)?;
        let folders = radarr(&Value::Array(raw.clone()))?.fetch_root_folders().await?;
        assert_eq!(folders, root_folders(&raw), "{name}");
    }
    for (name, recording) in recordings("radarr", &["system_status"])? {
        let raw: Value = serde_json::from_str(&recording)?;
        assert_eq!(radarr(&raw)?.common_api().fetch_status().await?, status(&raw), "{name}");
    }
    Ok(())
}
