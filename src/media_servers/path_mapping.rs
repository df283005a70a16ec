//! Mapping of paths. Sonarr, Radarr and a media server often see the same disk under different paths, such as
//! `/movies/Heat (1995)` and `/media/movies/Heat (1995)`.

use super::LibraryFolder;

/// Returns a path as the media server sees it: below the folder of a library with the same path, or else with the same
/// last name. `None` if no library has such a folder.
pub(super) fn map_path(path: &str, folders: &[LibraryFolder]) -> Option<String> {
    let parts = names(path);
    let mut best: Option<(usize, String)> = None;
    for folder in folders {
        let folder_names = names(&folder.path);
        let Some(last) = folder_names.last() else { continue };
        // The folder of the title itself is never the folder of a library.
        let parents = parts.iter().take(parts.len().saturating_sub(1)).enumerate();
        for (position, _) in parents.filter(|(_, name)| name.eq_ignore_ascii_case(last)) {
            let common = count_common(&parts[..=position], &folder_names);
            let rest = parts[position + 1..].join("/");
            let mapped = format!("{}/{rest}", folder.path.trim_end_matches(['/', '\\']));
            if best.as_ref().is_none_or(|(found, _)| common > *found) {
                best = Some((common, mapped));
            }
        }
    }
    best.map(|(_, mapped)| mapped)
}

fn names(path: &str) -> Vec<&str> {
    path.split(['/', '\\']).filter(|name| !name.is_empty()).collect()
}

/// Returns the number of equal names at the ends of two paths.
fn count_common(one: &[&str], other: &[&str]) -> usize {
    let pairs = one.iter().rev().zip(other.iter().rev());
    pairs.take_while(|(one, other)| one.eq_ignore_ascii_case(other)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, folders: &[&str], expected: Option<&str>) {
        let folder = |path: &&str| LibraryFolder { library: "Library".into(), path: (*path).to_owned() };
        let folders: Vec<LibraryFolder> = folders.iter().map(folder).collect();
        assert_eq!(map_path(path, &folders).as_deref(), expected);
    }

    #[test]
    fn same_path_and_same_last_name_are_mapped() {
        check("/movies/Heat", &["/movies"], Some("/movies/Heat"));
        check("/movies/Heat", &["/tv", "/media/movies/"], Some("/media/movies/Heat"));
        check("D:\\Movies\\Heat", &["/media/movies"], Some("/media/movies/Heat"));
    }

    #[test]
    fn folder_with_more_common_names_wins() {
        let folders = ["/media/kids/movies", "/media/parents/movies"];
        check("/data/parents/movies/Heat", &folders, Some("/media/parents/movies/Heat"));
    }

    #[test]
    fn path_outside_every_library_is_not_mapped() {
        check("/movies/Heat", &["/tv"], None);
        check("/movies", &["/movies"], None);
        check("", &["/movies"], None);
    }
}
