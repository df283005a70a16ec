//! Offers of next seasons: who may get one, and the offer itself, in the transaction that records it.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::fanout::{NotificationFanout, NotifyOutcome};
use crate::conversation::next_season::OFFER_INTERVAL;
use crate::conversation::notifications::arr_events::{NotificationText, NotificationTopic};
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{QuotaKind, User, UserId, UserRole, UserStatus};
use crate::conversation::viewer_accounts::ViewerAccount;
use crate::store::QueryResult;
use crate::store::library::{quotas, title_requests};
use crate::store::people::{users, viewer_accounts};
use crate::store::queue::notifications::{self, NotificationSetting};

/// Prefix of the keys of offers. The rest is a hash, so that the key does not state what was watched.
const KEY_PREFIX: &str = "next_season:";

/// Way by which users add seasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AdditionPath {
    /// Sonarr, within the quota of the household.
    Sonarr,
    /// Seerr, which has quotas of its own.
    Seerr,
}

/// User who may be offered a season, with their accounts at the media servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OfferRecipient {
    pub(super) user: UserId,
    pub(super) accounts: Vec<ViewerAccount>,
    /// Account in whose name titles are requested at a Seerr.
    pub(super) seerr_account: Option<ViewerAccount>,
}

/// Season to offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeasonOffer {
    /// Series with the season as its only one.
    pub(super) season: RequestedTitle,
    pub(super) text: NotificationText,
}

/// Outcome of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfferOutcome {
    Offered,
    /// The user may not be offered a season, was offered this one before, or somebody has requested it.
    NotOffered,
}

impl NotificationFanout<'_> {
    /// Loads the users who may be offered a season.
    pub(super) fn load_offer_recipients(&mut self, path: AdditionPath) -> QueryResult<Vec<OfferRecipient>> {
        let mut viewers: Vec<UserId> = viewer_accounts::load_linked_accounts(self.conn)?
            .into_iter()
            .filter(|linked| linked.account.server.is_media_server())
            .map(|linked| linked.user)
            .collect();
        viewers.dedup();
        let mut recipients = Vec::new();
        for user in viewers {
            recipients.extend(self.load_offer_recipient(user, path)?);
        }
        Ok(recipients)
    }

    /// Loads a user who may be offered a season: who watches with a linked account, wants notifications, may add a season
    /// now, and was offered none within the last day.
    fn load_offer_recipient(
        &mut self,
        user: UserId,
        path: AdditionPath,
    ) -> QueryResult<Option<OfferRecipient>> {
        let (accounts, others): (Vec<ViewerAccount>, Vec<ViewerAccount>) =
            viewer_accounts::load_accounts(self.conn, user)?
                .into_iter()
                .partition(|account| account.server.is_media_server());
        let recipient = OfferRecipient { user, accounts, seerr_account: others.into_iter().next() };
        let user = users::load_user(self.conn, user)?;
        let may_add = match path {
            AdditionPath::Sonarr => self.has_season_quota(&user)?,
            AdditionPath::Seerr => recipient.seerr_account.is_some(),
        };
        let is_recipient = may_add
            && !recipient.accounts.is_empty()
            && user.status == UserStatus::Active
            && !user.opted_out
            && user.rights.may_add()
            && self.wants_offer(user.id)?;
        Ok(is_recipient.then_some(recipient))
    }

    fn wants_offer(&mut self, user: UserId) -> QueryResult<bool> {
        if notifications::load_notification_setting(self.conn, user)? == NotificationSetting::Off {
            return Ok(false);
        }
        let last = notifications::load_last_notified(self.conn, user, KEY_PREFIX)?;
        // A time in the future cannot be the time of the last offer: the clock was set back.
        let last = last.filter(|last| *last <= self.now);
        Ok(last.is_none_or(|last| self.now.duration_since(last) >= OFFER_INTERVAL))
    }

    /// Returns whether the quota of a user has capacity for a season.
    fn has_season_quota(&mut self, user: &User) -> QueryResult<bool> {
        let rate = match user.rights.role {
            UserRole::Admin => None,
            UserRole::Member => {
                let own = quotas::load_quota_override(self.conn, user.id)?;
                self.settings.quotas.for_member(own).seasons
            }
        };
        let Some(rate) = rate else { return Ok(true) };
        let since = self.now - rate.period;
        let additions = quotas::load_counted_additions(self.conn, user.id, QuotaKind::Seasons, since)?;
        Ok(rate.remaining_at(&additions, self.now) > 0)
    }

    /// Returns whether a season can be offered to a user: who was not offered it before, and nobody has requested it.
    pub(super) fn is_open_offer(&mut self, user: UserId, season: &RequestedTitle) -> QueryResult<bool> {
        let was_offered =
            notifications::was_notified(self.conn, user, &offer_key(season), Timestamp::UNIX_EPOCH)?;
        Ok(!was_offered && !title_requests::may_still_arrive(self.conn, season)?)
    }

    /// Offers a season to a user, once.
    pub(super) fn offer_season(
        &mut self,
        (recipient, path): (&OfferRecipient, AdditionPath),
        offer: &SeasonOffer,
    ) -> QueryResult<OfferOutcome> {
        let current = self.load_offer_recipient(recipient.user, path)?;
        if current.as_ref() != Some(recipient) || !self.is_open_offer(recipient.user, &offer.season)? {
            return Ok(OfferOutcome::NotOffered);
        }
        let keys = [(offer_key(&offer.season), Timestamp::UNIX_EPOCH)];
        let outcome = self.notify_user(recipient.user, NotificationTopic::NextSeason, &keys, &offer.text)?;
        Ok(match outcome {
            NotifyOutcome::Notified => OfferOutcome::Offered,
            NotifyOutcome::NotNotified => OfferOutcome::NotOffered,
        })
    }
}

fn offer_key(season: &RequestedTitle) -> String {
    let matter = format!("{}:{}:{:?}", season.instance, season.catalog_id, season.seasons);
    let hash = Sha256::digest(matter);
    let digits: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{KEY_PREFIX}{digits}")
}
