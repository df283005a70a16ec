//! Titles of a user in the cached libraries, with the space that each holds.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::OwnTitle;
use crate::conversation::transcript::MediaKind;
use crate::tools::library::ArrInstances;
use crate::tools::library_cache::entries::CachedTitle;
use crate::tools::library_cache::loaded_libraries::{LoadedLibraries, LoadedLibrary};

/// Title of a user in a library.
pub(super) struct HeldTitle<'a> {
    pub(super) own: &'a OwnTitle,
    pub(super) library: &'a LoadedLibrary<'a>,
    pub(super) entry: &'a CachedTitle,
}

/// Finds the titles of a user in the libraries, the largest first.
pub(super) fn find_held_titles<'a>(
    own_titles: &'a [OwnTitle],
    loaded: &'a LoadedLibraries<'a>,
) -> Vec<HeldTitle<'a>> {
    let mut held = Vec::new();
    for library in &loaded.libraries {
        let name = library.instance.name();
        let in_library = own_titles.iter().filter(|own| own.instance == name);
        let wanted: HashMap<(MediaKind, i64), &OwnTitle> =
            in_library.map(|own| ((own.kind, own.catalog_id), own)).collect();
        let entries = library.cached.entries.titles().iter();
        held.extend(entries.filter_map(|entry| {
            let own = *wanted.get(&(entry.media_kind(), entry.catalog))?;
            Some(HeldTitle { own, library, entry })
        }));
    }
    held.sort_by_key(|title| (Reverse(title.entry.size_bytes), title.entry.title.clone()));
    held
}

/// Returns the space that the titles of a user hold in the libraries as they were last loaded. Returns `None` if one of
/// these libraries was not loaded yet.
pub fn last_known_space(own_titles: &[OwnTitle], library: &ArrInstances) -> Option<u64> {
    let mut sum = 0_u64;
    for instance in library.instance_refs() {
        let in_library = own_titles.iter().filter(|own| own.instance == instance.name());
        let wanted: HashSet<(MediaKind, i64)> = in_library.map(|own| (own.kind, own.catalog_id)).collect();
        if wanted.is_empty() {
            continue;
        }
        let loaded = instance.last_loaded()?;
        let held = loaded.entries.titles().iter();
        let held = held.filter(|entry| wanted.contains(&(entry.media_kind(), entry.catalog)));
        sum = held.fold(sum, |sum, entry| sum.saturating_add(entry.size_bytes));
    }
    Some(sum)
}

/// Returns the size of all titles.
pub(super) fn sum_sizes(titles: &[HeldTitle<'_>]) -> u64 {
    titles.iter().fold(0, |sum, title| sum.saturating_add(title.entry.size_bytes))
}

/// Returns the kind of the titles, if all have the same.
pub(super) fn common_kind(own_titles: &[OwnTitle]) -> Option<MediaKind> {
    let first = own_titles.first()?.kind;
    own_titles.iter().all(|own| own.kind == first).then_some(first)
}
