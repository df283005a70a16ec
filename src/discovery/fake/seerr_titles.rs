//! Part of a simulated Seerr that answers about titles.

use bytes::Bytes;
use http::{Request, Response};

use super::{CatalogDialect, FakeCatalog};
use crate::http::InProcess;
use crate::server_api::fake::{
    self, FakeEndpoint, Query, empty_response, has_reserved_characters, json_response,
};

/// Titles of a simulated Seerr.
#[derive(Debug, Clone)]
struct SeerrTitles(FakeCatalog);

impl FakeCatalog {
    /// Returns the part of a Seerr that answers about these titles.
    pub fn seerr_titles(&self) -> InProcess {
        fake::in_process(&SeerrTitles(self.clone()))
    }
}

impl FakeEndpoint for SeerrTitles {
    async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        if has_reserved_characters(request.uri()) {
            return empty_response(400);
        }
        let path = request.uri().path().strip_prefix("/api/v1").unwrap_or_default();
        let answer = self.0.answer(path, &Query::from_uri(request.uri()), CatalogDialect::Seerr);
        answer.map_or_else(|| empty_response(404), |answer| json_response(&answer))
    }
}
