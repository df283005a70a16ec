//! Choice of the root folder for an addition: the folder that the user named, else the one with the most free space.
//! For an ambiguous name, the user is asked.

use serde_json::json;

use super::formatting::{clean_title, format_sentence_list, normalize_name};
use super::library::folder_with_most_space;
use crate::arr::RootFolder;
use crate::conversation::transcript::{CallFailure, FailureCode};

/// Returns the root folder for an addition. Returns `None` if no folder was named and none is accessible.
pub fn choose_folder<'a>(
    folders: &'a [RootFolder],
    name: Option<&str>,
) -> Result<Option<&'a RootFolder>, CallFailure> {
    match name {
        None => Ok(folder_with_most_space(folders)),
        Some(name) => find_named_folder(folders, name).map(Some),
    }
}

/// Returns the only folder with this name, else the only folder whose path contains the name.
fn find_named_folder<'a>(folders: &'a [RootFolder], name: &str) -> Result<&'a RootFolder, CallFailure> {
    let reachable: Vec<&RootFolder> = folders.iter().filter(|folder| folder.free_bytes.is_some()).collect();
    let name = normalize_name(name);
    let by_name = single_match(&reachable, |folder| normalize_name(last_path_part(&folder.path)) == name);
    let by_path_part = || {
        single_match(&reachable, |folder| !name.is_empty() && normalize_name(&folder.path).contains(&name))
    };
    by_name.or_else(by_path_part).ok_or_else(|| which_folder(&reachable))
}

fn single_match<'a>(
    folders: &[&'a RootFolder],
    is_match: impl Fn(&RootFolder) -> bool,
) -> Option<&'a RootFolder> {
    let mut matches = folders.iter().copied().filter(|folder| is_match(folder));
    matches.next().filter(|_| matches.next().is_none())
}

fn which_folder(folders: &[&RootFolder]) -> CallFailure {
    let names: Vec<String> = folders.iter().map(|folder| folder_name(folder, folders)).collect();
    let for_user = (!names.is_empty()).then(|| format!("Which folder: {}?", format_sentence_list(&names)));
    CallFailure::new(
        FailureCode::BadArguments,
        json!({ "field": "folder", "expected": format!("one of {}", names.join(", ")),
            "hint": "ask the user if it is not clear which" }),
        for_user,
    )
}

/// Returns the last part of the path of a folder, preceded by its parent if two folders have the same last part.
fn folder_name(folder: &RootFolder, folders: &[&RootFolder]) -> String {
    let end = last_path_part(&folder.path);
    let same_name_count = folders.iter().filter(|other| last_path_part(&other.path) == end).count();
    let parent = folder.path.trim_end_matches(SEPARATORS).strip_suffix(end).map_or("", last_path_part);
    if same_name_count > 1 && !parent.is_empty() {
        clean_title(&format!("{parent} {end}"))
    } else {
        clean_title(end)
    }
}

const SEPARATORS: [char; 2] = ['/', '\\'];

fn last_path_part(path: &str) -> &str {
    path.trim_end_matches(SEPARATORS).rsplit(SEPARATORS).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(paths: &[&str], name: Option<&str>, expected: Result<Option<&str>, &str>) {
        let free_bytes = |path: &str| (!path.contains("lost")).then_some(path.len() as u64);
        let folders: Vec<RootFolder> = paths
            .iter()
            .map(|path| RootFolder { path: (*path).to_owned(), free_bytes: free_bytes(path) })
            .collect();
        let found = choose_folder(&folders, name);
        let found = found.as_ref().map(|folder| folder.map(|folder| folder.path.as_str()));
        assert_eq!(found.map_err(|failure| failure.for_user.as_deref().unwrap_or_default()), expected);
    }

    const PATHS: [&str; 4] = ["/data/movies", "/data/movies-4k", r"D:\Kids\", "/lost/anime"];

    #[test]
    fn folder_is_found_by_its_name_or_a_unique_part() {
        check(&PATHS, Some("Movies"), Ok(Some("/data/movies")));
        check(&PATHS, Some("kids"), Ok(Some(r"D:\Kids\")));
        check(&PATHS, Some("4k"), Ok(Some("/data/movies-4k")));
        check(&PATHS, None, Ok(Some("/data/movies-4k")));
        check(&PATHS[3..], None, Ok(None));
    }

    #[test]
    fn ambiguous_or_unknown_folder_lists_the_choices() {
        const QUESTION: &str = "Which folder: movies, movies-4k and Kids?";
        check(&PATHS, Some("data"), Err(QUESTION));
        check(&PATHS, Some("cartoons"), Err(QUESTION));
        check(&PATHS, Some("anime"), Err(QUESTION));
        check(&PATHS, Some("  "), Err(QUESTION));
    }

    #[test]
    fn folders_with_the_same_name_are_distinguished_by_their_parents() {
        let paths = ["/mnt/one/tv", "/mnt/two/tv"];
        check(&paths, Some("tv"), Err("Which folder: one tv and two tv?"));
        check(&paths, Some("two tv"), Ok(Some("/mnt/two/tv")));
    }
}
