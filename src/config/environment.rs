//! Where values come from: the real environment, else the `.env` file of the working directory.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::path::Path;

use super::{Config, Problem, Problems, misspelling};

const FILE: &str = ".env";

impl Config {
    /// Reads the environment and `.env`, and changes neither.
    pub fn load() -> Result<Self, Problems> {
        let text = |part: OsString| part.to_string_lossy().into_owned();
        let real = env::vars_os().map(|(name, value)| (text(name), text(value)));
        load_from(Path::new(FILE), &real.collect())
    }
}

/// The real environment wins, even with an empty value: that is how a line of the file is switched off.
pub(super) fn load_from(path: &Path, real: &HashMap<String, String>) -> Result<Config, Problems> {
    let (file, mut list) = read_file(path);
    let misspelt = misspelling::among(real.keys().chain(file.keys()));
    match Config::from_lookup(|name| real.get(name).or_else(|| file.get(name)).cloned()) {
        Ok(config) if list.is_empty() => Ok(Config { misspelt, ..config }),
        Ok(_) => Err(Problems { list, misspelt }),
        Err(more) => {
            list.extend(more.list);
            Err(Problems { list, misspelt })
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
