//! Turns: lifecycle, model steps, tool calls, budget and statistics.

pub mod budget_blocks;
pub mod calls;
pub mod daily_budget;
pub mod finished_turns;
pub mod model_steps;
pub mod progress_message;
pub mod running_calls;
pub mod turn_lifecycle;
pub mod turn_resume;
pub mod turn_stats;
#[cfg(test)]
mod turn_update_tests;
