//! What a tool is told of the moment it runs in.

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
        let user = scene.user.clone();
        let asked_for = self.0.parts.db.read(move |conn| asked_for(conn, &user)).await?;
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
            asked_for,
            facts: scene.facts.clone(),
            asking: Asking::Now,
        })
    }
}

/// What the household asked for lately, by name: numbers are for nobody.
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
