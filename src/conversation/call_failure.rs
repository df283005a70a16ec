//! Failure of a tool call, and its code: a word that the model reads and the database stores.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Reason for the model why a call has no result.
#[derive(Debug, Clone, PartialEq)]
pub struct CallFailure {
    pub code: FailureCode,
    /// JSON for the model; includes the code too.
    pub for_model: Value,
    /// One plain sentence for the user, if there is one.
    pub for_user: Option<String>,
}

impl CallFailure {
    /// Builds a failure. The model gets the code and the fields of `more`.
    pub fn new(code: FailureCode, more: Value, for_user: Option<String>) -> Self {
        let mut for_model = json!({ "error": code });
        if let (Some(map), Value::Object(more)) = (for_model.as_object_mut(), more) {
            map.extend(more);
        }
        Self { code, for_model, for_user }
    }

    /// Failure of a write that may have happened.
    pub fn outcome_unknown() -> Self {
        Self::new(
            FailureCode::OutcomeUnknown,
            json!({ "hint": "it may or may not have happened; say so" }),
            Some("I could not find out whether that worked. Please check.".to_owned()),
        )
    }
}

/// Code of a failed call, written as a word such as `bad_arguments`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    // The call never ran.
    BadArguments,
    UnknownId,
    UnknownTool,
    Limit,
    NotRun,
    // Permission.
    NotPermitted,
    NotRequested,
    UnclearTitle,
    Quota,
    NobodyToAsk,
    TooManyRequests,
    // Titles, seasons and episodes.
    NotFound,
    NotInLibrary,
    NotListed,
    NotListedYet,
    NoSuchSeason,
    NoSuchEpisode,
    WhichSeasons,
    NothingMissing,
    NoPoster,
    // Deletions.
    NothingOnDisk,
    SizeUnknown,
    Changed,
    StillThere,
    StillWanted,
    /// Confirmed deletion of which some items still exist.
    NotDeleted,
    // Facts.
    NotSaid,
    NotKnown,
    TooMany,
    // Sonarr and Radarr.
    NotSetUp,
    RadarrUnreachable,
    RadarrMisconfigured,
    RadarrRefused,
    RadarrNotFound,
    RadarrError,
    RadarrUnreadable,
    SonarrUnreachable,
    SonarrMisconfigured,
    SonarrRefused,
    SonarrNotFound,
    SonarrError,
    SonarrUnreadable,
    // Runs.
    Failed,
    TooSlow,
    NotDone,
    OutcomeUnknown,
    // Queued additions, in the audit log.
    NotReachedForADay,
    NoSuchTool,
    /// Word that another version of the program has stored.
    #[serde(untagged)]
    Other(String),
}

impl FailureCode {
    /// Returns whether the call had no effect and may succeed later, because its library is down. A write with an
    /// unknown outcome is not reported before its outcome is determined. A web page in place of JSON may come from an
    /// instance that is still starting.
    pub fn is_library_down(&self) -> bool {
        matches!(
            self,
            Self::RadarrUnreachable
                | Self::RadarrMisconfigured
                | Self::RadarrError
                | Self::SonarrUnreachable
                | Self::SonarrMisconfigured
                | Self::SonarrError
        )
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_keeps_its_word_also_one_that_is_not_known() {
        for word in ["bad_arguments", "radarr_error", "not_deleted", "no_such_season", "of_a_later_version"] {
            let code: FailureCode = serde_json::from_value(json!(word)).unwrap();
            assert_eq!((code.to_string().as_str(), json!(code)), (word, json!(word)));
            assert_eq!(matches!(code, FailureCode::Other(_)), word == "of_a_later_version");
        }
    }
}
