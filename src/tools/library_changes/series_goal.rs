//! Desired state of a series, and the writes that bring it about.

use jiff::Timestamp;

use super::monitoring::{MonitoringChange, MonitoringFlags, SeriesSnapshot, write_flags};
use super::read_back::read_back;
use crate::arr::QualityProfile;
use crate::arr::changes::SeriesChange;
use crate::arr::sonarr::Sonarr;
use crate::conversation::transcript::QuotaUse;
use crate::tools::library::{Instance, unknown_title};
use crate::tools::seasons::{MAX_SEASONS_UNASKED, asks_for_many, which_seasons};
use crate::tools::{ToolContext, ToolError, approval};

pub struct SeriesGoal {
    pub wish: MonitoringChange,
    pub flags: MonitoringFlags,
    pub profile: Option<QualityProfile>,
    pub series_type: Option<&'static str>,
}

impl SeriesGoal {
    /// Builds a goal that differs from the current state in its monitoring alone.
    pub fn from_wish(held: &SeriesSnapshot, wish: MonitoringChange, now: Timestamp) -> Self {
        let flags = held.goal_flags(&wish, now);
        Self { wish, flags, profile: None, series_type: None }
    }

    pub fn is_reached(&self, held: &SeriesSnapshot) -> bool {
        held.monitoring_flags().meets_goal(&self.flags) && self.needed_change(held) == SeriesChange::default()
    }

    /// Returns the number of seasons in which an episode would newly be monitored.
    pub fn count_gained(&self, held: &SeriesSnapshot) -> usize {
        held.seasons_gained(&self.flags).len()
    }

    /// Makes the change and returns the series as it is afterwards. `count` is the quota usage of the change.
    pub async fn write(
        &self,
        instance: &Instance<Sonarr>,
        held: &SeriesSnapshot,
        count: Option<QuotaUse>,
        context: &ToolContext,
    ) -> Result<SeriesSnapshot, ToolError> {
        self.profile.iter().try_for_each(|profile| approval::check_profile_right(profile, context.rights))?;
        let many = self.count_gained(held) > MAX_SEASONS_UNASKED;
        if many && !asks_for_many(&context.turn_messages, &held.series) {
            return Err(which_seasons(&held.series).into());
        }
        count.iter().try_for_each(|count| approval::check_quota(context, *count))?;
        let written = write_flags(instance, held, (&self.wish, &self.flags), self.needed_change(held)).await;
        let after = SeriesSnapshot::fetch_by_id(&instance.client, held.id);
        read_back(instance, held.id, written, after, |after| self.is_reached(after)).await
    }

    /// Returns the properties of the series, apart from the flags, that differ from the goal.
    fn needed_change(&self, held: &SeriesSnapshot) -> SeriesChange {
        SeriesChange {
            profile: self.profile.as_ref().map(|profile| profile.id).filter(|id| *id != held.series.profile),
            series_type: self.series_type.filter(|word| *word != held.series.series_type),
            ..SeriesChange::default()
        }
    }
}

/// Fetches a series that an earlier result has shown.
pub async fn fetch_shown_series(instance: &Instance<Sonarr>, id: i64) -> Result<SeriesSnapshot, ToolError> {
    let held = SeriesSnapshot::fetch_by_id(&instance.client, id).await;
    let held = held.map_err(|error| instance.request_error(&error))?;
    held.ok_or_else(|| unknown_title(id).into())
}
