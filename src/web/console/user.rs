//! Page of one user: settings, permissions, usage, facts, conversations and title requests.

use askama::Template;
use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;

use super::conversation_line::ConversationLine;
use super::facts::{self, FactLine, SuggestionLine};
use super::flash::{self, FlashMessage};
use super::format::display_name;
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use super::responses::{PageError, PageId, PageParams, PageResult};
use super::spend::{SpendRow, first_day};
use super::user_addresses::AddressLine;
use super::users::{LimitUsage, role_label, status_label};
use crate::conversation::digest::schedule::DigestSchedule;
use crate::conversation::people::facts::UserFacts;
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::rating_caps::MinimumAge;
use crate::conversation::text::title::format_title;
use crate::conversation::transcript::{UserId, UserRole, UserStatus};
use crate::engine::Quotas;
use crate::store::console::conversations::{self, ConversationSummary};
use crate::store::console::requests::{self, RequestFilter, RequestSummary};
use crate::store::console::usage::{self, UsageTotals};
use crate::store::console::user_details::{self, UserDetails};
use crate::store::console::{NEWEST, ResultPage};
use crate::store::library::title_requests::RequestState;
use crate::store::memory::facts::{self as stored_facts, FactSuggestion};
use crate::store::turns::daily_budget::Day;
use crate::tools::formatting::to_gigabytes;
use crate::web::auth::Operator;
use crate::web::console_state::ConsoleState;

const PAGE_ROWS: usize = 10;
const BYTES_PER_GB: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct UserPageQuery {
    /// Cursor: conversations older than this one.
    before: Option<i64>,
    /// Cursor: titles older than this one.
    titles_before: Option<i64>,
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
}

#[derive(Template)]
#[template(path = "user.html")]
struct UserPage {
    layout: PageLayout,
    id: i64,
    display_name: String,
    addresses: Vec<AddressLine>,
    is_test: bool,
    role: &'static str,
    status: (&'static str, &'static str),
    since: DisplayTime,
    last_text: Option<DisplayTime>,
    opted_out: Option<DisplayTime>,
    /// True if deletions and approvals by text are suspended, after too many wrong codes.
    is_suspended: bool,
    notifications: String,
    form: SettingsView,
    is_admin: bool,
    is_blocked: bool,
    is_active: bool,
    limits: Vec<LimitLine>,
    spent: SpendRow,
    is_priced: bool,
    facts: Vec<FactLine>,
    suggestions: Vec<SuggestionLine>,
    titles: Vec<TitleLine>,
    older_titles: Option<String>,
    conversations: Vec<ConversationLine>,
    older_conversations: Option<String>,
}

/// Settings that can be changed, with their current values.
struct SettingsView {
    name: String,
    add: bool,
    delete: bool,
    four_k: bool,
    movies: String,
    seasons: String,
    space: String,
    /// Highest age ratings, empty without a cap.
    movie_age: String,
    show_age: String,
    parent: bool,
    /// Time of the weekly digest, empty without one.
    digest: String,
    household_movies: String,
    household_seasons: String,
    household_space: String,
}

struct LimitLine {
    name: &'static str,
    period: String,
    usage: LimitUsage,
}

struct TitleLine {
    title: String,
    seasons: Option<String>,
    state: (&'static str, &'static str),
    at: DisplayTime,
}

struct UserSnapshot {
    details: UserDetails,
    facts: UserFacts,
    suggestions: Vec<FactSuggestion>,
    titles: ResultPage<RequestSummary>,
    conversations: ResultPage<ConversationSummary>,
    spent: UsageTotals,
}

pub(in crate::web) async fn show_user(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageId(id): PageId,
    PageParams(query): PageParams<UserPageQuery>,
) -> PageResult {
    let (quotas, now) = (console.engine.decisions.default_quotas(), console.clock.now());
    let (movies, seasons) = (quotas.movies, quotas.seasons);
    let first = first_day(now, &console).to_string();
    let user = UserId(id);
    let load = console.db.read(move |conn| {
        let Some(details) = user_details::load_user_details(conn, user, (movies, seasons), now)? else {
            return Ok(None);
        };
        Ok(Some(UserSnapshot {
            details,
            facts: stored_facts::load_facts(conn, user)?,
            suggestions: stored_facts::load_fact_suggestions(conn, user)?,
            titles: requests::load_request_summaries(
                conn,
                RequestFilter::By(user),
                query.titles_before.unwrap_or(NEWEST),
                PAGE_ROWS,
            )?,
            conversations: conversations::load_user_conversations(
                conn,
                user,
                query.before.unwrap_or(NEWEST),
                PAGE_ROWS,
            )?,
            spent: usage::load_user_usage(conn, user, &first)?,
        }))
    });
    let Some(snapshot) = load.await? else { return Err(PageError::NotFound) };
    let layout =
        PageLayout::new(&operator, ConsoleSection::Users, display_name(&snapshot.details.account.user))
            .with_flash(query.flash);
    Ok(render_page(&UserPage::from_snapshot(layout, &snapshot, quotas, &console)))
}

impl UserPage {
    fn from_snapshot(
        layout: PageLayout,
        snapshot: &UserSnapshot,
        quotas: Quotas,
        console: &ConsoleState,
    ) -> Self {
        let UserSnapshot { details, facts, suggestions, titles, conversations, spent } = snapshot;
        let user = &details.account.user;
        let (id, role) = (user.id.0, user.rights.role);
        let limit = |name, used, own, rate: Option<RateLimit>| LimitLine {
            name,
            period: rate.map(format_period).unwrap_or_default(),
            usage: LimitUsage::from_limit(used, own, (rate, role)),
        };
        Self {
            layout,
            id,
            display_name: display_name(user),
            addresses: details
                .account
                .addresses
                .iter()
                .map(|address| AddressLine::from_stored(address, console))
                .collect(),
            is_test: details.is_test,
            role: role_label(role),
            status: status_label(user),
            since: console.display_time(details.since),
            last_text: details.account.last_message_at.map(|at| console.display_time(at)),
            opted_out: opted_out_at(details).map(|at| console.display_time(at)),
            is_suspended: details
                .account
                .code_misses
                .is_suspended_on(&Day::from_timestamp(console.clock.now(), &console.zone())),
            notifications: format_notification_setting(details),
            form: SettingsView::from_details(details, quotas),
            is_admin: role == UserRole::Admin,
            is_blocked: user.status == UserStatus::Blocked,
            is_active: user.status == UserStatus::Active,
            limits: vec![
                limit("Movies", details.movies, details.account.movies, quotas.movies),
                limit("Seasons", details.seasons, details.account.seasons, quotas.seasons),
                space_line(details, quotas, console),
            ],
            is_priced: spent.cost > 0,
            spent: (*spent).into(),
            facts: facts::fact_lines(facts, console),
            suggestions: facts::suggestion_lines(suggestions, console),
            titles: titles.rows.iter().map(|request| TitleLine::from_request(request, console)).collect(),
            older_titles: titles.older.map(|cursor| format!("/users/{id}?titles_before={cursor}#titles")),
            conversations: conversations
                .rows
                .iter()
                .map(|conversation| ConversationLine::from_summary(conversation, console))
                .collect(),
            older_conversations: conversations
                .older
                .map(|cursor| format!("/users/{id}?before={cursor}#conversations")),
        }
    }
}

impl SettingsView {
    fn from_details(details: &UserDetails, quotas: Quotas) -> Self {
        let rights = details.account.user.rights;
        let override_text = |limit: Option<u32>| limit.map(|limit| limit.to_string()).unwrap_or_default();
        let age_text = |age: Option<MinimumAge>| age.map(|age| age.0.to_string()).unwrap_or_default();
        let household =
            |rate: Option<RateLimit>| rate.map_or_else(|| "none".to_owned(), |rate| rate.max.to_string());
        Self {
            name: details.account.user.name.clone().unwrap_or_default(),
            add: rights.add,
            delete: rights.delete,
            four_k: rights.four_k,
            movies: override_text(details.quota_override.movies),
            seasons: override_text(details.quota_override.seasons),
            space: override_text(details.quota_override.space_gb),
            movie_age: age_text(rights.caps.movies),
            show_age: age_text(rights.caps.shows),
            parent: rights.parent,
            digest: details.account.digest.map(DigestSchedule::to_words).unwrap_or_default(),
            household_movies: household(quotas.movies),
            household_seasons: household(quotas.seasons),
            household_space: quotas.space_gb.map_or_else(|| "none".to_owned(), |limit| limit.to_string()),
        }
    }
}

/// Returns the line of the space that the titles of the user hold.
fn space_line(details: &UserDetails, quotas: Quotas, console: &ConsoleState) -> LimitLine {
    let held = console.engine.library.last_known_space(&details.attributions);
    let max = match details.account.user.rights.role {
        UserRole::Admin => None,
        UserRole::Member => details.quota_override.space_gb.or(quotas.space_gb),
    };
    let held_gb = held.map_or_else(|| "unknown".to_owned(), |held| to_gigabytes(held).to_string());
    let label = match max {
        Some(max) => format!("{held_gb} of {max}"),
        None => format!("{held_gb}, no limit"),
    };
    let used = held.and_then(|held| u32::try_from(held / BYTES_PER_GB).ok()).unwrap_or_default();
    let titles = details.attributions.len();
    let period = format!("of {titles} requested {}", if titles == 1 { "title" } else { "titles" });
    LimitLine { name: "Gigabytes", period, usage: LimitUsage { used, max, label } }
}

/// Formats the period of a limit, such as `in 7 days`.
fn format_period(rate: RateLimit) -> String {
    let text = rate.format_limit("");
    text.split_once("within ").map_or(String::new(), |(_, period)| format!("in {period}"))
}

/// Returns when the user opted out of messages to the last of their addresses; `None` if one can receive messages.
fn opted_out_at(details: &UserDetails) -> Option<Timestamp> {
    let last = details.account.addresses.iter().filter_map(|address| address.opted_out_at).max();
    last.filter(|_| details.account.user.opted_out)
}

fn format_notification_setting(details: &UserDetails) -> String {
    match (details.wants_notifications, details.quiet_hours) {
        (false, _) => "off".to_owned(),
        (true, None) => "on".to_owned(),
        (true, Some((from, to))) => format!("on, quiet from {from}:00 to {to}:00"),
    }
}

impl TitleLine {
    fn from_request(request: &RequestSummary, console: &ConsoleState) -> Self {
        let seasons = request.title.seasons.as_ref().map(|seasons| {
            let numbers: Vec<String> = seasons.iter().map(u32::to_string).collect();
            format!("seasons {}", numbers.join(", "))
        });
        Self {
            title: format_title(&request.title.title, request.title.year),
            seasons,
            state: match request.state {
                RequestState::Queued | RequestState::Adding => ("warn", "Retrying"),
                RequestState::Added => ("good", "Added"),
                RequestState::GivenUp => ("", "Given up"),
            },
            at: console.display_time(request.requested_at),
        }
    }
}
