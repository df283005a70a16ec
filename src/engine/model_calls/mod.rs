//! Calls of the models: their order, the limit of concurrent calls, and their charges.

pub(crate) mod call_schedule;
pub(crate) mod caller;
mod concurrency_limit;
mod model_queue;
