//! Open proposal to make room, and the kept titles, as a page shows them.

use jiff::Timestamp;

use super::user_ref::{self, UserRef};
use crate::store::library::kept_titles::{self, KeptTitle};
use crate::store::library::space_answers;
use crate::store::library::space_proposals::{self, ProposalAnswer, SpaceProposal, StoredTitle};
use crate::store::{Conn, QueryResult};

/// Proposals and kept titles.
#[derive(Debug, Clone)]
pub struct SpaceOverview {
    pub open: Option<OpenProposal>,
    pub kept: Vec<(UserRef, KeptTitle)>,
}

/// Open proposal with its answers.
#[derive(Debug, Clone)]
pub struct OpenProposal {
    pub proposal: SpaceProposal,
    pub titles: Vec<AnsweredTitle>,
}

/// Title of a proposal with the answers about it.
#[derive(Debug, Clone)]
pub struct AnsweredTitle {
    pub title: StoredTitle,
    pub answers: Vec<(UserRef, Option<ProposalAnswer>)>,
}

/// Loads the open proposal and the kept titles.
pub fn load_space_overview(conn: &mut Conn, now: Timestamp) -> QueryResult<SpaceOverview> {
    let open = match space_proposals::load_open_proposal(conn)? {
        Some(proposal) => Some(load_answered(conn, proposal)?),
        None => None,
    };
    let mut kept = Vec::new();
    for title in kept_titles::load_kept_titles(conn, now)? {
        kept.push((user_ref::load_user_ref(conn, title.user)?, title));
    }
    Ok(SpaceOverview { open, kept })
}

fn load_answered(conn: &mut Conn, proposal: SpaceProposal) -> QueryResult<OpenProposal> {
    let answers = space_answers::load_answers(conn, proposal.id)?;
    let mut titles = Vec::new();
    for title in space_proposals::load_titles(conn, proposal.id)? {
        let mut of_title = Vec::new();
        for (_, user, answer) in answers.iter().filter(|(number, ..)| *number == title.number) {
            of_title.push((user_ref::load_user_ref(conn, *user)?, *answer));
        }
        titles.push(AnsweredTitle { title, answers: of_title });
    }
    Ok(OpenProposal { proposal, titles })
}
