//! Start of the calls of agents. A call is a turn in the conversation of its agent, after the waiting texts of the person.

use super::turn_start::{TurnStart, TurnStartOutcome};
use crate::conversation::agents::IDLE_PERIOD;
use crate::conversation::lifecycle::{self, ConversationSlot};
use crate::conversation::transcript::{ConversationId, Responder, StopReason, User, UserId, UserStatus};
use crate::store::QueryResult;
use crate::store::agent_calls::{self, DropReason, WaitingCall};
use crate::store::conversation::conversations::{self, EndReason};
use crate::store::people::{pauses, users};
use crate::store::turns::model_steps::{self, AttemptId, NewCall, RecordedResponse};
use crate::store::turns::turn_lifecycle::{self, ActiveTurn, NewTurn, TurnKind, TurnPlan};

/// Name in place of a model in the step that contains the call.
const STEP_LABEL: &str = "agent";

impl TurnStart<'_> {
    /// Starts the turn of the next waiting call for a person, or drops the call if it may not run.
    pub(super) fn start_agent_call(&mut self, user: UserId) -> QueryResult<TurnStartOutcome> {
        let Some(waiting) = agent_calls::load_next_call(self.conn, user, self.now)? else {
            return Ok(TurnStartOutcome::Answered);
        };
        let user = users::load_user(self.conn, user)?;
        if let Some(reason) = self.drop_reason(&user, &waiting)? {
            agent_calls::drop_call(self.conn, waiting.id, reason)?;
            return Ok(TurnStartOutcome::Answered);
        }
        let conversation = self.open_agent_conversation(&user, &waiting)?;
        let plan = TurnPlan::for_responder(Responder::Keyword);
        let kind = TurnKind::Command;
        let new_turn = NewTurn { user: user.id, conversation, kind, plan: &plan };
        let turn = turn_lifecycle::create_turn(self.conn, new_turn, self.now)?;
        self.created_turn = Some(turn);
        let attempt = AttemptId { turn, step: 0, attempt: 1 };
        model_steps::start_attempt(self.conn, attempt, Responder::Keyword, STEP_LABEL, self.now)?;
        let calls = model_steps::complete_attempt(self.conn, attempt, &step_of(&waiting), self.now)?;
        for call in calls {
            agent_calls::start_call(self.conn, waiting.id, (turn, call.row))?;
        }
        let agent = Some(waiting.caller.key);
        Ok(TurnStartOutcome::Turn(ActiveTurn { id: turn, kind, conversation, room: None, agent }))
    }

    fn drop_reason(&mut self, user: &User, waiting: &WaitingCall) -> QueryResult<Option<DropReason>> {
        if waiting.dropped.is_some() {
            return Ok(waiting.dropped);
        }
        if user.status != UserStatus::Active {
            return Ok(Some(DropReason::NotAllowed));
        }
        let pause = pauses::load_current_pause(self.conn)?;
        Ok(pause.map(|_| DropReason::Paused))
    }

    /// Returns the open conversation of the agent, or starts a new one after the idle timeout.
    fn open_agent_conversation(&mut self, user: &User, waiting: &WaitingCall) -> QueryResult<ConversationId> {
        let open = conversations::load_agent_conversation(self.conn, waiting.caller.key)?;
        match lifecycle::choose_slot(open, IDLE_PERIOD, self.now) {
            ConversationSlot::Continue(id) => return Ok(id),
            ConversationSlot::AfterEnd(id, ended_at) => {
                conversations::end_conversation(self.conn, id, EndReason::Idle, ended_at)?;
            }
            ConversationSlot::New => {}
        }
        let owner = (user.id, waiting.caller.key);
        conversations::start_agent_conversation(self.conn, owner, &waiting.caller.format(), self.now)
    }
}

/// Returns the step of a turn that contains the call.
fn step_of(waiting: &WaitingCall) -> RecordedResponse {
    RecordedResponse {
        text: String::new(),
        thinking: String::new(),
        stop: StopReason::Done,
        calls: vec![NewCall {
            name: waiting.tool.clone(),
            arguments: waiting.arguments.clone(),
            effect: waiting.effect,
        }],
        tokens: None,
        response_id: None,
        is_private: false,
    }
}
