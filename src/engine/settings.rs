//! Household settings for conversations.

use std::time::Duration;

use jiff::SignedDuration;
use jiff::tz::TimeZone;

use super::codes::CodeSource;
use crate::conversation::deletion::deletion_messages::CodePolicy;
use crate::conversation::grammar::confirmation_reply::ReplyLanguage;
use crate::conversation::grammar::triage::TriageLevel;
use crate::conversation::making_room::SpacePolicy;
use crate::conversation::model_cost::{DailyBudget, ModelPrices};
use crate::conversation::notifications::quiet_hours::QuietHours;
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::routing::request_reader::RequestReader;
use crate::conversation::routing::senders::Senders;
use crate::conversation::transcript::Responder;
use crate::conversation::turn::TurnLimits;
use crate::conversation::viewer_accounts::WatchSharing;
use crate::recovery_delays::RecoveryDelays;
use crate::store::library::quotas::QuotaOverride;
use crate::store::queue::delivery_reports::AcceptancePolicy;

/// Household settings for conversations.
#[derive(Debug, Clone)]
pub struct HouseholdSettings {
    pub zone: TimeZone,
    /// Idle time after which a conversation ends.
    pub idle_timeout: SignedDuration,
    /// Debounce time, in which messages in quick succession join the same turn.
    pub debounce: Duration,
    pub code_policy: CodePolicy,
    /// Source of the codes of confirmation prompts and approvals.
    pub codes: CodeSource,
    /// Time for which a confirmation prompt waits for a YES.
    pub confirm_for: SignedDuration,
    pub languages: Vec<ReplyLanguage>,
    pub limits: TurnLimits,
    /// Highest limit of concurrent model calls. The limit itself adapts to the model server.
    pub max_model_calls: usize,
    /// Quotas of members without their own limits.
    pub quotas: Quotas,
    /// Rate limit of one user's messages; `None` without a limit.
    pub rate_limit: Option<RateLimit>,
    pub prices: ModelPrices,
    /// Context window of the model in tokens, if configured.
    pub context_window: Option<u64>,
    pub budget: DailyBudget,
    pub triage_level: TriageLevel,
    pub model_skipping: ModelSkipping,
    /// Text of the operator that each request to the model contains.
    pub prompt_addition: Option<String>,
    pub reactions: SmsReactions,
    /// Quiet hours for notifications of users who have not set their own.
    pub quiet_hours: Option<QuietHours>,
    pub pictures: PicturePolicy,
    /// Source of the metadata of answers.
    pub metadata_source: MetadataSource,
    /// Our addresses on the configured channels.
    pub senders: Senders,
    /// Minimum similarity at which two texts count as similar.
    pub similarity_floor: f32,
    /// Retention period of message text.
    pub retention: SignedDuration,
    /// Who may know what a person has watched.
    pub watch_sharing: WatchSharing,
    /// When people are asked which titles could go.
    pub making_room: SpacePolicy,
    pub recovery_delays: RecoveryDelays,
}

/// Setting for questions that the grammar can answer without a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelSkipping {
    Never,
    /// Questions that the grammar is sure of.
    IfSure,
}

impl HouseholdSettings {
    /// Returns the policy for messages that the carrier has accepted.
    pub(crate) fn acceptance_policy(&self) -> AcceptancePolicy {
        AcceptancePolicy { confirm_for: self.confirm_for, zone: self.zone.clone(), quiet: self.quiet_hours }
    }

    /// Returns the reader of requests while this responder answers.
    pub(crate) fn request_reader(&self, responder: Responder) -> RequestReader {
        match (responder, self.model_skipping) {
            (Responder::Keyword, _) => RequestReader::Grammar,
            (Responder::Model, ModelSkipping::IfSure) if self.triage_level != TriageLevel::Off => {
                RequestReader::GrammarIfSure
            }
            (Responder::Model, ModelSkipping::IfSure | ModelSkipping::Never) => RequestReader::Model,
        }
    }
}

/// Number of titles that a member may add within a period, and space that the member's titles may hold. A field is
/// `None` without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    pub movies: Option<RateLimit>,
    pub seasons: Option<RateLimit>,
    pub space_gb: Option<u32>,
}

impl Quotas {
    /// Returns the quotas of one member, whose own limits take precedence.
    pub(crate) fn for_member(self, own: QuotaOverride) -> Self {
        let with_own_limit = |rate: Option<RateLimit>, own: Option<u32>| {
            rate.map(|rate| RateLimit { max: own.unwrap_or(rate.max), ..rate })
        };
        Self {
            movies: with_own_limit(self.movies, own.movies),
            seasons: with_own_limit(self.seasons, own.seasons),
            space_gb: own.space_gb.or(self.space_gb),
        }
    }
}

/// Setting for posters. Not every phone number supports picture messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PicturePolicy {
    Sent,
    NotSent,
}

/// Handling of replies that consist only of a reaction, which SMS cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmsReactions {
    /// No message is sent.
    Silent,
    /// The emoji of the reaction is sent.
    Text,
}

/// Source of the metadata of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataSource {
    /// The model, if one is configured, with one call for several answers.
    ByModel,
    ByCode,
}
