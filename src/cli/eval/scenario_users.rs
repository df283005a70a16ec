//! Users of a scenario: registration, changes between messages by paths, and values for the checks. `docs/internals/EVALS.md`
//! lists the paths.

use anyhow::Context;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::scenario_file::{MemoryEntry, QuotaEntry, RoleEntry, Scenario, ScenarioFile, UserEntry};
use crate::conversation::people::naming::UserName;
use crate::conversation::rating_caps::{MinimumAge, RatingCaps};
use crate::conversation::transcript::{
    MediaKind, PhoneNumber, QuotaKind, QuotaUse, User, UserId, UserRights, UserRole, UserStatus,
};
use crate::store::database::db::Db;
use crate::store::library::follows::{self, FollowedTitle};
use crate::store::library::quotas::{self, QuotaOverride};
use crate::store::memory::facts::{self, FactSource};
use crate::store::people::age_limits;
use crate::store::people::users::{self, FirstContactRole};
use crate::store::people::viewer_accounts;
use crate::store::{Conn, QueryResult};

/// Registers all users except those with an unknown number.
pub(super) async fn insert_users(
    db: &Db,
    file: &ScenarioFile,
    scenario: &Scenario,
    now: Timestamp,
) -> anyhow::Result<()> {
    for (name, user) in file.users.iter().filter(|(_, user)| user.role != RoleEntry::Unknown) {
        let phone = user_phone(file, name)?;
        let display_name = user
            .name
            .as_ref()
            .map(|name| UserName::parse(name).with_context(|| format!("parse the name {name:?}")));
        let (display_name, quota) = (display_name.transpose()?, scenario.quota.get(name).copied());
        let user_facts = scenario.memory.iter().filter(|entry| entry.user == *name).map(MemoryEntry::to_fact);
        let user_facts = user_facts.collect::<anyhow::Result<Vec<_>>>()?;
        let mut rights = user_rights(file, user);
        // A user with a quota may add titles within that quota.
        rights.add |= quota.is_some();
        let insert = move |conn: &mut Conn| {
            let id = users::ensure_user(conn, &phone, FirstContactRole::Member, now)?;
            users::set_rights(conn, id, rights, now)?;
            age_limits::set_rating_caps(conn, id, rights.caps, now)?;
            if let Some(display_name) = &display_name {
                users::set_name(conn, id, display_name, now)?;
            }
            for fact in &user_facts {
                facts::record_fact(conn, id, fact, FactSource::Operator, now)?;
            }
            match quota {
                Some(quota) => set_quota(conn, id, quota, now),
                None => Ok(()),
            }
        };
        db.write(insert).await?;
    }
    Ok(())
}

pub(super) fn user_phone(file: &ScenarioFile, name: &str) -> anyhow::Result<PhoneNumber> {
    let user = file.users.get(name).with_context(|| format!("find the user {name:?}"))?;
    PhoneNumber::parse(&user.phone).with_context(|| format!("parse the number of {name:?}"))
}

/// Sets the value at a path such as `people.bob.can_delete`.
pub(super) async fn change_user(
    db: &Db,
    file: &ScenarioFile,
    path: &str,
    value: &Value,
    now: Timestamp,
) -> anyhow::Result<()> {
    let unknown = || format!("change {path:?} to {value}: not known");
    let (name, right) = parse_user_path(path).with_context(unknown)?;
    let enabled = value.as_bool().with_context(unknown)?;
    let user = find_user(db, file, name).await?.with_context(unknown)?;
    let mut rights = user.rights;
    match right {
        "can_add" => rights.add = enabled,
        "can_delete" => rights.delete = enabled,
        "four_k" => rights.four_k = enabled,
        "admin" => rights.role = if enabled { UserRole::Admin } else { UserRole::Member },
        _ => anyhow::bail!(unknown()),
    }
    Ok(db.write(move |conn| users::set_rights(conn, user.id, rights, now)).await?)
}

/// Returns the value at a path such as `people.bob.status`. The value is `null` for a user who does not exist yet.
pub(super) async fn read_user_value(db: &Db, file: &ScenarioFile, path: &str) -> anyhow::Result<Value> {
    let unknown = || format!("read {path:?}: not known");
    let (name, field) = parse_user_path(path).with_context(unknown)?;
    let user = find_user(db, file, name).await?;
    let value = |read: fn(&User) -> Value| user.as_ref().map_or(Value::Null, read);
    Ok(match field {
        "status" => value(|user| json!(status_text(user.status))),
        "name" => value(|user| json!(user.name)),
        "admin" => value(|user| json!(user.rights.role == UserRole::Admin)),
        "can_add" => value(|user| json!(user.rights.add)),
        "can_delete" => value(|user| json!(user.rights.delete)),
        "four_k" => value(|user| json!(user.rights.four_k)),
        "known" => match user {
            Some(user) => json!(db.read(move |conn| facts::load_facts(conn, user.id)).await?.prompt_lines()),
            None => Value::Null,
        },
        "accounts" => match user {
            Some(user) => {
                let accounts = db.read(move |conn| viewer_accounts::load_accounts(conn, user.id)).await?;
                accounts.into_iter().map(|account| account.name).collect()
            }
            None => Value::Null,
        },
        _ => anyhow::bail!(unknown()),
    })
}

/// Returns the names of the users who follow the title of a path such as `followers.radarr.movie.949` or
/// `followers.sonarr.series.371980.2`.
pub(super) async fn read_followers(db: &Db, file: &ScenarioFile, path: &str) -> anyhow::Result<Value> {
    let unknown = || format!("read {path:?}: not known");
    let parts: Vec<&str> = path.split('.').collect();
    let (instance, kind, id, season) = match parts[..] {
        ["followers", instance, "movie", id] => (instance, MediaKind::Movie, id, None),
        ["followers", instance, "series", id] => (instance, MediaKind::Series, id, None),
        ["followers", instance, "series", id, season] => (instance, MediaKind::Series, id, Some(season)),
        _ => anyhow::bail!(unknown()),
    };
    let title = FollowedTitle {
        instance: instance.to_owned(),
        kind,
        catalog_id: id.parse().with_context(unknown)?,
        season: season.map(str::parse).transpose().with_context(unknown)?,
    };
    let followers = db.read(move |conn| follows::load_followers(conn, &title)).await?;
    let mut names = Vec::new();
    for name in file.users.keys() {
        if find_user(db, file, name).await?.is_some_and(|user| followers.contains(&user.id)) {
            names.push(name);
        }
    }
    Ok(json!(names))
}

/// Returns the names of the users who opted out of all messages.
pub(super) async fn load_opted_out(db: &Db, file: &ScenarioFile) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for name in file.users.keys() {
        if find_user(db, file, name).await?.is_some_and(|user| user.opted_out) {
            names.push(name.clone());
        }
    }
    Ok(names)
}

async fn find_user(db: &Db, file: &ScenarioFile, name: &str) -> anyhow::Result<Option<User>> {
    let phone = user_phone(file, name)?;
    Ok(db.read(move |conn| users::find_user_by_phone(conn, &phone)).await?)
}

fn parse_user_path(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("people.")?.split_once('.')
}

fn status_text(status: UserStatus) -> &'static str {
    match status {
        UserStatus::Pending => "pending",
        UserStatus::Active => "active",
        UserStatus::Blocked => "blocked",
    }
}

fn user_rights(file: &ScenarioFile, user: &UserEntry) -> UserRights {
    UserRights {
        role: if user.role == RoleEntry::Admin { UserRole::Admin } else { UserRole::Member },
        add: user.role != RoleEntry::Restricted,
        delete: user.can_delete,
        four_k: user.four_k.unwrap_or(!file.has_four_k()),
        caps: RatingCaps { movies: user.movie_age.map(MinimumAge), shows: user.show_age.map(MinimumAge) },
        ..UserRights::MEMBER
    }
}

/// Sets the quota of a user, for movies and seasons alike, and the limit of space.
fn set_quota(conn: &mut Conn, user: UserId, quota: QuotaEntry, now: Timestamp) -> QueryResult<()> {
    let quota_override =
        QuotaOverride { movies: Some(quota.adds_7d), seasons: Some(quota.adds_7d), space_gb: quota.space_gb };
    quotas::store_quota_override(conn, user, quota_override, now)?;
    for kind in [QuotaKind::Movies, QuotaKind::Seasons] {
        quotas::count_additions_without_call(conn, user, QuotaUse { kind, amount: quota.used }, now)?;
    }
    Ok(())
}
