//! Notifications, which are sent to users without a request at that moment and once for each subject, and the
//! notification preferences of users.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::delivery_reports::AcceptancePolicy;
use super::lookups;
use super::outbox::{self, NewOutboundMessage, OutboundKind, OutboxState};
use crate::conversation::notifications::arr_events::NotificationTopic;
use crate::conversation::notifications::quiet_hours::{NotificationPreference, QuietHours};
use crate::conversation::transcript::{OutboxId, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms, unreadable_column};
use crate::store::library::follows;
use crate::store::schema::{notices, outbox as texts, users};

/// Prefixes of the keys of messages that respect quiet hours: notifications of titles and problems, and the outcome of
/// an addition that was retried.
const QUIET_KEYS: [&str; 3] = ["ready:", "trouble:", "request:"];

/// Notification preference of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationSetting {
    Off,
    /// The user wants notifications, with the quiet hours that the user has set, if any.
    On(Option<QuietHours>),
}

pub fn load_notification_setting(conn: &mut Conn, user: UserId) -> QueryResult<NotificationSetting> {
    Ok(if users::table.find(user).select(users::notify).first(conn)? {
        NotificationSetting::On(load_quiet_hours(conn, user)?)
    } else {
        NotificationSetting::Off
    })
}

/// Loads the quiet hours that a user has set, whether or not the user wants notifications: promised messages respect
/// quiet hours too.
pub fn load_quiet_hours(conn: &mut Conn, user: UserId) -> QueryResult<Option<QuietHours>> {
    let (from, to): (Option<i64>, Option<i64>) =
        users::table.find(user).select((users::quiet_from, users::quiet_to)).first(conn)?;
    match (from, to) {
        (Some(from), Some(to)) => {
            let hours = QuietHours::new(convert_integer(from)?, convert_integer(to)?);
            hours.ok_or_else(|| unreadable_column("hours")).map(Some)
        }
        (None, _) | (_, None) => Ok(None),
    }
}

/// Stores the preference of a user. If the user turns notifications off, waiting notifications are not sent either.
pub fn store_notification_preference(
    conn: &mut Conn,
    user: UserId,
    wish: NotificationPreference,
    now: Timestamp,
) -> QueryResult<()> {
    let person = users::table.find(user);
    let hours = |quiet: QuietHours| {
        let (from, to) = (Some(i64::from(quiet.start_hour())), Some(i64::from(quiet.end_hour())));
        (users::quiet_from.eq(from), users::quiet_to.eq(to), users::updated_at.eq(ms(now)))
    };
    match wish {
        NotificationPreference::On => diesel::update(person)
            .set((users::notify.eq(true), users::updated_at.eq(ms(now))))
            .execute(conn)?,
        NotificationPreference::Off => {
            suppress_unsolicited(conn, user, now)?;
            follows::mute_follows(conn, user)?;
            diesel::update(person)
                .set((users::notify.eq(false), users::updated_at.eq(ms(now))))
                .execute(conn)?
        }
        NotificationPreference::Quiet(quiet) => diesel::update(person).set(hours(quiet)).execute(conn)?,
        NotificationPreference::NeverQuiet => {
            diesel::update(person).set(hours(QuietHours::NEVER)).execute(conn)?
        }
    };
    Ok(())
}

/// Outcome of recording a notification: the first one about its subject, or a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOutcome {
    New(i64),
    Known,
}

/// Records that a user is notified of a subject. Notifications from before `since` do not count.
pub fn record_notification(
    conn: &mut Conn,
    user: UserId,
    matter: &str,
    since: Timestamp,
    now: Timestamp,
) -> QueryResult<RecordOutcome> {
    let known: Option<(i64, Timestamp)> = notices::table
        .filter(notices::user_id.eq(user).and(notices::matter.eq(matter)))
        .select((notices::id, notices::created_at))
        .first(conn)
        .optional()?;
    match known {
        Some((_, at)) if at >= since => return Ok(RecordOutcome::Known),
        Some((id, _)) => {
            diesel::delete(notices::table.find(id)).execute(conn)?;
        }
        None => {}
    }
    let row = (notices::user_id.eq(user), notices::matter.eq(matter), notices::created_at.eq(ms(now)));
    diesel::insert_into(notices::table)
        .values(row)
        .returning(notices::id)
        .get_result(conn)
        .map(RecordOutcome::New)
}

/// Returns whether a user was notified of a subject since `since`.
pub fn was_notified(conn: &mut Conn, user: UserId, matter: &str, since: Timestamp) -> QueryResult<bool> {
    let at: Option<Timestamp> = notices::table
        .filter(notices::user_id.eq(user).and(notices::matter.eq(matter)))
        .select(notices::created_at)
        .first(conn)
        .optional()?;
    Ok(at.is_some_and(|at| at >= since))
}

/// Returns the time at which a user was last notified of a subject with this prefix.
pub fn load_last_notified(conn: &mut Conn, user: UserId, beginning: &str) -> QueryResult<Option<Timestamp>> {
    // The semicolon is the character after the colon, which ends every prefix.
    let end = format!("{};", beginning.trim_end_matches(':'));
    notices::table
        .filter(notices::user_id.eq(user).and(notices::matter.ge(beginning)).and(notices::matter.lt(end)))
        .select(diesel::dsl::max(notices::created_at))
        .first(conn)
}

/// Loads the distinct times of a user's notifications since `since`, excluding `but`.
pub fn load_notification_times(
    conn: &mut Conn,
    user: UserId,
    since: Timestamp,
    but: Option<OutboxId>,
) -> QueryResult<Vec<Timestamp>> {
    let rows: Vec<(Option<OutboxId>, Timestamp)> = notices::table
        .filter(notices::user_id.eq(user).and(notices::created_at.gt(ms(since))))
        .order(notices::id)
        .select((notices::outbox_id, notices::created_at))
        .load(conn)?;
    let mut seen = Vec::new();
    let mut times = Vec::new();
    for (text, at) in rows {
        if let Some(text) = text
            && but != Some(text)
            && !seen.contains(&text)
        {
            seen.push(text);
            times.push(at);
        }
    }
    Ok(times)
}

/// Waiting message that several notifications may share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingNotification {
    pub id: OutboxId,
    /// The phrases of the message so far.
    pub phrases: Vec<String>,
}

/// Loads the user's message that waits for its send time.
pub fn find_waiting_notification(
    conn: &mut Conn,
    user: UserId,
    topic: NotificationTopic,
    now: Timestamp,
) -> QueryResult<Option<WaitingNotification>> {
    let waiting: Option<(OutboxId, Timestamp)> = texts::table
        .filter(outbox::OPEN.and(texts::user_id.eq(user)).and(texts::kind.eq(OutboundKind::Notice)))
        .filter(
            texts::state
                .eq(OutboxState::Queued)
                .and(texts::attempts.eq(0))
                .and(texts::not_before.gt(ms(now))),
        )
        .filter(lookups::NOT_LOOKED_UP)
        .filter(texts::dedupe_key.ge(format!("{}:", topic_word(topic))))
        .filter(texts::dedupe_key.lt(format!("{};", topic_word(topic))))
        .select((texts::id, texts::created_at))
        .first(conn)
        .optional()?;
    let Some((id, created_at)) = waiting else { return Ok(None) };
    let words: Vec<Option<String>> = notices::table
        .filter(notices::user_id.eq(user).and(notices::created_at.ge(ms(created_at))))
        .filter(notices::outbox_id.eq(id))
        .order(notices::id)
        .select(notices::words)
        .load(conn)?;
    let phrases: Vec<String> = words.into_iter().flatten().collect();
    // A message whose text was erased cannot be extended.
    Ok((!phrases.is_empty()).then_some(WaitingNotification { id, phrases }))
}

/// Returns the key of a message: the prefix of its topic and the id of its first notification, which makes the key
/// unique.
pub fn notification_key(topic: NotificationTopic, notice: i64) -> String {
    format!("{}:{notice}", topic_word(topic))
}

fn topic_word(topic: NotificationTopic) -> &'static str {
    match topic {
        NotificationTopic::Ready => "ready",
        NotificationTopic::Problem => "trouble",
    }
}

/// Queues a message for these notifications, to be sent at `at`.
pub fn queue_notification(
    conn: &mut Conn,
    text: &NewOutboundMessage,
    at: Timestamp,
    (ids, phrase): (&[i64], &str),
    now: Timestamp,
) -> QueryResult<()> {
    let id = outbox::queue_message_at(conn, text, at, now)?;
    link_notifications(conn, id, ids, phrase)
}

/// Adds phrases to a waiting message.
pub fn append_phrase(
    conn: &mut Conn,
    held: OutboxId,
    (body, segments): (&str, u32),
    (ids, phrase): (&[i64], &str),
    now: Timestamp,
) -> QueryResult<()> {
    diesel::update(texts::table.find(held))
        .set((texts::body.eq(body), texts::segments.eq(i64::from(segments)), texts::updated_at.eq(ms(now))))
        .execute(conn)?;
    link_notifications(conn, held, ids, phrase)
}

fn link_notifications(conn: &mut Conn, text: OutboxId, ids: &[i64], phrase: &str) -> QueryResult<()> {
    for (place, id) in ids.iter().enumerate() {
        let words = (place == 0).then_some(phrase);
        diesel::update(notices::table.find(id))
            .set((notices::outbox_id.eq(text), notices::words.eq(words)))
            .execute(conn)?;
    }
    Ok(())
}

/// Suppresses every waiting notification of a user, except the codes and outcomes of requests that admins decide,
/// because those requests are still open. A notification with an unknown delivery status is neither looked up nor sent
/// again.
pub fn suppress_all(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    let of_requests = texts::dedupe_key.ge("approval:").and(texts::dedupe_key.lt("approval;"));
    diesel::update(
        texts::table
            .filter(outbox::OPEN.and(texts::user_id.eq(user)))
            .filter(texts::kind.eq(OutboundKind::Notice).and(diesel::dsl::not(of_requests))),
    )
    .set((texts::state.eq(OutboxState::Suppressed), texts::updated_at.eq(ms(now))))
    .execute(conn)
    .map(drop)
}

/// Suppresses a user's waiting notifications of ready titles and of problems.
pub fn suppress_unsolicited(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    for topic in [NotificationTopic::Ready, NotificationTopic::Problem] {
        diesel::update(
            texts::table
                .filter(outbox::OPEN.and(texts::user_id.eq(user)).and(texts::state.eq(OutboxState::Queued)))
                .filter(texts::dedupe_key.ge(format!("{}:", topic_word(topic))))
                .filter(texts::dedupe_key.lt(format!("{};", topic_word(topic)))),
        )
        .set((texts::state.eq(OutboxState::Suppressed), texts::updated_at.eq(ms(now))))
        .execute(conn)?;
    }
    Ok(())
}

/// Maximum pause before a refused message is retried.
const RETRY_WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// Loads the notifications that wait for an hour of the day, or for the hourly limit, with their users.
pub fn load_waiting_notifications(
    conn: &mut Conn,
    user: Option<UserId>,
    now: Timestamp,
) -> QueryResult<Vec<(OutboxId, UserId)>> {
    let mut waiting = texts::table
        .filter(
            outbox::OPEN.and(texts::kind.eq(OutboundKind::Notice)).and(texts::state.eq(OutboxState::Queued)),
        )
        .filter(texts::not_before.gt(ms(Timestamp::UNIX_EPOCH)).and(lookups::NOT_LOOKED_UP))
        .filter(texts::attempts.eq(0).or(texts::not_before.gt(ms(now + RETRY_WITHIN))))
        .select((texts::id, texts::user_id, texts::dedupe_key))
        .into_boxed();
    if let Some(user) = user {
        waiting = waiting.filter(texts::user_id.eq(user));
    }
    let mut rows: Vec<(OutboxId, UserId, String)> = waiting.load(conn)?;
    // Sorted here: with an ORDER BY, SQLite would read every message instead of only the open ones.
    rows.sort_unstable();
    // Other messages have no quiet hours: their time is the time of a retry.
    rows.retain(|(.., key)| respects_quiet_hours(key));
    Ok(rows.into_iter().map(|(id, user, _)| (id, user)).collect())
}

/// Postpones a notification until `at`. The age of the notification is counted from that time.
pub fn postpone_notification(
    conn: &mut Conn,
    id: OutboxId,
    at: Timestamp,
    now: Timestamp,
) -> QueryResult<()> {
    diesel::update(texts::table.find(id).filter(texts::state.eq(OutboxState::Queued)))
        .set((
            texts::not_before.eq(ms(if at > now { at } else { Timestamp::UNIX_EPOCH })),
            texts::deadline_at.eq(ms(at.max(now) + outbox::SEND_WITHIN)),
            texts::updated_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

fn respects_quiet_hours(key: &str) -> bool {
    QUIET_KEYS.iter().any(|beginning| key.starts_with(beginning))
}

/// Returns the end of the quiet hours if a message with this key must not be sent now.
pub(in crate::store) fn quiet_hours_end(
    conn: &mut Conn,
    user: UserId,
    key: &str,
    terms: &AcceptancePolicy,
    now: Timestamp,
) -> QueryResult<Option<Timestamp>> {
    if !respects_quiet_hours(key) {
        return Ok(None);
    }
    let hours = load_quiet_hours(conn, user)?.or(terms.quiet);
    Ok(hours.and_then(|hours| hours.next_end(now, &terms.zone)))
}

/// Deletes the rows of notifications from before `before`.
pub fn delete_old_notifications(conn: &mut Conn, before: Timestamp) -> QueryResult<usize> {
    // One query per user, because the index begins with the user.
    let people: Vec<UserId> = users::table.select(users::id).load(conn)?;
    let mut gone = 0;
    for user in people {
        let old = notices::user_id.eq(user).and(notices::created_at.lt(ms(before)));
        gone += diesel::delete(notices::table.filter(old)).execute(conn)?;
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::super::outbox_schedule;
    use super::*;
    use crate::conversation::transcript::{Address, PhoneNumber};
    use crate::store::people::users::{FirstContactRole, ensure_user};
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn minute(n: i64) -> Timestamp {
        NOW + SignedDuration::from_mins(n)
    }

    fn ann(conn: &mut Conn) -> UserId {
        ensure_user(conn, &PhoneNumber::parse("+15550100001").unwrap(), FirstContactRole::Member, NOW)
            .unwrap()
    }

    fn text(user: UserId, notice: i64, body: &str) -> NewOutboundMessage {
        NewOutboundMessage {
            key: notification_key(NotificationTopic::Ready, notice),
            user,
            turn: None,
            kind: OutboundKind::Notice,
            to: Address::new("+15550100001"),
            from: Address::new("+15550100000"),
            body: body.into(),
            segments: 1,
            media: None,
        }
    }

    fn new(conn: &mut Conn, user: UserId, matter: &str, at: Timestamp) -> i64 {
        match record_notification(conn, user, matter, NOW, at).unwrap() {
            RecordOutcome::New(id) => id,
            RecordOutcome::Known => panic!("{matter} was noted before"),
        }
    }

    #[test]
    fn matter_is_notified_once_per_follow() {
        let mut conn = scratch();
        let ann = ann(&mut conn);
        new(&mut conn, ann, "movie:radarr:7", minute(5));
        assert_eq!(
            record_notification(&mut conn, ann, "movie:radarr:7", minute(5), minute(9)),
            Ok(RecordOutcome::Known)
        );
        assert_eq!(was_notified(&mut conn, ann, "movie:radarr:7", minute(5)), Ok(true));
        assert_eq!(
            record_notification(&mut conn, ann, "movie:radarr:7", minute(6), minute(9)),
            Ok(RecordOutcome::New(2))
        );
    }

    #[test]
    fn last_notification_is_found_by_matter_prefix() {
        let mut conn = scratch();
        let ann = ann(&mut conn);
        for (matter, at) in
            [("episode:sonarr:7:1:1", 1), ("episode:sonarr:7:1:2", 3), ("episode:sonarr:70:1:1", 5)]
        {
            new(&mut conn, ann, matter, minute(at));
        }
        assert_eq!(load_last_notified(&mut conn, ann, "episode:sonarr:7:"), Ok(Some(minute(3))));
        assert_eq!(load_last_notified(&mut conn, ann, "episode:sonarr:8:"), Ok(None));
    }

    #[test]
    fn waiting_notification_is_extended_and_counts_once() {
        let mut conn = scratch();
        let ann = ann(&mut conn);
        let first = new(&mut conn, ann, "movie:radarr:7", minute(1));
        queue_notification(
            &mut conn,
            &text(ann, first, "Dune is ready."),
            minute(60),
            (&[first], "Dune"),
            minute(1),
        )
        .unwrap();
        let held_then =
            find_waiting_notification(&mut conn, ann, NotificationTopic::Ready, minute(2)).unwrap().unwrap();
        assert_eq!(held_then.phrases, ["Dune"]);
        let more = [new(&mut conn, ann, "movie:radarr:8", minute(2)), new(&mut conn, ann, "x", minute(2))];
        append_phrase(&mut conn, held_then.id, ("Both are ready.", 1), (&more, "Heat"), minute(2)).unwrap();
        let held_now =
            find_waiting_notification(&mut conn, ann, NotificationTopic::Ready, minute(3)).unwrap().unwrap();
        assert_eq!(held_now.phrases, ["Dune", "Heat"]);
        assert_eq!(load_notification_times(&mut conn, ann, NOW, None), Ok(vec![minute(1)]));
        assert_eq!(load_notification_times(&mut conn, ann, NOW, Some(held_now.id)), Ok(vec![]));
        assert_eq!(
            find_waiting_notification(&mut conn, ann, NotificationTopic::Problem, minute(3)),
            Ok(None)
        );
        assert_eq!(
            find_waiting_notification(&mut conn, ann, NotificationTopic::Ready, minute(60)),
            Ok(None),
            "it is on its way"
        );
    }

    #[test]
    fn notification_preference_applies_to_waiting_messages() {
        let mut conn = scratch();
        let ann = ann(&mut conn);
        assert_eq!(load_notification_setting(&mut conn, ann), Ok(NotificationSetting::On(None)));
        let night = QuietHours::new(22, 7).unwrap();
        store_notification_preference(&mut conn, ann, NotificationPreference::Quiet(night), NOW).unwrap();
        assert_eq!(load_notification_setting(&mut conn, ann), Ok(NotificationSetting::On(Some(night))));
        store_notification_preference(&mut conn, ann, NotificationPreference::NeverQuiet, NOW).unwrap();
        assert_eq!(
            load_notification_setting(&mut conn, ann),
            Ok(NotificationSetting::On(Some(QuietHours::NEVER)))
        );

        let notice = new(&mut conn, ann, "movie:radarr:7", minute(1));
        queue_notification(
            &mut conn,
            &text(ann, notice, "Dune is ready."),
            minute(60),
            (&[notice], "Dune"),
            minute(1),
        )
        .unwrap();
        store_notification_preference(&mut conn, ann, NotificationPreference::Off, minute(2)).unwrap();
        assert_eq!(load_notification_setting(&mut conn, ann), Ok(NotificationSetting::Off));
        let agenda = outbox_schedule::load_outbox_schedule(&mut conn, &[], minute(90)).unwrap();
        assert_eq!(agenda, outbox_schedule::OutboxSchedule::default());
    }

    #[test]
    fn admin_code_never_waits_for_the_end_of_quiet_hours() {
        let mut conn = scratch();
        let ann = ann(&mut conn);
        for key in ["approval:1:user:1", "ready:1", "request:1"] {
            let text = NewOutboundMessage { key: key.into(), ..text(ann, 1, "Dune") };
            outbox::queue_message_at(&mut conn, &text, minute(60), minute(1)).unwrap();
        }
        let moved = load_waiting_notifications(&mut conn, None, minute(2)).unwrap();
        assert_eq!(moved, [(OutboxId(2), ann), (OutboxId(3), ann)]);
    }

    #[test]
    fn erased_notification_of_unknown_delivery_is_not_resent() {
        let mut conn = scratch();
        let ann = ann(&mut conn);
        let id = outbox::queue_message(&mut conn, &text(ann, 1, "Dune is ready."), NOW).unwrap();
        let terms = AcceptancePolicy {
            confirm_for: SignedDuration::ZERO,
            zone: jiff::tz::TimeZone::UTC,
            quiet: None,
        };
        outbox::claim_message(&mut conn, id, &terms, NOW).unwrap();
        outbox::mark_message_unknown(&mut conn, id, "no answer", NOW).unwrap();
        suppress_all(&mut conn, ann, minute(1)).unwrap();
        let looks = lookups::LookupCount { before: 0, enough: 1 };
        assert_eq!(
            lookups::record_unsuccessful_lookup(&mut conn, id, looks, minute(2)),
            Ok(lookups::LookupOutcome::LookAgain)
        );
        assert_eq!(
            outbox_schedule::load_outbox_schedule(&mut conn, &[], minute(9)).unwrap(),
            outbox_schedule::OutboxSchedule::default()
        );
    }

    #[test]
    fn old_notifications_are_deleted() {
        let mut conn = scratch();
        let ann = ann(&mut conn);
        new(&mut conn, ann, "movie:radarr:7", minute(1));
        assert_eq!(
            (delete_old_notifications(&mut conn, minute(1)), delete_old_notifications(&mut conn, minute(2))),
            (Ok(0), Ok(1))
        );
    }
}
