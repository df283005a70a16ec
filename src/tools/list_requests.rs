//! Tool that lists the recent title requests of the household, for agents. People ask about one title instead.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::formatting::{clean_title, list_first_results, page_start};
use super::library::ArrInstances;
use super::typed_tool::TypedTool;
use super::{ToolContext, ToolError, ToolOutput};
use crate::conversation::title_requests::{RequestStatus, Requester, TitleRequest};
use crate::conversation::transcript::{CallResult, EffectLevel, ToolAudience};

/// Tool that lists title requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListRequests {
    /// From 1.
    #[schemars(range(min = 1, max = 1_000))]
    page: Option<usize>,
}

impl TypedTool for ListRequests {
    const NAME: &'static str = "list_requests";
    const DESCRIPTION: &'static str =
        "List recently requested titles, newest first, 5 a page, with the people who asked.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Agent;

    async fn run(&self, _library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let total = context.title_requests.len();
        let newest = context.title_requests.iter().rev().skip(page_start(self.page));
        let results = newest.map(|request| request_json(request, context)).collect();
        let for_user = match total {
            0 => "No title was requested recently.".to_owned(),
            1 => "1 request.".to_owned(),
            total => format!("{total} requests."),
        };
        let for_model = list_first_results(results, total, "ask for another page");
        Ok(CallResult { for_model, for_user, shown: Vec::new() }.into())
    }
}

fn request_json(request: &TitleRequest, context: &ToolContext) -> Value {
    let wanted = &request.wanted;
    let day = request.requested_at.to_zoned(context.zone.clone()).date();
    json!({
        "title": clean_title(&wanted.title),
        "year": wanted.year,
        "type": wanted.kind,
        "seasons": wanted.seasons,
        "asked_by": match &request.requester {
            Requester::You => "you",
            Requester::Named(name) => name,
            Requester::Unnamed => "someone",
        },
        "asked_on": day.to_string(),
        "status": match request.status {
            RequestStatus::Waiting => "waiting",
            RequestStatus::InLibrary => "in_library",
        },
    })
}
