//! Queue of digests: the reader of each, and the transaction that queues its message once.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::library_news::LibraryNews;
use super::waiting_items::WaitingReader;
use crate::conversation::digest::content::{DigestContent, LeavingTitle, format_digest};
use crate::conversation::digest::digest_messages;
use crate::conversation::digest::schedule::DigestTiming;
use crate::conversation::making_room::SilenceRule;
use crate::conversation::text::title::format_title;
use crate::conversation::transcript::{EventId, MediaKind, OutboxId, User, UserId, UserStatus};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::send_time::earliest_send_time;
use crate::engine::settings::HouseholdSettings;
use crate::store::digests::{self, DigestSetting};
use crate::store::library::space_answers::{self, AskedTitle};
use crate::store::library::space_proposals::{
    self, ProposalAnswer, ProposalPhase, ProposedTitleState, SpaceProposal,
};
use crate::store::people::age_limits::{self, ReaderLimit};
use crate::store::people::{rooms, users};
use crate::store::queue::notifications::{self, NotificationSetting};
use crate::store::queue::outbox::{self, NewOutboundMessage};
use crate::store::{Conn, QueryResult};

/// Maximum number of segments of a digest.
const MAX_SEGMENTS: u32 = 2;

/// Reason for a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DigestOccasion {
    /// Its weekly time.
    Due(Timestamp),
    /// Text that asks what it would say now.
    Asked(EventId),
}

/// Reader of a digest, with the caps on the titles in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DigestReader {
    pub(super) user: User,
    pub(super) is_room: bool,
    pub(super) limit: ReaderLimit,
}

/// Digest whose titles were read with the caps of its reader.
pub(super) struct PreparedDigest {
    pub(super) reader: DigestReader,
    pub(super) news: LibraryNews,
    /// Requested titles that a reader with caps may learn about; `None` for a reader without caps.
    pub(super) allowed: Option<BTreeSet<(MediaKind, i64)>>,
}

/// Outcome of queueing a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueOutcome {
    /// The digest is queued, was queued before, is empty, or is not wanted any more.
    Done,
    /// The caps of the reader have changed since the titles were read.
    Changed,
}

/// Work on digests within one transaction.
pub(super) struct DigestQueue<'a> {
    pub(super) conn: &'a mut Conn,
    pub(super) settings: &'a HouseholdSettings,
    pub(super) now: Timestamp,
}

impl DigestQueue<'_> {
    /// Returns whether the digest of a person or a room is due.
    pub(super) fn check_timing(&mut self, setting: &DigestSetting) -> QueryResult<DigestTiming> {
        let quiet_hours = notifications::load_quiet_hours(self.conn, setting.reader)?;
        let quiet_hours = quiet_hours.or(self.settings.quiet_hours);
        Ok(setting.times.check(quiet_hours, &self.settings.zone, self.now))
    }

    /// Loads the reader of a digest; `None` if the person or room gets none now.
    pub(super) fn load_reader(
        &mut self,
        id: UserId,
        occasion: DigestOccasion,
    ) -> QueryResult<Option<DigestReader>> {
        let user = users::load_user(self.conn, id)?;
        if let Some(room) = rooms::load_room(self.conn, id)? {
            let limit = age_limits::load_room_limit(self.conn, id)?;
            return Ok(room.is_open().then_some(DigestReader { user, is_room: true, limit }));
        }
        let setting = notifications::load_notification_setting(self.conn, id)?;
        let is_wanted = matches!(occasion, DigestOccasion::Asked(_)) || setting != NotificationSetting::Off;
        if user.status != UserStatus::Active || user.opted_out || !is_wanted {
            return Ok(None);
        }
        let limit = age_limits::load_user_limit(self.conn, &user)?;
        Ok(Some(DigestReader { user, is_room: false, limit }))
    }

    /// Records that a digest was sent or left out.
    pub(super) fn record_outcome(&mut self, reader: UserId, occasion: DigestOccasion) -> QueryResult<()> {
        match occasion {
            DigestOccasion::Due(due) => digests::record_due(self.conn, reader, due),
            DigestOccasion::Asked(_) => digests::clear_preview(self.conn, reader),
        }
    }

    /// Queues a digest once, if it is still wanted and the caps of its reader are those with which its titles were read.
    pub(super) fn queue_digest(
        &mut self,
        digest: &PreparedDigest,
        occasion: DigestOccasion,
    ) -> QueryResult<QueueOutcome> {
        let id = digest.reader.user.id;
        let Some(setting) = digests::load_setting(self.conn, id)? else { return Ok(QueueOutcome::Done) };
        let is_wanted = match occasion {
            DigestOccasion::Asked(text) => setting.preview == Some(text),
            DigestOccasion::Due(at) => {
                matches!(self.check_timing(&setting)?, DigestTiming::Due { due, .. } if due == at)
            }
        };
        if !is_wanted {
            return Ok(QueueOutcome::Done);
        }
        let Some(reader) = self.load_reader(id, occasion)? else {
            self.record_outcome(id, occasion)?;
            return Ok(QueueOutcome::Done);
        };
        if reader.limit.limit != digest.reader.limit.limit {
            return Ok(QueueOutcome::Changed);
        }
        self.queue_message(&reader, digest, occasion)?;
        self.record_outcome(id, occasion)?;
        Ok(QueueOutcome::Done)
    }

    fn queue_message(
        &mut self,
        reader: &DigestReader,
        digest: &PreparedDigest,
        occasion: DigestOccasion,
    ) -> QueryResult<()> {
        let address = match reader.is_room {
            true => ReplyAddress::load_for_room(self.conn, &reader.user, &self.settings.senders)?,
            false => ReplyAddress::load_for_user(self.conn, &reader.user, &self.settings.senders)?,
        };
        // A test user reads the digest in the console. A terminal that is not open has no reader.
        if !reader.user.test && !address.our_address().channel().is_remote() {
            return Ok(());
        }
        let waiting =
            WaitingReader { user: &reader.user, is_room: reader.is_room, allowed: digest.allowed.as_ref() };
        let content = DigestContent {
            came: digest.news.came.clone(),
            coming: digest.news.coming.clone(),
            leaving: load_leaving_titles(self.conn, reader, &self.settings.zone)?,
            waiting: waiting.load_items(self.conn, self.now)?,
        };
        let (key, send_at) = match occasion {
            DigestOccasion::Due(due) => (
                format!("digest:{}", due.as_second()),
                earliest_send_time(self.conn, reader.user.id, self.settings, self.now)?,
            ),
            DigestOccasion::Asked(text) => (format!("digest_now:{text}"), self.now),
        };
        let message = |text: &str| address.notification_message(&key, text);
        let fits = |text: &str| message(text).segments <= MAX_SEGMENTS;
        match (format_digest(&content, &fits), occasion) {
            (Some(digest), _) => self
                .queue_once(&message(&digest.text), send_at)?
                .map_or(Ok(()), |id| digests::store_lines(self.conn, id, &digest.lines)),
            (None, DigestOccasion::Asked(_)) => {
                self.queue_once(&message(digest_messages::EMPTY), send_at).map(drop)
            }
            (None, DigestOccasion::Due(_)) => Ok(()),
        }
    }

    /// Queues a message, and returns its id; `None` if it was queued before.
    fn queue_once(
        &mut self,
        message: &NewOutboundMessage,
        send_at: Timestamp,
    ) -> QueryResult<Option<OutboxId>> {
        if outbox::is_message_queued(self.conn, &message.key)? {
            return Ok(None);
        }
        outbox::queue_message_at(self.conn, message, send_at, self.now).map(Some)
    }
}

/// Loads the titles about which a person was asked and that may be deleted to make room, with their numbers in the
/// question.
fn load_leaving_titles(
    conn: &mut Conn,
    reader: &DigestReader,
    zone: &TimeZone,
) -> QueryResult<Vec<LeavingTitle>> {
    let is_current = |open: &SpaceProposal| !reader.is_room && open.phase == ProposalPhase::Asking;
    let Some(open) = space_proposals::load_open_proposal(conn)?.filter(is_current) else {
        return Ok(Vec::new());
    };
    let leaves_on = open.answers_end_at.to_zoned(zone.clone()).date();
    let may_leave = |asked: &AskedTitle| {
        asked.state == ProposedTitleState::Asked
            && (open.silence == SilenceRule::MayGo || asked.answer == Some(ProposalAnswer::Free))
    };
    let asked = (1_i64..).zip(space_answers::load_titles_asked(conn, open.id, reader.user.id)?);
    let leaving = asked.filter(|(_, asked)| may_leave(asked)).map(|(number, asked)| LeavingTitle {
        name: format_title(&asked.title, asked.year),
        leaves_on,
        number,
    });
    Ok(leaving.collect())
}
