//! Search for the titles that could go, in the libraries and by what the media servers know.

use std::cmp::Reverse;

use futures_util::future::join_all;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use super::{HouseholdPerson, SpaceRecords};
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::making_room::ProposedTitle;
use crate::conversation::making_room::judgment::{
    GoReason, Judgment, PlayingNow, TitleUse, ViewerProgress, ViewingEvidence, WatchProgress, judge_title,
};
use crate::conversation::making_room::proposal::{Candidate, ConcernedPerson};
use crate::conversation::transcript::{CallFailure, FailureCode, MediaKind, UserId};
use crate::conversation::viewer_accounts::ViewerAccount;
use crate::media_servers::playability::{AskedTitle, MediaServers, TitlePart, WatchingNow};
use crate::media_servers::watched_titles::WatchedTitles;
use crate::media_servers::{WatchEvidence, WatchState};
use crate::tools::library::{ArrInstances, InstanceResults};
use crate::tools::library_cache::entries::CachedTitle;
use crate::tools::library_cache::loaded_libraries::LoadedLibraries;

/// Maximum number of titles that are looked at closely, the largest ones.
const MAX_CLOSE_LOOKS: usize = 40;

/// Search for titles that could go.
pub struct CandidateSearch<'a> {
    pub library: &'a ArrInstances,
    pub records: &'a SpaceRecords,
    pub now: Timestamp,
    pub zone: &'a TimeZone,
}

/// Title that could go as far as the libraries and the plays tell.
struct LikelyTitle<'a> {
    instance: &'a str,
    entry: &'a CachedTitle,
    title_use: TitleUse,
    viewers: Vec<ViewerProgress>,
}

/// What each user of the media servers has watched.
struct HouseholdViewing {
    viewers: Vec<(Option<UserId>, WatchedTitles)>,
}

impl CandidateSearch<'_> {
    /// Finds the titles that could go, the largest first. Nothing is found if a server does not answer.
    pub async fn find_candidates(&self) -> Result<Vec<Candidate>, CallFailure> {
        self.find_among(|_, _| true).await
    }

    /// Finds those of these titles that still could go, as they were.
    pub async fn find_unchanged(&self, titles: &[ProposedTitle]) -> Result<Vec<Candidate>, CallFailure> {
        let is_proposed = |instance: &str, entry: &CachedTitle| {
            titles.iter().any(|title| {
                (title.instance.as_str(), title.kind, title.item, title.catalog_id)
                    == (instance, entry.media_kind(), entry.id, entry.catalog)
                    && !title.has_changed_to(entry.size_bytes)
            })
        };
        self.find_among(is_proposed).await
    }

    /// Finds the candidates among the titles of some instances.
    pub async fn find_in_instances(&self, names: &[&str]) -> Result<Vec<Candidate>, CallFailure> {
        self.find_among(|instance, _| names.contains(&instance)).await
    }

    async fn find_among(
        &self,
        is_wanted: impl Fn(&str, &CachedTitle) -> bool,
    ) -> Result<Vec<Candidate>, CallFailure> {
        let (loaded, viewing) =
            tokio::join!(LoadedLibraries::load_libraries(self.library, None, self.now), self.load_viewing(),);
        let viewing = viewing?;
        let responses = vec![(); loaded.libraries.len()];
        InstanceResults { responses, failures: loaded.failures.clone() }.or_failure()?;
        let mut likely: Vec<LikelyTitle<'_>> = Vec::new();
        for library in &loaded.libraries {
            let instance = library.instance.name();
            let wanted = library.cached.entries.titles().iter().filter(|entry| is_wanted(instance, entry));
            likely.extend(wanted.filter_map(|entry| self.look_at(instance, entry, viewing.as_ref())));
        }
        likely.sort_by_key(|title| Reverse(title.entry.size_bytes));
        likely.truncate(MAX_CLOSE_LOOKS);
        let candidates = join_all(likely.into_iter().map(|title| self.look_closely(title))).await;
        Ok(candidates.into_iter().flatten().collect())
    }

    /// Judges a title as if nobody were watching it.
    fn look_at<'a>(
        &self,
        instance: &'a str,
        entry: &'a CachedTitle,
        viewing: Option<&HouseholdViewing>,
    ) -> Option<LikelyTitle<'a>> {
        let (kind, catalog_id) = (entry.media_kind(), entry.catalog);
        let viewers = viewing.map(|viewing| viewing.progress(kind, &entry.catalog_ids()));
        let requests = self.requests_for(instance, kind, catalog_id);
        let title_use = TitleUse {
            size_bytes: entry.size_bytes,
            added: entry.added,
            last_requested_at: requests.iter().map(|(_, at)| *at).max(),
            is_kept: self.records.kept.contains(&(kind, catalog_id)),
            is_followed: self.records.followed.iter().any(|(followed, followed_kind, id)| {
                (followed.as_str(), *followed_kind, *id) == (instance, kind, catalog_id)
            }),
            viewing: viewers.clone().map_or(ViewingEvidence::NoServer, ViewingEvidence::Known),
            playing: PlayingNow::Nobody,
        };
        matches!(judge_title(&title_use, self.now, self.zone), Judgment::CouldGo(_)).then(|| LikelyTitle {
            instance,
            entry,
            title_use,
            viewers: viewers.unwrap_or_default(),
        })
    }

    /// Judges a title finally, and finds the people whom it concerns.
    async fn look_closely(&self, likely: LikelyTitle<'_>) -> Option<Candidate> {
        let entry = likely.entry;
        let kind = entry.media_kind();
        let playing = self.find_playing(kind, entry.catalog_ids()).await;
        let title_use = TitleUse { playing, ..likely.title_use };
        let Judgment::CouldGo(reason) = judge_title(&title_use, self.now, self.zone) else { return None };
        let title = ProposedTitle {
            instance: likely.instance.to_owned(),
            kind,
            item: entry.id,
            catalog_id: entry.catalog,
            title: entry.title.to_string(),
            year: entry.year,
            size_bytes: entry.size_bytes,
        };
        let requests = self.requests_for(&title.instance, kind, title.catalog_id);
        let concerned = self.records.people.iter().filter_map(|person| {
            let finished = finished_by(person.user, &likely.viewers);
            let asked_at = requests.iter().find(|(user, _)| *user == person.user).map(|(_, at)| *at);
            (finished.is_some() || asked_at.is_some()).then_some((person, asked_at, finished))
        });
        let concern = |(person, asked_at, finished): (&HouseholdPerson, _, _)| {
            let (user, is_reachable, limit) = (person.user, person.is_reachable, person.limit.clone());
            async move {
                let may_see = limit.is_unlimited()
                    || self.library.limited_to(&limit).await.may_show_owned(kind, entry.catalog).await;
                let may_be_asked = is_reachable && may_see;
                ConcernedPerson { user, caps: limit.caps, asked_at, finished, may_be_asked }
            }
        };
        let people = join_all(concerned.map(concern)).await;
        let last_played_at = match reason {
            GoReason::Finished => {
                likely.viewers.iter().filter_map(|viewer| viewer.progress.finished_at()).max()
            }
            GoReason::NeverWatched | GoReason::Old => None,
        };
        Some(Candidate { title, reason, last_played_at, people })
    }

    async fn find_playing(&self, kind: MediaKind, ids: CatalogIds) -> PlayingNow {
        if self.library.media_servers.is_empty() {
            return PlayingNow::Nobody;
        }
        let asked = AskedTitle { kind, ids, part: TitlePart::Whole };
        match self.library.media_servers.check_watching(&asked, self.now).await {
            WatchingNow::Nobody => PlayingNow::Nobody,
            WatchingNow::By(_) => PlayingNow::Somebody,
            WatchingNow::Unknown => PlayingNow::Unknown,
        }
    }

    fn requests_for(&self, instance: &str, kind: MediaKind, catalog_id: i64) -> Vec<(UserId, Timestamp)> {
        let of_title = self.records.requests.iter().filter(|request| {
            (request.instance.as_str(), request.kind, request.catalog_id) == (instance, kind, catalog_id)
        });
        of_title.map(|request| (request.user, request.at)).collect()
    }

    /// Loads what the users of the media servers have watched, linked or not. Returns `None` without a media server.
    async fn load_viewing(&self) -> Result<Option<HouseholdViewing>, CallFailure> {
        let servers = &self.library.media_servers;
        if servers.is_empty() {
            return Ok(None);
        }
        let accounts = self.load_accounts(servers).await.ok_or_else(|| no_answer(servers))?;
        let load = async |(user, account): (Option<UserId>, ViewerAccount)| {
            (user, servers.load_watched(std::slice::from_ref(&account), self.now).await)
        };
        let viewers: Vec<(Option<UserId>, WatchedTitles)> = join_all(accounts.into_iter().map(load)).await;
        if viewers.iter().any(|(_, watched)| watched.evidence == WatchEvidence::NotAnswered) {
            return Err(no_answer(servers));
        }
        Ok(Some(HouseholdViewing { viewers }))
    }

    /// Loads the accounts of the media servers, each with the person to whom it is linked. Returns `None` if a server does
    /// not answer.
    async fn load_accounts(&self, servers: &MediaServers) -> Option<Vec<(Option<UserId>, ViewerAccount)>> {
        let found = servers.fetch_users().await;
        if found.is_incomplete {
            return None;
        }
        let linked =
            self.records.people.iter().flat_map(|person| {
                person.accounts.iter().map(|account| (Some(person.user), account.clone()))
            });
        let mut accounts: Vec<(Option<UserId>, ViewerAccount)> = linked.collect();
        for other in found.users {
            let account = ViewerAccount {
                server: other.server,
                id: other.user.id.as_str().to_owned(),
                name: other.user.name,
            };
            let is_same = |known: &(Option<UserId>, ViewerAccount)| {
                (known.1.server, &known.1.id) == (account.server, &account.id)
            };
            if !accounts.iter().any(is_same) {
                accounts.push((None, account));
            }
        }
        Some(accounts)
    }
}

impl HouseholdViewing {
    fn progress(&self, kind: MediaKind, ids: &CatalogIds) -> Vec<ViewerProgress> {
        let progress = |(user, watched): &(Option<UserId>, WatchedTitles)| {
            let progress = match watched.state(kind, ids) {
                WatchState::Finished { at } => WatchProgress::Finished { at },
                WatchState::Started { .. } => WatchProgress::Started,
                WatchState::Never | WatchState::NoFinishedPlay => WatchProgress::Never,
                WatchState::Unknown => WatchProgress::Unknown,
            };
            ViewerProgress { user: *user, progress }
        };
        self.viewers.iter().map(progress).collect()
    }
}

/// Returns the time of the last play of a person who has finished a title, with any of the accounts.
fn finished_by(user: UserId, viewers: &[ViewerProgress]) -> Option<Option<Timestamp>> {
    let finished =
        viewers.iter().filter(|viewer| viewer.user == Some(user)).filter_map(|viewer| {
            match viewer.progress {
                WatchProgress::Finished { at } => Some(at),
                WatchProgress::Started | WatchProgress::Never | WatchProgress::Unknown => None,
            }
        });
    finished.max()
}

fn no_answer(servers: &MediaServers) -> CallFailure {
    let label = servers.labels().first().copied().unwrap_or("The media server");
    CallFailure::new(
        FailureCode::NotKnown,
        json!({ "hint": "the media server did not answer, so nothing is proposed: say so" }),
        Some(format!("{label} does not answer, so I can't tell what could go.")),
    )
}
