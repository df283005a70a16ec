//! Filters of the lists of a simulated catalog.

use super::{CatalogDialect, FakeEntry};
use crate::conversation::transcript::MediaKind;
use crate::server_api::fake::Query;

/// Parameters of a list, in the order genres, keywords, minimum rating, minimum of votes, maximum of minutes, minimum of
/// minutes, provider.
type Names = [&'static str; 7];

const SEERR: Names = [
    "genre",
    "keywords",
    "voteAverageGte",
    "voteCountGte",
    "withRuntimeLte",
    "withRuntimeGte",
    "watchProviders",
];
const TMDB: Names = [
    "with_genres",
    "with_keywords",
    "vote_average.gte",
    "vote_count.gte",
    "with_runtime.lte",
    "with_runtime.gte",
    "with_watch_providers",
];

/// Returns whether a title matches the parameters of a list.
pub(super) fn is_listed(entry: &FakeEntry, query: &Query, dialect: CatalogDialect) -> bool {
    let [genres, keywords, rating, votes, max_minutes, min_minutes, provider] = match dialect {
        CatalogDialect::Seerr => SEERR,
        CatalogDialect::Tmdb => TMDB,
    };
    let [from, until] = match (dialect, entry.kind) {
        (CatalogDialect::Seerr, MediaKind::Movie) => ["primaryReleaseDateGte", "primaryReleaseDateLte"],
        (CatalogDialect::Seerr, MediaKind::Series) => ["firstAirDateGte", "firstAirDateLte"],
        (CatalogDialect::Tmdb, MediaKind::Movie) => ["primary_release_date.gte", "primary_release_date.lte"],
        (CatalogDialect::Tmdb, MediaKind::Series) => ["first_air_date.gte", "first_air_date.lte"],
    };
    let date = format!("{:04}-06-01", entry.year);
    let number = |name| query.get(name).and_then(|value| value.parse::<f64>().ok());
    query.get(genres).is_none_or(|given| matches_ids(given, &entry.genres))
        && query.get(keywords).is_none_or(|given| matches_ids(given, &entry.keywords))
        && query.get(provider).is_none_or(|given| matches_ids(given, &entry.providers))
        && query.get(from).is_none_or(|from| date.as_str() >= from)
        && query.get(until).is_none_or(|until| date.as_str() <= until)
        && number(rating).is_none_or(|min| entry.rating >= min)
        && number(votes).is_none_or(|min| f64::from(entry.votes) >= min)
        && number(max_minutes).is_none_or(|max| f64::from(entry.minutes) <= max)
        && number(min_minutes).is_none_or(|min| f64::from(entry.minutes) >= min)
}

/// Returns whether the ids match: all of `1,2`, or one of `1|2`.
fn matches_ids(given: &str, ids: &[u32]) -> bool {
    let has = |id: &str| id.parse().is_ok_and(|id| ids.contains(&id));
    match given.contains('|') {
        true => given.split('|').any(has),
        false => given.split(',').all(has),
    }
}
