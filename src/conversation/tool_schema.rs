//! JSON Schema as every request that offers a tool includes it: serialized once, not for each request.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// Serialized JSON Schema.
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

#[expect(clippy::expect_used, reason = "tools are described at the start")]
impl From<Value> for ToolSchema {
    fn from(schema: Value) -> Self {
        Self(to_raw_value(&schema).expect("a value is JSON").into())
    }
}

impl PartialEq for ToolSchema {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}
