//! Poll of the phone's inbox.
//!
//! The time of an entry is when its sender sent it, so a late text is sorted into the past, and no time separates read
//! entries from others. A poll therefore compares the number of entries and the newest one, and reads three days again
//! after a change.

use bytes::Bytes;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::client::SmsGate;
use super::inbox_mark::{InboxHead, InboxMark, WINDOW};
use super::sender_number::parse_sender;
use super::states::MAX_CLOCK_SKEW;
use super::wire::{InboxAttachment, InboxEntry};
use crate::conversation::channel_list;
use crate::conversation::routing::inbound_message::{MessageMedia, MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::PhoneNumber;
use crate::messaging::{InboundPage, LookupError, Poll, PollDelay};
use crate::store::queue::source_cursors::SourceCursor;
use crate::telemetry;

/// Interval of polls while somebody talks.
const ACTIVE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(2);
/// Interval of polls otherwise.
const QUIET_INTERVAL: std::time::Duration = std::time::Duration::from_secs(15);
/// Period after a message in which somebody talks.
const ACTIVE_PERIOD: SignedDuration = SignedDuration::from_mins(3);
/// Period without a successful poll after which texts may have arrived unseen.
const MAX_GAP: SignedDuration = SignedDuration::from_secs(60);
/// Period after a gap in which the phone may still find texts from the gap.
const SETTLING_PERIOD: SignedDuration = SignedDuration::from_secs(10);
/// Interval at which the inbox is read even if it seems unchanged.
const FULL_READ_INTERVAL: SignedDuration = SignedDuration::from_mins(10);
const PAGE_SIZE: usize = 500;
/// Maximum number of pages that are read, so that an endless inbox does not block us.
const MAX_PAGES: usize = 20;

/// Progress of the polls of this run.
#[derive(Debug, Default)]
pub(super) struct PollState {
    /// `None` before the first successful poll.
    last_success: Option<Timestamp>,
    /// Time from which a text that is first seen has arrived after the last poll.
    direct_from: Option<Timestamp>,
    last_full_read: Option<Timestamp>,
    last_activity: Option<Timestamp>,
    /// Clock of the phone minus ours, as last measured.
    pub(super) clock_skew: Option<SignedDuration>,
}

impl PollState {
    fn had_gap(&self, now: Timestamp) -> bool {
        self.last_success.is_none_or(|last| now.duration_since(last).abs() > MAX_GAP)
    }

    /// Records a poll that read the inbox, and returns the delay until the next one.
    fn record_success(&mut self, now: Timestamp, is_active: bool) -> PollDelay {
        if self.had_gap(now) {
            self.direct_from = Some(now + SETTLING_PERIOD);
        }
        self.last_success = Some(now);
        if is_active {
            self.last_activity = Some(now);
        }
        let talks = self.last_activity.is_some_and(|at| now.duration_since(at).abs() < ACTIVE_PERIOD);
        PollDelay::After(if talks { ACTIVE_INTERVAL } else { QUIET_INTERVAL })
    }

    /// Returns whether a text that is first seen now, and was sent at `sent_at`, certainly arrived after the last poll.
    pub(super) fn is_direct(&self, sent_at: Timestamp, now: Timestamp) -> bool {
        let is_within = |difference: SignedDuration| difference.abs() <= MAX_CLOCK_SKEW;
        is_within(now.duration_since(sent_at)) && self.clock_skew.is_none_or(is_within)
    }

    fn is_polled_directly(&self, now: Timestamp) -> bool {
        !self.had_gap(now) && self.direct_from.is_none_or(|from| now >= from)
    }
}

impl SmsGate {
    /// Polls the phone: first the states, then the inbox. So everything that had arrived before a prompt was known to be
    /// sent is admitted before the prompt opens.
    pub(super) async fn poll_phone(&self, poll: &Poll) -> Result<InboundPage, LookupError> {
        let had_gap = self.lock_poll_state().had_gap(poll.now);
        if had_gap {
            self.refresh_inbox(poll.now).await?;
        }
        let reports = self.fetch_reports(poll).await?;
        let (messages, mark) = self.read_inbox(poll, had_gap).await?;
        let is_young = |at: Timestamp| poll.now.duration_since(at) < ACTIVE_PERIOD;
        let waits =
            poll.unfinished.iter().any(|message| is_young(message.accepted_at) && !message.was_sent());
        let is_active = waits || messages.iter().any(|message| is_young(message.provider_at));
        let next = self.lock_poll_state().record_success(poll.now, is_active);
        let read_until = match &poll.cursor {
            Some(cursor) if cursor.mark == mark => cursor.read_until,
            Some(_) | None => poll.now,
        };
        Ok(InboundPage { messages, reports, ..InboundPage::empty(SourceCursor { read_until, mark }, next) })
    }

    /// Lets the app read the texts that the phone stored while the app did not run.
    async fn refresh_inbox(&self, now: Timestamp) -> Result<(), LookupError> {
        let body = serde_json::json!({
            "since": (now - WINDOW).to_string(), "until": now.to_string(),
            "messageTypes": ["SMS", "MMS_DOWNLOADED"], "triggerWebhooks": false,
        });
        let body = Bytes::from(body.to_string());
        let response = self.exchange(Method::POST, "/inbox/refresh", body).await;
        let response = response.map_err(|error| LookupError(telemetry::error_chain(&error)))?;
        if !response.status().is_success() {
            // Versions without this request still list the texts that they received themselves.
            tracing::debug!(status = %response.status(), "the phone does not refresh its inbox");
        }
        Ok(())
    }

    /// Returns the messages to admit and the mark of the inbox. At the first start, everything counts as seen.
    async fn read_inbox(
        &self,
        poll: &Poll,
        had_gap: bool,
    ) -> Result<(Vec<ReceivedMessage>, String), LookupError> {
        let now = poll.now;
        let mark = poll.cursor.as_ref().and_then(|cursor| InboxMark::parse(&cursor.mark));
        let Some(mark) = mark else {
            let counted_from = now - WINDOW;
            let head = self.fetch_head(counted_from).await?;
            let entries = self.fetch_entries(counted_from).await?;
            return Ok((Vec::new(), InboxMark::first(head, &entries, counted_from, now).to_text()));
        };
        let head = self.fetch_head(mark.counted_from).await?;
        let is_due = self
            .lock_poll_state()
            .last_full_read
            .is_none_or(|last| now.duration_since(last).abs() > FULL_READ_INTERVAL);
        if mark.matches_head(&head) && !had_gap && !is_due {
            return Ok((Vec::new(), mark.to_text()));
        }
        let entries = self.fetch_entries(now - WINDOW).await?;
        let mut messages: Vec<ReceivedMessage> = entries
            .into_iter()
            .filter(|entry| !mark.earlier.contains(&entry.id))
            .filter_map(|entry| self.parse_entry(entry, now))
            .collect();
        messages.sort_by(|a, b| (a.provider_at, &a.external_id).cmp(&(b.provider_at, &b.external_id)));
        self.lock_poll_state().last_full_read = Some(now);
        Ok((messages, mark.with_head(head, now).to_text()))
    }

    /// Fetches the number of entries since a fixed time, and the newest entry.
    async fn fetch_head(&self, from: Timestamp) -> Result<InboxHead, LookupError> {
        let path = format!("/inbox?from={from}&limit=1&offset=0");
        let (entries, headers) = self.fetch_json::<Vec<InboxEntry>>(&path).await?;
        let total = headers.get("x-total-count").and_then(|total| total.to_str().ok()?.parse().ok());
        let total = total.ok_or_else(|| LookupError("the inbox does not count its entries".to_owned()))?;
        Ok(InboxHead { total, newest: entries.into_iter().next().map(|entry| entry.id) })
    }

    async fn fetch_entries(&self, from: Timestamp) -> Result<Vec<InboxEntry>, LookupError> {
        let mut entries = Vec::new();
        for page in 0..MAX_PAGES {
            let offset = page * PAGE_SIZE;
            let path =
                format!("/inbox?from={from}&limit={PAGE_SIZE}&offset={offset}&includeAttachments=true");
            let (read, _) = self.fetch_json::<Vec<InboxEntry>>(&path).await?;
            let is_last = read.len() < PAGE_SIZE;
            entries.extend(read);
            if is_last {
                return Ok(entries);
            }
        }
        tracing::warn!(pages = MAX_PAGES, "stopped reading the phone's inbox before its end");
        Ok(entries)
    }

    /// Converts an entry; `None` if it is no text to us: from a name or a short code, to another SIM, or a picture that
    /// the app did not download.
    fn parse_entry(&self, entry: InboxEntry, now: Timestamp) -> Option<ReceivedMessage> {
        let is_text = entry.kind == "SMS" || entry.kind == "MMS_DOWNLOADED";
        if !is_text || !self.is_own_sim(entry.sim_number) {
            return None;
        }
        let from = parse_sender(&entry.sender, &self.account.number)?;
        let is_direct = {
            let state = self.lock_poll_state();
            state.is_polled_directly(now) && state.is_direct(entry.created_at, now)
        };
        let content = ReceivedText { body: entry.content_preview, attachments: entry.attachments };
        let via = if is_direct { MessageSource::Poll } else { MessageSource::Recovery };
        Some(self.received_message(from, content, (entry.created_at, now), via))
    }

    /// Returns whether a text was sent to our SIM. The texts to another SIM are not for this program.
    pub(super) fn is_own_sim(&self, sim: Option<u8>) -> bool {
        match (self.account.sim, sim) {
            (Some(own), Some(sim)) => own == sim,
            (Some(_), None) | (None, _) => true,
        }
    }

    pub(super) fn received_message(
        &self,
        from: PhoneNumber,
        content: ReceivedText,
        (sent_at, now): (Timestamp, Timestamp),
        via: MessageSource,
    ) -> ReceivedMessage {
        // NUL characters end a string in SQLite's C interface.
        let body = content.body.replace('\0', "\u{fffd}");
        let media = content.attachments.into_iter().map(|attachment| MessageMedia {
            // Pictures are never fetched, so only their number and type matter.
            url: String::new(),
            content_type: attachment.content_type,
        });
        ReceivedMessage {
            channel: channel_list::SMSGATE,
            external_id: message_id(&from, sent_at, &body),
            from: from.into(),
            to: self.address(),
            media: media.collect(),
            body,
            via,
            authority: FieldAuthority::Certain,
            carrier_word: None,
            pressed: None,
            room: None,
            provider_at: sent_at,
            received_at: now,
        }
    }
}

/// Content of a received text.
pub(super) struct ReceivedText {
    pub(super) body: String,
    pub(super) attachments: Vec<InboxAttachment>,
}

/// Returns the id of a text. The ids of the phone have 32 bits, and a second text can replace one with the same id.
fn message_id(from: &PhoneNumber, sent_at: Timestamp, body: &str) -> String {
    let fields = format!("{}|{}|{body}", from.as_str(), sent_at.as_millisecond());
    let digest = Sha256::digest(fields.as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
