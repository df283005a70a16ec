//! Users of a scenario: registered, changed between its messages, and read for the checks.
//! `docs/EVALS.md` lists the paths.

use anyhow::Context;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::file::{MemoryEntry, QuotaEntry, RoleEntry, Scenario, ScenarioFile, UserEntry};
use crate::conversation::people::naming::UserName;
use crate::conversation::transcript::{
    MediaKind, PhoneNumber, QuotaKind, QuotaUse, User, UserId, UserRights, UserRole, UserStatus,
};
use crate::store::database::db::Db;
use crate::store::library::follows::{self, FollowedTitle};
use crate::store::library::quotas::{self, QuotaOverride};
use crate::store::memory::facts::{self, FactSource};
use crate::store::people::users::{self, FirstContactRole};
use crate::store::{Conn, QueryResult};

/// Registers all users except those who are unknown.
pub(super) async fn insert_users(
    db: &Db,
    file: &ScenarioFile,
    scenario: &Scenario,
    now: Timestamp,
) -> anyhow::Result<()> {
    for (name, user) in file.users.iter().filter(|(_, user)| user.role != RoleEntry::Unknown) {
        let phone = user_phone(file, name)?;
        let called = user
            .name
            .as_ref()
            .map(|name| UserName::parse(name).with_context(|| format!("read the name {name:?}")));
        let (called, quota) = (called.transpose()?, scenario.quota.get(name).copied());
        let known = scenario.memory.iter().filter(|entry| entry.user == *name).map(MemoryEntry::to_fact);
        let known = known.collect::<anyhow::Result<Vec<_>>>()?;
        let mut rights = user_rights(file, user);
        // A user with a quota may add titles within that quota.
        rights.add |= quota.is_some();
        let introduce = move |conn: &mut Conn| {
            let id = users::ensure_user(conn, &phone, FirstContactRole::Member, now)?;
            users::set_rights(conn, id, rights, now)?;
            if let Some(called) = &called {
                users::set_name(conn, id, called, now)?;
            }
            for fact in &known {
                facts::record_fact(conn, id, fact, FactSource::Operator, now)?;
            }
            match quota {
                Some(quota) => set_quota(conn, id, quota, now),
                None => Ok(()),
            }
        };
        db.write(introduce).await?;
    }
    Ok(())
}

pub(super) fn user_phone(file: &ScenarioFile, name: &str) -> anyhow::Result<PhoneNumber> {
    let user = file.users.get(name).with_context(|| format!("find the user {name:?}"))?;
    PhoneNumber::parse(&user.phone).with_context(|| format!("read the number of {name:?}"))
}

/// Applies a change such as `people.bob.can_delete` to true.
pub(super) async fn change_user(
    db: &Db,
    file: &ScenarioFile,
    path: &str,
    value: &Value,
    now: Timestamp,
) -> anyhow::Result<()> {
    let unknown = || format!("change {path:?} to {value}: not known");
    let (name, right) = person_and_field(path).with_context(unknown)?;
    let given = value.as_bool().with_context(unknown)?;
    let user = find_user(db, file, name).await?.with_context(unknown)?;
    let mut rights = user.rights;
    match right {
        "can_add" => rights.add = given,
        "can_delete" => rights.delete = given,
        "four_k" => rights.four_k = given,
        "admin" => rights.role = if given { UserRole::Admin } else { UserRole::Member },
        _ => anyhow::bail!(unknown()),
    }
    Ok(db.write(move |conn| users::set_rights(conn, user.id, rights, now)).await?)
}

/// Returns the value at a path such as `people.bob.status`; `null` for a user who never sent a message.
pub(super) async fn read_user_value(db: &Db, file: &ScenarioFile, path: &str) -> anyhow::Result<Value> {
    let unknown = || format!("read {path:?}: not known");
    let (name, field) = person_and_field(path).with_context(unknown)?;
    let user = find_user(db, file, name).await?;
    let of = |read: fn(&User) -> Value| user.as_ref().map_or(Value::Null, read);
    Ok(match field {
        "status" => of(|user| json!(status_word(user.status))),
        "name" => of(|user| json!(user.name)),
        "admin" => of(|user| json!(user.rights.role == UserRole::Admin)),
        "can_add" => of(|user| json!(user.rights.add)),
        "can_delete" => of(|user| json!(user.rights.delete)),
        "four_k" => of(|user| json!(user.rights.four_k)),
        "known" => match user {
            Some(user) => json!(db.read(move |conn| facts::load_facts(conn, user.id)).await?.prompt_lines()),
            None => Value::Null,
        },
        _ => anyhow::bail!(unknown()),
    })
}

/// Returns the users who are notified when the title of a path is ready: `followers.radarr.movie.949` or
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
    let what = FollowedTitle {
        instance: instance.to_owned(),
        kind,
        catalog_id: id.parse().with_context(unknown)?,
        season: season.map(str::parse).transpose().with_context(unknown)?,
    };
    let following = db.read(move |conn| follows::load_followers(conn, &what)).await?;
    let mut names = Vec::new();
    for name in file.users.keys() {
        if find_user(db, file, name).await?.is_some_and(|user| following.contains(&user.id)) {
            names.push(name);
        }
    }
    Ok(json!(names))
}

/// Returns the names of the users who opted out of all messages.
pub(super) async fn opted_out(db: &Db, file: &ScenarioFile) -> anyhow::Result<Vec<String>> {
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

fn person_and_field(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("people.")?.split_once('.')
}

fn status_word(status: UserStatus) -> &'static str {
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
    }
}

/// Sets the quota of a user. The format counts additions of either kind alike.
fn set_quota(conn: &mut Conn, user: UserId, quota: QuotaEntry, now: Timestamp) -> QueryResult<()> {
    let own = QuotaOverride { movies: Some(quota.adds_7d), seasons: Some(quota.adds_7d) };
    quotas::store_quota_override(conn, user, own, now)?;
    for what in [QuotaKind::Movies, QuotaKind::Seasons] {
        quotas::count_additions_without_call(conn, user, QuotaUse { kind: what, amount: quota.used }, now)?;
    }
    Ok(())
}
