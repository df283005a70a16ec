//! Well-known movies and shows of the demo. Title, year, genres and number of episodes are facts; the sizes and the ids at
//! TMDB and TheTVDB are made up.

use super::media_fixtures::{FakeMovie, FakeSeries, movie, series};

/// Title, year, genres.
const MOVIES: &str = include_str!("well_known_movies.tsv");
/// Title, year, seasons, episodes, `ended` or `continuing`, genres.
const SHOWS: &str = include_str!("well_known_shows.tsv");
/// First made-up id, above the ids in use at TMDB and TheTVDB.
const FIRST_ID: i64 = 9_200_001;

/// Returns the movies with an id, without a size.
pub(super) fn well_known_movies() -> impl Iterator<Item = FakeMovie> {
    MOVIES.lines().zip(FIRST_ID..).filter_map(|(line, id)| Some(parse_movie(line)?.tmdb(id)))
}

/// Returns the shows with an id, without a size.
pub(super) fn well_known_shows() -> impl Iterator<Item = FakeSeries> {
    SHOWS.lines().zip(FIRST_ID..).filter_map(|(line, id)| Some(parse_show(line)?.tvdb(id)))
}

fn parse_movie(line: &str) -> Option<FakeMovie> {
    let [title, year, genres] = columns(line)?;
    Some(movie(title).year(year.parse().ok()?).genres(&genre_list(genres)))
}

fn parse_show(line: &str) -> Option<FakeSeries> {
    let [title, year, seasons, episodes, status, genres] = columns(line)?;
    let show = series(title)
        .year(year.parse().ok()?)
        .seasons(seasons.parse().ok()?)
        .episodes(episodes.parse().ok()?)
        .genres(&genre_list(genres));
    match status {
        "ended" => Some(show.ended()),
        "continuing" => Some(show),
        _ => None,
    }
}

fn columns<const N: usize>(line: &str) -> Option<[&str; N]> {
    line.split('\t').collect::<Vec<_>>().try_into().ok()
}

fn genre_list(genres: &str) -> Vec<&str> {
    genres.split(", ").collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::arr::fake::demo_library::create_demo_servers;
    use crate::arr::fake::media_fixtures::FakeTitle;

    /// Returns the titles with their years, each of which must occur once.
    fn titles_of<D>(catalog: &[FakeTitle<D>]) -> BTreeSet<(String, u16)> {
        let titles: BTreeSet<(String, u16)> =
            catalog.iter().map(|title| (title.title.clone(), title.year)).collect();
        assert_eq!(titles.len(), catalog.len());
        titles
    }

    #[test]
    fn every_line_of_the_lists_is_a_title() {
        assert_eq!(well_known_movies().count(), MOVIES.lines().count());
        assert_eq!(well_known_shows().count(), SHOWS.lines().count());
    }

    #[test]
    fn demo_knows_three_hundred_different_titles() {
        let (radarr, sonarr) = create_demo_servers(jiff::Timestamp::UNIX_EPOCH);
        let movies = titles_of(&radarr.lock_state().catalog);
        let shows = titles_of(&sonarr.lock_state().catalog);
        assert!(movies.len() + shows.len() > 300, "{} movies, {} shows", movies.len(), shows.len());
    }
}
