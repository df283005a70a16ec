//! I33: a person gets the digest of a due time once, not before it and not more than twelve hours later, with two segments
//! at most; its lines are numbered from 1 on without gaps, and each number has a matter.

use serde_json::Value;

use super::{Evidence, Tally};
use crate::digest_people::DIGEST_PERIOD;
use crate::records::{Records, number, word};
use crate::world::World;

/// Shortest time between two due times of a person.
const FOUR_DAYS_S: i64 = 4 * 24 * 60 * 60;

/// Returns the digests with their due times in seconds.
fn digests(records: &Records) -> Vec<(&Value, i64)> {
    let due = |row: &Value| word(row, "dedupe_key").strip_prefix("digest:")?.split(':').next()?.parse().ok();
    records.outbox.iter().filter_map(|row| Some((row, due(row)?))).collect()
}

fn previews(records: &Records) -> impl Iterator<Item = &Value> {
    records.outbox.iter().filter(|row| word(row, "dedupe_key").starts_with("digest_now:"))
}

pub(super) fn check(evidence: &mut Evidence<'_>, steps: usize) {
    let records = evidence.records;
    let digests = digests(records);
    for (row, due) in &digests {
        let others = digests.iter().filter(|(other, at)| {
            other["id"] != row["id"] && other["user_id"] == row["user_id"] && (at - due).abs() < FOUR_DAYS_S
        });
        let count = others.count();
        evidence.expect(count == 0, || format!("I33 {} digests in a week: {row}", count + 1));
        let delay_s = number(row, "created_at") / 1_000 - due;
        let is_in_time = (0..=DIGEST_PERIOD.as_secs()).contains(&delay_s);
        // A time of the program is a time of the schedule if the clock was never set.
        evidence.expect(steps > 0 || is_in_time, || format!("I33 sent {delay_s} s after its time: {row}"));
    }
    for row in digests.iter().map(|(row, _)| *row).chain(previews(records)) {
        lines(evidence, row);
    }
}

fn lines(evidence: &mut Evidence<'_>, row: &Value) {
    let body = word(row, "body");
    let is_short = number(row, "segments") <= 2;
    evidence.expect(is_short, || format!("I33 a digest of more than two segments: {row}"));
    let numbers: Vec<i64> = body.lines().filter_map(|line| line.split_once(". ")?.0.parse().ok()).collect();
    let stored = evidence.records.digest_lines.iter().filter(|line| line["outbox_id"] == row["id"]);
    let mut stored: Vec<i64> = stored.map(|line| number(line, "number")).collect();
    stored.sort_unstable();
    let expected: Vec<i64> = (1..).take(numbers.len()).collect();
    evidence.expect(numbers == expected && stored == numbers, || {
        format!("I33 the lines {stored:?} belong to {row}")
    });
}

/// Returns the people whose digest is due or asked for, and not sent or left out.
pub(crate) fn unfinished(world: &World, records: &Records) -> Vec<String> {
    let now = world.now();
    let is_due = |setting: &Value| {
        let set_at = number(setting, "set_at");
        let due = set_at + 24 * 60 * 60 * 1_000 - 4 * 60 * 1_000;
        let late = now.as_millisecond() - due;
        setting["last_due_at"].is_null() && (0..DIGEST_PERIOD.as_millis() as i64).contains(&late)
    };
    let waits = |setting: &&Value| is_due(setting) || !setting["preview_event"].is_null();
    records.digest_settings.iter().filter(waits).map(|setting| format!("digest {setting}")).collect()
}

pub(super) fn count(evidence: &Evidence<'_>, tally: &mut Tally) {
    let records = evidence.records;
    tally.0.extend([
        ("digests", digests(records).len()),
        ("digests that were asked for", previews(records).count()),
        ("lines of digests", records.digest_lines.len()),
    ]);
}
