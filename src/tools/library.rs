//! The libraries the tools work on: every Radarr and Sonarr of the household, by instance name.

use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;

/// All configured instances. At most two of a kind: the usual one and the 4K one.
#[derive(Debug, Clone, Default)]
pub struct Library {
    pub movies: Vec<Instance<Radarr>>,
    pub series: Vec<Instance<Sonarr>>,
}

#[derive(Debug, Clone)]
pub struct Instance<Client> {
    /// `radarr`, `radarr-4k`, `sonarr`, `sonarr-4k`: what stored ids carry.
    pub name: &'static str,
    pub four_k: bool,
    pub client: Client,
}
