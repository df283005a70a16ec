//! Comparison of words that allows for one typing error.

/// Minimum length of a word in which any one letter may be wrong.
const MIN_WORD: usize = 5;
/// Minimum length of a word in which a letter may be missing, doubled or swapped.
const MIN_SHORT_WORD: usize = 4;

/// Returns whether `typed` is `word` with one typing error. Short words allow for fewer errors, because a wrong letter
/// makes another word of them: "done" and "dune".
pub fn is_misspelled(typed: &str, word: &str) -> bool {
    if typed.len().abs_diff(word.len()) > 1 {
        return false;
    }
    let (typed, word): (Vec<char>, Vec<char>) = (typed.chars().collect(), word.chars().collect());
    if word.len() < 3 || typed.first() != word.first() && word.len() <= MIN_WORD {
        return false;
    }
    match word.len() {
        0..MIN_SHORT_WORD => is_swapped(&typed, &word) || doubles_letter(&typed, &word),
        MIN_SHORT_WORD..MIN_WORD => {
            is_swapped(&typed, &word) || doubles_letter(&typed, &word) || lacks_letter(&typed, &word)
        }
        _ => {
            is_swapped(&typed, &word)
                || lacks_letter(&typed, &word)
                || lacks_letter(&word, &typed)
                || has_wrong_letter(&typed, &word)
        }
    }
}

fn is_swapped(typed: &[char], word: &[char]) -> bool {
    let Some(first) = typed.iter().zip(word).position(|(a, b)| a != b) else { return false };
    typed.len() == word.len()
        && first + 1 < word.len()
        && (typed[first], typed[first + 1]) == (word[first + 1], word[first])
        && typed[first + 2..] == word[first + 2..]
}

fn has_wrong_letter(typed: &[char], word: &[char]) -> bool {
    typed.len() == word.len() && typed.iter().zip(word).filter(|(a, b)| a != b).count() == 1
}

/// Returns whether `typed` is `word` without one of its letters.
fn lacks_letter(typed: &[char], word: &[char]) -> bool {
    if typed.len() + 1 != word.len() {
        return false;
    }
    let first = typed.iter().zip(word).take_while(|(a, b)| a == b).count();
    typed[first..] == word[first + 1..]
}

fn doubles_letter(typed: &[char], word: &[char]) -> bool {
    let first = typed.iter().zip(word).take_while(|(a, b)| a == b).count();
    lacks_letter(word, typed) && first > 0 && typed.get(first) == word.get(first - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_typing_error_is_allowed() {
        for (typed, word) in [
            ("donwload", "download"),
            ("downlod", "download"),
            ("delte", "delete"),
            ("remoove", "remove"),
            ("whta", "what"),
            ("hve", "have"),
            ("addd", "add"),
            ("gte", "get"),
        ] {
            assert!(is_misspelled(typed, word), "{typed:?} {word:?}");
        }
    }

    #[test]
    fn other_words_are_not_misspellings() {
        for (typed, word) in
            [("dune", "done"), ("dad", "add"), ("ad", "add"), ("bet", "get"), ("heat", "what"), ("it", "is")]
        {
            assert!(!is_misspelled(typed, word), "{typed:?} {word:?}");
        }
    }
}
