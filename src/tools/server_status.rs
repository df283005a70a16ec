//! Tool that reports the free disk space of the instances and the problems that they report.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::formatting::{add_failed_services, append_failed_services, clean_error_message, clean_title};
use super::library::{ArrInstances, INSTANCE_READ_TIMEOUT, Instance, query_all};
use super::typed_tool::TypedTool;
use super::{ToolContext, ToolError, ToolOutput};
use crate::arr::common_api::{HealthLevel, HealthProblem};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, RootFolder};
use crate::conversation::text::message_format::format_size;
use crate::conversation::transcript::{CallResult, EffectLevel, ToolAudience};

/// Maximum number of reported problems per instance.
const MAX_PROBLEMS: usize = 3;

/// Tool that reports free disk space and the problems of the instances.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerStatus {}

/// Status reported by one instance.
struct ServerReport {
    label: String,
    folders: Vec<RootFolder>,
    problems: Vec<HealthProblem>,
}

impl TypedTool for ServerStatus {
    const NAME: &'static str = "server_status";
    const DESCRIPTION: &'static str = "Free disk space, and problems of Sonarr and Radarr.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;

    async fn run(&self, library: &ArrInstances, _context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (movies, series) = tokio::join!(
            query_all(&library.movies, INSTANCE_READ_TIMEOUT, fetch_radarr_state),
            query_all(&library.series, INSTANCE_READ_TIMEOUT, fetch_sonarr_state),
        );
        let reports = movies.map(|(instance, state)| build_report(instance, state));
        let reports = reports.merge(series.map(|(instance, state)| build_report(instance, state)));
        let (reports, failed) = reports.or_failure()?;
        let mut for_model =
            json!({ "servers": reports.iter().map(ServerReport::to_json).collect::<Vec<Value>>() });
        add_failed_services(&mut for_model, &failed);
        let sentence = reports.iter().map(ServerReport::format_report).collect::<Vec<String>>().join(" ");
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

fn build_report<Client>(instance: &Instance<Client>, (folders, mut problems): ServerState) -> ServerReport {
    problems.sort_by_key(|problem| std::cmp::Reverse(problem.level));
    // Notices, such as about a new version, are only for the operator of the instance.
    problems.retain(|problem| problem.level > HealthLevel::Notice);
    ServerReport { label: instance.display_name(), folders, problems }
}

impl ServerReport {
    fn to_json(&self) -> Value {
        let folder_json = |folder: &RootFolder| {
            let free = folder.free_bytes.map(super::formatting::to_gigabytes);
            json!({ "folder": folder_name(&folder.path), "free_gb": free })
        };
        let problems = self.problem_sentences();
        json!({
            "service": self.label,
            "folders": self.folders.iter().map(folder_json).collect::<Vec<Value>>(),
            "problems": problems,
        })
    }

    fn problem_sentences(&self) -> Vec<String> {
        let reported = self.problems.iter().take(MAX_PROBLEMS);
        reported.map(|problem| clean_error_message(&problem.message)).collect()
    }

    fn format_report(&self) -> String {
        let label = &self.label;
        let format_folder = |folder: &RootFolder| match folder.free_bytes {
            Some(free) if self.folders.len() == 1 => format!("{} free", format_size(free)),
            Some(free) => format!("{} free in {}", format_size(free), folder_name(&folder.path)),
            None => format!("{} can't be reached", folder_name(&folder.path)),
        };
        let folders: Vec<String> = self.folders.iter().map(format_folder).collect();
        let problems = self.problem_sentences();
        let disk_space =
            if folders.is_empty() { "no folder is set up".to_owned() } else { folders.join(", ") };
        if problems.is_empty() {
            format!("{label}: {disk_space}, no problems.")
        } else {
            format!("{label}: {disk_space}. It says: {}.", problems.join("; "))
        }
    }
}

/// Returns the last part of the folder path. The location of the folder on the server is not shown to users.
fn folder_name(path: &str) -> String {
    let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
    if name.is_empty() { "the folder".to_owned() } else { clean_title(name) }
}
