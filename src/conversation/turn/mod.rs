//! A turn is its log: what was asked, what the model answered, what became of each call. From the log alone
//! follows what to do next, so running, retrying and resuming after a crash are one path.

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
    /// Reads that run together.
    pub parallel_reads: usize,
    /// Attempts at one model step before the turn goes on without the model.
    pub attempts: usize,
    /// Times a turn is taken up again after a crash or a panic.
    pub resumes: u32,
}

impl TurnLimits {
    pub const STANDARD: Self =
        Self { model_calls: 8, tool_calls: 16, parallel_reads: 4, attempts: 3, resumes: 4 };
}

/// Running time of a turn; time while the program was down does not count.
pub const TURN_TIME: Duration = Duration::from_secs(60);

/// Running time after which the user is told once that a change is still under way.
pub const PROGRESS_AFTER: Duration = Duration::from_secs(20);

/// The log of one chat turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub id: TurnId,
    /// Who was to answer when the turn began.
    pub responder: Responder,
    /// The user's texts that share this turn.
    pub texts: Vec<String>,
    /// Completed model steps with their calls.
    pub steps: Vec<ModelStep>,
    /// Attempts since the last completed step that gave nothing.
    pub failures: Vec<StepFailure>,
    pub deadline: Timestamp,
    /// Times the turn was taken up again, after a restart or after a failure of our own.
    pub resumes: u32,
    /// Those of `resumes` in which the work itself panicked or failed.
    pub work_failures: u32,
    pub cancel_requested: bool,
    /// What tools and code reported of earlier turns, newest first: a claim about them is compared with it.
    pub record: Arc<[String]>,
}

impl Turn {
    /// Whether nothing of the turn is started any more: its work ends without a result too often.
    pub fn is_given_up(&self, limits: &TurnLimits) -> bool {
        self.resumes > limits.resumes
    }

    /// Whether even the check of a started change keeps failing under us. Restarts do not count: they say nothing
    /// against the check.
    pub fn has_failed_checks(&self, limits: &TurnLimits) -> bool {
        self.work_failures > 2 * limits.resumes
    }

    /// When the user is told that a change is still under way. The deadline leaves out the time of a restart.
    pub fn progress_due_at(&self) -> Timestamp {
        self.deadline - (TURN_TIME - PROGRESS_AFTER)
    }
}

/// One attempt at a model step that gave no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepFailure {
    /// May succeed shortly.
    Transient { at: Timestamp, retry_after: Option<Duration> },
    /// Will not succeed in this turn.
    Lasting,
    /// The program stopped while it ran: nothing is known against the model.
    Interrupted,
}

/// Next step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum NextStep {
    CallModel(ModelCallPlan),
    /// Reads, to run together, or a single call.
    StartCalls(Vec<CallRow>),
    /// The call gets this result without running.
    AnswerCall(CallRow, CallState),
    /// The call was started and its result is unknown.
    RecoverCall(CallRow),
    Reply(TurnReply),
    /// The user took the turn back.
    Cancel,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCallPlan {
    pub responder: Responder,
    /// Position of the step in the turn, from 0, and of this attempt, from 1.
    pub step: u32,
    pub attempt: u32,
    pub style: ModelCallStyle,
    /// Wait this long first.
    pub delay: Duration,
}

/// Purpose of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelCallStyle {
    Open,
    /// The last call of the turn: a plain answer, no tools.
    Closing,
    /// Once more, because the last response was of no use.
    Retry(RetryHint),
}

/// Hint that a repeated model call gives about the last response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryHint {
    /// The response was empty.
    Empty,
    /// A tool call was written out as text.
    CallAsText,
    /// It claimed a change that no tool made.
    FalseClaim,
    /// It asked for a yes, as only code does.
    PromptAsText,
    /// It ran out of its output budget before saying anything; this time it has twice as much.
    CutOff,
}

/// Reply that ends a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnReply {
    /// The model's own words.
    Model(String),
    /// Sentences that tools wrote, because the model had none.
    Tools(String),
    /// The model has reacted and says nothing besides.
    Reaction(Emoji),
    /// What code says when nothing else can be said.
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
