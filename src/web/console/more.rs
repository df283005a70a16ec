//! Links to the sections that the navigation of a phone has no room for.

use askama::Template;

use super::layout::{ConsoleSection, NavLink, PageLayout, render_page};
use super::responses::PageResult;
use crate::web::auth::Operator;

#[derive(Template)]
#[template(path = "more.html")]
struct MorePage {
    sections: Vec<NavLink>,
    layout: PageLayout,
}

pub(in crate::web) async fn show_more(operator: Operator) -> PageResult {
    let layout = PageLayout::new(&operator, ConsoleSection::More, "More");
    let sections = layout.links().filter(|link| !link.is_primary).collect();
    Ok(render_page(&MorePage { sections, layout }))
}
