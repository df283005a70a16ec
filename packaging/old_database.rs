//! Writer of the database of the latest release to a new file, for the check of the package's upgrade.

#[expect(clippy::unwrap_used, reason = "the file is shared with the tests")]
#[path = "../tests/it/harness/old_database.rs"]
mod old_database;

use std::path::Path;

fn main() -> Result<(), &'static str> {
    let file = std::env::args_os().nth(1).ok_or("name the file to write")?;
    old_database::write_database(Path::new(&file), old_database::LATEST_RELEASE);
    Ok(())
}
