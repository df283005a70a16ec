//! Spend route: usage and cost of the last 30 days.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::database_unavailable;
use crate::store::console::usage::{self, UsageTotals};
use crate::web::auth::Caller;
use crate::web::console::spend::first_day;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;

/// Usage over a period.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Usage)]
struct UsageJson {
    model_calls: u64,
    /// Input tokens, including the cached ones.
    input_tokens: u64,
    cached_input_tokens: u64,
    output_tokens: u64,
    /// SMS segments sent by phone.
    segments: u64,
    /// Cost of the model in millionths of the currency of the configured prices. 0 if no price is set.
    cost_micros: u64,
}

impl From<UsageTotals> for UsageJson {
    fn from(totals: UsageTotals) -> Self {
        Self {
            model_calls: totals.model_calls,
            input_tokens: totals.tokens_in,
            cached_input_tokens: totals.tokens_cached,
            output_tokens: totals.tokens_out,
            segments: totals.segments,
            cost_micros: totals.cost,
        }
    }
}

/// Usage on a day.
#[derive(Debug, Serialize, ToSchema)]
struct DayUsage {
    #[schema(format = Date, example = "2026-11-20")]
    day: String,
    #[serde(flatten)]
    usage: UsageJson,
}

/// Usage of a user.
#[derive(Debug, Serialize, ToSchema)]
struct UserUsage {
    /// Id of the user.
    user: i64,
    #[serde(flatten)]
    usage: UsageJson,
}

/// Usage and cost of the last 30 days.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Spend {
    /// First day of the period, which ends today.
    #[schema(format = Date, example = "2026-11-20")]
    first_day: String,
    total: UsageJson,
    /// Days with usage, newest first.
    days: Vec<DayUsage>,
    /// Up to 50 users, who used most, in descending order of tokens.
    users: Vec<UserUsage>,
}

/// Show usage and cost of the last 30 days, per day and per user
#[utoipa::path(
    get,
    path = "/spend",
    tag = "spend",
    operation_id = "show_spend",
    responses((status = 200, description = "Usage and cost", body = Spend))
)]
pub(super) async fn show_spend(
    State(console): State<ConsoleState>,
    _caller: Caller,
) -> Result<Json<Spend>, ProblemDetails> {
    let first_day = first_day(console.clock.now(), &console).to_string();
    let first = first_day.clone();
    let load = move |conn: &mut _| usage::load_usage_report(conn, &first);
    let report = console.db.read(load).await.map_err(database_unavailable)?;
    let total = report.days.values().copied().fold(UsageTotals::default(), UsageTotals::combined_with);
    let day_usage = |(day, totals): (String, UsageTotals)| DayUsage { day, usage: totals.into() };
    Ok(Json(Spend {
        first_day,
        total: total.into(),
        days: report.days.into_iter().rev().map(day_usage).collect(),
        users: report
            .users
            .into_iter()
            .map(|(user, totals)| UserUsage { user: user.id.0, usage: totals.into() })
            .collect(),
    }))
}
