//! Tool that adds a series with its requested seasons.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::addition::{
    choose_profile_and_folder, choose_sonarr, count_seasons, request_from_arguments, unknown_catalog_id,
};
use super::approval;
use super::existing_series::{add_promised_seasons, promised_seasons};
use super::follow_title::{growing_episodes, missing_part, requested_series};
use super::formatting::{clean_title, format_media_title};
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, Instance};
use super::preference::preferred_instance;
use super::seasons::{NamedSeasons, SPECIALS, SeasonSelector, choose_episodes, format_season_list};
use super::seerr::{SeerrChoices, seasons};
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
use crate::seerr::Seerr;

/// Tool that adds a series and searches for its requested seasons.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddSeries {
    /// From search_media.
    tvdb: i64,
    /// Only if named.
    pub(super) seasons: Option<SeasonSelector>,
    /// Only if named.
    quality: Option<String>,
    /// Only if named.
    folder: Option<String>,
    #[serde(default)]
    anime: bool,
    /// Only if named.
    instance: Option<String>,
}

impl AddSeries {
    fn instance<'a>(&self, library: &'a ArrInstances) -> Result<&'a Instance<Sonarr>, CallFailure> {
        choose_sonarr(library, self.instance.as_deref(), self.quality.as_deref())
    }

    /// Returns the choices of the call that matter to a Seerr.
    fn choices(&self, instance: &Instance<Sonarr>) -> SeerrChoices {
        SeerrChoices::from_arguments(instance.four_k, self.quality.as_deref(), self.folder.as_deref())
    }

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
    const DESCRIPTION: &'static str =
        "Add a show and search for it. For more of one in the library use get_more.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::CanAdd;

    fn is_supported(library: &ArrInstances) -> bool {
        // Without any instance, the failure of the call reports what is missing.
        !library.series.is_empty() || library.movies.is_empty()
    }

    fn instance_names(library: &ArrInstances) -> Vec<&'static str> {
        library.series_names()
    }

    fn quality_names(library: &ArrInstances, rights: UserRights) -> Vec<String> {
        library.quality_names(Some(MediaKind::Series), rights)
    }

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let instance = self.instance(library)?;
        let four_k = instance.four_k || library.requests.is_some() && self.choices(instance).is_4k();
        Ok(CallReferences { refs: vec![MediaRef::Tvdb(self.tvdb)], four_k })
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        match &library.requests {
            Some(seerr) => request_at_seerr(seerr, self.instance(library)?, self, context).await,
            None => add_to_sonarr(self.instance(library)?, self, context).await,
        }
    }

    async fn recover(
        &self,
        library: &ArrInstances,
        context: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        let instance = self.instance(library)?;
        match &library.requests {
            Some(seerr) => recover_at_seerr(seerr, instance, self, context).await,
            None => Ok(check_addition(instance, self, context).await),
        }
    }

    fn preferred_instance(
        library: &ArrInstances,
        facts: &UserFacts,
        rights: UserRights,
    ) -> Option<&'static str> {
        preferred_instance(&library.series, facts.preferred_quality(MediaKind::Series)?, rights)
    }

    fn deferrable_request(&self, library: &ArrInstances) -> Option<RequestedTitle> {
        let instance = self.instance(library).ok()?;
        let seasons = match &self.seasons {
            Some(SeasonSelector::Numbers(listed)) => Some(listed.clone()),
            Some(SeasonSelector::Named(_)) | None => None,
        };
        Some(request_from_arguments(instance.name, (MediaKind::Series, self.tvdb), seasons))
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
    let existing =
        sonarr.fetch_series_by_tvdb(args.tvdb).await.map_err(|error| instance.request_error(&error))?;
    if let Some(series) = existing {
        return add_promised_seasons(instance, &series, args, context, None).await;
    }
    let hit = look_up_series(instance, args.tvdb).await?;
    let wanted_episodes = choose_episodes(&hit, args.seasons.as_ref(), &context.turn_messages)?;
    approval::check_quota(context, quota_use(&wanted_episodes))?;
    let choices = (args.quality.as_deref(), args.folder.as_deref());
    let (profile, folder) =
        choose_profile_and_folder(&InstanceRef::Series(instance), choices, context).await?;
    let new_series = NewSeries {
        tvdb: hit.tvdb,
        title: hit.title,
        series_type: if args.anime { "anime".to_owned() } else { hit.series_type },
        profile: profile.id,
        root_folder: folder.path,
        wanted: wanted_episodes.clone(),
    };
    let addition = sonarr.add_series(&new_series).await.map_err(|error| instance.write_error(&error))?;
    let series = sonarr
        .fetch_series_by_tvdb(args.tvdb)
        .await
        .map_err(|error| instance.unverified_write_error(&error))?;
    match (series, addition) {
        (Some(series), AdditionOutcome::Added) => {
            Ok(added_output(instance, &series, &wanted_episodes, context).await)
        }
        (Some(series), AdditionOutcome::AlreadyExists) => {
            add_promised_seasons(instance, &series, args, context, None).await
        }
        (None, AdditionOutcome::Added | AdditionOutcome::AlreadyExists) => Err(ToolError::Unknown(format!(
            "{}: tvdb {} is missing after it was added",
            instance.name, args.tvdb
        ))),
    }
}

async fn look_up_series(instance: &Instance<Sonarr>, tvdb: i64) -> Result<Series, ToolError> {
    let hits = instance.client.lookup_series(&format!("tvdb:{tvdb}")).await;
    let hits = hits.map_err(|error| instance.request_error(&error))?;
    let hit = hits.into_iter().find(|hit| hit.tvdb == tvdb);
    hit.ok_or_else(|| unknown_catalog_id(MediaKind::Series, tvdb).into())
}

/// Requests a series at a Seerr, unless the library has it.
async fn request_at_seerr(
    seerr: &Seerr,
    instance: &Instance<Sonarr>,
    args: &AddSeries,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let existing = instance.client.fetch_series_by_tvdb(args.tvdb).await;
    if let Some(series) = existing.map_err(|error| instance.request_error(&error))? {
        return add_promised_seasons(instance, &series, args, context, Some(seerr)).await;
    }
    let series = look_up_series(instance, args.tvdb).await?;
    let wanted = choose_episodes(&series, args.seasons.as_ref(), &context.turn_messages)?;
    let request = (&wanted, args.choices(instance));
    seasons::request_new_series(seerr, (instance, &series), request, context).await
}

/// Determines the outcome of a request whose answer was lost. If the library has the series by now, the call runs again
/// and requests nothing.
async fn recover_at_seerr(
    seerr: &Seerr,
    instance: &Instance<Sonarr>,
    args: &AddSeries,
    context: &ToolContext,
) -> Result<RecoveryOutcome, ToolError> {
    let series = match look_up_series(instance, args.tvdb).await {
        Ok(series) => series,
        Err(error) => {
            tracing::warn!(instance = instance.name, tvdb = args.tvdb, %error, "failed to name a requested series");
            return Ok(RecoveryOutcome::Unknown);
        }
    };
    let wanted = choose_episodes(&series, args.seasons.as_ref(), &context.turn_messages)?;
    let request = (&wanted, args.choices(instance));
    seasons::recover_new_series(seerr, (instance, &series), request, context).await
}

/// Returns the quota usage of the requested episodes. Specials are free.
fn quota_use(wanted: &WantedEpisodes) -> QuotaUse {
    count_seasons(match wanted {
        WantedEpisodes::Seasons(seasons) => {
            seasons.iter().filter(|(number, monitored)| *monitored && *number != SPECIALS).count()
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
        // The series was already in the library, or another request added it. The seasons of this request are still
        // missing.
        Ok(Some(series)) if promised_seasons(instance, &series, args).is_some() => RecoveryOutcome::NotDone,
        Ok(Some(series)) => RecoveryOutcome::Done(
            added_output(instance, &series, &requested_episodes(&series, args), context).await,
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
    let is_requested = |number: u32| match &args.seasons {
        Some(SeasonSelector::Numbers(listed)) => listed.contains(&number),
        Some(SeasonSelector::Named(_)) | None => true,
    };
    match args.seasons {
        Some(SeasonSelector::Named(NamedSeasons::Future)) => WantedEpisodes::Future,
        Some(SeasonSelector::Named(NamedSeasons::Pilot)) => WantedEpisodes::Pilot,
        Some(SeasonSelector::Named(NamedSeasons::All | NamedSeasons::First | NamedSeasons::Latest))
        | Some(SeasonSelector::Numbers(_))
        | None => {
            let requested = series.all_seasons().filter(|season| is_requested(season.number));
            WantedEpisodes::Seasons(requested.map(|season| (season.number, season.monitored)).collect())
        }
    }
}

fn season_flags(series: &Series) -> Vec<(u32, bool)> {
    series.seasons.iter().map(|season| (season.number, season.monitored)).collect()
}

/// Builds the result of an addition. It reports the seasons that were read back, if Sonarr already lists them.
async fn added_output(
    instance: &Instance<Sonarr>,
    series: &Series,
    wanted: &WantedEpisodes,
    context: &ToolContext,
) -> ToolOutput {
    let mut for_model = series_status_json(series, "added");
    let AddedPart { sentence_end, seasons, coverage } = describe_added_part(series, wanted, &mut for_model);
    let for_user = format!("Added {}{sentence_end}", format_media_title(&series.title, series.year));
    let result = CallResult { for_model, for_user, shown: instance.shown_ids(series) };
    let requested = RequestedTitle { seasons, ..requested_series(instance, series) };
    let growing = growing_episodes(instance, series, &requested).await;
    let output = ToolOutput::with_effect(result, ToolEffect::Count(quota_use(wanted)));
    record_series_request(output, (requested, coverage), series, (&growing, context.now))
}

/// Part of a series that was added.
struct AddedPart {
    /// End of the sentence about the addition.
    sentence_end: String,
    /// Requested seasons. `None` means the whole series.
    seasons: Option<Vec<u32>>,
    coverage: Coverage,
}

impl AddedPart {
    fn whole_series(sentence_end: &str, coverage: Coverage) -> Self {
        Self { sentence_end: sentence_end.to_owned(), seasons: None, coverage }
    }
}

fn describe_added_part(series: &Series, wanted: &WantedEpisodes, for_model: &mut Value) -> AddedPart {
    let requested = match wanted {
        WantedEpisodes::Seasons(flags) => flags,
        WantedEpisodes::Future => {
            for_model["wanted"] = json!("future episodes");
            return AddedPart::whole_series(", only what is still to come.", Coverage::SomeEpisodes);
        }
        WantedEpisodes::Pilot => {
            for_model["wanted"] = json!("first episode");
            return AddedPart::whole_series(", only the first episode.", Coverage::SomeEpisodes);
        }
    };
    if waits_for_seasons(series, requested) {
        for_model["wanted"] = json!("all that comes; nothing is out yet");
        let sentence_end = ". Nothing of it is out yet; new episodes will be fetched as they air.";
        return AddedPart::whole_series(sentence_end, Coverage::Whole);
    }
    let specials = requested.iter().filter(|(number, _)| *number == SPECIALS).copied();
    // Another request may have added other seasons in the meantime.
    let is_in_request = |(number, _): &(u32, bool)| requested.iter().any(|(other, _)| other == number);
    let numbered: Vec<(u32, bool)> = season_flags(series).into_iter().filter(is_in_request).collect();
    let covers_all = !numbered.is_empty() && numbered.len() == series.seasons.len();
    let is_whole_series = covers_all && numbered.iter().all(|(_, monitored)| *monitored);
    let seasons: Vec<u32> =
        specials.chain(numbered).filter(|(_, monitored)| *monitored).map(|(number, _)| number).collect();
    for_model["seasons_wanted"] = json!(seasons);
    if is_whole_series {
        return AddedPart::whole_series(".", Coverage::Whole);
    }
    if seasons.is_empty() {
        // Sonarr does not list the seasons yet, so it is unknown which of them are fetched.
        return AddedPart::whole_series(".", Coverage::SomeEpisodes);
    }
    let sentence_end = format!(", {}.", format_season_list(&seasons));
    AddedPart { sentence_end, seasons: Some(seasons), coverage: Coverage::Whole }
}

/// Returns whether a series has no regular season yet, so that all future seasons are fetched.
fn waits_for_seasons(series: &Series, requested: &[(u32, bool)]) -> bool {
    series.seasons.is_empty() && requested.iter().all(|(_, monitored)| !monitored)
}

/// Adds the effects that record the request of a series and notify the user when the requested part is complete.
pub(super) fn record_series_request(
    output: ToolOutput,
    (requested, coverage): (RequestedTitle, Coverage),
    series: &Series,
    (growing, now): (&[Episode], Timestamp),
) -> ToolOutput {
    let missing = missing_part(series, &requested, (growing, now));
    let output = output.and_effect(ToolEffect::Request(requested, coverage));
    match missing {
        Some(missing) => output.and_effect(ToolEffect::Follow(missing)),
        None => output,
    }
}

pub(super) fn series_status_json(series: &Series, status: &str) -> Value {
    json!({ "status": status, "type": "series", "title": clean_title(&series.title), "year": series.year,
        "tvdb": series.tvdb, "seasons": series.seasons.len(),
        "episodes": format!("{} of {}", series.episodes_on_disk, series.episodes) })
}
