//! Catalog search of the fakes: the matching titles and their order.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::media_fixtures::FakeTitle;

/// Searches the catalog and returns the best matches first.
pub(super) fn search_catalog<'a, D>(catalog: &'a [FakeTitle<D>], term: &str) -> Vec<&'a FakeTitle<D>> {
    if let Some(id) = catalog_id(term) {
        return catalog.iter().filter(|item| item.catalog_id == id).collect();
    }
    let (name, year) = split_year(term);
    let mut hits: Vec<_> = catalog.iter().filter(|item| title_matches(&item.title, name)).collect();
    let rank = |item: &FakeTitle<D>| {
        let whole = title_matches(&item.title, term);
        let exact = same_name(&item.title, name);
        (whole, exact, year == Some(item.year))
    };
    hits.sort_by(|left, right| {
        rank(right).cmp(&rank(left)).then(right.popularity.total_cmp(&left.popularity))
    });
    hits
}

/// Splits off the year: `Dune 2021` and `Dune (2021)` are `Dune` of 2021. A title that consists only of a year stays
/// whole.
pub(super) fn split_year(title: &str) -> (&str, Option<u16>) {
    let trimmed = title.trim();
    let Some((name, last)) = trimmed.rsplit_once(' ') else { return (trimmed, None) };
    let digits = last.trim_start_matches('(').trim_end_matches(')');
    match digits.parse::<u16>() {
        Ok(year @ 1880..=2100) if digits.len() == 4 => (name.trim_end(), Some(year)),
        Ok(_) | Err(_) => (trimmed, None),
    }
}

pub(super) fn same_name(left: &str, right: &str) -> bool {
    normalize_title(left, HyphenRule::Drops) == normalize_title(right, HyphenRule::Drops)
        || normalize_title(left, HyphenRule::Parts) == normalize_title(right, HyphenRule::Parts)
}

fn catalog_id(term: &str) -> Option<i64> {
    let (scheme, id) = term.split_once(':')?;
    let known = ["tmdb", "tmdbid", "tvdb", "tvdbid"];
    // An id of another catalog matches no title here.
    known.contains(&scheme.trim().to_lowercase().as_str()).then(|| id.trim().parse().unwrap_or(-1))
}

fn title_matches(title: &str, query: &str) -> bool {
    [HyphenRule::Drops, HyphenRule::Parts].into_iter().any(|hyphen| {
        let (title, query) = (normalize_title(title, hyphen), normalize_title(query, hyphen));
        let words: Vec<_> = title.split(' ').collect();
        !query.is_empty() && (title.contains(&query) || query.split(' ').all(|word| words.contains(&word)))
    })
}

/// Treatment of a hyphen. `Spider-Man` is searched for as `spiderman` and as `spider man`.
#[derive(Clone, Copy)]
enum HyphenRule {
    Drops,
    Parts,
}

fn normalize_title(text: &str, hyphen: HyphenRule) -> String {
    let plain = text.nfd().filter(|letter| !is_combining_mark(*letter));
    let letters: String = plain
        .flat_map(char::to_lowercase)
        .filter_map(|letter| match (letter, hyphen) {
            _ if letter.is_alphanumeric() || letter == ' ' => Some(letter),
            ('\'' | '\u{2019}', _) | (_, HyphenRule::Drops) => None,
            (_, HyphenRule::Parts) => Some(' '),
        })
        .collect();
    letters.split_whitespace().collect::<Vec<_>>().join(" ")
}
