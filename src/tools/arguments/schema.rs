//! JSON Schema of the arguments of a tool, as the model gets it.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Builds the JSON Schema of `Args` without the parts that a model does not need. The doc comments of the fields are
/// their descriptions. A field `instance` selects one of `instance_names`.
pub fn argument_schema<Args: JsonSchema>(instance_names: &[&str]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<Args>().to_value();
    strip_unused_keywords(&mut schema);
    if let Some(map) = schema.as_object_mut() {
        // The doc comment of a tool is for people. The tool has a description for the model.
        map.remove("description");
        // Some model servers refuse an object schema that lists no properties at all.
        map.entry("properties").or_insert_with(|| json!({}));
    }
    for object in ["", "/properties/items/items"] {
        offer_instances(&mut schema, object, instance_names);
    }
    schema
}

/// Adds a choice among `names` to the property `instance` of the object at `pointer`. With one name there is nothing to
/// choose, so the property is removed. An id was shown together with its instance, so the names are omitted next to an
/// id.
fn offer_instances(schema: &mut Value, pointer: &str, names: &[&str]) {
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
            // A property may be called `title`. Only a `title` that holds text is noise.
            if map.get("title").is_some_and(Value::is_string) {
                map.remove("title");
            }
            map.remove("format");
            map.remove("default");
            if map.get("minimum").is_some_and(|least| *least == 0) {
                map.remove("minimum");
            }
            // Properties that are not in the schema are dropped, and nullable ones may be left out as well.
            map.remove("additionalProperties");
            if let Some(kind) = map.get_mut("type")
                && let Some(only) =
                    kind.as_array().and_then(|names| names.iter().find(|name| *name != "null"))
            {
                *kind = only.clone();
            }
            if let Some(Value::Array(words)) = map.get_mut("enum") {
                words.retain(|word| !word.is_null());
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
        let with = |names: &[&str]| {
            let mut schema = json!({"properties": {"instance": {"type": "string"}}});
            offer_instances(&mut schema, "", names);
            schema
        };
        assert_eq!(with(&["radarr"]), json!({"properties": {}}));
        assert_eq!(
            with(&["radarr", "radarr-4k"]),
            json!({"properties": {"instance": {"type": "string", "enum": ["radarr", "radarr-4k"]}}})
        );
    }
}
