//! Plays that a server or its statistics program has recorded, and what they show about a title.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use super::{EpisodePlay, PlayProgress, PlayableEpisode, RecentPlay, WatchState};

/// Play of a movie or an episode in the records of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedPlay {
    pub(super) play: RecentPlay,
    /// Id of the movie or episode that remains the same when its file is added again; empty if it is not recorded.
    pub(super) guid: String,
}

/// Plays of one user.
#[derive(Debug, Default)]
pub(super) struct RecordedPlays {
    pub(super) plays: Vec<RecordedPlay>,
    /// False if the oldest plays were not read, because there are too many.
    pub(super) is_complete: bool,
}

impl RecordedPlays {
    pub(super) fn iter(&self) -> impl Iterator<Item = &RecentPlay> + Clone {
        self.plays.iter().map(|recorded| &recorded.play)
    }

    /// Returns the newest plays, each title once.
    pub(super) fn into_newest(self, limit: usize) -> Vec<RecentPlay> {
        newest_of_titles(self.plays.into_iter().map(|recorded| recorded.play).collect(), limit)
    }

    /// Returns the plays of episodes, for the plays of one show.
    pub(super) fn into_episode_plays(self) -> Vec<EpisodePlay> {
        let episode_play = |RecordedPlay { play, .. }: RecordedPlay| {
            let (season, number) = play.episode?;
            let file = PlayableEpisode { season, first: number, last: number };
            Some(EpisodePlay { file, progress: play.progress, at: play.at })
        };
        self.plays.into_iter().filter_map(episode_play).collect()
    }

    /// Returns a state that follows from these plays, or `without` if there is none. Only a finished title is certain if
    /// plays are missing.
    pub(super) fn conclude(&self, state: Option<WatchState>, without: WatchState) -> WatchState {
        match state {
            Some(WatchState::Finished { at }) => WatchState::Finished { at },
            _ if !self.is_complete => WatchState::Unknown,
            state => state.unwrap_or(without),
        }
    }
}

/// Returns the newest plays, each title once.
pub(super) fn newest_of_titles(mut plays: Vec<RecentPlay>, limit: usize) -> Vec<RecentPlay> {
    plays.sort_by_key(|play| Reverse(play.at));
    let mut listed = HashSet::new();
    plays.retain(|play| listed.insert(play.item.clone()));
    plays.truncate(limit);
    plays
}

/// Returns the state of a movie from its plays; `None` if there are none.
pub(super) fn movie_state<'p>(plays: impl Iterator<Item = &'p RecentPlay> + Clone) -> Option<WatchState> {
    let finished = plays.clone().filter(|play| play.progress == PlayProgress::Finished);
    if let Some(at) = finished.map(|play| play.at).max() {
        return Some(WatchState::Finished { at });
    }
    let newest = plays.max_by_key(|play| play.at)?;
    let percent = match newest.progress {
        PlayProgress::Finished => 100,
        PlayProgress::StoppedAt { percent } => percent,
    };
    Some(WatchState::Started { percent: Some(percent), at: newest.at })
}

/// Returns the state of a show that has these episodes, from the plays of the show; `None` if there are none. Plays of
/// deleted episodes show that it was started.
pub(super) fn show_state<'p>(
    plays: impl Iterator<Item = &'p RecentPlay> + Clone,
    episodes: &BTreeSet<(u32, u32)>,
) -> Option<WatchState> {
    let newest = plays.clone().map(|play| play.at).max()?;
    let is_present = |play: &&RecentPlay| play.episode.is_some_and(|episode| episodes.contains(&episode));
    let finished = plays.filter(is_present).filter(|play| play.progress == PlayProgress::Finished);
    let count = finished.clone().filter_map(|play| play.episode).collect::<BTreeSet<_>>().len();
    if count > 0 && count == episodes.len() {
        return Some(WatchState::Finished { at: finished.filter_map(|play| play.at).max() });
    }
    Some(WatchState::Started { percent: percent_of(count, episodes.len()), at: newest })
}

pub(super) fn percent_of(part: usize, whole: usize) -> Option<u8> {
    u8::try_from((100 * part).checked_div(whole)?).ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::conversation::transcript::MediaKind;
    use crate::media_servers::ItemId;

    fn play(second: i64, episode: Option<(u32, u32)>, progress: PlayProgress) -> RecentPlay {
        let at = Timestamp::from_second(second).ok();
        let item = ItemId::new("1");
        RecentPlay { kind: MediaKind::Series, item, title: "The Bear".into(), episode, progress, at }
    }

    fn time(second: i64) -> Option<Timestamp> {
        Timestamp::from_second(second).ok()
    }

    #[test]
    fn movie_that_was_started_again_stays_finished() {
        let stopped = PlayProgress::StoppedAt { percent: 20 };
        let plays = [play(9, None, stopped), play(5, None, PlayProgress::Finished), play(1, None, stopped)];
        assert_eq!(movie_state(plays.iter()), Some(WatchState::Finished { at: time(5) }));
        let started = WatchState::Started { percent: Some(20), at: time(1) };
        assert_eq!(movie_state(plays[2..].iter()), Some(started));
        assert_eq!(movie_state([].iter()), None);
    }

    #[test]
    fn repeated_and_deleted_episodes_do_not_finish_a_show() {
        let episodes = BTreeSet::from([(1, 1), (1, 2)]);
        let finished = |second, episode| play(second, Some(episode), PlayProgress::Finished);
        let plays = [finished(3, (1, 1)), finished(2, (1, 1)), finished(9, (7, 7))];
        let started = |percent| Some(WatchState::Started { percent, at: time(9) });
        assert_eq!(show_state(plays.iter(), &episodes), started(Some(50)));
        assert_eq!(show_state(plays[2..].iter(), &episodes), started(Some(0)));
        assert_eq!(show_state(plays.iter(), &BTreeSet::new()), started(None));
        assert_eq!(show_state([].iter(), &episodes), None);
        let last = [finished(4, (1, 2))];
        let all = plays.iter().chain(&last);
        assert_eq!(show_state(all, &episodes), Some(WatchState::Finished { at: time(4) }));
    }

    #[test]
    fn missing_plays_leave_everything_but_finished_unknown() {
        let plays = RecordedPlays { plays: Vec::new(), is_complete: false };
        let finished = WatchState::Finished { at: None };
        assert_eq!(plays.conclude(Some(finished), WatchState::Never), finished);
        assert_eq!(plays.conclude(None, WatchState::Never), WatchState::Unknown);
        let complete = RecordedPlays { is_complete: true, ..plays };
        assert_eq!(complete.conclude(None, WatchState::Never), WatchState::Never);
    }
}
