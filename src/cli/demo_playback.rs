//! Jellyfin of the demo: it shows what the simulated Sonarr and Radarr have on disk, and what the people of the demo have
//! watched.

use crate::app::App;
use crate::conversation::people::naming;
use crate::media_servers::fake::LibraryMirror;
use crate::simulation::SimulatedPeers;
use crate::store::database::db::DbError;

/// People of the demo, each with the movies that they have watched: the TMDB id, and the percentage.
const WATCHED_MOVIES: [(&str, &[(i64, u8)]); 3] = [
    ("Sam", &[(949, 100), (546_554, 100), (329_865, 41)]),
    ("Alex", &[(116_149, 100), (346_648, 100), (354_912, 100)]),
    ("Robin", &[(8_392, 100), (546_554, 35)]),
];

/// Creates the Jellyfin of the demo, with the files of the libraries.
pub(super) fn create_jellyfin(peers: SimulatedPeers) -> (SimulatedPeers, Option<LibraryMirror>) {
    let peers = peers.with_jellyfin();
    let Some(jellyfin) = &peers.jellyfin else { return (peers, None) };
    let household = jellyfin.household.clone();
    let mut mirror = LibraryMirror::new(peers.radarr.clone(), peers.sonarr.clone(), household.clone());
    mirror.scan();
    for (name, movies) in WATCHED_MOVIES {
        let user = household.add_user(name);
        for (tmdb, percent) in movies {
            if let Some(movie) = mirror.movie(*tmdb) {
                household.watch(user, movie, *percent);
            }
        }
    }
    (peers, Some(mirror))
}

/// Links each person of the demo to the Jellyfin user of the same name, as the operator does in the console.
pub(super) async fn link_people(app: &App) -> Result<(), DbError> {
    let decisions = &app.engine.decisions;
    let list = decisions.load_viewer_accounts().await?;
    for found in &list.found.users {
        let has_name = |name: &Option<String>| {
            name.as_ref().is_some_and(|name| naming::is_same_name(name, &found.user.name))
        };
        if let Some(person) = list.users.iter().find(|user| has_name(&user.name)) {
            decisions.link_viewer_account(person.id, found.server, found.user.id.as_str()).await?;
        }
    }
    Ok(())
}
