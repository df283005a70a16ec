//! Turn as a log of messages, model responses and call outcomes. The log alone determines the next step, so running,
//! retrying and resuming after a crash share one code path.

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

/// Maximum running time of a turn, not counting the time while the program was down.
pub const TURN_TIME: Duration = Duration::from_secs(60);

/// Running time after which the user gets one notification that a change is still in progress.
pub const PROGRESS_AFTER: Duration = Duration::from_secs(20);

/// Log of one conversation turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub id: TurnId,
    /// Responder that was selected when the turn began.
    pub responder: Responder,
    /// Messages of the user that this turn answers.
    pub texts: Vec<String>,
    /// Completed model steps with their calls.
    pub steps: Vec<ModelStep>,
    /// Failed attempts since the last completed step.
    pub failures: Vec<StepFailure>,
    pub deadline: Timestamp,
    /// Number of times that the turn was resumed, after a restart or an internal failure.
    pub resumes: u32,
    /// Number of those resumes that followed a panic or an error in the turn's own work.
    pub work_failures: u32,
    pub cancel_requested: bool,
    /// Reports by tools and code about earlier turns, newest first. Claims about those turns are checked against them.
    pub record: Arc<[String]>,
}

/// Change of a running turn by a record.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnUpdate {
    /// Response of the model, with its calls.
    StepCompleted(ModelStep),
    /// Outcome of a call, or its reset to run again.
    CallChanged(CallRow, CallState),
}

impl Turn {
    /// Applies the change by a record. The turn then equals the one that is loaded from the database after the record.
    pub fn apply_update(&mut self, update: TurnUpdate) {
        match update {
            TurnUpdate::StepCompleted(step) => {
                self.failures.clear();
                self.steps.push(step);
            }
            TurnUpdate::CallChanged(_, CallState::Running | CallState::AwaitingConfirmation) => {}
            TurnUpdate::CallChanged(row, state) => {
                let mut calls = self.steps.iter_mut().flat_map(|step| &mut step.calls);
                let open_call = calls.find(|call| call.row == row && call.state.is_open());
                // An existing outcome is not replaced.
                if let Some(call) = open_call {
                    call.state = state;
                }
            }
        }
    }

    /// Returns the number of calls without an outcome.
    pub fn open_call_count(&self) -> usize {
        self.calls().filter(|call| call.state.is_open()).count()
    }

    /// Returns whether the turn has been resumed too often to start more work.
    pub fn is_given_up(&self, limits: &TurnLimits) -> bool {
        self.resumes > limits.resumes
    }

    /// Returns whether even the check of a started change keeps failing in our own code. Restarts do not count, because
    /// they do not indicate a defect of the check.
    pub fn has_failed_checks(&self, limits: &TurnLimits) -> bool {
        self.work_failures > 2 * limits.resumes
    }

    /// Returns the time at which the user is notified that a change is still in progress. It follows the deadline,
    /// which a restart moves.
    pub fn progress_due_at(&self) -> Timestamp {
        self.deadline - (TURN_TIME - PROGRESS_AFTER)
    }
}

/// Failed attempt at a model step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepFailure {
    /// The next attempt may succeed shortly.
    Transient { at: Timestamp, retry_after: Option<Duration> },
    /// No attempt will succeed in this turn.
    Permanent,
    /// The program stopped during the attempt, so the failure does not count against the model.
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

/// Plan of the next attempt at a model step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCallPlan {
    pub responder: Responder,
    /// Index of the step in the turn, from 0.
    pub step: u32,
    /// Number of this attempt, from 1.
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

/// Reason for a repeated model call, which the model gets as a hint.
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
    /// The question of a vote that the turn has started, after what else there is to say.
    Ballot(String),
    /// No text, because the model has reacted with an emoji.
    Reaction(Emoji),
    /// Fixed reply, if no other reply is available.
    Code(FallbackReply),
}

/// Fixed reply in place of the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackReply {
    Refused,
    Filtered,
    NothingFound,
    NothingChanged,
    InternalError,
}

impl FallbackReply {
    pub const ALL: [Self; 5] =
        [Self::Refused, Self::Filtered, Self::NothingFound, Self::NothingChanged, Self::InternalError];

    pub fn text(self) -> &'static str {
        match self {
            Self::Refused => "I can't help with that one.",
            Self::Filtered => "I can't answer that one.",
            Self::NothingFound => "Sorry, I could not work that out. Please try again.",
            Self::NothingChanged => "Nothing was changed. Please tell me again what you would like.",
            Self::InternalError => "Something went wrong on my side. Please try again.",
        }
    }
}

#[cfg(test)]
mod tests;
