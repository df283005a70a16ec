//! Tool that adds a series with its requested seasons.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::addition::{choose_profile_and_folder, count_seasons, unknown_number, unnamed_request};
use super::approval;
use super::existing_series::{add_promised_seasons, promised_seasons};
use super::follow_title::{growing_episodes, missing_part, requested_series};
use super::formatting::{clean_title, format_media_title};
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, Instance};
use super::preference::preferred_instance;
use super::seasons::{NamedSeasons, SPECIALS, SeasonSelector, choose_episodes, format_season_list};
use super::typed_tool::TypedTool;
use super::{
    CallReferences, RecoveryOutcome, ToolContext, ToolEffect, ToolError, ToolOutput, deletion_outcomes,
};
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::arr::{AdditionOutcome, NewSeries, Series, WantedEpisodes};
use crate::conversation::people::facts::UserFacts;
use crate::conversation::title_requests::{Coverage, RequestedTitle};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, MediaKind, MediaRef, QuotaUse, ToolAudience, UserRights,
};

/// Tool that adds a series and searches for its requested seasons.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddSeries {
    tvdb: i64,
    /// As the user said; leave out if they did not.
    pub(super) seasons: Option<SeasonSelector>,
    quality: Option<String>,
    folder: Option<String>,
    #[serde(default)]
    anime: bool,
    instance: Option<String>,
}

impl AddSeries {
    pub(super) fn coverage(&self) -> Coverage {
        match self.seasons {
            Some(SeasonSelector::Named(NamedSeasons::Future | NamedSeasons::Pilot)) => Coverage::SomeEpisodes,
            Some(SeasonSelector::Named(NamedSeasons::All | NamedSeasons::First | NamedSeasons::Latest))
            | Some(SeasonSelector::Numbers(_))
            | None => Coverage::Whole,
        }
    }
}

impl TypedTool for AddSeries {
    const NAME: &'static str = "add_series";
    const DESCRIPTION: &'static str = "Add a show and look for its episodes.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::Adders;

    fn instance_names(library: &ArrInstances) -> Vec<&'static str> {
        library.series_names()
    }

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let instance = library.series_instance(self.instance.as_deref())?;
        Ok(CallReferences { refs: vec![MediaRef::Tvdb(self.tvdb)], four_k: instance.four_k })
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        add_to_sonarr(library.series_instance(self.instance.as_deref())?, self, context).await
    }

    async fn recover(
        &self,
        library: &ArrInstances,
        context: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        Ok(check_addition(library.series_instance(self.instance.as_deref())?, self, context).await)
    }

    fn preferred_instance(
        library: &ArrInstances,
        facts: &UserFacts,
        rights: UserRights,
    ) -> Option<&'static str> {
        preferred_instance(&library.series, facts.preferred_quality(MediaKind::Series)?, rights)
    }

    fn deferrable_request(&self, library: &ArrInstances) -> Option<RequestedTitle> {
        let instance = library.series_instance(self.instance.as_deref()).ok()?;
        let seasons = match &self.seasons {
            Some(SeasonSelector::Numbers(listed)) => Some(listed.clone()),
            Some(SeasonSelector::Named(_)) | None => None,
        };
        Some(unnamed_request(instance.name, (MediaKind::Series, self.tvdb), seasons))
    }

    fn not_done_failure(title: Option<&str>) -> CallFailure {
        deletion_outcomes::not_added("Sonarr", title.unwrap_or("The show"))
    }
}

async fn add_to_sonarr(
    instance: &Instance<Sonarr>,
    args: &AddSeries,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let sonarr = &instance.client;
    let held =
        sonarr.fetch_series_by_tvdb(args.tvdb).await.map_err(|error| instance.request_error(&error))?;
    if let Some(held) = held {
        return add_promised_seasons(instance, &held, args, context).await;
    }
    let hits = sonarr
        .lookup_series(&format!("tvdb:{}", args.tvdb))
        .await
        .map_err(|error| instance.request_error(&error))?;
    let Some(hit) = hits.into_iter().find(|hit| hit.tvdb == args.tvdb) else {
        return Err(unknown_number(MediaKind::Series, args.tvdb).into());
    };
    let wanted = choose_episodes(&hit, args.seasons.as_ref(), &context.turn_messages)?;
    approval::check_quota(context, count_wanted(&wanted))?;
    let named = (args.quality.as_deref(), args.folder.as_deref());
    let (profile, folder) = choose_profile_and_folder(&InstanceRef::Series(instance), named, context).await?;
    let asked = NewSeries {
        tvdb: hit.tvdb,
        title: hit.title,
        series_type: if args.anime { "anime".to_owned() } else { hit.series_type },
        profile: profile.id,
        root_folder: folder.path,
        wanted: wanted.clone(),
    };
    let addition = sonarr.add_series(&asked).await.map_err(|error| instance.write_error(&error))?;
    let held = sonarr
        .fetch_series_by_tvdb(args.tvdb)
        .await
        .map_err(|error| instance.unverified_write_error(&error))?;
    match (held, addition) {
        (Some(held), AdditionOutcome::Added) => Ok(added_output(instance, &held, &wanted, context).await),
        (Some(held), AdditionOutcome::AlreadyExists) => {
            add_promised_seasons(instance, &held, args, context).await
        }
        (None, AdditionOutcome::Added | AdditionOutcome::AlreadyExists) => Err(ToolError::Unknown(format!(
            "{}: tvdb {} is not there after the add",
            instance.name, args.tvdb
        ))),
    }
}

/// Returns the quota usage of the requested episodes. Specials count as no season.
fn count_wanted(wanted: &WantedEpisodes) -> QuotaUse {
    count_seasons(match wanted {
        WantedEpisodes::Seasons(seasons) => {
            seasons.iter().filter(|(number, wanted)| *wanted && *number != SPECIALS).count()
        }
        WantedEpisodes::Future | WantedEpisodes::Pilot => 1,
    })
}

async fn check_addition(
    instance: &Instance<Sonarr>,
    args: &AddSeries,
    context: &ToolContext,
) -> RecoveryOutcome {
    match instance.client.fetch_series_by_tvdb(args.tvdb).await {
        // The series was in the library before, or another request has added it. The seasons of this request must still
        // be searched for.
        Ok(Some(held)) if promised_seasons(instance, &held, args).is_some() => RecoveryOutcome::NotDone,
        Ok(Some(held)) => RecoveryOutcome::Done(
            added_output(instance, &held, &requested_episodes(&held, args), context).await,
        ),
        Ok(None) => RecoveryOutcome::NotDone,
        Err(error) => {
            let tvdb = args.tvdb;
            tracing::warn!(instance = instance.name, tvdb, %error, "failed to check an added series");
            RecoveryOutcome::Unknown
        }
    }
}

/// Returns the episodes that a call requested of a series, given the current state of the series.
fn requested_episodes(series: &Series, args: &AddSeries) -> WantedEpisodes {
    let is_asked_for = |number: u32| match &args.seasons {
        Some(SeasonSelector::Numbers(listed)) => listed.contains(&number),
        Some(SeasonSelector::Named(_)) | None => true,
    };
    match args.seasons {
        Some(SeasonSelector::Named(NamedSeasons::Future)) => WantedEpisodes::Future,
        Some(SeasonSelector::Named(NamedSeasons::Pilot)) => WantedEpisodes::Pilot,
        Some(SeasonSelector::Named(NamedSeasons::All | NamedSeasons::First | NamedSeasons::Latest))
        | Some(SeasonSelector::Numbers(_))
        | None => {
            let asked = series.all_seasons().filter(|season| is_asked_for(season.number));
            WantedEpisodes::Seasons(asked.map(|season| (season.number, season.monitored)).collect())
        }
    }
}

fn season_flags(series: &Series) -> Vec<(u32, bool)> {
    series.seasons.iter().map(|season| (season.number, season.monitored)).collect()
}

/// Builds the result of an addition. The reported seasons are those that were read back, as far as Sonarr reports them
/// this early.
async fn added_output(
    instance: &Instance<Sonarr>,
    series: &Series,
    wanted: &WantedEpisodes,
    context: &ToolContext,
) -> ToolOutput {
    let mut for_model = series_status_json(series, "added");
    let Extent { ending, seasons, coverage } = describe_extent(series, wanted, &mut for_model);
    let for_user = format!("Added {}{ending}", format_media_title(&series.title, series.year));
    let result = CallResult { for_model, for_user, shown: instance.shown_ids(series) };
    let asked = RequestedTitle { seasons, ..requested_series(instance, series) };
    let growing = growing_episodes(instance, series, &asked).await;
    let ran = ToolOutput::with_effect(result, ToolEffect::Count(count_wanted(wanted)));
    record_series_request(ran, (asked, coverage), series, (&growing, context.now))
}

/// Part of a series that was added.
struct Extent {
    /// End of the sentence about the addition.
    ending: String,
    /// Requested seasons. `None` means the whole series.
    seasons: Option<Vec<u32>>,
    coverage: Coverage,
}

impl Extent {
    fn of_show(ending: &str, coverage: Coverage) -> Self {
        Self { ending: ending.to_owned(), seasons: None, coverage }
    }
}

fn describe_extent(series: &Series, wanted: &WantedEpisodes, for_model: &mut Value) -> Extent {
    let asked = match wanted {
        WantedEpisodes::Seasons(asked) => asked,
        WantedEpisodes::Future => {
            for_model["wanted"] = json!("future episodes");
            return Extent::of_show(", only what is still to come.", Coverage::SomeEpisodes);
        }
        WantedEpisodes::Pilot => {
            for_model["wanted"] = json!("first episode");
            return Extent::of_show(", only the first episode.", Coverage::SomeEpisodes);
        }
    };
    if waits_for_seasons(series, asked) {
        for_model["wanted"] = json!("all that comes; nothing is out yet");
        let ending = ". Nothing of it is out yet; new episodes will be fetched as they air.";
        return Extent::of_show(ending, Coverage::Whole);
    }
    let specials = asked.iter().filter(|(number, _)| *number == SPECIALS).copied();
    // Another request may have added other seasons in the meantime.
    let of_this = |(number, _): &(u32, bool)| asked.iter().any(|(asked, _)| asked == number);
    let numbered: Vec<(u32, bool)> = season_flags(series).into_iter().filter(of_this).collect();
    let is_all = !numbered.is_empty() && numbered.len() == series.seasons.len();
    let whole = is_all && numbered.iter().all(|(_, wanted)| *wanted);
    let wanted: Vec<u32> =
        specials.chain(numbered).filter(|(_, wanted)| *wanted).map(|(number, _)| number).collect();
    for_model["seasons_wanted"] = json!(wanted);
    if whole {
        return Extent::of_show(".", Coverage::Whole);
    }
    if wanted.is_empty() {
        // Sonarr does not list the seasons yet, so it is unknown which of them are fetched.
        return Extent::of_show(".", Coverage::SomeEpisodes);
    }
    let ending = format!(", {}.", format_season_list(&wanted));
    Extent { ending, seasons: Some(wanted), coverage: Coverage::Whole }
}

/// Returns whether a series has no regular season yet, so that all future seasons are fetched.
fn waits_for_seasons(series: &Series, asked: &[(u32, bool)]) -> bool {
    series.seasons.is_empty() && asked.iter().all(|(_, wanted)| !wanted)
}

/// Records the requester of a series, who is notified when the requested part is complete.
pub(super) fn record_series_request(
    ran: ToolOutput,
    (wanted, coverage): (RequestedTitle, Coverage),
    series: &Series,
    (growing, now): (&[Episode], Timestamp),
) -> ToolOutput {
    let open = missing_part(series, &wanted, (growing, now));
    let ran = ran.and_effect(ToolEffect::Request(wanted, coverage));
    match open {
        Some(open) => ran.and_effect(ToolEffect::Follow(open)),
        None => ran,
    }
}

pub(super) fn series_status_json(series: &Series, status: &str) -> Value {
    json!({ "status": status, "type": "series", "title": clean_title(&series.title), "year": series.year,
        "tvdb": series.tvdb, "seasons": series.seasons.len(),
        "episodes": format!("{} of {}", series.episodes_on_disk, series.episodes) })
}
