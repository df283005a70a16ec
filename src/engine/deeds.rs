//! Tool effects on our own records, in the transaction that stores the result of their call.

use jiff::Timestamp;

use super::ending::WayBack;
use super::run::Scene;
use super::{Settings, ending};
use crate::conversation::action::Action;
use crate::conversation::frozen::FrozenItem;
use crate::conversation::inbound_message::InboundEvent;
use crate::conversation::requests::Wanted;
use crate::conversation::transcript::{Arguments, CallRow, User, UserId};
use crate::conversation::{deletion, naming};
use crate::store::approvals::{self, Matter, NewApproval};
use crate::store::follows::{self, FollowReason, Followed};
use crate::store::memory::facts::{self, Noting, Source, Which};
use crate::store::requests::{self, NewQueued};
use crate::store::{Conn, QueryResult, calls, outbox, quotas, reactions, turns, undone_if_failed};
use crate::tools::Deed;

/// User and call that cause a tool effect.
#[derive(Debug, Clone)]
pub(super) struct Doer {
    pub(super) user: User,
    /// The last message of the turn.
    pub(super) last: Option<InboundEvent>,
    pub(super) call: CallRow,
}

impl Doer {
    pub(super) fn of(scene: &Scene, call: CallRow) -> Self {
        Self { user: scene.user.clone(), last: scene.events.last().cloned(), call }
    }
}

pub(super) fn perform(
    conn: &mut Conn,
    doer: &Doer,
    deed: &Deed,
    settings: &Settings,
    now: Timestamp,
) -> QueryResult<()> {
    match deed {
        Deed::Act(action) => {
            act(conn, doer, action, settings, now);
            Ok(())
        }
        Deed::Count(added) => quotas::count(conn, doer.user.id, doer.call, *added, now),
        Deed::AskAdmins(item) => ask_admins(conn, doer, item, settings, now),
        Deed::Request(wanted, coverage) => {
            requests::remember(conn, doer.user.id, doer.call, (wanted, *coverage), now)
        }
        Deed::Follow(wanted) => follow(conn, doer.user.id, wanted, FollowReason::Request, now),
        Deed::Notify(wanted) => follow(conn, doer.user.id, wanted, FollowReason::Notification, now),
        Deed::Unfollow(wanted) => stop_following(conn, doer.user.id, wanted, now),
        Deed::Queue(wanted, arguments) => queue(conn, doer, wanted, arguments, now),
        Deed::Remember(fact) => {
            let said = Source::Said(doer.last.as_ref().map(|event| event.id));
            if facts::note(conn, doer.user.id, fact, said, now)? == Noting::Full {
                // The tool had checked the limit, so another fact was stored at the same moment.
                tracing::warn!(call = %doer.call, "a fact was not noted: there are too many of this person");
            }
            Ok(())
        }
        Deed::Forget(kind, key) => facts::forget(conn, doer.user.id, Which::Key(*kind, key), now).map(drop),
    }
}

/// Follows each requested season, or the whole title if no seasons are given.
fn follow(
    conn: &mut Conn,
    user: UserId,
    wanted: &Wanted,
    reason: FollowReason,
    now: Timestamp,
) -> QueryResult<()> {
    followed(wanted).iter().try_for_each(|what| follows::follow(conn, user, what, reason, now))
}

/// Stops following the given seasons, or the whole title with every season of it that was followed separately.
fn stop_following(conn: &mut Conn, user: UserId, wanted: &Wanted, now: Timestamp) -> QueryResult<()> {
    followed(wanted).iter().try_for_each(|what| follows::stop(conn, user, what, now))
}

pub(super) fn followed(wanted: &Wanted) -> Vec<Followed> {
    let seasons: Vec<Option<u32>> = match &wanted.seasons {
        None => vec![None],
        Some(seasons) => seasons.iter().copied().map(Some).collect(),
    };
    let follow = |season| {
        let Wanted { instance, kind, catalog_id, .. } = wanted.clone();
        Followed { instance, kind, catalog_id, season }
    };
    seasons.into_iter().map(follow).collect()
}

/// Queues an addition. The library cannot be asked for the title's name, but a result has shown the name to the user.
fn queue(
    conn: &mut Conn,
    doer: &Doer,
    wanted: &Wanted,
    arguments: &Arguments,
    now: Timestamp,
) -> QueryResult<()> {
    let conversation = turns::of_call(conn, doer.call)?.conversation;
    let mut wanted = wanted.clone();
    if let Some((title, year)) = calls::title_shown(conn, conversation, wanted.kind, wanted.catalog_id)? {
        (wanted.title, wanted.year) = (title, year);
    }
    let new = NewQueued { user: doer.user.id, call: doer.call, wanted: &wanted, arguments };
    requests::queue(conn, &new, now)
}

/// Performs an action. An action that fails must not prevent the answer from being sent.
fn act(conn: &mut Conn, doer: &Doer, action: &Action, settings: &Settings, now: Timestamp) {
    let done = undone_if_failed(conn, |conn| match (action, &doer.last) {
        (Action::React(emoji), Some(on)) => reactions::react(conn, doer.user.id, on.id, emoji, now),
        (Action::React(_), None) => Ok(()),
        (Action::SendPoster(poster), last) => {
            let way = match last {
                Some(event) => WayBack::without_turn(&doer.user, event),
                None => WayBack::to_user(conn, &doer.user, settings.number.as_ref())?,
            };
            let picture =
                way.picture(&format!("poster:{}", doer.call), &poster.name, poster.address.as_str());
            outbox::queue_once(conn, &picture, now)
        }
    });
    if let Err(error) = done {
        tracing::error!(%error, call = %doer.call, ?action, "an action failed");
    }
}

fn ask_admins(
    conn: &mut Conn,
    doer: &Doer,
    item: &FrozenItem,
    settings: &Settings,
    now: Timestamp,
) -> QueryResult<()> {
    let matter = Matter::Delete(Box::new(item.clone()));
    let new = NewApproval { user: doer.user.id, matter: &matter, call: Some(doer.call) };
    let mut codes = settings.codes.four_digits();
    let approval = approvals::ask(conn, &new, &mut || codes.draw(), now)?;
    if doer.user.test {
        // The approval waits in the console: no real phone is notified because of a test.
        return Ok(());
    }
    let question = deletion::wish(&naming::called(&doer.user), item, approval.code.as_str());
    let key = format!("approval:{}", approval.id);
    ending::tell_admins(conn, settings.number.as_ref(), &key, &question, now)
}
