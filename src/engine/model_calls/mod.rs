//! Calls of the models: their order, the limit of concurrent calls, their charges, and the vectors of texts.

pub(crate) mod call_schedule;
pub(crate) mod caller;
mod concurrency_limit;
mod model_queue;
pub(crate) mod text_embedder;
