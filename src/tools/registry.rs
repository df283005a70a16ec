//! Registry of all tools, by name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::arguments::schema::OfferedChoices;
use super::{Tool, approval};
use crate::conversation::offered_tools::OfferedTools;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{EffectLevel, Responder, ToolAudience, UserRights};

pub struct ToolRegistry {
    tools: Vec<Arc<dyn Tool>>,
    /// Tools as last offered to a responder for users with the same rights and the same audience.
    offers: Mutex<HashMap<(UserRights, Audience, Responder), ToolOffer>>,
}

/// Offered tools, with the choices in their specifications; `None` for a tool that is not offered.
struct ToolOffer {
    choices: Vec<Option<OfferedChoices>>,
    tools: OfferedTools,
}

impl ToolRegistry {
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools, offers: Mutex::default() }
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    /// Returns the tools that a responder is offered for a user with these rights, for an answer that `audience` reads. They
    /// are built again only if a choice in them has changed.
    pub fn offered_tools(
        &self,
        rights: UserRights,
        audience: Audience,
        responder: Responder,
    ) -> OfferedTools {
        let is_offered = |tool: ToolAudience| {
            (responder == Responder::Keyword || tool != ToolAudience::DeletionCommand)
                && approval::is_offered(tool, rights, audience)
        };
        let offered_choices =
            |tool: &Arc<dyn Tool>| tool.offered_choices(rights).filter(|_| is_offered(tool.spec().audience));
        let choices: Vec<_> = self.tools.iter().map(offered_choices).collect();
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offer) =
            offers.get(&(rights, audience, responder)).filter(|offer| offer.choices == choices)
        {
            return offer.tools.clone();
        }
        let specs = self.tools.iter().zip(&choices);
        let specs = specs.filter_map(|(tool, choices)| Some(tool.offered_spec(choices.as_ref()?)));
        let tools = OfferedTools::from(specs.collect::<Vec<_>>());
        offers.insert((rights, audience, responder), ToolOffer { choices, tools: tools.clone() });
        tools
    }

    /// Returns the effect level of a tool. A call of an unknown tool counts as a read, because it changes nothing.
    pub fn effect_level(&self, name: &str) -> EffectLevel {
        self.get(name).map_or(EffectLevel::Read, |tool| tool.spec().effect_level)
    }
}
