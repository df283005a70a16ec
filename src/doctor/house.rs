//! What is on this machine: the database, whether this program can use it, and the room beside it.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Finding, size};
use crate::clock::Clock;
use crate::store::examine::{Backlog, Examined, Tables, examine};
use crate::store::memory::stats::Stats;

const LITTLE_ROOM: u64 = 1_000_000_000;
/// With less than this the write-ahead log of a busy day may not fit.
const NO_ROOM: u64 = 100_000_000;

pub(super) fn check(path: &Path) -> Vec<Finding> {
    let mut findings = database(path);
    findings.push(disk(path));
    findings
}

fn database(path: &Path) -> Vec<Finding> {
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
    // Only opening it for writing tells whether this user may write.
    if let Err(error) = std::fs::OpenOptions::new().append(true).open(path) {
        let what = format!("database: {shown} cannot be written ({error})");
        return vec![Finding::failure(what, "run as the user of the service, who must own the file")];
    }
    match examine(text, Clock::System.now()) {
        Ok(examined) => state(&shown.to_string(), &examined),
        Err(error) => vec![Finding::failure(
            format!("database: {shown} cannot be read: failed to {error}"),
            "restore a backup, if it is no database any more",
        )],
    }
}

fn state(shown: &str, examined: &Examined) -> Vec<Finding> {
    let version = match &examined.tables {
        Tables::AsHere => Finding::ok(format!("database: {shown} opens and is of this version")),
        Tables::None => Finding::warning(
            format!("database: {shown} is empty"),
            "the next start of dialarr serve gives it its tables",
        ),
        Tables::Older { .. } => Finding::warning(
            format!("database: {shown} was written by an older version"),
            "the next start of dialarr serve puts a copy beside it and brings it up to date",
        ),
        Tables::Newer { .. } => Finding::failure(
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
        let about =
            [Some(backlog(contents.backlog)), Some(memory(&contents.memory)), sorts(&contents.memory)];
        about.into_iter().flatten()
    });
    [version, damage].into_iter().chain(contents).collect()
}

/// What the answers are, where there are any.
fn sorts(stats: &Stats) -> Option<Finding> {
    let sort = |(name, counts): (&str, &BTreeMap<String, i64>)| {
        let counts: Vec<String> = counts.iter().map(|(word, count)| format!("{word} {count}")).collect();
        (!counts.is_empty()).then(|| format!("by {name}: {}", counts.join(", ")))
    };
    let sorts = [("scope", &stats.by_scope), ("type", &stats.by_type), ("state", &stats.by_state)];
    let sorts: Vec<String> = sorts.into_iter().filter_map(sort).collect();
    (!sorts.is_empty()).then(|| Finding::ok(format!("memory: {}", sorts.join("; "))))
}

fn memory(stats: &Stats) -> Finding {
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

fn backlog(Backlog { unanswered, unsent }: Backlog) -> Finding {
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

/// The room beside the database.
pub(crate) fn disk(path: &Path) -> Finding {
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
    let what = format!("disk: {} free beside the database", size(free));
    if free < NO_ROOM {
        Finding::failure(what, "make room: without it no text can be stored, and Twilio is told to come back")
    } else if free < LITTLE_ROOM {
        Finding::warning(what, "make room soon")
    } else {
        Finding::ok(what)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Grade;
    use super::*;

    #[test]
    fn little_room_is_a_warning_and_hardly_any_a_failure() {
        let told = [2_500_000_000_000, 999_999_999, 99_999_999, 5].map(|free| {
            let finding = judge_room(free);
            (finding.grade, finding.what)
        });
        let said = |size: &str| format!("disk: {size} free beside the database");
        let expected = [
            (Grade::Ok, said("2.5 TB")),
            (Grade::Warning, said("999.9 MB")),
            (Grade::Failure, said("99.9 MB")),
            (Grade::Failure, said("less than 1 MB")),
        ];
        assert_eq!(told, expected);
    }
}
