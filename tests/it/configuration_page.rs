//! Tables of variables in `docs/CONFIGURATION.md`, generated from the table of settings. `DIALARR_UPDATE_DOCS=1` writes
//! them.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use dialarr::config::{AllowedValues, Config, ConfigSources, DefaultValue, VARIABLES, Variable};

const START: &str = "<!-- variables: ";
const END: &str = "<!-- end -->";

fn page_path() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "docs/CONFIGURATION.md"].iter().collect()
}

/// Returns the variables that a word of a marker selects: one name, or all names that start with it if it ends with `_`.
fn select_variables(word: &str) -> Vec<&'static Variable> {
    let is_selected = |variable: &&Variable| {
        variable.name == word || word.ends_with('_') && variable.name.starts_with(word)
    };
    VARIABLES.iter().filter(is_selected).collect()
}

fn render_default(default: DefaultValue) -> String {
    match default {
        DefaultValue::Missing => "none".to_owned(),
        DefaultValue::Value(value) => format!("`{value}`"),
        DefaultValue::Described(phrase) => phrase.to_owned(),
    }
}

fn render_values(values: AllowedValues) -> String {
    let render_word = |(word, label): &(&str, &str)| match word == label {
        true => format!("`{word}`"),
        false => format!("`{word}` ({label})"),
    };
    let words: Vec<String> = values.words().iter().map(render_word).collect();
    match values {
        AllowedValues::Any => String::new(),
        AllowedValues::OneOf(_) => format!(" Values: {}", words.join(", ")),
        AllowedValues::AnyOf(_) => format!(" Values, separated by commas: {}", words.join(", ")),
    }
}

fn render_table(variables: &[&Variable]) -> String {
    let mut table = "| Variable | Default | Meaning |\n| --- | --- | --- |\n".to_owned();
    for variable in variables {
        let default = render_default(variable.default);
        let values = render_values(variable.values);
        writeln!(table, "| `{}` | {default} | {}{values} |", variable.name, variable.help).unwrap();
    }
    table
}

/// Replaces the table after each marker. Returns the page and the names of the variables in all tables.
fn render_page(page: &str) -> (String, Vec<&'static str>) {
    let mut rendered = String::new();
    let mut names = Vec::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(START) {
        let (words, after) = after.split_once(" -->").unwrap();
        let (_, after) = after.split_once(END).unwrap();
        let variables: Vec<&Variable> = words.split(' ').flat_map(select_variables).collect();
        names.extend(variables.iter().map(|variable| variable.name));
        write!(rendered, "{before}{START}{words} -->\n\n{}\n{END}", render_table(&variables)).unwrap();
        rest = after;
    }
    (rendered + rest, names)
}

#[test]
fn configuration_page_matches_the_table_of_settings() {
    let written = fs::read_to_string(page_path()).unwrap();
    let (rendered, _) = render_page(&written);
    if std::env::var_os("DIALARR_UPDATE_DOCS").is_some() {
        fs::write(page_path(), &rendered).unwrap();
        return;
    }
    for (written, rendered) in written.lines().zip(rendered.lines()) {
        assert_eq!(written, rendered, "DIALARR_UPDATE_DOCS=1 updates the page");
    }
    assert_eq!(written, rendered);
}

#[test]
fn configuration_page_lists_each_setting_once() {
    let (_, mut names) = render_page(&fs::read_to_string(page_path()).unwrap());
    let mut settings: Vec<&str> = VARIABLES.iter().map(|variable| variable.name).collect();
    names.sort_unstable();
    settings.sort_unstable();
    assert_eq!(names, settings);
}

#[test]
fn setting_a_variable_to_its_default_changes_nothing() {
    let unset = Config::from_sources(&ConfigSources::default()).unwrap();
    let mut checked = 0;
    for variable in VARIABLES {
        let DefaultValue::Value(value) = variable.default else { continue };
        let sources = ConfigSources::from_environment([(variable.name.to_owned(), value.to_owned())]);
        let set = Config::from_sources(&sources).unwrap();
        assert_eq!(format!("{set:?}"), format!("{unset:?}"), "{}", variable.name);
        checked += 1;
    }
    assert!(checked > 20, "{checked} defaults");
}
