//! Plan of a proposal: the titles that could go, the largest first, and the question to each person concerned.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::messages::{self, QuestionLine};
use super::proposal::{Candidate, ProposalPlan, ProposalRules, Question};
use super::{SilenceRule, answers_end_at};
use crate::conversation::transcript::UserId;

/// Maximum number of titles of a proposal.
pub const MAX_TITLES: usize = 10;

/// Plans a proposal. A title of which somebody cannot be asked is left out if silence protects it, and so is a title that
/// fits no question of two segments. Returns `None` if no title could go.
pub fn plan_proposal(mut candidates: Vec<Candidate>, rules: &ProposalRules) -> Option<ProposalPlan> {
    candidates.sort_by_key(|candidate| (Reverse(candidate.title.size_bytes), candidate.title.title.clone()));
    let end = answers_end_at(rules.now, &rules.zone);
    let mut plan = ProposalPlan {
        silence: rules.silence,
        answers_end_at: end,
        titles: Vec::new(),
        questions: Vec::new(),
    };
    for candidate in candidates {
        let has_enough = rules.wanted_bytes.is_some_and(|wanted| plan.total_bytes() >= wanted);
        if plan.titles.len() >= MAX_TITLES || has_enough {
            break;
        }
        let is_protected =
            rules.silence == SilenceRule::Stays && candidate.people.iter().any(|person| !person.may_be_asked);
        if is_protected {
            continue;
        }
        plan.titles.push(candidate);
        match write_questions(&plan, rules) {
            Some(questions) => plan.questions = questions,
            None => {
                plan.titles.pop();
            }
        }
    }
    if plan.questions.is_empty() {
        plan.answers_end_at = rules.now;
    }
    (!plan.titles.is_empty()).then_some(plan)
}

/// Writes the question to each person; `None` if one is too long.
fn write_questions(plan: &ProposalPlan, rules: &ProposalRules) -> Option<Vec<Question>> {
    let mut by_user: BTreeMap<UserId, Vec<(usize, QuestionLine<'_>)>> = BTreeMap::new();
    for (index, candidate) in plan.titles.iter().enumerate() {
        for person in candidate.people.iter().filter(|person| person.may_be_asked) {
            let line = QuestionLine { title: &candidate.title, person };
            by_user.entry(person.user).or_default().push((index, line));
        }
    }
    let write = |(user, lines): (UserId, Vec<(usize, QuestionLine<'_>)>)| {
        let (titles, lines): (Vec<usize>, Vec<QuestionLine<'_>>) = lines.into_iter().unzip();
        let caps = lines.first()?.person.caps;
        let text = messages::format_question(&lines, plan, rules)?;
        Some(Question { user, caps, titles, text })
    };
    by_user.into_iter().map(write).collect()
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use jiff::{SignedDuration, Timestamp};

    use super::super::ProposedTitle;
    use super::super::judgment::GoReason;
    use super::super::proposal::ConcernedPerson;
    use super::*;
    use crate::conversation::rating_caps::RatingCaps;
    use crate::conversation::transcript::MediaKind;

    const GB: u64 = 1_000_000_000;

    fn now() -> Timestamp {
        // A Monday.
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    fn rules(silence: SilenceRule) -> ProposalRules {
        ProposalRules { silence, wanted_bytes: None, now: now(), zone: TimeZone::UTC }
    }

    fn person(user: i64) -> ConcernedPerson {
        let finished = Some(Some(now() - SignedDuration::from_hours(24 * 200)));
        ConcernedPerson {
            user: UserId(user),
            caps: RatingCaps::UNLIMITED,
            asked_at: None,
            finished,
            may_be_asked: true,
        }
    }

    fn candidate(title: &str, size_gb: u64, people: &[ConcernedPerson]) -> Candidate {
        let title = ProposedTitle {
            instance: "radarr".to_owned(),
            kind: MediaKind::Movie,
            item: 1,
            catalog_id: 1,
            title: title.to_owned(),
            year: 1995,
            size_bytes: size_gb * GB,
        };
        Candidate { title, reason: GoReason::Finished, last_played_at: None, people: people.to_vec() }
    }

    fn titles(plan: &ProposalPlan) -> Vec<&str> {
        plan.titles.iter().map(|candidate| candidate.title.title.as_str()).collect()
    }

    #[test]
    fn people_concerned_are_asked_about_their_titles_only() {
        let candidates = vec![
            candidate("Heat", 18, &[person(1)]),
            candidate("Dune", 30, &[person(2)]),
            candidate("Alien", 20, &[person(1), person(2)]),
        ];
        let plan = plan_proposal(candidates, &rules(SilenceRule::MayGo)).unwrap();
        assert_eq!(titles(&plan), ["Dune", "Alien", "Heat"]);
        let asked: Vec<(UserId, &[usize])> =
            plan.questions.iter().map(|question| (question.user, question.titles.as_slice())).collect();
        assert_eq!(asked, [(UserId(1), [1, 2].as_slice()), (UserId(2), &[0, 1])]);
        assert_eq!(
            plan.questions[0].text,
            "Leaving Sunday to make room: 1 Alien (20 GB, you finished it in May) 2 Heat (18 GB, you finished it in \
             May). Reply KEEP 1 or KEEP ALL."
        );
    }

    #[test]
    fn silence_protects_titles_of_people_who_cannot_be_asked() {
        let absent = ConcernedPerson { may_be_asked: false, ..person(2) };
        let candidates =
            || vec![candidate("Heat", 18, &[person(1), absent.clone()]), candidate("Dune", 9, &[])];
        let careful = plan_proposal(candidates(), &rules(SilenceRule::Stays)).unwrap();
        assert_eq!(titles(&careful), ["Dune"]);
        // Nobody has to be waited for.
        assert_eq!((careful.questions.len(), careful.answers_end_at), (0, now()));
        let plan = plan_proposal(candidates(), &rules(SilenceRule::MayGo)).unwrap();
        assert_eq!((titles(&plan), plan.questions.len()), (vec!["Heat", "Dune"], 1));
    }

    #[test]
    fn proposal_has_no_more_titles_than_needed() {
        let candidates: Vec<Candidate> =
            (1..=20).map(|number| candidate(&format!("Movie {number}"), number, &[])).collect();
        let all = plan_proposal(candidates.clone(), &rules(SilenceRule::Stays)).unwrap();
        assert_eq!(all.titles.len(), MAX_TITLES);
        let wanted = ProposalRules { wanted_bytes: Some(39 * GB), ..rules(SilenceRule::Stays) };
        assert_eq!(titles(&plan_proposal(candidates, &wanted).unwrap()), ["Movie 20", "Movie 19"]);
        assert_eq!(plan_proposal(Vec::new(), &wanted), None);
    }

    #[test]
    fn question_fits_two_segments_and_leaves_out_the_rest() {
        let long =
            |number| candidate(&format!("A very long title of a movie, part {number}"), 10, &[person(1)]);
        let plan = plan_proposal((0..10).map(long).collect(), &rules(SilenceRule::MayGo)).unwrap();
        assert!((2..6).contains(&plan.titles.len()), "{}", plan.titles.len());
        assert_eq!(plan.questions[0].titles.len(), plan.titles.len());
        assert!(plan.questions[0].text.len() <= 306, "{}", plan.questions[0].text);
    }
}
