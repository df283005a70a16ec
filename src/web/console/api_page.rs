//! Description of the API: its routes with their scopes and inputs.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::response::Response;

use super::layout::{ConsoleSection, PageLayout, render_page};
use crate::web::api::description::ApiDescription;
use crate::web::auth::Operator;

#[derive(Template)]
#[template(path = "api.html")]
struct ApiPage {
    layout: PageLayout,
    description: Arc<ApiDescription>,
}

pub(in crate::web) async fn show_api(
    operator: Operator,
    Extension(description): Extension<Arc<ApiDescription>>,
) -> Response {
    render_page(&ApiPage { layout: PageLayout::new(&operator, ConsoleSection::Keys, "API"), description })
}
