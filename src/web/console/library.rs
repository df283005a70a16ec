//! Library and downloads of Sonarr and Radarr.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;

use super::flash::{self, FlashMessage};
use super::format::{UserLink, format_count};
use super::layout::{ConsoleSection, PageLayout, render_page};
use super::playback_badge::PlaybackBadge;
use super::requests::{ButtonTitle, TitleForm, title_value};
use super::responses::{PageError, PageParams, PageResult, redirect_with_flash};
use crate::conversation::text::message_format::format_size;
use crate::conversation::text::title::format_title;
use crate::conversation::transcript::MediaKind;
use crate::engine::operator::library::DeletionRequestOutcome;
use crate::store::console::requests::{RequestedBy, load_requesters};
use crate::tools::library_cache::overview::{
    DownloadOverview, OverviewQuery, TitleAvailability, TitleOverview, TitlePage,
};
use crate::tools::library_cache::query::{SortOrder, StatusFilter};
use crate::tools::playback::PlayableTitles;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;
use crate::web::posters::poster_path;

const PAGE_SIZE: usize = 30;
const MAX_QUERY_CHARS: usize = 100;
/// Longest page number of a URL.
const MAX_PAGE: usize = 100_000;

#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct LibraryPageQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    kind: KindChoice,
    #[serde(default)]
    sort: SortChoice,
    #[serde(default)]
    only: OnlyChoice,
    #[serde(default)]
    page: usize,
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindChoice {
    #[default]
    All,
    Movie,
    Series,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SortChoice {
    #[default]
    Newest,
    Oldest,
    Biggest,
    Title,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OnlyChoice {
    #[default]
    All,
    Missing,
    Disk,
}

#[derive(Template)]
#[template(path = "library.html")]
struct LibraryPage {
    layout: PageLayout,
    downloads: Vec<DownloadLine>,
    query: String,
    kinds: Vec<Choice>,
    sorts: Vec<Choice>,
    filters: Vec<Choice>,
    titles: Vec<TitleLine>,
    /// Number and size of the matching titles.
    summary: String,
    failures: Vec<String>,
    newer: Option<String>,
    older: Option<String>,
}

/// Option of a list.
struct Choice {
    value: &'static str,
    label: &'static str,
    is_selected: bool,
}

struct DownloadLine {
    title: String,
    state: String,
    class: &'static str,
    percent: u8,
    detail: String,
    poster: Option<String>,
}

struct TitleLine {
    poster: String,
    name: String,
    /// Value of its buttons.
    value: String,
    size: String,
    quality: String,
    added: String,
    state: (&'static str, String),
    playback: Option<PlaybackBadge>,
    requesters: Vec<UserLink>,
    can_search: bool,
}

pub(in crate::web) async fn show_library(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(params): PageParams<LibraryPageQuery>,
) -> PageResult {
    let text: String = params.q.chars().take(MAX_QUERY_CHARS).collect();
    let page = params.page.min(MAX_PAGE);
    let query = OverviewQuery {
        text: text.clone(),
        kind: params.kind.media_kind(),
        only: params.only.status_filter(),
        sort: params.sort.sort_order(),
        offset: page * PAGE_SIZE,
        limit: PAGE_SIZE,
    };
    let actions = &console.engine.library;
    let (found, queue) = tokio::join!(actions.load_titles(query), actions.load_downloads());
    let keys =
        found.titles.iter().map(|title| (title.id.instance.to_owned(), title.id.kind, title.catalog_id));
    let keys: Vec<_> = keys.collect();
    let requesters = console.db.read(move |conn| load_requesters(conn, &keys)).await?;
    let TitlePage { titles, total, total_bytes, mut failures } = found;
    for failure in queue.failures {
        if !failures.contains(&failure) {
            failures.push(failure);
        }
    }
    let page_path = |page: usize| {
        let query = serde_urlencoded::to_string([
            ("q", text.as_str()),
            ("kind", params.kind.value()),
            ("sort", params.sort.value()),
            ("only", params.only.value()),
            ("page", &page.to_string()),
        ]);
        format!("/library?{}", query.unwrap_or_default())
    };
    let count = u64::try_from(total).unwrap_or(u64::MAX);
    let playable = actions.check_playable(titles.iter()).await;
    let line = |(title, by)| TitleLine::from_title(title, by, playable.as_ref());
    Ok(render_page(&LibraryPage {
        layout: PageLayout::new(&operator, ConsoleSection::Library, "Library").with_flash(params.flash),
        downloads: queue.downloads.iter().map(DownloadLine::from_download).collect(),
        kinds: KindChoice::choices(params.kind),
        sorts: SortChoice::choices(params.sort),
        filters: OnlyChoice::choices(params.only),
        titles: titles.iter().zip(&requesters).map(line).collect(),
        summary: format!("{} titles, {}", format_count(count), format_size(total_bytes)),
        failures,
        newer: page.checked_sub(1).map(page_path),
        older: (total > (page + 1) * PAGE_SIZE).then(|| page_path(page + 1)),
        query: text,
    }))
}

/// Requests the deletion of a title. It waits on the page of requests, named by its title and size, until it is approved
/// there.
pub(in crate::web) async fn request_deletion(
    State(console): State<ConsoleState>,
    SignedForm(form): SignedForm<TitleForm>,
) -> PageResult {
    let ButtonTitle { instance, kind, id } = form.parse_title()?;
    Ok(match console.engine.library.request_deletion(&instance, kind, id).await? {
        DeletionRequestOutcome::Waiting(_) => {
            redirect_with_flash("/requests", FlashMessage::DeletionToConfirm)
        }
        DeletionRequestOutcome::NoAdmin => redirect_with_flash("/library", FlashMessage::NoActiveAdmin),
        DeletionRequestOutcome::Unreachable => {
            redirect_with_flash("/library", FlashMessage::LibraryUnreachable)
        }
        DeletionRequestOutcome::UnknownTitle => return Err(PageError::NotFound),
    })
}

impl KindChoice {
    const ALL: [(Self, &'static str); 3] =
        [(Self::All, "Movies and series"), (Self::Movie, "Movies"), (Self::Series, "Series")];

    fn value(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Movie => "movie",
            Self::Series => "series",
        }
    }

    fn media_kind(self) -> Option<MediaKind> {
        match self {
            Self::All => None,
            Self::Movie => Some(MediaKind::Movie),
            Self::Series => Some(MediaKind::Series),
        }
    }

    fn choices(selected: Self) -> Vec<Choice> {
        let choice =
            |(kind, label): (Self, _)| Choice { value: kind.value(), label, is_selected: kind == selected };
        Self::ALL.into_iter().map(choice).collect()
    }
}

impl SortChoice {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Newest, "Newest first"),
        (Self::Oldest, "Oldest first"),
        (Self::Biggest, "Biggest first"),
        (Self::Title, "By title"),
    ];

    fn value(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
            Self::Biggest => "biggest",
            Self::Title => "title",
        }
    }

    fn sort_order(self) -> SortOrder {
        match self {
            Self::Newest => SortOrder::Newest,
            Self::Oldest => SortOrder::Oldest,
            Self::Biggest => SortOrder::Biggest,
            Self::Title => SortOrder::Title,
        }
    }

    fn choices(selected: Self) -> Vec<Choice> {
        let choice =
            |(sort, label): (Self, _)| Choice { value: sort.value(), label, is_selected: sort == selected };
        Self::ALL.into_iter().map(choice).collect()
    }
}

impl OnlyChoice {
    const ALL: [(Self, &'static str); 3] =
        [(Self::All, "All titles"), (Self::Missing, "Missing"), (Self::Disk, "On disk")];

    fn value(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Missing => "missing",
            Self::Disk => "disk",
        }
    }

    fn status_filter(self) -> Option<StatusFilter> {
        match self {
            Self::All => None,
            Self::Missing => Some(StatusFilter::Missing),
            Self::Disk => Some(StatusFilter::OnDisk),
        }
    }

    fn choices(selected: Self) -> Vec<Choice> {
        let choice =
            |(only, label): (Self, _)| Choice { value: only.value(), label, is_selected: only == selected };
        Self::ALL.into_iter().map(choice).collect()
    }
}

impl DownloadLine {
    fn from_download(download: &DownloadOverview) -> Self {
        let left = download.time_left.as_ref().map(|left| format!("{left} left"));
        let size = (download.size_bytes > 0).then(|| format_size(download.size_bytes));
        Self {
            title: download.title.clone(),
            state: download.state.clone(),
            class: if download.problem.is_some() { "bad" } else { "" },
            percent: download.percent,
            detail: [left, size].into_iter().flatten().collect::<Vec<_>>().join(", "),
            poster: download.content.as_ref().map(|content| poster_path(content.instance, content.id)),
        }
    }
}

impl TitleLine {
    fn from_title(
        title: &TitleOverview,
        requested_by: &RequestedBy,
        playable: Option<&PlayableTitles>,
    ) -> Self {
        Self {
            poster: poster_path(title.id.instance, title.id.id),
            name: format_title(&title.title, title.year),
            value: title_value(&title.id),
            size: if title.size_bytes > 0 { format_size(title.size_bytes) } else { String::new() },
            quality: title.quality.clone().unwrap_or_default(),
            added: title.added.map(|day| day.strftime("%b %-d, %Y").to_string()).unwrap_or_default(),
            state: availability_badge(title.availability),
            playback: PlaybackBadge::find(playable, &title.id),
            requesters: requested_by.users.iter().map(UserLink::from).collect(),
            can_search: matches!(
                title.availability,
                TitleAvailability::Missing | TitleAvailability::Episodes { .. }
            ),
        }
    }
}

fn availability_badge(availability: TitleAvailability) -> (&'static str, String) {
    match availability {
        TitleAvailability::Complete => ("good", "On disk".to_owned()),
        TitleAvailability::Episodes { on_disk, all } => ("warn", format!("{on_disk} of {all} episodes")),
        TitleAvailability::Missing => ("warn", "Missing".to_owned()),
        TitleAvailability::Unreleased => ("", "Not released".to_owned()),
        TitleAvailability::NotMonitored => ("", "Not monitored".to_owned()),
    }
}
