//! State of the servers themselves: free disk space, and the problems that they report.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{clean_complaint, clean_title, name_failed, with_failed};
use super::approval::Cleared;
use super::arguments::{read, schema};
use super::library::{Instance, Library, READ_PATIENCE, ask_all};
use super::{READ_TIMEOUT, Ran, Tool, ToolError, Uses, World};
use crate::arr::radarr::Radarr;
use crate::arr::server::{Ailment, AilmentLevel};
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, RootFolder};
use crate::conversation::text::size;
use crate::conversation::transcript::{Arguments, Audience, CallFailure, CallResult, Tier, ToolSpec};

/// Maximum number of reported problems per server.
const MOST_AILMENTS: usize = 3;

pub struct ServerStatus {
    library: Arc<Library>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArgs {}

/// Status reported by one server.
struct Said {
    label: String,
    folders: Vec<RootFolder>,
    ailments: Vec<Ailment>,
}

#[async_trait]
impl Tool for ServerStatus {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "server_status",
            description: "Free disk space, and what is wrong with Sonarr and Radarr.",
            tier: Tier::Read,
            audience: Audience::Everyone,
            parameters: schema::<NoArgs>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        READ_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        read::<NoArgs>("server_status", &schema::<NoArgs>(), arguments).map(|NoArgs {}| Uses::default())
    }

    async fn run(&self, _call: &Cleared, _world: &World) -> Result<Ran, ToolError> {
        let (movies, series) = tokio::join!(
            ask_all(&self.library.movies, READ_PATIENCE, of_radarr),
            ask_all(&self.library.series, READ_PATIENCE, of_sonarr),
        );
        let said = movies.map(|(instance, said)| labelled(instance, said));
        let said = said.and(series.map(|(instance, said)| labelled(instance, said)));
        let (said, failed) = said.or_failure()?;
        let mut for_model = json!({ "servers": said.iter().map(Said::json).collect::<Vec<Value>>() });
        name_failed(&mut for_model, &failed);
        let sentence = said.iter().map(Said::told).collect::<Vec<String>>().join(" ");
        Ok(CallResult { for_model, for_user: with_failed(sentence, &failed), shown: Vec::new() }.into())
    }
}

impl ServerStatus {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }
}

type Answer = (Vec<RootFolder>, Vec<Ailment>);

async fn of_radarr(radarr: &Radarr) -> Result<Answer, ArrError> {
    tokio::try_join!(radarr.root_folders(), radarr.server().health())
}

async fn of_sonarr(sonarr: &Sonarr) -> Result<Answer, ArrError> {
    tokio::try_join!(sonarr.root_folders(), sonarr.server().health())
}

fn labelled<Client>(instance: &Instance<Client>, (folders, mut ailments): Answer) -> Said {
    ailments.sort_by_key(|ailment| std::cmp::Reverse(ailment.level));
    // A notice, such as one about a new version, only concerns the operator of the server.
    ailments.retain(|ailment| ailment.level > AilmentLevel::Notice);
    Said { label: instance.label(), folders, ailments }
}

impl Said {
    fn json(&self) -> Value {
        let folder = |folder: &RootFolder| {
            let free = folder.free_bytes.map(super::answers::gigabytes);
            json!({ "folder": last_part(&folder.path), "free_gb": free })
        };
        let problems: Vec<String> = self
            .ailments
            .iter()
            .take(MOST_AILMENTS)
            .map(|ailment| clean_complaint(&ailment.message))
            .collect();
        json!({
            "service": self.label,
            "folders": self.folders.iter().map(folder).collect::<Vec<Value>>(),
            "problems": problems,
        })
    }

    fn told(&self) -> String {
        let label = &self.label;
        let folder = |folder: &RootFolder| match folder.free_bytes {
            Some(free) if self.folders.len() == 1 => format!("{} free", size(free)),
            Some(free) => format!("{} free in {}", size(free), last_part(&folder.path)),
            None => format!("{} can't be reached", last_part(&folder.path)),
        };
        let folders: Vec<String> = self.folders.iter().map(folder).collect();
        let problems: Vec<String> = self
            .ailments
            .iter()
            .take(MOST_AILMENTS)
            .map(|ailment| clean_complaint(&ailment.message))
            .collect();
        let room = if folders.is_empty() { "no folder is set up".to_owned() } else { folders.join(", ") };
        if problems.is_empty() {
            format!("{label}: {room}, no problems.")
        } else {
            format!("{label}: {room}. It says: {}.", problems.join("; "))
        }
    }
}

/// Last part of the folder path. The location of the folder on the server is not shown to users.
fn last_part(path: &str) -> String {
    let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
    if name.is_empty() { "the folder".to_owned() } else { clean_title(name) }
}
