//! Agents of some schedules: they call tools with their keys, check their tickets, and give up a call when the program
//! stops. A program with an API key texts in the name of people.
//!
//! The calls go to the engine, below the address for agents: what its server adds is tested with the whole program.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dialarr::conversation::agents::AgentName;
use dialarr::conversation::channel_list;
use dialarr::conversation::grammar::triage::TriageDecision;
use dialarr::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use dialarr::conversation::routing::message_origin::MessageOrigin;
use dialarr::conversation::routing::verification::FieldAuthority;
use dialarr::conversation::transcript::{Address, ToolArguments, UserId};
use dialarr::engine::agents::{AgentCallOutcome, AgentKey, AgentScope};
use dialarr::store::agent_tickets::{CallProgress, CallRecord};
use dialarr::store::audit::Actor;
use dialarr::store::confirmation::pending_action::CloseReason;
use dialarr::store::console_access::{self, KeyScope, NewApiKey, TokenHash};
use dialarr::store::database::db::Db;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::agent_plan::AgentAct;
use crate::people::ReadMessage;
use crate::records::{Records, number, word};
use crate::rng::Rng;
use crate::simulated_model::{add, found};
use crate::world::{World, pass};

/// States of a ticket that may change.
pub(crate) const OPEN_STATES: [&str; 3] = ["waiting", "running", "asked"];
/// Number of attempts at a call that gets no answer.
const ATTEMPTS: u32 = 4;

/// State of a ticket, as an agent saw it.
#[derive(Debug, Clone)]
pub(crate) struct SeenState {
    pub ticket: String,
    pub state: &'static str,
}

/// Agents of a world, with what they were told.
#[derive(Debug, Default)]
pub(crate) struct HouseAgents {
    /// Keys in the order of the plan.
    pub keys: Mutex<Vec<AgentKey>>,
    /// API key of a program.
    program: Mutex<Option<i64>>,
    /// States of the tickets of questions, in the order in which they were seen.
    pub states: Mutex<Vec<SeenState>>,
    /// Number of calls that the end of the program cut off.
    pub cut_off: AtomicUsize,
    /// Number of repeated calls that returned the ticket of the first one.
    pub same_tickets: AtomicUsize,
    program_texts: AtomicUsize,
}

/// Returns the state of a call, as its ticket shows it.
fn state_of(record: &CallRecord) -> &'static str {
    match &record.progress {
        CallProgress::Waiting => "waiting",
        CallProgress::Running => "running",
        CallProgress::Asked { .. } | CallProgress::Unanswerable => "asked",
        CallProgress::Closed(CloseReason::Denied) => "refused",
        CallProgress::Closed(CloseReason::Expired) => "expired",
        CallProgress::Closed(CloseReason::Dropped | CloseReason::Replaced) => "closed",
        CallProgress::Done(_) => "done",
        CallProgress::Failed(_) => "failed",
        CallProgress::Canceled => "canceled",
        CallProgress::Dropped(_) => "dropped",
    }
}

impl World {
    /// Creates the keys of the agents, and an API key.
    pub(crate) async fn give_keys(&self, db: &Db) {
        if self.plan.agents.is_empty() {
            return;
        }
        let users = Records::of(&self.database).users;
        let mut keys = Vec::new();
        for planned in &self.plan.agents {
            let user = users.iter().find(|user| word(user, "phone") == planned.person).unwrap();
            let (name, person) = (planned.key_name.to_owned(), UserId(number(user, "id")));
            let id = self.create_key(db, (&name, KeyScope::Write, Some(person))).await;
            keys.push(AgentKey { id, name, scope: AgentScope::Write, person });
        }
        *self.agents.keys.lock().unwrap() = keys;
        let program = self.create_key(db, ("program", KeyScope::Admin, None)).await;
        *self.agents.program.lock().unwrap() = Some(program);
    }

    async fn create_key(&self, db: &Db, (name, scope, agent_of): (&str, KeyScope, Option<UserId>)) -> i64 {
        let hash = TokenHash(Sha256::digest(name.as_bytes()).into());
        let key = NewApiKey { hash, name: name.to_owned(), ending: "abcd".to_owned(), scope, agent_of };
        let now = self.now();
        db.write(move |conn| console_access::create_api_key(conn, &key, now)).await.unwrap()
    }

    /// Lets an agent begin an act.
    pub(crate) fn use_agent(&self, agent: usize, act: AgentAct) {
        self.journal.note(format!("agent {agent} begins: {act:?}"));
        let world = self.clone();
        self.later(async move {
            match act {
                AgentAct::Finds(title) => {
                    world.find_title(agent, title).await;
                }
                AgentAct::Adds(title) => world.add_as_agent(agent, title).await,
                AgentAct::Deletes { title, repeats_after } => {
                    world.delete_as_agent(agent, title, repeats_after).await;
                }
                AgentAct::ChecksTickets => world.check_tickets(|_| true).await,
                AgentAct::TextsAsPerson(body) => {
                    world.text_as_program(world.plan.agents[agent].person, body).await;
                }
            }
        });
    }

    /// Returns a title of the library as the agent finds it; `None` if it finds none.
    async fn find_title(&self, agent: usize, title: &str) -> Option<Value> {
        let record = self.call_until_answered(agent, "find_in_library", &json!({ "query": title })).await?;
        match record.progress {
            CallProgress::Done(result) => found(&result.for_model),
            _ => None,
        }
    }

    async fn add_as_agent(&self, agent: usize, title: &'static str) {
        if self.call_until_answered(agent, "search_media", &json!({ "query": title })).await.is_some() {
            let (tool, arguments) = add(title);
            self.call_until_answered(agent, tool, &arguments).await;
        }
    }

    async fn delete_as_agent(&self, agent: usize, title: &str, repeats_after: Option<u64>) {
        let Some(item) = self.find_title(agent, title).await else { return };
        let arguments = json!({ "items": [item], "delete_files": true });
        let asked = self.call_until_answered(agent, "remove_media", &arguments).await;
        if let (Some(asked), Some(delay)) = (asked, repeats_after) {
            pass(Duration::from_millis(delay)).await;
            let again = self.call_until_answered(agent, "remove_media", &arguments).await;
            let is_same = again.is_some_and(|again| again.ticket == asked.ticket);
            self.agents.same_tickets.fetch_add(usize::from(is_same), Ordering::SeqCst);
        }
    }

    /// Calls a tool, again after some time if there is no answer, because the program is down or has stopped.
    async fn call_until_answered(&self, agent: usize, tool: &str, arguments: &Value) -> Option<CallRecord> {
        let mut rng = Rng::of(self.plan.seed, &format!("agent {agent} at {}", self.true_clock.now()));
        for attempt in 1..=ATTEMPTS {
            match self.call_tool(agent, tool, arguments).await {
                Some(AgentCallOutcome::Answered(record)) => return Some(*record),
                Some(_) => return None,
                None if attempt < ATTEMPTS => pass(rng.ms(1_000, 9_000)).await,
                None => {}
            }
        }
        None
    }

    async fn call_tool(&self, agent: usize, tool: &str, arguments: &Value) -> Option<AgentCallOutcome> {
        let (engine, closed) = self.running_engine()?;
        let key = self.agents.keys.lock().unwrap()[agent].clone();
        let stated = self.plan.agents[agent].name;
        let name = (!stated.is_empty()).then(|| AgentName::from_stated(stated));
        self.journal.note(format!("agent {agent} calls {tool} {arguments}"));
        let call = (tool, ToolArguments::parse(arguments.clone()));
        let answer = tokio::select! {
            biased;
            () = closed.cancelled() => {
                self.agents.cut_off.fetch_add(1, Ordering::SeqCst);
                None
            }
            // A full disk is an error of the server.
            answer = engine.agents.call_tool(&key, name, call) => answer.ok(),
        };
        let state = match &answer {
            Some(AgentCallOutcome::Answered(record)) => {
                self.note_state(record, tool);
                format!("{} {}", state_of(record), record.ticket)
            }
            Some(other) => format!("{other:?}"),
            None => "no answer".to_owned(),
        };
        self.journal.note(format!("agent {agent} is told of {tool}: {state}"));
        answer
    }

    fn note_state(&self, record: &CallRecord, tool: &str) {
        if tool == "remove_media" {
            let state = SeenState { ticket: record.ticket.clone(), state: state_of(record) };
            self.agents.states.lock().unwrap().push(state);
        }
    }

    /// Lets the agents check the tickets of their questions, also of calls whose answer was lost. `wants` chooses them by
    /// the state in which they were last seen, if they were.
    pub(crate) async fn check_tickets(&self, wants: impl Fn(Option<&str>) -> bool) {
        if self.plan.agents.is_empty() {
            return;
        }
        for asked in Records::questions_of_agents(&self.database) {
            let ticket = word(&asked, "ticket");
            let last = self.last_state(ticket);
            let key = number(&asked, "key_id");
            let key = self.agents.keys.lock().unwrap().iter().find(|known| known.id == key).cloned();
            let Some((engine, closed)) = self.running_engine() else { return };
            let Some(key) = key.filter(|_| wants(last)) else { continue };
            let found = tokio::select! {
                biased;
                () = closed.cancelled() => return,
                found = engine.agents.find_call(&key, ticket.to_owned()) => found,
            };
            if let Ok(Some(record)) = found {
                self.journal.note(format!("ticket {ticket} is {}", state_of(&record)));
                self.note_state(&record, word(&asked, "tool"));
            }
        }
    }

    fn last_state(&self, ticket: &str) -> Option<&'static str> {
        let states = self.agents.states.lock().unwrap();
        states.iter().rfind(|seen| seen.ticket == ticket).map(|seen| seen.state)
    }

    /// Sends a text in the name of a person as `POST /api/v1/messages` does with an API key.
    async fn text_as_program(&self, person: &str, body: &str) {
        let Some((engine, closed)) = self.running_engine() else { return };
        let records = Records::of(&self.database);
        let user = records.users.iter().find(|user| word(user, "phone") == person);
        // The API refuses a text in the name of anybody else.
        let accepts = |user: &&Value| word(user, "status") == "active" && user["opted_out_at"].is_null();
        let Some(key) =
            self.agents.program.lock().unwrap().filter(|_| user.is_some_and(|user| accepts(&user)))
        else {
            return;
        };
        let (count, now) = (self.agents.program_texts.fetch_add(1, Ordering::SeqCst), self.now());
        let received = ReceivedMessage {
            channel: channel_list::CONSOLE,
            external_id: MessageOrigin::ApiKey(key).to_message_id(&format!("simulated-{count}")),
            from: self.address_of(person),
            to: Address::console(),
            body: body.to_owned(),
            media: Vec::new(),
            via: MessageSource::Local,
            authority: FieldAuthority::Certain,
            carrier_word: None,
            pressed: None,
            room: None,
            provider_at: now,
            received_at: now,
        };
        let admit = engine.admission.admit_message_as(received, TriageDecision::Answer, Actor::Key(key));
        let admission = tokio::select! {
            biased;
            () = closed.cancelled() => return,
            admission = admit => admission,
        };
        self.journal.note(format!("a program texts {body:?} as {person}: {admission:?}"));
    }
}

/// Lets a program text the code of a question or of a request in the name of its reader, in some cases.
pub(crate) fn text_back(world: &World, sent: &ReadMessage) {
    if world.plan.agents.is_empty() {
        return;
    }
    let mut rng = Rng::of(world.plan.seed, &format!("program after {}", sent.id));
    let body = ["Reply YES", "APPROVE "].iter().find_map(|invited| {
        let (_, code) = sent.body.split_once(invited)?;
        let code: String = code.trim_start().chars().take_while(char::is_ascii_digit).collect();
        Some(format!("{} {code}", if *invited == "APPROVE " { "approve" } else { "YES" }))
    });
    let Some(body) = body.filter(|_| rng.percent(40)) else { return };
    let (world, person, after) = (world.clone(), sent.to.clone(), rng.ms(0, 20_000));
    world.clone().later(async move {
        pass(after).await;
        world.text_as_program(&person, body.trim()).await;
    });
}
