//! Tool that shows which titles could go, asks the people concerned, and lists the titles that an admin may decide on.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::candidates::CandidateSearch;
use crate::conversation::grammar::make_room_step::MakeRoomStep;
use crate::conversation::making_room::messages;
use crate::conversation::making_room::plan::{MAX_TITLES, plan_proposal};
use crate::conversation::making_room::proposal::{Candidate, ProposalPlan, ProposalRules};
use crate::conversation::routing::rooms::Audience;
use crate::conversation::text::message_format::format_size;
use crate::conversation::text::title::format_title;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaRef, ToolAudience, UserRole,
};
use crate::tools::formatting::{clean_title, to_gigabytes};
use crate::tools::library::ArrInstances;
use crate::tools::typed_tool::TypedTool;
use crate::tools::{LOOKUP_TIMEOUT, ToolContext, ToolEffect, ToolError, ToolOutput};

/// Tool that makes room on the disks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeRoom {
    /// Default: preview.
    step: Option<MakeRoomStep>,
}

impl TypedTool for MakeRoom {
    const NAME: &'static str = "make_room";
    const DESCRIPTION: &'static str =
        "Titles that could go. start: ask those concerned. review: delete what they left.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::DeletionCommand;
    const READS_SPACE_RECORDS: bool = true;
    /// What all people have watched is read.
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        if context.audience == Audience::Room {
            return Err(failure(
                "this works only in the private chat",
                "Please ask me that in our private chat.",
            )
            .into());
        }
        let step = self.step.unwrap_or(MakeRoomStep::Preview);
        if step != MakeRoomStep::Preview && context.rights.role != UserRole::Admin {
            return Err(failure("only an admin may start that", messages::ADMINS_ONLY).into());
        }
        let search =
            CandidateSearch { library, records: &context.space, now: context.now, zone: &context.zone };
        match step {
            MakeRoomStep::Preview => preview(&search.find_candidates().await?, context),
            MakeRoomStep::Start => start(&search, context).await,
            MakeRoomStep::Review => review(&search, context).await,
        }
    }
}

fn failure(hint: &str, for_user: &str) -> CallFailure {
    CallFailure::new(FailureCode::NotPermitted, json!({ "hint": hint }), Some(for_user.to_owned()))
}

fn rules(context: &ToolContext) -> ProposalRules {
    ProposalRules {
        silence: context.space.silence,
        wanted_bytes: None,
        now: context.now,
        zone: context.zone.clone(),
    }
}

fn preview(candidates: &[Candidate], context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let largest = &candidates[..candidates.len().min(MAX_TITLES)];
    if largest.is_empty() {
        return Ok(text_result(json!({ "results": [] }), messages::NOTHING_COULD_GO.to_owned()).into());
    }
    let may_start = context.rights.role == UserRole::Admin && context.space.open_until.is_none();
    let for_user = messages::format_preview(largest, (context.now, &context.zone), may_start);
    let results: Vec<Value> = largest.iter().map(|candidate| candidate_json(candidate, context)).collect();
    let result = CallResult {
        for_model: json!({ "results": results }),
        for_user,
        shown: largest.iter().map(media_ref).collect(),
    };
    Ok(ToolOutput::with_effect(result, ToolEffect::MentionViewing))
}

async fn start(search: &CandidateSearch<'_>, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    if let Some(until) = context.space.open_until {
        let text = messages::format_already_open(until, &context.zone);
        return Ok(text_result(json!({ "status": "asked_already" }), text).into());
    }
    let Some(plan) = plan_proposal(search.find_candidates().await?, &rules(context)) else {
        return Ok(text_result(json!({ "status": "nothing" }), messages::NOTHING_COULD_GO.to_owned()).into());
    };
    let for_user = messages::format_started(&plan, &names_of_asked(&plan, context), &context.zone);
    let for_model = json!({ "status": "asking", "titles": plan.titles.len(),
        "size_gb": to_gigabytes(plan.total_bytes()) });
    Ok(ToolOutput::with_effect(text_result(for_model, for_user), ToolEffect::OpenProposal(Box::new(plan))))
}

async fn review(search: &CandidateSearch<'_>, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let proposed = &context.space.under_review;
    if proposed.is_empty() {
        return Ok(text_result(json!({ "results": [] }), messages::NOTHING_TO_REVIEW.to_owned()).into());
    }
    let candidates = search.find_unchanged(proposed).await?;
    let results: Vec<Value> = candidates.iter().map(|candidate| candidate_json(candidate, context)).collect();
    let lines = candidates.iter().map(|candidate| {
        let title = &candidate.title;
        format!("{}, {}", format_title(&title.title, title.year), format_size(title.size_bytes))
    });
    let for_user = match candidates.is_empty() {
        true => messages::NOTHING_UNCHANGED.to_owned(),
        false => lines.collect::<Vec<_>>().join("\n"),
    };
    let shown = candidates.iter().map(media_ref).collect();
    let result = CallResult { for_model: json!({ "results": results }), for_user, shown };
    Ok(ToolOutput::with_effect(result, ToolEffect::MentionViewing))
}

fn text_result(for_model: Value, for_user: String) -> CallResult {
    CallResult { for_model, for_user, shown: Vec::new() }
}

fn names_of_asked(plan: &ProposalPlan, context: &ToolContext) -> Vec<String> {
    let name = |user| context.space.people.iter().find(|person| person.user == user);
    plan.questions
        .iter()
        .filter_map(|question| name(question.user))
        .map(|person| person.name.clone())
        .collect()
}

fn candidate_json(candidate: &Candidate, context: &ToolContext) -> Value {
    let title = &candidate.title;
    let reason =
        messages::format_reason(candidate.reason, candidate.last_played_at, (context.now, &context.zone));
    json!({ "type": title.kind, "id": title.item, "instance": title.instance, "title": clean_title(&title.title),
        "year": title.year, "size_gb": to_gigabytes(title.size_bytes), "why": reason })
}

fn media_ref(candidate: &Candidate) -> MediaRef {
    let title = &candidate.title;
    MediaRef::Item { instance: title.instance.clone(), kind: title.kind, id: title.item }
}
