//! What needs the operator, and what was said last.

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::Console;
use super::frame::{Frame, Place, page};
use crate::web::auth::Operator;

#[derive(Template)]
#[template(path = "home.html")]
struct Home {
    frame: Frame,
}

pub(in crate::web) async fn show(State(_console): State<Console>, operator: Operator) -> Response {
    page(&Home { frame: Frame::new(&operator, Place::Home, "Home") })
}
