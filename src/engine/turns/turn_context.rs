//! State of a running turn as its steps see it, and the history before the turn.

use std::sync::Arc;

use crate::conversation::people::facts::UserFacts;
use crate::conversation::prompt::PastTurn;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::transcript::{CallRow, CallState, EffectLevel, ToolCall, User, UserId};
use crate::conversation::turn::Turn;
use crate::engine::reply_address::ReplyAddress;
use crate::store::memory::facts;
use crate::store::people::users;
use crate::store::turns::turn_lifecycle::{self, ActiveTurn, TurnPlan};
use crate::store::{Conn, QueryResult};

/// Current state of a chat turn, with the data that its steps need.
pub(crate) struct TurnContext {
    pub(crate) active_turn: ActiveTurn,
    pub(super) turn: Turn,
    pub(super) plan: TurnPlan,
    pub(crate) user: User,
    pub(super) events: Vec<InboundEvent>,
    /// Stored facts about the user.
    pub(super) facts: UserFacts,
    run: u32,
}

impl TurnContext {
    pub(crate) fn load_turn(conn: &mut Conn, user: UserId, active_turn: ActiveTurn) -> QueryResult<Self> {
        let turn_lifecycle::LoadedTurn { turn, plan, events, run } =
            turn_lifecycle::load_turn(conn, active_turn)?;
        let user = users::load_user(conn, user)?;
        let facts = facts::load_facts(conn, user.id)?;
        Ok(Self { active_turn, turn, plan, user, events, facts, run })
    }

    /// Returns the same context with the record of earlier turns.
    pub(super) fn with_record(mut self, record: &Arc<[String]>) -> Self {
        self.turn.record = record.clone();
        self
    }

    /// Returns the sentence that reports that the messages of this turn closed a confirmation prompt. The first run of
    /// a turn has sent the sentence.
    pub(super) fn closing_sentence(&self) -> Option<&str> {
        self.plan.preface.as_deref().filter(|_| self.run <= 1)
    }

    pub(super) fn find_call(&self, row: CallRow) -> Option<&ToolCall> {
        self.turn.steps.iter().flat_map(|step| &step.calls).find(|call| call.row == row)
    }

    pub(super) fn reply_address(&self) -> ReplyAddress {
        ReplyAddress::from_turn(self.user.clone(), self.active_turn.id, &self.events)
            .with_run(self.active_turn.id, self.run)
    }
}

/// Messages and actions before a turn, which do not change while the turn runs.
pub(super) struct TurnHistory {
    /// Turns of this conversation.
    pub(super) turns: Vec<PastTurn>,
    /// Actions in earlier conversations of the day, newest first.
    pub(super) done_today: Vec<String>,
    /// Recalled lines from any earlier conversation that relate to the current messages.
    pub(super) recalled: Vec<String>,
}

impl TurnHistory {
    /// Returns the reports of tools and code, newest first.
    pub(super) fn action_record(&self) -> Arc<[String]> {
        let mut record = Vec::new();
        for past in self.turns.iter().rev() {
            record.extend(past.answer.clone());
            let calls = past.steps.iter().rev().flat_map(|step| step.calls.iter().rev());
            record.extend(calls.filter(|call| call.effect_level != EffectLevel::Read).filter_map(|call| {
                match &call.state {
                    CallState::Done(result) => Some(result.for_user.clone()),
                    CallState::Created
                    | CallState::Running
                    | CallState::AwaitingConfirmation
                    | CallState::Failed(_)
                    | CallState::Canceled(_) => None,
                }
            }));
        }
        record.extend(self.done_today.iter().cloned());
        // The user's own message in such a line is not a record of an action.
        let answers = self
            .recalled
            .iter()
            .map(|line| line.rsplit_once("\", you answered: ").map_or(line.as_str(), |(_, answer)| answer));
        record.extend(answers.map(str::to_owned));
        record.into()
    }
}
