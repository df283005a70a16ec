//! Pages of a conversation: consecutive turns, the messages around them, and what is open.

use super::conversations::{self, ConversationRecord, PendingActionRecord};
use super::messages::{self, InboundRecord, OutboundRecord, UnassignedMessages};
use super::turns::{self, TurnRecord};
use crate::conversation::transcript::{ConversationId, EventId, OutboxId, TurnId, UserId};
use crate::store::conversation::reactions::Reactions;
use crate::store::conversation::record::turn_range::MessageTimeRange;
use crate::store::{Conn, QueryResult};

/// Number of turns on a page, unless the reader asks for fewer.
pub const TURNS: usize = 50;

/// Page of a conversation, which is also the state that a reader of its events starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationPage {
    pub conversation: ConversationRecord,
    pub content: PageContent,
    /// True if there are turns before these.
    pub truncated: bool,
    pub pending_action: Option<PendingActionRecord>,
}

/// Messages and turns of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageContent {
    /// Turns, oldest first.
    pub turns: Vec<TurnRecord>,
    pub unassigned: UnassignedMessages,
    /// Reactions to the messages of the page.
    pub reactions: Reactions,
}

/// Entries of a page that changed.
#[derive(Debug, Clone, Default)]
pub struct ChangedEntries {
    pub turns: Vec<TurnId>,
    pub notifications: Vec<OutboxId>,
    pub unanswered: Vec<EventId>,
}

/// Loads the newest page of a conversation; returns an error if the conversation does not exist.
pub fn load_newest_page(conn: &mut Conn, conversation: ConversationId) -> QueryResult<ConversationPage> {
    load_page(conn, conversation, i64::MAX, TURNS)?.ok_or(diesel::NotFound)
}

/// Loads a page with at most `most` turns: the newest ones below `before`. `None` if the conversation does not exist.
pub fn load_page(
    conn: &mut Conn,
    id: ConversationId,
    before: i64,
    most: usize,
) -> QueryResult<Option<ConversationPage>> {
    let Some(conversation) = conversations::load_conversation(conn, id)? else { return Ok(None) };
    let limit = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
    let mut rows = turns::load_newest_rows(conn, id, before, limit)?;
    let truncated = rows.len() > most;
    rows.truncate(most);
    rows.reverse();
    let oldest = rows.first().map(|turn| turn.begun_at).filter(|_| truncated);
    let time = MessageTimeRange::load_for_page(conn, id, oldest, before)?;
    let waits = conversation.ended_at.is_none().then_some(conversation.user);
    let mut content = PageContent {
        turns: turns::load_turn_content(conn, id, rows)?,
        unassigned: UnassignedMessages::load_for_page(conn, time, waits)?,
        reactions: Reactions::default(),
    };
    content.load_reactions(conn)?;
    let pending_action = conversations::load_pending_action(conn, id)?;
    Ok(Some(ConversationPage { conversation, content, truncated, pending_action }))
}

impl PageContent {
    /// Loads the entries that changed. `waits` is the user whose waiting messages are loaded too, if any.
    pub fn load_changed(
        conn: &mut Conn,
        conversation: ConversationId,
        changed: ChangedEntries,
        waits: Option<UserId>,
    ) -> QueryResult<Self> {
        let mut content = Self::default();
        for turn in changed.turns {
            content.turns.extend(turns::load_turn_record(conn, conversation, turn)?);
        }
        for id in changed.notifications {
            content.unassigned.notifications.extend(messages::load_outbound(conn, id)?);
        }
        for id in changed.unanswered {
            content.unassigned.unanswered.extend(messages::load_unanswered(conn, id)?);
        }
        if let Some(user) = waits {
            content.unassigned.load_waiting(conn, user)?;
        }
        content.load_reactions(conn)?;
        Ok(content)
    }

    pub fn inbound(&self) -> impl Iterator<Item = &InboundRecord> {
        let of_turns = self.turns.iter().flat_map(|turn| &turn.received);
        of_turns.chain(&self.unassigned.unanswered).chain(&self.unassigned.waiting)
    }

    pub fn outbound(&self) -> impl Iterator<Item = &OutboundRecord> {
        self.turns.iter().flat_map(|turn| &turn.sent).chain(&self.unassigned.notifications)
    }

    fn load_reactions(&mut self, conn: &mut Conn) -> QueryResult<()> {
        let theirs = self.inbound().map(|text| text.id).collect();
        let ours = self.outbound().map(|text| text.id).collect();
        self.reactions = Reactions::load_active(conn, theirs, ours)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use diesel::prelude::*;
    use jiff::Timestamp;

    use super::*;
    use crate::conversation::transcript::{Address, PhoneNumber, Responder};
    use crate::store::conversation::conversations as talks;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::queue::inbound_messages::MessageOutcome;
    use crate::store::queue::outbox::{self, NewOutboundMessage, OutboundKind};
    use crate::store::scratch;
    use crate::store::turns::model_steps;
    use crate::store::turns::turn_lifecycle::{self as turn_rows, NewTurn, TurnEnd, TurnKind, TurnPlan};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Creates a conversation of four turns that call a tool, each followed by a notification.
    fn a_talk(conn: &mut Conn) -> ConversationId {
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        let user = users::ensure_user(conn, &phone, FirstContactRole::Member, at(0)).unwrap();
        let conversation = talks::start_conversation(conn, user, "A talk", at(0)).unwrap();
        for turn in 1..=4 {
            let plan = TurnPlan::for_responder(Responder::Model);
            let new = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
            let id = turn_rows::create_turn(conn, new, at(10 * turn)).unwrap();
            model_steps::add_call(conn, id, "check_status", at(10 * turn)).unwrap();
            let end = TurnEnd::without_message(id, MessageOutcome::Replied);
            turn_rows::finish_turn(conn, &end, at(10 * turn + 1)).unwrap();
            let notice = NewOutboundMessage {
                key: format!("notice:{turn}"),
                user,
                turn: None,
                kind: OutboundKind::Notice,
                to: Address::new("+15550100001"),
                from: Address::new("+15550100000"),
                body: format!("after turn {turn}"),
                media: None,
                segments: 1,
            };
            outbox::queue_message(conn, &notice, at(10 * turn + 5)).unwrap();
        }
        conversation
    }

    /// Returns the turns and the notifications on a page of two turns.
    fn shown(conn: &mut Conn, conversation: ConversationId, before: i64) -> (Vec<i64>, Vec<String>) {
        let page = load_page(conn, conversation, before, 2).unwrap().unwrap().content;
        let notices = page.unassigned.notifications.into_iter().map(|notice| notice.body).collect();
        (page.turns.into_iter().map(|turn| turn.row.id.0).collect(), notices)
    }

    #[test]
    fn each_notification_is_on_the_page_of_its_preceding_turn() {
        let mut conn = scratch();
        let talk = a_talk(&mut conn);
        let notices = |turns: [i64; 2]| turns.map(|turn| format!("after turn {turn}")).to_vec();
        assert_eq!(shown(&mut conn, talk, i64::MAX), (vec![3, 4], notices([3, 4])));
        assert_eq!(shown(&mut conn, talk, 3), (vec![1, 2], notices([1, 2])));
    }

    #[test]
    fn newest_waiting_messages_are_shown_with_a_more_flag() {
        let mut conn = scratch();
        let talk = a_talk(&mut conn);
        let mut waits = |texts: std::ops::RangeInclusive<i64>| {
            for n in texts {
                let text = format!(
                    "INSERT INTO inbound_events (channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
                     VALUES ('twilio', '{n}', 1, '+1', '{n}', {n}, {n}, 'webhook', 0)"
                );
                diesel::sql_query(text).execute(&mut conn).unwrap();
            }
            let told = load_newest_page(&mut conn, talk).unwrap().content.unassigned;
            (told.waiting.into_iter().map(|text| text.body).collect::<Vec<_>>(), told.truncated)
        };
        let bodies = |texts: std::ops::RangeInclusive<i64>| texts.map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(waits(1..=50), (bodies(1..=50), false));
        assert_eq!(waits(51..=51), (bodies(2..=51), true));
    }

    #[test]
    fn older_page_does_not_read_newer_turns() {
        let mut conn = scratch();
        let talk = a_talk(&mut conn);
        let time_out_of_range = format!("UPDATE tool_calls SET created_at = {} WHERE turn_id >= 3", i64::MAX);
        diesel::sql_query(time_out_of_range).execute(&mut conn).unwrap();
        assert!(load_page(&mut conn, talk, i64::MAX, 2).is_err(), "a row that cannot be read is an error");
        assert_eq!(shown(&mut conn, talk, 3).0, [1, 2]);
    }
}
