//! Links to the sections that the navigation of a phone has no room for, and the sources of what Dialarr shows.

use askama::Template;
use axum::extract::State;

use super::layout::{ConsoleSection, NavLink, PageLayout, render_page};
use super::responses::PageResult;
use crate::discovery::{JUSTWATCH_NOTICE, TMDB_NOTICE};
use crate::web::auth::Operator;
use crate::web::console_state::ConsoleState;

#[derive(Template)]
#[template(path = "more.html")]
struct MorePage {
    sections: Vec<NavLink>,
    version: &'static str,
    /// Notices of the sources of titles; empty without one.
    notices: &'static [&'static str],
    layout: PageLayout,
}

pub(in crate::web) async fn show_more(State(console): State<ConsoleState>, operator: Operator) -> PageResult {
    let layout = PageLayout::new(&operator, ConsoleSection::More, "More");
    let sections = layout.links().filter(|link| !link.is_primary).collect();
    let notices: &[&str] =
        if console.engine.decisions.has_discovery() { &[TMDB_NOTICE, JUSTWATCH_NOTICE] } else { &[] };
    Ok(render_page(&MorePage { sections, version: env!("CARGO_PKG_VERSION"), notices, layout }))
}
