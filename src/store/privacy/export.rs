//! All data stored about a user, as one JSON object for the user to read.

use std::collections::HashMap;
use std::hash::Hash;

use diesel::prelude::*;
use serde::Serialize;

use super::erase::{Scope, turn_ids};
use super::rows::{
    Addition, Approval, Attempt, Audited, Call, Conversation, Fact, Follow, Item, Notice, Person, Question,
    Reaction, Received, Remembered, Sent, Title, Turn, Usage,
};
use crate::conversation::transcript::UserId;
use crate::store::schema::{
    additions, agent_responses, approvals, audit_log, blocks, conversations, follows, inbound_events,
    llm_steps, notices, outbox, pending_actions, reactions, requests, tool_call_items, tool_calls, turns,
    usage, user_facts, users,
};
use crate::store::{Conn, QueryResult};

#[derive(Debug, Serialize)]
pub struct Export {
    person: Person,
    conversations: Vec<Talk>,
    /// Messages that no turn processed, such as those of a newcomer.
    other_texts_received: Vec<Received>,
    /// Messages that no turn wrote, such as notifications.
    other_texts_sent: Vec<Sent>,
    open_question: Option<Question>,
    reactions: Vec<Reaction>,
    requests_to_admins: Vec<Approval>,
    titles_asked_for: Vec<Title>,
    titles_to_hear_of: Vec<Follow>,
    notices: Vec<Notice>,
    remembered: Vec<Remembered>,
    facts: Vec<Fact>,
    additions: Vec<Addition>,
    usage_by_day: Vec<Usage>,
    audit: Vec<Audited>,
}

#[derive(Debug, Serialize)]
struct Talk {
    #[serde(flatten)]
    conversation: Conversation,
    turns: Vec<Exchange>,
}

#[derive(Debug, Serialize)]
struct Exchange {
    #[serde(flatten)]
    turn: Turn,
    texts_received: Vec<Received>,
    steps: Vec<Step>,
    /// Tool calls made by code, which belong to no step.
    other_tool_calls: Vec<ToolCall>,
    texts_sent: Vec<Sent>,
}

#[derive(Debug, Serialize)]
struct Step {
    #[serde(flatten)]
    attempt: Attempt,
    text: Option<String>,
    thinking: Option<String>,
    tool_calls: Vec<ToolCall>,
}

#[derive(Debug, Serialize)]
struct ToolCall {
    #[serde(flatten)]
    call: Call,
    items: Vec<Item>,
}

/// Exports the data of a user. Each table is read once, so that the time is only proportional to the length of the
/// history.
pub fn export(conn: &mut Conn, user: UserId) -> QueryResult<Export> {
    let mut received = received(conn, user)?;
    let mut sent = sent(conn, user)?;
    let mut exchanges: HashMap<i64, Vec<Exchange>> = HashMap::new();
    let (mut steps, mut calls) = steps(conn, user)?;
    for turn in turns(conn, user)? {
        let id = turn.id;
        exchanges.entry(turn.conversation_id).or_default().push(Exchange {
            turn,
            texts_received: received.remove(&Some(id)).unwrap_or_default(),
            steps: steps.remove(&id).unwrap_or_default(),
            other_tool_calls: calls.remove(&id).unwrap_or_default(),
            texts_sent: sent.remove(&Some(id)).unwrap_or_default(),
        });
    }
    let talks = talks(conn, user)?;
    let talk = |conversation: Conversation| Talk {
        turns: exchanges.remove(&conversation.id).unwrap_or_default(),
        conversation,
    };
    Ok(Export {
        person: users::table.find(user.0).select(Person::as_select()).first(conn)?,
        conversations: talks.into_iter().map(talk).collect(),
        other_texts_received: received.remove(&None).unwrap_or_default(),
        other_texts_sent: sent.remove(&None).unwrap_or_default(),
        open_question: pending_actions::table
            .filter(pending_actions::user_id.eq(user.0))
            .select(Question::as_select())
            .first(conn)
            .optional()?,
        reactions: reactions::table
            .filter(reactions::user_id.eq(user.0))
            .order(reactions::id)
            .select(Reaction::as_select())
            .load(conn)?,
        requests_to_admins: approvals::table
            .filter(approvals::user_id.eq(user.0))
            .order(approvals::id)
            .select(Approval::as_select())
            .load(conn)?,
        titles_asked_for: requests::table
            .filter(requests::user_id.eq(user.0))
            .order(requests::id)
            .select(Title::as_select())
            .load(conn)?,
        titles_to_hear_of: follows::table
            .filter(follows::user_id.eq(user.0))
            .order(follows::id)
            .select(Follow::as_select())
            .load(conn)?,
        notices: notices::table
            .filter(notices::user_id.eq(user.0))
            .order(notices::id)
            .select(Notice::as_select())
            .load(conn)?,
        remembered: remembered(conn, user)?,
        facts: user_facts::table
            .filter(user_facts::user_id.eq(user.0))
            .order(user_facts::id)
            .select(Fact::as_select())
            .load(conn)?,
        additions: additions(conn, user)?,
        usage_by_day: usage_by_day(conn, user)?,
        audit: audit_log::table
            .filter(audit_log::user_id.eq(user.0).or(audit_log::subject.eq(format!("user:{user}"))))
            .order(audit_log::id)
            .select(Audited::as_select())
            .load(conn)?,
    })
}

fn talks(conn: &mut Conn, user: UserId) -> QueryResult<Vec<Conversation>> {
    conversations::table
        .filter(conversations::user_id.eq(user.0))
        .order(conversations::id)
        .select(Conversation::as_select())
        .load(conn)
}

fn remembered(conn: &mut Conn, user: UserId) -> QueryResult<Vec<Remembered>> {
    agent_responses::table
        .filter(agent_responses::user_id.eq(user.0))
        .order(agent_responses::id)
        .select(Remembered::as_select())
        .load(conn)
}

fn additions(conn: &mut Conn, user: UserId) -> QueryResult<Vec<Addition>> {
    additions::table
        .filter(additions::user_id.eq(user.0))
        .order(additions::id)
        .select(Addition::as_select())
        .load(conn)
}

fn usage_by_day(conn: &mut Conn, user: UserId) -> QueryResult<Vec<Usage>> {
    usage::table.filter(usage::user_id.eq(user.0)).order(usage::day).select(Usage::as_select()).load(conn)
}

fn turns(conn: &mut Conn, user: UserId) -> QueryResult<Vec<Turn>> {
    turns::table
        .filter(turns::id.eq_any(turn_ids(Scope::Person(user))))
        .order(turns::id)
        .select(Turn::as_select())
        .load(conn)
}

fn received(conn: &mut Conn, user: UserId) -> QueryResult<HashMap<Option<i64>, Vec<Received>>> {
    let texts = inbound_events::table
        .filter(inbound_events::user_id.eq(user.0))
        .order(inbound_events::id)
        .select(Received::as_select())
        .load(conn)?;
    Ok(grouped(texts, |text: &Received| text.turn_id))
}

fn sent(conn: &mut Conn, user: UserId) -> QueryResult<HashMap<Option<i64>, Vec<Sent>>> {
    let texts = outbox::table
        .filter(outbox::user_id.eq(user.0))
        .order(outbox::id)
        .select(Sent::as_select())
        .load(conn)?;
    Ok(grouped(texts, |text: &Sent| text.turn_id))
}

type ByTurn<T> = HashMap<i64, Vec<T>>;
/// Turn, step and attempt of a block; its type and content.
type Content = ((i64, i64, i64), (String, String));

/// Loads the steps of each turn, and the calls that belong to no step.
fn steps(conn: &mut Conn, user: UserId) -> QueryResult<(ByTurn<Step>, ByTurn<ToolCall>)> {
    let attempts: Vec<Attempt> = llm_steps::table
        .filter(llm_steps::turn_id.eq_any(turn_ids(Scope::Person(user))))
        .order((llm_steps::turn_id, llm_steps::step, llm_steps::attempt))
        .select(Attempt::as_select())
        .load(conn)?;
    let contents: Vec<Content> = blocks::table
        .filter(blocks::turn_id.eq_any(turn_ids(Scope::Person(user))).and(blocks::type_.ne("tool_call")))
        .select(((blocks::turn_id, blocks::step, blocks::attempt), (blocks::type_, blocks::content)))
        .load(conn)?;
    let mut contents: HashMap<_, String> =
        contents.into_iter().map(|(of, (kind, content))| ((of, kind), content)).collect();
    let mut calls = grouped(calls(conn, user)?, |call: &ToolCall| (call.call.turn_id, call.call.step));
    let mut steps: ByTurn<Step> = HashMap::new();
    for attempt in attempts {
        let of = (attempt.turn_id, attempt.step, attempt.attempt);
        let tool_calls = match attempt.state.as_str() {
            "complete" => calls.remove(&(attempt.turn_id, attempt.step)).unwrap_or_default(),
            _ => Vec::new(),
        };
        steps.entry(attempt.turn_id).or_default().push(Step {
            text: contents.remove(&(of, "text".to_owned())),
            thinking: contents.remove(&(of, "thinking".to_owned())),
            attempt,
            tool_calls,
        });
    }
    let left = calls.into_values().flatten().collect();
    Ok((steps, grouped(left, |call: &ToolCall| call.call.turn_id)))
}

fn calls(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ToolCall>> {
    let calls: Vec<Call> = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(turn_ids(Scope::Person(user))))
        .order((tool_calls::turn_id, tool_calls::step, tool_calls::ord))
        .select(Call::as_select())
        .load(conn)?;
    let theirs = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(turn_ids(Scope::Person(user))))
        .select(tool_calls::id);
    let items: Vec<Item> = tool_call_items::table
        .filter(tool_call_items::tool_call_id.eq_any(theirs))
        .order((tool_call_items::tool_call_id, tool_call_items::ord))
        .select(Item::as_select())
        .load(conn)?;
    let mut items = grouped(items, |item: &Item| item.tool_call_id);
    let with_items = |call: Call| ToolCall { items: items.remove(&call.id).unwrap_or_default(), call };
    Ok(calls.into_iter().map(with_items).collect())
}

/// Groups rows by a key, in their order.
fn grouped<T, K: Eq + Hash>(rows: Vec<T>, key: impl Fn(&T) -> K) -> HashMap<K, Vec<T>> {
    let mut groups: HashMap<K, Vec<T>> = HashMap::new();
    for row in rows {
        groups.entry(key(&row)).or_default().push(row);
    }
    groups
}
