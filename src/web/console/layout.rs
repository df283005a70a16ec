//! Layout of the pages, and the format of times.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::flash::FlashMessage;
use crate::web::auth::{Operator, SignOutSupport};
use crate::web::console_state::ConsoleState;

/// Section of the console that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum ConsoleSection {
    Home,
    Conversations,
    Requests,
    Library,
    Users,
    Deliveries,
    Spend,
    Memory,
    Health,
    Audit,
    Settings,
    Keys,
    /// Links to other sections, for a phone.
    More,
}

impl ConsoleSection {
    const ALL: [Self; 12] = [
        Self::Home,
        Self::Conversations,
        Self::Requests,
        Self::Library,
        Self::Users,
        Self::Deliveries,
        Self::Spend,
        Self::Memory,
        Self::Health,
        Self::Audit,
        Self::Settings,
        Self::Keys,
    ];

    fn path(self) -> &'static str {
        match self {
            Self::Home => "/",
            Self::Conversations => "/conversations",
            Self::Requests => "/requests",
            Self::Library => "/library",
            Self::Users => "/users",
            Self::Deliveries => "/deliveries",
            Self::Spend => "/spend",
            Self::Memory => "/memory",
            Self::Health => "/health-checks",
            Self::Audit => "/audit",
            Self::Settings => "/settings",
            Self::Keys => "/keys",
            Self::More => "/more",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Home => "Home",
            Self::Conversations => "Conversations",
            Self::Requests => "Requests",
            Self::Library => "Library",
            Self::Users => "Users",
            Self::Deliveries => "Deliveries",
            Self::Spend => "Spend",
            Self::Memory => "Memory",
            Self::Health => "Health",
            Self::Audit => "Audit",
            Self::Settings => "Settings",
            Self::Keys => "API keys",
            Self::More => "More",
        }
    }

    /// Returns whether a phone shows the section in its navigation. The page "More" links to the others.
    fn is_primary(self) -> bool {
        match self {
            Self::Home | Self::Conversations | Self::Requests | Self::Library => true,
            Self::Users
            | Self::Deliveries
            | Self::Spend
            | Self::Memory
            | Self::Health
            | Self::Audit
            | Self::Settings
            | Self::Keys
            | Self::More => false,
        }
    }

    fn icon_path(self) -> &'static str {
        match self {
            Self::Home => "M4 11l8-7 8 7v8a1 1 0 0 1-1 1h-4v-6H9v6H5a1 1 0 0 1-1-1z",
            Self::Conversations => {
                "M4 6a2 2 0 0 1 2-2h12a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2h-7l-5 4v-4a2 2 0 0 1-2-2z"
            }
            Self::Requests => "M4 5h16v14H4zM8 5v14M16 5v14M4 12h4M16 12h4",
            Self::Library => "M5 4v16M9 4v16M13 4v16M16.5 4.5l4 15",
            Self::Users => {
                "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.5a3.5 3.5 0 0 1 0 6M18 14a6.5 6.5 0 0 1 3.5 6"
            }
            Self::Deliveries => "M21 3L3 10.5l7 3 3 7zM21 3L10 13.5",
            Self::Spend => "M4 20V10M10 20V4M16 20v-8M22 20H2",
            Self::Memory => "M5 4h11l3 3v13H5zM9 4v5h6V4M8 20v-6h8v6",
            Self::Health => "M2 12h5l2.5-7 5 14 2.5-7h5",
            Self::Audit => "M6 3h12v18H6zM9.5 8h5M9.5 12h5M9.5 16h3",
            Self::Settings => "M4 7h9M19 7h1M16 4v6M4 17h1M11 17h9M8 14v6",
            Self::More => "M4 7h16M4 12h16M4 17h16",
            Self::Keys => "M8 19a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM11 12l9-9M16 7l3 3",
        }
    }
}

/// Layout around the content of a page.
pub(in crate::web) struct PageLayout {
    pub(in crate::web) title: String,
    section: ConsoleSection,
    /// CSRF token that forms must send back.
    pub(in crate::web) token: String,
    /// True if the operator has a session to sign out of.
    pub(in crate::web) can_sign_out: bool,
    /// Outcome of the form that led to this page.
    pub(in crate::web) flash: Option<FlashMessage>,
}

/// Link in the navigation.
pub(in crate::web) struct NavLink {
    pub(in crate::web) path: &'static str,
    pub(in crate::web) name: &'static str,
    /// SVG path of its icon, in a box of 24 by 24.
    pub(in crate::web) icon_path: &'static str,
    pub(in crate::web) is_current: bool,
    /// True if a phone shows the link.
    pub(in crate::web) is_primary: bool,
}

impl PageLayout {
    pub(in crate::web) fn new(
        operator: &Operator,
        section: ConsoleSection,
        title: impl Into<String>,
    ) -> Self {
        let can_sign_out = operator.sign_out_support() == SignOutSupport::Supported;
        let token = operator.form_token().to_owned();
        Self { title: title.into(), section, token, flash: None, can_sign_out }
    }

    pub(in crate::web) fn with_flash(self, flash: Option<FlashMessage>) -> Self {
        Self { flash, ..self }
    }

    pub(in crate::web) fn links(&self) -> impl Iterator<Item = NavLink> {
        let current = self.section;
        let link = move |section: ConsoleSection| NavLink {
            path: section.path(),
            name: section.name(),
            icon_path: section.icon_path(),
            is_current: section == current,
            is_primary: section.is_primary(),
        };
        ConsoleSection::ALL.into_iter().map(link)
    }

    /// Returns whether this is the page "More".
    pub(in crate::web) fn is_more(&self) -> bool {
        self.section == ConsoleSection::More
    }

    /// Returns whether a phone marks "More" as current, because it has no link to the section of the page.
    pub(in crate::web) fn is_more_current(&self) -> bool {
        !self.section.is_primary()
    }
}

/// Time in the format of the pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::web) struct DisplayTime {
    /// Machine-readable time, also used as tooltip.
    pub(in crate::web) iso: String,
    /// Displayed time: `21:04` today, `Nov 20, 21:04` otherwise.
    pub(in crate::web) shown: String,
}

impl DisplayTime {
    pub(in crate::web) fn from_timestamp(at: Timestamp, now: Timestamp, zone: &TimeZone) -> Self {
        let (at, now) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
        let format = if at.date() == now.date() {
            "%H:%M"
        } else if at.year() == now.year() {
            "%b %-d, %H:%M"
        } else {
            "%b %-d, %Y"
        };
        Self {
            iso: at.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            shown: at.strftime(format).to_string(),
        }
    }
}

impl ConsoleState {
    /// Formats a time as the pages show it now.
    pub(in crate::web) fn display_time(&self, at: Timestamp) -> DisplayTime {
        DisplayTime::from_timestamp(at, self.clock.now(), &self.zone())
    }
}

/// Renders a page as a response to the browser.
pub(in crate::web) fn render_page(content: &impl Template) -> Response {
    match content.render() {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to render a page");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::{self, TimeZone};

    use super::DisplayTime;

    #[track_caller]
    fn check(at: &str, expected: &str) {
        let zone = TimeZone::fixed(tz::offset(1));
        let now: Timestamp = "2026-11-20T21:04:00Z".parse().unwrap();
        let at: Timestamp = at.parse().unwrap();
        assert_eq!(DisplayTime::from_timestamp(at, now, &zone).shown, expected);
    }

    #[test]
    fn display_time_is_local_and_shorter_when_recent() {
        check("2026-11-20T20:00:00Z", "21:00");
        check("2026-11-20T23:30:00Z", "Nov 21, 00:30");
        check("2026-11-19T08:00:00Z", "Nov 19, 09:00");
        check("2025-12-31T08:00:00Z", "Dec 31, 2025");
    }
}
