//! Claim of a reply or a confirmation prompt in the transaction that queues it, if nothing holds the message back.

use diesel::dsl::exists;
use diesel::prelude::*;
use jiff::Timestamp;

use super::callbacks::CallbackToken;
use super::lookups::{self, LOOKUPS_NOT_STARTED};
use super::outbox::{NewOutboundMessage, OPEN, OutboundKind, OutboxState};
use super::outbox_events::{ChangedMessage, record_changed_messages};
use crate::conversation::transcript::{OutboxId, UserStatus};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::database::statement_cache::CacheStatement;
use crate::store::people::addresses;
use crate::store::schema::{outbox, user_addresses, users};
use crate::store::stream::recording;

/// First state of a message in the outbox.
#[derive(Debug)]
pub(super) enum FirstState {
    /// The relay claims the message when it is due. With `lookups_left`, it looks the message up before.
    Queued { lookups_left: i64 },
    /// The message is claimed, and its status callbacks name the token.
    Claimed(CallbackToken),
}

impl FirstState {
    /// Chooses the first state of a message that may be sent at `send_at`.
    pub(super) fn choose(
        conn: &mut Conn,
        message: &NewOutboundMessage,
        send_at: Timestamp,
        now: Timestamp,
    ) -> QueryResult<Self> {
        let is_answer = match message.kind {
            OutboundKind::Reply | OutboundKind::ConfirmPrompt => message.media.is_none(),
            // Prompts and quiet hours hold notifications back.
            OutboundKind::Notice => false,
        };
        let may_be_claimed = is_answer && send_at <= now && recording::may_claim_messages();
        let check = SendCheck::load(conn, message)?;
        let can_be_looked_up = message.from.channel().keeps_records();
        Ok(match check {
            SendCheck { is_from_earlier_run: true, .. } if can_be_looked_up => {
                Self::Queued { lookups_left: LOOKUPS_NOT_STARTED }
            }
            SendCheck { is_next: true, .. } if may_be_claimed => Self::Claimed(CallbackToken::random()),
            SendCheck { .. } => Self::Queued { lookups_left: 0 },
        })
    }
}

/// Releases a message that was claimed but not handed over: it was certainly not sent.
pub fn release_message(conn: &mut Conn, id: OutboxId, now: Timestamp) -> QueryResult<()> {
    let changed = diesel::update(outbox::table.find(id).filter(outbox::state.eq(OutboxState::Attempting)))
        .set((outbox::state.eq(OutboxState::Queued), outbox::updated_at.eq(ms(now))))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)
}

/// Data that decides the first state of a message.
struct SendCheck {
    /// True if a run that is missing from this database may have sent the message.
    is_from_earlier_run: bool,
    /// True if the user may be sent the message, and no earlier message to the user is open.
    is_next: bool,
}

impl SendCheck {
    fn load(conn: &mut Conn, message: &NewOutboundMessage) -> QueryResult<Self> {
        let open_messages = outbox::table.filter(OPEN.and(outbox::user_id.eq(message.user)));
        let address_opted_out = user_addresses::table
            .filter(user_addresses::id.nullable().eq(message.address))
            .select(user_addresses::opted_out_at.is_not_null())
            .single_value();
        let (status, address_opted_out, user_opted_out, has_open_messages, is_from_earlier_run): (
            UserStatus,
            Option<bool>,
            bool,
            bool,
            Option<bool>,
        ) = users::table
            .find(message.user)
            .select((
                users::status,
                address_opted_out,
                addresses::is_opted_out(),
                exists(open_messages),
                lookups::is_turn_of_earlier_run(message.turn),
            ))
            .cached()
            .get_result(conn)?;
        let is_opted_out = address_opted_out.unwrap_or(user_opted_out);
        Ok(Self {
            is_from_earlier_run: is_from_earlier_run == Some(true),
            is_next: status != UserStatus::Blocked && !is_opted_out && !has_open_messages,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::claimed_messages::ClaimedMessages;
    use super::super::outbox::{self as messages, DueMessage};
    use super::*;
    use crate::conversation::transcript::{Address, PhoneNumber, UserId};
    use crate::store::people::addresses::OptTarget;
    use crate::store::people::users::{self as people, FirstContactRole};
    use crate::store::stream::event_log::EventLog;
    use crate::store::stream::recording::Recording;
    use crate::store::{QueryResult, scratch, with_savepoint};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn create_user(conn: &mut Conn) -> UserId {
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        let user = people::ensure_user(conn, &phone, FirstContactRole::Member, NOW).unwrap();
        people::set_status(conn, user, UserStatus::Active, NOW).unwrap();
        user
    }

    fn message(user: UserId, kind: OutboundKind, key: &str) -> NewOutboundMessage {
        NewOutboundMessage {
            key: key.to_owned(),
            user,
            address: None,
            turn: None,
            kind,
            to: Address::new("+15550100001"),
            from: Address::new("+15550100000"),
            body: "Hello.".to_owned(),
            media: None,
            reacts_to: None,
            quotes: None,
            room: None,
            vote: None,
            segments: 1,
        }
    }

    /// Runs `work` like a transaction of the writer, and returns the messages that it has claimed.
    fn claim_during<T>(open: bool, work: impl FnOnce() -> T) -> Vec<DueMessage> {
        let claimed = ClaimedMessages::default();
        if open {
            claimed.open();
        }
        let mut recording = Recording::new(EventLog::default(), claimed);
        drop(recording.record_during(work));
        recording.take_entries().claimed_messages
    }

    /// Returns whether a transaction that runs `work` leaves a message waiting for the relay.
    fn leaves_waiting<T>(work: impl FnOnce() -> T) -> bool {
        let claimed = ClaimedMessages::default();
        claimed.open();
        let mut recording = Recording::new(EventLog::default(), claimed);
        drop(recording.record_during(work));
        recording.take_entries().has_waiting_message
    }

    fn queue(conn: &mut Conn, message: &NewOutboundMessage) -> OutboxId {
        messages::queue_message(conn, message, NOW).unwrap()
    }

    fn load_state(conn: &mut Conn, id: OutboxId) -> OutboxState {
        outbox::table.find(id).select(outbox::state).first(conn).unwrap()
    }

    #[test]
    fn first_of_two_replies_is_claimed_when_it_is_queued() {
        let conn = &mut scratch();
        let user = create_user(conn);
        let mut ids = Vec::new();
        let claimed = claim_during(true, || {
            ids = ["turn:1:reply", "turn:2:reply"]
                .map(|key| queue(conn, &message(user, OutboundKind::Reply, key)))
                .to_vec();
        });
        assert_eq!(claimed.iter().map(|due| (due.id, due.attempt)).collect::<Vec<_>>(), [(ids[0], 1)]);
        assert_eq!(load_state(conn, ids[0]), OutboxState::Attempting);
        assert_eq!(load_state(conn, ids[1]), OutboxState::Queued);
    }

    #[test]
    fn only_unclaimed_messages_are_left_waiting() {
        let conn = &mut scratch();
        let user = create_user(conn);
        assert!(!leaves_waiting(|| queue(conn, &message(user, OutboundKind::Reply, "turn:1:reply"))));
        assert!(leaves_waiting(|| queue(conn, &message(user, OutboundKind::Reply, "turn:2:reply"))));
        let sent = OutboxId(1);
        assert!(leaves_waiting(|| messages::postpone_message(conn, sent, NOW, "busy", NOW).unwrap()));
        let conn = &mut scratch();
        let user = create_user(conn);
        assert!(!leaves_waiting(|| queue(conn, &message(user, OutboundKind::Reply, "turn:1:reply"))));
        assert!(leaves_waiting(|| messages::mark_message_unknown(conn, sent, "lost", NOW).unwrap()));
    }

    #[test]
    fn notification_is_not_claimed_when_it_is_queued() {
        let conn = &mut scratch();
        let notification = message(create_user(conn), OutboundKind::Notice, "ready:1");
        assert_eq!(claim_during(true, || queue(conn, &notification)), []);
    }

    #[test]
    fn reply_without_a_relay_is_queued() {
        let conn = &mut scratch();
        let reply = message(create_user(conn), OutboundKind::Reply, "turn:1:reply");
        assert_eq!(claim_during(false, || queue(conn, &reply)), []);
    }

    #[test]
    fn reply_to_a_user_who_may_not_be_texted_is_queued() {
        let conn = &mut scratch();
        let user = create_user(conn);
        people::set_status(conn, user, UserStatus::Blocked, NOW).unwrap();
        assert_eq!(
            claim_during(true, || queue(conn, &message(user, OutboundKind::Reply, "turn:1:reply"))),
            []
        );
        let conn = &mut scratch();
        let user = create_user(conn);
        addresses::opt_out(conn, OptTarget { user, address: None }, NOW, NOW).unwrap();
        assert_eq!(
            claim_during(true, || queue(conn, &message(user, OutboundKind::Reply, "turn:2:reply"))),
            []
        );
    }

    #[test]
    fn claim_that_is_rolled_back_is_not_handed_over() {
        let conn = &mut scratch();
        let reply = message(create_user(conn), OutboundKind::Reply, "turn:1:reply");
        let claimed = claim_during(true, || {
            let failed: QueryResult<()> = with_savepoint(conn, |conn| {
                queue(conn, &reply);
                Err(diesel::result::Error::RollbackTransaction)
            });
            assert!(failed.is_err());
        });
        assert_eq!(claimed, []);
    }

    #[test]
    fn released_message_can_be_claimed_again() {
        let conn = &mut scratch();
        let reply = message(create_user(conn), OutboundKind::Reply, "turn:1:reply");
        let claimed = claim_during(true, || queue(conn, &reply));
        release_message(conn, claimed[0].id, NOW).unwrap();
        assert_eq!(load_state(conn, claimed[0].id), OutboxState::Queued);
    }
}
