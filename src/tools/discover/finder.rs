//! Search for titles at one source.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use jiff::Timestamp;

use super::criteria::Selection;
use super::{
    DiscoveryCall, FinderError, FoundList, ReasonedTitle, addable_kinds, unknown_person, unknown_provider,
    unknown_title,
};
use crate::conversation::text::title::format_title;
use crate::conversation::transcript::MediaKind;
use crate::discovery::genres::{Genre, genre_names};
use crate::discovery::{
    DiscoverFilter, DiscoveryError, DiscoverySource, FoundTitle, PersonCredits, Provider,
};
use crate::tools::formatting::{MAX_RESULTS, clean_title, normalize_name};
use crate::tools::library::ArrInstances;
use crate::tools::ranking::TitleQuery;

/// Number of titles of a list whose details are read, if the call selects by what lists do not show.
const MAX_DETAILED: usize = 12;
/// Genres of shows in which people appear as themselves.
const TALK_AND_NEWS: [u32; 3] = [10_763, 10_764, 10_767];

/// Search at one source.
pub(super) struct Finder<'a> {
    pub(super) source: &'a DiscoverySource,
    /// Country whose streaming services are meant.
    pub(super) region: &'a str,
    pub(super) now: Timestamp,
    pub(super) call: &'a DiscoveryCall<'a>,
}

impl Finder<'_> {
    pub(super) async fn find(&self, library: &ArrInstances) -> Result<FoundList, FinderError> {
        let kinds: Vec<MediaKind> = self
            .call
            .criteria
            .kinds()
            .into_iter()
            .filter(|kind| addable_kinds(library).contains(kind))
            .collect();
        let provider = match self.call.provider {
            Some(name) => Some(self.find_provider(name, &kinds).await?),
            None => None,
        };
        let list = match self.call.selection {
            Selection::Person(name) => self.find_by_person(name).await?,
            Selection::Like(name) => self.find_similar(name, &kinds, library).await?,
            Selection::Trending => self.find_trending().await?,
            Selection::Catalog => return self.find_in_catalog(&kinds, provider.as_ref()).await,
        };
        let mut list = FoundList {
            titles: list.titles.into_iter().filter(|found| kinds.contains(&found.title.kind)).collect(),
            ..list
        };
        if provider.is_some() || self.call.criteria.max_minutes.is_some() {
            list.titles = self.check_details(list.titles, provider.as_ref()).await?;
        }
        Ok(list)
    }

    /// Finds the titles of a person, the best-known ones first.
    async fn find_by_person(&self, name: &str) -> Result<FoundList, FinderError> {
        let people = self.source.search(name, self.now).await?.people;
        let Some(person) = people.into_iter().next() else { return Err(unknown_person(name)) };
        let PersonCredits { acted, directed } = self.source.fetch_credits(person.id, self.now).await?;
        let name = clean_title(&person.name);
        let acted = acted.into_iter().map(|title| ReasonedTitle::new(title, format!("with {name}")));
        let directed = directed.into_iter().map(|title| ReasonedTitle::new(title, format!("by {name}")));
        let mut titles: Vec<ReasonedTitle> =
            acted.chain(directed).filter(|found| self.is_wanted_credit(&found.title)).collect();
        titles.sort_by_key(|found| Reverse(found.title.votes));
        let has_acted = titles.iter().any(|found| found.reason.starts_with("with"));
        let subject = if has_acted { format!("With {name}") } else { format!("By {name}") };
        Ok(FoundList { titles, subject, unchecked: self.unchecked_mood() })
    }

    /// Returns whether a title matches, and is not a show in which people appear as themselves.
    fn is_wanted_credit(&self, title: &FoundTitle) -> bool {
        let as_themselves =
            title.kind == MediaKind::Series && TALK_AND_NEWS.iter().any(|id| title.genres.contains(id));
        !as_themselves && self.call.criteria.matches(title)
    }

    /// Finds titles that are recommended to people who like one. If too few of them have the genre or mood, titles with
    /// a genre of both follow.
    async fn find_similar(
        &self,
        name: &str,
        kinds: &[MediaKind],
        library: &ArrInstances,
    ) -> Result<FoundList, FinderError> {
        let hits = self.source.search(name, self.now).await?.titles;
        let ranked = TitleQuery::new(name).rank_hits(hits, |title| (&title.title, title.year));
        let Some((_, liked)) = ranked.into_iter().next() else { return Err(unknown_title(name)) };
        if !library.may_show_found(&liked, self.now).await {
            return Err(unknown_title(name));
        }
        let mut titles = self.source.fetch_recommendations((liked.kind, liked.tmdb), self.now).await?;
        titles.retain(|title| self.call.criteria.matches(title) && kinds.contains(&title.kind));
        let name = format_title(&liked.title, liked.year);
        let mut list = FoundList {
            titles: with_reasons(titles, |_| format!("recommended with {name}")),
            subject: format!("Like {name}"),
            unchecked: self.unchecked_mood(),
        };
        if list.titles.len() < MAX_RESULTS {
            let others = self.find_of_same_genre(&liked, kinds).await?;
            let known: BTreeSet<(MediaKind, i64)> =
                list.titles.iter().map(|found| (found.title.kind, found.title.tmdb)).collect();
            list.titles.extend(others.into_iter().filter(|found| {
                let id = (found.title.kind, found.title.tmdb);
                id != (liked.kind, liked.tmdb) && !known.contains(&id)
            }));
        }
        Ok(list)
    }

    /// Finds popular titles that have the first genre of a title, and that match the criteria.
    async fn find_of_same_genre(
        &self,
        liked: &FoundTitle,
        kinds: &[MediaKind],
    ) -> Result<Vec<ReasonedTitle>, DiscoveryError> {
        let shared = genre_names(liked.kind, &liked.genres).next();
        let Some(genre) = shared.and_then(Genre::parse) else {
            return Ok(Vec::new());
        };
        let filter_for = |kind: MediaKind| {
            let mut filter = self.filter(kind, None);
            filter
                .genres
                .extend(genre.id(kind).filter(|id| !self.call.criteria.genre_ids(kind).contains(id)));
            filter
        };
        let titles = self.discover(kinds, filter_for).await?;
        let reason =
            self.call.criteria.words().into_iter().chain([genre.name]).collect::<Vec<_>>().join(", ");
        Ok(titles.into_iter().map(|title| ReasonedTitle::new(title, reason.clone())).collect())
    }

    async fn find_trending(&self) -> Result<FoundList, FinderError> {
        let mut titles = self.source.fetch_trending(self.now).await?;
        titles.retain(|title| self.call.criteria.matches(title));
        Ok(FoundList {
            titles: with_reasons(titles, |_| "trending this week".to_owned()),
            subject: "Trending this week".to_owned(),
            unchecked: self.unchecked_mood(),
        })
    }

    async fn find_in_catalog(
        &self,
        kinds: &[MediaKind],
        provider: Option<&Provider>,
    ) -> Result<FoundList, FinderError> {
        let titles = self.discover(kinds, |kind| self.filter(kind, provider)).await?;
        let words = self.call.criteria.words().join(", ");
        let subject = match (provider, words.as_str()) {
            (Some(provider), "") => format!("On {}", clean_title(&provider.name)),
            (Some(provider), words) => format!("On {}, {words}", clean_title(&provider.name)),
            (None, _) => "You might like".to_owned(),
        };
        let service = provider.map(|provider| format!("on {}", clean_title(&provider.name)));
        let reason = |title: &FoundTitle| match (&service, words.as_str(), title.rating) {
            (Some(service), _, _) => service.clone(),
            (None, "", Some(rating)) => format!("rated {rating:.1}"),
            (None, "", None) => "popular".to_owned(),
            (None, words, _) => words.to_owned(),
        };
        Ok(FoundList { titles: with_reasons(titles, reason), subject, unchecked: None })
    }

    /// Reads the popular titles of each kind, and mixes them by popularity.
    async fn discover(
        &self,
        kinds: &[MediaKind],
        filter_for: impl Fn(MediaKind) -> DiscoverFilter,
    ) -> Result<Vec<FoundTitle>, DiscoveryError> {
        let read = async |kind: MediaKind| self.source.discover(kind, &filter_for(kind), self.now).await;
        let lists = try_join_all(kinds.iter().copied().map(read)).await?;
        let mut titles: Vec<FoundTitle> = lists.concat();
        titles.retain(|title| self.call.criteria.matches(title));
        titles.sort_by(|a, b| b.popularity.total_cmp(&a.popularity));
        Ok(titles)
    }

    fn filter(&self, kind: MediaKind, provider: Option<&Provider>) -> DiscoverFilter {
        let criteria = &self.call.criteria;
        DiscoverFilter {
            genres: criteria.genre_ids(kind),
            keywords: criteria.mood.map(|mood| mood.keywords.to_vec()).unwrap_or_default(),
            years: criteria.years,
            min_rating: criteria.min_rating,
            max_minutes: criteria.max_minutes,
            provider: provider.map(|provider| (provider.id, self.region.to_owned())),
        }
    }

    async fn find_provider(&self, name: &str, kinds: &[MediaKind]) -> Result<Provider, FinderError> {
        let kind = kinds.first().copied().unwrap_or(MediaKind::Movie);
        let providers = self.source.fetch_providers(kind, self.region, self.now).await?;
        choose_provider(providers, name).ok_or_else(|| unknown_provider(name))
    }

    /// Keeps the titles that the service streams and that are short enough, of the first ones of a list.
    async fn check_details(
        &self,
        titles: Vec<ReasonedTitle>,
        provider: Option<&Provider>,
    ) -> Result<Vec<ReasonedTitle>, DiscoveryError> {
        let check = async |found: ReasonedTitle| {
            let id = (found.title.kind, found.title.tmdb);
            let facts = self.source.fetch_facts(id, self.region, self.now).await?;
            let is_streamed = provider.is_none_or(|provider| facts.providers.contains(&provider.id));
            let is_short = |max: u32| facts.minutes.is_some_and(|minutes| minutes <= max);
            let matches = is_streamed && self.call.criteria.max_minutes.is_none_or(is_short);
            Ok::<_, DiscoveryError>(matches.then_some(found))
        };
        let first = titles.into_iter().take(MAX_DETAILED).map(check);
        Ok(try_join_all(first).await?.into_iter().flatten().collect())
    }

    /// Returns the mood that lists do not show, because it is a keyword.
    fn unchecked_mood(&self) -> Option<&'static str> {
        self.call.criteria.mood.filter(|mood| !mood.keywords.is_empty()).map(|mood| mood.word)
    }
}

fn with_reasons(titles: Vec<FoundTitle>, reason: impl Fn(&FoundTitle) -> String) -> Vec<ReasonedTitle> {
    let with_reason = |title| {
        let reason = reason(&title);
        ReasonedTitle::new(title, reason)
    };
    titles.into_iter().map(with_reason).collect()
}

/// Returns the service that people mean by a name: the same name, else the first whose name begins with it or is its
/// beginning.
fn choose_provider(providers: Vec<Provider>, name: &str) -> Option<Provider> {
    let wanted = normalize_service(name);
    let quality = |provider: &Provider| {
        let known = normalize_service(&provider.name);
        match known.as_str() {
            "" => None,
            known if known == wanted => Some(0),
            known if known.starts_with(&format!("{wanted} ")) => Some(1),
            known if wanted.starts_with(&format!("{known} ")) || known.ends_with(&format!(" {wanted}")) => {
                Some(2)
            }
            known if known.split(' ').any(|word| word == wanted) => Some(3),
            _ => None,
        }
    };
    let ranked = providers.into_iter().filter_map(|provider| Some((quality(&provider)?, provider)));
    ranked.min_by_key(|(quality, _)| *quality).map(|(_, provider)| provider)
}

/// Normalizes the name of a service: Disney+ and Disney Plus are the same.
fn normalize_service(name: &str) -> String {
    let name = normalize_name(&name.replace('+', " plus "));
    match name.as_str() {
        "prime" | "amazon" | "amazon prime" => "amazon prime video".to_owned(),
        "apple tv" | "apple" => "apple tv plus".to_owned(),
        "hbo" => "hbo max".to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_is_found_by_the_names_that_people_use() {
        let names =
            ["Netflix", "Netflix Kids", "Amazon Prime Video", "Disney Plus", "Apple TV Plus", "HBO Max"];
        let find = |name: &str| {
            let providers = (1..).zip(names).map(|(id, name)| Provider { id, name: name.to_owned() });
            choose_provider(providers.collect(), name).map(|provider| provider.name)
        };
        assert_eq!(find("netflix").as_deref(), Some("Netflix"));
        assert_eq!(find("prime").as_deref(), Some("Amazon Prime Video"));
        assert_eq!(find("Disney+").as_deref(), Some("Disney Plus"));
        assert_eq!(find("disney").as_deref(), Some("Disney Plus"));
        assert_eq!(find("max").as_deref(), Some("HBO Max"));
        assert_eq!(find("hbo").as_deref(), Some("HBO Max"));
        assert_eq!(find("apple tv").as_deref(), Some("Apple TV Plus"));
        assert_eq!(find("walrus"), None);
    }
}
