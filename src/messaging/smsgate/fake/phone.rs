//! State of the simulated phone, with fault injection for tests. The states of messages follow the clock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;

use crate::clock::Clock;
use crate::conversation::transcript::PhoneNumber;
use crate::messaging::smsgate::{GatewayCredentials, SmsGateAccount};

/// Phone, and how to reach it.
#[derive(Debug, Clone)]
pub struct FakePhoneAccount {
    pub number: PhoneNumber,
    pub user: String,
    pub password: SecretString,
    pub signing_key: SecretString,
}

/// Simulated phone. Clones share its state.
#[derive(Debug, Clone)]
pub struct FakePhone {
    pub(super) account: Arc<FakePhoneAccount>,
    pub(super) clock: Clock,
    state: Arc<Mutex<PhoneState>>,
}

/// Text that the radio of the phone sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadioedText {
    pub id: String,
    pub to: String,
    pub body: String,
    pub sim: Option<u8>,
    pub sent_at: Timestamp,
    /// Second copy, sent because the phone was killed between its radio and its record of the first one.
    pub is_repeat: bool,
}

#[derive(Debug, Default)]
pub(super) struct PhoneState {
    /// Messages in the order of their acceptance.
    pub(super) messages: Vec<PhoneMessage>,
    pub(super) radioed: Vec<RadioedText>,
    pub(super) inbox: Vec<PhoneInboxEntry>,
    pub(super) faults: PhoneFaults,
    pub(super) settings: PhoneSettings,
    pub(super) requests: Vec<String>,
    /// Access token that replaces user name and password.
    pub(super) token: Option<String>,
    /// Number of entries when the whole inbox was last listed.
    pub(super) listed_entries: usize,
    entry_count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PhoneSettings {
    pub(super) processing_order: String,
}

impl Default for PhoneSettings {
    fn default() -> Self {
        Self { processing_order: "LIFO".to_owned() }
    }
}

/// Faults that tests inject.
#[derive(Debug, Default)]
pub(super) struct PhoneFaults {
    /// The phone answers nothing and sends nothing.
    pub(super) is_asleep: bool,
    /// Number of messages that are accepted without an answer.
    pub(super) lost_answers: u32,
    /// Status of the answer to a repeated request for an accepted message, instead of that of a conflict.
    pub(super) repeat_status: Option<u16>,
    /// Number of messages that the radio fails to send.
    pub(super) failed_sends: u32,
    /// Number of messages that are sent twice, because the phone is killed between its radio and its record.
    pub(super) kills_after_radio: u32,
    /// The radio does not send, although the phone answers.
    pub(super) has_no_signal: bool,
    /// Status of every answer to a request for a message, the inbox or the device.
    pub(super) failing_status: Option<u16>,
    /// Clock of the phone minus ours.
    pub(super) clock_skew: SignedDuration,
}

#[derive(Debug, Clone)]
pub(super) struct PhoneMessage {
    pub(super) id: String,
    pub(super) to: String,
    pub(super) body: String,
    pub(super) sim: Option<u8>,
    pub(super) accepted_at: Timestamp,
    pub(super) valid_until: Timestamp,
    pub(super) progress: PhoneProgress,
    /// True if a client has read the state since the message was sent.
    pub(super) is_known_to_be_sent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PhoneProgress {
    Pending,
    Sent(Timestamp),
    Delivered { sent_at: Timestamp, at: Timestamp },
    Failed { at: Timestamp, error: String },
}

#[derive(Debug, Clone)]
pub(super) struct PhoneInboxEntry {
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) sender: String,
    pub(super) sim: Option<u8>,
    pub(super) body: String,
    /// Time at the message center.
    pub(super) sent_at: Timestamp,
    pub(super) attachments: usize,
}

impl FakePhone {
    pub fn new(account: FakePhoneAccount, clock: Clock) -> Self {
        Self { account: Arc::new(account), clock, state: Arc::default() }
    }

    /// Returns the settings with which a client connects to this phone.
    pub fn client_account(&self, url: &str) -> SmsGateAccount {
        SmsGateAccount {
            url: url.to_owned(),
            credentials: GatewayCredentials::Password {
                user: self.account.user.clone(),
                password: self.account.password.clone(),
            },
            number: self.account.number.clone(),
            sim: None,
            signing_key: Some(self.account.signing_key.clone()),
        }
    }

    /// Accepts an access token in addition to user name and password.
    pub fn accept_token(&self, token: &str) {
        self.lock_state().token = Some(token.to_owned());
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, PhoneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a text into the inbox, as if somebody had sent it now.
    pub fn receive_text(&self, from: &str, body: &str) {
        self.receive_text_sent_at(from, body, self.clock.now());
    }

    /// Puts a text into the inbox that was sent at another time.
    pub fn receive_text_sent_at(&self, from: &str, body: &str, sent_at: Timestamp) {
        self.lock_state().add_entry("SMS", (from, Some(1)), body, sent_at);
    }

    /// Puts a text to one of the SIMs into the inbox.
    pub fn receive_text_on_sim(&self, from: &str, body: &str, sim: u8) {
        let now = self.clock.now();
        self.lock_state().add_entry("SMS", (from, Some(sim)), body, now);
    }

    /// Puts a picture with a text into the inbox. The app has downloaded it, or not.
    pub fn receive_picture(&self, from: &str, body: &str, is_downloaded: bool) {
        let kind = if is_downloaded { "MMS_DOWNLOADED" } else { "MMS" };
        let now = self.clock.now();
        self.lock_state().add_entry(kind, (from, Some(1)), body, now).attachments = 1;
    }

    /// Stores the newest text a second time under another id, a few seconds earlier.
    pub fn duplicate_newest_text(&self) {
        let mut state = self.lock_state();
        if let Some(entry) = state.inbox.last().cloned() {
            let sent_at = entry.sent_at - SignedDuration::from_secs(4);
            state.add_entry(entry.kind, (&entry.sender, entry.sim), &entry.body, sent_at);
        }
    }

    /// Returns the texts that the radio has sent, in this order.
    pub fn radioed_texts(&self) -> Vec<RadioedText> {
        let now = self.clock.now();
        let mut state = self.lock_state();
        state.advance(now);
        state.radioed.clone()
    }

    /// Returns the ids of the messages that the phone failed to send.
    pub fn failed_ids(&self) -> Vec<String> {
        let state = self.lock_state();
        let is_failed = |message: &&PhoneMessage| matches!(message.progress, PhoneProgress::Failed { .. });
        state.messages.iter().filter(is_failed).map(|message| message.id.clone()).collect()
    }

    /// Returns whether a client has read all texts in the inbox, and the state of each message since it was sent.
    pub fn is_fully_read(&self) -> bool {
        let now = self.clock.now();
        let mut state = self.lock_state();
        state.advance(now);
        state.listed_entries == state.inbox.len()
            && state.messages.iter().all(|message| message.is_known_to_be_sent)
    }

    /// Returns the number of different messages that the gateway has accepted.
    pub fn accepted_count(&self) -> usize {
        self.lock_state().messages.len()
    }

    /// Returns the requests since the last call, as method and path.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.lock_state().requests)
    }

    /// Lets the phone sleep or wake. It answers nothing while it sleeps.
    pub fn set_sleeping(&self, is_asleep: bool) {
        let now = self.clock.now();
        let mut state = self.lock_state();
        state.advance(now);
        state.faults.is_asleep = is_asleep;
    }

    /// Sets whether the radio has a signal.
    pub fn set_signal(&self, has_signal: bool) {
        let now = self.clock.now();
        let mut state = self.lock_state();
        state.advance(now);
        state.faults.has_no_signal = !has_signal;
    }

    /// Accepts the next messages without an answer.
    pub fn lose_answers(&self, count: u32) {
        self.lock_state().faults.lost_answers = count;
    }

    /// Answers repeated requests for accepted messages with a status.
    pub fn refuse_repeats(&self, status: u16) {
        self.lock_state().faults.repeat_status = Some(status);
    }

    /// Fails to send the next messages.
    pub fn fail_sends(&self, count: u32) {
        self.lock_state().faults.failed_sends = count;
    }

    /// Sends the next message twice, as a phone does that is killed before it records the first time.
    pub fn kill_after_radio(&self) {
        self.lock_state().faults.kills_after_radio += 1;
    }

    /// Answers requests with this status from now on; `None` restores the usual answers.
    pub fn fail_with(&self, status: Option<u16>) {
        self.lock_state().faults.failing_status = status;
    }

    /// Sets the clock of the phone ahead of ours.
    pub fn set_clock_skew(&self, skew: SignedDuration) {
        self.lock_state().faults.clock_skew = skew;
    }

    /// Stores a message of another program under an id.
    pub fn occupy_id(&self, id: &str, to: &str, body: &str) {
        let now = self.clock.now();
        let message = PhoneMessage {
            id: id.to_owned(),
            to: to.to_owned(),
            body: body.to_owned(),
            sim: None,
            accepted_at: now,
            valid_until: now,
            progress: PhoneProgress::Pending,
            is_known_to_be_sent: false,
        };
        self.lock_state().messages.push(message);
    }

    /// Sets the order in which waiting messages leave, as the app's settings do.
    pub fn set_processing_order(&self, order: &str) {
        self.lock_state().settings.processing_order = order.to_owned();
    }

    /// Returns the order in which waiting messages leave.
    pub fn processing_order(&self) -> String {
        self.lock_state().settings.processing_order.clone()
    }
}

impl PhoneState {
    fn add_entry(
        &mut self,
        kind: &'static str,
        (sender, sim): (&str, Option<u8>),
        body: &str,
        sent_at: Timestamp,
    ) -> &mut PhoneInboxEntry {
        self.entry_count += 1;
        let entry = PhoneInboxEntry {
            id: format!("text:{}", self.entry_count),
            kind,
            sender: sender.to_owned(),
            sim,
            body: body.to_owned(),
            sent_at,
            attachments: 0,
        };
        self.inbox.push(entry);
        let last = self.inbox.len() - 1;
        &mut self.inbox[last]
    }
}
