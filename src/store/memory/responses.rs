//! Storage of answers that can be recalled later. The answer of a turn is stored in the transaction of its reply.

use diesel::dsl::{self, exists, not};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::groups::GroupId;
use crate::conversation::memory::answer_metadata::is_informative;
use crate::conversation::memory::recall::RecallScope;
use crate::conversation::people::facts::{FORGET, REMEMBER};
use crate::conversation::stream_events::CallPhase;
use crate::conversation::text::normalization::normalize_title;
use crate::conversation::transcript::{TurnId, UserId};
use crate::store::codec::ms;
use crate::store::column_types::stored_enum;
use crate::store::conversation::record::steps::AttemptState;
use crate::store::database::literal_sql::{LiteralSql, literal_sql};
use crate::store::database::statement_cache::CacheStatement;
use crate::store::people::rooms;
use crate::store::schema::{agent_responses, inbound_events, llm_steps, tool_calls};
use crate::store::turns::turn_lifecycle::TurnKind;
use crate::store::{Conn, QueryResult};

/// Maximum lengths of a stored question and of a stored answer, in characters.
const MAX_QUESTION_CHARS: usize = 1_000;
const MAX_ANSWER_CHARS: usize = 2_000;

/// Value of `agent` for answers of code.
const CODE_AGENT: &str = "code";

literal_sql! {
    /// Value of `agent` for the answer of a step: the name of its model, or the keyword responder.
    const STEP_AGENT: Text = "iif(llm_steps.brain = 'keyword', 'keyword', llm_steps.model)";
}

/// Value of `agent` for answers that the operator added manually.
pub const OPERATOR: &str = "operator";

stored_enum! {
    /// State of a stored answer.
    pub enum AnswerState {
        /// The answer waits for its metadata, and is found only by its words.
        Pending = "pending",
        /// The answer is indexed.
        Done = "done",
        /// The answer is excluded from search.
        Skipped = "skipped",
        /// A newer copy has replaced the answer.
        Repeated = "repeated",
        Erased = "erased",
    }
}

/// States of the answers that a search can find.
pub(super) const FINDABLE: [AnswerState; 2] = [AnswerState::Pending, AnswerState::Done];

stored_enum! {
    /// Progress of the decision whether an answer is shared with everyone.
    pub enum SharingState {
        No = "no",
        Suggested = "suggested",
        Approved = "approved",
        Refused = "refused",
    }
}

/// Owner of an answer: the users who may find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOwner {
    User(UserId),
    Group(GroupId),
    Everyone,
}

impl AnswerOwner {
    /// Returns the value of the column `owner`.
    pub fn column_value(self) -> String {
        match self {
            Self::User(user) => format!("u{user}"),
            Self::Group(group) => format!("g{}", group.0),
            Self::Everyone => "all".to_owned(),
        }
    }

    fn scope(self) -> RecallScope {
        match self {
            Self::User(_) => RecallScope::User,
            Self::Group(_) => RecallScope::Group,
            Self::Everyone => RecallScope::Global,
        }
    }
}

/// Origin of an exchange.
#[derive(Debug, Clone)]
pub enum AnswerSource {
    /// Turn, whose answer is stored in the transaction that finishes the turn.
    Turn(TurnId),
    /// Other origin, such as `notice:3`. An exchange is not stored again if its origin is known.
    Other(String),
}

/// Question and answer to be stored.
#[derive(Debug, Clone)]
pub struct NewAnswer {
    pub source: AnswerSource,
    pub owner: AnswerOwner,
    /// User who asked the question or wrote the shared message; `None` for notifications.
    pub user: Option<UserId>,
    /// Agent that answered: the name of a model, `keyword`, `code` or `operator`.
    pub agent: String,
    pub question: String,
    pub answer: String,
}

/// Key of the statement that stores an answer.
enum NewAnswerRow {}

/// Stores an exchange, to be indexed later.
pub fn store_answer(conn: &mut Conn, new: &NewAnswer, now: Timestamp) -> QueryResult<()> {
    let (question, answer) =
        (truncate_chars(&new.question, MAX_QUESTION_CHARS), truncate_chars(&new.answer, MAX_ANSWER_CHARS));
    let (turn, source) = match &new.source {
        AnswerSource::Turn(turn) => (Some(*turn), ""),
        AnswerSource::Other(source) => (None, source.as_str()),
    };
    let sharing = if new.owner == AnswerOwner::Everyone { SharingState::Approved } else { SharingState::No };
    let group = match new.owner {
        AnswerOwner::Group(group) => Some(group),
        AnswerOwner::User(_) | AnswerOwner::Everyone => None,
    };
    diesel::insert_into(agent_responses::table)
        .values((
            agent_responses::source.eq(source),
            agent_responses::scope.eq(new.owner.scope()),
            agent_responses::owner.eq(new.owner.column_value()),
            agent_responses::user_id.eq(new.user),
            agent_responses::turn_id.eq(turn),
            agent_responses::group_id.eq(group),
            agent_responses::agent.eq(&new.agent),
            agent_responses::trigger_text.eq(question),
            agent_responses::response_text.eq(answer),
            agent_responses::likeness.eq(text_hash(question, answer)),
            agent_responses::for_everyone.eq(sharing),
            agent_responses::state.eq(AnswerState::Pending),
            agent_responses::revision.eq(NEXT_REVISION),
            agent_responses::created_at.eq(ms(now)),
        ))
        .on_conflict_do_nothing()
        .cached_as::<NewAnswerRow>()
        .run(conn)
}

/// Adds an answer that the operator wrote; returns its row id.
pub fn add_operator_answer(
    conn: &mut Conn,
    owner: AnswerOwner,
    user: Option<UserId>,
    (question, answer): (&str, &str),
    now: Timestamp,
) -> QueryResult<i64> {
    let (question, answer) = (question.to_owned(), answer.to_owned());
    let source = format!("added:{}", next_revision(conn)?);
    let agent = OPERATOR.to_owned();
    let new = NewAnswer { source: AnswerSource::Other(source.clone()), owner, user, agent, question, answer };
    store_answer(conn, &new, now)?;
    let has_source = agent_responses::turn_id.is_null().and(agent_responses::source.eq(source));
    agent_responses::table.filter(has_source).select(agent_responses::id).first(conn)
}

/// Stores the answer of a turn, in the transaction that finishes the turn. Replies to commands are not stored, because
/// they may contain approval codes and phone numbers of other users; confirmation prompts and fallback replies are not
/// stored, because they are not answers.
pub(in crate::store) fn store_turn_answer(
    conn: &mut Conn,
    (turn, user, kind): (TurnId, UserId, TurnKind),
    room: Option<UserId>,
    answer: &str,
    now: Timestamp,
) -> QueryResult<()> {
    if !matches!(kind, TurnKind::Chat | TurnKind::Confirm) || !is_informative(answer) {
        return Ok(());
    }
    let owner = match room {
        None => AnswerOwner::User(user),
        Some(room) => match rooms::load_room(conn, room)?.filter(|room| room.remembers) {
            Some(room) => AnswerOwner::Group(room.group_id),
            None => return Ok(()),
        },
    };
    // Facts are stored separately: a copy in an answer would remain after the user has the fact forgotten.
    let calls_tool = |name: &'static str| tool_calls::tool_name.eq(name);
    let is_prompt_or_fact =
        tool_calls::state.eq(CallPhase::Held).or(calls_tool(REMEMBER)).or(calls_tool(FORGET));
    let excluding_calls = tool_calls::table.filter(tool_calls::turn_id.eq(turn).and(is_prompt_or_fact));
    let last_agent = llm_steps::table
        .filter(llm_steps::turn_id.eq(turn).and(llm_steps::state.eq(AttemptState::Complete)))
        .order(llm_steps::step.desc())
        .select(STEP_AGENT)
        .single_value();
    let rows: Vec<(String, Option<String>)> = inbound_events::table
        .filter(inbound_events::turn_id.eq(turn).and(not(exists(excluding_calls))))
        .order((inbound_events::provider_at, inbound_events::id))
        .select((inbound_events::body, last_agent))
        .cached()
        .load(conn)?;
    let (questions, mut agents): (Vec<String>, Vec<Option<String>>) = rows.into_iter().unzip();
    let Some(agent) = agents.pop() else { return Ok(()) };
    let new = NewAnswer {
        source: AnswerSource::Turn(turn),
        owner,
        user: Some(user),
        agent: agent.unwrap_or_else(|| CODE_AGENT.to_owned()),
        question: questions.join("\n"),
        answer: answer.to_owned(),
    };
    store_answer(conn, &new, now)
}

literal_sql! {
    /// Condition of the answers that more than one user can find, as in the index `ix_response_shared`.
    const IS_SHARED = "agent_responses.scope <> 'user'";
}

/// Condition of the answers to a user, including the shared ones.
#[dsl::auto_type]
pub(in crate::store) fn is_answer_to(user: UserId) -> _ {
    let is_shared: LiteralSql<{ IS_SHARED.hash() }> = IS_SHARED;
    let owner: String = AnswerOwner::User(user).column_value();
    agent_responses::owner.eq(owner).or(is_shared.and(agent_responses::user_id.eq(user)))
}

literal_sql! {
    /// Next revision. Incremental readers use the revision of a row as their cursor.
    pub(super) const NEXT_REVISION: BigInt = "(SELECT coalesce(max(revision), 0) + 1 FROM agent_responses)";
}

/// Loads the next revision, for a change of several rows.
pub fn next_revision(conn: &mut Conn) -> QueryResult<i64> {
    diesel::select(NEXT_REVISION).get_result(conn)
}

/// Returns a hash of the exchange that ignores case and punctuation.
fn text_hash(question: &str, answer: &str) -> i64 {
    let normalized = format!("{}\n{}", normalize_title(question), normalize_title(answer));
    let digest = Sha256::digest(normalized.as_bytes());
    i64::from_le_bytes(std::array::from_fn(|index| digest[index]))
}

fn truncate_chars(text: &str, max_chars: usize) -> &str {
    text.char_indices().nth(max_chars).map_or(text, |(end, _)| &text[..end])
}
