//! Titles of the library that people could watch tonight, with what is known about their watching.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use jiff::Timestamp;

use super::gathering::Participants;
use crate::conversation::transcript::{CallFailure, MediaKind};
use crate::conversation::votes::tonight::{TonightChoice, TonightTitle, choose_titles};
use crate::media_servers::playability::{AskedTitle, TitlePart};
use crate::media_servers::watched_titles::WatchedTitles;
use crate::media_servers::{WatchEvidence, WatchState};
use crate::tools::READ_TIMEOUT;
use crate::tools::library::{ArrInstances, InstanceResults};
use crate::tools::library_cache::entries::{CachedTitle, CachedTitles};
use crate::tools::library_cache::loaded_libraries::LoadedLibraries;
use crate::tools::taste::GenreProfile;

/// What the people want to watch.
#[derive(Debug, Clone, Copy)]
pub(super) struct TonightWishes {
    pub(super) kind: MediaKind,
    pub(super) max_minutes: Option<u16>,
}

/// Title on disk, with its library.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    entries: &'a CachedTitles,
    entry: &'a CachedTitle,
}

/// Chosen titles, and what is known about the people.
pub(super) struct TonightFindings {
    pub(super) choice: TonightChoice,
    /// True if everything that the people with accounts watch is known.
    pub(super) is_complete: bool,
    /// True if what somebody has watched was read.
    pub(super) has_read_viewing: bool,
}

/// Chooses titles of a library, which shows only what everybody may see.
pub(super) async fn find_titles(
    wishes: TonightWishes,
    participants: &Participants<'_>,
    library: &ArrInstances,
    now: Timestamp,
) -> Result<TonightFindings, CallFailure> {
    let (loaded, watched) = tokio::join!(
        LoadedLibraries::load_libraries(library, Some(wishes.kind), now),
        load_watched(participants, library, now)
    );
    let responses =
        InstanceResults { responses: vec![(); loaded.libraries.len()], failures: loaded.failures.clone() };
    responses.or_failure()?;
    let evidence = watched.iter().map(|person| person.evidence).max().unwrap_or_default();
    let mut findings = TonightFindings {
        choice: TonightChoice::NotAnswered,
        is_complete: evidence == WatchEvidence::Complete,
        has_read_viewing: !watched.is_empty(),
    };
    if evidence != WatchEvidence::NotAnswered {
        let candidates = titles_on_disk(&loaded);
        let titles = describe_titles(&candidates, &loaded, &watched, (library, now)).await;
        findings.choice = choose_titles(titles, wishes.max_minutes);
    }
    Ok(findings)
}

/// Loads what each of the people with an account has watched.
async fn load_watched(
    participants: &Participants<'_>,
    library: &ArrInstances,
    now: Timestamp,
) -> Vec<WatchedTitles> {
    if library.media_servers.is_empty() {
        return Vec::new();
    }
    let linked = participants.people.iter().filter(|person| !person.accounts.is_empty());
    join_all(linked.map(|person| library.media_servers.load_watched(&person.accounts, now))).await
}

/// Returns the titles on disk, each once.
fn titles_on_disk<'a>(loaded: &'a LoadedLibraries<'_>) -> Vec<Candidate<'a>> {
    let mut seen = BTreeSet::new();
    let all = loaded
        .cached_titles()
        .into_iter()
        .flat_map(|entries| entries.titles().iter().map(move |entry| Candidate { entries, entry }));
    all.filter(|title| title.entry.is_on_disk()).filter(|title| seen.insert(title.entry.catalog)).collect()
}

async fn describe_titles(
    candidates: &[Candidate<'_>],
    loaded: &LoadedLibraries<'_>,
    watched: &[WatchedTitles],
    (library, now): (&ArrInstances, Timestamp),
) -> Vec<TonightTitle> {
    let servers = &library.media_servers;
    let asked: Vec<AskedTitle> = candidates.iter().map(Candidate::as_asked).collect();
    let playable = match servers.is_empty() {
        true => Vec::new(),
        false => servers.check_titles_within(READ_TIMEOUT, &asked, now).await,
    };
    let profile = build_profile(candidates, loaded, watched);
    let describe = |(index, title): (usize, &Candidate<'_>)| {
        let genres = title.genres();
        TonightTitle {
            title: title.entry.title.to_string(),
            year: title.entry.year,
            minutes: title.entry.minutes,
            score: profile.score(f64::from(title.entry.rating), &genres),
            genre: genres.into_iter().next(),
            is_unseen: watched.iter().all(|person| is_unseen(person, title)),
            playability: playable.get(index).copied(),
        }
    };
    candidates.iter().enumerate().map(describe).collect()
}

/// Counts the genres of what the people have watched, or else of the library.
fn build_profile<'a>(
    candidates: &[Candidate<'a>],
    loaded: &'a LoadedLibraries<'_>,
    watched: &[WatchedTitles],
) -> GenreProfile<'a> {
    let is_watched = |title: &&Candidate<'_>| {
        watched.iter().any(|person| {
            matches!(title.state(person), WatchState::Finished { .. } | WatchState::Started { .. })
        })
    };
    let liked: Vec<&Candidate<'a>> = candidates.iter().filter(is_watched).collect();
    match liked.is_empty() {
        true => GenreProfile::from_libraries(&loaded.cached_titles()),
        false => GenreProfile::from_titles(liked.into_iter().map(|title| (title.entries, title.entry))),
    }
}

/// Returns whether a person has not seen a title. A title whose state is unknown may have been seen.
fn is_unseen(person: &WatchedTitles, title: &Candidate<'_>) -> bool {
    matches!(title.state(person), WatchState::Never | WatchState::NoFinishedPlay)
}

impl Candidate<'_> {
    fn state(&self, person: &WatchedTitles) -> WatchState {
        person.state(self.entry.media_kind(), &self.entry.catalog_ids())
    }

    fn as_asked(&self) -> AskedTitle {
        AskedTitle { kind: self.entry.media_kind(), ids: self.entry.catalog_ids(), part: TitlePart::Whole }
    }

    fn genres(&self) -> Vec<String> {
        self.entries.genre_names(self.entry.genres).map(str::to_owned).collect()
    }
}
