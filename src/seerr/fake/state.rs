//! State of a simulated Seerr.

use std::collections::VecDeque;

use bytes::Bytes;
use http::Request;
use jiff::Timestamp;

use super::WriteFault;
use crate::conversation::transcript::MediaKind;
use crate::server_api::fake::FakeFaults;

/// Permissions of a user, as bits.
#[derive(Debug, Clone, Copy)]
pub struct Permission;

impl Permission {
    pub const ADMIN: u32 = 2;
    pub const MANAGE_REQUESTS: u32 = 16;
    pub const REQUEST: u32 = 32;
    pub const AUTO_APPROVE: u32 = 128;
    pub const REQUEST_4K: u32 = 1024;
    pub const CREATE_ISSUES: u32 = 4_194_304;
}

#[derive(Debug, Clone)]
pub struct FakeSeerrUser {
    pub id: i64,
    pub name: String,
    pub permissions: u32,
    /// Largest number of movies in a week.
    pub movie_limit: Option<u32>,
    /// Largest number of seasons in a week.
    pub season_limit: Option<u32>,
    pub jellyfin_id: Option<String>,
    pub plex_id: Option<i64>,
}

impl FakeSeerrUser {
    /// Returns whether the user has one of these permissions.
    pub(super) fn may(&self, permissions: u32) -> bool {
        self.permissions & (permissions | Permission::ADMIN) != 0
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeSeerrRequest {
    pub id: i64,
    pub user: i64,
    pub kind: MediaKind,
    pub tmdb: i64,
    pub tvdb: Option<i64>,
    pub seasons: Vec<u32>,
    pub is_4k: bool,
    /// 1 pending, 2 approved, 3 declined, 4 failed, 5 completed.
    pub status: i64,
    /// User who decided.
    pub decided_by: Option<i64>,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeIssue {
    pub id: i64,
    pub user: i64,
    /// 1 video, 2 audio, 3 subtitles, 4 other.
    pub kind: u64,
    pub media: i64,
    pub season: u64,
    pub episode: u64,
    pub message: String,
    pub created_at: Timestamp,
}

/// Kind, TMDB id and TheTVDB id of a title.
pub(super) type TitleIds = (MediaKind, i64, Option<i64>);

#[derive(Debug, Default)]
pub(super) struct SeerrState {
    pub(super) users: Vec<FakeSeerrUser>,
    pub(super) requests: Vec<FakeSeerrRequest>,
    pub(super) issues: Vec<FakeIssue>,
    pub(super) media: Vec<(i64, TitleIds)>,
    pub(super) blocklist: Vec<i64>,
    pub(super) faults: FakeFaults,
    pub(super) write_faults: VecDeque<WriteFault>,
    pub(super) calls: Vec<String>,
    last_user: i64,
    last_id: i64,
}

impl SeerrState {
    pub(super) fn add_user(&mut self, name: &str, permissions: u32) -> i64 {
        self.last_user += 1;
        self.users.push(FakeSeerrUser {
            id: self.last_user,
            name: name.to_owned(),
            permissions,
            movie_limit: None,
            season_limit: None,
            jellyfin_id: None,
            plex_id: None,
        });
        self.last_user
    }

    pub(super) fn new_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    /// Returns the id of the record of a title, which is made if it does not exist.
    pub(super) fn media_id(&mut self, title: TitleIds) -> i64 {
        let is_same = |known: &TitleIds| (known.0, known.1) == (title.0, title.1);
        if let Some((id, _)) = self.media.iter().find(|(_, known)| is_same(known)) {
            return *id;
        }
        let id = self.new_id();
        self.media.push((id, title));
        id
    }

    /// Adds a request, which is approved at once for a user who needs no approval, and returns its id.
    pub(super) fn add_request(
        &mut self,
        user: i64,
        title: TitleIds,
        (seasons, is_4k): (Vec<u32>, bool),
        now: Timestamp,
    ) -> i64 {
        self.media_id(title);
        let is_approved = self.users.iter().any(|known| {
            known.id == user && known.may(Permission::AUTO_APPROVE | Permission::MANAGE_REQUESTS)
        });
        let id = self.new_id();
        let (kind, tmdb, tvdb) = title;
        self.requests.push(FakeSeerrRequest {
            id,
            user,
            kind,
            tmdb,
            tvdb,
            seasons,
            is_4k,
            status: if is_approved { 2 } else { 1 },
            decided_by: None,
            created_at: now,
        });
        id
    }

    /// Returns the number of titles or seasons that count towards the quota of a user.
    pub(super) fn quota_use(&self, user: i64, kind: MediaKind) -> usize {
        let counted = self
            .requests
            .iter()
            .filter(|request| (request.user, request.kind) == (user, kind) && request.status != 3);
        match kind {
            MediaKind::Movie => counted.count(),
            MediaKind::Series => counted.map(|request| request.seasons.len()).sum(),
        }
    }

    pub(super) fn record_call(&mut self, request: &Request<Bytes>) {
        let user = request.headers().get("x-api-user").and_then(|value| value.to_str().ok()).unwrap_or("-");
        let path = request.uri().path().trim_start_matches("/api/v1");
        self.calls.push(format!("{user} {} {path}", request.method()));
    }
}
