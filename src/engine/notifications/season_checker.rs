//! Check of followed shows for seasons that become complete without an import: the waiting time after their last
//! episode has passed, the catalog marks their finale late, or their show ends.

use std::cmp::Reverse;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::fanout::{NotificationFanout, SeriesNews, UserNews, followed_season};
use crate::arr::completeness::expected_until;
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, Season, Series};
use crate::clock::Clock;
use crate::conversation::notifications::arr_events::ArrEvent;
use crate::conversation::transcript::UserId;
use crate::engine::parts::EngineParts;
use crate::engine::settings::HouseholdSettings;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::QueryResult;
use crate::store::database::db::Db;
use crate::store::library::arr_events;
use crate::store::library::follows::{self, ShowFollow};
use crate::store::queue::notifications;
use crate::telemetry;
use crate::tools::library::{ArrInstances, Instance};

/// Maximum number of arr events that are searched for the events of a show.
const MOST_EVENTS: i64 = 2_000;
/// Maximum age of the end of a waiting time that causes a notification of the followers of a whole show. After this
/// age, the record of an earlier notification may be erased.
const FARTHEST: SignedDuration = SignedDuration::from_hours(24);
/// Number of latest seasons that may have been growing when the follow of a whole show began.
const LATEST: usize = 2;

/// Checker of followed shows.
pub struct SeasonChecker {
    db: Db,
    clock: Clock,
    settings: Arc<HouseholdSettings>,
    library: Arc<ArrInstances>,
    outbox: OutboxSignal,
}

impl SeasonChecker {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, settings, library, outbox, .. } = parts.clone();
        Self { db, clock, settings, library, outbox }
    }

    /// Checks every followed show once, and notifies the followers of its complete seasons. If the check of a show
    /// fails, the show is checked the next time.
    pub(crate) async fn check_seasons(&self) {
        for instance in &self.library.series {
            if let Err(error) = self.check_seasons_of(instance).await {
                tracing::warn!(
                    instance = instance.name,
                    error = format!("{error:#}"),
                    "failed to check seasons"
                );
            }
        }
        self.outbox.notify();
    }

    async fn check_seasons_of(&self, instance: &Instance<Sonarr>) -> anyhow::Result<()> {
        let name = instance.name;
        let mut follows = self.db.read(move |conn| follows::of_shows(conn, name)).await?;
        follows.sort_by_key(|follow| follow.catalog_id);
        for of_show in follows.chunk_by(|one, other| one.catalog_id == other.catalog_id) {
            match self.complete_seasons(&instance.client, of_show).await {
                Ok(Some(found)) => self.tell_of_seasons(name, found).await?,
                Ok(None) => {}
                Err(error) if error.affects_all_requests() => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(
                        instance = name,
                        error = telemetry::error_chain(&error),
                        "failed to check a show"
                    );
                }
            }
        }
        Ok(())
    }

    /// Fetches a followed show and returns its followed seasons that are complete.
    async fn complete_seasons(
        &self,
        sonarr: &Sonarr,
        follows: &[ShowFollow],
    ) -> Result<Option<CompleteSeasons>, ArrError> {
        let Some(first) = follows.first() else { return Ok(None) };
        let Some(series) = sonarr.fetch_series_by_tvdb(first.catalog_id).await? else { return Ok(None) };
        let numbers = followed_seasons(&series, follows);
        let mut episodes = sonarr.fetch_growing_episodes(&series, Some(&numbers)).await?;
        if follows.iter().any(|follow| follow.season.is_none()) {
            let id = series.id.unwrap_or_default();
            for season in latest_without(&series, &episodes) {
                episodes.extend(sonarr.fetch_season_episodes(id, season).await?);
            }
        }
        let now = self.clock.now();
        let is_complete = |number: &u32| series.season_is_complete(*number, &episodes, now);
        let complete: Vec<u32> = numbers.into_iter().filter(is_complete).collect();
        Ok((!complete.is_empty()).then_some(CompleteSeasons { series, complete, episodes }))
    }

    async fn tell_of_seasons(&self, instance: &str, found: CompleteSeasons) -> anyhow::Result<()> {
        let CompleteSeasons { series, complete, episodes } = found;
        let news = SeriesNews::without_import(instance, &series, complete);
        let (settings, now) = (self.settings.clone(), self.clock.now());
        let work = move |conn: &mut _| {
            NotificationFanout { conn, settings: &settings, now }.of_seasons(&news, &episodes)
        };
        Ok(self.db.write(work).await?)
    }
}

/// Complete seasons of a followed show.
struct CompleteSeasons {
    series: Series,
    complete: Vec<u32>,
    /// Episodes of the growing seasons. For a show that is followed as a whole, also the episodes of its latest
    /// seasons.
    episodes: Vec<Episode>,
}

/// Returns the followed seasons, which for a whole show are all of its seasons.
fn followed_seasons(series: &Series, follows: &[ShowFollow]) -> Vec<u32> {
    let is_followed =
        |number: u32| follows.iter().any(|follow| follow.season.is_none_or(|season| season == number));
    series.all_seasons().map(|season| season.number).filter(|number| is_followed(*number)).collect()
}

/// Returns the latest seasons that are on disk and have no episodes in `episodes`.
fn latest_without(series: &Series, episodes: &[Episode]) -> Vec<u32> {
    let mut seasons: Vec<&Season> = series.seasons.iter().collect();
    seasons.sort_by_key(|season| Reverse(season.number));
    let is_known = |number: u32| episodes.iter().any(|episode| episode.season == number);
    let latest = seasons.into_iter().take(LATEST);
    latest
        .filter(|season| season.is_on_disk())
        .map(|season| season.number)
        .filter(|it| !is_known(*it))
        .collect()
}

impl NotificationFanout<'_> {
    /// Notifies the followers of complete seasons. Seasons with waiting arr events are skipped, because the events
    /// cause the notification.
    fn of_seasons(&mut self, news: &SeriesNews, episodes: &[Episode]) -> QueryResult<()> {
        let is_of_show = |report: &ArrEvent| matches!(report, ArrEvent::EpisodeImported { show, .. } if show.id == news.show.id);
        let untold = arr_events::load_unreported_events(self.conn, MOST_EVENTS)?;
        if untold.iter().any(|event| event.instance == news.instance && is_of_show(&event.event)) {
            return Ok(());
        }
        let mut shares: Vec<UserNews> = Vec::new();
        for follow in follows::of_shows(self.conn, &news.instance)? {
            if follow.catalog_id != news.show.catalog_id {
                continue;
            }
            for season in news.complete.iter().copied() {
                if self.waits_for(news, &follow, (season, episodes))? {
                    self.add_season(news, (follow.user, season), &mut shares)?;
                }
            }
        }
        self.announce(news, shares)
    }

    /// Returns whether a follow covers a season that was not complete when the follow began.
    fn waits_for(
        &mut self,
        news: &SeriesNews,
        follow: &ShowFollow,
        (season, episodes): (u32, &[Episode]),
    ) -> QueryResult<bool> {
        if let Some(followed) = follow.season {
            return Ok(followed == season);
        }
        let since = follow.since;
        let of_season = format!("episode:{}:{}:{season}:", news.instance, news.show.catalog_id);
        let last = notifications::load_last_notified(self.conn, follow.user, &of_season)?;
        // Without an import since the follow began, the waiting time after the last episode decides whether the season
        // was complete by then. The follow of a show that is over ends now, before the waiting time has passed.
        let earliest = since.max(self.now - FARTHEST);
        let has_rested = |until: Timestamp| until > earliest && (news.is_over || until <= self.now);
        let was_growing = expected_until(season, episodes).is_some_and(has_rested);
        Ok(was_growing || last.is_some_and(|last| last >= since))
    }

    /// Adds a complete season to the share of a user, unless the user was already notified of the season.
    fn add_season(
        &mut self,
        news: &SeriesNews,
        (user, season): (UserId, u32),
        shares: &mut Vec<UserNews>,
    ) -> QueryResult<()> {
        let what = followed_season(&news.instance, &news.show, season);
        let since = follows::load_follow_time(self.conn, user, &what)?.unwrap_or(self.now);
        let matter = format!("season:{}:{}:{season}", news.instance, news.show.catalog_id);
        if notifications::was_notified(self.conn, user, &matter, since)? {
            return Ok(());
        }
        let share = UserNews::of(user, shares);
        if !share.complete.contains(&season) {
            share.complete.push(season);
            share.matters.push((matter, since));
        }
        Ok(())
    }
}
