//! Moods of titles that people ask for, and the words for them.

/// Mood, theme or occasion of a title. Other descriptions are genres.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mood {
    Funny,
    Scary,
    Romantic,
    Sad,
    FeelGood,
    Exciting,
    Relaxing,
    MindBending,
    Dark,
    Inspiring,
    Family,
    Christmas,
    TrueStory,
    Heist,
    TimeTravel,
    Zombies,
    Vampires,
    Superheroes,
    Space,
    Anime,
    Musical,
    Sports,
    War,
}

/// Moods with their names and their words. The words have no hyphens, and a longer phrase includes shorter ones.
pub const MOODS: [(Mood, &str, &[&str]); 23] = [
    (
        Mood::Funny,
        "funny",
        &["funny", "funnier", "hilarious", "humorous", "witty", "silly", "goofy", "laugh out loud"],
    ),
    (
        Mood::Scary,
        "scary",
        &["scary", "scarier", "spooky", "creepy", "terrifying", "frightening", "chilling"],
    ),
    (Mood::Romantic, "romantic", &["romantic", "romcom", "romcoms", "rom com", "rom coms"]),
    (
        Mood::Sad,
        "sad",
        &["sad", "sadder", "heartbreaking", "depressing", "tearjerker", "tearjerkers", "tear jerker"],
    ),
    (
        Mood::FeelGood,
        "feel_good",
        &[
            "feel good",
            "feelgood",
            "uplifting",
            "heartwarming",
            "heart warming",
            "wholesome",
            "cheerful",
            "happy",
            "happier",
        ],
    ),
    (
        Mood::Exciting,
        "exciting",
        &["exciting", "thrilling", "action packed", "gripping", "fast paced", "edge of your seat"],
    ),
    (
        Mood::Relaxing,
        "relaxing",
        &["relaxing", "relaxed", "chill", "calm", "calming", "cozy", "cosy", "soothing", "laid back"],
    ),
    (
        Mood::MindBending,
        "mind_bending",
        &[
            "mind bending",
            "mindbending",
            "mind bender",
            "mind benders",
            "mind blowing",
            "mind boggling",
            "trippy",
        ],
    ),
    (Mood::Dark, "dark", &["dark", "darker", "gritty", "bleak", "grim", "disturbing"]),
    (Mood::Inspiring, "inspiring", &["inspiring", "inspirational", "inspired", "motivational", "motivating"]),
    (
        Mood::Family,
        "family",
        &[
            "family",
            "family friendly",
            "kid",
            "kids",
            "kid friendly",
            "childrens",
            "for the family",
            "for the whole family",
        ],
    ),
    (Mood::Christmas, "christmas", &["christmas", "xmas", "x mas", "christmassy", "festive", "holiday"]),
    (
        Mood::TrueStory,
        "true_story",
        &[
            "true story",
            "true stories",
            "based on a true story",
            "based on true story",
            "based on true stories",
            "based on a real story",
            "based on true events",
            "based on real events",
            "based on real life",
            "inspired by a true story",
            "inspired by true events",
            "inspired by real events",
        ],
    ),
    (Mood::Heist, "heist", &["heist", "heists", "robbery", "bank robbery", "caper", "capers"]),
    (
        Mood::TimeTravel,
        "time_travel",
        &["time travel", "time traveling", "time travelling", "time traveler", "time loop", "time loops"],
    ),
    (Mood::Zombies, "zombies", &["zombie", "zombies", "zombie apocalypse"]),
    (Mood::Vampires, "vampires", &["vampire", "vampires"]),
    (
        Mood::Superheroes,
        "superheroes",
        &["superhero", "superheroes", "super hero", "super heroes", "super heros", "comic book"],
    ),
    (Mood::Space, "space", &["space", "outer space", "set in space"]),
    (Mood::Anime, "anime", &["anime", "animes"]),
    (Mood::Musical, "musical", &["musical", "musicals"]),
    (Mood::Sports, "sports", &["sports", "sport"]),
    (Mood::War, "war", &["war"]),
];

impl Mood {
    pub fn name(self) -> &'static str {
        let listed = MOODS.iter().find(|(mood, _, _)| *mood == self);
        listed.map_or("", |(_, name, _)| name)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        MOODS.iter().find(|(_, listed, _)| *listed == name).map(|(mood, _, _)| *mood)
    }

    /// Returns the mood that the words name, in lower case and without hyphens.
    pub fn from_words(words: &str) -> Option<Self> {
        MOODS.iter().find(|(_, _, listed)| listed.contains(&words)).map(|(mood, _, _)| *mood)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_mood_is_its_json() {
        for (mood, name, _) in MOODS {
            assert_eq!(serde_json::to_value(mood).unwrap(), name);
            assert_eq!((mood.name(), Mood::from_name(name)), (name, Some(mood)));
        }
        assert_eq!(Mood::from_name("bored"), None);
    }

    #[test]
    fn words_name_one_mood() {
        let all: Vec<&str> = MOODS.iter().flat_map(|(_, _, words)| words.iter().copied()).collect();
        for (index, words) in all.iter().enumerate() {
            assert!(!all[..index].contains(words), "{words:?}");
        }
        assert_eq!(Mood::from_words("based on a true story"), Some(Mood::TrueStory));
    }
}
