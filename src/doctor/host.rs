//! Check of this machine: the database, this program's access to the database, and the free disk space beside it.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::fs::{Access, access};

use super::{Finding, format_size};
use crate::clock::Clock;
use crate::store::database::database_inspection::{
    DatabaseInspection, OverdueWork, SchemaState, inspect_database,
};
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
    let shown = path.display();
    if !path.exists() {
        return vec![Finding::warning(
            format!("database: {shown} does not exist yet"),
            "dialarr serve makes it; run doctor in the folder of the service, with its configuration",
        )];
    }
    let Some(text) = path.to_str() else {
        return vec![Finding::failure("database: its path is not UTF-8", "set DATABASE_URL to another path")];
    };
    // Opening the file here would release SQLite's locks when the file is closed.
    if let Err(error) = access(path, Access::READ_OK | Access::WRITE_OK) {
        let what = format!("database: {shown} cannot be written ({error})");
        return vec![Finding::failure(what, "run as the user of the service, who must own the file")];
    }
    let found = match inspect_database(text, Clock::System.now()) {
        Ok(examined) => database_findings(&shown.to_string(), &examined),
        Err(error) => vec![Finding::failure(
            format!("database: {shown} cannot be read: failed to {error}"),
            "restore a backup, if it is no database any more",
        )],
    };
    found.into_iter().chain(remote_file_system(path)).collect()
}

/// Returns a warning if locks may not keep a second machine, or a second program, out of the database.
#[cfg(target_os = "linux")]
fn remote_file_system(path: &Path) -> Option<Finding> {
    // If the file system type is not available, the finding on the disk reports that.
    let magic = rustix::fs::statfs(path).ok()?.f_type;
    judge_file_system(i128::from(magic))
}

#[cfg(not(target_os = "linux"))]
fn remote_file_system(_: &Path) -> Option<Finding> {
    None
}

/// Judges a file system by the magic number of its type. Some systems have only the lower 32 bits of the number, with
/// or without a sign.
#[cfg(target_os = "linux")]
fn judge_file_system(magic: i128) -> Option<Finding> {
    let name = match magic & 0xffff_ffff {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x6573_5546 => "FUSE",
        0x0102_1997 => "9p",
        0x00c3_6400 => "Ceph",
        _ => return None,
    };
    Some(Finding::warning(
        format!("database: it is on a file system of the type {name}, which may be shared over a network"),
        "move it to a local disk: elsewhere SQLite's log and the lock against a second program may not work",
    ))
}

fn database_findings(shown: &str, examined: &DatabaseInspection) -> Vec<Finding> {
    let version = match &examined.tables {
        SchemaState::Current => Finding::ok(format!("database: {shown} opens and is of this version")),
        SchemaState::Empty => Finding::warning(
            format!("database: {shown} is empty"),
            "the next start of dialarr serve gives it its tables",
        ),
        SchemaState::Foreign => Finding::failure(
            format!("database: {shown} is the database of another program"),
            "set DATABASE_URL to that of Dialarr; dialarr serve leaves this one as it is",
        ),
        SchemaState::Older { .. } => Finding::warning(
            format!("database: {shown} was written by an older version"),
            "the next start of dialarr serve puts a copy beside it and brings it up to date",
        ),
        SchemaState::Newer { .. } => Finding::failure(
            format!("database: {shown} was written by a newer version"),
            "use that version, or restore a backup from before it",
        ),
    };
    let damage = match &examined.damage {
        None => Finding::ok("database: no damage found"),
        Some(first) => Finding::failure(
            format!("database: damaged: {}", first.replace('\n', " ")),
            "stop dialarr serve, restore a backup, and look after the disk",
        ),
    };
    let contents = examined.contents.iter();
    let contents = contents.flat_map(|contents| {
        let about = [
            Some(backlog_finding(contents.overdue)),
            Some(cache_finding(&contents.memory)),
            statistics_finding(&contents.memory),
        ];
        about.into_iter().flatten()
    });
    [version, damage].into_iter().chain(contents).collect()
}

/// Returns a finding on the stored answers, if any exist.
fn statistics_finding(stats: &StoredAnswerStats) -> Option<Finding> {
    let sort = |(name, counts): (&str, &BTreeMap<String, i64>)| {
        let counts: Vec<String> = counts.iter().map(|(word, count)| format!("{word} {count}")).collect();
        (!counts.is_empty()).then(|| format!("by {name}: {}", counts.join(", ")))
    };
    let sorts = [("scope", &stats.by_scope), ("type", &stats.by_type), ("state", &stats.by_state)];
    let sorts: Vec<String> = sorts.into_iter().filter_map(sort).collect();
    (!sorts.is_empty()).then(|| Finding::ok(format!("memory: {}", sorts.join("; "))))
}

fn cache_finding(stats: &StoredAnswerStats) -> Finding {
    let findable: i64 = stats.by_scope.values().sum();
    let waiting = stats.by_state.get("pending").copied().unwrap_or(0);
    let what = format!(
        "memory: {findable} answers can be found, {waiting} of them wait to be worked on; facts about people: {}",
        stats.facts
    );
    match stats.failing {
        0 => Finding::ok(what),
        failing => Finding::warning(
            format!("{what}; {failing} failed at their last try"),
            "they are tried again by themselves; see the model's and the embeddings model's findings here",
        ),
    }
}

fn backlog_finding(OverdueWork { unanswered, unsent }: OverdueWork) -> Finding {
    match (unanswered, unsent) {
        (0, 0) => Finding::ok("database: no text waits for long"),
        _ => Finding::warning(
            format!(
                "database: for more than 10 minutes, {unanswered} received texts and {unsent} to send wait"
            ),
            "start dialarr serve; if it runs, see \"When a text is stuck\" in docs/OPERATIONS.md",
        ),
    }
}

/// Returns a finding on the free space beside the database.
pub(crate) fn disk_finding(path: &Path) -> Finding {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    let free = match rustix::fs::statvfs(folder) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => {
            let what = format!("disk: the folder {} cannot be used ({error})", folder.display());
            return Finding::failure(what, "make the folder, or set DATABASE_URL");
        }
    };
    judge_room(free)
}

fn judge_room(free: u64) -> Finding {
    let what = format!("disk: {} free beside the database", format_size(free));
    if free < MIN_SPACE_BYTES {
        Finding::failure(what, "make room: without it no text can be stored, and Twilio is told to come back")
    } else if free < LOW_SPACE_BYTES {
        Finding::warning(what, "make room soon")
    } else {
        Finding::ok(what)
    }
}

#[cfg(test)]
mod tests {
    use super::super::FindingGrade;
    use super::*;

    #[test]
    fn little_free_space_is_a_warning_and_almost_none_a_failure() {
        let findings = [2_500_000_000_000, 999_999_999, 99_999_999, 5].map(|free| {
            let finding = judge_room(free);
            (finding.grade, finding.what)
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

    #[cfg(target_os = "linux")]
    #[test]
    fn network_file_system_is_a_warning() {
        // ext4, btrfs, tmpfs, then NFS, SMB with and without a sign, sshfs.
        let local = [0xef53, 0x9123_683e, 0x0102_1994];
        let remote = [0x6969, 0xfe53_4d42, i128::from(0xff53_4d42_u32.cast_signed()), 0x6573_5546];
        assert!(local.into_iter().all(|magic| judge_file_system(magic).is_none()));
        for magic in remote {
            let grade = judge_file_system(magic).map(|finding| finding.grade);
            assert_eq!(grade, Some(FindingGrade::Warning), "{magic:x}");
        }
    }
}
