//! Ids by which catalogs know a title. They are the only evidence that a title on a server is one of the library.

use super::transcript::MediaKind;

/// Ids of a title at the catalogs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CatalogIds {
    pub tmdb: Option<i64>,
    pub tvdb: Option<i64>,
    /// Number in an id such as `tt0113277`.
    pub imdb: Option<i64>,
}

/// Id of a title at one catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogId {
    pub number: i64,
    pub catalog: Catalog,
}

/// Catalog of titles. Ids of movies and of shows overlap, except at IMDb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Catalog {
    Tmdb(MediaKind),
    Tvdb(MediaKind),
    Imdb,
}

impl CatalogIds {
    /// Returns the ids of a title of the library, which Radarr knows by TMDB and Sonarr by TheTVDB.
    pub fn of_library(kind: MediaKind, catalog_id: i64) -> Self {
        match kind {
            MediaKind::Movie => Self { tmdb: Some(catalog_id), ..Self::default() },
            MediaKind::Series => Self { tvdb: Some(catalog_id), ..Self::default() },
        }
    }

    /// Adds an id as servers name it: `Tmdb` and `949`, `imdb` and `tt0113277`. Unknown catalogs and unreadable ids are
    /// skipped.
    pub fn add(&mut self, catalog: &str, id: &str) {
        let number = |digits: &str| digits.parse().ok().filter(|number: &i64| *number > 0);
        match catalog.to_ascii_lowercase().as_str() {
            "tmdb" | "themoviedb" => self.tmdb = self.tmdb.or(number(id)),
            "tvdb" | "thetvdb" => self.tvdb = self.tvdb.or(number(id)),
            "imdb" => self.imdb = self.imdb.or(id.strip_prefix("tt").and_then(number)),
            _ => {}
        }
    }

    /// Returns the ids, in the order of their reliability for titles of this kind.
    pub fn ids(&self, kind: MediaKind) -> impl Iterator<Item = CatalogId> + use<> {
        self.by_catalog(kind).into_iter().flatten()
    }

    /// Returns the id at each catalog, in the order of their reliability for titles of this kind.
    pub fn by_catalog(&self, kind: MediaKind) -> [Option<CatalogId>; 3] {
        let tmdb = self.tmdb.map(|number| CatalogId { number, catalog: Catalog::Tmdb(kind) });
        let tvdb = self.tvdb.map(|number| CatalogId { number, catalog: Catalog::Tvdb(kind) });
        let imdb = self.imdb.map(|number| CatalogId { number, catalog: Catalog::Imdb });
        match kind {
            MediaKind::Movie => [tmdb, tvdb, imdb],
            MediaKind::Series => [tvdb, tmdb, imdb],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_any_case_and_the_first_of_a_catalog_wins() {
        let mut ids = CatalogIds::default();
        for (catalog, id) in [("Tmdb", "949"), ("TMDB", "1"), ("Imdb", "tt0113277"), ("Zap2It", "5")] {
            ids.add(catalog, id);
        }
        assert_eq!(ids, CatalogIds { tmdb: Some(949), tvdb: None, imdb: Some(113_277) });
    }

    #[test]
    fn unreadable_ids_are_skipped() {
        let mut ids = CatalogIds::default();
        for (catalog, id) in [("Tmdb", ""), ("Tvdb", "-4"), ("Tmdb", "0"), ("Imdb", "113277")] {
            ids.add(catalog, id);
        }
        assert_eq!(ids, CatalogIds::default());
    }

    #[test]
    fn most_reliable_id_of_the_kind_comes_first() {
        let ids = CatalogIds { tmdb: Some(1), tvdb: Some(2), imdb: Some(3) };
        let numbers = |kind| ids.ids(kind).map(|id| id.number).collect::<Vec<_>>();
        assert_eq!(numbers(MediaKind::Movie), [1, 2, 3]);
        assert_eq!(numbers(MediaKind::Series), [2, 1, 3]);
    }
}
