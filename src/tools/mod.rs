//! What the model can do. A tool knows its schema, how it runs, how it is named in a question, and how to find out
//! what became of an interrupted run. Who may run it is decided in `approval` alone.

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
use crate::conversation::requests::{AskedFor, Wanted};
use crate::conversation::transcript::{
    Added, Arguments, CallFailure, CallResult, MediaKind, MediaRef, Rights, ToolSpec,
};
use approval::Cleared;
pub use outcomes::STILL_THERE;

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
    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError>;

    /// For a destructive tool: fetches each item fresh and freezes what the question will say.
    async fn preview(&self, _arguments: &Arguments, _world: &World) -> Result<Vec<FrozenItem>, ToolError> {
        Err(ToolError::Fatal(anyhow::anyhow!("preview a tool that is not destructive")))
    }

    /// For a destructive tool: the same items as they are at this moment, for asking afresh.
    async fn refresh(&self, _items: &[FrozenItem], _world: &World) -> Result<Vec<FrozenItem>, ToolError> {
        Ok(Vec::new())
    }

    /// The call as this person wants it, where the model left something open that is known of them. What is changed here
    /// is stored with the call, so that every check sees it.
    fn preferred(&self, _arguments: &Arguments, _facts: &Facts, _rights: Rights) -> Option<Arguments> {
        None
    }

    /// The report of a write that was not carried out, as a check showed, and is not tried again. `title` is the name
    /// of its title where earlier results showed one.
    fn not_done(&self, _title: Option<&str>) -> CallFailure {
        outcomes::not_done("That did not work. Please try again later.")
    }

    /// What became of a run whose answer was lost. Reads need none: they run again.
    async fn settle(&self, _call: Interrupted<'_>, _world: &World) -> Result<Settled, ToolError> {
        Ok(Settled::NotDone)
    }
}

/// A run that ended well.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    pub result: CallResult,
    /// What it does to our own records, stored together with the result.
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

/// What a tool does to our own records. A tool only says what is to be done: it happens in the transaction that
/// stores the call's result, so it happens once.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// On the conversation itself. One that fails is logged, and the answer goes out all the same.
    Act(Action),
    /// It counts towards the person's quota.
    Count(Added),
    /// The admins are asked to delete this.
    AskAdmins(Box<FrozenItem>),
    /// It is remembered who asked for this title, which is in the library.
    Request(Wanted),
    /// The user asked for the title, and is notified when it is ready.
    Follow(Wanted),
    /// The user asked to be notified when it is ready, which holds also while their notifications are off.
    Notify(Wanted),
    /// The person does not want to be told.
    Unfollow(Wanted),
    /// Nothing of it has happened: the call is made again later, with these arguments.
    Queue(Wanted, Arguments),
    /// It is known of the person from here on.
    Remember(Fact),
    /// What is known under this key is known no more.
    Forget(FactKind, String),
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
    /// The user's last three texts, newest first.
    pub last_three: Vec<String>,
    pub languages: Vec<Language>,
    pub allowance: Allowance,
    /// What the user has asked the admins to delete, and nobody has answered.
    pub wishes: Vec<FrozenItem>,
    /// How many admins there are to be asked.
    pub admins: usize,
    /// What the household asked for lately, oldest first.
    pub asked_for: Vec<AskedFor>,
    /// What is known of the user.
    pub facts: Facts,
    pub asking: Asking,
}

/// When the person asked for what is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    Now,
    /// They were told that it would be tried, and it is.
    Before,
}

impl World {
    /// Who asked for a title of one library, oldest first, by the id of TMDB or TheTVDB.
    pub fn who_asked(&self, instance: &str, kind: MediaKind, catalog_id: i64) -> Vec<&AskedFor> {
        let same = |asked: &&AskedFor| {
            let wanted = &asked.wanted;
            (wanted.kind, wanted.catalog_id, wanted.instance.as_str()) == (kind, catalog_id, instance)
        };
        self.asked_for.iter().filter(same).collect()
    }
}

/// What the user may still add.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Allowance {
    pub movies: Standing,
    pub seasons: Standing,
    /// Whom to ask for more: a name, or "an admin".
    pub whom_to_ask: String,
}

/// How much of one limit is used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Standing {
    /// `None` without a limit.
    pub rate: Option<Rate>,
    /// What was added lately and when, oldest first.
    pub counted: Vec<(Timestamp, u32)>,
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
    Done(Ran),
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
