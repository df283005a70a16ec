//! Requests for movies at a Seerr.

use super::{KnownTitle, SeerrAddition, SeerrCaller, SeerrChoices, seerr_title};
use crate::arr::Movie;
use crate::arr::radarr::Radarr;
use crate::conversation::transcript::MediaKind;
use crate::seerr::{NewSeerrRequest, Seerr};
use crate::tools::follow_title::requested_movie;
use crate::tools::library::Instance;
use crate::tools::{RecoveryOutcome, ToolContext, ToolError, ToolOutput};

/// Requests a movie, which the library may have without looking for it.
pub(in crate::tools) async fn request_movie(
    seerr: &Seerr,
    (instance, movie): (&Instance<Radarr>, &Movie),
    choices: SeerrChoices,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let caller = SeerrCaller::from_context(seerr, context)?;
    caller.request_title(&addition((instance, movie), choices), KnownTitle::Follow).await
}

/// Determines the outcome of a request for a movie whose answer was lost.
pub(in crate::tools) async fn recover_movie(
    seerr: &Seerr,
    (instance, movie): (&Instance<Radarr>, &Movie),
    choices: SeerrChoices,
    context: &ToolContext,
) -> RecoveryOutcome {
    match SeerrCaller::from_context(seerr, context) {
        Ok(caller) => caller.recover_request(&addition((instance, movie), choices)).await,
        // The repetition is refused, and says that there is no link.
        Err(_) => RecoveryOutcome::NotDone,
    }
}

fn addition((instance, movie): (&Instance<Radarr>, &Movie), choices: SeerrChoices) -> SeerrAddition {
    SeerrAddition {
        new: NewSeerrRequest {
            title: seerr_title(MediaKind::Movie, movie.tmdb),
            tvdb: None,
            seasons: None,
            is_4k: choices.is_4k,
        },
        requested: requested_movie(instance, movie),
        shown: instance.shown_ids(movie),
        names_choices: choices.names_others,
    }
}
