//! Tool that lists the titles which the user asked for, with the space that each holds and which the user finished.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::held_titles::{HeldTitle, find_held_titles, sum_sizes};
use crate::conversation::text::message_format::format_size;
use crate::conversation::title_requests::Requester;
use crate::conversation::transcript::{CallResult, EffectLevel, ToolAudience};
use crate::media_servers::WatchState;
use crate::media_servers::watched_titles::WatchedTitles;
use crate::tools::formatting::{
    MAX_RESULTS, add_failed_services, append_failed_services, clean_title, format_media_title, to_gigabytes,
};
use crate::tools::library::{ArrInstances, InstanceResults};
use crate::tools::library_cache::loaded_libraries::LoadedLibraries;
use crate::tools::typed_tool::TypedTool;
use crate::tools::viewing::{describe_gap, load_own_watched};
use crate::tools::{LOOKUP_TIMEOUT, ToolContext, ToolEffect, ToolError, ToolOutput};

/// Tool that lists the titles of the user by the space that they hold.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MySpace {
    /// From 1.
    #[schemars(range(min = 1, max = 1_000))]
    page: Option<usize>,
}

impl TypedTool for MySpace {
    const NAME: &'static str = "my_space";
    const DESCRIPTION: &'static str =
        "Titles the user asked for, by size. DROP 1 3 means delete these numbers.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::PrivateChat;
    const READS_OWN_TITLES: bool = true;
    /// What the user has watched is read as well.
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    fn reads_viewing(&self) -> bool {
        true
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (loaded, watched) = tokio::join!(
            LoadedLibraries::load_libraries(library, None, context.now),
            load_own_watched(library, context),
        );
        let responses = vec![(); loaded.libraries.len()];
        let (_, failed) = InstanceResults { responses, failures: loaded.failures.clone() }.or_failure()?;
        let titles = find_held_titles(&context.own_titles, &loaded);
        let library_bytes = loaded
            .cached_titles()
            .iter()
            .flat_map(|library| library.titles())
            .fold(0, |sum: u64, entry| sum.saturating_add(entry.size_bytes));
        let start = self.page.unwrap_or(1).saturating_sub(1).saturating_mul(MAX_RESULTS).min(titles.len());
        let end = titles.len().min(start + MAX_RESULTS);
        let list = SpaceList { titles: &titles, start, end, library_bytes, watched: watched.as_ref() };
        let mut for_model = list.to_json(context);
        add_failed_services(&mut for_model, &failed);
        let for_user = append_failed_services(list.format_for_user(context), &failed);
        let shown = titles[start..end].iter().map(|title| title.library.media_ref(title.entry.id)).collect();
        let result = CallResult { for_model, for_user, shown };
        Ok(match watched {
            Some(_) => ToolOutput::with_effect(result, ToolEffect::MentionViewing),
            None => result.into(),
        })
    }
}

/// Page of the titles of a user.
struct SpaceList<'a> {
    /// All titles of the user, the largest first.
    titles: &'a [HeldTitle<'a>],
    /// Index of the first title of the page.
    start: usize,
    end: usize,
    /// Size of the whole library.
    library_bytes: u64,
    /// What the user has watched, if it is known and may be mentioned.
    watched: Option<&'a WatchedTitles>,
}

impl<'a> SpaceList<'a> {
    /// Returns the titles of the page with their numbers in the list.
    fn numbered(&self) -> impl Iterator<Item = (usize, &HeldTitle<'a>)> {
        self.titles
            .iter()
            .enumerate()
            .take(self.end)
            .skip(self.start)
            .map(|(index, title)| (index + 1, title))
    }

    fn to_json(&self, context: &ToolContext) -> Value {
        let result_json = |(number, title): (usize, &HeldTitle<'_>)| {
            let entry = title.entry;
            let mut json = json!({ "number": number, "type": entry.media_kind(), "id": entry.id,
                "instance": title.library.instance.name(), "title": clean_title(&entry.title), "year": entry.year,
                "size_gb": to_gigabytes(entry.size_bytes) });
            if let Some(finished) = self.format_finished(title, context) {
                json["watched"] = json!(finished);
            }
            if let Some(names) = format_sharers(title) {
                json["also_asked_by"] = json!(names);
            }
            json
        };
        let results: Vec<Value> = self.numbered().map(result_json).collect();
        let mut for_model = json!({ "results": results, "total": self.titles.len(),
            "held_gb": to_gigabytes(sum_sizes(self.titles)), "library_gb": to_gigabytes(self.library_bytes) });
        if let Some(limit) = context.allowance.space_limit_gb {
            for_model["limit_gb"] = json!(limit);
        }
        if let Some(gap) = self.watched.and_then(|watched| describe_gap(watched.evidence)) {
            for_model["watched_incomplete"] = json!(gap);
        }
        for_model
    }

    fn format_for_user(&self, context: &ToolContext) -> String {
        let limit = context.allowance.space_limit_gb;
        let limit_sentence = limit.map(|limit| format!(" Your limit is {limit} GB.")).unwrap_or_default();
        if self.titles.is_empty() {
            return format!("Nothing that you asked for is in the library.{limit_sentence}");
        }
        let (held, library) = (format_size(sum_sizes(self.titles)), format_size(self.library_bytes));
        let subject = match self.titles.len() {
            1 => "Your 1 title holds".to_owned(),
            count => format!("Your {count} titles hold"),
        };
        let mut lines = vec![format!("{subject} {held} of the {library} in the library.{limit_sentence}")];
        lines.extend(self.numbered().map(|(number, title)| self.format_line(number, title, context)));
        let remaining = self.titles.len() - self.end;
        if remaining > 0 {
            lines.push(format!("And {remaining} more."));
        }
        lines.extend(self.format_drop_offer(context));
        lines.join("\n")
    }

    fn format_line(&self, number: usize, title: &HeldTitle<'_>, context: &ToolContext) -> String {
        let entry = title.entry;
        let size = match entry.size_bytes {
            0 => "not on disk yet".to_owned(),
            bytes => format_size(bytes),
        };
        let mut parts = vec![format_media_title(&entry.title, entry.year), size];
        parts.extend(self.format_finished(title, context));
        parts.extend(format_sharers(title).map(|names| format!("also asked for by {names}")));
        format!("{number}. {}", parts.join(", "))
    }

    /// Formats the offer to remove titles of the page.
    fn format_drop_offer(&self, context: &ToolContext) -> Option<String> {
        let mut numbers = self.numbered().map(|(number, _)| number);
        let (first, second) = (numbers.next()?, numbers.next());
        let may_delete = context.rights.may_delete();
        Some(match (second, may_delete) {
            (None, true) => format!("Text DROP {first} to delete it."),
            (None, false) => format!("Text DROP {first} to ask for its removal."),
            (Some(second), true) => format!("Text DROP {first}, or DROP {first} {second}, to delete them."),
            (Some(second), false) => {
                format!("Text DROP {first}, or DROP {first} {second}, to ask for their removal.")
            }
        })
    }

    /// Formats `finished in May`, if the user has finished the title.
    fn format_finished(&self, title: &HeldTitle<'_>, context: &ToolContext) -> Option<String> {
        match self.watched?.state(title.entry.media_kind(), &title.entry.catalog_ids()) {
            WatchState::Finished { at } => {
                Some(at.map_or_else(|| "finished".to_owned(), |at| format_finish_month(at, context)))
            }
            WatchState::Started { .. }
            | WatchState::Never
            | WatchState::NoFinishedPlay
            | WatchState::Unknown => None,
        }
    }
}

fn format_finish_month(at: Timestamp, context: &ToolContext) -> String {
    let (at, now) = (at.to_zoned(context.zone.clone()), context.now.to_zoned(context.zone.clone()));
    let format = if at.year() == now.year() { "finished in %B" } else { "finished in %B %Y" };
    at.strftime(format).to_string()
}

/// Formats the other users who asked for a title, such as `Sam and someone else`.
fn format_sharers(title: &HeldTitle<'_>) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut has_unnamed = false;
    for requester in &title.own.shared_with {
        match requester {
            Requester::You => {}
            Requester::Named(name) => names.push(name),
            Requester::Unnamed => has_unnamed = true,
        }
    }
    names.extend(has_unnamed.then_some("someone else"));
    match names.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        [first @ .., last] => Some(format!("{} and {last}", first.join(", "))),
    }
}
