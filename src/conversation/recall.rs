//! Which earlier answers a turn is told of: by meaning and by words, fused, faded by age, and bounded in size.
//! Nothing is decided by likeness but this: "delete it" and "do not delete it" are almost the same to a vector.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::extraction::ResponseType;
use super::spending::tokens_in;
use super::text_normalization::{content_words, plain_title};

/// Rows of each ranking that are looked at.
pub const RANKED: usize = 20;
/// How little a place further down a ranking counts (Cormack, Clarke and Büttcher 2009).
const RANK_CONSTANT: f64 = 60.0;
const SIMILAR_QUESTIONS: usize = 3;
const SAID_TO_USER: usize = 3;
const SAID_IN_GROUP: usize = 2;
/// Of all lines together; with what stands above and before them in a prompt it is 400.
const MAX_TOKENS: u64 = 330;
const MAX_QUESTION_CHARS: usize = 100;
const MAX_ANSWER_CHARS: usize = 200;
/// Who may find an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Only whoever was answered.
    User,
    /// Those to whom it was said together.
    Group,
    Global,
}

/// An earlier answer that somebody may find, and how alike it is to what they say now.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub id: i64,
    pub scope: Scope,
    pub question: String,
    pub answer: String,
    /// Shorter than the answer; empty where there is none.
    pub summary: String,
    /// What else it is about.
    pub keywords: String,
    pub kind: Option<ResponseType>,
    /// From 0 to 1.
    pub importance: f32,
    pub said_at: Timestamp,
    /// Cosines; `None` without vectors.
    pub question_likeness: Option<f32>,
    pub answer_likeness: Option<f32>,
}

/// Answers that a turn is told of, best first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recalled {
    pub similar_questions: Vec<Found>,
    pub said_to_user: Vec<Found>,
    pub said_in_group: Vec<Found>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub row: Candidate,
    /// Larger is better; it means nothing outside of one search.
    pub score: f64,
}

impl Recalled {
    /// Everything found, best first.
    pub fn all(&self) -> Vec<&Found> {
        let mut all: Vec<&Found> = [&self.similar_questions, &self.said_to_user, &self.said_in_group]
            .into_iter()
            .flatten()
            .collect();
        all.sort_by(|one, other| other.score.total_cmp(&one.score).then(other.row.id.cmp(&one.row.id)));
        all
    }
}

/// Ranks what may be found. `by_words` are ids, best first; what is less alike than `floor` counts only by its words.
pub fn recall(
    query: &str,
    candidates: Vec<Candidate>,
    by_words: &[i64],
    floor: f32,
    now: Timestamp,
) -> Recalled {
    let sought = content_words(query);
    let by_question = places(&candidates, floor, |row| row.question_likeness);
    let by_answer = places(&candidates, floor, |row| row.answer_likeness);
    let matches: HashMap<i64, Matches> =
        candidates.iter().map(|row| (row.id, Matches::of(&sought, row))).collect();
    let by_words: HashMap<i64, usize> = by_words
        .iter()
        .filter(|id| matches.get(id).is_some_and(|found| found.anywhere))
        .enumerate()
        .map(|(place, id)| (*id, place))
        .collect();
    let mut found: Vec<Found> = candidates
        .into_iter()
        .filter_map(|row| {
            let ranks = [&by_question, &by_answer, &by_words].map(|places| places.get(&row.id));
            let fused: f64 =
                ranks.into_iter().flatten().map(|place| 1.0 / (RANK_CONSTANT + *place as f64 + 1.0)).sum();
            (fused > 0.0).then(|| Found { score: fused * row.weight(now), row })
        })
        .collect();
    found.sort_by(|one, other| other.score.total_cmp(&one.score).then(other.row.id.cmp(&one.row.id)));
    let mut recalled = Recalled::default();
    for found in found {
        let id = found.row.id;
        let by_its_question =
            by_question.contains_key(&id) || matches.get(&id).is_some_and(|found| found.question);
        let (list, most) = match found.row.scope {
            Scope::Group => (&mut recalled.said_in_group, SAID_IN_GROUP),
            Scope::Global => (&mut recalled.similar_questions, SIMILAR_QUESTIONS),
            Scope::User if by_its_question && recalled.similar_questions.len() < SIMILAR_QUESTIONS => {
                (&mut recalled.similar_questions, SIMILAR_QUESTIONS)
            }
            Scope::User => (&mut recalled.said_to_user, SAID_TO_USER),
        };
        if list.len() < most {
            list.push(found);
        }
    }
    recalled
}

/// The place of each row that is alike enough, from 0.
fn places(
    rows: &[Candidate],
    floor: f32,
    likeness: impl Fn(&Candidate) -> Option<f32>,
) -> HashMap<i64, usize> {
    let alike = |row: &Candidate| likeness(row).filter(|likeness| *likeness >= floor).map(|l| (l, row.id));
    let mut alike: Vec<(f32, i64)> = rows.iter().filter_map(alike).collect();
    alike.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
    alike.truncate(RANKED);
    alike.into_iter().enumerate().map(|(place, (_, id))| (id, place)).collect()
}

/// Whether enough of the words that are looked for stand in a row: two of them, or the only one.
struct Matches {
    question: bool,
    anywhere: bool,
}

impl Matches {
    fn of(sought: &[String], row: &Candidate) -> Self {
        let enough = sought.len().clamp(1, 2);
        let question = plain_title(&row.question);
        let answer = plain_title(&format!("{} {} {}", row.answer, row.summary, row.keywords));
        let in_question = sought.iter().filter(|word| holds(&question, word)).count();
        let anywhere = sought.iter().filter(|word| holds(&question, word) || holds(&answer, word)).count();
        Self { question: in_question >= enough, anywhere: anywhere >= enough }
    }
}

/// Whether a word stands in a text, in this form or with another ending.
fn holds(text: &str, word: &str) -> bool {
    text.split(' ').any(|held| {
        let common = held.bytes().zip(word.bytes()).take_while(|(one, other)| one == other).count();
        held == word || (common >= 4 && common + 3 >= held.len().max(word.len()))
    })
}

impl Candidate {
    /// Half of what it counts goes by its importance; all of it fades with its age.
    fn weight(&self, now: Timestamp) -> f64 {
        let half_life = match self.kind {
            Some(ResponseType::Explanation) => SignedDuration::from_hours(24 * 90),
            Some(ResponseType::Opinion | ResponseType::Recommendation) => SignedDuration::from_hours(24 * 30),
            Some(ResponseType::Action | ResponseType::Greeting) => SignedDuration::from_hours(24 * 7),
            None => SignedDuration::from_hours(24 * 30),
        };
        let age = now.duration_since(self.said_at).as_secs_f64().max(0.0);
        (0.5 + 0.5 * f64::from(self.importance.clamp(0.0, 1.0))) * (-age / half_life.as_secs_f64()).exp2()
    }
}

/// The lines of the prompt: dated, since what was said then may not hold now.
pub fn lines(recalled: &Recalled, zone: &TimeZone) -> Vec<String> {
    let mut left = MAX_TOKENS;
    let mut lines = Vec::new();
    for found in recalled.all() {
        let row = &found.row;
        let day = row.said_at.to_zoned(zone.clone()).strftime("%b %-d");
        let answer = if row.answer.chars().count() > MAX_ANSWER_CHARS && !row.summary.is_empty() {
            &row.summary
        } else {
            &row.answer
        };
        let answer = one_line(answer, MAX_ANSWER_CHARS);
        let question = one_line(&row.question, MAX_QUESTION_CHARS);
        let line = match row.scope {
            Scope::Group => format!("{day}, told to several: {answer}"),
            Scope::User if question.is_empty() => format!("{day}, told this user: {answer}"),
            Scope::User => format!("{day}, this user said \"{question}\", you answered: {answer}"),
            Scope::Global => format!("{day}, asked \"{question}\", you answered: {answer}"),
        };
        let Some(rest) = left.checked_sub(tokens_in(line.len())) else { break };
        left = rest;
        lines.push(line);
    }
    lines
}

fn one_line(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(chars) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_763_672_640, 0);
    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn row(id: i64, question: &str, answer: &str) -> Candidate {
        Candidate {
            id,
            scope: Scope::User,
            question: question.to_owned(),
            answer: answer.to_owned(),
            summary: String::new(),
            keywords: String::new(),
            kind: None,
            importance: 0.5,
            said_at: NOW,
            question_likeness: None,
            answer_likeness: None,
        }
    }

    fn alike(id: i64, question: f32, answer: f32) -> Candidate {
        Candidate { question_likeness: Some(question), answer_likeness: Some(answer), ..row(id, "q", "a") }
    }

    fn ids(found: &[Found]) -> Vec<i64> {
        found.iter().map(|found| found.row.id).collect()
    }

    fn all(recalled: &Recalled) -> Vec<i64> {
        recalled.all().iter().map(|found| found.row.id).collect()
    }

    #[test]
    fn what_is_alike_in_question_and_answer_comes_before_what_is_alike_in_one() {
        let rows = vec![alike(1, 0.9, 0.1), alike(2, 0.8, 0.8), alike(3, 0.1, 0.9)];
        let recalled = recall("anything", rows, &[], 0.3, NOW);
        assert_eq!(all(&recalled), [2, 3, 1]);
    }

    #[test]
    fn what_is_below_the_floor_is_not_told_whatever_its_place() {
        let recalled = recall("anything", vec![alike(1, 0.29, 0.1)], &[], 0.3, NOW);
        assert_eq!(recalled, Recalled::default());
    }

    #[test]
    fn two_words_or_the_only_one_have_to_match() {
        let rows = || {
            vec![
                row(1, "is severance there", "Severance has 9 episodes."),
                row(2, "severance downloads", "Two downloads of Severance."),
            ]
        };
        let found = |query: &str| {
            let mut ids = all(&recall(query, rows(), &[1, 2], 0.3, NOW));
            ids.sort_unstable();
            ids
        };
        assert_eq!(found("severance"), [1, 2]);
        assert_eq!(found("severance downloading"), [2]);
        assert_eq!(found("severance and paddington"), [0_i64; 0]);
        assert_eq!(found("the"), [0_i64; 0]);
    }

    #[test]
    fn older_and_less_important_answers_come_later() {
        let old = Candidate { said_at: NOW - DAY * 60, ..alike(1, 0.9, 0.9) };
        let dull = Candidate { importance: 0.0, ..alike(2, 0.85, 0.85) };
        let fresh = Candidate { importance: 1.0, ..alike(3, 0.8, 0.8) };
        assert_eq!(all(&recall("anything", vec![old, dull, fresh], &[], 0.3, NOW)), [3, 2, 1]);
    }

    #[test]
    fn an_action_fades_in_a_week_and_an_explanation_in_three_months() {
        let aged = |kind| Candidate { kind: Some(kind), said_at: NOW - DAY * 14, ..alike(1, 0.9, 0.9) };
        let weight = |kind| aged(kind).weight(NOW) / aged(kind).weight(aged(kind).said_at);
        assert!((weight(ResponseType::Action) - 0.25).abs() < 1e-9);
        assert!(weight(ResponseType::Explanation) > 0.85);
    }

    #[test]
    fn each_answer_is_told_once_under_what_it_is() {
        let group = |id| Candidate { scope: Scope::Group, question: String::new(), ..alike(id, 0.5, 0.5) };
        let global = |id| Candidate { scope: Scope::Global, ..alike(id, 0.9, 0.1) };
        let rows =
            (1..=7).map(|id| alike(id, 0.6, 0.6)).chain((8..=10).map(group)).chain([global(11)]).collect();
        let recalled = recall("anything", rows, &[], 0.3, NOW);
        assert_eq!(recalled.similar_questions.len(), 3);
        assert_eq!(recalled.said_to_user.len(), 3);
        assert_eq!(recalled.said_in_group.len(), 2);
        let mut told = all(&recalled);
        told.sort_unstable();
        told.dedup();
        assert_eq!(told.len(), 8);
        assert!(ids(&recalled.said_in_group).iter().all(|id| (8..=10).contains(id)));
    }

    #[test]
    fn lines_are_dated_and_bounded() {
        let long = "word ".repeat(200);
        let rows: Vec<Candidate> = (1..=6)
            .map(|id| Candidate { question: long.clone(), answer: long.clone(), ..alike(id, 0.9, 0.9) })
            .collect();
        let lines = lines(&recall("anything", rows, &[], 0.3, NOW), &TimeZone::UTC);
        let tokens: u64 = lines.iter().map(|line| tokens_in(line.len())).sum();
        assert!(tokens <= MAX_TOKENS && !lines.is_empty(), "{tokens}");
        assert!(lines[0].starts_with("Nov 20, this user said \"word "), "{}", lines[0]);
        assert!(lines.iter().all(|line| !line.contains('\n')));
    }
}
