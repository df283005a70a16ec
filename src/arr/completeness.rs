//! Completeness of seasons. The catalog may list the episodes of a season only as they air, as for daily and reality
//! shows, so the listed episodes may be far from all.

use jiff::{SignedDuration, Timestamp};

use super::episodes::Episode;
use super::sonarr::Sonarr;
use super::{ArrError, SPECIALS, Season, Series};

/// Period without a new episode after which a season is complete, if the catalog does not mark its last episode.
const SEASON_REST: SignedDuration = SignedDuration::from_hours(28 * 24);

impl Series {
    /// Returns whether a season is on disk and gets no more episodes. `growing` holds the episodes of the growing
    /// seasons. A growing season without them is not complete.
    pub fn season_is_complete(&self, number: u32, growing: &[Episode], now: Timestamp) -> bool {
        let Some(season) = self.season(number) else { return false };
        season.is_on_disk() && (!self.may_grow(season) || is_over(number, growing, now))
    }

    /// Returns whether all regular seasons are on disk and the latest of them gets no more episodes.
    pub fn is_complete(&self, growing: &[Episode], now: Timestamp) -> bool {
        let is_on_disk = self.episodes > 0 && self.episodes_on_disk >= self.episodes;
        is_on_disk && self.latest().is_some_and(|latest| self.season_is_complete(latest, growing, now))
    }

    /// Returns whether the catalog may list more episodes of a season later, as it may for the latest season of a show
    /// that continues, for its specials, and for a season that has only begun.
    fn may_grow(&self, season: &Season) -> bool {
        let is_last = self.latest().is_none_or(|latest| season.number >= latest);
        !self.ended && (season.number == SPECIALS || is_last || season.episodes <= 1)
    }

    /// Returns whether the series alone does not decide if a season is complete.
    fn is_undecided(&self, season: &Season) -> bool {
        season.is_on_disk() && self.may_grow(season)
    }

    fn latest(&self) -> Option<u32> {
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
    /// Fetches the episodes that decide whether these seasons are complete, or whether the whole series is. Nothing is
    /// requested if the series alone decides that.
    pub async fn growing_episodes(
        &self,
        series: &Series,
        seasons: Option<&[u32]>,
    ) -> Result<Vec<Episode>, ArrError> {
        let Some(id) = series.id else { return Ok(Vec::new()) };
        let is_meant = |number: u32| match seasons {
            Some(seasons) => seasons.contains(&number),
            None => series.latest() == Some(number),
        };
        let mut episodes = Vec::new();
        for season in series.all_seasons().filter(|season| is_meant(season.number)) {
            if series.is_undecided(season) {
                episodes.extend(self.season_episodes(id, season.number).await?);
            }
        }
        Ok(episodes)
    }
}

/// Returns the time until which more episodes of a season are to be expected. Returns `None` if no air time is known.
pub fn expected_until(season: u32, episodes: &[Episode]) -> Option<Timestamp> {
    let of_it = || episodes.iter().filter(|episode| episode.season == season);
    let last = of_it().filter_map(|episode| episode.airs).max()?;
    Some(if of_it().any(|episode| episode.finale) { last } else { last + SEASON_REST })
}

fn is_over(season: u32, episodes: &[Episode], now: Timestamp) -> bool {
    let has_finale = episodes.iter().any(|episode| episode.season == season && episode.finale);
    has_finale || expected_until(season, episodes).is_some_and(|until| until <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn show(seasons: &[(u32, u32, u32)]) -> Series {
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
            rating: None,
            added: None,
        }
    }

    fn aired(season: u32, days_ago: i64, finale: bool) -> Episode {
        Episode {
            id: 1,
            season,
            number: 1,
            title: String::new(),
            airs: Some(NOW - SignedDuration::from_hours(24 * days_ago)),
            monitored: true,
            file: None,
            last_search: None,
            finale,
        }
    }

    #[test]
    fn latest_season_is_complete_with_a_finale_or_after_a_rest() {
        let show = show(&[(1, 8, 8), (2, 4, 4)]);
        let is_complete = |episodes: &[Episode]| show.season_is_complete(2, episodes, NOW);
        assert_eq!([is_complete(&[]), is_complete(&[aired(2, 27, false)])], [false, false]);
        assert_eq!([is_complete(&[aired(2, 28, false)]), is_complete(&[aired(2, 0, true)])], [true, true]);
        assert!(!is_complete(&[aired(1, 0, true)]), "the finale of another season");
        let undated = Episode { airs: None, ..aired(2, 0, false) };
        assert!(!is_complete(&[undated]));
    }

    #[test]
    fn series_alone_decides_about_missing_earlier_and_ended_seasons() {
        let mut show = show(&[(0, 2, 2), (1, 8, 8), (2, 3, 4), (3, 0, 0)]);
        let complete =
            |show: &Series| [0, 1, 2, 3, 4].map(|season| show.season_is_complete(season, &[], NOW));
        assert_eq!(complete(&show), [false, true, false, false, false]);
        show.ended = true;
        assert_eq!(complete(&show), [true, true, false, false, false]);
    }

    #[test]
    fn season_of_one_episode_is_complete_only_after_a_rest() {
        let show = show(&[(1, 1, 1), (2, 0, 0)]);
        assert!(!show.season_is_complete(1, &[aired(1, 1, false)], NOW));
        assert!(show.season_is_complete(1, &[aired(1, 30, false)], NOW));
    }

    #[test]
    fn show_is_complete_with_its_latest_season() {
        let show = show(&[(0, 0, 2), (1, 8, 8), (2, 4, 4)]);
        assert!(!show.is_complete(&[aired(2, 1, false)], NOW));
        assert!(show.is_complete(&[aired(2, 30, false)], NOW));
        let lacking = self::show(&[(1, 7, 8), (2, 4, 4)]);
        assert!(!lacking.is_complete(&[aired(2, 30, false)], NOW));
    }
}
