//! Tool that starts a vote of the people in a room.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::arguments::parsing::bad_argument;
use super::library::ArrInstances;
use super::typed_tool::TypedTool;
use super::{CallReferences, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::conversation::transcript::{CallFailure, CallResult, EffectLevel, FailureCode, ToolAudience};
use crate::conversation::turn::model_action::{ModelAction, START_VOTE};
use crate::conversation::votes::{InvalidVote, VoteQuestion};

/// Tool that starts a vote.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartVote {
    /// Question, if it is not what to watch.
    question: Option<String>,
    /// Two to ten titles.
    options: Vec<String>,
}

impl TypedTool for StartVote {
    const NAME: &'static str = START_VOTE;
    const DESCRIPTION: &'static str = "Let the group vote, if they ask for it. The poll is sent for you.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Room;

    fn check(&self, _library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        self.parse_question().map(|_| CallReferences::default())
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let question = self.parse_question()?;
        if !context.age_limit.is_unlimited() {
            for option in &self.options {
                if !library.shows_title_named(option).await {
                    return Err(over_limit().into());
                }
            }
        }
        let result = CallResult {
            for_model: json!({ "status": "poll_on_its_way" }),
            for_user: String::new(),
            shown: Vec::new(),
        };
        Ok(ToolOutput::with_effect(result, ToolEffect::Act(ModelAction::StartVote(question))))
    }
}

/// Failure of a vote with an option that a person in the room may not see, or that names no title.
fn over_limit() -> CallFailure {
    CallFailure::new(
        FailureCode::NotPermitted,
        json!({ "hint": "an option is no title that everybody here may see: use titles from search_media only" }),
        Some("I can only let you vote on titles that everybody here may see.".to_owned()),
    )
}

impl StartVote {
    fn parse_question(&self) -> Result<VoteQuestion, CallFailure> {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        VoteQuestion::new(self.question.as_deref(), &options).map_err(|invalid| match invalid {
            InvalidVote::TooFew | InvalidVote::TooMany => bad_argument("options", "two to ten titles", ""),
            InvalidVote::TooLong => bad_argument("options", "short titles and a short question", ""),
            InvalidVote::Repeated => bad_argument("options", "different titles", ""),
            InvalidVote::AnswersPrompts => bad_argument("options", "titles, and no yes or no", ""),
        })
    }
}
