//! Checks of the accounts to which people are linked, at media servers and in Seerr.

use std::path::Path;

use super::Finding;
use crate::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};
use crate::media_servers::playability::MediaServers;
use crate::media_servers::watched_titles::FoundUsers;
use crate::seerr::Seerr;
use crate::store::database::database_inspection::{PersonWithAccounts, load_people_with_accounts};
use crate::tools::viewing::link_account::fetch_seerr_users;

/// Hint for links that do not work, on the page that shows all of them.
const LINK_AGAIN: &str = "open Users, Accounts at media servers in the console";
/// Text in place of an unknown name.
const NAMELESS: &str = "a user without a name";

/// Checks that the accounts of people exist, and that everybody can request titles if that is done in Seerr. A server
/// that does not respond has a finding of its own.
pub(super) async fn check_links(
    database: &Path,
    servers: &MediaServers,
    requests: Option<&Seerr>,
) -> Vec<Finding> {
    // Without a usable database there are no links, and another check reports it. A connection would create the file.
    let path = database.to_str().filter(|_| database.exists());
    let Some(people) = path.and_then(|path| load_people_with_accounts(path).ok()) else { return Vec::new() };
    let (viewers, requesters) = tokio::join!(servers.fetch_users(), async {
        match requests {
            Some(seerr) => fetch_seerr_users(seerr).await,
            None => FoundUsers::default(),
        }
    });
    let is_gone = |account: &&ViewerAccount| match account.server {
        MediaServerKind::Seerr => requesters.lacks(account),
        MediaServerKind::Jellyfin | MediaServerKind::Plex => viewers.lacks(account),
    };
    let mut findings = Vec::new();
    for person in &people {
        let gone = person.accounts.iter().filter(is_gone);
        findings.extend(gone.map(|account| {
            let (label, name) = (account.server.label(), display_name(person));
            Finding::warning(format!("{label}: the account linked to {name} does not exist"), LINK_AGAIN)
        }));
    }
    if requesters.answered.contains(&MediaServerKind::Seerr) {
        findings.extend(unlinked_finding(&people));
    }
    let linked = people.iter().filter(|person| !person.accounts.is_empty()).count();
    if findings.is_empty() && linked > 0 {
        findings.push(Finding::ok(format!("accounts: linked people: {linked}")));
    }
    findings
}

/// Reports the people who cannot request titles, because they are not linked to a user of the Seerr.
fn unlinked_finding(people: &[PersonWithAccounts]) -> Option<Finding> {
    let is_linked = |person: &&PersonWithAccounts| {
        person.accounts.iter().any(|account| account.server == MediaServerKind::Seerr)
    };
    let names: Vec<&str> =
        people.iter().filter(|person| person.may_add && !is_linked(person)).map(display_name).collect();
    (!names.is_empty()).then(|| {
        let summary =
            format!("Seerr: people who are not linked, and cannot request titles: {}", names.join(", "));
        Finding::warning(summary, LINK_AGAIN)
    })
}

fn display_name(person: &PersonWithAccounts) -> &str {
    person.name.as_deref().unwrap_or(NAMELESS)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::Clock;
    use crate::conversation::people::naming::UserName;
    use crate::conversation::transcript::PhoneNumber;
    use crate::http::HttpClient;
    use crate::media_servers::fake::FakeJellyfin;
    use crate::media_servers::jellyfin::Jellyfin;
    use crate::seerr::fake::{FakeSeerr, Permission};
    use crate::store::audit::Actor;
    use crate::store::database::db::Db;
    use crate::store::people::users::FirstContactRole;
    use crate::store::people::{users, viewer_accounts};

    /// Household in which Ann has accounts at Jellyfin and in Seerr, and Bob has none.
    struct Household {
        folder: tempfile::TempDir,
        jellyfin: FakeJellyfin,
        seerr: FakeSeerr,
        /// Ids of Ann at Jellyfin and in Seerr.
        viewer: u64,
        ann: i64,
    }

    impl Household {
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let jellyfin = FakeJellyfin::new("key", Clock::System);
            let seerr = FakeSeerr::new("key", Clock::System);
            let viewer = jellyfin.household.add_user("ann");
            let ann = seerr.add_user("ann", Permission::REQUEST);
            let account = |server, id: String| ViewerAccount { server, id, name: "ann".to_owned() };
            let accounts = [
                account(MediaServerKind::Jellyfin, format!("{viewer:032x}")),
                account(MediaServerKind::Seerr, ann.to_string()),
            ];
            let household = Self { folder, jellyfin, seerr, viewer, ann };
            let (db, now) = (Db::open(&household.database()).unwrap(), Clock::System.now());
            let fill = move |conn: &mut _| {
                for (phone, name) in [("+15550100002", "Ann"), ("+15550100003", "Bob")] {
                    let phone = PhoneNumber::parse(phone).unwrap();
                    let id = users::ensure_user(conn, phone, FirstContactRole::Admin, now)?;
                    users::set_name(conn, id, &UserName::parse(name).unwrap(), now)?;
                    for account in accounts.iter().filter(|_| name == "Ann") {
                        viewer_accounts::link_account(conn, id, account, Actor::Shell, now)?;
                    }
                }
                Ok(())
            };
            db.write(fill).await.unwrap();
            db.close().await;
            household
        }

        fn database(&self) -> String {
            self.folder.path().join("test.db").to_str().unwrap().to_owned()
        }

        async fn lines(&self) -> Vec<String> {
            let url = || "http://home.invalid".parse().unwrap();
            let http = HttpClient::in_process(self.jellyfin.in_process());
            let jellyfin = Jellyfin::new(http, url(), &self.jellyfin.key());
            let seerr = Seerr::new(HttpClient::in_process(self.seerr.in_process()), url(), &self.seerr.key());
            let servers = MediaServers::new(vec![Arc::new(jellyfin)]);
            let database = self.database();
            let findings = check_links(Path::new(&database), &servers, Some(&seerr)).await;
            findings.into_iter().map(|finding| finding.summary).collect()
        }
    }

    const BOB_IS_NOT_LINKED: &str = "Seerr: people who are not linked, and cannot request titles: Bob";

    #[tokio::test]
    async fn people_without_a_seerr_user_are_reported() {
        let household = Household::new().await;
        assert_eq!(household.lines().await, [BOB_IS_NOT_LINKED]);
    }

    #[tokio::test]
    async fn links_to_deleted_accounts_are_reported() {
        let household = Household::new().await;
        household.jellyfin.household.remove_user(household.viewer);
        household.seerr.remove_user(household.ann);
        assert_eq!(
            household.lines().await,
            [
                "Jellyfin: the account linked to Ann does not exist",
                "Seerr: the account linked to Ann does not exist",
                BOB_IS_NOT_LINKED
            ]
        );
    }

    #[tokio::test]
    async fn accounts_of_a_removed_server_are_not_reported() {
        let database = Household::new().await;
        let findings = check_links(Path::new(&database.database()), &MediaServers::default(), None).await;
        assert_eq!(findings, [Finding::ok("accounts: linked people: 1")]);
    }

    #[tokio::test]
    async fn missing_database_is_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("test.db");
        let findings = check_links(&missing, &MediaServers::default(), None).await;
        assert_eq!((findings, missing.exists()), (Vec::new(), false));
    }

    #[tokio::test]
    async fn accounts_are_not_reported_while_their_server_is_down() {
        let household = Household::new().await;
        household.jellyfin.household.set_status(Some(503));
        household.seerr.set_status(Some(503));
        assert_eq!(household.lines().await, ["accounts: linked people: 1"]);
    }
}
