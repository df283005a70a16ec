//! API of both servers for removing downloads, failing grabs and starting commands.

use axum::Json;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, post};
use serde_json::{Value, json};

use super::activity::ROW_IDS_PER_EVENT;
use super::fake_server::{FakeLibraryState, FakeServer};
use super::release_search::ReleaseSearch;
use super::responses::{RequestQuery, exception_response, not_found, ok_response, query_flag};

pub(super) fn routes<D: ReleaseSearch>(fake: FakeServer<D>) -> Router {
    Router::new()
        .route("/queue/{id}", delete(discard_queue_row::<D>))
        .route("/history/failed/{id}", post(fail_history_row::<D>))
        .with_state(fake)
}

impl<D: ReleaseSearch> FakeLibraryState<D> {
    pub(super) fn finish_download(&mut self, title: &str) {
        let Some(index) = self.downloads.iter().position(|download| download.title == title) else { return };
        let download = self.downloads.remove(index);
        self.record_event(&download, "downloadFolderImported", None);
        D::import_download(self, &download);
    }

    /// Marks a release as failed, so that it is never grabbed again. Searches for a replacement if requested and configured.
    fn fail_download(&mut self, title: &str, release: &str, replace: bool) {
        self.record.blocklist.push(release.to_owned());
        if replace && self.replaces_failed {
            D::find_replacement(self, title);
        }
    }
}

async fn discard_queue_row<D: ReleaseSearch>(
    State(fake): State<FakeServer<D>>,
    Path(id): Path<usize>,
    Query(query): Query<RequestQuery>,
) -> Response {
    let mut state = fake.lock_state();
    let Some(index) = state.downloads.iter().position(|download| download.key == id / ROW_IDS_PER_EVENT)
    else {
        return (StatusCode::NOT_FOUND, Json(json!({ "message": "NotFound" }))).into_response();
    };
    let download = state.downloads.remove(index);
    state.record.discarded.push(download.title.clone());
    if query_flag(&query, "blocklist") {
        state.record_event(&download, "downloadFailed", Some("Manually marked as failed"));
        state.fail_download(&download.title, &download.release, !query_flag(&query, "skipRedownload"));
    } else {
        state.record_event(&download, "downloadIgnored", None);
    }
    ok_response(json!({}))
}

async fn fail_history_row<D: ReleaseSearch>(
    State(fake): State<FakeServer<D>>,
    Path(id): Path<usize>,
) -> Response {
    let mut state = fake.lock_state();
    let Some(mut event) =
        (id / ROW_IDS_PER_EVENT).checked_sub(1).and_then(|index| state.history.get(index)).cloned()
    else {
        return not_found();
    };
    event.event = "downloadFailed";
    event.at = state.clock.now();
    event.reason = Some("Manually marked as failed".to_owned());
    state.downloads.retain(|download| download.key != event.download);
    state.fail_download(&event.title, &event.release, true);
    state.history.push(event);
    ok_response(json!({}))
}

/// Returns the response to a search command. It reports the command as queued, although the search has finished.
pub(super) fn queued_command_json<D>(state: &mut FakeLibraryState<D>, name: &'static str) -> Value {
    state.last_command += 1;
    json!({ "id": state.last_command, "name": name, "status": "queued", "result": "unknown" })
}

/// Builds the error response for an unknown command.
pub(super) fn unknown_command_response() -> Response {
    exception_response(StatusCode::INTERNAL_SERVER_ERROR, "Sequence contains no matching element")
}

/// Builds the error response for an unknown id in a request with several ids.
pub(super) fn unknown_ids_response() -> Response {
    exception_response(StatusCode::INTERNAL_SERVER_ERROR, "Expected query to return 1 rows but returned 0")
}
