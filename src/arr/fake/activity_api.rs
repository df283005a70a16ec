//! Responses of both servers about downloads, the history and started commands.

use axum::Json;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use serde_json::{Value, json};

use super::activity::ROWS;
use super::answers::{Asked, flag, not_found, ok, thrown};
use super::finds::Seeks;
use super::world::{Fake, World};

pub(super) fn routes<D: Seeks>(fake: Fake<D>) -> Router {
    Router::new()
        .route("/queue/{id}", delete(discard::<D>))
        .route("/history/failed/{id}", post(fail::<D>))
        .route("/command/{id}", get(command::<D>))
        .with_state(fake)
}

impl<D: Seeks> World<D> {
    pub(super) fn finish(&mut self, title: &str) {
        let Some(place) = self.downloads.iter().position(|download| download.title == title) else { return };
        let download = self.downloads.remove(place);
        self.note(&download, "downloadFolderImported", None);
        D::arrive(self, &download);
    }

    /// Marks a download as failed: its release is never fetched again, and it is replaced if the server is configured
    /// to do so.
    fn failed(&mut self, title: &str, release: &str, replace: bool) {
        self.record.blocklist.push(release.to_owned());
        if replace && self.replaces_failed {
            D::seek_again(self, title);
        }
    }
}

async fn discard<D: Seeks>(
    State(fake): State<Fake<D>>,
    Path(id): Path<usize>,
    Query(query): Query<Asked>,
) -> Response {
    let mut world = fake.lock();
    let Some(place) = world.downloads.iter().position(|download| download.key == id / ROWS) else {
        return (StatusCode::NOT_FOUND, Json(json!({ "message": "NotFound" }))).into_response();
    };
    if world.downloads[place].client_is_down() && flag(&query, "removeFromClient") {
        return thrown(StatusCode::BAD_REQUEST, "Download client is not available");
    }
    let download = world.downloads.remove(place);
    world.record.discarded.push(download.title.clone());
    if flag(&query, "blocklist") {
        world.note(&download, "downloadFailed", Some("Manually marked as failed"));
        world.failed(&download.title, &download.release, !flag(&query, "skipRedownload"));
    } else {
        world.note(&download, "downloadIgnored", None);
    }
    ok(json!({}))
}

async fn fail<D: Seeks>(State(fake): State<Fake<D>>, Path(id): Path<usize>) -> Response {
    let mut world = fake.lock();
    let Some(mut event) = (id / ROWS).checked_sub(1).and_then(|place| world.history.get(place)).cloned()
    else {
        return not_found();
    };
    event.event = "downloadFailed";
    event.at = world.clock.now();
    event.reason = Some("Manually marked as failed".to_owned());
    world.downloads.retain(|download| download.key != event.download);
    world.failed(&event.title, &event.release, true);
    world.history.push(event);
    ok(json!({}))
}

/// State of a command. Commands are carried out as soon as they are started.
async fn command<D: Seeks>(State(fake): State<Fake<D>>, Path(id): Path<usize>) -> Response {
    let world = fake.lock();
    let begun = id.checked_sub(1).and_then(|place| world.commands.get(place));
    begun.map_or_else(not_found, |(name, message)| {
        ok(json!({ "id": id, "name": name, "message": message, "status": "completed", "result": "successful" }))
    })
}

/// Response to a search command: the command is queued, even if it has already finished.
pub(super) fn begun<D>(world: &mut World<D>, name: &'static str, message: String) -> Value {
    world.commands.push((name, message));
    json!({ "id": world.commands.len(), "name": name, "status": "queued", "result": "unknown" })
}

/// Error that the servers return for the name of an unknown command.
pub(super) fn unknown_command() -> Response {
    thrown(StatusCode::INTERNAL_SERVER_ERROR, "Sequence contains no matching element")
}

/// Error that the servers return for an unknown id in a request for several.
pub(super) fn unknown_rows() -> Response {
    thrown(StatusCode::INTERNAL_SERVER_ERROR, "Expected query to return 1 rows but returned 0")
}
