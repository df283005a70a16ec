//! TMDB of a scenario: its titles, people and streaming services.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;

use crate::conversation::transcript::MediaKind;
use crate::discovery::fake::{FakeCatalog, FakeEntry};
use crate::discovery::genres::Genre;
use crate::simulation::SimulatedPeers;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TmdbEntry {
    movies: Vec<FoundEntry>,
    series: Vec<FoundEntry>,
    /// Actors, with the TMDB ids of their movies and shows.
    actors: BTreeMap<String, Vec<i64>>,
    /// Streaming services by name, with the TMDB ids of what they stream.
    services: BTreeMap<String, Vec<i64>>,
    /// TMDB ids of titles that are recommended with another one.
    similar: BTreeMap<i64, Vec<i64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FoundEntry {
    tmdb: i64,
    tvdb: Option<i64>,
    title: String,
    year: u16,
    genres: Vec<String>,
    rating: Option<f64>,
    popularity: Option<f64>,
    minutes: Option<u32>,
    overview: String,
}

impl TmdbEntry {
    /// Adds the TMDB to the peers.
    pub(super) fn add_to(&self, peers: SimulatedPeers) -> anyhow::Result<SimulatedPeers> {
        let catalog = FakeCatalog::default();
        let services: Vec<(u32, &String, &Vec<i64>)> =
            (1..).zip(&self.services).map(|(id, (name, streamed))| (id, name, streamed)).collect();
        let movies = self.movies.iter().map(|entry| (MediaKind::Movie, entry));
        let series = self.series.iter().map(|entry| (MediaKind::Series, entry));
        for (kind, entry) in movies.chain(series) {
            let mut title = entry.to_title(kind)?;
            let streaming = services.iter().filter(|(_, _, streamed)| streamed.contains(&entry.tmdb));
            title.providers = streaming.map(|(id, ..)| *id).collect();
            title.similar = self.similar.get(&entry.tmdb).cloned().unwrap_or_default();
            catalog.add(title);
        }
        for (id, name, _) in services {
            catalog.add_provider(id, name);
        }
        let kind_of = |tmdb: &i64| {
            let is_movie = self.movies.iter().any(|entry| entry.tmdb == *tmdb);
            if is_movie { MediaKind::Movie } else { MediaKind::Series }
        };
        for (id, (name, titles)) in (1..).zip(&self.actors) {
            let titles: Vec<(MediaKind, i64)> = titles.iter().map(|tmdb| (kind_of(tmdb), *tmdb)).collect();
            catalog.add_actor(id, name, &titles);
        }
        Ok(peers.with_tmdb(catalog))
    }
}

impl FoundEntry {
    fn to_title(&self, kind: MediaKind) -> anyhow::Result<FakeEntry> {
        let name = (self.title.as_str(), self.year);
        let title = match kind {
            MediaKind::Movie => FakeEntry::movie(name, self.tmdb),
            MediaKind::Series => FakeEntry { tvdb: self.tvdb, ..FakeEntry::show(name, self.tmdb, 0) },
        };
        let genre = |name: &String| {
            Genre::parse(name)
                .and_then(|genre| genre.id(kind))
                .with_context(|| format!("find the genre {name}"))
        };
        let genres: Vec<u32> = self.genres.iter().map(genre).collect::<anyhow::Result<_>>()?;
        let rating = self.rating.unwrap_or(title.rating);
        let popularity = self.popularity.unwrap_or(title.popularity);
        let minutes = self.minutes.unwrap_or(title.minutes);
        Ok(title.genres(&genres).rated(rating, popularity).minutes(minutes).overview(&self.overview))
    }
}
