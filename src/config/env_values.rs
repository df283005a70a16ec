//! Values of a `.env` file, with their lines and problems.

use std::collections::HashMap;

use super::env_file::{self, DollarForm, EnvAssignment, MalformedLine};
use super::variables::{self, Variable};
use super::{ConfigProblem, ExpandedValue, ValueSource};

/// Name of the file, and an example line.
pub(super) const ENV_FILE: (&str, &str) = (".env", "LLM_MODEL='quote what has $, # or spaces'");
const REFERENCE_PROBLEM: &str = "refers to another variable with $, which is not expanded; write the value itself, or put it in \
                         single quotes if the $ belongs to it";

/// Parsed `.env` file.
#[derive(Clone, Default)]
pub struct EnvFile {
    /// Values with the numbers of their lines. The first line of a variable wins.
    pub(super) values: HashMap<String, (usize, String)>,
    /// Names of all assignments with their lines, also of those that repeat a variable.
    lines: Vec<(usize, String)>,
    pub(super) problems: Vec<ConfigProblem>,
    pub(super) expanded_values: Vec<ExpandedValue>,
}

impl EnvFile {
    /// Parses the text of a file. Values that the environment overrides are not checked.
    pub(super) fn parse(text: &str, environment: &HashMap<String, String>) -> Self {
        let mut file = Self::default();
        for (line, parsed) in env_file::parse(text) {
            match parsed {
                Ok(assignment) => file.add_assignment(line, assignment, environment),
                Err(malformed) => file.problems.push(malformed_line_problem(line, &malformed)),
            }
        }
        file
    }

    pub(super) fn from_problem(problem: ConfigProblem) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }

    /// Returns the problems of lines that cannot be used.
    pub fn problems(&self) -> &[ConfigProblem] {
        &self.problems
    }

    /// Returns the line and name of each assignment, in the order of the file.
    pub fn lines(&self) -> &[(usize, String)] {
        &self.lines
    }

    /// Returns the value that this line gives a variable. A repetition of the variable gives none.
    pub fn value_of_line(&self, line: usize, name: &str) -> Option<&str> {
        self.values.get(name).filter(|(first, _)| *first == line).map(|(_, value)| value.as_str())
    }

    fn add_assignment(
        &mut self,
        line: usize,
        assignment: EnvAssignment<'_>,
        environment: &HashMap<String, String>,
    ) {
        let EnvAssignment { name, value, dollars } = assignment;
        let is_effective = !self.values.contains_key(name) && !environment.contains_key(name);
        let is_set = |name: &str| environment.contains_key(name) || self.values.contains_key(name);
        let has_reference =
            dollars.iter().any(|dollar| dollar.form == DollarForm::Braced || is_set(dollar.name));
        if let Some(variable) = variables::find_variable(name).filter(|_| is_effective && !dollars.is_empty())
        {
            if has_reference {
                // An unexpanded reference such as `$TOKEN` would be a guessable secret.
                let Variable { name, example, .. } = variable;
                self.problems.push(line_problem(line, name, REFERENCE_PROBLEM, example));
            } else {
                self.expanded_values.push(ExpandedValue { variable: variable.name, line });
            }
        }
        self.lines.push((line, name.to_owned()));
        self.values.entry(name.to_owned()).or_insert((line, value));
    }
}

/// Creates the problem of a line that cannot be parsed. It does not quote the line, which may contain a secret.
fn malformed_line_problem(line: usize, malformed: &MalformedLine<'_>) -> ConfigProblem {
    let variable = malformed.name.and_then(variables::find_variable);
    let (name, example) = variable.map_or(ENV_FILE, |variable| (variable.name, variable.example));
    line_problem(line, name, malformed.reason, example)
}

fn line_problem(line: usize, variable: &'static str, reason: &str, example: &'static str) -> ConfigProblem {
    ConfigProblem { variable, source: ValueSource::EnvFile(line), reason: reason.to_owned(), example }
}
