//! Answers of the people who were asked about the titles of a proposal.

use diesel::prelude::*;
use jiff::Timestamp;

use super::space_proposals::{
    self, ProposalAnswer, ProposalId, ProposalPhase, ProposedTitleState, SpaceProposal,
};
use crate::conversation::making_room::SilenceRule;
use crate::conversation::making_room::proposal::Question;
use crate::conversation::transcript::{MediaKind, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms};
use crate::store::queue::suppression;
use crate::store::schema::{outbox, space_proposal_answers, space_proposal_titles};

/// Prefix of the keys of questions, which mention what their user has watched.
pub const QUESTION_KEY: &str = "room_question";

/// Title about which a person was asked, in the open proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedTitle {
    pub proposal: ProposalId,
    /// Number in the proposal.
    pub number: i64,
    pub kind: MediaKind,
    pub catalog_id: i64,
    pub title: String,
    pub year: u16,
    pub state: ProposedTitleState,
    pub answer: Option<ProposalAnswer>,
}

pub(super) fn insert_questions(
    conn: &mut Conn,
    proposal: ProposalId,
    questions: &[Question],
) -> QueryResult<()> {
    for question in questions {
        for (position, index) in (1_i64..).zip(&question.titles) {
            diesel::insert_into(space_proposal_answers::table)
                .values((
                    space_proposal_answers::proposal_id.eq(proposal.0),
                    space_proposal_answers::number.eq(i64::try_from(index + 1).unwrap_or(i64::MAX)),
                    space_proposal_answers::user_id.eq(question.user),
                    space_proposal_answers::position.eq(position),
                ))
                .execute(conn)?;
        }
    }
    Ok(())
}

/// Loads the titles of the open proposal about which a person was asked, in the order of the person's text; none until a
/// channel has accepted that text.
pub fn load_asked_titles(conn: &mut Conn, user: UserId) -> QueryResult<Vec<AskedTitle>> {
    match space_proposals::load_open_proposal(conn)? {
        Some(open) if was_question_accepted(conn, open.id, user)? => load_titles_asked(conn, open.id, user),
        Some(_) | None => Ok(Vec::new()),
    }
}

/// Loads the titles of a proposal about which a person was asked.
pub fn load_titles_asked(
    conn: &mut Conn,
    proposal: ProposalId,
    user: UserId,
) -> QueryResult<Vec<AskedTitle>> {
    type Row = (i64, MediaKind, i64, String, i64, ProposedTitleState, Option<ProposalAnswer>);
    let rows: Vec<Row> = space_proposal_answers::table
        .inner_join(
            space_proposal_titles::table.on(space_proposal_titles::proposal_id
                .eq(space_proposal_answers::proposal_id)
                .and(space_proposal_titles::number.eq(space_proposal_answers::number))),
        )
        .filter(space_proposal_answers::user_id.eq(user))
        .filter(space_proposal_answers::proposal_id.eq(proposal.0))
        .filter(space_proposal_answers::position.is_not_null())
        .order(space_proposal_answers::position)
        .select((
            space_proposal_titles::number,
            space_proposal_titles::kind,
            space_proposal_titles::catalog_id,
            space_proposal_titles::title,
            space_proposal_titles::year,
            space_proposal_titles::state,
            space_proposal_answers::answer,
        ))
        .load(conn)?;
    let asked = |(number, kind, catalog_id, title, year, state, answer)| {
        Ok(AskedTitle {
            proposal,
            number,
            kind,
            catalog_id,
            title,
            year: convert_integer(year)?,
            state,
            answer,
        })
    };
    rows.into_iter().map(asked).collect()
}

/// Loads the people who were asked, each once.
pub fn load_asked_people(conn: &mut Conn, proposal: ProposalId) -> QueryResult<Vec<UserId>> {
    space_proposal_answers::table
        .filter(space_proposal_answers::proposal_id.eq(proposal.0))
        .select(space_proposal_answers::user_id)
        .distinct()
        .order(space_proposal_answers::user_id)
        .load(conn)
}

/// Loads the answers about the titles of a proposal: the number of the title, the person, and the answer.
pub fn load_answers(
    conn: &mut Conn,
    proposal: ProposalId,
) -> QueryResult<Vec<(i64, UserId, Option<ProposalAnswer>)>> {
    space_proposal_answers::table
        .filter(space_proposal_answers::proposal_id.eq(proposal.0))
        .order((space_proposal_answers::number, space_proposal_answers::user_id))
        .select((
            space_proposal_answers::number,
            space_proposal_answers::user_id,
            space_proposal_answers::answer,
        ))
        .load(conn)
}

/// Stores the answer of a person about a title of the open proposal. A title that somebody keeps stays from then on.
pub fn store_answer(
    conn: &mut Conn,
    (user, asked): (UserId, &AskedTitle),
    answer: ProposalAnswer,
    now: Timestamp,
) -> QueryResult<()> {
    diesel::update(space_proposal_answers::table.find((asked.proposal.0, asked.number, user)))
        .set((space_proposal_answers::answer.eq(answer), space_proposal_answers::answered_at.eq(ms(now))))
        .execute(conn)?;
    let is_undecided = matches!(asked.state, ProposedTitleState::Asked | ProposedTitleState::MayGo);
    if answer == ProposalAnswer::Keep && is_undecided {
        let stays = ProposedTitleState::Stays;
        space_proposals::set_title_state(conn, asked.proposal, asked.number, stays)?;
    }
    Ok(())
}

/// Returns whether the answers about a title protect it: somebody keeps it, did not get the question, or has not answered
/// although silence protects.
pub(super) fn is_protected(conn: &mut Conn, proposal: &SpaceProposal, number: i64) -> QueryResult<bool> {
    for (_, user, answer) in
        load_answers(conn, proposal.id)?.into_iter().filter(|(of_title, ..)| *of_title == number)
    {
        let is_protected = match (answer, proposal.silence) {
            (Some(ProposalAnswer::Keep), _) | (None, SilenceRule::Stays) => true,
            (Some(ProposalAnswer::Free), _) => false,
            (None, SilenceRule::MayGo) => !was_question_accepted(conn, proposal.id, user)?,
        };
        if is_protected {
            return Ok(true);
        }
    }
    Ok(false)
}

fn was_question_accepted(conn: &mut Conn, proposal: ProposalId, user: UserId) -> QueryResult<bool> {
    let question = outbox::table.filter(outbox::dedupe_key.eq(question_key(proposal, user)));
    let accepted = question.filter(outbox::accepted_at.is_not_null());
    diesel::select(diesel::dsl::exists(accepted)).get_result(conn)
}

/// Withdraws the questions of a proposal that were not sent in time.
pub(super) fn suppress_questions(conn: &mut Conn, proposal: ProposalId, now: Timestamp) -> QueryResult<()> {
    suppression::suppress_messages_by_key(conn, &format!("{QUESTION_KEY}:{proposal}"), now)
}

/// Returns the key of the message that asks a person about the titles of a proposal.
fn question_key(proposal: ProposalId, user: UserId) -> String {
    format!("{QUESTION_KEY}:{proposal}:user:{user}")
}

/// Protects the titles about which a person was asked and has not answered, because the person can no longer be asked, and
/// shows them to the person no more.
pub(in crate::store) fn withdraw_questions(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    let Some(open) = space_proposals::load_open_proposal(conn)? else { return Ok(()) };
    if open.phase == ProposalPhase::Asking {
        for asked in load_titles_asked(conn, open.id, user)?.iter().filter(|asked| asked.answer.is_none()) {
            store_answer(conn, (user, asked), ProposalAnswer::Keep, now)?;
        }
    }
    let of_user = space_proposal_answers::user_id.eq(user);
    diesel::update(space_proposal_answers::table.filter(of_user))
        .set(space_proposal_answers::position.eq(None::<i64>))
        .execute(conn)
        .map(drop)
}

/// Deletes the answers of a user whose data is erased. Titles that nobody else has answered for stay.
pub(in crate::store) fn delete_answers_of(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    withdraw_questions(conn, user, now)?;
    diesel::delete(space_proposal_answers::table.filter(space_proposal_answers::user_id.eq(user)))
        .execute(conn)
        .map(drop)
}
