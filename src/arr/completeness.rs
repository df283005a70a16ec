//! Completeness of seasons. For some shows, such as daily ones, the catalog lists episodes only as they air, so a season
//! with all listed episodes on disk may still grow.

use jiff::{SignedDuration, Timestamp};

use super::episodes::Episode;
use super::sonarr::Sonarr;
use super::{ArrError, SPECIALS, Season, Series};

/// Time after the last episode until a season counts as complete, if the catalog marks no finale.
const SEASON_END_DELAY: SignedDuration = SignedDuration::from_hours(28 * 24);

impl Series {
    /// Returns whether a season is on disk and will get no more episodes. `growing` contains the episodes of the seasons
    /// that may grow. Such a season is not complete without them.
    pub fn season_is_complete(&self, number: u32, growing: &[Episode], now: Timestamp) -> bool {
        let Some(season) = self.season(number) else { return false };
        season.is_on_disk() && (!self.may_grow(season) || has_ended(number, growing, now))
    }

    /// Returns whether all regular seasons are on disk and the latest of them will get no more episodes.
    pub fn is_complete(&self, growing: &[Episode], now: Timestamp) -> bool {
        let is_on_disk = self.episodes > 0 && self.episodes_on_disk >= self.episodes;
        is_on_disk
            && self.latest_season_number().is_some_and(|latest| self.season_is_complete(latest, growing, now))
    }

    /// Returns whether the catalog may list more episodes of a season later. In a continuing series this applies to the
    /// latest season, the specials, and a season with at most one listed episode.
    fn may_grow(&self, season: &Season) -> bool {
        let is_last = self.latest_season_number().is_none_or(|latest| season.number >= latest);
        !self.ended && (season.number == SPECIALS || is_last || season.episodes <= 1)
    }

    /// Returns whether the episodes of a season are needed to decide if it is complete.
    fn needs_episodes(&self, season: &Season) -> bool {
        season.is_on_disk() && self.may_grow(season)
    }

    fn latest_season_number(&self) -> Option<u32> {
        self.seasons.iter().map(|season| season.number).max()
    }
}

impl Season {
    /// Returns whether every listed episode is on disk.
    pub fn is_on_disk(&self) -> bool {
        self.episodes > 0 && self.episodes_on_disk >= self.episodes
    }
}

impl Sonarr {
    /// Fetches the episodes that decide whether the given seasons are complete, or whether the whole series is. Sends no
    /// request if the series already decides it.
    pub async fn fetch_growing_episodes(
        &self,
        series: &Series,
        seasons: Option<&[u32]>,
    ) -> Result<Vec<Episode>, ArrError> {
        let Some(id) = series.id else { return Ok(Vec::new()) };
        let is_selected = |number: u32| match seasons {
            Some(seasons) => seasons.contains(&number),
            None => series.latest_season_number() == Some(number),
        };
        let mut episodes = Vec::new();
        for season in series.all_seasons().filter(|season| is_selected(season.number)) {
            if series.needs_episodes(season) {
                episodes.extend(self.fetch_season_episodes(id, season.number).await?);
            }
        }
        Ok(episodes)
    }
}

/// Returns the time until which a season may get more episodes. Returns `None` if no air time is known.
pub fn expected_until(season: u32, episodes: &[Episode]) -> Option<Timestamp> {
    let season_episodes = || episodes.iter().filter(|episode| episode.season == season);
    let last = season_episodes().filter_map(|episode| episode.airs_at).max()?;
    Some(if season_episodes().any(|episode| episode.finale) { last } else { last + SEASON_END_DELAY })
}

fn has_ended(season: u32, episodes: &[Episode], now: Timestamp) -> bool {
    let has_finale = episodes.iter().any(|episode| episode.season == season && episode.finale);
    has_finale || expected_until(season, episodes).is_some_and(|until| until <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn continuing_series(seasons: &[(u32, u32, u32)]) -> Series {
        let season = |&(number, episodes_on_disk, episodes): &(u32, u32, u32)| Season {
            number,
            monitored: true,
            episodes_on_disk,
            episodes,
            size_bytes: 0,
        };
        let (specials, regular): (Vec<Season>, Vec<Season>) =
            seasons.iter().map(season).partition(|season| season.number == SPECIALS);
        Series {
            id: Some(1),
            tvdb: 1,
            tmdb: None,
            imdb: None,
            title: "The Traitors".into(),
            year: 2022,
            overview: String::new(),
            monitored: true,
            ended: false,
            series_type: "standard".into(),
            episodes_on_disk: regular.iter().map(|season| season.episodes_on_disk).sum(),
            episodes: regular.iter().map(|season| season.episodes).sum(),
            seasons: regular,
            specials: specials.first().copied(),
            size_bytes: 0,
            path: String::new(),
            profile: 1,
            next_airing: None,
            new_seasons: true,
            genres: Vec::new(),
            certification: String::new(),
            rating: None,
            added: None,
        }
    }

    fn aired_episode(season: u32, days_ago: i64, finale: bool) -> Episode {
        Episode {
            id: 1,
            season,
            number: 1,
            title: String::new(),
            airs_at: Some(NOW - SignedDuration::from_hours(24 * days_ago)),
            monitored: true,
            file: None,
            last_search: None,
            finale,
        }
    }

    #[test]
    fn latest_season_is_complete_with_a_finale_or_after_the_delay() {
        let series = continuing_series(&[(1, 8, 8), (2, 4, 4)]);
        let is_complete = |episodes: &[Episode]| series.season_is_complete(2, episodes, NOW);
        assert_eq!([is_complete(&[]), is_complete(&[aired_episode(2, 27, false)])], [false, false]);
        assert_eq!(
            [is_complete(&[aired_episode(2, 28, false)]), is_complete(&[aired_episode(2, 0, true)])],
            [true, true]
        );
        assert!(!is_complete(&[aired_episode(1, 0, true)]), "the finale of another season");
        let undated = Episode { airs_at: None, ..aired_episode(2, 0, false) };
        assert!(!is_complete(&[undated]));
    }

    #[test]
    fn missing_earlier_and_ended_seasons_need_no_episodes() {
        let mut series = continuing_series(&[(0, 2, 2), (1, 8, 8), (2, 3, 4), (3, 0, 0)]);
        let complete =
            |series: &Series| [0, 1, 2, 3, 4].map(|season| series.season_is_complete(season, &[], NOW));
        assert_eq!(complete(&series), [false, true, false, false, false]);
        series.ended = true;
        assert_eq!(complete(&series), [true, true, false, false, false]);
    }

    #[test]
    fn season_of_one_episode_is_complete_only_after_the_delay() {
        let series = continuing_series(&[(1, 1, 1), (2, 0, 0)]);
        assert!(!series.season_is_complete(1, &[aired_episode(1, 1, false)], NOW));
        assert!(series.season_is_complete(1, &[aired_episode(1, 30, false)], NOW));
    }

    #[test]
    fn series_is_complete_with_its_latest_season() {
        let series = continuing_series(&[(0, 0, 2), (1, 8, 8), (2, 4, 4)]);
        assert!(!series.is_complete(&[aired_episode(2, 1, false)], NOW));
        assert!(series.is_complete(&[aired_episode(2, 30, false)], NOW));
        let incomplete = continuing_series(&[(1, 7, 8), (2, 4, 4)]);
        assert!(!incomplete.is_complete(&[aired_episode(2, 30, false)], NOW));
    }
}
