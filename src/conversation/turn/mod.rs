//! Turn as a log: the messages, the responses of the model, the outcome of each call. The log alone determines the next
//! step, so running, retrying and resuming after a crash are one path.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::transcript::{CallRow, CallState, ModelStep, Responder, TurnId};
use model_action::Emoji;

mod claim_grammar;
mod claims;
pub mod model_action;
mod next_step;
pub mod prompt_preamble;
mod response_check;

/// Limits of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnLimits {
    pub model_calls: usize,
    pub tool_calls: usize,
    /// Maximum number of concurrent reads.
    pub parallel_reads: usize,
    /// Attempts at one model step before the turn continues without the model.
    pub attempts: usize,
    /// Maximum number of times that a turn is resumed after a crash or a panic.
    pub resumes: u32,
}

impl TurnLimits {
    pub const STANDARD: Self =
        Self { model_calls: 8, tool_calls: 16, parallel_reads: 4, attempts: 3, resumes: 4 };
}

/// Running time of a turn; time while the program was down does not count.
pub const TURN_TIME: Duration = Duration::from_secs(60);

/// Running time after which the user is notified once that a change is still in progress.
pub const PROGRESS_AFTER: Duration = Duration::from_secs(20);

/// Log of one conversation turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub id: TurnId,
    /// Responder that was selected when the turn began.
    pub responder: Responder,
    /// Messages of the user that share this turn.
    pub texts: Vec<String>,
    /// Completed model steps with their calls.
    pub steps: Vec<ModelStep>,
    /// Attempts without a response since the last completed step.
    pub failures: Vec<StepFailure>,
    pub deadline: Timestamp,
    /// Number of times that the turn was resumed, after a restart or after a failure of our own.
    pub resumes: u32,
    /// Number of those `resumes` in which the work itself panicked or failed.
    pub work_failures: u32,
    pub cancel_requested: bool,
    /// Reports of tools and code on earlier turns, newest first: a claim about those turns is compared with them.
    pub record: Arc<[String]>,
}

impl Turn {
    /// Returns whether the turn starts no further work: its work ended without a result too often.
    pub fn is_given_up(&self, limits: &TurnLimits) -> bool {
        self.resumes > limits.resumes
    }

    /// Returns whether even the check of a started change keeps failing in our own code. Restarts do not count: they
    /// are no evidence against the check.
    pub fn has_failed_checks(&self, limits: &TurnLimits) -> bool {
        self.work_failures > 2 * limits.resumes
    }

    /// Returns the time at which the user is notified that a change is still in progress. The deadline leaves out the
    /// time of a restart.
    pub fn progress_due_at(&self) -> Timestamp {
        self.deadline - (TURN_TIME - PROGRESS_AFTER)
    }
}

/// Attempt at a model step that gave no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepFailure {
    /// The next attempt may succeed shortly.
    Transient { at: Timestamp, retry_after: Option<Duration> },
    /// No attempt will succeed in this turn.
    Lasting,
    /// The program stopped during the attempt: the failure is no evidence against the model.
    Interrupted,
}

/// Next step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum NextStep {
    CallModel(ModelCallPlan),
    /// Reads to run concurrently, or a single call.
    StartCalls(Vec<CallRow>),
    /// Give the call this result without running it.
    AnswerCall(CallRow, CallState),
    /// Recover the call, which was started without a known result.
    RecoverCall(CallRow),
    Reply(TurnReply),
    /// Cancel the turn on the request of the user.
    Cancel,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCallPlan {
    pub responder: Responder,
    /// Position of the step in the turn, from 0, and of this attempt, from 1.
    pub step: u32,
    pub attempt: u32,
    pub style: ModelCallStyle,
    /// Pause before the call.
    pub delay: Duration,
}

/// Purpose of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelCallStyle {
    Open,
    /// Last call of the turn: a plain answer, no tools.
    Closing,
    /// Another call, because the last response was unusable.
    Retry(RetryHint),
}

/// Hint that a repeated model call gives about the last response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryHint {
    /// The response was empty.
    Empty,
    /// A tool call was written out as text.
    CallAsText,
    /// The response claimed a change that no tool made.
    FalseClaim,
    /// The response asked for a yes, as only code does.
    PromptAsText,
    /// The response used up its output budget before any text; the repeated call has twice as much.
    CutOff,
}

/// Reply that ends a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnReply {
    /// The text of the model.
    Model(String),
    /// Sentences that tools wrote, because the model had none.
    Tools(String),
    /// The model has reacted and sends no text in addition.
    Reaction(Emoji),
    /// Reply of code if no other reply is available.
    Code(FallbackReply),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackReply {
    Refused,
    Filtered,
    NothingFound,
    NothingChanged,
    WentWrong,
}

impl FallbackReply {
    pub const ALL: [Self; 5] =
        [Self::Refused, Self::Filtered, Self::NothingFound, Self::NothingChanged, Self::WentWrong];

    pub fn text(self) -> &'static str {
        match self {
            Self::Refused => "I can't help with that one.",
            Self::Filtered => "I can't answer that one.",
            Self::NothingFound => "Sorry, I could not work that out. Please try again.",
            Self::NothingChanged => "Nothing was changed. Please tell me again what you would like.",
            Self::WentWrong => "Something went wrong on my side. Please try again.",
        }
    }
}

#[cfg(test)]
mod tests;
