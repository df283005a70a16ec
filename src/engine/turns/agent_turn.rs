//! Runner of the turns that run one call of an agent. No message is sent: the agent reads the result of the call.

use std::sync::Arc;

use super::log::turn_log::{TurnLog, TurnProgress};
use super::tool_calls::ToolCallRunner;
use super::turn_context::TurnContext;
use super::write_recovery::WriteRecovery;
use crate::clock::Clock;
use crate::conversation::transcript::CallState;
use crate::conversation::turn::{NextStep, TurnLimits};
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::store::turns::finished_turns::TurnEnd;

/// Runner of the turns of agents.
pub(super) struct AgentTurnRunner {
    clock: Clock,
    tool_calls: Arc<ToolCallRunner>,
    recovery: Arc<WriteRecovery>,
    limits: TurnLimits,
}

impl AgentTurnRunner {
    pub(super) fn new(
        clock: Clock,
        (tool_calls, recovery): (Arc<ToolCallRunner>, Arc<WriteRecovery>),
        limits: TurnLimits,
    ) -> Self {
        Self { clock, tool_calls, recovery, limits }
    }

    /// Runs the call until it has an outcome, or until its question ends the turn.
    pub(super) async fn run(&self, log: &TurnLog) -> anyhow::Result<()> {
        let mut loaded = None;
        loop {
            let context: TurnContext = match loaded.take() {
                Some(context) => context,
                None => log.load_context().await?,
            };
            let Some(step) = context.turn.next_call_step(self.clock.now(), &self.limits) else {
                return log.end_turn(turn_end(&context)).await.map(drop);
            };
            let progress = match step {
                NextStep::StartCalls(calls) => self.tool_calls.start_calls(log, &context, &calls).await?,
                NextStep::AnswerCall(call, state) => {
                    log.record_call_state(&context, call, state, None).await?
                }
                NextStep::RecoverCall(call) => self.recovery.recover_call(log, &context, call).await?,
                NextStep::CallModel(_) | NextStep::Reply(_) | NextStep::Cancel => {
                    return log.end_turn(turn_end(&context)).await.map(drop);
                }
            };
            match progress {
                TurnProgress::Reload => {}
                TurnProgress::Loaded(context) => loaded = Some(*context),
                TurnProgress::Ended => return Ok(()),
            }
        }
    }
}

/// Returns the end of the turn, with the sentence of the result for the record.
fn turn_end(context: &TurnContext) -> TurnEnd {
    let mut outcome = MessageOutcome::Skipped("taken_back");
    let mut answer = None;
    for call in context.turn.steps.iter().flat_map(|step| &step.calls) {
        match &call.state {
            CallState::Done(result) => {
                (outcome, answer) = (MessageOutcome::Replied, Some(result.for_user.clone()));
            }
            CallState::Failed(failure) => {
                (outcome, answer) = (MessageOutcome::Replied, failure.for_user.clone());
            }
            CallState::Created
            | CallState::Running
            | CallState::AwaitingConfirmation
            | CallState::Canceled(_) => {}
        }
    }
    TurnEnd { answer, ..TurnEnd::without_message(context.active_turn.id, outcome) }
}
