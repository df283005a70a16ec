//! Loaded state of a running turn.

use std::sync::Arc;

use crate::conversation::agents::{AgentCaller, AgentName};
use crate::conversation::grammar::reaction;
use crate::conversation::people::facts::UserFacts;
use crate::conversation::prompt;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{AddressId, CallRow, ToolCall, User, UserAddress, UserId};
use crate::conversation::turn::Turn;
use crate::engine::reply_address::ReplyAddress;
use crate::store::memory::facts;
use crate::store::people::addresses::{self, MessageRoute, StoredAddress};
use crate::store::people::age_limits::{self, ReaderLimit};
use crate::store::people::rooms::{self, Room};
use crate::store::people::users;
use crate::store::stream::event_log::HistoryVersion;
use crate::store::turns::finished_turns::TurnTranscript;
use crate::store::turns::turn_lifecycle::{self, ActiveTurn, LoadedTurn, TurnPlan};
use crate::store::{Conn, QueryResult, agent_calls, console_access};

/// Loaded state of a turn, with the data that its steps need.
#[derive(Clone)]
pub(crate) struct TurnContext {
    pub(crate) active_turn: ActiveTurn,
    pub(super) turn: Turn,
    pub(super) plan: TurnPlan,
    pub(crate) user: User,
    pub(super) events: Arc<[InboundEvent]>,
    /// Stored facts about the user.
    pub(super) facts: UserFacts,
    /// Room in which the turn answers; `None` in a private chat.
    pub(super) room: Option<Room>,
    /// Address of the author's private chat, for a turn in a room.
    pub(super) private_address: Option<(AddressId, UserAddress)>,
    /// Limit of the people who read the answer.
    pub(super) reader_limit: ReaderLimit,
    /// Agent whose call the turn runs; `None` if it answers people.
    pub(super) agent: Option<AgentTurn>,
    /// Number of the turn's run, from 1.
    run: u32,
}

/// Agent whose call a turn runs, and the way to the person whom it may ask.
#[derive(Debug, Clone)]
pub(super) struct AgentTurn {
    pub(super) caller: AgentCaller,
    pub(super) route: MessageRoute,
}

impl AgentTurn {
    fn load(conn: &mut Conn, active_turn: ActiveTurn, user: UserId) -> QueryResult<Option<Self>> {
        let Some(key) = active_turn.agent else { return Ok(None) };
        // The ticket of an old turn is forgotten.
        let caller = match agent_calls::load_agent_of_turn(conn, active_turn.id)? {
            Some(caller) => caller,
            None => AgentCaller {
                key,
                key_name: console_access::load_api_key_name(conn, key)?,
                name: AgentName::default(),
            },
        };
        Ok(Some(Self { caller, route: addresses::load_message_route(conn, user)? }))
    }
}

impl TurnContext {
    pub(crate) fn load_turn(conn: &mut Conn, user: UserId, active_turn: ActiveTurn) -> QueryResult<Self> {
        let loaded = turn_lifecycle::load_turn(conn, active_turn)?;
        let user = users::load_user(conn, user)?;
        Self::from_loaded(conn, active_turn, user, loaded)
    }

    /// Creates the context of a loaded turn, for which only the facts about the user are loaded.
    pub(crate) fn from_loaded(
        conn: &mut Conn,
        active_turn: ActiveTurn,
        user: User,
        LoadedTurn { turn, plan, events, run }: LoadedTurn,
    ) -> QueryResult<Self> {
        let facts = facts::load_facts(conn, user.id)?;
        let (room, private_address) = match active_turn.room {
            Some(room) => (rooms::load_room(conn, room)?, load_private_address(conn, user.id, &events)?),
            None => (None, None),
        };
        let reader_limit = match active_turn.room {
            Some(room) => age_limits::load_room_limit(conn, room)?,
            None => age_limits::load_user_limit(conn, &user)?,
        };
        let agent = AgentTurn::load(conn, active_turn, user.id)?;
        Ok(Self {
            active_turn,
            turn,
            plan,
            user,
            events: events.into(),
            facts,
            room,
            private_address,
            reader_limit,
            agent,
            run,
        })
    }

    /// Loads the parts that others may change while the turn runs: its user, and the request to cancel it.
    pub(super) fn refresh(&mut self, conn: &mut Conn) -> QueryResult<()> {
        (self.user, self.turn.cancel_requested) = users::load_turn_user(conn, self.active_turn.id)?;
        Ok(())
    }

    /// Loads the facts about the user, which a call of the turn may have changed.
    pub(super) fn reload_facts(&mut self, conn: &mut Conn) -> QueryResult<()> {
        self.facts = facts::load_facts(conn, self.user.id)?;
        Ok(())
    }

    /// Returns the agent whose call the turn runs.
    pub(super) fn agent_caller(&self) -> Option<&AgentCaller> {
        self.agent.as_ref().map(|agent| &agent.caller)
    }

    /// Returns who reads the answer.
    pub(super) fn audience(&self) -> Audience {
        match (self.active_turn.room, self.active_turn.agent) {
            (Some(_), _) => Audience::Room,
            (None, Some(_)) => Audience::Agent,
            (None, None) => Audience::Author,
        }
    }

    /// Returns the owner of the conversation, whose memory the turn may use.
    pub(super) fn conversation_owner(&self) -> UserId {
        self.active_turn.room.unwrap_or(self.user.id)
    }

    /// Returns the name of the author, if the turn answers in a room.
    pub(super) fn author(&self) -> Option<String> {
        self.active_turn.room.map(|_| prompt::format_author(self.user.name.as_deref()))
    }

    /// Returns whether the words of other turns may be used.
    pub(super) fn has_memory(&self) -> bool {
        match self.active_turn.room {
            None => true,
            Some(_) => self.room.as_ref().is_some_and(|room| room.remembers),
        }
    }

    /// Returns the same context with the reports of earlier turns.
    pub(super) fn with_earlier_reports(mut self, reports: &Arc<[String]>) -> Self {
        self.turn.record = reports.clone();
        self
    }

    /// Returns the sentence that reports that the messages of this turn closed a confirmation prompt. Only the
    /// first run of a turn sends it.
    pub(super) fn closing_sentence(&self) -> Option<&str> {
        self.plan.preface.as_deref().filter(|_| self.run <= 1)
    }

    pub(super) fn find_call(&self, row: CallRow) -> Option<&ToolCall> {
        self.turn.steps.iter().flat_map(|step| &step.calls).find(|call| call.row == row)
    }

    /// Returns the messages and steps of the turn; `None` if its rows may contain others.
    pub(super) fn transcript(&self, loaded_at: HistoryVersion) -> Option<TurnTranscript> {
        // A message that contains a reaction is no part of its turn, and a held call is recorded only in the database.
        let may_differ = self.turn.open_call_count() > 0
            || self.events.iter().any(|event| reaction::looks_like_reaction(&event.body));
        (!may_differ).then(|| TurnTranscript {
            author: self.author(),
            texts: self.events.iter().map(|event| event.body.clone()).collect(),
            steps: self.turn.steps.clone(),
            loaded_at,
        })
    }

    pub(super) fn reply_address(&self) -> ReplyAddress {
        ReplyAddress::from_turn(self.user.clone(), self.active_turn.id, &self.events)
            .with_run(self.active_turn.id, self.run)
    }
}

/// Loads the address of a person on the channel of these messages.
fn load_private_address(
    conn: &mut Conn,
    user: UserId,
    events: &[InboundEvent],
) -> QueryResult<Option<(AddressId, UserAddress)>> {
    let Some(event) = events.last() else { return Ok(None) };
    let addresses = addresses::load_addresses(conn, user)?;
    let is_private =
        |stored: &StoredAddress| stored.address.is_on(event.channel) && stored.opted_out_at.is_none();
    let private = addresses.into_iter().find(is_private);
    Ok(private.map(|stored| (stored.id, stored.address)))
}
