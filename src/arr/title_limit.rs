//! Age limit of the person for whom a client reads: every record of a response is checked by its own rating, and those
//! about other titles are dropped.

use serde_json::{Map, Value};

use super::wire::{
    EpisodeResource, HistoryRow, MovieResource, ProfileResource, QueueRow, ResourcePage, RootFolderResource,
    SeriesResource,
};
use super::{MediaKind, SystemStatus};
use crate::conversation::people::age_ratings::{AgeLimit, RatingCountry};

/// Titles that one server may show to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct TitleLimit {
    pub limit: AgeLimit,
    /// Country whose ratings the server shows; `None` if it is not known.
    pub country: Option<RatingCountry>,
}

impl TitleLimit {
    pub fn allows(&self, title: (MediaKind, i64), certification: &str) -> bool {
        self.limit.allows(title, self.country, certification)
    }

    pub(super) fn allows_movie(&self, tmdb: Option<i64>, certification: Option<&str>) -> bool {
        self.allows((MediaKind::Movie, tmdb.unwrap_or_default()), certification.unwrap_or_default())
    }

    pub(super) fn allows_series(&self, tvdb: Option<i64>, certification: Option<&str>) -> bool {
        self.allows((MediaKind::Series, tvdb.unwrap_or_default()), certification.unwrap_or_default())
    }
}

/// Record of a response, which may be about a title. A client reads only records of such types, so that no request can
/// forget the limit.
pub(super) trait LimitedRecord: Sized {
    /// Returns the record without the titles that a limit does not allow; `None` if nothing else is in it.
    fn within_limit(self, limit: &TitleLimit) -> Option<Self>;
}

impl LimitedRecord for MovieResource {
    fn within_limit(self, limit: &TitleLimit) -> Option<Self> {
        limit.allows_movie(self.tmdb_id, self.certification.as_deref()).then_some(self)
    }
}

impl LimitedRecord for SeriesResource {
    fn within_limit(self, limit: &TitleLimit) -> Option<Self> {
        limit.allows_series(self.tvdb_id, self.certification.as_deref()).then_some(self)
    }
}

impl LimitedRecord for EpisodeResource {
    fn within_limit(mut self, limit: &TitleLimit) -> Option<Self> {
        self.series = Some(self.series?.within_limit(limit)?);
        Some(self)
    }
}

impl LimitedRecord for QueueRow {
    fn within_limit(self, limit: &TitleLimit) -> Option<Self> {
        is_within_limit(limit, self.movie.as_ref(), self.series.as_ref()).then_some(self)
    }
}

impl LimitedRecord for HistoryRow {
    fn within_limit(self, limit: &TitleLimit) -> Option<Self> {
        is_within_limit(limit, self.movie.as_ref(), self.series.as_ref()).then_some(self)
    }
}

/// Returns whether a row names a title, and one within the limit.
fn is_within_limit(
    limit: &TitleLimit,
    movie: Option<&MovieResource>,
    series: Option<&SeriesResource>,
) -> bool {
    match (movie, series) {
        (Some(movie), _) => limit.allows_movie(movie.tmdb_id, movie.certification.as_deref()),
        (None, Some(series)) => limit.allows_series(series.tvdb_id, series.certification.as_deref()),
        (None, None) => false,
    }
}

impl<T: LimitedRecord> LimitedRecord for Vec<T> {
    fn within_limit(self, limit: &TitleLimit) -> Option<Self> {
        Some(self.into_iter().filter_map(|record| record.within_limit(limit)).collect())
    }
}

impl<T: LimitedRecord> LimitedRecord for ResourcePage<T> {
    fn within_limit(self, limit: &TitleLimit) -> Option<Self> {
        Some(Self { records: self.records.within_limit(limit)? })
    }
}

/// Episode or history row of a title that was checked before the request.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(transparent)]
pub(super) struct PartOfTitle<T>(pub(super) T);

/// Records that are about no title.
macro_rules! records_without_titles {
    ($($record:ty),* $(,)?) => {
        $(impl LimitedRecord for $record {
            fn within_limit(self, _limit: &TitleLimit) -> Option<Self> {
                Some(self)
            }
        })*
    };
}

records_without_titles!(
    ProfileResource,
    RootFolderResource,
    SystemStatus,
    // Settings of a connection.
    Map<String, Value>,
    super::common_api::ClientConfig,
    super::common_api::MetadataConfig,
    PartOfTitle<EpisodeResource>,
    PartOfTitle<HistoryRow>,
);

#[cfg(test)]
records_without_titles!(Value, String);
