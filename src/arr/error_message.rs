//! Cleanup of an error message of an instance so that it can be passed on: its first line, without the file paths of
//! its disks.

/// Returns the first line of `text` without absolute paths.
pub(super) fn plain_message(text: &str) -> String {
    let mut rest = text.split(['\n', '\r']).next().unwrap_or_default();
    let mut kept = String::new();
    while let Some(start) = path_start(rest) {
        let (before, path) = rest.split_at(start);
        match closing_quote(before, path) {
            Some(end) => {
                kept.push_str(before[..before.len() - 1].trim_end());
                rest = &path[end..];
            }
            None => {
                // A bare path may contain spaces, so its end is unknown. The rest of the line is dropped.
                kept.push_str(without_lead_in(before));
                rest = "";
            }
        }
    }
    kept.push_str(rest);
    kept.trim().to_owned()
}

/// Returns the start of an absolute path: after a blank, a quote, a bracket or at the start of the text.
fn path_start(text: &str) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).find(|&at| {
        let boundary =
            text[..at].chars().next_back().is_none_or(|it| it.is_whitespace() || "'\"(".contains(it));
        boundary && is_path(&text[at..])
    })
}

fn is_path(text: &str) -> bool {
    let mut characters = text.chars();
    match (characters.next(), characters.next(), characters.next()) {
        (Some('/'), ..) => {
            let name = text.trim_start_matches('/');
            name.starts_with(|first: char| first.is_alphanumeric() || "._#@-".contains(first))
        }
        (Some('\\'), Some('\\'), _) => true,
        (Some(drive), Some(':'), Some('\\' | '/')) => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

/// Returns the position just after the quote or bracket that closes a path. `before` ends with the opening one.
fn closing_quote(before: &str, path: &str) -> Option<usize> {
    let close = match before.chars().next_back()? {
        '(' => ')',
        quote @ ('\'' | '"') => quote,
        _ => return None,
    };
    path.match_indices(close).map(|(at, _)| at + close.len_utf8()).find(|&end| {
        // A quote within a name is followed by a letter or digit.
        path[end..].chars().next().is_none_or(|next| !next.is_alphanumeric())
    })
}

fn without_lead_in(before: &str) -> &str {
    let before = before.trim_end();
    ["Path:", " in", " at", " from", " to", ":"]
        .iter()
        .find_map(|lead_in| before.strip_suffix(lead_in))
        .unwrap_or(before)
        .trim_end()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};
    use proptest::sample::select;

    use super::plain_message;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(plain_message(text), expected);
    }

    #[test]
    fn sentence_without_a_path_is_unchanged() {
        check("This movie has already been added", "This movie has already been added");
        check("Banned, see http://host.example/rules", "Banned, see http://host.example/rules");
        check("yes and / or no", "yes and / or no");
    }

    #[test]
    fn quoted_path_is_removed_with_its_quotes() {
        check("Path '/films/Ocean's Eleven (2001)' is already configured", "Path is already configured");
        check(r"Root folder 'D:\Films' does not exist", "Root folder does not exist");
        check("The folder (/tv) doesn't exist.", "The folder doesn't exist.");
    }

    #[test]
    fn bare_path_is_removed_with_the_rest() {
        check("No files found in /data/My Show/x.mkv", "No files found");
        check("A movie was not found. Path: /films/x", "A movie was not found.");
        check("Missing:\t/films", "Missing");
        check("Cannot reach //nas/films", "Cannot reach");
    }

    #[test]
    fn only_the_first_line_is_kept() {
        check("Value is null\n   at Some.Code in ./x.cs:line 3", "Value is null");
        check("Value is null\rat Some.Code", "Value is null");
    }

    fn sentence() -> impl Strategy<Value = String> {
        let words =
            ["Folder", "is gone", ":", " ", "\t", "/", "//", "/films", "'", "\"", "(", ")", ".x", "\n", "\r"];
        let words = proptest::collection::vec(select(words.to_vec()), 0..9).prop_map(|words| words.concat());
        prop_oneof![3 => words, 1 => any::<String>()]
    }

    proptest! {
        #[test]
        fn any_message_becomes_one_line_without_paths(text in sentence()) {
            let plain = plain_message(&text);
            assert!(!plain.contains(['\n', '\r']), "{plain:?}");
            let is_path = |word: &str| word.starts_with('/') && word.trim_matches('/').starts_with(char::is_alphanumeric);
            assert!(!plain.split_whitespace().any(is_path), "{plain:?}");
        }
    }
}
