//! Registry of all tools, by name.

use std::sync::Arc;

use super::{Tool, approval};
use crate::conversation::transcript::{EffectLevel, ToolSpec, UserRights};

#[derive(Clone)]
pub struct ToolRegistry(Vec<Arc<dyn Tool>>);

impl ToolRegistry {
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self(tools)
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.0.iter().find(|tool| tool.spec().name == name)
    }

    /// Returns the specifications of the tools that are offered to a user with these rights.
    pub fn offered_specs(&self, rights: UserRights) -> Vec<ToolSpec> {
        let offered = self.0.iter().filter(|tool| approval::is_offered(tool.spec().audience, rights));
        offered.filter_map(|tool| tool.offered_spec(rights)).collect()
    }

    /// Returns the effect level of a tool. A call of an unknown tool counts as a read, because it changes nothing.
    pub fn effect_level(&self, name: &str) -> EffectLevel {
        self.get(name).map_or(EffectLevel::Read, |tool| tool.spec().effect_level)
    }
}
