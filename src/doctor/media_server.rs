//! Check of a media server: access with its key, people, folders and titles.

use std::sync::Arc;

use super::connection_test::ConnectionKind;
use super::{Finding, FindingGrade};
use crate::media_servers::{MediaServer, MediaServerError};

/// Returns the connection of a media server.
pub(super) fn kind(server: &Arc<dyn MediaServer>) -> ConnectionKind {
    ConnectionKind::MediaServer(server.name(), server.label())
}

pub(super) async fn check_server(server: &dyn MediaServer) -> Vec<Finding> {
    let status = check_status(server).await;
    if status.grade == FindingGrade::Failure {
        // Any further request would fail in the same way.
        return vec![status];
    }
    let (people, folders, titles) =
        tokio::join!(check_people(server), check_folders(server), check_titles(server));
    vec![status, people, folders, titles]
}

/// Checks that the server responds and accepts the key, with one request.
pub(super) async fn check_status(server: &dyn MediaServer) -> Finding {
    let label = server.label();
    match server.fetch_status().await {
        Ok(status) => Finding::ok(format!("{label}: reachable, version {}", status.version)),
        Err(error) => unusable_server(label, &error),
    }
}

async fn check_people(server: &dyn MediaServer) -> Finding {
    let label = server.label();
    match server.fetch_users().await {
        Ok(users) if users.is_empty() => Finding::warning(
            format!("{label}: nobody has an account"),
            "create the accounts of the household",
        ),
        Ok(users) => Finding::ok(format!("{label}: accounts: {}", users.len())),
        Err(error) => unusable_server(label, &error),
    }
}

async fn check_folders(server: &dyn MediaServer) -> Finding {
    let label = server.label();
    match server.fetch_folders().await {
        Ok(folders) if folders.is_empty() => Finding::failure(
            format!("{label}: no library has a folder"),
            "add the folders of Sonarr and Radarr to its libraries",
        ),
        Ok(folders) => {
            let paths: Vec<String> =
                folders.into_iter().map(|folder| format!("{} in {}", folder.library, folder.path)).collect();
            Finding::ok(format!("{label}: libraries: {}", paths.join(", ")))
        }
        Err(error) => unusable_server(label, &error),
    }
}

async fn check_titles(server: &dyn MediaServer) -> Finding {
    let label = server.label();
    match server.fetch_titles(0, None).await {
        Ok(page) => match page.titles.last() {
            Some(example) => Finding::ok(format!(
                "{label}: movies and shows: {}, such as {} ({})",
                page.total, example.title, example.year
            )),
            None => {
                Finding::warning(format!("{label}: it has no movie and no show"), "let it scan its libraries")
            }
        },
        Err(error) => unusable_server(label, &error),
    }
}

fn unusable_server(label: &str, error: &MediaServerError) -> Finding {
    let hint = match error {
        MediaServerError::Unreachable(_) => "check its URL, and that it is running",
        MediaServerError::Unavailable(_) => "wait until it has started, then try again",
        MediaServerError::Unauthorized => "copy its API key again, or the token of the owner of Plex",
        MediaServerError::WrongUrl(_) | MediaServerError::NotFound => {
            "check its URL; a base path such as /jellyfin belongs to it"
        }
        MediaServerError::Refused(_) | MediaServerError::Unreadable(_) => "check its log, and update it",
    };
    Finding::failure(format!("{label}: failed to {error}"), hint)
}
