//! Tests of the repair and rejection of arguments, with arbitrary values and for every tool.

use std::sync::Arc;

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::Index;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::parsing::parse_arguments;
use super::schema::argument_schema;
use crate::conversation::transcript::ToolArguments;
use crate::tool_list::PicturePolicy;
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
fn check(arguments: Value, expected: &Result<Probe, Value>) {
    let parsed =
        parse_arguments::<Probe>("probe", &argument_schema::<Probe>(&[]), &ToolArguments::parse(arguments));
    assert_eq!(&parsed.map_err(|failure| failure.for_model), expected);
}

fn bad_arguments(field: &str, expected: &str, hint: &str) -> Result<Probe, Value> {
    let mut json = json!({ "error": "bad_arguments", "field": field, "expected": expected });
    if !hint.is_empty() {
        json["hint"] = json!(hint);
    }
    Err(json)
}

#[test]
fn number_may_be_text_or_a_float() {
    for arguments in [json!({"tmdb": 603}), json!({"tmdb": " 603 "}), json!({"tmdb": 603.0})] {
        check(arguments, &Ok(PROBE));
    }
}

#[test]
fn null_is_none_and_unknown_arguments_are_dropped() {
    check(json!({"tmdb": 603, "quality": null, "user_confirmed": true}), &Ok(PROBE));
}

#[test]
fn doubly_encoded_arguments_are_parsed() {
    check(json!(r#""{\"tmdb\": 603}""#), &Ok(PROBE));
    let items = Some(vec![Item { id: 7 }, Item { id: 8 }]);
    check(json!({"tmdb": 603, "items": r#"[{"id":7},"{\"id\":\"8\"}"]"#}), &Ok(Probe { items, ..PROBE }));
}

#[test]
fn single_item_becomes_a_list_of_one() {
    check(
        json!({"tmdb": 603, "items": {"id": 7}}),
        &Ok(Probe { items: Some(vec![Item { id: 7 }]), ..PROBE }),
    );
}

#[test]
fn choice_of_words_or_numbers_accepts_either() {
    for (value, seasons) in [
        (json!("ALL"), Seasons::Named(Named::All)),
        (json!([1, "2"]), Seasons::Numbers(vec![1, 2])),
        (json!("1, 2"), Seasons::Numbers(vec![1, 2])),
        (json!(3), Seasons::Numbers(vec![3])),
    ] {
        check(json!({"tmdb": 603, "seasons": value}), &Ok(Probe { seasons: Some(seasons), ..PROBE }));
    }
    check(
        json!({"tmdb": 603, "seasons": "the good ones"}),
        &bad_arguments("seasons", "one of all, latest or list of integer", ""),
    );
}

#[test]
fn text_and_booleans_are_repaired() {
    let probe = Probe { quality: Some("1080".to_owned()), delete_files: Some(true), ..PROBE };
    check(json!({"tmdb": 603, "quality": 1080, "delete_files": "True"}), &Ok(probe));
    check(json!({"tmdb": 603, "delete_files": "maybe"}), &bad_arguments("delete_files", "true or false", ""));
}

#[test]
fn error_names_the_field_and_its_expected_value() {
    let tmdb = || bad_arguments("tmdb", "integer", "The number that search_media gave.");
    check(json!({"tmdb": "six"}), &tmdb());
    check(json!({}), &tmdb());
    check(json!({"tmdb": 603, "days": 90}), &bad_arguments("days", "integer from 1 to 60", "How many days."));
    check(
        json!({"tmdb": 603, "items": [{"id": 1}, {"id": 2}, {"id": 3}]}),
        &bad_arguments("items", "list of at most 2", ""),
    );
    check(
        json!(r#"{"tmdb": "six"#),
        &bad_arguments("arguments", "one JSON object", "Call the tool again with the fields of its schema."),
    );
}

#[test]
fn schema_has_no_unneeded_keys() {
    let text = argument_schema::<Probe>(&[]).to_string();
    for keyword in ["$schema", "$ref", "$defs", "\"title\"", "\"format\"", "\"default\""] {
        assert!(!text.contains(keyword), "{keyword} in {text}");
    }
}

/// Generates arbitrary JSON values, whose objects use the names of the probe's fields and others.
fn any_json() -> impl Strategy<Value = Value> {
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

/// Generates plausible values for a field of a tool.
fn plausible_value() -> impl Strategy<Value = Value> {
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
fn simplest_value(schema: &Value) -> Value {
    if let Some(choices) = ["anyOf", "oneOf"].iter().find_map(|name| schema[*name].as_array()) {
        return simplest_value(&choices[0]);
    }
    match schema["type"].as_str().unwrap_or("string") {
        "object" => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            Value::Object(fields.map(|(name, field)| (name.clone(), simplest_value(field))).collect())
        }
        "array" => json!([simplest_value(&schema["items"])]),
        "integer" => json!(7),
        "boolean" => json!(true),
        _ => schema["enum"].get(0).cloned().unwrap_or_else(|| json!("Dune")),
    }
}

proptest! {
    #[test]
    fn repair_is_idempotent_and_independent_of_encoding(
        tmdb in prop_oneof![Just(json!(603)), any_json()],
        rest in any_json(),
    ) {
        let mut fields = rest.as_object().cloned().unwrap_or_default();
        fields.insert("tmdb".to_owned(), tmdb);
        let schema = argument_schema::<Probe>(&[]);
        let probe = |arguments: &ToolArguments| parse_arguments::<Probe>("probe", &schema, arguments);
        let arguments = ToolArguments::Object(fields);
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
    fn every_tool_parses_arguments_the_same_in_any_encoding(
        tool_index: Index,
        changes in proptest::collection::vec((any::<Index>(), prop_oneof![plausible_value(), any_json()]), 0..4),
        omitted in proptest::collection::vec(any::<Index>(), 0..4),
    ) {
        let tools = crate::tool_list::all_tools(&Arc::new(ArrInstances::default()), PicturePolicy::Sent);
        let tool = tool_index.get(&tools);
        let spec = tool.spec();
        let schema: Value = serde_json::from_str(spec.parameters.text()).unwrap();
        let Value::Object(mut fields) = simplest_value(&schema) else { unreachable!() };
        let names: Vec<String> = fields.keys().cloned().collect();
        if !names.is_empty() {
            for (name, value) in changes {
                fields.insert(name.get(&names).clone(), value);
            }
            omitted.iter().for_each(|name| drop(fields.remove(name.get(&names))));
        }
        let outcome = |arguments: &ToolArguments| tool.check_arguments(arguments).map_err(|failure| {
            assert_eq!(failure.for_model["error"], json!(failure.code), "the result for the model contains the failure code");
            failure.code
        });
        let arguments = ToolArguments::Object(fields.clone());
        let expected = outcome(&arguments);
        assert_eq!(outcome(&ToolArguments::parse(json!(json!(fields).to_string()))), expected, "encoded twice");
        if let Ok(repaired) = parse_arguments::<Map<String, Value>>(spec.name, &schema, &arguments) {
            let repaired = ToolArguments::Object(repaired);
            assert_eq!(outcome(&repaired), expected, "repaired");
            let again = parse_arguments::<Map<String, Value>>(spec.name, &schema, &repaired);
            assert_eq!(again.map(ToolArguments::Object), Ok(repaired), "repaired twice");
        }
        fields.insert("user_confirmed_it_all".to_owned(), json!(true));
        assert_eq!(outcome(&ToolArguments::Object(fields)), expected, "with an unknown field");
    }
}
