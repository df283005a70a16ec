//! Result of an addition whose library cannot be reached: the request is stored and retried later.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::approval::check_quota;
use super::seasons::SPECIALS;
use super::{RequestTiming, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::conversation::title_requests::{QUEUED, RequestStatus, RequestedTitle, Requester, TitleRequest};
use crate::conversation::transcript::{
    CallFailure, CallResult, MediaKind, QuotaKind, QuotaUse, ToolArguments,
};

/// Queues an addition for a retry in place of its failure. The addition must certainly have had no effect.
pub fn queue_for_retry(
    failure: &CallFailure,
    wanted: RequestedTitle,
    arguments: &ToolArguments,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    match context.request_timing {
        RequestTiming::Now => check_quota(context, total_waiting_amount(&wanted, context))?,
        RequestTiming::Earlier => {}
    }
    let why = failure.for_user.as_deref().unwrap_or("That did not work right now.");
    let number = match wanted.kind {
        MediaKind::Movie => "tmdb",
        MediaKind::Series => "tvdb",
    };
    let result = CallResult {
        for_model: json!({ "status": QUEUED, "error": failure.code, "type": wanted.kind,
            number: wanted.catalog_id,
            "hint": "not added yet; it is tried for a day, and the user gets a text either way: say so" }),
        for_user: format!("{why} I'll keep trying for a day and text you."),
        shown: Vec::new(),
    };
    Ok(ToolOutput::with_effect(result, ToolEffect::Queue(wanted, arguments.clone())))
}

/// Returns the amount that would be added if all waiting requests of the user were carried out. Seasons that several
/// requests name count once. A series counts as at least one season, and its specials count as none.
fn total_waiting_amount(wanted: &RequestedTitle, context: &ToolContext) -> QuotaUse {
    let waits = |asked: &&TitleRequest| {
        asked.requester == Requester::You
            && asked.status == RequestStatus::Waiting
            && asked.wanted.kind == wanted.kind
    };
    let mut titles: BTreeMap<(&str, i64), BTreeSet<u32>> = BTreeMap::new();
    for each in context.title_requests.iter().filter(waits).map(|asked| &asked.wanted).chain([wanted]) {
        let seasons = titles.entry((&each.instance, each.catalog_id)).or_default();
        seasons.extend(each.seasons.iter().flatten().filter(|number| **number != SPECIALS));
    }
    let (what, amount) = match wanted.kind {
        MediaKind::Movie => (QuotaKind::Movies, titles.len()),
        MediaKind::Series => {
            (QuotaKind::Seasons, titles.values().map(|seasons| seasons.len().max(1)).sum::<usize>())
        }
    };
    QuotaUse { kind: what, amount: u32::try_from(amount).unwrap_or(u32::MAX) }
}
