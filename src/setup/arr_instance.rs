//! One Sonarr or Radarr by itself: its name, its kind and its server.

use crate::arr::radarr::Radarr;
use crate::arr::server::{App, Server};
use crate::arr::sonarr::Sonarr;
use crate::config;
use crate::http::Http;
use crate::response_budget::ResponseBudget;
use crate::tools::library::Library;

/// One Sonarr or Radarr, as setup and doctor use it.
pub(crate) struct ArrInstance {
    /// Name in addresses and in the library, such as `radarr-4k`.
    pub(crate) name: &'static str,
    /// Name for people, such as `Radarr 4K`.
    pub(crate) label: &'static str,
    client: Client,
}

enum Client {
    Sonarr(Sonarr),
    Radarr(Radarr),
}

impl ArrInstance {
    pub(crate) fn app(&self) -> App {
        match self.client {
            Client::Sonarr(_) => App::Sonarr,
            Client::Radarr(_) => App::Radarr,
        }
    }

    pub(crate) fn server(&self) -> Server<'_> {
        match &self.client {
            Client::Sonarr(sonarr) => sonarr.server(),
            Client::Radarr(radarr) => radarr.server(),
        }
    }
}

/// Builds a client of each configured instance.
pub(crate) fn configured_instances(libraries: &config::Libraries, http: &Http) -> Vec<ArrInstance> {
    let http = http.clone().with_budget(ResponseBudget::default());
    let all = [
        ("sonarr", "Sonarr", App::Sonarr, &libraries.sonarr),
        ("radarr", "Radarr", App::Radarr, &libraries.radarr),
        ("sonarr-4k", "Sonarr 4K", App::Sonarr, &libraries.sonarr_four_k),
        ("radarr-4k", "Radarr 4K", App::Radarr, &libraries.radarr_four_k),
    ];
    let configured = all.into_iter().filter_map(|(name, label, app, library)| {
        let config::Library { url, api_key } = library.clone()?;
        let client = match app {
            App::Sonarr => Client::Sonarr(Sonarr::new(http.clone(), url, api_key)),
            App::Radarr => Client::Radarr(Radarr::new(http.clone(), url, api_key)),
        };
        Some(ArrInstance { name, label, client })
    });
    configured.collect()
}

/// Lists the instances of the library of a running program.
pub(crate) fn library_instances(library: &Library) -> Vec<ArrInstance> {
    let label = |app, four_k| match (app, four_k) {
        (App::Sonarr, false) => "Sonarr",
        (App::Sonarr, true) => "Sonarr 4K",
        (App::Radarr, false) => "Radarr",
        (App::Radarr, true) => "Radarr 4K",
    };
    let series = library.series.iter().map(|instance| ArrInstance {
        name: instance.name,
        label: label(App::Sonarr, instance.four_k),
        client: Client::Sonarr(instance.client.clone()),
    });
    let movies = library.movies.iter().map(|instance| ArrInstance {
        name: instance.name,
        label: label(App::Radarr, instance.four_k),
        client: Client::Radarr(instance.client.clone()),
    });
    series.chain(movies).collect()
}
