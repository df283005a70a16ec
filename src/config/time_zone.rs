//! Parser for `TZ`: a name of the zone database, a POSIX rule or a file, each optionally after a colon.

use std::fs;
use std::path::Path;

use jiff::tz::TimeZone;

/// Size limit of a zone file. Files of the zone database are smaller than 5 KB.
const MAX_ZONE_FILE_BYTES: u64 = 1 << 20;

pub(super) fn parse_zone(text: &str) -> Result<TimeZone, String> {
    let name = text.strip_prefix(':').unwrap_or(text);
    if Path::new(name).is_absolute() {
        return read_zone_file(Path::new(name)).ok_or_else(|| "not a file of a time zone".to_owned());
    }
    TimeZone::get(name)
        .or_else(|_| TimeZone::posix(name))
        .map_err(|_| "not a time zone that this system knows".to_owned())
}

/// Reads the zone of a file such as `/etc/localtime`. If the file is in the zone database, the zone is loaded by name.
fn read_zone_file(path: &Path) -> Option<TimeZone> {
    let target = fs::canonicalize(path).ok()?;
    let zone_path = target.to_str().and_then(|target| target.split_once("/zoneinfo/"));
    if let Some(zone) = zone_path.and_then(|(_, name)| TimeZone::get(name).ok()) {
        return Some(zone);
    }
    let file = fs::metadata(&target).ok()?;
    if !file.is_file() || file.len() > MAX_ZONE_FILE_BYTES {
        return None;
    }
    TimeZone::tzif("Local", &fs::read(&target).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// Returns the local time at noon UTC in winter.
    #[track_caller]
    fn winter_time(text: &str) -> String {
        let noon: Timestamp = "2026-01-15T12:00:00Z".parse().unwrap();
        noon.to_zoned(parse_zone(text).unwrap()).strftime("%H:%M").to_string()
    }

    #[test]
    fn zone_names_and_rules_are_accepted_with_or_without_a_colon() {
        for (text, hour) in [
            ("Europe/Berlin", "13:00"),
            (":Europe/Berlin", "13:00"),
            ("UTC", "12:00"),
            (":UTC", "12:00"),
            ("CET-1CEST,M3.5.0,M10.5.0/3", "13:00"),
            (":CET-1CEST,M3.5.0,M10.5.0/3", "13:00"),
        ] {
            assert_eq!(winter_time(text), hour, "{text}");
        }
    }

    #[test]
    fn zone_file_is_accepted_with_or_without_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("zoneinfo/Asia");
        fs::create_dir_all(&database).unwrap();
        fs::write(database.join("Tokyo"), "loaded by name").unwrap();
        let link = folder.path().join("localtime");
        std::os::unix::fs::symlink(database.join("Tokyo"), &link).unwrap();
        // Version 1 of the format: no transition, one type of 2 hours east of Greenwich, the letters EET.
        let mut data = b"TZif\0".to_vec();
        data.extend([0; 15]);
        data.extend([0_u32, 0, 0, 0, 1, 4].into_iter().flat_map(u32::to_be_bytes));
        data.extend(7200_i32.to_be_bytes());
        data.extend([0, 0]);
        data.extend(b"EET\0");
        let copy = folder.path().join("copy");
        fs::write(&copy, data).unwrap();
        for (path, hour) in [(&link, "21:00"), (&copy, "14:00")] {
            let path = path.to_str().unwrap();
            assert_eq!(winter_time(path), hour);
            assert_eq!(winter_time(&format!(":{path}")), hour);
        }
    }

    #[test]
    fn unknown_zone_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let text_file = folder.path().join("words");
        fs::write(&text_file, "no zone").unwrap();
        for path in [folder.path(), &text_file, &folder.path().join("missing")] {
            let error = parse_zone(path.to_str().unwrap()).unwrap_err();
            assert_eq!(error, "not a file of a time zone");
        }
        for text in ["Mars/Olympus", ":Mars/Olympus", ":", "::UTC"] {
            assert_eq!(parse_zone(text).unwrap_err(), "not a time zone that this system knows", "{text}");
        }
    }
}
