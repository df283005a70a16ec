//! Tool that returns what a person has watched lately, and where they stopped.

use std::time::Duration;

use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::title_states::format_day;
use super::{ChosenViewer, check_private};
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::transcript::{CallResult, EffectLevel, MediaKind, MediaRef, ToolAudience};
use crate::media_servers::PlayProgress;
use crate::media_servers::watched_titles::{PlayedTitle, RecentPlays};
use crate::tools::formatting::{MAX_RESULTS, clean_title, format_media_title, format_sentence_list};
use crate::tools::library::ArrInstances;
use crate::tools::typed_tool::TypedTool;
use crate::tools::{LOOKUP_TIMEOUT, ToolContext, ToolEffect, ToolError, ToolOutput};

/// Tool that lists what a person has watched lately.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecentlyWatched {
    /// Name of a person, if not the user.
    by: Option<String>,
}

impl TypedTool for RecentlyWatched {
    const NAME: &'static str = "recently_watched";
    const DESCRIPTION: &'static str = "What the user was watching, and where they stopped.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::PrivateChat;
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    fn is_supported(library: &ArrInstances) -> bool {
        !library.media_servers.is_empty()
    }

    fn reads_viewing(&self) -> bool {
        true
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        check_private(context)?;
        let viewers = context.viewers.choose(self.by.as_deref(), library)?;
        let shown_ids = library.find_shown_ids(context.now).await;
        let (mut lists, mut sentences, mut shown) = (Vec::new(), Vec::new(), Vec::new());
        let fetch = async |viewer: ChosenViewer<'_>| {
            let plays = library.media_servers.fetch_recent_plays(viewer.accounts, MAX_RESULTS, context.now);
            (viewer.name.map(str::to_owned), plays.await)
        };
        for (name, mut recent) in join_all(viewers.into_iter().map(fetch)).await {
            recent.plays.retain(|played| shown_ids.includes(played.play.kind, &played.ids));
            sentences.push(format_plays(name.as_deref(), &recent, context));
            let plays: Vec<Value> = recent.plays.iter().map(|played| play_json(played, context)).collect();
            let mut list = json!({ "person": name.as_deref().unwrap_or("the user"), "plays": plays });
            if recent.is_incomplete {
                list["note"] = json!("a media server did not respond, so plays may be missing");
            }
            lists.push(list);
            shown.extend(recent.plays.iter().filter_map(|played| catalog_ref(played.play.kind, &played.ids)));
        }
        let result =
            CallResult { for_model: json!({ "results": lists }), for_user: sentences.join(" "), shown };
        Ok(ToolOutput::with_effect(result, ToolEffect::MentionViewing))
    }
}

/// Returns the id by which other tools know the title.
fn catalog_ref(kind: MediaKind, ids: &CatalogIds) -> Option<MediaRef> {
    match kind {
        MediaKind::Movie => ids.tmdb.map(MediaRef::Tmdb),
        MediaKind::Series => ids.tvdb.map(MediaRef::Tvdb),
    }
}

fn play_json(played: &PlayedTitle, context: &ToolContext) -> Value {
    let PlayedTitle { play, ids, year } = played;
    let mut json = json!({ "title": clean_title(&play.title), "type": play.kind });
    if *year > 0 {
        json["year"] = json!(year);
    }
    match (play.kind, ids.tmdb, ids.tvdb) {
        (MediaKind::Movie, Some(tmdb), _) => json["tmdb"] = json!(tmdb),
        (MediaKind::Series, _, Some(tvdb)) => json["tvdb"] = json!(tvdb),
        _ => {}
    }
    if let Some((season, number)) = play.episode {
        json["episode"] = json!(format!("S{season:02}E{number:02}"));
    }
    json["progress"] = match play.progress {
        PlayProgress::Finished => json!("finished"),
        PlayProgress::StoppedAt { percent } => json!(format!("stopped at {percent}%")),
    };
    if let Some(at) = play.at {
        json["on"] = json!(format_day(at, context));
    }
    json
}

/// Formats plays as a sentence: what was not finished first, because it can be continued.
fn format_plays(name: Option<&str>, recent: &RecentPlays, context: &ToolContext) -> String {
    let who = name.unwrap_or("You");
    let incomplete = if recent.is_incomplete { " One server did not answer." } else { "" };
    let describe = |played: &PlayedTitle| {
        let title = format_media_title(&played.play.title, played.year);
        let episode = played.play.episode.map(|(season, number)| format!(" S{season:02}E{number:02}"));
        let day = played.play.at.map(|at| format!(" ({})", format_day(at, context)));
        let percent = match played.play.progress {
            PlayProgress::Finished => String::new(),
            PlayProgress::StoppedAt { percent } => format!(" at {percent}%"),
        };
        format!("{title}{}{percent}{}", episode.unwrap_or_default(), day.unwrap_or_default())
    };
    let is_finished = |played: &&PlayedTitle| played.play.progress == PlayProgress::Finished;
    let (finished, stopped): (Vec<&PlayedTitle>, Vec<&PlayedTitle>) =
        recent.plays.iter().partition(is_finished);
    let list = |plays: &[&PlayedTitle]| {
        let titles: Vec<String> = plays.iter().map(|played| describe(played)).collect();
        format_sentence_list(&titles)
    };
    let sentence = match (stopped.as_slice(), finished.as_slice()) {
        ([], []) if recent.is_incomplete => {
            return "I can't see that right now. Please ask again later.".to_owned();
        }
        ([], []) => format!("I know of nothing that {} watched lately.", name.unwrap_or("you")),
        (stopped, []) => format!("{who} stopped watching {}.", list(stopped)),
        ([], finished) => format!("{who} finished {}.", list(finished)),
        (stopped, finished) => {
            format!("{who} stopped watching {}. Finished lately: {}.", list(stopped), list(finished))
        }
    };
    format!("{sentence}{incomplete}")
}
