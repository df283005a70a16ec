//! Key of a title: one form for the spellings in which people text it, such as "rocky 2" and "Rocky II".

use super::normalization::normalize_title;

/// Number words with their Roman numerals. The position is the number.
const NUMBERS: [(&str, &str); 21] = [
    ("zero", ""),
    ("one", "i"),
    ("two", "ii"),
    ("three", "iii"),
    ("four", "iv"),
    ("five", "v"),
    ("six", "vi"),
    ("seven", "vii"),
    ("eight", "viii"),
    ("nine", "ix"),
    ("ten", "x"),
    ("eleven", "xi"),
    ("twelve", "xii"),
    ("thirteen", "xiii"),
    ("fourteen", "xiv"),
    ("fifteen", "xv"),
    ("sixteen", "xvi"),
    ("seventeen", "xvii"),
    ("eighteen", "xviii"),
    ("nineteen", "xix"),
    ("twenty", "xx"),
];
/// Words before the number of a sequel.
const PARTS: [&str; 5] = ["part", "chapter", "volume", "vol", "pt"];

/// Returns the key of a title: normalized words, in which numbers are digits and "part" before a number is left out.
pub fn title_key(title: &str) -> String {
    let normalized = normalize_title(title);
    let words: Vec<&str> = normalized.split(' ').collect();
    let mut key: Vec<String> = Vec::with_capacity(words.len());
    for (index, word) in words.iter().enumerate() {
        let is_part = index > 0
            && PARTS.contains(word)
            && words.get(index + 1).is_some_and(|next| number_in(next, true).is_some());
        if !is_part {
            let number = number_in(word, index > 0);
            key.push(number.map_or_else(|| plain_letters(word), |number| number.to_string()));
        }
    }
    key.join(" ")
}

/// Returns whether two keys are equal apart from spaces: "spiderman" and "spider man".
pub fn is_same_key(left: &str, right: &str) -> bool {
    !left.is_empty() && letters(left).eq(letters(right))
}

fn letters(key: &str) -> impl Iterator<Item = u8> {
    key.bytes().filter(|byte| *byte != b' ')
}

/// Returns the spellings of a query with its numbers as words and as Roman numerals.
pub fn spelling_variants(query: &str) -> Vec<String> {
    let normalized = normalize_title(query);
    let spell = |write: fn(&(&str, &str)) -> String| {
        let words =
            normalized.split(' ').map(|word| match number_in(word, true).and_then(|n| NUMBERS.get(n)) {
                Some(number) => write(number),
                None => plain_letters(word),
            });
        words.collect::<Vec<_>>().join(" ")
    };
    let with_words = spell(|(word, _)| (*word).to_owned());
    let with_numerals = spell(|(_, numeral)| (*numeral).to_owned());
    let mut variants = vec![with_words, with_numerals, title_key(query)];
    variants.dedup();
    variants.retain(|variant| *variant != normalized);
    variants
}

/// Parses a number from 1 to 20, in digits or words or as a Roman numeral. A Roman numeral of one letter is no number at
/// the beginning of a title: "I, Robot".
fn number_in(word: &str, allows_numeral: bool) -> Option<usize> {
    let digits =
        word.parse().ok().filter(|number| (1..NUMBERS.len()).contains(number) && !word.starts_with('0'));
    let is_numeral = |numeral: &str| numeral == word && allows_numeral && !matches!(numeral, "" | "i");
    digits.or_else(|| NUMBERS.iter().position(|(name, numeral)| *name == word || is_numeral(numeral)))
}

/// Replaces digits between letters by the letters that they resemble: "se7en".
fn plain_letters(word: &str) -> String {
    let is_disguised = word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.ends_with(|c: char| c.is_ascii_alphabetic())
        && word.contains(|c: char| c.is_ascii_digit());
    if !is_disguised {
        return word.to_owned();
    }
    let letter = |c| match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' => 'a',
        '5' => 's',
        '7' => 'v',
        other => other,
    };
    let plain: String = word.chars().map(letter).collect();
    number_in(&plain, false).map_or(plain, |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_title_have_one_key() {
        for (typed, title) in [
            ("spiderman no way home", "Spider-Man: No Way Home"),
            ("rocky 2", "Rocky II"),
            ("oceans 11", "Ocean's Eleven"),
            ("dune part 2", "Dune: Part Two"),
            ("dune 2", "Dune: Part Two"),
            ("se7en", "Se7en"),
            ("seven", "Se7en"),
            ("the godfather part ii", "The Godfather: Part II"),
            ("amelie", "Am\u{e9}lie"),
            ("walle", "WALL\u{b7}E"),
        ] {
            assert!(is_same_key(&title_key(typed), &title_key(title)), "{typed:?} {title:?}");
        }
    }

    #[test]
    fn different_titles_have_different_keys() {
        for (typed, title) in [
            ("rocky", "Rocky II"),
            ("dune", "Dune: Part Two"),
            ("i robot", "1 Robot"),
            ("part time", "Time"),
            ("rocky 2", "Rocky III"),
            ("", "Rocky"),
        ] {
            assert!(!is_same_key(&title_key(typed), &title_key(title)), "{typed:?} {title:?}");
        }
    }

    #[test]
    fn numbers_are_spelled_in_each_form() {
        assert_eq!(spelling_variants("rocky 2"), ["rocky two", "rocky ii"]);
        assert_eq!(spelling_variants("dune part 2"), ["dune part two", "dune part ii", "dune 2"]);
        assert_eq!(spelling_variants("heat"), [""; 0]);
    }
}
