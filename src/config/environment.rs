//! Reads the environment and the `.env` file of the working directory.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::env_values::{ENV_FILE, EnvFile};
use super::{ConfigProblem, ConfigSources, ValueSource};

impl ConfigSources {
    /// Reads the environment and `.env`. Problems of the file are reported together with those of the values.
    pub fn read() -> Self {
        let to_text = |value: OsString| value.to_string_lossy().into_owned();
        let environment = env::vars_os().map(|(name, value)| (to_text(name), to_text(value)));
        read_from(Path::new(ENV_FILE.0), environment.collect())
    }
}

/// Returns the key with which `dialarr mcp` connects an agent. It is not part of the configuration of the service.
pub fn agent_key() -> Option<String> {
    env::var("DIALARR_AGENT_KEY").ok().filter(|key| !key.trim().is_empty())
}

pub(super) fn read_from(path: &Path, environment: HashMap<String, String>) -> ConfigSources {
    let file = read_values(path, &environment);
    ConfigSources::new(environment, file)
}

/// Reads a file in the format of `.env`, of which every value counts.
pub fn read_env_file(path: &Path) -> EnvFile {
    read_values(path, &HashMap::new())
}

fn read_values(path: &Path, environment: &HashMap<String, String>) -> EnvFile {
    match read_text(path) {
        Ok(text) => EnvFile::parse(&text, environment),
        Err(problem) => EnvFile::from_problem(problem),
    }
}

/// Returns the text of the file, which is empty if the file does not exist.
fn read_text(path: &Path) -> Result<String, ConfigProblem> {
    let (variable, example) = ENV_FILE;
    let problem = |source, reason| ConfigProblem { variable, source, reason, example };
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(problem(ValueSource::Default, format!("cannot be read ({error})"))),
    };
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        problem(ValueSource::EnvFile(line), "not UTF-8".to_owned())
    })
}
