//! A JSON Schema as every request that offers a tool tells it: written out once, not for each request.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON Schema, written out.
#[derive(Debug, Clone)]
pub struct Schema(Arc<RawValue>);

impl Schema {
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl From<Value> for Schema {
    fn from(schema: Value) -> Self {
        // Whatever a `Value` holds can be written; null would offer a tool without a schema.
        let written = serde_json::value::to_raw_value(&schema);
        Self(written.unwrap_or_else(|_| RawValue::NULL.to_owned()).into())
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
