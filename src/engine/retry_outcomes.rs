//! Outcome of a try of a waiting addition: it is recorded, and its user is notified once it is final.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::calling::OUTCOME_UNKNOWN;
use super::change_record::{self, OutcomeSource};
use super::deeds::{self, Doer};
use super::ending::WayBack;
use super::retries::{Outcome, tool_name};
use super::run::Scene;
use super::telling::leaves_at;
use super::{Engine, Settings};
use crate::conversation::requests as words;
use crate::conversation::requests::{Trying, Wanted};
use crate::conversation::transcript::{CallFailure, Status, User};
use crate::store::db::DbError;
use crate::store::request_groups::{self, Closed, RequestGroup};
use crate::store::requests::{self, End, Open};
use crate::store::{Conn, QueryResult, audit, follows, outbox, users};
use crate::tools::{Deed, Ran};

/// Pause between two checks of the outcome of a try.
const LOOK_PAUSE: SignedDuration = SignedDuration::from_mins(2);

impl Engine {
    pub(super) async fn record_try(
        &self,
        scene: &Scene,
        group: &RequestGroup,
        outcome: Outcome,
    ) -> anyhow::Result<()> {
        let (id, open) = (group.whole.id, &group.whole);
        // The clock may have been set during the try, which shifts the stored wait.
        let current = self.0.parts.db.read(move |conn| requests::open(conn, id)).await?;
        let now = self.now();
        let asked_at = current.map_or(open.asked_at, |current| current.asked_at);
        let tries = match open.trying {
            Trying::Waiting => open.tries + 1,
            Trying::UnderWay => open.tries,
        };
        let (ids, next) = (group.all_ids(), words::next_try(asked_at, tries, now));
        let given_up = match (outcome, next) {
            (Outcome::Ran(ran), _) => return self.end_as_added(scene, group, ran).await,
            (Outcome::NotMade, Some(next)) => {
                let write = move |conn: &mut _| request_groups::try_at(conn, &ids, next);
                return Ok(self.0.parts.db.write(write).await?);
            }
            (Outcome::Unknown, Some(_)) => {
                // A try that has just begun is checked at once.
                let at = match open.trying {
                    Trying::Waiting => now,
                    Trying::UnderWay => now + LOOK_PAUSE,
                };
                let write = move |conn: &mut _| request_groups::look_at(conn, &ids, at);
                return Ok(self.0.parts.db.write(write).await?);
            }
            (Outcome::Refused(failure), _) => GivenUp::refused(group, failure),
            (Outcome::NotMade, None) => {
                GivenUp::to_all(words::given_up(&open.wanted), "not_reached_for_a_day")
            }
            (Outcome::Unknown, None) => GivenUp::to_all(words::never_known(&open.wanted), OUTCOME_UNKNOWN),
        };
        self.end_as_given_up(scene, group, given_up).await
    }

    /// Ends additions that are in the library: the call's effects on our records are applied, and their user is
    /// notified.
    async fn end_as_added(&self, scene: &Scene, group: &RequestGroup, ran: Ran) -> anyhow::Result<()> {
        let Ran { result, deeds } = ran;
        let wanted = requested(&deeds).unwrap_or(&group.whole.wanted).clone();
        let was_added = deeds.iter().any(|deed| matches!(deed, Deed::Count(_)));
        let told = match was_added {
            true => words::added(&wanted),
            false => words::there_in_vain(&wanted, &result).unwrap_or_else(|| words::was_there(&wanted)),
        };
        let told = [Some(told), group.refusal.clone()].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let tool = tool_name(wanted.kind);
        let note =
            |part: &Open| change_record::outcome(scene, part.call, OutcomeSource::Response, tool, &result);
        let notes: Vec<audit::Entry> = group.parts().iter().map(note).collect();
        let doer = Doer::of(scene, group.whole.call);
        let (group, settings, now) = (group.clone(), self.0.parts.settings.clone(), self.now());
        let end = move |conn: &mut Conn| {
            let Closed::Into(id) = request_groups::close(conn, &group, &End::Added(&wanted), now)? else {
                // If the user was erased meanwhile, no title is stored; their quota usage counts all the same.
                for note in notes {
                    audit::record_outcome(conn, &audit::Entry { detail: json!({}), ..note }, now);
                }
                let mut counted = deeds.iter().filter(|deed| matches!(deed, Deed::Count(_)));
                return counted.try_for_each(|deed| deeds::perform(conn, &doer, deed, &settings, now));
            };
            notes.iter().for_each(|note| audit::record_outcome(conn, note, now));
            // The request itself was settled above.
            for deed in deeds.iter().filter(|deed| !matches!(deed, Deed::Request(..))) {
                deeds::perform(conn, &doer, deed, &settings, now)?;
            }
            tell(conn, &doer.user, &settings, (id, &told), now)?;
            // If the call has started a follow, more is to come, and the followers are notified later.
            if deeds.iter().any(|deed| matches!(deed, Deed::Follow(_))) {
                return Ok(());
            }
            tell_followers(conn, (id, &group.whole), &settings, &words::ready(&wanted), now)
        };
        self.0.parts.db.write(end).await?;
        self.0.parts.outbox.ring();
        Ok(())
    }

    pub(super) async fn end_as_given_up(
        &self,
        scene: &Scene,
        group: &RequestGroup,
        given_up: GivenUp,
    ) -> anyhow::Result<()> {
        let (user, settings) = (scene.user.clone(), self.0.parts.settings.clone());
        let notes: Vec<audit::Entry> =
            group.parts().iter().map(|part| failed(scene, part, &given_up.reason)).collect();
        let (group, now) = (group.clone(), self.now());
        let end = move |conn: &mut _| {
            let Closed::Into(id) = request_groups::close(conn, &group, &End::GivenUp, now)? else {
                return Ok(());
            };
            notes.iter().for_each(|note| audit::record_outcome(conn, note, now));
            tell(conn, &user, &settings, (id, &given_up.told), now)?;
            if requests::may_come(conn, &group.whole.wanted)? {
                return Ok(());
            }
            tell_followers(conn, (id, &group.whole), &settings, &given_up.to_others, now)
        };
        self.0.parts.db.write(end).await?;
        self.0.parts.outbox.ring();
        Ok(())
    }

    /// Gives up an addition whose row or turn cannot be read, with one honest notification. Its row is kept.
    pub(super) async fn give_up_unreadable(&self, id: i64, error: &DbError) -> anyhow::Result<()> {
        tracing::error!(request = id, %error, "gave up an addition that cannot be read");
        let (settings, now) = (self.0.parts.settings.clone(), self.now());
        let end = move |conn: &mut Conn| {
            let Some(lost) = requests::unreadable_request(conn, id)? else { return Ok(()) };
            requests::settle(conn, id, &End::GivenUp, now)?;
            let user = users::get(conn, lost.user)?;
            if user.status != Status::Active || user.opted_out {
                return Ok(());
            }
            let told = words::unreadable(&lost.wanted, lost.trying);
            tell(conn, &user, &settings, (id, &told), now)
        };
        self.0.parts.db.write(end).await?;
        self.0.parts.outbox.ring();
        Ok(())
    }
}

/// Title request among the effects of an addition, with the name that the library has for the title.
fn requested(deeds: &[Deed]) -> Option<&Wanted> {
    deeds.iter().find_map(|deed| match deed {
        Deed::Request(wanted, _) => Some(wanted),
        Deed::Act(_) | Deed::Count(_) | Deed::AskAdmins(_) => None,
        Deed::Follow(_) | Deed::Notify(_) | Deed::Unfollow(_) | Deed::Queue(..) => None,
        Deed::Remember(_) | Deed::Forget(..) => None,
    })
}

/// End of additions that were not made, or that have an unknown outcome.
pub(super) struct GivenUp {
    /// Message to the user of the request.
    told: String,
    /// Message to other followers of the title.
    to_others: String,
    /// Reason in the audit log.
    reason: String,
}

impl GivenUp {
    pub(super) fn to_all(told: String, reason: &str) -> Self {
        Self { to_others: told.clone(), told, reason: reason.to_owned() }
    }

    fn refused(group: &RequestGroup, failure: CallFailure) -> Self {
        let wanted = &group.whole.wanted;
        let why = group.refusal.as_deref().or(failure.for_user.as_deref());
        // The reason for the refusal may concern only this one user.
        let to_others = words::refused(wanted, None);
        Self { told: words::refused(wanted, why), to_others, reason: failure.code }
    }
}

/// Audit row of an addition that was not made, or that has an unknown outcome.
pub(super) fn failed(scene: &Scene, open: &Open, reason: &str) -> audit::Entry {
    change_record::failed_write(scene, open.call, tool_name(open.wanted.kind), reason)
}

/// Notifies a user once of the outcome of their request: even a user without notifications, since it was promised, but
/// outside their quiet hours.
fn tell(
    conn: &mut Conn,
    user: &User,
    settings: &Settings,
    (request, told): (i64, &str),
    now: Timestamp,
) -> QueryResult<()> {
    let way = WayBack::to_user(conn, user, settings.number.as_ref())?;
    let at = leaves_at(conn, user.id, settings, now)?;
    outbox::queue_once_for(conn, &way.notice(&format!("request:{request}"), told), at, now)
}

/// Notifies all other followers of exactly this title of its outcome, and ends their follows.
fn tell_followers(
    conn: &mut Conn,
    (request, open): (i64, &Open),
    settings: &Settings,
    told: &str,
    now: Timestamp,
) -> QueryResult<()> {
    let mut followers = Vec::new();
    for what in deeds::followed(&open.wanted) {
        followers.extend(follows::end(conn, &what, now)?);
    }
    followers.sort_unstable_by_key(|user| user.0);
    followers.dedup();
    for user in followers.into_iter().filter(|user| *user != open.user) {
        let person = users::get(conn, user)?;
        if person.status == Status::Active && !person.opted_out {
            tell(conn, &person, settings, (request, told), now)?;
        }
    }
    Ok(())
}
