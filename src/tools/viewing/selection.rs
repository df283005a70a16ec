//! Selection of titles of the library by what people have watched.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ViewerTitles, check_private, load_titles};
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::transcript::{CallFailure, MediaKind};
use crate::media_servers::{WatchEvidence, WatchState};
use crate::tools::ToolContext;
use crate::tools::library::ArrInstances;

/// Evidence that selects titles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchFilter {
    Unwatched,
    Started,
    Watched,
}

/// Arguments that select titles by what people have watched.
#[derive(Debug, Clone, Copy)]
pub(in crate::tools) struct WatchCriteria<'a> {
    pub(in crate::tools) filter: Option<WatchFilter>,
    pub(in crate::tools) by: Option<&'a str>,
    /// Days since the last play. A title that was never played meets any number.
    pub(in crate::tools) not_since_days: Option<u32>,
}

/// Selection of titles by what people have watched. A title whose state is unknown is never selected.
#[derive(Debug)]
pub struct WatchSelection {
    filter: Option<WatchFilter>,
    /// Time since which a selected title was not played.
    not_since: Option<Timestamp>,
    viewers: Vec<ViewerTitles>,
}

impl WatchSelection {
    /// Loads what the named people have watched.
    pub(in crate::tools) async fn load(
        criteria: WatchCriteria<'_>,
        library: &ArrInstances,
        context: &ToolContext,
    ) -> Result<Self, CallFailure> {
        check_private(context)?;
        let viewers = context.viewers.choose(criteria.by, library)?;
        let viewers = load_titles(&viewers, library, context).await;
        let not_since = criteria.not_since_days.map(|days| {
            context
                .now
                .saturating_sub(SignedDuration::from_hours(24 * i64::from(days)))
                .unwrap_or(context.now)
        });
        // The default is titles that were watched.
        let filter = criteria.filter.or(not_since.is_none().then_some(WatchFilter::Watched));
        Ok(Self { filter, not_since, viewers })
    }

    /// Returns the heading for a list of the selected titles.
    pub fn list_heading(&self) -> &'static str {
        match (self.filter, self.not_since) {
            (Some(WatchFilter::Unwatched), _) => "Not watched",
            (Some(WatchFilter::Started), _) => "Started",
            (_, Some(_)) => "Not watched since then",
            (Some(WatchFilter::Watched) | None, None) => "Watched",
        }
    }

    /// Returns the completeness of the watch states.
    pub fn evidence(&self) -> WatchEvidence {
        self.viewers.iter().map(|viewer| viewer.watched.evidence).max().unwrap_or_default()
    }

    pub fn matches(&self, kind: MediaKind, ids: &CatalogIds) -> bool {
        let state = self.state(kind, ids);
        let has_state = match self.filter {
            None => state != WatchState::Unknown,
            Some(WatchFilter::Watched) => matches!(state, WatchState::Finished { .. }),
            Some(WatchFilter::Started) => matches!(state, WatchState::Started { .. }),
            Some(WatchFilter::Unwatched) => matches!(state, WatchState::Never | WatchState::NoFinishedPlay),
        };
        has_state && self.not_since.is_none_or(|since| self.was_not_played_since(since, (kind, ids)))
    }

    /// Returns whether it is certain that none of the people has played a title since a time.
    fn was_not_played_since(&self, since: Timestamp, (kind, ids): (MediaKind, &CatalogIds)) -> bool {
        let mut is_certain = true;
        self.visit_states(kind, ids, |state| {
            is_certain &= match state {
                // Marked as played by hand, at an unknown time.
                WatchState::Finished { at: None } | WatchState::Started { at: None, .. } => false,
                WatchState::Unknown => false,
                state => state.last_play().is_none_or(|at| at < since),
            };
        });
        is_certain
    }

    /// Returns the time of the last play by any of the people, if it is known.
    pub fn last_play(&self, kind: MediaKind, ids: &CatalogIds) -> Option<Timestamp> {
        let mut newest = None;
        self.visit_states(kind, ids, |state| newest = newest.max(state.last_play()));
        newest
    }

    fn visit_states(&self, kind: MediaKind, ids: &CatalogIds, mut visit: impl FnMut(WatchState)) {
        for viewer in &self.viewers {
            viewer.watched.visit_states(kind, ids, &mut visit);
        }
    }

    /// Returns the state that answers whether any of the people has watched a title.
    fn state(&self, kind: MediaKind, ids: &CatalogIds) -> WatchState {
        let states = self.viewers.iter().map(|viewer| viewer.watched.state(kind, ids));
        states.reduce(WatchState::combine).unwrap_or(WatchState::Unknown)
    }
}
