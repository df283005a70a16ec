//! What a tool is told of the moment it runs in.

use jiff::Timestamp;

use super::run::Scene;
use super::{Engine, Quotas};
use crate::conversation::frozen::FrozenItem;
use crate::conversation::naming;
use crate::conversation::rate::Rate;
use crate::conversation::transcript::{Counted, EventId, Role, Tier, User};
use crate::store::approvals::{self, Matter};
use crate::store::{Conn, QueryResult, ledger, quotas, users};
use crate::tools::{Allowance, Standing, World};

impl Engine {
    /// What a tool may know. One that only reads need not know what the user has added and asked for.
    pub(super) async fn world(&self, scene: &Scene, tier: Tier) -> anyhow::Result<World> {
        let settings = &self.0.parts.settings;
        let (now, quotas, user) = (self.now(), settings.quotas, scene.user.clone());
        let last = scene.events.last().map(|event| event.id);
        let read = move |conn: &mut _| Records::of(conn, &user, last, quotas, now);
        let Records { allowance, wishes, admins, last_three } = match tier {
            Tier::Write | Tier::Destructive => self.0.parts.db.read(read).await?,
            Tier::Read => Records::default(),
        };
        Ok(World {
            now,
            zone: settings.zone.clone(),
            rights: scene.user.rights,
            said: scene.turn.texts.clone(),
            last_three,
            languages: settings.languages.clone(),
            allowance,
            wishes,
            admins,
        })
    }
}

/// What our records hold of a user that matters to a tool.
#[derive(Default)]
struct Records {
    allowance: Allowance,
    wishes: Vec<FrozenItem>,
    admins: usize,
    last_three: Vec<String>,
}

impl Records {
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
