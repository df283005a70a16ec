//! Decision of a vote. A tie about titles that were found for the voters is decided by who lost most recently.

use jiff::Timestamp;

use super::{Tally, VoteQuestion};
use crate::conversation::transcript::UserId;

/// Ballot with a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedBallot {
    /// Person who voted; `None` for a person in a group who is no user.
    pub voter: Option<UserId>,
    /// Number of the chosen option.
    pub choice: u8,
}

/// Time of the last decided vote in which a person chose an option that did not win.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostVote {
    pub voter: UserId,
    pub at: Timestamp,
}

/// Outcome of a vote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoteDecision {
    pub tally: Tally,
    /// Number of the option that won; `None` if nobody voted, and after a tie about free text.
    pub winner: Option<u8>,
    /// Person whose lost vote decided a tie.
    pub tie_breaker: Option<UserId>,
}

impl VoteDecision {
    /// Decides a vote. `losses` are the last lost votes of the voters; they matter only after a tie.
    pub fn from_ballots(question: &VoteQuestion, ballots: &[CountedBallot], losses: &[LostVote]) -> Self {
        let tally = Tally::count(question, ballots.iter().map(|ballot| ballot.choice));
        let leaders = tally.leaders();
        let (winner, tie_breaker) = match leaders.as_slice() {
            [] => (None, None),
            [winner] => (Some(*winner), None),
            _ if question.checked().is_none() => (None, None),
            several => break_tie(several, ballots, losses),
        };
        Self { tally, winner, tie_breaker }
    }
}

/// Chooses one of several leading options: the choice of the person whose choice lost most recently, or else the one with
/// the lowest number.
fn break_tie(leaders: &[u8], ballots: &[CountedBallot], losses: &[LostVote]) -> (Option<u8>, Option<UserId>) {
    let lost_at = |voter: UserId| losses.iter().filter(|lost| lost.voter == voter).map(|lost| lost.at).max();
    let chosen_by_losers =
        ballots.iter().filter(|ballot| leaders.contains(&ballot.choice)).filter_map(|ballot| {
            let voter = ballot.voter?;
            Some((lost_at(voter)?, std::cmp::Reverse(ballot.choice), voter))
        });
    match chosen_by_losers.max() {
        Some((_, std::cmp::Reverse(choice), voter)) => (Some(choice), Some(voter)),
        None => (leaders.iter().copied().min(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::MediaKind;
    use crate::conversation::votes::CheckedLimit;

    const ANN: UserId = UserId(1);
    const BOB: UserId = UserId(2);
    const CAT: UserId = UserId(3);

    fn free_text() -> VoteQuestion {
        VoteQuestion::new(None, &["Dune", "Heat", "Alien"]).unwrap()
    }

    fn titles() -> VoteQuestion {
        let limit = CheckedLimit { kind: MediaKind::Movie, cap: None };
        free_text().with_checked_options(Vec::new(), limit)
    }

    fn ballots(choices: &[(UserId, u8)]) -> Vec<CountedBallot> {
        choices.iter().map(|(voter, choice)| CountedBallot { voter: Some(*voter), choice: *choice }).collect()
    }

    fn lost(voter: UserId, second: i64) -> LostVote {
        LostVote { voter, at: Timestamp::from_second(second).unwrap() }
    }

    #[track_caller]
    fn check(choices: &[(UserId, u8)], losses: &[LostVote], expected: (Option<u8>, Option<UserId>)) {
        let decision = VoteDecision::from_ballots(&titles(), &ballots(choices), losses);
        assert_eq!((decision.winner, decision.tie_breaker), expected, "{choices:?} {losses:?}");
    }

    #[test]
    fn most_votes_win_whoever_lost_before() {
        check(&[(ANN, 1), (BOB, 2), (CAT, 2)], &[lost(ANN, 9)], (Some(2), None));
        check(&[], &[lost(ANN, 9)], (None, None));
    }

    #[test]
    fn tie_goes_to_the_person_who_lost_most_recently() {
        check(&[(ANN, 1), (BOB, 2)], &[lost(ANN, 5), lost(BOB, 7)], (Some(2), Some(BOB)));
        check(&[(ANN, 1), (BOB, 2)], &[lost(ANN, 8), lost(BOB, 7)], (Some(1), Some(ANN)));
        check(&[(ANN, 3), (BOB, 2)], &[lost(ANN, 1)], (Some(3), Some(ANN)));
    }

    #[test]
    fn tie_of_people_who_never_lost_goes_to_the_lower_number() {
        check(&[(ANN, 3), (BOB, 2)], &[], (Some(2), None));
    }

    #[test]
    fn tie_of_people_who_lost_the_same_vote_goes_to_the_lower_number() {
        check(&[(ANN, 3), (BOB, 2)], &[lost(ANN, 5), lost(BOB, 5)], (Some(2), Some(BOB)));
    }

    #[test]
    fn person_whose_choice_does_not_lead_decides_nothing() {
        let dot = UserId(4);
        let choices = [(ANN, 1), (UserId(5), 1), (BOB, 2), (UserId(6), 2), (dot, 3)];
        check(&choices, &[lost(dot, 9)], (Some(1), None));
    }

    #[test]
    fn guest_has_no_lost_votes() {
        let mut all = ballots(&[(ANN, 2)]);
        all.push(CountedBallot { voter: None, choice: 1 });
        let decision = VoteDecision::from_ballots(&titles(), &all, &[]);
        assert_eq!((decision.winner, decision.tie_breaker), (Some(1), None));
    }

    #[test]
    fn tie_about_free_text_has_no_winner() {
        let tie = ballots(&[(ANN, 1), (BOB, 2)]);
        let decision = VoteDecision::from_ballots(&free_text(), &tie, &[lost(BOB, 7)]);
        assert_eq!((decision.winner, decision.tie_breaker), (None, None));
    }
}
