//! Calls of agents: each is stored, runs as a turn of the person for whom the agent acts, and is answered with its outcome.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::Clock;
use crate::conversation::agents::{AgentCaller, AgentName};
use crate::conversation::routing::rooms::Audience;
use crate::conversation::routing::senders::Senders;
use crate::conversation::transcript::{
    EffectLevel, Responder, ToolArguments, ToolSpec, User, UserId, UserStatus,
};
use crate::engine::inbound::scheduler::TurnScheduler;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::store::agent_calls::{self, AgentAdmission, NewAgentCall};
use crate::store::agent_tickets::{self, CallProgress, CallRecord};
use crate::store::confirmation::{pending_action, pending_lookup};
use crate::store::database::db::{Db, DbError};
use crate::store::people::{addresses, users};
use crate::store::{Conn, QueryResult};

/// Maximum wait for a call. A call that takes longer is answered with its ticket.
const MAX_RESPONSE_WAIT: Duration = Duration::from_secs(75);

/// What an agent may do with its key, if its person may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentScope {
    Read,
    /// Also adds and changes titles, and asks the person about deletions.
    Write,
}

/// Key with which an agent acts for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentKey {
    pub id: i64,
    pub name: String,
    pub scope: AgentScope,
    pub person: UserId,
}

/// Outcome of a call of an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentCallOutcome {
    /// The tool does not exist, or is not offered to the agent.
    UnknownTool,
    /// Too many calls with the key run.
    Busy,
    /// The key has made too many calls within the last hour.
    OverLimit,
    Answered(Box<CallRecord>),
}

/// Calls of agents.
pub struct AgentCalls {
    db: Db,
    clock: Clock,
    live: LiveParts,
    scheduler: TurnScheduler,
    /// Names that earlier clients stated when they began, by the id of the key. Their later requests do not state it.
    stated_names: Mutex<HashMap<i64, AgentName>>,
}

impl AgentCalls {
    pub(crate) fn new(parts: &EngineParts, scheduler: TurnScheduler) -> Self {
        let EngineParts { db, clock, live, .. } = parts.clone();
        Self { db, clock, live, scheduler, stated_names: Mutex::default() }
    }

    /// Remembers the name that the agent with a key has stated, until the program stops.
    pub fn remember_name(&self, key: &AgentKey, name: AgentName) {
        self.stated_names.lock().unwrap_or_else(PoisonError::into_inner).insert(key.id, name);
    }

    fn remembered_name(&self, key: &AgentKey) -> AgentName {
        let names = self.stated_names.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(&key.id).cloned().unwrap_or_default()
    }

    /// Returns the tools that an agent may call, by name. Deletions are not offered if the person cannot be asked.
    pub async fn offered_tools(&self, key: &AgentKey) -> Result<Vec<ToolSpec>, DbError> {
        let (person, settings) = (key.person, self.live.settings());
        let load = move |conn: &mut Conn| {
            let user = users::load_user(conn, person)?;
            let is_reachable = can_be_asked(conn, &user, &settings.senders)?;
            Ok((user, is_reachable))
        };
        let (user, is_reachable) = self.db.read(load).await?;
        if user.status != UserStatus::Active {
            return Ok(Vec::new());
        }
        let is_allowed = |tool: &&ToolSpec| match (tool.effect_level, key.scope) {
            (EffectLevel::Read, AgentScope::Read | AgentScope::Write) => true,
            (EffectLevel::Write | EffectLevel::Destructive, AgentScope::Read) => false,
            (EffectLevel::Write, AgentScope::Write) => true,
            (EffectLevel::Destructive, AgentScope::Write) => is_reachable,
        };
        let tools = self.live.current().tools.clone();
        let offered = tools.offered_tools(user.rights, Audience::Agent, Responder::Model);
        let mut allowed: Vec<ToolSpec> = offered.iter().filter(is_allowed).cloned().collect();
        allowed.sort_by_key(|tool| tool.name);
        Ok(allowed)
    }

    /// Calls a tool, and waits for the outcome. The call continues if the agent stops waiting. `name` is the name that the
    /// request states, if it states one.
    pub async fn call_tool(
        &self,
        key: &AgentKey,
        name: Option<AgentName>,
        (tool, arguments): (&str, ToolArguments),
    ) -> Result<AgentCallOutcome, DbError> {
        let offered = self.offered_tools(key).await?;
        let Some(spec) = offered.iter().find(|spec| spec.name == tool) else {
            return Ok(AgentCallOutcome::UnknownTool);
        };
        let (now, name) = (self.clock.now(), name.unwrap_or_else(|| self.remembered_name(key)));
        let call = NewAgentCall {
            ticket: format!("{:032x}", rand::random::<u128>()),
            caller: AgentCaller { key: key.id, key_name: key.name.clone(), name },
            person: key.person,
            tool: tool.to_owned(),
            arguments,
            effect: spec.effect_level,
        };
        let admission = self.db.write_or_busy(move |conn| agent_calls::admit_call(conn, &call, now)).await?;
        let (id, waits) = match admission {
            AgentAdmission::Busy => return Ok(AgentCallOutcome::Busy),
            AgentAdmission::OverLimit => return Ok(AgentCallOutcome::OverLimit),
            AgentAdmission::AlreadyAsked(id) => (id, true),
            AgentAdmission::Admitted { call, waits } => (call, waits),
        };
        self.scheduler.wake_user(key.person);
        if !waits {
            let clock = self.clock.clone();
            let is_settled = move |conn: &mut Conn| agent_tickets::is_settled(conn, id, clock.now());
            let settled = self.scheduler.wait_for_work(key.person, is_settled);
            if let Ok(result) = tokio::time::timeout(MAX_RESPONSE_WAIT, settled).await {
                result?;
            }
        }
        self.load_outcome(id).await
    }

    async fn load_outcome(&self, id: i64) -> Result<AgentCallOutcome, DbError> {
        let now = self.clock.now();
        let record = self.load_record(now, move |conn| agent_tickets::load_call(conn, id, now)).await?;
        Ok(record
            .map_or(AgentCallOutcome::UnknownTool, |record| AgentCallOutcome::Answered(Box::new(record))))
    }

    /// Finds the outcome of a call, by its ticket. The ticket of another key or person is not found. A call that waited for
    /// the end of a question is started if the question has expired.
    pub async fn find_call(&self, key: &AgentKey, ticket: String) -> Result<Option<CallRecord>, DbError> {
        let (owner, now) = ((key.id, key.person), self.clock.now());
        let find = move |conn: &mut Conn| agent_tickets::find_call(conn, owner, &ticket, now);
        let record = self.load_record(now, find.clone()).await?;
        if !record.as_ref().is_some_and(|record| record.progress == CallProgress::Waiting) {
            return Ok(record);
        }
        let person = key.person;
        let is_expired = move |conn: &mut Conn| pending_lookup::has_expired_prompt(conn, person, now);
        if self.db.read(is_expired).await? {
            self.db.write(move |conn| pending_action::expire_pending_action(conn, person, now)).await?;
        }
        self.scheduler.wake_user(person);
        self.load_record(now, find).await
    }

    /// Loads a call. A question that can no longer be answered is closed first: an agent learns only recorded outcomes.
    async fn load_record(
        &self,
        now: Timestamp,
        load: impl Fn(&mut Conn) -> QueryResult<Option<CallRecord>> + Clone + Send + 'static,
    ) -> Result<Option<CallRecord>, DbError> {
        let mut record = self.db.read(load.clone()).await?;
        if let Some(unanswerable) = &record
            && unanswerable.progress == CallProgress::Unanswerable
        {
            let person = unanswerable.person.id;
            self.db.write(move |conn| pending_action::close_unanswerable_action(conn, person, now)).await?;
            record = self.db.read(load).await?;
        }
        // The end of a turn may not be on disk yet.
        self.db.sync().await?;
        Ok(record)
    }
}

/// Returns whether a question can be sent to a person.
fn can_be_asked(conn: &mut Conn, user: &User, senders: &Senders) -> QueryResult<bool> {
    if user.opted_out || user.test {
        return Ok(user.test);
    }
    let route = addresses::load_message_route(conn, user.id)?;
    let sender = route.address.and_then(|(_, address)| senders.choose(route.our_address, &address));
    Ok(sender.is_some())
}
