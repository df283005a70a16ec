//! Which title is meant: from the words of a text and what a search found, to one title or a numbered list.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::conversation::text_normalization::plain_title;
use crate::conversation::title::format_title;
use crate::conversation::transcript::MediaKind;
use crate::conversation::words::{self, Keyword, Seasons};

/// The most items of a list that fits a text.
pub(super) const LONGEST_LIST: usize = 5;

/// A search for a title, and what it is for.
pub(super) struct Hunt<'a> {
    /// As typed, without seasons.
    title: &'a str,
    aim: Aim<'a>,
}

enum Aim<'a> {
    Add,
    AddSeasons {
        seasons: Seasons,
        /// The title with the seasons: "Ladies First" may be a title after all.
        typed: &'a str,
    },
    Look,
    Remove,
}

/// What is to happen with the one title that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    Add,
    AddSeasons(Seasons),
    Remove,
}

/// What a search's result says about the title that is meant.
pub(super) enum Choice<'f> {
    Nothing,
    One(&'f Found, Deed),
    /// It may be any of them.
    List,
}

impl<'a> Hunt<'a> {
    /// None for a text that names no title, and for a question, which the tool itself answers.
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

    /// What to say when the search found nothing.
    pub(super) fn nothing(&self) -> &'static str {
        match self.aim {
            Aim::Add | Aim::AddSeasons { .. } | Aim::Look => "I found nothing by that name.",
            Aim::Remove => "I found nothing by that name in the library.",
        }
    }

    /// What is to happen with a title that is picked from the list.
    pub(super) fn deed(&self) -> Deed {
        match &self.aim {
            Aim::Add | Aim::Look => Deed::Add,
            Aim::AddSeasons { seasons, .. } => Deed::AddSeasons(seasons.clone()),
            Aim::Remove => Deed::Remove,
        }
    }

    /// The one title that is exactly the one asked for; anything less sure is listed.
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

/// What both `search_media` and `find_in_library` tell of a title.
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
    /// The user has said that they mean this one by the name.
    #[serde(default)]
    meant: bool,
}

impl Found {
    /// "Dune (2021)"
    pub(super) fn label(&self) -> String {
        format_title(&self.title, self.year.unwrap_or(0))
    }

    /// Whether `typed` is this title, alone or with its year behind it.
    fn is_called(&self, typed: &str) -> bool {
        let typed = plain_title(typed);
        let title = plain_title(&self.title);
        typed == title || self.year.is_some_and(|year| typed == format!("{title} {year}"))
    }

    /// Where it is; None for a title without an id in a library.
    pub(super) fn place(&self) -> Option<Map<String, Value>> {
        let mut place = object([("type", json!(self.kind)), ("id", json!(self.id?))]);
        if let Some(instance) = &self.instance {
            place.insert("instance".to_owned(), json!(instance));
        }
        Some(place)
    }

    /// How the library or the catalogue names it.
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

    /// The arguments that delete it.
    pub(super) fn removal(&self) -> Option<Map<String, Value>> {
        let place = self.place()?;
        Some(object([("items", json!([place])), ("delete_files", json!(true))]))
    }
}

/// The titles in a result of `search_media` or `find_in_library`; None for an error.
pub(super) fn read_found(content: &str) -> Option<Vec<Found>> {
    #[derive(Deserialize)]
    struct Results {
        results: Vec<Found>,
    }
    // What cannot be read is told as a failure, like an error that the tool reports.
    serde_json::from_str::<Results>(content).map(|read| read.results).ok()
}

/// The one title that a result is about, if it is about one: what was added, or the only or very one that was found.
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

/// Numbered in the order of the result, so that a number is a position in it.
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
