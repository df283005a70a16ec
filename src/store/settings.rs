//! Stored settings. Secrets are not in the database: the row of a secret names its version in the secrets file.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::Conn;
use super::audit::{self, Actor, AuditSubject, NewAuditEntry};
use super::codec::ms;
use super::database::db::OpenError;
use super::database::shell_access;
use super::schema::settings;

/// Stored setting. A row without a value and a secret is a removed setting.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = settings)]
pub struct SettingRow {
    pub name: String,
    pub value: Option<String>,
    pub secret_version: Option<i64>,
    /// Number of the change. It rises over all rows.
    pub version: i64,
    pub changed_at: Timestamp,
    /// Actor of the change, such as `shell`.
    pub changed_by: String,
}

impl SettingRow {
    pub fn is_removed(&self) -> bool {
        self.value.is_none() && self.secret_version.is_none()
    }
}

/// New content of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingContent {
    Text(String),
    /// Version of the secret in the secrets file.
    Secret(i64),
    Removed,
}

/// Loads all rows, also those of removed settings.
pub fn load_settings(conn: &mut Conn) -> QueryResult<Vec<SettingRow>> {
    settings::table.order(settings::name).select(SettingRow::as_select()).load(conn)
}

/// Loads the number of the newest change; 0 before the first one.
pub fn load_settings_version(conn: &mut Conn) -> QueryResult<i64> {
    let newest: Option<i64> = settings::table.select(diesel::dsl::max(settings::version)).first(conn)?;
    Ok(newest.unwrap_or(0))
}

/// Changes several settings together, and records their names in the audit log. Returns the number of the change.
pub fn store_settings(
    conn: &mut Conn,
    contents: &[(String, SettingContent)],
    actor: Actor,
    now: Timestamp,
) -> QueryResult<i64> {
    let version = load_settings_version(conn)? + 1;
    for (name, content) in contents {
        let (value, secret_version) = match content {
            SettingContent::Text(text) => (Some(text), None),
            SettingContent::Secret(version) => (None, Some(*version)),
            SettingContent::Removed => (None, None),
        };
        let row = (
            settings::value.eq(value),
            settings::secret_version.eq(secret_version),
            settings::version.eq(version),
            settings::changed_at.eq(ms(now)),
            settings::changed_by.eq(actor.to_string()),
        );
        diesel::insert_into(settings::table)
            .values((settings::name.eq(name), row.clone()))
            .on_conflict(settings::name)
            .do_update()
            .set(row)
            .execute(conn)?;
    }
    let (subject, detail) = (AuditSubject::Settings, audit_detail(contents));
    audit::record_change(conn, &NewAuditEntry { actor, kind: "configure", subject, detail }, now)?;
    Ok(version)
}

/// Lists the names of the settings, without their values.
fn audit_detail(contents: &[(String, SettingContent)]) -> Value {
    let (removed, set): (Vec<_>, Vec<_>) =
        contents.iter().partition(|(_, content)| *content == SettingContent::Removed);
    let lists = [("set", set), ("unset", removed)].into_iter().filter(|(_, list)| !list.is_empty());
    let names =
        |list: Vec<&(String, SettingContent)>| list.into_iter().map(|(name, _)| name.as_str()).collect();
    Value::Object(lists.map(|(key, list)| (key.to_owned(), names(list))).collect::<Map<_, _>>())
}

/// Loads the rows of a database file that a service may be using. A file that does not exist or was written by an earlier
/// version has no rows.
pub fn load_settings_of_file(path: &str) -> Result<Vec<SettingRow>, OpenError> {
    let rows = shell_access::inspect(path, |conn| match has_settings_table(conn)? {
        true => load_settings(conn),
        false => Ok(Vec::new()),
    })?;
    Ok(rows.unwrap_or_default())
}

fn has_settings_table(conn: &mut Conn) -> QueryResult<bool> {
    let exists = "EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'settings')";
    diesel::select(diesel::dsl::sql::<diesel::sql_types::Bool>(exists)).get_result(conn)
}

#[cfg(test)]
mod tests {
    use super::super::scratch;
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn version_rises_with_each_change_even_after_a_removal() {
        let mut conn = scratch();
        let mut store = |name: &str, content| {
            store_settings(&mut conn, &[(name.to_owned(), content)], Actor::Shell, NOW).unwrap()
        };
        let versions = [
            store("LLM_MODEL", SettingContent::Text("a".to_owned())),
            store("LLM_API_KEY", SettingContent::Secret(7)),
            store("LLM_API_KEY", SettingContent::Removed),
            store("LLM_MODEL", SettingContent::Text("b".to_owned())),
        ];
        assert_eq!(versions, [1, 2, 3, 4]);
        let row = |name: &str, value: Option<&str>, version| SettingRow {
            name: name.to_owned(),
            value: value.map(str::to_owned),
            secret_version: None,
            version,
            changed_at: NOW,
            changed_by: "shell".to_owned(),
        };
        let rows = load_settings(&mut conn).unwrap();
        assert_eq!(rows, [row("LLM_API_KEY", None, 3), row("LLM_MODEL", Some("b"), 4)]);
    }

    #[test]
    fn file_without_settings_has_no_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let path = path.to_str().unwrap();
        assert_eq!(load_settings_of_file(path).unwrap(), []);
        std::fs::write(path, "").unwrap();
        assert_eq!(load_settings_of_file(path).unwrap(), []);
        std::fs::write(path, "not a database").unwrap();
        assert!(load_settings_of_file(path).is_err());
    }
}
