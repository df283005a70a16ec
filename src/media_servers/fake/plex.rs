//! Simulated Plex Media Server. Like the real one, it answers in XML unless JSON is asked for.

use axum::Router;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::household::{FakeHousehold, HouseholdState};
use super::plex_items::{FakeSection, episode_json};
use super::plex_xml;
use crate::clock::Clock;
use crate::http::InProcess;
use crate::server_api::fake::{self, FakeEndpoint, Query, empty_response, faulty_response, json_response};

/// Simulated Plex with the state of a household, of which the first user is the owner. Clones share it.
#[derive(Debug, Clone)]
pub struct FakePlex {
    pub household: FakeHousehold,
    token: String,
}

impl FakePlex {
    /// Creates a server without titles that accepts this token of its owner.
    pub fn new(token: &str, clock: Clock) -> Self {
        Self::with_household(token, FakeHousehold::new(clock))
    }

    /// Creates a server with the titles and users of a household.
    pub fn with_household(token: &str, household: FakeHousehold) -> Self {
        Self { household, token: token.to_owned() }
    }

    pub fn token(&self) -> SecretString {
        SecretString::from(self.token.as_str())
    }

    /// Returns the id that the server has for a user of the household.
    pub fn account_id(&self, user: u64) -> String {
        self.household.lock_state().account_id(user).to_string()
    }

    /// Returns the server without a socket.
    pub fn in_process(&self) -> InProcess {
        fake::in_process(self)
    }

    /// Returns the server as a router, for use behind a socket.
    pub fn router(&self) -> Router {
        fake::router(self)
    }

    async fn handle_request(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let path = request.uri().path();
        let faults = {
            let mut state = self.household.lock_state();
            state.requests.push(format!("{} {path}", request.method()));
            state.faults
        };
        if let Some(response) = faulty_response(faults).await {
            return response;
        }
        if path == "/identity" {
            return json_response(&server_info());
        }
        if !self.is_signed_in(request.headers()) {
            return empty_response(401);
        }
        if request.method() != Method::GET {
            return empty_response(404);
        }
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let now = self.household.now();
        let mut query = Query::from_uri(request.uri());
        query.0.extend(page_headers(request.headers()));
        self.household.lock_state().plex_response(&parts, &query, now)
    }

    fn is_signed_in(&self, headers: &HeaderMap) -> bool {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        header("x-plex-token") == Some(self.token.as_str()) && header("x-plex-client-identifier").is_some()
    }
}

impl FakeEndpoint for FakePlex {
    async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        let response = self.handle_request(&request).await;
        if accepts_json(request.headers()) { response } else { plex_xml::xml_response(response) }
    }
}

impl HouseholdState {
    fn plex_response(&mut self, path: &[&str], query: &Query, now: Timestamp) -> Response<Bytes> {
        match path {
            [""] => json_response(&server_info()),
            ["accounts"] => container_response("Account", self.accounts_json()),
            ["status", "sessions"] => container_response("Metadata", self.plex_sessions_json()),
            ["status", "sessions", "history", "all"] => page_response(self.selected_plays(query), query),
            // python-plexapi reads these before a library.
            ["library"] => container_response("Directory", Vec::new()),
            ["library", "sections"] | ["library", "sections", "all"] => {
                let sections = self.sections();
                container_response("Directory", sections.iter().map(FakeSection::section_json).collect())
            }
            ["library", "sections", key, "all"] => match self.selected_titles(key, query, now) {
                Some(titles) => page_response(titles, query),
                None => empty_response(404),
            },
            ["library", "sections", key, "refresh"] => self.refresh(key, query),
            ["library", "metadata", id] => {
                let mut titles = self.visible_titles(now);
                match titles.find(|title| title.id.to_string() == *id) {
                    Some(title) => container_response("Metadata", vec![self.title_json(title, true)]),
                    None => empty_response(404),
                }
            }
            ["library", "metadata", id, "allLeaves"] => {
                let mut titles = self.visible_titles(now);
                match titles.find(|title| title.id.to_string() == *id) {
                    Some(show) => {
                        let episodes = show.episodes.iter().map(|episode| episode_json(show, *episode));
                        page_response(episodes.collect(), query)
                    }
                    None => empty_response(404),
                }
            }
            _ => empty_response(404),
        }
    }

    /// Returns the accounts, of which the first one stands for plays of unknown users.
    fn accounts_json(&self) -> Vec<Value> {
        let account =
            |id: u64, name: &str| json!({ "id": id, "key": format!("/accounts/{id}"), "name": name });
        let known = self.users.iter().map(|user| account(self.account_id(user.id), &user.name));
        [account(0, "")].into_iter().chain(known).collect()
    }

    fn selected_titles(&self, key: &str, query: &Query, now: Timestamp) -> Option<Vec<Value>> {
        let since = query.number("updatedAt>").and_then(|since| i64::try_from(since).ok());
        let has_guids = query.get("includeGuids") == Some("1");
        let asked_type = match query.get("type") {
            Some("1") => "movie",
            Some("2") => "show",
            _ => return None,
        };
        let titles = self.section_titles(key, now)?;
        let changed =
            titles.iter().filter(|title| since.is_none_or(|since| title.visible_from.as_second() >= since));
        let items = changed.map(|title| self.title_json(title, has_guids));
        Some(items.filter(|item| item["type"] == asked_type).collect())
    }

    fn selected_plays(&self, query: &Query) -> Vec<Value> {
        let mut plays = self.history_json();
        if let Some(account) = query.number("accountID") {
            plays.retain(|play| play["accountID"] == account);
        }
        if let Some(item) = query.get("metadataItemID") {
            let show = format!("/library/metadata/{item}");
            plays.retain(|play| play["ratingKey"] == item || play["grandparentKey"] == show.as_str());
        }
        plays
    }

    /// Starts a scan, and answers with an empty page.
    fn refresh(&mut self, key: &str, query: &Query) -> Response<Bytes> {
        if !self.sections().iter().any(|section| section.key == key) {
            return empty_response(404);
        }
        self.scans.extend(query.get("path").map(str::to_owned));
        let mut response = empty_response(200);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
        response
    }
}

fn accepts_json(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("application/json"))
}

/// Returns the part of a list that is asked for by headers, which python-plexapi uses instead of the query.
fn page_headers(headers: &HeaderMap) -> impl Iterator<Item = (String, String)> {
    ["X-Plex-Container-Start", "X-Plex-Container-Size"].into_iter().filter_map(|name| {
        let value = headers.get(name).and_then(|value| value.to_str().ok())?;
        Some((name.to_owned(), value.to_owned()))
    })
}

/// Returns a list as a whole, which then has no total.
fn container_response(name: &str, items: Vec<Value>) -> Response<Bytes> {
    let mut container = json!({ "size": items.len() });
    container[name] = items.into();
    json_response(&json!({ "MediaContainer": container }))
}

/// Returns the page of a list that the query asks for.
fn page_response(items: Vec<Value>, query: &Query) -> Response<Bytes> {
    let Some(size) = query.number("X-Plex-Container-Size") else {
        return container_response("Metadata", items);
    };
    let start = query.number("X-Plex-Container-Start").unwrap_or(0);
    let total = items.len();
    let page: Vec<Value> = items.into_iter().skip(start).take(size).collect();
    let mut container = json!({ "size": page.len(), "totalSize": total, "offset": start });
    // An empty list is left out.
    if !page.is_empty() {
        container["Metadata"] = page.into();
    }
    json_response(&json!({ "MediaContainer": container }))
}

fn server_info() -> Value {
    json!({ "MediaContainer": {
        "size": 0, "claimed": true, "friendlyName": "Home", "version": "1.41.0.0-aaaaaaaaa",
        "machineIdentifier": "0000000000000000000000000000000000000000", "platform": "Linux",
    }})
}
