//! Free space of the folders of Sonarr and Radarr.

use crate::arr::RootFolder;
use crate::tools::library::{ArrInstances, INSTANCE_READ_TIMEOUT, query_all};

const BYTES_PER_GB: u64 = 1_000_000_000;

/// Instances whose folders have less free space than wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowSpace {
    pub instances: Vec<String>,
    /// Space that the fullest folder lacks.
    pub missing_bytes: u64,
}

/// Finds the instances with less than this free space in a folder. Returns `None` if none is known to have less.
pub async fn find_low_space(library: &ArrInstances, min_free_gb: u32) -> Option<LowSpace> {
    let (movies, series) = tokio::join!(
        query_all(&library.movies, INSTANCE_READ_TIMEOUT, async |radarr| radarr.fetch_root_folders().await),
        query_all(&library.series, INSTANCE_READ_TIMEOUT, async |sonarr| sonarr.fetch_root_folders().await),
    );
    let movies = movies.map(|(instance, folders)| (instance.name.to_owned(), folders));
    let folders = movies.merge(series.map(|(instance, folders)| (instance.name.to_owned(), folders)));
    find_low(&folders.responses, u64::from(min_free_gb).saturating_mul(BYTES_PER_GB))
}

fn find_low(folders: &[(String, Vec<RootFolder>)], min_free_bytes: u64) -> Option<LowSpace> {
    let lacking = |folders: &[RootFolder]| {
        let free = folders.iter().filter_map(|folder| folder.free_bytes).min()?;
        min_free_bytes.checked_sub(free).filter(|missing| *missing > 0)
    };
    let low: Vec<(&String, u64)> =
        folders.iter().filter_map(|(name, folders)| Some((name, lacking(folders)?))).collect();
    let missing_bytes = low.iter().map(|(_, missing)| *missing).max()?;
    Some(LowSpace { instances: low.into_iter().map(|(name, _)| name.clone()).collect(), missing_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fullest_folder_decides_which_instances_are_low() {
        let folder = |free_gb: Option<u64>| RootFolder {
            path: "/a".to_owned(),
            free_bytes: free_gb.map(|gb| gb * BYTES_PER_GB),
        };
        let folders = vec![
            ("radarr".to_owned(), vec![folder(Some(900)), folder(Some(80))]),
            ("sonarr".to_owned(), vec![folder(Some(500)), folder(None)]),
            ("sonarr4k".to_owned(), vec![folder(None)]),
        ];
        let low = find_low(&folders, 100 * BYTES_PER_GB).unwrap();
        assert_eq!(
            (low.instances.as_slice(), low.missing_bytes),
            (["radarr".to_owned()].as_slice(), 20 * BYTES_PER_GB)
        );
        assert_eq!(find_low(&folders, 80 * BYTES_PER_GB), None);
    }
}
