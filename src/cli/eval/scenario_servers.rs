//! Servers of a scenario: connected to the program, changed between its messages, and queried for the writes they
//! received. `docs/EVALS.md` lists the paths.

use anyhow::Context;
use jiff::Timestamp;
use serde_json::Value;

use super::fake_libraries::build_fake_servers;
use super::library_entries::LibraryEntry;
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
}

/// Name of a tool and the number of the changed title: TMDB or TVDB for additions, else the library's id.
pub(super) type NamedWrite = (String, i64);

impl ScenarioServers {
    pub(super) fn from_entry(library: &LibraryEntry, clock: &Clock) -> Self {
        let FakeServers { radarr, sonarr } = build_fake_servers(library, clock);
        let four_k = library.four_k.as_ref().map(|library| build_fake_servers(library, clock));
        Self { peers: SimulatedPeers::new(clock.clone(), radarr, sonarr, "https://dialarr.invalid"), four_k }
    }

    /// Adds the 4K instances beside the usual ones.
    pub(super) fn add_instances(&self, library: &mut ArrInstances) -> anyhow::Result<()> {
        let Some(FakeServers { radarr, sonarr }) = &self.four_k else { return Ok(()) };
        let movies = Radarr::new(
            HttpClient::in_process(radarr.in_process()),
            "http://radarr4k.invalid".parse()?,
            radarr.api_key().into(),
        );
        let shows = Sonarr::new(
            HttpClient::in_process(sonarr.in_process()),
            "http://sonarr4k.invalid".parse()?,
            sonarr.api_key().into(),
        );
        library.movies.push(Instance::new("radarr-4k", true, movies));
        library.series.push(Instance::new("sonarr-4k", true, shows));
        Ok(())
    }

    /// Returns the writes to the usual instances since the last call, in order.
    pub(super) fn take_writes(&self) -> Vec<NamedWrite> {
        self.peers.take_writes().iter().map(named_write).collect()
    }

    /// Returns all writes to the 4K instances, movies first.
    pub(super) fn four_k_writes(&self) -> Vec<NamedWrite> {
        let Some(FakeServers { radarr, sonarr }) = &self.four_k else { return Vec::new() };
        let name = |name: &str, ids: Vec<i64>| -> Vec<NamedWrite> {
            ids.into_iter().map(|id| (name.to_owned(), id)).collect()
        };
        [
            name("add_movie_4k", radarr.added_ids()),
            name("remove_movie_4k", radarr.removed_ids()),
            name("add_series_4k", sonarr.added_ids()),
            name("remove_series_4k", sonarr.removed_ids()),
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

    /// Applies a change such as `movies.7.size_gb` to 30 or `radarr.down` to true.
    pub(super) fn change_value(&self, path: &str, value: &Value) -> anyhow::Result<()> {
        let changed = match path.split('.').collect::<Vec<_>>()[..] {
            [shelf, id, field] => {
                let id = id.parse().with_context(|| format!("read the id in {path:?}"))?;
                let change =
                    TitleChange::parse_change(field, value).with_context(|| format!("change {path:?}"))?;
                match self.media_path(shelf)? {
                    MediaPath::Movies(radarr) => change.apply_to(radarr, id),
                    MediaPath::Series(sonarr) => change.apply_to(sonarr, id),
                }
            }
            ["radarr", knob] => set_fault(&self.peers.radarr, knob, value, self.peers.clock.now()),
            ["sonarr", knob] => set_fault(&self.peers.sonarr, knob, value, self.peers.clock.now()),
            _ => None,
        };
        changed.with_context(|| format!("change {path:?} to {value}: not known"))
    }

    pub(super) fn media_path(&self, name: &str) -> anyhow::Result<MediaPath<'_>> {
        let four_k = || self.four_k.as_ref().context("use the instances for 4K: the library has none");
        Ok(match name {
            "movies" => MediaPath::Movies(&self.peers.radarr),
            "series" => MediaPath::Series(&self.peers.sonarr),
            "movies_4k" => MediaPath::Movies(&four_k()?.radarr),
            "series_4k" => MediaPath::Series(&four_k()?.sonarr),
            _ => anyhow::bail!("find the library {name:?}"),
        })
    }
}

/// Server that holds the titles of one kind.
pub(super) enum MediaPath<'a> {
    Movies(&'a FakeRadarr),
    Series(&'a FakeSonarr),
}

/// Change to a title outside the program's control.
enum TitleChange {
    Size(u64),
    Title(String),
    Quality(String),
    Monitored(bool),
    Gone,
}

impl TitleChange {
    fn parse_change(field: &str, value: &Value) -> Option<Self> {
        match field {
            "size_gb" => Some(Self::Size((value.as_f64()? * 1e9).max(0.0) as u64)),
            "title" => Some(Self::Title(value.as_str()?.to_owned())),
            "quality" => Some(Self::Quality(value.as_str()?.to_owned())),
            "monitored" => Some(Self::Monitored(value.as_bool()?)),
            "here" => (value.as_bool() == Some(false)).then_some(Self::Gone),
            _ => None,
        }
    }

    fn apply_to<D: Clone>(self, fake: &FakeServer<D>, id: i64) -> Option<()> {
        fake.title(id)?;
        match self {
            Self::Size(bytes) => fake.edit(id, |item| item.size_bytes = bytes),
            Self::Title(title) => fake.edit(id, |item| item.title = title),
            Self::Quality(profile) => fake.edit(id, |item| item.profile = profile),
            Self::Monitored(monitored) => fake.edit(id, |item| item.monitored = monitored),
            Self::Gone => fake.remove(id),
        }
        Some(())
    }
}

/// Makes a server misbehave, or behave again.
fn set_fault<D: Clone>(fake: &FakeServer<D>, knob: &str, value: &Value, now: Timestamp) -> Option<()> {
    let status = || u16::try_from(value.as_u64()?).ok();
    match knob {
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
