//! Desired state of a series, and the writes that reach it.

use jiff::Timestamp;

use super::monitoring::{MonitoringChange, MonitoringFlags, SeriesSnapshot, write_flags};
use super::read_back::read_back;
use crate::arr::QualityProfile;
use crate::arr::changes::SeriesChange;
use crate::arr::sonarr::Sonarr;
use crate::conversation::transcript::QuotaUse;
use crate::tools::library::{Instance, unknown_title};
use crate::tools::seasons::{MAX_UNREQUESTED_SEASONS, requests_many_seasons, which_seasons};
use crate::tools::{ToolContext, ToolError, approval};

/// Desired state of a series after a call.
pub struct SeriesGoal {
    pub change: MonitoringChange,
    pub flags: MonitoringFlags,
    pub profile: Option<QualityProfile>,
    pub series_type: Option<&'static str>,
}

impl SeriesGoal {
    /// Builds a goal that changes only the monitoring of a series.
    pub fn from_change(snapshot: &SeriesSnapshot, change: MonitoringChange, now: Timestamp) -> Self {
        let flags = snapshot.goal_flags(&change, now);
        Self { change, flags, profile: None, series_type: None }
    }

    pub fn is_reached(&self, snapshot: &SeriesSnapshot) -> bool {
        snapshot.monitoring_flags().meets_goal(&self.flags)
            && self.needed_change(snapshot) == SeriesChange::default()
    }

    /// Returns the number of seasons in which an episode becomes monitored.
    pub fn count_gained_seasons(&self, snapshot: &SeriesSnapshot) -> usize {
        snapshot.gained_seasons(&self.flags).len()
    }

    /// Writes the change and returns the series after reading it back. `count` is the quota usage of the change.
    pub async fn write(
        &self,
        instance: &Instance<Sonarr>,
        snapshot: &SeriesSnapshot,
        count: Option<QuotaUse>,
        context: &ToolContext,
    ) -> Result<SeriesSnapshot, ToolError> {
        self.profile.iter().try_for_each(|profile| approval::check_profile_right(profile, context.rights))?;
        let is_many = self.count_gained_seasons(snapshot) > MAX_UNREQUESTED_SEASONS;
        if is_many && !requests_many_seasons(&context.turn_messages, &snapshot.series) {
            return Err(which_seasons(&snapshot.series).into());
        }
        count.iter().try_for_each(|count| approval::check_quota(context, *count))?;
        let written =
            write_flags(instance, snapshot, (&self.change, &self.flags), self.needed_change(snapshot)).await;
        let fetch = SeriesSnapshot::fetch_by_id(&instance.client, snapshot.id);
        read_back(instance, snapshot.id, written, fetch, |changed| self.is_reached(changed)).await
    }

    /// Returns the change of properties, other than the flags, that the series needs to reach the goal.
    fn needed_change(&self, snapshot: &SeriesSnapshot) -> SeriesChange {
        SeriesChange {
            profile: self
                .profile
                .as_ref()
                .map(|profile| profile.id)
                .filter(|id| *id != snapshot.series.profile),
            series_type: self.series_type.filter(|series_type| *series_type != snapshot.series.series_type),
            ..SeriesChange::default()
        }
    }
}

/// Fetches a series that an earlier result has shown.
pub async fn fetch_shown_series(instance: &Instance<Sonarr>, id: i64) -> Result<SeriesSnapshot, ToolError> {
    let snapshot = SeriesSnapshot::fetch_by_id(&instance.client, id).await;
    let snapshot = snapshot.map_err(|error| instance.request_error(&error))?;
    snapshot.ok_or_else(|| unknown_title(id).into())
}
