//! The people of a scenario: made known, changed between its texts, and read to be judged.
//! `docs/EVALS.md` lists the paths.

use anyhow::Context;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::file::{File, MemoryEntry, QuotaEntry, RoleEntry, Scenario, UserEntry};
use crate::conversation::naming::Name;
use crate::conversation::transcript::{
    Added, Counted, MediaKind, PhoneNumber, Rights, Role, Status, User, UserId,
};
use crate::store::db::Db;
use crate::store::follows::{self, Followed};
use crate::store::memory::facts::{self, Source};
use crate::store::quotas::{self, Own};
use crate::store::users::{self, Newcomer};
use crate::store::{Conn, QueryResult};

/// Makes everyone known but those whom nobody knows.
pub(super) async fn introduce(
    db: &Db,
    file: &File,
    scenario: &Scenario,
    now: Timestamp,
) -> anyhow::Result<()> {
    for (name, user) in file.users.iter().filter(|(_, user)| user.role != RoleEntry::Unknown) {
        let phone = phone(file, name)?;
        let called = user
            .name
            .as_ref()
            .map(|name| Name::parse(name).with_context(|| format!("read the name {name:?}")));
        let (called, quota) = (called.transpose()?, scenario.quota.get(name).copied());
        let known = scenario.memory.iter().filter(|entry| entry.user == *name).map(MemoryEntry::fact);
        let known = known.collect::<anyhow::Result<Vec<_>>>()?;
        let mut rights = rights(file, user);
        // Who has a quota may add within it.
        rights.add |= quota.is_some();
        let introduce = move |conn: &mut Conn| {
            let id = users::ensure(conn, &phone, Newcomer::Member, now)?;
            users::set_rights(conn, id, rights, now)?;
            if let Some(called) = &called {
                users::set_name(conn, id, called, now)?;
            }
            for fact in &known {
                facts::note(conn, id, fact, Source::Operator, now)?;
            }
            match quota {
                Some(quota) => limit(conn, id, quota, now),
                None => Ok(()),
            }
        };
        db.write(introduce).await?;
    }
    Ok(())
}

pub(super) fn phone(file: &File, name: &str) -> anyhow::Result<PhoneNumber> {
    let user = file.users.get(name).with_context(|| format!("find the user {name:?}"))?;
    PhoneNumber::parse(&user.phone).with_context(|| format!("read the number of {name:?}"))
}

/// Carries out a change such as `people.bob.can_delete` to true.
pub(super) async fn change(
    db: &Db,
    file: &File,
    path: &str,
    value: &Value,
    now: Timestamp,
) -> anyhow::Result<()> {
    let unknown = || format!("change {path:?} to {value}: not known");
    let (name, right) = person_and_field(path).with_context(unknown)?;
    let given = value.as_bool().with_context(unknown)?;
    let user = find(db, file, name).await?.with_context(unknown)?;
    let mut rights = user.rights;
    match right {
        "can_add" => rights.add = given,
        "can_delete" => rights.delete = given,
        "four_k" => rights.four_k = given,
        "admin" => rights.role = if given { Role::Admin } else { Role::Member },
        _ => anyhow::bail!(unknown()),
    }
    Ok(db.write(move |conn| users::set_rights(conn, user.id, rights, now)).await?)
}

/// What stands at a path such as `people.bob.status`; `null` of somebody who never was heard of.
pub(super) async fn read(db: &Db, file: &File, path: &str) -> anyhow::Result<Value> {
    let unknown = || format!("read {path:?}: not known");
    let (name, field) = person_and_field(path).with_context(unknown)?;
    let user = find(db, file, name).await?;
    let of = |read: fn(&User) -> Value| user.as_ref().map_or(Value::Null, read);
    Ok(match field {
        "status" => of(|user| json!(status(user.status))),
        "name" => of(|user| json!(user.name)),
        "admin" => of(|user| json!(user.rights.role == Role::Admin)),
        "can_add" => of(|user| json!(user.rights.add)),
        "can_delete" => of(|user| json!(user.rights.delete)),
        "four_k" => of(|user| json!(user.rights.four_k)),
        "known" => match user {
            Some(user) => json!(db.read(move |conn| facts::known(conn, user.id)).await?.lines()),
            None => Value::Null,
        },
        _ => anyhow::bail!(unknown()),
    })
}

/// Who is told when the title of a path is ready: `followers.radarr.movie.949` or `followers.sonarr.series.371980.2`.
pub(super) async fn followers(db: &Db, file: &File, path: &str) -> anyhow::Result<Value> {
    let unknown = || format!("read {path:?}: not known");
    let parts: Vec<&str> = path.split('.').collect();
    let (instance, kind, id, season) = match parts[..] {
        ["followers", instance, "movie", id] => (instance, MediaKind::Movie, id, None),
        ["followers", instance, "series", id] => (instance, MediaKind::Series, id, None),
        ["followers", instance, "series", id, season] => (instance, MediaKind::Series, id, Some(season)),
        _ => anyhow::bail!(unknown()),
    };
    let what = Followed {
        instance: instance.to_owned(),
        kind,
        catalog_id: id.parse().with_context(unknown)?,
        season: season.map(str::parse).transpose().with_context(unknown)?,
    };
    let following = db.read(move |conn| follows::followers(conn, &what)).await?;
    let mut names = Vec::new();
    for name in file.users.keys() {
        if find(db, file, name).await?.is_some_and(|user| following.contains(&user.id)) {
            names.push(name);
        }
    }
    Ok(json!(names))
}

/// The names of those who are sent nothing any more.
pub(super) async fn opted_out(db: &Db, file: &File) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for name in file.users.keys() {
        if find(db, file, name).await?.is_some_and(|user| user.opted_out) {
            names.push(name.clone());
        }
    }
    Ok(names)
}

async fn find(db: &Db, file: &File, name: &str) -> anyhow::Result<Option<User>> {
    let phone = phone(file, name)?;
    Ok(db.read(move |conn| users::by_phone(conn, &phone)).await?)
}

fn person_and_field(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("people.")?.split_once('.')
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::Active => "active",
        Status::Blocked => "blocked",
    }
}

fn rights(file: &File, user: &UserEntry) -> Rights {
    Rights {
        role: if user.role == RoleEntry::Admin { Role::Admin } else { Role::Member },
        add: user.role != RoleEntry::Restricted,
        delete: user.can_delete,
        four_k: user.four_k.unwrap_or(!file.has_four_k()),
    }
}

/// The format counts additions of either kind alike.
fn limit(conn: &mut Conn, user: UserId, quota: QuotaEntry, now: Timestamp) -> QueryResult<()> {
    let own = Own { movies: Some(quota.adds_7d), seasons: Some(quota.adds_7d) };
    quotas::set_own(conn, user, own, now)?;
    for what in [Counted::Movies, Counted::Seasons] {
        quotas::count_unnamed(conn, user, Added { what, amount: quota.used }, now)?;
    }
    Ok(())
}
