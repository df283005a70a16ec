//! TMDB of the demo: it knows the titles of the simulated Sonarr and Radarr, and some of the people in them.

use crate::arr::fake::media_fixtures::FakeTitle;
use crate::conversation::transcript::MediaKind;
use crate::discovery::fake::{FakeCatalog, FakeEntry};
use crate::discovery::genres::Genre;
use crate::simulation::SimulatedPeers;

/// Actors with titles in which they acted.
const ACTORS: [(&str, &[&str]); 8] = [
    ("Tom Hanks", &["Toy Story", "Forrest Gump", "Apollo 13", "Saving Private Ryan", "Catch Me If You Can"]),
    ("Tilda Swinton", &["The Grand Budapest Hotel", "Moonrise Kingdom"]),
    ("Bill Murray", &["Groundhog Day", "Lost in Translation", "Ghostbusters", "Fantastic Mr. Fox"]),
    ("Robert De Niro", &["Heat", "Goodfellas", "Taxi Driver"]),
    ("Bryan Cranston", &["Breaking Bad", "Little Miss Sunshine"]),
    ("Saoirse Ronan", &["Lady Bird", "Little Women", "The Grand Budapest Hotel"]),
    ("Emily Blunt", &["Edge of Tomorrow", "Sicario", "A Quiet Place", "Oppenheimer"]),
    ("Denzel Washington", &["Gladiator II"]),
];
const DIRECTORS: [(&str, &[&str]); 4] = [
    (
        "Christopher Nolan",
        &["Memento", "Inception", "Interstellar", "The Prestige", "The Dark Knight", "Oppenheimer"],
    ),
    ("Greta Gerwig", &["Lady Bird", "Barbie", "Little Women"]),
    ("Wes Anderson", &["The Grand Budapest Hotel", "Moonrise Kingdom", "Fantastic Mr. Fox"]),
    ("Denis Villeneuve", &["Dune", "Arrival", "Sicario", "Blade Runner 2049", "Dune: Part Two"]),
];
/// Titles with others of the same kind that people like as well.
const SIMILAR: [(&str, &[&str]); 4] = [
    ("Severance", &["Black Mirror", "Silo", "Mr. Robot", "Westworld", "The Good Place", "Dark", "Lost"]),
    ("The Bear", &["Atlanta", "Barry", "Hacks", "Succession"]),
    ("Heat", &["The Departed", "Sicario", "L.A. Confidential", "The Dark Knight"]),
    ("Dune", &["Dune: Part Two", "Star Wars", "Children of Men", "2001: A Space Odyssey"]),
];
/// Streaming services by their ids at TMDB. Which titles they stream is made up.
const SERVICES: [(u32, &str); 4] =
    [(8, "Netflix"), (9, "Amazon Prime Video"), (337, "Disney Plus"), (15, "Hulu")];
/// Ids of shows at TMDB are made up from those at TheTVDB.
const SHOW_OFFSET: i64 = 20_000_000;

/// Creates the TMDB of the demo.
pub(super) fn create_tmdb(peers: SimulatedPeers) -> SimulatedPeers {
    let movies = peers.radarr.catalog_titles();
    let mut titles: Vec<FakeEntry> = movies
        .iter()
        .map(|movie| with_facts(FakeEntry::movie((&movie.title, movie.year), movie.catalog_id), movie))
        .collect();
    titles.extend(peers.sonarr.catalog_titles().iter().map(|show| {
        let ids = (SHOW_OFFSET + show.catalog_id, show.catalog_id);
        with_facts(FakeEntry::show((&show.title, show.year), ids.0, ids.1), show)
    }));
    let find = |names: &[&str]| -> Vec<(MediaKind, i64)> {
        let is_named = |entry: &&FakeEntry| names.contains(&entry.title.as_str());
        titles.iter().filter(is_named).map(|entry| (entry.kind, entry.tmdb)).collect()
    };
    let catalog = FakeCatalog::default();
    for (id, name) in SERVICES {
        catalog.add_provider(id, name);
    }
    for (id, (name, names)) in (1..).zip(ACTORS) {
        catalog.add_actor(id, name, &find(names));
    }
    for (id, (name, names)) in (101..).zip(DIRECTORS) {
        catalog.add_director(id, name, &find(names));
    }
    for entry in &titles {
        let similar = SIMILAR.iter().find(|(name, _)| *name == entry.title).map(|(_, names)| find(names));
        let ids: Vec<i64> = similar.unwrap_or_default().into_iter().map(|(_, tmdb)| tmdb).collect();
        catalog.add(entry.clone().similar_to(&ids));
    }
    peers.with_tmdb(catalog)
}

/// Adds the genres, the rating and a made-up service of a title. Well-known titles come first in lists.
fn with_facts<D>(entry: FakeEntry, title: &FakeTitle<D>) -> FakeEntry {
    let kind = entry.kind;
    let genres: Vec<u32> = title.genres.iter().filter_map(|name| Genre::parse(name)?.id(kind)).collect();
    let position = title.catalog_id.unsigned_abs() as usize % (SERVICES.len() + 1);
    let service = SERVICES.get(position).map(|(id, _)| *id);
    let rating = if title.rating > 0.0 { title.rating } else { 7.0 + (title.catalog_id % 15) as f64 / 10.0 };
    let popularity = 20.0 + (title.catalog_id % 60) as f64;
    let entry = entry.genres(&genres).rated(rating, popularity).overview(&title.overview);
    match service {
        Some(id) => entry.on(id),
        None => entry,
    }
}
