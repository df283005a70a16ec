//! Choice of the requested title. The words of a message and the search results lead to one title or a numbered list.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::conversation::grammar::keyword_grammar::{self, KeywordRequest, RequestedSeasons};
use crate::conversation::text::normalization::normalize_title;
use crate::conversation::text::title::format_title;
use crate::conversation::transcript::MediaKind;

/// Maximum number of items of a list that fits in a message.
pub(super) const LONGEST_LIST: usize = 5;

/// Search for a title, and the purpose of the search.
pub(super) struct TitleSearch<'a> {
    /// Title as typed, without seasons.
    title: &'a str,
    purpose: SearchPurpose<'a>,
}

enum SearchPurpose<'a> {
    Add,
    AddSeasons {
        seasons: RequestedSeasons,
        /// Title with the seasons, since "Ladies First" may be a title after all.
        typed: &'a str,
    },
    Find,
    Remove,
}

/// Action for the one title that the user means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TitleAction {
    Add,
    AddSeasons(RequestedSeasons),
    Remove,
}

/// Match of a search result with the title that the user means.
pub(super) enum TitleChoice<'f> {
    Nothing,
    One(&'f FoundTitle, TitleAction),
    /// Several titles are possible.
    List,
}

impl<'a> TitleSearch<'a> {
    /// Creates the search for a keyword. Returns `None` for a message that names no title, and for a question, which
    /// the tool itself answers.
    pub(super) fn from_keyword(keyword: KeywordRequest<'a>) -> Option<Self> {
        match keyword {
            KeywordRequest::Add(typed) => Some(match keyword_grammar::split_seasons(typed) {
                Some((title, seasons)) => {
                    Self { title, purpose: SearchPurpose::AddSeasons { seasons, typed } }
                }
                None => Self { title: typed, purpose: SearchPurpose::Add },
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

    pub(super) fn tool(&self) -> &'static str {
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

    /// Returns the one title that exactly matches the request. A less certain match is listed.
    pub(super) fn choose_title<'f>(&self, found: &'f [FoundTitle]) -> TitleChoice<'f> {
        let whole = match self.purpose {
            _ if found.is_empty() => return TitleChoice::Nothing,
            SearchPurpose::Find => return TitleChoice::List,
            SearchPurpose::AddSeasons { typed, .. } => only_match(found, typed),
            SearchPurpose::Add | SearchPurpose::Remove => None,
        };
        match (whole, only_confirmed(found).or_else(|| only_match(found, self.title))) {
            (Some(item), _) => TitleChoice::One(item, TitleAction::Add),
            (None, Some(item)) => TitleChoice::One(item, self.title_action()),
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
    /// The user has confirmed that the name means this title.
    #[serde(default)]
    meant: bool,
}

impl FoundTitle {
    /// Returns the label of the title, such as "Dune (2021)".
    pub(super) fn label(&self) -> String {
        format_title(&self.title, self.year.unwrap_or(0))
    }

    /// Returns whether `typed` is this title, alone or followed by its year.
    fn is_called(&self, typed: &str) -> bool {
        let typed = normalize_title(typed);
        let title = normalize_title(&self.title);
        typed == title || self.year.is_some_and(|year| typed == format!("{title} {year}"))
    }

    /// Returns the title's instance and id, or `None` for a title without an id in a library.
    pub(super) fn library_reference(&self) -> Option<Map<String, Value>> {
        let mut place = json_object([("type", json!(self.kind)), ("id", json!(self.id?))]);
        if let Some(instance) = &self.instance {
            place.insert("instance".to_owned(), json!(instance));
        }
        Some(place)
    }

    /// Returns the identifiers of the title in the library or the catalog.
    pub(super) fn title_identifiers(&self) -> Option<Map<String, Value>> {
        let number = match self.kind {
            MediaKind::Movie => ("tmdb", json!(self.tmdb?)),
            MediaKind::Series => ("tvdb", json!(self.tvdb?)),
        };
        let mut key = json_object([("type", json!(self.kind)), number]);
        if let Some(instance) = &self.instance {
            key.insert("instance".to_owned(), json!(instance));
        }
        Some(key)
    }

    /// Returns the arguments that delete the title.
    pub(super) fn removal_arguments(&self) -> Option<Map<String, Value>> {
        let place = self.library_reference()?;
        Some(json_object([("items", json!([place])), ("delete_files", json!(true))]))
    }
}

/// Parses the titles in a result of `search_media` or `find_in_library`. Returns `None` for an error.
pub(super) fn parse_titles(content: &str) -> Option<Vec<FoundTitle>> {
    #[derive(Deserialize)]
    struct SearchResults {
        results: Vec<FoundTitle>,
    }
    // A result that cannot be parsed is reported as a failure, like an error from the tool.
    serde_json::from_str::<SearchResults>(content).map(|read| read.results).ok()
}

/// Returns the single title of a result, if there is one: the added title, the only match or the exact match.
pub(super) fn parse_single_title(content: &str, query: Option<&str>) -> Option<FoundTitle> {
    if let Ok(item) = serde_json::from_str(content) {
        return Some(item);
    }
    let mut found = parse_titles(content)?;
    let is_meant = only_confirmed(&found).is_some();
    let very = |item: &FoundTitle| {
        if is_meant { item.meant } else { query.is_some_and(|query| item.is_called(query)) }
    };
    match found.iter().filter(|item| very(item)).count() {
        1 => found.into_iter().find(very),
        _ if found.len() == 1 => found.pop(),
        _ => None,
    }
}

/// Formats the titles as a numbered list in the order of the result, so that a number is a position in the result.
pub(super) fn format_title_list(found: &[FoundTitle]) -> String {
    let shown = &found[..found.len().min(LONGEST_LIST)];
    let lines: String =
        shown.iter().enumerate().map(|(at, item)| format!("{}. {}\n", at + 1, item.label())).collect();
    match shown.len() {
        1 => format!("{lines}Reply 1"),
        2 => format!("{lines}Reply 1 or 2"),
        count => format!("{lines}Reply 1-{count}"),
    }
}

pub(super) fn json_object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn only_confirmed(found: &[FoundTitle]) -> Option<&FoundTitle> {
    let mut meant = found.iter().filter(|item| item.meant);
    meant.next().filter(|_| meant.next().is_none())
}

fn only_match<'f>(found: &'f [FoundTitle], title: &str) -> Option<&'f FoundTitle> {
    let mut exact = found.iter().filter(|item| item.is_called(title));
    match (exact.next(), exact.next()) {
        (Some(item), None) => Some(item),
        _ => None,
    }
}
