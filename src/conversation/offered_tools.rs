//! Tools that model requests offer, shared by all requests for users with the same rights.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;

use super::transcript::ToolSpec;

/// Specifications of the offered tools, with their JSON in the format of the model server.
#[derive(Debug, Clone, Default)]
pub struct OfferedTools(Arc<ToolList>);

#[derive(Debug, Default)]
struct ToolList {
    specs: Vec<ToolSpec>,
    json: OnceLock<Box<RawValue>>,
}

impl OfferedTools {
    /// Returns the JSON of the tools. Only the first call encodes it.
    pub fn json(&self, encode: impl FnOnce(&[ToolSpec]) -> Box<RawValue>) -> &RawValue {
        self.0.json.get_or_init(|| encode(&self.0.specs))
    }
}

impl From<Vec<ToolSpec>> for OfferedTools {
    fn from(specs: Vec<ToolSpec>) -> Self {
        Self(Arc::new(ToolList { specs, json: OnceLock::new() }))
    }
}

impl Deref for OfferedTools {
    type Target = [ToolSpec];

    fn deref(&self) -> &[ToolSpec] {
        &self.0.specs
    }
}

impl PartialEq for OfferedTools {
    fn eq(&self, other: &Self) -> bool {
        self.0.specs == other.0.specs
    }
}
