//! Failures of tool calls, and their codes, which the model reads and the database stores.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Failure of a tool call, as it is reported to the model and to the user.
#[derive(Debug, Clone, PartialEq)]
pub struct CallFailure {
    pub code: FailureCode,
    /// JSON for the model, which includes the code.
    pub for_model: Value,
    /// Sentence for the user, if there is one.
    pub for_user: Option<String>,
}

impl CallFailure {
    /// Builds a failure. The model gets the code and the fields of the object `details`.
    pub fn new(code: FailureCode, details: Value, for_user: Option<String>) -> Self {
        let mut for_model = json!({ "error": code });
        if let (Some(map), Value::Object(details)) = (for_model.as_object_mut(), details) {
            map.extend(details);
        }
        Self { code, for_model, for_user }
    }

    /// Builds the failure of a write whose outcome is unknown.
    pub fn outcome_unknown() -> Self {
        Self::new(
            FailureCode::OutcomeUnknown,
            json!({ "hint": "it may or may not have happened; say so" }),
            Some("I could not find out whether that worked. Please check.".to_owned()),
        )
    }

    /// Builds the failure of a deletion of titles on a server that was replaced.
    pub fn server_moved() -> Self {
        Self::new(
            FailureCode::UnknownId,
            json!({ "hint": "the server was moved, so all ids changed: say that nothing was deleted, and search again" }),
            Some("The server was just moved, so nothing was deleted. Please ask again.".to_owned()),
        )
    }
}

/// Code of a failed call, such as `bad_arguments`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    // The call never ran.
    BadArguments,
    UnknownId,
    /// The model called a tool that does not exist.
    UnknownTool,
    /// The turn reached its limit of time or calls.
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
    /// Somebody is watching the title.
    BeingWatched,
    /// Confirmed deletion that left some of its items in place.
    NotDeleted,
    // Facts.
    NotSaid,
    /// The fact is not stored.
    NotKnown,
    /// The user has as many facts as are stored for one user.
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
    // Seerr.
    /// The user is not linked to a user of the Seerr.
    NotLinked,
    SeerrUnreachable,
    SeerrMisconfigured,
    SeerrRefused,
    SeerrError,
    // Execution of the call.
    Failed,
    TooSlow,
    NotDone,
    OutcomeUnknown,
    // Deferred additions, in the audit log.
    NotReachedForADay,
    /// The tool of a deferred addition does not exist any longer.
    NoSuchTool,
    /// Code that another version of the program has stored.
    #[serde(untagged)]
    Other(String),
}

impl FailureCode {
    /// Returns whether the call had no effect and may succeed later: the instance is down, faulty, or not set up
    /// correctly. One that is still starting may also respond with a web page instead of JSON.
    pub fn may_succeed_later(&self) -> bool {
        matches!(
            self,
            Self::RadarrUnreachable
                | Self::RadarrMisconfigured
                | Self::RadarrError
                | Self::SonarrUnreachable
                | Self::SonarrMisconfigured
                | Self::SonarrError
                | Self::SeerrUnreachable
                | Self::SeerrMisconfigured
                | Self::SeerrError
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
    fn failure_code_round_trips_even_if_unknown() {
        for text in ["bad_arguments", "radarr_error", "not_deleted", "no_such_season", "of_a_later_version"] {
            let code: FailureCode = serde_json::from_value(json!(text)).unwrap();
            assert_eq!((code.to_string().as_str(), json!(code)), (text, json!(text)));
            assert_eq!(matches!(code, FailureCode::Other(_)), text == "of_a_later_version");
        }
    }
}
