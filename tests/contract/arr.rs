//! Recorded responses of Sonarr and Radarr, served one at a time to a client.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::{env, fs, io};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use dialarr::arr::{Download, DownloadState, MediaFile, QualityProfile, RootFolder, SystemStatus};
use dialarr::http::HttpClient;
use futures_util::FutureExt;
use http::Response;
use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Map, Value};

/// Returns the recordings of one server whose names begin with one of `kinds`, by name; none if there is nothing to
/// check.
pub(crate) fn recordings(server: &str, kinds: &[&str]) -> Result<Vec<(String, String)>> {
    let Some(folder) = folder(server)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("failed to list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if kinds.iter().any(|kind| name.starts_with(kind)) {
            let text = fs::read_to_string(&path).with_context(|| format!("failed to read {name}"))?;
            found.push((name, text));
        }
    }
    found.sort();
    ensure!(!found.is_empty(), "no recording of {server} is named {kinds:?}");
    Ok(found)
}

fn folder(server: &str) -> Result<Option<PathBuf>> {
    let Some(shared) = env::var_os("DIALARR_SHARED").map(PathBuf::from).filter(|shared| shared.is_dir())
    else {
        static SKIP_NOTICE: Once = Once::new();
        // Writes directly to the terminal, because the output of a passing test is captured. The check does not depend
        // on it.
        SKIP_NOTICE.call_once(|| drop(writeln!(io::stdout(), "skipped: DIALARR_SHARED names no folder")));
        return Ok(None);
    };
    Ok(Some(shared.join("data/arr/recorded").join(server)))
}

/// Returns the records of a page, a list or a single record.
pub(crate) fn records(name: &str, recording: &str) -> Result<Vec<Value>> {
    let raw: Value = serde_json::from_str(recording).with_context(|| format!("failed to parse {name}"))?;
    Ok(match raw.get("records").unwrap_or(&raw) {
        Value::Array(records) => records.clone(),
        single => vec![single.clone()],
    })
}

/// Builds a server that returns one response to every request.
pub(crate) fn always(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> HttpClient {
    let body = body.into();
    HttpClient::in_process(Arc::new(move |_| {
        let mut response = Response::new(body.clone());
        if let Ok(status) = http::StatusCode::from_u16(status) {
            *response.status_mut() = status;
        }
        response.headers_mut().insert("content-type", http::HeaderValue::from_static(content_type));
        async move { response }.boxed()
    }))
}

/// Builds a server that returns one list or object to every request.
pub(crate) fn serving(body: &Value) -> HttpClient {
    always(200, "application/json; charset=utf-8", body.to_string())
}

pub(crate) fn text(record: &Value, key: &str) -> String {
    record[key].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn genres(raw: &Value) -> Vec<String> {
    let listed = raw["genres"].as_array().into_iter().flatten();
    listed.filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(crate) fn file(raw: &Value) -> Result<MediaFile> {
    let size_bytes = number(raw, "size").try_into()?;
    Ok(MediaFile { id: number(raw, "id"), size_bytes, quality: text(&raw["quality"]["quality"], "name") })
}

pub(crate) fn flag(record: &Value, key: &str) -> bool {
    record[key].as_bool().unwrap_or_default()
}

/// Returns the number in an id such as `tt0113277`.
pub(crate) fn imdb(record: &Value) -> Option<i64> {
    record["imdbId"].as_str()?.strip_prefix("tt")?.parse().ok()
}

pub(crate) fn number(record: &Value, key: &str) -> i64 {
    record[key].as_i64().unwrap_or_default()
}

pub(crate) fn moment(record: &Value, key: &str) -> Result<Option<Timestamp>> {
    match record[key].as_str().filter(|it| !it.starts_with("0001")) {
        Some(text) => Ok(Some(text.parse().with_context(|| format!("failed to read {key}"))?)),
        None => Ok(None),
    }
}

pub(crate) fn day(record: &Value, key: &str) -> Result<Option<Date>> {
    match record[key].as_str().filter(|it| !it.starts_with("0001")) {
        Some(text) => Ok(Some(text[..10].parse().with_context(|| format!("failed to read {key}"))?)),
        None => Ok(None),
    }
}

/// Returns the imports of a history, which is a page or a list, grouped by `whole`.
pub(crate) fn imports(history: &Value, whole: &str) -> (Value, BTreeMap<i64, Vec<Value>>) {
    let rows = history.get("records").unwrap_or(history).as_array().cloned().unwrap_or_default();
    let imported: Vec<Value> =
        rows.into_iter().filter(|row| row["eventType"] == "downloadFolderImported").collect();
    let mut wholes: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
    for row in &imported {
        wholes.entry(number(row, whole)).or_default().push(row.clone());
    }
    (Value::Array(imported), wholes)
}

pub(crate) fn profiles(raw: &[Value]) -> Vec<QualityProfile> {
    let is_four_k = |one: &Value| one["quality"]["resolution"].as_i64() >= Some(2160);
    let allow_four_k = |item: &Value| {
        let grouped = item["items"].as_array().is_some_and(|group| group.iter().any(is_four_k));
        item["allowed"] == true && (is_four_k(item) || grouped)
    };
    let four_k = |it: &Value| it["items"].as_array().is_none_or(|items| items.iter().any(allow_four_k));
    raw.iter()
        .map(|it| QualityProfile { id: number(it, "id"), name: text(it, "name"), four_k: four_k(it) })
        .collect()
}

pub(crate) fn root_folders(raw: &[Value]) -> Vec<RootFolder> {
    raw.iter().map(|it| RootFolder { path: text(it, "path"), free_bytes: it["freeSpace"].as_u64() }).collect()
}

pub(crate) fn status(raw: &Value) -> SystemStatus {
    SystemStatus {
        app_name: text(raw, "appName"),
        version: text(raw, "version"),
        url_base: text(raw, "urlBase"),
    }
}

/// Checks that every download is listed once, with the values of its first row.
pub(crate) fn check_downloads(page: &Value, parsed: &[Download]) -> Result<()> {
    let mut seen = Vec::new();
    let mut firsts: Vec<&Map<String, Value>> = Vec::new();
    for row in page["records"].as_array().context("no records")?.iter().filter_map(Value::as_object) {
        let id = row.get("downloadId").and_then(Value::as_str);
        if id.is_none() || !seen.contains(&id) {
            seen.push(id);
            firsts.push(row);
        }
    }
    ensure!(firsts.len() == parsed.len(), "{} downloads of {}", parsed.len(), firsts.len());
    for (row, download) in firsts.into_iter().zip(parsed) {
        let row = Value::Object(row.clone());
        let figures = (row["size"].as_f64(), row["sizeleft"].as_f64());
        ensure!(figures == (Some(download.size_bytes), Some(download.left_bytes)), "sizes of {row}");
        let name = [&row["movie"], &row["series"], &row]
            .into_iter()
            .find_map(|named| named["title"].as_str())
            .context("a row without a name")?;
        ensure!(download.title.starts_with(name), "{:?} does not name {name:?}", download.title);
        ensure!(download.time_left == time_left(&row), "time left of {row}");
        check_state(&row, &download.state)?;
    }
    Ok(())
}

fn time_left(row: &Value) -> Option<std::time::Duration> {
    let [hours, minutes, seconds] =
        row["timeleft"].as_str()?.split(':').collect::<Vec<_>>().try_into().ok()?;
    let seconds = [hours, minutes, seconds]
        .iter()
        .try_fold(0, |total, part| part.parse::<u64>().map(|part| total * 60 + part))
        .ok()?;
    (seconds > 0).then(|| std::time::Duration::from_secs(seconds))
}

fn check_state(row: &Value, state: &DownloadState) -> Result<()> {
    let fits = match (row["status"].as_str(), row["trackedDownloadState"].as_str()) {
        (Some("completed"), Some("importPending")) => {
            matches!(state, DownloadState::Stuck(why) if !why.is_empty() && !why.contains("/volume"))
        }
        (Some("downloading" | "warning"), Some("downloading")) => *state == DownloadState::Downloading,
        (Some("queued"), _) => *state == DownloadState::Queued,
        (Some("paused"), _) => *state == DownloadState::Paused,
        (status, tracked) => {
            anyhow::bail!("no expectation for {status:?} and {tracked:?}, told as {state:?}")
        }
    };
    ensure!(fits, "{state:?} tells {row}");
    Ok(())
}
