//! Seerr of a scenario, at which titles are requested.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;

use super::scenario_jellyfin::LinkedViewer;
use crate::conversation::transcript::MediaKind;
use crate::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};
use crate::seerr::fake::Permission;
use crate::simulation::SimulatedPeers;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SeerrEntry {
    /// Users of the Seerr, by their names there.
    users: BTreeMap<String, RequesterEntry>,
    /// TMDB ids of the movies that a scan has found.
    movies: Vec<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RequesterEntry {
    /// User of the scenario to whom the account is linked before the first message.
    linked: Option<String>,
    /// An admin has to approve the requests.
    needs_approval: bool,
}

impl SeerrEntry {
    /// Adds the Seerr to the peers, and returns the linked accounts.
    pub(super) fn add_to(
        &self,
        peers: SimulatedPeers,
    ) -> anyhow::Result<(SimulatedPeers, Vec<LinkedViewer>)> {
        let peers = peers.with_seerr();
        let seerr = peers.seerr.as_ref().context("create the Seerr")?;
        for tmdb in &self.movies {
            seerr.add_media(MediaKind::Movie, *tmdb);
        }
        let mut linked = Vec::new();
        for (name, requester) in &self.users {
            let approval = if requester.needs_approval { 0 } else { Permission::AUTO_APPROVE };
            let id = seerr.add_user(name, Permission::REQUEST | Permission::CREATE_ISSUES | approval);
            linked.extend(requester.linked.as_ref().map(|user| LinkedViewer {
                user: user.clone(),
                account: ViewerAccount {
                    server: MediaServerKind::Seerr,
                    id: id.to_string(),
                    name: name.clone(),
                },
            }));
        }
        Ok((peers, linked))
    }
}
