//! Outbound messages, and the delivery status of each.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;

use super::delivery_labels::{self, DeliveryLabel};
use super::flash::{self, FlashMessage};
use super::format::UserLink;
use super::home::ButtonForm;
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use super::responses::{PageError, PageId, PageParams, PageResult, redirect_with_flash};
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::transcript::UserId;
use crate::store::console::deliveries::{self, DeliveryFilter, DeliverySummary};
use crate::store::console::{NEWEST, user_ref};
use crate::store::people::user_admin;
use crate::store::queue::resend::ResendOutcome;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

const PAGE_ROWS: usize = 50;

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct DeliveriesQuery {
    #[serde(default)]
    which: DeliveriesTab,
    user: Option<i64>,
    before: Option<i64>,
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DeliveriesTab {
    #[default]
    All,
    Waiting,
    Failed,
}

#[derive(Template)]
#[template(path = "deliveries.html")]
struct DeliveriesPage {
    layout: PageLayout,
    filters: Vec<(&'static str, &'static str, bool)>,
    /// User whose messages are listed.
    only: Option<UserLink>,
    texts: Vec<DeliveryLine>,
    empty: &'static str,
    older: Option<String>,
}

struct DeliveryLine {
    id: i64,
    at: DisplayTime,
    to: UserLink,
    body: String,
    has_picture: bool,
    path: Option<String>,
    segments: u32,
    state: DeliveryLabel,
    why: Option<String>,
    may_be_sent_again: bool,
}

pub(in crate::web) async fn show_deliveries(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(query): PageParams<DeliveriesQuery>,
) -> PageResult {
    let before = query.before.unwrap_or(NEWEST);
    let read = console.db.read(move |conn| {
        let only = match query.user {
            Some(id) if user_admin::find_known_user(conn, UserId(id))?.is_none() => return Ok(None),
            Some(id) => Some(user_ref::load_user_ref(conn, UserId(id))?),
            None => None,
        };
        let which = match (&only, query.which) {
            (Some(who), _) => DeliveryFilter::To(who.id),
            (None, DeliveriesTab::All) => DeliveryFilter::All,
            (None, DeliveriesTab::Waiting) => DeliveryFilter::Waiting,
            (None, DeliveriesTab::Failed) => DeliveryFilter::Failed,
        };
        Ok(Some((only, deliveries::load_delivery_summaries(conn, which, before, PAGE_ROWS)?)))
    });
    let Some((only, listed)) = read.await? else { return Err(PageError::NotFound) };
    let (word, empty) = match query.which {
        DeliveriesTab::All => ("all", "No text was sent yet."),
        DeliveriesTab::Waiting => ("waiting", "No text waits: everything was handed over."),
        DeliveriesTab::Failed => ("failed", "Every text so far was taken."),
    };
    let filters = [
        ("all", "All", DeliveriesTab::All),
        ("waiting", "Waiting", DeliveriesTab::Waiting),
        ("failed", "Failed", DeliveriesTab::Failed),
    ];
    let here = |of: DeliveriesTab| only.is_none() && of == query.which;
    let older = listed.older.map(|id| match &only {
        Some(who) => format!("/deliveries?user={}&before={id}", who.id),
        None => format!("/deliveries?which={word}&before={id}"),
    });
    Ok(render_page(&DeliveriesPage {
        layout: PageLayout::new(&operator, ConsoleSection::Deliveries, "Deliveries").with_flash(query.flash),
        filters: filters.map(|(word, name, of)| (word, name, here(of))).to_vec(),
        only: only.as_ref().map(UserLink::from),
        texts: listed.rows.iter().map(|text| DeliveryLine::from_delivery(text, &console)).collect(),
        empty,
        older,
    }))
}

impl DeliveryLine {
    fn from_delivery(delivery: &DeliverySummary, console: &ConsoleState) -> Self {
        let text = &delivery.message;
        Self {
            id: text.id.0,
            may_be_sent_again: delivery.can_resend,
            at: console.display_time(text.written_at),
            to: UserLink::from(&delivery.to),
            body: text.body.clone(),
            has_picture: text.picture.is_some(),
            path: delivery.conversation.map(|id| format!("/conversations/{id}")),
            // A message that is only shown uses no segments.
            segments: if text.status() == DeliveryStatus::Shown { 0 } else { text.segments },
            state: delivery_labels::delivery_label(text.status()),
            why: delivery_labels::delivery_reason(text.status(), &delivery.failure),
        }
    }
}

pub(in crate::web) async fn resend_message(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    match console.engine.decisions.resend_message(id).await? {
        ResendOutcome::Queued => Ok(redirect_with_flash("/deliveries", FlashMessage::SentAgain)),
        ResendOutcome::NotAllowed => Ok(redirect_with_flash("/deliveries", FlashMessage::NotSentAgain)),
        ResendOutcome::Unknown => Err(PageError::NotFound),
    }
}
