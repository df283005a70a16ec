//! Library and requests as the operator sees and changes them in the console and the API.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::decisions::find_reachable_admin;
use crate::arr::ArrError;
use crate::clock::Clock;
use crate::conversation::making_room::proposal::Candidate;
use crate::conversation::title_requests::{self, DeferredAdditionState};
use crate::conversation::transcript::{CallFailure, MediaKind, UserId};
use crate::engine::making_room;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::HouseholdSettings;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::approvals::{self, ApprovalKind, NewApproval};
use crate::store::database::db::{Db, DbError};
use crate::store::library::title_attributions::TitleAttribution;
use crate::store::library::title_requests::{
    SettleRequestOutcome, TitleRequestOutcome, load_open_addition, settle_title_request,
};
use crate::store::people::users;
use crate::store::queue::outbox;
use crate::store::{Conn, QueryResult};
use crate::tools::library_cache::overview::{
    self, DownloadList, OverviewQuery, RequestIndex, TitleLookupError, TitleOverview, TitlePage,
};
use crate::tools::making_room::candidates::CandidateSearch;
use crate::tools::own_space::{OwnTitle, held_titles};
use crate::tools::playback::PlayableTitles;

/// Outcome of preparing the deletion of a title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletionRequestOutcome {
    /// The deletion waits for the approval of this request, which names the title with its size.
    Waiting(i64),
    /// No admin can receive texts. A deletion is executed on behalf of an admin.
    NoAdmin,
    UnknownTitle,
    /// Sonarr or Radarr does not respond.
    Unreachable,
}

/// Outcome of a search for a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchOutcome {
    Started,
    UnknownTitle,
    /// Sonarr or Radarr did not confirm the search.
    Failed,
}

/// Outcome of declining a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclineOutcome {
    Declined,
    /// The title was added meanwhile, is being added now, or was given up.
    NotWaiting,
}

/// Actions of the operator on the library and on requests.
pub struct LibraryActions {
    db: Db,
    clock: Clock,
    live: LiveParts,
    outbox: OutboxSignal,
}

impl LibraryActions {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, outbox, live, .. } = parts.clone();
        Self { db, clock, live, outbox }
    }

    pub async fn load_titles(&self, query: OverviewQuery) -> TitlePage {
        overview::load_title_page(&self.live.current().library, query, self.clock.now()).await
    }

    pub async fn load_downloads(&self) -> DownloadList {
        overview::load_downloads(&self.live.current().library).await
    }

    /// Loads the index in which the progress of requests is looked up.
    pub async fn load_request_index(&self) -> RequestIndex {
        RequestIndex::load(&self.live.current().library, self.clock.now()).await
    }

    /// Asks the media servers which of the titles on disk can be played. Returns `None` if there is no media server.
    pub async fn check_playable(
        &self,
        titles: impl Iterator<Item = &TitleOverview>,
    ) -> Option<PlayableTitles> {
        let servers = self.live.current().library.media_servers.clone();
        PlayableTitles::load(&servers, titles, self.clock.now()).await
    }

    /// Returns the space that titles hold in the libraries as they were last loaded; `None` if it is not known yet.
    pub fn last_known_space(&self, titles: &[TitleAttribution]) -> Option<u64> {
        let own_title = |title: &TitleAttribution| OwnTitle {
            instance: title.instance.clone(),
            kind: title.kind,
            catalog_id: title.catalog_id,
            shared_with: Vec::new(),
        };
        let own_titles: Vec<OwnTitle> = titles.iter().map(own_title).collect();
        held_titles::last_known_space(&own_titles, &self.live.current().library)
    }

    /// Finds the titles that could go to make room, or the server that does not answer.
    pub async fn find_space_candidates(&self) -> Result<Result<Vec<Candidate>, CallFailure>, DbError> {
        let (parts, now) = (self.live.current(), self.clock.now());
        let settings = parts.settings.clone();
        let records = self.db.read(move |conn| making_room::load_space_records(conn, &settings, now)).await?;
        let search =
            CandidateSearch { library: &parts.library, records: &records, now, zone: &parts.settings.zone };
        Ok(search.find_candidates().await)
    }

    /// Returns a word that identifies the server of an instance; `None` if no instance has this name.
    pub fn server_key(&self, instance: &str) -> Option<String> {
        let identities = self.live.current().library.identities();
        let identity =
            identities.into_iter().find(|(name, _)| *name == instance).map(|(_, identity)| identity)?;
        let digest = Sha256::digest(identity.as_bytes());
        Some(digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect())
    }

    /// Fetches the poster of a title from its instance; `None` if the instance or the poster does not exist.
    pub async fn fetch_poster(&self, instance: &str, id: i64) -> Result<Option<Bytes>, ArrError> {
        overview::fetch_poster(&self.live.current().library, instance, id).await
    }

    /// Requests the deletion of a title with its files. It is deleted once the request is approved, in the same way as
    /// that of a member.
    pub async fn request_deletion(
        &self,
        instance: &str,
        kind: MediaKind,
        id: i64,
    ) -> Result<DeletionRequestOutcome, DbError> {
        let parts = self.live.current();
        let item = match overview::freeze_title(&parts.library, instance, kind, id).await {
            Ok(item) => Box::new(item),
            Err(TitleLookupError::Unknown) => return Ok(DeletionRequestOutcome::UnknownTitle),
            Err(TitleLookupError::Unreachable) => return Ok(DeletionRequestOutcome::Unreachable),
        };
        let (settings, now) = (parts.settings.clone(), self.clock.now());
        let request = move |conn: &mut Conn| {
            let Some(admin) = find_reachable_admin(conn)? else {
                return Ok(DeletionRequestOutcome::NoAdmin);
            };
            let kind = ApprovalKind::Delete(item.clone());
            let open = approvals::load_open_approvals(conn)?;
            if let Some(open) = open.iter().find(|open| open.kind == kind && !open.has_expired(now)) {
                return Ok(DeletionRequestOutcome::Waiting(open.id));
            }
            let mut codes = settings.codes.approval_codes();
            let new = NewApproval { user: admin.id, kind: &kind, call: None };
            let approval = approvals::request_approval(conn, &new, &mut || codes.draw_code(), now)?;
            let subject = AuditSubject::Approval(approval.id);
            let entry =
                NewAuditEntry { actor: Actor::Console, kind: "ask_deletion", subject, detail: json!({}) };
            audit::record_change(conn, &entry, now)?;
            Ok(DeletionRequestOutcome::Waiting(approval.id))
        };
        self.db.write(request).await
    }

    /// Lets Sonarr or Radarr search for what is missing of a title.
    pub async fn search_again(
        &self,
        instance: &str,
        kind: MediaKind,
        id: i64,
    ) -> Result<SearchOutcome, DbError> {
        let library = self.live.current().library.clone();
        let entry = |kind, detail| NewAuditEntry {
            actor: Actor::Console,
            kind,
            subject: AuditSubject::Household,
            detail,
        };
        let (intent, now) = (entry("write", json!({})), self.clock.now());
        self.db.write(move |conn| audit::record_intent(conn, &intent, now)).await?;
        let searched = overview::search_title(&library, instance, kind, id).await;
        let end = match &searched {
            Ok(title) => entry("write_done", json!({ "status": "being_looked_for", "title": title })),
            Err(_) => entry("write_failed", json!({})),
        };
        let now = self.clock.now();
        self.db
            .write(move |conn| {
                audit::record_outcome(conn, &end, now);
                Ok(())
            })
            .await?;
        Ok(match searched {
            Ok(_) => SearchOutcome::Started,
            Err(TitleLookupError::Unknown) => SearchOutcome::UnknownTitle,
            Err(TitleLookupError::Unreachable) => SearchOutcome::Failed,
        })
    }

    /// Declines a request whose title is not added yet, and notifies the requester, with the reason if there is one.
    pub async fn decline_request(
        &self,
        id: i64,
        reason: Option<String>,
        actor: Actor,
    ) -> Result<DeclineOutcome, DbError> {
        let (settings, now) = (self.live.settings(), self.clock.now());
        let decline = move |conn: &mut Conn| {
            let Some(open) = load_open_addition(conn, id)? else { return Ok(DeclineOutcome::NotWaiting) };
            match open.state {
                DeferredAdditionState::Waiting => {}
                // The outcome of the attempt is unknown, and is reported once it is known.
                DeferredAdditionState::InProgress => return Ok(DeclineOutcome::NotWaiting),
            }
            match settle_title_request(conn, id, &TitleRequestOutcome::GivenUp, now)? {
                SettleRequestOutcome::Settled => {}
                SettleRequestOutcome::Withdrawn => return Ok(DeclineOutcome::NotWaiting),
            }
            let text = title_requests::format_declined(&open.title, reason.as_deref());
            notify_user(conn, open.user, (&format!("request:{id}:declined"), &text), (&settings, now))?;
            let subject = AuditSubject::User(open.user);
            let detail = json!({ "request": id });
            let entry = NewAuditEntry { actor, kind: "decline", subject, detail };
            audit::record_change(conn, &entry, now)?;
            Ok(DeclineOutcome::Declined)
        };
        let outcome = self.db.write(decline).await?;
        self.outbox.notify();
        Ok(outcome)
    }
}

fn notify_user(
    conn: &mut Conn,
    user: UserId,
    (key, text): (&str, &str),
    (settings, now): (&HouseholdSettings, Timestamp),
) -> QueryResult<()> {
    let user = users::load_user(conn, user)?;
    let address = ReplyAddress::load_for_user(conn, &user, &settings.senders)?;
    outbox::queue_message_once(conn, &address.notification_message(key, text), now)
}
