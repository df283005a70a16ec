//! API of both servers for profiles, root folders, status, health and settings.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use serde_json::{Value, json};

use super::connect_api;
use super::fake_server::FakeServer;
use super::responses::ok_response;

pub(super) fn routes<D: Clone + Send + 'static>(fake: FakeServer<D>) -> Router {
    Router::new()
        .route("/qualityprofile", get(list_profiles::<D>))
        .route("/rootfolder", get(list_root_folders::<D>))
        .route("/system/status", get(system_status::<D>))
        .route("/health", get(list_health::<D>))
        .route("/config/downloadclient", get(download_client_config::<D>))
        .route("/config/metadata", get(metadata_config::<D>))
        .with_state(fake.clone())
        .merge(connect_api::routes(fake))
}

async fn list_profiles<D: Clone>(State(fake): State<FakeServer<D>>) -> Response {
    let state = fake.lock_state();
    let to_json = |(id, name): &(i64, String)| {
        json!({
            "id": id,
            "name": name,
            "upgradeAllowed": true,
            "cutoff": 3,
            "items": qualities_json(state.four_k_profiles.contains(name)),
            "minFormatScore": 0,
            "cutoffFormatScore": 0,
            "formatItems": [],
        })
    };
    ok_response(state.profiles.iter().map(to_json).collect())
}

/// Returns the qualities of a profile: a single quality and two groups.
fn qualities_json(four_k: bool) -> Value {
    let quality =
        |name: &str, resolution: u32| json!({ "name": name, "source": "web", "resolution": resolution });
    let single = |name, resolution, allowed: bool| json!({ "quality": quality(name, resolution), "items": [], "allowed": allowed });
    let group = |id: u32, name: &str, items: Value, allowed: bool| json!({ "id": id, "name": name, "items": items, "allowed": allowed });
    json!([
        single("SDTV", 480, false),
        group(1002, "WEB 1080p", json!([single("WEBDL-1080p", 1080, true)]), true),
        group(1003, "WEB 2160p", json!([single("WEBDL-2160p", 2160, four_k)]), four_k),
    ])
}

async fn list_root_folders<D: Clone>(State(fake): State<FakeServer<D>>) -> Response {
    let root_folders = fake.lock_state().root_folders.clone();
    let to_json = |(id, root): (usize, super::fake_server::FakeRootFolder)| {
        json!({
            "id": id + 1,
            "path": root.path,
            "accessible": root.free_bytes.is_some(),
            "freeSpace": root.free_bytes,
            "unmappedFolders": [],
        })
    };
    ok_response(root_folders.into_iter().enumerate().map(to_json).collect::<Value>())
}

async fn system_status<D>(State(fake): State<FakeServer<D>>) -> Response {
    ok_response(json!({
        "appName": fake.identity.name,
        "instanceName": fake.identity.name,
        "version": fake.identity.version,
        "isProduction": true,
        "isDocker": true,
        "branch": "main",
        "databaseType": "sqLite",
        "authentication": "forms",
        "urlBase": "",
        "runtimeName": "netcore",
    }))
}

async fn list_health<D: Clone>(State(fake): State<FakeServer<D>>) -> Response {
    let to_json = |[level, source, message]: &[String; 3]| json!({ "type": level, "source": source, "message": message, "wikiUrl": "https://wiki.servarr.com" });
    ok_response(fake.lock_state().health_problems.iter().map(to_json).collect())
}

async fn download_client_config<D: Clone>(State(fake): State<FakeServer<D>>) -> Response {
    let replaces = fake.lock_state().replaces_failed;
    ok_response(json!({
        "id": 1,
        "enableCompletedDownloadHandling": true,
        "autoRedownloadFailed": replaces,
        "autoRedownloadFailedFromInteractiveSearch": replaces,
    }))
}

/// Returns the settings for metadata, which only Radarr has.
async fn metadata_config<D: Clone>(State(fake): State<FakeServer<D>>) -> Response {
    let country = fake.lock_state().certification_country;
    ok_response(json!({ "id": 1, "certificationCountry": country }))
}
