//! Sources of values: the real environment, else the `.env` file of the working directory.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::env_file::{self, DollarForm, EnvAssignment, MalformedLine};
use super::variables::{self, Variable};
use super::{Config, ConfigProblem, ConfigProblems, CutValue, misspelling};

const FILE: Variable = Variable { name: ".env", example: "LLM_MODEL='quote what has $, # or spaces'" };
const REFERENCE: &str = "names another variable with $, which is not replaced; write the value itself, or put it in \
                         single quotes if the $ belongs to it";

impl Config {
    /// Reads the environment and `.env`, without changing either.
    pub fn load() -> Result<Self, ConfigProblems> {
        let text = |part: OsString| part.to_string_lossy().into_owned();
        let real = env::vars_os().map(|(name, value)| (text(name), text(value)));
        load_from(Path::new(FILE.name), &real.collect())
    }
}

/// Loads the configuration. The real environment wins, even with an empty value: this is the way to switch off a line
/// of the file.
pub(super) fn load_from(path: &Path, real: &HashMap<String, String>) -> Result<Config, ConfigProblems> {
    let text = match read_file(path) {
        Ok(text) => text,
        Err(problem) => return Err(ConfigProblems { list: vec![problem], ..ConfigProblems::default() }),
    };
    let mut file = FileValues::default();
    for (line, parsed) in env_file::parse(&text) {
        match parsed {
            Ok(assignment) => file.take_assignment(line, assignment, real),
            Err(malformed) => file.problems.push(unreadable_line(line, &malformed)),
        }
    }
    let misspelt = misspelling::find_misspelled(real.keys().chain(file.values.keys()));
    let (mut list, cut) = (file.problems, file.cut);
    match Config::from_lookup(|name| real.get(name).or_else(|| Some(&file.values.get(name)?.1)).cloned()) {
        Ok(config) if list.is_empty() => Ok(Config { misspelt, cut, ..config }),
        Ok(_) => Err(ConfigProblems { list, misspelt, cut }),
        Err(more) => {
            let line = |name: &str| file.values.get(name).filter(|_| !real.contains_key(name));
            let more = more.list.into_iter();
            list.extend(
                more.map(|problem| ConfigProblem {
                    line: line(problem.variable).map(|set| set.0),
                    ..problem
                }),
            );
            Err(ConfigProblems { list, misspelt, cut })
        }
    }
}

/// Returns the text of the file, which is empty if the file does not exist.
fn read_file(path: &Path) -> Result<String, ConfigProblem> {
    let problem = |line, wrong| ConfigProblem { variable: FILE.name, line, wrong, example: FILE.example };
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
    /// Values, each with the line that sets it; the first line counts.
    values: HashMap<String, (usize, String)>,
    problems: Vec<ConfigProblem>,
    cut: Vec<CutValue>,
}

impl FileValues {
    fn take_assignment(
        &mut self,
        line: usize,
        assignment: EnvAssignment<'_>,
        real: &HashMap<String, String>,
    ) {
        let EnvAssignment { name, value, dollars } = assignment;
        let counts = !self.values.contains_key(name) && !real.contains_key(name);
        let is_set = |name: &str| real.contains_key(name) || self.values.contains_key(name);
        let refers = dollars.iter().any(|dollar| dollar.form == DollarForm::Braced || is_set(dollar.name));
        if let Some(variable) = variables::find_variable(name).filter(|_| counts && !dollars.is_empty()) {
            if refers {
                // A placeholder for a secret would be a secret that anyone can guess.
                let Variable { name, example } = variable;
                self.problems.push(ConfigProblem {
                    variable: name,
                    line: Some(line),
                    wrong: REFERENCE.to_owned(),
                    example,
                });
            } else {
                self.cut.push(CutValue { variable: variable.name, line });
            }
        }
        self.values.entry(name.to_owned()).or_insert((line, value));
    }
}

/// Builds the problem of a line that cannot be parsed. The problem does not quote the line, since the line may hold a
/// secret.
fn unreadable_line(line: usize, malformed: &MalformedLine<'_>) -> ConfigProblem {
    let Variable { name, example } = malformed.name.and_then(variables::find_variable).unwrap_or(FILE);
    ConfigProblem { variable: name, line: Some(line), wrong: malformed.wrong.to_owned(), example }
}
