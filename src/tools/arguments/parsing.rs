//! Parsing of the arguments that a model sends. Arguments are repaired if their meaning is clear, and otherwise
//! rejected with the name of the field and the expected value.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::conversation::transcript::{CallFailure, FailureCode, ToolArguments};

/// Parses arguments by the schema that the model received, and drops those that are not in the schema.
pub fn parse_arguments<Args: DeserializeOwned>(
    tool: &str,
    schema: &Value,
    arguments: &ToolArguments,
) -> Result<Args, CallFailure> {
    let map = match arguments {
        ToolArguments::Object(map) => map.clone(),
        ToolArguments::Malformed(_) => return Err(not_an_object()),
    };
    let repaired = repair_object(schema, map, tool)?;
    serde_json::from_value(repaired).map_err(|error| {
        tracing::warn!(tool, %error, "failed to parse arguments that match the schema");
        not_an_object()
    })
}

/// Builds the failure for an argument, with which the model can correct the call.
pub fn bad_argument(field: &str, expected: &str, hint: &str) -> CallFailure {
    let mut fields = json!({ "field": field, "expected": expected });
    if !hint.is_empty() {
        fields["hint"] = json!(hint);
    }
    CallFailure::new(FailureCode::BadArguments, fields, None)
}

fn not_an_object() -> CallFailure {
    bad_argument("arguments", "one JSON object", "Call the tool again with the fields of its schema.")
}

fn unexpected_value(schema: &Value, field: &str) -> CallFailure {
    bad_argument(field, &describe_expected(schema), schema["description"].as_str().unwrap_or_default())
}

fn repair_value(schema: &Value, value: Value, field: &str) -> Result<Value, CallFailure> {
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices
            .iter()
            .filter(|choice| choice["type"] != "null")
            // Only a value that matches no choice is an error.
            .find_map(|choice| repair_value(choice, value.clone(), field).ok())
            .ok_or_else(|| unexpected_value(schema, field));
    }
    let repaired = match schema_type(schema) {
        "object" => match decode_json_text(value) {
            Value::Object(map) => return repair_object(schema, map, field),
            _ => None,
        },
        "array" => return repair_list(schema, value, field),
        "integer" => repair_integer(&value).filter(|number| in_range(schema, *number)).map(Value::from),
        "number" => repair_number(&value),
        "boolean" => repair_boolean(&value),
        _ => repair_text(schema, &value),
    };
    repaired.ok_or_else(|| unexpected_value(schema, field))
}

fn repair_object(schema: &Value, mut map: Map<String, Value>, field: &str) -> Result<Value, CallFailure> {
    let mut repaired = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let required = schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
        match map.remove(name) {
            None | Some(Value::Null) if required => return Err(unexpected_value(property, name)),
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

fn repair_list(schema: &Value, value: Value, field: &str) -> Result<Value, CallFailure> {
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
    let has_allowed_length = schema["minItems"].as_u64().is_none_or(|min| length >= min)
        && schema["maxItems"].as_u64().is_none_or(|max| length <= max);
    if has_allowed_length { Ok(Value::Array(repaired)) } else { Err(unexpected_value(schema, field)) }
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
        // Other text is rejected like a value of any other wrong type.
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn repair_number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => {
            text.trim().parse().ok().and_then(serde_json::Number::from_f64).map(Value::Number)
        }
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
    if let Some(choices) = schema["enum"].as_array() {
        return choices
            .iter()
            .find(|choice| choice.as_str().is_some_and(|choice| choice.eq_ignore_ascii_case(&text)))
            .cloned();
    }
    let is_long_enough = schema["minLength"].as_u64().is_none_or(|min| text.chars().count() as u64 >= min);
    is_long_enough.then_some(Value::String(text))
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
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", choices.join(", "));
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
