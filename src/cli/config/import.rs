//! Import of a file in the format of `.env` into the stored settings.

use std::path::Path;

use anyhow::{Context, bail};

use super::super::print_text;
use super::edit::apply_at_shell;
use crate::config::{EnvFile, SettingNameError, find_setting, read_env_file};
use crate::settings::change::SettingsChange;

pub(super) fn import_file(path: &Path) -> anyhow::Result<()> {
    std::fs::metadata(path).with_context(|| format!("read {}", path.display()))?;
    let file = read_env_file(path);
    if !file.problems().is_empty() {
        let problems = file.problems().iter();
        let lines = problems.map(|problem| format!("\n  {}: {}", problem.location(), problem.reason));
        bail!("import {}:{}", path.display(), lines.collect::<String>());
    }
    let values = file.lines().iter().filter_map(|(line, name)| {
        let value = file.value_of_line(*line, name).filter(|value| !value.trim().is_empty())?;
        Some((find_setting(name).ok()?, value.into()))
    });
    apply_at_shell(SettingsChange { set: values.collect(), ..SettingsChange::default() })?;
    print_text(&describe_lines(&file, path))
}

/// Lists the lines to remove, which would override the stored settings even if they are empty, and the lines to keep.
fn describe_lines(file: &EnvFile, path: &Path) -> String {
    let list = |is_listed: fn(&Result<_, SettingNameError>) -> bool| -> String {
        let lines = file.lines().iter().filter(|(_, name)| is_listed(&find_setting(name)));
        lines.map(|(line, name)| format!("  line {line}: {name}\n")).collect()
    };
    let stored = list(Result::is_ok);
    let staying = list(|name| matches!(name, Err(SettingNameError::EnvironmentOnly(_))));
    let unknown = list(|name| matches!(name, Err(SettingNameError::Unknown(_))));
    let path = path.display();
    let sections = [
        (format!("Remove from {path}, because these lines override the stored settings:\n"), stored),
        (format!("Keep in {path}, because these settings cannot be stored:\n"), staying),
        ("Not imported, because there is no such setting:\n".to_owned(), unknown),
    ];
    let sections = sections.into_iter().filter(|(_, lines)| !lines.is_empty());
    sections.map(|(title, lines)| title + &lines).collect()
}
