//! Numbers in words and digits, and positions in a list.

use super::token::Token;

/// Maximum number of a position in a list.
const MAX_POSITION: u32 = 20;

const NUMBER_WORDS: [&str; 21] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];
const ORDINAL_WORDS: [&str; 11] =
    ["zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

/// Parses "3", "03" and "three".
pub fn parse_number(word: &str) -> Option<u32> {
    let spelled = NUMBER_WORDS.iter().position(|number| *number == word);
    let spelled = spelled.and_then(|index| u32::try_from(index).ok());
    // A longer number is no number of a list, a season or an episode.
    spelled
        .or_else(|| word.parse().ok().filter(|_| word.len() <= 4 && word.bytes().all(|b| b.is_ascii_digit())))
}

/// Parses "3rd" and "third".
pub fn parse_ordinal(word: &str) -> Option<u32> {
    let spelled = ORDINAL_WORDS.iter().position(|number| *number == word);
    let spelled = spelled.and_then(|index| u32::try_from(index).ok());
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|suffix| word.strip_suffix(suffix));
    spelled.or_else(|| digits.and_then(parse_number)).filter(|number| *number > 0)
}

/// Parses all of the tokens as positions in a list: "2", "the second one", "1 and 3".
pub fn parse_positions(tokens: &[Token]) -> Option<Vec<u8>> {
    let mut positions = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let word = token.word.as_str();
        // "One" ends "the second one", and is a number anywhere else.
        let is_noun =
            word == "one" && index > 0 && !positions.is_empty() && !follows_separator(tokens, index);
        if is_noun
            || matches!(word, "and" | "number" | "numbers" | "option" | "options" | "the" | "no" | "nr")
        {
            continue;
        }
        let number = parse_number(word).or_else(|| parse_ordinal(word))?;
        let is_position = (1..=MAX_POSITION).contains(&number) && !word.starts_with('0');
        let number = u8::try_from(number).ok().filter(|_| is_position)?;
        if !positions.contains(&number) {
            positions.push(number);
        }
    }
    (!positions.is_empty()).then_some(positions)
}

fn follows_separator(tokens: &[Token], index: usize) -> bool {
    let before = index.checked_sub(1).and_then(|before| tokens.get(before));
    before.is_some_and(|token| token.ends_item || token.word == "and")
}

#[cfg(test)]
mod tests {
    use super::super::token::tokenize;
    use super::*;

    #[test]
    fn positions_are_numbers_or_ordinals() {
        for (text, positions) in [
            ("2", Some(vec![2])),
            ("#2.", Some(vec![2])),
            ("the second one", Some(vec![2])),
            ("number one", Some(vec![1])),
            ("1, 3 and 4th", Some(vec![1, 3, 4])),
            ("one and two", Some(vec![1, 2])),
            ("0", None),
            ("1917", None),
            ("2 movies", None),
        ] {
            assert_eq!(parse_positions(&tokenize(text)), positions, "{text:?}");
        }
    }
}
