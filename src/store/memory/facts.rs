//! Facts about users. A user has one fact for each kind and key: a newer fact replaces the older one and inherits its
//! number. The text of the older one is erased when the fact is next forgotten, or at the end of its retention period.

use std::collections::BTreeSet;

use diesel::dsl::count_star;
use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::facts::{Fact, FactKind, Facts, Known, MOST_FACTS};
use crate::conversation::transcript::{EventId, UserId};
use crate::store::Conn;
use crate::store::codec::{fact_kind, fact_kind_word, ms, number, time};
use crate::store::schema::user_facts;
use crate::store::written::Written;

/// Highest number of a fact; numbering then restarts from 1.
const NUMBERS: u32 = 99;
/// Maximum number of open suggestions for one user; a newer one replaces the oldest.
const MOST_SUGGESTED: usize = 5;

const ACTIVE: Written = Written("user_facts.state = 'active'");
const SUGGESTED: Written = Written("user_facts.state = 'suggested'");
/// Facts that have ended and still have their text.
const ENDED: Written = Written("user_facts.ended_at IS NOT NULL AND user_facts.value <> ''");

/// Source of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The user stated the fact, in this message.
    Said(Option<EventId>),
    Operator,
    /// The fact was suggested from the user's messages, and the operator accepted it.
    Noticed,
}

/// Outcome of recording a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noting {
    /// The fact is stored under this number.
    Noted(u32),
    /// The same fact was already stored under this number, word for word.
    Known(u32),
    /// The user has the maximum number of facts.
    Full,
}

/// Selector of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which<'a> {
    Number(u32),
    Key(FactKind, &'a str),
}

/// Fact that the user has not stated outright, for the operator to accept or dismiss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    pub id: i64,
    pub fact: Fact,
    pub at: Timestamp,
}

type Row = (i64, Option<i64>, String, String, String, i64);

/// Loads the facts about a user, by number.
pub fn known(conn: &mut Conn, user: UserId) -> QueryResult<Facts> {
    Ok(Facts(active(conn, user)?.into_iter().map(|(_, known)| known).collect()))
}

/// Records a fact in place of the one of the same kind and key.
pub fn note(
    conn: &mut Conn,
    user: UserId,
    fact: &Fact,
    source: Source,
    now: Timestamp,
) -> QueryResult<Noting> {
    let mut active = active(conn, user)?;
    if let Some((_, known)) = active.iter().find(|(_, known)| known.fact == *fact) {
        return Ok(Noting::Known(known.number));
    }
    let gives_way = |known: &Known| known.fact.is_about_the_same(fact) || contradicts(&known.fact, fact);
    let older: Vec<_> = active.extract_if(.., |(_, known)| gives_way(known)).collect();
    let number = match older.first() {
        // The number stays the same, so that a list the user saw earlier remains valid.
        Some((_, known)) => known.number,
        None if active.len() >= MOST_FACTS => return Ok(Noting::Full),
        None => free_number(conn, user, &active)?,
    };
    for (id, _) in older {
        supersede(conn, id, now)?;
    }
    end_suggestions(conn, user, fact, now)?;
    let (word, event) = match source {
        Source::Said(event) => ("said", event),
        Source::Operator => ("operator", None),
        Source::Noticed => ("noticed", None),
    };
    diesel::insert_into(user_facts::table)
        .values((
            user_facts::user_id.eq(user.0),
            user_facts::kind.eq(fact_kind_word(fact.kind)),
            user_facts::key.eq(&fact.key),
            user_facts::value.eq(&fact.value),
            user_facts::number.eq(i64::from(number)),
            user_facts::state.eq("active"),
            user_facts::source.eq(word),
            user_facts::event_id.eq(event.map(|event| event.0)),
            user_facts::created_at.eq(ms(now)),
        ))
        .execute(conn)?;
    Ok(Noting::Noted(number))
}

/// Forgets a fact, with every earlier fact under its key, and returns the forgotten fact.
pub fn forget(conn: &mut Conn, user: UserId, which: Which<'_>, now: Timestamp) -> QueryResult<Option<Fact>> {
    let meant = |known: &Known| match which {
        Which::Number(number) => known.number == number,
        Which::Key(kind, key) => known.fact.kind == kind && known.fact.key == key,
    };
    let Some((_, Known { fact, .. })) = active(conn, user)?.into_iter().find(|(_, known)| meant(known))
    else {
        return Ok(None);
    };
    let of_its_kind: Vec<Row> = user_facts::table
        .filter(user_facts::user_id.eq(user.0).and(user_facts::state.ne("forgotten")))
        .filter(user_facts::kind.eq(fact_kind_word(fact.kind)))
        .select(ROW)
        .load(conn)?;
    let mut ids = Vec::new();
    for (id, _, _, key, value, _) in of_its_kind {
        if fact.is_about_the_same(&(Fact { kind: fact.kind, key, value })) {
            ids.push(id);
        }
    }
    empty(conn, &ids, now)?;
    Ok(Some(fact))
}

/// Suggests a fact to the operator, unless it is already known, or was suggested before and not accepted.
pub fn suggest(conn: &mut Conn, user: UserId, fact: &Fact, now: Timestamp) -> QueryResult<()> {
    let alike: i64 = user_facts::table
        .filter(user_facts::user_id.eq(user.0).and(user_facts::state.ne("superseded")))
        .filter(user_facts::kind.eq(fact_kind_word(fact.kind)).and(user_facts::key.eq(&fact.key)))
        .filter(user_facts::value.eq(&fact.value).or(user_facts::state.eq("suggested")))
        .count()
        .get_result(conn)?;
    if alike > 0 {
        return Ok(());
    }
    for one in suggestions(conn, user)?.iter().rev().skip(MOST_SUGGESTED - 1) {
        dismiss(conn, user, one.id, now)?;
    }
    diesel::insert_into(user_facts::table)
        .values((
            user_facts::user_id.eq(user.0),
            user_facts::kind.eq(fact_kind_word(fact.kind)),
            user_facts::key.eq(&fact.key),
            user_facts::value.eq(&fact.value),
            user_facts::state.eq("suggested"),
            user_facts::source.eq("noticed"),
            user_facts::created_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

pub fn suggestions(conn: &mut Conn, user: UserId) -> QueryResult<Vec<Suggestion>> {
    let rows: Vec<Row> = user_facts::table
        .filter(SUGGESTED.and(user_facts::user_id.eq(user.0)))
        .order(user_facts::id)
        .select(ROW)
        .load(conn)?;
    let suggestion = |(id, _, kind, key, value, at): Row| {
        Ok(Suggestion { id, fact: Fact { kind: fact_kind(&kind)?, key, value }, at: time(at)? })
    };
    rows.into_iter().map(suggestion).collect()
}

/// Accepts a suggestion for the operator: its fact is known from then on. Returns the fact, if the suggestion was still
/// open.
pub fn accept(conn: &mut Conn, user: UserId, id: i64, now: Timestamp) -> QueryResult<Option<(Fact, Noting)>> {
    let Some(Suggestion { fact, .. }) = suggestions(conn, user)?.into_iter().find(|one| one.id == id) else {
        return Ok(None);
    };
    let noting = note(conn, user, &fact, Source::Noticed, now)?;
    if noting != Noting::Full {
        diesel::delete(user_facts::table.find(id)).execute(conn)?;
    }
    Ok(Some((fact, noting)))
}

/// Dismisses a suggestion for the operator. Returns whether the suggestion was still open.
pub fn dismiss(conn: &mut Conn, user: UserId, id: i64, now: Timestamp) -> QueryResult<bool> {
    let waiting = user_facts::table.find(id).filter(SUGGESTED.and(user_facts::user_id.eq(user.0)));
    let dismissed = diesel::update(waiting)
        .set((user_facts::state.eq("dismissed"), user_facts::ended_at.eq(ms(now))))
        .execute(conn)?;
    Ok(dismissed > 0)
}

/// Dismisses the open suggestions on the subject of a newly stated fact, which settles them.
fn end_suggestions(conn: &mut Conn, user: UserId, fact: &Fact, now: Timestamp) -> QueryResult<()> {
    for one in suggestions(conn, user)?.iter().filter(|one| one.fact.is_about_the_same(fact)) {
        dismiss(conn, user, one.id, now)?;
    }
    Ok(())
}

/// Erases all facts about a user, with all of their text.
pub fn erase(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    let theirs =
        user_facts::table.filter(user_facts::user_id.eq(user.0).and(user_facts::state.ne("forgotten")));
    let ids = theirs.select(user_facts::id).load(conn)?;
    empty(conn, &ids, now)
}

/// Erases the text of at most `limit` facts that ended before `before`, and of at most `limit` suggestions that were
/// made before it and never accepted; returns the larger of the two counts.
pub fn erase_ended(conn: &mut Conn, before: Timestamp, limit: i64, now: Timestamp) -> QueryResult<i64> {
    let ended: Vec<i64> = user_facts::table
        .filter(ENDED.and(user_facts::ended_at.lt(ms(before))))
        .order(user_facts::ended_at)
        .limit(limit)
        .select(user_facts::id)
        .load(conn)?;
    empty(conn, &ended, now)?;
    let suggested: Vec<i64> = user_facts::table
        .filter(SUGGESTED.and(user_facts::created_at.lt(ms(before))))
        .limit(limit)
        .select(user_facts::id)
        .load(conn)?;
    empty(conn, &suggested, now)?;
    Ok(i64::try_from(ended.len().max(suggested.len())).unwrap_or(limit))
}

const ROW: (
    user_facts::id,
    user_facts::number,
    user_facts::kind,
    user_facts::key,
    user_facts::value,
    user_facts::created_at,
) = (
    user_facts::id,
    user_facts::number,
    user_facts::kind,
    user_facts::key,
    user_facts::value,
    user_facts::created_at,
);

fn active(conn: &mut Conn, user: UserId) -> QueryResult<Vec<(i64, Known)>> {
    let rows: Vec<Row> = user_facts::table
        .filter(ACTIVE.and(user_facts::user_id.eq(user.0)))
        .order(user_facts::number)
        .select(ROW)
        .load(conn)?;
    let known = |(id, of_list, kind, key, value, at): Row| {
        let fact = Fact { kind: fact_kind(&kind)?, key, value };
        Ok((id, Known { number: number(of_list.unwrap_or_default())?, fact, since: time(at)? }))
    };
    rows.into_iter().map(known).collect()
}

/// Returns whether a newer fact of another key contradicts the older one: a user who likes a thing now does not dislike
/// it, and a general quality also applies to movies and shows.
fn contradicts(older: &Fact, newer: &Fact) -> bool {
    match (older.kind, newer.kind) {
        (FactKind::Like, FactKind::Dislike) | (FactKind::Dislike, FactKind::Like) => older.key == newer.key,
        (FactKind::Quality, FactKind::Quality) => newer.key.is_empty() && !older.key.is_empty(),
        _ => false,
    }
}

fn supersede(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<()> {
    diesel::update(user_facts::table.find(id))
        .set((
            user_facts::state.eq("superseded"),
            user_facts::number.eq(None::<i64>),
            user_facts::ended_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

fn empty(conn: &mut Conn, ids: &[i64], now: Timestamp) -> QueryResult<()> {
    for id in ids {
        let ended: Option<i64> = user_facts::table.find(id).select(user_facts::ended_at).first(conn)?;
        diesel::update(user_facts::table.find(id))
            .set((
                (user_facts::state.eq("forgotten"), user_facts::number.eq(None::<i64>)),
                (user_facts::key.eq(""), user_facts::value.eq("")),
                user_facts::ended_at.eq(ended.unwrap_or(ms(now))),
            ))
            .execute(conn)?;
    }
    Ok(())
}

/// Returns the number that has been unused the longest: a user who still has an older list cannot forget another fact
/// by its number. The count of numbers given out equals the count of active and forgotten facts, since a replaced fact
/// hands its number on.
fn free_number(conn: &mut Conn, user: UserId, active: &[(i64, Known)]) -> QueryResult<u32> {
    let forgotten: i64 = user_facts::table
        .filter(user_facts::user_id.eq(user.0).and(user_facts::state.eq("forgotten")))
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
    use crate::store::scratch;
    use crate::store::users::{self, Newcomer};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn person(conn: &mut Conn, phone: &str) -> UserId {
        users::ensure(conn, &PhoneNumber::parse(phone).unwrap(), Newcomer::Member, at(0)).unwrap()
    }

    fn dislikes(what: &str) -> Fact {
        Fact::new(FactKind::Dislike, None, what).unwrap()
    }

    fn quality(what: &str) -> Fact {
        Fact::new(FactKind::Quality, None, what).unwrap()
    }

    fn say(conn: &mut Conn, user: UserId, fact: &Fact, second: i64) -> Noting {
        note(conn, user, fact, Source::Said(None), at(second)).unwrap()
    }

    /// Formats the facts about a user, one per line.
    fn list(conn: &mut Conn, user: UserId) -> Vec<String> {
        let known = known(conn, user).unwrap().0;
        known.iter().map(|known| format!("{} {}", known.number, known.fact.told())).collect()
    }

    /// Formats every row as `state key=value`.
    fn rows(conn: &mut Conn) -> Vec<String> {
        let rows: Vec<(String, String, String)> = user_facts::table
            .order(user_facts::id)
            .select((user_facts::state, user_facts::key, user_facts::value))
            .load(conn)
            .unwrap();
        rows.into_iter().map(|(state, key, value)| format!("{state} {key}={value}")).collect()
    }

    #[test]
    fn the_newest_holds_under_the_number_of_the_older_and_saying_it_again_changes_nothing() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        say(&mut conn, ann, &dislikes("horror"), 1);
        assert_eq!(say(&mut conn, ann, &quality("4K"), 2), Noting::Noted(2));
        assert_eq!(say(&mut conn, ann, &quality("4K"), 3), Noting::Known(2));
        forget(&mut conn, ann, Which::Number(1), at(4)).unwrap();
        assert_eq!(say(&mut conn, ann, &quality("1080p"), 5), Noting::Noted(2));
        assert_eq!(list(&mut conn, ann), ["2 1080p quality"]);
        assert_eq!(rows(&mut conn), ["forgotten =", "superseded =4K", "active =1080p"]);
    }

    #[test]
    fn a_number_stays_with_its_fact_and_is_not_given_to_the_next_once_that_is_forgotten() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        for (second, what) in [(1, "horror"), (2, "musicals"), (3, "westerns")] {
            say(&mut conn, ann, &dislikes(what), second);
        }
        assert_eq!(forget(&mut conn, ann, Which::Number(2), at(4)), Ok(Some(dislikes("musicals"))));
        assert_eq!(list(&mut conn, ann), ["1 Dislikes horror", "3 Dislikes westerns"]);
        assert_eq!(forget(&mut conn, ann, Which::Number(2), at(5)), Ok(None));
        assert_eq!(forget(&mut conn, ann, Which::Number(3), at(5)), Ok(Some(dislikes("westerns"))));
        assert_eq!(say(&mut conn, ann, &quality("4K"), 6), Noting::Noted(4));
        let likes = Fact::new(FactKind::Like, None, "horror").unwrap();
        assert_eq!(say(&mut conn, ann, &likes, 7), Noting::Noted(1));
        assert_eq!(list(&mut conn, ann), ["1 Likes horror", "4 4K quality"]);
    }

    #[test]
    fn numbers_begin_again_where_none_is_left_and_none_is_had_twice() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        say(&mut conn, ann, &quality("4K"), 0);
        for second in 1..99 {
            let Noting::Noted(number) = say(&mut conn, ann, &dislikes(&format!("film {second}")), second)
            else {
                panic!("not noted");
            };
            forget(&mut conn, ann, Which::Number(number), at(second)).unwrap();
        }
        assert_eq!(say(&mut conn, ann, &dislikes("horror"), 100), Noting::Noted(2));
    }

    #[test]
    fn what_is_forgotten_leaves_no_word_of_itself_or_of_what_it_replaced() {
        let mut conn = scratch();
        let (ann, bob) = (person(&mut conn, "+15550100001"), person(&mut conn, "+15550100002"));
        for (second, what) in [(1, "4K"), (2, "1080p")] {
            say(&mut conn, ann, &quality(what), second);
            say(&mut conn, bob, &quality(what), second);
        }
        assert_eq!(
            forget(&mut conn, ann, Which::Key(FactKind::Quality, ""), at(3)),
            Ok(Some(quality("1080p")))
        );
        assert_eq!(rows(&mut conn), ["forgotten =", "superseded =4K", "forgotten =", "active =1080p"]);
        erase(&mut conn, bob, at(4)).unwrap();
        assert_eq!(rows(&mut conn), ["forgotten ="; 4]);
        assert_eq!(known(&mut conn, bob).unwrap(), Facts::default());
    }

    #[test]
    fn what_a_name_meant_before_goes_with_it_whatever_its_article() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        for (second, name, title) in [(1, "office", "The Office (US)"), (2, "the office", "The Office (UK)")]
        {
            say(&mut conn, ann, &Fact::new(FactKind::Alias, Some(name), title).unwrap(), second);
        }
        forget(&mut conn, ann, Which::Number(1), at(3)).unwrap();
        assert_eq!(rows(&mut conn), ["forgotten ="; 2]);
    }

    #[test]
    fn nobody_has_more_facts_than_are_kept_and_an_older_one_can_still_be_replaced() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        say(&mut conn, ann, &quality("4K"), 0);
        for second in 1..40 {
            say(&mut conn, ann, &dislikes(&format!("film {second}")), second);
        }
        assert_eq!(say(&mut conn, ann, &dislikes("horror"), 40), Noting::Full);
        assert_eq!(say(&mut conn, ann, &quality("1080p"), 41), Noting::Noted(1));
        assert_eq!(list(&mut conn, ann).len(), 40);
    }

    #[test]
    fn a_suggestion_holds_only_once_it_is_kept_and_does_not_come_back_dismissed() {
        let mut conn = scratch();
        let (ann, bob) = (person(&mut conn, "+15550100001"), person(&mut conn, "+15550100002"));
        for fact in [quality("4K"), dislikes("horror"), dislikes("horror")] {
            suggest(&mut conn, ann, &fact, at(1)).unwrap();
        }
        assert_eq!(list(&mut conn, ann), [""; 0]);
        let waiting = suggestions(&mut conn, ann).unwrap();
        assert_eq!(
            waiting.iter().map(|one| one.fact.clone()).collect::<Vec<_>>(),
            [quality("4K"), dislikes("horror")]
        );
        assert_eq!(accept(&mut conn, bob, waiting[0].id, at(2)), Ok(None));
        assert_eq!(accept(&mut conn, ann, waiting[0].id, at(2)), Ok(Some((quality("4K"), Noting::Noted(1)))));
        assert_eq!(dismiss(&mut conn, bob, waiting[1].id, at(2)), Ok(false));
        assert_eq!(dismiss(&mut conn, ann, waiting[1].id, at(2)), Ok(true));
        for fact in [quality("4K"), dislikes("horror")] {
            suggest(&mut conn, ann, &fact, at(3)).unwrap();
        }
        assert_eq!(suggestions(&mut conn, ann).unwrap(), []);
        assert_eq!(list(&mut conn, ann), ["1 4K quality"]);
    }

    #[test]
    fn suggestions_are_few_and_what_is_said_or_old_ends_them() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        for second in 1..=7 {
            suggest(&mut conn, ann, &dislikes(&format!("film {second}")), at(second)).unwrap();
        }
        let waiting = |conn: &mut Conn| {
            let waiting = suggestions(conn, ann).unwrap();
            waiting.into_iter().map(|one| one.fact.value).collect::<Vec<_>>()
        };
        assert_eq!(waiting(&mut conn), ["film 3", "film 4", "film 5", "film 6", "film 7"]);
        say(&mut conn, ann, &dislikes("film 5"), 8);
        assert_eq!(waiting(&mut conn), ["film 3", "film 4", "film 6", "film 7"]);
        erase_ended(&mut conn, at(6), 10, at(20)).unwrap();
        assert_eq!(waiting(&mut conn), ["film 6", "film 7"]);
    }

    #[test]
    fn words_that_no_longer_hold_go_with_their_time_and_others_stay() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        for (second, what) in [(1, "720p"), (2, "1080p"), (9, "4K")] {
            say(&mut conn, ann, &quality(what), second);
        }
        assert_eq!(erase_ended(&mut conn, at(5), 10, at(20)), Ok(1));
        assert_eq!(rows(&mut conn), ["forgotten =", "superseded =1080p", "active =4K"]);
        assert_eq!(erase_ended(&mut conn, at(5), 10, at(20)), Ok(0));
    }
}
