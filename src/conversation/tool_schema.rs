//! JSON Schema of a tool's arguments, serialized once and shared by all requests.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// Serialized JSON Schema of a tool's arguments.
#[derive(Debug, Clone)]
pub struct ToolSchema(Arc<RawValue>);

impl ToolSchema {
    pub fn text(&self) -> &str {
        self.0.get()
    }

    pub fn raw(&self) -> &RawValue {
        &self.0
    }
}

#[expect(clippy::expect_used, reason = "schemas are built at startup")]
impl From<Value> for ToolSchema {
    fn from(schema: Value) -> Self {
        Self(to_raw_value(&schema).expect("a JSON value can be serialized").into())
    }
}

impl PartialEq for ToolSchema {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}
