//! Failpoints: named places at which a crash test aborts the program. Without the `failpoints` feature they do nothing.

#[cfg(feature = "failpoints")]
static ARMED: std::sync::OnceLock<(String, u32)> = std::sync::OnceLock::new();

/// Arms one failpoint, given by its name and the number of the visit that aborts the program. Only the first call has
/// an effect.
#[cfg(feature = "failpoints")]
pub fn arm_failpoint(failpoint: (String, u32)) {
    ARMED.get_or_init(|| failpoint);
}

#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn reached(_name: &'static str) {}

/// Aborts the process at the armed visit of the armed failpoint. As in a crash, no destructor runs and no task is
/// notified.
#[cfg(feature = "failpoints")]
pub fn reached(name: &'static str) {
    use std::sync::atomic::{AtomicU32, Ordering};

    static VISITS: AtomicU32 = AtomicU32::new(0);

    if let Some((armed_name, visit)) = ARMED.get()
        && armed_name == name
        && VISITS.fetch_add(1, Ordering::SeqCst) + 1 == *visit
    {
        std::process::abort();
    }
}
