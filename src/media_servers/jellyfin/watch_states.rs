//! What a user has watched, from the data that Jellyfin keeps per user and item.
//!
//! Ten seconds of a play already raise the number of plays and set the time of the last one, so neither is evidence. An
//! item counts as played once its end was reached, or a person has marked it; until then only its position counts.

use std::collections::HashMap;

use super::wire::{Item, Items, UserData};
use super::{MAX_EPISODES, episodes_path};
use crate::conversation::transcript::MediaKind;
use crate::media_servers::plays::{newest_of_titles, percent_of};
use crate::media_servers::{
    EpisodePlay, ItemId, PAGE_TITLES, PlayProgress, RecentPlay, ServerError, ServerTitle, ServerUserId,
    WatchState, WatchStates,
};
use crate::server_api::ServerApi;

/// Maximum number of items that a user has started and not finished, and of plays that are read.
const MAX_PLAYS: &str = "500";

pub(super) async fn fetch_state(
    api: &ServerApi,
    user: &ServerUserId,
    title: &ServerTitle,
) -> Result<WatchState, ServerError> {
    let user = ("userId", user.as_str());
    if title.kind == MediaKind::Movie {
        let query = [user, ("ids", title.item.as_str()), ("enableUserData", "true")];
        let found: Items<Item> = api.get("Items", &query).await?;
        // A user who may not see the library has not watched it.
        return Ok(found.items.first().map_or(WatchState::Never, |item| movie_state(item.user_data())));
    }
    Ok(show_state(&fetch_episodes(api, user, &title.item).await?))
}

pub(super) async fn fetch_episode_plays(
    api: &ServerApi,
    user: &ServerUserId,
    show: &ServerTitle,
) -> Result<Vec<EpisodePlay>, ServerError> {
    let episodes = fetch_episodes(api, ("userId", user.as_str()), &show.item).await?;
    Ok(episodes.iter().filter_map(Item::as_episode_play).collect())
}

/// Reads the episodes of a show with the data of a user, who may not see the show.
async fn fetch_episodes(
    api: &ServerApi,
    user: (&str, &str),
    show: &ItemId,
) -> Result<Vec<Item>, ServerError> {
    let query = [user, ("isMissing", "false"), ("enableUserData", "true"), ("limit", MAX_EPISODES)];
    match api.get::<Items<Item>>(&episodes_path(show), &query).await {
        Err(ServerError::NotFound) => Ok(Vec::new()),
        episodes => Ok(episodes?.items),
    }
}

fn movie_state(data: &UserData) -> WatchState {
    match data.progress() {
        Some(PlayProgress::Finished) => WatchState::Finished { at: data.last_played },
        Some(PlayProgress::StoppedAt { percent }) => {
            WatchState::Started { percent: Some(percent), at: data.last_played }
        }
        None => WatchState::Never,
    }
}

fn show_state(episodes: &[Item]) -> WatchState {
    let progress = episodes.iter().map(|episode| episode.user_data().progress());
    let finished = progress.clone().filter(|progress| *progress == Some(PlayProgress::Finished)).count();
    let at = episodes.iter().filter_map(|episode| episode.user_data().last_played).max();
    if !episodes.is_empty() && finished == episodes.len() {
        WatchState::Finished { at }
    } else if progress.flatten().next().is_some() {
        WatchState::Started { percent: percent_of(finished, episodes.len()), at }
    } else {
        WatchState::Never
    }
}

pub(super) async fn fetch_states(api: &ServerApi, user: &ServerUserId) -> Result<WatchStates, ServerError> {
    let mut known = HashMap::new();
    let limit = PAGE_TITLES.to_string();
    let mut start = 0;
    loop {
        let start_text = start.to_string();
        let query = [
            ("userId", user.as_str()),
            ("recursive", "true"),
            ("includeItemTypes", "Movie"),
            ("includeItemTypes", "Series"),
            ("fields", "RecursiveItemCount"),
            ("enableUserData", "true"),
            ("enableImages", "false"),
            ("sortBy", "DateCreated"),
            ("sortBy", "SortName"),
            ("startIndex", &start_text),
            ("limit", &limit),
        ];
        let page: Items<Item> = api.get("Items", &query).await?;
        known.extend(page.items.iter().filter_map(title_state));
        start += PAGE_TITLES;
        if start >= page.total() {
            break;
        }
    }
    // The data of a show does not state that an episode was started.
    for play in fetch_started(api, user).await? {
        let started = WatchState::Started { percent: None, at: play.at };
        known.entry(play.item).or_insert(started);
    }
    Ok(WatchStates { known, others: WatchState::Never })
}

/// Returns the state of a movie or show in a list; `None` if nothing of it was finished or is half seen.
fn title_state(item: &Item) -> Option<(ItemId, WatchState)> {
    let data = item.user_data();
    let state = match item.kind()? {
        MediaKind::Movie => movie_state(data),
        MediaKind::Series => {
            let episodes = item.recursive_item_count.unwrap_or(0);
            let unplayed = data.unplayed_item_count.unwrap_or(episodes).min(episodes);
            let percent = percent_of(episodes - unplayed, episodes);
            match (episodes, unplayed) {
                (0, _) => WatchState::Never,
                (_, 0) => WatchState::Finished { at: data.last_played },
                _ if unplayed < episodes => WatchState::Started { percent, at: data.last_played },
                _ => WatchState::Never,
            }
        }
    };
    (state != WatchState::Never).then(|| (item.item_id(), state))
}

pub(super) async fn fetch_recent_plays(
    api: &ServerApi,
    user: &ServerUserId,
    limit: usize,
) -> Result<Vec<RecentPlay>, ServerError> {
    let query = [
        ("userId", user.as_str()),
        ("recursive", "true"),
        ("includeItemTypes", "Movie"),
        ("includeItemTypes", "Episode"),
        ("isPlayed", "true"),
        ("enableUserData", "true"),
        ("enableImages", "false"),
        ("sortBy", "DatePlayed"),
        ("sortOrder", "Descending"),
        ("limit", MAX_PLAYS),
    ];
    let finished: Items<Item> = api.get("Items", &query).await?;
    let mut plays = fetch_started(api, user).await?;
    plays.extend(finished.items.into_iter().filter_map(Item::into_play));
    Ok(newest_of_titles(plays, limit))
}

/// Reads what a user has started and not finished.
async fn fetch_started(api: &ServerApi, user: &ServerUserId) -> Result<Vec<RecentPlay>, ServerError> {
    let query = [
        ("userId", user.as_str()),
        ("includeItemTypes", "Movie"),
        ("includeItemTypes", "Episode"),
        ("enableUserData", "true"),
        ("limit", MAX_PLAYS),
    ];
    let started: Items<Item> = api.get("UserItems/Resume", &query).await?;
    Ok(started.items.into_iter().filter_map(Item::into_play).collect())
}
