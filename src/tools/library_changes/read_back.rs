//! Verification of a write to the library by reading the title back.

use crate::arr::ArrError;
use crate::conversation::transcript::{CallResult, QuotaUse};
use crate::tools::library::Instance;
use crate::tools::{ToolEffect, ToolError, ToolOutput};

/// Returns the title after a write, if the write reached its goal. If the response to the write was lost, the title
/// itself shows whether the change was made.
pub async fn read_back<Client, T>(
    instance: &Instance<Client>,
    id: i64,
    written: Result<(), ToolError>,
    fetch: impl Future<Output = Result<Option<T>, ArrError>>,
    is_reached: impl FnOnce(&T) -> bool,
) -> Result<T, ToolError> {
    if let Err(error @ (ToolError::CallFailed(_) | ToolError::Fatal(_))) = written {
        return Err(error);
    }
    let title = fetch.await.map_err(|error| instance.unverified_write_error(&error))?;
    title.filter(is_reached).ok_or_else(|| {
        let mismatch =
            || ToolError::Unknown(format!("{}: {id} does not have the written values", instance.name));
        written.err().unwrap_or_else(mismatch)
    })
}

/// Builds the output of a change that may count towards the quota.
pub fn output_with_count(result: CallResult, count: Option<QuotaUse>) -> ToolOutput {
    match count {
        Some(count) => ToolOutput::with_effect(result, ToolEffect::Count(count)),
        None => result.into(),
    }
}
