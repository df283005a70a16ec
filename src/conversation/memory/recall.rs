//! Recall of earlier answers for the prompt of a turn: rankings by meaning and by words, fused, weighted by age, and
//! limited in size. Similarity is used for nothing else, because the vectors of "delete it" and "do not delete it" are
//! almost equal.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::answer_metadata::{self, ResponseType};
use crate::conversation::model_cost::estimate_tokens;
use crate::conversation::text::message_format::asks_question;
use crate::conversation::text::normalization::{content_words, normalize_title};

/// Maximum number of candidates in each ranking.
pub const RANKING_SIZE: usize = 20;
/// Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009).
const RANK_CONSTANT: f64 = 60.0;
const MAX_SIMILAR_QUESTIONS: usize = 3;
const MAX_USER_ANSWERS: usize = 3;
const MAX_GROUP_ANSWERS: usize = 2;
/// Maximum number of tokens of all lines together. With their heading and their list marks, they have at most 400.
const MAX_TOKENS: u64 = 330;
const MAX_QUESTION_CHARS: usize = 100;
const MAX_ANSWER_CHARS: usize = 200;

/// Users who may find an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecallScope {
    /// Only the user who got the answer.
    User,
    /// The users who all got the answer.
    Group,
    /// Every user.
    Global,
}

/// Earlier answer that the user may find, with its similarity to the query.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallCandidate {
    pub id: i64,
    pub scope: RecallScope,
    pub question: String,
    pub answer: String,
    /// Summary of the answer, or an empty string.
    pub summary: String,
    /// Other words by which the answer is found.
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

/// Candidate with its score.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedAnswer {
    pub candidate: RecallCandidate,
    /// Score of the answer. A larger score is better; scores of different queries are not comparable.
    pub score: f64,
}

impl RecalledAnswers {
    /// Returns all recalled answers, best first.
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

/// Ranks the candidates by reciprocal rank fusion. `text_matches` contains the ids that the full-text search found,
/// best first. A similarity below `floor` does not count.
pub fn rank_candidates(
    query: &str,
    candidates: Vec<RecallCandidate>,
    text_matches: &[i64],
    floor: f32,
    now: Timestamp,
) -> RecalledAnswers {
    let query_words = content_words(query);
    let by_question = rank_positions(&candidates, floor, |row| row.question_similarity);
    let by_answer = rank_positions(&candidates, floor, |row| row.answer_similarity);
    let matches: HashMap<i64, WordMatches> =
        candidates.iter().map(|row| (row.id, WordMatches::from_candidate(&query_words, row))).collect();
    let by_words: HashMap<i64, usize> = text_matches
        .iter()
        .filter(|id| matches.get(id).is_some_and(|words| words.anywhere))
        .enumerate()
        .map(|(rank, id)| (*id, rank))
        .collect();
    let mut ranked: Vec<RankedAnswer> = candidates
        .into_iter()
        .filter_map(|row| {
            let ranks = [&by_question, &by_answer, &by_words].map(|ranking| ranking.get(&row.id));
            let fused: f64 =
                ranks.into_iter().flatten().map(|rank| 1.0 / (RANK_CONSTANT + *rank as f64 + 1.0)).sum();
            (fused > 0.0).then(|| RankedAnswer { score: fused * row.relevance_weight(now), candidate: row })
        })
        .collect();
    ranked.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then(other.candidate.id.cmp(&one.candidate.id))
    });
    let mut recalled = RecalledAnswers::default();
    for answer in ranked {
        let id = answer.candidate.id;
        let has_similar_question =
            by_question.contains_key(&id) || matches.get(&id).is_some_and(|words| words.question);
        let (list, limit) = match answer.candidate.scope {
            RecallScope::Group => (&mut recalled.group_answers, MAX_GROUP_ANSWERS),
            RecallScope::Global => (&mut recalled.similar_questions, MAX_SIMILAR_QUESTIONS),
            RecallScope::User
                if has_similar_question && recalled.similar_questions.len() < MAX_SIMILAR_QUESTIONS =>
            {
                (&mut recalled.similar_questions, MAX_SIMILAR_QUESTIONS)
            }
            RecallScope::User => (&mut recalled.user_answers, MAX_USER_ANSWERS),
        };
        if list.len() < limit {
            list.push(answer);
        }
    }
    recalled
}

/// Ranks the candidates that are similar enough, from 0.
fn rank_positions(
    candidates: &[RecallCandidate],
    floor: f32,
    similarity: impl Fn(&RecallCandidate) -> Option<f32>,
) -> HashMap<i64, usize> {
    let similar_id = |row: &RecallCandidate| {
        similarity(row).filter(|similarity| *similarity >= floor).map(|similarity| (similarity, row.id))
    };
    let mut ranking: Vec<(f32, i64)> = candidates.iter().filter_map(similar_id).collect();
    ranking.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
    ranking.truncate(RANKING_SIZE);
    ranking.into_iter().enumerate().map(|(rank, (_, id))| (id, rank)).collect()
}

/// Parts of a candidate that contain enough words of the query: two of them, or the only one.
struct WordMatches {
    question: bool,
    anywhere: bool,
}

impl WordMatches {
    fn from_candidate(query_words: &[String], row: &RecallCandidate) -> Self {
        let required = query_words.len().clamp(1, 2);
        let question = normalize_title(&row.question);
        let answer = normalize_title(&format!("{} {} {}", row.answer, row.summary, row.keywords));
        let question_count = query_words.iter().filter(|word| contains_word_form(&question, word)).count();
        let total_count = query_words
            .iter()
            .filter(|word| contains_word_form(&question, word) || contains_word_form(&answer, word))
            .count();
        Self { question: question_count >= required, anywhere: total_count >= required }
    }
}

/// Returns whether the text contains the word, possibly with a different ending.
fn contains_word_form(text: &str, word: &str) -> bool {
    text.split(' ').any(|other| {
        let common_prefix = other.bytes().zip(word.bytes()).take_while(|(left, right)| left == right).count();
        other == word || (common_prefix >= 4 && common_prefix + 3 >= other.len().max(word.len()))
    })
}

impl RecallCandidate {
    /// Returns the weight of the answer, half of which depends on its importance. The weight decays with age.
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

/// Formats the lines for the prompt. They are dated, because an earlier answer may be outdated. Questions and progress
/// reports are omitted, and so are the changes of the day, which the prompt contains as `done_today`.
pub fn format_recall_lines(
    recalled: &RecalledAnswers,
    done_today: &[String],
    zone: &TimeZone,
) -> Vec<String> {
    let mut tokens_left = MAX_TOKENS;
    let mut lines = Vec::new();
    for ranked in recalled.ranked_answers() {
        let row = &ranked.candidate;
        let is_known = done_today.iter().any(|sentence| row.answer.contains(sentence.as_str()));
        if is_known || asks_question(&row.answer) || answer_metadata::is_progress_report(&row.answer) {
            continue;
        }
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
        let Some(rest) = tokens_left.checked_sub(estimate_tokens(line.len())) else { break };
        tokens_left = rest;
        lines.push(line);
    }
    lines
}

fn truncate_to_line(text: &str, max_chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_763_672_640, 0);
    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn candidate(id: i64, question: &str, answer: &str) -> RecallCandidate {
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

    fn similar_candidate(id: i64, question: f32, answer: f32) -> RecallCandidate {
        RecallCandidate {
            question_similarity: Some(question),
            answer_similarity: Some(answer),
            ..candidate(id, "q", "a")
        }
    }

    fn answer_ids(answers: &[RankedAnswer]) -> Vec<i64> {
        answers.iter().map(|answer| answer.candidate.id).collect()
    }

    fn all_ids(recalled: &RecalledAnswers) -> Vec<i64> {
        recalled.ranked_answers().iter().map(|answer| answer.candidate.id).collect()
    }

    #[test]
    fn similarity_in_question_and_answer_ranks_first() {
        let rows = vec![
            similar_candidate(1, 0.9, 0.1),
            similar_candidate(2, 0.8, 0.8),
            similar_candidate(3, 0.1, 0.9),
        ];
        let recalled = rank_candidates("anything", rows, &[], 0.3, NOW);
        assert_eq!(all_ids(&recalled), [2, 3, 1]);
    }

    #[test]
    fn answers_below_the_floor_are_not_recalled() {
        let recalled = rank_candidates("anything", vec![similar_candidate(1, 0.29, 0.1)], &[], 0.3, NOW);
        assert_eq!(recalled, RecalledAnswers::default());
    }

    #[test]
    fn recall_needs_two_matching_words_or_the_only_one() {
        let rows = || {
            vec![
                candidate(1, "is severance there", "Severance has 9 episodes."),
                candidate(2, "severance downloads", "Two downloads of Severance."),
            ]
        };
        let recalled_ids = |query: &str| {
            let mut ids = all_ids(&rank_candidates(query, rows(), &[1, 2], 0.3, NOW));
            ids.sort_unstable();
            ids
        };
        assert_eq!(recalled_ids("severance"), [1, 2]);
        assert_eq!(recalled_ids("severance downloading"), [2]);
        assert_eq!(recalled_ids("severance and paddington"), [0_i64; 0]);
        assert_eq!(recalled_ids("the"), [0_i64; 0]);
    }

    #[test]
    fn older_and_less_important_answers_rank_lower() {
        let old = RecallCandidate { answered_at: NOW - DAY * 60, ..similar_candidate(1, 0.9, 0.9) };
        let unimportant = RecallCandidate { importance: 0.0, ..similar_candidate(2, 0.85, 0.85) };
        let important = RecallCandidate { importance: 1.0, ..similar_candidate(3, 0.8, 0.8) };
        assert_eq!(
            all_ids(&rank_candidates("anything", vec![old, unimportant, important], &[], 0.3, NOW)),
            [3, 2, 1]
        );
    }

    #[test]
    fn actions_decay_in_a_week_and_explanations_in_three_months() {
        let aged = |kind| RecallCandidate {
            kind: Some(kind),
            answered_at: NOW - DAY * 14,
            ..similar_candidate(1, 0.9, 0.9)
        };
        let weight =
            |kind| aged(kind).relevance_weight(NOW) / aged(kind).relevance_weight(aged(kind).answered_at);
        assert!((weight(ResponseType::Action) - 0.25).abs() < 1e-9);
        assert!(weight(ResponseType::Explanation) > 0.85);
    }

    #[test]
    fn each_answer_is_recalled_once_in_the_list_of_its_scope() {
        let group = |id| RecallCandidate {
            scope: RecallScope::Group,
            question: String::new(),
            ..similar_candidate(id, 0.5, 0.5)
        };
        let global = |id| RecallCandidate { scope: RecallScope::Global, ..similar_candidate(id, 0.9, 0.1) };
        let rows = (1..=7)
            .map(|id| similar_candidate(id, 0.6, 0.6))
            .chain((8..=10).map(group))
            .chain([global(11)])
            .collect();
        let recalled = rank_candidates("anything", rows, &[], 0.3, NOW);
        assert_eq!(recalled.similar_questions.len(), 3);
        assert_eq!(recalled.user_answers.len(), 3);
        assert_eq!(recalled.group_answers.len(), 2);
        let mut recalled_ids = all_ids(&recalled);
        recalled_ids.sort_unstable();
        recalled_ids.dedup();
        assert_eq!(recalled_ids.len(), 8);
        assert!(answer_ids(&recalled.group_answers).iter().all(|id| (8..=10).contains(id)));
    }

    #[test]
    fn questions_progress_and_changes_of_the_day_are_not_recalled() {
        let rows = [
            "Which one do you mean?\n1. Dune (1984)\n2. Dune (2021)\nReply 1 or 2",
            "Dune is 62% done, 20 min left.",
            "Added Heat (1995).",
            "Plex runs on the TV in the den.",
        ];
        let rows = (1..).zip(rows).map(|(id, answer)| RecallCandidate {
            answer: answer.to_owned(),
            question: String::new(),
            ..similar_candidate(id, 0.9, 0.9)
        });
        let recalled = rank_candidates("anything", rows.collect(), &[], 0.3, NOW);
        let lines = format_recall_lines(&recalled, &["Added Heat (1995).".to_owned()], &TimeZone::UTC);
        assert_eq!(lines, ["Nov 20, told this user: Plex runs on the TV in the den."]);
    }

    #[test]
    fn recalled_lines_are_dated_and_limited() {
        let long = "word ".repeat(200);
        let rows: Vec<RecallCandidate> = (1..=6)
            .map(|id| RecallCandidate {
                question: long.clone(),
                answer: long.clone(),
                ..similar_candidate(id, 0.9, 0.9)
            })
            .collect();
        let lines =
            format_recall_lines(&rank_candidates("anything", rows, &[], 0.3, NOW), &[], &TimeZone::UTC);
        let tokens: u64 = lines.iter().map(|line| estimate_tokens(line.len())).sum();
        assert!(tokens <= MAX_TOKENS && !lines.is_empty(), "{tokens}");
        assert!(lines[0].starts_with("Nov 20, this user said \"word "), "{}", lines[0]);
        assert!(lines.iter().all(|line| !line.contains('\n')));
    }
}
