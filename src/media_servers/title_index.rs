//! Movies and shows of a server by the ids of the catalogs. Episodes are not part of it: a household can have hundreds of
//! thousands.

use super::{CatalogId, CatalogIds, ItemId, ServerTitle};
use crate::conversation::transcript::MediaKind;

/// Movies and shows of a server. A title of the library may be several of them, such as two copies of a movie.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TitleIndex {
    /// Titles, sorted by item id.
    titles: Vec<ServerTitle>,
    /// Positions of the titles, sorted by the numbers of their catalog ids.
    by_id: Vec<(CatalogId, u32)>,
}

impl TitleIndex {
    /// Builds an index. Of several entries with one item id, the last one counts.
    pub fn new(mut titles: Vec<ServerTitle>) -> Self {
        // A stable order: the entries with one item id stay in theirs.
        titles.sort_by(|a, b| a.item.cmp(&b.item));
        titles.dedup_by(|later, earlier| {
            let is_same = later.item == earlier.item;
            if is_same {
                std::mem::swap(later, earlier);
            }
            is_same
        });
        titles.shrink_to_fit();
        let mut by_id: Vec<(CatalogId, u32)> = Vec::new();
        for (position, title) in (0..).zip(&titles) {
            by_id.extend(title.ids.ids(title.kind).map(|id| (id, position)));
        }
        by_id.sort_unstable_by_key(|(id, position)| (id.number, *position));
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

    /// Returns the entries of one title: those with any of its ids, the most reliable id first.
    pub fn find(&self, kind: MediaKind, ids: &CatalogIds) -> Vec<&ServerTitle> {
        let mut found = Vec::new();
        self.visit_positions(kind, ids, |position| found.extend(self.titles.get(position)));
        found
    }

    /// Calls a function with the positions of the entries of one title, in the order of [`TitleIndex::find`]. It allocates
    /// nothing, for questions about all titles of a library.
    pub fn visit_positions(&self, kind: MediaKind, ids: &CatalogIds, mut visit: impl FnMut(usize)) {
        let ids = ids.by_catalog(kind);
        for (rank, id) in ids.iter().enumerate() {
            let Some(id) = *id else { continue };
            for (position, title) in self.with_id(id) {
                let own_ids = title.ids.by_catalog(kind);
                let mut earlier = ids[..rank].iter().zip(&own_ids);
                let has_earlier_id = earlier.any(|(id, own)| id.is_some() && id == own);
                if title.kind == kind && !has_earlier_id {
                    visit(position);
                }
            }
        }
    }

    pub fn find_item(&self, item: &ItemId) -> Option<&ServerTitle> {
        let position = self.titles.binary_search_by(|title| title.item.cmp(item)).ok()?;
        self.titles.get(position)
    }

    fn with_id(&self, id: CatalogId) -> impl Iterator<Item = (usize, &ServerTitle)> {
        // Numbers are compared faster than ids, and few catalogs have the same number.
        let start = self.by_id.partition_point(|(known, _)| known.number < id.number);
        let same_number = self.by_id[start..].iter().take_while(move |(known, _)| known.number == id.number);
        let with_id = same_number.filter(move |(known, _)| *known == id);
        with_id.filter_map(|(_, position)| {
            let position = *position as usize;
            self.titles.get(position).map(|title| (position, title))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(item: &str, kind: MediaKind, ids: CatalogIds) -> ServerTitle {
        let item = ItemId::new(item);
        ServerTitle { item, kind, ids, title: "Heat".into(), year: 1995, is_playable: true }
    }

    fn items(found: Vec<&ServerTitle>) -> Vec<&str> {
        found.into_iter().map(|title| title.item.as_str()).collect()
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
        assert_eq!(items(index.find(MediaKind::Movie, &both)), ["a", "b"]);
    }

    #[test]
    fn entry_with_several_of_the_ids_is_found_once() {
        let both = CatalogIds { tmdb: Some(949), imdb: Some(113_277), ..CatalogIds::default() };
        let index = TitleIndex::new(vec![
            title("b", MediaKind::Movie, both),
            title("a", MediaKind::Movie, both),
            title("c", MediaKind::Movie, tmdb(950)),
        ]);
        assert_eq!(items(index.find(MediaKind::Movie, &both)), ["a", "b"]);
        assert_eq!(index.find_item(&ItemId::new("c")).map(|title| title.ids), Some(tmdb(950)));
        assert_eq!(index.find_item(&ItemId::new("d")), None);
    }

    #[test]
    fn newest_of_several_entries_with_one_item_id_counts() {
        let entry = |item, id| title(item, MediaKind::Movie, tmdb(id));
        let index = TitleIndex::new(vec![entry("b", 1), entry("a", 4), entry("b", 2), entry("b", 3)]);
        assert_eq!(index.titles(), [entry("a", 4), entry("b", 3)]);
    }

    #[test]
    fn movie_and_show_with_the_same_id_are_told_apart() {
        let index = TitleIndex::new(vec![
            title("movie", MediaKind::Movie, tmdb(7)),
            title("show", MediaKind::Series, tmdb(7)),
        ]);
        assert_eq!(items(index.find(MediaKind::Series, &tmdb(7))), ["show"]);
    }

    #[test]
    fn changed_title_is_found_by_its_new_id_only() {
        let index = TitleIndex::new(vec![title("a", MediaKind::Movie, tmdb(1))]);
        let index = index.with_changes(vec![title("a", MediaKind::Movie, tmdb(2))]);
        assert_eq!(items(index.find(MediaKind::Movie, &tmdb(2))), ["a"]);
        assert_eq!(items(index.find(MediaKind::Movie, &tmdb(1))), [""; 0]);
    }
}
