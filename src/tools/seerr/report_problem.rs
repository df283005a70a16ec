//! Tool that reports a problem of a title on disk, as an issue at the Seerr.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{SeerrCaller, failures, request_failure, seasons, seerr_title, unknown_outcome};
use crate::conversation::title_requests::format_season_list;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, MediaRef, ToolAudience,
};
use crate::seerr::{IssueOutcome, IssuePlace, IssueType, NewSeerrIssue, Seerr, SeerrIssue, SeerrTitle};
use crate::telemetry;
use crate::tools::arguments::parsing::bad_argument;
use crate::tools::formatting::{clean_text, format_media_title};
use crate::tools::instance_ref::InstanceRef;
use crate::tools::library::{ArrInstances, unknown_title};
use crate::tools::seasons::format_episode_code;
use crate::tools::typed_tool::TypedTool;
use crate::tools::{CallReferences, RecoveryOutcome, ToolContext, ToolError, ToolOutput, deletion_outcomes};

/// Maximum length of the user's words in an issue.
const MAX_MESSAGE_CHARS: usize = 300;
/// Age up to which an issue may be the one whose answer was lost.
const LOST_ANSWER_AGE: SignedDuration = SignedDuration::from_hours(1);

/// Tool that reports a problem of a title.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportProblem {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    instance: Option<String>,
    /// What is bad.
    problem: Problem,
    season: Option<u32>,
    /// Number in the season.
    episode: Option<u32>,
    /// In the user's words.
    #[serde(default)]
    message: String,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Problem {
    Audio,
    Video,
    Subtitles,
    Other,
}

impl Problem {
    fn issue_type(self) -> IssueType {
        match self {
            Self::Audio => IssueType::Audio,
            Self::Video => IssueType::Video,
            Self::Subtitles => IssueType::Subtitles,
            Self::Other => IssueType::Other,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Audio => "the audio of",
            Self::Video => "the picture of",
            Self::Subtitles => "the subtitles of",
            Self::Other => "a problem with",
        }
    }
}

/// Title with a problem.
struct ReportedTitle {
    title: SeerrTitle,
    name: String,
    shown: Vec<MediaRef>,
}

impl TypedTool for ReportProblem {
    const NAME: &'static str = "report_problem";
    const DESCRIPTION: &'static str = "Report bad audio, video or subtitles of a title to the admins. To get another copy use replace_copy.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;

    fn is_supported(library: &ArrInstances) -> bool {
        library.requests.is_some()
    }

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        if self.episode.is_some() && self.season.is_none() {
            return Err(bad_argument("season", "the season of the episode", ""));
        }
        let instance = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        Ok(instance.media_ref(self.id).into())
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let caller = SeerrCaller::from_context(self.seerr(library)?, context)?;
        let reported = self.fetch_title(library, &caller).await?;
        let issue = self.build_issue(&caller, &reported).await?;
        match caller.seerr.create_issue(caller.user, &issue).await {
            Ok(IssueOutcome::Created(_)) => Ok(self.output(&reported)),
            Ok(IssueOutcome::NotPermitted) => Err(failures::may_not_report().into()),
            Err(error) if error.may_have_happened() => Err(unknown_outcome(&error)),
            Err(error) => Err(request_failure(&error).into()),
        }
    }

    async fn recover(
        &self,
        library: &ArrInstances,
        context: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        let seerr = self.seerr(library)?;
        let Ok(caller) = SeerrCaller::from_context(seerr, context) else {
            // The repetition is refused, and says that there is no link.
            return Ok(RecoveryOutcome::NotDone);
        };
        let found = async {
            let reported = self.fetch_title(library, &caller).await?;
            let issue = self.build_issue(&caller, &reported).await?;
            let own = caller.seerr.fetch_issues_of(caller.user).await;
            let own = own.map_err(|error| request_failure(&error))?;
            let is_reported = own.iter().any(|known| is_same(known, &issue, context.now));
            Ok::<_, ToolError>((reported, is_reported))
        };
        Ok(match found.await {
            Ok((reported, true)) => RecoveryOutcome::Done(self.output(&reported)),
            Ok((_, false)) => RecoveryOutcome::NotDone,
            Err(error) => {
                tracing::warn!(error = telemetry::error_chain(&error), "failed to check a reported problem");
                RecoveryOutcome::Unknown
            }
        })
    }

    fn not_done_failure(title: Option<&str>) -> CallFailure {
        deletion_outcomes::not_changed(title)
    }
}

impl ReportProblem {
    fn seerr<'a>(&self, library: &'a ArrInstances) -> Result<&'a Seerr, CallFailure> {
        library.requests.as_ref().ok_or_else(|| {
            let sentence = format!("Problems with a {} can't be reported here.", self.kind_name());
            CallFailure::new(FailureCode::NotSetUp, json!({ "service": "Seerr" }), Some(sentence))
        })
    }

    fn kind_name(&self) -> &'static str {
        match self.kind {
            MediaKind::Movie => "movie",
            MediaKind::Series => "show",
        }
    }

    async fn fetch_title(
        &self,
        library: &ArrInstances,
        caller: &SeerrCaller<'_>,
    ) -> Result<ReportedTitle, ToolError> {
        match InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())? {
            InstanceRef::Movies(instance) => {
                let movie = instance.client.fetch_movie(self.id).await;
                let movie = movie.map_err(|error| instance.request_error(&error))?;
                let movie = movie.ok_or_else(|| unknown_title(self.id))?;
                Ok(ReportedTitle {
                    title: seerr_title(MediaKind::Movie, movie.tmdb),
                    name: format_media_title(&movie.title, movie.year),
                    shown: instance.shown_ids(&movie),
                })
            }
            InstanceRef::Series(instance) => {
                let series = instance.client.fetch_series(self.id).await;
                let series = series.map_err(|error| instance.request_error(&error))?;
                let series = series.ok_or_else(|| unknown_title(self.id))?;
                Ok(ReportedTitle {
                    title: seerr_title(MediaKind::Series, seasons::find_tmdb(caller, &series).await?),
                    name: format_media_title(&series.title, series.year),
                    shown: instance.shown_ids(&series),
                })
            }
        }
    }

    async fn build_issue(
        &self,
        caller: &SeerrCaller<'_>,
        reported: &ReportedTitle,
    ) -> Result<NewSeerrIssue, ToolError> {
        let media = caller.seerr.find_media(reported.title).await;
        let media = media.map_err(|error| request_failure(&error))?;
        let media = media.ok_or_else(|| failures::unknown_to_seerr(&reported.name))?;
        let words = clean_text(&self.message, MAX_MESSAGE_CHARS);
        Ok(NewSeerrIssue {
            kind: self.problem.issue_type(),
            media,
            place: self.place(),
            message: if words.is_empty() { "Reported by text.".to_owned() } else { words },
        })
    }

    fn place(&self) -> IssuePlace {
        match self.kind {
            MediaKind::Movie => IssuePlace::default(),
            MediaKind::Series => IssuePlace {
                season: self.season.unwrap_or_default(),
                episode: self.episode.unwrap_or_default(),
            },
        }
    }

    fn output(&self, reported: &ReportedTitle) -> ToolOutput {
        let IssuePlace { season, episode } = self.place();
        let part = match (season, episode) {
            (0, _) => String::new(),
            (season, 0) => format!(", {}", format_season_list(&[season])),
            (season, episode) => format!(", {}", format_episode_code((season, episode))),
        };
        let for_user =
            format!("I reported {} {}{part} to the admins in Seerr.", self.problem.label(), reported.name);
        let for_model = json!({ "status": "reported", "service": "Seerr", "title": reported.name });
        CallResult { for_model, for_user, shown: reported.shown.clone() }.into()
    }
}

/// Returns whether an issue is the one that a call reported a short time ago.
fn is_same(known: &SeerrIssue, new: &NewSeerrIssue, now: Timestamp) -> bool {
    (known.kind, known.media, known.place) == (new.kind, new.media, new.place)
        && known.created_at.is_some_and(|at| now.duration_since(at) <= LOST_ANSWER_AGE)
}
