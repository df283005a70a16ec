//! Pages of a conversation: consecutive turns, the messages around them, and the pending action.

use super::conversations::{self, ConversationRecord, PendingActionRecord};
use super::messages::{self, InboundRecord, OutboundRecord, UnassignedMessages};
use super::turns::{self, TurnRecord};
use crate::conversation::transcript::{ConversationId, EventId, OutboxId, TurnId, UserId};
use crate::store::conversation::reactions::Reactions;
use crate::store::conversation::record::turn_range::MessageTimeRange;
use crate::store::stream::response_blocks::StreamedBlocks;
use crate::store::{Conn, QueryResult};

/// Default number of turns on a page.
pub const PAGE_TURNS: usize = 25;

/// Page of a conversation. The newest page is also the snapshot from which a reader of the events starts.
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
pub fn load_newest_page(
    conn: &mut Conn,
    conversation: ConversationId,
    streamed: &StreamedBlocks,
) -> QueryResult<ConversationPage> {
    load_page(conn, conversation, (i64::MAX, PAGE_TURNS), streamed)?.ok_or(diesel::NotFound)
}

/// Loads a page with the newest turns below `before`, at most `page_size`; `None` if the conversation does not exist.
/// `streamed` holds the output of running attempts so far.
pub fn load_page(
    conn: &mut Conn,
    id: ConversationId,
    (before, page_size): (i64, usize),
    streamed: &StreamedBlocks,
) -> QueryResult<Option<ConversationPage>> {
    let Some(conversation) = conversations::load_conversation(conn, id)? else { return Ok(None) };
    let limit = i64::try_from(page_size).unwrap_or(i64::MAX).saturating_add(1);
    let mut rows = turns::load_newest_turn_rows(conn, id, before, limit)?;
    let truncated = rows.len() > page_size;
    rows.truncate(page_size);
    rows.reverse();
    let oldest_start = rows.first().map(|turn| turn.started_at).filter(|_| truncated);
    let range = MessageTimeRange::load_for_page(conn, id, oldest_start, before)?;
    let waiting_user = conversation.waiting_user();
    let mut content = PageContent {
        turns: turns::load_turn_content(conn, id, rows)?,
        unassigned: UnassignedMessages::load_for_page(conn, range, waiting_user)?,
        reactions: Reactions::default(),
    };
    content.add_streamed_blocks(streamed);
    content.hide_viewing();
    content.load_reactions(conn)?;
    let pending_action = conversations::load_pending_action(conn, id)?;
    Ok(Some(ConversationPage { conversation, content, truncated, pending_action }))
}

impl PageContent {
    /// Loads the changed entries. `waiting_user` is the user whose waiting messages are included, if any.
    pub fn load_changed(
        conn: &mut Conn,
        conversation: ConversationId,
        changed: ChangedEntries,
        streamed: &StreamedBlocks,
        waiting_user: Option<UserId>,
    ) -> QueryResult<Self> {
        let mut content = Self::default();
        for turn in changed.turns {
            content.turns.extend(turns::load_turn_record(conn, conversation, turn)?);
        }
        content.add_streamed_blocks(streamed);
        for id in changed.notifications {
            content.unassigned.notifications.extend(messages::load_outbound(conn, id)?);
        }
        content.hide_viewing();
        for id in changed.unanswered {
            content.unassigned.unanswered.extend(messages::load_unanswered(conn, id)?);
        }
        if let Some(user) = waiting_user {
            content.unassigned.load_waiting(conn, user)?;
        }
        content.load_reactions(conn)?;
        Ok(content)
    }

    pub fn inbound(&self) -> impl Iterator<Item = &InboundRecord> {
        let in_turns = self.turns.iter().flat_map(|turn| &turn.received);
        in_turns.chain(&self.unassigned.unanswered).chain(&self.unassigned.waiting)
    }

    pub fn outbound(&self) -> impl Iterator<Item = &OutboundRecord> {
        self.turns.iter().flat_map(|turn| &turn.sent).chain(&self.unassigned.notifications)
    }

    fn add_streamed_blocks(&mut self, streamed: &StreamedBlocks) {
        let steps = self.turns.iter_mut().flat_map(|turn| &mut turn.steps);
        steps.for_each(|step| step.add_streamed_blocks(streamed));
    }

    /// Hides what people have watched, which is read only by the person themselves.
    fn hide_viewing(&mut self) {
        self.turns.iter_mut().for_each(TurnRecord::hide_viewing);
        self.unassigned.notifications.iter_mut().for_each(OutboundRecord::hide_viewing);
    }

    fn load_reactions(&mut self, conn: &mut Conn) -> QueryResult<()> {
        let inbound = self.inbound().map(|message| message.id).collect();
        let outbound = self.outbound().map(|message| message.id).collect();
        self.reactions = Reactions::load_active(conn, inbound, outbound)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use diesel::prelude::*;
    use jiff::Timestamp;

    use super::*;
    use crate::conversation::transcript::{Address, PhoneNumber, Responder};
    use crate::store::conversation::conversations::start_conversation;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::queue::inbound_messages::MessageOutcome;
    use crate::store::queue::outbox::{self, NewOutboundMessage, OutboundKind};
    use crate::store::scratch;
    use crate::store::turns::finished_turns::{self, TurnEnd};
    use crate::store::turns::model_steps;
    use crate::store::turns::turn_lifecycle::{self as turn_rows, NewTurn, TurnKind, TurnPlan};

    fn time_at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Creates a conversation of four turns that call a tool, each followed by a notification.
    fn create_conversation(conn: &mut Conn) -> ConversationId {
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        let user = users::ensure_user(conn, &phone, FirstContactRole::Member, time_at(0)).unwrap();
        let conversation = start_conversation(conn, user, "Nov 20", time_at(0)).unwrap();
        for turn in 1..=4 {
            let plan = TurnPlan::for_responder(Responder::Model);
            let new_turn = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
            let id = turn_rows::create_turn(conn, new_turn, time_at(10 * turn)).unwrap();
            model_steps::add_call(conn, id, "check_status", time_at(10 * turn)).unwrap();
            let end = TurnEnd::without_message(id, MessageOutcome::Replied);
            finished_turns::finish_turn(conn, &end, time_at(10 * turn + 1)).unwrap();
            let notice = NewOutboundMessage {
                key: format!("notice:{turn}"),
                user,
                address: None,
                turn: None,
                kind: OutboundKind::Notice,
                to: Address::new("+15550100001"),
                from: Address::new("+15550100000"),
                body: format!("after turn {turn}"),
                media: None,
                reacts_to: None,
                quotes: None,
                room: None,
                vote: None,
                segments: 1,
            };
            outbox::queue_message(conn, &notice, time_at(10 * turn + 5)).unwrap();
        }
        conversation
    }

    /// Returns the turns and the notifications on a page of two turns.
    fn load_page_of_two(
        conn: &mut Conn,
        conversation: ConversationId,
        before: i64,
    ) -> (Vec<i64>, Vec<String>) {
        let page =
            load_page(conn, conversation, (before, 2), &StreamedBlocks::new()).unwrap().unwrap().content;
        let notices = page.unassigned.notifications.into_iter().map(|notice| notice.body).collect();
        (page.turns.into_iter().map(|turn| turn.row.id.0).collect(), notices)
    }

    #[test]
    fn notification_is_on_the_page_of_its_preceding_turn() {
        let mut conn = scratch();
        let conversation = create_conversation(&mut conn);
        let notices = |turns: [i64; 2]| turns.map(|turn| format!("after turn {turn}")).to_vec();
        assert_eq!(load_page_of_two(&mut conn, conversation, i64::MAX), (vec![3, 4], notices([3, 4])));
        assert_eq!(load_page_of_two(&mut conn, conversation, 3), (vec![1, 2], notices([1, 2])));
    }

    #[test]
    fn newest_waiting_messages_are_loaded_with_a_truncation_flag() {
        let mut conn = scratch();
        let conversation = create_conversation(&mut conn);
        let mut receive_and_load = |numbers: std::ops::RangeInclusive<i64>| {
            for n in numbers {
                let sql = format!(
                    "INSERT INTO inbound_events (channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
                     VALUES ('twilio', '{n}', 1, '+1', '{n}', {n}, {n}, 'webhook', 0)"
                );
                diesel::sql_query(sql).execute(&mut conn).unwrap();
            }
            let unassigned =
                load_newest_page(&mut conn, conversation, &StreamedBlocks::new()).unwrap().content.unassigned;
            (
                unassigned.waiting.into_iter().map(|message| message.body).collect::<Vec<_>>(),
                unassigned.truncated,
            )
        };
        let bodies =
            |numbers: std::ops::RangeInclusive<i64>| numbers.map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(receive_and_load(1..=50), (bodies(1..=50), false));
        assert_eq!(receive_and_load(51..=51), (bodies(2..=51), true));
    }

    #[test]
    fn loading_an_older_page_does_not_read_newer_turns() {
        let mut conn = scratch();
        let conversation = create_conversation(&mut conn);
        let set_invalid_time = format!("UPDATE tool_calls SET created_at = {} WHERE turn_id >= 3", i64::MAX);
        diesel::sql_query(set_invalid_time).execute(&mut conn).unwrap();
        assert!(
            load_page(&mut conn, conversation, (i64::MAX, 2), &StreamedBlocks::new()).is_err(),
            "an unreadable row is an error"
        );
        assert_eq!(load_page_of_two(&mut conn, conversation, 3).0, [1, 2]);
    }
}
