//! Monitoring of the parts of a series: the current flags, the flags that a user requests, and the changes from one to
//! the other. Sonarr monitors an episode if both its own flag and the flag of its series are set.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::arr::changes::{SeasonMonitoringOutcome, SeriesChange};
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, Series};
use crate::tools::ToolError;
use crate::tools::library::Instance;
use crate::tools::seasons::SPECIALS;

/// Series in the library with its episodes. The list of episodes is empty until Sonarr has loaded the details of a
/// series that was just added.
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

/// Requested change of monitoring. Parts that the request does not name are not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MonitoringChange {
    Unchanged,
    Monitor(SeriesPart),
    Unmonitor(SeriesPart),
    /// Monitors the series as a whole, or stops monitoring it.
    Series(bool),
    OnlyFuture,
}

/// Monitoring flags of a series. A goal holds only the flags that matter to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitoringFlags {
    pub show: bool,
    /// True if future seasons will be monitored.
    pub new_seasons: bool,
    pub seasons: BTreeMap<u32, bool>,
    pub episodes: BTreeMap<i64, bool>,
}

impl SeriesSnapshot {
    /// Loads a series and its episodes. Returns `None` if the library has no such series.
    pub async fn fetch_by_id(sonarr: &Sonarr, id: i64) -> Result<Option<Self>, ArrError> {
        let Some(series) = sonarr.fetch_series(id).await? else { return Ok(None) };
        Ok(Some(Self { id, series, episodes: sonarr.fetch_episodes(id).await? }))
    }

    pub fn monitoring_flags(&self) -> MonitoringFlags {
        MonitoringFlags {
            show: self.series.monitored,
            new_seasons: self.series.new_seasons,
            seasons: self.series.all_seasons().map(|season| (season.number, season.monitored)).collect(),
            episodes: self.episodes.iter().map(|episode| (episode.id, episode.monitored)).collect(),
        }
    }

    /// Returns the episodes of a part, on disk or not.
    pub fn part_episodes(&self, part: &SeriesPart, now: Timestamp) -> Vec<&Episode> {
        self.episodes.iter().filter(|episode| part.contains(episode, now)).collect()
    }

    /// Returns the flags that the request asks for. A request that is already fulfilled yields the current flags.
    pub fn goal_flags(&self, wish: &MonitoringChange, now: Timestamp) -> MonitoringFlags {
        let mut goal = self.monitoring_flags();
        match wish {
            MonitoringChange::Unchanged => {}
            MonitoringChange::Series(wanted) => goal.show = *wanted,
            MonitoringChange::Unmonitor(part) => {
                match part {
                    SeriesPart::Seasons(numbers) => goal.set_seasons(numbers, false),
                    SeriesPart::Episodes(_) => {}
                    SeriesPart::Future => {
                        goal.new_seasons = false;
                        goal.set_seasons(self.running_season(now).as_slice(), false);
                    }
                }
                for episode in self.part_episodes(part, now) {
                    goal.episodes.insert(episode.id, false);
                }
            }
            MonitoringChange::Monitor(part) => self.monitor_part(&mut goal, part, now),
            MonitoringChange::OnlyFuture => {
                goal.show = true;
                goal.new_seasons = true;
                // Sonarr itself decides the flags of seasons, and of episodes without a date.
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
        if !goal.show {
            // In a series that was not monitored, only the requested part becomes monitored.
            goal.show = true;
            goal.seasons.values_mut().for_each(|flag| *flag = false);
            goal.episodes.values_mut().for_each(|flag| *flag = false);
        }
        let before = goal.clone();
        match part {
            SeriesPart::Seasons(numbers) => goal.set_seasons(numbers, true),
            SeriesPart::Episodes(_) => {}
            SeriesPart::Future => {
                goal.new_seasons = true;
                goal.set_seasons(self.running_season(now).as_slice(), true);
            }
        }
        for episode in self.part_episodes(part, now) {
            let flag_changes = before.seasons.get(&episode.season) != goal.seasons.get(&episode.season);
            let season_turns = flag_changes && matches!(part, SeriesPart::Seasons(_));
            if !episode.on_disk() || season_turns {
                goal.episodes.insert(episode.id, true);
            }
        }
    }

    /// Returns the latest season while it is still running. Its flag decides about episodes that are listed later.
    fn running_season(&self, now: Timestamp) -> Option<u32> {
        let latest = self.series.seasons.iter().map(|season| season.number).max()?;
        let to_come = |episode: &Episode| episode.season == latest && !episode.has_aired(now);
        self.episodes.iter().any(to_come).then_some(latest)
    }

    /// Returns the seasons, without the specials, in which an episode that is not on disk would newly be monitored.
    pub fn seasons_gained(&self, goal: &MonitoringFlags) -> BTreeSet<u32> {
        let gains = |before: bool, after: bool| goal.show && after && !(self.series.monitored && before);
        if self.episodes.is_empty() {
            let flags = self.series.seasons.iter().map(|season| (season.number, season.monitored));
            let wanted = |number| goal.seasons.get(&number).copied().unwrap_or(false);
            return flags
                .filter(|(number, flag)| gains(*flag, wanted(*number)))
                .map(|(number, _)| number)
                .collect();
        }
        let gained = self.episodes.iter().filter(|episode| {
            let wanted = goal.episodes.get(&episode.id).copied().unwrap_or(false);
            episode.season != SPECIALS && !episode.on_disk() && gains(episode.monitored, wanted)
        });
        gained.map(|episode| episode.season).collect()
    }

    /// Returns the seasons with the flag set, if the series is monitored at all.
    pub fn seasons_wanted(&self) -> Vec<u32> {
        let wanted = self.series.seasons.iter().filter(|season| self.series.monitored && season.monitored);
        wanted.map(|season| season.number).collect()
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
            if let Some(held) = self.seasons.get_mut(number) {
                *held = flag;
            }
        }
    }

    /// Returns whether these flags match `goal`.
    pub fn meets_goal(&self, goal: &Self) -> bool {
        self.show == goal.show
            && self.new_seasons == goal.new_seasons
            && goal.seasons.iter().all(|(number, flag)| self.seasons.get(number) == Some(flag))
            && goal.episodes.iter().all(|(id, flag)| self.episodes.get(id) == Some(flag))
    }
}

/// Writes the flags that differ from the goal, together with `change`. If the first write fails, its changes did not
/// happen or their outcome is unknown. After one successful write, the outcome is unknown until the flags are read
/// back.
pub async fn write_flags(
    instance: &Instance<Sonarr>,
    held: &SeriesSnapshot,
    (wish, goal): (&MonitoringChange, &MonitoringFlags),
    change: SeriesChange,
) -> Result<(), ToolError> {
    let (sonarr, id, now) = (&instance.client, held.id, held.monitoring_flags());
    let mut written = false;
    let mut note = |outcome: Result<(), ArrError>| {
        let failed = outcome.map_err(|error| {
            if written { instance.unverified_write_error(&error) } else { instance.write_error(&error) }
        });
        written = true;
        failed
    };
    if *wish == MonitoringChange::OnlyFuture {
        if !now.meets_goal(goal) {
            note(sonarr.monitor_future_episodes(id).await)?;
        }
    } else {
        let turned = changed_seasons(&now.seasons, &goal.seasons);
        if !turned.is_empty() {
            note(sonarr.monitor_seasons(id, &turned).await.and_then(|edit| match edit {
                SeasonMonitoringOutcome::Updated => Ok(()),
                SeasonMonitoringOutcome::SeriesNotFound => Err(ArrError::NotFound),
            }))?;
        }
        // Changing the flag of a season has changed the flags of all its episodes.
        let mut flags = now.episodes.clone();
        for episode in &held.episodes {
            if let Some((_, flag)) = turned.iter().find(|(number, _)| *number == episode.season) {
                flags.insert(episode.id, *flag);
            }
        }
        for wanted in [true, false] {
            let differ = changed_episodes(&flags, &goal.episodes, wanted);
            if !differ.is_empty() {
                note(sonarr.monitor_episodes(&differ, wanted).await)?;
            }
        }
    }
    let change = SeriesChange {
        monitored: (now.show != goal.show).then_some(goal.show),
        new_seasons: (now.new_seasons != goal.new_seasons).then_some(goal.new_seasons),
        ..change
    };
    // The settings are written last, so that no search starts before the rest is set correctly.
    if change != SeriesChange::default() {
        note(sonarr.edit_series(id, change).await)?;
    }
    Ok(())
}

fn changed_seasons(now: &BTreeMap<u32, bool>, goal: &BTreeMap<u32, bool>) -> Vec<(u32, bool)> {
    let differs = |(number, flag): &(&u32, &bool)| now.get(number) != Some(*flag);
    goal.iter().filter(differs).map(|(number, flag)| (*number, *flag)).collect()
}

fn changed_episodes(now: &BTreeMap<i64, bool>, goal: &BTreeMap<i64, bool>, flag: bool) -> Vec<i64> {
    goal.iter()
        .filter(|(id, wanted)| **wanted == flag && now.get(id) != Some(&flag))
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

    /// Returns the final monitored episodes, the flag of the series, the flag for new seasons, and the seasons gained.
    /// Also checks that the request is fulfilled by the first attempt and then requires no further writes.
    async fn wished(show: FakeSeries, wish: MonitoringChange) -> (Vec<(u32, u32)>, bool, bool, Vec<u32>) {
        let fake = FakeSonarr::with_clock(Clock::stopped_at(now()));
        let id = fake.add(show);
        let http = HttpClient::in_process(fake.in_process());
        let client = Sonarr::new(http, "http://sonarr.test".parse().unwrap(), fake.api_key().into());
        let instance = Instance { name: "sonarr", four_k: false, client, cache: LibraryCache::default() };
        let read = async || SeriesSnapshot::fetch_by_id(&instance.client, id).await.unwrap().unwrap();
        let held = read().await;
        let goal = held.goal_flags(&wish, now());
        write_flags(&instance, &held, (&wish, &goal), SeriesChange::default()).await.unwrap();
        let after = read().await;
        assert!(after.monitoring_flags().meets_goal(&goal), "{:?} is not {goal:?}", after.monitoring_flags());
        let (again, writes) = (after.goal_flags(&wish, now()), fake.post_count());
        write_flags(&instance, &after, (&wish, &again), SeriesChange::default()).await.unwrap();
        assert_eq!(fake.post_count(), writes, "a wish that has come true writes nothing");
        let show = fake.title(id).unwrap();
        let gained = held.seasons_gained(&goal).into_iter().collect();
        (show.monitored_episodes(), show.monitored, show.details.new_seasons, gained)
    }

    #[tokio::test]
    async fn season_is_monitored_regardless_of_its_flag() {
        let second = || MonitoringChange::Monitor(SeriesPart::Seasons(vec![2]));
        let all = vec![(1, 1), (1, 2), (2, 1), (2, 2)];
        let off = wished(the_bear().unmonitored_season(2), second()).await;
        assert_eq!(off, (all.clone(), true, true, vec![2]));
        let on = wished(the_bear().unmonitored_episode(2, 1), second()).await;
        assert_eq!(on, (all, true, true, vec![2]));
    }

    #[tokio::test]
    async fn only_the_requested_part_of_an_unmonitored_show_is_monitored() {
        let one =
            wished(the_bear().unmonitored(), MonitoringChange::Monitor(SeriesPart::Seasons(vec![1]))).await;
        assert_eq!(one, (vec![(1, 1), (1, 2)], true, true, vec![1]));
        let episode =
            wished(the_bear().unmonitored(), MonitoringChange::Monitor(SeriesPart::Episodes(vec![(2, 1)])))
                .await;
        assert_eq!(episode, (vec![(2, 1)], true, true, vec![2]));
    }

    #[tokio::test]
    async fn future_is_monitored_without_the_past() {
        let show = the_bear().unmonitored_season(1).unmonitored_season(2);
        assert_eq!(
            wished(show, MonitoringChange::Monitor(SeriesPart::Future)).await,
            (vec![(2, 2)], true, true, vec![2])
        );
        let some = the_bear().unmonitored_season(2);
        let wanted = vec![(1, 1), (1, 2), (2, 2)];
        assert_eq!(
            wished(some, MonitoringChange::Monitor(SeriesPart::Future)).await,
            (wanted, true, true, vec![2])
        );
        assert_eq!(
            wished(the_bear(), MonitoringChange::OnlyFuture).await,
            (vec![(2, 2)], true, true, vec![])
        );
    }

    #[tokio::test]
    async fn season_episode_or_show_can_be_unmonitored() {
        let season = wished(the_bear(), MonitoringChange::Unmonitor(SeriesPart::Seasons(vec![1]))).await;
        assert_eq!(season, (vec![(2, 1), (2, 2)], true, true, vec![]));
        let episode =
            wished(the_bear(), MonitoringChange::Unmonitor(SeriesPart::Episodes(vec![(1, 2)]))).await;
        assert_eq!(episode, (vec![(1, 1), (2, 1), (2, 2)], true, true, vec![]));
        let (_, looked_for, _, gained) = wished(the_bear(), MonitoringChange::Series(false)).await;
        assert_eq!((looked_for, gained), (false, vec![]));
    }

    #[tokio::test]
    async fn episodes_on_disk_are_not_gained() {
        let show = series("The Bear").seasons(2).episodes(4).size_gb(3.0).missing(1);
        let show = show.unmonitored_season(1).unmonitored_season(2);
        let (wanted, _, _, gained) =
            wished(show, MonitoringChange::Monitor(SeriesPart::Seasons(vec![1, 2]))).await;
        assert_eq!((wanted.len(), gained), (4, vec![2]));
    }
}
