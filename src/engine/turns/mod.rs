//! Execution of turns: each step is decided from the turn's log, executed and recorded.

mod agent_turn;
pub(super) mod call_failures;
pub(super) mod change_record;
mod confirmation_prompt;
mod deletion;
pub(super) mod first_call;
pub(super) mod log;
mod model_step;
mod tool_calls;
pub(crate) mod tool_context;
pub(super) mod tool_effects;
pub(super) mod tool_runner;
mod triage;
pub(super) mod turn_context;
mod turn_end;
mod turn_history;
pub(super) mod turn_runner;
mod typing_indicator;
mod viewing_check;
mod write_recovery;
