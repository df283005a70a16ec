//! User route that changes the name, the role, the permissions and the limits of a user.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Deserializer};
use serde_json::Number;
use utoipa::ToSchema;

use super::database_unavailable;
use super::extract::{JsonBody, PathId};
use super::users::{UserJson, last_admin, show_user, user_not_found};
use crate::conversation::digest::digest_command;
use crate::conversation::digest::schedule::DigestSchedule;
use crate::conversation::people::naming::UserName;
use crate::conversation::rating_caps::MinimumAge;
use crate::conversation::transcript::{UserId, UserRole};
use crate::engine::operator::decisions::UserChangeOutcome;
use crate::store::people::user_admin::{UserChanges, UserLimit};
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;

/// Largest limit of added movies or seasons, or of gigabytes.
const MAX_LIMIT: u32 = 1_000_000;

/// Fields of a user to change. A field that is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "may_delete": true, "movie_limit": 5 }))]
pub(super) struct UserPatch {
    /// At most 30 letters, digits, spaces, hyphens and apostrophes.
    #[schema(pattern = r"^[A-Za-z0-9][A-Za-z0-9 '-]{0,29}$")]
    name: Option<String>,
    role: Option<RolePatch>,
    may_add: Option<bool>,
    may_delete: Option<bool>,
    may_4k: Option<bool>,
    /// Number of movies that the user may add within the period of the household. Null: the household's limit.
    #[serde(default, deserialize_with = "deserialize_given")]
    #[schema(value_type = Option<u32>, maximum = 1000000)]
    movie_limit: Option<Option<Number>>,
    /// Number of seasons that the user may add within the period of the household. Null: the household's limit.
    #[serde(default, deserialize_with = "deserialize_given")]
    #[schema(value_type = Option<u32>, maximum = 1000000)]
    season_limit: Option<Option<Number>>,
    /// Gigabytes that the titles which the user asked for may hold. Null: the household's limit.
    #[serde(default, deserialize_with = "deserialize_given")]
    #[schema(value_type = Option<u32>, maximum = 1000000)]
    space_limit_gb: Option<Option<Number>>,
    /// Highest age rating of movies, in years. Titles over it are hidden from the user. Null: no cap.
    #[serde(default, deserialize_with = "deserialize_given")]
    #[schema(value_type = Option<u8>, maximum = 18)]
    movie_age: Option<Option<Number>>,
    /// Highest age rating of shows, in years. Titles over it are hidden from the user. Null: no cap.
    #[serde(default, deserialize_with = "deserialize_given")]
    #[schema(value_type = Option<u8>, maximum = 18)]
    show_age: Option<Option<Number>>,
    /// Whether the user decides about titles over the age ratings of others.
    parent: Option<bool>,
    /// Day of the week and full hour of the weekly digest, in the time zone of the household. Null: no digest.
    #[serde(default, deserialize_with = "deserialize_given_text")]
    #[schema(value_type = Option<String>, example = "friday 18")]
    digest: Option<Option<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Role)]
enum RolePatch {
    Admin,
    Member,
}

/// Deserializes a field that may be null, and is not the same as one that is left out.
fn deserialize_given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Number>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Like [`deserialize_given`], for a text.
fn deserialize_given_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl UserPatch {
    fn into_changes(self) -> Result<UserChanges, ProblemDetails> {
        let name = self.name.as_deref().map(UserName::parse).transpose();
        Ok(UserChanges {
            name: name.map_err(|error| unprocessable(format!("name: {error}")))?,
            role: self.role.map(|role| match role {
                RolePatch::Admin => UserRole::Admin,
                RolePatch::Member => UserRole::Member,
            }),
            add: self.may_add,
            delete: self.may_delete,
            four_k: self.may_4k,
            movies: self.movie_limit.map(|limit| parse_limit("movie_limit", limit)).transpose()?,
            seasons: self.season_limit.map(|limit| parse_limit("season_limit", limit)).transpose()?,
            space: self.space_limit_gb.map(|limit| parse_limit("space_limit_gb", limit)).transpose()?,
            movie_cap: self.movie_age.map(|age| parse_cap("movie_age", age)).transpose()?,
            show_cap: self.show_age.map(|age| parse_cap("show_age", age)).transpose()?,
            parent: self.parent,
            digest: self.digest.map(parse_digest).transpose()?,
        })
    }
}

fn unprocessable(detail: String) -> ProblemDetails {
    ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// Parses a limit. In JSON, 7.0 is the same number as 7.
fn parse_limit(field: &str, limit: Option<Number>) -> Result<UserLimit, ProblemDetails> {
    let Some(number) = limit else { return Ok(UserLimit::Household) };
    let whole = || number.as_f64().filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number));
    let count = number.as_u64().or_else(|| whole().map(|number| number as u64));
    let limit = count.and_then(|count| u32::try_from(count).ok()).filter(|limit| *limit <= MAX_LIMIT);
    limit
        .map(UserLimit::Own)
        .ok_or_else(|| unprocessable(format!("{field} must be an integer from 0 to {MAX_LIMIT}")))
}

/// Parses a cap on age ratings. In JSON, 12.0 is the same number as 12.
fn parse_cap(field: &str, age: Option<Number>) -> Result<Option<MinimumAge>, ProblemDetails> {
    let Some(number) = age else { return Ok(None) };
    let max = MinimumAge::MAX.0;
    let whole =
        number.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=f64::from(max)).contains(number));
    whole
        .map(|age| Some(MinimumAge(age as u8)))
        .ok_or_else(|| unprocessable(format!("{field} must be an integer from 0 to {max}")))
}

fn parse_digest(digest: Option<String>) -> Result<Option<DigestSchedule>, ProblemDetails> {
    let Some(words) = digest else { return Ok(None) };
    let schedule = digest_command::parse_schedule(&words);
    let invalid =
        || unprocessable("digest must be a day of the week and a full hour, such as friday 18".to_owned());
    schedule.map(Some).ok_or_else(invalid)
}

/// Change a user's name, role, permissions or limits
#[utoipa::path(
    patch,
    path = "/users/{id}",
    tag = "users",
    operation_id = "change_user",
    params(("id" = i64, Path, description = "A user's id")),
    request_body = UserPatch,
    responses(
        (status = 200, description = "The user as changed", body = UserJson),
        (status = 404, description = "No user has this id"),
        (status = 409, description = "The user is the last active admin"),
    )
)]
pub(super) async fn change_user(
    State(console): State<ConsoleState>,
    caller: Caller,
    PathId(id): PathId,
    JsonBody(patch): JsonBody<UserPatch>,
) -> Result<Json<UserJson>, ProblemDetails> {
    let changes = patch.into_changes()?;
    let outcome = console.engine.decisions.change_user(UserId(id), changes, caller.actor()).await;
    match outcome.map_err(database_unavailable)? {
        UserChangeOutcome::Changed | UserChangeOutcome::Unchanged => {
            console.engine.digests.wake_worker();
            show_user(&console, UserId(id)).await
        }
        UserChangeOutcome::LastAdmin => Err(last_admin()),
        UserChangeOutcome::UnknownUser => Err(user_not_found()),
    }
}
