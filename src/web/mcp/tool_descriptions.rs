//! Descriptions of the tools for agents, which have not read our prompt.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::conversation::transcript::{EffectLevel, ToolSpec};

/// Tool that reports the outcome of a call.
pub(super) const CHECK_TICKET: &str = "check_ticket";

/// Meaning of the fields that our prompt describes once for all tools.
const SHARED_FIELDS: [(&str, &str); 8] = [
    ("type", "movie or series"),
    ("id", "Id of a title in the library, as find_in_library shows it."),
    (
        "instance",
        "Name of the server that has the title, as results show it. Leave it out for the usual one.",
    ),
    ("season", "Season number; 0 stands for the specials."),
    ("tmdb", "TMDB id of a movie, as search_media shows it."),
    ("tvdb", "TheTVDB id of a series, as search_media shows it."),
    ("quality", "Name of a quality profile. Leave it out for the usual one."),
    ("download_id", "Id of a download, as check_status shows it."),
];

const ASKS_PERSON: &str = " It deletes nothing by itself: the person is asked by text, and the result is a ticket for \
    check_ticket. Call it once.";

/// Descriptions of the tools whose own description only makes sense to the model of the household.
const DESCRIPTIONS: [(&str, &str); 5] = [
    (
        "remove_media",
        "Ask the person you act for to delete titles of the library, or the files of one season. For a bad copy use \
         replace_copy.",
    ),
    ("remove_download", "Ask the person you act for to cancel a download. Not for files on disk."),
    (
        "replace_copy",
        "Ask the person you act for to delete a bad copy on disk and get another. For what is missing use get_more.",
    ),
    ("recommend", "Suggest movies that the library lacks."),
    (
        "tell_me_when_ready",
        "Text the person you act for when a title is ready, or stop that. Adding a title does it by itself.",
    ),
];

/// Describes a tool of the household.
pub(super) fn describe_tool(spec: &ToolSpec) -> Tool {
    let own = DESCRIPTIONS.iter().find(|(name, _)| *name == spec.name).map(|(_, own)| *own);
    let description = own.unwrap_or(spec.description);
    let description = match spec.effect_level {
        EffectLevel::Destructive => format!("{description}{ASKS_PERSON}"),
        EffectLevel::Read | EffectLevel::Write => description.to_owned(),
    };
    let annotations = ToolAnnotations::new()
        .read_only(spec.effect_level == EffectLevel::Read)
        .destructive(spec.effect_level == EffectLevel::Destructive)
        .idempotent(spec.effect_level == EffectLevel::Read)
        .open_world(false);
    let schema = serde_json::from_str(spec.parameters.text()).unwrap_or_else(|_| json!({ "type": "object" }));
    Tool::new(spec.name, description, describe_fields(schema)).annotate(annotations)
}

pub(super) fn describe_check_ticket() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { "ticket": { "type": "string", "description": "Ticket of an earlier call of yours." } },
        "required": ["ticket"],
        "additionalProperties": false,
    });
    let description = "Report the outcome of an earlier call that returned a ticket: waiting, asked, running, done, \
        refused, expired, closed, canceled, dropped or failed.";
    let annotations =
        ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    Tool::new(CHECK_TICKET, description, describe_fields(schema)).annotate(annotations)
}

/// Adds the meaning of shared fields, at any depth, that have no description of their own.
fn describe_fields(mut schema: Value) -> Arc<JsonObject> {
    add_descriptions(&mut schema);
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

fn add_descriptions(schema: &mut Value) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, text) in SHARED_FIELDS {
            if let Some(property) = properties.get_mut(name).and_then(Value::as_object_mut) {
                property.entry("description").or_insert_with(|| text.into());
            }
        }
        properties.values_mut().for_each(add_descriptions);
    }
    if let Some(items) = schema.get_mut("items") {
        add_descriptions(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_without_a_description_get_the_shared_one() {
        let schema = json!({ "properties": {
            "titles": { "type": "array", "items": { "properties": { "id": { "type": "integer" } } } },
            "season": { "type": "integer", "description": "own words" },
        } });
        let described = Value::Object((*describe_fields(schema)).clone());
        let id = &described["properties"]["titles"]["items"]["properties"]["id"];
        assert!(id["description"].as_str().unwrap().contains("find_in_library"));
        assert_eq!(described["properties"]["season"]["description"], "own words");
    }

    #[test]
    fn each_replaced_description_is_of_an_existing_tool() {
        let names = crate::tool_list::all_tool_names();
        for (name, _) in DESCRIPTIONS {
            assert!(names.contains(&name), "{name}");
        }
    }
}
