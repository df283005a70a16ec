//! Simulated Tautulli, which records the plays of a simulated Plex with the same household.

use axum::Router;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::household::{FakeHousehold, FakePlay, HouseholdState};
use super::plex_items::{plex_guid, plex_tv_id};
use crate::http::InProcess;
use crate::server_api::fake::{self, FakeEndpoint, Query, empty_response, faulty_response, json_response};

/// Percentage from which a play is finished, unless the program is set otherwise.
const WATCHED_PERCENT: u8 = 85;
/// Number of rows in a page, unless the request names it.
const PAGE_ROWS: usize = 25;

/// Simulated Tautulli with the state of a household. Clones share it.
#[derive(Debug, Clone)]
pub struct FakeTautulli {
    pub household: FakeHousehold,
    key: String,
}

impl FakeTautulli {
    /// Creates a Tautulli that accepts this API key and has recorded all plays of the household.
    pub fn with_household(key: &str, household: FakeHousehold) -> Self {
        Self { household, key: key.to_owned() }
    }

    pub fn key(&self) -> SecretString {
        SecretString::from(self.key.as_str())
    }

    /// Returns the id of a user of the household.
    pub fn user_id(&self, user: u64) -> String {
        plex_tv_id(user).to_string()
    }

    /// Returns the program without a socket.
    pub fn in_process(&self) -> InProcess {
        fake::in_process(self)
    }

    /// Returns the program as a router, for use behind a socket.
    pub fn router(&self) -> Router {
        fake::router(self)
    }

    async fn handle_request(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let query = Query::from_uri(request.uri());
        let command = query.get("cmd").unwrap_or_default();
        let faults = {
            let mut state = self.household.lock_state();
            state.requests.push(format!("{} {}?cmd={command}", request.method(), request.uri().path()));
            state.recorder_faults
        };
        if let Some(response) = faulty_response(faults).await {
            return response;
        }
        if request.uri().path() != "/api/v2" {
            return empty_response(404);
        }
        let header = request.headers().get("x-api-key").and_then(|value| value.to_str().ok());
        if query.get("apikey").or(header) != Some(self.key.as_str()) {
            return error_response(401, "Invalid apikey");
        }
        let state = self.household.lock_state();
        match command {
            "get_tautulli_info" => success_response(&json!({ "tautulli_version": "v2.17.2" })),
            "get_users" => success_response(&state.tautulli_users_json()),
            "get_history" => success_response(&state.tautulli_history_json(&query)),
            other => error_response(400, &format!("Unknown command: {other}")),
        }
    }
}

impl FakeEndpoint for FakeTautulli {
    async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        self.handle_request(&request).await
    }
}

impl HouseholdState {
    /// Returns the users, with ids as text, and the one that stands for plays without an account.
    fn tautulli_users_json(&self) -> Value {
        let user = |id: u64, name: &str, is_owner: bool, is_recorded: bool| {
            json!({
                "user_id": id.to_string(), "username": name.to_lowercase(), "friendly_name": name,
                "is_active": 1, "is_admin": u8::from(is_owner), "is_home_user": null,
                "keep_history": u8::from(is_recorded),
            })
        };
        let known = self.users.iter().enumerate().map(|(position, known)| {
            user(plex_tv_id(known.id), &known.name, position == 0, known.is_recorded)
        });
        [user(0, "Local", false, true)].into_iter().chain(known).collect()
    }

    fn tautulli_history_json(&self, query: &Query) -> Value {
        let is_recorded =
            |play: &FakePlay| self.users.iter().any(|user| user.id == play.user && user.is_recorded);
        let plays = (1_u64..).zip(&self.plays).filter(|(_, play)| is_recorded(play));
        let mut rows: Vec<Value> = plays.map(|(row, play)| row_json(row, play)).collect();
        let total = rows.len();
        for filter in ["user_id", "rating_key", "grandparent_rating_key", "guid", "media_type"] {
            if let Some(asked) = query.get(filter) {
                rows.retain(|row| row[filter].to_string().trim_matches('"') == asked);
            }
        }
        if let Some(text) = query.get("search").map(str::to_lowercase) {
            let title = |row: &Value| row["full_title"].as_str().unwrap_or_default().to_lowercase();
            rows.retain(|row| title(row).contains(&text));
        }
        rows.reverse();
        let (start, length) =
            (query.number("start").unwrap_or(0), query.number("length").unwrap_or(PAGE_ROWS));
        let page: Vec<&Value> = rows.iter().skip(start).take(length).collect();
        json!({ "draw": 1, "recordsTotal": total, "recordsFiltered": rows.len(), "data": page })
    }
}

/// Returns a row of the history, with ids as numbers.
fn row_json(row: u64, play: &FakePlay) -> Value {
    let (second, title) = (play.at.as_second(), &play.title);
    let watched = if play.percent >= WATCHED_PERCENT { 1.0 } else { f64::from(play.percent / 25) / 4.0 };
    let mut json = json!({
        "row_id": row, "reference_id": row, "group_count": 1, "date": second - 60, "started": second - 60,
        "stopped": second, "user_id": plex_tv_id(play.user), "media_type": "movie",
        "rating_key": title.id, "parent_rating_key": "", "grandparent_rating_key": "",
        "full_title": title.title, "title": title.title, "grandparent_title": "",
        "parent_media_index": "", "media_index": "", "year": title.year, "guid": plex_guid(title, None),
        "percent_complete": play.percent, "watched_status": watched, "live": 0, "state": null,
    });
    if let Some((id, (season, number))) = play.episode {
        let name = format!("Episode {number}");
        json["media_type"] = "episode".into();
        (json["rating_key"], json["grandparent_rating_key"]) = (id.into(), title.id.into());
        json["full_title"] = format!("{} - {name}", title.title).into();
        (json["title"], json["grandparent_title"]) = (name.into(), title.title.as_str().into());
        (json["parent_media_index"], json["media_index"]) = (season.into(), number.into());
        json["guid"] = plex_guid(title, Some((season, number))).into();
    }
    json
}

fn success_response(data: &Value) -> Response<Bytes> {
    json_response(&json!({ "response": { "result": "success", "message": null, "data": data } }))
}

fn error_response(status: u16, message: &str) -> Response<Bytes> {
    let body = json!({ "response": { "result": "error", "message": message, "data": {} } });
    let mut response = json_response(&body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
