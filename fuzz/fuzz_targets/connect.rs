//! Arr events: parsed alike with any JSON spacing, with named matters, and texts on one line without paths; accepted
//! only with the secret.
#![no_main]

use std::cell::RefCell;

use dialarr::arr::connect_events::{self, EventParseError};
use dialarr::conversation::notifications::arr_events::ArrEvent;
use dialarr_fuzz::program::{Program, REPORT_SECRET};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

thread_local! {
    static PROGRAM: RefCell<Program> = RefCell::default();
}

fuzz_target!(|data: &[u8]| {
    let now = Timestamp::UNIX_EPOCH;
    let read = connect_events::parse_events(data, now);
    if let Ok(event) = serde_json::from_slice::<Value>(data)
        && let Ok(reports) = &read
    {
        let spaced = serde_json::to_vec_pretty(&event).unwrap_or_default();
        assert_eq!(connect_events::parse_events(&spaced, now).as_ref(), Ok(reports), "spaced otherwise");
    }
    for reported in read.iter().flatten() {
        assert!(!reported.matter.is_empty());
        match &reported.event {
            ArrEvent::MovieImported(title, _) | ArrEvent::EpisodeImported { show: title, .. } => {
                assert_ne!(title.catalog_id, 0)
            }
            ArrEvent::HealthIssue { check, message } => {
                assert!(!check.is_empty() && !message.contains(['\n', '\r']), "{message:?}");
                let is_path = |word: &str| {
                    word.starts_with('/') && word.trim_matches('/').starts_with(char::is_alphanumeric)
                };
                assert!(!message.split_whitespace().any(is_path), "{message:?}");
            }
            ArrEvent::HealthRestored { check } => assert!(!check.is_empty()),
            ArrEvent::ImportBlocked(_) | ArrEvent::DownloadFailed(_) => {}
        }
    }
    let expected = match read {
        Ok(_) => 200,
        Err(EventParseError) => 400,
    };
    PROGRAM.with_borrow_mut(|program| {
        assert_eq!(program.report(REPORT_SECRET, data), expected);
        assert_eq!(program.report("another-word", data), 401);
    });
});
