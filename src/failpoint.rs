//! Named places at which a crash test kills the program. Without the `failpoints` feature they are nothing.

#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn reached(_name: &'static str) {}

/// Kills the process at the n-th visit of the place that `FAILPOINT=name@n` names. No destructor runs and no task is
/// asked: what a crash leaves behind is all there is.
#[cfg(feature = "failpoints")]
pub fn reached(name: &'static str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static CHOSEN: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static VISITS: AtomicU32 = AtomicU32::new(0);

    let chosen = CHOSEN.get_or_init(crate::config::failpoint);
    if let Some((place, visit)) = chosen
        && place == name
        && VISITS.fetch_add(1, Ordering::SeqCst) + 1 == *visit
    {
        std::process::abort();
    }
}
