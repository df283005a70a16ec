//! What tools do to our own records, in the transaction that stores the result of their call.

use jiff::Timestamp;

use super::ending::WayBack;
use super::run::Scene;
use super::{Settings, ending};
use crate::conversation::action::Action;
use crate::conversation::frozen::FrozenItem;
use crate::conversation::transcript::{CallRow, EventId, User};
use crate::conversation::{deletion, naming};
use crate::store::approvals::{self, Matter, NewApproval};
use crate::store::{Conn, QueryResult, outbox, quotas, reactions, undone_if_failed};
use crate::tools::Deed;

/// Whose deed it is.
#[derive(Debug, Clone)]
pub(super) struct Doer {
    pub(super) user: User,
    /// The last text of the turn.
    pub(super) last: Option<EventId>,
    pub(super) call: CallRow,
}

impl Doer {
    pub(super) fn of(scene: &Scene, call: CallRow) -> Self {
        Self { user: scene.user.clone(), last: scene.events.last().map(|event| event.id), call }
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
    }
}

/// An action that fails must not keep the answer from going out.
fn act(conn: &mut Conn, doer: &Doer, action: &Action, settings: &Settings, now: Timestamp) {
    let done = undone_if_failed(conn, |conn| match (action, doer.last) {
        (Action::React(emoji), Some(on)) => reactions::react(conn, doer.user.id, on, emoji, now),
        (Action::React(_), None) => Ok(()),
        (Action::SendPoster(poster), _) => {
            let way = WayBack::to_user(conn, &doer.user, settings.number.as_ref())?;
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
    let question = deletion::wish(&naming::called(&doer.user), item, approval.code.as_str());
    let key = format!("approval:{}", approval.id);
    ending::tell_admins(conn, settings.number.as_ref(), &key, &question, now)
}
