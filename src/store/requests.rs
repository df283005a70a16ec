//! Who asked for which title, and the additions that are tried again until they are made or given up.

use diesel::dsl::max;
use diesel::prelude::*;
use jiff::Timestamp;

use super::Conn;
use super::calls::Start;
use super::codec::{
    arguments, arguments_json, from_json, if_readable, kind, kind_word, ms, number, time, to_json, unreadable,
};
use super::schema::requests;
use super::written::Written;
use crate::conversation::requests::{Stage, Wanted, pause_after};
use crate::conversation::transcript::{Arguments, CallRow, UserId};

/// The condition of the index of what is still to be tried.
const DUE: Written = Written("requests.next_try_at IS NOT NULL");
/// The last requests that a tool is told of.
const LATELY: i64 = 500;

/// A title is in the library and somebody asked for it. What they have waiting of it is settled with that.
pub fn remember(
    conn: &mut Conn,
    user: UserId,
    call: CallRow,
    wanted: &Wanted,
    now: Timestamp,
) -> QueryResult<()> {
    if let Some(waiting) = waiting(conn, user, wanted)? {
        settle(conn, waiting, &End::Added(wanted), now)?;
    }
    diesel::insert_into(requests::table)
        .values((
            (requests::user_id.eq(user.0), requests::tool_call_id.eq(call.0)),
            (requests::instance.eq(&wanted.instance), requests::kind.eq(kind_word(wanted.kind))),
            (requests::catalog_id.eq(wanted.catalog_id), requests::title.eq(&wanted.title)),
            (requests::year.eq(i64::from(wanted.year)), requests::seasons.eq(seasons_json(wanted)?)),
            (requests::state.eq("added"), requests::tries.eq(0)),
            (requests::created_at.eq(ms(now)), requests::settled_at.eq(ms(now))),
        ))
        .on_conflict_do_nothing()
        .execute(conn)
        .map(drop)
}

/// An addition that is to be tried later.
#[derive(Debug, Clone, Copy)]
pub struct NewQueued<'a> {
    pub user: UserId,
    pub call: CallRow,
    pub wanted: &'a Wanted,
    pub arguments: &'a Arguments,
}

/// What the same person has waiting of a title is replaced: their last word counts.
pub fn queue(conn: &mut Conn, new: &NewQueued<'_>, now: Timestamp) -> QueryResult<()> {
    let NewQueued { user, call, wanted, .. } = *new;
    let request = (
        (requests::tool_call_id.eq(call.0), requests::title.eq(&wanted.title)),
        (requests::year.eq(i64::from(wanted.year)), requests::seasons.eq(seasons_json(wanted)?)),
        requests::arguments.eq(arguments_json(new.arguments)),
        requests::created_at.eq(ms(now)),
    );
    if let Some(waiting) = waiting(conn, user, wanted)? {
        // One that is being tried at this moment stays as it is: it ends with a text like this one.
        let not_under_way = requests::table.find(waiting).filter(requests::state.eq("queued"));
        return diesel::update(not_under_way).set(request).execute(conn).map(drop);
    }
    diesel::insert_into(requests::table)
        .values((
            request,
            (requests::user_id.eq(user.0), requests::instance.eq(&wanted.instance)),
            (requests::kind.eq(kind_word(wanted.kind)), requests::catalog_id.eq(wanted.catalog_id)),
            (requests::state.eq("queued"), requests::next_try_at.eq(ms(now + pause_after(0)))),
        ))
        .execute(conn)
        .map(drop)
}

/// What a person has waiting of a title.
fn waiting(conn: &mut Conn, user: UserId, wanted: &Wanted) -> QueryResult<Option<i64>> {
    requests::table
        .filter(requests::kind.eq(kind_word(wanted.kind)).and(requests::catalog_id.eq(wanted.catalog_id)))
        .filter(requests::instance.eq(&wanted.instance).and(requests::user_id.eq(user.0)))
        .filter(requests::next_try_at.is_not_null())
        .select(requests::id)
        .first(conn)
        .optional()
}

/// Whether a title that was given up may come all the same: somebody else waits for it, or has been given it before.
pub fn may_come(conn: &mut Conn, wanted: &Wanted) -> QueryResult<bool> {
    let other: Option<i64> = requests::table
        .filter(requests::kind.eq(kind_word(wanted.kind)).and(requests::catalog_id.eq(wanted.catalog_id)))
        .filter(requests::instance.eq(&wanted.instance).and(requests::state.ne("given_up")))
        .select(requests::id)
        .first(conn)
        .optional()?;
    Ok(other.is_some())
}

/// What is tried next, and when.
pub fn next(conn: &mut Conn) -> QueryResult<Option<(i64, Timestamp)>> {
    let next: Option<(i64, Option<i64>)> = requests::table
        .filter(DUE)
        .order((requests::next_try_at, requests::id))
        .select((requests::id, requests::next_try_at))
        .first(conn)
        .optional()?;
    let Some((id, at)) = next else { return Ok(None) };
    Ok(Some((id, time(at.ok_or_else(|| unreadable("request"))?)?)))
}

/// An addition that is tried until it is made or given up.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    pub id: i64,
    pub user: UserId,
    pub call: CallRow,
    pub wanted: Wanted,
    pub arguments: Arguments,
    pub trying: Trying,
    pub tries: u32,
    pub asked_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trying {
    /// Certainly not made yet.
    Waiting,
    /// A try was begun, and nobody knows what came of it.
    UnderWay,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = requests)]
struct Row {
    id: i64,
    user_id: i64,
    tool_call_id: Option<i64>,
    instance: String,
    kind: String,
    catalog_id: i64,
    title: String,
    year: i64,
    seasons: Option<String>,
    state: String,
    arguments: Option<String>,
    tries: i64,
    created_at: i64,
}

impl Row {
    fn wanted(&self) -> QueryResult<Wanted> {
        Ok(Wanted {
            instance: self.instance.clone(),
            kind: kind(&self.kind)?,
            catalog_id: self.catalog_id,
            title: self.title.clone(),
            year: number(self.year)?,
            seasons: self.seasons.as_deref().map(|text| from_json("seasons", text)).transpose()?,
        })
    }

    fn open(self) -> QueryResult<Option<Open>> {
        let trying = match self.state.as_str() {
            "queued" => Trying::Waiting,
            "adding" => Trying::UnderWay,
            "added" | "given_up" => return Ok(None),
            _ => return Err(unreadable("request state")),
        };
        let missing = || unreadable("request");
        Ok(Some(Open {
            wanted: self.wanted()?,
            id: self.id,
            user: UserId(self.user_id),
            call: CallRow(self.tool_call_id.ok_or_else(missing)?),
            arguments: arguments(&self.arguments.ok_or_else(missing)?)?,
            trying,
            tries: number(self.tries)?,
            asked_at: time(self.created_at)?,
        }))
    }
}

/// `None` once it is settled.
pub fn open(conn: &mut Conn, id: i64) -> QueryResult<Option<Open>> {
    let row: Option<Row> = requests::table.find(id).select(Row::as_select()).first(conn).optional()?;
    row.map_or(Ok(None), Row::open)
}

/// Writes the intent to add.
pub fn start(conn: &mut Conn, id: i64) -> QueryResult<Start> {
    let started = diesel::update(requests::table.find(id).filter(requests::state.eq("queued")))
        .set((requests::state.eq("adding"), requests::tries.eq(requests::tries + 1)))
        .execute(conn)?;
    Ok(if started == 1 { Start::Started } else { Start::NotStartable })
}

/// Certainly not made: it is tried again at `at`.
pub fn try_at(conn: &mut Conn, id: i64, at: Timestamp) -> QueryResult<()> {
    diesel::update(requests::table.find(id).filter(requests::next_try_at.is_not_null()))
        .set((requests::state.eq("queued"), requests::next_try_at.eq(ms(at))))
        .execute(conn)
        .map(drop)
}

/// What stands, stands until `at`, when it is looked at again.
pub fn look_at(conn: &mut Conn, id: i64, at: Timestamp) -> QueryResult<()> {
    diesel::update(requests::table.find(id).filter(requests::next_try_at.is_not_null()))
        .set(requests::next_try_at.eq(ms(at)))
        .execute(conn)
        .map(drop)
}

/// How a request ends.
#[derive(Debug, Clone, Copy)]
pub enum End<'a> {
    /// The title is in the library, with the name that it has there.
    Added(&'a Wanted),
    GivenUp,
}

/// Whether a request was still open when it was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settling {
    Settled,
    /// The person has left meanwhile, or has it already: nobody waits for word of it.
    Withdrawn,
}

pub fn settle(conn: &mut Conn, id: i64, end: &End<'_>, now: Timestamp) -> QueryResult<Settling> {
    let open = requests::table.find(id).filter(requests::next_try_at.is_not_null());
    let settled = (
        requests::next_try_at.eq(None::<i64>),
        requests::arguments.eq(None::<String>),
        requests::settled_at.eq(ms(now)),
    );
    let changed = match end {
        End::Added(wanted) => diesel::update(open)
            .set((
                settled,
                (requests::state.eq("added"), requests::title.eq(&wanted.title)),
                (requests::year.eq(i64::from(wanted.year)), requests::seasons.eq(seasons_json(wanted)?)),
            ))
            .execute(conn)?,
        End::GivenUp => diesel::update(open).set((settled, requests::state.eq("given_up"))).execute(conn)?,
    };
    Ok(if changed == 1 { Settling::Settled } else { Settling::Withdrawn })
}

/// Gives up, without a word, everything that a person has waiting.
pub fn withdraw(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    // What waits is little, whoever it is of.
    let waiting: Vec<i64> =
        requests::table.filter(DUE.and(requests::user_id.eq(user.0))).select(requests::id).load(conn)?;
    for id in waiting {
        settle(conn, id, &End::GivenUp, now)?;
    }
    Ok(())
}

/// That somebody asked for a title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub user: UserId,
    pub wanted: Wanted,
    pub stage: Stage,
    pub at: Timestamp,
}

/// What the household asked for lately and has, or waits for; oldest first.
pub fn lately(conn: &mut Conn) -> QueryResult<Vec<Asked>> {
    let last: Option<i64> = requests::table.select(max(requests::id)).first(conn)?;
    let rows: Vec<Row> = requests::table
        .filter(requests::id.gt(last.unwrap_or(0) - LATELY))
        .filter(requests::state.ne("given_up"))
        .order(requests::id)
        .select(Row::as_select())
        .load(conn)?;
    let read = |row: Row| {
        let stage = match row.state.as_str() {
            "queued" | "adding" => Stage::Waiting,
            "added" => Stage::InLibrary,
            _ => return Err(unreadable("request state")),
        };
        Ok(Asked { user: UserId(row.user_id), wanted: row.wanted()?, stage, at: time(row.created_at)? })
    };
    // Every tool is told of them, so one that cannot be read must not fail the tools.
    rows.into_iter().filter_map(|row| if_readable(read(row)).transpose()).collect()
}

fn seasons_json(wanted: &Wanted) -> QueryResult<Option<String>> {
    wanted.seasons.as_ref().map(to_json).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::{MediaKind, PhoneNumber};
    use crate::store::scratch;
    use crate::store::users::{self, Newcomer};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn person(conn: &mut Conn, phone: &str) -> UserId {
        users::ensure(conn, &PhoneNumber::parse(phone).unwrap(), Newcomer::Member, NOW).unwrap()
    }

    fn wanted(title: &str) -> Wanted {
        Wanted {
            instance: "radarr".into(),
            kind: MediaKind::Movie,
            catalog_id: 438_631,
            title: title.into(),
            year: 2021,
            seasons: None,
        }
    }

    fn queues(conn: &mut Conn, user: UserId, call: i64, wanted: &Wanted) {
        // The calls themselves are of no interest here.
        diesel::sql_query("PRAGMA foreign_keys=OFF").execute(conn).unwrap();
        let arguments = Arguments::parse(serde_json::json!({ "tmdb": 438_631 }));
        queue(conn, &NewQueued { user, call: CallRow(call), wanted, arguments: &arguments }, NOW).unwrap();
    }

    fn states(conn: &mut Conn) -> Vec<(i64, String, String)> {
        requests::table
            .order(requests::id)
            .select((requests::user_id, requests::state, requests::title))
            .load(conn)
            .unwrap()
    }

    #[test]
    fn what_one_person_has_waiting_of_a_title_waits_once_and_their_last_word_counts() {
        let mut conn = scratch();
        let (ann, bob) = (person(&mut conn, "+15550100001"), person(&mut conn, "+15550100002"));
        for (user, call, title) in [(ann, 1, ""), (ann, 2, "Dune"), (bob, 3, "")] {
            queues(&mut conn, user, call, &wanted(title));
        }
        let one = |user: UserId, title: &str| (user.0, "queued".to_owned(), title.to_owned());
        assert_eq!(states(&mut conn), [one(ann, "Dune"), one(bob, "")]);
        assert_eq!(next(&mut conn).unwrap(), Some((1, NOW + pause_after(0))));
    }

    #[test]
    fn a_try_is_begun_once_and_stays_open_until_its_outcome_is_known() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        queues(&mut conn, ann, 1, &wanted(""));
        assert_eq!(
            [start(&mut conn, 1).unwrap(), start(&mut conn, 1).unwrap()],
            [Start::Started, Start::NotStartable]
        );
        let under_way = open(&mut conn, 1).unwrap().unwrap();
        assert_eq!((under_way.trying, under_way.tries), (Trying::UnderWay, 1));
        let end = End::Added(&wanted("Dune"));
        assert_eq!(settle(&mut conn, 1, &end, NOW).unwrap(), Settling::Settled);
        assert_eq!(settle(&mut conn, 1, &End::GivenUp, NOW).unwrap(), Settling::Withdrawn);
        assert_eq!(states(&mut conn), [(ann.0, "added".to_owned(), "Dune".to_owned())]);
        assert_eq!((open(&mut conn, 1).unwrap(), next(&mut conn).unwrap()), (None, None));
    }

    #[test]
    fn who_has_the_title_by_another_way_waits_no_longer() {
        let mut conn = scratch();
        let ann = person(&mut conn, "+15550100001");
        queues(&mut conn, ann, 1, &wanted(""));
        remember(&mut conn, ann, CallRow(2), &wanted("Dune"), NOW).unwrap();
        assert_eq!(next(&mut conn).unwrap(), None);
        let asked = lately(&mut conn).unwrap();
        assert_eq!(
            asked.iter().map(|asked| (asked.user, asked.wanted.catalog_id)).collect::<Vec<_>>(),
            [(ann, 438_631), (ann, 438_631)]
        );
    }

    #[test]
    fn what_is_withdrawn_is_not_tried() {
        let mut conn = scratch();
        let (ann, bob) = (person(&mut conn, "+15550100001"), person(&mut conn, "+15550100002"));
        queues(&mut conn, ann, 1, &wanted(""));
        queues(&mut conn, bob, 2, &wanted(""));
        withdraw(&mut conn, ann, NOW).unwrap();
        assert_eq!(next(&mut conn).unwrap().map(|(id, _)| id), Some(2));
    }
}
