//! Schema that a tool presents to the model, and validation of the arguments that the model writes. Arguments are
//! repaired if their meaning is clear. Otherwise they are refused with the name of the field and the expected value.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::ToolError;
use super::approval::ApprovedCall;
use crate::conversation::transcript::{CallFailure, FailureCode, ToolArguments};

/// Builds the JSON Schema of `Args` without the parts that a model does not need. The doc comments are its
/// descriptions.
pub fn argument_schema<Args: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<Args>().to_value();
    strip_unused_keywords(&mut schema);
    if let Some(map) = schema.as_object_mut() {
        // Some model servers refuse an object schema that lists no properties at all.
        map.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// Adds a choice among `names` to the property `instance` of the object at `pointer`. With one name there is nothing to
/// choose, so the property is removed. An id was shown together with its instance, so the names are omitted next to an
/// id.
pub fn offer_instances(schema: &mut Value, pointer: &str, names: &[&str]) {
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

/// Parses arguments by the schema that the model received. Arguments that are not in the schema are dropped.
pub fn parse_arguments<Args: DeserializeOwned>(
    tool: &str,
    schema: &Value,
    arguments: &ToolArguments,
) -> Result<Args, CallFailure> {
    let map = match arguments {
        ToolArguments::Object(map) => map.clone(),
        ToolArguments::Malformed(_) => return Err(BadArgument::not_an_object().into()),
    };
    let repaired = repair_object(schema, map, tool)?;
    serde_json::from_value(repaired).map_err(|error| {
        tracing::warn!(tool, %error, "failed to parse arguments that match the schema");
        BadArgument::not_an_object().into()
    })
}

/// Returns the arguments of a call that is approved to run with them.
pub fn approved_arguments(call: &ApprovedCall) -> Result<&ToolArguments, ToolError> {
    call.arguments()
        .ok_or_else(|| ToolError::Fatal(anyhow::anyhow!("run on an item a tool that takes arguments")))
}

/// Error for an argument that cannot be used, described so that the model can correct it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadArgument {
    pub field: String,
    pub expected: String,
    pub hint: String,
}

impl BadArgument {
    fn not_an_object() -> Self {
        Self {
            field: "arguments".to_owned(),
            expected: "one JSON object".to_owned(),
            hint: "Call the tool again with the fields of its schema.".to_owned(),
        }
    }

    fn from_schema(schema: &Value, field: &str) -> Self {
        Self {
            field: field.to_owned(),
            expected: describe_expected(schema),
            hint: schema["description"].as_str().unwrap_or_default().to_owned(),
        }
    }
}

impl From<BadArgument> for CallFailure {
    fn from(bad: BadArgument) -> Self {
        let mut more = json!({ "field": bad.field, "expected": bad.expected });
        if !bad.hint.is_empty() {
            more["hint"] = json!(bad.hint);
        }
        Self::new(FailureCode::BadArguments, more, None)
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

fn repair_value(schema: &Value, value: Value, field: &str) -> Result<Value, BadArgument> {
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices
            .iter()
            .filter(|choice| choice["type"] != "null")
            // A choice that does not fit is not an error while another choice may fit.
            .find_map(|choice| repair_value(choice, value.clone(), field).ok())
            .ok_or_else(|| BadArgument::from_schema(schema, field));
    }
    let repaired = match schema_type(schema) {
        "object" => match decode_json_text(value) {
            Value::Object(map) => return repair_object(schema, map, field),
            _ => None,
        },
        "array" => return repair_list(schema, value, field),
        "integer" => repair_integer(&value).filter(|number| in_range(schema, *number)).map(Value::from),
        "boolean" => repair_boolean(&value),
        _ => repair_text(schema, &value),
    };
    repaired.ok_or_else(|| BadArgument::from_schema(schema, field))
}

fn repair_object(schema: &Value, mut map: Map<String, Value>, field: &str) -> Result<Value, BadArgument> {
    let mut repaired = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let required = schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
        match map.remove(name) {
            None | Some(Value::Null) if required => return Err(BadArgument::from_schema(property, name)),
            None | Some(Value::Null) => {}
            // Some models fill in fields for which they have no value.
            Some(Value::String(text)) if !required && text.trim().is_empty() => {}
            Some(value) => {
                repaired.insert(name.clone(), repair_value(property, value, name)?);
            }
        }
    }
    if !map.is_empty() {
        let names: Vec<&String> = map.keys().collect();
        tracing::debug!(field, ?names, "dropped arguments that are not in the schema");
    }
    Ok(Value::Object(repaired))
}

fn repair_list(schema: &Value, value: Value, field: &str) -> Result<Value, BadArgument> {
    let values = match decode_json_text(value) {
        Value::Array(values) => values,
        // `1, 2` is a list without its brackets. Any other text is a single item.
        Value::String(text) => {
            serde_json::from_str(&format!("[{text}]")).unwrap_or_else(|_| vec![Value::String(text)])
        }
        single => vec![single],
    };
    let repaired = values
        .into_iter()
        .map(|value| repair_value(&schema["items"], value, field))
        .collect::<Result<Vec<_>, _>>()?;
    let length = repaired.len() as u64;
    let fits = schema["minItems"].as_u64().is_none_or(|min| length >= min)
        && schema["maxItems"].as_u64().is_none_or(|max| length <= max);
    if fits { Ok(Value::Array(repaired)) } else { Err(BadArgument::from_schema(schema, field)) }
}

/// Decodes a list or an object that was written as text.
fn decode_json_text(value: Value) -> Value {
    let Value::String(text) = &value else {
        return value;
    };
    match serde_json::from_str(text) {
        Ok(inner @ (Value::Array(_) | Value::Object(_))) => inner,
        Ok(_) | Err(_) => value,
    }
}

fn repair_integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15)?;
            Some(float as i64)
        }),
        // Text that is not a number gets the same refusal as any other wrong type.
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn in_range(schema: &Value, number: i64) -> bool {
    schema["minimum"].as_i64().is_none_or(|min| number >= min)
        && schema["maximum"].as_i64().is_none_or(|max| number <= max)
}

fn repair_boolean(value: &Value) -> Option<Value> {
    match value {
        Value::Bool(_) => Some(value.clone()),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(json!(true)),
            "false" => Some(json!(false)),
            _ => None,
        },
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn repair_text(schema: &Value, value: &Value) -> Option<Value> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    if let Some(words) = schema["enum"].as_array() {
        return words
            .iter()
            .find(|word| word.as_str().is_some_and(|word| word.eq_ignore_ascii_case(&text)))
            .cloned();
    }
    let long_enough = schema["minLength"].as_u64().is_none_or(|min| text.chars().count() as u64 >= min);
    long_enough.then_some(Value::String(text))
}

fn schema_type(schema: &Value) -> &str {
    match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        name => name.as_str(),
    }
    .unwrap_or("string")
}

fn describe_expected(schema: &Value) -> String {
    if let Some(choices) = schema["anyOf"].as_array() {
        let choices: Vec<String> =
            choices.iter().filter(|choice| choice["type"] != "null").map(describe_expected).collect();
        return choices.join(" or ");
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", words.join(", "));
    }
    match schema_type(schema) {
        "integer" => match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
            (Some(min), Some(max)) => format!("integer from {min} to {max}"),
            _ => "integer".to_owned(),
        },
        "array" => match schema["maxItems"].as_u64() {
            Some(max) => format!("list of at most {max}"),
            None => format!("list of {}", describe_expected(&schema["items"])),
        },
        "boolean" => "true or false".to_owned(),
        "object" => "object".to_owned(),
        _ => "text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
    use proptest::sample::Index;
    use serde::Deserialize;

    use super::*;
    use crate::app::PicturePolicy;
    use crate::tools::library::ArrInstances;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Probe {
        /// The number that search_media gave.
        tmdb: i64,
        /// Name of a quality profile.
        quality: Option<String>,
        /// How many days.
        #[schemars(range(min = 1, max = 60))]
        days: Option<u32>,
        seasons: Option<Seasons>,
        #[schemars(length(max = 2))]
        items: Option<Vec<Item>>,
        delete_files: Option<bool>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Seasons {
        Named(Named),
        Numbers(Vec<u32>),
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Named {
        All,
        Latest,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Item {
        id: i64,
    }

    const PROBE: Probe =
        Probe { tmdb: 603, quality: None, days: None, seasons: None, items: None, delete_files: None };

    #[track_caller]
    fn check(written: Value, outcome: &Result<Probe, Value>) {
        let read =
            parse_arguments::<Probe>("probe", &argument_schema::<Probe>(), &ToolArguments::parse(written));
        assert_eq!(&read.map_err(|failure| failure.for_model), outcome);
    }

    fn bad(field: &str, expected: &str, hint: &str) -> Result<Probe, Value> {
        let mut json = json!({ "error": "bad_arguments", "field": field, "expected": expected });
        if !hint.is_empty() {
            json["hint"] = json!(hint);
        }
        Err(json)
    }

    #[test]
    fn a_number_may_be_written_as_text_or_as_a_float() {
        for written in [json!({"tmdb": 603}), json!({"tmdb": " 603 "}), json!({"tmdb": 603.0})] {
            check(written, &Ok(PROBE));
        }
    }

    #[test]
    fn null_is_none_and_unknown_arguments_are_dropped() {
        check(json!({"tmdb": 603, "quality": null, "user_confirmed": true}), &Ok(PROBE));
    }

    #[test]
    fn what_was_encoded_twice_is_read() {
        check(json!(r#""{\"tmdb\": 603}""#), &Ok(PROBE));
        let items = Some(vec![Item { id: 7 }, Item { id: 8 }]);
        check(json!({"tmdb": 603, "items": r#"[{"id":7},"{\"id\":\"8\"}"]"#}), &Ok(Probe { items, ..PROBE }));
    }

    #[test]
    fn a_single_item_is_a_list_of_one() {
        check(
            json!({"tmdb": 603, "items": {"id": 7}}),
            &Ok(Probe { items: Some(vec![Item { id: 7 }]), ..PROBE }),
        );
    }

    #[test]
    fn a_choice_of_words_or_numbers_takes_either() {
        for (written, seasons) in [
            (json!("ALL"), Seasons::Named(Named::All)),
            (json!([1, "2"]), Seasons::Numbers(vec![1, 2])),
            (json!("1, 2"), Seasons::Numbers(vec![1, 2])),
            (json!(3), Seasons::Numbers(vec![3])),
        ] {
            check(json!({"tmdb": 603, "seasons": written}), &Ok(Probe { seasons: Some(seasons), ..PROBE }));
        }
        check(
            json!({"tmdb": 603, "seasons": "the good ones"}),
            &bad("seasons", "one of all, latest or list of integer", ""),
        );
    }

    #[test]
    fn text_and_truth_are_taken_as_meant() {
        let probe = Probe { quality: Some("1080".to_owned()), delete_files: Some(true), ..PROBE };
        check(json!({"tmdb": 603, "quality": 1080, "delete_files": "True"}), &Ok(probe));
        check(json!({"tmdb": 603, "delete_files": "maybe"}), &bad("delete_files", "true or false", ""));
    }

    #[test]
    fn a_refusal_names_the_field_and_what_belongs_there() {
        let tmdb = || bad("tmdb", "integer", "The number that search_media gave.");
        check(json!({"tmdb": "six"}), &tmdb());
        check(json!({}), &tmdb());
        check(json!({"tmdb": 603, "days": 90}), &bad("days", "integer from 1 to 60", "How many days."));
        check(
            json!({"tmdb": 603, "items": [{"id": 1}, {"id": 2}, {"id": 3}]}),
            &bad("items", "list of at most 2", ""),
        );
        check(
            json!(r#"{"tmdb": "six"#),
            &bad("arguments", "one JSON object", "Call the tool again with the fields of its schema."),
        );
    }

    #[test]
    fn a_schema_carries_no_noise() {
        let text = argument_schema::<Probe>().to_string();
        for noise in ["$schema", "$ref", "$defs", "\"title\"", "\"format\"", "\"default\""] {
            assert!(!text.contains(noise), "{noise} in {text}");
        }
    }

    #[test]
    fn one_instance_is_no_choice() {
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

    /// Generates values of any shape, with names of the probe's fields among the others.
    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            // Multiples of 0.25, because parsing JSON may round a longer last digit.
            any::<i32>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
            any::<String>().prop_map(Value::from),
            prop_oneof![Just(" 7 "), Just("[1, \"2\"]"), Just("{\"id\":\"8\"}"), Just("latest"), Just("1,2")]
                .prop_map(Value::from),
        ];
        let name = prop_oneof![
            Just("tmdb"),
            Just("quality"),
            Just("days"),
            Just("seasons"),
            Just("items"),
            Just("id"),
            Just("delete_files"),
            Just("other"),
        ];
        leaf.prop_recursive(3, 24, 6, move |inner| {
            let map = proptest::collection::vec((name.clone(), inner.clone()), 0..6);
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(Value::from),
                map.prop_map(|fields| {
                    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
                }),
            ]
        })
    }

    /// Generates plausible values for a field of some tool.
    fn likely() -> impl Strategy<Value = Value> {
        let values = [
            json!("movie"),
            json!("series"),
            json!("radarr"),
            json!("4K"),
            json!("all"),
            json!("latest"),
            json!("Dune (2021)"),
            json!(7),
            json!("7"),
            json!(7.0),
            json!([1, 2]),
            json!("1, 2"),
            json!(["S02E03"]),
            json!("S02E03"),
            json!(true),
            json!("True"),
            json!([{ "type": "movie", "id": 7 }]),
            json!({ "type": "series", "id": "7" }),
            json!(""),
            json!(null),
        ];
        proptest::sample::select(values.to_vec())
    }

    /// Returns the simplest value that a schema describes.
    fn fitting(schema: &Value) -> Value {
        if let Some(choices) = ["anyOf", "oneOf"].iter().find_map(|name| schema[*name].as_array()) {
            return fitting(&choices[0]);
        }
        match schema_type(schema) {
            "object" => {
                let fields = schema["properties"].as_object().into_iter().flatten();
                Value::Object(fields.map(|(name, field)| (name.clone(), fitting(field))).collect())
            }
            "array" => json!([fitting(&schema["items"])]),
            "integer" => json!(7),
            "boolean" => json!(true),
            _ => schema["enum"].get(0).cloned().unwrap_or_else(|| json!("Dune")),
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_the_same_encoded_once_more_and_as_it_was_repaired(
            tmdb in prop_oneof![Just(json!(603)), anything()],
            rest in anything(),
        ) {
            let mut written = rest.as_object().cloned().unwrap_or_default();
            written.insert("tmdb".to_owned(), tmdb);
            let schema = argument_schema::<Probe>();
            let probe = |arguments: &ToolArguments| parse_arguments::<Probe>("probe", &schema, arguments);
            let arguments = ToolArguments::Object(written);
            let outcome = probe(&arguments);
            let ToolArguments::Object(map) = &arguments else { unreachable!() };
            assert_eq!(probe(&ToolArguments::parse(json!(json!(map).to_string()))), outcome);
            if let Ok(repaired) = parse_arguments::<Map<String, Value>>("probe", &schema, &arguments) {
                let repaired = ToolArguments::Object(repaired);
                assert_eq!(probe(&repaired), outcome);
                let again = parse_arguments::<Map<String, Value>>("probe", &schema, &repaired);
                assert_eq!(again.map(ToolArguments::Object), Ok(repaired));
            }
        }

        #[test]
        fn every_tool_reads_arguments_the_same_however_often_encoded_beside_unknown_ones_and_repaired(
            which: Index,
            changes in proptest::collection::vec((any::<Index>(), prop_oneof![likely(), anything()]), 0..4),
            left_out in proptest::collection::vec(any::<Index>(), 0..4),
        ) {
            let tools = crate::app::all_tools(&Arc::new(ArrInstances::default()), PicturePolicy::Sent);
            let tool = which.get(&tools);
            let spec = tool.spec();
            let schema: Value = serde_json::from_str(spec.parameters.text()).unwrap();
            let Value::Object(mut written) = fitting(&schema) else { unreachable!() };
            let names: Vec<String> = written.keys().cloned().collect();
            if !names.is_empty() {
                for (name, value) in changes {
                    written.insert(name.get(&names).clone(), value);
                }
                left_out.iter().for_each(|name| drop(written.remove(name.get(&names))));
            }
            let outcome = |arguments: &ToolArguments| tool.check_arguments(arguments).map_err(|failure| {
                assert_eq!(failure.for_model["error"], json!(failure.code), "the model reads the code");
                failure.code
            });
            let arguments = ToolArguments::Object(written.clone());
            let uses = outcome(&arguments);
            assert_eq!(outcome(&ToolArguments::parse(json!(json!(written).to_string()))), uses, "encoded once more");
            if let Ok(repaired) = parse_arguments::<Map<String, Value>>(spec.name, &schema, &arguments) {
                let repaired = ToolArguments::Object(repaired);
                assert_eq!(outcome(&repaired), uses, "as it was repaired");
                let again = parse_arguments::<Map<String, Value>>(spec.name, &schema, &repaired);
                assert_eq!(again.map(ToolArguments::Object), Ok(repaired), "repaired once more");
            }
            written.insert("user_confirmed_it_all".to_owned(), json!(true));
            assert_eq!(outcome(&ToolArguments::Object(written)), uses, "beside what no schema knows");
        }
    }
}
