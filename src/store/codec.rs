//! Conversions between column values and domain values. A stored value that cannot be read is an error, never a
//! default.

use diesel::QueryResult;
use diesel::result::Error as QueryError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::conversation::deletion::ItemOutcome;
use crate::conversation::facts::FactKind;
use crate::conversation::frozen::{Afterwards, Episodes, Extent, Fingerprint, SeasonFlags};
use crate::conversation::inbound_message::{Media, Via};
use crate::conversation::stream::Part;
use crate::conversation::transcript::{
    Arguments, Brain, CallFailure, CallResult, ChannelKind, MediaKind, MediaRef, Role, Status, Stop, Tier,
};
use crate::conversation::verification::FieldAuthority;

/// Builds the error of an unreadable column. The value itself is left out: it may be private text of a user.
pub(super) fn unreadable(what: &str) -> QueryError {
    QueryError::DeserializationError(format!("stored {what} cannot be read").into())
}

/// Returns a value that later work can do without: `None` if it cannot be read, so that the work does not fail
/// permanently.
pub(super) fn if_readable<T>(read: QueryResult<T>) -> QueryResult<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error @ QueryError::DeserializationError(_)) => {
            tracing::error!(%error, "left out what cannot be read");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(super) fn ms(at: Timestamp) -> i64 {
    at.as_millisecond()
}

pub(super) fn time(ms: i64) -> QueryResult<Timestamp> {
    Timestamp::from_millisecond(ms).map_err(|_| unreadable("time"))
}

pub(super) fn number<T: TryFrom<i64>>(value: i64) -> QueryResult<T> {
    T::try_from(value).map_err(|_| unreadable("number"))
}

/// Converts a count for its column. A value too large for the column is stored as the largest one.
pub(super) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

macro_rules! words {
    ($($type:ident: $write:ident, $read:ident { $($variant:ident = $word:literal),+ $(,)? })*) => {$(
        pub(super) fn $write(value: $type) -> &'static str {
            match value { $($type::$variant => $word),+ }
        }

        pub(super) fn $read(word: &str) -> QueryResult<$type> {
            match word {
                $($word => Ok($type::$variant),)+
                _ => Err(unreadable(stringify!($type))),
            }
        }
    )*};
}

words! {
    ChannelKind: channel_word, channel { Twilio = "twilio", Console = "console", Local = "local" }
    Via: via_word, via { Webhook = "webhook", Fallback = "fallback", Recovery = "recovery", Local = "local" }
    FieldAuthority: authority_word, authority {
        Certain = "certain", Ambiguous = "ambiguous", Verified = "verified", Unverified = "unverified",
    }
    Status: status_word, status { Pending = "pending", Active = "active", Blocked = "blocked" }
    Role: role_word, role { Admin = "admin", Member = "member" }
    Tier: tier_word, tier { Read = "read", Write = "write", Destructive = "destructive" }
    Brain: brain_word, brain { Model = "model", Keyword = "keyword" }
    MediaKind: kind_word, kind { Movie = "movie", Series = "series" }
    FactKind: fact_kind_word, fact_kind {
        Quality = "quality", Alias = "alias", Dislike = "dislike", Like = "like", Folder = "folder",
        Schedule = "schedule", Other = "other",
    }
    ItemOutcome: outcome_word, outcome {
        Deleted = "deleted", AlreadyGone = "already_gone", Changed = "changed", Failed = "failed",
        NotPermitted = "not_permitted", Stopped = "stopped", StillThere = "still_there",
        Unknown = "unknown",
    }
    Part: part_word, part { Text = "text", Thinking = "thinking", ToolCall = "tool_call" }
}

pub(super) fn stop_word(stop: &Stop) -> &str {
    match stop {
        Stop::Done => "stop",
        Stop::Length => "length",
        Stop::Filtered => "content_filter",
        Stop::Refused => "refusal",
        Stop::Other(word) => word,
    }
}

pub(super) fn stop(word: &str) -> Stop {
    match word {
        "stop" => Stop::Done,
        "length" => Stop::Length,
        "content_filter" => Stop::Filtered,
        "refusal" => Stop::Refused,
        other => Stop::Other(other.to_owned()),
    }
}

pub(super) fn arguments_json(arguments: &Arguments) -> String {
    match arguments {
        Arguments::Object(map) => json!({ "arguments": map }),
        Arguments::Malformed(raw) => json!({ "raw": raw }),
    }
    .to_string()
}

pub(super) fn arguments(text: &str) -> QueryResult<Arguments> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Stored {
        Arguments(serde_json::Map<String, Value>),
        Raw(String),
    }
    match from_json::<Stored>("arguments", text)? {
        Stored::Arguments(map) => Ok(Arguments::Object(map)),
        Stored::Raw(raw) => Ok(Arguments::Malformed(raw)),
    }
}

#[derive(Serialize, Deserialize)]
struct StoredResult {
    for_model: Value,
    for_user: String,
    shown: Vec<StoredRef>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredRef {
    Tmdb(i64),
    Tvdb(i64),
    Item(String, MediaKind, i64),
    Download(String, i64),
}

pub(super) fn result_json(result: &CallResult) -> QueryResult<String> {
    let shown = result.shown.iter().map(|media| match media {
        MediaRef::Tmdb(id) => StoredRef::Tmdb(*id),
        MediaRef::Tvdb(id) => StoredRef::Tvdb(*id),
        MediaRef::Item { instance, kind, id } => StoredRef::Item(instance.clone(), *kind, *id),
        MediaRef::Download { instance, id } => StoredRef::Download(instance.clone(), *id),
    });
    to_json(&StoredResult {
        for_model: result.for_model.clone(),
        for_user: result.for_user.clone(),
        shown: shown.collect(),
    })
}

pub(super) fn result(text: &str) -> QueryResult<CallResult> {
    let stored: StoredResult = from_json("result", text)?;
    let shown = stored.shown.into_iter().map(|media| match media {
        StoredRef::Tmdb(id) => MediaRef::Tmdb(id),
        StoredRef::Tvdb(id) => MediaRef::Tvdb(id),
        StoredRef::Item(instance, kind, id) => MediaRef::Item { instance, kind, id },
        StoredRef::Download(instance, id) => MediaRef::Download { instance, id },
    });
    Ok(CallResult { for_model: stored.for_model, for_user: stored.for_user, shown: shown.collect() })
}

#[derive(Serialize, Deserialize)]
struct StoredFailure {
    code: String,
    for_model: Value,
    for_user: Option<String>,
}

/// Expression that reduces the stored failure of a call to its code.
pub(super) const FAILURE_WITHOUT_WORDS: &str = "json_replace(tool_calls.error, '$.for_model', \
     json_object('forgotten', json('true')), '$.for_user', NULL)";

pub(super) fn failure_json(failure: &CallFailure) -> QueryResult<String> {
    to_json(&StoredFailure {
        code: failure.code.clone(),
        for_model: failure.for_model.clone(),
        for_user: failure.for_user.clone(),
    })
}

pub(super) fn failure(text: &str) -> QueryResult<CallFailure> {
    let stored: StoredFailure = from_json("failure", text)?;
    Ok(CallFailure { code: stored.code, for_model: stored.for_model, for_user: stored.for_user })
}

#[derive(Serialize, Deserialize)]
struct StoredFingerprint {
    title: String,
    year: u16,
    path: String,
    size_bytes: u64,
    seasons: Option<u32>,
}

/// Expression that removes the names from a stored fingerprint.
pub(super) const FINGERPRINT_WITHOUT_WORDS: &str = "json_replace(fingerprint, '$.title', '', '$.path', '')";

pub(super) fn fingerprint_json(fingerprint: &Fingerprint) -> QueryResult<String> {
    let Fingerprint { title, year, path, size_bytes, seasons } = fingerprint.clone();
    to_json(&StoredFingerprint { title, year, path, size_bytes, seasons })
}

pub(super) fn fingerprint(text: &str) -> QueryResult<Fingerprint> {
    let StoredFingerprint { title, year, path, size_bytes, seasons } = from_json("fingerprint", text)?;
    Ok(Fingerprint { title, year, path, size_bytes, seasons })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredExtent {
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
        another: bool,
    },
}

#[derive(Serialize, Deserialize)]
struct StoredFlags {
    season: bool,
    episodes: Vec<i64>,
}

/// Formats the extent of a deletion; `None` means the whole title.
pub(super) fn extent_json(extent: &Extent) -> QueryResult<Option<String>> {
    let stored = match extent.clone() {
        Extent::Whole => return Ok(None),
        Extent::Season { number, files, monitored } => {
            let monitored =
                monitored.map(|SeasonFlags { season, episodes }| StoredFlags { season, episodes });
            StoredExtent::Season { number, files, monitored }
        }
        Extent::Copy { episodes: None, files } => {
            StoredExtent::Copy { season: None, episodes: Vec::new(), files }
        }
        Extent::Copy { episodes: Some(Episodes { season, numbers }), files } => {
            StoredExtent::Copy { season: Some(season), episodes: numbers, files }
        }
        Extent::Download(afterwards) => {
            StoredExtent::Download { another: afterwards == Afterwards::AnotherCopy }
        }
    };
    to_json(&stored).map(Some)
}

pub(super) fn extent(text: Option<&str>) -> QueryResult<Extent> {
    let Some(text) = text else { return Ok(Extent::Whole) };
    Ok(match from_json("extent", text)? {
        StoredExtent::Season { number, files, monitored } => {
            let monitored =
                monitored.map(|StoredFlags { season, episodes }| SeasonFlags { season, episodes });
            Extent::Season { number, files, monitored }
        }
        StoredExtent::Copy { season, episodes: numbers, files } => {
            Extent::Copy { episodes: season.map(|season| Episodes { season, numbers }), files }
        }
        StoredExtent::Download { another: true } => Extent::Download(Afterwards::AnotherCopy),
        StoredExtent::Download { another: false } => Extent::Download(Afterwards::Nothing),
    })
}

#[derive(Serialize, Deserialize)]
struct StoredMedia {
    url: String,
    content_type: String,
}

pub(super) fn media_json(media: &[Media]) -> QueryResult<Option<String>> {
    if media.is_empty() {
        return Ok(None);
    }
    let stored = media
        .iter()
        .map(|item| StoredMedia { url: item.url.clone(), content_type: item.content_type.clone() });
    to_json(&stored.collect::<Vec<_>>()).map(Some)
}

pub(super) fn media(text: Option<&str>) -> QueryResult<Vec<Media>> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let stored: Vec<StoredMedia> = from_json("media", text)?;
    Ok(stored.into_iter().map(|item| Media { url: item.url, content_type: item.content_type }).collect())
}

pub(super) fn to_json(value: &impl Serialize) -> QueryResult<String> {
    serde_json::to_string(value).map_err(|error| QueryError::SerializationError(error.into()))
}

pub(super) fn from_json<'a, T: Deserialize<'a>>(what: &str, text: &'a str) -> QueryResult<T> {
    serde_json::from_str(text).map_err(|_| unreadable(what))
}
