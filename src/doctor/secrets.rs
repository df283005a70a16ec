//! Check of the permissions of the secrets file.

use std::path::Path;

use super::Finding;
use crate::settings::secrets_file::SecretsFile;

/// Returns no finding if the file does not exist.
pub(super) fn check_secrets_file(path: &Path) -> Vec<Finding> {
    let file = SecretsFile::new(path.to_owned());
    let path = path.display();
    let finding = match file.exposed_mode() {
        Err(error) => Finding::failure(
            format!("secrets: {path} cannot be inspected ({error})"),
            "run doctor as the user of the service",
        ),
        Ok(Some(mode)) => Finding::warning(
            format!("secrets: other accounts can read {path} (mode {mode:o})"),
            format!("run chmod 600 {path}; the next start does so too"),
        ),
        Ok(None) if file.path().exists() => Finding::ok(format!("secrets: only the owner can read {path}")),
        Ok(None) => return Vec::new(),
    };
    vec![finding]
}
