//! Episodes of one show that a person has watched, on all servers and with all linked accounts.

use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;

use super::playability::{ConnectedServer, MediaServers};
use super::{CatalogIds, EpisodePlay, ServerError, ServerUserId};
use crate::conversation::transcript::MediaKind;
use crate::conversation::viewer_accounts::ViewerAccount;

impl MediaServers {
    /// Reads which episodes of a show a person with these accounts has finished or started. Returns `None` if a server
    /// did not answer.
    pub async fn fetch_episode_plays(
        &self,
        accounts: &[ViewerAccount],
        show: &CatalogIds,
        now: Timestamp,
    ) -> Option<Vec<EpisodePlay>> {
        let asked = self.each_account(accounts);
        let fetch = |(connected, user): (Arc<ConnectedServer>, ServerUserId)| async move {
            connected.within_timeout(connected.fetch_episode_plays(&user, show, now)).await
        };
        let answers = join_all(asked.found.into_iter().map(fetch)).await;
        let plays: Option<Vec<Vec<EpisodePlay>>> = answers.into_iter().collect();
        plays.filter(|_| !asked.is_incomplete).map(|plays| plays.concat())
    }
}

impl ConnectedServer {
    /// Reads the plays of the copies of a show by one user.
    async fn fetch_episode_plays(
        self: &Arc<Self>,
        user: &ServerUserId,
        show: &CatalogIds,
        now: Timestamp,
    ) -> Result<Vec<EpisodePlay>, ServerError> {
        let index = self.load_titles(now).await?;
        let mut plays = Vec::new();
        for copy in index.find(MediaKind::Series, show) {
            plays.extend(self.server.fetch_episode_plays(user, copy).await?);
        }
        Ok(plays)
    }
}
