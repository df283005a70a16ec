//! Choice of what a group of people can watch tonight: titles that can be played, that none of them has seen, and that fit
//! the time they have.

use super::answers_prompts;
use crate::conversation::notifications::readiness::Playability;
use crate::conversation::people::naming::is_same_name;
use crate::conversation::text::normalization::normalize_title;
use crate::conversation::text::title::format_title;

/// Name of the tool that proposes titles for tonight.
pub const TONIGHT: &str = "tonight";
/// State of a call that started a vote in a private chat.
pub const VOTE_STARTED: &str = "vote_started";
/// Number of the proposed titles.
pub const MAX_TITLES: usize = 3;

/// Title of the library within the age limits of everybody who takes part.
#[derive(Debug, Clone, PartialEq)]
pub struct TonightTitle {
    pub title: String,
    /// Year, or 0 if unknown.
    pub year: u16,
    /// Length in minutes, or 0 if unknown.
    pub minutes: u16,
    pub genre: Option<String>,
    /// Score by the genres that the people like, and by the rating.
    pub score: f64,
    /// True if nobody of those whose watching is known has seen it.
    pub is_unseen: bool,
    /// Whether a media server plays it; `None` without a media server.
    pub playability: Option<Playability>,
}

impl TonightTitle {
    /// Returns the name with the year.
    pub fn name(&self) -> String {
        format_title(&self.title, self.year)
    }

    fn fits(&self, max_minutes: Option<u16>) -> bool {
        max_minutes.is_none_or(|max| (1..=max).contains(&self.minutes))
    }
}

/// Result of the choice.
#[derive(Debug, Clone, PartialEq)]
pub enum TonightChoice {
    /// Up to three titles, best first.
    Titles(Vec<TonightTitle>),
    /// A media server did not answer, so it is not known what can be played.
    NotAnswered,
}

/// Chooses the best titles that fit.
pub fn choose_titles(candidates: Vec<TonightTitle>, max_minutes: Option<u16>) -> TonightChoice {
    let mut fitting: Vec<TonightTitle> = candidates
        .into_iter()
        .filter(|title| title.is_unseen && title.fits(max_minutes) && !answers_prompts(&title.title))
        .collect();
    if fitting.iter().any(|title| title.playability == Some(Playability::Unknown)) {
        return TonightChoice::NotAnswered;
    }
    fitting.retain(|title| title.playability.is_none_or(|state| state == Playability::Playable));
    fitting.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut names = Vec::new();
    fitting.retain(|title| {
        let name = normalize_title(&title.name());
        let is_new = !names.contains(&name) && names.len() < MAX_TITLES;
        if is_new {
            names.push(name);
        }
        is_new
    });
    TonightChoice::Titles(fitting)
}

/// Person who may take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedPerson<'a> {
    pub name: &'a str,
    /// True for the person who asks.
    pub is_asker: bool,
}

/// Meaning of the names in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedPeople {
    /// Nobody in particular: everybody who can be asked.
    Everybody,
    /// Positions of these people.
    Named(Vec<usize>),
}

/// Question about a name that does not name one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnclearName {
    pub name: String,
    /// People whom the name could mean; none if nobody has it.
    pub candidates: Vec<String>,
}

/// Words for all people.
const EVERYBODY: [&str; 11] = [
    "everyone",
    "everybody",
    "all",
    "we",
    "us",
    "all of us",
    "we all",
    "the family",
    "family",
    "household",
    "the household",
];
/// Words for the person who asks.
const ASKER: [&str; 4] = ["me", "i", "myself", "you"];

/// Finds the people whom a request names. A first name is enough if only one person has it.
pub fn find_named_people(names: &[String], known: &[NamedPerson<'_>]) -> Result<NamedPeople, UnclearName> {
    let mut found = Vec::new();
    for name in names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        let word = name.to_lowercase();
        if EVERYBODY.contains(&word.as_str()) {
            return Ok(NamedPeople::Everybody);
        }
        if ASKER.contains(&word.as_str()) {
            found.extend(known.iter().position(|person| person.is_asker));
            continue;
        }
        found.push(find_person(name, known)?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(if found.is_empty() { NamedPeople::Everybody } else { NamedPeople::Named(found) })
}

fn find_person(name: &str, known: &[NamedPerson<'_>]) -> Result<usize, UnclearName> {
    let positions = |has_name: &dyn Fn(&str) -> bool| -> Vec<usize> {
        known.iter().enumerate().filter(|(_, person)| has_name(person.name)).map(|(index, _)| index).collect()
    };
    let exact = positions(&|known| is_same_name(known, name));
    let found = match exact.is_empty() {
        true => positions(&|known| known.split(' ').next().is_some_and(|first| is_same_name(first, name))),
        false => exact,
    };
    match found.as_slice() {
        [only] => Ok(*only),
        several => Err(UnclearName {
            name: name.to_owned(),
            candidates: several.iter().map(|index| known[*index].name.to_owned()).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(name: &str, minutes: u16, score: f64) -> TonightTitle {
        TonightTitle {
            title: name.to_owned(),
            year: 2000,
            minutes,
            genre: None,
            score,
            is_unseen: true,
            playability: Some(Playability::Playable),
        }
    }

    #[track_caller]
    fn check(candidates: Vec<TonightTitle>, max_minutes: Option<u16>, expected: &[&str]) {
        match choose_titles(candidates, max_minutes) {
            TonightChoice::Titles(titles) => {
                let names: Vec<&str> = titles.iter().map(|title| title.title.as_str()).collect();
                assert_eq!(names, expected);
            }
            TonightChoice::NotAnswered => panic!("not answered"),
        }
    }

    #[test]
    fn three_best_titles_that_nobody_has_seen_are_chosen() {
        let seen = TonightTitle { is_unseen: false, ..title("Heat", 170, 9.0) };
        let gone = TonightTitle { playability: Some(Playability::NotYet), ..title("Ronin", 120, 8.5) };
        let all = vec![
            title("Up", 96, 5.0),
            seen,
            gone,
            title("Alien", 117, 8.0),
            title("Coco", 105, 7.0),
            title("Dune", 155, 6.0),
        ];
        check(all, None, &["Alien", "Coco", "Dune"]);
    }

    #[test]
    fn title_that_is_too_long_or_of_unknown_length_does_not_fit() {
        let all = || vec![title("Dune", 155, 9.0), title("Up", 96, 5.0), title("Lost", 0, 8.0)];
        check(all(), Some(120), &["Up"]);
        check(all(), None, &["Dune", "Lost", "Up"]);
    }

    #[test]
    fn title_is_proposed_once_and_never_as_an_answer_to_a_prompt() {
        let nameless = TonightTitle { year: 0, ..title("Yes", 90, 9.0) };
        check(vec![title("Dune", 155, 9.0), title("Dune", 155, 8.0), nameless], None, &["Dune"]);
    }

    #[test]
    fn nothing_is_chosen_while_a_media_server_does_not_answer() {
        let unknown = TonightTitle { playability: Some(Playability::Unknown), ..title("Heat", 170, 1.0) };
        let all = vec![title("Up", 96, 5.0), unknown.clone()];
        assert_eq!(choose_titles(all, None), TonightChoice::NotAnswered);
        // A title that would not fit anyway says nothing.
        check(vec![title("Up", 96, 5.0), unknown], Some(100), &["Up"]);
    }

    #[test]
    fn library_without_a_media_server_is_enough() {
        check(vec![TonightTitle { playability: None, ..title("Up", 96, 5.0) }], None, &["Up"]);
    }

    fn find(names: &[&str]) -> Result<NamedPeople, UnclearName> {
        let known = [("Ann", true), ("Sam Smith", false), ("Sam Jones", false), ("Dana Reed", false)];
        let known = known.map(|(name, is_asker)| NamedPerson { name, is_asker });
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        find_named_people(&names, &known)
    }

    #[test]
    fn people_are_found_by_their_full_or_first_names() {
        assert_eq!(find(&["dana", "sam jones", "Dana Reed"]), Ok(NamedPeople::Named(vec![2, 3])));
        assert_eq!(find(&["me", "Dana"]), Ok(NamedPeople::Named(vec![0, 3])));
        for all in [&[][..], &["everybody"], &["dana", "all of us"], &[" "]] {
            assert_eq!(find(all), Ok(NamedPeople::Everybody), "{all:?}");
        }
    }

    #[test]
    fn unknown_or_ambiguous_name_is_a_question() {
        let candidates = vec!["Sam Smith".to_owned(), "Sam Jones".to_owned()];
        assert_eq!(find(&["sam"]), Err(UnclearName { name: "sam".to_owned(), candidates }));
        assert_eq!(find(&["Zed"]), Err(UnclearName { name: "Zed".to_owned(), candidates: Vec::new() }));
    }
}
