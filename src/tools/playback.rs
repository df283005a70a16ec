//! Answers of the media servers about titles on disk: in words for people and for the model, and for lists of titles.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ToolContext;
use super::formatting::format_media_title;
use super::library::ArrInstances;
use super::library_cache::overview::{TitleId, TitleOverview};
use crate::arr::episodes::Episode;
use crate::arr::{Movie, Season, Series};
use crate::conversation::notifications::arr_events;
use crate::conversation::notifications::readiness::{MissingCause, Playability, format_playability};
use crate::conversation::transcript::{CallResult, MediaKind, UserRole};
use crate::media_servers::playability::{AskedTitle, MediaServers, MissingTitle, TitlePart};

/// Time limit of all questions about one title.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Time limit of the question about a list of titles, for which a page waits.
const LIST_TIME_LIMIT: Duration = Duration::from_secs(2);

/// Answer of the media servers about a title on disk, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlaybackAnswer {
    state: PlaybackState,
    /// Servers that the state is about, such as `Jellyfin or Plex`.
    server: String,
    cause: Option<MissingCause>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaybackState {
    Playable,
    /// Some of the episodes on disk can be played.
    Partly,
    NotYet,
    Unknown,
}

/// Answers about the titles of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayableTitles {
    /// Names of the servers, such as `Jellyfin or Plex`.
    pub servers: String,
    answers: HashMap<TitleId, Playability>,
}

impl PlayableTitles {
    /// Asks about those of the titles that are on disk, shows as a whole. Returns `None` if there is no media server.
    pub async fn load(
        servers: &MediaServers,
        titles: impl Iterator<Item = &TitleOverview>,
        now: Timestamp,
    ) -> Option<Self> {
        if servers.is_empty() {
            return None;
        }
        let on_disk: Vec<&TitleOverview> = titles.filter(|title| title.availability.is_on_disk()).collect();
        let asked = |title: &&TitleOverview| AskedTitle {
            kind: title.id.kind,
            ids: title.ids,
            part: TitlePart::Whole,
        };
        let asked: Vec<AskedTitle> = on_disk.iter().map(asked).collect();
        let answers = servers.check_titles_within(LIST_TIME_LIMIT, &asked, now).await;
        let answers = on_disk.iter().map(|title| title.id.clone()).zip(answers).collect();
        Some(Self { servers: servers.labels().join(" or "), answers })
    }

    /// Returns the answer about a title; `None` if it was not on disk.
    pub fn find(&self, title: &TitleId) -> Option<Playability> {
        self.answers.get(title).copied()
    }
}

/// Asks whether a movie can be played. Returns `None` if it is not on disk, or there is no media server.
pub(super) async fn check_movie(
    library: &ArrInstances,
    movie: &Movie,
    now: Timestamp,
) -> Option<PlaybackAnswer> {
    if !movie.has_file {
        return None;
    }
    let asked = AskedTitle { kind: MediaKind::Movie, ids: movie.catalog_ids(), part: TitlePart::Whole };
    let title = MissingTitle { asked: &asked, name: &movie.title, year: movie.year, path: Some(&movie.path) };
    check_title(&library.media_servers, &title, now).await
}

/// Asks whether the seasons of a series can be played that have episodes on disk, or only one of them.
pub(super) async fn check_series(
    library: &ArrInstances,
    series: &Series,
    only: Option<&Season>,
    now: Timestamp,
) -> Option<PlaybackAnswer> {
    let is_asked = |season: &&Season| only.is_none_or(|only| season.number == only.number);
    let is_on_disk = |season: &&Season| season.episodes_on_disk > 0 && is_asked(season);
    let seasons = series.seasons.iter().filter(is_on_disk).map(|season| season.number).collect();
    check_part(library, series, TitlePart::Seasons(seasons), now).await
}

/// Asks whether those of some episodes can be played that are on disk.
pub(super) async fn check_episodes(
    library: &ArrInstances,
    series: &Series,
    episodes: &[Episode],
    now: Timestamp,
) -> Option<PlaybackAnswer> {
    check_part(library, series, TitlePart::Episodes(numbers_on_disk(episodes)), now).await
}

async fn check_part(
    library: &ArrInstances,
    series: &Series,
    part: TitlePart,
    now: Timestamp,
) -> Option<PlaybackAnswer> {
    let is_empty = match &part {
        TitlePart::Whole => false,
        TitlePart::Seasons(seasons) => seasons.is_empty(),
        TitlePart::Episodes(episodes) => episodes.is_empty(),
    };
    if is_empty {
        return None;
    }
    let asked = AskedTitle { kind: MediaKind::Series, ids: series.catalog_ids(), part };
    let title =
        MissingTitle { asked: &asked, name: &series.title, year: series.year, path: Some(&series.path) };
    check_title(&library.media_servers, &title, now).await
}

async fn check_title(
    servers: &MediaServers,
    title: &MissingTitle<'_>,
    now: Timestamp,
) -> Option<PlaybackAnswer> {
    if servers.is_empty() {
        return None;
    }
    let deadline = tokio::time::Instant::now() + TIME_LIMIT;
    let playable = servers.find_playable_within(TIME_LIMIT, title.asked, now).await;
    let state = match playable.playability(title.asked) {
        Playability::Playable => PlaybackState::Playable,
        Playability::NotYet if playable.has_any_of(title.asked) => PlaybackState::Partly,
        Playability::NotYet => PlaybackState::NotYet,
        Playability::Unknown => PlaybackState::Unknown,
    };
    let all_servers = || servers.labels().join(" or ");
    let (server, cause) = match state {
        PlaybackState::Playable if !playable.complete_servers().is_empty() => {
            (playable.complete_servers().join(" and "), None)
        }
        PlaybackState::NotYet => {
            let cause = tokio::time::timeout_at(deadline, servers.find_missing_cause(title, now)).await;
            match cause {
                Ok(Some((server, cause))) => (server.to_owned(), Some(cause)),
                Ok(None) | Err(_) => (all_servers(), None),
            }
        }
        PlaybackState::Playable | PlaybackState::Partly | PlaybackState::Unknown => (all_servers(), None),
    };
    Some(PlaybackAnswer { state, server, cause })
}

/// Formats episodes on disk as `The Bear (2022) S02E03`, `The Bear (2022) season 2`, or the title for several seasons.
pub(super) fn format_content(series: &Series, episodes: &[Episode]) -> String {
    let title = format_media_title(&series.title, series.year);
    let episodes = numbers_on_disk(episodes);
    let is_one_season =
        episodes.iter().all(|(season, _)| Some(*season) == episodes.first().map(|first| first.0));
    if is_one_season { arr_events::format_episodes(&title, &episodes) } else { title }
}

/// Returns the words for the episodes on disk, after a sentence that counts them.
pub(super) fn describe_part<Count: Ord + Copy>(on_disk: Count, all: Count) -> &'static str {
    if on_disk < all { "The part on disk" } else { "It" }
}

fn numbers_on_disk(episodes: &[Episode]) -> Vec<(u32, u32)> {
    let on_disk = episodes.iter().filter(|episode| episode.on_disk());
    on_disk.map(|episode| (episode.season, episode.number)).collect()
}

impl PlaybackAnswer {
    pub(super) fn is_playable(&self) -> bool {
        self.state == PlaybackState::Playable
    }

    /// Formats the answer with its likely cause. `content` is a phrase such as `Heat (1995)`.
    pub(super) fn format_sentence(&self, content: &str, role: UserRole) -> String {
        let server = &self.server;
        let sentence = match self.state {
            PlaybackState::Playable => format_playability(content, server, Playability::Playable),
            PlaybackState::Partly => {
                format!("{content} is downloaded, but not all of it is on {server} yet.")
            }
            PlaybackState::NotYet => format_playability(content, server, Playability::NotYet),
            PlaybackState::Unknown => format_playability(content, server, Playability::Unknown),
        };
        match self.format_cause(role) {
            Some(cause) => format!("{sentence} {cause}"),
            None => sentence,
        }
    }

    /// Adds the answer to a result about the title. `content` is a phrase such as `It`.
    pub(super) fn add_to(&self, result: &mut CallResult, content: &str, context: &ToolContext) {
        let role = context.rights.role;
        self.add_fields(&mut result.for_model, role);
        result.for_user = format!("{} {}", result.for_user, self.format_sentence(content, role));
    }

    /// Adds the fields for the model.
    pub(super) fn add_fields(&self, for_model: &mut Value, role: UserRole) {
        for_model["playable"] = match self.state {
            PlaybackState::Playable => json!(true),
            PlaybackState::Partly => json!("partly"),
            PlaybackState::NotYet => json!(false),
            PlaybackState::Unknown => json!("unknown"),
        };
        for_model["media_server"] = json!(self.server);
        if let Some(cause) = self.format_cause(role) {
            for_model["cause"] = json!(cause);
        }
    }

    fn format_cause(&self, role: UserRole) -> Option<&'static str> {
        self.cause.and_then(|cause| cause.format_for(role))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;

    use super::*;
    use crate::clock::Clock;
    use crate::conversation::catalog_ids::CatalogIds;
    use crate::http::HttpClient;
    use crate::media_servers::MediaServer;
    use crate::media_servers::fake::FakeJellyfin;
    use crate::media_servers::jellyfin::Jellyfin;

    const START: Timestamp = Timestamp::constant(1_770_000_000, 0);

    fn jellyfin() -> FakeJellyfin {
        FakeJellyfin::new("a key", Clock::stopped_at(START))
    }

    fn connect(servers: &[&FakeJellyfin]) -> MediaServers {
        let client = |jellyfin: &&FakeJellyfin| -> Arc<dyn MediaServer> {
            let http = HttpClient::in_process(jellyfin.in_process());
            Arc::new(Jellyfin::new(http, "http://home.invalid/".parse().unwrap(), &jellyfin.key()))
        };
        MediaServers::new(servers.iter().map(client).collect())
    }

    async fn check(servers: &MediaServers, kind: MediaKind, part: TitlePart) -> PlaybackAnswer {
        let asked = AskedTitle { kind, ids: CatalogIds::of_library(kind, 949), part };
        let path = Some("/movies/Heat (1995)");
        let title = MissingTitle { asked: &asked, name: "Heat", year: 1995, path };
        check_title(servers, &title, START).await.unwrap()
    }

    async fn check_heat(servers: &MediaServers, role: UserRole) -> String {
        check(servers, MediaKind::Movie, TitlePart::Whole).await.format_sentence("Heat (1995)", role)
    }

    fn add_heat(jellyfin: &FakeJellyfin) {
        let ids = CatalogIds::of_library(MediaKind::Movie, 949);
        jellyfin.household.add_movie(("Heat", 1995), ids, SignedDuration::ZERO);
    }

    #[tokio::test]
    async fn movie_that_plays_is_ready_on_the_server_that_has_it() {
        let (first, second) = (jellyfin(), jellyfin());
        add_heat(&second);
        let servers = connect(&[&first, &second]);
        assert_eq!(check_heat(&servers, UserRole::Member).await, "Heat (1995) is ready on Jellyfin.");
    }

    #[tokio::test]
    async fn likely_cause_tells_admins_what_to_do() {
        let jellyfin = jellyfin();
        let servers = connect(&[&jellyfin]);
        let not_yet = "Heat (1995) is downloaded, but not on Jellyfin yet.";
        assert_eq!(
            check_heat(&servers, UserRole::Admin).await,
            format!("{not_yet} Check that its library is scanned.")
        );
        assert_eq!(
            check_heat(&servers, UserRole::Member).await,
            format!("{not_yet} Its library may not be scanned yet.")
        );
        jellyfin.household.set_folders(&[("Shows", "/media/shows")]);
        assert_eq!(
            check_heat(&servers, UserRole::Member).await,
            format!("{not_yet} No library there has its folder. An admin can help.")
        );
    }

    #[tokio::test]
    async fn show_of_which_some_episodes_play_is_partly_there() {
        let jellyfin = jellyfin();
        let ids = CatalogIds::of_library(MediaKind::Series, 949);
        let show = jellyfin.household.add_show(("Heat", 1995), ids, SignedDuration::ZERO);
        jellyfin.household.add_episode(show, (1, 1));
        let episodes = TitlePart::Episodes(vec![(1, 1), (1, 2)]);
        let playback = check(&connect(&[&jellyfin]), MediaKind::Series, episodes).await;
        assert_eq!(
            playback.format_sentence("It", UserRole::Member),
            "It is downloaded, but not all of it is on Jellyfin yet."
        );
        let mut for_model = json!({});
        playback.add_fields(&mut for_model, UserRole::Member);
        assert_eq!(for_model, json!({ "playable": "partly", "media_server": "Jellyfin" }));
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_hangs_is_unknown_and_hides_no_other_one() {
        let (hanging, other) = (jellyfin(), jellyfin());
        hanging.household.set_silent(true);
        let started = tokio::time::Instant::now();
        assert_eq!(
            check_heat(&connect(&[&hanging]), UserRole::Member).await,
            "Heat (1995) is downloaded, but I can't reach Jellyfin to see whether it plays."
        );
        assert_eq!(started.elapsed(), TIME_LIMIT);
        add_heat(&other);
        let both = connect(&[&hanging, &other]);
        assert_eq!(check_heat(&both, UserRole::Member).await, "Heat (1995) is ready on Jellyfin.");
    }
}
