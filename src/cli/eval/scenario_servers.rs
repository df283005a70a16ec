//! Fake servers of a scenario: changes between messages by paths, and the observed writes. `docs/internals/EVALS.md` lists the
//! paths.

use anyhow::Context;
use jiff::Timestamp;
use serde_json::Value;

use super::fake_libraries::build_fake_servers;
use super::library_entries::LibraryEntry;
use super::scenario_jellyfin::LinkedViewer;
use crate::arr::fake::activity::FakeServers;
use crate::arr::fake::fake_server::FakeServer;
use crate::arr::fake::radarr::FakeRadarr;
use crate::arr::fake::sonarr::FakeSonarr;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::clock::Clock;
use crate::http::HttpClient;
use crate::simulation::{LibraryWrite, SimulatedLibrary, SimulatedPeers};
use crate::tools::library::{ArrInstances, Instance};

pub(super) struct ScenarioServers {
    pub(super) peers: SimulatedPeers,
    four_k: Option<FakeServers>,
    /// Accounts of the Jellyfin and of the Seerr that are linked to users.
    pub(super) viewers: Vec<LinkedViewer>,
}

/// Tool name and id of a changed title: the catalog id for additions, otherwise the library id.
pub(super) type NamedWrite = (String, i64);

impl ScenarioServers {
    pub(super) fn from_entry(library: &LibraryEntry, clock: &Clock) -> anyhow::Result<Self> {
        let FakeServers { radarr, sonarr } = build_fake_servers(library, clock);
        let four_k = library.four_k.as_ref().map(|library| build_fake_servers(library, clock));
        let peers = SimulatedPeers::new(clock.clone(), radarr, sonarr, "https://dialarr.invalid");
        let peers = match &library.tmdb {
            Some(tmdb) => tmdb.add_to(peers)?,
            None => peers,
        };
        let (peers, mut viewers) = match &library.jellyfin {
            Some(jellyfin) => jellyfin.add_to(peers)?,
            None => (peers, Vec::new()),
        };
        let peers = match &library.seerr {
            Some(seerr) => {
                let (peers, requesters) = seerr.add_to(peers)?;
                viewers.extend(requesters);
                peers
            }
            None => peers,
        };
        Ok(Self { peers, four_k, viewers })
    }

    /// Adds the 4K instances, if the scenario has any.
    pub(super) fn add_instances(&self, library: &mut ArrInstances) -> anyhow::Result<()> {
        let Some(FakeServers { radarr, sonarr }) = &self.four_k else { return Ok(()) };
        let movies = Radarr::new(
            HttpClient::in_process(radarr.in_process()),
            "http://radarr4k.invalid".parse()?,
            radarr.api_key().into(),
        );
        let series = Sonarr::new(
            HttpClient::in_process(sonarr.in_process()),
            "http://sonarr4k.invalid".parse()?,
            sonarr.api_key().into(),
        );
        library.movies.push(Instance::new("radarr-4k", true, movies));
        library.series.push(Instance::new("sonarr-4k", true, series));
        Ok(())
    }

    /// Returns the writes to the regular instances since the last call.
    pub(super) fn take_writes(&self) -> Vec<NamedWrite> {
        self.peers.take_writes().iter().map(named_write).collect()
    }

    /// Returns all writes to the 4K instances, movies first.
    pub(super) fn four_k_writes(&self) -> Vec<NamedWrite> {
        let Some(FakeServers { radarr, sonarr }) = &self.four_k else { return Vec::new() };
        let named = |name: &str, ids: Vec<i64>| -> Vec<NamedWrite> {
            ids.into_iter().map(|id| (name.to_owned(), id)).collect()
        };
        [
            named("add_movie_4k", radarr.added_ids()),
            named("remove_movie_4k", radarr.removed_ids()),
            named("add_series_4k", sonarr.added_ids()),
            named("remove_series_4k", sonarr.removed_ids()),
        ]
        .concat()
    }

    /// Returns the quality profiles of the added titles, by catalog id.
    pub(super) fn written_qualities(&self, writes: &[NamedWrite]) -> Vec<(String, String)> {
        let profile = |(tool, id): &NamedWrite| match tool.as_str() {
            "add_movie" => Some((id.to_string(), self.peers.radarr.added_profile(*id)?)),
            "add_series" => Some((id.to_string(), self.peers.sonarr.added_profile(*id)?)),
            _ => None,
        };
        writes.iter().filter_map(profile).collect()
    }

    /// Sets the value at a path such as `movies.7.size_gb` or `radarr.down`.
    pub(super) fn change_value(&self, path: &str, value: &Value) -> anyhow::Result<()> {
        let applied = match path.split('.').collect::<Vec<_>>()[..] {
            [library, id, field] => {
                let id = id.parse().with_context(|| format!("read the id in {path:?}"))?;
                let change =
                    TitleChange::parse_change(field, value).with_context(|| format!("change {path:?}"))?;
                match self.media_path(library)? {
                    MediaPath::Movies(radarr) => change.apply_to(radarr, id),
                    MediaPath::Series(sonarr) => change.apply_to(sonarr, id),
                }
            }
            ["radarr", setting] => apply_setting(&self.peers.radarr, setting, value, self.peers.clock.now()),
            ["sonarr", setting] => apply_setting(&self.peers.sonarr, setting, value, self.peers.clock.now()),
            ["jellyfin", "down"] => {
                let down = value.as_bool().with_context(|| format!("change {path:?}"))?;
                let jellyfin = self.peers.jellyfin.as_ref();
                jellyfin.map(|jellyfin| jellyfin.household.set_status(down.then_some(503)))
            }
            ["tmdb", "down"] => {
                let down = value.as_bool().with_context(|| format!("change {path:?}"))?;
                self.peers.tmdb.as_ref().map(|tmdb| tmdb.set_status(down.then_some(503)))
            }
            _ => None,
        };
        applied.with_context(|| format!("change {path:?} to {value}: not known"))
    }

    pub(super) fn media_path(&self, name: &str) -> anyhow::Result<MediaPath<'_>> {
        let four_k = || self.four_k.as_ref().context("find the 4K instances: the library has none");
        Ok(match name {
            "movies" => MediaPath::Movies(&self.peers.radarr),
            "series" => MediaPath::Series(&self.peers.sonarr),
            "movies_4k" => MediaPath::Movies(&four_k()?.radarr),
            "series_4k" => MediaPath::Series(&four_k()?.sonarr),
            _ => anyhow::bail!("find the library {name:?}"),
        })
    }
}

/// Server with the movies or the series of a path.
pub(super) enum MediaPath<'a> {
    Movies(&'a FakeRadarr),
    Series(&'a FakeSonarr),
}

/// Change to a title that Dialarr did not make.
enum TitleChange {
    Size(u64),
    Title(String),
    Quality(String),
    Monitored(bool),
    Removed,
}

impl TitleChange {
    fn parse_change(field: &str, value: &Value) -> Option<Self> {
        match field {
            "size_gb" => Some(Self::Size((value.as_f64()? * 1e9).max(0.0) as u64)),
            "title" => Some(Self::Title(value.as_str()?.to_owned())),
            "quality" => Some(Self::Quality(value.as_str()?.to_owned())),
            "monitored" => Some(Self::Monitored(value.as_bool()?)),
            "here" => (value.as_bool() == Some(false)).then_some(Self::Removed),
            _ => None,
        }
    }

    fn apply_to<D: Clone>(self, fake: &FakeServer<D>, id: i64) -> Option<()> {
        fake.title(id)?;
        match self {
            Self::Size(bytes) => fake.edit(id, |title| title.size_bytes = bytes),
            Self::Title(name) => fake.edit(id, |title| title.title = name),
            Self::Quality(profile) => fake.edit(id, |title| title.profile = profile),
            Self::Monitored(monitored) => fake.edit(id, |title| title.monitored = monitored),
            Self::Removed => fake.remove(id),
        }
        Some(())
    }
}

/// Sets a fault or another setting of a server.
fn apply_setting<D: Clone>(fake: &FakeServer<D>, setting: &str, value: &Value, now: Timestamp) -> Option<()> {
    let status = || u16::try_from(value.as_u64()?).ok();
    match setting {
        "down" => fake.set_down(value.as_bool()?),
        "fail" => fake.fail_next(status()?),
        "write_done_but" => fake.complete_next_write_with_status(status()?),
        "can_find" => fake.add_release(value.as_str()?),
        "imported" => fake.add_import(value.as_str()?, now),
        "healthy" => value.as_bool()?.then(|| fake.clear_health_problems())?,
        "queue_is_empty" => value.as_bool()?.then(|| fake.clear_queue())?,
        _ => return None,
    }
    Some(())
}

fn named_write(write: &LibraryWrite) -> NamedWrite {
    match write {
        LibraryWrite::Added(SimulatedLibrary::Radarr, id) => ("add_movie".to_owned(), *id),
        LibraryWrite::Added(SimulatedLibrary::Sonarr, id) => ("add_series".to_owned(), *id),
        LibraryWrite::Removed(SimulatedLibrary::Radarr, id) => ("remove_movie".to_owned(), *id),
        LibraryWrite::Removed(SimulatedLibrary::Sonarr, id) => ("remove_series".to_owned(), *id),
    }
}
