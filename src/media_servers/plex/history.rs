//! What a user has watched, from the history of Plex.
//!
//! The history has a row for each play that passed the watched threshold of the server. It does not show what was
//! started and not finished, nor what a user marked as played by hand. The counts and positions of an item belong to
//! the owner of the token, so they are no evidence about other users.
//!
//! Rows outlive their items. A title that was added again has another id, so its old rows do not count: its state is that
//! no finished play is known.

use super::titles::{self, fetch_list};
use super::watch_states::{
    MAX_PLAYS_OF_TITLE, MAX_PLAYS_OF_USER, MAX_RECENT_PLAYS, fetch_played_shows, states_of_titles,
};
use crate::conversation::transcript::MediaKind;
use crate::media_servers::plays::{RecordedPlays, movie_state, show_state};
use crate::media_servers::{
    EpisodePlay, ItemId, RecentPlay, ServerError, ServerTitle, ServerUserId, WatchState, WatchStates,
};
use crate::server_api::ServerApi;

pub(super) async fn fetch_state(
    api: &ServerApi,
    user: &ServerUserId,
    title: &ServerTitle,
) -> Result<WatchState, ServerError> {
    let history = fetch_plays(api, user, Some(&title.item), MAX_PLAYS_OF_TITLE).await?;
    let state = match title.kind {
        MediaKind::Movie => movie_state(history.iter()),
        MediaKind::Series if history.plays.is_empty() => None,
        MediaKind::Series => {
            let episodes = titles::fetch_episode_numbers(api, &title.item).await?;
            show_state(history.iter(), &episodes)
        }
    };
    Ok(history.conclude(state, WatchState::NoFinishedPlay))
}

pub(super) async fn fetch_states(api: &ServerApi, user: &ServerUserId) -> Result<WatchStates, ServerError> {
    let history = fetch_plays(api, user, None, MAX_PLAYS_OF_USER).await?;
    let shows = fetch_played_shows(api, &history).await?;
    let mut known = states_of_titles(api, &history, &shows).await?;
    for state in known.values_mut() {
        *state = history.conclude(Some(*state), WatchState::NoFinishedPlay);
    }
    Ok(WatchStates { known, others: history.conclude(None, WatchState::NoFinishedPlay) })
}

pub(super) async fn fetch_recent_plays(
    api: &ServerApi,
    user: &ServerUserId,
    limit: usize,
) -> Result<Vec<RecentPlay>, ServerError> {
    Ok(fetch_plays(api, user, None, MAX_RECENT_PLAYS).await?.into_newest(limit))
}

pub(super) async fn fetch_episode_plays(
    api: &ServerApi,
    user: &ServerUserId,
    show: &ServerTitle,
) -> Result<Vec<EpisodePlay>, ServerError> {
    Ok(fetch_plays(api, user, Some(&show.item), MAX_PLAYS_OF_TITLE).await?.into_episode_plays())
}

/// Reads the newest finished plays of a user, of one title or of all.
async fn fetch_plays(
    api: &ServerApi,
    user: &ServerUserId,
    title: Option<&ItemId>,
    max: usize,
) -> Result<RecordedPlays, ServerError> {
    let mut query = vec![("sort", "viewedAt:desc"), ("accountID", user.as_str())];
    query.extend(title.map(|title| ("metadataItemID", title.as_str())));
    let list = fetch_list(api, ("status/sessions/history/all", &query), max, |row| {
        // A server that does not know a filter ignores it.
        if row.account_id.as_str() != user.as_str() {
            return None;
        }
        row.into_finished_play(title)
            .filter(|recorded| title.is_none_or(|title| recorded.play.item == *title))
    })
    .await?;
    Ok(RecordedPlays { plays: list.entries, is_complete: list.is_complete })
}
