//! Tools that the model can call. A tool defines its schema, its execution, its items in a confirmation prompt, and the
//! check of an interrupted run. Only `approval` decides whether a call may run.

pub mod actions;
pub mod activity;
pub mod add_movie;
pub mod add_series;
mod addition;
pub mod age_limit;
pub mod approval;
pub mod arguments;
pub mod ask_parents;
mod deferred_addition;
mod deletion_outcomes;
mod diagnosis;
mod discover;
mod existing_series;
pub mod find_in_library;
mod folders;
pub mod follow_title;
pub mod formatting;
mod instance_ref;
pub mod library;
pub mod library_cache;
pub mod library_changes;
mod library_ids;
pub mod list_requests;
pub mod making_room;
mod media_copy;
pub mod media_details;
pub mod memory;
pub mod own_space;
pub mod playback;
mod preference;
pub mod quota_allowance;
mod ranking;
pub mod recommend;
mod recovery;
pub mod registry;
pub mod remove_download;
pub mod remove_media;
pub mod replace_copy;
pub mod request_removal;
mod requesters;
pub mod search_media;
mod season_files;
mod seasons;
pub mod seerr;
pub mod send_poster;
pub mod server_status;
pub mod start_vote;
pub mod taste;
#[cfg(test)]
mod tests;
pub mod tonight;
mod tool_context;
mod tool_error;
pub mod typed_tool;
pub mod viewing;
pub mod why_missing;

use std::time::Duration;

use async_trait::async_trait;

pub use recovery::{InterruptedRun, RecoveryOutcome};
pub use tool_context::{RequestTiming, ToolContext};
pub use tool_error::ToolError;

use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::making_room::proposal::ProposalPlan;
use crate::conversation::people::facts::{FactKind, UserFact, UserFacts};
use crate::conversation::title_approvals::TitleOverCap;
use crate::conversation::title_requests::{Coverage, RequestedTitle};
use crate::conversation::transcript::{
    CallFailure, CallResult, MediaRef, QuotaUse, ToolArguments, ToolSpec, UserId, UserRights,
};
use crate::conversation::turn::model_action::ModelAction;
use crate::conversation::viewer_accounts::{AccountScope, ViewerAccount};
use crate::conversation::votes::VoteQuestion;
use crate::seerr::SeerrRequestId;
use approval::ApprovedCall;
use arguments::schema::OfferedChoices;

/// Time limit of a tool that only reads the library.
pub const READ_TIMEOUT: Duration = Duration::from_secs(10);
pub const LOOKUP_TIMEOUT: Duration = Duration::from_secs(20);
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

/// Interface of a tool to the engine. [`typed_tool`] implements it for all tools.
#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// Returns the choices of a user with these rights: only a user with the 4K right selects an instance, and the
    /// choices of `quality` are the profiles that the user may use. Returns `None` if no configured instance supports the
    /// tool.
    fn offered_choices(&self, rights: UserRights) -> Option<OfferedChoices>;

    /// Returns the specification for the model, with these choices.
    fn offered_spec(&self, choices: &OfferedChoices) -> ToolSpec;

    fn timeout(&self) -> Duration;

    /// Validates the arguments and returns the ids in them, before the tool runs.
    fn check_arguments(&self, arguments: &ToolArguments) -> Result<CallReferences, CallFailure>;

    /// Runs an approved call. For a destructive tool, a run covers one frozen item of the call.
    async fn run(&self, call: &ApprovedCall, context: &ToolContext) -> Result<ToolOutput, ToolError>;

    /// Returns whether a call reads what people have watched, so that its context needs their accounts.
    fn reads_viewing(&self, _arguments: &ToolArguments) -> bool {
        false
    }

    /// Returns whether calls read the titles that count toward the space of the user.
    fn reads_own_titles(&self) -> bool {
        false
    }

    /// Returns whether calls read the records by which titles that could go are judged.
    fn reads_space_records(&self) -> bool {
        false
    }

    /// Returns whether calls read who could watch something together.
    fn gathers_people(&self) -> bool {
        false
    }

    /// Fetches each item again and freezes the contents of the confirmation prompt. Used only by destructive tools.
    async fn preview_items(
        &self,
        _arguments: &ToolArguments,
        _context: &ToolContext,
    ) -> Result<Vec<DeletionTarget>, ToolError> {
        Err(ToolError::Fatal(anyhow::anyhow!("preview a tool that is not destructive")))
    }

    /// Returns the same items in their current state, for a new confirmation prompt. Used only by destructive tools.
    async fn refresh_items(
        &self,
        _items: &[DeletionTarget],
        _context: &ToolContext,
    ) -> Result<Vec<DeletionTarget>, ToolError> {
        Ok(Vec::new())
    }

    /// Fills in choices that the model left open from the stored facts of the user. Returns `None` if nothing changes.
    /// The new arguments are stored with the call, so that every check uses them.
    fn apply_preferences(
        &self,
        _arguments: &ToolArguments,
        _facts: &UserFacts,
        _rights: UserRights,
    ) -> Option<ToolArguments> {
        None
    }

    /// Returns the failure result of an interrupted write that did not happen and is not retried. `title` is its title,
    /// if an earlier result showed it.
    fn not_done_failure(&self, _title: Option<&str>) -> CallFailure {
        deletion_outcomes::not_done()
    }

    /// Determines the outcome of a run whose response was lost. Reads are repeated instead.
    async fn recover_outcome(
        &self,
        call: InterruptedRun<'_>,
        context: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError>;
}

/// Output of a successful run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    pub result: CallResult,
    /// Effects of the run on our own records, stored together with the result.
    pub effects: Vec<ToolEffect>,
}

impl From<CallResult> for ToolOutput {
    fn from(result: CallResult) -> Self {
        Self { result, effects: Vec::new() }
    }
}

impl ToolOutput {
    pub fn with_effect(result: CallResult, effect: ToolEffect) -> Self {
        Self { result, effects: vec![effect] }
    }

    pub fn and_effect(mut self, effect: ToolEffect) -> Self {
        self.effects.push(effect);
        self
    }
}

/// Change of our own records that a tool requests. It is applied exactly once, in the transaction that stores the
/// result of the call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolEffect {
    /// Acts on the conversation itself. A failed action is logged, and the reply is sent anyway.
    Act(ModelAction),
    /// Starts a vote about titles. If that is impossible, the call fails.
    StartVote(Box<TitleVote>),
    /// Counts towards the quota of the user.
    Count(QuotaUse),
    /// Asks the admins to delete this item.
    AskAdmins(Box<DeletionTarget>),
    /// Asks the people concerned which titles could go.
    OpenProposal(Box<ProposalPlan>),
    /// Asks the parents for this title.
    AskParents(Box<TitleOverCap>),
    /// Records that the user requested this title, which is in the library or requested at a Seerr. The coverage states whether the request
    /// covers the whole title or its named seasons.
    Request(RequestedTitle, Coverage),
    /// Records that the user requested the title and is notified when it is ready.
    Follow(RequestedTitle),
    /// Records that the user requested a notification when the title is ready, even while their notifications are off.
    Notify(RequestedTitle),
    /// Records that the user does not want to be notified about the title.
    Unfollow(RequestedTitle),
    /// Records the request at a Seerr for the title that the call requested, so that the user is told its outcome.
    TrackRequest { id: SeerrRequestId, is_pending: bool },
    /// Queues the call for a later retry with these arguments, because no part of it has happened.
    Queue(RequestedTitle, ToolArguments),
    /// Stores a fact about the user.
    Remember(UserFact),
    /// Deletes the fact stored under this key.
    Forget(FactKind, String),
    /// Records that the answer mentions what people have watched, so that its text is erased early.
    MentionViewing,
    /// Asks the admins to link this account to the user.
    RequestAccountLink(ViewerAccount),
    /// Removes the links of the user's accounts in this scope.
    UnlinkAccounts(AccountScope),
}

/// Vote about titles that a tool found for the people who take part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TitleVote {
    pub question: VoteQuestion,
    /// People who are asked in their private chats, besides the user.
    pub asked: Vec<UserId>,
}

/// Ids and restricted features that a call uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallReferences {
    /// Ids in the call. Each must have been shown to the user in this conversation.
    pub refs: Vec<MediaRef>,
    /// True if the call adds something to a 4K instance.
    pub four_k: bool,
}

impl From<MediaRef> for CallReferences {
    fn from(media: MediaRef) -> Self {
        Self { refs: vec![media], four_k: false }
    }
}
