//! Columns in which approvals store their subjects.

use diesel::prelude::*;
use serde::{Deserialize, Serialize};

use super::approvals::{ApprovalKind, StoredApprovalKind};
use crate::conversation::title_approvals::TitleOverCap;
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::MediaKind;
use crate::conversation::viewer_accounts::MediaServerKind;
use crate::store::codec::{arguments_json, fingerprint_json, from_json, parse_arguments, to_json};
use crate::store::schema::approvals;

/// Columns that store the subject of an approval.
#[derive(Insertable)]
#[diesel(table_name = approvals)]
pub(super) struct SubjectColumns<'a> {
    kind: StoredApprovalKind,
    instance: Option<&'a str>,
    item_kind: Option<MediaKind>,
    item_id: Option<i64>,
    fingerprint: Option<String>,
    account_id: Option<&'a str>,
    account_name: Option<&'a str>,
    title: Option<&'a str>,
    wanted: Option<String>,
}

impl<'a> SubjectColumns<'a> {
    pub(super) fn from_kind(kind: &'a ApprovalKind) -> QueryResult<Self> {
        let empty = Self {
            kind: StoredApprovalKind::Join,
            instance: None,
            item_kind: None,
            item_id: None,
            fingerprint: None,
            account_id: None,
            account_name: None,
            title: None,
            wanted: None,
        };
        Ok(match kind {
            ApprovalKind::Join => empty,
            ApprovalKind::Delete(item) => Self {
                kind: StoredApprovalKind::Delete,
                instance: Some(&item.instance),
                item_kind: Some(item.kind),
                item_id: Some(item.id),
                fingerprint: Some(fingerprint_json(&item.fingerprint)?),
                ..empty
            },
            ApprovalKind::LinkAccount(account) => Self {
                kind: StoredApprovalKind::LinkAccount,
                instance: Some(account.server.name()),
                account_id: Some(&account.id),
                account_name: Some(&account.name),
                ..empty
            },
            ApprovalKind::SeerrRequest(offer) => Self {
                kind: StoredApprovalKind::SeerrRequest,
                instance: Some(MediaServerKind::Seerr.name()),
                item_id: Some(offer.request),
                account_id: Some(&offer.requester_id),
                account_name: Some(&offer.requester),
                title: Some(&offer.title),
                ..empty
            },
            ApprovalKind::Title(over_cap) => Self {
                kind: StoredApprovalKind::Title,
                instance: Some(&over_cap.wanted.instance),
                item_kind: Some(over_cap.wanted.kind),
                item_id: Some(over_cap.wanted.catalog_id),
                wanted: Some(over_cap.text_json()?),
                ..empty
            },
        })
    }
}

/// Stored text of a request for a title over the caps, after its erasure.
pub(in crate::store) const ERASED_WANTED_TITLE: &str =
    r#"{"title":"a title","year":0,"seasons":null,"rating":"","arguments":"{\"arguments\":{}}"}"#;

/// Text of a request for a title over the caps, as it is stored.
#[derive(Serialize, Deserialize)]
struct WantedText {
    title: String,
    year: u16,
    seasons: Option<Vec<u32>>,
    rating: String,
    /// Arguments of the addition, in the form of the column `arguments` of other tables.
    arguments: String,
}

impl TitleOverCap {
    fn text_json(&self) -> QueryResult<String> {
        to_json(&WantedText {
            title: self.wanted.title.clone(),
            year: self.wanted.year,
            seasons: self.wanted.seasons.clone(),
            rating: self.rating.clone(),
            arguments: arguments_json(&self.arguments),
        })
    }

    pub(super) fn from_columns(
        instance: String,
        (kind, catalog_id): (MediaKind, i64),
        text: &str,
    ) -> QueryResult<Self> {
        let WantedText { title, year, seasons, rating, arguments } = from_json("wanted", text)?;
        Ok(Self {
            wanted: RequestedTitle { instance, kind, catalog_id, title, year, seasons },
            rating,
            arguments: parse_arguments(&arguments)?,
        })
    }
}
