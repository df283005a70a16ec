//! Cleanup of error messages from Sonarr and Radarr for users: the first line, without file paths.

/// Returns the first line of `text` without absolute paths.
pub(super) fn plain_message(text: &str) -> String {
    let mut rest = text.split(['\n', '\r']).next().unwrap_or_default();
    let mut output = String::new();
    while let Some(start) = find_path_start(rest) {
        let (before, path) = rest.split_at(start);
        match find_closing_quote(before, path) {
            Some(end) => {
                output.push_str(before[..before.len() - 1].trim_end());
                rest = &path[end..];
            }
            None => {
                // An unquoted path may contain spaces, so its end is unknown. The rest of the line is dropped.
                output.push_str(without_lead_in(before));
                rest = "";
            }
        }
    }
    output.push_str(rest);
    output.trim().to_owned()
}

/// Returns the start of an absolute path, which follows whitespace, a quote or a parenthesis, or starts the text.
fn find_path_start(text: &str) -> Option<usize> {
    text.char_indices().map(|(index, _)| index).find(|&index| {
        let previous = text[..index].chars().next_back();
        let is_boundary = previous.is_none_or(|mark| mark.is_whitespace() || "'\"(".contains(mark));
        is_boundary && is_path(&text[index..])
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

/// Returns the index after the quote or parenthesis that closes a path. `before` ends with the opening one.
fn find_closing_quote(before: &str, path: &str) -> Option<usize> {
    let close = match before.chars().next_back()? {
        '(' => ')',
        quote @ ('\'' | '"') => quote,
        _ => return None,
    };
    path.match_indices(close).map(|(index, _)| index + close.len_utf8()).find(|&end| {
        // A quote inside a name is followed by a letter or digit.
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
    fn message_without_a_path_is_unchanged() {
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
    fn unquoted_path_is_removed_with_the_rest_of_the_line() {
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

    fn message() -> impl Strategy<Value = String> {
        let parts =
            ["Folder", "is gone", ":", " ", "\t", "/", "//", "/films", "'", "\"", "(", ")", ".x", "\n", "\r"];
        let joined = proptest::collection::vec(select(parts.to_vec()), 0..9).prop_map(|parts| parts.concat());
        prop_oneof![3 => joined, 1 => any::<String>()]
    }

    proptest! {
        #[test]
        fn any_message_becomes_one_line_without_paths(text in message()) {
            let plain = plain_message(&text);
            assert!(!plain.contains(['\n', '\r']), "{plain:?}");
            let is_path = |word: &str| word.starts_with('/') && word.trim_matches('/').starts_with(char::is_alphanumeric);
            assert!(!plain.split_whitespace().any(is_path), "{plain:?}");
        }
    }
}
