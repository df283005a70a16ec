//! Movies and shows of a server by the ids of the catalogs. Episodes are not part of it: a household can have hundreds of
//! thousands.

use std::collections::HashMap;

use super::{CatalogId, CatalogIds, ItemId, ServerTitle};
use crate::conversation::transcript::MediaKind;

/// Movies and shows of a server. A title of the library may be several of them, such as two copies of a movie.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TitleIndex {
    titles: Vec<ServerTitle>,
    /// Positions of the titles, sorted by catalog id.
    by_id: Vec<(CatalogId, u32)>,
}

impl TitleIndex {
    /// Builds an index. Of several entries with one item id, the last one counts.
    pub fn new(mut titles: Vec<ServerTitle>) -> Self {
        let newest: HashMap<ItemId, usize> =
            titles.iter().enumerate().map(|(position, title)| (title.item.clone(), position)).collect();
        let mut position = 0;
        titles.retain(|title| {
            position += 1;
            newest.get(&title.item) == Some(&(position - 1))
        });
        titles.shrink_to_fit();
        let mut by_id: Vec<(CatalogId, u32)> = Vec::new();
        for (position, title) in (0..).zip(&titles) {
            by_id.extend(title.ids.ids(title.kind).map(|id| (id, position)));
        }
        by_id.sort_unstable();
        by_id.shrink_to_fit();
        Self { titles, by_id }
    }

    /// Returns an index in which `changed` titles replace those with the same item id.
    pub fn with_changes(&self, changed: Vec<ServerTitle>) -> Self {
        Self::new(self.titles.iter().cloned().chain(changed).collect())
    }

    pub fn titles(&self) -> &[ServerTitle] {
        &self.titles
    }

    /// Returns the entries of one title: those with any of its ids.
    pub fn find(&self, kind: MediaKind, ids: &CatalogIds) -> Vec<&ServerTitle> {
        let mut positions: Vec<u32> = ids.ids(kind).flat_map(|id| self.positions(id)).collect();
        positions.sort_unstable();
        positions.dedup();
        let titles = positions.into_iter().filter_map(|position| self.titles.get(position as usize));
        titles.filter(|title| title.kind == kind).collect()
    }

    pub fn find_item(&self, item: &ItemId) -> Option<&ServerTitle> {
        self.titles.iter().find(|title| title.item == *item)
    }

    fn positions(&self, id: CatalogId) -> impl Iterator<Item = u32> {
        let start = self.by_id.partition_point(|(known, _)| *known < id);
        self.by_id[start..].iter().take_while(move |(known, _)| *known == id).map(|(_, position)| *position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(item: &str, kind: MediaKind, ids: CatalogIds) -> ServerTitle {
        let item = ItemId::new(item);
        ServerTitle { item, kind, ids, title: "Heat".into(), year: 1995, is_playable: true }
    }

    fn items(found: &[&ServerTitle]) -> Vec<String> {
        found.iter().map(|title| title.item.as_str().to_owned()).collect()
    }

    fn tmdb(id: i64) -> CatalogIds {
        CatalogIds { tmdb: Some(id), ..CatalogIds::default() }
    }

    #[test]
    fn both_copies_of_a_movie_are_found_by_any_id() {
        let imdb = CatalogIds { imdb: Some(113_277), ..CatalogIds::default() };
        let both = CatalogIds { tmdb: Some(949), ..imdb };
        let index = TitleIndex::new(vec![
            title("a", MediaKind::Movie, tmdb(949)),
            title("b", MediaKind::Movie, imdb),
            title("c", MediaKind::Movie, tmdb(950)),
        ]);
        assert_eq!(items(&index.find(MediaKind::Movie, &both)), ["a", "b"]);
    }

    #[test]
    fn movie_and_show_with_the_same_id_are_told_apart() {
        let index = TitleIndex::new(vec![
            title("movie", MediaKind::Movie, tmdb(7)),
            title("show", MediaKind::Series, tmdb(7)),
        ]);
        assert_eq!(items(&index.find(MediaKind::Series, &tmdb(7))), ["show"]);
    }

    #[test]
    fn changed_title_is_found_by_its_new_id_only() {
        let index = TitleIndex::new(vec![title("a", MediaKind::Movie, tmdb(1))]);
        let index = index.with_changes(vec![title("a", MediaKind::Movie, tmdb(2))]);
        assert_eq!(items(&index.find(MediaKind::Movie, &tmdb(2))), ["a"]);
        assert_eq!(items(&index.find(MediaKind::Movie, &tmdb(1))), [""; 0]);
    }
}
