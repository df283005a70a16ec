//! What users asked for: titles with their progress, and removal requests that wait for a decision.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;

use super::flash::{self, FlashMessage};
use super::format::{UserLink, display_name};
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use super::playback_badge::PlaybackBadge;
use super::responses::{PageError, PageId, PageParams, PageResult, redirect_with_flash};
use crate::conversation::deletion::deletion_messages;
use crate::conversation::text::message_format;
use crate::conversation::text::title::clean_line;
use crate::conversation::transcript::{MediaKind, User};
use crate::engine::operator::decisions::DecisionOutcome;
use crate::engine::operator::library::{DeclineOutcome, SearchOutcome};
use crate::store::audit::Actor;
use crate::store::confirmation::approvals::{self, Approval, ApprovalKind};
use crate::store::console::requests::{self, RequestFilter, RequestSummary};
use crate::store::console::{NEWEST, ResultPage};
use crate::store::library::seerr_requests::SeerrState;
use crate::store::library::title_requests::RequestState;
use crate::store::people::users;
use crate::store::{Conn, QueryResult};
use crate::tools::library_cache::overview::{RequestIndex, RequestProgress, TitleId};
use crate::tools::playback::PlayableTitles;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;
use crate::web::posters::poster_path;

const PAGE_SIZE: usize = 30;
/// Longest reason for declining a request, in characters.
const MAX_REASON_CHARS: usize = 160;

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct RequestsQuery {
    #[serde(default)]
    show: RequestsTab,
    before: Option<i64>,
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RequestsTab {
    #[default]
    All,
    Waiting,
}

#[derive(Template)]
#[template(path = "requests.html")]
struct RequestsPage {
    layout: PageLayout,
    tabs: [(&'static str, &'static str, bool); 2],
    removals: Vec<RemovalRequestLine>,
    requests: Vec<RequestLine>,
    /// Sentences about instances that could not be read.
    failures: Vec<String>,
    older: Option<String>,
    max_reason_chars: usize,
}

/// Removal request that waits for a decision.
pub(super) struct RemovalRequestLine {
    pub(super) id: i64,
    pub(super) requester: String,
    pub(super) title: String,
    pub(super) size: Option<String>,
    poster: String,
}

struct RequestLine {
    id: i64,
    user: UserLink,
    title: String,
    at: DisplayTime,
    poster: Option<String>,
    progress: ProgressLine,
    playback: Option<PlaybackBadge>,
    can_decline: bool,
    /// Value of the button that requests the deletion of the added title, while it is not complete.
    cancel: Option<String>,
    /// Value of the button that starts another search, if one may help.
    search: Option<String>,
}

/// Progress as shown: its color, its label and a sentence.
struct ProgressLine {
    class: &'static str,
    label: &'static str,
    detail: String,
    percent: Option<u8>,
    /// True if another search may help.
    can_search: bool,
    /// True if the title was added and nothing of it is there.
    can_cancel: bool,
}

pub(in crate::web) async fn show_requests(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(query): PageParams<RequestsQuery>,
) -> PageResult {
    let (filter, before, now) = (query.show.filter(), query.before.unwrap_or(NEWEST), console.clock.now());
    let load = move |conn: &mut Conn| {
        let removals: Vec<(Approval, User)> = load_removals(conn, now)?;
        Ok((requests::load_request_summaries(conn, filter, before, PAGE_SIZE)?, removals))
    };
    let (ResultPage { rows, older }, removals) = console.db.read(load).await?;
    let index = match rows.is_empty() {
        true => RequestIndex::default(),
        false => console.engine.library.load_request_index().await,
    };
    let titles = rows.iter().filter_map(|row| index.find_title(&row.title));
    let playable = console.engine.library.check_playable(titles).await;
    let line = |row| RequestLine::from_summary(row, &index, playable.as_ref(), &console);
    let tab = |path, label, tab| (path, label, query.show == tab);
    Ok(render_page(&RequestsPage {
        layout: PageLayout::new(&operator, ConsoleSection::Requests, "Requests").with_flash(query.flash),
        tabs: [
            tab("/requests", "All", RequestsTab::All),
            tab("/requests?show=waiting", "Waiting", RequestsTab::Waiting),
        ],
        removals: removals
            .iter()
            .filter_map(|(request, user)| RemovalRequestLine::from_approval(request, user))
            .collect(),
        requests: rows.iter().map(line).collect(),
        older: older.map(|before| match query.show {
            RequestsTab::All => format!("/requests?before={before}"),
            RequestsTab::Waiting => format!("/requests?show=waiting&before={before}"),
        }),
        failures: index.failures,
        max_reason_chars: MAX_REASON_CHARS,
    }))
}

fn load_removals(conn: &mut Conn, now: jiff::Timestamp) -> QueryResult<Vec<(Approval, User)>> {
    let open = approvals::load_open_approvals(conn)?;
    let removals = open.into_iter().filter(|open| open.kind.is_removal() && !open.has_expired(now));
    removals.map(|request| users::load_user(conn, request.user).map(|user| (request, user))).collect()
}

impl RequestsTab {
    fn filter(self) -> RequestFilter {
        match self {
            Self::All => RequestFilter::All,
            Self::Waiting => RequestFilter::Waiting,
        }
    }
}

impl RemovalRequestLine {
    pub(super) fn from_approval(request: &Approval, user: &User) -> Option<Self> {
        let ApprovalKind::Delete(item) = &request.kind else { return None };
        let size = item.fingerprint.size_bytes;
        Some(Self {
            id: request.id,
            requester: display_name(user),
            title: deletion_messages::format_target_name(item),
            size: (size > 0).then(|| message_format::format_size(size)),
            poster: poster_path(&item.instance, item.id),
        })
    }
}

impl RequestLine {
    fn from_summary(
        summary: &RequestSummary,
        index: &RequestIndex,
        playable: Option<&PlayableTitles>,
        console: &ConsoleState,
    ) -> Self {
        let title = index.find_title(&summary.title);
        let playback = title.and_then(|title| PlaybackBadge::find(playable, &title.id));
        let progress = match summary.state {
            RequestState::Queued => {
                let next = summary.next_try_at.map(|at| console.display_time(at).shown);
                let next = next.map_or_else(String::new, |at| format!("not added yet, next attempt {at}"));
                ProgressLine::new("warn", "Waiting", &next)
            }
            RequestState::Adding => ProgressLine::new("", "Adding", "the outcome is being checked"),
            RequestState::GivenUp => {
                ProgressLine::new("bad", "Not added", "given up, declined, or taken back by the user")
            }
            RequestState::Added => match (index.find_progress(&summary.title), &playback) {
                (RequestProgress::Ready, Some(playback)) if !playback.is_playable() => {
                    ProgressLine::new("good", "On disk", "")
                }
                (RequestProgress::Removed, _) if let Some(state) = summary.seerr_state => {
                    ProgressLine::from_seerr_state(state)
                }
                (progress, _) => ProgressLine::from_progress(progress),
            },
        };
        Self {
            id: summary.id,
            user: UserLink::from(&summary.user),
            title: summary.title.format_name(),
            at: console.display_time(summary.requested_at),
            poster: title.map(|title| poster_path(title.id.instance, title.id.id)),
            can_decline: summary.state == RequestState::Queued,
            cancel: title.filter(|_| progress.can_cancel).map(|title| title_value(&title.id)),
            search: title.filter(|_| progress.can_search).map(|title| title_value(&title.id)),
            progress,
            playback,
        }
    }
}

impl ProgressLine {
    fn new(class: &'static str, label: &'static str, detail: &str) -> Self {
        Self { class, label, detail: detail.to_owned(), percent: None, can_search: false, can_cancel: false }
    }

    /// Describes a request at a Seerr, whose title is not in the library.
    fn from_seerr_state(state: SeerrState) -> Self {
        match state {
            SeerrState::Pending => Self::new("warn", "Waiting", "an admin has to decide in Seerr"),
            SeerrState::Approved => Self::new("", "Requested", "approved in Seerr, not in the library yet"),
            SeerrState::Declined => Self::new("bad", "Declined", "declined in Seerr"),
            SeerrState::Failed => Self::new("bad", "Failed", "Seerr could not pass it on"),
            SeerrState::Gone => Self::new("", "Withdrawn", "the request is gone from Seerr"),
            SeerrState::Completed => Self::from_progress(RequestProgress::Removed),
        }
    }

    /// Adds the button that starts another search.
    fn with_search(self) -> Self {
        Self { can_search: true, ..self }
    }

    fn from_progress(progress: RequestProgress) -> Self {
        let can_cancel = match progress {
            RequestProgress::Downloading { .. }
            | RequestProgress::Problem(_)
            | RequestProgress::Searching
            | RequestProgress::Unreleased
            | RequestProgress::NotMonitored => true,
            RequestProgress::Partial { .. }
            | RequestProgress::Ready
            | RequestProgress::Removed
            | RequestProgress::Unknown => false,
        };
        let line = match progress {
            RequestProgress::Downloading { percent, time_left } => Self {
                percent: Some(percent),
                detail: time_left.map_or_else(String::new, |left| format!("{left} left")),
                ..Self::new("", "Downloading", "")
            },
            RequestProgress::Problem(reason) => Self::new("bad", "Failed", &reason).with_search(),
            RequestProgress::Searching => {
                Self::new("warn", "Searching", "nothing was found yet").with_search()
            }
            RequestProgress::Unreleased => {
                Self::new("", "Not released", "the search starts with its release")
            }
            RequestProgress::NotMonitored => {
                Self::new("warn", "Not monitored", "Sonarr or Radarr does not search for it")
            }
            RequestProgress::Partial { on_disk, all } => {
                Self::new("warn", "Incomplete", &format!("{on_disk} of {all} episodes are there"))
                    .with_search()
            }
            RequestProgress::Ready => Self::new("good", "Ready", ""),
            RequestProgress::Removed => Self::new("", "Deleted", "no longer in the library"),
            RequestProgress::Unknown => Self::new("", "Unknown", "Sonarr or Radarr does not respond"),
        };
        Self { can_cancel, ..line }
    }
}

/// Page from which a form was sent, to which the response redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::web) enum DecisionOrigin {
    #[default]
    Home,
    Requests,
    Library,
}

impl DecisionOrigin {
    fn path(self) -> &'static str {
        match self {
            Self::Home => "/",
            Self::Requests => "/requests",
            Self::Library => "/library",
        }
    }
}

/// Decision on a request, with a reason that its requester gets.
#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct DecisionForm {
    #[serde(default)]
    from: DecisionOrigin,
    #[serde(default)]
    reason: String,
}

impl DecisionForm {
    fn reason(&self) -> Option<String> {
        clean_line(&self.reason, MAX_REASON_CHARS)
    }
}

pub(in crate::web) async fn approve_removal(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(form): SignedForm<DecisionForm>,
) -> PageResult {
    let outcome = console.engine.decisions.approve_removal_request(id).await?;
    Ok(decision_response(form.from, outcome, FlashMessage::RemovalApproved))
}

pub(in crate::web) async fn deny_removal(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(form): SignedForm<DecisionForm>,
) -> PageResult {
    let outcome = console.engine.decisions.deny_removal_request(id, form.reason()).await?;
    Ok(decision_response(form.from, outcome, FlashMessage::RemovalDenied))
}

fn decision_response(from: DecisionOrigin, outcome: DecisionOutcome, success: FlashMessage) -> Response {
    let flash = match outcome {
        DecisionOutcome::Decided => success,
        DecisionOutcome::TooLate => FlashMessage::AlreadyDecided,
        DecisionOutcome::NoAdmin => FlashMessage::NoActiveAdmin,
    };
    redirect_with_flash(from.path(), flash)
}

pub(in crate::web) async fn decline_request(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(form): SignedForm<DecisionForm>,
) -> PageResult {
    let flash = match console.engine.library.decline_request(id, form.reason(), Actor::Console).await? {
        DeclineOutcome::Declined => FlashMessage::RequestDeclined,
        DeclineOutcome::NotWaiting => FlashMessage::RequestNotWaiting,
    };
    Ok(redirect_with_flash(DecisionOrigin::Requests.path(), flash))
}

/// Button of a title, whose value is [`title_value`].
#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct TitleForm {
    title: String,
    #[serde(default)]
    from: DecisionOrigin,
}

/// Title that a button names: its instance, kind and id.
pub(super) struct ButtonTitle {
    pub(super) instance: String,
    pub(super) kind: MediaKind,
    pub(super) id: i64,
}

/// Returns the value of the buttons of a title, such as `radarr movie 12`.
pub(super) fn title_value(title: &TitleId) -> String {
    let kind = match title.kind {
        MediaKind::Movie => "movie",
        MediaKind::Series => "series",
    };
    format!("{} {kind} {}", title.instance, title.id)
}

impl TitleForm {
    pub(super) fn parse_title(&self) -> Result<ButtonTitle, PageError> {
        let mut words = self.title.split(' ');
        let (instance, kind, id) = (words.next(), words.next(), words.next());
        let kind = match kind {
            Some("movie") => MediaKind::Movie,
            Some("series") => MediaKind::Series,
            Some(_) | None => return Err(PageError::NotFound),
        };
        let id = id.and_then(|id| id.parse().ok()).ok_or(PageError::NotFound)?;
        Ok(ButtonTitle { instance: instance.unwrap_or_default().to_owned(), kind, id })
    }
}

pub(in crate::web) async fn search_again(
    State(console): State<ConsoleState>,
    SignedForm(form): SignedForm<TitleForm>,
) -> PageResult {
    let ButtonTitle { instance, kind, id } = form.parse_title()?;
    let flash = match console.engine.library.search_again(&instance, kind, id).await? {
        SearchOutcome::Started => FlashMessage::SearchStarted,
        SearchOutcome::Failed => FlashMessage::SearchFailed,
        SearchOutcome::UnknownTitle => return Err(PageError::NotFound),
    };
    Ok(redirect_with_flash(form.from.path(), flash))
}
