//! Confirmed deletion with the state of each of its items.

use jiff::Timestamp;

use super::deletion_messages::ItemOutcome;
use super::target::DeletionTarget;
use crate::conversation::agents::AgentCaller;
use crate::conversation::transcript::CallRow;

/// Item of a deletion, with its state.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletionItem {
    pub ord: i64,
    pub target: DeletionTarget,
    pub state: DeletionItemState,
    pub attempts: u32,
    /// Time of the last attempt.
    pub started_at: Option<Timestamp>,
}

/// State of an item of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionItemState {
    /// Not started.
    Held,
    /// Started, with an unknown outcome.
    Running,
    Ended(ItemOutcome),
    Canceled,
}

/// Deletion that a yes has claimed. A value of this type proves that the user confirmed: only
/// `store/confirmation/pending_action.rs` may construct one, from a stored call that refers to its yes.
/// `tests/it/tidy.rs` checks this rule.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedDeletion {
    call: CallRow,
    tool: String,
    items: Vec<DeletionItem>,
    agent: Option<AgentCaller>,
}

impl ClaimedDeletion {
    /// Constructs the proof. Only `store/confirmation/pending_action.rs` may call this, after it has read that the call
    /// refers to its yes.
    pub fn from_confirmed_call(
        (call, tool): (CallRow, String),
        items: Vec<DeletionItem>,
        agent: Option<AgentCaller>,
    ) -> Self {
        Self { call, tool, items, agent }
    }

    /// Returns the agent that asked for the deletion, if an agent did.
    pub fn agent(&self) -> Option<&AgentCaller> {
        self.agent.as_ref()
    }

    pub fn call(&self) -> CallRow {
        self.call
    }

    pub fn tool(&self) -> &str {
        &self.tool
    }

    pub fn items(&self) -> &[DeletionItem] {
        &self.items
    }
}
