//! Notifications, each sent at most once per user and matter, and the notification preferences of users.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::delivery_reports::AcceptancePolicy;
use super::lookups;
use super::outbox::{self, NewOutboundMessage, OutboundKind, OutboxState};
use super::outbox_events::{ChangedMessage, record_changed_messages};
use crate::conversation::notifications::arr_events::NotificationTopic;
use crate::conversation::notifications::quiet_hours::{NotificationPreference, QuietHours};
use crate::conversation::transcript::{OutboxId, UserId};
use crate::store::codec::{convert_integer, ms, unreadable_column};
use crate::store::database::literal_sql::literal_sql;
use crate::store::library::follows;
use crate::store::library::space_answers::QUESTION_KEY;
use crate::store::schema::{notices, outbox as messages, users};
use crate::store::{Conn, digests};

/// Key prefixes of messages that respect quiet hours: notifications of titles, problems and next seasons, outcomes of
/// deferred additions and of requests in Seerr, votes in private chats, digests, and questions and outcomes of proposals
/// to make room.
const QUIET_KEYS: [&str; 11] = [
    "ready:",
    "delay:",
    "trouble:",
    "next_season:",
    "request:",
    "seerr:",
    "vote:",
    "room_question:",
    "room_review:",
    "room_outcome:",
    "digest:",
];

literal_sql! {
    /// Condition of the messages that mention what their user has watched and are not erased, matched by a partial index.
    pub(in crate::store) const ABOUT_VIEWING =
        "((outbox.dedupe_key >= 'next_season:' AND outbox.dedupe_key < 'next_season;') \
         OR (outbox.dedupe_key >= 'room_question:' AND outbox.dedupe_key < 'room_question;')) AND outbox.body <> ''";
}

/// Returns whether the message with this key, which no turn wrote, mentions what its user has watched. Its text is hidden
/// from everybody else, and erased after a day.
pub(in crate::store) fn is_about_viewing(key: &str) -> bool {
    let prefixes = [topic_key(NotificationTopic::NextSeason), QUESTION_KEY];
    prefixes.into_iter().any(|prefix| key.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(':')))
}

/// Notification preference of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationSetting {
    Off,
    /// The user wants notifications. The field contains the user's own quiet hours, if set.
    On(Option<QuietHours>),
}

pub fn load_notification_setting(conn: &mut Conn, user: UserId) -> QueryResult<NotificationSetting> {
    Ok(if users::table.find(user).select(users::notify).first(conn)? {
        NotificationSetting::On(load_quiet_hours(conn, user)?)
    } else {
        NotificationSetting::Off
    })
}

/// Loads the quiet hours that a user has set, even if notifications are off: promised messages respect quiet hours too.
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

/// Stores the preference of a user. If the user turns notifications off, waiting notifications are suppressed.
pub fn store_notification_preference(
    conn: &mut Conn,
    user: UserId,
    preference: NotificationPreference,
    now: Timestamp,
) -> QueryResult<()> {
    let user_row = users::table.find(user);
    let quiet_hours_columns = |quiet: QuietHours| {
        let (from, to) = (Some(i64::from(quiet.start_hour())), Some(i64::from(quiet.end_hour())));
        (users::quiet_from.eq(from), users::quiet_to.eq(to), users::updated_at.eq(ms(now)))
    };
    match preference {
        NotificationPreference::On => diesel::update(user_row)
            .set((users::notify.eq(true), users::updated_at.eq(ms(now))))
            .execute(conn)?,
        NotificationPreference::Off => {
            suppress_topic_notifications(conn, user, now)?;
            digests::withdraw_waiting_digests(conn, user, now)?;
            follows::mute_follows(conn, user)?;
            diesel::update(user_row)
                .set((users::notify.eq(false), users::updated_at.eq(ms(now))))
                .execute(conn)?
        }
        NotificationPreference::Quiet(quiet) => {
            diesel::update(user_row).set(quiet_hours_columns(quiet)).execute(conn)?
        }
        NotificationPreference::NeverQuiet => {
            diesel::update(user_row).set(quiet_hours_columns(QuietHours::NEVER)).execute(conn)?
        }
    };
    Ok(())
}

/// Outcome of recording a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOutcome {
    /// The notification has this id.
    New(i64),
    /// The user was already notified of the matter.
    Known,
}

/// Records that a user is notified of a matter. Notifications from before `since` do not count.
pub fn record_notification(
    conn: &mut Conn,
    user: UserId,
    matter: &str,
    since: Timestamp,
    now: Timestamp,
) -> QueryResult<RecordOutcome> {
    let earlier: Option<(i64, Timestamp)> = notices::table
        .filter(notices::user_id.eq(user).and(notices::matter.eq(matter)))
        .select((notices::id, notices::created_at))
        .first(conn)
        .optional()?;
    match earlier {
        Some((_, notified_at)) if notified_at >= since => return Ok(RecordOutcome::Known),
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

/// Returns whether a user was notified of a matter since `since`.
pub fn was_notified(conn: &mut Conn, user: UserId, matter: &str, since: Timestamp) -> QueryResult<bool> {
    let notified_at: Option<Timestamp> = notices::table
        .filter(notices::user_id.eq(user).and(notices::matter.eq(matter)))
        .select(notices::created_at)
        .first(conn)
        .optional()?;
    Ok(notified_at.is_some_and(|notified_at| notified_at >= since))
}

/// Returns the time at which a user was last notified of a matter with this prefix.
pub fn load_last_notified(conn: &mut Conn, user: UserId, prefix: &str) -> QueryResult<Option<Timestamp>> {
    // Every prefix ends with a colon, and the semicolon is the next character after it.
    let end = format!("{};", prefix.trim_end_matches(':'));
    notices::table
        .filter(notices::user_id.eq(user).and(notices::matter.ge(prefix)).and(notices::matter.lt(end)))
        .select(diesel::dsl::max(notices::created_at))
        .first(conn)
}

/// Loads the times of a user's notifications since `since`, one for each message except `excluded`.
pub fn load_notification_times(
    conn: &mut Conn,
    user: UserId,
    since: Timestamp,
    excluded: Option<OutboxId>,
) -> QueryResult<Vec<Timestamp>> {
    let rows: Vec<(Option<OutboxId>, Timestamp)> = notices::table
        .filter(notices::user_id.eq(user).and(notices::created_at.gt(ms(since))))
        .order(notices::id)
        .select((notices::outbox_id, notices::created_at))
        .load(conn)?;
    let mut counted_messages = Vec::new();
    let mut times = Vec::new();
    for (message, notified_at) in rows {
        if let Some(message) = message
            && excluded != Some(message)
            && !counted_messages.contains(&message)
        {
            counted_messages.push(message);
            times.push(notified_at);
        }
    }
    Ok(times)
}

/// Waiting message that several notifications may share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingNotification {
    pub id: OutboxId,
    /// Phrases of the notifications in the message.
    pub phrases: Vec<String>,
}

/// Loads the user's message of a topic that waits for its send time.
pub fn find_waiting_notification(
    conn: &mut Conn,
    user: UserId,
    topic: NotificationTopic,
    now: Timestamp,
) -> QueryResult<Option<WaitingNotification>> {
    let waiting: Option<(OutboxId, Timestamp)> = messages::table
        .filter(outbox::OPEN.and(messages::user_id.eq(user)).and(messages::kind.eq(OutboundKind::Notice)))
        .filter(
            messages::state
                .eq(OutboxState::Queued)
                .and(messages::attempts.eq(0))
                .and(messages::not_before.gt(ms(now))),
        )
        .filter(lookups::NOT_LOOKED_UP)
        .filter(messages::dedupe_key.ge(format!("{}:", topic_key(topic))))
        .filter(messages::dedupe_key.lt(format!("{};", topic_key(topic))))
        .select((messages::id, messages::created_at))
        .first(conn)
        .optional()?;
    let Some((id, created_at)) = waiting else { return Ok(None) };
    let phrases: Vec<Option<String>> = notices::table
        .filter(notices::user_id.eq(user).and(notices::created_at.ge(ms(created_at))))
        .filter(notices::outbox_id.eq(id))
        .order(notices::id)
        .select(notices::words)
        .load(conn)?;
    let phrases: Vec<String> = phrases.into_iter().flatten().collect();
    // A message whose text was erased cannot be extended.
    Ok((!phrases.is_empty()).then_some(WaitingNotification { id, phrases }))
}

/// Returns the unique key of a message: its topic and the id of its first notification.
pub fn notification_key(topic: NotificationTopic, notice: i64) -> String {
    format!("{}:{notice}", topic_key(topic))
}

fn topic_key(topic: NotificationTopic) -> &'static str {
    match topic {
        NotificationTopic::Ready => "ready",
        NotificationTopic::Delay => "delay",
        NotificationTopic::Problem => "trouble",
        NotificationTopic::NextSeason => "next_season",
    }
}

/// Queues a message for these notifications, to be sent at `send_at`.
pub fn queue_notification(
    conn: &mut Conn,
    message: &NewOutboundMessage,
    send_at: Timestamp,
    (ids, phrase): (&[i64], &str),
    now: Timestamp,
) -> QueryResult<()> {
    let id = outbox::queue_message_at(conn, message, send_at, now)?;
    link_notifications(conn, id, ids, phrase)
}

/// Adds a phrase to a waiting message, and replaces the text of the message.
pub fn append_phrase(
    conn: &mut Conn,
    message: OutboxId,
    (body, segments): (&str, u32),
    (ids, phrase): (&[i64], &str),
    now: Timestamp,
) -> QueryResult<()> {
    let changed = diesel::update(messages::table.find(message))
        .set((
            messages::body.eq(body),
            messages::segments.eq(i64::from(segments)),
            messages::updated_at.eq(ms(now)),
        ))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)?;
    link_notifications(conn, message, ids, phrase)
}

fn link_notifications(conn: &mut Conn, message: OutboxId, ids: &[i64], phrase: &str) -> QueryResult<()> {
    for (index, id) in ids.iter().enumerate() {
        // Only the first notification stores the phrase, which covers all of them.
        let phrase = (index == 0).then_some(phrase);
        diesel::update(notices::table.find(id))
            .set((notices::outbox_id.eq(message), notices::words.eq(phrase)))
            .execute(conn)?;
    }
    Ok(())
}

/// Suppresses every unsent notification of a user, except those about approvals, which are still open. A suppressed
/// notification with an unknown delivery status is neither looked up nor sent again.
pub fn suppress_notifications(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    let is_about_approval = messages::dedupe_key.ge("approval:").and(messages::dedupe_key.lt("approval;"));
    let changed = diesel::update(
        messages::table
            .filter(outbox::OPEN.and(messages::user_id.eq(user)))
            .filter(messages::kind.eq(OutboundKind::Notice).and(diesel::dsl::not(is_about_approval))),
    )
    .set((messages::state.eq(OutboxState::Suppressed), messages::updated_at.eq(ms(now))))
    .returning(ChangedMessage::as_returning())
    .get_results(conn)?;
    record_changed_messages(conn, changed, now)
}

/// Suppresses a user's waiting notifications of all topics.
pub fn suppress_topic_notifications(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    let is_of_topic = |topic| {
        let (start, end) = (format!("{}:", topic_key(topic)), format!("{};", topic_key(topic)));
        messages::dedupe_key.ge(start).and(messages::dedupe_key.lt(end))
    };
    let is_of_any_topic = is_of_topic(NotificationTopic::Ready)
        .or(is_of_topic(NotificationTopic::Delay))
        .or(is_of_topic(NotificationTopic::Problem))
        .or(is_of_topic(NotificationTopic::NextSeason));
    let is_waiting =
        outbox::OPEN.and(messages::user_id.eq(user)).and(messages::state.eq(OutboxState::Queued));
    let changed = diesel::update(messages::table.filter(is_waiting).filter(is_of_any_topic))
        .set((messages::state.eq(OutboxState::Suppressed), messages::updated_at.eq(ms(now))))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)
}

/// Maximum pause before a rejected message is retried.
const MAX_RETRY_PAUSE: SignedDuration = SignedDuration::from_mins(10);

/// Loads the notifications that wait for the end of the quiet hours or for the hourly limit, with their users.
pub fn load_waiting_notifications(
    conn: &mut Conn,
    user: Option<UserId>,
    now: Timestamp,
) -> QueryResult<Vec<(OutboxId, UserId)>> {
    let mut waiting = messages::table
        .filter(
            outbox::OPEN
                .and(messages::kind.eq(OutboundKind::Notice))
                .and(messages::state.eq(OutboxState::Queued)),
        )
        .filter(messages::not_before.gt(ms(Timestamp::UNIX_EPOCH)).and(lookups::NOT_LOOKED_UP))
        .filter(messages::attempts.eq(0).or(messages::not_before.gt(ms(now + MAX_RETRY_PAUSE))))
        .select((messages::id, messages::user_id, messages::dedupe_key))
        .into_boxed();
    if let Some(user) = user {
        waiting = waiting.filter(messages::user_id.eq(user));
    }
    let mut rows: Vec<(OutboxId, UserId, String)> = waiting.load(conn)?;
    // Sorted here, because with an ORDER BY SQLite would read all messages instead of only the open ones.
    rows.sort_unstable();
    // Other messages have no quiet hours: their time is the time of a retry.
    rows.retain(|(.., key)| respects_quiet_hours(key));
    Ok(rows.into_iter().map(|(id, user, _)| (id, user)).collect())
}

/// Postpones a notification until `send_at`. The maximum age of the notification is counted from that time.
pub fn postpone_notification(
    conn: &mut Conn,
    id: OutboxId,
    send_at: Timestamp,
    now: Timestamp,
) -> QueryResult<()> {
    diesel::update(messages::table.find(id).filter(messages::state.eq(OutboxState::Queued)))
        .set((
            messages::not_before.eq(ms(if send_at > now { send_at } else { Timestamp::UNIX_EPOCH })),
            messages::deadline_at.eq(ms(send_at.max(now) + outbox::MAX_SEND_AGE)),
            messages::updated_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

fn respects_quiet_hours(key: &str) -> bool {
    QUIET_KEYS.iter().any(|prefix| key.starts_with(prefix))
}

/// Returns the end of the quiet hours if a message with this key must not be sent now.
pub(in crate::store) fn quiet_hours_end(
    conn: &mut Conn,
    user: UserId,
    key: &str,
    policy: &AcceptancePolicy,
    now: Timestamp,
) -> QueryResult<Option<Timestamp>> {
    if !respects_quiet_hours(key) {
        return Ok(None);
    }
    let hours = load_quiet_hours(conn, user)?.or(policy.quiet);
    Ok(hours.and_then(|hours| hours.next_end(now, &policy.zone)))
}

/// Deletes the notifications from before `before`.
pub fn delete_old_notifications(conn: &mut Conn, before: Timestamp) -> QueryResult<usize> {
    // One query per user, because the index starts with the user.
    let users: Vec<UserId> = users::table.select(users::id).load(conn)?;
    let mut deleted_count = 0;
    for user in users {
        let is_old = notices::user_id.eq(user).and(notices::created_at.lt(ms(before)));
        deleted_count += diesel::delete(notices::table.filter(is_old)).execute(conn)?;
    }
    Ok(deleted_count)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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

    fn create_ann(conn: &mut Conn) -> UserId {
        ensure_user(conn, PhoneNumber::parse("+15550100001").unwrap(), FirstContactRole::Member, NOW).unwrap()
    }

    fn new_message(user: UserId, notice: i64, body: &str) -> NewOutboundMessage {
        NewOutboundMessage {
            key: notification_key(NotificationTopic::Ready, notice),
            user,
            address: None,
            turn: None,
            kind: OutboundKind::Notice,
            to: Address::new("+15550100001"),
            from: Address::new("+15550100000"),
            body: body.into(),
            segments: 1,
            media: None,
            reacts_to: None,
            quotes: None,
            room: None,
            vote: None,
        }
    }

    fn record_new(conn: &mut Conn, user: UserId, matter: &str, at: Timestamp) -> i64 {
        match record_notification(conn, user, matter, NOW, at).unwrap() {
            RecordOutcome::New(id) => id,
            RecordOutcome::Known => panic!("{matter} was recorded before"),
        }
    }

    #[test]
    fn matter_is_recorded_once_since_the_given_time() {
        let mut conn = scratch();
        let ann = create_ann(&mut conn);
        record_new(&mut conn, ann, "movie:radarr:7", minute(5));
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
        let ann = create_ann(&mut conn);
        for (matter, at) in
            [("episode:sonarr:7:1:1", 1), ("episode:sonarr:7:1:2", 3), ("episode:sonarr:70:1:1", 5)]
        {
            record_new(&mut conn, ann, matter, minute(at));
        }
        assert_eq!(load_last_notified(&mut conn, ann, "episode:sonarr:7:"), Ok(Some(minute(3))));
        assert_eq!(load_last_notified(&mut conn, ann, "episode:sonarr:8:"), Ok(None));
    }

    #[test]
    fn waiting_notification_is_extended_and_counts_once() {
        let mut conn = scratch();
        let ann = create_ann(&mut conn);
        let first = record_new(&mut conn, ann, "movie:radarr:7", minute(1));
        queue_notification(
            &mut conn,
            &new_message(ann, first, "Dune is ready."),
            minute(60),
            (&[first], "Dune"),
            minute(1),
        )
        .unwrap();
        let waiting =
            find_waiting_notification(&mut conn, ann, NotificationTopic::Ready, minute(2)).unwrap().unwrap();
        assert_eq!(waiting.phrases, ["Dune"]);
        let added = [
            record_new(&mut conn, ann, "movie:radarr:8", minute(2)),
            record_new(&mut conn, ann, "x", minute(2)),
        ];
        append_phrase(&mut conn, waiting.id, ("Both are ready.", 1), (&added, "Heat"), minute(2)).unwrap();
        let extended =
            find_waiting_notification(&mut conn, ann, NotificationTopic::Ready, minute(3)).unwrap().unwrap();
        assert_eq!(extended.phrases, ["Dune", "Heat"]);
        assert_eq!(load_notification_times(&mut conn, ann, NOW, None), Ok(vec![minute(1)]));
        assert_eq!(load_notification_times(&mut conn, ann, NOW, Some(extended.id)), Ok(vec![]));
        assert_eq!(
            find_waiting_notification(&mut conn, ann, NotificationTopic::Problem, minute(3)),
            Ok(None)
        );
        assert_eq!(
            find_waiting_notification(&mut conn, ann, NotificationTopic::Ready, minute(60)),
            Ok(None),
            "the message is due"
        );
    }

    #[test]
    fn notification_preference_applies_to_waiting_messages() {
        let mut conn = scratch();
        let ann = create_ann(&mut conn);
        assert_eq!(load_notification_setting(&mut conn, ann), Ok(NotificationSetting::On(None)));
        let night = QuietHours::new(22, 7).unwrap();
        store_notification_preference(&mut conn, ann, NotificationPreference::Quiet(night), NOW).unwrap();
        assert_eq!(load_notification_setting(&mut conn, ann), Ok(NotificationSetting::On(Some(night))));
        store_notification_preference(&mut conn, ann, NotificationPreference::NeverQuiet, NOW).unwrap();
        assert_eq!(
            load_notification_setting(&mut conn, ann),
            Ok(NotificationSetting::On(Some(QuietHours::NEVER)))
        );

        let notice = record_new(&mut conn, ann, "movie:radarr:7", minute(1));
        queue_notification(
            &mut conn,
            &new_message(ann, notice, "Dune is ready."),
            minute(60),
            (&[notice], "Dune"),
            minute(1),
        )
        .unwrap();
        store_notification_preference(&mut conn, ann, NotificationPreference::Off, minute(2)).unwrap();
        assert_eq!(load_notification_setting(&mut conn, ann), Ok(NotificationSetting::Off));
        let schedule = outbox_schedule::load_outbox_schedule(&mut conn, &[], minute(90)).unwrap();
        assert_eq!(schedule, outbox_schedule::OutboxSchedule::default());
    }

    #[test]
    fn approval_code_never_waits_for_the_end_of_quiet_hours() {
        let mut conn = scratch();
        let ann = create_ann(&mut conn);
        for key in ["approval:1:user:1", "ready:1", "request:1"] {
            let message = NewOutboundMessage { key: key.into(), ..new_message(ann, 1, "Dune") };
            outbox::queue_message_at(&mut conn, &message, minute(60), minute(1)).unwrap();
        }
        let waiting = load_waiting_notifications(&mut conn, None, minute(2)).unwrap();
        assert_eq!(waiting, [(OutboxId(2), ann), (OutboxId(3), ann)]);
    }

    #[test]
    fn erased_notification_of_unknown_delivery_is_not_resent() {
        let mut conn = scratch();
        let ann = create_ann(&mut conn);
        let id = outbox::queue_message(&mut conn, &new_message(ann, 1, "Dune is ready."), NOW).unwrap();
        let policy = AcceptancePolicy {
            confirm_for: SignedDuration::ZERO,
            zone: jiff::tz::TimeZone::UTC,
            quiet: None,
        };
        outbox::claim_message(&mut conn, id, &policy, NOW).unwrap();
        outbox::mark_message_unknown(&mut conn, id, "no answer", NOW).unwrap();
        suppress_notifications(&mut conn, ann, minute(1)).unwrap();
        let count = lookups::LookupCount { earlier: 0, required: 1, pause: Duration::ZERO };
        assert_eq!(
            lookups::record_unsuccessful_lookup(&mut conn, id, count, minute(2)),
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
        let ann = create_ann(&mut conn);
        record_new(&mut conn, ann, "movie:radarr:7", minute(1));
        assert_eq!(
            (delete_old_notifications(&mut conn, minute(1)), delete_old_notifications(&mut conn, minute(2))),
            (Ok(0), Ok(1))
        );
    }
}
