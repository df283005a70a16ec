//! Simulated Jellyfin 12. Like the real one, it refuses the older ways to sign in.

use axum::Router;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, Request, Response};
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::household::{FakeHousehold, FakeTitle, HouseholdState};
use crate::clock::Clock;
use crate::conversation::transcript::MediaKind;
use crate::http::InProcess;
use crate::server_api::fake::{self, FakeEndpoint, Query, empty_response, faulty_response, json_response};

/// Simulated Jellyfin with the state of a household. Clones share it.
#[derive(Debug, Clone)]
pub struct FakeJellyfin {
    pub household: FakeHousehold,
    key: String,
}

impl FakeJellyfin {
    /// Creates a server without titles that accepts this API key.
    pub fn new(key: &str, clock: Clock) -> Self {
        Self { household: FakeHousehold::new(clock), key: key.to_owned() }
    }

    /// Creates a server with the titles and users of a household.
    pub fn with_household(key: &str, household: FakeHousehold) -> Self {
        Self { household, key: key.to_owned() }
    }

    /// Returns the id of a user, as the API states it.
    pub fn user_id(user: u64) -> String {
        item_id(user)
    }

    pub fn key(&self) -> SecretString {
        SecretString::from(self.key.as_str())
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
        // A proxy may serve it below this path.
        let path = path.strip_prefix("/jellyfin").unwrap_or(path).to_owned();
        let faults = {
            let mut state = self.household.lock_state();
            state.requests.push(format!("{} {path}", request.method()));
            state.faults
        };
        if let Some(response) = faulty_response(faults).await {
            return response;
        }
        if path == "/System/Info/Public" {
            return json_response(&system_info());
        }
        if !self.is_signed_in(request.headers()) {
            return empty_response(401);
        }
        let query = Query::from_uri(request.uri());
        let now = self.household.now();
        let mut state = self.household.lock_state();
        match (request.method(), path.as_str()) {
            (&Method::GET, "/System/Info") => json_response(&system_info()),
            (&Method::GET, "/Users") => json_response(&state.users_json()),
            (&Method::GET, "/Items") => json_response(&state.items_json(&query, now)),
            (&Method::GET, "/UserItems/Resume") => json_response(&state.resume_json(&query, now)),
            (&Method::GET, "/Sessions") => json_response(&state.sessions_json()),
            (&Method::GET, "/Library/VirtualFolders") => json_response(&state.folders_json()),
            (&Method::POST, "/Library/Media/Updated") => state.scan(request.body()),
            (&Method::GET, path) => match show_of_episodes(path) {
                Some(show) => state.episodes_response(&show, &query, now),
                None => empty_response(404),
            },
            _ => empty_response(404),
        }
    }

    fn is_signed_in(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let token = given.strip_prefix("MediaBrowser ").and_then(|fields| {
            let mut fields = fields.split(", ");
            fields.find_map(|field| field.strip_prefix("Token=\"")?.strip_suffix('"'))
        });
        let encoded = format!("token={}", token.unwrap_or_default());
        let mut decoded = form_urlencoded::parse(encoded.as_bytes());
        decoded.next().is_some_and(|(_, token)| token == self.key)
    }
}

impl FakeEndpoint for FakeJellyfin {
    async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        self.handle_request(&request).await
    }
}

impl Query {
    fn user(&self) -> Option<&str> {
        self.get("userId")
    }

    /// Adds the user of another query.
    fn with_user(mut self, other: &Self) -> Self {
        let user = other.user().unwrap_or_default().to_owned();
        self.0.extend([("userId".to_owned(), user), ("enableUserData".to_owned(), "true".to_owned())]);
        self
    }
}

impl HouseholdState {
    fn users_json(&self) -> Value {
        let user = |id: u64, name: &str| {
            json!({
                "Id": item_id(id), "Name": name, "HasPassword": true,
                "Policy": {
                    "IsAdministrator": false, "IsDisabled": false, "IsHidden": false,
                    "AuthenticationProviderId": "default", "PasswordResetProviderId": "default",
                },
            })
        };
        self.users.iter().map(|known| user(known.id, &known.name)).collect()
    }

    /// Returns the movies, shows and episodes that the query selects. Fields that it does not name are missing.
    fn items_json(&self, query: &Query, now: Timestamp) -> Value {
        let since = query.get("minDateLastSaved").and_then(|since| since.parse::<Timestamp>().ok());
        let kinds = query.get("includeItemTypes").unwrap_or("Movie,Series,Episode").to_owned();
        let fields = query.get("fields").unwrap_or_default();
        let user = query.user();
        let mut found: Vec<Value> = Vec::new();
        for title in self.visible_titles(now) {
            if since.is_some_and(|since| title.visible_from < since) {
                continue;
            }
            found.push(self.with_user_data(title_json(title, fields), title.id, query));
            found.extend(
                title
                    .episodes
                    .iter()
                    .map(|(id, episode)| self.with_user_data(episode_json(title, *id, *episode), *id, query)),
            );
        }
        found.retain(|item| kinds.split(',').any(|kind| item["Type"] == kind));
        if let Some(ids) = query.get("ids") {
            found.retain(|item| ids.split(',').any(|id| item["Id"] == id));
        }
        if query.is("isPlayed", true) {
            found.retain(|item| item["UserData"]["Played"] == true);
        }
        if query.get("sortBy") == Some("DatePlayed") && user.is_some() {
            found.sort_by_key(|item| std::cmp::Reverse(item["UserData"]["LastPlayedDate"].to_string()));
        }
        page_json(&found, query)
    }

    /// Returns the items that a user has started and not finished.
    fn resume_json(&self, query: &Query, now: Timestamp) -> Value {
        let all = self.items_json(&Query::default().with_user(query), now);
        let items = all["Items"].as_array().cloned().unwrap_or_default();
        let is_started = |item: &Value| item["UserData"]["PlaybackPositionTicks"].as_u64() > Some(0);
        page_json(&items.into_iter().filter(is_started).collect::<Vec<_>>(), query)
    }

    /// Adds the data of the user in the query, as the server does if it is asked to.
    fn with_user_data(&self, mut item: Value, id: u64, query: &Query) -> Value {
        let Some(user) = query.user().filter(|_| query.is("enableUserData", true)) else {
            return item;
        };
        let view = self.users.iter().find(|known| item_id(known.id) == user);
        let view_of = |id: u64| view.and_then(|user| self.views.get(&(user.id, id)));
        let mut data =
            json!({ "Key": id.to_string(), "ItemId": item_id(id), "Played": false, "PlayCount": 0 });
        data["PlaybackPositionTicks"] = 0.into();
        if let Some(view) = view_of(id) {
            let is_finished = view.percent >= 100;
            data["Played"] = is_finished.into();
            data["PlayCount"] = 1.into();
            data["LastPlayedDate"] = view.at.to_string().into();
            if !is_finished {
                data["PlaybackPositionTicks"] = (u64::from(view.percent) * 1_000_000_000).into();
                data["PlayedPercentage"] = view.percent.into();
            }
        }
        if let Some(show) = self.titles.iter().find(|title| title.id == id && title.kind == MediaKind::Series)
        {
            let is_finished =
                |(id, _): &&(u64, (u32, u32))| view_of(*id).is_some_and(|view| view.percent >= 100);
            let finished = show.episodes.iter().filter(is_finished).count();
            data["UnplayedItemCount"] = (show.episodes.len() - finished).into();
            item["RecursiveItemCount"] = show.episodes.len().into();
        }
        item["UserData"] = data;
        item
    }

    fn episodes_response(&self, show: &str, query: &Query, now: Timestamp) -> Response<Bytes> {
        let mut titles = self.visible_titles(now);
        let Some(title) = titles.find(|title| item_id(title.id) == show) else { return empty_response(404) };
        let with_file = title
            .episodes
            .iter()
            .map(|(id, episode)| self.with_user_data(episode_json(title, *id, *episode), *id, query));
        let without_file = title.missing.iter().map(|episode| {
            let mut item = episode_json(title, 0, *episode);
            item["LocationType"] = "Virtual".into();
            item
        });
        let is_hidden = query.is("isMissing", false);
        let items: Vec<Value> = with_file.chain(without_file.filter(|_| !is_hidden)).collect();
        json_response(&json!({ "Items": items, "TotalRecordCount": items.len(), "StartIndex": 0 }))
    }

    /// Returns a session for each user who plays something, and an idle one.
    fn sessions_json(&self) -> Value {
        let session = |(user, item): &(u64, u64)| {
            let known = self.users.iter().find(|known| known.id == *user)?;
            let playing = self.titles.iter().find_map(|title| {
                let episode = title.episodes.iter().find(|(id, _)| id == item);
                match episode {
                    Some((id, episode)) => Some(episode_json(title, *id, *episode)),
                    None => (title.id == *item).then(|| title_json(title, "ProviderIds")),
                }
            });
            Some(json!({
                "Id": format!("session-{user}"), "UserId": dashed_id(*user), "UserName": known.name,
                "NowPlayingItem": playing?,
                "PlayState": { "PositionTicks": 42_000_000_000_u64, "IsPaused": false },
            }))
        };
        let idle = json!({ "Id": "session-idle", "UserId": item_id(0), "PlayState": { "IsPaused": false } });
        self.sessions.iter().filter_map(session).chain([idle]).collect()
    }

    fn folders_json(&self) -> Value {
        let folder = |(name, path): &(String, String)| json!({ "Name": name, "Locations": [path], "ItemId": item_id(900), "CollectionType": "mixed" });
        self.folders.iter().map(folder).collect()
    }

    fn scan(&mut self, body: &[u8]) -> Response<Bytes> {
        let Ok(body) = serde_json::from_slice::<Value>(body) else { return empty_response(400) };
        let Some(updates) = body["Updates"].as_array() else { return empty_response(400) };
        self.scans.extend(updates.iter().filter_map(|update| Some(update["Path"].as_str()?.to_owned())));
        empty_response(204)
    }
}

fn page_json(items: &[Value], query: &Query) -> Value {
    let start = query.number("startIndex").unwrap_or(0);
    let limit = query.number("limit").unwrap_or(usize::MAX);
    let page: Vec<&Value> = items.iter().skip(start).take(limit).collect();
    json!({ "Items": page, "TotalRecordCount": items.len(), "StartIndex": start })
}

fn show_of_episodes(path: &str) -> Option<String> {
    let show = path.strip_prefix("/Shows/")?.strip_suffix("/Episodes")?;
    Some(show.replace('-', ""))
}

fn system_info() -> Value {
    json!({
        "ServerName": "Home", "Version": "12.0.0", "ProductName": "Jellyfin Server", "Id": item_id(1000),
        "LocalAddress": "http://127.0.0.1:8096", "StartupWizardCompleted": true,
    })
}

fn type_name(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Movie => "Movie",
        MediaKind::Series => "Series",
    }
}

fn title_json(title: &FakeTitle, fields: &str) -> Value {
    let has = |name: &str| fields.split(',').any(|field| field == name);
    let mut item = json!({
        "Id": item_id(title.id), "Name": title.title, "Type": type_name(title.kind),
        "ProductionYear": title.year, "LocationType": "FileSystem",
    });
    if has("ProviderIds") {
        item["ProviderIds"] = provider_ids(title);
    }
    if has("MediaSources") && title.kind == MediaKind::Movie {
        item["MediaSources"] = json!([{ "Id": item_id(title.id), "Protocol": "File", "Container": "mkv" }]);
    }
    item
}

fn provider_ids(title: &FakeTitle) -> Value {
    let mut ids = Map::new();
    let mut add = |name: &str, id: Option<String>| {
        ids.extend(id.map(|id| (name.to_owned(), Value::from(id))));
    };
    add("Tmdb", title.ids.tmdb.map(|id| id.to_string()));
    add("Tvdb", title.ids.tvdb.map(|id| id.to_string()));
    add("Imdb", title.ids.imdb.map(|id| format!("tt{id:07}")));
    Value::Object(ids)
}

fn episode_json(show: &FakeTitle, id: u64, (season, number): (u32, u32)) -> Value {
    json!({
        "Id": item_id(id), "Name": format!("Episode {number}"), "Type": "Episode",
        "SeriesId": dashed_id(show.id), "SeriesName": show.title,
        "ParentIndexNumber": season, "IndexNumber": number, "LocationType": "FileSystem",
    })
}

/// Returns an id as most responses state it.
fn item_id(id: u64) -> String {
    format!("{id:032x}")
}

/// Returns an id as some responses state it.
fn dashed_id(id: u64) -> String {
    let hex = item_id(id);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
