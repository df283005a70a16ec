//! Outbound messages with their delivery status.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;

use super::delivery_labels::{self, DeliveryLabel};
use super::flash::{self, FlashMessage};
use super::format::UserLink;
use super::home::actions::ButtonForm;
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use super::responses::{PageError, PageId, PageParams, PageResult, redirect_with_flash};
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::transcript::UserId;
use crate::store::audit::Actor;
use crate::store::console::deliveries::{self, DeliveryFilter, DeliverySummary};
use crate::store::console::{NEWEST, user_ref};
use crate::store::people::user_admin;
use crate::store::queue::resend::ResendOutcome;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

const PAGE_ROWS: usize = 50;

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct DeliveriesQuery {
    #[serde(default, rename = "which")]
    tab: DeliveriesTab,
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
    /// User whose messages are listed; `None`: all users.
    user: Option<UserLink>,
    deliveries: Vec<DeliveryLine>,
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
    reason: Option<String>,
    can_resend: bool,
}

pub(in crate::web) async fn show_deliveries(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(query): PageParams<DeliveriesQuery>,
) -> PageResult {
    let before = query.before.unwrap_or(NEWEST);
    let load = console.db.read(move |conn| {
        let user = match query.user {
            Some(id) if user_admin::find_known_user(conn, UserId(id))?.is_none() => return Ok(None),
            Some(id) => Some(user_ref::load_user_ref(conn, UserId(id))?),
            None => None,
        };
        let filter = match (&user, query.tab) {
            (Some(user), _) => DeliveryFilter::To(user.id),
            (None, DeliveriesTab::All) => DeliveryFilter::All,
            (None, DeliveriesTab::Waiting) => DeliveryFilter::Waiting,
            (None, DeliveriesTab::Failed) => DeliveryFilter::Failed,
        };
        Ok(Some((user, deliveries::load_delivery_summaries(conn, filter, before, PAGE_ROWS)?)))
    });
    let Some((user, page)) = load.await? else { return Err(PageError::NotFound) };
    let (tab_name, empty) = match query.tab {
        DeliveriesTab::All => ("all", "No texts yet."),
        DeliveriesTab::Waiting => ("waiting", "No texts are waiting."),
        DeliveriesTab::Failed => ("failed", "No texts have failed."),
    };
    let filters = [
        ("all", "All", DeliveriesTab::All),
        ("waiting", "Waiting", DeliveriesTab::Waiting),
        ("failed", "Failed", DeliveriesTab::Failed),
    ];
    let is_current = |tab: DeliveriesTab| user.is_none() && tab == query.tab;
    let older = page.older.map(|id| match &user {
        Some(user) => format!("/deliveries?user={}&before={id}", user.id),
        None => format!("/deliveries?which={tab_name}&before={id}"),
    });
    Ok(render_page(&DeliveriesPage {
        layout: PageLayout::new(&operator, ConsoleSection::Deliveries, "Deliveries").with_flash(query.flash),
        filters: filters.map(|(tab_name, label, tab)| (tab_name, label, is_current(tab))).to_vec(),
        user: user.as_ref().map(UserLink::from),
        deliveries: page
            .rows
            .iter()
            .map(|delivery| DeliveryLine::from_delivery(delivery, &console))
            .collect(),
        empty,
        older,
    }))
}

impl DeliveryLine {
    fn from_delivery(delivery: &DeliverySummary, console: &ConsoleState) -> Self {
        let message = &delivery.message;
        Self {
            id: message.id.0,
            can_resend: delivery.can_resend,
            at: console.display_time(message.written_at),
            to: UserLink::from(&delivery.to),
            body: message.body.clone(),
            has_picture: message.picture.is_some(),
            path: delivery.conversation.map(|id| format!("/conversations/{id}")),
            // A message that is only displayed uses no segments.
            segments: if message.status() == DeliveryStatus::Shown { 0 } else { message.segments },
            state: delivery_labels::delivery_label(message.status()),
            reason: delivery_labels::delivery_reason(message),
        }
    }
}

pub(in crate::web) async fn resend_message(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    match console.engine.decisions.resend_message(id, Actor::Console).await? {
        ResendOutcome::Queued => Ok(redirect_with_flash("/deliveries", FlashMessage::MessageResent)),
        ResendOutcome::NotAllowed => Ok(redirect_with_flash("/deliveries", FlashMessage::MessageNotResent)),
        ResendOutcome::Unknown => Err(PageError::NotFound),
    }
}
