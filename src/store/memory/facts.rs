//! Facts about users. A user has one fact for each kind and key: a newer fact replaces the older fact and inherits its
//! number. The text of a replaced fact is erased when the user forgets the current one, or after its retention period.

use std::collections::BTreeSet;

use diesel::dsl::count_star;
use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::people::facts::{FactKind, MAX_FACTS_PER_USER, StoredFact, UserFact, UserFacts};
use crate::conversation::transcript::{EventId, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms};
use crate::store::column_types::stored_enum;
use crate::store::database::literal_sql::literal_sql;
use crate::store::schema::user_facts;
use crate::store::turns::turn_lifecycle;

/// Highest number of a fact; numbering then restarts from 1.
const MAX_FACT_NUMBER: u32 = 99;
/// Maximum number of open suggestions for one user; a newer one replaces the oldest.
const MAX_SUGGESTIONS: usize = 5;

literal_sql! {
    const ACTIVE = "user_facts.state = 'active'";
    const SUGGESTED = "user_facts.state = 'suggested'";
    /// Condition of ended facts whose text is not erased yet.
    const ENDED_WITH_TEXT = "user_facts.ended_at IS NOT NULL AND user_facts.value <> ''";
}

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
    /// The user stated the fact, in this message if it is known.
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
    /// The identical fact was already stored under this number.
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

/// Fact inferred from the user's messages, for the operator to accept or dismiss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactSuggestion {
    pub id: i64,
    pub fact: UserFact,
    pub suggested_at: Timestamp,
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
    Ok(UserFacts(load_active_facts(conn, user)?.into_iter().map(|(_, stored)| stored).collect()))
}

/// Records a fact, which replaces the facts of the same subject and those that it contradicts.
pub fn record_fact(
    conn: &mut Conn,
    user: UserId,
    fact: &UserFact,
    source: FactSource,
    now: Timestamp,
) -> QueryResult<FactOutcome> {
    let mut active = load_active_facts(conn, user)?;
    if let Some((_, stored)) = active.iter().find(|(_, stored)| stored.fact == *fact) {
        return Ok(FactOutcome::Known(stored.number));
    }
    let is_replaced =
        |stored: &StoredFact| stored.fact.has_same_subject(fact) || contradicts(&stored.fact, fact);
    let replaced: Vec<_> = active.extract_if(.., |(_, stored)| is_replaced(stored)).collect();
    let number = match replaced.first() {
        // The number does not change, so that a list that the user saw earlier remains valid.
        Some((_, stored)) => stored.number,
        None if active.len() >= MAX_FACTS_PER_USER => return Ok(FactOutcome::Full),
        None => find_free_number(conn, user, &active)?,
    };
    for (id, _) in replaced {
        supersede_fact(conn, id, now)?;
    }
    dismiss_settled_suggestions(conn, user, fact, now)?;
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

/// Forgets a fact, together with the earlier facts of the same subject, and returns it.
pub fn forget_fact(
    conn: &mut Conn,
    user: UserId,
    selector: FactSelector<'_>,
    now: Timestamp,
) -> QueryResult<Option<UserFact>> {
    let is_selected = |stored: &StoredFact| match selector {
        FactSelector::Number(number) => stored.number == number,
        FactSelector::Key(kind, key) => stored.fact.kind == kind && stored.fact.key == key,
    };
    let Some((_, StoredFact { fact, .. })) =
        load_active_facts(conn, user)?.into_iter().find(|(_, stored)| is_selected(stored))
    else {
        return Ok(None);
    };
    let facts_of_kind: Vec<FactRow> = user_facts::table
        .filter(user_facts::user_id.eq(user).and(user_facts::state.ne(FactState::Forgotten)))
        .filter(user_facts::kind.eq(fact.kind))
        .select(FactRow::as_select())
        .load(conn)?;
    let mut ids = Vec::new();
    for row in facts_of_kind {
        let id = row.id;
        if fact.has_same_subject(&row.into_fact()) {
            ids.push(id);
        }
    }
    clear_fact_text(conn, &ids, now)?;
    turn_lifecycle::erase_contexts(conn, user)?;
    Ok(Some(fact))
}

/// Suggests a fact to the operator, unless it is already stored or was dismissed, or a suggestion for the same key is
/// open.
pub fn suggest_fact(conn: &mut Conn, user: UserId, fact: &UserFact, now: Timestamp) -> QueryResult<()> {
    let duplicates: i64 = user_facts::table
        .filter(user_facts::user_id.eq(user).and(user_facts::state.ne(FactState::Superseded)))
        .filter(user_facts::kind.eq(fact.kind).and(user_facts::key.eq(&fact.key)))
        .filter(user_facts::value.eq(&fact.value).or(user_facts::state.eq(FactState::Suggested)))
        .count()
        .get_result(conn)?;
    if duplicates > 0 {
        return Ok(());
    }
    for oldest in load_fact_suggestions(conn, user)?.iter().rev().skip(MAX_SUGGESTIONS - 1) {
        dismiss_suggestion(conn, user, oldest.id, now)?;
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
    let into_suggestion =
        |row: FactRow| FactSuggestion { id: row.id, suggested_at: row.created_at, fact: row.into_fact() };
    Ok(rows.into_iter().map(into_suggestion).collect())
}

/// Accepts a suggestion: its fact becomes active. Returns the fact and the outcome of recording it; `None` if the
/// suggestion is no longer open.
pub fn accept_suggestion(
    conn: &mut Conn,
    user: UserId,
    id: i64,
    now: Timestamp,
) -> QueryResult<Option<(UserFact, FactOutcome)>> {
    let Some(FactSuggestion { fact, .. }) =
        load_fact_suggestions(conn, user)?.into_iter().find(|suggestion| suggestion.id == id)
    else {
        return Ok(None);
    };
    let outcome = record_fact(conn, user, &fact, FactSource::Inferred, now)?;
    if outcome != FactOutcome::Full {
        diesel::delete(user_facts::table.find(id)).execute(conn)?;
    }
    Ok(Some((fact, outcome)))
}

/// Dismisses a suggestion. Returns whether the suggestion was still open.
pub fn dismiss_suggestion(conn: &mut Conn, user: UserId, id: i64, now: Timestamp) -> QueryResult<bool> {
    let open = user_facts::table.find(id).filter(SUGGESTED.and(user_facts::user_id.eq(user)));
    let dismissed_count = diesel::update(open)
        .set((user_facts::state.eq(FactState::Dismissed), user_facts::ended_at.eq(ms(now))))
        .execute(conn)?;
    Ok(dismissed_count > 0)
}

/// Dismisses the open suggestions on the subject of a newly recorded fact.
fn dismiss_settled_suggestions(
    conn: &mut Conn,
    user: UserId,
    fact: &UserFact,
    now: Timestamp,
) -> QueryResult<()> {
    for suggestion in load_fact_suggestions(conn, user)? {
        if suggestion.fact.has_same_subject(fact) {
            dismiss_suggestion(conn, user, suggestion.id, now)?;
        }
    }
    Ok(())
}

/// Erases all facts about a user, with all of their text.
pub fn erase_facts(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    let remaining = user_facts::table
        .filter(user_facts::user_id.eq(user).and(user_facts::state.ne(FactState::Forgotten)));
    let ids = remaining.select(user_facts::id).load(conn)?;
    clear_fact_text(conn, &ids, now)
}

/// Erases the text of at most `limit` facts that ended before `before`, and of at most `limit` suggestions that were
/// made before it and never accepted; returns the larger of the two counts.
pub fn erase_ended_facts(conn: &mut Conn, before: Timestamp, limit: i64, now: Timestamp) -> QueryResult<i64> {
    let ended: Vec<i64> = user_facts::table
        .filter(ENDED_WITH_TEXT.and(user_facts::ended_at.lt(ms(before))))
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
    let into_stored_fact = |row: FactRow| {
        let (id, since) = (row.id, row.created_at);
        let number = convert_integer(row.number.unwrap_or_default())?;
        Ok((id, StoredFact { number, fact: row.into_fact(), since }))
    };
    rows.into_iter().map(into_stored_fact).collect()
}

/// Moves the facts about a user to another one. The other user's own facts win over those that are about the same
/// subject or contradict them, which are kept as superseded.
pub(in crate::store) fn move_facts(
    conn: &mut Conn,
    (from, into): (UserId, UserId),
    now: Timestamp,
) -> QueryResult<()> {
    for (id, moved) in load_active_facts(conn, from)? {
        let active = load_active_facts(conn, into)?;
        let is_settled = active.iter().any(|(_, stored)| {
            stored.fact.has_same_subject(&moved.fact)
                || contradicts(&stored.fact, &moved.fact)
                || contradicts(&moved.fact, &stored.fact)
        });
        if is_settled || active.len() >= MAX_FACTS_PER_USER {
            supersede_fact(conn, id, now)?;
            continue;
        }
        let number = find_free_number(conn, into, &active)?;
        diesel::update(user_facts::table.find(id))
            .set((user_facts::user_id.eq(into), user_facts::number.eq(i64::from(number))))
            .execute(conn)?;
    }
    let suggested: Vec<i64> = user_facts::table
        .filter(SUGGESTED.and(user_facts::user_id.eq(from)))
        .select(user_facts::id)
        .load(conn)?;
    clear_fact_text(conn, &suggested, now)?;
    diesel::update(user_facts::table.filter(user_facts::user_id.eq(from)))
        .set(user_facts::user_id.eq(into))
        .execute(conn)
        .map(drop)
}

/// Returns whether a newer fact contradicts an older fact of another kind or key: a user who now likes a genre no
/// longer dislikes it, and a general quality replaces the quality for movies or for shows.
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

/// Returns the number that has been unused the longest, so that a user with an outdated list does not forget another
/// fact by its number. The count of assigned numbers equals the count of active and forgotten facts, since a replaced
/// fact passes on its number.
fn find_free_number(conn: &mut Conn, user: UserId, active: &[(i64, StoredFact)]) -> QueryResult<u32> {
    let forgotten: i64 = user_facts::table
        .filter(user_facts::user_id.eq(user).and(user_facts::state.eq(FactState::Forgotten)))
        .select(count_star())
        .first(conn)?;
    let used_numbers: BTreeSet<u32> = active.iter().map(|(_, stored)| stored.number).collect();
    let assigned_count = active.len() + usize::try_from(forgotten).unwrap_or_default();
    let numbers = (1..=MAX_FACT_NUMBER).cycle().skip(assigned_count % MAX_FACT_NUMBER as usize);
    Ok(numbers
        .take(MAX_FACT_NUMBER as usize)
        .find(|number| !used_numbers.contains(number))
        .unwrap_or(MAX_FACT_NUMBER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::column_types::StoredEnum;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::scratch;

    fn timestamp(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn create_member(conn: &mut Conn, phone: &str) -> UserId {
        users::ensure_user(conn, PhoneNumber::parse(phone).unwrap(), FirstContactRole::Member, timestamp(0))
            .unwrap()
    }

    fn dislike(text: &str) -> UserFact {
        UserFact::new(FactKind::Dislike, None, text).unwrap()
    }

    fn quality(text: &str) -> UserFact {
        UserFact::new(FactKind::Quality, None, text).unwrap()
    }

    fn state_fact(conn: &mut Conn, user: UserId, fact: &UserFact, second: i64) -> FactOutcome {
        record_fact(conn, user, fact, FactSource::Stated(None), timestamp(second)).unwrap()
    }

    /// Formats the facts about a user, one per line.
    fn format_facts(conn: &mut Conn, user: UserId) -> Vec<String> {
        let facts = load_facts(conn, user).unwrap().0;
        facts.iter().map(|stored| format!("{} {}", stored.number, stored.fact.to_sentence())).collect()
    }

    /// Formats every row as `state key=value`.
    fn format_rows(conn: &mut Conn) -> Vec<String> {
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
    fn replacement_inherits_the_number_and_a_repeat_changes_nothing() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        state_fact(&mut conn, ann, &dislike("horror"), 1);
        assert_eq!(state_fact(&mut conn, ann, &quality("4K"), 2), FactOutcome::Recorded(2));
        assert_eq!(state_fact(&mut conn, ann, &quality("4K"), 3), FactOutcome::Known(2));
        forget_fact(&mut conn, ann, FactSelector::Number(1), timestamp(4)).unwrap();
        assert_eq!(state_fact(&mut conn, ann, &quality("1080p"), 5), FactOutcome::Recorded(2));
        assert_eq!(format_facts(&mut conn, ann), ["2 1080p quality"]);
        assert_eq!(format_rows(&mut conn), ["forgotten =", "superseded =4K", "active =1080p"]);
    }

    #[test]
    fn number_of_a_forgotten_fact_is_not_reused() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        for (second, text) in [(1, "horror"), (2, "musicals"), (3, "westerns")] {
            state_fact(&mut conn, ann, &dislike(text), second);
        }
        assert_eq!(
            forget_fact(&mut conn, ann, FactSelector::Number(2), timestamp(4)),
            Ok(Some(dislike("musicals")))
        );
        assert_eq!(format_facts(&mut conn, ann), ["1 Dislikes horror", "3 Dislikes westerns"]);
        assert_eq!(forget_fact(&mut conn, ann, FactSelector::Number(2), timestamp(5)), Ok(None));
        assert_eq!(
            forget_fact(&mut conn, ann, FactSelector::Number(3), timestamp(5)),
            Ok(Some(dislike("westerns")))
        );
        assert_eq!(state_fact(&mut conn, ann, &quality("4K"), 6), FactOutcome::Recorded(4));
        let likes = UserFact::new(FactKind::Like, None, "horror").unwrap();
        assert_eq!(state_fact(&mut conn, ann, &likes, 7), FactOutcome::Recorded(1));
        assert_eq!(format_facts(&mut conn, ann), ["1 Likes horror", "4 4K quality"]);
    }

    #[test]
    fn fact_numbers_restart_and_are_never_assigned_twice() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        state_fact(&mut conn, ann, &quality("4K"), 0);
        for second in 1..99 {
            let FactOutcome::Recorded(number) =
                state_fact(&mut conn, ann, &dislike(&format!("film {second}")), second)
            else {
                panic!("the fact was not recorded");
            };
            forget_fact(&mut conn, ann, FactSelector::Number(number), timestamp(second)).unwrap();
        }
        assert_eq!(state_fact(&mut conn, ann, &dislike("horror"), 100), FactOutcome::Recorded(2));
    }

    #[test]
    fn forgotten_fact_and_its_predecessors_are_erased() {
        let mut conn = scratch();
        let (ann, bob) = (create_member(&mut conn, "+15550100001"), create_member(&mut conn, "+15550100002"));
        for (second, text) in [(1, "4K"), (2, "1080p")] {
            state_fact(&mut conn, ann, &quality(text), second);
            state_fact(&mut conn, bob, &quality(text), second);
        }
        assert_eq!(
            forget_fact(&mut conn, ann, FactSelector::Key(FactKind::Quality, ""), timestamp(3)),
            Ok(Some(quality("1080p")))
        );
        assert_eq!(format_rows(&mut conn), ["forgotten =", "superseded =4K", "forgotten =", "active =1080p"]);
        erase_facts(&mut conn, bob, timestamp(4)).unwrap();
        assert_eq!(format_rows(&mut conn), ["forgotten ="; 4]);
        assert_eq!(load_facts(&mut conn, bob).unwrap(), UserFacts::default());
    }

    #[test]
    fn forgotten_alias_erases_earlier_targets_despite_an_article() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        for (second, name, title) in [(1, "office", "The Office (US)"), (2, "the office", "The Office (UK)")]
        {
            state_fact(&mut conn, ann, &UserFact::new(FactKind::Alias, Some(name), title).unwrap(), second);
        }
        forget_fact(&mut conn, ann, FactSelector::Number(1), timestamp(3)).unwrap();
        assert_eq!(format_rows(&mut conn), ["forgotten ="; 2]);
    }

    #[test]
    fn facts_are_limited_and_can_still_be_replaced() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        state_fact(&mut conn, ann, &quality("4K"), 0);
        for second in 1..40 {
            state_fact(&mut conn, ann, &dislike(&format!("film {second}")), second);
        }
        assert_eq!(state_fact(&mut conn, ann, &dislike("horror"), 40), FactOutcome::Full);
        assert_eq!(state_fact(&mut conn, ann, &quality("1080p"), 41), FactOutcome::Recorded(1));
        assert_eq!(format_facts(&mut conn, ann).len(), 40);
    }

    #[test]
    fn suggestion_becomes_a_fact_on_acceptance_and_stays_dismissed() {
        let mut conn = scratch();
        let (ann, bob) = (create_member(&mut conn, "+15550100001"), create_member(&mut conn, "+15550100002"));
        for fact in [quality("4K"), dislike("horror"), dislike("horror")] {
            suggest_fact(&mut conn, ann, &fact, timestamp(1)).unwrap();
        }
        assert_eq!(format_facts(&mut conn, ann), [""; 0]);
        let open = load_fact_suggestions(&mut conn, ann).unwrap();
        assert_eq!(
            open.iter().map(|suggestion| suggestion.fact.clone()).collect::<Vec<_>>(),
            [quality("4K"), dislike("horror")]
        );
        assert_eq!(accept_suggestion(&mut conn, bob, open[0].id, timestamp(2)), Ok(None));
        assert_eq!(
            accept_suggestion(&mut conn, ann, open[0].id, timestamp(2)),
            Ok(Some((quality("4K"), FactOutcome::Recorded(1))))
        );
        assert_eq!(dismiss_suggestion(&mut conn, bob, open[1].id, timestamp(2)), Ok(false));
        assert_eq!(dismiss_suggestion(&mut conn, ann, open[1].id, timestamp(2)), Ok(true));
        for fact in [quality("4K"), dislike("horror")] {
            suggest_fact(&mut conn, ann, &fact, timestamp(3)).unwrap();
        }
        assert_eq!(load_fact_suggestions(&mut conn, ann).unwrap(), []);
        assert_eq!(format_facts(&mut conn, ann), ["1 4K quality"]);
    }

    #[test]
    fn suggestions_are_limited_and_end_with_a_stated_fact_or_by_age() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        for second in 1..=7 {
            suggest_fact(&mut conn, ann, &dislike(&format!("film {second}")), timestamp(second)).unwrap();
        }
        let open_values = |conn: &mut Conn| {
            let open = load_fact_suggestions(conn, ann).unwrap();
            open.into_iter().map(|suggestion| suggestion.fact.value).collect::<Vec<_>>()
        };
        assert_eq!(open_values(&mut conn), ["film 3", "film 4", "film 5", "film 6", "film 7"]);
        state_fact(&mut conn, ann, &dislike("film 5"), 8);
        assert_eq!(open_values(&mut conn), ["film 3", "film 4", "film 6", "film 7"]);
        erase_ended_facts(&mut conn, timestamp(6), 10, timestamp(20)).unwrap();
        assert_eq!(open_values(&mut conn), ["film 6", "film 7"]);
    }

    #[test]
    fn superseded_facts_are_erased_after_retention() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        for (second, text) in [(1, "720p"), (2, "1080p"), (9, "4K")] {
            state_fact(&mut conn, ann, &quality(text), second);
        }
        assert_eq!(erase_ended_facts(&mut conn, timestamp(5), 10, timestamp(20)), Ok(1));
        assert_eq!(format_rows(&mut conn), ["forgotten =", "superseded =1080p", "active =4K"]);
        assert_eq!(erase_ended_facts(&mut conn, timestamp(5), 10, timestamp(20)), Ok(0));
    }
}
