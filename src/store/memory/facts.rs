//! Facts about users. A user has one fact for each kind and key: a newer fact replaces the older fact and inherits its
//! number. The text of the older one is erased when the fact is next forgotten, or at the end of its retention period.

use std::collections::BTreeSet;

use diesel::dsl::count_star;
use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::people::facts::{FactKind, MAX_FACTS_PER_USER, StoredFact, UserFact, UserFacts};
use crate::conversation::transcript::{EventId, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms};
use crate::store::column_types::stored_enum;
use crate::store::database::literal_sql::LiteralSql;
use crate::store::schema::user_facts;

/// Highest number of a fact; numbering then restarts from 1.
const NUMBERS: u32 = 99;
/// Maximum number of open suggestions for one user; a newer one replaces the oldest.
const MOST_SUGGESTED: usize = 5;

const ACTIVE: LiteralSql = LiteralSql("user_facts.state = 'active'");
const SUGGESTED: LiteralSql = LiteralSql("user_facts.state = 'suggested'");
/// Facts that have ended and still have their text.
const ENDED: LiteralSql = LiteralSql("user_facts.ended_at IS NOT NULL AND user_facts.value <> ''");

stored_enum! {
    /// State of a fact.
    pub enum FactState {
        Active = "active",
        /// A newer fact of the same kind and key has replaced the fact.
        Superseded = "superseded",
        /// The text of the fact is erased.
        Forgotten = "forgotten",
        Suggested = "suggested",
        Dismissed = "dismissed",
    }
}

stored_enum! {
    /// Stored part of a [`FactSource`].
    pub enum StoredFactSource {
        Stated = "said",
        Operator = "operator",
        Inferred = "noticed",
    }
}

/// Source of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactSource {
    /// The user stated the fact, in this message.
    Stated(Option<EventId>),
    Operator,
    /// The fact was suggested from the user's messages, and the operator accepted it.
    Inferred,
}

/// Outcome of recording a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactOutcome {
    /// The fact is stored under this number.
    Recorded(u32),
    /// The same fact was already stored under this number, word for word.
    Known(u32),
    /// The user has the maximum number of facts.
    Full,
}

/// Selector of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactSelector<'a> {
    Number(u32),
    Key(FactKind, &'a str),
}

/// Suggested fact that the user has not stated explicitly, for the operator to accept or dismiss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactSuggestion {
    pub id: i64,
    pub fact: UserFact,
    pub at: Timestamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = user_facts)]
struct FactRow {
    id: i64,
    number: Option<i64>,
    kind: FactKind,
    key: String,
    value: String,
    created_at: Timestamp,
}

impl FactRow {
    fn into_fact(self) -> UserFact {
        UserFact { kind: self.kind, key: self.key, value: self.value }
    }
}

/// Loads the facts about a user, by number.
pub fn load_facts(conn: &mut Conn, user: UserId) -> QueryResult<UserFacts> {
    Ok(UserFacts(load_active_facts(conn, user)?.into_iter().map(|(_, known)| known).collect()))
}

/// Records a fact in place of the one of the same kind and key.
pub fn record_fact(
    conn: &mut Conn,
    user: UserId,
    fact: &UserFact,
    source: FactSource,
    now: Timestamp,
) -> QueryResult<FactOutcome> {
    let mut active = load_active_facts(conn, user)?;
    if let Some((_, known)) = active.iter().find(|(_, known)| known.fact == *fact) {
        return Ok(FactOutcome::Known(known.number));
    }
    let gives_way = |known: &StoredFact| known.fact.has_same_subject(fact) || contradicts(&known.fact, fact);
    let older: Vec<_> = active.extract_if(.., |(_, known)| gives_way(known)).collect();
    let number = match older.first() {
        // The number does not change, so that a list that the user saw earlier remains valid.
        Some((_, known)) => known.number,
        None if active.len() >= MAX_FACTS_PER_USER => return Ok(FactOutcome::Full),
        None => find_free_number(conn, user, &active)?,
    };
    for (id, _) in older {
        supersede_fact(conn, id, now)?;
    }
    end_suggestions(conn, user, fact, now)?;
    let (source, event) = match source {
        FactSource::Stated(event) => (StoredFactSource::Stated, event),
        FactSource::Operator => (StoredFactSource::Operator, None),
        FactSource::Inferred => (StoredFactSource::Inferred, None),
    };
    diesel::insert_into(user_facts::table)
        .values((
            user_facts::user_id.eq(user),
            user_facts::kind.eq(fact.kind),
            user_facts::key.eq(&fact.key),
            user_facts::value.eq(&fact.value),
            user_facts::number.eq(i64::from(number)),
            user_facts::state.eq(FactState::Active),
            user_facts::source.eq(source),
            user_facts::event_id.eq(event),
            user_facts::created_at.eq(ms(now)),
        ))
        .execute(conn)?;
    Ok(FactOutcome::Recorded(number))
}

/// Forgets a fact, with every earlier fact under its key, and returns the forgotten fact.
pub fn forget_fact(
    conn: &mut Conn,
    user: UserId,
    which: FactSelector<'_>,
    now: Timestamp,
) -> QueryResult<Option<UserFact>> {
    let meant = |known: &StoredFact| match which {
        FactSelector::Number(number) => known.number == number,
        FactSelector::Key(kind, key) => known.fact.kind == kind && known.fact.key == key,
    };
    let Some((_, StoredFact { fact, .. })) =
        load_active_facts(conn, user)?.into_iter().find(|(_, known)| meant(known))
    else {
        return Ok(None);
    };
    let of_its_kind: Vec<FactRow> = user_facts::table
        .filter(user_facts::user_id.eq(user).and(user_facts::state.ne(FactState::Forgotten)))
        .filter(user_facts::kind.eq(fact.kind))
        .select(FactRow::as_select())
        .load(conn)?;
    let mut ids = Vec::new();
    for row in of_its_kind {
        let id = row.id;
        if fact.has_same_subject(&row.into_fact()) {
            ids.push(id);
        }
    }
    clear_fact_text(conn, &ids, now)?;
    Ok(Some(fact))
}

/// Suggests a fact to the operator, unless it is already known, or was suggested before and not accepted.
pub fn suggest_fact(conn: &mut Conn, user: UserId, fact: &UserFact, now: Timestamp) -> QueryResult<()> {
    let alike: i64 = user_facts::table
        .filter(user_facts::user_id.eq(user).and(user_facts::state.ne(FactState::Superseded)))
        .filter(user_facts::kind.eq(fact.kind).and(user_facts::key.eq(&fact.key)))
        .filter(user_facts::value.eq(&fact.value).or(user_facts::state.eq(FactState::Suggested)))
        .count()
        .get_result(conn)?;
    if alike > 0 {
        return Ok(());
    }
    for one in load_fact_suggestions(conn, user)?.iter().rev().skip(MOST_SUGGESTED - 1) {
        dismiss_suggestion(conn, user, one.id, now)?;
    }
    diesel::insert_into(user_facts::table)
        .values((
            user_facts::user_id.eq(user),
            user_facts::kind.eq(fact.kind),
            user_facts::key.eq(&fact.key),
            user_facts::value.eq(&fact.value),
            user_facts::state.eq(FactState::Suggested),
            user_facts::source.eq(StoredFactSource::Inferred),
            user_facts::created_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

pub fn load_fact_suggestions(conn: &mut Conn, user: UserId) -> QueryResult<Vec<FactSuggestion>> {
    let rows: Vec<FactRow> = user_facts::table
        .filter(SUGGESTED.and(user_facts::user_id.eq(user)))
        .order(user_facts::id)
        .select(FactRow::as_select())
        .load(conn)?;
    let suggestion = |row: FactRow| FactSuggestion { id: row.id, at: row.created_at, fact: row.into_fact() };
    Ok(rows.into_iter().map(suggestion).collect())
}

/// Accepts a suggestion for the operator: its fact is known from then on. Returns the fact, if the suggestion was still
/// open.
pub fn accept_suggestion(
    conn: &mut Conn,
    user: UserId,
    id: i64,
    now: Timestamp,
) -> QueryResult<Option<(UserFact, FactOutcome)>> {
    let Some(FactSuggestion { fact, .. }) =
        load_fact_suggestions(conn, user)?.into_iter().find(|one| one.id == id)
    else {
        return Ok(None);
    };
    let noting = record_fact(conn, user, &fact, FactSource::Inferred, now)?;
    if noting != FactOutcome::Full {
        diesel::delete(user_facts::table.find(id)).execute(conn)?;
    }
    Ok(Some((fact, noting)))
}

/// Dismisses a suggestion for the operator. Returns whether the suggestion was still open.
pub fn dismiss_suggestion(conn: &mut Conn, user: UserId, id: i64, now: Timestamp) -> QueryResult<bool> {
    let waiting = user_facts::table.find(id).filter(SUGGESTED.and(user_facts::user_id.eq(user)));
    let dismissed = diesel::update(waiting)
        .set((user_facts::state.eq(FactState::Dismissed), user_facts::ended_at.eq(ms(now))))
        .execute(conn)?;
    Ok(dismissed > 0)
}

/// Dismisses the open suggestions on the subject of a newly stated fact, which settles them.
fn end_suggestions(conn: &mut Conn, user: UserId, fact: &UserFact, now: Timestamp) -> QueryResult<()> {
    for one in load_fact_suggestions(conn, user)?.iter().filter(|one| one.fact.has_same_subject(fact)) {
        dismiss_suggestion(conn, user, one.id, now)?;
    }
    Ok(())
}

/// Erases all facts about a user, with all of their text.
pub fn erase_facts(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    let theirs = user_facts::table
        .filter(user_facts::user_id.eq(user).and(user_facts::state.ne(FactState::Forgotten)));
    let ids = theirs.select(user_facts::id).load(conn)?;
    clear_fact_text(conn, &ids, now)
}

/// Erases the text of at most `limit` facts that ended before `before`, and of at most `limit` suggestions that were
/// made before it and never accepted; returns the larger of the two counts.
pub fn erase_ended_facts(conn: &mut Conn, before: Timestamp, limit: i64, now: Timestamp) -> QueryResult<i64> {
    let ended: Vec<i64> = user_facts::table
        .filter(ENDED.and(user_facts::ended_at.lt(ms(before))))
        .order(user_facts::ended_at)
        .limit(limit)
        .select(user_facts::id)
        .load(conn)?;
    clear_fact_text(conn, &ended, now)?;
    let suggested: Vec<i64> = user_facts::table
        .filter(SUGGESTED.and(user_facts::created_at.lt(ms(before))))
        .limit(limit)
        .select(user_facts::id)
        .load(conn)?;
    clear_fact_text(conn, &suggested, now)?;
    Ok(i64::try_from(ended.len().max(suggested.len())).unwrap_or(limit))
}

fn load_active_facts(conn: &mut Conn, user: UserId) -> QueryResult<Vec<(i64, StoredFact)>> {
    let rows: Vec<FactRow> = user_facts::table
        .filter(ACTIVE.and(user_facts::user_id.eq(user)))
        .order(user_facts::number)
        .select(FactRow::as_select())
        .load(conn)?;
    let known = |row: FactRow| {
        let (id, since) = (row.id, row.created_at);
        let number = convert_integer(row.number.unwrap_or_default())?;
        Ok((id, StoredFact { number, fact: row.into_fact(), since }))
    };
    rows.into_iter().map(known).collect()
}

/// Returns whether a newer fact of another key contradicts the older one: a user who now likes a thing no longer
/// dislikes it, and a general quality also applies to movies and shows.
fn contradicts(older: &UserFact, newer: &UserFact) -> bool {
    match (older.kind, newer.kind) {
        (FactKind::Like, FactKind::Dislike) | (FactKind::Dislike, FactKind::Like) => older.key == newer.key,
        (FactKind::Quality, FactKind::Quality) => newer.key.is_empty() && !older.key.is_empty(),
        _ => false,
    }
}

fn supersede_fact(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<()> {
    diesel::update(user_facts::table.find(id))
        .set((
            user_facts::state.eq(FactState::Superseded),
            user_facts::number.eq(None::<i64>),
            user_facts::ended_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

fn clear_fact_text(conn: &mut Conn, ids: &[i64], now: Timestamp) -> QueryResult<()> {
    for id in ids {
        let ended: Option<Timestamp> = user_facts::table.find(id).select(user_facts::ended_at).first(conn)?;
        diesel::update(user_facts::table.find(id))
            .set((
                (user_facts::state.eq(FactState::Forgotten), user_facts::number.eq(None::<i64>)),
                (user_facts::key.eq(""), user_facts::value.eq("")),
                user_facts::ended_at.eq(ended.or(Some(now))),
            ))
            .execute(conn)?;
    }
    Ok(())
}

/// Returns the number that has been unused the longest: a user who still has an older list cannot forget another fact
/// by its number. The count of numbers given out equals the count of active and forgotten facts, since a replaced fact
/// passes its number on.
fn find_free_number(conn: &mut Conn, user: UserId, active: &[(i64, StoredFact)]) -> QueryResult<u32> {
    let forgotten: i64 = user_facts::table
        .filter(user_facts::user_id.eq(user).and(user_facts::state.eq(FactState::Forgotten)))
        .select(count_star())
        .first(conn)?;
    let taken: BTreeSet<u32> = active.iter().map(|(_, known)| known.number).collect();
    let given = active.len() + usize::try_from(forgotten).unwrap_or_default();
    let numbers = (1..=NUMBERS).cycle().skip(given % NUMBERS as usize);
    Ok(numbers.take(NUMBERS as usize).find(|number| !taken.contains(number)).unwrap_or(NUMBERS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::column_types::StoredEnum;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::scratch;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn person(conn: &mut Conn, phone: &str) -> UserId {
        users::ensure_user(conn, &PhoneNumber::parse(phone).unwrap(), FirstContactRole::Member, at(0))
            .unwrap()
    }

    fn dislikes(what: &str) -> UserFact {
        UserFact::new(FactKind::Dislike, None, what).unwrap()
    }

    fn quality(what: &str) -> UserFact {
        UserFact::new(FactKind::Quality, None, what).unwrap()
    }

    fn say(conn: &mut Conn, user: UserId, fact: &UserFact, second: i64) -> FactOutcome {
        record_fact(conn, user, fact, FactSource::Stated(None), at(second)).unwrap()
    }

    /// Formats the facts about a user, one per line.
    fn list(conn: &mut Conn, user: UserId) -> Vec<String> {
        let known = load_facts(conn, user).unwrap().0;
        known.iter().map(|known| format!("{} {}", known.number, known.fact.to_sentence())).collect()
    }

    /// Formats every row as `state key=value`.
    fn rows(conn: &mut Conn) -> Vec<String> {
        let rows: Vec<(FactState, String, String)> = user_facts::table
            .order(user_facts::id)
            .select((user_facts::state, user_facts::key, user_facts::value))
            .load(conn)
            .unwrap();
        rows.into_iter()
            .map(|(state, key, value)| format!("{} {key}={value}", StoredEnum::as_text(state)))
            .collect()
    }

    #[test]
    fn newest_fact_keeps_the_older_number_and_repeats_change_nothing() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        say(&mut conn, ann, &dislikes("horror"), 1);
        assert_eq!(say(&mut conn, ann, &quality("4K"), 2), FactOutcome::Recorded(2));
        assert_eq!(say(&mut conn, ann, &quality("4K"), 3), FactOutcome::Known(2));
        forget_fact(&mut conn, ann, FactSelector::Number(1), at(4)).unwrap();
        assert_eq!(say(&mut conn, ann, &quality("1080p"), 5), FactOutcome::Recorded(2));
        assert_eq!(list(&mut conn, ann), ["2 1080p quality"]);
        assert_eq!(rows(&mut conn), ["forgotten =", "superseded =4K", "active =1080p"]);
    }

    #[test]
    fn number_of_a_forgotten_fact_is_not_reused() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        for (second, what) in [(1, "horror"), (2, "musicals"), (3, "westerns")] {
            say(&mut conn, ann, &dislikes(what), second);
        }
        assert_eq!(
            forget_fact(&mut conn, ann, FactSelector::Number(2), at(4)),
            Ok(Some(dislikes("musicals")))
        );
        assert_eq!(list(&mut conn, ann), ["1 Dislikes horror", "3 Dislikes westerns"]);
        assert_eq!(forget_fact(&mut conn, ann, FactSelector::Number(2), at(5)), Ok(None));
        assert_eq!(
            forget_fact(&mut conn, ann, FactSelector::Number(3), at(5)),
            Ok(Some(dislikes("westerns")))
        );
        assert_eq!(say(&mut conn, ann, &quality("4K"), 6), FactOutcome::Recorded(4));
        let likes = UserFact::new(FactKind::Like, None, "horror").unwrap();
        assert_eq!(say(&mut conn, ann, &likes, 7), FactOutcome::Recorded(1));
        assert_eq!(list(&mut conn, ann), ["1 Likes horror", "4 4K quality"]);
    }

    #[test]
    fn fact_numbers_restart_and_are_never_assigned_twice() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        say(&mut conn, ann, &quality("4K"), 0);
        for second in 1..99 {
            let FactOutcome::Recorded(number) =
                say(&mut conn, ann, &dislikes(&format!("film {second}")), second)
            else {
                panic!("not noted");
            };
            forget_fact(&mut conn, ann, FactSelector::Number(number), at(second)).unwrap();
        }
        assert_eq!(say(&mut conn, ann, &dislikes("horror"), 100), FactOutcome::Recorded(2));
    }

    #[test]
    fn forgotten_fact_and_its_predecessors_are_erased() {
        let mut conn = scratch();
        let (ann, bob) = (person(&mut conn, "+15550100001"), person(&mut conn, "+15550100002"));
        for (second, what) in [(1, "4K"), (2, "1080p")] {
            say(&mut conn, ann, &quality(what), second);
            say(&mut conn, bob, &quality(what), second);
        }
        assert_eq!(
            forget_fact(&mut conn, ann, FactSelector::Key(FactKind::Quality, ""), at(3)),
            Ok(Some(quality("1080p")))
        );
        assert_eq!(rows(&mut conn), ["forgotten =", "superseded =4K", "forgotten =", "active =1080p"]);
        erase_facts(&mut conn, bob, at(4)).unwrap();
        assert_eq!(rows(&mut conn), ["forgotten ="; 4]);
        assert_eq!(load_facts(&mut conn, bob).unwrap(), UserFacts::default());
    }

    #[test]
    fn forgotten_alias_erases_earlier_targets_despite_an_article() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        for (second, name, title) in [(1, "office", "The Office (US)"), (2, "the office", "The Office (UK)")]
        {
            say(&mut conn, ann, &UserFact::new(FactKind::Alias, Some(name), title).unwrap(), second);
        }
        forget_fact(&mut conn, ann, FactSelector::Number(1), at(3)).unwrap();
        assert_eq!(rows(&mut conn), ["forgotten ="; 2]);
    }

    #[test]
    fn facts_are_limited_and_can_still_be_replaced() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        say(&mut conn, ann, &quality("4K"), 0);
        for second in 1..40 {
            say(&mut conn, ann, &dislikes(&format!("film {second}")), second);
        }
        assert_eq!(say(&mut conn, ann, &dislikes("horror"), 40), FactOutcome::Full);
        assert_eq!(say(&mut conn, ann, &quality("1080p"), 41), FactOutcome::Recorded(1));
        assert_eq!(list(&mut conn, ann).len(), 40);
    }

    #[test]
    fn suggestion_needs_acceptance_and_stays_dismissed() {
        let mut conn = scratch();
        let (ann, bob) = (person(&mut conn, "+15550100001"), person(&mut conn, "+15550100002"));
        for fact in [quality("4K"), dislikes("horror"), dislikes("horror")] {
            suggest_fact(&mut conn, ann, &fact, at(1)).unwrap();
        }
        assert_eq!(list(&mut conn, ann), [""; 0]);
        let waiting = load_fact_suggestions(&mut conn, ann).unwrap();
        assert_eq!(
            waiting.iter().map(|one| one.fact.clone()).collect::<Vec<_>>(),
            [quality("4K"), dislikes("horror")]
        );
        assert_eq!(accept_suggestion(&mut conn, bob, waiting[0].id, at(2)), Ok(None));
        assert_eq!(
            accept_suggestion(&mut conn, ann, waiting[0].id, at(2)),
            Ok(Some((quality("4K"), FactOutcome::Recorded(1))))
        );
        assert_eq!(dismiss_suggestion(&mut conn, bob, waiting[1].id, at(2)), Ok(false));
        assert_eq!(dismiss_suggestion(&mut conn, ann, waiting[1].id, at(2)), Ok(true));
        for fact in [quality("4K"), dislikes("horror")] {
            suggest_fact(&mut conn, ann, &fact, at(3)).unwrap();
        }
        assert_eq!(load_fact_suggestions(&mut conn, ann).unwrap(), []);
        assert_eq!(list(&mut conn, ann), ["1 4K quality"]);
    }

    #[test]
    fn suggestions_are_limited_and_end_by_statement_or_age() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        for second in 1..=7 {
            suggest_fact(&mut conn, ann, &dislikes(&format!("film {second}")), at(second)).unwrap();
        }
        let waiting = |conn: &mut Conn| {
            let waiting = load_fact_suggestions(conn, ann).unwrap();
            waiting.into_iter().map(|one| one.fact.value).collect::<Vec<_>>()
        };
        assert_eq!(waiting(&mut conn), ["film 3", "film 4", "film 5", "film 6", "film 7"]);
        say(&mut conn, ann, &dislikes("film 5"), 8);
        assert_eq!(waiting(&mut conn), ["film 3", "film 4", "film 6", "film 7"]);
        erase_ended_facts(&mut conn, at(6), 10, at(20)).unwrap();
        assert_eq!(waiting(&mut conn), ["film 6", "film 7"]);
    }

    #[test]
    fn superseded_facts_are_erased_after_their_time() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        for (second, what) in [(1, "720p"), (2, "1080p"), (9, "4K")] {
            say(&mut conn, ann, &quality(what), second);
        }
        assert_eq!(erase_ended_facts(&mut conn, at(5), 10, at(20)), Ok(1));
        assert_eq!(rows(&mut conn), ["forgotten =", "superseded =1080p", "active =4K"]);
        assert_eq!(erase_ended_facts(&mut conn, at(5), 10, at(20)), Ok(0));
    }
}
