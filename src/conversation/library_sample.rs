//! Samples of a library, by which a server of Sonarr or Radarr is recognized after a move to another address.

use std::collections::HashMap;

/// Number of titles of a sample that must be on a server with the same ids.
const REQUIRED_MATCHES: usize = 20;
/// Maximum number of titles of a sample. Some may be deleted before the comparison.
const MAX_TITLES: usize = 60;

/// Ids of a title: that of its library, and that of the catalog (TMDB for movies, TheTVDB for series), which is the
/// same on all servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TitleIds {
    pub library: i64,
    pub catalog: i64,
}

/// Titles of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTitles {
    /// Slot of the server, such as `radarr-4k`.
    pub slot: &'static str,
    /// Scheme, host, port and URL base.
    pub identity: String,
    pub titles: Vec<TitleIds>,
}

/// Returns the name of a slot that people know.
pub fn server_label(slot: &str) -> &str {
    match slot {
        "radarr" => "Radarr",
        "radarr-4k" => "Radarr 4K",
        "sonarr" => "Sonarr",
        "sonarr-4k" => "Sonarr 4K",
        other => other,
    }
}

/// Result of the comparison of a sample with a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleComparison {
    Same,
    /// An id of the library belongs to another title.
    Different,
    /// Too few titles of the sample are in the library.
    TooFewTitles,
}

/// Returns titles from the whole library, in the order of their ids.
pub fn pick_sample(mut titles: Vec<TitleIds>) -> Vec<TitleIds> {
    titles.sort_unstable();
    let step = titles.len().div_ceil(MAX_TITLES).max(1);
    titles.into_iter().step_by(step).collect()
}

/// Compares a sample with the titles of a library. Titles that were deleted since the sample do not count.
pub fn compare_sample(sample: &[TitleIds], library: &[TitleIds]) -> SampleComparison {
    let catalog_ids: HashMap<i64, i64> = library.iter().map(|title| (title.library, title.catalog)).collect();
    let present: Vec<bool> =
        sample.iter().filter_map(|title| Some(*catalog_ids.get(&title.library)? == title.catalog)).collect();
    if present.contains(&false) {
        SampleComparison::Different
    } else if present.len() < REQUIRED_MATCHES {
        SampleComparison::TooFewTitles
    } else {
        SampleComparison::Same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(ids: std::ops::Range<i64>) -> Vec<TitleIds> {
        ids.map(|library| TitleIds { library, catalog: 1_000 + library }).collect()
    }

    #[test]
    fn sample_covers_the_whole_library() {
        assert_eq!(pick_sample(titles(1..4)), titles(1..4));
        let sample = pick_sample(titles(1..1_001).into_iter().rev().collect());
        assert_eq!((sample.len(), sample[0].library, sample.last().unwrap().library), (59, 1, 987));
        assert_eq!(pick_sample(Vec::new()), []);
    }

    #[test]
    fn server_is_the_same_if_twenty_titles_match_and_none_differs() {
        assert_eq!(compare_sample(&titles(1..21), &titles(1..21)), SampleComparison::Same);
        assert_eq!(compare_sample(&titles(1..41), &titles(11..31)), SampleComparison::Same);
        assert_eq!(compare_sample(&titles(1..20), &titles(1..20)), SampleComparison::TooFewTitles);
        assert_eq!(compare_sample(&titles(1..41), &titles(12..31)), SampleComparison::TooFewTitles);
        let mut other = titles(1..60);
        other[30].catalog = 5;
        assert_eq!(compare_sample(&titles(1..41), &other), SampleComparison::Different);
    }
}
