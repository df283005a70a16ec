//! Registry of all tools, by name.

use std::sync::Arc;

use super::{Tool, approval};
use crate::conversation::transcript::{Rights, Tier, ToolSpec};

#[derive(Clone)]
pub struct Registry(Vec<(ToolSpec, Arc<dyn Tool>)>);

impl Registry {
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self(tools.into_iter().map(|tool| (tool.spec(), tool)).collect())
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.find(name).map(|(_, tool)| tool)
    }

    /// Tool with this name and the specification that the model sees.
    pub fn find(&self, name: &str) -> Option<&(ToolSpec, Arc<dyn Tool>)> {
        self.0.iter().find(|(spec, _)| spec.name == name)
    }

    /// Tools that are offered to a user with these rights.
    pub fn offered(&self, rights: Rights) -> Vec<ToolSpec> {
        let offered = self.0.iter().filter(|(spec, _)| approval::offered(spec.audience, rights));
        offered.map(|(spec, _)| spec.clone()).collect()
    }

    /// Effect level of calls to this tool. A tool that does not exist changes nothing.
    pub fn tier(&self, name: &str) -> Tier {
        self.find(name).map_or(Tier::Read, |(spec, _)| spec.tier)
    }
}
