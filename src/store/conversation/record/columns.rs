//! Column types of the records: ids, times, words of a closed set, and JSON.

use diesel::deserialize::{self, FromSql, FromSqlRow, Queryable};
use diesel::sql_types::{BigInt, Nullable, SingleValue, Text};
use diesel::sqlite::Sqlite;
use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::steps::AttemptState;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::routing::inbound_message::MessageSource;
use crate::conversation::stream_events::{BlockKind, CallPhase, StreamTurnState};
use crate::conversation::transcript::{
    CallRow, ChannelKind, ConversationId, EffectLevel, EventId, OutboxId, Responder, TurnId, UserId,
};
use crate::store::QueryResult;
use crate::store::codec::{
    brain, brain_word, channel, channel_word, from_json, part, part_word, tier, tier_word, unreadable_column,
    via, via_word, words,
};
use crate::store::conversation::conversations::{EndReason, end_reason, end_reason_word};

type SqliteValue<'a> = <Sqlite as diesel::backend::Backend>::RawValue<'a>;

/// Time of a required column.
#[derive(Debug, FromSqlRow, Serialize)]
pub struct StoredTime(Timestamp);

impl FromSql<BigInt, Sqlite> for StoredTime {
    fn from_sql(bytes: SqliteValue<'_>) -> deserialize::Result<Self> {
        let ms = <i64 as FromSql<BigInt, Sqlite>>::from_sql(bytes)?;
        Ok(Self(Timestamp::from_millisecond(ms)?))
    }
}

impl From<StoredTime> for Timestamp {
    fn from(time: StoredTime) -> Self {
        time.0
    }
}

/// Time of an optional column.
#[derive(FromSqlRow)]
pub struct OptionalTime(Option<Timestamp>);

impl FromSql<Nullable<BigInt>, Sqlite> for OptionalTime {
    fn from_sql(bytes: SqliteValue<'_>) -> deserialize::Result<Self> {
        StoredTime::from_sql(bytes).map(|time| Self(Some(time.0)))
    }

    fn from_nullable_sql(bytes: Option<SqliteValue<'_>>) -> deserialize::Result<Self> {
        bytes.map_or(Ok(Self(None)), Self::from_sql)
    }
}

impl From<OptionalTime> for Option<Timestamp> {
    fn from(time: OptionalTime) -> Self {
        time.0
    }
}

/// Number that is never negative.
#[derive(FromSqlRow)]
pub struct StoredCount(u32);

impl FromSql<BigInt, Sqlite> for StoredCount {
    fn from_sql(bytes: SqliteValue<'_>) -> deserialize::Result<Self> {
        let count = <i64 as FromSql<BigInt, Sqlite>>::from_sql(bytes)?;
        Ok(Self(u32::try_from(count)?))
    }
}

impl From<StoredCount> for u32 {
    fn from(count: StoredCount) -> Self {
        count.0
    }
}

/// JSON as stored. It is parsed when it is needed, so that one unreadable value fails only what needs it.
#[derive(Debug, Clone, PartialEq, Eq, FromSqlRow)]
pub struct StoredJson(String);

impl FromSql<Text, Sqlite> for StoredJson {
    fn from_sql(bytes: SqliteValue<'_>) -> deserialize::Result<Self> {
        <String as FromSql<Text, Sqlite>>::from_sql(bytes).map(Self)
    }
}

impl StoredJson {
    pub(in crate::store) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self, what: &str) -> QueryResult<T> {
        from_json(what, &self.0)
    }
}

impl Serialize for StoredJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The error message from serde would quote the stored text.
        let value: Value = self.parse("JSON").map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

macro_rules! id_columns {
    ($($id:ident),+ $(,)?) => {$(
        impl FromSql<BigInt, Sqlite> for $id {
            fn from_sql(bytes: SqliteValue<'_>) -> deserialize::Result<Self> {
                <i64 as FromSql<BigInt, Sqlite>>::from_sql(bytes).map(Self)
            }
        }

        impl<Column: SingleValue> Queryable<Column, Sqlite> for $id
        where
            Self: FromSql<Column, Sqlite>,
        {
            type Row = Self;

            fn build(row: Self) -> deserialize::Result<Self> {
                Ok(row)
            }
        }

        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }
    )+};
}

id_columns!(CallRow, ConversationId, EventId, OutboxId, TurnId, UserId);

words! {
    AttemptState: attempt_state_word, attempt_state {
        Started = "started", Complete = "complete", Abandoned = "abandoned",
    }
    CallPhase: call_phase_word, call_phase {
        Created = "created", Held = "held", Running = "running", Unknown = "unknown", Complete = "complete",
        Error = "error", Canceled = "canceled",
    }
    StreamTurnState: turn_state_word, turn_state {
        Created = "CREATED", InProgress = "IN_PROGRESS", WaitingForTools = "WAITING_FOR_TOOLS", Failed = "FAILED",
        Error = "ERROR", Completed = "COMPLETED", Canceled = "CANCELED",
    }
}

fn delivery_word(status: DeliveryStatus) -> &'static str {
    status.word()
}

pub(in crate::store) fn delivery(word: &str) -> QueryResult<DeliveryStatus> {
    DeliveryStatus::from_word(word).ok_or_else(|| unreadable_column("delivery"))
}

macro_rules! word_columns {
    ($($type:ident: $write:ident, $read:ident;)+) => {$(
        impl FromSql<Text, Sqlite> for $type {
            fn from_sql(mut bytes: SqliteValue<'_>) -> deserialize::Result<Self> {
                Ok($read(bytes.read_text())?)
            }
        }

        impl<Column: SingleValue> Queryable<Column, Sqlite> for $type
        where
            Self: FromSql<Column, Sqlite>,
        {
            type Row = Self;

            fn build(row: Self) -> deserialize::Result<Self> {
                Ok(row)
            }
        }

        /// Serializes the stored word.
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($write(*self))
            }
        }
    )+};
}

word_columns! {
    AttemptState: attempt_state_word, attempt_state;
    BlockKind: part_word, part;
    CallPhase: call_phase_word, call_phase;
    ChannelKind: channel_word, channel;
    DeliveryStatus: delivery_word, delivery;
    EffectLevel: tier_word, tier;
    EndReason: end_reason_word, end_reason;
    MessageSource: via_word, via;
    Responder: brain_word, brain;
    StreamTurnState: turn_state_word, turn_state;
}
