//! Check whether imported titles can be played, before people are told that they are ready.

use jiff::Timestamp;

use super::fanout::followed_season;
use crate::arr::ArrError;
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::notifications::arr_events::{
    ArrEvent, ArrTitle, EventGroup, ImportKind, PendingArrEvent,
};
use crate::conversation::notifications::readiness::{
    ImportedContent, MissingCause, Playability, Readiness, decide_readiness,
};
use crate::conversation::transcript::MediaKind;
use crate::engine::parts::LiveParts;
use crate::media_servers::playability::{AskedTitle, MediaServers, MissingTitle, PlayablePart, TitlePart};
use crate::store::database::db::{Db, DbError};
use crate::store::library::follows::{self, FollowedTitle};
use crate::telemetry;
use crate::tools::library::ArrInstances;

/// First import of a movie or of episodes, of which people may be told.
#[derive(Debug, Clone)]
pub(super) struct ImportedTitle {
    pub(super) instance: String,
    pub(super) kind: MediaKind,
    pub(super) title: ArrTitle,
    /// Episodes by season and number; empty for a movie.
    pub(super) episodes: Vec<(u32, u32)>,
    /// Time of the oldest event.
    pub(super) imported_at: Timestamp,
}

impl ImportedTitle {
    /// Returns the import that a group of events is about; `None` if nobody could be waiting for it.
    pub(super) fn from_group(group: &EventGroup) -> Option<Self> {
        let imported_at = group.events.iter().map(|event| event.received_at).min()?;
        let (mut imported, mut episodes) = (None, Vec::new());
        for event in &group.events {
            match &event.event {
                ArrEvent::MovieImported(movie, ImportKind::First) => {
                    imported = Some((MediaKind::Movie, movie.clone()));
                }
                ArrEvent::EpisodeImported { show, season, number, copy: ImportKind::First } => {
                    imported = Some((MediaKind::Series, show.clone()));
                    episodes.push((*season, *number));
                }
                _ => {}
            }
        }
        episodes.sort_unstable();
        episodes.dedup();
        let (kind, title) = imported?;
        Some(Self { instance: group.instance.clone(), kind, title, episodes, imported_at })
    }

    pub(super) fn content(&self) -> ImportedContent<'_> {
        ImportedContent { title: &self.title, episodes: &self.episodes }
    }

    /// Returns what people can follow of it: the movie, or each season.
    pub(super) fn followed_titles(&self) -> Vec<FollowedTitle> {
        let (instance, catalog_id) = (self.instance.clone(), self.title.catalog_id);
        if self.kind == MediaKind::Movie {
            return vec![FollowedTitle { instance, kind: MediaKind::Movie, catalog_id, season: None }];
        }
        let mut seasons: Vec<u32> = self.episodes.iter().map(|(season, _)| *season).collect();
        seasons.dedup();
        seasons.into_iter().map(|season| followed_season(&self.instance, &self.title, season)).collect()
    }

    fn asked_title(&self, ids: CatalogIds) -> AskedTitle {
        let part = match self.kind {
            MediaKind::Movie => TitlePart::Whole,
            MediaKind::Series => TitlePart::Episodes(self.episodes.clone()),
        };
        AskedTitle { kind: self.kind, ids, part }
    }
}

/// Library entry of an imported title.
struct LibraryEntry {
    ids: CatalogIds,
    /// Folder as Sonarr or Radarr sees it.
    path: Option<String>,
}

/// Result of a check.
pub(super) struct ReadinessCheck {
    pub(super) readiness: Readiness,
    pub(super) playability: Playability,
    playable: PlayablePart,
    asked: AskedTitle,
    entry: LibraryEntry,
}

impl ReadinessCheck {
    /// Returns the events of the episodes that can be played, if only some of them can.
    pub(super) fn playable_events(&self, group: &EventGroup) -> Option<EventGroup> {
        let is_playable = |event: &&PendingArrEvent| match &event.event {
            ArrEvent::EpisodeImported { season, number, .. } => self.playable.has_episode((*season, *number)),
            _ => false,
        };
        let events: Vec<PendingArrEvent> = group.events.iter().filter(is_playable).cloned().collect();
        (!events.is_empty()).then(|| EventGroup { events, ..group.clone() })
    }

    /// Returns the server that does not show the title, and the likely cause.
    pub(super) async fn find_cause(
        &self,
        servers: &MediaServers,
        imported: &ImportedTitle,
        now: Timestamp,
    ) -> (&'static str, MissingCause) {
        let ArrTitle { title, year, .. } = &imported.title;
        let path = self.entry.path.as_deref();
        let missing = MissingTitle { asked: &self.asked, name: title, year: *year, path };
        let found = servers.find_missing_cause(&missing, now).await;
        found.unwrap_or(("The media server", MissingCause::NoAnswer))
    }
}

/// Checker of imported titles against the media servers.
pub(super) struct PlayabilityCheck<'a> {
    pub(super) db: &'a Db,
    pub(super) live: &'a LiveParts,
    pub(super) now: Timestamp,
}

impl PlayabilityCheck<'_> {
    /// Asks the media servers about an import. Returns `None` if there is no media server, or nobody waits for the title.
    pub(super) async fn check(&self, imported: &ImportedTitle) -> Result<Option<ReadinessCheck>, DbError> {
        let library = self.live.current().library.clone();
        if library.media_servers.is_empty() || !self.has_followers(imported).await? {
            return Ok(None);
        }
        let entry = fetch_entry(&library, imported).await;
        let asked = imported.asked_title(entry.ids);
        let playable = self.ask(&library.media_servers, &asked, &entry).await;
        let playability = playable.playability(&asked);
        let readiness = decide_readiness(playability, imported.imported_at, self.now);
        Ok(Some(ReadinessCheck { readiness, playability, playable, asked, entry }))
    }

    async fn has_followers(&self, imported: &ImportedTitle) -> Result<bool, DbError> {
        let titles = imported.followed_titles();
        let has_followers = move |conn: &mut _| {
            for title in &titles {
                if !follows::load_followers(conn, title)?.is_empty() {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        self.db.read(has_followers).await
    }

    /// Asks which part of the title can be played, and requests a scan if something is missing.
    async fn ask(&self, servers: &MediaServers, asked: &AskedTitle, entry: &LibraryEntry) -> PlayablePart {
        let playable = servers.find_playable(asked, self.now).await;
        if playable.playability(asked) == Playability::NotYet
            && let Some(path) = &entry.path
        {
            servers.request_scan(path, self.now).await;
        }
        playable
    }
}

/// Fetches the ids and the folder of a title. Without them, its one id from the event is used.
async fn fetch_entry(library: &ArrInstances, imported: &ImportedTitle) -> LibraryEntry {
    let fallback = CatalogIds::of_library(imported.kind, imported.title.catalog_id);
    let fetched = match imported.kind {
        MediaKind::Movie => fetch_movie_entry(library, imported).await,
        MediaKind::Series => fetch_series_entry(library, imported).await,
    };
    match fetched {
        Ok(Some(entry)) => entry,
        Ok(None) => LibraryEntry { ids: fallback, path: None },
        Err(error) => {
            let (instance, error) = (&imported.instance, telemetry::error_chain(&error));
            tracing::warn!(instance, error, "failed to fetch the folder of an imported title");
            LibraryEntry { ids: fallback, path: None }
        }
    }
}

async fn fetch_movie_entry(
    library: &ArrInstances,
    imported: &ImportedTitle,
) -> Result<Option<LibraryEntry>, ArrError> {
    let Some(radarr) = library.movies.iter().find(|known| known.name == imported.instance) else {
        return Ok(None);
    };
    let movie = radarr.client.fetch_movie(imported.title.id).await?;
    // After a move to another server, the id may be that of another movie.
    let movie = movie.filter(|movie| movie.tmdb == imported.title.catalog_id);
    Ok(movie.map(|movie| LibraryEntry { ids: movie.catalog_ids(), path: Some(movie.path) }))
}

async fn fetch_series_entry(
    library: &ArrInstances,
    imported: &ImportedTitle,
) -> Result<Option<LibraryEntry>, ArrError> {
    let Some(sonarr) = library.series.iter().find(|known| known.name == imported.instance) else {
        return Ok(None);
    };
    let series = sonarr.client.fetch_series(imported.title.id).await?;
    let series = series.filter(|series| series.tvdb == imported.title.catalog_id);
    Ok(series.map(|series| LibraryEntry { ids: series.catalog_ids(), path: Some(series.path) }))
}
