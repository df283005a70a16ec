//! Style, script, icons and manifest of the pages, compiled in. A page names them with the version of the program, so that a browser
//! with another version in its cache requests them again.

use axum::body::Bytes;
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

/// Serves the manifest with which a browser installs the console as an app.
pub(in crate::web) async fn serve_manifest() -> Response {
    asset_response("application/manifest+json", include_str!("assets/manifest.webmanifest"))
}

pub(in crate::web) async fn serve_small_icon() -> Response {
    asset_response("image/png", include_bytes!("assets/icon-192.png"))
}

pub(in crate::web) async fn serve_large_icon() -> Response {
    asset_response("image/png", include_bytes!("assets/icon-512.png"))
}

pub(in crate::web) async fn serve_touch_icon() -> Response {
    asset_response("image/png", include_bytes!("assets/apple-touch-icon.png"))
}

fn asset_response<C: AsRef<[u8]> + ?Sized>(kind: &'static str, content: &'static C) -> Response {
    let content = Bytes::from_static(content.as_ref());
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "max-age=3600")], content).into_response()
}
