//! What people have watched on the media servers. An answer mentions only the watching of the user, or of everybody if
//! the household shares it, and never in a room.

pub mod link_account;
pub mod recently_watched;
pub mod selection;
#[cfg(test)]
mod tests;
mod title_states;
pub mod unseen;

use futures_util::future::join_all;
use serde_json::json;

pub(super) use title_states::{add_title_states, load_known};

use super::ToolContext;
use super::library::ArrInstances;
use crate::conversation::people::naming;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::text::title::quote_text;
use crate::conversation::transcript::{CallFailure, FailureCode};
use crate::conversation::viewer_accounts::{ViewerAccount, WatchSharing};
use crate::media_servers::WatchEvidence;
use crate::media_servers::playability::MediaServers;
use crate::media_servers::watched_titles::WatchedTitles;

/// People whose watching an answer may mention, with their accounts at the media servers.
#[derive(Debug, Clone, Default)]
pub struct Viewers {
    /// Accounts of the user.
    pub own: Vec<ViewerAccount>,
    /// Other people with accounts, if the household shares what it watches.
    pub others: Vec<Viewer>,
    pub sharing: WatchSharing,
    /// Accounts that belong to other people, which cannot be linked to the user.
    pub taken: Vec<ViewerAccount>,
    /// Accounts for which the user has asked the admins.
    pub requested: Vec<ViewerAccount>,
    /// True if an operator or a program asks in the name of the user.
    is_hidden: bool,
}

/// Person with accounts at the media servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewer {
    pub name: String,
    pub accounts: Vec<ViewerAccount>,
}

/// Person whose watching an answer mentions; `None` is the user.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChosenViewer<'a> {
    pub(super) name: Option<&'a str>,
    accounts: &'a [ViewerAccount],
}

/// What one person has watched.
#[derive(Debug)]
pub struct ViewerTitles {
    /// Name of the person; `None` is the user.
    pub name: Option<String>,
    pub watched: WatchedTitles,
}

impl Viewers {
    /// Creates the viewers of a user with these accounts.
    pub fn new(own: Vec<ViewerAccount>, sharing: WatchSharing) -> Self {
        Self { own, sharing, ..Self::default() }
    }

    /// Returns the same accounts, of which no answer mentions anything.
    #[must_use]
    pub fn hidden(self) -> Self {
        Self { is_hidden: true, ..self }
    }

    /// Returns the people whose watching is known and may be mentioned, the user first.
    fn known(&self) -> Vec<ChosenViewer<'_>> {
        if self.is_hidden {
            return Vec::new();
        }
        let own = (!self.own.is_empty()).then_some(ChosenViewer { name: None, accounts: &self.own });
        let others = self
            .others
            .iter()
            .map(|other| ChosenViewer { name: Some(&other.name), accounts: &other.accounts });
        own.into_iter().chain(others).collect()
    }

    /// Returns the people that `by` names: the user if it is absent, `anyone`, or a name.
    fn choose(&self, by: Option<&str>, library: &ArrInstances) -> Result<Vec<ChosenViewer<'_>>, CallFailure> {
        if self.is_hidden {
            return Err(not_shared());
        }
        let by = by.map(str::trim).filter(|by| !by.is_empty()).unwrap_or("me").to_lowercase();
        match by.as_str() {
            "me" | "i" | "myself" | "you" | "user" if self.own.is_empty() => {
                Err(not_linked(&library.media_servers))
            }
            "me" | "i" | "myself" | "you" | "user" => {
                Ok(vec![ChosenViewer { name: None, accounts: &self.own }])
            }
            _ if self.sharing == WatchSharing::Off => Err(not_shared()),
            "anyone" | "anybody" | "everyone" | "everybody" | "we" | "us" | "household" => {
                let known = self.known();
                if known.is_empty() { Err(not_linked(&library.media_servers)) } else { Ok(known) }
            }
            name => {
                let known = self.known();
                let is_named = |viewer: &ChosenViewer<'_>| {
                    viewer.name.is_some_and(|known| naming::is_same_name(known, name))
                };
                let found: Vec<ChosenViewer<'_>> = known.into_iter().filter(is_named).collect();
                if found.is_empty() { Err(unknown_viewer(name)) } else { Ok(found) }
            }
        }
    }
}

/// Fails in a room, where everybody reads the answer, and for an agent.
fn check_private(context: &ToolContext) -> Result<(), CallFailure> {
    match context.audience {
        Audience::Author => Ok(()),
        Audience::Room => Err(CallFailure::new(
            FailureCode::NotPermitted,
            json!({ "hint": "everybody here would read what this person has watched: ask them to text in private" }),
            Some(
                "Please ask me that in private. Here everybody would read what you have watched.".to_owned(),
            ),
        )),
        Audience::Agent => {
            let hint = "what people have watched is not shown to agents: the person can text this";
            Err(CallFailure::new(FailureCode::NotPermitted, json!({ "hint": hint }), None))
        }
    }
}

/// Loads what each of these people has watched.
async fn load_titles(
    viewers: &[ChosenViewer<'_>],
    library: &ArrInstances,
    context: &ToolContext,
) -> Vec<ViewerTitles> {
    let load = async |ChosenViewer { name, accounts }: ChosenViewer<'_>| {
        let watched = library.media_servers.load_watched(accounts, context.now).await;
        ViewerTitles { name: name.map(str::to_owned), watched }
    };
    join_all(viewers.iter().copied().map(load)).await
}

/// Loads what the user has watched. Returns `None` if the user has no account, or if the answer must not mention it.
pub(super) async fn load_own_watched(library: &ArrInstances, context: &ToolContext) -> Option<WatchedTitles> {
    let own = context.viewers.choose(None, library).unwrap_or_default();
    let viewer = own.first().filter(|_| context.audience == Audience::Author)?;
    Some(library.media_servers.load_watched(viewer.accounts, context.now).await)
}

/// Returns the reason for incomplete watch states, as the model reads it.
pub(super) fn describe_gap(evidence: WatchEvidence) -> Option<&'static str> {
    match evidence {
        WatchEvidence::Complete => None,
        WatchEvidence::NotRecorded => Some("not all plays are recorded"),
        WatchEvidence::NotAnswered => Some("a media server did not respond"),
    }
}

fn not_linked(servers: &MediaServers) -> CallFailure {
    let label = servers.labels().first().copied().unwrap_or("the media server");
    CallFailure::new(
        FailureCode::NotKnown,
        json!({ "hint": format!("it is not known who the user is on {label}: ask for their name there, and call link_account") }),
        Some(format!(
            "I don't know who you are on {label}. Text LINK {} and your name there.",
            label.to_uppercase()
        )),
    )
}

fn not_shared() -> CallFailure {
    CallFailure::new(
        FailureCode::NotPermitted,
        json!({ "hint": "the household keeps what each person watches private: say so" }),
        Some("I keep what people watch to myself. I can only tell you about your own.".to_owned()),
    )
}

fn unknown_viewer(name: &str) -> CallFailure {
    CallFailure::new(
        FailureCode::NotKnown,
        json!({ "hint": "nobody of this name is linked to a media server: say so" }),
        Some(format!("I don't know what {} has watched.", quote_text(name))),
    )
}
