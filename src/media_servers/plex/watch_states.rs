//! States of all titles of a user, from recorded plays and the episodes that the server has.

use std::collections::{BTreeSet, HashMap};

use super::titles;
use super::wire::ListedTitle;
use crate::conversation::transcript::MediaKind;
use crate::media_servers::plays::{RecordedPlays, movie_state, percent_of, show_state};
use crate::media_servers::{ItemId, PlayProgress, RecentPlay, ServerError, WatchState};
use crate::server_api::ServerApi;

/// Maximum number of plays of one title by one user.
pub(super) const MAX_PLAYS_OF_TITLE: usize = 5_000;
/// Maximum number of plays of one user.
pub(super) const MAX_PLAYS_OF_USER: usize = 20_000;
/// Maximum number of plays that are read for the most recent ones.
pub(super) const MAX_RECENT_PLAYS: usize = 500;

/// Lists the shows of the server, unless none was played.
pub(super) async fn fetch_played_shows(
    api: &ServerApi,
    plays: &RecordedPlays,
) -> Result<Vec<ListedTitle>, ServerError> {
    if plays.iter().all(|play| play.kind == MediaKind::Movie) {
        return Ok(Vec::new());
    }
    titles::fetch_listed_titles(api, MediaKind::Series).await
}

/// Returns the states of the titles that were played, given the shows that the server lists.
///
/// The server states only the number of episodes of each show. A show whose finished plays reach it is compared episode
/// by episode, since plays of deleted episodes are still recorded. The percentage of other shows includes such plays.
pub(super) async fn states_of_titles(
    api: &ServerApi,
    plays: &RecordedPlays,
    listed_shows: &[ListedTitle],
) -> Result<HashMap<ItemId, WatchState>, ServerError> {
    let (mut movies, mut shows) = (PlaysByTitle::new(), PlaysByTitle::new());
    for play in plays.iter() {
        let titles = match play.kind {
            MediaKind::Movie => &mut movies,
            MediaKind::Series => &mut shows,
        };
        titles.entry(&play.item).or_default().push(play);
    }
    let mut states: HashMap<ItemId, WatchState> = movies
        .into_iter()
        .filter_map(|(item, plays)| Some((item.clone(), movie_state(plays.into_iter())?)))
        .collect();
    for show in listed_shows {
        let Some(plays) = shows.get(&show.item) else { continue };
        let finished = plays.iter().filter(|play| play.progress == PlayProgress::Finished);
        let finished = finished.filter_map(|play| play.episode).collect::<BTreeSet<_>>().len();
        let state = if finished < show.episodes {
            let percent = percent_of(finished, show.episodes);
            Some(WatchState::Started { percent, at: plays.iter().filter_map(|play| play.at).max() })
        } else {
            let episodes = titles::fetch_episode_numbers(api, &show.item).await?;
            show_state(plays.iter().copied(), &episodes)
        };
        states.extend(state.map(|state| (show.item.clone(), state)));
    }
    Ok(states)
}

type PlaysByTitle<'p> = HashMap<&'p ItemId, Vec<&'p RecentPlay>>;
