//! Tool that reports the state of the instances themselves: free disk space, and the problems that they report.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::formatting::{add_failed_services, append_failed_services, clean_error_message, clean_title};
use super::library::{ArrInstances, Instance, READ_PATIENCE, query_all};
use super::typed_tool::TypedTool;
use super::{ToolContext, ToolError, ToolOutput};
use crate::arr::common_api::{HealthLevel, HealthProblem};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, RootFolder};
use crate::conversation::text::message_format::format_size;
use crate::conversation::transcript::{CallResult, EffectLevel, ToolAudience};

/// Maximum number of reported problems per instance.
const MOST_AILMENTS: usize = 3;

/// Tool that reports free disk space and the problems of the instances.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerStatus {}

/// Status reported by one instance.
struct ServerReport {
    label: String,
    folders: Vec<RootFolder>,
    ailments: Vec<HealthProblem>,
}

impl TypedTool for ServerStatus {
    const NAME: &'static str = "server_status";
    const DESCRIPTION: &'static str = "Free disk space, and what is wrong with Sonarr and Radarr.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;

    async fn run(&self, library: &ArrInstances, _context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (movies, series) = tokio::join!(
            query_all(&library.movies, READ_PATIENCE, fetch_radarr_state),
            query_all(&library.series, READ_PATIENCE, fetch_sonarr_state),
        );
        let said = movies.map(|(instance, said)| build_report(instance, said));
        let said = said.merge(series.map(|(instance, said)| build_report(instance, said)));
        let (said, failed) = said.or_failure()?;
        let mut for_model =
            json!({ "servers": said.iter().map(ServerReport::to_json).collect::<Vec<Value>>() });
        add_failed_services(&mut for_model, &failed);
        let sentence = said.iter().map(ServerReport::format_report).collect::<Vec<String>>().join(" ");
        Ok(CallResult { for_model, for_user: append_failed_services(sentence, &failed), shown: Vec::new() }
            .into())
    }
}

type ServerState = (Vec<RootFolder>, Vec<HealthProblem>);

async fn fetch_radarr_state(radarr: &Radarr) -> Result<ServerState, ArrError> {
    tokio::try_join!(radarr.fetch_root_folders(), radarr.common_api().fetch_health())
}

async fn fetch_sonarr_state(sonarr: &Sonarr) -> Result<ServerState, ArrError> {
    tokio::try_join!(sonarr.fetch_root_folders(), sonarr.common_api().fetch_health())
}

fn build_report<Client>(instance: &Instance<Client>, (folders, mut ailments): ServerState) -> ServerReport {
    ailments.sort_by_key(|ailment| std::cmp::Reverse(ailment.level));
    // A notice, such as one about a new version, concerns only the operator of the instance.
    ailments.retain(|ailment| ailment.level > HealthLevel::Notice);
    ServerReport { label: instance.display_name(), folders, ailments }
}

impl ServerReport {
    fn to_json(&self) -> Value {
        let folder = |folder: &RootFolder| {
            let free = folder.free_bytes.map(super::formatting::to_gigabytes);
            json!({ "folder": folder_name(&folder.path), "free_gb": free })
        };
        let problems = self.problem_sentences();
        json!({
            "service": self.label,
            "folders": self.folders.iter().map(folder).collect::<Vec<Value>>(),
            "problems": problems,
        })
    }

    fn problem_sentences(&self) -> Vec<String> {
        let first = self.ailments.iter().take(MOST_AILMENTS);
        first.map(|ailment| clean_error_message(&ailment.message)).collect()
    }

    fn format_report(&self) -> String {
        let label = &self.label;
        let folder = |folder: &RootFolder| match folder.free_bytes {
            Some(free) if self.folders.len() == 1 => format!("{} free", format_size(free)),
            Some(free) => format!("{} free in {}", format_size(free), folder_name(&folder.path)),
            None => format!("{} can't be reached", folder_name(&folder.path)),
        };
        let folders: Vec<String> = self.folders.iter().map(folder).collect();
        let problems = self.problem_sentences();
        let room = if folders.is_empty() { "no folder is set up".to_owned() } else { folders.join(", ") };
        if problems.is_empty() {
            format!("{label}: {room}, no problems.")
        } else {
            format!("{label}: {room}. It says: {}.", problems.join("; "))
        }
    }
}

/// Returns the last part of the folder path. The location of the folder on the server is not shown to users.
fn folder_name(path: &str) -> String {
    let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
    if name.is_empty() { "the folder".to_owned() } else { clean_title(name) }
}
