//! Tools that store and delete facts about the user. A new fact replaces the stored one on the same subject.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::arguments::parsing::bad_argument;
use super::library::ArrInstances;
use super::typed_tool::TypedTool;
use super::{CallReferences, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::conversation::people::facts::{
    FORGET, FORGOT, FactError, FactKind, MAX_FACTS_PER_USER, NOTED, REMEMBER, StoredFact, UserFact,
    UserFacts, format_forgotten, format_noted, may_retract_fact,
};
use crate::conversation::transcript::{CallFailure, CallResult, EffectLevel, FailureCode, ToolAudience};

/// Hint for a fact that does not appear in the user's messages.
const NOT_SAID_HINT: &str = "the user did not say so: use their own words, or ask them";

/// Tool that stores a fact.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RememberFact {
    kind: FactKind,
    /// Name of an alias; movies or shows.
    about: Option<String>,
    /// Wish, or title and year.
    value: String,
}

/// Tool that deletes a fact.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetFact {
    /// Fact.
    what: String,
}

impl TypedTool for RememberFact {
    const NAME: &'static str = REMEMBER;
    const DESCRIPTION: &'static str = "Store a lasting wish, or what a name means to them.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::PrivateChat;

    fn check(&self, _library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        self.parse_fact().map(|_| CallReferences::default())
    }

    async fn run(&self, _library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(remember_fact(self.parse_fact()?, context)?)
    }
}

impl RememberFact {
    fn parse_fact(&self) -> Result<UserFact, CallFailure> {
        UserFact::new(self.kind, self.about.as_deref(), &self.value).map_err(|error| {
            let field = match error {
                FactError::MissingName => "about",
                FactError::Empty | FactError::TooLong => "value",
            };
            bad_argument(field, &error.to_string(), "")
        })
    }
}

impl TypedTool for ForgetFact {
    const NAME: &'static str = FORGET;
    const DESCRIPTION: &'static str = "Forget a fact under known.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::PrivateChat;

    async fn run(&self, _library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Some(StoredFact { fact, .. }) = context.facts.find_by_text(&self.what) else {
            return Err(unknown_fact(&context.facts).into());
        };
        let texts = || context.turn_messages.iter().chain(&context.last_three_messages).map(String::as_str);
        if !fact.is_supported_by(texts()) && !texts().any(may_retract_fact) {
            let hint = json!({ "hint": "the user did not ask to forget that: ask them" });
            return Err(CallFailure::new(FailureCode::NotSaid, hint, None).into());
        }
        Ok(ToolOutput::with_effect(
            fact_result(FORGOT, fact, format_forgotten(fact)),
            ToolEffect::Forget(fact.kind, fact.key.clone()),
        ))
    }
}

fn remember_fact(fact: UserFact, context: &ToolContext) -> Result<ToolOutput, CallFailure> {
    let texts = context.turn_messages.iter().chain(&context.last_three_messages).map(String::as_str);
    if !fact.is_supported_by(texts) {
        return Err(CallFailure::new(FailureCode::NotSaid, json!({ "hint": NOT_SAID_HINT }), None));
    }
    let replaces_fact = context.facts.0.iter().any(|stored| stored.fact.has_same_subject(&fact));
    if !replaces_fact && context.facts.0.len() >= MAX_FACTS_PER_USER {
        return Err(CallFailure::new(
            FailureCode::TooMany,
            json!({ "limit": MAX_FACTS_PER_USER, "hint": "tell them to forget one first" }),
            Some(format!(
                "I already remember {MAX_FACTS_PER_USER} facts about you. Text WHAT DO YOU KNOW and forget some."
            )),
        ));
    }
    let result = fact_result(NOTED, &fact, format_noted(&fact));
    Ok(ToolOutput::with_effect(result, ToolEffect::Remember(fact)))
}

fn unknown_fact(facts: &UserFacts) -> CallFailure {
    let known: Vec<String> = facts.0.iter().map(|stored| stored.fact.to_sentence()).collect();
    CallFailure::new(
        FailureCode::NotKnown,
        json!({ "known": known, "hint": "use the words of a known fact, or say that it is not stored" }),
        Some("I have no such fact stored.".to_owned()),
    )
}

fn fact_result(status: &str, fact: &UserFact, for_user: String) -> CallResult {
    CallResult {
        for_model: json!({ "status": status, "fact": fact.to_sentence(), "value": fact.value }),
        for_user,
        shown: Vec::new(),
    }
}
