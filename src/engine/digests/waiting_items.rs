//! Matters that wait for the reader of a digest, or whose outcome the reader waits for.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::conversation::deletion::deletion_messages::format_target_name;
use crate::conversation::digest::content::WaitingItem;
use crate::conversation::digest::digest_messages;
use crate::conversation::people::naming;
use crate::conversation::transcript::{MediaKind, User, UserRole};
use crate::store::confirmation::approvals::{self, Approval, ApprovalKind};
use crate::store::library::title_requests;
use crate::store::people::users;
use crate::store::{Conn, QueryResult, votes};

/// Reader of a digest, whose titles are limited to those that were checked.
pub(super) struct WaitingReader<'a> {
    pub(super) user: &'a User,
    pub(super) is_room: bool,
    /// Titles that a reader with caps may learn about; `None` for a reader without caps.
    pub(super) allowed: Option<&'a BTreeSet<(MediaKind, i64)>>,
}

impl WaitingReader<'_> {
    pub(super) fn load_items(&self, conn: &mut Conn, now: Timestamp) -> QueryResult<Vec<WaitingItem>> {
        let mut items = Vec::new();
        if !self.is_room {
            for approval in approvals::load_open_approvals(conn)? {
                if !approval.has_expired(now) {
                    items.extend(self.approval_item(conn, &approval)?);
                }
            }
            let additions = title_requests::load_additions_of(conn, self.user.id)?;
            let additions = additions
                .into_iter()
                .filter(|addition| self.may_learn((addition.title.kind, addition.title.catalog_id)));
            items.extend(additions.map(|addition| WaitingItem::Addition {
                id: addition.id,
                title: addition.title.format_name(),
            }));
        }
        items.extend(self.load_vote(conn, now)?);
        Ok(items)
    }

    fn may_learn(&self, title: (MediaKind, i64)) -> bool {
        self.allowed.is_none_or(|allowed| allowed.contains(&title))
    }

    /// Returns the item of an approval that the reader may decide, or of a deletion that the reader asked for.
    fn approval_item(&self, conn: &mut Conn, approval: &Approval) -> QueryResult<Option<WaitingItem>> {
        let requester = users::load_user(conn, approval.user)?;
        let name = naming::display_name(&requester);
        let id = approval.id;
        // A reader with caps decides nothing, and the approvals name titles that were not checked.
        if self.allowed.is_some() {
            return Ok(None);
        }
        if !may_decide(self.user, approval) {
            let own = match &approval.kind {
                ApprovalKind::Delete(item) if approval.user == self.user.id => {
                    Some(WaitingItem::OwnRequest { id, title: format_target_name(item) })
                }
                _ => None,
            };
            return Ok(own);
        }
        let subject = match &approval.kind {
            ApprovalKind::Join => digest_messages::format_newcomer(&name),
            ApprovalKind::LinkAccount(_) => digest_messages::format_account_link(&name),
            ApprovalKind::Delete(item) => digest_messages::format_removal(&name, &format_target_name(item)),
            ApprovalKind::SeerrRequest(offer) => {
                digest_messages::format_title_wish(&offer.requester, &offer.title)
            }
            ApprovalKind::Title(over_cap) => {
                digest_messages::format_title_wish(&name, &over_cap.wanted.format_name())
            }
        };
        Ok(Some(WaitingItem::Approval { id, subject }))
    }

    /// Returns the open vote of the room, or the one that the person was asked about and has not answered. Its options are
    /// free text, so people with caps take no part.
    fn load_vote(&self, conn: &mut Conn, now: Timestamp) -> QueryResult<Option<WaitingItem>> {
        let room = self.is_room.then_some(self.user.id);
        let Some(vote) = votes::find_open_vote(conn, room)?.filter(|vote| vote.closes_at > now) else {
            return Ok(None);
        };
        let is_asked = self.is_room
            || self.allowed.is_none()
                && votes::find_ballot_message(conn, &vote, self.user.id)?.is_some()
                && votes::load_choice(conn, vote.id, self.user.id)?.is_none();
        Ok(is_asked.then_some(WaitingItem::Vote(vote.id)))
    }
}

/// Returns whether a person decides about an approval: admins about all of them, and parents about titles.
pub(in crate::engine) fn may_decide(user: &User, approval: &Approval) -> bool {
    match approval.kind {
        ApprovalKind::Title(_) => user.rights.may_approve_titles(),
        _ => user.rights.role == UserRole::Admin,
    }
}
