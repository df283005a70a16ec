//! Delivery routes: outbound messages with their delivery status, and resending.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::database_unavailable;
use super::extract::{PathId, QueryParams};
use super::paging::{Page, PageCursor};
use super::users::{UserIdentifier, find_user};
use crate::conversation::delivery_status::DeliveryStatus;
use crate::store::console::deliveries::{self, DeliveryFilter, DeliverySummary};
use crate::store::queue::resend::ResendOutcome;
use crate::web::auth::Caller;
use crate::web::console::delivery_labels;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;
use crate::web::sse_snapshot::format_iso;
use crate::web::sse_states::MessageStateJson;

/// Message to a user, with its delivery status.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub(super) struct DeliveryJson {
    id: i64,
    /// Id of the recipient.
    user: i64,
    body: String,
    has_picture: bool,
    /// Conversation of the message. Null for a message without a turn, such as a notification.
    conversation: Option<i64>,
    state: MessageStateJson,
    /// Reason for the state, where there is one to give.
    reason: Option<String>,
    /// Number of SMS segments. 0 for a message that is only displayed.
    segments: u32,
    /// True if the message certainly did not arrive and was not resent.
    can_resend: bool,
    #[schema(format = DateTime)]
    written_at: String,
}

impl DeliveryJson {
    fn from_summary(delivery: DeliverySummary) -> Self {
        let status = delivery.message.status();
        Self {
            id: delivery.message.id.0,
            user: delivery.to.id.0,
            has_picture: delivery.message.picture.is_some(),
            conversation: delivery.conversation.map(|id| id.0),
            state: status.into(),
            reason: delivery_labels::delivery_reason(&delivery.message),
            segments: if status == DeliveryStatus::Shown { 0 } else { delivery.message.segments },
            can_resend: delivery.can_resend,
            written_at: format_iso(delivery.message.written_at),
            body: delivery.message.body,
        }
    }
}

/// Messages to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DeliveryChoice {
    Waiting,
    Failed,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DeliveriesParams {
    /// Only messages that wait to be sent (`waiting`), or that failed (`failed`). Not together with `user`.
    #[param(inline)]
    only: Option<DeliveryChoice>,
    /// Only messages to this user: a user's id, or a phone number (write its `+` as `%2B`).
    #[param(pattern = r"^(\+[1-9][0-9]{6,14}|[0-9]{1,18})$")]
    user: Option<String>,
    /// Only entries older than this cursor: the `next` of another page.
    before: Option<i64>,
    /// Number of entries to return.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<usize>,
}

/// List messages to users with their delivery status, newest first
#[utoipa::path(
    get,
    path = "/deliveries",
    tag = "deliveries",
    operation_id = "list_deliveries",
    params(DeliveriesParams),
    responses(
        (status = 200, description = "A page of messages", body = Page<DeliveryJson>),
        (status = 404, description = "No user has this id or number"),
        (status = 422, description = "The user is neither an id nor a phone number, or `only` was given too"),
    )
)]
pub(super) async fn list_deliveries(
    State(console): State<ConsoleState>,
    _caller: Caller,
    QueryParams(params): QueryParams<DeliveriesParams>,
) -> Result<Json<Page<DeliveryJson>>, ProblemDetails> {
    let cursor = PageCursor::from_params(params.before, params.limit)?;
    let filter = match (params.only, params.user) {
        (None, None) => DeliveryFilter::All,
        (Some(DeliveryChoice::Waiting), None) => DeliveryFilter::Waiting,
        (Some(DeliveryChoice::Failed), None) => DeliveryFilter::Failed,
        (None, Some(user)) => {
            DeliveryFilter::To(find_user(&console, UserIdentifier::parse(&user)?).await?.id)
        }
        (Some(_), Some(_)) => {
            let detail = "only and user cannot be combined";
            return Err(ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        }
    };
    let load = move |conn: &mut _| {
        deliveries::load_delivery_summaries(conn, filter, cursor.before, cursor.page_size)
    };
    let page = console.db.read(load).await.map_err(database_unavailable)?;
    Ok(Json(Page::from_results(page, DeliveryJson::from_summary)))
}

/// Message that is sent again.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Resent {
    delivery_id: i64,
}

/// Resend a message that certainly did not arrive
///
/// A copy of the message is sent, once. Confirmation prompts are not resent.
#[utoipa::path(
    post,
    path = "/deliveries/{id}/resend",
    tag = "deliveries",
    operation_id = "resend_delivery",
    params(("id" = i64, Path, description = "A message's id")),
    responses(
        (status = 202, description = "The copy is queued", body = Resent),
        (status = 404, description = "No message has this id"),
        (status = 409, description = "The message may have arrived, was resent before, or cannot be resent"),
    )
)]
pub(super) async fn resend_delivery(
    State(console): State<ConsoleState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<(StatusCode, Json<Resent>), ProblemDetails> {
    let outcome = console.engine.decisions.resend_message(id, caller.actor()).await;
    match outcome.map_err(database_unavailable)? {
        ResendOutcome::Queued => Ok((StatusCode::ACCEPTED, Json(Resent { delivery_id: id }))),
        ResendOutcome::NotAllowed => Err(ProblemDetails::new(
            StatusCode::CONFLICT,
            "the message may have arrived, was resent before, is a confirmation prompt, or its text is erased",
        )),
        ResendOutcome::Unknown => Err(ProblemDetails::new(StatusCode::NOT_FOUND, "no message has this id")),
    }
}
