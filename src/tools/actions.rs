//! Actions of the model on the conversation itself.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::answers::refusal;
use super::approval::Cleared;
use super::arguments::{cleared, read, schema};
use super::{Deed, READ_TIMEOUT, Ran, Tool, ToolError, Uses, World};
use crate::conversation::action::{Action, Emoji, REACT};
use crate::conversation::transcript::{Arguments, Audience, CallFailure, CallResult, Tier, ToolSpec};

pub struct React;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    emoji: String,
}

#[async_trait]
impl Tool for React {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: REACT,
            description: "React to the user's last text with an emoji; if that says it all, answer with no text.",
            tier: Tier::Read,
            audience: Audience::Everyone,
            parameters: schema::<Args>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        READ_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        emoji(arguments).map(|_| Uses::default())
    }

    async fn run(&self, call: &Cleared, _world: &World) -> Result<Ran, ToolError> {
        let emoji = emoji(cleared(call)?)?;
        let result = CallResult {
            for_model: json!({ "status": "reacted" }),
            for_user: String::new(),
            shown: Vec::new(),
        };
        Ok(Ran::with(result, Deed::Act(Action::React(emoji))))
    }
}

fn emoji(arguments: &Arguments) -> Result<Emoji, CallFailure> {
    let args: Args = read(REACT, &schema::<Args>(), arguments)?;
    Emoji::parse(&args.emoji)
        .ok_or_else(|| refusal("bad_arguments", json!({ "field": "emoji", "expected": "one emoji" }), None))
}
