//! Titles of the libraries, by the ids under which a source knows them.

use std::collections::HashMap;

use crate::conversation::transcript::{MediaKind, MediaRef};
use crate::discovery::FoundTitle;
use crate::tools::library_cache::loaded_libraries::LoadedLibraries;

/// Titles of the libraries by their catalog ids.
pub(super) struct LibraryMarks {
    by_tmdb: HashMap<(MediaKind, i64), OwnedTitle>,
    by_tvdb: HashMap<i64, OwnedTitle>,
}

/// Title of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OwnedTitle {
    /// Index of the library among those that were loaded.
    library: usize,
    pub(super) id: i64,
    /// TheTVDB id of a show.
    pub(super) tvdb: Option<i64>,
    pub(super) is_on_disk: bool,
}

impl LibraryMarks {
    pub(super) fn new(loaded: &LoadedLibraries<'_>) -> Self {
        let mut marks = Self { by_tmdb: HashMap::new(), by_tvdb: HashMap::new() };
        for (library, entries) in loaded.cached_titles().into_iter().enumerate() {
            for title in entries.titles() {
                let (kind, ids) = (title.media_kind(), title.catalog_ids());
                let owned =
                    OwnedTitle { library, id: title.id, tvdb: ids.tvdb, is_on_disk: title.is_on_disk() };
                if let Some(tmdb) = ids.tmdb {
                    marks.by_tmdb.entry((kind, tmdb)).or_insert(owned);
                }
                if let (MediaKind::Series, Some(tvdb)) = (kind, ids.tvdb) {
                    marks.by_tvdb.entry(tvdb).or_insert(owned);
                }
            }
        }
        marks
    }

    /// Returns the title of a library that a found title is, if there is one.
    pub(super) fn find(&self, title: &FoundTitle) -> Option<OwnedTitle> {
        let by_tmdb = self.by_tmdb.get(&(title.kind, title.tmdb));
        by_tmdb.or_else(|| self.by_tvdb.get(&title.tvdb?)).copied()
    }
}

impl OwnedTitle {
    pub(super) fn media_ref(self, loaded: &LoadedLibraries<'_>) -> MediaRef {
        loaded.libraries[self.library].media_ref(self.id)
    }

    pub(super) fn instance_name(self, loaded: &LoadedLibraries<'_>) -> &'static str {
        loaded.libraries[self.library].instance.name()
    }
}
