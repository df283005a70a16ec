//! Titles in the results of a search, and the choice among them.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::conversation::grammar::requests::title_phrase::TitlePhrase;
use crate::conversation::text::normalization::strip_article;
use crate::conversation::text::title::format_title;
use crate::conversation::text::title_key::{is_same_key, title_key};
use crate::conversation::transcript::MediaKind;

/// Maximum number of titles in a list, which has to fit in a message.
pub(super) const MAX_LIST_LENGTH: usize = 5;

/// Fields of a title that `search_media` and `find_in_library` both return.
#[derive(Debug, Clone, Deserialize)]
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
    /// Whether the file of a movie in the library exists.
    on_disk: Option<bool>,
    #[serde(default)]
    pub(super) overview: String,
    /// True if the name is an alias of the user for this title.
    #[serde(default, rename = "meant")]
    is_alias: bool,
}

/// Choice among search results.
pub(super) enum TitleChoice<'f> {
    Nothing,
    One(&'f FoundTitle),
    /// One title, whose name contains the words that would describe another one: "Ladies First".
    FullName(&'f FoundTitle),
    /// Several titles are possible.
    Several,
}

impl FoundTitle {
    /// Returns the label of the title, such as "Dune (2021)".
    pub(super) fn label(&self) -> String {
        format_title(&self.title, self.year.unwrap_or(0))
    }

    /// Returns the title without its year.
    pub(super) fn name(&self) -> &str {
        &self.title
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
        let (name, id) = self.catalog_id()?;
        let mut identifiers = json_object([("type", json!(self.kind)), (name, json!(id))]);
        if let Some(instance) = &self.instance {
            identifiers.insert("instance".to_owned(), json!(instance));
        }
        Some(identifiers)
    }

    pub(super) fn is_series(&self) -> bool {
        self.kind == MediaKind::Series
    }

    /// Returns whether the phrase is the name of this title, with or without the words that describe one.
    pub(super) fn has_exact_name(&self, phrase: &TitlePhrase) -> bool {
        self.is_alias || self.is_named_by(phrase) || self.has_name(&phrase.full_title())
    }

    pub(super) fn catalog_id(&self) -> Option<(&'static str, i64)> {
        match self.kind {
            MediaKind::Movie => self.tmdb.map(|tmdb| ("tmdb", tmdb)),
            MediaKind::Series => self.tvdb.map(|tvdb| ("tvdb", tvdb)),
        }
    }

    /// Returns whether the phrase names this title: by its name, its name and year, and its type if it states one.
    fn is_named_by(&self, phrase: &TitlePhrase) -> bool {
        let year_matches = phrase.year.is_none_or(|year| self.year == Some(year));
        let kind_matches = phrase.kind.is_none_or(|kind| self.kind == kind);
        year_matches && kind_matches && self.has_name(&phrase.title)
    }

    fn has_name(&self, name: &str) -> bool {
        let (name, title) = (title_key(name), title_key(&self.title));
        let (name, title) = (strip_article(&name), strip_article(&title));
        is_same_key(name, title) || self.year.is_some_and(|year| name == format!("{title} {year}"))
    }
}

/// Chooses the title of an alias or the only exact match. Other results are several.
pub(super) fn choose_title<'f>(found: &'f [FoundTitle], phrase: &TitlePhrase) -> TitleChoice<'f> {
    let full_title = phrase.full_title();
    let is_described = full_title != phrase.title && phrase.year.is_none();
    let full_match = only(found, |title| is_described && title.has_name(&full_title));
    if let Some(title) = full_match {
        return TitleChoice::FullName(title);
    }
    match only(found, |title| title.is_alias).or_else(|| only(found, |title| title.is_named_by(phrase))) {
        Some(title) => TitleChoice::One(title),
        None if found.is_empty() => TitleChoice::Nothing,
        None => TitleChoice::Several,
    }
}

fn only(found: &[FoundTitle], is_match: impl Fn(&FoundTitle) -> bool) -> Option<&FoundTitle> {
    let mut matches = found.iter().filter(|title| is_match(title));
    matches.next().filter(|_| matches.next().is_none())
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
    let found = parse_titles(content)?;
    let named = only(&found, |title| title.is_alias)
        .or_else(|| only(&found, |title| query.is_some_and(|query| title.has_name(query))));
    named.or_else(|| only(&found, |_| true)).cloned()
}

/// Formats the titles as a numbered list in the order of the result, so that a number is a position in the results. The
/// list states which titles the library has, and tells a movie and a show of one name apart.
pub(super) fn format_title_list(found: &[FoundTitle]) -> String {
    let shown = &found[..found.len().min(MAX_LIST_LENGTH)];
    let lines: String = shown
        .iter()
        .enumerate()
        .map(|(index, title)| format!("{}. {}{}\n", index + 1, title.label(), list_note(title, shown)))
        .collect();
    match shown.len() {
        1 => format!("{lines}Reply 1"),
        2 => format!("{lines}Reply 1 or 2"),
        count => format!("{lines}Reply 1-{count}"),
    }
}

fn list_note(title: &FoundTitle, shown: &[FoundTitle]) -> String {
    let shares_name = shown
        .iter()
        .any(|other| other.kind != title.kind && title_key(&other.title) == title_key(&title.title));
    let kind = match title.kind {
        _ if !shares_name => "",
        MediaKind::Movie => ", movie",
        MediaKind::Series => ", show",
    };
    let state = match (title.in_library, title.on_disk) {
        (_, Some(false)) => ", wanted",
        (true, _) => ", have it",
        (false, _) => "",
    };
    format!("{kind}{state}")
}

pub(super) fn json_object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
