//! Choice of the requested title: the search for a keyword, and the matching title or numbered list in its results.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::conversation::grammar::keyword_grammar::{self, KeywordRequest, RequestedSeasons};
use crate::conversation::text::normalization::normalize_title;
use crate::conversation::text::title::format_title;
use crate::conversation::transcript::MediaKind;

/// Maximum number of titles in a list, which has to fit in a message.
pub(super) const MAX_LIST_LENGTH: usize = 5;

/// Search for a title, and the purpose of the search.
pub(super) struct TitleSearch<'a> {
    /// Title in the message, without seasons.
    title: &'a str,
    purpose: SearchPurpose<'a>,
}

enum SearchPurpose<'a> {
    Add,
    AddSeasons {
        seasons: RequestedSeasons,
        /// Title with the season words, which may be part of it, as in "Ladies First".
        full_title: &'a str,
    },
    Find,
    Remove,
}

/// Action on the requested title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TitleAction {
    Add,
    AddSeasons(RequestedSeasons),
    Remove,
}

/// Choice among the search results.
pub(super) enum TitleChoice<'f> {
    Nothing,
    One(&'f FoundTitle, TitleAction),
    /// Several titles are possible.
    List,
}

impl<'a> TitleSearch<'a> {
    /// Creates the search for a keyword. Returns `None` for a message that names no title, and for a question, which
    /// one tool call answers.
    pub(super) fn from_keyword(keyword: KeywordRequest<'a>) -> Option<Self> {
        match keyword {
            KeywordRequest::Add(full_title) => Some(match keyword_grammar::split_seasons(full_title) {
                Some((title, seasons)) => {
                    Self { title, purpose: SearchPurpose::AddSeasons { seasons, full_title } }
                }
                None => Self { title: full_title, purpose: SearchPurpose::Add },
            }),
            KeywordRequest::Search(title) => Some(Self { title, purpose: SearchPurpose::Find }),
            KeywordRequest::Remove(title) => Some(Self { title, purpose: SearchPurpose::Remove }),
            KeywordRequest::Have(_)
            | KeywordRequest::Reference(..)
            | KeywordRequest::Status
            | KeywordRequest::Upcoming
            | KeywordRequest::FollowTitle
            | KeywordRequest::Number(_) => None,
        }
    }

    pub(super) fn tool_name(&self) -> &'static str {
        match self.purpose {
            SearchPurpose::Add | SearchPurpose::AddSeasons { .. } | SearchPurpose::Find => "search_media",
            SearchPurpose::Remove => "find_in_library",
        }
    }

    pub(super) fn arguments(&self) -> Map<String, Value> {
        json_object([("query", json!(self.title))])
    }

    /// Returns the reply to a search without results.
    pub(super) fn nothing_found_reply(&self) -> &'static str {
        match self.purpose {
            SearchPurpose::Add | SearchPurpose::AddSeasons { .. } | SearchPurpose::Find => {
                "I found nothing by that name."
            }
            SearchPurpose::Remove => "I found nothing by that name in the library.",
        }
    }

    /// Returns the action for a title that is chosen from the list.
    pub(super) fn title_action(&self) -> TitleAction {
        match &self.purpose {
            SearchPurpose::Add | SearchPurpose::Find => TitleAction::Add,
            SearchPurpose::AddSeasons { seasons, .. } => TitleAction::AddSeasons(seasons.clone()),
            SearchPurpose::Remove => TitleAction::Remove,
        }
    }

    /// Returns the title of an alias or the only exact match. Other results are listed.
    pub(super) fn choose_title<'f>(&self, found: &'f [FoundTitle]) -> TitleChoice<'f> {
        let full_match = match self.purpose {
            _ if found.is_empty() => return TitleChoice::Nothing,
            SearchPurpose::Find => return TitleChoice::List,
            SearchPurpose::AddSeasons { full_title, .. } => only_match(found, full_title),
            SearchPurpose::Add | SearchPurpose::Remove => None,
        };
        match (full_match, only_alias(found).or_else(|| only_match(found, self.title))) {
            (Some(title), _) => TitleChoice::One(title, TitleAction::Add),
            (None, Some(title)) => TitleChoice::One(title, self.title_action()),
            (None, None) => TitleChoice::List,
        }
    }
}

/// Fields of a title that `search_media` and `find_in_library` both return.
#[derive(Debug, Deserialize)]
pub(super) struct FoundTitle {
    #[serde(rename = "type")]
    pub(super) kind: MediaKind,
    title: String,
    year: Option<u16>,
    pub(super) tmdb: Option<i64>,
    pub(super) tvdb: Option<i64>,
    id: Option<i64>,
    instance: Option<String>,
    #[serde(default)]
    pub(super) in_library: bool,
    /// True if the name is an alias of the user for this title.
    #[serde(default, rename = "meant")]
    is_alias: bool,
}

impl FoundTitle {
    /// Returns the label of the title, such as "Dune (2021)".
    pub(super) fn label(&self) -> String {
        format_title(&self.title, self.year.unwrap_or(0))
    }

    /// Returns whether `name` is this title, alone or followed by its year.
    fn has_name(&self, name: &str) -> bool {
        let name = normalize_title(name);
        let title = normalize_title(&self.title);
        name == title || self.year.is_some_and(|year| name == format!("{title} {year}"))
    }

    /// Returns the kind, id and instance of a title in a library, or `None` for a title without an id.
    pub(super) fn library_reference(&self) -> Option<Map<String, Value>> {
        let mut reference = json_object([("type", json!(self.kind)), ("id", json!(self.id?))]);
        if let Some(instance) = &self.instance {
            reference.insert("instance".to_owned(), json!(instance));
        }
        Some(reference)
    }

    /// Returns the kind, the catalog id and, for a title in a library, the instance.
    pub(super) fn title_identifiers(&self) -> Option<Map<String, Value>> {
        let catalog_id = match self.kind {
            MediaKind::Movie => ("tmdb", json!(self.tmdb?)),
            MediaKind::Series => ("tvdb", json!(self.tvdb?)),
        };
        let mut identifiers = json_object([("type", json!(self.kind)), catalog_id]);
        if let Some(instance) = &self.instance {
            identifiers.insert("instance".to_owned(), json!(instance));
        }
        Some(identifiers)
    }

    /// Returns the arguments that delete the title.
    pub(super) fn removal_arguments(&self) -> Option<Map<String, Value>> {
        let reference = self.library_reference()?;
        Some(json_object([("items", json!([reference])), ("delete_files", json!(true))]))
    }
}

/// Parses the titles in a result of `search_media` or `find_in_library`. Returns `None` for an error.
pub(super) fn parse_titles(content: &str) -> Option<Vec<FoundTitle>> {
    #[derive(Deserialize)]
    struct SearchResults {
        results: Vec<FoundTitle>,
    }
    // A result that cannot be parsed is reported as a failure, like an error from the tool.
    serde_json::from_str::<SearchResults>(content).map(|parsed| parsed.results).ok()
}

/// Returns the title that a tool result is about, if there is exactly one: the result itself, the title of an alias, the
/// exact match, or the only result.
pub(super) fn parse_single_title(content: &str, query: Option<&str>) -> Option<FoundTitle> {
    if let Ok(title) = serde_json::from_str(content) {
        return Some(title);
    }
    let mut found = parse_titles(content)?;
    let has_alias = only_alias(&found).is_some();
    let is_match = |title: &FoundTitle| {
        if has_alias { title.is_alias } else { query.is_some_and(|query| title.has_name(query)) }
    };
    match found.iter().filter(|title| is_match(title)).count() {
        1 => found.into_iter().find(is_match),
        _ if found.len() == 1 => found.pop(),
        _ => None,
    }
}

/// Formats the titles as a numbered list in the order of the result, so that a number is a position in the results.
pub(super) fn format_title_list(found: &[FoundTitle]) -> String {
    let shown = &found[..found.len().min(MAX_LIST_LENGTH)];
    let lines: String = shown
        .iter()
        .enumerate()
        .map(|(index, title)| format!("{}. {}\n", index + 1, title.label()))
        .collect();
    match shown.len() {
        1 => format!("{lines}Reply 1"),
        2 => format!("{lines}Reply 1 or 2"),
        count => format!("{lines}Reply 1-{count}"),
    }
}

pub(super) fn json_object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn only_alias(found: &[FoundTitle]) -> Option<&FoundTitle> {
    let mut aliases = found.iter().filter(|title| title.is_alias);
    aliases.next().filter(|_| aliases.next().is_none())
}

fn only_match<'f>(found: &'f [FoundTitle], title: &str) -> Option<&'f FoundTitle> {
    let mut exact = found.iter().filter(|candidate| candidate.has_name(title));
    match (exact.next(), exact.next()) {
        (Some(title), None) => Some(title),
        _ => None,
    }
}
