//! Requests at a Seerr in place of additions to Sonarr and Radarr. The rights of the user are checked here, and the
//! quota is that of their user there; the limit of space is ours. Each request is made in the name of this user, never of the owner.

mod failures;
pub(in crate::tools) mod movies;
pub mod report_problem;
pub(in crate::tools) mod seasons;

use serde_json::json;

use super::own_space::space_limit::check_space;
use super::{RecoveryOutcome, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::conversation::people::facts::is_four_k;
use crate::conversation::title_requests::{
    ALREADY_REQUESTED, AWAITING_DECISION, Coverage, NOTHING_NEW, REQUESTED, RequestedTitle, format_declined,
};
use crate::conversation::transcript::{CallResult, MediaKind, MediaRef};
use crate::seerr::{
    NewSeerrRequest, RequestOutcome, Seerr, SeerrRequest, SeerrRequestStatus, SeerrTitle, SeerrUserId,
};
use crate::server_api::ServerError;
use crate::telemetry;

pub(super) use failures::{ask_by_request, request_failure};

/// Seerr with the user in whose name a call acts.
pub(super) struct SeerrCaller<'a> {
    pub(super) seerr: &'a Seerr,
    pub(super) user: SeerrUserId,
    context: &'a ToolContext,
}

/// Choices of a call that matter to a Seerr.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeerrChoices {
    is_4k: bool,
    /// The call names a quality or a folder, which the Seerr chooses.
    names_others: bool,
}

impl SeerrChoices {
    /// Returns the choices of a call that names only an instance.
    pub(super) fn of_instance(is_4k: bool) -> Self {
        Self { is_4k, names_others: false }
    }

    /// Returns the choices of a call for an instance, with the quality and the folder that it names.
    pub(super) fn from_arguments(is_4k: bool, quality: Option<&str>, folder: Option<&str>) -> Self {
        let asks_for_4k = quality.is_some_and(is_four_k);
        Self {
            is_4k: is_4k || asks_for_4k,
            names_others: quality.is_some() && !asks_for_4k || folder.is_some(),
        }
    }

    pub(super) fn is_4k(self) -> bool {
        self.is_4k
    }
}

/// Title to request, with the names for the user.
pub(super) struct SeerrAddition {
    new: NewSeerrRequest,
    requested: RequestedTitle,
    shown: Vec<MediaRef>,
    /// The call names a quality or a folder, which the Seerr chooses.
    names_choices: bool,
}

/// Effects of the answer to a request that was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KnownTitle {
    /// The user follows the title, which somebody has requested.
    Follow,
    /// The library has the title.
    InLibrary,
}

impl<'a> SeerrCaller<'a> {
    /// Returns the caller of a user who is linked to a user of the Seerr.
    pub(super) fn from_context(seerr: &'a Seerr, context: &'a ToolContext) -> Result<Self, ToolError> {
        let account = context.seerr_account.as_ref();
        let user = account.and_then(|account| SeerrUserId::from_account(&account.id));
        let user = user.ok_or_else(failures::not_linked)?;
        Ok(Self { seerr, user, context })
    }

    /// Requests a title, if the limit of space allows it. `known` states what happens if nothing new was requested.
    async fn request_title(
        &self,
        addition: &SeerrAddition,
        known: KnownTitle,
    ) -> Result<ToolOutput, ToolError> {
        check_space(self.context)?;
        match self.seerr.create_request(self.user, &addition.new).await {
            Ok(RequestOutcome::Created(request)) => Ok(addition.request_output(&request)),
            Ok(RequestOutcome::AlreadyRequested) => Ok(addition.known_output(
                ALREADY_REQUESTED,
                known,
                self.find_own_request(addition).await.as_ref(),
            )),
            Ok(RequestOutcome::NothingNew) => {
                Ok(addition.known_output(NOTHING_NEW, known, self.find_own_request(addition).await.as_ref()))
            }
            Ok(RequestOutcome::Refused(refusal)) => {
                Err(failures::refusal(self, refusal, &addition.requested).await.into())
            }
            Err(ServerError::Unavailable(status)) => self.check_after_error(addition, status).await,
            Err(error) if error.may_have_happened() => Err(unknown_outcome(&error)),
            Err(error) => Err(request_failure(&error).into()),
        }
    }

    /// Reads the user's requests after an error status. A proxy may answer for a request that is still being made, and
    /// the Seerr itself for one that was not made.
    async fn check_after_error(
        &self,
        addition: &SeerrAddition,
        status: u16,
    ) -> Result<ToolOutput, ToolError> {
        match self.seerr.fetch_requests_of(self.user).await {
            Ok(own) => match addition.new.find_repeated(&own, self.context.now) {
                Some(request) => Ok(addition.request_output(request)),
                None if status == 500 => Err(request_failure(&ServerError::Unavailable(status)).into()),
                None => Err(unknown_outcome(&ServerError::Unavailable(status))),
            },
            Err(error) => Err(unknown_outcome(&error)),
        }
    }

    /// Determines the outcome of a request whose answer was lost.
    async fn recover_request(&self, addition: &SeerrAddition) -> RecoveryOutcome {
        match self.seerr.fetch_requests_of(self.user).await {
            Ok(own) => match addition.new.find_repeated(&own, self.context.now) {
                Some(request) => RecoveryOutcome::Done(addition.request_output(request)),
                None => RecoveryOutcome::NotDone,
            },
            Err(error) => {
                tracing::warn!(error = telemetry::error_chain(&error), "failed to check a request at Seerr");
                RecoveryOutcome::Unknown
            }
        }
    }

    /// Returns the user's own request for a title that was requested before, if it can be read.
    async fn find_own_request(&self, addition: &SeerrAddition) -> Option<SeerrRequest> {
        match self.seerr.fetch_requests_of(self.user).await {
            Ok(own) => addition.new.find_repeated(&own, self.context.now).cloned(),
            Err(error) => {
                tracing::warn!(error = telemetry::error_chain(&error), "failed to read requests at Seerr");
                None
            }
        }
    }
}

impl SeerrAddition {
    /// Builds the answer about a request, by its status.
    fn request_output(&self, request: &SeerrRequest) -> ToolOutput {
        let name = self.requested.format_name();
        let (status, sentence) = match request.status {
            SeerrRequestStatus::Pending => {
                (AWAITING_DECISION, format!("Asked for {name}. An admin has to approve it."))
            }
            SeerrRequestStatus::Approved | SeerrRequestStatus::Completed | SeerrRequestStatus::Unknown => {
                (REQUESTED, format!("{name} {} on the way.", self.requested.be_verb()))
            }
            SeerrRequestStatus::Declined => (ALREADY_REQUESTED, format_declined(&self.requested, None)),
            SeerrRequestStatus::Failed => (
                ALREADY_REQUESTED,
                format!(
                    "{name} {} asked for, but Seerr could not add it. An admin has to check it.",
                    self.requested.be_verb()
                ),
            ),
        };
        let sentence = match self.names_choices {
            true => format!("{sentence} Seerr chooses its quality and folder."),
            false => sentence,
        };
        self.tracked_output(self.result(status, sentence), Some(request))
    }

    /// Builds the answer if nothing new was requested.
    fn known_output(&self, status: &str, known: KnownTitle, own: Option<&SeerrRequest>) -> ToolOutput {
        let name = self.requested.format_name();
        let sentence = match self.new.title.kind {
            MediaKind::Movie => format!("{name} is already asked for."),
            MediaKind::Series => format!("{name}: the seasons are there or asked for already."),
        };
        let result = self.result(status, sentence);
        match known {
            KnownTitle::Follow => self.tracked_output(result, own),
            KnownTitle::InLibrary => result.into(),
        }
    }

    fn result(&self, status: &str, for_user: String) -> CallResult {
        let RequestedTitle { kind, title, year, seasons, .. } = &self.requested;
        let mut for_model =
            json!({ "status": status, "service": "Seerr", "type": kind, "title": title, "year": year });
        if let Some(seasons) = seasons {
            for_model["seasons_wanted"] = json!(seasons);
        }
        CallResult { for_model, for_user, shown: self.shown.clone() }
    }

    /// Adds the effects that record a request, notify the user when the title is ready, and follow the request at the
    /// Seerr while it is open.
    fn tracked_output(&self, result: CallResult, request: Option<&SeerrRequest>) -> ToolOutput {
        let is_declined = request.is_some_and(|request| request.status == SeerrRequestStatus::Declined);
        if is_declined {
            return result.into();
        }
        let output =
            ToolOutput::with_effect(result, ToolEffect::Request(self.requested.clone(), Coverage::Whole))
                .and_effect(ToolEffect::Follow(self.requested.clone()));
        match request.map(|request| (request.id, request.status)) {
            Some((id, SeerrRequestStatus::Pending)) => {
                output.and_effect(ToolEffect::TrackRequest { id, is_pending: true })
            }
            Some((id, SeerrRequestStatus::Approved)) => {
                output.and_effect(ToolEffect::TrackRequest { id, is_pending: false })
            }
            Some(_) | None => output,
        }
    }
}

/// Builds the title of a request.
fn seerr_title(kind: MediaKind, tmdb: i64) -> SeerrTitle {
    SeerrTitle { kind, tmdb }
}

fn unknown_outcome(error: &ServerError) -> ToolError {
    ToolError::Unknown(format!("Seerr: failed to {}", telemetry::error_chain(error)))
}
