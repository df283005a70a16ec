//! The tools there are, by name.

use std::sync::Arc;

use super::{Tool, approval};
use crate::conversation::transcript::{Rights, Tier, ToolSpec};

#[derive(Clone)]
pub struct Registry(Vec<Arc<dyn Tool>>);

impl Registry {
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self(tools)
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.0.iter().find(|tool| tool.spec().name == name)
    }

    /// What a user with these rights is offered.
    pub fn offered(&self, rights: Rights) -> Vec<ToolSpec> {
        self.0.iter().map(|tool| tool.spec()).filter(|spec| approval::offered(spec.tier, rights)).collect()
    }

    /// What kind of call this is; a tool that does not exist changes nothing.
    pub fn tier(&self, name: &str) -> Tier {
        self.get(name).map_or(Tier::Read, |tool| tool.spec().tier)
    }
}
