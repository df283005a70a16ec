//! Answers of a simulated Seerr.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::state::{FakeIssue, FakeSeerrRequest, FakeSeerrUser, Permission, SeerrState};
use crate::conversation::transcript::MediaKind;
use crate::server_api::fake::{Query, empty_response, has_reserved_characters, json_response};

/// Answers a request. Returns `None` for a GET about the catalog.
pub(super) fn respond(
    state: &mut SeerrState,
    request: &Request<Bytes>,
    (key, now): (&str, Timestamp),
) -> Option<Response<Bytes>> {
    let Some(path) = request.uri().path().strip_prefix("/api/v1/") else { return Some(empty_response(404)) };
    let parts: Vec<&str> = path.split('/').collect();
    if parts == ["status"] {
        return Some(json_response(&json!({ "version": "3.1.0", "restartRequired": false })));
    }
    let Some(user) = find_user(state, request, key) else { return Some(no_access()) };
    if has_reserved_characters(request.uri()) {
        return Some(message_response(400, "The query must be url encoded."));
    }
    let query = Query::from_uri(request.uri());
    let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    Some(match (request.method(), parts.as_slice()) {
        (&Method::GET, ["auth", "me"]) => json_response(&user_json(&user)),
        (&Method::GET, ["user"]) => users_page(state, &query),
        (&Method::GET, ["user", id, "quota"]) => quota_response(state, &user, id),
        (&Method::GET, ["request"]) => requests_page(state, &user, &query),
        (&Method::POST, ["request"]) => create_request(state, &user, &body, now),
        (&Method::GET, ["request", id]) => {
            let found = state.requests.iter().find(|request| request.id.to_string() == *id);
            found.map_or_else(|| empty_response(404), |found| json_response(&request_json(state, found)))
        }
        (&Method::POST, ["request", id, word]) => decide_request(state, &user, (id, word)),
        (&Method::POST, ["issue"]) => create_issue(state, &user, &body, now),
        (&Method::GET, ["issue"]) => issues_page(state, &query),
        (&Method::GET, [kind @ ("movie" | "tv"), id]) => return media_details(state, kind, id),
        (&Method::GET, _) => return None,
        _ => empty_response(405),
    })
}

/// Returns the user for whom a request acts: the owner, unless a header names another one.
fn find_user(state: &SeerrState, request: &Request<Bytes>, key: &str) -> Option<FakeSeerrUser> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    if header("x-api-key") != Some(key) {
        return None;
    }
    let id = header("x-api-user").unwrap_or("1");
    state.users.iter().find(|user| user.id.to_string() == id).cloned()
}

fn create_request(
    state: &mut SeerrState,
    user: &FakeSeerrUser,
    body: &Value,
    now: Timestamp,
) -> Response<Bytes> {
    let kind = if body["mediaType"] == "tv" { MediaKind::Series } else { MediaKind::Movie };
    let Some(tmdb) = body["mediaId"].as_i64() else { return message_response(400, "mediaId is missing") };
    let is_4k = body["is4k"].as_bool().unwrap_or_default();
    if !user.may(if is_4k { Permission::REQUEST_4K } else { Permission::REQUEST }) {
        return message_response(403, "You do not have permission to make requests.");
    }
    if state.blocklist.contains(&tmdb) {
        return message_response(403, "This media is blocklisted.");
    }
    let requested: Vec<u32> = match &body["seasons"] {
        Value::Array(numbers) => {
            numbers.iter().filter_map(Value::as_u64).filter_map(|number| u32::try_from(number).ok()).collect()
        }
        // This server knows no catalog, so every show has one season.
        _ if kind == MediaKind::Series => vec![1],
        _ => Vec::new(),
    };
    let open = |request: &&FakeSeerrRequest| {
        (request.kind, request.tmdb, request.is_4k) == (kind, tmdb, is_4k) && request.status != 3
    };
    let known: Vec<u32> =
        state.requests.iter().filter(open).flat_map(|request| request.seasons.clone()).collect();
    let seasons: Vec<u32> = requested.into_iter().filter(|season| !known.contains(season)).collect();
    let (limit, amount) = match kind {
        MediaKind::Movie => (user.movie_limit, 1),
        MediaKind::Series => (user.season_limit, seasons.len()),
    };
    match kind {
        MediaKind::Movie if state.requests.iter().any(|request| open(&request)) => {
            return message_response(409, "Request for this media already exists.");
        }
        MediaKind::Series if seasons.is_empty() => {
            return message_response(202, "No seasons available to request");
        }
        MediaKind::Movie | MediaKind::Series => {}
    }
    let used = state.quota_use(user.id, kind);
    if limit.is_some_and(|limit| used + amount > usize::try_from(limit).unwrap_or(usize::MAX)) {
        return message_response(403, "Quota exceeded.");
    }
    let title = (kind, tmdb, body["tvdbId"].as_i64());
    let id = state.add_request(user.id, title, (seasons, is_4k), now);
    let created = state.requests.iter().find(|request| request.id == id);
    let mut response =
        created.map_or_else(|| empty_response(500), |created| json_response(&request_json(state, created)));
    *response.status_mut() = StatusCode::CREATED;
    response
}

fn decide_request(state: &mut SeerrState, user: &FakeSeerrUser, (id, word): (&str, &str)) -> Response<Bytes> {
    if !user.may(Permission::MANAGE_REQUESTS) {
        return no_access();
    }
    let Some(request) = state.requests.iter_mut().find(|request| request.id.to_string() == id) else {
        return empty_response(404);
    };
    request.status = if word == "approve" { 2 } else { 3 };
    request.decided_by = Some(user.id);
    let decided = request.clone();
    json_response(&request_json(state, &decided))
}

fn requests_page(state: &SeerrState, user: &FakeSeerrUser, query: &Query) -> Response<Bytes> {
    let asked = query.number("requestedBy").and_then(|id| i64::try_from(id).ok());
    let is_listed = |request: &&FakeSeerrRequest| {
        asked.is_none_or(|id| request.user == id)
            && (user.may(Permission::MANAGE_REQUESTS) || request.user == user.id)
            && (query.get("filter") != Some("pending") || request.status == 1)
    };
    let mut listed: Vec<&FakeSeerrRequest> = state.requests.iter().filter(is_listed).collect();
    listed.reverse();
    page_response(listed.into_iter().map(|request| request_json(state, request)), query)
}

fn users_page(state: &SeerrState, query: &Query) -> Response<Bytes> {
    page_response(state.users.iter().map(user_json), query)
}

fn quota_response(state: &SeerrState, user: &FakeSeerrUser, id: &str) -> Response<Bytes> {
    if user.id.to_string() != id && !user.may(Permission::ADMIN) {
        return no_access();
    }
    let Some(asked) = state.users.iter().find(|user| user.id.to_string() == id) else {
        return empty_response(404);
    };
    let quota = |kind, limit: Option<u32>| {
        let used = state.quota_use(asked.id, kind);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        json!({ "days": limit.map(|_| 7), "limit": limit, "used": used,
            "remaining": limit.map(|limit| limit.saturating_sub(used)),
            "restricted": limit.is_some_and(|limit| used >= limit) })
    };
    json_response(&json!({ "movie": quota(MediaKind::Movie, asked.movie_limit),
        "tv": quota(MediaKind::Series, asked.season_limit) }))
}

fn create_issue(
    state: &mut SeerrState,
    user: &FakeSeerrUser,
    body: &Value,
    now: Timestamp,
) -> Response<Bytes> {
    if !user.may(Permission::CREATE_ISSUES) {
        return no_access();
    }
    let Some(media) = body["mediaId"].as_i64().filter(|id| state.media.iter().any(|(known, _)| known == id))
    else {
        return message_response(404, "Media not found.");
    };
    let id = state.new_id();
    let number = |name: &str| body[name].as_u64().unwrap_or_default();
    let issue = FakeIssue {
        id,
        user: user.id,
        kind: number("issueType"),
        media,
        season: number("problemSeason"),
        episode: number("problemEpisode"),
        message: body["message"].as_str().unwrap_or_default().to_owned(),
        created_at: now,
    };
    let mut response = json_response(&issue_json(state, &issue));
    *response.status_mut() = StatusCode::CREATED;
    state.issues.push(issue);
    response
}

fn issues_page(state: &SeerrState, query: &Query) -> Response<Bytes> {
    let asked = query.number("requestedBy").and_then(|id| i64::try_from(id).ok());
    let listed = state.issues.iter().rev().filter(|issue| asked.is_none_or(|id| issue.user == id));
    page_response(listed.map(|issue| issue_json(state, issue)), query)
}

/// Answers with the record of a title. Returns `None` if there is none, because only the catalog may know the title.
fn media_details(state: &SeerrState, kind: &str, tmdb: &str) -> Option<Response<Bytes>> {
    let kind = if kind == "tv" { MediaKind::Series } else { MediaKind::Movie };
    let is_meant = |title: &(MediaKind, i64, Option<i64>)| title.0 == kind && title.1.to_string() == tmdb;
    let (id, title) = state.media.iter().find(|(_, title)| is_meant(title))?;
    Some(json_response(
        &json!({ "id": title.1, "mediaInfo": { "id": id, "tmdbId": title.1, "tvdbId": title.2 } }),
    ))
}

fn page_response(items: impl Iterator<Item = Value>, query: &Query) -> Response<Bytes> {
    let items: Vec<Value> = items.collect();
    let (skip, take) = (query.number("skip").unwrap_or(0), query.number("take").unwrap_or(10));
    let page: Vec<&Value> = items.iter().skip(skip).take(take).collect();
    let info = json!({ "page": 1 + skip / take.max(1), "pages": items.len().div_ceil(take.max(1)),
        "results": items.len(), "pageSize": take });
    json_response(&json!({ "pageInfo": info, "results": page }))
}

fn user_json(user: &FakeSeerrUser) -> Value {
    json!({ "id": user.id, "email": format!("{}@example.org", user.name.to_lowercase()),
        "displayName": user.name, "permissions": user.permissions, "userType": 2, "plexId": user.plex_id,
        "jellyfinUserId": user.jellyfin_id, "createdAt": "2026-01-01T00:00:00.000Z",
        "updatedAt": "2026-01-01T00:00:00.000Z" })
}

fn request_json(state: &SeerrState, request: &FakeSeerrRequest) -> Value {
    let media = state.media.iter().find(|(_, title)| (title.0, title.1) == (request.kind, request.tmdb));
    let kind = if request.kind == MediaKind::Series { "tv" } else { "movie" };
    let seasons: Vec<Value> = request
        .seasons
        .iter()
        .map(|season| json!({ "seasonNumber": season, "status": request.status }))
        .collect();
    let requester = state.users.iter().find(|user| user.id == request.user).map(user_json);
    json!({ "id": request.id, "status": request.status, "type": kind, "is4k": request.is_4k,
        "createdAt": request.created_at.to_string(), "updatedAt": request.created_at.to_string(),
        "media": { "id": media.map(|(id, _)| id), "tmdbId": request.tmdb, "tvdbId": request.tvdb,
            "mediaType": kind, "status": 2 },
        "seasons": seasons, "requestedBy": requester })
}

fn issue_json(state: &SeerrState, issue: &FakeIssue) -> Value {
    let title = state.media.iter().find(|(id, _)| *id == issue.media).map(|(_, title)| title.1);
    json!({ "id": issue.id, "issueType": issue.kind, "status": 1, "problemSeason": issue.season,
        "problemEpisode": issue.episode, "createdAt": issue.created_at.to_string(),
        "media": { "id": issue.media, "tmdbId": title } })
}

/// Answer of the access check, for a wrong key, an unknown user or a missing right.
fn no_access() -> Response<Bytes> {
    let error = "You do not have permission to access this endpoint";
    with_status(403, &json!({ "status": 403, "error": error }))
}

fn message_response(status: u16, message: &str) -> Response<Bytes> {
    with_status(status, &json!({ "message": message, "errors": [] }))
}

fn with_status(status: u16, body: &Value) -> Response<Bytes> {
    let mut response = json_response(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
