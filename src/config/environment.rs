//! Loads the configuration from the environment and the `.env` file of the working directory.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::env_file::{self, DollarForm, EnvAssignment, MalformedLine};
use super::variables::{self, Variable};
use super::{Config, ConfigProblem, ConfigProblems, ExpandedValue, misspelling};

const ENV_FILE: Variable = Variable { name: ".env", example: "LLM_MODEL='quote what has $, # or spaces'" };
const REFERENCE_PROBLEM: &str = "refers to another variable with $, which is not expanded; write the value itself, or put it in \
                         single quotes if the $ belongs to it";

impl Config {
    /// Loads the configuration from the environment and `.env`.
    pub fn load() -> Result<Self, ConfigProblems> {
        let to_text = |value: OsString| value.to_string_lossy().into_owned();
        let real = env::vars_os().map(|(name, value)| (to_text(name), to_text(value)));
        load_from(Path::new(ENV_FILE.name), &real.collect())
    }
}

/// Loads the configuration. The environment overrides the file, even with an empty value.
pub(super) fn load_from(path: &Path, real: &HashMap<String, String>) -> Result<Config, ConfigProblems> {
    let text = match read_file(path) {
        Ok(text) => text,
        Err(problem) => return Err(ConfigProblems { list: vec![problem], ..ConfigProblems::default() }),
    };
    let mut file = FileValues::default();
    for (line, parsed) in env_file::parse(&text) {
        match parsed {
            Ok(assignment) => file.add_assignment(line, assignment, real),
            Err(malformed) => file.problems.push(malformed_line_problem(line, &malformed)),
        }
    }
    let misspelled_names = misspelling::find_misspelled(real.keys().chain(file.values.keys()));
    let (mut list, expanded_values) = (file.problems, file.expanded_values);
    match Config::from_lookup(|name| real.get(name).or_else(|| Some(&file.values.get(name)?.1)).cloned()) {
        Ok(config) if list.is_empty() => Ok(Config { misspelled_names, expanded_values, ..config }),
        Ok(_) => Err(ConfigProblems { list, misspelled_names, expanded_values }),
        Err(problems) => {
            let line = |name: &str| file.values.get(name).filter(|_| !real.contains_key(name));
            let problems = problems.list.into_iter();
            list.extend(problems.map(|problem| ConfigProblem {
                line: line(problem.variable).map(|(line, _)| *line),
                ..problem
            }));
            Err(ConfigProblems { list, misspelled_names, expanded_values })
        }
    }
}

/// Returns the text of the file, which is empty if the file does not exist.
fn read_file(path: &Path) -> Result<String, ConfigProblem> {
    let problem =
        |line, reason| ConfigProblem { variable: ENV_FILE.name, line, reason, example: ENV_FILE.example };
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(problem(None, format!("cannot be read ({error})"))),
    };
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        problem(Some(line), "not UTF-8".to_owned())
    })
}

#[derive(Default)]
struct FileValues {
    /// Values with the numbers of their lines. The first line of a variable wins.
    values: HashMap<String, (usize, String)>,
    problems: Vec<ConfigProblem>,
    expanded_values: Vec<ExpandedValue>,
}

impl FileValues {
    fn add_assignment(&mut self, line: usize, assignment: EnvAssignment<'_>, real: &HashMap<String, String>) {
        let EnvAssignment { name, value, dollars } = assignment;
        let is_effective = !self.values.contains_key(name) && !real.contains_key(name);
        let is_set = |name: &str| real.contains_key(name) || self.values.contains_key(name);
        let has_reference =
            dollars.iter().any(|dollar| dollar.form == DollarForm::Braced || is_set(dollar.name));
        if let Some(variable) = variables::find_variable(name).filter(|_| is_effective && !dollars.is_empty())
        {
            if has_reference {
                // An unexpanded reference such as `$TOKEN` would be a guessable secret.
                let Variable { name, example } = variable;
                self.problems.push(ConfigProblem {
                    variable: name,
                    line: Some(line),
                    reason: REFERENCE_PROBLEM.to_owned(),
                    example,
                });
            } else {
                self.expanded_values.push(ExpandedValue { variable: variable.name, line });
            }
        }
        self.values.entry(name.to_owned()).or_insert((line, value));
    }
}

/// Creates the problem of a line that cannot be parsed. It does not quote the line, which may contain a secret.
fn malformed_line_problem(line: usize, malformed: &MalformedLine<'_>) -> ConfigProblem {
    let Variable { name, example } = malformed.name.and_then(variables::find_variable).unwrap_or(ENV_FILE);
    ConfigProblem { variable: name, line: Some(line), reason: malformed.reason.to_owned(), example }
}
