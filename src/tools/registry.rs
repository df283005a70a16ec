//! Registry of all tools, by name.

use std::sync::Arc;

use super::{Tool, approval};
use crate::conversation::transcript::{EffectLevel, ToolSpec, UserRights};

#[derive(Clone)]
pub struct ToolRegistry(Vec<(ToolSpec, Arc<dyn Tool>)>);

impl ToolRegistry {
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self(tools.into_iter().map(|tool| (tool.spec(), tool)).collect())
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.find_with_spec(name).map(|(_, tool)| tool)
    }

    /// Returns the tool with this name and the specification that the model sees.
    pub fn find_with_spec(&self, name: &str) -> Option<&(ToolSpec, Arc<dyn Tool>)> {
        self.0.iter().find(|(spec, _)| spec.name == name)
    }

    /// Returns the specifications of the tools that are offered to a user with these rights.
    pub fn offered_specs(&self, rights: UserRights) -> Vec<ToolSpec> {
        let offered = self.0.iter().filter(|(spec, _)| approval::is_offered(spec.audience, rights));
        offered.map(|(spec, _)| spec.clone()).collect()
    }

    /// Returns the effect level of calls to this tool. A tool that does not exist changes nothing.
    pub fn effect_level(&self, name: &str) -> EffectLevel {
        self.find_with_spec(name).map_or(EffectLevel::Read, |(spec, _)| spec.effect_level)
    }
}
