//! Votes, the ballots of people, and the polls of a channel that ask a vote.

use diesel::dsl::exists;
use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::Conn;
use super::codec::{convert_integer, from_json, ms, unreadable_column};
use super::column_types::stored_enum;
use super::database::literal_sql::literal_sql;
use super::people::addresses;
use super::queue::outbox::OutboxState;
use super::queue::suppression;
use super::schema::{ballots, outbox, vote_messages, vote_polls, votes};
use crate::conversation::rating_caps::MinimumAge;
use crate::conversation::transcript::{MediaKind, OutboxId, UserAddress, UserId, VoteId};
use crate::conversation::votes::vote_decision::{CountedBallot, LostVote};
use crate::conversation::votes::{
    CheckedLimit, MAX_VOTES_PER_DAY, Tally, VOTE_PERIOD, VoteMessage, VoteQuestion,
};

literal_sql! {
    /// Condition of the index of open votes.
    const OPEN = "votes.closed_at IS NULL";
    /// Condition of the index of closed votes.
    const CLOSED = "votes.closed_at IS NOT NULL";
}

stored_enum! {
    /// Role of a message in its vote.
    pub enum VotePart {
        Ballot = "ballot",
        Result = "result",
    }
}

/// Stored vote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    pub id: VoteId,
    /// Room that votes; `None` if the household does.
    pub room: Option<UserId>,
    /// Person who started the vote.
    pub started_by: UserId,
    pub question: VoteQuestion,
    pub closes_at: Timestamp,
    pub closed_at: Option<Timestamp>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = votes)]
struct VoteRow {
    id: VoteId,
    room_id: Option<UserId>,
    user_id: UserId,
    question: String,
    options: String,
    closes_at: Timestamp,
    closed_at: Option<Timestamp>,
    reasons: Option<String>,
    checked_kind: Option<MediaKind>,
    checked_cap: Option<i64>,
}

impl VoteRow {
    fn into_vote(self) -> QueryResult<Vote> {
        let options = from_json("options", &self.options)?;
        let mut question = VoteQuestion::from_stored(self.question, options);
        if let Some(kind) = self.checked_kind {
            let reasons = self.reasons.as_deref().ok_or_else(|| unreadable_column("reasons"))?;
            let cap = self.checked_cap.map(convert_integer).transpose()?.map(MinimumAge);
            question =
                question.with_checked_options(from_json("reasons", reasons)?, CheckedLimit { kind, cap });
        }
        Ok(Vote {
            id: self.id,
            room: self.room_id,
            started_by: self.user_id,
            question,
            closes_at: self.closes_at,
            closed_at: self.closed_at,
        })
    }
}

/// Outcome of starting a vote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    Started(Vote),
    /// A vote of the same people is open.
    AlreadyOpen,
    /// The person has started too many votes within a day.
    TooMany,
}

/// Starts a vote of a room, or of the household.
pub fn start_vote(
    conn: &mut Conn,
    (user, room): (UserId, Option<UserId>),
    question: &VoteQuestion,
    now: Timestamp,
) -> QueryResult<StartOutcome> {
    if find_open_vote(conn, room)?.is_some() {
        return Ok(StartOutcome::AlreadyOpen);
    }
    if has_started_too_many(conn, user, now)? {
        return Ok(StartOutcome::TooMany);
    }
    let checked = question.checked();
    let row: VoteRow = diesel::insert_into(votes::table)
        .values((
            votes::room_id.eq(room),
            votes::user_id.eq(user),
            votes::question.eq(question.text()),
            votes::options.eq(serde_json::json!(question.options()).to_string()),
            votes::created_at.eq(ms(now)),
            votes::closes_at.eq(ms(now + VOTE_PERIOD)),
            votes::reasons.eq(checked.map(|_| serde_json::json!(question.reasons()).to_string())),
            votes::checked_kind.eq(checked.map(|limit| limit.kind)),
            votes::checked_cap.eq(checked.and_then(|limit| limit.cap).map(|age| i64::from(age.0))),
        ))
        .returning(VoteRow::as_returning())
        .get_result(conn)?;
    Ok(StartOutcome::Started(row.into_vote()?))
}

/// Returns whether a user has started the maximum number of votes within a day.
pub fn has_started_too_many(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<bool> {
    let since = now - SignedDuration::from_hours(24);
    let recent: i64 = votes::table
        .filter(votes::user_id.eq(user).and(votes::created_at.gt(ms(since))))
        .count()
        .get_result(conn)?;
    Ok(recent >= MAX_VOTES_PER_DAY)
}

pub fn load_vote(conn: &mut Conn, id: VoteId) -> QueryResult<Option<Vote>> {
    let row: Option<VoteRow> = votes::table.find(id).select(VoteRow::as_select()).first(conn).optional()?;
    row.map(VoteRow::into_vote).transpose()
}

/// Finds the open vote of a room, or of the household.
pub fn find_open_vote(conn: &mut Conn, room: Option<UserId>) -> QueryResult<Option<Vote>> {
    Ok(load_open_votes(conn)?.into_iter().find(|vote| vote.room == room))
}

/// Loads the open votes, which are one for each room at most. The one that closes first comes first.
pub fn load_open_votes(conn: &mut Conn) -> QueryResult<Vec<Vote>> {
    let rows: Vec<VoteRow> = votes::table
        .filter(OPEN.and(votes::closes_at.ge(ms(Timestamp::UNIX_EPOCH))))
        .order(votes::closes_at)
        .select(VoteRow::as_select())
        .load(conn)?;
    rows.into_iter().map(VoteRow::into_vote).collect()
}

/// Closes a vote, and stores the number of the option that won. Returns false if it is closed already. The ballots of
/// guests are not kept.
pub fn close_vote(conn: &mut Conn, vote: &Vote, winner: Option<u8>, now: Timestamp) -> QueryResult<bool> {
    let changed = diesel::update(votes::table.find(vote.id).filter(votes::closed_at.is_null()))
        .set((votes::closed_at.eq(ms(now)), votes::winner.eq(winner.map(i64::from))))
        .execute(conn)?;
    if changed == 0 {
        return Ok(false);
    }
    diesel::delete(ballots::table.filter(ballots::vote_id.eq(vote.id).and(ballots::guest.is_not_null())))
        .execute(conn)?;
    Ok(true)
}

/// Loads the ballots of a vote that have a choice.
pub fn load_counted_ballots(conn: &mut Conn, vote: VoteId) -> QueryResult<Vec<CountedBallot>> {
    let rows: Vec<(Option<UserId>, Option<i64>)> = ballots::table
        .filter(ballots::vote_id.eq(vote))
        .order(ballots::id)
        .select((ballots::user_id, ballots::choice))
        .load(conn)?;
    let counted = rows.into_iter().filter_map(|(voter, choice)| Some((voter, choice?)));
    counted.map(|(voter, choice)| Ok(CountedBallot { voter, choice: convert_integer(choice)? })).collect()
}

/// Loads the last decided vote that a user lost; `None` if the user has lost none.
pub fn load_last_lost_vote(conn: &mut Conn, user: UserId) -> QueryResult<Option<LostVote>> {
    let lost = votes::winner
        .is_not_null()
        .and(ballots::choice.assume_not_null().ne(votes::winner.assume_not_null()));
    let at: Option<Option<Timestamp>> = ballots::table
        .inner_join(votes::table)
        .filter(ballots::user_id.eq(user).and(ballots::choice.is_not_null()).and(lost))
        .order(votes::closed_at.desc())
        .select(votes::closed_at)
        .first(conn)
        .optional()?;
    Ok(at.flatten().map(|at| LostVote { voter: user, at }))
}

/// Person who votes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Voter {
    User(UserId),
    /// Person in a group who is no user, by a hash of the address.
    Guest(String),
}

impl Voter {
    /// Finds the voter with an address.
    pub fn find(conn: &mut Conn, address: &UserAddress) -> QueryResult<Self> {
        if let Some((_, user)) = addresses::find_address(conn, address)? {
            return Ok(Self::User(user));
        }
        let digest = Sha256::digest(address.to_text().as_bytes());
        Ok(Self::Guest(digest.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    fn columns(&self) -> (Option<UserId>, Option<&str>) {
        match self {
            Self::User(user) => (Some(*user), None),
            Self::Guest(guest) => (None, Some(guest)),
        }
    }
}

/// Choice of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ballot {
    /// Number of the option; `None` withdraws an earlier choice.
    pub choice: Option<u8>,
    /// Number of the channel's report; `None` for a choice in words.
    pub number: Option<i64>,
}

/// Stores the choice of a person, which replaces an earlier one. A report that is repeated after a later one changes
/// nothing.
pub fn store_ballot(
    conn: &mut Conn,
    vote: VoteId,
    voter: &Voter,
    ballot: Ballot,
    now: Timestamp,
) -> QueryResult<()> {
    let of_vote = ballots::table.filter(ballots::vote_id.eq(vote)).into_boxed();
    let of_voter = match voter {
        Voter::User(user) => of_vote.filter(ballots::user_id.eq(user)),
        Voter::Guest(guest) => of_vote.filter(ballots::guest.eq(guest)),
    };
    let earlier: Option<(i64, Option<i64>)> =
        of_voter.select((ballots::id, ballots::update_id)).first(conn).optional()?;
    let last_number = earlier.and_then(|(_, number)| number);
    if ballot.number.is_some_and(|number| last_number.is_some_and(|last| last >= number)) {
        return Ok(());
    }
    let choice = (
        ballots::choice.eq(ballot.choice.map(i64::from)),
        ballots::update_id.eq(ballot.number.or(last_number)),
        ballots::updated_at.eq(ms(now)),
    );
    if let Some((id, _)) = earlier {
        return diesel::update(ballots::table.find(id)).set(choice).execute(conn).map(drop);
    }
    let (user, guest) = voter.columns();
    diesel::insert_into(ballots::table)
        .values((ballots::vote_id.eq(vote), ballots::user_id.eq(user), ballots::guest.eq(guest), choice))
        .execute(conn)
        .map(drop)
}

/// Loads the choice of a user.
pub fn load_choice(conn: &mut Conn, vote: VoteId, user: UserId) -> QueryResult<Option<u8>> {
    let choice: Option<Option<i64>> = ballots::table
        .filter(ballots::vote_id.eq(vote).and(ballots::user_id.eq(user)))
        .select(ballots::choice)
        .first(conn)
        .optional()?;
    choice.flatten().map(convert_integer).transpose()
}

/// Counts the ballots of a vote.
pub fn count_ballots(conn: &mut Conn, vote: &Vote) -> QueryResult<Tally> {
    let ballots = load_counted_ballots(conn, vote.id)?;
    Ok(Tally::count(&vote.question, ballots.into_iter().map(|ballot| ballot.choice)))
}

/// Records the role of a message to a user in a vote.
pub(in crate::store) fn record_message(
    conn: &mut Conn,
    (id, user): (OutboxId, UserId),
    message: VoteMessage,
) -> QueryResult<()> {
    let (vote, part) = match message {
        VoteMessage::Asks(vote) => (vote, VotePart::Ballot),
        VoteMessage::AsksStarter => {
            let open = find_open_vote(conn, None)?.filter(|vote| vote.started_by == user);
            // The vote may have been closed meanwhile.
            let Some(vote) = open else { return Ok(()) };
            (vote.id, VotePart::Ballot)
        }
        VoteMessage::Announces(vote) => (vote, VotePart::Result),
    };
    diesel::insert_into(vote_messages::table)
        .values((
            vote_messages::outbox_id.eq(id),
            vote_messages::vote_id.eq(vote),
            vote_messages::part.eq(part),
        ))
        .execute(conn)
        .map(drop)
}

/// Finds the role of a message in a vote.
pub fn find_message(conn: &mut Conn, id: OutboxId) -> QueryResult<Option<VoteMessage>> {
    let found: Option<(VoteId, VotePart)> = vote_messages::table
        .find(id)
        .select((vote_messages::vote_id, vote_messages::part))
        .first(conn)
        .optional()?;
    Ok(found.map(|(vote, part)| match part {
        VotePart::Ballot => VoteMessage::Asks(vote),
        VotePart::Result => VoteMessage::Announces(vote),
    }))
}

/// Message that asks a vote.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct BallotMessage {
    id: OutboxId,
    user_id: UserId,
    room_id: Option<UserId>,
    provider_sid: Option<String>,
    attempts: i64,
    state: OutboxState,
}

fn load_ballot_messages(conn: &mut Conn, vote: VoteId) -> QueryResult<Vec<BallotMessage>> {
    vote_messages::table
        .inner_join(outbox::table)
        .filter(vote_messages::vote_id.eq(vote).and(vote_messages::part.eq(VotePart::Ballot)))
        .order(outbox::id)
        .select(BallotMessage::as_select())
        .load(conn)
}

/// Loads the users who were asked in their private chats.
pub fn load_asked_users(conn: &mut Conn, vote: VoteId) -> QueryResult<Vec<UserId>> {
    let private = load_ballot_messages(conn, vote)?.into_iter().filter(|message| message.room_id.is_none());
    let mut users: Vec<UserId> = private.map(|message| message.user_id).collect();
    users.dedup();
    Ok(users)
}

/// Finds the last message that asked a user about a vote, in the room or in the private chat.
pub fn find_ballot_message(conn: &mut Conn, vote: &Vote, user: UserId) -> QueryResult<Option<OutboxId>> {
    let asks_user = |message: &&BallotMessage| match vote.room {
        Some(room) => message.room_id == Some(room),
        None => message.room_id.is_none() && message.user_id == user,
    };
    Ok(load_ballot_messages(conn, vote.id)?.iter().rfind(asks_user).map(|message| message.id))
}

/// Loads the channel's ids of the messages in a room that ask a vote.
pub fn load_poll_messages(conn: &mut Conn, vote: VoteId) -> QueryResult<Vec<String>> {
    let in_room = load_ballot_messages(conn, vote)?.into_iter().filter(|message| message.room_id.is_some());
    Ok(in_room.filter_map(|message| message.provider_sid).collect())
}

/// Suppresses the messages that were to ask about a vote and were not sent.
pub fn suppress_ballot_messages(conn: &mut Conn, vote: VoteId, now: Timestamp) -> QueryResult<()> {
    let waiting = load_ballot_messages(conn, vote)?.into_iter();
    let waiting = waiting.filter(|message| message.state == OutboxState::Queued);
    waiting.map(|message| message.id).try_for_each(|id| suppression::suppress_message(conn, id, now))
}

/// Records the poll that was sent with a message.
pub fn record_sent_poll(conn: &mut Conn, message: OutboxId, poll: &str) -> QueryResult<()> {
    match find_message(conn, message)? {
        Some(VoteMessage::Asks(vote)) => record_poll(conn, poll, vote),
        Some(VoteMessage::Announces(_) | VoteMessage::AsksStarter) | None => Ok(()),
    }
}

fn record_poll(conn: &mut Conn, poll: &str, vote: VoteId) -> QueryResult<()> {
    diesel::insert_into(vote_polls::table)
        .values((vote_polls::poll.eq(poll), vote_polls::vote_id.eq(vote)))
        .on_conflict(vote_polls::poll)
        .do_update()
        .set(vote_polls::vote_id.eq(vote))
        .execute(conn)
        .map(drop)
}

/// Finds the vote that a poll asks. The id of a poll is unknown if the answer to sending it was lost, or is not recorded
/// yet: the poll then belongs to the only open vote with an attempt whose poll is unknown.
pub fn find_vote_of_poll(conn: &mut Conn, poll: &str) -> QueryResult<Option<Vote>> {
    let known: Option<VoteId> =
        vote_polls::table.find(poll).select(vote_polls::vote_id).first(conn).optional()?;
    if let Some(vote) = known {
        return load_vote(conn, vote);
    }
    let mut candidates = Vec::new();
    for vote in load_open_votes(conn)? {
        let in_room =
            load_ballot_messages(conn, vote.id)?.into_iter().filter(|message| message.room_id.is_some());
        let attempts: i64 = in_room.map(|message| message.attempts).sum();
        let known: i64 =
            vote_polls::table.filter(vote_polls::vote_id.eq(vote.id)).count().get_result(conn)?;
        if attempts > known {
            candidates.push(vote);
        }
    }
    let only = if candidates.len() == 1 { candidates.pop() } else { None };
    if let Some(vote) = &only {
        record_poll(conn, poll, vote.id)?;
    }
    Ok(only)
}

/// Returns whether a vote closed before `before`.
pub fn has_votes_closed_before(conn: &mut Conn, before: Timestamp) -> QueryResult<bool> {
    let old = votes::table.filter(CLOSED.and(votes::closed_at.lt(ms(before))));
    diesel::select(exists(old)).get_result(conn)
}

/// Deletes the votes that closed before `before`, with their ballots.
pub fn delete_votes_closed_before(conn: &mut Conn, before: Timestamp) -> QueryResult<()> {
    let old = votes::table.filter(CLOSED.and(votes::closed_at.lt(ms(before))));
    diesel::delete(old).execute(conn).map(drop)
}

/// Deletes the choices of a user, and the votes that the user started.
pub fn erase_votes_of(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    diesel::delete(ballots::table.filter(ballots::user_id.eq(user))).execute(conn)?;
    diesel::delete(votes::table.filter(votes::user_id.eq(user))).execute(conn).map(drop)
}
