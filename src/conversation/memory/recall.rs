//! Recall of earlier answers for a turn: by meaning and by words, fused, faded by age, and bounded in size. Similarity
//! decides nothing else: "delete it" and "do not delete it" are almost the same to a vector.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::answer_metadata::ResponseType;
use crate::conversation::model_cost::estimate_tokens;
use crate::conversation::text::normalization::{content_words, normalize_title};

/// Number of rows of each ranking that are used.
pub const RANKING_SIZE: usize = 20;
/// Damping of lower positions in a ranking (Cormack, Clarke and Büttcher 2009).
const RANK_CONSTANT: f64 = 60.0;
const MAX_SIMILAR_QUESTIONS: usize = 3;
const MAX_USER_ANSWERS: usize = 3;
const MAX_GROUP_ANSWERS: usize = 2;
/// Token limit of all lines together; with the heading above them and the text before them in a prompt, the total is
/// 400.
const MAX_TOKENS: u64 = 330;
const MAX_QUESTION_CHARS: usize = 100;
const MAX_ANSWER_CHARS: usize = 200;
/// Users who may find an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecallScope {
    /// Only the user who got the answer.
    User,
    /// The users who got the answer together.
    Group,
    Global,
}

/// Earlier answer that the user may find, with its similarity to the current message.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallCandidate {
    pub id: i64,
    pub scope: RecallScope,
    pub question: String,
    pub answer: String,
    /// Summary, shorter than the answer; empty if there is none.
    pub summary: String,
    /// Further subjects of the answer.
    pub keywords: String,
    pub kind: Option<ResponseType>,
    /// Range: 0 to 1.
    pub importance: f32,
    pub answered_at: Timestamp,
    /// Cosine similarities; `None` without vectors.
    pub question_similarity: Option<f32>,
    pub answer_similarity: Option<f32>,
}

/// Earlier answers for the prompt of a turn, best first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecalledAnswers {
    pub similar_questions: Vec<RankedAnswer>,
    pub user_answers: Vec<RankedAnswer>,
    pub group_answers: Vec<RankedAnswer>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RankedAnswer {
    pub candidate: RecallCandidate,
    /// Score of the answer, larger is better; it has no meaning outside of one search.
    pub score: f64,
}

impl RecalledAnswers {
    /// Returns all found answers, best first.
    pub fn ranked_answers(&self) -> Vec<&RankedAnswer> {
        let mut all: Vec<&RankedAnswer> = [&self.similar_questions, &self.user_answers, &self.group_answers]
            .into_iter()
            .flatten()
            .collect();
        all.sort_by(|one, other| {
            other.score.total_cmp(&one.score).then(other.candidate.id.cmp(&one.candidate.id))
        });
        all
    }
}

/// Ranks the candidates. `by_words` are ids, best first; a candidate with a similarity below `floor` counts only by its
/// words.
pub fn rank_candidates(
    query: &str,
    candidates: Vec<RecallCandidate>,
    by_words: &[i64],
    floor: f32,
    now: Timestamp,
) -> RecalledAnswers {
    let sought = content_words(query);
    let by_question = rank_positions(&candidates, floor, |row| row.question_similarity);
    let by_answer = rank_positions(&candidates, floor, |row| row.answer_similarity);
    let matches: HashMap<i64, WordMatches> =
        candidates.iter().map(|row| (row.id, WordMatches::from_candidate(&sought, row))).collect();
    let by_words: HashMap<i64, usize> = by_words
        .iter()
        .filter(|id| matches.get(id).is_some_and(|found| found.anywhere))
        .enumerate()
        .map(|(place, id)| (*id, place))
        .collect();
    let mut found: Vec<RankedAnswer> = candidates
        .into_iter()
        .filter_map(|row| {
            let ranks = [&by_question, &by_answer, &by_words].map(|places| places.get(&row.id));
            let fused: f64 =
                ranks.into_iter().flatten().map(|place| 1.0 / (RANK_CONSTANT + *place as f64 + 1.0)).sum();
            (fused > 0.0).then(|| RankedAnswer { score: fused * row.relevance_weight(now), candidate: row })
        })
        .collect();
    found.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then(other.candidate.id.cmp(&one.candidate.id))
    });
    let mut recalled = RecalledAnswers::default();
    for found in found {
        let id = found.candidate.id;
        let by_its_question =
            by_question.contains_key(&id) || matches.get(&id).is_some_and(|found| found.question);
        let (list, most) = match found.candidate.scope {
            RecallScope::Group => (&mut recalled.group_answers, MAX_GROUP_ANSWERS),
            RecallScope::Global => (&mut recalled.similar_questions, MAX_SIMILAR_QUESTIONS),
            RecallScope::User
                if by_its_question && recalled.similar_questions.len() < MAX_SIMILAR_QUESTIONS =>
            {
                (&mut recalled.similar_questions, MAX_SIMILAR_QUESTIONS)
            }
            RecallScope::User => (&mut recalled.user_answers, MAX_USER_ANSWERS),
        };
        if list.len() < most {
            list.push(found);
        }
    }
    recalled
}

/// Returns the position of each row that is similar enough, from 0.
fn rank_positions(
    rows: &[RecallCandidate],
    floor: f32,
    likeness: impl Fn(&RecallCandidate) -> Option<f32>,
) -> HashMap<i64, usize> {
    let alike =
        |row: &RecallCandidate| likeness(row).filter(|likeness| *likeness >= floor).map(|l| (l, row.id));
    let mut alike: Vec<(f32, i64)> = rows.iter().filter_map(alike).collect();
    alike.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
    alike.truncate(RANKING_SIZE);
    alike.into_iter().enumerate().map(|(place, (_, id))| (id, place)).collect()
}

/// Result of the check whether a row contains enough of the searched words: two of them, or the only one.
struct WordMatches {
    question: bool,
    anywhere: bool,
}

impl WordMatches {
    fn from_candidate(sought: &[String], row: &RecallCandidate) -> Self {
        let enough = sought.len().clamp(1, 2);
        let question = normalize_title(&row.question);
        let answer = normalize_title(&format!("{} {} {}", row.answer, row.summary, row.keywords));
        let in_question = sought.iter().filter(|word| contains_word_form(&question, word)).count();
        let anywhere = sought
            .iter()
            .filter(|word| contains_word_form(&question, word) || contains_word_form(&answer, word))
            .count();
        Self { question: in_question >= enough, anywhere: anywhere >= enough }
    }
}

/// Returns whether the text contains the word, in this form or with another ending.
fn contains_word_form(text: &str, word: &str) -> bool {
    text.split(' ').any(|held| {
        let common = held.bytes().zip(word.bytes()).take_while(|(one, other)| one == other).count();
        held == word || (common >= 4 && common + 3 >= held.len().max(word.len()))
    })
}

impl RecallCandidate {
    /// Returns the weight of the answer: importance determines half of it, and all of it fades with age.
    fn relevance_weight(&self, now: Timestamp) -> f64 {
        let half_life = match self.kind {
            Some(ResponseType::Explanation) => SignedDuration::from_hours(24 * 90),
            Some(ResponseType::Opinion | ResponseType::Recommendation) => SignedDuration::from_hours(24 * 30),
            Some(ResponseType::Action | ResponseType::Greeting) => SignedDuration::from_hours(24 * 7),
            None => SignedDuration::from_hours(24 * 30),
        };
        let age = now.duration_since(self.answered_at).as_secs_f64().max(0.0);
        (0.5 + 0.5 * f64::from(self.importance.clamp(0.0, 1.0))) * (-age / half_life.as_secs_f64()).exp2()
    }
}

/// Formats the lines for the prompt: dated, since an earlier answer may no longer be true.
pub fn format_recall_lines(recalled: &RecalledAnswers, zone: &TimeZone) -> Vec<String> {
    let mut left = MAX_TOKENS;
    let mut lines = Vec::new();
    for found in recalled.ranked_answers() {
        let row = &found.candidate;
        let day = row.answered_at.to_zoned(zone.clone()).strftime("%b %-d");
        let answer = if row.answer.chars().count() > MAX_ANSWER_CHARS && !row.summary.is_empty() {
            &row.summary
        } else {
            &row.answer
        };
        let answer = truncate_to_line(answer, MAX_ANSWER_CHARS);
        let question = truncate_to_line(&row.question, MAX_QUESTION_CHARS);
        let line = match row.scope {
            RecallScope::Group => format!("{day}, told to several: {answer}"),
            RecallScope::User if question.is_empty() => format!("{day}, told this user: {answer}"),
            RecallScope::User => format!("{day}, this user said \"{question}\", you answered: {answer}"),
            RecallScope::Global => format!("{day}, asked \"{question}\", you answered: {answer}"),
        };
        let Some(rest) = left.checked_sub(estimate_tokens(line.len())) else { break };
        left = rest;
        lines.push(line);
    }
    lines
}

fn truncate_to_line(text: &str, chars: usize) -> String {
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

    fn row(id: i64, question: &str, answer: &str) -> RecallCandidate {
        RecallCandidate {
            id,
            scope: RecallScope::User,
            question: question.to_owned(),
            answer: answer.to_owned(),
            summary: String::new(),
            keywords: String::new(),
            kind: None,
            importance: 0.5,
            answered_at: NOW,
            question_similarity: None,
            answer_similarity: None,
        }
    }

    fn alike(id: i64, question: f32, answer: f32) -> RecallCandidate {
        RecallCandidate {
            question_similarity: Some(question),
            answer_similarity: Some(answer),
            ..row(id, "q", "a")
        }
    }

    fn ids(found: &[RankedAnswer]) -> Vec<i64> {
        found.iter().map(|found| found.candidate.id).collect()
    }

    fn all(recalled: &RecalledAnswers) -> Vec<i64> {
        recalled.ranked_answers().iter().map(|found| found.candidate.id).collect()
    }

    #[test]
    fn similarity_in_question_and_answer_ranks_first() {
        let rows = vec![alike(1, 0.9, 0.1), alike(2, 0.8, 0.8), alike(3, 0.1, 0.9)];
        let recalled = rank_candidates("anything", rows, &[], 0.3, NOW);
        assert_eq!(all(&recalled), [2, 3, 1]);
    }

    #[test]
    fn answers_below_the_floor_are_not_recalled() {
        let recalled = rank_candidates("anything", vec![alike(1, 0.29, 0.1)], &[], 0.3, NOW);
        assert_eq!(recalled, RecalledAnswers::default());
    }

    #[test]
    fn recall_needs_two_matching_words_or_the_only_one() {
        let rows = || {
            vec![
                row(1, "is severance there", "Severance has 9 episodes."),
                row(2, "severance downloads", "Two downloads of Severance."),
            ]
        };
        let found = |query: &str| {
            let mut ids = all(&rank_candidates(query, rows(), &[1, 2], 0.3, NOW));
            ids.sort_unstable();
            ids
        };
        assert_eq!(found("severance"), [1, 2]);
        assert_eq!(found("severance downloading"), [2]);
        assert_eq!(found("severance and paddington"), [0_i64; 0]);
        assert_eq!(found("the"), [0_i64; 0]);
    }

    #[test]
    fn older_and_less_important_answers_rank_lower() {
        let old = RecallCandidate { answered_at: NOW - DAY * 60, ..alike(1, 0.9, 0.9) };
        let dull = RecallCandidate { importance: 0.0, ..alike(2, 0.85, 0.85) };
        let fresh = RecallCandidate { importance: 1.0, ..alike(3, 0.8, 0.8) };
        assert_eq!(all(&rank_candidates("anything", vec![old, dull, fresh], &[], 0.3, NOW)), [3, 2, 1]);
    }

    #[test]
    fn actions_decay_in_a_week_and_explanations_in_three_months() {
        let aged =
            |kind| RecallCandidate { kind: Some(kind), answered_at: NOW - DAY * 14, ..alike(1, 0.9, 0.9) };
        let weight =
            |kind| aged(kind).relevance_weight(NOW) / aged(kind).relevance_weight(aged(kind).answered_at);
        assert!((weight(ResponseType::Action) - 0.25).abs() < 1e-9);
        assert!(weight(ResponseType::Explanation) > 0.85);
    }

    #[test]
    fn each_answer_is_recalled_once_by_scope() {
        let group = |id| RecallCandidate {
            scope: RecallScope::Group,
            question: String::new(),
            ..alike(id, 0.5, 0.5)
        };
        let global = |id| RecallCandidate { scope: RecallScope::Global, ..alike(id, 0.9, 0.1) };
        let rows =
            (1..=7).map(|id| alike(id, 0.6, 0.6)).chain((8..=10).map(group)).chain([global(11)]).collect();
        let recalled = rank_candidates("anything", rows, &[], 0.3, NOW);
        assert_eq!(recalled.similar_questions.len(), 3);
        assert_eq!(recalled.user_answers.len(), 3);
        assert_eq!(recalled.group_answers.len(), 2);
        let mut recalled_ids = all(&recalled);
        recalled_ids.sort_unstable();
        recalled_ids.dedup();
        assert_eq!(recalled_ids.len(), 8);
        assert!(ids(&recalled.group_answers).iter().all(|id| (8..=10).contains(id)));
    }

    #[test]
    fn recalled_lines_are_dated_and_limited() {
        let long = "word ".repeat(200);
        let rows: Vec<RecallCandidate> = (1..=6)
            .map(|id| RecallCandidate { question: long.clone(), answer: long.clone(), ..alike(id, 0.9, 0.9) })
            .collect();
        let lines = format_recall_lines(&rank_candidates("anything", rows, &[], 0.3, NOW), &TimeZone::UTC);
        let tokens: u64 = lines.iter().map(|line| estimate_tokens(line.len())).sum();
        assert!(tokens <= MAX_TOKENS && !lines.is_empty(), "{tokens}");
        assert!(lines[0].starts_with("Nov 20, this user said \"word "), "{}", lines[0]);
        assert!(lines.iter().all(|line| !line.contains('\n')));
    }
}
