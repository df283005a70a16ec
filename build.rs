//! Embeds the migrations and the version.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable that names the commit of this build if git cannot: in a container, from an archive.
const COMMIT: &str = "DIALARR_COMMIT";

fn main() {
    // Without this line, a later migration is silently not embedded.
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={COMMIT}");
    let variable = |name| std::env::var(name).unwrap_or_default();
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let mut commit = variable(COMMIT);
    // A development build would be rebuilt at each commit.
    if commit.is_empty() && variable("PROFILE") == "release" {
        for file in changed_by_a_commit(&root) {
            println!("cargo:rerun-if-changed={}", file.display());
        }
        commit = commit_of(&root).unwrap_or_default();
    }
    println!("cargo:rustc-env=DIALARR_VERSION={}", version(&variable("CARGO_PKG_VERSION"), &commit));
}

pub(crate) fn version(number: &str, commit: &str) -> String {
    // The value of the variable becomes one line for operators.
    let commit: String = commit.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    if commit.is_empty() { number.to_owned() } else { format!("{number} ({commit})") }
}

pub(crate) fn commit_of(root: &Path) -> Option<String> {
    git(root, &["rev-parse", "HEAD"])
}

/// Returns the two files that git writes at each commit and each change of branch.
pub(crate) fn changed_by_a_commit(root: &Path) -> Vec<PathBuf> {
    let path = |name| git(root, &["rev-parse", "--git-path", name]).map(|path| root.join(path));
    // Cargo treats a missing file as always changed.
    ["HEAD", "logs/HEAD"].into_iter().filter_map(path).filter(|file| file.exists()).collect()
}

/// Returns the output of git about this checkout, and not about one around the folder.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    if !root.join(".git").exists() {
        return None;
    }
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !said.is_empty()).then_some(said)
}
