//! Answers of a simulated catalog, with the field names of TMDB or of Seerr.

use serde_json::{Map, Value, json};

use super::filter::is_listed;
use super::{CatalogDialect, CatalogState, FakeCatalog, FakeEntry};
use crate::conversation::transcript::MediaKind;
use crate::server_api::fake::Query;

/// Number of entries in a page.
const PAGE_ENTRIES: usize = 20;

impl FakeCatalog {
    /// Answers a GET for a path below the base of the API; `None` if there is no such path or title.
    pub(crate) fn answer(&self, path: &str, query: &Query, dialect: CatalogDialect) -> Option<Value> {
        let state = self.lock();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts[..] {
            ["search"] | ["search", "multi"] => Some(state.search_page(query.get("query")?, dialect)),
            ["discover", "trending"] | ["trending", "all", "week"] => {
                Some(page(state.titles_by_popularity(|_| true), dialect))
            }
            ["discover", noun] => {
                let kind = parse_kind(noun)?;
                let listed = |entry: &FakeEntry| entry.kind == kind && is_listed(entry, query, dialect);
                Some(page(state.titles_by_popularity(listed), dialect))
            }
            ["watchproviders", noun] | ["watch", "providers", noun] => {
                parse_kind(noun)?;
                Some(state.provider_list(dialect))
            }
            ["person", id, "combined_credits"] => state.credits(id.parse().ok()?, dialect),
            [noun, id, "recommendations" | "similar"] => {
                let entry = state.find(parse_kind(noun)?, id.parse().ok()?)?;
                let is_similar =
                    |other: &FakeEntry| other.kind == entry.kind && entry.similar.contains(&other.tmdb);
                Some(page(state.titles_by_popularity(is_similar), dialect))
            }
            [noun, id] => Some(details_json(state.find(parse_kind(noun)?, id.parse().ok()?)?, dialect)),
            _ => None,
        }
    }
}

impl CatalogState {
    fn find(&self, kind: MediaKind, tmdb: i64) -> Option<&FakeEntry> {
        self.titles.iter().find(|entry| (entry.kind, entry.tmdb) == (kind, tmdb))
    }

    fn titles_by_popularity(&self, is_listed: impl Fn(&FakeEntry) -> bool) -> Vec<&FakeEntry> {
        let mut listed: Vec<&FakeEntry> = self.titles.iter().filter(|entry| is_listed(entry)).collect();
        listed.sort_by(|a, b| b.popularity.total_cmp(&a.popularity));
        listed
    }

    /// Returns the titles and people whose names contain all words.
    fn search_page(&self, text: &str, dialect: CatalogDialect) -> Value {
        if let Some(tvdb) = text.strip_prefix("tvdb:").filter(|_| dialect == CatalogDialect::Seerr) {
            let is_meant = |entry: &FakeEntry| entry.tvdb.is_some_and(|id| id.to_string() == tvdb);
            return page(self.titles_by_popularity(is_meant), dialect);
        }
        let words: Vec<String> = text.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let matches = |name: &str| {
            let name = name.to_lowercase();
            words.iter().all(|word| name.contains(word.as_str()))
        };
        let found = self.titles_by_popularity(|entry| matches(&format!("{} {}", entry.title, entry.year)));
        let mut page = page(found, dialect);
        let people = self.people.iter().filter(|person| matches(&person.name)).map(|person| {
            let media_type = if dialect == CatalogDialect::Seerr { "mediaType" } else { "media_type" };
            json!({ "id": person.id, "name": person.name, media_type: "person", "adult": false, "popularity": 5.0 })
        });
        if let Some(results) = page["results"].as_array_mut() {
            results.extend(people);
        }
        page
    }

    fn provider_list(&self, dialect: CatalogDialect) -> Value {
        match dialect {
            CatalogDialect::Seerr => self
                .providers
                .iter()
                .map(|(id, name)| json!({ "id": id, "name": name, "displayPriority": 1, "logoPath": "/logo.jpg" }))
                .collect(),
            CatalogDialect::Tmdb => {
                let results: Vec<Value> = self
                    .providers
                    .iter()
                    .map(|(id, name)| json!({ "provider_id": id, "provider_name": name, "display_priority": 1 }))
                    .collect();
                json!({ "results": results })
            }
        }
    }

    fn credits(&self, id: i64, dialect: CatalogDialect) -> Option<Value> {
        let person = self.people.iter().find(|person| person.id == id)?;
        let entries = |titles: &[(MediaKind, i64)], field: &str, value: &str| -> Vec<Value> {
            let found = titles.iter().filter_map(|(kind, tmdb)| self.find(*kind, *tmdb));
            found
                .map(|entry| {
                    let mut json = entry_json(entry, dialect);
                    json[field] = value.into();
                    json
                })
                .collect()
        };
        Some(json!({
            "id": id,
            "cast": entries(&person.cast, "character", "Somebody"),
            "crew": entries(&person.directed, "job", "Director"),
        }))
    }
}

fn parse_kind(noun: &str) -> Option<MediaKind> {
    match noun {
        "movie" | "movies" => Some(MediaKind::Movie),
        "tv" => Some(MediaKind::Series),
        _ => None,
    }
}

fn page(entries: Vec<&FakeEntry>, dialect: CatalogDialect) -> Value {
    let total = entries.len();
    let results: Vec<Value> =
        entries.into_iter().take(PAGE_ENTRIES).map(|entry| entry_json(entry, dialect)).collect();
    let pages = total.div_ceil(PAGE_ENTRIES);
    match dialect {
        CatalogDialect::Seerr => {
            json!({ "page": 1, "totalPages": pages, "totalResults": total, "results": results })
        }
        CatalogDialect::Tmdb => {
            json!({ "page": 1, "total_pages": pages, "total_results": total, "results": results })
        }
    }
}

/// Returns a title as an entry of a list.
fn entry_json(entry: &FakeEntry, dialect: CatalogDialect) -> Value {
    let mut json = json!({
        "id": entry.tmdb, "overview": entry.overview, "popularity": entry.popularity, "adult": false,
        "original_language": "en",
    });
    let (media_type, title, date) = match entry.kind {
        MediaKind::Movie => ("movie", "title", "release_date"),
        MediaKind::Series => ("tv", "name", "first_air_date"),
    };
    json["media_type"] = media_type.into();
    json[title] = entry.title.as_str().into();
    json[date] = format!("{:04}-06-01", entry.year).into();
    json["genre_ids"] = entry.genres.clone().into();
    json["vote_average"] = entry.rating.into();
    json["vote_count"] = entry.votes.into();
    json["poster_path"] = "/poster.jpg".into();
    match dialect {
        CatalogDialect::Tmdb => json,
        CatalogDialect::Seerr => {
            let mut json = in_camel_case(json);
            if entry.seerr_status > 1 {
                json["mediaInfo"] = media_info_json(entry);
            }
            json
        }
    }
}

fn details_json(entry: &FakeEntry, dialect: CatalogDialect) -> Value {
    let mut json = entry_json(entry, dialect);
    let by_service = |id: &str, name: &str| -> Vec<Value> {
        entry.providers.iter().map(|provider| json!({ id: provider, name: "Service" })).collect()
    };
    match dialect {
        CatalogDialect::Tmdb => {
            json["external_ids"] = json!({ "tvdb_id": entry.tvdb });
            json["watch/providers"] =
                json!({ "results": { "US": { "flatrate": by_service("provider_id", "provider_name") } } });
        }
        CatalogDialect::Seerr => {
            json["externalIds"] = json!({ "tvdbId": entry.tvdb });
            json["watchProviders"] = json!([{ "iso_3166_1": "US", "flatrate": by_service("id", "name") }]);
        }
    }
    match (entry.kind, dialect) {
        (MediaKind::Movie, _) => json["runtime"] = entry.minutes.into(),
        (MediaKind::Series, CatalogDialect::Tmdb) => json["episode_run_time"] = json!([entry.minutes]),
        (MediaKind::Series, CatalogDialect::Seerr) => json["episodeRunTime"] = json!([entry.minutes]),
    }
    json
}

fn media_info_json(entry: &FakeEntry) -> Value {
    json!({ "id": entry.tmdb, "tmdbId": entry.tmdb, "tvdbId": entry.tvdb, "status": entry.seerr_status })
}

/// Returns the object with names such as `releaseDate` instead of `release_date`.
fn in_camel_case(json: Value) -> Value {
    let Value::Object(fields) = json else { return json };
    let rename = |name: String| {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| {
            let (initial, rest) = word.split_at(usize::from(!word.is_empty()));
            format!("{name}{}{rest}", initial.to_ascii_uppercase())
        })
    };
    Value::Object(fields.into_iter().map(|(name, value)| (rename(name), value)).collect::<Map<_, _>>())
}
