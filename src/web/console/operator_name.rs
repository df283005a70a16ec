//! Name of the operator in the setup assistant: the name of the user with `ADMIN_PHONE`.

use crate::config::variables::ADMIN_PHONE;
use crate::config::{ConfigSources, Variable};
use crate::conversation::people::naming::UserName;
use crate::conversation::transcript::PhoneNumber;
use crate::store::audit::Actor;
use crate::store::database::db::DbError;
use crate::store::people::user_admin::{self, UserChanges};
use crate::store::people::users;
use crate::web::console_state::ConsoleState;

/// Field of the name.
pub(super) struct NameField {
    pub(super) value: String,
    pub(super) problem: Option<&'static str>,
}

impl NameField {
    /// Creates the field of a submitted form.
    pub(super) fn from_entered(text: &str) -> Self {
        let problem = "A name has letters, digits, spaces, hyphens and apostrophes, at most 30 characters.";
        let is_invalid = !text.trim().is_empty() && UserName::parse(text).is_err();
        Self { value: text.to_owned(), problem: is_invalid.then_some(problem) }
    }

    pub(super) async fn load(console: &ConsoleState, sources: &ConfigSources) -> Result<Self, DbError> {
        let user = match read_phone(sources, ADMIN_PHONE) {
            Some(phone) => console.db.read(move |conn| users::find_user_by_phone(conn, &phone)).await?,
            None => None,
        };
        Ok(Self { value: user.and_then(|user| user.name).unwrap_or_default(), problem: None })
    }

    /// Stores the name. The user exists once the number is in use.
    pub(super) async fn store(&self, console: &ConsoleState, sources: &ConfigSources) -> Result<(), DbError> {
        let name = UserName::parse(&self.value).ok();
        let Some((phone, name)) = read_phone(sources, ADMIN_PHONE).zip(name) else { return Ok(()) };
        let now = console.clock.now();
        let store = move |conn: &mut _| match users::find_user_by_phone(conn, &phone)? {
            Some(user) if user.name.as_deref() != Some(name.as_str()) => {
                let changes = UserChanges { name: Some(name.clone()), ..UserChanges::default() };
                user_admin::change_user(conn, user.id, &changes, Actor::Console, now).map(drop)
            }
            Some(_) | None => Ok(()),
        };
        console.db.write(store).await
    }
}

/// Returns the number in a setting.
pub(super) fn read_phone(sources: &ConfigSources, variable: Variable) -> Option<PhoneNumber> {
    PhoneNumber::parse(sources.plain_text(variable)?.trim()).ok()
}
