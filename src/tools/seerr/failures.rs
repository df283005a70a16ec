//! Failures of requests at a Seerr, in words for the model and the user.

use serde_json::json;

use super::SeerrCaller;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{CallFailure, FailureCode, MediaKind};
use crate::seerr::{RequestRefusal, SeerrQuota};
use crate::server_api::ServerError;
use crate::telemetry;

/// Failure of a user without a link to a user of the Seerr.
pub(super) fn not_linked() -> CallFailure {
    CallFailure::new(
        FailureCode::NotLinked,
        json!({ "hint": "nothing was asked for: ask for their name on Seerr, and call link_account" }),
        Some("You are not linked to Seerr yet. Text LINK SEERR and your name there.".to_owned()),
    )
}

/// Converts the error of a request that certainly had no effect.
pub(in crate::tools) fn request_failure(error: &ServerError) -> CallFailure {
    tracing::warn!(error = telemetry::error_chain(error), "request to Seerr failed");
    let (code, sentence) = match error {
        ServerError::Unreachable(_) => (FailureCode::SeerrUnreachable, "can't be reached right now"),
        ServerError::Unavailable(_) | ServerError::Unreadable(_) | ServerError::RateLimited(_) => {
            (FailureCode::SeerrError, "had an error")
        }
        ServerError::Unauthorized | ServerError::WrongUrl(_) => {
            (FailureCode::SeerrMisconfigured, "is not set up correctly. An admin has to check it")
        }
        ServerError::NotFound | ServerError::Refused(_) => (FailureCode::SeerrRefused, "did not accept that"),
    };
    CallFailure::new(code, json!({ "service": "Seerr" }), Some(format!("Seerr {sentence}.")))
}

/// Converts the refusal of a request.
pub(super) async fn refusal(
    caller: &SeerrCaller<'_>,
    refusal: RequestRefusal,
    title: &RequestedTitle,
) -> CallFailure {
    let name = title.format_name();
    match refusal {
        RequestRefusal::Quota => over_quota(caller, title.kind).await,
        RequestRefusal::NotPermitted => not_permitted(
            "their user on Seerr may not ask for this",
            "You may not ask for that in Seerr. An admin can change it there.".to_owned(),
        ),
        RequestRefusal::Blocklisted => {
            not_permitted("the title is on the blocklist of Seerr", format!("{name} is blocked in Seerr."))
        }
        RequestRefusal::UnknownUser => CallFailure::new(
            FailureCode::NotLinked,
            json!({ "hint": "nothing was asked for: their user on Seerr was removed; an admin can link another one" }),
            Some(
                "Your user in Seerr is gone. Text UNLINK SEERR, then LINK SEERR and your name there."
                    .to_owned(),
            ),
        ),
    }
}

async fn over_quota(caller: &SeerrCaller<'_>, kind: MediaKind) -> CallFailure {
    let quota = match caller.seerr.fetch_quotas(caller.user).await {
        Ok(quotas) if kind == MediaKind::Movie => quotas.movies,
        Ok(quotas) => quotas.seasons,
        Err(error) => {
            tracing::warn!(error = telemetry::error_chain(&error), "failed to read a quota at Seerr");
            SeerrQuota::default()
        }
    };
    let unit = match kind {
        MediaKind::Movie => "movies",
        MediaKind::Series => "seasons",
    };
    let (details, sentence) = match (caller.context.audience, quota) {
        (Audience::Author, SeerrQuota { limit: Some(limit), days, used }) => {
            let period = days.map(|days| format!(" in {days} days")).unwrap_or_default();
            (
                json!({ "limit": limit, "used": used, "days": days }),
                format!("That is over your limit in Seerr: {used} of {limit} {unit}{period} are used."),
            )
        }
        (Audience::Author | Audience::Room | Audience::Agent, _) => {
            (json!({ "hint": "over the limit of the user" }), "That is over your limit in Seerr.".to_owned())
        }
    };
    CallFailure::new(FailureCode::Quota, details, Some(sentence))
}

/// Failure for a part of a series that a Seerr cannot request.
pub(super) fn whole_seasons_only() -> CallFailure {
    CallFailure::new(
        FailureCode::WhichSeasons,
        json!({ "hint": "titles are asked for in Seerr, which takes whole seasons: ask which ones" }),
        Some("Seerr takes whole seasons only. Which seasons do you want?".to_owned()),
    )
}

/// Failure for a show whose TMDB id is unknown.
pub(super) fn unknown_series(name: &str) -> CallFailure {
    CallFailure::new(
        FailureCode::NotFound,
        json!({ "hint": "Seerr does not know this show, so it cannot be asked for: say so" }),
        Some(format!("Seerr does not know {name}, so I can't ask for it.")),
    )
}

/// Failure for a title of which the Seerr has no record.
pub(super) fn unknown_to_seerr(name: &str) -> CallFailure {
    CallFailure::new(
        FailureCode::NotFound,
        json!({ "hint": "Seerr does not know this title yet, so nothing was reported" }),
        Some(format!("Seerr does not know {name} yet, so I can't report it.")),
    )
}

/// Failure of a user who may not report problems at the Seerr.
pub(super) fn may_not_report() -> CallFailure {
    not_permitted(
        "their user on Seerr may not report problems",
        "You may not report problems in Seerr. An admin can change it there.".to_owned(),
    )
}

/// Failure for a change of the library that would get more of a title without a request.
pub(in crate::tools) fn ask_by_request() -> CallFailure {
    not_permitted(
        "more of a title is asked for in Seerr: call get_more",
        "More of a title is asked for in Seerr. Ask me to get it.".to_owned(),
    )
}

fn not_permitted(hint: &str, sentence: String) -> CallFailure {
    CallFailure::new(FailureCode::NotPermitted, json!({ "hint": hint }), Some(sentence))
}
