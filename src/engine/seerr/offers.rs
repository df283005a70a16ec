//! Requests at a Seerr that wait for a decision. Each is offered to the admins once, with a code.

use jiff::{SignedDuration, Timestamp};

use super::request_watcher::RequestWatcher;
use crate::conversation::seerr_requests::{SeerrOffer, format_offer};
use crate::conversation::title_requests::format_season_list;
use crate::conversation::transcript::MediaKind;
use crate::conversation::viewer_accounts::MediaServerKind;
use crate::engine::approvals::requests;
use crate::engine::reply_address;
use crate::engine::settings::HouseholdSettings;
use crate::seerr::{Seerr, SeerrRequest, SeerrRequestId, SeerrRequestStatus};
use crate::store::confirmation::approvals::{self, ApprovalKind, ApprovalOutcome};
use crate::store::confirmation::seerr_offers;
use crate::store::people::{users, viewer_accounts};
use crate::store::{Conn, QueryResult};
use crate::tools::formatting::{clean_title, format_media_title};

/// Age up to which a request is offered, so that those before the first start are not all offered at once.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(24);
/// Number of requests that are offered in one round.
const MAX_OFFERS: usize = 3;

impl RequestWatcher {
    /// Offers the waiting requests to the admins, and withdraws the offers that were decided at the Seerr.
    pub(super) async fn offer_requests(&self, seerr: &Seerr) -> anyhow::Result<()> {
        let now = self.clock.now();
        let waiting = seerr.fetch_pending_requests().await?;
        self.withdraw_decided_offers(seerr, &waiting).await?;
        let is_recent =
            |request: &SeerrRequest| request.created_at.is_some_and(|at| now.duration_since(at) <= MAX_AGE);
        let recent: Vec<SeerrRequest> = waiting.into_iter().filter(is_recent).collect();
        if recent.is_empty() {
            return Ok(());
        }
        let ids: Vec<i64> = recent.iter().map(|request| request.id.0).collect();
        let known = self.db.read(move |conn| seerr_offers::load_offered_requests(conn, &ids)).await?;
        // The oldest requests are offered first.
        let new = recent.iter().rev().filter(|request| !known.contains(&request.id.0));
        for request in new.take(MAX_OFFERS) {
            let Some(requester) = &request.requester else { continue };
            let offer = SeerrOffer {
                request: request.id.0,
                requester_id: requester.id.0.to_string(),
                requester: clean_title(&requester.name),
                title: self.name_title(request).await,
            };
            let settings = self.live.settings();
            self.db.write(move |conn| offer_to_admins(conn, &offer, &settings, now)).await?;
            self.outbox.notify();
        }
        Ok(())
    }

    /// Withdraws the codes of requests that do not wait any more.
    async fn withdraw_decided_offers(&self, seerr: &Seerr, waiting: &[SeerrRequest]) -> anyhow::Result<()> {
        for (approval, request) in self.db.read(seerr_offers::load_open_offers).await? {
            if waiting.iter().any(|waiting| waiting.id.0 == request) {
                continue;
            }
            // A page of waiting requests may not list all of them.
            let found = seerr.fetch_request(SeerrRequestId(request)).await?;
            if found.is_some_and(|found| found.status == SeerrRequestStatus::Pending) {
                continue;
            }
            let now = self.clock.now();
            let settle = move |conn: &mut _| {
                approvals::settle_approval(conn, approval, ApprovalOutcome::Withdrawn, None, now)
            };
            self.db.write(settle).await?;
        }
        Ok(())
    }

    /// Names the title of a request by the catalogs of Sonarr and Radarr, as far as they can be reached.
    async fn name_title(&self, request: &SeerrRequest) -> String {
        let library = self.live.current().library.clone();
        let (kind, tmdb) = (request.title.kind, request.title.tmdb);
        let name = match kind {
            MediaKind::Movie => match library.movies.first() {
                Some(instance) => {
                    let found = instance.client.lookup_movies(&format!("tmdb:{tmdb}")).await;
                    let movies = found.unwrap_or_default();
                    let movie = movies.into_iter().find(|movie| movie.tmdb == tmdb);
                    movie.map(|movie| format_media_title(&movie.title, movie.year))
                }
                None => None,
            },
            MediaKind::Series => match (library.series.first(), request.tvdb) {
                (Some(instance), Some(tvdb)) => {
                    let found = instance.client.lookup_series(&format!("tvdb:{tvdb}")).await;
                    let series = found.unwrap_or_default().into_iter().find(|series| series.tvdb == tvdb);
                    series.map(|series| format_media_title(&series.title, series.year))
                }
                _ => None,
            },
        };
        let unnamed = match kind {
            MediaKind::Movie => "a movie",
            MediaKind::Series => "a show",
        };
        let name = name.unwrap_or_else(|| unnamed.to_owned());
        let name = match request.seasons.as_slice() {
            [] => name,
            seasons => format!("{name}, {}", format_season_list(seasons)),
        };
        if request.is_4k { format!("{name}, in 4K") } else { name }
    }
}

/// Asks the admins, each with the code, to decide on a request. It is about the person who is linked to its requester,
/// and otherwise about the first admin.
fn offer_to_admins(
    conn: &mut Conn,
    offer: &SeerrOffer,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    if !seerr_offers::load_offered_requests(conn, &[offer.request])?.is_empty() {
        return Ok(());
    }
    let admins = users::load_admins(conn)?;
    let Some(first) = admins.first() else { return Ok(()) };
    let owner = viewer_accounts::find_owner(conn, MediaServerKind::Seerr, &offer.requester_id)?;
    let user = owner.unwrap_or(first.id);
    let kind = ApprovalKind::SeerrRequest(offer.clone());
    let approval = requests::request_approval(conn, (user, None), &kind, settings, now)?;
    if users::load_user(conn, user)?.test {
        // Test users must not cause messages to real phones.
        return Ok(());
    }
    let message = format_offer(offer, approval.code.as_str());
    reply_address::notify_admins(conn, &settings.senders, &format!("approval:{}", approval.id), &message, now)
}
