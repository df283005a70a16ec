//! Monitoring flags of a series: the current flags, the goal of a request, and the writes from one to the other. Sonarr
//! monitors an episode if its own flag and the flag of its series are set.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::arr::changes::{SeasonMonitoringOutcome, SeriesChange};
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, Series};
use crate::tools::ToolError;
use crate::tools::library::Instance;
use crate::tools::seasons::SPECIALS;

/// Series in the library with its episodes. There are no episodes until Sonarr has loaded the details of a new series.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesSnapshot {
    pub id: i64,
    pub series: Series,
    pub episodes: Vec<Episode>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeriesPart {
    Seasons(Vec<u32>),
    /// Episodes by season and number.
    Episodes(Vec<(u32, u32)>),
    /// Episodes that have not aired yet.
    Future,
}

/// Requested change of monitoring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MonitoringChange {
    Unchanged,
    Monitor(SeriesPart),
    Unmonitor(SeriesPart),
    /// Sets the flag of the series as a whole.
    Series(bool),
    OnlyFuture,
}

/// Monitoring flags of a series. A goal contains only the flags that the request determines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitoringFlags {
    pub series: bool,
    /// True if future seasons will be monitored.
    pub new_seasons: bool,
    pub seasons: BTreeMap<u32, bool>,
    pub episodes: BTreeMap<i64, bool>,
}

impl SeriesSnapshot {
    /// Fetches a series and its episodes. Returns `None` if the library has no such series.
    pub async fn fetch_by_id(sonarr: &Sonarr, id: i64) -> Result<Option<Self>, ArrError> {
        let Some(series) = sonarr.fetch_series(id).await? else { return Ok(None) };
        Ok(Some(Self { id, series, episodes: sonarr.fetch_episodes(id).await? }))
    }

    pub fn monitoring_flags(&self) -> MonitoringFlags {
        MonitoringFlags {
            series: self.series.monitored,
            new_seasons: self.series.new_seasons,
            seasons: self.series.all_seasons().map(|season| (season.number, season.monitored)).collect(),
            episodes: self.episodes.iter().map(|episode| (episode.id, episode.monitored)).collect(),
        }
    }

    /// Returns the episodes of a part, on disk or not.
    pub fn part_episodes(&self, part: &SeriesPart, now: Timestamp) -> Vec<&Episode> {
        self.episodes.iter().filter(|episode| part.contains(episode, now)).collect()
    }

    /// Returns the flags that the change requests. They equal the current flags if the change is already made.
    pub fn goal_flags(&self, change: &MonitoringChange, now: Timestamp) -> MonitoringFlags {
        let mut goal = self.monitoring_flags();
        match change {
            MonitoringChange::Unchanged => {}
            MonitoringChange::Series(monitored) => goal.series = *monitored,
            MonitoringChange::Unmonitor(part) => {
                match part {
                    SeriesPart::Seasons(numbers) => goal.set_seasons(numbers, false),
                    SeriesPart::Episodes(_) => {}
                    SeriesPart::Future => {
                        goal.new_seasons = false;
                        goal.set_seasons(self.airing_season(now).as_slice(), false);
                    }
                }
                for episode in self.part_episodes(part, now) {
                    goal.episodes.insert(episode.id, false);
                }
            }
            MonitoringChange::Monitor(part) => self.monitor_part(&mut goal, part, now),
            MonitoringChange::OnlyFuture => {
                goal.series = true;
                goal.new_seasons = true;
                // Sonarr decides the flags of seasons and of episodes without a date.
                goal.seasons.clear();
                goal.episodes = self
                    .episodes
                    .iter()
                    .filter(|episode| episode.airs_at.is_some() && episode.season != SPECIALS)
                    .map(|episode| (episode.id, !episode.has_aired(now)))
                    .collect();
            }
        }
        goal
    }

    fn monitor_part(&self, goal: &mut MonitoringFlags, part: &SeriesPart, now: Timestamp) {
        if !goal.series {
            // In a series that was not monitored, only the requested part becomes monitored.
            goal.series = true;
            goal.seasons.values_mut().for_each(|flag| *flag = false);
            goal.episodes.values_mut().for_each(|flag| *flag = false);
        }
        let original = goal.clone();
        match part {
            SeriesPart::Seasons(numbers) => goal.set_seasons(numbers, true),
            SeriesPart::Episodes(_) => {}
            SeriesPart::Future => {
                goal.new_seasons = true;
                goal.set_seasons(self.airing_season(now).as_slice(), true);
            }
        }
        for episode in self.part_episodes(part, now) {
            let season_flag_changes =
                original.seasons.get(&episode.season) != goal.seasons.get(&episode.season);
            let is_set_with_season = season_flag_changes && matches!(part, SeriesPart::Seasons(_));
            if !episode.on_disk() || is_set_with_season {
                goal.episodes.insert(episode.id, true);
            }
        }
    }

    /// Returns the latest season if it has unaired episodes. Its flag also applies to episodes that are listed later.
    fn airing_season(&self, now: Timestamp) -> Option<u32> {
        let latest = self.series.seasons.iter().map(|season| season.number).max()?;
        let is_unaired = |episode: &Episode| episode.season == latest && !episode.has_aired(now);
        self.episodes.iter().any(is_unaired).then_some(latest)
    }

    /// Returns the seasons, without the specials, in which an episode that is not on disk becomes monitored.
    pub fn gained_seasons(&self, goal: &MonitoringFlags) -> BTreeSet<u32> {
        let becomes_monitored =
            |before: bool, after: bool| goal.series && after && !(self.series.monitored && before);
        if self.episodes.is_empty() {
            let flags = self.series.seasons.iter().map(|season| (season.number, season.monitored));
            let goal_flag = |number| goal.seasons.get(&number).copied().unwrap_or(false);
            return flags
                .filter(|(number, flag)| becomes_monitored(*flag, goal_flag(*number)))
                .map(|(number, _)| number)
                .collect();
        }
        let gained = self.episodes.iter().filter(|episode| {
            let goal_flag = goal.episodes.get(&episode.id).copied().unwrap_or(false);
            episode.season != SPECIALS
                && !episode.on_disk()
                && becomes_monitored(episode.monitored, goal_flag)
        });
        gained.map(|episode| episode.season).collect()
    }

    /// Returns the monitored seasons, or none if the series is not monitored.
    pub fn monitored_seasons(&self) -> Vec<u32> {
        let monitored = self.series.seasons.iter().filter(|season| self.series.monitored && season.monitored);
        monitored.map(|season| season.number).collect()
    }
}

impl SeriesPart {
    fn contains(&self, episode: &Episode, now: Timestamp) -> bool {
        match self {
            Self::Seasons(numbers) => numbers.contains(&episode.season),
            Self::Episodes(codes) => codes.contains(&(episode.season, episode.number)),
            Self::Future => episode.season != SPECIALS && !episode.has_aired(now),
        }
    }
}

impl MonitoringFlags {
    fn set_seasons(&mut self, numbers: &[u32], flag: bool) {
        for number in numbers {
            if let Some(season_flag) = self.seasons.get_mut(number) {
                *season_flag = flag;
            }
        }
    }

    /// Returns whether these flags match `goal`.
    pub fn meets_goal(&self, goal: &Self) -> bool {
        self.series == goal.series
            && self.new_seasons == goal.new_seasons
            && goal.seasons.iter().all(|(number, flag)| self.seasons.get(number) == Some(flag))
            && goal.episodes.iter().all(|(id, flag)| self.episodes.get(id) == Some(flag))
    }
}

/// Writes the flags that differ from the goal, together with `series_change`. After the first successful write, a
/// failure leaves the outcome unknown until the flags are read back.
pub async fn write_flags(
    instance: &Instance<Sonarr>,
    snapshot: &SeriesSnapshot,
    (change, goal): (&MonitoringChange, &MonitoringFlags),
    series_change: SeriesChange,
) -> Result<(), ToolError> {
    let (sonarr, id, current) = (&instance.client, snapshot.id, snapshot.monitoring_flags());
    let mut has_written = false;
    let mut check_write = |outcome: Result<(), ArrError>| {
        let result = outcome.map_err(|error| {
            if has_written { instance.unverified_write_error(&error) } else { instance.write_error(&error) }
        });
        has_written = true;
        result
    };
    if *change == MonitoringChange::OnlyFuture {
        if !current.meets_goal(goal) {
            check_write(sonarr.monitor_future_episodes(id).await)?;
        }
    } else {
        let changed = changed_seasons(&current.seasons, &goal.seasons);
        if !changed.is_empty() {
            check_write(sonarr.monitor_seasons(id, &changed).await.and_then(|edit| match edit {
                SeasonMonitoringOutcome::Updated => Ok(()),
                SeasonMonitoringOutcome::SeriesNotFound => Err(ArrError::NotFound),
            }))?;
        }
        // Sonarr copies a changed season flag to all episodes of the season.
        let mut flags = current.episodes.clone();
        for episode in &snapshot.episodes {
            if let Some((_, flag)) = changed.iter().find(|(number, _)| *number == episode.season) {
                flags.insert(episode.id, *flag);
            }
        }
        for flag in [true, false] {
            let differing = changed_episodes(&flags, &goal.episodes, flag);
            if !differing.is_empty() {
                check_write(sonarr.monitor_episodes(&differing, flag).await)?;
            }
        }
    }
    let series_change = SeriesChange {
        monitored: (current.series != goal.series).then_some(goal.series),
        new_seasons: (current.new_seasons != goal.new_seasons).then_some(goal.new_seasons),
        ..series_change
    };
    // The series itself is written last, so that Sonarr does not search before the other flags are correct.
    if series_change != SeriesChange::default() {
        check_write(sonarr.edit_series(id, series_change).await)?;
    }
    Ok(())
}

fn changed_seasons(current: &BTreeMap<u32, bool>, goal: &BTreeMap<u32, bool>) -> Vec<(u32, bool)> {
    let differs = |(number, flag): &(&u32, &bool)| current.get(number) != Some(*flag);
    goal.iter().filter(differs).map(|(number, flag)| (*number, *flag)).collect()
}

fn changed_episodes(current: &BTreeMap<i64, bool>, goal: &BTreeMap<i64, bool>, flag: bool) -> Vec<i64> {
    goal.iter()
        .filter(|(id, goal_flag)| **goal_flag == flag && current.get(id) != Some(&flag))
        .map(|(id, _)| *id)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arr::fake::media_fixtures::{FakeSeries, series};
    use crate::arr::fake::sonarr::FakeSonarr;
    use crate::clock::Clock;
    use crate::http::HttpClient;
    use crate::tools::library_cache::refresh::LibraryCache;

    fn now() -> Timestamp {
        "2026-03-06T19:00:00Z".parse().unwrap()
    }

    /// Builds a series with two seasons of two episodes each. The last episode has not aired yet.
    fn the_bear() -> FakeSeries {
        let next = "2026-04-01T20:00:00Z".parse().unwrap();
        series("The Bear").seasons(2).episodes(4).airs(2, 2, next)
    }

    /// Applies a change, and returns the monitored episodes, the flag of the series, the flag for new seasons, and the
    /// gained seasons. Checks that the goal is reached and that a repetition writes nothing.
    async fn apply_change(
        show: FakeSeries,
        change: MonitoringChange,
    ) -> (Vec<(u32, u32)>, bool, bool, Vec<u32>) {
        let fake = FakeSonarr::with_clock(Clock::stopped_at(now()));
        let id = fake.add(show);
        let http = HttpClient::in_process(fake.in_process());
        let client = Sonarr::new(http, "http://sonarr.test".parse().unwrap(), fake.api_key().into());
        let instance = Instance { name: "sonarr", four_k: false, client, cache: LibraryCache::default() };
        let fetch = async || SeriesSnapshot::fetch_by_id(&instance.client, id).await.unwrap().unwrap();
        let before = fetch().await;
        let goal = before.goal_flags(&change, now());
        write_flags(&instance, &before, (&change, &goal), SeriesChange::default()).await.unwrap();
        let after = fetch().await;
        assert!(after.monitoring_flags().meets_goal(&goal), "{:?} is not {goal:?}", after.monitoring_flags());
        let (repeated_goal, write_count) = (after.goal_flags(&change, now()), fake.post_count());
        write_flags(&instance, &after, (&change, &repeated_goal), SeriesChange::default()).await.unwrap();
        assert_eq!(fake.post_count(), write_count, "a change that is already made writes nothing");
        let show = fake.title(id).unwrap();
        let gained = before.gained_seasons(&goal).into_iter().collect();
        (show.monitored_episodes(), show.monitored, show.details.new_seasons, gained)
    }

    #[tokio::test]
    async fn season_is_monitored_regardless_of_its_flag() {
        let second = || MonitoringChange::Monitor(SeriesPart::Seasons(vec![2]));
        let all = vec![(1, 1), (1, 2), (2, 1), (2, 2)];
        let off = apply_change(the_bear().unmonitored_season(2), second()).await;
        assert_eq!(off, (all.clone(), true, true, vec![2]));
        let on = apply_change(the_bear().unmonitored_episode(2, 1), second()).await;
        assert_eq!(on, (all, true, true, vec![2]));
    }

    #[tokio::test]
    async fn only_the_requested_part_of_an_unmonitored_series_is_monitored() {
        let season =
            apply_change(the_bear().unmonitored(), MonitoringChange::Monitor(SeriesPart::Seasons(vec![1])))
                .await;
        assert_eq!(season, (vec![(1, 1), (1, 2)], true, true, vec![1]));
        let episode = apply_change(
            the_bear().unmonitored(),
            MonitoringChange::Monitor(SeriesPart::Episodes(vec![(2, 1)])),
        )
        .await;
        assert_eq!(episode, (vec![(2, 1)], true, true, vec![2]));
    }

    #[tokio::test]
    async fn future_changes_monitor_no_more_past_episodes() {
        let show = the_bear().unmonitored_season(1).unmonitored_season(2);
        assert_eq!(
            apply_change(show, MonitoringChange::Monitor(SeriesPart::Future)).await,
            (vec![(2, 2)], true, true, vec![2])
        );
        let partly_monitored = the_bear().unmonitored_season(2);
        let monitored = vec![(1, 1), (1, 2), (2, 2)];
        assert_eq!(
            apply_change(partly_monitored, MonitoringChange::Monitor(SeriesPart::Future)).await,
            (monitored, true, true, vec![2])
        );
        assert_eq!(
            apply_change(the_bear(), MonitoringChange::OnlyFuture).await,
            (vec![(2, 2)], true, true, vec![])
        );
    }

    #[tokio::test]
    async fn season_episode_or_series_can_be_unmonitored() {
        let season =
            apply_change(the_bear(), MonitoringChange::Unmonitor(SeriesPart::Seasons(vec![1]))).await;
        assert_eq!(season, (vec![(2, 1), (2, 2)], true, true, vec![]));
        let episode =
            apply_change(the_bear(), MonitoringChange::Unmonitor(SeriesPart::Episodes(vec![(1, 2)]))).await;
        assert_eq!(episode, (vec![(1, 1), (2, 1), (2, 2)], true, true, vec![]));
        let (_, monitored, _, gained) = apply_change(the_bear(), MonitoringChange::Series(false)).await;
        assert_eq!((monitored, gained), (false, vec![]));
    }

    #[tokio::test]
    async fn episodes_on_disk_are_not_gained() {
        let show = series("The Bear").seasons(2).episodes(4).size_gb(3.0).missing(1);
        let show = show.unmonitored_season(1).unmonitored_season(2);
        let (monitored, _, _, gained) =
            apply_change(show, MonitoringChange::Monitor(SeriesPart::Seasons(vec![1, 2]))).await;
        assert_eq!((monitored.len(), gained), (4, vec![2]));
    }
}
