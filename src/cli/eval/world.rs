//! The servers of a scenario: wired to the program, changed between its texts, and asked what was written to them.
//! `docs/EVALS.md` lists the paths.

use anyhow::Context;
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::Value;

use super::entries::LibraryEntry;
use super::serving::serve;
use crate::arr::fake::activity::Fakes;
use crate::arr::fake::radarr::FakeRadarr;
use crate::arr::fake::sonarr::FakeSonarr;
use crate::arr::fake::world::Fake;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::clock::Clock;
use crate::http::Http;
use crate::simulation::{Peers, Served, Write};
use crate::tools::library::{Instance, Library};
use crate::tools::shelf::freshness;

pub(super) struct World {
    pub(super) peers: Peers,
    four_k: Option<Fakes>,
}

/// A tool's name and the number of what it changed: TMDB or TVDB for additions, else the library's id.
pub(super) type NamedWrite = (String, i64);

impl World {
    pub(super) fn build(library: &LibraryEntry, clock: &Clock) -> Self {
        let Fakes { radarr, sonarr } = serve(library, clock);
        let four_k = library.four_k.as_ref().map(|library| serve(library, clock));
        Self { peers: Peers::new(clock.clone(), radarr, sonarr, "https://dialarr.invalid"), four_k }
    }

    /// Puts the instances for 4K beside the usual ones.
    pub(super) fn extend(&self, library: &mut Library) -> anyhow::Result<()> {
        let Some(Fakes { radarr, sonarr }) = &self.four_k else { return Ok(()) };
        let movies = Radarr::new(
            Http::in_process(radarr.in_process()),
            "http://radarr4k.invalid".parse()?,
            SecretString::from(radarr.key().to_owned()),
        );
        let shows = Sonarr::new(
            Http::in_process(sonarr.in_process()),
            "http://sonarr4k.invalid".parse()?,
            SecretString::from(sonarr.key().to_owned()),
        );
        library.movies.push(Instance {
            name: "radarr-4k",
            four_k: true,
            client: movies,
            shelf: freshness::Shelf::default(),
        });
        library.series.push(Instance {
            name: "sonarr-4k",
            four_k: true,
            client: shows,
            shelf: freshness::Shelf::default(),
        });
        Ok(())
    }

    /// What was written to the usual instances since the last look, in order.
    pub(super) fn take_writes(&self) -> Vec<NamedWrite> {
        self.peers.take_writes().iter().map(named).collect()
    }

    /// Everything that was written to the instances for 4K, movies first.
    pub(super) fn four_k_writes(&self) -> Vec<NamedWrite> {
        let Some(Fakes { radarr, sonarr }) = &self.four_k else { return Vec::new() };
        let name = |name: &str, ids: Vec<i64>| -> Vec<NamedWrite> {
            ids.into_iter().map(|id| (name.to_owned(), id)).collect()
        };
        [
            name("add_movie_4k", radarr.additions()),
            name("remove_movie_4k", radarr.removals()),
            name("add_series_4k", sonarr.additions()),
            name("remove_series_4k", sonarr.removals()),
        ]
        .concat()
    }

    /// The quality profiles of what was added, by catalogue id.
    pub(super) fn qualities(&self, writes: &[NamedWrite]) -> Vec<(String, String)> {
        let profile = |(tool, id): &NamedWrite| match tool.as_str() {
            "add_movie" => Some((id.to_string(), self.peers.radarr.added_profile(*id)?)),
            "add_series" => Some((id.to_string(), self.peers.sonarr.added_profile(*id)?)),
            _ => None,
        };
        writes.iter().filter_map(profile).collect()
    }

    /// Carries out a change such as `movies.7.size_gb` to 30 or `radarr.down` to true.
    pub(super) fn change(&self, path: &str, value: &Value) -> anyhow::Result<()> {
        let changed = match path.split('.').collect::<Vec<_>>()[..] {
            [shelf, id, field] => {
                let id = id.parse().with_context(|| format!("read the id in {path:?}"))?;
                let change = Change::read(field, value).with_context(|| format!("change {path:?}"))?;
                match self.shelf(shelf)? {
                    Shelf::Movies(radarr) => change.apply(radarr, id),
                    Shelf::Series(sonarr) => change.apply(sonarr, id),
                }
            }
            ["radarr", knob] => turn(&self.peers.radarr, knob, value, self.peers.clock.now()),
            ["sonarr", knob] => turn(&self.peers.sonarr, knob, value, self.peers.clock.now()),
            _ => None,
        };
        changed.with_context(|| format!("change {path:?} to {value}: not known"))
    }

    pub(super) fn shelf(&self, name: &str) -> anyhow::Result<Shelf<'_>> {
        let four_k = || self.four_k.as_ref().context("use the instances for 4K: the library has none");
        Ok(match name {
            "movies" => Shelf::Movies(&self.peers.radarr),
            "series" => Shelf::Series(&self.peers.sonarr),
            "movies_4k" => Shelf::Movies(&four_k()?.radarr),
            "series_4k" => Shelf::Series(&four_k()?.sonarr),
            _ => anyhow::bail!("find the library {name:?}"),
        })
    }
}

/// Where items of one kind are.
pub(super) enum Shelf<'a> {
    Movies(&'a FakeRadarr),
    Series(&'a FakeSonarr),
}

/// What happens to an item behind everyone's back.
enum Change {
    Size(u64),
    Title(String),
    Quality(String),
    Monitored(bool),
    Gone,
}

impl Change {
    fn read(field: &str, value: &Value) -> Option<Self> {
        match field {
            "size_gb" => Some(Self::Size((value.as_f64()? * 1e9).max(0.0) as u64)),
            "title" => Some(Self::Title(value.as_str()?.to_owned())),
            "quality" => Some(Self::Quality(value.as_str()?.to_owned())),
            "monitored" => Some(Self::Monitored(value.as_bool()?)),
            "here" => (value.as_bool() == Some(false)).then_some(Self::Gone),
            _ => None,
        }
    }

    fn apply<D: Clone>(self, fake: &Fake<D>, id: i64) -> Option<()> {
        fake.item(id)?;
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
fn turn<D: Clone>(fake: &Fake<D>, knob: &str, value: &Value, now: Timestamp) -> Option<()> {
    let status = || u16::try_from(value.as_u64()?).ok();
    match knob {
        "down" => fake.down(value.as_bool()?),
        "fail" => fake.fail_next(status()?),
        "write_done_but" => fake.do_next_write_but_answer(status()?),
        "can_find" => fake.can_find(value.as_str()?),
        "imported" => fake.imported(value.as_str()?, now),
        "healthy" => value.as_bool()?.then(|| fake.heal())?,
        "queue_is_empty" => value.as_bool()?.then(|| fake.clear_queue())?,
        _ => return None,
    }
    Some(())
}

fn named(write: &Write) -> NamedWrite {
    match write {
        Write::Added(Served::Radarr, id) => ("add_movie".to_owned(), *id),
        Write::Added(Served::Sonarr, id) => ("add_series".to_owned(), *id),
        Write::Removed(Served::Radarr, id) => ("remove_movie".to_owned(), *id),
        Write::Removed(Served::Sonarr, id) => ("remove_series".to_owned(), *id),
    }
}
