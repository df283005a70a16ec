//! Check of the database file and of the free disk space.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::fs::{Access, access};

use super::{Finding, format_size};
use crate::clock::Clock;
use crate::store::database::database_inspection::{
    DatabaseInspection, OverdueWork, SchemaState, inspect_database,
};
use crate::store::database::file_watch::DisplacedFile;
use crate::store::memory::stats::StoredAnswerStats;

const LOW_SPACE_BYTES: u64 = 1_000_000_000;
/// Free bytes below which the write-ahead log of a busy day may not fit.
const MIN_SPACE_BYTES: u64 = 100_000_000;

pub(super) fn check_host(path: &Path) -> Vec<Finding> {
    let mut findings = check_database(path);
    findings.push(disk_finding(path));
    findings
}

fn check_database(path: &Path) -> Vec<Finding> {
    let path_text = path.display();
    if !path.exists() {
        return vec![Finding::warning(
            format!("database: {path_text} does not exist yet"),
            "dialarr serve creates it; run doctor in the folder of the service, with its configuration",
        )];
    }
    let Some(text) = path.to_str() else {
        return vec![Finding::failure("database: its path is not UTF-8", "set DATABASE_URL to another path")];
    };
    // Opening the file here would release SQLite's locks when the file is closed.
    if let Err(error) = access(path, Access::READ_OK | Access::WRITE_OK) {
        let summary = format!("database: {path_text} cannot be written ({error})");
        return vec![Finding::failure(
            summary,
            "run doctor as the user of the service, which must own the file",
        )];
    }
    let findings = match inspect_database(text, Clock::System.now()) {
        Ok(inspection) => database_findings(&path_text.to_string(), &inspection),
        Err(error) => vec![Finding::failure(
            format!("database: {path_text} cannot be read: failed to {error}"),
            "restore a backup if the file is damaged",
        )],
    };
    findings.into_iter().chain(file_system_finding(path)).collect()
}

/// Returns a warning if the database is on a file system on which locks may not work.
#[cfg(target_os = "linux")]
fn file_system_finding(path: &Path) -> Option<Finding> {
    // If this fails, the check of the disk space fails too and reports it.
    let magic = rustix::fs::statfs(path).ok()?.f_type;
    finding_for_file_system_type(i128::from(magic))
}

#[cfg(not(target_os = "linux"))]
fn file_system_finding(_: &Path) -> Option<Finding> {
    None
}

/// Returns a warning for the type of a network file system, by its magic number. Some platforms report only the lower
/// 32 bits, with or without a sign.
#[cfg(target_os = "linux")]
fn finding_for_file_system_type(magic: i128) -> Option<Finding> {
    let name = match magic & 0xffff_ffff {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x6573_5546 => "FUSE",
        0x0102_1997 => "9p",
        0x00c3_6400 => "Ceph",
        _ => return None,
    };
    Some(Finding::warning(
        format!("database: on a {name} file system, which may be shared over a network"),
        "move it to a local disk: SQLite's log and locks may not work on other file systems",
    ))
}

fn database_findings(path_text: &str, inspection: &DatabaseInspection) -> Vec<Finding> {
    let schema = match &inspection.tables {
        SchemaState::Current => {
            Finding::ok(format!("database: {path_text} opens, and its schema is current"))
        }
        SchemaState::Empty => Finding::warning(
            format!("database: {path_text} is empty"),
            "the next start of dialarr serve creates its tables",
        ),
        SchemaState::Foreign => Finding::failure(
            format!("database: {path_text} is the database of another program"),
            "set DATABASE_URL to the database of Dialarr; dialarr serve does not change this one",
        ),
        SchemaState::Older { .. } => Finding::warning(
            format!("database: {path_text} was written by an older version"),
            "the next start of dialarr serve backs it up and migrates it",
        ),
        SchemaState::Newer { .. } => Finding::failure(
            format!("database: {path_text} was written by a newer version"),
            "use that version, or restore a backup from before it",
        ),
    };
    let damage = match &inspection.damage {
        None => Finding::ok("database: no damage found"),
        Some(first) => Finding::failure(
            format!("database: damaged: {}", first.replace('\n', " ")),
            "stop dialarr serve, restore a backup, and check the disk",
        ),
    };
    let contents = inspection.contents.iter();
    let contents = contents.flat_map(|contents| {
        let findings = [
            Some(backlog_finding(contents.overdue)),
            Some(stored_answers_finding(&contents.memory)),
            statistics_finding(&contents.memory),
        ];
        findings.into_iter().flatten()
    });
    [schema, damage].into_iter().chain(contents).collect()
}

/// Returns a finding with the number of stored answers per category, if any exist.
fn statistics_finding(stats: &StoredAnswerStats) -> Option<Finding> {
    let format_category = |(name, counts): (&str, &BTreeMap<String, i64>)| {
        let counts: Vec<String> = counts.iter().map(|(value, count)| format!("{value} {count}")).collect();
        (!counts.is_empty()).then(|| format!("by {name}: {}", counts.join(", ")))
    };
    let categories = [("scope", &stats.by_scope), ("type", &stats.by_type), ("state", &stats.by_state)];
    let categories: Vec<String> = categories.into_iter().filter_map(format_category).collect();
    (!categories.is_empty()).then(|| Finding::ok(format!("memory: {}", categories.join("; "))))
}

fn stored_answers_finding(stats: &StoredAnswerStats) -> Finding {
    let findable: i64 = stats.by_scope.values().sum();
    let waiting = stats.by_state.get("pending").copied().unwrap_or(0);
    let summary = format!(
        "memory: {findable} stored answers, {waiting} waiting to be indexed; facts about users: {}",
        stats.facts
    );
    match stats.failing {
        0 => Finding::ok(summary),
        failing => Finding::warning(
            format!("{summary}; {failing} failed in the last attempt"),
            "they are retried automatically; see the findings on the model and the embeddings",
        ),
    }
}

fn backlog_finding(OverdueWork { unanswered, unsent }: OverdueWork) -> Finding {
    match (unanswered, unsent) {
        (0, 0) => Finding::ok("database: no overdue messages"),
        _ => Finding::warning(
            format!(
                "database: overdue by more than 10 minutes: {unanswered} received and {unsent} outgoing texts"
            ),
            "start dialarr serve; if it runs, see \"When a text is stuck\" in docs/TROUBLESHOOTING.md",
        ),
    }
}

/// Returns a finding on the database of the running program: its files, and the error of the last periodic write.
pub(crate) fn open_database_finding(files: Result<(), DisplacedFile>, write_error: Option<&str>) -> Finding {
    match (files, write_error) {
        (Err(displaced), _) => Finding::failure(
            format!("database: {displaced}"),
            "restore the file, or restart dialarr serve, which then opens the file at that path or creates one",
        ),
        (Ok(()), Some(error)) => Finding::failure(
            format!("database: failed to write: {error}"),
            "see the log of dialarr serve, and check the disk",
        ),
        (Ok(()), None) => Finding::ok("database: in place and writable"),
    }
}

/// Returns a finding on the free space on the disk of the database.
pub(crate) fn disk_finding(path: &Path) -> Finding {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    let free = match rustix::fs::statvfs(folder) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => {
            let summary = format!("disk: the folder {} cannot be used ({error})", folder.display());
            return Finding::failure(summary, "create the folder, or set DATABASE_URL");
        }
    };
    free_space_finding(free)
}

fn free_space_finding(free: u64) -> Finding {
    let summary = format!("disk: {} free beside the database", format_size(free));
    if free < MIN_SPACE_BYTES {
        Finding::failure(summary, "free up disk space: texts cannot be stored, and Twilio has to retry")
    } else if free < LOW_SPACE_BYTES {
        Finding::warning(summary, "free up disk space soon")
    } else {
        Finding::ok(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::super::FindingGrade;
    use super::*;

    #[test]
    fn little_free_space_is_a_warning_and_almost_none_a_failure() {
        let findings = [2_500_000_000_000, 999_999_999, 99_999_999, 5].map(|free| {
            let finding = free_space_finding(free);
            (finding.grade, finding.summary)
        });
        let message = |size: &str| format!("disk: {size} free beside the database");
        let expected = [
            (FindingGrade::Ok, message("2.5 TB")),
            (FindingGrade::Warning, message("999.9 MB")),
            (FindingGrade::Failure, message("99.9 MB")),
            (FindingGrade::Failure, message("less than 1 MB")),
        ];
        assert_eq!(findings, expected);
    }

    #[test]
    fn failed_periodic_write_is_a_failure() {
        let finding = open_database_finding(Ok(()), Some("database or disk is full"));
        let expected = "database: failed to write: database or disk is full";
        assert_eq!((finding.grade, finding.summary.as_str()), (FindingGrade::Failure, expected));
        assert_eq!(open_database_finding(Ok(()), None).grade, FindingGrade::Ok);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn network_file_system_is_a_warning() {
        // ext4, btrfs, tmpfs, then NFS, SMB with and without a sign, sshfs.
        let local = [0xef53, 0x9123_683e, 0x0102_1994];
        let remote = [0x6969, 0xfe53_4d42, i128::from(0xff53_4d42_u32.cast_signed()), 0x6573_5546];
        assert!(local.into_iter().all(|magic| finding_for_file_system_type(magic).is_none()));
        for magic in remote {
            let grade = finding_for_file_system_type(magic).map(|finding| finding.grade);
            assert_eq!(grade, Some(FindingGrade::Warning), "{magic:x}");
        }
    }
}
