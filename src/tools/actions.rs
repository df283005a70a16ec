//! Tools that act on the conversation itself: an emoji reaction.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::arguments::parsing::bad_argument;
use super::library::ArrInstances;
use super::typed_tool::TypedTool;
use super::{CallReferences, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::conversation::transcript::{CallFailure, CallResult, EffectLevel, ToolAudience};
use crate::conversation::turn::model_action::{Emoji, ModelAction, REACT};

/// Tool that reacts to the last message of the user with an emoji.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReactToMessage {
    emoji: String,
}

impl TypedTool for ReactToMessage {
    const NAME: &'static str = REACT;
    const DESCRIPTION: &'static str = "Put an emoji on their text. If that says it all, write nothing.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Chat;

    fn check(&self, _library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        self.parse_emoji().map(|_| CallReferences::default())
    }

    async fn run(&self, _library: &ArrInstances, _context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let emoji = self.parse_emoji()?;
        let result = CallResult {
            for_model: json!({ "status": "reacted" }),
            for_user: String::new(),
            shown: Vec::new(),
        };
        Ok(ToolOutput::with_effect(result, ToolEffect::Act(ModelAction::React(emoji))))
    }
}

impl ReactToMessage {
    fn parse_emoji(&self) -> Result<Emoji, CallFailure> {
        Emoji::parse(&self.emoji).ok_or_else(|| bad_argument("emoji", "one emoji", ""))
    }
}
