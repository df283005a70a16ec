//! Style and script of the pages, compiled in. A page names them with the version of the program, so that a browser
//! with another version in its cache requests them again.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(in crate::web) async fn serve_style() -> Response {
    asset_response("text/css; charset=utf-8", include_str!("assets/style.css"))
}

pub(in crate::web) async fn serve_script() -> Response {
    asset_response("text/javascript; charset=utf-8", include_str!("assets/live.js"))
}

pub(in crate::web) async fn serve_icon() -> Response {
    asset_response("image/svg+xml", include_str!("assets/icon.svg"))
}

fn asset_response(kind: &'static str, content: &'static str) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "max-age=3600")], content).into_response()
}
