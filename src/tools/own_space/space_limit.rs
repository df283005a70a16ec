//! Limit of the space that the titles of a user may hold. It is measured before a call that may add something, and
//! checked together with the quotas.

use std::borrow::Cow;

use serde_json::json;

use super::OwnTitle;
use super::held_titles::{common_kind, find_held_titles, sum_sizes};
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{CallFailure, EffectLevel, FailureCode, ToolAudience};
use crate::tools::ToolContext;
use crate::tools::formatting::to_gigabytes;
use crate::tools::library::ArrInstances;
use crate::tools::library_cache::loaded_libraries::LoadedLibraries;
use crate::tools::quota_allowance::{HeldSpace, QuotaAllowance};
use crate::tools::typed_tool::TypedTool;

const BYTES_PER_GB: u64 = 1_000_000_000;

/// Returns the context with the space that the user's titles hold, if a limit applies and the tool may add something.
pub async fn measure_space<'a, T: TypedTool>(
    context: &'a ToolContext,
    library: &ArrInstances,
) -> Cow<'a, ToolContext> {
    let may_add = T::EFFECT_LEVEL == EffectLevel::Write && T::AUDIENCE == ToolAudience::CanAdd;
    if !may_add || context.allowance.space_limit_gb.is_none() {
        return Cow::Borrowed(context);
    }
    let held_space = measure_held_space(&context.own_titles, context, library).await;
    let allowance = QuotaAllowance { held_space, ..context.allowance.clone() };
    Cow::Owned(ToolContext { allowance, ..context.clone() })
}

async fn measure_held_space(
    own_titles: &[OwnTitle],
    context: &ToolContext,
    library: &ArrInstances,
) -> HeldSpace {
    if own_titles.is_empty() {
        return HeldSpace::Bytes(0);
    }
    let loaded = LoadedLibraries::load_libraries(library, common_kind(own_titles), context.now).await;
    let is_loaded =
        |own: &OwnTitle| loaded.libraries.iter().any(|library| library.instance.name() == own.instance);
    match loaded.failures.first() {
        Some(failure) if !own_titles.iter().all(is_loaded) => HeldSpace::Unknown(failure.code.clone()),
        Some(_) | None => HeldSpace::Bytes(sum_sizes(&find_held_titles(own_titles, &loaded))),
    }
}

/// Checks that the titles of the user hold less than the limit. If that is unknown, the addition is refused.
pub fn check_space(context: &ToolContext) -> Result<(), CallFailure> {
    let Some(limit) = context.allowance.space_limit_gb else { return Ok(()) };
    match &context.allowance.held_space {
        HeldSpace::Bytes(held) if *held < u64::from(limit) * BYTES_PER_GB => Ok(()),
        HeldSpace::Bytes(held) => Err(space_failure(*held, limit, context)),
        HeldSpace::NotMeasured => Err(unknown_space(FailureCode::Quota)),
        HeldSpace::Unknown(code) => Err(unknown_space(code.clone())),
    }
}

/// Checks the limit for an addition that is tried later, when it is checked again: unknown space does not refuse it.
pub fn check_known_space(context: &ToolContext) -> Result<(), CallFailure> {
    match context.allowance.held_space {
        HeldSpace::Bytes(_) => check_space(context),
        HeldSpace::NotMeasured | HeldSpace::Unknown(_) => Ok(()),
    }
}

fn space_failure(held: u64, limit: u32, context: &ToolContext) -> CallFailure {
    if context.audience == Audience::Room {
        let hint = "not added: this is over the limit of the user, who can ask for it in the private chat";
        let text = "That is over your limit. Ask me in our private chat for the details.";
        return CallFailure::new(FailureCode::Quota, json!({ "hint": hint }), Some(text.to_owned()));
    }
    let (held, contact) = (to_gigabytes(held), &context.allowance.contact);
    CallFailure::new(
        FailureCode::Quota,
        json!({ "held_gb": held, "limit_gb": limit, "ask": contact,
            "hint": "not added; tell the user what their titles hold and whom to ask; my_space lists the titles" }),
        Some(format!(
            "Your titles hold {held} of {limit} GB. Text MY SPACE to see them, or ask {contact} for more."
        )),
    )
}

fn unknown_space(code: FailureCode) -> CallFailure {
    CallFailure::new(
        code,
        json!({ "hint": "not added: it is not known how much space the titles of the user hold; say so" }),
        Some("I can't see right now how much space your titles hold.".to_owned()),
    )
}
