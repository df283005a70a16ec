//! What the model can do. A tool knows its schema, how it runs, how it is named in a question, and how to find out
//! what became of an interrupted run. Who may run it is decided in `approval` alone.

pub mod answers;
pub mod approval;
pub mod arguments;
pub mod discover;
pub mod downloads;
pub mod library;
pub mod movies;
pub mod ranking;
pub mod registry;
pub mod removal;
pub mod series;
#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::conversation::transcript::{
    Arguments, CallFailure, CallResult, FrozenItem, MediaRef, Rights, ToolSpec,
};
use approval::Cleared;

/// Time a tool may take before its caller gives up.
pub const READ_TIMEOUT: Duration = Duration::from_secs(10);
pub const LOOKUP_TIMEOUT: Duration = Duration::from_secs(20);
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> ToolSpec;

    fn timeout(&self) -> Duration;

    /// Reads the arguments and names the ids they use, before anything runs.
    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure>;

    /// Runs a cleared call: for a destructive tool, one frozen item of it.
    async fn run(&self, call: &Cleared, world: &World) -> Result<CallResult, ToolError>;

    /// For a destructive tool: fetches each item fresh and freezes what the question will say.
    async fn preview(&self, _arguments: &Arguments, _world: &World) -> Result<Vec<FrozenItem>, ToolError> {
        Err(ToolError::Fatal(anyhow::anyhow!("preview a tool that is not destructive")))
    }

    /// For a destructive tool: the same items as they are at this moment, for asking afresh.
    async fn refresh(&self, _items: &[FrozenItem], _world: &World) -> Result<Vec<FrozenItem>, ToolError> {
        Ok(Vec::new())
    }

    /// What became of a run whose answer was lost. Reads need none: they run again.
    async fn settle(&self, _call: Interrupted<'_>, _world: &World) -> Result<Settled, ToolError> {
        Ok(Settled::NotDone)
    }
}

/// What checked arguments say about the call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Uses {
    /// Ids the call names; each must have been shown to the user in this conversation.
    pub refs: Vec<MediaRef>,
    /// Whether the call adds something to a 4K instance.
    pub four_k: bool,
}

/// What a tool may know of the moment it runs in.
#[derive(Debug, Clone)]
pub struct World {
    pub now: Timestamp,
    pub zone: TimeZone,
    pub rights: Rights,
    /// The user's texts of this turn.
    pub said: Vec<String>,
}

/// A run whose answer was lost. It can be looked into, and cannot be run.
#[derive(Debug, Clone, Copy)]
pub enum Interrupted<'a> {
    Call(&'a Arguments),
    /// One item of a deletion.
    Item(&'a FrozenItem),
}

/// How an interrupted write or deletion turned out.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    Done(CallResult),
    /// It did not happen; running it again is safe.
    NotDone,
    /// It cannot be told.
    Unknown,
}

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The model is told, in a result, and may do something else.
    #[error("tool failed: {}", .0.code)]
    TellModel(CallFailure),
    /// The outcome of a write is unknown: nobody may say it failed or succeeded before it is settled.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    #[error(transparent)]
    Fatal(#[from] anyhow::Error),
}
