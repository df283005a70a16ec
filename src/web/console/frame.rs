//! What every page has around its own content, and how times are written.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::web::auth::{Leaving, Operator};

/// The part of the console that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum Place {
    Home,
    Conversations,
    Users,
    Deliveries,
    Spend,
    Memory,
    Health,
    Audit,
    Keys,
}

impl Place {
    const ALL: [Self; 9] = [
        Self::Home,
        Self::Conversations,
        Self::Users,
        Self::Deliveries,
        Self::Spend,
        Self::Memory,
        Self::Health,
        Self::Audit,
        Self::Keys,
    ];

    fn path(self) -> &'static str {
        match self {
            Self::Home => "/",
            Self::Conversations => "/conversations",
            Self::Users => "/users",
            Self::Deliveries => "/deliveries",
            Self::Spend => "/spend",
            Self::Memory => "/memory",
            Self::Health => "/health-checks",
            Self::Audit => "/audit",
            Self::Keys => "/keys",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Home => "Home",
            Self::Conversations => "Conversations",
            Self::Users => "Users",
            Self::Deliveries => "Deliveries",
            Self::Spend => "Spend",
            Self::Memory => "Memory",
            Self::Health => "Health",
            Self::Audit => "Audit",
            Self::Keys => "API keys",
        }
    }
}

/// What surrounds the content of a page.
pub(in crate::web) struct Frame {
    pub(in crate::web) title: String,
    here: Place,
    /// What a form must send back to be believed.
    pub(in crate::web) token: String,
    /// Whether there is anything to sign out of.
    pub(in crate::web) can_leave: bool,
}

/// A line of the navigation.
pub(in crate::web) struct Link {
    pub(in crate::web) path: &'static str,
    pub(in crate::web) name: &'static str,
    pub(in crate::web) is_here: bool,
}

impl Frame {
    pub(in crate::web) fn new(operator: &Operator, here: Place, title: impl Into<String>) -> Self {
        let can_leave = operator.leaving() == Leaving::Possible;
        Self { title: title.into(), here, token: operator.form_token().to_owned(), can_leave }
    }

    pub(in crate::web) fn links(&self) -> impl Iterator<Item = Link> {
        let here = self.here;
        let link =
            move |place: Place| Link { path: place.path(), name: place.name(), is_here: place == here };
        Place::ALL.into_iter().map(link)
    }
}

/// A point in time as a page shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::web) struct When {
    /// For programs and for whoever points at it.
    pub(in crate::web) iso: String,
    /// `21:04` today, `Nov 20, 21:04` otherwise.
    pub(in crate::web) shown: String,
}

impl When {
    pub(in crate::web) fn of(at: Timestamp, now: Timestamp, zone: &TimeZone) -> Self {
        let (at, now) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
        let form = if at.date() == now.date() {
            "%H:%M"
        } else if at.year() == now.year() {
            "%b %-d, %H:%M"
        } else {
            "%b %-d, %Y"
        };
        Self {
            iso: at.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            shown: at.strftime(form).to_string(),
        }
    }
}

/// A page as it goes to the browser.
pub(in crate::web) fn page(content: &impl Template) -> Response {
    match content.render() {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::{self, TimeZone};

    use super::When;

    #[track_caller]
    fn check(at: &str, expected: &str) {
        let zone = TimeZone::fixed(tz::offset(1));
        let now: Timestamp = "2026-11-20T21:04:00Z".parse().unwrap();
        let at: Timestamp = at.parse().unwrap();
        assert_eq!(When::of(at, now, &zone).shown, expected);
    }

    #[test]
    fn a_time_is_written_in_the_zone_and_as_short_as_its_age_allows() {
        check("2026-11-20T20:00:00Z", "21:00");
        check("2026-11-20T23:30:00Z", "Nov 21, 00:30");
        check("2026-11-19T08:00:00Z", "Nov 19, 09:00");
        check("2025-12-31T08:00:00Z", "Dec 31, 2025");
    }
}
