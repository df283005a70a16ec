//! Mood and genre of a description of what to watch.

use super::moods::{MAX_THEME_WORDS, parse_genre};
use crate::conversation::mood::Mood;

/// Genres of moods.
const GENRES: [(&str, &str); 12] = [
    ("funny", "comedy"),
    ("hilarious", "comedy"),
    ("light", "comedy"),
    ("lighthearted", "comedy"),
    ("scary", "horror"),
    ("spooky", "horror"),
    ("creepy", "horror"),
    ("romantic", "romance"),
    ("exciting", "action"),
    ("tense", "thriller"),
    ("sad", "drama"),
    ("sci fi", "science fiction"),
];

/// Returns the genre that the words name or, for a few moods, mean.
pub fn genre_of(words: &str) -> &str {
    GENRES.iter().find(|(mood, _)| *mood == words).map_or(words, |(_, genre)| genre)
}

/// Mood and genre of a description.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    pub mood: Option<Mood>,
    pub genre: Option<String>,
    /// True if the titles are to be short.
    pub is_short: bool,
}

/// Words after which a description is no mood: "not scary".
const NEGATIONS: [&str; 7] = ["not", "no", "non", "isnt", "never", "without", "less"];

impl Description {
    /// Splits the words of a description. Of two moods, the one that is also a genre becomes the genre. Without a mood,
    /// all words are the genre.
    pub fn from_text(text: &str) -> Self {
        let text = text.replace('-', " ");
        // One word, because a part of it is no genre.
        let joined = text.replace("sci fi", "sci-fi").replace("science fiction", "sci-fi");
        let words: Vec<&str> = joined.split_whitespace().collect();
        let (mut moods, mut genres, mut is_short) = (Vec::new(), Vec::new(), false);
        let mut rest = words.as_slice();
        while let Some((first, after)) = rest.split_first() {
            if let Some((mood, length)) = mood_at_start(rest) {
                moods.push((mood, rest[..length].join(" ")));
                rest = &rest[length..];
                continue;
            }
            match *first {
                "short" => is_short = true,
                word => genres.extend(parse_genre(word)),
            }
            rest = after;
        }
        let is_negated = words.iter().any(|word| NEGATIONS.contains(word));
        if is_negated || (moods.is_empty() && !is_short && genres.len() < words.len()) {
            return Self { genre: Some(genre_of(&text).to_owned()), ..Self::default() };
        }
        Self::from_parts(&moods, &genres.join(" ").replace('-', " "), is_short)
    }

    fn from_parts(moods: &[(Mood, String)], genres: &str, is_short: bool) -> Self {
        let is_genre = |(_, words): &&(Mood, String)| genre_of(words) != words;
        let chosen = moods.iter().find(|mood| !is_genre(mood)).or(moods.first());
        let second = moods.iter().filter(is_genre).find(|mood| Some(*mood) != chosen);
        let genre = match (genres, second) {
            ("", second) => second.map(|(_, words)| genre_of(words)),
            (genres, _) => Some(genre_of(genres)),
        };
        Self { mood: chosen.map(|(mood, _)| *mood), genre: genre.map(str::to_owned), is_short }
    }
}

/// Returns the mood that the first words name, and the number of these words.
fn mood_at_start(words: &[&str]) -> Option<(Mood, usize)> {
    let longest = words.len().min(MAX_THEME_WORDS);
    let mut lengths = (1..=longest).rev();
    lengths.find_map(|length| Some((Mood::from_words(&words[..length].join(" "))?, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_is_split_into_mood_and_genre() {
        for (text, mood, genre) in [
            ("scary", Some(Mood::Scary), None),
            ("feel-good", Some(Mood::FeelGood), None),
            ("thrillers", None, Some("thriller")),
            ("comedies", None, Some("comedy")),
            ("funny sci-fi", Some(Mood::Funny), Some("science fiction")),
            ("scary zombie", Some(Mood::Zombies), Some("horror")),
            ("funny scary", Some(Mood::Funny), Some("horror")),
            ("not scary", None, Some("not scary")),
            ("with a happy ending", Some(Mood::FeelGood), None),
            ("about dogs", None, Some("about dogs")),
            ("sci-fi", None, Some("science fiction")),
            ("dark science fiction", Some(Mood::Dark), Some("science fiction")),
            ("based on a true story", Some(Mood::TrueStory), None),
        ] {
            let genre = genre.map(str::to_owned);
            assert_eq!(
                Description::from_text(text),
                Description { mood, genre, is_short: false },
                "{text:?}"
            );
        }
    }
}
