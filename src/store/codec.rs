//! Conversions between column values and domain values. A stored value that cannot be read is an error; a
//! caller that can continue without it uses [`none_if_unreadable`].

use diesel::QueryResult;
use diesel::result::Error as QueryError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::column_types::Millis;
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::deletion::target::{
    DeletionScope, DownloadFollowUp, SeasonEpisodes, SeasonFlags, TargetFingerprint, ViewingKnowledge,
};
use crate::conversation::routing::inbound_message::MessageMedia;
use crate::conversation::transcript::{
    CallFailure, CallResult, FailureCode, MediaKind, MediaRef, StopReason, ToolArguments,
};

/// Builds the error for an unreadable column. The error omits the value, which may be private text of a user.
pub(super) fn unreadable_column(column: &str) -> QueryError {
    QueryError::DeserializationError(format!("stored {column} cannot be read").into())
}

/// Replaces an unreadable value with `None`, after a log entry, for work that can continue without the value.
pub(super) fn none_if_unreadable<T>(result: QueryResult<T>) -> QueryResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error @ QueryError::DeserializationError(_)) => {
            tracing::error!(%error, "skipped a stored value that cannot be read");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Converts a time to the milliseconds of its column.
pub(super) fn ms(at: Timestamp) -> Millis {
    at.into()
}

pub(super) fn convert_integer<T: TryFrom<i64>>(value: i64) -> QueryResult<T> {
    T::try_from(value).map_err(|_| unreadable_column("number"))
}

/// Converts a count for its column. A value too large for the column is stored as the largest one.
pub(super) fn saturating_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn stop_reason_text(stop: &StopReason) -> &str {
    match stop {
        StopReason::Done => "stop",
        StopReason::Length => "length",
        StopReason::Filtered => "content_filter",
        StopReason::Refused => "refusal",
        StopReason::Other(text) => text,
    }
}

pub(super) fn parse_stop_reason(text: &str) -> StopReason {
    match text {
        "stop" => StopReason::Done,
        "length" => StopReason::Length,
        "content_filter" => StopReason::Filtered,
        "refusal" => StopReason::Refused,
        other => StopReason::Other(other.to_owned()),
    }
}

/// Stored form of a call without arguments.
const NO_ARGUMENTS: &str = "{}";

pub(super) fn arguments_json(arguments: &ToolArguments) -> String {
    match arguments {
        ToolArguments::Object(map) if map.is_empty() => return NO_ARGUMENTS.to_owned(),
        ToolArguments::Object(map) => json!({ "arguments": map }),
        ToolArguments::Malformed(raw) => json!({ "raw": raw }),
    }
    .to_string()
}

pub(super) fn parse_arguments(text: &str) -> QueryResult<ToolArguments> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum StoredArguments {
        Arguments(serde_json::Map<String, Value>),
        Raw(String),
    }
    if text == NO_ARGUMENTS {
        return Ok(ToolArguments::Object(serde_json::Map::new()));
    }
    match from_json::<StoredArguments>("arguments", text)? {
        StoredArguments::Arguments(map) => Ok(ToolArguments::Object(map)),
        StoredArguments::Raw(raw) => Ok(ToolArguments::Malformed(raw)),
    }
}

#[derive(Serialize, Deserialize)]
struct StoredResult {
    for_model: Value,
    for_user: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shown: Vec<StoredMediaRef>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredMediaRef {
    Tmdb(i64),
    Tvdb(i64),
    Item(String, MediaKind, i64),
    Download(String, i64),
}

pub(super) fn call_result_json(result: &CallResult) -> QueryResult<String> {
    let shown = result.shown.iter().map(|media| match media {
        MediaRef::Tmdb(id) => StoredMediaRef::Tmdb(*id),
        MediaRef::Tvdb(id) => StoredMediaRef::Tvdb(*id),
        MediaRef::Item { instance, kind, id } => StoredMediaRef::Item(instance.clone(), *kind, *id),
        MediaRef::Download { instance, id } => StoredMediaRef::Download(instance.clone(), *id),
    });
    to_json(&StoredResult {
        for_model: result.for_model.clone(),
        for_user: result.for_user.clone(),
        shown: shown.collect(),
    })
}

pub(super) fn parse_call_result(text: &str) -> QueryResult<CallResult> {
    let stored: StoredResult = from_json("result", text)?;
    let shown = stored.shown.into_iter().map(|media| match media {
        StoredMediaRef::Tmdb(id) => MediaRef::Tmdb(id),
        StoredMediaRef::Tvdb(id) => MediaRef::Tvdb(id),
        StoredMediaRef::Item(instance, kind, id) => MediaRef::Item { instance, kind, id },
        StoredMediaRef::Download(instance, id) => MediaRef::Download { instance, id },
    });
    Ok(CallResult { for_model: stored.for_model, for_user: stored.for_user, shown: shown.collect() })
}

#[derive(Serialize, Deserialize)]
struct StoredCallFailure {
    code: FailureCode,
    for_model: Value,
    for_user: Option<String>,
}

/// SQL expression for the stored failure of a call with only its code.
pub(super) const FAILURE_WITHOUT_TEXT: &str = "json_replace(tool_calls.error, '$.for_model', \
     json_object('forgotten', json('true')), '$.for_user', NULL)";

pub(super) fn call_failure_json(failure: &CallFailure) -> QueryResult<String> {
    to_json(&StoredCallFailure {
        code: failure.code.clone(),
        for_model: failure.for_model.clone(),
        for_user: failure.for_user.clone(),
    })
}

pub(super) fn parse_call_failure(text: &str) -> QueryResult<CallFailure> {
    let stored: StoredCallFailure = from_json("failure", text)?;
    Ok(CallFailure { code: stored.code, for_model: stored.for_model, for_user: stored.for_user })
}

#[derive(Serialize, Deserialize)]
struct StoredFingerprint {
    title: String,
    year: u16,
    path: String,
    size_bytes: u64,
    seasons: Option<u32>,
    #[serde(default)]
    ids: StoredIds,
    #[serde(default)]
    is_viewing_unknown: bool,
}

/// Ids of a title at the catalogs.
#[derive(Default, Serialize, Deserialize)]
struct StoredIds {
    tmdb: Option<i64>,
    tvdb: Option<i64>,
    imdb: Option<i64>,
}

/// SQL expression for a stored fingerprint without what tells which title it is of.
pub(super) const FINGERPRINT_WITHOUT_TEXT: &str =
    "json_remove(json_replace(fingerprint, '$.title', '', '$.path', ''), '$.ids')";

pub(super) fn fingerprint_json(fingerprint: &TargetFingerprint) -> QueryResult<String> {
    let TargetFingerprint { title, year, path, size_bytes, seasons, ids, viewing } = fingerprint.clone();
    let CatalogIds { tmdb, tvdb, imdb } = ids;
    let ids = StoredIds { tmdb, tvdb, imdb };
    let is_viewing_unknown = viewing == ViewingKnowledge::Unknown;
    to_json(&StoredFingerprint { title, year, path, size_bytes, seasons, ids, is_viewing_unknown })
}

pub(super) fn parse_fingerprint(text: &str) -> QueryResult<TargetFingerprint> {
    let stored: StoredFingerprint = from_json("fingerprint", text)?;
    let StoredFingerprint { title, year, path, size_bytes, seasons, ids, is_viewing_unknown } = stored;
    let StoredIds { tmdb, tvdb, imdb } = ids;
    let viewing = if is_viewing_unknown { ViewingKnowledge::Unknown } else { ViewingKnowledge::Known };
    let ids = CatalogIds { tmdb, tvdb, imdb };
    Ok(TargetFingerprint { title, year, path, size_bytes, seasons, ids, viewing })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredScope {
    Season {
        number: u32,
        files: Vec<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        monitored: Option<StoredFlags>,
    },
    Copy {
        season: Option<u32>,
        episodes: Vec<u32>,
        files: Vec<i64>,
    },
    Download {
        #[serde(rename = "another")]
        search_again: bool,
    },
}

#[derive(Serialize, Deserialize)]
struct StoredFlags {
    season: bool,
    episodes: Vec<i64>,
}

/// Encodes the scope of a deletion as JSON; `None` means the whole title.
pub(super) fn scope_json(scope: &DeletionScope) -> QueryResult<Option<String>> {
    let stored = match scope.clone() {
        DeletionScope::Whole => return Ok(None),
        DeletionScope::Season { number, files, monitored } => {
            let monitored =
                monitored.map(|SeasonFlags { season, episodes }| StoredFlags { season, episodes });
            StoredScope::Season { number, files, monitored }
        }
        DeletionScope::Copy { episodes: None, files } => {
            StoredScope::Copy { season: None, episodes: Vec::new(), files }
        }
        DeletionScope::Copy { episodes: Some(SeasonEpisodes { season, numbers }), files } => {
            StoredScope::Copy { season: Some(season), episodes: numbers, files }
        }
        DeletionScope::Download(follow_up) => {
            StoredScope::Download { search_again: follow_up == DownloadFollowUp::SearchAgain }
        }
    };
    to_json(&stored).map(Some)
}

pub(super) fn parse_scope(text: Option<&str>) -> QueryResult<DeletionScope> {
    let Some(text) = text else { return Ok(DeletionScope::Whole) };
    Ok(match from_json("extent", text)? {
        StoredScope::Season { number, files, monitored } => {
            let monitored =
                monitored.map(|StoredFlags { season, episodes }| SeasonFlags { season, episodes });
            DeletionScope::Season { number, files, monitored }
        }
        StoredScope::Copy { season, episodes: numbers, files } => {
            DeletionScope::Copy { episodes: season.map(|season| SeasonEpisodes { season, numbers }), files }
        }
        StoredScope::Download { search_again: true } => {
            DeletionScope::Download(DownloadFollowUp::SearchAgain)
        }
        StoredScope::Download { search_again: false } => DeletionScope::Download(DownloadFollowUp::Nothing),
    })
}

#[derive(Serialize, Deserialize)]
struct StoredMedia {
    url: String,
    content_type: String,
}

pub(super) fn media_json(media: &[MessageMedia]) -> QueryResult<Option<String>> {
    if media.is_empty() {
        return Ok(None);
    }
    let stored = media
        .iter()
        .map(|media| StoredMedia { url: media.url.clone(), content_type: media.content_type.clone() });
    to_json(&stored.collect::<Vec<_>>()).map(Some)
}

pub(super) fn parse_media(text: Option<&str>) -> QueryResult<Vec<MessageMedia>> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let stored: Vec<StoredMedia> = from_json("media", text)?;
    Ok(stored
        .into_iter()
        .map(|media| MessageMedia { url: media.url, content_type: media.content_type })
        .collect())
}

pub(super) fn to_json(value: &impl Serialize) -> QueryResult<String> {
    serde_json::to_string(value).map_err(|error| QueryError::SerializationError(error.into()))
}

pub(super) fn from_json<'a, T: Deserialize<'a>>(column: &str, text: &'a str) -> QueryResult<T> {
    serde_json::from_str(text).map_err(|_| unreadable_column(column))
}
