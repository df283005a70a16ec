//! What a user has watched, from the records of Tautulli, which also has what was started and not finished.
//!
//! Plex and Tautulli number the owner of the server differently: account 1 of Plex has the id of its plex.tv account in
//! Tautulli. Users come from Tautulli; an id of 1 from sessions or from earlier settings is that of the owner.
//!
//! A title that was added again has another id, under which Tautulli has no plays. Movies are also found by their guid.
//! Of shows, only episodes have a recorded guid, so plays of an absent show with the same title make the state unknown.

use std::collections::{HashMap, HashSet};

use super::titles;
use super::watch_states::{
    MAX_PLAYS_OF_TITLE, MAX_PLAYS_OF_USER, MAX_RECENT_PLAYS, fetch_played_shows, states_of_titles,
};
use super::wire::ListedTitle;
use crate::conversation::transcript::MediaKind;
use crate::media_servers::plays::{RecordedPlays, movie_state, show_state};
use crate::media_servers::tautulli::{PlaySelection, Tautulli, TautulliUser};
use crate::media_servers::{
    EpisodePlay, ItemId, PlayingTitle, RecentPlay, ServerError, ServerTitle, ServerUserId, WatchState,
    WatchStates,
};
use crate::server_api::ServerApi;

/// Id of the owner of the server in the answers of Plex.
const OWNER_ACCOUNT: &str = "1";

/// Plex with the Tautulli that records its plays.
pub(super) struct RecordedServer<'s> {
    pub(super) api: &'s ServerApi,
    pub(super) tautulli: &'s Tautulli,
}

impl RecordedServer<'_> {
    pub(super) async fn fetch_state(
        &self,
        user: &ServerUserId,
        title: &ServerTitle,
    ) -> Result<WatchState, ServerError> {
        // Without records, a missing play is no evidence.
        let Some(user) = self.find_user(user).await?.filter(|user| user.is_recorded) else {
            return Ok(WatchState::Unknown);
        };
        match title.kind {
            MediaKind::Movie => self.fetch_movie_state(&user.id, &title.item).await,
            MediaKind::Series => self.fetch_show_state(&user.id, title).await,
        }
    }

    async fn fetch_movie_state(
        &self,
        user: &ServerUserId,
        movie: &ItemId,
    ) -> Result<WatchState, ServerError> {
        let mut plays = self.fetch_plays(user, PlaySelection::Movie(movie)).await?;
        let state = movie_state(plays.iter());
        if !matches!(state, Some(WatchState::Finished { .. }))
            && let Some(guid) = titles::fetch_guid(self.api, movie).await?
        {
            let same_movie = self.fetch_plays(user, PlaySelection::Guid(&guid)).await?;
            plays.is_complete &= same_movie.is_complete;
            plays.plays.extend(same_movie.plays);
        }
        Ok(plays.conclude(movie_state(plays.iter()), WatchState::Never))
    }

    async fn fetch_show_state(
        &self,
        user: &ServerUserId,
        show: &ServerTitle,
    ) -> Result<WatchState, ServerError> {
        let plays = self.fetch_plays(user, PlaySelection::Show(&show.item)).await?;
        if !plays.plays.is_empty() {
            let episodes = titles::fetch_episode_numbers(self.api, &show.item).await?;
            return Ok(plays.conclude(show_state(plays.iter(), &episodes), WatchState::Never));
        }
        let similar = self.fetch_plays(user, PlaySelection::Search(&show.title)).await?;
        let is_same_title = |play: &RecentPlay| {
            play.kind == MediaKind::Series && title_key(&play.title) == title_key(&show.title)
        };
        let without = if similar.iter().any(is_same_title) { WatchState::Unknown } else { WatchState::Never };
        Ok(similar.conclude(None, without))
    }

    pub(super) async fn fetch_states(&self, user: &ServerUserId) -> Result<WatchStates, ServerError> {
        let Some(user) = self.find_user(user).await?.filter(|user| user.is_recorded) else {
            return Ok(WatchStates { known: HashMap::new(), others: WatchState::Unknown });
        };
        let mut plays = self.tautulli.fetch_plays(&user.id, PlaySelection::All, MAX_PLAYS_OF_USER).await?;
        let movies = titles::fetch_listed_titles(self.api, MediaKind::Movie).await?;
        assign_to_present_movies(&mut plays, &movies);
        let shows = fetch_played_shows(self.api, &plays).await?;
        let mut known = states_of_titles(self.api, &plays, &shows).await?;
        for state in known.values_mut() {
            *state = plays.conclude(Some(*state), WatchState::Never);
        }
        for show in shows_added_again(&plays, &shows) {
            known.entry(show.item.clone()).or_insert(WatchState::Unknown);
        }
        Ok(WatchStates { known, others: plays.conclude(None, WatchState::Never) })
    }

    pub(super) async fn fetch_recent_plays(
        &self,
        user: &ServerUserId,
        limit: usize,
    ) -> Result<Vec<RecentPlay>, ServerError> {
        let user = self.find_user(user).await?.ok_or(ServerError::NotFound)?;
        let plays = self.tautulli.fetch_plays(&user.id, PlaySelection::All, MAX_RECENT_PLAYS).await?;
        Ok(plays.into_newest(limit))
    }

    pub(super) async fn fetch_episode_plays(
        &self,
        user: &ServerUserId,
        show: &ServerTitle,
    ) -> Result<Vec<EpisodePlay>, ServerError> {
        let user = self.find_user(user).await?.ok_or(ServerError::NotFound)?;
        Ok(self.fetch_plays(&user.id, PlaySelection::Show(&show.item)).await?.into_episode_plays())
    }

    /// Gives sessions of the owner the id that Tautulli has for the owner.
    pub(super) async fn rename_owner(&self, playing: &mut [PlayingTitle]) -> Result<(), ServerError> {
        let is_owner = |playing: &PlayingTitle| playing.user.id.as_str() == OWNER_ACCOUNT;
        if !playing.iter().any(is_owner) {
            return Ok(());
        }
        let users = self.tautulli.fetch_users().await?;
        for playing in playing.iter_mut().filter(|playing| is_owner(playing)) {
            let by_name = || users.iter().find(|user| user.has_name(&playing.user.name));
            if let Some(owner) = users.iter().find(|user| user.is_owner).or_else(by_name) {
                playing.user.id = owner.id.clone();
            }
        }
        Ok(())
    }

    async fn find_user(&self, id: &ServerUserId) -> Result<Option<TautulliUser>, ServerError> {
        let users = self.tautulli.fetch_users().await?;
        let is_asked =
            |user: &TautulliUser| user.id == *id || (id.as_str() == OWNER_ACCOUNT && user.is_owner);
        Ok(users.into_iter().find(is_asked))
    }

    async fn fetch_plays(
        &self,
        user: &ServerUserId,
        selection: PlaySelection<'_>,
    ) -> Result<RecordedPlays, ServerError> {
        self.tautulli.fetch_plays(user, selection, MAX_PLAYS_OF_TITLE).await
    }
}

/// Gives plays of movies that are not listed the id of the movie with the same guid, which was added later.
fn assign_to_present_movies(plays: &mut RecordedPlays, movies: &[ListedTitle]) {
    let present: HashSet<&ItemId> = movies.iter().map(|movie| &movie.item).collect();
    let by_guid: HashMap<&str, &ItemId> =
        movies.iter().map(|movie| (movie.guid.as_str(), &movie.item)).collect();
    for recorded in &mut plays.plays {
        let is_absent = recorded.play.kind == MediaKind::Movie && !present.contains(&recorded.play.item);
        if is_absent
            && !recorded.guid.is_empty()
            && let Some(item) = by_guid.get(recorded.guid.as_str())
        {
            recorded.play.item = (*item).clone();
        }
    }
}

/// Returns the shows without plays that have the title of a show with plays that the server does not list.
fn shows_added_again<'l>(
    plays: &RecordedPlays,
    shows: &'l [ListedTitle],
) -> impl Iterator<Item = &'l ListedTitle> {
    let present: HashSet<&ItemId> = shows.iter().map(|show| &show.item).collect();
    let (mut played, mut absent_titles) = (HashSet::new(), HashSet::new());
    for play in plays.iter().filter(|play| play.kind == MediaKind::Series) {
        if present.contains(&play.item) {
            played.insert(play.item.clone());
        } else {
            absent_titles.insert(title_key(&play.title));
        }
    }
    let is_added_again = move |show: &&ListedTitle| {
        !played.contains(&show.item) && absent_titles.contains(&title_key(&show.title))
    };
    shows.iter().filter(is_added_again)
}

/// Returns a title in the form in which titles are compared.
fn title_key(title: &str) -> String {
    title.trim().to_lowercase()
}
