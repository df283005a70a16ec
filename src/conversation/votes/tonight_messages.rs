//! Texts about what people can watch tonight, each of two SMS segments at most.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::tonight::{TonightTitle, UnclearName};
use super::vote_decision::VoteDecision;
use super::vote_messages::{
    format_ballot, format_hint, format_people, format_question, format_result, format_time, join_with_and,
};
use super::{CheckedLimit, InvalidVote, Tally, VoteQuestion};
use crate::conversation::text::segments::fits_two_segments;
use crate::conversation::text::title::{clean_line, format_title, quote_text};

/// Question of a vote about tonight.
const QUESTION: &str = "What should we watch tonight?";
/// Longest titles in a text, from the first that fits.
const TITLE_LENGTHS: [usize; 5] = [50, 40, 30, 22, 14];

/// People and times that the messages about a proposal name.
#[derive(Debug, Clone)]
pub struct TonightPeople<'a> {
    /// Name of the person who asks.
    pub asker: &'a str,
    /// People who are asked.
    pub asked: &'a [String],
    /// Named people who cannot be asked now.
    pub unreachable: &'a [String],
    /// People whose watching is unknown; the person who asks is `you`.
    pub unlinked: &'a [String],
    /// True if only the person who asks takes part.
    pub is_alone: bool,
    /// True if the text may say that nobody has seen the titles.
    pub says_unseen: bool,
}

/// Vote about titles, with the text to the person who starts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TonightVote {
    pub question: VoteQuestion,
    pub text: String,
}

/// Formats a vote about titles in private chats. Titles are shortened until every message fits.
pub fn format_vote(
    titles: &[TonightTitle],
    people: &TonightPeople<'_>,
    limit: CheckedLimit,
    (closes_at, zone): (Timestamp, &TimeZone),
) -> Result<TonightVote, InvalidVote> {
    let mut shortest = Err(InvalidVote::TooFew);
    for has_names in [true, false] {
        for length in TITLE_LENGTHS {
            let question = match build_question(titles, length, limit) {
                Ok(question) => question,
                // Shortened titles may be the same.
                Err(error) => {
                    shortest = shortest.or(Err(error));
                    continue;
                }
            };
            let asked = if has_names { format_people(people.asked) } else { count_people(people.asked) };
            let notes = people.format_notes(has_names);
            let hint = format_hint(closes_at, zone);
            let text = format!("I asked {asked}. {}\n{notes}{hint}", format_question(&question));
            let ballot = format_ballot(&question, people.asker, closes_at, zone);
            let texts = [&text, &ballot, &people.format_longest_result(&question)];
            if texts.iter().all(|text| fits_two_segments(text)) {
                return Ok(TonightVote { question, text });
            }
            shortest = Ok(TonightVote { question, text });
        }
    }
    shortest
}

/// Builds the question of a poll, and formats the text beside it.
pub fn format_poll(
    titles: &[TonightTitle],
    has_unlinked: bool,
    limit: CheckedLimit,
    (closes_at, zone): (Timestamp, &TimeZone),
) -> Result<TonightVote, InvalidVote> {
    let question = build_question(titles, TITLE_LENGTHS[0], limit)?;
    let note = if has_unlinked { " I can't see what everybody here has watched." } else { "" };
    let text = format!("Choose in the poll until {}.{note}", format_time(closes_at, zone));
    Ok(TonightVote { question, text })
}

fn build_question(
    titles: &[TonightTitle],
    length: usize,
    limit: CheckedLimit,
) -> Result<VoteQuestion, InvalidVote> {
    let names: Vec<String> = titles.iter().map(|title| shorten_name(title, length)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let has_genre = length == TITLE_LENGTHS[0];
    let reasons = titles.iter().map(|title| format_reason(title, has_genre)).collect();
    Ok(VoteQuestion::new(Some(QUESTION), &names)?.with_checked_options(reasons, limit))
}

fn shorten_name(title: &TonightTitle, length: usize) -> String {
    format_title(&clean_line(&title.title, length).unwrap_or_default(), title.year)
}

/// Formats why a title is proposed, such as `1 h 44 min, Comedy`.
fn format_reason(title: &TonightTitle, has_genre: bool) -> String {
    let length = (title.minutes > 0).then(|| format_minutes(title.minutes));
    let genre = title.genre.as_deref().filter(|_| has_genre || length.is_none());
    let genre = genre.and_then(|genre| clean_line(genre, 20));
    length.into_iter().chain(genre).collect::<Vec<_>>().join(", ")
}

fn format_minutes(minutes: u16) -> String {
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

fn count_people(names: &[String]) -> String {
    if names.len() == 1 { "one person".to_owned() } else { format!("{} people", names.len()) }
}

impl TonightPeople<'_> {
    /// Formats the result of a tie between all options, which the choice of the person with the longest name decides.
    fn format_longest_result(&self, question: &VoteQuestion) -> String {
        let numbers = || (1..).zip(question.options());
        let tally = Tally::count(question, numbers().map(|(number, _)| number));
        let winner = numbers().max_by_key(|(_, option)| option.chars().count()).map(|(number, _)| number);
        let names = self.asked.iter().map(String::as_str).chain([self.asker]);
        let name = names.max_by_key(|name| name.chars().count());
        format_result(question, &VoteDecision { tally, winner, tie_breaker: None }, name)
    }

    /// Formats what the person who asks should know about the others, as a line.
    fn format_notes(&self, has_names: bool) -> String {
        let unseen = if self.is_alone { "You have not seen them." } else { "None of you has seen them." };
        let unseen = self.says_unseen.then(|| unseen.to_owned());
        let unlinked = match self.unlinked {
            [] => None,
            names if has_names && names.len() <= 2 => Some(format_unlinked(names)),
            _ => Some("I can't see what some of you have watched.".to_owned()),
        };
        let unreachable = match self.unreachable {
            [] => None,
            names if has_names => Some(format!("I can't text {} right now.", format_people(names))),
            names => Some(format!("I can't text {} right now.", count_people(names))),
        };
        let notes: Vec<String> = [unseen, unlinked, unreachable].into_iter().flatten().collect();
        if notes.is_empty() { String::new() } else { format!("{}\n", notes.join(" ")) }
    }
}

/// Formats that it is not known what these people have watched. The person who asks is `you`.
fn format_unlinked(names: &[String]) -> String {
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let verb = if words.len() == 1 && words != ["you"] { "has" } else { "have" };
    format!("I can't see what {} {verb} watched.", join_with_and(&words))
}

/// Formats titles without a vote, because nobody else takes part.
pub fn format_suggestions(titles: &[TonightTitle], people: &TonightPeople<'_>) -> String {
    let format = |has_names: bool, length: usize| {
        let lines = titles.iter().map(|title| {
            let reason = format_reason(title, length == TITLE_LENGTHS[0]);
            let comma = if reason.is_empty() { "" } else { ", " };
            format!("\n- {}{comma}{reason}", shorten_name(title, length))
        });
        let (lines, notes) = (lines.collect::<String>(), people.format_notes(has_names));
        format!("You could watch:{lines}\n{notes}").trim_end().to_owned()
    };
    let fits = |text: &String| fits_two_segments(text);
    let with_names = TITLE_LENGTHS.map(|length| format(true, length)).into_iter();
    let mut all = with_names.chain(TITLE_LENGTHS.map(|length| format(false, length)));
    all.find(fits).unwrap_or_else(|| format(false, TITLE_LENGTHS[4]))
}

/// Formats that no title fits.
pub fn format_nothing(max_minutes: Option<u16>) -> String {
    match max_minutes {
        Some(minutes) => {
            format!("I found nothing in the library of up to {} for tonight.", format_minutes(minutes))
        }
        None => "I found nothing in the library for tonight.".to_owned(),
    }
}

/// Formats that nothing is proposed, because a media server does not answer.
pub fn format_not_answered(labels: &[&str]) -> String {
    let server = labels.first().copied().unwrap_or("The media server");
    format!("{server} does not answer, so I can't tell what you can watch. Please ask me again later.")
}

/// Formats the question about a name.
pub fn format_unclear_name(unclear: &UnclearName) -> String {
    let candidates: Vec<&str> = unclear.candidates.iter().map(String::as_str).collect();
    match candidates.as_slice() {
        [] => format!("I don't know anybody called {}. Who do you mean?", quote_text(&unclear.name)),
        [first @ .., last] if !first.is_empty() && first.len() < 4 => {
            format!("Who do you mean, {} or {last}?", first.join(", "))
        }
        _ => format!("I know several people called {}. Who do you mean?", quote_text(&unclear.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::notifications::readiness::Playability;
    use crate::conversation::rating_caps::MinimumAge;
    use crate::conversation::text::normalization::contains_phrase;
    use crate::conversation::transcript::MediaKind;

    const LIMIT: CheckedLimit = CheckedLimit { kind: MediaKind::Movie, cap: Some(MinimumAge(13)) };

    fn title(name: &str, minutes: u16) -> TonightTitle {
        TonightTitle {
            title: name.to_owned(),
            year: 1995,
            minutes,
            genre: Some("Crime".to_owned()),
            score: 1.0,
            is_unseen: true,
            playability: Some(Playability::Playable),
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn vote(titles: &[TonightTitle], people: &TonightPeople<'_>) -> TonightVote {
        let closes_at = Timestamp::from_second(79_200 - 1200).unwrap();
        format_vote(titles, people, LIMIT, (closes_at, &TimeZone::UTC)).unwrap()
    }

    #[test]
    fn asker_reads_the_options_with_reasons_and_what_is_unknown() {
        let (asked, unreachable, unlinked) = (names(&["Sam", "Dana"]), names(&["Kim"]), names(&["Dana"]));
        let people = TonightPeople {
            asker: "Ann",
            asked: &asked,
            unreachable: &unreachable,
            unlinked: &unlinked,
            says_unseen: true,
            is_alone: false,
        };
        let vote = vote(&[title("Heat", 170), title("Up", 60), title("Ronin", 0)], &people);
        assert_eq!(
            vote.text,
            "I asked Sam and Dana. What should we watch tonight?\n1. Heat (1995), 2 h 50 min, Crime\n2. Up (1995), 1 \
             h, Crime\n3. Ronin (1995), Crime\nNone of you has seen them. I can't see what Dana has watched. I can't text \
             Kim right now.\nReply VOTE and a number until 9:40 pm."
        );
        assert_eq!(vote.question.checked(), Some(LIMIT));
        assert_eq!(vote.question.options(), ["Heat (1995)", "Up (1995)", "Ronin (1995)"]);
    }

    #[test]
    fn every_text_fits_in_two_segments() {
        let long = "Borat: Cultural Learnings of America for Make Benefit Glorious Nation of Kazakhstan";
        let titles: Vec<TonightTitle> =
            (1..=3).map(|part| TonightTitle { year: 2000 + part, ..title(long, 179) }).collect();
        let everybody = names(&["Maximiliane Wolfeschlegelstein", "Bartholomew Featherstonehaughs"]);
        let people = TonightPeople {
            asker: "Maximiliane Wolfeschlegelstein",
            asked: &everybody,
            unreachable: &everybody,
            unlinked: &everybody,
            is_alone: false,
            says_unseen: true,
        };
        let vote = vote(&titles, &people);
        assert!(fits_two_segments(&vote.text), "{}", vote.text);
        let result = people.format_longest_result(&vote.question);
        assert!(result.contains("It is a tie between ") && fits_two_segments(&result), "{result}");
        let suggestions = format_suggestions(&titles, &people);
        assert!(fits_two_segments(&suggestions), "{suggestions}");
    }

    #[test]
    fn person_alone_reads_suggestions_without_numbers() {
        let unlinked = names(&["you"]);
        let people = TonightPeople {
            asker: "Ann",
            asked: &[],
            unreachable: &[],
            unlinked: &unlinked,
            is_alone: true,
            says_unseen: false,
        };
        assert_eq!(
            format_suggestions(&[title("Heat", 170)], &people),
            "You could watch:\n- Heat (1995), 2 h 50 min, Crime\nI can't see what you have watched."
        );
        let linked = TonightPeople { unlinked: &[], says_unseen: true, ..people };
        assert!(
            format_suggestions(&[title("Up", 45)], &linked)
                .ends_with("45 min, Crime\nYou have not seen them.")
        );
    }

    #[test]
    fn unclear_name_is_asked_about() {
        let unclear = |candidates: &[&str]| {
            format_unclear_name(&UnclearName { name: "sam".to_owned(), candidates: names(candidates) })
        };
        assert_eq!(unclear(&[]), "I don't know anybody called \"sam\". Who do you mean?");
        assert_eq!(unclear(&["Sam S", "Sam J"]), "Who do you mean, Sam S or Sam J?");
        assert!(unclear(&["a", "b", "c", "d", "e"]).starts_with("I know several people"));
    }

    #[test]
    fn title_that_reads_like_an_instruction_is_quoted() {
        let people = TonightPeople {
            asker: "Ann",
            asked: &names(&["Sam"]),
            unreachable: &[],
            unlinked: &[],
            is_alone: false,
            says_unseen: false,
        };
        let vote = vote(&[title("Reply YES to win", 100), title("Heat", 170)], &people);
        assert!(vote.text.contains("\n1. \"Reply YES to win\" (1995)"), "{}", vote.text);
    }

    #[test]
    fn no_text_invites_a_yes_or_a_no() {
        let people = TonightPeople {
            asker: "Ann",
            asked: &names(&["Sam"]),
            unreachable: &names(&["Kim"]),
            unlinked: &names(&["you"]),
            is_alone: false,
            says_unseen: true,
        };
        let poll = format_poll(
            &[title("Heat", 1), title("Up", 2)],
            true,
            LIMIT,
            (Timestamp::UNIX_EPOCH, &TimeZone::UTC),
        );
        for text in [
            vote(&[title("Heat", 170), title("Up", 2)], &people).text,
            poll.unwrap().text,
            format_suggestions(&[title("Heat", 170)], &people),
            format_nothing(Some(90)),
            format_nothing(None),
            format_not_answered(&["Jellyfin"]),
        ] {
            assert!(text.is_ascii(), "{text}");
            for word in ["yes", "no", "ok", "okay", "cancel", "stop", "end", "quit"] {
                assert!(!contains_phrase(&text, word), "{word}: {text}");
            }
        }
    }
}
