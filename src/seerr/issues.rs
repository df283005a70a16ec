//! Problems of titles, which a Seerr keeps as issues.

use http::Method;
use jiff::Timestamp;
use serde_json::json;

use super::requests::SeerrTitle;
use super::wire::{DetailsJson, IssueJson, PageJson};
use super::{Seerr, SeerrUserId};
use crate::conversation::transcript::MediaKind;
use crate::server_api::{ServerError, check_response};

const ISSUES: &str = "api/v1/issue";

/// Id of the record of a title at a Seerr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeerrMediaId(pub i64);

/// Part of a title with which something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IssueType {
    Video,
    Audio,
    Subtitles,
    Other,
}

impl IssueType {
    fn code(self) -> u8 {
        match self {
            Self::Video => 1,
            Self::Audio => 2,
            Self::Subtitles => 3,
            Self::Other => 4,
        }
    }

    pub(super) fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Video,
            2 => Self::Audio,
            3 => Self::Subtitles,
            _ => Self::Other,
        }
    }
}

/// Season and episode with a problem; 0 stands for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IssuePlace {
    pub season: u32,
    pub episode: u32,
}

/// Issue to report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSeerrIssue {
    pub kind: IssueType,
    pub media: SeerrMediaId,
    pub place: IssuePlace,
    pub message: String,
}

/// Issue at a Seerr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeerrIssue {
    pub id: i64,
    pub kind: IssueType,
    pub media: SeerrMediaId,
    pub place: IssuePlace,
    pub created_at: Option<Timestamp>,
}

/// Outcome of the report of an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueOutcome {
    Created(SeerrIssue),
    /// The user does not exist any more, or may not report issues.
    NotPermitted,
}

impl Seerr {
    /// Finds the record of a title; `None` if nobody has requested it and no scan has found it.
    pub async fn find_media(&self, title: SeerrTitle) -> Result<Option<SeerrMediaId>, ServerError> {
        let kind = match title.kind {
            MediaKind::Movie => "movie",
            MediaKind::Series => "tv",
        };
        match self.api().get::<DetailsJson>(&format!("api/v1/{kind}/{}", title.tmdb), &[]).await {
            Ok(details) => Ok(details.media_id()),
            Err(ServerError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reports an issue as a user.
    pub async fn create_issue(
        &self,
        user: SeerrUserId,
        new: &NewSeerrIssue,
    ) -> Result<IssueOutcome, ServerError> {
        let NewSeerrIssue { kind, media, place, message } = new;
        let body = json!({ "issueType": kind.code(), "message": message, "mediaId": media.0,
            "problemSeason": place.season, "problemEpisode": place.episode });
        let response = self.api_for(user).fetch_response(Method::POST, ISSUES, &[], Some(&body)).await?;
        if response.status().as_u16() == 403 {
            return self.check_key().await.map(|()| IssueOutcome::NotPermitted);
        }
        check_response(&response)?;
        let issue: IssueJson = serde_json::from_slice(response.body()).map_err(ServerError::Unreadable)?;
        Ok(IssueOutcome::Created(issue.into_issue()))
    }

    /// Reads the newest open issues of a user, newest first.
    pub async fn fetch_issues_of(&self, user: SeerrUserId) -> Result<Vec<SeerrIssue>, ServerError> {
        let id = user.0.to_string();
        let query = [("take", "50"), ("sort", "added"), ("filter", "open"), ("requestedBy", id.as_str())];
        let found: PageJson<IssueJson> = self.api().get(ISSUES, &query).await?;
        Ok(found.results.into_iter().map(IssueJson::into_issue).collect())
    }
}
