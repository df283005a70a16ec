//! Checks that `.ci/run` skips: those whose registry is unreachable, and not those whose package cannot be installed.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Behavior of the registry: whether it delivers the package, and whether it delivers a package that surely exists.
struct Npm {
    installs: bool,
    answers: bool,
}

/// Runs a check that needs a package. Returns its exit code and its output.
fn check(npm: &Npm) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("npm");
    let ends = |well: bool| if well { "exit 0" } else { "exit 1" };
    let script =
        format!("#!/bin/sh\ncase $1 in install) {};; *) {};; esac\n", ends(npm.installs), ends(npm.answers));
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let check = "set -e; source .ci/registries
        check() (
            lacks_npm \"$1\" a-package@1.0.0 && return
            echo checked
        )
        check \"$1\"";
    let ended = Command::new("bash")
        .args(["-c", check, "check"])
        .arg(folder.path())
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
        .output()
        .unwrap();
    let output = [ended.stdout, ended.stderr].concat();
    (ended.status.code(), String::from_utf8(output).unwrap())
}

#[test]
fn check_is_skipped_only_if_its_registry_is_unreachable() {
    let went_on = check(&Npm { installs: true, answers: true });
    let out_of_reach = check(&Npm { installs: false, answers: false });
    let refused = check(&Npm { installs: false, answers: true });
    assert_eq!(went_on, (Some(0), "checked\n".to_owned()));
    assert_eq!(out_of_reach, (Some(0), "skipped: the npm registry is out of reach\n".to_owned()));
    let why = "the npm registry answers, but does not give what is wanted:\n".to_owned();
    assert_eq!(refused, (Some(1), why));
}

#[test]
fn every_check_installs_packages_through_the_shared_function() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/contract")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for by_itself in ["npm install", "pip install", "bin/pip", "pip download", "apt-get", "cargo info"] {
            assert!(!text.contains(by_itself), "{by_itself} in {}", path.display());
        }
    }
}

#[test]
fn lock_file_of_the_fuzz_targets_follows_the_manifest() {
    let read =
        |path: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let (manifest, lock) = (read("Cargo.toml"), read("fuzz/Cargo.lock"));
    let (_, dependencies) = manifest.split_once("\n[dependencies]\n").unwrap();
    let declared: BTreeSet<&str> = dependencies
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| Some(line.split_once(" = ")?.0))
        .collect();
    let (_, package) = lock.split_once("name = \"dialarr\"\n").unwrap();
    let (_, listed) = package.split_once("dependencies = [\n").unwrap();
    // A crate with several versions in the lock is listed with its version: ` "rand 0.10.4",`.
    let locked: BTreeSet<&str> = listed
        .lines()
        .take_while(|line| *line != "]")
        .filter_map(|line| line.trim_matches([' ', '"', ',']).split(' ').next())
        .collect();
    assert_eq!(locked, declared);
}
