//! Model servers that the setup assistant knows.

use std::collections::BTreeMap;

use super::settings_form::removal_field;
use crate::config::ConfigSources;
use crate::config::variables::{LLM_API_KEY, LLM_BASE_URL, LLM_MODEL};

/// Preset without a model.
const NONE: &str = "none";
/// Preset of a server that is not in the list.
const OTHER: &str = "other";

/// Known model servers: id, name and base URL.
const SERVERS: [(&str, &str, &str); 4] = [
    ("openai", "OpenAI", "https://api.openai.com/v1"),
    ("openrouter", "OpenRouter", "https://openrouter.ai/api/v1"),
    ("ollama", "Ollama on this machine", "http://localhost:11434/v1"),
    ("lmstudio", "LM Studio on this machine", "http://localhost:1234/v1"),
];

/// Option of the list of model servers.
pub(super) struct PresetOption {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) is_selected: bool,
}

/// Lists the presets, with the one that the settings, or else the submitted form, describe.
pub(super) fn list_presets(sources: &ConfigSources, submitted: Option<&str>) -> Vec<PresetOption> {
    let url = sources.plain_text(LLM_BASE_URL);
    let of_url =
        |url: &str| SERVERS.iter().find(|(_, _, known)| *known == url.trim()).map_or(OTHER, |(id, ..)| id);
    let selected = submitted.unwrap_or_else(|| url.filter(|url| !url.is_empty()).map_or("openai", of_url));
    let servers = SERVERS.iter().map(|(id, name, _)| (*id, *name));
    let others = [(OTHER, "Another server"), (NONE, "None: only common requests are understood")];
    servers.chain(others).map(|(id, name)| PresetOption { id, name, is_selected: id == selected }).collect()
}

/// Fills in the fields that the chosen preset determines, and returns the preset. A typed URL is kept, and means another
/// server.
pub(super) fn apply_preset(
    fields: &mut BTreeMap<String, String>,
    sources: &ConfigSources,
) -> Option<&'static str> {
    let preset = fields.get("preset")?;
    if preset == NONE {
        let unset = [LLM_BASE_URL, LLM_MODEL, LLM_API_KEY];
        fields.extend(unset.map(|variable| (variable.name.to_owned(), String::new())));
        fields.insert(removal_field(LLM_API_KEY), "on".to_owned());
        return Some(NONE);
    }
    let Some((id, _, url)) = SERVERS.iter().find(|(id, ..)| id == preset) else { return Some(OTHER) };
    let current = sources.plain_text(LLM_BASE_URL).unwrap_or_default();
    let typed = fields.get(LLM_BASE_URL.name).map_or("", |typed| typed.trim());
    if ![*url, current.trim(), ""].contains(&typed) {
        return Some(OTHER);
    }
    fields.insert(LLM_BASE_URL.name.to_owned(), (*url).to_owned());
    Some(id)
}
