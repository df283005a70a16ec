//! Checks followed series for seasons that become complete without an import: the waiting time after their last episode
//! has passed, the catalog marks their finale late, or their series ends.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};

use super::fanout::{NotificationFanout, SeriesNews, UserNews, followed_season};
use super::title_readers::TitleReaders;
use crate::arr::completeness::expected_until;
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, Season, Series};
use crate::clock::Clock;
use crate::conversation::notifications::arr_events::ArrEvent;
use crate::conversation::transcript::{MediaKind, UserId};
use crate::engine::parts::{EngineParts, LiveParts};
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::QueryResult;
use crate::store::database::db::Db;
use crate::store::library::arr_events;
use crate::store::library::follows::{self, SeriesFollow};
use crate::store::queue::notifications;
use crate::telemetry;
use crate::tools::library::Instance;

/// Maximum number of arr events that are searched for the events of a series.
const MAX_EVENTS: i64 = 2_000;
/// Maximum time since the end of a waiting time at which the followers of a whole series are notified. Later, the record
/// of an earlier notification may be erased.
const MAX_NOTIFICATION_DELAY: SignedDuration = SignedDuration::from_hours(24);
/// Number of latest seasons that may have been growing when the follow of a whole series started.
const LATEST_SEASONS: usize = 2;

/// Checker of followed series.
pub struct SeasonChecker {
    db: Db,
    clock: Clock,
    live: LiveParts,
    outbox: OutboxSignal,
}

impl SeasonChecker {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, outbox, live, .. } = parts.clone();
        Self { db, clock, live, outbox }
    }

    /// Checks every followed series once, and notifies the followers of its complete seasons. A series whose check fails
    /// is checked again at the next run.
    pub(crate) async fn check_seasons(&self) {
        for instance in &self.live.current().library.series {
            if let Err(error) = self.check_instance(instance).await {
                tracing::warn!(
                    instance = instance.name,
                    error = format!("{error:#}"),
                    "failed to check seasons"
                );
            }
        }
        self.outbox.notify();
    }

    async fn check_instance(&self, instance: &Instance<Sonarr>) -> anyhow::Result<()> {
        let name = instance.name;
        let mut follows = self.db.read(move |conn| follows::load_series_follows(conn, name)).await?;
        follows.sort_by_key(|follow| follow.catalog_id);
        for series_follows in follows.chunk_by(|one, other| one.catalog_id == other.catalog_id) {
            match self.fetch_complete_seasons(&instance.client, series_follows).await {
                Ok(Some(seasons)) => self.notify_of_seasons(name, seasons).await?,
                Ok(None) => {}
                Err(error) if error.affects_all_requests() => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(
                        instance = name,
                        error = telemetry::error_chain(&error),
                        "failed to check a series"
                    );
                }
            }
        }
        Ok(())
    }

    /// Fetches a followed series and returns its followed seasons that are complete.
    async fn fetch_complete_seasons(
        &self,
        sonarr: &Sonarr,
        follows: &[SeriesFollow],
    ) -> Result<Option<CompleteSeasons>, ArrError> {
        let Some(first) = follows.first() else { return Ok(None) };
        let Some(series) = sonarr.fetch_series_by_tvdb(first.catalog_id).await? else { return Ok(None) };
        let numbers = followed_seasons(&series, follows);
        let mut episodes = sonarr.fetch_growing_episodes(&series, Some(&numbers)).await?;
        if follows.iter().any(|follow| follow.season.is_none()) {
            let id = series.id.unwrap_or_default();
            for season in latest_seasons_without_episodes(&series, &episodes) {
                episodes.extend(sonarr.fetch_season_episodes(id, season).await?);
            }
        }
        let now = self.clock.now();
        let is_complete = |number: &u32| series.season_is_complete(*number, &episodes, now);
        let complete: Vec<u32> = numbers.into_iter().filter(is_complete).collect();
        Ok((!complete.is_empty()).then_some(CompleteSeasons { series, complete, episodes }))
    }

    async fn notify_of_seasons(&self, instance: &str, seasons: CompleteSeasons) -> anyhow::Result<()> {
        let CompleteSeasons { series, complete, episodes } = seasons;
        let news = SeriesNews::without_import(instance, &series, complete);
        let title = (MediaKind::Series, news.title.catalog_id);
        let readers = TitleReaders::find(&self.db, &self.live.current().library, title).await?;
        let (settings, now) = (self.live.settings(), self.clock.now());
        let work = move |conn: &mut _| {
            NotificationFanout { conn, settings: &settings, readers: &readers, now }
                .notify_of_seasons(&news, &episodes)
        };
        Ok(self.db.write(work).await?)
    }
}

/// Complete seasons of a followed series.
struct CompleteSeasons {
    series: Series,
    complete: Vec<u32>,
    /// Episodes of the growing seasons. For a series that is followed as a whole, also the episodes of its latest
    /// seasons.
    episodes: Vec<Episode>,
}

/// Returns the followed seasons: all seasons if the whole series is followed.
fn followed_seasons(series: &Series, follows: &[SeriesFollow]) -> Vec<u32> {
    let is_followed =
        |number: u32| follows.iter().any(|follow| follow.season.is_none_or(|season| season == number));
    series.all_seasons().map(|season| season.number).filter(|number| is_followed(*number)).collect()
}

/// Returns the latest seasons that are on disk and have no episodes in `episodes`.
fn latest_seasons_without_episodes(series: &Series, episodes: &[Episode]) -> Vec<u32> {
    let mut seasons: Vec<&Season> = series.seasons.iter().collect();
    seasons.sort_by_key(|season| Reverse(season.number));
    let is_known = |number: u32| episodes.iter().any(|episode| episode.season == number);
    let latest = seasons.into_iter().take(LATEST_SEASONS);
    latest
        .filter(|season| season.is_on_disk())
        .map(|season| season.number)
        .filter(|number| !is_known(*number))
        .collect()
}

impl NotificationFanout<'_> {
    /// Notifies the followers of complete seasons. A series with waiting arr events is skipped, because the
    /// events cause the notification.
    fn notify_of_seasons(&mut self, news: &SeriesNews, episodes: &[Episode]) -> QueryResult<()> {
        let is_of_series = |event: &ArrEvent| matches!(event, ArrEvent::EpisodeImported { show, .. } if show.id == news.title.id);
        let unreported = arr_events::load_pending_events(self.conn, MAX_EVENTS)?;
        if unreported.iter().any(|event| event.instance == news.instance && is_of_series(&event.event)) {
            return Ok(());
        }
        let mut user_news: Vec<UserNews> = Vec::new();
        for follow in follows::load_series_follows(self.conn, &news.instance)? {
            if follow.catalog_id != news.title.catalog_id {
                continue;
            }
            for season in news.complete.iter().copied() {
                if self.is_awaited(news, &follow, (season, episodes))? {
                    self.add_season(news, (follow.user, season), &mut user_news)?;
                }
            }
        }
        self.announce(news, user_news)
    }

    /// Returns whether a follow covers a season that was not complete when the follow started.
    fn is_awaited(
        &mut self,
        news: &SeriesNews,
        follow: &SeriesFollow,
        (season, episodes): (u32, &[Episode]),
    ) -> QueryResult<bool> {
        if let Some(followed) = follow.season {
            return Ok(followed == season);
        }
        let since = follow.since;
        let key_prefix = format!("episode:{}:{}:{season}:", news.instance, news.title.catalog_id);
        let last = notifications::load_last_notified(self.conn, follow.user, &key_prefix)?;
        // Without an import since the follow started, the waiting time after the last episode shows whether the season
        // was complete by then. If the series is over, its seasons are complete before the waiting time has passed.
        let earliest = since.max(self.now - MAX_NOTIFICATION_DELAY);
        let ended_since_follow = |until: Timestamp| until > earliest && (news.is_over || until <= self.now);
        let was_growing = expected_until(season, episodes).is_some_and(ended_since_follow);
        Ok(was_growing || last.is_some_and(|last| last >= since))
    }

    /// Adds a complete season to the news of a user, unless the user was already notified of the season.
    fn add_season(
        &mut self,
        news: &SeriesNews,
        (user, season): (UserId, u32),
        user_news: &mut Vec<UserNews>,
    ) -> QueryResult<()> {
        let season_follow = followed_season(&news.instance, &news.title, season);
        let since = follows::load_follow_time(self.conn, user, &season_follow)?.unwrap_or(self.now);
        let key = format!("season:{}:{}:{season}", news.instance, news.title.catalog_id);
        if notifications::was_notified(self.conn, user, &key, since)? {
            return Ok(());
        }
        let news_of_user = UserNews::for_user(user, user_news);
        if !news_of_user.complete.contains(&season) {
            news_of_user.complete.push(season);
            news_of_user.keys.push((key, since));
        }
        Ok(())
    }
}
