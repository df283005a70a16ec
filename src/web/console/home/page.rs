//! Home page: items that need attention, connections, today's totals, and the latest conversations.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;

use super::sections::{HomeSections, SectionsError};
use crate::web::auth::Operator;
use crate::web::console::flash::{self, FlashMessage};
use crate::web::console::layout::{ConsoleSection, PageLayout, render_page};
use crate::web::console::responses::{PageParams, PageResult};
use crate::web::console_state::ConsoleState;

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct HomeQuery {
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
}

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    layout: PageLayout,
    sections: HomeSections,
}

pub(in crate::web) async fn show_home(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(query): PageParams<HomeQuery>,
) -> PageResult {
    let sections = match HomeSections::load(&console, operator.form_token()).await {
        Ok(sections) => sections,
        Err(SectionsError::Database(error)) => return Err(error.into()),
        Err(SectionsError::Template(error)) => {
            tracing::error!(%error, "failed to render the home page");
            return Ok(StatusCode::INTERNAL_SERVER_ERROR.into_response());
        }
    };
    let layout = PageLayout::new(&operator, ConsoleSection::Home, "Home").with_flash(query.flash);
    Ok(render_page(&HomePage { layout, sections }))
}
