//! Every request of the clients, recorded for `.ci/contract/arr_requests.py`, which compares them with the published
//! descriptions: one JSON object per line, in the file in `DIALARR_CONTRACT_OUT`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs};

use anyhow::Result;
use bytes::Bytes;
use dialarr::arr::changes::{MovieChange, SeriesChange, SeriesSearch};
use dialarr::arr::collections::SuggestionSource;
use dialarr::arr::common_api::DiscardMode;
use dialarr::arr::radarr::Radarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr::arr::{Availability, NewMovie, NewSeries, WantedEpisodes};
use dialarr::http::HttpClient;
use futures_util::FutureExt;
use http::{Method, Request, Response};
use jiff::Timestamp;
use jiff::civil::date;
use secrecy::SecretString;
use serde_json::{Value, json};

#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Vec<Value>>>);

impl Sent {
    /// Server that records requests and returns minimal responses.
    fn server(&self, name: &'static str) -> HttpClient {
        let sent = self.clone();
        HttpClient::in_process(Arc::new(move |request: Request<Bytes>| {
            sent.0.lock().unwrap_or_else(PoisonError::into_inner).push(line(name, &request));
            let path = request.uri().path();
            let object = ["/queue", "/status", "/7", "/missing", "/downloadclient"]
                .iter()
                .any(|end| path.ends_with(end));
            let body = if object || request.method() != Method::GET { "{}" } else { "[]" };
            async move { Response::new(Bytes::from(body)) }.boxed()
        }))
    }
}

fn line(server: &str, request: &Request<Bytes>) -> Value {
    let query: Vec<(String, String)> =
        serde_urlencoded::from_str(request.uri().query().unwrap_or_default()).unwrap_or_default();
    let body: Option<Value> = serde_json::from_slice(request.body()).unwrap_or_default();
    let (method, path) = (request.method().as_str(), request.uri().path());
    json!({ "server": server, "method": method, "path": path, "query": query, "body": body })
}

async fn ask_radarr(radarr: &Radarr) -> Result<()> {
    let movie = NewMovie {
        tmdb: 603,
        title: "The Matrix".into(),
        profile: 4,
        root_folder: "/films".into(),
        availability: Availability::Released,
    };
    radarr.lookup_movies("tmdb:603").await?;
    radarr.fetch_movie(7).await?;
    radarr.fetch_movie_by_tmdb(603).await?;
    radarr.add_movie(&movie).await?;
    radarr.delete_movie(7, true).await?;
    radarr.delete_movie(7, false).await?;
    radarr.fetch_downloads().await?;
    radarr.fetch_calendar(date(2026, 11, 20), date(2026, 12, 20)).await?;
    radarr.fetch_imports_since(Timestamp::UNIX_EPOCH).await?;
    radarr.fetch_profiles().await?;
    radarr.fetch_root_folders().await?;
    radarr.common_api().fetch_status().await?;
    let change =
        MovieChange { monitored: Some(true), profile: Some(4), availability: Some(Availability::InCinemas) };
    radarr.edit_movie(7, change).await?;
    radarr.search_movie(7).await?;
    radarr.delete_file(7).await?;
    radarr.fetch_history(7).await?;
    radarr.fetch_history_since(Timestamp::UNIX_EPOCH).await?;
    radarr.fetch_collection(726_871).await?;
    radarr.fetch_suggestions(SuggestionSource::Similar).await?;
    let server = radarr.common_api();
    server.discard_download(7, DiscardMode::BlockAndReplace).await?;
    server.fail_grab(7).await?;
    server.fetch_replaces_failed().await?;
    server.fetch_health().await?;
    Ok(())
}

async fn ask_sonarr(sonarr: &Sonarr) -> Result<()> {
    let series = |wanted| NewSeries {
        tvdb: 81189,
        title: "Breaking Bad".into(),
        series_type: "standard".into(),
        profile: 1,
        root_folder: "/tv".into(),
        wanted,
    };
    sonarr.lookup_series("breaking bad").await?;
    sonarr.fetch_series(7).await?;
    sonarr.fetch_series_by_tvdb(81189).await?;
    sonarr.add_series(&series(WantedEpisodes::Seasons(vec![(0, false), (1, true), (2, false)]))).await?;
    sonarr.add_series(&series(WantedEpisodes::Seasons(vec![(0, false), (1, true), (2, true)]))).await?;
    sonarr.delete_series(7, true).await?;
    sonarr.delete_series(7, false).await?;
    sonarr.fetch_downloads().await?;
    sonarr.fetch_calendar(Timestamp::UNIX_EPOCH, Timestamp::from_second(1_800_000_000)?).await?;
    sonarr.fetch_imports_since(Timestamp::UNIX_EPOCH).await?;
    sonarr.fetch_profiles().await?;
    sonarr.fetch_root_folders().await?;
    sonarr.common_api().fetch_status().await?;
    sonarr.add_series(&series(WantedEpisodes::Future)).await?;
    sonarr.add_series(&series(WantedEpisodes::Pilot)).await?;
    sonarr.fetch_episodes(7).await?;
    sonarr.fetch_season_episodes(7, 2).await?;
    sonarr.monitor_episodes(&[1, 2], false).await?;
    sonarr.delete_episode_files(&[1, 2]).await?;
    let change = SeriesChange {
        monitored: Some(true),
        profile: Some(4),
        new_seasons: Some(false),
        series_type: Some("anime"),
    };
    sonarr.edit_series(7, change).await?;
    sonarr.monitor_seasons(7, &[(1, true)]).await?;
    sonarr.monitor_future_episodes(7).await?;
    sonarr.search_series(&SeriesSearch::Season { series: 7, season: 2 }).await?;
    sonarr.search_series(&SeriesSearch::Episodes(vec![1, 2])).await?;
    sonarr.search_series(&SeriesSearch::Missing(7)).await?;
    sonarr.fetch_history(7).await?;
    sonarr.fetch_history_since(Timestamp::UNIX_EPOCH).await?;
    sonarr.common_api().discard_download(7, DiscardMode::Block).await?;
    Ok(())
}

#[tokio::test]
async fn every_request_is_recorded() -> Result<()> {
    let sent = Sent::default();
    let key = SecretString::from("key");
    ask_radarr(&Radarr::new(sent.server("radarr"), "http://radarr".parse()?, key.clone())).await?;
    ask_sonarr(&Sonarr::new(sent.server("sonarr"), "http://sonarr".parse()?, key)).await?;

    let lines: Vec<String> =
        sent.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Value::to_string).collect();
    assert_eq!(lines.len(), 52);
    let file = env::var_os("DIALARR_CONTRACT_OUT")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("arr_requests.jsonl"), PathBuf::from);
    fs::write(file, lines.join("\n") + "\n")?;
    Ok(())
}
