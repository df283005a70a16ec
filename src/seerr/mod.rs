//! Client for Seerr, which knows the titles of TMDB and decides on requests for them. Jellyseerr and Overseerr answer
//! the same requests.

pub mod fake;
mod issues;
mod requests;
#[cfg(test)]
mod tests;
mod users;
mod wire;

use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

pub use issues::{IssueOutcome, IssuePlace, IssueType, NewSeerrIssue, SeerrIssue, SeerrMediaId};
pub use requests::{
    DecisionOutcome, NewSeerrRequest, RequestDecision, RequestOutcome, RequestRefusal, SeerrRequest,
    SeerrRequestId, SeerrRequestStatus, SeerrTitle,
};
pub use users::{SeerrQuota, SeerrQuotas, SeerrUser, SeerrUserId};

use crate::http::HttpClient;
use crate::server_api::{ServerApi, ServerError};

/// Client for one Seerr. Its key acts as the owner, so a request for a person also names their user there.
#[derive(Debug, Clone)]
pub struct Seerr {
    api: ServerApi,
}

/// State of a Seerr.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeerrStatus {
    #[serde(default)]
    pub version: String,
    /// True if a setting takes effect only after a restart.
    #[serde(default)]
    pub restart_required: bool,
}

impl Seerr {
    pub fn new(http: HttpClient, base: Url, key: &SecretString) -> Self {
        let header = HeaderValue::from_str(key.expose_secret()).ok().map(|mut value| {
            value.set_sensitive(true);
            (HeaderName::from_static("x-api-key"), value)
        });
        Self { api: ServerApi::new(http, base, header.into_iter().collect()) }
    }

    /// Returns the client of the API, whose paths begin with `api/v1`.
    pub(crate) fn api(&self) -> &ServerApi {
        &self.api
    }

    /// Returns the client of the API that acts for a user, with the rights and limits of this user.
    fn api_for(&self, user: SeerrUserId) -> ServerApi {
        self.api.with_header(HeaderName::from_static("x-api-user"), HeaderValue::from(user.0))
    }

    /// Reads the state of the server, with any key.
    pub async fn fetch_status(&self) -> Result<SeerrStatus, ServerError> {
        self.api.get("api/v1/status", &[]).await
    }

    /// Checks that the server accepts the key.
    pub async fn check_key(&self) -> Result<(), ServerError> {
        self.api.get::<serde::de::IgnoredAny>("api/v1/auth/me", &[]).await.map(drop)
    }
}
