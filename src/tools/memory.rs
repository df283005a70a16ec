//! Facts that the user wants stored. A new fact replaces an older one on the same subject, and facts can be deleted.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::answers::refusal;
use super::approval::Cleared;
use super::arguments::{BadArgument, cleared, read, schema};
use super::{Deed, Interrupted, Ran, Settled, Tool, ToolError, Uses, WRITE_TIMEOUT, World};
use crate::conversation::facts::{
    FORGET, FORGOT, Fact, FactKind, Facts, Known, MOST_FACTS, NOTED, NotAFact, REMEMBER, forgot, noted,
    takes_a_fact_back,
};
use crate::conversation::transcript::{Arguments, Audience, CallFailure, CallResult, Tier, ToolSpec};

/// Hint for a model that has rephrased the fact in its own words.
const IN_THEIR_WORDS: &str = "the user did not say so: use their own words, or ask them";

pub struct Remember;
pub struct Forget;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RememberArgs {
    kind: Kind,
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
enum Kind {
    Quality,
    Alias,
    Dislike,
    Like,
    Folder,
    Schedule,
    Other,
}

impl From<Kind> for FactKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Quality => Self::Quality,
            Kind::Alias => Self::Alias,
            Kind::Dislike => Self::Dislike,
            Kind::Like => Self::Like,
            Kind::Folder => Self::Folder,
            Kind::Schedule => Self::Schedule,
            Kind::Other => Self::Other,
        }
    }
}

#[async_trait]
impl Tool for Remember {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: REMEMBER,
            description: "Note a lasting wish, or what a name means.",
            tier: Tier::Write,
            audience: Audience::Everyone,
            parameters: schema::<RememberArgs>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        fact(arguments).map(|_| Uses::default())
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        Ok(note(fact(cleared(call)?)?, world)?)
    }

    /// A fact is stored only together with the result, so without a result no fact was stored.
    async fn settle(&self, _call: Interrupted<'_>, _world: &World) -> Result<Settled, ToolError> {
        Ok(Settled::NotDone)
    }
}

#[async_trait]
impl Tool for Forget {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: FORGET,
            description: "Forget a known fact.",
            tier: Tier::Write,
            audience: Audience::Everyone,
            parameters: schema::<ForgetArgs>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        read::<ForgetArgs>(FORGET, &schema::<ForgetArgs>(), arguments).map(|_| Uses::default())
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        let args: ForgetArgs = read(FORGET, &schema::<ForgetArgs>(), cleared(call)?)?;
        let Some(Known { fact, .. }) = world.facts.named(&args.what) else {
            return Err(not_known(&world.facts).into());
        };
        let texts = || world.said.iter().chain(&world.last_three).map(String::as_str);
        if !fact.stands_in(texts()) && !texts().any(takes_a_fact_back) {
            return Err(refusal("not_said", json!({ "hint": "the user did not say so" }), None).into());
        }
        Ok(Ran::with(told(FORGOT, fact, forgot(fact)), Deed::Forget(fact.kind, fact.key.clone())))
    }

    /// A fact is deleted only together with the result, so without a result no fact was deleted.
    async fn settle(&self, _call: Interrupted<'_>, _world: &World) -> Result<Settled, ToolError> {
        Ok(Settled::NotDone)
    }
}

fn fact(arguments: &Arguments) -> Result<Fact, CallFailure> {
    let args: RememberArgs = read(REMEMBER, &schema::<RememberArgs>(), arguments)?;
    Fact::new(args.kind.into(), args.about.as_deref(), &args.value).map_err(|error| {
        let field = match error {
            NotAFact::WithoutName => "about",
            NotAFact::Empty | NotAFact::TooLong => "value",
        };
        BadArgument { field: field.to_owned(), expected: error.to_string(), hint: String::new() }.into()
    })
}

fn note(fact: Fact, world: &World) -> Result<Ran, CallFailure> {
    let texts = world.said.iter().chain(&world.last_three).map(String::as_str);
    if !fact.stands_in(texts) {
        return Err(refusal("not_said", json!({ "hint": IN_THEIR_WORDS }), None));
    }
    let replaces_one = world.facts.0.iter().any(|known| known.fact.is_about_the_same(&fact));
    if !replaces_one && world.facts.0.len() >= MOST_FACTS {
        return Err(refusal(
            "too_many",
            json!({ "limit": MOST_FACTS }),
            Some(format!(
                "I remember {MOST_FACTS} things of you already. Text WHAT DO YOU KNOW and forget some."
            )),
        ));
    }
    let result = told(NOTED, &fact, noted(&fact));
    Ok(Ran::with(result, Deed::Remember(fact)))
}

fn not_known(facts: &Facts) -> CallFailure {
    let known: Vec<String> = facts.0.iter().map(|known| known.fact.told()).collect();
    refusal("not_known", json!({ "known": known }), Some("I know nothing like that.".to_owned()))
}

fn told(status: &str, fact: &Fact, for_user: String) -> CallResult {
    CallResult {
        for_model: json!({ "status": status, "fact": fact.told(), "value": fact.value }),
        for_user,
        shown: Vec::new(),
    }
}
