//! Actions that the model takes on the conversation itself.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::approval::ApprovedCall;
use super::arguments::{approved_arguments, argument_schema, parse_arguments};
use super::{CallReferences, READ_TIMEOUT, Tool, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, ToolArguments, ToolAudience, ToolSpec,
};
use crate::conversation::turn::model_action::{Emoji, ModelAction, REACT};

pub struct ReactToMessage;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReactArgs {
    emoji: String,
}

#[async_trait]
impl Tool for ReactToMessage {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: REACT,
            description: "React to the user's last text with an emoji; if that says it all, answer with no text.",
            effect_level: EffectLevel::Read,
            audience: ToolAudience::Everyone,
            parameters: argument_schema::<ReactArgs>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        READ_TIMEOUT
    }

    fn check_arguments(&self, arguments: &ToolArguments) -> Result<CallReferences, CallFailure> {
        parse_emoji(arguments).map(|_| CallReferences::default())
    }

    async fn run(&self, call: &ApprovedCall, _world: &ToolContext) -> Result<ToolOutput, ToolError> {
        let emoji = parse_emoji(approved_arguments(call)?)?;
        let result = CallResult {
            for_model: json!({ "status": "reacted" }),
            for_user: String::new(),
            shown: Vec::new(),
        };
        Ok(ToolOutput::with_effect(result, ToolEffect::Act(ModelAction::React(emoji))))
    }
}

fn parse_emoji(arguments: &ToolArguments) -> Result<Emoji, CallFailure> {
    let args: ReactArgs = parse_arguments(REACT, &argument_schema::<ReactArgs>(), arguments)?;
    Emoji::parse(&args.emoji).ok_or_else(|| {
        CallFailure::new(
            FailureCode::BadArguments,
            json!({ "field": "emoji", "expected": "one emoji" }),
            None,
        )
    })
}
