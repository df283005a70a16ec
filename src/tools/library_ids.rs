//! Ids of the titles of a library, by which a moved server is recognized.

use std::sync::Arc;

use jiff::Timestamp;

use super::instance_ref::InstanceRef;
use super::library::ArrInstances;
use super::library_cache::refresh::{CachedLibrary, FreshnessPolicy};
use crate::arr::ArrError;
use crate::conversation::library_sample::{ServerTitles, TitleIds};

impl ArrInstances {
    /// Returns the titles of each instance whose library was loaded.
    pub fn loaded_titles(&self) -> Vec<ServerTitles> {
        let instances = self.instance_refs();
        instances.filter_map(|instance| Some(server_titles(&instance, &*instance.last_loaded()?))).collect()
    }

    /// Loads the titles of an instance. Returns `None` if it is not configured.
    pub async fn load_titles(
        &self,
        slot: &str,
        now: Timestamp,
    ) -> Option<Result<ServerTitles, Arc<ArrError>>> {
        let instance = self.instance_refs().find(|instance| instance.name() == slot)?;
        let loaded = instance.load_library(now, FreshnessPolicy::Usual).await;
        Some(loaded.map(|library| server_titles(&instance, &library)))
    }

    pub(super) fn instance_refs(&self) -> impl Iterator<Item = InstanceRef<'_>> {
        let movies = self.radarr_instances(None).iter().map(InstanceRef::Movies);
        movies.chain(self.sonarr_instances(None).iter().map(InstanceRef::Series))
    }
}

fn server_titles(instance: &InstanceRef<'_>, library: &CachedLibrary) -> ServerTitles {
    let titles = library.entries.titles().iter();
    ServerTitles {
        slot: instance.name(),
        identity: instance.common_api().identity(),
        titles: titles.map(|title| TitleIds { library: title.id, catalog: title.catalog }).collect(),
    }
}
