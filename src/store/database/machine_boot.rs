//! Identity of the current boot of the machine.

use std::fs;

/// Random identifier that Linux chooses at each boot. Containers see the one of their host.
const BOOT_ID_PATH: &str = "/proc/sys/kernel/random/boot_id";

/// Returns the identifier of the current boot; `None` where the system has none. Commits that were not synced are lost
/// only with the boot in which they were made.
pub(super) fn read_boot_id() -> Option<String> {
    let boot_id = fs::read_to_string(BOOT_ID_PATH).ok()?;
    Some(boot_id.trim().to_owned()).filter(|boot_id| !boot_id.is_empty())
}
