//! Log of a running turn: the one place that loads and records its steps, calls and deletion items.

mod call_records;
pub(super) mod deletion_records;
pub(super) mod model_records;
pub(crate) mod turn_log;
