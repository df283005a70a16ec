//! JSON of a Seerr. Fields that some versions leave out have defaults.

use jiff::Timestamp;
use serde::Deserialize;

use super::issues::{IssuePlace, IssueType, SeerrIssue, SeerrMediaId};
use super::requests::{SeerrRequest, SeerrRequestId, SeerrRequestStatus, SeerrTitle};
use super::users::{SeerrQuota, SeerrQuotas, SeerrUser, SeerrUserId};
use crate::conversation::transcript::MediaKind;

/// Page of a list.
#[derive(Deserialize)]
pub(super) struct PageJson<T> {
    pub(super) results: Vec<T>,
}

/// Error of a Seerr: its API explains a refusal in `message`, and its access check in `error`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorJson {
    pub(super) message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserJson {
    id: i64,
    #[serde(default)]
    email: Option<String>,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    plex_username: Option<String>,
    #[serde(default)]
    jellyfin_username: Option<String>,
    #[serde(default)]
    plex_id: Option<i64>,
    #[serde(default)]
    jellyfin_user_id: Option<String>,
}

impl UserJson {
    pub(super) fn into_user(self) -> SeerrUser {
        let names =
            [self.display_name, self.username, self.plex_username, self.jellyfin_username, self.email];
        let name = names.into_iter().flatten().find(|name| !name.trim().is_empty());
        SeerrUser {
            id: SeerrUserId(self.id),
            name: name.unwrap_or_else(|| format!("user {}", self.id)),
            jellyfin_id: self.jellyfin_user_id.map(|id| id.replace('-', "")).filter(|id| !id.is_empty()),
            plex_id: self.plex_id.filter(|id| *id > 0).map(|id| id.to_string()),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct QuotasJson {
    movie: QuotaJson,
    tv: QuotaJson,
}

#[derive(Deserialize)]
struct QuotaJson {
    #[serde(default)]
    days: Option<u32>,
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    used: u32,
}

impl QuotasJson {
    pub(super) fn into_quotas(self) -> SeerrQuotas {
        let quota = |json: QuotaJson| SeerrQuota {
            limit: json.limit.filter(|limit| *limit > 0),
            days: json.days.filter(|days| *days > 0),
            used: json.used,
        };
        SeerrQuotas { movies: quota(self.movie), seasons: quota(self.tv) }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestJson {
    id: i64,
    status: i64,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default, rename = "is4k")]
    is_4k: bool,
    #[serde(default)]
    created_at: Option<String>,
    media: MediaJson,
    #[serde(default)]
    seasons: Vec<SeasonJson>,
    #[serde(default)]
    requested_by: Option<UserJson>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MediaJson {
    #[serde(default)]
    id: i64,
    #[serde(default)]
    tmdb_id: i64,
    #[serde(default)]
    tvdb_id: Option<i64>,
    #[serde(default)]
    media_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeasonJson {
    season_number: u32,
}

impl RequestJson {
    pub(super) fn into_request(self) -> SeerrRequest {
        let is_series = self.kind.or(self.media.media_type).is_some_and(|kind| kind == "tv");
        let requester = self.requested_by.map(UserJson::into_user);
        SeerrRequest {
            id: SeerrRequestId(self.id),
            status: SeerrRequestStatus::from_code(self.status),
            title: SeerrTitle {
                kind: if is_series { MediaKind::Series } else { MediaKind::Movie },
                tmdb: self.media.tmdb_id,
            },
            tvdb: self.media.tvdb_id,
            seasons: self.seasons.into_iter().map(|season| season.season_number).collect(),
            is_4k: self.is_4k,
            created_at: self.created_at.and_then(|time| parse_time(&time)),
            requester,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IssueJson {
    id: i64,
    issue_type: u8,
    #[serde(default)]
    problem_season: u32,
    #[serde(default)]
    problem_episode: u32,
    #[serde(default)]
    created_at: Option<String>,
    media: MediaJson,
}

impl IssueJson {
    pub(super) fn into_issue(self) -> SeerrIssue {
        SeerrIssue {
            id: self.id,
            kind: IssueType::from_code(self.issue_type),
            media: SeerrMediaId(self.media.id),
            place: IssuePlace { season: self.problem_season, episode: self.problem_episode },
            created_at: self.created_at.and_then(|time| parse_time(&time)),
        }
    }
}

/// Details of a title, of which only the record at Seerr is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DetailsJson {
    #[serde(default)]
    media_info: Option<MediaJson>,
}

impl DetailsJson {
    pub(super) fn media_id(&self) -> Option<SeerrMediaId> {
        self.media_info.as_ref().map(|media| SeerrMediaId(media.id))
    }
}

/// Result of a search, which may be a person.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FoundJson {
    pub(super) id: i64,
    #[serde(default)]
    pub(super) media_type: String,
}

fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}
