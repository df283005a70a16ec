//! JSON Schema of the arguments of a tool, in the form that the model gets.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::conversation::transcript::UserRights;

/// Builds the JSON Schema of `Args` without keywords that a model does not need. The doc comments of fields become
/// their descriptions. A field `instance` selects one of `instance_names`.
pub fn argument_schema<Args: JsonSchema>(instance_names: &[&str]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<Args>().to_value();
    strip_unused_keywords(&mut schema);
    if let Some(map) = schema.as_object_mut() {
        // The doc comment of a tool is for maintainers. The model gets the tool's own description.
        map.remove("description");
        // Some model servers reject an object schema without properties.
        map.entry("properties").or_insert_with(|| json!({}));
    }
    for pointer in ["", "/properties/items/items"] {
        set_instance_choices(&mut schema, pointer, instance_names);
    }
    schema
}

/// Removes arguments from a schema. Parsing drops them from a call.
pub fn without_arguments(mut schema: Value, names: &[&str]) -> Value {
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.retain(|name, _| !names.contains(&name.as_str()));
    }
    schema
}

/// Whether the model may select an instance. A required instance is always selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceChoice {
    Offered,
    /// Calls use the ordinary instance.
    Ordinary,
}

impl InstanceChoice {
    pub fn from_rights(rights: UserRights) -> Self {
        if rights.may_use_four_k() { Self::Offered } else { Self::Ordinary }
    }
}

/// Choices that a tool offers to a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedChoices {
    pub instance: InstanceChoice,
    /// Values of the property `quality`. The list is empty if the tool has no such property, or no profile is known yet.
    pub quality_names: Vec<String>,
}

/// Builds the schema that the model gets: without the limits that parsing checks, without the choice of an instance if
/// the user has none, and with the choices of the property `quality`, if any are known.
pub fn offered_schema(schema: &Value, choices: &OfferedChoices) -> Value {
    let mut offered = schema.clone();
    strip_keywords(&mut offered, &["minLength", "minItems", "maxItems", "minimum", "maximum"]);
    if choices.instance == InstanceChoice::Ordinary {
        for pointer in ["", "/properties/items/items"] {
            remove_optional_instance(&mut offered, pointer);
        }
    }
    let quality_names = &choices.quality_names;
    if let Some(quality) = offered.pointer_mut("/properties/quality").filter(|_| !quality_names.is_empty()) {
        quality["enum"] = json!(quality_names);
    }
    offered
}

fn strip_keywords(schema: &mut Value, keywords: &[&str]) {
    match schema {
        Value::Object(map) => {
            // A property may have the name of a keyword. Only the keyword has a number.
            map.retain(|name, value| !(keywords.contains(&name.as_str()) && value.is_number()));
            map.values_mut().for_each(|value| strip_keywords(value, keywords));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| strip_keywords(value, keywords)),
        _ => {}
    }
}

fn remove_optional_instance(schema: &mut Value, pointer: &str) {
    let Some(object) = schema.pointer_mut(pointer) else { return };
    let is_required = object["required"].as_array().is_some_and(|names| names.contains(&json!("instance")));
    if let Some(properties) = object["properties"].as_object_mut().filter(|_| !is_required) {
        properties.remove("instance");
    }
}

/// Sets the choices of the property `instance` of the object at `pointer` to `names`, or removes the property if there
/// is no choice. Next to an id, the names are omitted, because the id was shown together with its instance.
fn set_instance_choices(schema: &mut Value, pointer: &str, names: &[&str]) {
    let Some(properties) =
        schema.pointer_mut(pointer).and_then(|object| object["properties"].as_object_mut())
    else {
        return;
    };
    if names.len() < 2 {
        properties.remove("instance");
    } else if !properties.contains_key("id")
        && let Some(instance) = properties.get_mut("instance")
    {
        instance["enum"] = names.iter().map(|name| json!(name)).collect();
    }
}

fn strip_unused_keywords(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            // A property may be named `title`. Only a string `title` is a keyword.
            if map.get("title").is_some_and(Value::is_string) {
                map.remove("title");
            }
            map.remove("format");
            map.remove("default");
            if map.get("minimum").is_some_and(|minimum| *minimum == 0) {
                map.remove("minimum");
            }
            // Parsing drops properties that are not in the schema, and nullable properties may be omitted.
            map.remove("additionalProperties");
            if let Some(kind) = map.get_mut("type")
                && let Some(only) =
                    kind.as_array().and_then(|names| names.iter().find(|name| *name != "null"))
            {
                *kind = only.clone();
            }
            if let Some(Value::Array(values)) = map.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            map.values_mut().for_each(strip_unused_keywords);
            if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
                *choices = choices.drain(..).flat_map(flatten_choice).collect();
                choices.retain(|choice| choice["type"] != "null");
            }
        }
        Value::Array(values) => values.iter_mut().for_each(strip_unused_keywords),
        _ => {}
    }
}

/// Flattens a choice that is nested in another choice.
fn flatten_choice(mut choice: Value) -> Vec<Value> {
    match choice.get_mut("anyOf").map(Value::take) {
        Some(Value::Array(inner)) => inner,
        Some(_) | None => vec![choice],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_instance_is_not_offered_as_a_choice() {
        let schema_with = |names: &[&str]| {
            let mut schema = json!({"properties": {"instance": {"type": "string"}}});
            set_instance_choices(&mut schema, "", names);
            schema
        };
        assert_eq!(schema_with(&["radarr"]), json!({"properties": {}}));
        assert_eq!(
            schema_with(&["radarr", "radarr-4k"]),
            json!({"properties": {"instance": {"type": "string", "enum": ["radarr", "radarr-4k"]}}})
        );
    }
}
