//! Page of one user: facts, settings and permissions.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;

use super::answers::{Asked, Failure, Id, Shown};
use super::facts::{self, FactLine, SuggestionLine};
use super::frame::{Frame, Place, When, page};
use super::home::TalkLine;
use super::said::{self, Said};
use super::spend::{Row as SpentRow, first_day};
use super::users::{Used, role_word, status};
use super::words::called;
use crate::conversation::facts::Facts;
use crate::conversation::rate::Rate;
use crate::conversation::transcript::{Role, Status, UserId};
use crate::store::console::people::{self, Known, Wanted, WantedState};
use crate::store::console::spending::{self, Spent};
use crate::store::console::talks::{self, Talk};
use crate::store::console::{Listed, NEWEST};
use crate::store::memory::facts::{self as kept, Suggestion};
use crate::store::spend::Day;
use crate::web::auth::Operator;
use crate::web::console_state::ConsoleState;

const FITS: usize = 10;

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct Query {
    /// Cursor: conversations older than this one.
    before: Option<i64>,
    /// Cursor: titles older than this one.
    titles_before: Option<i64>,
    #[serde(default, deserialize_with = "said::known")]
    said: Option<Said>,
}

#[derive(Template)]
#[template(path = "user.html")]
struct Page {
    frame: Frame,
    id: i64,
    called: String,
    number: String,
    is_test: bool,
    role: &'static str,
    status: (&'static str, &'static str),
    since: When,
    last_text: Option<When>,
    opted_out: Option<When>,
    /// True if deletions and approvals by text are suspended, after too many wrong codes.
    is_suspended: bool,
    notices: String,
    form: Form,
    is_admin: bool,
    is_blocked: bool,
    is_active: bool,
    limits: Vec<LimitLine>,
    spent: SpentRow,
    is_priced: bool,
    facts: Vec<FactLine>,
    suggestions: Vec<SuggestionLine>,
    titles: Vec<Title>,
    older_titles: Option<String>,
    talks: Vec<TalkLine>,
    older_talks: Option<String>,
}

/// Settings that can be changed, with their current values.
struct Form {
    name: String,
    add: bool,
    delete: bool,
    four_k: bool,
    movies: String,
    seasons: String,
    household_movies: String,
    household_seasons: String,
}

struct LimitLine {
    what: &'static str,
    within: String,
    used: Used,
}

struct Title {
    title: String,
    seasons: Option<String>,
    state: (&'static str, &'static str),
    at: When,
}

struct Read {
    known: Known,
    facts: Facts,
    suggestions: Vec<Suggestion>,
    titles: Listed<Wanted>,
    talks: Listed<Talk>,
    spent: Spent,
}

pub(in crate::web) async fn show(
    State(console): State<ConsoleState>,
    operator: Operator,
    Id(id): Id,
    Asked(query): Asked<Query>,
) -> Shown {
    let (quotas, now) = (console.engine.quotas(), console.clock.now());
    let (movies, seasons) = (quotas.movies, quotas.seasons);
    let first = first_day(now, &console).to_string();
    let user = UserId(id);
    let read = console.db.read(move |conn| {
        let Some(known) = people::one(conn, user, (movies, seasons), now)? else { return Ok(None) };
        Ok(Some(Read {
            known,
            facts: kept::known(conn, user)?,
            suggestions: kept::suggestions(conn, user)?,
            titles: people::wanted(conn, user, query.titles_before.unwrap_or(NEWEST), FITS)?,
            talks: talks::of_person(conn, user, query.before.unwrap_or(NEWEST), FITS)?,
            spent: spending::of_person(conn, user, &first)?,
        }))
    });
    let Some(read) = read.await? else { return Err(Failure::Missing) };
    let frame = Frame::new(&operator, Place::Users, called(&read.known.person.user)).saying(query.said);
    Ok(page(&Page::of(frame, &read, (movies, seasons), &console)))
}

impl Page {
    fn of(
        frame: Frame,
        read: &Read,
        (movies, seasons): (Option<Rate>, Option<Rate>),
        console: &ConsoleState,
    ) -> Self {
        let Read { known, facts, suggestions, titles, talks, spent } = read;
        let user = &known.person.user;
        let (id, role) = (user.id.0, user.rights.role);
        let limit = |what, used, own, rate: Option<Rate>| LimitLine {
            what,
            within: rate.map(within).unwrap_or_default(),
            used: Used::of(used, own, (rate, role)),
        };
        Self {
            frame,
            id,
            called: called(user),
            number: user.phone.spaced(),
            is_test: known.is_test,
            role: role_word(role),
            status: status(user),
            since: console.when(known.since),
            last_text: known.person.last_text.map(|at| console.when(at)),
            opted_out: known.opted_out_at.map(|at| console.when(at)),
            is_suspended: known.person.code_misses.suspend_on(&Day::of(console.clock.now(), &console.zone)),
            notices: notices(known),
            form: Form::of(known, (movies, seasons)),
            is_admin: role == Role::Admin,
            is_blocked: user.status == Status::Blocked,
            is_active: user.status == Status::Active,
            limits: vec![
                limit("Movies", known.movies, known.person.movies, movies),
                limit("Seasons", known.seasons, known.person.seasons, seasons),
            ],
            is_priced: spent.cost > 0,
            spent: (*spent).into(),
            facts: facts::lines(facts, console),
            suggestions: facts::suggested(suggestions, console),
            titles: titles.rows.iter().map(|wanted| Title::of(wanted, console)).collect(),
            older_titles: titles.older.map(|at| format!("/users/{id}?titles_before={at}#titles")),
            talks: talks.rows.iter().map(|talk| TalkLine::of(talk, console)).collect(),
            older_talks: talks.older.map(|at| format!("/users/{id}?before={at}#conversations")),
        }
    }
}

impl Form {
    fn of(known: &Known, (movies, seasons): (Option<Rate>, Option<Rate>)) -> Self {
        let rights = known.person.user.rights;
        let own = |own: Option<u32>| own.map(|own| own.to_string()).unwrap_or_default();
        let household =
            |rate: Option<Rate>| rate.map_or_else(|| "none".to_owned(), |rate| rate.most.to_string());
        Self {
            name: known.person.user.name.clone().unwrap_or_default(),
            add: rights.add,
            delete: rights.delete,
            four_k: rights.four_k,
            movies: own(known.own.movies),
            seasons: own(known.own.seasons),
            household_movies: household(movies),
            household_seasons: household(seasons),
        }
    }
}

/// Formats the period of a limit, such as `in 7 days`.
fn within(rate: Rate) -> String {
    let whole = rate.of("");
    whole.split_once("within ").map_or(String::new(), |(_, stretch)| format!("in {stretch}"))
}

fn notices(known: &Known) -> String {
    match (known.wants_notices, known.quiet) {
        (false, _) => "off".to_owned(),
        (true, None) => "on".to_owned(),
        (true, Some((from, to))) => format!("on, quiet from {from}:00 to {to}:00"),
    }
}

impl Title {
    fn of(wanted: &Wanted, console: &ConsoleState) -> Self {
        let year = if wanted.year == 0 { String::new() } else { format!(" ({})", wanted.year) };
        let seasons = wanted.seasons.as_ref().map(|seasons| {
            let numbers: Vec<String> = seasons.iter().map(u32::to_string).collect();
            format!("seasons {}", numbers.join(", "))
        });
        Self {
            title: format!("{}{year}", wanted.title),
            seasons,
            state: match wanted.state {
                WantedState::Waiting => ("warn", "Tried again"),
                WantedState::Added => ("good", "Added"),
                WantedState::GivenUp => ("", "Given up"),
            },
            at: console.when(wanted.at),
        }
    }
}
