//! Tests of the real clients against the fake servers. Each side was written from the documented facts alone, and these
//! tests run them together.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::date;

use dialarr::arr::fake::activity::download;
use dialarr::arr::fake::demo_library::create_demo_servers;
use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::arr::radarr::Radarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr::arr::{
    AdditionOutcome, ArrError, Availability, CalendarDate, CalendarEntry, Download, DownloadContent,
    DownloadState, ImportedDownload, MediaFile, Movie, NewMovie, NewSeries, QualityProfile, QueuedEpisode,
    ReleaseKind, ReleaseStatus, RemovalOutcome, RootFolder, Season, Series, WantedEpisodes,
};
use dialarr::clock::Clock;
use dialarr::http::HttpClient;

fn now() -> Timestamp {
    "2026-03-06T19:00:00Z".parse().unwrap()
}

fn world() -> (FakeRadarr, FakeSonarr) {
    let clock = Clock::stopped_at(now());
    (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock))
}

fn radarr(fake: &FakeRadarr) -> Radarr {
    let base = "http://radarr.test/".parse().unwrap();
    Radarr::new(HttpClient::in_process(fake.in_process()), base, fake.api_key().into())
}

fn sonarr(fake: &FakeSonarr) -> Sonarr {
    let base = "http://sonarr.test/".parse().unwrap();
    Sonarr::new(HttpClient::in_process(fake.in_process()), base, fake.api_key().into())
}

fn wanted_film() -> NewMovie {
    NewMovie {
        tmdb: 603,
        title: "The Matrix".to_owned(),
        profile: 5,
        root_folder: "/movies".to_owned(),
        availability: Availability::Released,
    }
}

#[tokio::test]
async fn movie_is_read_as_stored() {
    let (fake, _) = world();
    let film =
        movie("Dune").year(2021).tmdb(438_631).size_gb(21.4).overview("Sand.").digital(date(2021, 10, 22));
    fake.add(film.profile("Ultra-HD").id(7));
    let expected = Movie {
        id: Some(7),
        tmdb: 438_631,
        imdb: None,
        title: "Dune".to_owned(),
        year: 2021,
        overview: "Sand.".to_owned(),
        has_file: true,
        monitored: true,
        available: true,
        size_bytes: 21_400_000_000,
        path: "/movies/Dune (2021)".to_owned(),
        profile: 5,
        popularity: 10.0,
        cinema: None,
        digital: Some(date(2021, 10, 22)),
        physical: None,
        status: ReleaseStatus::Released,
        availability: Availability::Released,
        file: Some(MediaFile { id: 7, size_bytes: 21_400_000_000, quality: "WEBDL-1080p".to_owned() }),
        genres: Vec::new(),
        certification: String::new(),
        rating: Some(7.1),
        added: Some("2024-01-01T00:00:00Z".parse().unwrap()),
        last_search: None,
        collection: None,
    };
    let client = radarr(&fake);
    assert_eq!(client.fetch_movie(7).await.unwrap().as_ref(), Some(&expected));
    assert_eq!(client.fetch_movie_by_tmdb(438_631).await.unwrap().as_ref(), Some(&expected));
    assert_eq!(client.lookup_movies("dune").await.unwrap(), [expected]);
    assert_eq!(client.fetch_movie(8).await.unwrap(), None);
    assert_eq!(client.lookup_movies("  ").await.unwrap(), []);
}

#[tokio::test]
async fn series_is_read_as_stored() {
    let (_, fake) = world();
    let show = series("Severance").year(2022).tvdb(371_980).seasons(2).episodes(19).size_gb(41.0).missing(1);
    fake.add(show.id(3));
    fake.add_calendar_entry("Severance S02E09", "2026-03-09T02:00:00Z".parse().unwrap());
    let season = |number, episodes_on_disk, episodes, size_bytes| Season {
        number,
        monitored: true,
        episodes_on_disk,
        episodes,
        size_bytes,
    };
    let expected = Series {
        id: Some(3),
        tvdb: 371_980,
        tmdb: None,
        imdb: None,
        title: "Severance".to_owned(),
        year: 2022,
        overview: String::new(),
        monitored: true,
        ended: false,
        series_type: "standard".to_owned(),
        seasons: vec![season(1, 10, 10, 22_777_777_777), season(2, 8, 9, 18_222_222_222)],
        specials: Some(Season { monitored: false, ..season(0, 0, 2, 0) }),
        episodes_on_disk: 18,
        episodes: 19,
        size_bytes: 41_000_000_000,
        path: "/tv/Severance (2022)".to_owned(),
        profile: 4,
        next_airing: Some("2026-03-09T02:00:00Z".parse().unwrap()),
        new_seasons: true,
        genres: Vec::new(),
        certification: String::new(),
        rating: Some(7.1),
        added: Some("2024-01-01T00:00:00Z".parse().unwrap()),
    };
    let client = sonarr(&fake);
    assert_eq!(client.fetch_series_by_tvdb(371_980).await.unwrap(), Some(expected));
    assert_eq!(client.lookup_series("severance").await.unwrap()[0].id, Some(3));
    assert_eq!(client.fetch_series(9).await.unwrap(), None);
}

#[tokio::test]
async fn movie_is_added_and_deleted_once() {
    let (fake, _) = world();
    fake.add_to_catalog(movie("The Matrix").year(1999).tmdb(603));
    let client = radarr(&fake);
    assert_eq!(client.add_movie(&wanted_film()).await.unwrap(), AdditionOutcome::Added);
    assert_eq!(client.add_movie(&wanted_film()).await.unwrap(), AdditionOutcome::AlreadyExists);
    assert_eq!(fake.added_profile(603), Some("Ultra-HD".to_owned()));
    let id = client.lookup_movies("tmdb:603").await.unwrap()[0].id.unwrap();
    assert_eq!(client.delete_movie(id, true).await.unwrap(), RemovalOutcome::Removed);
    assert_eq!(client.delete_movie(id, true).await.unwrap(), RemovalOutcome::AlreadyGone);
    assert_eq!((fake.added_ids(), fake.removed_ids()), (vec![603], vec![id]));
}

#[tokio::test]
async fn series_is_added_with_seasons_and_deleted_once() {
    let (_, fake) = world();
    fake.add_to_catalog(series("Seinfeld").year(1989).tvdb(79_169).seasons(3));
    let client = sonarr(&fake);
    let wanted = NewSeries {
        tvdb: 79_169,
        title: "Seinfeld".to_owned(),
        series_type: "standard".to_owned(),
        profile: 4,
        root_folder: "/tv".to_owned(),
        wanted: WantedEpisodes::Seasons(vec![(0, false), (1, true), (2, false), (3, true)]),
    };
    assert_eq!(client.add_series(&wanted).await.unwrap(), AdditionOutcome::Added);
    assert_eq!(client.add_series(&wanted).await.unwrap(), AdditionOutcome::AlreadyExists);
    let added = client.fetch_series_by_tvdb(79_169).await.unwrap().unwrap();
    let seasons: Vec<_> = added.seasons.iter().map(|season| (season.number, season.monitored)).collect();
    assert_eq!((added.monitored, seasons), (true, vec![(1, true), (2, false), (3, true)]));
    let id = added.id.unwrap();
    assert_eq!(client.delete_series(id, false).await.unwrap(), RemovalOutcome::Removed);
    assert_eq!(client.delete_series(id, false).await.unwrap(), RemovalOutcome::AlreadyGone);
    assert_eq!(fake.removed_ids(), [id]);
}

#[tokio::test]
async fn downloads_are_listed_individually() {
    let (films, shows) = world();
    films.add(movie("Paddington").year(2014));
    films.add_to_queue(download("Paddington").size_gb(10.0).percent(60).minutes_left(12));
    films.add_to_queue(download("Paddington").size_gb(10.0).stuck("No video file"));
    shows.add(series("The Bear").seasons(2));
    shows.add_to_queue(download("The Bear S02").size_gb(20.0).percent(50).minutes_left(90));
    let id = |key: usize| format!("{:040X}", key * 0x00FA_CADE);
    let film = Download {
        rows: vec![1000],
        id: id(1),
        release: "Paddington.1080p.WEB.H264-DEMO".to_owned(),
        content: DownloadContent::Movie(1),
        title: "Paddington (2014)".to_owned(),
        state: DownloadState::Downloading,
        size_bytes: 10e9,
        left_bytes: 4e9,
        time_left: Some(Duration::from_secs(12 * 60)),
    };
    let stuck = Download {
        rows: vec![2000],
        id: id(2),
        state: DownloadState::Stuck("No video file".to_owned()),
        left_bytes: 0.0,
        time_left: None,
        ..film.clone()
    };
    assert_eq!(radarr(&films).fetch_downloads().await.unwrap(), [film, stuck]);
    let queued = |number| QueuedEpisode { id: 102_000 + i64::from(number), season: 2, number };
    let pack = Download {
        rows: (1001..=1008).collect(),
        id: id(1),
        release: "The.Bear.S02.1080p.WEB.H264-DEMO".to_owned(),
        content: DownloadContent::Episodes { series: 1, episodes: (1..=8).map(queued).collect() },
        title: "The Bear season 2".to_owned(),
        state: DownloadState::Downloading,
        size_bytes: 20e9,
        left_bytes: 10e9,
        time_left: Some(Duration::from_secs(90 * 60)),
    };
    assert_eq!(sonarr(&shows).fetch_downloads().await.unwrap(), [pack]);
}

#[tokio::test]
async fn calendar_and_history_are_listed() {
    let (films, shows) = world();
    films.add(movie("Dune: Part Three").year(2026).digital(date(2026, 3, 12)));
    films.add(movie("Heat").year(1995));
    films.add_import("Heat", "2026-03-05T10:00:00Z".parse().unwrap());
    shows.add(series("The Bear").seasons(2));
    shows.add_calendar_entry("The Bear S04E03", "2026-03-11T20:00:00Z".parse().unwrap());
    shows.add_import("The Bear S02", "2026-03-05T10:00:00Z".parse().unwrap());

    let film = CalendarEntry {
        title: "Dune: Part Three (2026)".to_owned(),
        series: String::new(),
        date: CalendarDate::Released(date(2026, 3, 12), ReleaseKind::Digital),
        on_disk: false,
    };
    assert_eq!(radarr(&films).fetch_calendar(date(2026, 3, 6), date(2026, 3, 13)).await.unwrap(), [film]);
    let airs = "2026-03-11T20:00:00Z".parse().unwrap();
    let episode = CalendarEntry {
        title: "The Bear S04E03".to_owned(),
        series: "The Bear".to_owned(),
        date: CalendarDate::Airs(airs),
        on_disk: false,
    };
    let end = "2026-03-13T19:00:00Z".parse().unwrap();
    assert_eq!(sonarr(&shows).fetch_calendar(now(), end).await.unwrap(), [episode]);

    let since = "2026-03-01T00:00:00Z".parse().unwrap();
    let at = "2026-03-05T10:00:00Z".parse().unwrap();
    let import = |title: &str, detail: &str| ImportedDownload {
        title: title.to_owned(),
        detail: detail.to_owned(),
        at,
    };
    assert_eq!(radarr(&films).fetch_imports_since(since).await.unwrap(), [import("Heat (1995)", "")]);
    let season = import("The Bear", "season 2 (8 episodes)");
    assert_eq!(sonarr(&shows).fetch_imports_since(since).await.unwrap(), [season]);
}

#[tokio::test]
async fn profiles_and_folders_are_read() {
    let (films, _) = world();
    films.add_root_folder("/offline", None);
    let client = radarr(&films);
    let profiles = [(4, "HD-1080p", false), (5, "Ultra-HD", true)].map(|(id, name, four_k)| QualityProfile {
        id,
        name: name.to_owned(),
        four_k,
    });
    assert_eq!(client.fetch_profiles().await.unwrap(), profiles);
    let folder = |path: &str, free_bytes| RootFolder { path: path.to_owned(), free_bytes };
    let expected = [folder("/movies", Some(1_200_000_000_000)), folder("/offline", None)];
    assert_eq!(client.fetch_root_folders().await.unwrap(), expected);
    assert_eq!(client.common_api().fetch_status().await.unwrap().app_name, "Radarr");
}

#[tokio::test(start_paused = true)]
async fn failures_are_classified() {
    let (fake, _) = world();
    fake.add_to_catalog(movie("The Matrix").year(1999).tmdb(603));
    let client = radarr(&fake);
    fake.fail_next(401);
    assert!(matches!(client.fetch_downloads().await, Err(ArrError::Unauthorized)));
    fake.return_html_next();
    assert!(matches!(client.fetch_downloads().await, Err(ArrError::WrongUrl(_))));
    fake.set_down(true);
    assert!(matches!(client.fetch_downloads().await, Err(ArrError::Unavailable(_))));
    fake.set_down(false);
    fake.fail_next(503);
    assert!(client.fetch_downloads().await.is_ok(), "a read is tried once more");
    fake.fail_next(500);
    assert!(matches!(client.add_movie(&wanted_film()).await, Err(ArrError::Server { status: 500, .. })));
    fake.hang_next();
    assert!(matches!(client.add_movie(&wanted_film()).await, Err(ArrError::NoResponse(_))));
    assert_eq!(fake.added_ids(), Vec::<i64>::new());
    fake.drop_next_response();
    assert!(matches!(client.add_movie(&wanted_film()).await, Err(ArrError::NoResponse(_))));
    assert_eq!((fake.added_ids(), fake.post_count()), (vec![603], 3));
}

#[tokio::test]
async fn demo_library_is_read_completely() {
    let (films, shows) = create_demo_servers(now());
    let (radarr, sonarr) = (radarr(&films), sonarr(&shows));
    let (start, end) = (date(2026, 3, 6), date(2026, 3, 13));
    let (opens, closes) = (now(), "2026-03-13T19:00:00Z".parse().unwrap());
    let since = "2026-02-27T00:00:00Z".parse().unwrap();
    let (mut movies, mut series) = (0, 0);
    radarr.for_each_title(|_| movies += 1).await.unwrap();
    sonarr.for_each_title(|_| series += 1).await.unwrap();
    let sizes = (
        movies,
        series,
        radarr.fetch_downloads().await.unwrap().len() + sonarr.fetch_downloads().await.unwrap().len(),
        radarr.fetch_calendar(start, end).await.unwrap().len()
            + sonarr.fetch_calendar(opens, closes).await.unwrap().len(),
        radarr.fetch_imports_since(since).await.unwrap().len()
            + sonarr.fetch_imports_since(since).await.unwrap().len(),
    );
    assert_eq!(sizes, (156, 74, 6, 7, 6));
}
