//! SQL types of the columns in [`super::schema`], and the Rust types that they hold. A column whose values form a
//! closed set has an enum as its SQL type, so that it can only be compared with values of this enum. A stored value
//! that cannot be read is an error that omits the value.

pub use diesel::sql_types::{BigInt, Binary, Bool, Float, Nullable, Text};

use diesel::QueryResult;
use diesel::deserialize::{self, FromSql, FromSqlRow, Queryable};
use diesel::expression::AsExpression;
use diesel::query_builder::QueryId;
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel::sql_types::{SqlOrd, SqlType, ops};
use diesel::sqlite::{Sqlite, SqliteValue};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

pub use super::agent_calls::DropReason;
use super::codec::{from_json, unreadable_column};
pub use super::confirmation::approvals::{ApprovalState, StoredApprovalKind};
pub use super::confirmation::deletion_items::DeletionItemPhase;
pub use super::console_access::KeyScope;
pub use super::conversation::conversations::EndReason;
pub use super::conversation::reactions::ReactionAuthor;
pub use super::conversation::record::steps::AttemptState;
pub use super::digests::DigestLineKind;
pub use super::library::seerr_requests::SeerrState;
pub use super::library::space_proposals::{ProposalAnswer, ProposalPhase, ProposedTitleState};
pub use super::library::title_requests::RequestState;
pub use super::memory::facts::{FactState, StoredFactSource};
use super::memory::groups::GroupId;
pub use super::memory::indexing_queue::AnnotationSource;
pub use super::memory::responses::{AnswerState, SharingState};
pub use super::queue::alerts::{AlertKind, AlertState, AlertTarget};
pub use super::queue::inbound_messages::{InboundOutcome, InboundState};
pub use super::queue::outbox::{OutboundKind, OutboxState};
pub use super::turns::turn_lifecycle::{TriageState, TurnKind};
pub use super::votes::VotePart;
pub use crate::conversation::channel::Channel;
use crate::conversation::channel_list;
use crate::conversation::deletion::deletion_messages::ItemOutcome;
pub use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::grammar::confirmation_reply::ConfirmationCode;
pub use crate::conversation::making_room::SilenceRule;
pub use crate::conversation::making_room::judgment::GoReason;
pub use crate::conversation::memory::answer_metadata::ResponseType;
pub use crate::conversation::memory::recall::RecallScope;
pub use crate::conversation::people::facts::FactKind;
pub use crate::conversation::routing::inbound_message::MessageSource;
pub use crate::conversation::routing::rooms::RoomMode;
pub use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::stream_events::EventSeq;
pub use crate::conversation::stream_events::{BlockKind, CallPhase, StreamTurnState};
use crate::conversation::transcript::{
    Address, AddressId, CallRow, ConversationId, EventId, OutboxId, TurnId, UserAddress, UserId, VoteId,
};
pub use crate::conversation::transcript::{
    EffectLevel, MediaKind, QuotaKind, Responder, UserRole, UserStatus,
};
pub use crate::conversation::viewer_accounts::MediaServerKind;

/// Time in milliseconds since the Unix epoch. It is read as [`jiff::Timestamp`] and written as [`Millis`].
#[derive(Debug, Clone, Copy, SqlType, QueryId)]
#[diesel(sqlite_type(name = "Long"))]
pub struct Timestamp;

impl SqlOrd for Timestamp {}

/// A number of milliseconds can be added to a time.
impl ops::Add for Timestamp {
    type Rhs = BigInt;
    type Output = Self;
}

impl ops::Sub for Timestamp {
    type Rhs = BigInt;
    type Output = Self;
}

impl FromSql<Timestamp, Sqlite> for jiff::Timestamp {
    fn from_sql(mut value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
        Self::from_millisecond(value.read_long()).map_err(|_| unreadable_column("time").into())
    }
}

impl Queryable<Timestamp, Sqlite> for jiff::Timestamp {
    type Row = Self;

    fn build(row: Self) -> deserialize::Result<Self> {
        Ok(row)
    }
}

impl ToSql<Timestamp, Sqlite> for jiff::Timestamp {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.as_millisecond());
        Ok(IsNull::No)
    }
}

/// Value of a time column. An optional column also accepts an `Option<jiff::Timestamp>`, but the orphan rules do not
/// allow [`jiff::Timestamp`] itself to be an expression.
#[derive(Debug, Clone, Copy, AsExpression)]
#[diesel(sql_type = Timestamp)]
pub struct Millis(jiff::Timestamp);

impl From<jiff::Timestamp> for Millis {
    fn from(at: jiff::Timestamp) -> Self {
        Self(at)
    }
}

impl ToSql<Timestamp, Sqlite> for Millis {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        self.0.to_sql(out)
    }
}

/// Non-negative integer, for `deserialize_as`.
#[derive(FromSqlRow)]
pub struct StoredCount(u32);

impl FromSql<BigInt, Sqlite> for StoredCount {
    fn from_sql(mut value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
        u32::try_from(value.read_long()).map(Self).map_err(|_| unreadable_column("number").into())
    }
}

impl From<StoredCount> for u32 {
    fn from(count: StoredCount) -> Self {
        count.0
    }
}

/// JSON as stored. It is parsed on use, so that an unreadable value affects only the code that uses it.
#[derive(Debug, Clone, PartialEq, Eq, FromSqlRow)]
pub struct StoredJson(String);

impl FromSql<Text, Sqlite> for StoredJson {
    fn from_sql(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
        FromSql::<Text, Sqlite>::from_sql(value).map(Self)
    }
}

impl StoredJson {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self, column: &str) -> QueryResult<T> {
        from_json(column, &self.0)
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
        const _: () = {
            #[derive(AsExpression, FromSqlRow)]
            #[diesel(foreign_derive, sql_type = BigInt)]
            #[expect(dead_code, reason = "the derived traits are those of the field")]
            struct IdProxy($id);
        };

        impl ToSql<BigInt, Sqlite> for $id {
            fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
                out.set_value(self.0);
                Ok(IsNull::No)
            }
        }

        impl FromSql<BigInt, Sqlite> for $id {
            fn from_sql(mut value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
                Ok(Self(value.read_long()))
            }
        }

        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }
    )+};
}

id_columns!(AddressId, CallRow, ConversationId, EventId, EventSeq, GroupId, OutboxId, TurnId, UserId, VoteId);

/// Implements `FromSql` for types whose columns hold text.
macro_rules! text_columns {
    ($($type:ty: $parse:expr;)+) => {$(
        impl FromSql<Text, Sqlite> for $type {
            fn from_sql(mut value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
                let parse: fn(&str) -> Option<Self> = $parse;
                parse(value.read_text()).ok_or_else(|| unreadable_column(stringify!($type)).into())
            }
        }

        const _: () = {
            #[derive(FromSqlRow)]
            #[diesel(foreign_derive)]
            #[expect(dead_code, reason = "the derived trait is that of the field")]
            struct TextProxy($type);
        };
    )+};
}

text_columns! {
    Address: |text| Some(Self::new(text));
    ConfirmationCode: Self::parse;
    UserAddress: Self::parse;
}

/// Enum that columns hold as text.
pub trait StoredEnum: Copy {
    fn as_text(self) -> &'static str;

    fn from_text(text: &str) -> QueryResult<Self>;
}

macro_rules! enum_texts {
    ($type:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl $crate::store::column_types::StoredEnum for $type {
            fn as_text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            fn from_text(text: &str) -> diesel::QueryResult<Self> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err($crate::store::codec::unreadable_column(stringify!($type))),
                }
            }
        }
    };
}

/// Makes an enum the SQL type of its columns.
macro_rules! enum_column {
    ($type:ident) => {
        const _: () = {
            use diesel::deserialize::{self, FromSql, FromSqlRow};
            use diesel::expression::AsExpression;
            use diesel::query_builder::QueryId;
            use diesel::serialize::{self, IsNull, Output, ToSql};
            use diesel::sql_types::{HasSqlType, SingleValue, SqlType, is_nullable};
            use diesel::sqlite::{Sqlite, SqliteType, SqliteValue};
            use $crate::store::column_types::StoredEnum;

            impl SqlType for $type {
                type IsNull = is_nullable::NotNull;
            }

            impl SingleValue for $type {}

            impl QueryId for $type {
                type QueryId = Self;
                const HAS_STATIC_QUERY_ID: bool = true;
            }

            impl HasSqlType<$type> for Sqlite {
                fn metadata((): &mut ()) -> SqliteType {
                    SqliteType::Text
                }
            }

            impl ToSql<$type, Sqlite> for $type {
                fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
                    out.set_value(StoredEnum::as_text(*self));
                    Ok(IsNull::No)
                }
            }

            impl FromSql<$type, Sqlite> for $type {
                fn from_sql(mut value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
                    Ok(<Self as StoredEnum>::from_text(value.read_text())?)
                }
            }

            #[derive(AsExpression, FromSqlRow)]
            #[diesel(foreign_derive, sql_type = $type)]
            #[expect(dead_code, reason = "the derived traits are those of the field")]
            struct EnumProxy($type);
        };
    };
}

/// Defines an enum, or extends an existing one with `impl`, and sets the texts of its variants in the database and in
/// JSON.
macro_rules! stored_enum {
    ($(#[$meta:meta])* pub enum $type:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$doc])* $variant),+ }

        $crate::store::column_types::stored_enum!(impl $type { $($variant = $text),+ });
    };
    (impl $type:ident $texts:tt) => {
        $crate::store::column_types::enum_texts!($type $texts);
        $crate::store::column_types::enum_column!($type);

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::store::column_types::StoredEnum::as_text(*self))
            }
        }
    };
}

pub(in crate::store) use {enum_column, enum_texts, stored_enum};

stored_enum!(impl SilenceRule { Stays = "stays", MayGo = "may_go" });
stored_enum!(impl GoReason { Finished = "finished", NeverWatched = "never_watched", Old = "old" });
stored_enum!(impl BlockKind { Text = "text", Thinking = "thinking", ToolCall = "tool_call" });
stored_enum!(impl CallPhase {
    Created = "created", Held = "held", Running = "running", Unknown = "unknown", Complete = "complete",
    Error = "error", Canceled = "canceled",
});

/// A channel is stored as its word in the list of channels.
impl StoredEnum for Channel {
    fn as_text(self) -> &'static str {
        self.word()
    }

    fn from_text(text: &str) -> QueryResult<Self> {
        channel_list::find_channel(text).ok_or_else(|| unreadable_column("channel"))
    }
}

enum_column!(Channel);

impl Serialize for Channel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

stored_enum!(impl EffectLevel { Read = "read", Write = "write", Destructive = "destructive" });
stored_enum!(impl FactKind {
    Quality = "quality", Alias = "alias", Dislike = "dislike", Like = "like", Folder = "folder",
    Schedule = "schedule", Other = "other",
});
stored_enum!(impl FieldAuthority {
    Certain = "certain", Ambiguous = "ambiguous", Verified = "verified", Unverified = "unverified",
});
stored_enum!(impl MediaServerKind { Jellyfin = "jellyfin", Plex = "plex", Seerr = "seerr" });
stored_enum!(impl MessageSource {
    Webhook = "webhook", Fallback = "fallback", Poll = "poll", Recovery = "recovery", Local = "local",
});
stored_enum!(impl QuotaKind { Movies = "movie", Seasons = "season" });
stored_enum!(impl RecallScope { User = "user", Group = "group", Global = "global" });
stored_enum!(impl Responder { Model = "model", Keyword = "keyword" });
stored_enum!(impl ResponseType {
    Greeting = "greeting", Explanation = "explanation", Recommendation = "recommendation", Opinion = "opinion",
    Action = "action",
});
stored_enum!(impl RoomMode { Off = "off", Mentioned = "mentioned", Ai = "ai" });
stored_enum!(impl StreamTurnState {
    Created = "CREATED", InProgress = "IN_PROGRESS", WaitingForTools = "WAITING_FOR_TOOLS", Failed = "FAILED",
    Error = "ERROR", Completed = "COMPLETED", Canceled = "CANCELED",
});
stored_enum!(impl UserRole { Admin = "admin", Member = "member" });
stored_enum!(impl UserStatus { Pending = "pending", Active = "active", Blocked = "blocked" });

enum_texts!(ItemOutcome {
    Deleted = "deleted", AlreadyGone = "already_gone", Changed = "changed", Failed = "failed",
    NotPermitted = "not_permitted", Stopped = "stopped", StillThere = "still_there", Unknown = "unknown",
    BeingWatched = "being_watched", ViewingUnknown = "viewing_unknown", Protected = "kept",
});
enum_texts!(MediaKind { Movie = "movie", Series = "series" });
enum_column!(MediaKind);

/// Status that the carrier reports.
impl StoredEnum for DeliveryStatus {
    fn as_text(self) -> &'static str {
        self.as_str()
    }

    fn from_text(text: &str) -> QueryResult<Self> {
        Self::from_carrier_status(text).ok_or_else(|| unreadable_column("delivery"))
    }
}

enum_column!(DeliveryStatus);

impl FromSql<OutboxState, Sqlite> for DeliveryStatus {
    fn from_sql(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
        let state = <OutboxState as FromSql<OutboxState, Sqlite>>::from_sql(value)?;
        Self::parse(state.as_text()).ok_or_else(|| unreadable_column("delivery").into())
    }
}

impl Serialize for DeliveryStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
