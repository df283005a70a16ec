//! Context in which a tool runs.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::making_room::SpaceRecords;
use super::own_space::OwnTitle;
use super::quota_allowance::QuotaAllowance;
use super::tonight::gathering::Gathering;
use super::viewing::Viewers;
use crate::conversation::agents::AgentRequest;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::grammar::confirmation_reply::ReplyLanguage;
use crate::conversation::people::age_ratings::AgeLimit;
use crate::conversation::people::facts::UserFacts;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::title_requests::{RequestedTitle, TitleRequest};
use crate::conversation::transcript::{MediaKind, UserRights};
use crate::conversation::viewer_accounts::ViewerAccount;

/// Context in which a tool runs.
#[derive(Debug, Clone)]
pub struct ToolContext {
    pub now: Timestamp,
    pub zone: TimeZone,
    pub rights: UserRights,
    /// Messages that the user sent in this turn.
    pub turn_messages: Vec<String>,
    /// Last three messages of the user, newest first.
    pub last_three_messages: Vec<String>,
    /// Who reads the answer.
    pub audience: Audience,
    /// Titles that the readers may see.
    pub age_limit: AgeLimit,
    pub languages: Vec<ReplyLanguage>,
    pub allowance: QuotaAllowance,
    /// Open removal requests of the user: items that the admins were asked to delete and have not decided on.
    pub removal_requests: Vec<DeletionTarget>,
    /// Number of admins who can decide on a removal request.
    pub admins: usize,
    /// Names of the parents, who decide about titles over the caps of the user; `None` without any.
    pub parents: Option<String>,
    /// Titles over the caps that the user asked for, and that no parent has decided on.
    pub titles_asked_for: Vec<RequestedTitle>,
    /// Recent title requests of the household, oldest first.
    pub title_requests: Vec<TitleRequest>,
    /// Titles that count toward the space of the user; loaded only for calls that read them, and for writes if a limit
    /// applies.
    pub own_titles: Vec<OwnTitle>,
    /// Records by which titles that could go are judged; loaded only for calls that read them. For a deletion in a review,
    /// only the titles under review.
    pub space: SpaceRecords,
    /// Stored facts about the user.
    pub facts: UserFacts,
    /// People whose watching the answer may mention; empty for a call that does not read it.
    pub viewers: Viewers,
    /// People who could watch something together; loaded only for calls about that.
    pub gathering: Gathering,
    /// User of the Seerr in whose name titles are requested; loaded only for writes, if requests go there.
    pub seerr_account: Option<ViewerAccount>,
    /// Request of the agent that makes the call; loaded only for deletions.
    pub agent_request: Option<AgentRequest>,
    pub request_timing: RequestTiming,
}

/// Time at which the user made the request that a call carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestTiming {
    Now,
    /// Retry of an earlier request, after the user was notified that the request would be retried.
    Earlier,
}

impl ToolContext {
    /// Returns the requests for a title of one instance, oldest first, by its TMDB or TheTVDB id.
    pub fn requests_for_title(&self, instance: &str, kind: MediaKind, catalog_id: i64) -> Vec<&TitleRequest> {
        let is_meant = |title: &RequestedTitle| {
            (title.kind, title.catalog_id, title.instance.as_str()) == (kind, catalog_id, instance)
        };
        self.title_requests.iter().filter(|request| is_meant(&request.wanted)).collect()
    }
}
