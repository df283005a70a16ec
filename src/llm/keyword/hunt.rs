//! Choice of the requested title: from the words of a message and the search results, to one title or a numbered list.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::conversation::text_normalization::plain_title;
use crate::conversation::title::format_title;
use crate::conversation::transcript::MediaKind;
use crate::conversation::words::{self, Keyword, Seasons};

/// Most items of a list that fits in a message.
pub(super) const LONGEST_LIST: usize = 5;

/// Search for a title, and the purpose of the search.
pub(super) struct Hunt<'a> {
    /// Title as typed, without seasons.
    title: &'a str,
    aim: Aim<'a>,
}

enum Aim<'a> {
    Add,
    AddSeasons {
        seasons: Seasons,
        /// Title with the seasons: "Ladies First" may be a title after all.
        typed: &'a str,
    },
    Look,
    Remove,
}

/// Action for the one title that the user means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    Add,
    AddSeasons(Seasons),
    Remove,
}

/// Match of a search result with the title that the user means.
pub(super) enum Choice<'f> {
    Nothing,
    One(&'f Found, Deed),
    /// Several titles are possible.
    List,
}

impl<'a> Hunt<'a> {
    /// Returns none for a message that names no title, and for a question, which the tool itself answers.
    pub(super) fn of(keyword: Keyword<'a>) -> Option<Self> {
        match keyword {
            Keyword::Add(typed) => Some(match words::title_and_seasons(typed) {
                Some((title, seasons)) => Self { title, aim: Aim::AddSeasons { seasons, typed } },
                None => Self { title: typed, aim: Aim::Add },
            }),
            Keyword::Search(title) => Some(Self { title, aim: Aim::Look }),
            Keyword::Remove(title) => Some(Self { title, aim: Aim::Remove }),
            Keyword::Have(_)
            | Keyword::Reference(..)
            | Keyword::Status
            | Keyword::Upcoming
            | Keyword::TellMe
            | Keyword::Number(_) => None,
        }
    }

    pub(super) fn tool(&self) -> &'static str {
        match self.aim {
            Aim::Add | Aim::AddSeasons { .. } | Aim::Look => "search_media",
            Aim::Remove => "find_in_library",
        }
    }

    pub(super) fn arguments(&self) -> Map<String, Value> {
        object([("query", json!(self.title))])
    }

    /// Reply when the search found nothing.
    pub(super) fn nothing(&self) -> &'static str {
        match self.aim {
            Aim::Add | Aim::AddSeasons { .. } | Aim::Look => "I found nothing by that name.",
            Aim::Remove => "I found nothing by that name in the library.",
        }
    }

    /// Returns the action for a title that is chosen from the list.
    pub(super) fn deed(&self) -> Deed {
        match &self.aim {
            Aim::Add | Aim::Look => Deed::Add,
            Aim::AddSeasons { seasons, .. } => Deed::AddSeasons(seasons.clone()),
            Aim::Remove => Deed::Remove,
        }
    }

    /// Returns the one title that exactly matches the request; a less certain match is listed.
    pub(super) fn choose<'f>(&self, found: &'f [Found]) -> Choice<'f> {
        let whole = match self.aim {
            _ if found.is_empty() => return Choice::Nothing,
            Aim::Look => return Choice::List,
            Aim::AddSeasons { typed, .. } => only_match(found, typed),
            Aim::Add | Aim::Remove => None,
        };
        match (whole, only_meant(found).or_else(|| only_match(found, self.title))) {
            (Some(item), _) => Choice::One(item, Deed::Add),
            (None, Some(item)) => Choice::One(item, self.deed()),
            (None, None) => Choice::List,
        }
    }
}

/// Fields of a title that `search_media` and `find_in_library` both return.
#[derive(Debug, Deserialize)]
pub(super) struct Found {
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
    /// True if the user has confirmed that the name means this title.
    #[serde(default)]
    meant: bool,
}

impl Found {
    /// Label of the title, such as "Dune (2021)".
    pub(super) fn label(&self) -> String {
        format_title(&self.title, self.year.unwrap_or(0))
    }

    /// True if `typed` is this title, alone or followed by its year.
    fn is_called(&self, typed: &str) -> bool {
        let typed = plain_title(typed);
        let title = plain_title(&self.title);
        typed == title || self.year.is_some_and(|year| typed == format!("{title} {year}"))
    }

    /// Returns the title's instance and id; none for a title without an id in a library.
    pub(super) fn place(&self) -> Option<Map<String, Value>> {
        let mut place = object([("type", json!(self.kind)), ("id", json!(self.id?))]);
        if let Some(instance) = &self.instance {
            place.insert("instance".to_owned(), json!(instance));
        }
        Some(place)
    }

    /// Returns the identifiers of the title in the library or the catalog.
    pub(super) fn key(&self) -> Option<Map<String, Value>> {
        let number = match self.kind {
            MediaKind::Movie => ("tmdb", json!(self.tmdb?)),
            MediaKind::Series => ("tvdb", json!(self.tvdb?)),
        };
        let mut key = object([("type", json!(self.kind)), number]);
        if let Some(instance) = &self.instance {
            key.insert("instance".to_owned(), json!(instance));
        }
        Some(key)
    }

    /// Returns the arguments that delete the title.
    pub(super) fn removal(&self) -> Option<Map<String, Value>> {
        let place = self.place()?;
        Some(object([("items", json!([place])), ("delete_files", json!(true))]))
    }
}

/// Parses the titles in a result of `search_media` or `find_in_library`; none for an error.
pub(super) fn read_found(content: &str) -> Option<Vec<Found>> {
    #[derive(Deserialize)]
    struct Results {
        results: Vec<Found>,
    }
    // A result that cannot be parsed is reported as a failure, like an error from the tool.
    serde_json::from_str::<Results>(content).map(|read| read.results).ok()
}

/// Returns the one title of a result, if there is one: the title that was added, the only match or the exact match.
pub(super) fn read_one(content: &str, query: Option<&str>) -> Option<Found> {
    if let Ok(item) = serde_json::from_str(content) {
        return Some(item);
    }
    let mut found = read_found(content)?;
    let is_meant = only_meant(&found).is_some();
    let very = |item: &Found| {
        if is_meant { item.meant } else { query.is_some_and(|query| item.is_called(query)) }
    };
    match found.iter().filter(|item| very(item)).count() {
        1 => found.into_iter().find(very),
        _ if found.len() == 1 => found.pop(),
        _ => None,
    }
}

/// Formats the titles as a numbered list in the order of the result, so that a number is a position in the result.
pub(super) fn list(found: &[Found]) -> String {
    let shown = &found[..found.len().min(LONGEST_LIST)];
    let lines: String =
        shown.iter().enumerate().map(|(at, item)| format!("{}. {}\n", at + 1, item.label())).collect();
    match shown.len() {
        1 => format!("{lines}Reply 1"),
        2 => format!("{lines}Reply 1 or 2"),
        count => format!("{lines}Reply 1-{count}"),
    }
}

pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn only_meant(found: &[Found]) -> Option<&Found> {
    let mut meant = found.iter().filter(|item| item.meant);
    meant.next().filter(|_| meant.next().is_none())
}

fn only_match<'f>(found: &'f [Found], title: &str) -> Option<&'f Found> {
    let mut exact = found.iter().filter(|item| item.is_called(title));
    match (exact.next(), exact.next()) {
        (Some(item), None) => Some(item),
        _ => None,
    }
}
