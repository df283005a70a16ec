//! Both sources give the same answers about the same catalog.

use jiff::{SignedDuration, Timestamp};

use super::fake::{FakeCatalog, FakeEntry, FakeTmdb};
use super::*;
use crate::http::HttpClient;
use crate::seerr::Seerr;
use crate::server_api::ServerError;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn catalog() -> FakeCatalog {
    let catalog = FakeCatalog::default();
    catalog.add(FakeEntry::movie(("Heat", 1995), 949).genres(&[28, 80]).rated(7.9, 60.0).on(8).minutes(170));
    catalog.add(FakeEntry::movie(("Alien", 1979), 348).genres(&[27]).rated(8.1, 50.0).similar_to(&[949]));
    catalog.add(FakeEntry::show(("Dark", 2017), 70_523, 334_824).genres(&[18, 10_765]));
    catalog.add_actor(380, "Robert De Niro", &[(MediaKind::Movie, 949), (MediaKind::Series, 70_523)]);
    catalog.add_director(578, "Ridley Scott", &[(MediaKind::Movie, 348)]);
    catalog.add_provider(8, "Netflix");
    catalog
}

fn tmdb(fake: &FakeTmdb) -> DiscoverySource {
    let http = HttpClient::in_process(fake.in_process());
    DiscoverySource::tmdb(http, "http://tmdb.invalid/3".parse().unwrap(), &fake.token())
}

/// Returns both sources with one catalog.
fn sources() -> [DiscoverySource; 2] {
    let catalog = catalog();
    let seerr = HttpClient::in_process(catalog.seerr_titles());
    let seerr = Seerr::new(seerr, "http://seerr.invalid".parse().unwrap(), &"key".to_owned().into());
    [DiscoverySource::seerr(&seerr), tmdb(&FakeTmdb::new("token", catalog))]
}

fn names(titles: &[FoundTitle]) -> Vec<String> {
    titles.iter().map(|title| format!("{} {}", title.title, title.year)).collect()
}

#[tokio::test]
async fn people_and_titles_are_found_at_both_sources() {
    for source in sources() {
        let hits = source.search("robert de niro", NOW).await.unwrap();
        assert_eq!(hits.people, [FoundPerson { id: 380, name: "Robert De Niro".to_owned() }]);
        let hits = source.search("heat", NOW).await.unwrap();
        assert_eq!((names(&hits.titles), hits.titles[0].rating), (vec!["Heat 1995".to_owned()], Some(7.9)));
        assert_eq!(hits.titles[0].genres, [28, 80]);
        assert_eq!(names(&source.fetch_credits(380, NOW).await.unwrap().acted), ["Heat 1995", "Dark 2017"]);
        assert_eq!(names(&source.fetch_credits(578, NOW).await.unwrap().directed), ["Alien 1979"]);
        let alien = (MediaKind::Movie, 348);
        assert_eq!(names(&source.fetch_recommendations(alien, NOW).await.unwrap()), ["Heat 1995"]);
        assert_eq!(
            names(&source.fetch_trending(NOW).await.unwrap()),
            ["Heat 1995", "Alien 1979", "Dark 2017"]
        );
    }
}

#[tokio::test]
async fn filters_and_facts_are_the_same_at_both_sources() {
    let filter = |change: fn(&mut DiscoverFilter)| {
        let mut filter = DiscoverFilter::default();
        change(&mut filter);
        filter
    };
    let filters = [
        (filter(|filter| filter.genres = vec![28, 80]), vec!["Heat 1995"]),
        (filter(|filter| filter.genres = vec![28, 27]), vec![]),
        (filter(|filter| filter.years = YearRange::parse("-1989")), vec!["Alien 1979"]),
        (filter(|filter| filter.min_rating = Some(8.0)), vec!["Alien 1979"]),
        (filter(|filter| filter.max_minutes = Some(120)), vec!["Alien 1979"]),
        (filter(|filter| filter.provider = Some((8, "US".to_owned()))), vec!["Heat 1995"]),
        (filter(|filter| filter.keywords = vec![1, 2]), vec![]),
    ];
    for source in sources() {
        for (filter, found) in &filters {
            let titles = source.discover(MediaKind::Movie, filter, NOW).await.unwrap();
            assert_eq!(names(&titles), *found, "{filter:?}");
        }
        let facts = source.fetch_facts((MediaKind::Series, 70_523), "US", NOW).await.unwrap();
        assert_eq!((facts.tvdb, facts.minutes), (Some(334_824), Some(45)));
        let facts = source.fetch_facts((MediaKind::Movie, 949), "US", NOW).await.unwrap();
        assert_eq!((facts.providers, facts.minutes), (vec![8], Some(170)));
        let services = source.fetch_providers(MediaKind::Movie, "US", NOW).await.unwrap();
        assert_eq!(services, [Provider { id: 8, name: "Netflix".to_owned() }]);
    }
}

#[tokio::test]
async fn request_at_seerr_is_known_from_its_lists() {
    let catalog = catalog();
    catalog.set_seerr_status((MediaKind::Movie, 949), 2);
    let http = HttpClient::in_process(catalog.seerr_titles());
    let seerr = Seerr::new(http, "http://seerr.invalid".parse().unwrap(), &"key".to_owned().into());
    let titles = DiscoverySource::seerr(&seerr).fetch_trending(NOW).await.unwrap();
    let states: Vec<RequestState> = titles.iter().map(|title| title.request).collect();
    assert_eq!(states[..2], [RequestState::Requested, RequestState::NotRequested]);
}

#[tokio::test]
async fn same_question_is_sent_once_until_it_is_too_old() {
    let fake = FakeTmdb::new("token", catalog());
    let source = tmdb(&fake);
    for _ in 0..3 {
        source.fetch_trending(NOW).await.unwrap();
    }
    assert_eq!(fake.requests().len(), 1);
    source.fetch_trending(NOW + SignedDuration::from_hours(12)).await.unwrap();
    assert_eq!(fake.requests().len(), 2);
}

#[tokio::test]
async fn wrong_token_and_failures_are_told_apart() {
    let fake = FakeTmdb::new("token", catalog());
    let http = HttpClient::in_process(fake.in_process());
    let url = "http://tmdb.invalid/3".parse().unwrap();
    let wrong = DiscoverySource::tmdb(http, url, &"wrong".to_owned().into());
    assert!(matches!(wrong.check_key().await, Err(ServerError::Unauthorized)));
    let source = tmdb(&fake);
    source.check_key().await.unwrap();
    fake.set_status(Some(500));
    let error = source.fetch_trending(NOW).await.unwrap_err();
    assert!(matches!(error, DiscoveryError::Server(ServerError::Unavailable(500))));
    fake.set_status(None);
    assert!(source.fetch_trending(NOW).await.is_ok());
}

#[test]
fn years_are_a_year_or_a_range() {
    let parse = |text| YearRange::parse(text).map(|years| (years.first, years.last));
    assert_eq!(parse("1995"), Some((Some(1995), Some(1995))));
    assert_eq!(parse("1990-1999"), Some((Some(1990), Some(1999))));
    assert_eq!(parse("2015-"), Some((Some(2015), None)));
    assert_eq!(parse("-1980"), Some((None, Some(1980))));
    for wrong in ["", "-", "90s", "1999-1990", "99"] {
        assert_eq!(parse(wrong), None, "{wrong}");
    }
}
