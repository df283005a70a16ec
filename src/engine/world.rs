//! Context that a tool gets of the moment it runs in.

use jiff::Timestamp;

use super::run::Scene;
use super::{Engine, Quotas};
use crate::conversation::frozen::FrozenItem;
use crate::conversation::naming;
use crate::conversation::rate::Rate;
use crate::conversation::requests::{AskedFor, Who};
use crate::conversation::transcript::{Counted, EventId, Role, Tier, User, UserId};
use crate::store::approvals::{self, Matter};
use crate::store::requests::Asked;
use crate::store::{Conn, QueryResult, ledger, quotas, requests, users};
use crate::tools::{Allowance, Asking, Standing, World};

impl Engine {
    /// Loads everything that a tool may know.
    pub(super) async fn world(&self, scene: &Scene, tier: Tier) -> anyhow::Result<World> {
        let records = self.0.parts.db.read(self.records(scene, tier)).await?;
        Ok(self.world_with(scene, records))
    }

    /// Reads our records for a tool. A tool that only reads does not need the user's own additions and removal
    /// requests.
    pub(super) fn records(
        &self,
        scene: &Scene,
        tier: Tier,
    ) -> impl FnOnce(&mut Conn) -> QueryResult<Records> + Send + 'static {
        let (now, quotas, user) = (self.now(), self.0.parts.settings.quotas, scene.user.clone());
        let last = scene.events.last().map(|event| event.id);
        move |conn| {
            let asked_for = asked_for(conn, &user)?;
            let own = match tier {
                Tier::Write | Tier::Destructive => Own::of(conn, &user, last, quotas, now)?,
                Tier::Read => Own::default(),
            };
            Ok(Records { asked_for, own })
        }
    }

    pub(super) fn world_with(&self, scene: &Scene, records: Records) -> World {
        let settings = &self.0.parts.settings;
        let Records { asked_for, own: Own { allowance, wishes, admins, last_three } } = records;
        World {
            now: self.now(),
            zone: settings.zone.clone(),
            rights: scene.user.rights,
            said: scene.turn.texts.clone(),
            last_three,
            languages: settings.languages.clone(),
            allowance,
            wishes,
            admins,
            asked_for,
            facts: scene.facts.clone(),
            asking: Asking::Now,
        }
    }
}

/// Our records that matter to a tool.
pub(super) struct Records {
    asked_for: Vec<AskedFor>,
    own: Own,
}

/// Loads the recent title requests of the household, by name: phone numbers are shown to no user.
fn asked_for(conn: &mut Conn, user: &User) -> QueryResult<Vec<AskedFor>> {
    let asked = requests::lately(conn)?;
    let everyone = if asked.is_empty() { Vec::new() } else { users::known(conn)? };
    let who = |id: UserId| match everyone.iter().find(|one| one.id == id) {
        _ if id == user.id => Who::You,
        Some(User { name: Some(name), .. }) => Who::Named(name.clone()),
        Some(_) | None => Who::Someone,
    };
    let told = asked.into_iter().map(|Asked { user, wanted, stage, at }| AskedFor {
        who: who(user),
        wanted,
        stage,
        at,
    });
    Ok(told.collect())
}

/// Records of the user alone.
#[derive(Default)]
struct Own {
    allowance: Allowance,
    wishes: Vec<FrozenItem>,
    admins: usize,
    last_three: Vec<String>,
}

impl Own {
    fn of(
        conn: &mut Conn,
        user: &User,
        last: Option<EventId>,
        quotas: Quotas,
        now: Timestamp,
    ) -> QueryResult<Self> {
        let quotas = match user.rights.role {
            Role::Admin => Quotas { movies: None, seasons: None },
            Role::Member => quotas.of_member(quotas::own(conn, user.id)?),
        };
        let mut standing = |rate: Option<Rate>, what| -> QueryResult<Standing> {
            let counted = match rate {
                Some(rate) => quotas::counted(conn, user.id, what, now - rate.within)?,
                None => Vec::new(),
            };
            Ok(Standing { rate, counted })
        };
        let movies = standing(quotas.movies, Counted::Movies)?;
        let seasons = standing(quotas.seasons, Counted::Seasons)?;
        let admins = users::admins(conn)?;
        let whom_to_ask = naming::whom_to_ask(&admins);
        let wishes = approvals::open_about(conn, user.id)?.into_iter().filter_map(|open| match open.matter {
            Matter::Delete(item) => Some(*item),
            Matter::Join => None,
        });
        Ok(Self {
            allowance: Allowance { movies, seasons, whom_to_ask },
            wishes: wishes.collect(),
            admins: admins.len(),
            last_three: ledger::bodies_up_to(conn, user.id, last, 3)?,
        })
    }
}
