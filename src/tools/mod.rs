//! Tools that the model can call. A tool defines its schema, its execution, its name in a confirmation prompt, and the
//! check that determines the outcome of an interrupted run. Permission to run a tool is decided in `approval` alone.

pub mod actions;
pub mod answers;
pub mod approval;
pub mod arguments;
mod asked;
mod copy;
pub mod details;
pub mod discarding;
pub mod discover;
pub mod downloads;
pub mod find;
mod folders;
pub mod following;
pub mod growing;
pub mod library;
pub mod memory;
pub mod movies;
mod outcomes;
mod place;
pub mod posters;
mod preference;
mod queueing;
pub mod ranking;
pub mod recommend;
pub mod registry;
pub mod removal;
pub mod replacing;
pub mod requests;
mod season_files;
mod seasons;
pub mod series;
pub mod servers;
pub mod shelf;
pub mod taste;
#[cfg(test)]
mod tests;
mod why;
pub mod why_missing;

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::conversation::action::Action;
use crate::conversation::consent::Language;
use crate::conversation::facts::{Fact, FactKind, Facts};
use crate::conversation::frozen::FrozenItem;
use crate::conversation::rate::Rate;
use crate::conversation::requests::{AskedFor, Coverage, Wanted};
use crate::conversation::transcript::{
    Added, Arguments, CallFailure, CallResult, MediaKind, MediaRef, Rights, ToolSpec,
};
use approval::Cleared;
pub use outcomes::STILL_THERE;

/// Time limit of a tool before its caller gives up.
pub const READ_TIMEOUT: Duration = Duration::from_secs(10);
pub const LOOKUP_TIMEOUT: Duration = Duration::from_secs(20);
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> ToolSpec;

    fn timeout(&self) -> Duration;

    /// Parses the arguments and returns the ids they use, before anything runs.
    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure>;

    /// Runs a cleared call. For a destructive tool, a run covers one frozen item of the call.
    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError>;

    /// Fetches each item again and freezes the contents of the confirmation prompt. Used only by destructive tools.
    async fn preview(&self, _arguments: &Arguments, _world: &World) -> Result<Vec<FrozenItem>, ToolError> {
        Err(ToolError::Fatal(anyhow::anyhow!("preview a tool that is not destructive")))
    }

    /// Returns the same items in their current state, for a new confirmation prompt. Used only by destructive tools.
    async fn refresh(&self, _items: &[FrozenItem], _world: &World) -> Result<Vec<FrozenItem>, ToolError> {
        Ok(Vec::new())
    }

    /// Arguments adjusted to the preferences of the user, where the model left something open that a stored fact
    /// answers. The adjusted arguments are stored with the call, so that every check sees them.
    fn preferred(&self, _arguments: &Arguments, _facts: &Facts, _rights: Rights) -> Option<Arguments> {
        None
    }

    /// Failure result of a write that a check found not carried out and that is not retried. `title` is the name of its
    /// title if earlier results showed one.
    fn not_done(&self, _title: Option<&str>) -> CallFailure {
        outcomes::not_done("That did not work. Please try again later.")
    }

    /// Determines the outcome of a run whose response was lost. Reads do not need this, because they simply run again.
    async fn settle(&self, _call: Interrupted<'_>, _world: &World) -> Result<Settled, ToolError> {
        Ok(Settled::NotDone)
    }
}

/// Output of a successful run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    pub result: CallResult,
    /// Effects of the run on our own records, stored together with the result.
    pub deeds: Vec<Deed>,
}

impl From<CallResult> for Ran {
    fn from(result: CallResult) -> Self {
        Self { result, deeds: Vec::new() }
    }
}

impl Ran {
    pub fn with(result: CallResult, deed: Deed) -> Self {
        Self { result, deeds: vec![deed] }
    }

    pub fn and(mut self, deed: Deed) -> Self {
        self.deeds.push(deed);
        self
    }
}

/// Effect of a tool on our own records. The tool only requests the effect. The effect is applied in the transaction
/// that stores the result of the call, so it happens exactly once.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// Acts on the conversation itself. A failed action is logged, and the reply is sent anyway.
    Act(Action),
    /// Counts towards the quota of the user.
    Count(Added),
    /// Asks the admins to delete this item.
    AskAdmins(Box<FrozenItem>),
    /// Records that the user requested this title, which is in the library, and how much of what it names.
    Request(Wanted, Coverage),
    /// Records that the user requested the title and is notified when it is ready.
    Follow(Wanted),
    /// Records that the user asked to be notified when the title is ready, even while their notifications are off.
    Notify(Wanted),
    /// Records that the user does not want to be notified about the title.
    Unfollow(Wanted),
    /// Queues the call for a later retry with these arguments, because no part of it has happened.
    Queue(Wanted, Arguments),
    /// Stores a fact about the user.
    Remember(Fact),
    /// Deletes the fact stored under this key.
    Forget(FactKind, String),
}

/// Ids and features that checked arguments use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Uses {
    /// Ids in the call. Each must have been shown to the user in this conversation.
    pub refs: Vec<MediaRef>,
    /// True if the call adds something to a 4K instance.
    pub four_k: bool,
}

/// Context in which a tool runs.
#[derive(Debug, Clone)]
pub struct World {
    pub now: Timestamp,
    pub zone: TimeZone,
    pub rights: Rights,
    /// Messages that the user sent in this turn.
    pub said: Vec<String>,
    /// Last three messages of the user, newest first.
    pub last_three: Vec<String>,
    pub languages: Vec<Language>,
    pub allowance: Allowance,
    /// Open removal requests of the user: items that the admins were asked to delete and have not decided on.
    pub wishes: Vec<FrozenItem>,
    /// Number of admins who can be asked.
    pub admins: usize,
    /// Recent title requests of the household, oldest first.
    pub asked_for: Vec<AskedFor>,
    /// Stored facts about the user.
    pub facts: Facts,
    pub asking: Asking,
}

/// Time at which the user asked for the current action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    Now,
    /// Earlier: the user was notified that the request would be retried, and this is the retry.
    Before,
}

impl World {
    /// Requests for a title of one library, oldest first, by its TMDB or TheTVDB id.
    pub fn who_asked(&self, instance: &str, kind: MediaKind, catalog_id: i64) -> Vec<&AskedFor> {
        let same = |asked: &&AskedFor| {
            let wanted = &asked.wanted;
            (wanted.kind, wanted.catalog_id, wanted.instance.as_str()) == (kind, catalog_id, instance)
        };
        self.asked_for.iter().filter(same).collect()
    }
}

/// Remaining quota of the user.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Allowance {
    pub movies: Standing,
    pub seasons: Standing,
    /// Contact for a higher quota: a name, or "an admin".
    pub whom_to_ask: String,
}

/// Usage of one quota.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Standing {
    /// `None` if there is no limit.
    pub rate: Option<Rate>,
    /// Recent additions with their times, oldest first.
    pub counted: Vec<(Timestamp, u32)>,
}

/// Run whose response was lost. Its outcome can be checked, but it cannot be run.
#[derive(Debug, Clone, Copy)]
pub enum Interrupted<'a> {
    Call(&'a Arguments),
    /// One item of a deletion.
    Item(&'a FrozenItem),
}

/// Outcome of an interrupted write or deletion.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    Done(Ran),
    /// The run did not happen. Running it again is safe.
    NotDone,
    /// The outcome cannot be determined.
    Unknown,
}

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// Failure that is returned to the model as a result. The model may then do something else.
    #[error("tool failed: {}", .0.code)]
    TellModel(CallFailure),
    /// Unknown outcome of a write. The write must not be reported as failed or successful before its outcome is
    /// determined.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    #[error(transparent)]
    Fatal(#[from] anyhow::Error),
}
