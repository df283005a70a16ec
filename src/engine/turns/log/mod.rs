//! Log of a running turn, through which its steps, calls and deletion items are loaded and recorded.

mod call_records;
pub(super) mod deletion_records;
pub(super) mod model_records;
pub(crate) mod turn_log;
