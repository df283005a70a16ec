//! Where values come from: the real environment, else the `.env` file of the working directory.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::path::Path;

use super::{Config, Problem, Problems};

const FILE: &str = ".env";

impl Config {
    /// Reads the environment and `.env`, and changes neither.
    pub fn load() -> Result<Self, Problems> {
        load_from(Path::new(FILE), |name| env::var_os(name))
    }
}

/// The real environment wins, even with an empty value: that is how a line of the file is switched off.
pub(super) fn load_from(path: &Path, real: impl Fn(&str) -> Option<OsString>) -> Result<Config, Problems> {
    let (file, mut problems) = read_file(path);
    let config = Config::from_lookup(|name| match real(name) {
        Some(value) => Some(value.to_string_lossy().into_owned()),
        None => file.get(name).cloned(),
    });
    match config {
        Ok(config) if problems.is_empty() => Ok(config),
        Ok(_) => Err(Problems(problems)),
        Err(Problems(more)) => {
            problems.extend(more);
            Err(Problems(problems))
        }
    }
}

fn read_file(path: &Path) -> (HashMap<String, String>, Vec<Problem>) {
    let mut values = HashMap::new();
    let entries = match dotenvy::from_path_iter(path) {
        Ok(entries) => entries,
        Err(error) if error.not_found() => return (values, Vec::new()),
        Err(error) => return (values, vec![unreadable(format!("cannot be opened ({error})"))]),
    };
    let mut problems = Vec::new();
    let mut last = String::from("the start");
    for entry in entries {
        match entry {
            Ok((name, value)) => {
                last.clone_from(&name);
                values.entry(name).or_insert(value);
            }
            // The error would quote the line, which may hold a secret.
            Err(dotenvy::Error::LineParse(..)) => {
                problems.push(unreadable(format!("the entry after {last} is not NAME=value")));
            }
            // Reading goes no further, and trying again would fail again.
            Err(error) => {
                problems.push(unreadable(format!("cannot be read after {last} ({error})")));
                break;
            }
        }
    }
    (values, problems)
}

fn unreadable(wrong: String) -> Problem {
    Problem { variable: FILE, wrong, example: "LLM_MODEL='quote what has $, # or spaces'" }
}
