//! Requests for titles at a Seerr, and the decisions about them.

use bytes::Bytes;
use http::{Method, Response};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::wire::{ErrorJson, FoundJson, PageJson, RequestJson};
use super::{Seerr, SeerrUser, SeerrUserId};
use crate::conversation::transcript::MediaKind;
use crate::server_api::{ServerError, check_response};

const REQUESTS: &str = "api/v1/request";
/// Number of requests that are read, newest first.
const PAGE_REQUESTS: &str = "100";
/// Age up to which a request that was declined or fulfilled may be the one whose answer was lost.
const LOST_ANSWER_AGE: SignedDuration = SignedDuration::from_hours(25);

/// Id of a request at a Seerr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeerrRequestId(pub i64);

/// Title by its id at TMDB, which a Seerr uses for movies and for shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeerrTitle {
    pub kind: MediaKind,
    pub tmdb: i64,
}

/// Request to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSeerrRequest {
    pub title: SeerrTitle,
    /// TheTVDB id of a show.
    pub tvdb: Option<i64>,
    /// Seasons of a show; `None` for all of them, and for a movie.
    pub seasons: Option<Vec<u32>>,
    pub is_4k: bool,
}

/// Request at a Seerr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeerrRequest {
    pub id: SeerrRequestId,
    pub status: SeerrRequestStatus,
    pub title: SeerrTitle,
    pub tvdb: Option<i64>,
    /// Seasons of a show.
    pub seasons: Vec<u32>,
    pub is_4k: bool,
    pub created_at: Option<Timestamp>,
    pub requester: Option<SeerrUser>,
}

/// Status of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeerrRequestStatus {
    /// An admin of the Seerr has to decide.
    Pending,
    /// Sonarr or Radarr gets the title.
    Approved,
    Declined,
    /// Sonarr or Radarr did not take the title.
    Failed,
    /// The title is there.
    Completed,
    Unknown,
}

impl SeerrRequestStatus {
    pub(super) fn from_code(code: i64) -> Self {
        match code {
            1 => Self::Pending,
            2 => Self::Approved,
            3 => Self::Declined,
            4 => Self::Failed,
            5 => Self::Completed,
            _ => Self::Unknown,
        }
    }

    /// Returns whether the same title can be requested again.
    fn is_over(self) -> bool {
        matches!(self, Self::Declined | Self::Completed)
    }
}

/// Outcome of a request for a title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestOutcome {
    Created(SeerrRequest),
    /// All seasons are there or requested, so no request was made.
    NothingNew,
    /// The title is requested already.
    AlreadyRequested,
    Refused(RequestRefusal),
}

/// Reason why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestRefusal {
    /// The user may not request such titles.
    NotPermitted,
    Quota,
    Blocklisted,
    /// The user does not exist any more.
    UnknownUser,
}

/// Decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestDecision {
    Approve,
    Decline,
}

/// Outcome of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionOutcome {
    Decided(SeerrRequest),
    /// The user does not exist any more, or may not decide on requests.
    NotPermitted,
    /// The request does not exist any more.
    Gone,
}

impl NewSeerrRequest {
    fn to_json(&self) -> Value {
        let Self { title, tvdb, seasons, is_4k } = self;
        match title.kind {
            MediaKind::Movie => json!({ "mediaType": "movie", "mediaId": title.tmdb, "is4k": is_4k }),
            MediaKind::Series => {
                let seasons = seasons.as_ref().map_or(json!("all"), |numbers| json!(numbers));
                let mut body =
                    json!({ "mediaType": "tv", "mediaId": title.tmdb, "seasons": seasons, "is4k": is_4k });
                if let Some(tvdb) = tvdb {
                    body["tvdbId"] = json!(tvdb);
                }
                body
            }
        }
    }

    /// Returns the newest of the user's requests that this one would repeat: together they cover all seasons of it.
    /// Requests that are over count only if they may be the result of this one, whose answer was lost.
    pub fn find_repeated<'a>(
        &self,
        requests: &'a [SeerrRequest],
        now: Timestamp,
    ) -> Option<&'a SeerrRequest> {
        let is_recent = |request: &SeerrRequest| {
            request.created_at.is_some_and(|at| now.duration_since(at) <= LOST_ANSWER_AGE)
        };
        let same = || {
            requests.iter().filter(|request| {
                (request.title, request.is_4k) == (self.title, self.is_4k)
                    && (!request.status.is_over() || is_recent(request))
            })
        };
        let newest = same().find(|request| match &self.seasons {
            None => true,
            Some(seasons) => request.seasons.iter().any(|season| seasons.contains(season)),
        })?;
        let is_covered = |season: &u32| same().any(|request| request.seasons.contains(season));
        self.seasons.iter().flatten().all(is_covered).then_some(newest)
    }
}

impl Seerr {
    /// Requests a title for a user, with the rights and the quota of this user.
    pub async fn create_request(
        &self,
        user: SeerrUserId,
        new: &NewSeerrRequest,
    ) -> Result<RequestOutcome, ServerError> {
        let body = new.to_json();
        let response = self.api_for(user).fetch_response(Method::POST, REQUESTS, &[], Some(&body)).await?;
        match response.status().as_u16() {
            202 => Ok(RequestOutcome::NothingNew),
            409 => Ok(RequestOutcome::AlreadyRequested),
            403 => self.explain_refusal(&response).await.map(RequestOutcome::Refused),
            _ => read_request(&response).map(RequestOutcome::Created),
        }
    }

    /// Returns the reason of a refusal. A wrong key and an unknown user have the same status, without a message.
    async fn explain_refusal(&self, response: &Response<Bytes>) -> Result<RequestRefusal, ServerError> {
        // The body of a refusal may be anything.
        let error: ErrorJson = serde_json::from_slice(response.body()).unwrap_or_default();
        let Some(message) = error.message.map(|message| message.to_lowercase()) else {
            self.check_key().await?;
            return Ok(RequestRefusal::UnknownUser);
        };
        Ok(if message.contains("quota") {
            RequestRefusal::Quota
        } else if message.contains("blocklist") || message.contains("blacklist") {
            RequestRefusal::Blocklisted
        } else {
            RequestRefusal::NotPermitted
        })
    }

    /// Reads the newest requests of a user, newest first.
    pub async fn fetch_requests_of(&self, user: SeerrUserId) -> Result<Vec<SeerrRequest>, ServerError> {
        let id = user.0.to_string();
        self.fetch_requests(&[("take", PAGE_REQUESTS), ("sort", "added"), ("requestedBy", &id)]).await
    }

    /// Reads the requests that changed last, the newest change first.
    pub async fn fetch_changed_requests(&self) -> Result<Vec<SeerrRequest>, ServerError> {
        self.fetch_requests(&[("take", PAGE_REQUESTS), ("sort", "modified"), ("filter", "all")]).await
    }

    /// Reads the requests that wait for a decision, newest first.
    pub async fn fetch_pending_requests(&self) -> Result<Vec<SeerrRequest>, ServerError> {
        self.fetch_requests(&[("take", PAGE_REQUESTS), ("sort", "added"), ("filter", "pending")]).await
    }

    async fn fetch_requests(&self, query: &[(&str, &str)]) -> Result<Vec<SeerrRequest>, ServerError> {
        let found: PageJson<RequestJson> = self.api().get(REQUESTS, query).await?;
        Ok(found.results.into_iter().map(RequestJson::into_request).collect())
    }

    /// Reads a request; `None` if it does not exist any more.
    pub async fn fetch_request(&self, id: SeerrRequestId) -> Result<Option<SeerrRequest>, ServerError> {
        match self.api().get::<RequestJson>(&format!("{REQUESTS}/{}", id.0), &[]).await {
            Ok(request) => Ok(Some(request.into_request())),
            Err(ServerError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Decides on a request as a user who may do so.
    pub async fn decide_request(
        &self,
        user: SeerrUserId,
        id: SeerrRequestId,
        decision: RequestDecision,
    ) -> Result<DecisionOutcome, ServerError> {
        let word = match decision {
            RequestDecision::Approve => "approve",
            RequestDecision::Decline => "decline",
        };
        let path = format!("{REQUESTS}/{}/{word}", id.0);
        let response = self.api_for(user).fetch_response(Method::POST, &path, &[], None).await?;
        match response.status().as_u16() {
            403 => self.check_key().await.map(|()| DecisionOutcome::NotPermitted),
            404 => Ok(DecisionOutcome::Gone),
            _ => read_request(&response).map(DecisionOutcome::Decided),
        }
    }

    /// Finds the TMDB id of a show by its TheTVDB id; `None` if TMDB does not know the show.
    pub async fn find_series_by_tvdb(&self, tvdb: i64) -> Result<Option<i64>, ServerError> {
        let query = format!("tvdb:{tvdb}");
        match self.api().get::<PageJson<FoundJson>>("api/v1/search", &[("query", &query)]).await {
            Ok(found) => {
                let series = found.results.iter().find(|found| found.media_type == "tv");
                Ok(series.map(|found| found.id))
            }
            Err(ServerError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn read_request(response: &Response<Bytes>) -> Result<SeerrRequest, ServerError> {
    check_response(response)?;
    let request: RequestJson = serde_json::from_slice(response.body()).map_err(ServerError::Unreadable)?;
    Ok(request.into_request())
}
