//! Tools for the facts that the user wants stored. A new fact replaces an older one on the same subject, and facts can
//! be deleted.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::approval::ApprovedCall;
use super::arguments::{BadArgument, approved_arguments, argument_schema, parse_arguments};
use super::{
    CallReferences, InterruptedRun, RecoveryOutcome, Tool, ToolContext, ToolEffect, ToolError, ToolOutput,
    WRITE_TIMEOUT,
};
use crate::conversation::people::facts::{
    FORGET, FORGOT, FactError, FactKind, MAX_FACTS_PER_USER, NOTED, REMEMBER, StoredFact, UserFact,
    UserFacts, format_forgotten, format_noted, may_retract_fact,
};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, ToolArguments, ToolAudience, ToolSpec,
};

/// Hint for a model that has rephrased the fact in its own words.
const IN_THEIR_WORDS: &str = "the user did not say so: use their own words, or ask them";

pub struct RememberFact;
pub struct ForgetFact;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RememberArgs {
    kind: FactKindArg,
    /// alias: the name; quality: movies or shows.
    about: Option<String>,
    /// alias: title and year.
    value: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForgetArgs {
    what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FactKindArg {
    Quality,
    Alias,
    Dislike,
    Like,
    Folder,
    Schedule,
    Other,
}

impl From<FactKindArg> for FactKind {
    fn from(kind: FactKindArg) -> Self {
        match kind {
            FactKindArg::Quality => Self::Quality,
            FactKindArg::Alias => Self::Alias,
            FactKindArg::Dislike => Self::Dislike,
            FactKindArg::Like => Self::Like,
            FactKindArg::Folder => Self::Folder,
            FactKindArg::Schedule => Self::Schedule,
            FactKindArg::Other => Self::Other,
        }
    }
}

#[async_trait]
impl Tool for RememberFact {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: REMEMBER,
            description: "Note a lasting wish, or what a name means.",
            effect_level: EffectLevel::Write,
            audience: ToolAudience::Everyone,
            parameters: argument_schema::<RememberArgs>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check_arguments(&self, arguments: &ToolArguments) -> Result<CallReferences, CallFailure> {
        parse_fact(arguments).map(|_| CallReferences::default())
    }

    async fn run(&self, call: &ApprovedCall, world: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(remember_fact(parse_fact(approved_arguments(call)?)?, world)?)
    }

    /// Returns [`RecoveryOutcome::NotDone`]. A fact is stored only together with the result, so without a result no
    /// fact was stored.
    async fn recover_outcome(
        &self,
        _call: InterruptedRun<'_>,
        _world: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        Ok(RecoveryOutcome::NotDone)
    }
}

#[async_trait]
impl Tool for ForgetFact {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: FORGET,
            description: "Forget a known fact.",
            effect_level: EffectLevel::Write,
            audience: ToolAudience::Everyone,
            parameters: argument_schema::<ForgetArgs>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check_arguments(&self, arguments: &ToolArguments) -> Result<CallReferences, CallFailure> {
        parse_arguments::<ForgetArgs>(FORGET, &argument_schema::<ForgetArgs>(), arguments)
            .map(|_| CallReferences::default())
    }

    async fn run(&self, call: &ApprovedCall, world: &ToolContext) -> Result<ToolOutput, ToolError> {
        let args: ForgetArgs =
            parse_arguments(FORGET, &argument_schema::<ForgetArgs>(), approved_arguments(call)?)?;
        let Some(StoredFact { fact, .. }) = world.facts.find_by_text(&args.what) else {
            return Err(unknown_fact(&world.facts).into());
        };
        let texts = || world.turn_messages.iter().chain(&world.last_three).map(String::as_str);
        if !fact.is_supported_by(texts()) && !texts().any(may_retract_fact) {
            return Err(CallFailure::new(
                FailureCode::NotSaid,
                json!({ "hint": "the user did not say so" }),
                None,
            )
            .into());
        }
        Ok(ToolOutput::with_effect(
            fact_result(FORGOT, fact, format_forgotten(fact)),
            ToolEffect::Forget(fact.kind, fact.key.clone()),
        ))
    }

    /// Returns [`RecoveryOutcome::NotDone`]. A fact is deleted only together with the result, so without a result no
    /// fact was deleted.
    async fn recover_outcome(
        &self,
        _call: InterruptedRun<'_>,
        _world: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        Ok(RecoveryOutcome::NotDone)
    }
}

fn parse_fact(arguments: &ToolArguments) -> Result<UserFact, CallFailure> {
    let args: RememberArgs = parse_arguments(REMEMBER, &argument_schema::<RememberArgs>(), arguments)?;
    UserFact::new(args.kind.into(), args.about.as_deref(), &args.value).map_err(|error| {
        let field = match error {
            FactError::MissingName => "about",
            FactError::Empty | FactError::TooLong => "value",
        };
        BadArgument { field: field.to_owned(), expected: error.to_string(), hint: String::new() }.into()
    })
}

fn remember_fact(fact: UserFact, world: &ToolContext) -> Result<ToolOutput, CallFailure> {
    let texts = world.turn_messages.iter().chain(&world.last_three).map(String::as_str);
    if !fact.is_supported_by(texts) {
        return Err(CallFailure::new(FailureCode::NotSaid, json!({ "hint": IN_THEIR_WORDS }), None));
    }
    let replaces_one = world.facts.0.iter().any(|known| known.fact.has_same_subject(&fact));
    if !replaces_one && world.facts.0.len() >= MAX_FACTS_PER_USER {
        return Err(CallFailure::new(
            FailureCode::TooMany,
            json!({ "limit": MAX_FACTS_PER_USER }),
            Some(format!(
                "I remember {MAX_FACTS_PER_USER} things of you already. Text WHAT DO YOU KNOW and forget some."
            )),
        ));
    }
    let result = fact_result(NOTED, &fact, format_noted(&fact));
    Ok(ToolOutput::with_effect(result, ToolEffect::Remember(fact)))
}

fn unknown_fact(facts: &UserFacts) -> CallFailure {
    let known: Vec<String> = facts.0.iter().map(|known| known.fact.to_sentence()).collect();
    CallFailure::new(
        FailureCode::NotKnown,
        json!({ "known": known }),
        Some("I know nothing like that.".to_owned()),
    )
}

fn fact_result(status: &str, fact: &UserFact, for_user: String) -> CallResult {
    CallResult {
        for_model: json!({ "status": status, "fact": fact.to_sentence(), "value": fact.value }),
        for_user,
        shown: Vec::new(),
    }
}
