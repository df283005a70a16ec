//! One source of titles: Seerr or TMDB.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method};
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde::de::{DeserializeOwned, IgnoredAny};
use url::Url;

use super::catalog_request::{CatalogRequest, RequestParts};
use super::response_cache::ResponseCache;
use super::{DiscoverFilter, FoundTitle, PersonCredits, Provider, SearchHits, TitleFacts, wire};
use crate::conversation::transcript::MediaKind;
use crate::http::HttpClient;
use crate::seerr::{Seerr, SeerrStatus};
use crate::server_api::{ServerApi, ServerError, check_response};

/// Source of titles. Clones share the responses in memory.
#[derive(Clone)]
pub struct DiscoverySource {
    origin: SourceOrigin,
    shared: Arc<SourceState>,
}

/// Server of a source, which determines the paths and the names of parameters.
#[derive(Debug, Clone)]
enum SourceOrigin {
    Seerr(Seerr),
    Tmdb(ServerApi),
}

#[derive(Default)]
struct SourceState {
    responses: ResponseCache,
    /// Time before which nothing is asked, because the source limits its requests.
    paused_until: Mutex<Option<Timestamp>>,
}

/// Reason why no titles are known.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    #[error("find a source of titles")]
    NoSource,
    #[error("ask the source of titles")]
    Server(#[from] ServerError),
}

impl std::fmt::Debug for DiscoverySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiscoverySource").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl DiscoverySource {
    /// Creates the source of a Seerr, which is read as its owner.
    pub fn seerr(seerr: &Seerr) -> Self {
        Self { origin: SourceOrigin::Seerr(seerr.clone()), shared: Arc::default() }
    }

    /// Creates the source of TMDB with a read access token, which is sent in a header.
    pub fn tmdb(http: HttpClient, base: Url, token: &SecretString) -> Self {
        let bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
        let header = bearer.ok().map(|mut value| {
            value.set_sensitive(true);
            (AUTHORIZATION, value)
        });
        let api = ServerApi::new(http, base, header.into_iter().collect());
        Self { origin: SourceOrigin::Tmdb(api), shared: Arc::default() }
    }

    /// Returns the name of the source in URLs, such as `tmdb`.
    pub fn name(&self) -> &'static str {
        match self.origin {
            SourceOrigin::Seerr(_) => "seerr",
            SourceOrigin::Tmdb(_) => "tmdb",
        }
    }

    /// Returns whether the source is a server of the household.
    pub fn is_in_household(&self) -> bool {
        matches!(self.origin, SourceOrigin::Seerr(_))
    }

    pub fn label(&self) -> &'static str {
        match self.origin {
            SourceOrigin::Seerr(_) => "Seerr",
            SourceOrigin::Tmdb(_) => "TMDB",
        }
    }

    /// Checks that the source accepts the key.
    pub async fn check_key(&self) -> Result<(), ServerError> {
        match &self.origin {
            SourceOrigin::Seerr(seerr) => seerr.check_key().await,
            SourceOrigin::Tmdb(api) => api.get::<IgnoredAny>("authentication", &[]).await.map(drop),
        }
    }

    /// Reads the state of a Seerr; `None` for another source.
    pub async fn fetch_seerr_status(&self) -> Option<Result<SeerrStatus, ServerError>> {
        match &self.origin {
            SourceOrigin::Seerr(seerr) => Some(seerr.fetch_status().await),
            SourceOrigin::Tmdb(_) => None,
        }
    }

    /// Finds titles and people by name.
    pub async fn search(&self, name: &str, now: Timestamp) -> Result<SearchHits, DiscoveryError> {
        Ok(self.fetch::<wire::Page>(CatalogRequest::Search(name), now).await?.into_hits())
    }

    /// Reads the titles in which a person acted or that the person directed.
    pub async fn fetch_credits(&self, person: i64, now: Timestamp) -> Result<PersonCredits, DiscoveryError> {
        Ok(self.fetch::<wire::Credits>(CatalogRequest::Credits(person), now).await?.into_credits())
    }

    /// Reads the titles that are recommended to people who like a title.
    pub async fn fetch_recommendations(
        &self,
        (kind, tmdb): (MediaKind, i64),
        now: Timestamp,
    ) -> Result<Vec<FoundTitle>, DiscoveryError> {
        let page: wire::Page = self.fetch(CatalogRequest::Recommendations(kind, tmdb), now).await?;
        Ok(page.into_titles(Some(kind)))
    }

    pub async fn fetch_trending(&self, now: Timestamp) -> Result<Vec<FoundTitle>, DiscoveryError> {
        Ok(self.fetch::<wire::Page>(CatalogRequest::Trending, now).await?.into_titles(None))
    }

    /// Reads the most popular titles that match a filter.
    pub async fn discover(
        &self,
        kind: MediaKind,
        filter: &DiscoverFilter,
        now: Timestamp,
    ) -> Result<Vec<FoundTitle>, DiscoveryError> {
        let page: wire::Page = self.fetch(CatalogRequest::Discover(kind, filter), now).await?;
        Ok(page.into_titles(Some(kind)))
    }

    /// Reads the streaming services of a region.
    pub async fn fetch_providers(
        &self,
        kind: MediaKind,
        region: &str,
        now: Timestamp,
    ) -> Result<Vec<Provider>, DiscoveryError> {
        let list: wire::ProviderList = self.fetch(CatalogRequest::Providers(kind, region), now).await?;
        Ok(list.into_providers())
    }

    pub async fn fetch_facts(
        &self,
        (kind, tmdb): (MediaKind, i64),
        region: &str,
        now: Timestamp,
    ) -> Result<TitleFacts, DiscoveryError> {
        Ok(self.fetch::<wire::Details>(CatalogRequest::Facts(kind, tmdb), now).await?.into_facts(region))
    }

    pub(super) fn drop_old_responses(&self, now: Timestamp) {
        self.shared.responses.drop_old(now);
    }

    async fn fetch<T: DeserializeOwned>(
        &self,
        request: CatalogRequest<'_>,
        now: Timestamp,
    ) -> Result<T, DiscoveryError> {
        let (api, parts) = match &self.origin {
            SourceOrigin::Seerr(seerr) => (seerr.api(), request.seerr_parts()),
            SourceOrigin::Tmdb(api) => (api, request.tmdb_parts()),
        };
        let key = format!("{parts:?}");
        let (body, is_new) = match self.shared.responses.get(&key, now) {
            Some(body) => (body, false),
            None => (self.fetch_body(api, &parts, now).await?, true),
        };
        let response = serde_json::from_slice(&body).map_err(ServerError::Unreadable)?;
        if is_new {
            self.shared.responses.insert(key, body, now);
        }
        Ok(response)
    }

    async fn fetch_body(
        &self,
        api: &ServerApi,
        parts: &RequestParts,
        now: Timestamp,
    ) -> Result<Bytes, ServerError> {
        self.check_pause(now)?;
        let query: Vec<(&str, &str)> =
            parts.query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let response = api.fetch_response(Method::GET, &parts.path, &query, None).await?;
        if let Err(error) = check_response(&response) {
            if let ServerError::RateLimited(pause) = error {
                let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::from_mins(1));
                *self.lock_pause() = Some(now + pause);
            }
            return Err(error);
        }
        Ok(response.into_body())
    }

    /// Fails while the source has asked for a pause.
    fn check_pause(&self, now: Timestamp) -> Result<(), ServerError> {
        match *self.lock_pause() {
            Some(until) if now < until => {
                Err(ServerError::RateLimited(until.duration_since(now).unsigned_abs()))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn lock_pause(&self) -> std::sync::MutexGuard<'_, Option<Timestamp>> {
        self.shared.paused_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
