//! The tools there are, by name.

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

    /// A tool and what the model is told of it.
    pub fn find(&self, name: &str) -> Option<&(ToolSpec, Arc<dyn Tool>)> {
        self.0.iter().find(|(spec, _)| spec.name == name)
    }

    /// What a user with these rights is offered.
    pub fn offered(&self, rights: Rights) -> Vec<ToolSpec> {
        let offered = self.0.iter().filter(|(spec, _)| approval::offered(spec.audience, rights));
        offered.map(|(spec, _)| spec.clone()).collect()
    }

    /// What kind of call this is; a tool that does not exist changes nothing.
    pub fn tier(&self, name: &str) -> Tier {
        self.find(name).map_or(Tier::Read, |(spec, _)| spec.tier)
    }
}
