//! Change of a movie in the library: its monitoring and its quality profile.

use serde_json::json;

use super::change_media::{ChangeMedia, format_monitored, format_quality, missing_change};
use super::movie_search::{fetch_shown_movie, movie_status_json, write_movie};
use super::read_back::output_with_count;
use super::selectors;
use crate::arr::changes::MovieChange;
use crate::arr::radarr::Radarr;
use crate::arr::{Movie, QualityProfile};
use crate::conversation::transcript::CallResult;
use crate::seerr::Seerr;
use crate::tools::addition::ONE_MOVIE;
use crate::tools::formatting::format_media_title;
use crate::tools::instance_ref::InstanceRef;
use crate::tools::library::Instance;
use crate::tools::seerr::ask_by_request;
use crate::tools::{ToolContext, ToolError, ToolOutput, approval};

/// Desired state of a movie.
struct MovieGoal {
    monitored: Option<bool>,
    profile: Option<QualityProfile>,
}

impl MovieGoal {
    async fn from_args(instance: &Instance<Radarr>, args: &ChangeMedia) -> Result<Self, ToolError> {
        let profile =
            selectors::named_profile(&InstanceRef::Movies(instance), args.quality.as_deref()).await?;
        if args.monitored.is_none() && profile.is_none() {
            return Err(missing_change("monitored or quality for a movie").into());
        }
        Ok(Self { monitored: args.monitored, profile })
    }

    /// Returns the change that the movie needs to reach the goal.
    fn needed_change(&self, movie: &Movie) -> MovieChange {
        MovieChange {
            monitored: self.monitored.filter(|flag| *flag != movie.monitored),
            profile: self.profile.as_ref().map(|profile| profile.id).filter(|id| *id != movie.profile),
            availability: None,
        }
    }
}

pub(super) async fn change_movie(
    instance: &Instance<Radarr>,
    args: &ChangeMedia,
    context: &ToolContext,
    requests: Option<&Seerr>,
) -> Result<ToolOutput, ToolError> {
    let goal = MovieGoal::from_args(instance, args).await?;
    let movie = fetch_shown_movie(instance, args.id).await?;
    let change = goal.needed_change(&movie);
    if change == MovieChange::default() {
        return Ok(movie_result(instance, &movie, &goal, "unchanged").into());
    }
    goal.profile.iter().try_for_each(|profile| approval::check_profile_right(profile, context.rights))?;
    let count = (change.monitored == Some(true) && !movie.has_file).then_some(ONE_MOVIE);
    if requests.is_some() && count.is_some() {
        return Err(ask_by_request().into());
    }
    count.iter().try_for_each(|count| approval::check_quota(context, *count))?;
    let is_reached = |changed: &Movie| goal.needed_change(changed) == MovieChange::default();
    let changed = write_movie(instance, args.id, change, is_reached).await?;
    Ok(output_with_count(movie_result(instance, &changed, &goal, "changed"), count))
}

pub(super) async fn recover_movie_change(
    instance: &Instance<Radarr>,
    args: &ChangeMedia,
) -> Result<Option<CallResult>, ToolError> {
    let goal = MovieGoal::from_args(instance, args).await?;
    let movie = instance.client.fetch_movie(args.id).await.map_err(|error| instance.request_error(&error))?;
    let movie = movie.filter(|movie| goal.needed_change(movie) == MovieChange::default());
    Ok(movie.map(|movie| movie_result(instance, &movie, &goal, "changed")))
}

fn movie_result(instance: &Instance<Radarr>, movie: &Movie, goal: &MovieGoal, status: &str) -> CallResult {
    let mut parts = Vec::new();
    parts.extend(goal.monitored.map(|_| format_monitored(movie.monitored).to_owned()));
    parts.extend(goal.profile.as_ref().map(format_quality));
    let mut for_model = movie_status_json(movie, status);
    for_model["now"] = json!(parts);
    let for_user = format!("{}: {}.", format_media_title(&movie.title, movie.year), parts.join(", "));
    CallResult { for_model, for_user, shown: instance.shown_ids(movie) }
}
