//! Catalog search of the fakes: matching and ranking of titles.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::media_fixtures::FakeTitle;

/// Searches the catalog and returns the best matches first.
pub(super) fn search_catalog<'a, D>(catalog: &'a [FakeTitle<D>], term: &str) -> Vec<&'a FakeTitle<D>> {
    if let Some(id) = parse_catalog_id(term) {
        return catalog.iter().filter(|title| title.catalog_id == id).collect();
    }
    let (name, year) = split_year(term);
    let mut hits: Vec<_> = catalog.iter().filter(|title| title_matches(&title.title, name)).collect();
    let rank = |title: &FakeTitle<D>| {
        let matches_term = title_matches(&title.title, term);
        let is_exact = is_same_title(&title.title, name);
        (matches_term, is_exact, year == Some(title.year))
    };
    hits.sort_by(|left, right| {
        rank(right).cmp(&rank(left)).then(right.popularity.total_cmp(&left.popularity))
    });
    hits
}

/// Splits off a year at the end, as in `Dune 2021` and `Dune (2021)`. A title that is only a year is not split.
pub(super) fn split_year(title: &str) -> (&str, Option<u16>) {
    let trimmed = title.trim();
    let Some((name, last)) = trimmed.rsplit_once(' ') else { return (trimmed, None) };
    let digits = last.trim_start_matches('(').trim_end_matches(')');
    match digits.parse::<u16>() {
        Ok(year @ 1880..=2100) if digits.len() == 4 => (name.trim_end(), Some(year)),
        Ok(_) | Err(_) => (trimmed, None),
    }
}

pub(super) fn is_same_title(left: &str, right: &str) -> bool {
    normalize_title(left, HyphenRule::Remove) == normalize_title(right, HyphenRule::Remove)
        || normalize_title(left, HyphenRule::Split) == normalize_title(right, HyphenRule::Split)
}

fn parse_catalog_id(term: &str) -> Option<i64> {
    let (scheme, id) = term.split_once(':')?;
    let schemes = ["tmdb", "tmdbid", "tvdb", "tvdbid"];
    // A malformed id matches no title.
    schemes.contains(&scheme.trim().to_lowercase().as_str()).then(|| id.trim().parse().unwrap_or(-1))
}

fn title_matches(title: &str, query: &str) -> bool {
    [HyphenRule::Remove, HyphenRule::Split].into_iter().any(|hyphen| {
        let (title, query) = (normalize_title(title, hyphen), normalize_title(query, hyphen));
        let words: Vec<_> = title.split(' ').collect();
        !query.is_empty() && (title.contains(&query) || query.split(' ').all(|word| words.contains(&word)))
    })
}

/// Treatment of hyphens. `Spider-Man` matches both `spiderman` and `spider man`.
#[derive(Clone, Copy)]
enum HyphenRule {
    Remove,
    Split,
}

fn normalize_title(text: &str, hyphen: HyphenRule) -> String {
    let plain = text.nfd().filter(|letter| !is_combining_mark(*letter));
    let letters: String = plain
        .flat_map(char::to_lowercase)
        .filter_map(|letter| match (letter, hyphen) {
            _ if letter.is_alphanumeric() || letter == ' ' => Some(letter),
            ('\'' | '\u{2019}', _) | (_, HyphenRule::Remove) => None,
            (_, HyphenRule::Split) => Some(' '),
        })
        .collect();
    letters.split_whitespace().collect::<Vec<_>>().join(" ")
}
