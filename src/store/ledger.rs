//! The ledger of received messages. Admission is the promise to answer: after it the message is our responsibility.

use diesel::dsl::min;
use diesel::prelude::*;
use jiff::Timestamp;

use super::Conn;
use super::codec::{
    authority, authority_word, channel, channel_word, media, media_json, ms, time, unreadable, via, via_word,
};
use super::kept::Keep;
use super::schema::{inbound_events, turns, users as people};
use super::users::{self, Newcomer};
use super::written::Written;
use crate::conversation::inbound_message::{InboundEvent, Received};
use crate::conversation::origin::{BUTTON, Origin};
use crate::conversation::transcript::{Address, ChannelKind, EventId, OptWord, TurnId, UserId};
use crate::conversation::triage::Wants;
use crate::conversation::verification::{FieldAuthority, TextFields, VerificationOutcome};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    New {
        user: UserId,
        event: EventId,
    },
    /// A message known by its channel and external id: nothing was changed.
    Duplicate,
    /// Written in the console in the name of a user who is not known any more.
    Nobody,
}

/// Delay for which a user's message waits for the next one before work starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    pub quiet_ms: i64,
    pub at_most_ms: i64,
}

pub fn admit(conn: &mut Conn, received: &Received, pace: Pace) -> QueryResult<Admission> {
    let at = ms(received.received_at);
    let admission = insert(conn, received, Wants::AnAnswer, at + pace.quiet_ms)?;
    if let Admission::New { user, .. } = admission {
        wait_for_each_other(conn, user, received, pace)?;
    }
    Ok(admission)
}

/// Admits a message that is only to be remembered. It waits for no other message, and no other waits for it.
pub fn admit_unanswered(conn: &mut Conn, received: &Received) -> QueryResult<Admission> {
    insert(conn, received, Wants::NoAnswer, ms(received.received_at))
}

fn insert(conn: &mut Conn, received: &Received, wants: Wants, not_before: i64) -> QueryResult<Admission> {
    let user = match received.channel {
        // Newcomers arrive through the channels that users have. A console message is in the name of a user who was
        // known when it was written and may have been forgotten since: then no user has the number, and none is
        // created.
        ChannelKind::Console => users::by_phone(conn, &received.from)?.map(|user| user.id),
        ChannelKind::Twilio | ChannelKind::Local => {
            Some(users::ensure(conn, &received.from, Newcomer::Stranger, received.received_at)?)
        }
    };
    let Some(user) = user else { return Ok(Admission::Nobody) };
    let at = ms(received.received_at);
    let event: Option<i64> = diesel::insert_into(inbound_events::table)
        .values((
            inbound_events::channel.eq(channel_word(received.channel)),
            inbound_events::external_id.eq(&received.external_id),
            inbound_events::user_id.eq(user.0),
            inbound_events::to_addr.eq(received.to.as_str()),
            inbound_events::body.eq(&received.body),
            inbound_events::media.eq(media_json(&received.media)?),
            inbound_events::provider_at.eq(ms(received.provider_at)),
            inbound_events::received_at.eq(at),
            inbound_events::via.eq(via_word(received.via)),
            inbound_events::authority.eq(authority_word(received.authority)),
            inbound_events::carrier_word.eq(carrier_word(received.carrier_word)),
            inbound_events::state.eq("pending"),
            inbound_events::not_before.eq(not_before),
            inbound_events::wants_answer.eq(i64::from(wants == Wants::AnAnswer)),
            inbound_events::updated_at.eq(at),
        ))
        .on_conflict_do_nothing()
        .returning(inbound_events::id)
        .get_result(conn)
        .optional()?;
    Ok(event.map_or(Admission::Duplicate, |event| Admission::New { user, event: EventId(event) }))
}

/// Returns the messages of `received` that were never admitted, in their order.
pub fn unknown(conn: &mut Conn, received: Vec<Received>) -> QueryResult<Vec<Received>> {
    let mut unknown = Vec::new();
    // One by one, each by the unique index: a statement with a list in it is prepared again at each use.
    for text in received {
        let same = inbound_events::channel
            .eq(channel_word(text.channel))
            .and(inbound_events::external_id.eq(&text.external_id));
        let known: Option<i64> =
            inbound_events::table.filter(same).select(inbound_events::id).first(conn).optional()?;
        if known.is_none() {
            unknown.push(text);
        }
    }
    Ok(unknown)
}

/// Condition of messages that were admitted and that no turn has processed.
pub(super) const PENDING: Written = Written("inbound_events.state = 'pending'");

/// Sets the start of messages that came the same way, which begin together: each further one postpones all, up to a
/// limit from the first.
fn wait_for_each_other(conn: &mut Conn, user: UserId, received: &Received, pace: Pace) -> QueryResult<()> {
    let at = ms(received.received_at);
    let waiting = inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(PENDING))
        .filter(inbound_events::to_addr.eq(received.to.as_str()).and(inbound_events::wants_answer.eq(1)));
    let times: Vec<i64> = waiting.select(inbound_events::received_at).limit(2).load(conn)?;
    if times.len() < 2 {
        // No other message waits, and this one has its time already.
        return Ok(());
    }
    let first: Option<i64> = waiting.select(min(inbound_events::received_at)).first(conn)?;
    let begin = (at + pace.quiet_ms).min(first.unwrap_or(at) + pace.at_most_ms);
    diesel::update(waiting).set(inbound_events::not_before.eq(begin)).kept().execute(conn).map(drop)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = inbound_events)]
struct Row {
    id: i64,
    channel: String,
    external_id: String,
    to_addr: String,
    body: String,
    media: Option<String>,
    via: String,
    authority: String,
    carrier_word: Option<String>,
    provider_at: i64,
    received_at: i64,
    wants_answer: i64,
}

/// Keyword that the carrier sends; it sends only these three.
fn carrier_word(word: Option<OptWord>) -> Option<&'static str> {
    match word? {
        OptWord::Out => Some("stop"),
        OptWord::In => Some("start"),
        OptWord::Help => Some("help"),
        OptWord::Yes => None,
    }
}

impl Row {
    fn read_all(rows: Vec<Self>) -> QueryResult<Vec<InboundEvent>> {
        rows.into_iter().map(Self::read).collect()
    }

    fn read(self) -> QueryResult<InboundEvent> {
        let channel = channel(&self.channel)?;
        Ok(InboundEvent {
            id: EventId(self.id),
            channel,
            origin: Origin::of(channel, &self.external_id),
            to: Address::new(self.to_addr),
            body: self.body,
            media: media(self.media.as_deref())?,
            via: via(&self.via)?,
            authority: authority(&self.authority)?,
            carrier_word: match self.carrier_word.as_deref() {
                None => None,
                Some("stop") => Some(OptWord::Out),
                Some("start") => Some(OptWord::In),
                Some("help") => Some(OptWord::Help),
                Some(_) => return Err(unreadable("carrier word")),
            },
            sent_at: time(self.provider_at)?,
            received_at: time(self.received_at)?,
            wants: if self.wants_answer == 0 { Wants::NoAnswer } else { Wants::AnAnswer },
        })
    }
}

/// Loads a user's messages that no turn has processed, in the order they were sent; at most `limit`.
pub fn waiting(conn: &mut Conn, user: UserId, limit: i64) -> QueryResult<Vec<InboundEvent>> {
    let rows = inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(PENDING))
        .order((inbound_events::provider_at, inbound_events::id))
        .limit(limit)
        .select(Row::as_select())
        .load(conn)?;
    Row::read_all(rows)
}

/// Loads the messages of the user's next work, in the order they were sent; at most `limit`. Each address of ours is
/// answered separately, so all of them came to the same one, at which a message has waited long enough. A message that
/// wants no answer is alone.
pub fn due(conn: &mut Conn, user: UserId, limit: i64, now: Timestamp) -> QueryResult<Vec<InboundEvent>> {
    let next: Option<Row> = inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(PENDING))
        .filter(inbound_events::not_before.le(ms(now)))
        .order((inbound_events::provider_at, inbound_events::id))
        .select(Row::as_select())
        .first(conn)
        .optional()?;
    let Some(next) = next.map(Row::read).transpose()? else { return Ok(Vec::new()) };
    if next.wants == Wants::NoAnswer {
        return Ok(vec![next]);
    }
    let rows = inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(PENDING))
        .filter(inbound_events::to_addr.eq(next.to.as_str()).and(inbound_events::wants_answer.eq(1)))
        .order((inbound_events::provider_at, inbound_events::id))
        .limit(limit)
        .select(Row::as_select())
        .load(conn)?;
    let mut texts = Vec::new();
    for row in rows {
        match row.read() {
            Ok(text) => texts.push(text),
            Err(error) if texts.is_empty() => return Err(error),
            // Messages before one that cannot be read do not fail with it.
            Err(_) => break,
        }
    }
    Ok(texts)
}

/// Returns the time at which the first of the user's waiting messages may begin.
pub fn due_at(conn: &mut Conn, user: UserId) -> QueryResult<Option<Timestamp>> {
    let due: Option<i64> = inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(PENDING))
        .select(min(inbound_events::not_before))
        .first(conn)?;
    due.map(time).transpose()
}

/// Loads every user with a waiting message or an unfinished turn.
pub fn users_with_work(conn: &mut Conn) -> QueryResult<Vec<UserId>> {
    let waiting: Vec<i64> =
        inbound_events::table.filter(PENDING).select(inbound_events::user_id).distinct().load(conn)?;
    let running: Vec<i64> =
        turns::table.filter(turns::finished_at.is_null()).select(turns::user_id).distinct().load(conn)?;
    let mut users: Vec<UserId> = waiting.into_iter().chain(running).map(UserId).collect();
    users.sort_unstable();
    users.dedup();
    Ok(users)
}

/// Loads the fields that an ambiguous message claims, with the id by which the carrier knows it.
pub fn claimed_fields(conn: &mut Conn, event: EventId) -> QueryResult<Option<(String, TextFields)>> {
    let row: Option<(Row, String)> = inbound_events::table
        .find(event.0)
        .filter(inbound_events::authority.eq(authority_word(FieldAuthority::Ambiguous)))
        .inner_join(people::table)
        .select((Row::as_select(), people::phone))
        .first(conn)
        .optional()?;
    let Some((row, phone)) = row else { return Ok(None) };
    let fields = TextFields {
        from: Address::new(phone),
        to: Address::new(row.to_addr),
        body: row.body,
        media_count: media(row.media.as_deref())?.len(),
    };
    Ok(Some((row.external_id, fields)))
}

/// Records the result of the carrier's record for an ambiguous message.
pub fn settle_authority(
    conn: &mut Conn,
    event: EventId,
    outcome: VerificationOutcome,
    now: Timestamp,
) -> QueryResult<()> {
    let ambiguous = inbound_events::authority.eq(authority_word(FieldAuthority::Ambiguous));
    diesel::update(inbound_events::table.find(event.0).filter(ambiguous))
        .set((
            inbound_events::authority.eq(authority_word(outcome.authority())),
            inbound_events::updated_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

/// Returns whether the outcome of a message is final.
pub fn is_over(conn: &mut Conn, event: EventId) -> QueryResult<bool> {
    let outcome: Option<String> =
        inbound_events::table.find(event.0).select(inbound_events::outcome).first(conn)?;
    Ok(outcome.is_some())
}

/// Assigns messages to a turn; they share its end.
pub fn take(conn: &mut Conn, events: &[EventId], turn: TurnId, now: Timestamp) -> QueryResult<()> {
    // One by one: a statement with a list in it is prepared again at each use.
    events.iter().try_for_each(|event| {
        diesel::update(inbound_events::table.find(event.0))
            .set((
                inbound_events::state.eq("processing"),
                inbound_events::turn_id.eq(turn.0),
                inbound_events::updated_at.eq(ms(now)),
            ))
            .kept()
            .execute(conn)
            .map(drop)
    })
}

/// A message whose work failed to begin, with the fields needed to handle that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedText {
    pub event: EventId,
    /// The address of ours that the message was sent to.
    pub to: Address,
    /// Number of failed starts of its work.
    pub failures: i64,
}

/// Counts a failed start of work on the user's next message, also if that message cannot be read.
pub fn count_failure(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<Option<FailedText>> {
    let next: Option<(i64, String)> = inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(PENDING))
        .filter(inbound_events::not_before.le(ms(now)))
        .order((inbound_events::provider_at, inbound_events::id))
        .select((inbound_events::id, inbound_events::to_addr))
        .first(conn)
        .optional()?;
    let Some((event, to)) = next else { return Ok(None) };
    let failures: i64 = diesel::update(inbound_events::table.find(event))
        .set((
            inbound_events::attempts.eq(inbound_events::attempts + 1),
            inbound_events::updated_at.eq(ms(now)),
        ))
        .returning(inbound_events::attempts)
        .kept()
        .get_result(conn)?;
    Ok(Some(FailedText { event: EventId(event), to: Address::new(to), failures }))
}

/// Loads the user's messages that were processed before `event`, came the same way and counted towards a limit, with
/// the time they were sent, newest first; at most `most` of each of the two allowances. Messages that still wait are
/// not among them: one that was recovered later than others is worked on before them. Input from a button is the
/// operator's, and uses up no allowance of theirs.
pub fn counted_before(
    conn: &mut Conn,
    user: UserId,
    event: &InboundEvent,
    most: u32,
) -> QueryResult<Vec<(Timestamp, String)>> {
    inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(inbound_events::state.ne("pending")))
        .filter(inbound_events::to_addr.eq(event.to.as_str()))
        .filter(inbound_events::external_id.not_like(format!("{BUTTON}%")))
        .filter(inbound_events::over_limit.eq(0).and(inbound_events::wants_answer.eq(1)))
        .order(inbound_events::id.desc())
        .limit(2 * i64::from(most))
        .select((inbound_events::provider_at, inbound_events::body))
        .load::<(i64, String)>(conn)?
        .into_iter()
        .map(|(at, body)| Ok((time(at)?, body)))
        .collect()
}

/// Marks a message as exceeding the limit.
pub fn mark_over_limit(conn: &mut Conn, event: EventId) -> QueryResult<()> {
    diesel::update(inbound_events::table.find(event.0))
        .set(inbound_events::over_limit.eq(1))
        .kept()
        .execute(conn)
        .map(drop)
}

/// Returns whether the user was notified since `since`, from the address that `event` came to, that messages come too
/// fast.
pub fn told_of_limit(
    conn: &mut Conn,
    user: UserId,
    event: &InboundEvent,
    since: Timestamp,
) -> QueryResult<bool> {
    let told: Option<i64> = inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(inbound_events::provider_at.gt(ms(since))))
        .filter(inbound_events::to_addr.eq(event.to.as_str()))
        .filter(inbound_events::over_limit.eq(1).and(inbound_events::outcome.eq("replied")))
        .order(inbound_events::id.desc())
        .select(inbound_events::id)
        .first(conn)
        .optional()?;
    Ok(told.is_some())
}

/// Outcome of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Replied,
    /// A reaction is the whole answer, and nothing is sent.
    Reacted,
    /// No answer was needed.
    Remembered,
    /// The message could not be processed, and the user was notified of that.
    FailedNotified,
    Skipped(&'static str),
}

#[derive(AsChangeset)]
#[diesel(table_name = inbound_events)]
struct Ending {
    state: &'static str,
    outcome: &'static str,
    outcome_reason: Option<&'static str>,
    updated_at: i64,
}

impl Ending {
    fn of(outcome: Outcome, now: Timestamp) -> Self {
        let (state, outcome, outcome_reason) = match outcome {
            Outcome::Replied => ("completed", "replied", None),
            Outcome::Reacted => ("completed", "skipped", Some("reacted")),
            Outcome::Remembered => ("completed", "skipped", Some("remembered")),
            Outcome::FailedNotified => ("failed", "failed_notified", None),
            Outcome::Skipped(reason) => ("completed", "skipped", Some(reason)),
        };
        Self { state, outcome, outcome_reason, updated_at: ms(now) }
    }
}

/// Ends a message that no turn processed.
pub fn end(conn: &mut Conn, event: EventId, outcome: Outcome, now: Timestamp) -> QueryResult<()> {
    let ending = Ending::of(outcome, now);
    diesel::update(inbound_events::table.find(event.0)).set(ending).kept().execute(conn).map(drop)
}

/// Ends the messages of a turn.
pub fn end_of_turn(conn: &mut Conn, turn: TurnId, outcome: Outcome, now: Timestamp) -> QueryResult<()> {
    let (texts, ending) = (inbound_events::turn_id.eq(turn.0), Ending::of(outcome, now));
    diesel::update(inbound_events::table.filter(texts)).set(ending).kept().execute(conn).map(drop)
}

/// Loads the messages of a turn, in the order they were sent.
pub fn of_turn(conn: &mut Conn, turn: TurnId) -> QueryResult<Vec<InboundEvent>> {
    let rows = inbound_events::table
        .filter(inbound_events::turn_id.eq(turn.0))
        .order((inbound_events::provider_at, inbound_events::id))
        .select(Row::as_select())
        .load(conn)?;
    Row::read_all(rows)
}

/// Loads a user's last messages up to and with `last`, newest first; all of them if `last` is not given.
pub fn bodies_up_to(
    conn: &mut Conn,
    user: UserId,
    last: Option<EventId>,
    limit: i64,
) -> QueryResult<Vec<String>> {
    let last = last.map_or(i64::MAX, |event| event.0);
    inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(inbound_events::id.le(last)))
        .order(inbound_events::id.desc())
        .limit(limit)
        .select(inbound_events::body)
        .load(conn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::inbound_message::Via;
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::scratch;

    const PACE: Pace = Pace { quiet_ms: 1_200, at_most_ms: 4_000 };

    fn text(sid: &str, at: i64) -> Received {
        let at = Timestamp::from_millisecond(at).unwrap();
        Received {
            channel: ChannelKind::Twilio,
            external_id: sid.into(),
            from: PhoneNumber::parse("+15550100001").unwrap(),
            to: Address::new("+15550100000"),
            body: sid.into(),
            media: Vec::new(),
            via: Via::Webhook,
            authority: FieldAuthority::Certain,
            carrier_word: None,
            provider_at: at,
            received_at: at,
        }
    }

    #[test]
    fn a_text_of_the_console_makes_nobody_known() {
        let mut conn = scratch();
        let typed = Received { channel: ChannelKind::Console, ..text("api:1", 0) };
        assert_eq!(admit(&mut conn, &typed, PACE).unwrap(), Admission::Nobody);
        assert_eq!(users::known(&mut conn).unwrap(), []);
        let Admission::New { user, .. } = admit(&mut conn, &text("SM1", 0), PACE).unwrap() else { panic!() };
        assert!(
            matches!(admit(&mut conn, &typed, PACE).unwrap(), Admission::New { user: same, .. } if same == user)
        );
    }

    #[test]
    fn a_known_text_changes_nothing() {
        let mut conn = scratch();
        let Admission::New { user, .. } = admit(&mut conn, &text("SM1", 0), PACE).unwrap() else { panic!() };
        assert_eq!(admit(&mut conn, &text("SM1", 900), PACE).unwrap(), Admission::Duplicate);
        assert_eq!(due_at(&mut conn, user).unwrap(), Some(Timestamp::from_millisecond(1_200).unwrap()));
    }

    #[test]
    fn a_text_of_another_way_or_one_that_wants_no_answer_neither_hurries_what_waits_nor_joins_it() {
        let mut conn = scratch();
        let elsewhere = |sid, at| Received { to: Address::console(), ..text(sid, at) };
        let Admission::New { user, .. } = admit(&mut conn, &text("phone", 0), PACE).unwrap() else {
            panic!()
        };
        admit(&mut conn, &elsewhere("program", 500), Pace { quiet_ms: 0, ..PACE }).unwrap();
        admit_unanswered(&mut conn, &text("note", 600)).unwrap();
        admit(&mut conn, &text("phone, too", 700), PACE).unwrap();
        let mut taken = Vec::new();
        for at in [400, 800, 800, 800, 1_900, 2_000] {
            let now = Timestamp::from_millisecond(at).unwrap();
            let texts = due(&mut conn, user, 9, now).unwrap();
            for text in &texts {
                end(&mut conn, text.id, Outcome::Skipped("seen"), now).unwrap();
            }
            taken.push(texts.into_iter().map(|text| text.body).collect::<Vec<_>>().join(" + "));
        }
        assert_eq!(taken, ["", "program", "note", "", "phone + phone, too", ""]);
    }

    #[test]
    fn quick_texts_wait_for_each_other_but_not_for_ever() {
        let mut conn = scratch();
        for (sid, at, due) in [("a", 0, 1_200), ("b", 1_000, 2_200), ("c", 2_000, 3_200), ("d", 3_100, 4_000)]
        {
            let Admission::New { user, .. } = admit(&mut conn, &text(sid, at), PACE).unwrap() else {
                panic!()
            };
            assert_eq!(
                due_at(&mut conn, user).unwrap(),
                Some(Timestamp::from_millisecond(due).unwrap()),
                "{sid}"
            );
        }
    }
}
