//! Recording of the SQL statements that a simulated program runs. A simulated database runs them on the thread of the
//! test, so tests that run at the same time do not see each other's statements.

use std::cell::RefCell;
use std::sync::Once;

use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};

thread_local! {
    /// Statements of this thread in their order, without their bound values; `None` while nothing is recorded.
    static STATEMENTS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Starts to record the statements of connections that this thread opens from now on.
pub(crate) fn record_statements() {
    static INSTRUMENTED: Once = Once::new();
    INSTRUMENTED.call_once(|| set_default_instrumentation(instrument_connection).unwrap());
    STATEMENTS.set(Some(Vec::new()));
}

/// Returns the statements since the last call, and goes on recording.
pub(crate) fn take_statements() -> Vec<String> {
    STATEMENTS.replace(Some(Vec::new())).expect("record_statements() was called on this thread")
}

fn instrument_connection() -> Option<Box<dyn Instrumentation>> {
    Some(Box::new(|event: InstrumentationEvent<'_>| {
        let InstrumentationEvent::StartQuery { query, .. } = event else { return };
        STATEMENTS.with_borrow_mut(|statements| {
            let Some(statements) = statements else { return };
            let text = query.to_string();
            statements.push(text.split(" -- binds").next().unwrap_or_default().to_owned());
        });
    }))
}
