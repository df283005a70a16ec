//! Named failpoints at which a crash test kills the program. Without the `failpoints` feature they do nothing.

#[cfg(feature = "failpoints")]
static ARMED: std::sync::OnceLock<(String, u32)> = std::sync::OnceLock::new();

/// Arms one failpoint: its name, and the visit at which the program dies. Only the first call counts.
#[cfg(feature = "failpoints")]
pub fn arm_failpoint(place: (String, u32)) {
    ARMED.get_or_init(|| place);
}

#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn reached(_name: &'static str) {}

/// Kills the process at the armed visit of the armed failpoint. No destructor runs and no task is notified: only the
/// state that a crash leaves behind remains.
#[cfg(feature = "failpoints")]
pub fn reached(name: &'static str) {
    use std::sync::atomic::{AtomicU32, Ordering};

    static VISITS: AtomicU32 = AtomicU32::new(0);

    if let Some((place, visit)) = ARMED.get()
        && place == name
        && VISITS.fetch_add(1, Ordering::SeqCst) + 1 == *visit
    {
        std::process::abort();
    }
}
