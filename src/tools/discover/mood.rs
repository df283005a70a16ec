//! Moods and subjects as genres and keywords of TMDB.

use crate::conversation::mood::Mood;
use crate::conversation::transcript::MediaKind;

const ACTION: u32 = 28;
const ACTION_AND_ADVENTURE: u32 = 10_759;
const COMEDY: u32 = 35;
const CRIME: u32 = 80;
const DRAMA: u32 = 18;
const FAMILY: u32 = 10_751;
const HORROR: u32 = 27;
const MUSIC: u32 = 10_402;
const MYSTERY: u32 = 9_648;
const ROMANCE: u32 = 10_749;
const SCIENCE_FICTION: u32 = 878;
const SCIENCE_FICTION_AND_FANTASY: u32 = 10_765;
const THRILLER: u32 = 53;
const WAR: u32 = 10_752;
const WAR_AND_POLITICS: u32 = 10_768;

/// Genres and keywords of titles with a mood or about a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) struct MoodCriteria {
    /// Word in sentences, such as `scary`.
    pub(in crate::tools) word: &'static str,
    movies: &'static [u32],
    series: &'static [u32],
    /// Genres that a title with the mood does not have.
    pub(in crate::tools) excluded: &'static [u32],
    /// Keywords of which a title has one. Lists of titles do not show them.
    pub(in crate::tools) keywords: &'static [u32],
}

impl MoodCriteria {
    const fn by_genres(word: &'static str, movies: &'static [u32], series: &'static [u32]) -> Self {
        Self { word, movies, series, excluded: &[], keywords: &[] }
    }

    const fn by_keywords(word: &'static str, keywords: &'static [u32]) -> Self {
        Self { word, movies: &[], series: &[], excluded: &[], keywords }
    }

    const fn without(self, excluded: &'static [u32]) -> Self {
        Self { excluded, ..self }
    }

    pub(in crate::tools) fn genres(self, kind: MediaKind) -> &'static [u32] {
        match kind {
            MediaKind::Movie => self.movies,
            MediaKind::Series => self.series,
        }
    }

    /// Returns whether titles of a kind can be found by the mood.
    pub(in crate::tools) fn applies_to(self, kind: MediaKind) -> bool {
        !self.genres(kind).is_empty() || !self.keywords.is_empty()
    }
}

/// Finds a mood by its name or by a word of people, such as `feel_good` or `uplifting`.
pub(in crate::tools) fn parse_mood(text: &str) -> Option<Mood> {
    let words = text.trim().to_lowercase().replace(['_', '-'], " ");
    Mood::from_name(&words.replace(' ', "_")).or_else(|| Mood::from_words(&words))
}

/// Returns the criteria of a mood. The ids of keywords at TMDB do not change.
pub(in crate::tools) fn mood_criteria(mood: Mood) -> MoodCriteria {
    match mood {
        Mood::Funny => MoodCriteria::by_genres("funny", &[COMEDY], &[COMEDY]),
        Mood::Scary => MoodCriteria::by_genres("scary", &[HORROR], &[]),
        Mood::Romantic => MoodCriteria::by_genres("romantic", &[ROMANCE], &[]),
        Mood::Sad => MoodCriteria::by_genres("sad", &[DRAMA], &[DRAMA]).without(&[
            COMEDY,
            ACTION,
            ACTION_AND_ADVENTURE,
        ]),
        Mood::FeelGood => MoodCriteria::by_genres("feel-good", &[COMEDY], &[COMEDY])
            .without(&[HORROR, THRILLER, CRIME, WAR]),
        Mood::Exciting => MoodCriteria::by_genres("exciting", &[ACTION], &[ACTION_AND_ADVENTURE]),
        Mood::Relaxing => {
            MoodCriteria::by_genres("relaxing", &[FAMILY], &[FAMILY]).without(&[HORROR, THRILLER, CRIME, WAR])
        }
        Mood::MindBending => MoodCriteria::by_genres(
            "mind-bending",
            &[SCIENCE_FICTION, MYSTERY],
            &[SCIENCE_FICTION_AND_FANTASY, MYSTERY],
        ),
        Mood::Dark => MoodCriteria::by_genres("dark", &[THRILLER], &[CRIME]).without(&[COMEDY, FAMILY]),
        Mood::Inspiring => MoodCriteria::by_keywords("inspiring", &[9_672]),
        Mood::Family => MoodCriteria::by_genres("for the family", &[FAMILY], &[FAMILY]),
        Mood::Christmas => MoodCriteria::by_keywords("about Christmas", &[207_317]),
        Mood::TrueStory => MoodCriteria::by_keywords("based on a true story", &[9_672]),
        Mood::Heist => MoodCriteria::by_keywords("about a heist", &[10_051]),
        Mood::TimeTravel => MoodCriteria::by_keywords("about time travel", &[4_379]),
        Mood::Zombies => MoodCriteria::by_keywords("about zombies", &[12_377]),
        Mood::Vampires => MoodCriteria::by_keywords("about vampires", &[3_133]),
        Mood::Superheroes => MoodCriteria::by_keywords("about superheroes", &[9_715]),
        Mood::Space => MoodCriteria::by_keywords("about space", &[9_882]),
        Mood::Anime => MoodCriteria::by_keywords("anime", &[210_024]),
        Mood::Musical => MoodCriteria::by_genres("musical", &[MUSIC], &[]),
        Mood::Sports => MoodCriteria::by_keywords("about sports", &[6_075]),
        Mood::War => MoodCriteria::by_genres("about war", &[WAR], &[WAR_AND_POLITICS]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::mood::MOODS;

    #[test]
    fn mood_is_found_by_its_name_and_by_other_words() {
        for text in ["Feel good", "feel-good", "feel_good", "uplifting"] {
            assert_eq!(parse_mood(text), Some(Mood::FeelGood), "{text}");
        }
        assert_eq!(parse_mood("bored"), None);
    }

    #[test]
    fn every_mood_applies_to_movies() {
        assert!(MOODS.iter().all(|(mood, ..)| mood_criteria(*mood).applies_to(MediaKind::Movie)));
    }
}
