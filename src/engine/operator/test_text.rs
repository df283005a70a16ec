//! Test text of the setup assistant: a notification to the admin through a phone of the household.

use crate::conversation::channel_list;
use crate::conversation::routing::senders::Senders;
use crate::conversation::transcript::{PhoneNumber, UserStatus};
use crate::engine::operator::decisions::OperatorDecisions;
use crate::engine::reply_address::ReplyAddress;
use crate::store::database::db::DbError;
use crate::store::people::users;
use crate::store::queue::outbox;
use crate::store::queue::test_text::TEST_TEXT_KEY;
use crate::store::{Conn, QueryResult};

/// Text of the message.
const TEST_TEXT: &str = "This is a test text from Dialarr. Reply with status to complete the test.";

/// Outcome of a request to send a test text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestTextOutcome {
    Queued,
    /// No phone is configured.
    NoPhone,
    /// No active user has the number.
    NoRecipient,
}

impl OperatorDecisions {
    /// Queues a test text to the user with this number.
    pub async fn queue_test_text(&self, phone: PhoneNumber) -> Result<TestTextOutcome, DbError> {
        let now = self.clock.now();
        let senders = self.live.settings().senders.clone();
        let Some(address) = senders.on_channel(channel_list::SMSGATE).cloned() else {
            return Ok(TestTextOutcome::NoPhone);
        };
        let queue = move |conn: &mut Conn| -> QueryResult<TestTextOutcome> {
            let user = users::find_user_by_phone(conn, &phone)?;
            let Some(user) = user.filter(|user| user.status == UserStatus::Active) else {
                return Ok(TestTextOutcome::NoRecipient);
            };
            let senders = Senders::from_addresses(vec![address.clone()]);
            let address = ReplyAddress::load_for_user(conn, &user, &senders)?;
            let key = format!("{TEST_TEXT_KEY}{}", now.as_millisecond());
            outbox::queue_message_once(conn, &address.notification_message(&key, TEST_TEXT), now)?;
            Ok(TestTextOutcome::Queued)
        };
        let outcome = self.db.write(queue).await?;
        self.outbox.notify();
        Ok(outcome)
    }
}
