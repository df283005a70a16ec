//! Checks what people with linked accounts watch, and offers them the next season of a series before they have watched what
//! is there.

use jiff::Timestamp;

use super::fanout::NotificationFanout;
use super::season_offers::{AdditionPath, OfferOutcome, OfferRecipient, SeasonOffer};
use super::title_readers::TitleReaders;
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::arr::{DownloadContent, Series};
use crate::clock::Clock;
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::next_season::{
    EpisodeFile, LibraryEpisode, LibrarySeries, NextSeasonDecision, WatchedEpisodes, decide_next_season,
    format_season_offer, is_in_time, max_play_age,
};
use crate::conversation::notifications::arr_events::ArrTitle;
use crate::conversation::notifications::readiness::Playability;
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::MediaKind;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::media_servers::playability::{AskedTitle, TitlePart};
use crate::media_servers::{EpisodePlay, PlayProgress};
use crate::messaging::outbox_relay::OutboxSignal;
use crate::seerr::{Seerr, SeerrUserId};
use crate::store::database::db::Db;
use crate::tools::library::{ArrInstances, Instance};
use crate::tools::library_cache::refresh::FreshnessPolicy;

/// Maximum number of titles among which a user's series are looked for, the last played ones.
const MAX_RECENT_TITLES: usize = 50;

/// Checker of the series that people watch.
pub struct NextSeasonChecker {
    db: Db,
    clock: Clock,
    live: LiveParts,
    outbox: OutboxSignal,
}

impl NextSeasonChecker {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, outbox, live, .. } = parts.clone();
        Self { db, clock, live, outbox }
    }

    /// Checks once what each user watches, and offers each of them one season at most. A user whose check fails is checked
    /// again at the next run.
    pub(crate) async fn check_viewers(&self) {
        let library = self.live.current().library.clone();
        // Seasons of the 4K library are not offered.
        let Some(instance) = library.series.iter().find(|instance| !instance.four_k) else { return };
        if library.media_servers.is_empty() {
            return;
        }
        let path = match library.requests {
            Some(_) => AdditionPath::Seerr,
            None => AdditionPath::Sonarr,
        };
        let check = ViewerCheck { checker: self, library: &library, instance, path };
        let recipients = match self.load_recipients(path).await {
            Ok(recipients) => recipients,
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "failed to load the users who watch series");
                return;
            }
        };
        for recipient in &recipients {
            if let Err(error) = check.check_viewer(recipient).await {
                tracing::warn!(error = format!("{error:#}"), "failed to check for a next season");
            }
        }
        self.outbox.notify();
    }

    async fn load_recipients(&self, path: AdditionPath) -> anyhow::Result<Vec<OfferRecipient>> {
        let (settings, now) = (self.live.settings(), self.clock.now());
        let load = move |conn: &mut _| {
            NotificationFanout { conn, settings: &settings, readers: &TitleReaders::default(), now }
                .load_offer_recipients(path)
        };
        Ok(self.db.read(load).await?)
    }
}

/// Check of the series that users watch, against one library.
struct ViewerCheck<'a> {
    checker: &'a NextSeasonChecker,
    library: &'a ArrInstances,
    instance: &'a Instance<Sonarr>,
    path: AdditionPath,
}

impl ViewerCheck<'_> {
    /// Offers the next season of a series that a user watches, the last watched series first. Nothing is offered if a
    /// server does not answer.
    async fn check_viewer(&self, recipient: &OfferRecipient) -> anyhow::Result<()> {
        let (servers, now) = (&self.library.media_servers, self.checker.clock.now());
        let recent = servers.fetch_recent_plays(&recipient.accounts, MAX_RECENT_TITLES, now).await;
        let max_age = max_play_age(self.checker.live.settings().retention);
        let mut series = recent.plays;
        series.retain(|played| {
            played.play.kind == MediaKind::Series && is_in_time(played.play.at, max_age, now)
        });
        if recent.is_incomplete || series.is_empty() || !self.may_request(recipient).await? {
            return Ok(());
        }
        for played in series {
            if let Some(offer) = self.find_offer(recipient, &played.ids).await?
                && self.offer(recipient, offer).await? == OfferOutcome::Offered
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns whether the quota of a user at the Seerr has capacity for a season. The other quotas are checked in the
    /// transaction of the offer.
    async fn may_request(&self, recipient: &OfferRecipient) -> anyhow::Result<bool> {
        let Some(seerr) = &self.library.requests else { return Ok(true) };
        let account = recipient.seerr_account.as_ref();
        let Some(user) = account.and_then(|account| SeerrUserId::from_account(&account.id)) else {
            return Ok(false);
        };
        let quota = seerr.fetch_quotas(user).await?.seasons;
        Ok(quota.limit.is_none_or(|limit| quota.used < limit))
    }

    /// Finds the next season of a series that a user watches.
    async fn find_offer(
        &self,
        recipient: &OfferRecipient,
        ids: &CatalogIds,
    ) -> anyhow::Result<Option<SeasonOffer>> {
        let (servers, now) = (&self.library.media_servers, self.checker.clock.now());
        let Some(series) = find_series(self.instance, ids, now).await? else { return Ok(None) };
        let plays = servers.fetch_episode_plays(&recipient.accounts, &series.catalog_ids(), now).await;
        let Some(plays) = plays else { return Ok(None) };
        let episodes = self.instance.client.fetch_episodes(series.id.unwrap_or_default()).await?;
        let max_age = max_play_age(self.checker.live.settings().retention);
        let (library_series, watched) = (library_series(&series, &episodes, now), watched_episodes(&plays));
        let NextSeasonDecision::Offer(next) = decide_next_season(&library_series, &watched, max_age, now)
        else {
            return Ok(None);
        };
        let season = RequestedTitle {
            instance: self.instance.name.to_owned(),
            kind: MediaKind::Series,
            catalog_id: series.tvdb,
            title: series.title.clone(),
            year: series.year,
            seasons: Some(vec![next.number]),
        };
        let Some(text) = format_season_offer(&arr_title(&series), &next) else { return Ok(None) };
        let is_free = self.is_open_offer(recipient, &season).await?
            && !self.is_on_the_way(&series, next.number).await?;
        Ok(is_free.then_some(SeasonOffer { season, text }))
    }

    /// Returns whether a season is being downloaded, is in another library or on a media server, or waits at the Seerr.
    /// What a media server does not answer counts as yes.
    async fn is_on_the_way(&self, series: &Series, number: u32) -> anyhow::Result<bool> {
        let downloads = self.instance.client.fetch_downloads().await?;
        let is_of_season = |content: &DownloadContent| match content {
            DownloadContent::Episodes { series: id, episodes } => {
                Some(*id) == series.id && episodes.iter().any(|episode| episode.season == number)
            }
            DownloadContent::Movie(_) | DownloadContent::Nothing => false,
        };
        if downloads.iter().any(|download| is_of_season(&download.content)) {
            return Ok(true);
        }
        for other in self.library.series.iter().filter(|other| other.name != self.instance.name) {
            let other = other.client.fetch_series_by_tvdb(series.tvdb).await?;
            let season = other.as_ref().and_then(|other| other.season(number));
            if season.is_some_and(|season| season.monitored || season.episodes_on_disk > 0) {
                return Ok(true);
            }
        }
        if let Some(seerr) = &self.library.requests
            && is_requested_at_seerr(seerr, series, number).await?
        {
            return Ok(true);
        }
        let part = TitlePart::Seasons(vec![number]);
        let asked = AskedTitle { kind: MediaKind::Series, ids: series.catalog_ids(), part };
        let now = self.checker.clock.now();
        Ok(self.library.media_servers.check_playability(&asked, now).await != Playability::NotYet)
    }

    async fn is_open_offer(
        &self,
        recipient: &OfferRecipient,
        season: &RequestedTitle,
    ) -> anyhow::Result<bool> {
        let (settings, now) = (self.checker.live.settings(), self.checker.clock.now());
        let (user, season) = (recipient.user, season.clone());
        let check = move |conn: &mut _| {
            NotificationFanout { conn, settings: &settings, readers: &TitleReaders::default(), now }
                .is_open_offer(user, &season)
        };
        Ok(self.checker.db.read(check).await?)
    }

    async fn offer(&self, recipient: &OfferRecipient, offer: SeasonOffer) -> anyhow::Result<OfferOutcome> {
        let (settings, now) = (self.checker.live.settings(), self.checker.clock.now());
        let (recipient, path) = (recipient.clone(), self.path);
        let title = (offer.season.kind, offer.season.catalog_id);
        let readers = TitleReaders::find(&self.checker.db, self.library, title).await?;
        let work = move |conn: &mut _| {
            NotificationFanout { conn, settings: &settings, readers: &readers, now }
                .offer_season((&recipient, path), &offer)
        };
        Ok(self.checker.db.write(work).await?)
    }
}

/// Finds a series of an instance by its ids at the catalogs. Of several ids, the most reliable one that both sides know
/// decides.
async fn find_series(
    instance: &Instance<Sonarr>,
    ids: &CatalogIds,
    now: Timestamp,
) -> anyhow::Result<Option<Series>> {
    let library = instance.load_library(now, FreshnessPolicy::Usual).await?;
    let is_same = |other: &CatalogIds| {
        let (asked, other) = (ids.by_catalog(MediaKind::Series), other.by_catalog(MediaKind::Series));
        let mut known = asked.into_iter().zip(other).filter_map(|(asked, other)| asked.zip(other));
        known.next().is_some_and(|(asked, other)| asked == other)
    };
    let title = library.entries.titles().iter().find(|title| is_same(&title.catalog_ids()));
    let Some(id) = title.map(|title| title.id) else { return Ok(None) };
    Ok(instance.client.fetch_series(id).await?)
}

async fn is_requested_at_seerr(seerr: &Seerr, series: &Series, number: u32) -> anyhow::Result<bool> {
    let pending = seerr.fetch_pending_requests().await?;
    Ok(pending.iter().any(|request| {
        let is_series = request.title.kind == MediaKind::Series
            && (Some(request.title.tmdb) == series.tmdb || request.tvdb == Some(series.tvdb));
        is_series && request.seasons.contains(&number)
    }))
}

fn arr_title(series: &Series) -> ArrTitle {
    ArrTitle {
        id: series.id.unwrap_or_default(),
        catalog_id: series.tvdb,
        title: series.title.clone(),
        year: series.year,
    }
}

fn library_series(series: &Series, episodes: &[Episode], now: Timestamp) -> LibrarySeries {
    let library_episode = |episode: &Episode| LibraryEpisode {
        season: episode.season,
        number: episode.number,
        has_aired: episode.has_aired(now),
        is_monitored: episode.monitored,
        file: episode.file.as_ref().map(|file| EpisodeFile { id: file.id, size_bytes: file.size_bytes }),
    };
    let monitored = series.seasons.iter().filter(|season| season.monitored);
    LibrarySeries {
        episodes: episodes.iter().map(library_episode).collect(),
        monitored_seasons: monitored.map(|season| season.number).collect(),
    }
}

fn watched_episodes(plays: &[EpisodePlay]) -> WatchedEpisodes {
    let finished = plays.iter().filter(|play| play.progress == PlayProgress::Finished);
    let episodes = finished
        .flat_map(|EpisodePlay { file, .. }| (file.first..=file.last).map(|number| (file.season, number)));
    WatchedEpisodes { finished: episodes.collect(), last_play: plays.iter().filter_map(|play| play.at).max() }
}
