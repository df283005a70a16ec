//! Repeated search for a movie that is in the library.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::more::{Search, not_so, with_count};
use crate::arr::Movie;
use crate::arr::changes::MovieChange;
use crate::arr::radarr::Radarr;
use crate::conversation::transcript::{Added, CallResult, Counted, MediaKind, MediaRef};
use crate::tools::answers::{clean_title, named};
use crate::tools::approval;
use crate::tools::library::Instance;
use crate::tools::movies::remembered;
use crate::tools::removal::unknown;
use crate::tools::{Ran, Settled, ToolError, World};

const LATELY: SignedDuration = SignedDuration::from_mins(10);
pub(super) const ONE_MOVIE: Added = Added { what: Counted::Movies, amount: 1 };
const LOOKED_FOR: MovieChange = MovieChange { monitored: Some(true), profile: None, availability: None };

/// Searches for a movie again. A movie that was not monitored is monitored from now on, which counts as an addition.
pub async fn look_again(instance: &Instance<Radarr>, id: i64, world: &World) -> Result<Ran, ToolError> {
    let radarr = &instance.client;
    let held = radarr.movie(id).await.map_err(|error| instance.refused(&error))?;
    let mut held = held.ok_or_else(|| unknown(id))?;
    let count = (!held.monitored && !held.has_file).then_some(ONE_MOVIE);
    if let Some(count) = count {
        approval::within_quota(world, count)?;
        let written = radarr.edit(id, LOOKED_FOR).await.map_err(|error| instance.failed_write(&error));
        if let Err(error @ (ToolError::TellModel(_) | ToolError::Fatal(_))) = written {
            return Err(error);
        }
        // If the response was lost, the flag shows whether the change was made.
        let after = radarr.movie(id).await.map_err(|error| instance.unread_write(&error))?;
        held = after
            .filter(|after| after.monitored)
            .ok_or_else(|| written.err().unwrap_or_else(|| ToolError::Unknown(not_so(instance, id))))?;
    }
    let search = match radarr.search(id).await {
        Ok(_) => Search::Begun,
        Err(error) if count.is_none() => return Err(instance.failed_write(&error)),
        Err(error) => {
            tracing::warn!(instance = instance.name, id, %error, "failed to begin a search");
            Search::NotBegun
        }
    };
    let ran = with_count(looking(instance, &held, search), count);
    Ok(if held.has_file { ran } else { remembered(ran, instance, &held) })
}

/// Determines the outcome of an interrupted search. The earlier monitoring state is no longer known, so the search does
/// not count towards the quota.
pub async fn settle(instance: &Instance<Radarr>, id: i64, world: &World) -> Result<Settled, ToolError> {
    Ok(match instance.client.movie(id).await {
        Ok(Some(held)) if searched_lately(&held, world.now) => {
            Settled::Done(looking(instance, &held, Search::Begun).into())
        }
        Ok(_) => Settled::NotDone,
        Err(error) => {
            tracing::warn!(instance = instance.name, id, %error, "failed to settle a search");
            Settled::Unknown
        }
    })
}

fn searched_lately(held: &Movie, now: Timestamp) -> bool {
    let wanted = held.monitored || held.has_file;
    wanted && held.last_search.is_some_and(|at| now.duration_since(at) <= LATELY)
}

fn looking(instance: &Instance<Radarr>, held: &Movie, search: Search) -> CallResult {
    let name = named(&held.title, held.year);
    let for_user = match search {
        Search::Begun if held.has_file => format!("Looking for a better copy of {name} now."),
        Search::Begun if !held.available => {
            format!("Looking for {name} now. It is not out yet, so there may be nothing to find.")
        }
        Search::Begun => format!("Looking for {name} now."),
        Search::NotBegun | Search::NothingOut => format!(
            "{name} will be fetched from now on, but {} did not begin to look at once.",
            instance.label()
        ),
    };
    let mut shown = vec![MediaRef::Tmdb(held.tmdb)];
    shown.extend(held.id.map(|id| instance.item(MediaKind::Movie, id)));
    CallResult { for_model: told(held, search.word()), for_user, shown }
}

pub(super) fn told(held: &Movie, status: &str) -> Value {
    json!({ "status": status, "type": "movie", "title": clean_title(&held.title), "year": held.year,
        "on_disk": held.has_file, "looked_for": held.monitored && !held.has_file, "released": held.available })
}
