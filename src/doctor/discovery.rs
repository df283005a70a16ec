//! Checks of the sources of titles: Seerr and TMDB.

use super::connection_test::ConnectionKind;
use super::{Finding, FindingGrade};
use crate::discovery::DiscoverySource;
use crate::server_api::ServerError;

/// Returns the connection to a source.
pub(super) fn kind(source: &DiscoverySource) -> ConnectionKind {
    ConnectionKind::Discovery(source.name(), source.label())
}

/// Checks that a source responds and accepts the key, and that Seerr needs no restart.
pub(super) async fn check_source(source: &DiscoverySource) -> Vec<Finding> {
    let access = check_access(source).await;
    match (access.grade, source.fetch_seerr_status().await) {
        (FindingGrade::Failure, _) | (_, None) => vec![access],
        (_, Some(Ok(status))) if status.restart_required => vec![
            access,
            Finding::warning(
                "Seerr: a change of its settings waits for a restart".to_owned(),
                "restart Seerr",
            ),
        ],
        (_, Some(Ok(status))) => {
            vec![access, Finding::ok(format!("Seerr: version {}", status.version))]
        }
        (_, Some(Err(error))) => vec![access, unusable_source("Seerr", &error)],
    }
}

/// Checks that a source responds and accepts the key, with one request.
pub(super) async fn check_access(source: &DiscoverySource) -> Finding {
    let label = source.label();
    match source.check_key().await {
        Ok(()) => Finding::ok(format!("{label}: reachable, accepts the key")),
        Err(error) => unusable_source(label, &error),
    }
}

fn unusable_source(label: &str, error: &ServerError) -> Finding {
    let hint = match (error, label) {
        (ServerError::Unauthorized, "TMDB") => {
            "copy the read access token again, the long one: Settings, API at themoviedb.org"
        }
        (ServerError::Unauthorized, _) => "copy its API key again: Settings, General",
        (ServerError::Unreachable(_) | ServerError::Unavailable(_), "TMDB") => {
            "check that this machine reaches api.themoviedb.org"
        }
        (ServerError::Unreachable(_), _) => "check its URL, and that it is running",
        (ServerError::Unavailable(_), _) => "wait until it has started, then try again",
        (ServerError::WrongUrl(_) | ServerError::NotFound, _) => {
            "check its URL; a base path such as /seerr belongs to it"
        }
        (ServerError::RateLimited(_), _) => "wait; it limits the number of requests",
        (ServerError::Refused(_) | ServerError::Unreadable(_), _) => "check its log, and update it",
    };
    Finding::failure(format!("{label}: failed to {error}"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::fake::{FakeCatalog, FakeTmdb};
    use crate::http::HttpClient;

    async fn lines(fake: &FakeTmdb, token: &str) -> String {
        let http = HttpClient::in_process(fake.in_process());
        let url = "http://tmdb.invalid/3".parse().unwrap();
        let source = DiscoverySource::tmdb(http, url, &token.to_owned().into());
        let findings = check_source(&source).await;
        let line = |finding: Finding| match finding.hint {
            Some(hint) => format!("{} ({hint})", finding.summary),
            None => finding.summary,
        };
        findings.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[tokio::test]
    async fn tmdb_is_checked_by_its_token() {
        let fake = FakeTmdb::new("token", FakeCatalog::default());
        assert_eq!(lines(&fake, "token").await, "TMDB: reachable, accepts the key");
        assert_eq!(
            lines(&fake, "wrong").await,
            "TMDB: failed to authenticate: the key was rejected (copy the read access token again, the long one: \
             Settings, API at themoviedb.org)"
        );
        fake.limit_requests(Some(30));
        assert_eq!(
            lines(&fake, "token").await,
            "TMDB: failed to ask so often: the server wants a pause of 30 s (wait; it limits the number of requests)"
        );
    }
}
