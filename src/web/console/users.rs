//! List of all users.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;

use super::answers::{Asked, Shown};
use super::frame::{Frame, Place, When, page};
use super::said::{self, Said};
use crate::conversation::rate::Rate;
use crate::conversation::transcript::{Rights, Role, Status, User};
use crate::store::console::people::{self, Listing};
use crate::store::roster::Limit;
use crate::web::auth::Operator;
use crate::web::console_state::ConsoleState;

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct Query {
    #[serde(default, deserialize_with = "said::known")]
    said: Option<Said>,
}

#[derive(Template)]
#[template(path = "users.html")]
struct Users {
    frame: Frame,
    people: Vec<Row>,
}

struct Row {
    path: String,
    name: Option<String>,
    number: String,
    is_test: bool,
    role: &'static str,
    status: (&'static str, &'static str),
    is_opted_out: bool,
    may: String,
    movies: Used,
    seasons: Used,
    last_text: Option<When>,
}

/// Used part of a limit.
pub(super) struct Used {
    pub(super) used: u32,
    /// Limit; none for a user without a limit.
    pub(super) most: Option<u32>,
    /// Label such as `3 of 10`.
    pub(super) told: String,
}

impl Used {
    pub(super) fn of(used: u32, limit: Limit, (rate, role): (Option<Rate>, Role)) -> Self {
        let most = match (role, rate, limit) {
            (Role::Admin, ..) | (_, None, _) => None,
            (Role::Member, Some(rate), Limit::Household) => Some(rate.most),
            (Role::Member, Some(_), Limit::Own(own)) => Some(own),
        };
        let told = match most {
            Some(most) => format!("{used} of {most}"),
            None => "no limit".to_owned(),
        };
        Self { used, most, told }
    }
}

pub(in crate::web) async fn list(
    State(console): State<ConsoleState>,
    operator: Operator,
    Asked(query): Asked<Query>,
) -> Shown {
    let (quotas, now) = (console.engine.quotas(), console.clock.now());
    let everyone =
        console.db.read(move |conn| people::everyone(conn, (quotas.movies, quotas.seasons), now)).await?;
    let row = |listing: &Listing| Row::of(listing, (quotas.movies, quotas.seasons), &console);
    Ok(page(&Users {
        frame: Frame::new(&operator, Place::Users, "Users").saying(query.said),
        people: everyone.iter().map(row).collect(),
    }))
}

impl Row {
    fn of(
        listing: &Listing,
        (movies, seasons): (Option<Rate>, Option<Rate>),
        console: &ConsoleState,
    ) -> Self {
        let person = &listing.person;
        let user = &person.user;
        let role = user.rights.role;
        Self {
            path: format!("/users/{}", user.id),
            name: user.name.clone(),
            number: user.phone.spaced(),
            is_test: listing.is_test,
            role: role_word(role),
            status: status(user),
            is_opted_out: user.opted_out,
            may: may(user.rights),
            movies: Used::of(listing.movies, person.movies, (movies, role)),
            seasons: Used::of(listing.seasons, person.seasons, (seasons, role)),
            last_text: person.last_text.map(|at| console.when(at)),
        }
    }
}

pub(super) fn role_word(role: Role) -> &'static str {
    match role {
        Role::Admin => "Admin",
        Role::Member => "Member",
    }
}

/// Returns the CSS class and the label of a user's status.
pub(super) fn status(user: &User) -> (&'static str, &'static str) {
    match user.status {
        Status::Pending => ("warn", "Pending"),
        Status::Active => ("good", "Active"),
        Status::Blocked => ("bad", "Blocked"),
    }
}

/// Formats a user's permissions beyond making requests.
fn may(rights: Rights) -> String {
    let rights = [("add", rights.may_add()), ("delete", rights.may_delete()), ("4K", rights.may_four_k())];
    let granted: Vec<&str> = rights.into_iter().filter(|(_, granted)| *granted).map(|(may, _)| may).collect();
    if granted.is_empty() { "ask".to_owned() } else { granted.join(", ") }
}
