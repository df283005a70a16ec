//! Deferred addition: a request whose instance cannot be reached is stored and retried later.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::approval::check_count;
use super::own_space::space_limit::check_known_space;
use super::seasons::SPECIALS;
use super::{RequestTiming, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::conversation::title_requests::{QUEUED, RequestStatus, RequestedTitle, Requester, TitleRequest};
use crate::conversation::transcript::{
    CallFailure, CallResult, MediaKind, QuotaKind, QuotaUse, ToolArguments,
};

/// Keeper of the quota to which an addition counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaKeeper {
    Household,
    Seerr,
}

/// Queues an addition for a retry instead of reporting its failure. The addition must not have had any effect.
pub fn queue_for_retry(
    failure: &CallFailure,
    (requested, arguments): (RequestedTitle, &ToolArguments),
    quota: QuotaKeeper,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    match (context.request_timing, quota) {
        (RequestTiming::Now, QuotaKeeper::Household) => {
            check_count(context, total_waiting_amount(&requested, context))?;
            check_known_space(context)?;
        }
        (RequestTiming::Now, QuotaKeeper::Seerr) => check_known_space(context)?,
        (RequestTiming::Earlier, _) => {}
    }
    let reason = failure.for_user.as_deref().unwrap_or("That did not work right now.");
    let id_field = match requested.kind {
        MediaKind::Movie => "tmdb",
        MediaKind::Series => "tvdb",
    };
    let result = CallResult {
        for_model: json!({ "status": QUEUED, "error": failure.code, "type": requested.kind,
            id_field: requested.catalog_id,
            "hint": "not added yet; it is tried for a day, and the user gets a text either way: say so" }),
        for_user: format!("{reason} I'll keep trying for a day and text you."),
        shown: Vec::new(),
    };
    Ok(ToolOutput::with_effect(result, ToolEffect::Queue(requested, arguments.clone())))
}

/// Returns the quota usage of the request together with the waiting requests of the user. A season in several requests
/// counts once. A series counts as at least one season, and specials are free.
fn total_waiting_amount(requested: &RequestedTitle, context: &ToolContext) -> QuotaUse {
    let is_waiting = |request: &&TitleRequest| {
        request.requester == Requester::You
            && request.status == RequestStatus::Waiting
            && request.wanted.kind == requested.kind
    };
    let mut titles: BTreeMap<(&str, i64), BTreeSet<u32>> = BTreeMap::new();
    for title in
        context.title_requests.iter().filter(is_waiting).map(|request| &request.wanted).chain([requested])
    {
        let seasons = titles.entry((&title.instance, title.catalog_id)).or_default();
        seasons.extend(title.seasons.iter().flatten().filter(|number| **number != SPECIALS));
    }
    let (kind, amount) = match requested.kind {
        MediaKind::Movie => (QuotaKind::Movies, titles.len()),
        MediaKind::Series => {
            (QuotaKind::Seasons, titles.values().map(|seasons| seasons.len().max(1)).sum::<usize>())
        }
    };
    QuotaUse { kind, amount: u32::try_from(amount).unwrap_or(u32::MAX) }
}
