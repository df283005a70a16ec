//! Digests: who gets one and when, and the matters of the numbered lines of sent digests.

use diesel::dsl::exists;
use diesel::prelude::*;
use jiff::Timestamp;
use jiff::civil::Weekday;

use super::codec::{convert_integer, ms, unreadable_column};
use super::column_types::stored_enum;
use super::queue::outbox::{self, OutboxState};
use super::queue::suppression;
use super::schema::{digest_lines, digest_settings, inbound_events, outbox as messages};
use super::{Conn, QueryResult};
use crate::conversation::digest::content::DigestLine;
use crate::conversation::digest::schedule::{DigestSchedule, DigestTimes};
use crate::conversation::transcript::{EventId, MediaKind, OutboxId, UserId, VoteId};

/// Prefix of the keys of digests. It ends before the colon.
pub(in crate::store) const KEY_PREFIX: &str = "digest";

stored_enum! {
    /// Kind of the matter of a line.
    pub enum DigestLineKind {
        Movie = "movie",
        Series = "series",
        Leaving = "leaving",
        Approval = "approval",
        OwnRequest = "own_request",
        Addition = "addition",
        Vote = "vote",
    }
}

/// Digest of a person or a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestSetting {
    /// Person or room who gets the digest.
    pub reader: UserId,
    pub times: DigestTimes,
    /// Text that asks what the digest would say now.
    pub preview: Option<EventId>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = digest_settings)]
struct DigestSettingRow {
    user_id: UserId,
    weekday: i64,
    hour: i64,
    set_at: Timestamp,
    last_due_at: Option<Timestamp>,
    preview_event: Option<EventId>,
}

impl DigestSettingRow {
    fn into_setting(self) -> QueryResult<DigestSetting> {
        let unreadable = || unreadable_column("digest");
        let weekday =
            Weekday::from_monday_one_offset(convert_integer(self.weekday)?).map_err(|_| unreadable())?;
        let schedule = DigestSchedule::new(weekday, convert_integer(self.hour)?).ok_or_else(unreadable)?;
        let times = DigestTimes { schedule, set_at: self.set_at, last_due_at: self.last_due_at };
        Ok(DigestSetting { reader: self.user_id, times, preview: self.preview_event })
    }
}

/// Loads the digest of a person or a room; `None` if there is none.
pub fn load_setting(conn: &mut Conn, reader: UserId) -> QueryResult<Option<DigestSetting>> {
    let row: Option<DigestSettingRow> =
        digest_settings::table.find(reader).select(DigestSettingRow::as_select()).first(conn).optional()?;
    row.map(DigestSettingRow::into_setting).transpose()
}

/// Loads the schedule of a person or a room; `None` without a digest.
pub fn load_schedule(conn: &mut Conn, reader: UserId) -> QueryResult<Option<DigestSchedule>> {
    Ok(load_setting(conn, reader)?.map(|setting| setting.times.schedule))
}

/// Loads all digests.
pub fn load_settings(conn: &mut Conn) -> QueryResult<Vec<DigestSetting>> {
    let rows: Vec<DigestSettingRow> = digest_settings::table
        .order(digest_settings::user_id)
        .select(DigestSettingRow::as_select())
        .load(conn)?;
    rows.into_iter().map(DigestSettingRow::into_setting).collect()
}

/// Stores the schedule of a person or a room, or that there is no digest, and withdraws a digest that waits. The same
/// schedule changes nothing.
pub fn store_schedule(
    conn: &mut Conn,
    reader: UserId,
    schedule: Option<DigestSchedule>,
    now: Timestamp,
) -> QueryResult<()> {
    if load_schedule(conn, reader)? == schedule {
        return Ok(());
    }
    diesel::delete(digest_settings::table.find(reader)).execute(conn)?;
    withdraw_waiting_digests(conn, reader, now)?;
    let Some(schedule) = schedule else { return Ok(()) };
    diesel::insert_into(digest_settings::table)
        .values((
            digest_settings::user_id.eq(reader),
            digest_settings::weekday.eq(i64::from(schedule.weekday().to_monday_one_offset())),
            digest_settings::hour.eq(i64::from(schedule.hour())),
            digest_settings::set_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

/// Suppresses the digest of a person or a room that waits to be sent.
pub(in crate::store) fn withdraw_waiting_digests(
    conn: &mut Conn,
    reader: UserId,
    now: Timestamp,
) -> QueryResult<()> {
    let (from, to) = (format!("{KEY_PREFIX}:"), format!("{KEY_PREFIX};"));
    let waiting: Vec<OutboxId> = messages::table
        .filter(outbox::OPEN.and(messages::user_id.eq(reader)).and(messages::state.eq(OutboxState::Queued)))
        .filter(messages::dedupe_key.ge(from).and(messages::dedupe_key.lt(to)))
        .select(messages::id)
        .load(conn)?;
    waiting.into_iter().try_for_each(|id| suppression::suppress_message(conn, id, now))
}

/// Withdraws the waiting digests of a person and of the rooms in which the person has written, and deletes the lines of
/// those that were sent, so that their numbers have no meaning.
pub(in crate::store) fn withdraw_readable_digests(
    conn: &mut Conn,
    person: UserId,
    now: Timestamp,
) -> QueryResult<()> {
    let rooms: Vec<UserId> = digest_settings::table
        .filter(exists(
            inbound_events::table.filter(
                inbound_events::user_id
                    .eq(person)
                    .and(inbound_events::room_id.eq(digest_settings::user_id.nullable())),
            ),
        ))
        .select(digest_settings::user_id)
        .load(conn)?;
    for reader in rooms.into_iter().chain([person]) {
        withdraw_waiting_digests(conn, reader, now)?;
        let sent = messages::table.filter(messages::user_id.eq(reader)).select(messages::id);
        diesel::delete(digest_lines::table.filter(digest_lines::outbox_id.eq_any(sent))).execute(conn)?;
    }
    Ok(())
}

/// Records that a text asks what the digest would say now.
pub fn request_preview(conn: &mut Conn, reader: UserId, text: EventId) -> QueryResult<()> {
    diesel::update(digest_settings::table.find(reader))
        .set(digest_settings::preview_event.eq(text))
        .execute(conn)
        .map(drop)
}

/// Records that the text that asked what the digest would say is answered.
pub fn clear_preview(conn: &mut Conn, reader: UserId) -> QueryResult<()> {
    diesel::update(digest_settings::table.find(reader))
        .set(digest_settings::preview_event.eq(None::<EventId>))
        .execute(conn)
        .map(drop)
}

/// Records that the digest of a due time was sent or left out.
pub fn record_due(conn: &mut Conn, reader: UserId, due: Timestamp) -> QueryResult<()> {
    diesel::update(digest_settings::table.find(reader))
        .set(digest_settings::last_due_at.eq(ms(due)))
        .execute(conn)
        .map(drop)
}

/// Stores the matters of the lines of a digest, from number 1 on.
pub fn store_lines(conn: &mut Conn, message: OutboxId, lines: &[DigestLine]) -> QueryResult<()> {
    for (number, line) in (1_i64..).zip(lines) {
        let (kind, reference, title) = line_columns(line);
        diesel::insert_into(digest_lines::table)
            .values((
                digest_lines::outbox_id.eq(message),
                digest_lines::number.eq(number),
                digest_lines::kind.eq(kind),
                digest_lines::reference.eq(reference),
                digest_lines::title.eq(title),
            ))
            .execute(conn)?;
    }
    Ok(())
}

fn line_columns(line: &DigestLine) -> (DigestLineKind, i64, &str) {
    match line {
        DigestLine::Title(MediaKind::Movie, title) => (DigestLineKind::Movie, 0, title),
        DigestLine::Title(MediaKind::Series, title) => (DigestLineKind::Series, 0, title),
        DigestLine::Leaving { number, title } => (DigestLineKind::Leaving, *number, title),
        DigestLine::Approval(id) => (DigestLineKind::Approval, *id, ""),
        DigestLine::OwnRequest { id, title } => (DigestLineKind::OwnRequest, *id, title),
        DigestLine::Addition { id, title } => (DigestLineKind::Addition, *id, title),
        DigestLine::Vote(vote) => (DigestLineKind::Vote, vote.0, ""),
    }
}

/// Loads the matter of a line of a digest; `None` if the digest has no such line.
pub fn find_line(conn: &mut Conn, message: OutboxId, number: u8) -> QueryResult<Option<DigestLine>> {
    let row: Option<(DigestLineKind, i64, String)> = digest_lines::table
        .find((message, i64::from(number)))
        .select((digest_lines::kind, digest_lines::reference, digest_lines::title))
        .first(conn)
        .optional()?;
    Ok(row.map(|(kind, reference, title)| match kind {
        DigestLineKind::Movie => DigestLine::Title(MediaKind::Movie, title),
        DigestLineKind::Series => DigestLine::Title(MediaKind::Series, title),
        DigestLineKind::Leaving => DigestLine::Leaving { number: reference, title },
        DigestLineKind::Approval => DigestLine::Approval(reference),
        DigestLineKind::OwnRequest => DigestLine::OwnRequest { id: reference, title },
        DigestLineKind::Addition => DigestLine::Addition { id: reference, title },
        DigestLineKind::Vote => DigestLine::Vote(VoteId(reference)),
    }))
}

/// Returns which of these messages are digests with lines.
pub fn find_digests(conn: &mut Conn, messages: &[OutboxId]) -> QueryResult<Vec<OutboxId>> {
    digest_lines::table
        .filter(digest_lines::outbox_id.eq_any(messages).and(digest_lines::number.eq(1)))
        .select(digest_lines::outbox_id)
        .load(conn)
}

/// Deletes the digest of a person who is forgotten.
pub(in crate::store) fn delete_setting(conn: &mut Conn, reader: UserId) -> QueryResult<()> {
    diesel::delete(digest_settings::table.find(reader)).execute(conn).map(drop)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::people::users::{FirstContactRole, ensure_user};
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn create_ann(conn: &mut Conn) -> UserId {
        ensure_user(conn, PhoneNumber::parse("+15550100001").unwrap(), FirstContactRole::Member, NOW).unwrap()
    }

    #[test]
    fn same_schedule_keeps_its_record_and_another_one_starts_anew() {
        let mut conn = scratch();
        let ann = create_ann(&mut conn);
        let friday = DigestSchedule::new(Weekday::Friday, 18);
        let later = NOW + SignedDuration::from_hours(1);
        store_schedule(&mut conn, ann, friday, NOW).unwrap();
        record_due(&mut conn, ann, later).unwrap();
        store_schedule(&mut conn, ann, friday, later).unwrap();
        let times = load_setting(&mut conn, ann).unwrap().unwrap().times;
        assert_eq!((times.set_at, times.last_due_at), (NOW, Some(later)));
        store_schedule(&mut conn, ann, DigestSchedule::new(Weekday::Sunday, 0), later).unwrap();
        let times = load_setting(&mut conn, ann).unwrap().unwrap().times;
        assert_eq!((times.set_at, times.last_due_at), (later, None));
        assert_eq!(times.schedule.to_words(), "sunday 0");
        store_schedule(&mut conn, ann, None, later).unwrap();
        assert_eq!(load_settings(&mut conn), Ok(Vec::new()));
    }
}
