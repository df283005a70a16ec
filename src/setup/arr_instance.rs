//! Configured Sonarr and Radarr instances, as setup and doctor use them.

use crate::arr::common_api::{CommonApi, ServerKind};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::config;
use crate::http::HttpClient;
use crate::outbound_clients::build_library;
use crate::tools::library::ArrInstances;

/// Sonarr or Radarr instance with its client.
pub(crate) struct ConfiguredInstance {
    /// Name in webhook URLs and stored ids, such as `radarr-4k`.
    pub(crate) name: &'static str,
    /// Display name, such as `Radarr 4K`.
    pub(crate) label: &'static str,
    client: InstanceClient,
}

enum InstanceClient {
    Sonarr(Sonarr),
    Radarr(Radarr),
}

impl ConfiguredInstance {
    pub(crate) fn server_kind(&self) -> ServerKind {
        match self.client {
            InstanceClient::Sonarr(_) => ServerKind::Sonarr,
            InstanceClient::Radarr(_) => ServerKind::Radarr,
        }
    }

    pub(crate) fn common_api(&self) -> CommonApi<'_> {
        match &self.client {
            InstanceClient::Sonarr(sonarr) => sonarr.common_api(),
            InstanceClient::Radarr(radarr) => radarr.common_api(),
        }
    }
}

/// Creates the configured instances, regular ones first.
pub(crate) fn configured_instances(
    libraries: &config::Libraries,
    http: &HttpClient,
) -> Vec<ConfiguredInstance> {
    let mut instances = library_instances(&build_library(libraries, http));
    instances.sort_by_key(|instance| instance.name.ends_with("-4k"));
    instances
}

/// Returns the instances of the library of a running program.
pub(crate) fn library_instances(library: &ArrInstances) -> Vec<ConfiguredInstance> {
    let label = |kind, four_k| match (kind, four_k) {
        (ServerKind::Sonarr, false) => "Sonarr",
        (ServerKind::Sonarr, true) => "Sonarr 4K",
        (ServerKind::Radarr, false) => "Radarr",
        (ServerKind::Radarr, true) => "Radarr 4K",
    };
    let series = library.series.iter().map(|instance| ConfiguredInstance {
        name: instance.name,
        label: label(ServerKind::Sonarr, instance.four_k),
        client: InstanceClient::Sonarr(instance.client.clone()),
    });
    let movies = library.movies.iter().map(|instance| ConfiguredInstance {
        name: instance.name,
        label: label(ServerKind::Radarr, instance.four_k),
        client: InstanceClient::Radarr(instance.client.clone()),
    });
    series.chain(movies).collect()
}
