//! Tool that asks the admins to link the user's account at a media server or at a Seerr, or removes the user's links.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::conversation::people::naming;
use crate::conversation::text::title::quote_text;
use crate::conversation::transcript::{CallFailure, CallResult, EffectLevel, FailureCode, ToolAudience};
use crate::conversation::viewer_accounts::{AccountScope, MediaServerKind, ViewerAccount};
use crate::media_servers::watched_titles::{FoundUser, FoundUsers};
use crate::media_servers::{ServerUser, ServerUserId};
use crate::seerr::{Seerr, SeerrUser};
use crate::telemetry;
use crate::tools::formatting::clean_title;
use crate::tools::library::ArrInstances;
use crate::tools::typed_tool::TypedTool;
use crate::tools::{ToolContext, ToolEffect, ToolError, ToolOutput};

/// Maximum number of open requests of a user.
const MAX_OPEN_REQUESTS: usize = 2;

/// Tool that links the user's account at a media server or at a Seerr.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkAccount {
    /// The user's name on the media server.
    #[serde(default)]
    name: String,
    /// Remove the user's links instead.
    #[serde(default)]
    unlink: bool,
    /// On Seerr.
    #[serde(default)]
    seerr: bool,
}

impl LinkAccount {
    fn scope(&self, library: &ArrInstances) -> AccountScope {
        let is_seerr = library.requests.is_some() && (self.seerr || library.media_servers.is_empty());
        if is_seerr { AccountScope::Seerr } else { AccountScope::MediaServers }
    }
}

impl TypedTool for LinkAccount {
    const NAME: &'static str = "link_account";
    const DESCRIPTION: &'static str = "Ask the admins to link the user to their account on Jellyfin or Plex, so that what they watched \
        is known.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::PrivateChat;
    const SEERR_ARGUMENTS: &'static [&'static str] = &["seerr"];

    fn is_supported(library: &ArrInstances) -> bool {
        !library.media_servers.is_empty() || library.requests.is_some()
    }

    fn reads_viewing(&self) -> bool {
        true
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        if context.viewers.is_hidden {
            return Err(not_asked_by_user().into());
        }
        let scope = self.scope(library);
        if self.unlink {
            return Ok(unlink(scope, context));
        }
        let label = match scope {
            AccountScope::MediaServers => library.media_servers.labels().join(" or "),
            AccountScope::Seerr => MediaServerKind::Seerr.label().to_owned(),
        };
        let name = self.name.trim();
        if name.is_empty() {
            return Err(which_name(&label).into());
        }
        if context.admins == 0 {
            return Err(no_admin().into());
        }
        let found = match (&library.requests, scope) {
            (Some(seerr), AccountScope::Seerr) => fetch_seerr_users(seerr).await,
            (_, AccountScope::Seerr | AccountScope::MediaServers) => {
                library.media_servers.fetch_users().await
            }
        };
        let account = find_account(&found, name, &label)?;
        Ok(request_link(account, context)?)
    }
}

/// Lists the users of a Seerr as those of the media servers.
pub fn list_seerr_users(users: &[SeerrUser]) -> Vec<FoundUser> {
    let found = |user: &SeerrUser| {
        let id = ServerUserId::new(&user.id.0.to_string());
        FoundUser { server: MediaServerKind::Seerr, user: ServerUser { id, name: user.name.clone() } }
    };
    users.iter().map(found).collect()
}

/// Reads the users of a Seerr as those of the media servers.
pub(crate) async fn fetch_seerr_users(seerr: &Seerr) -> FoundUsers {
    match seerr.fetch_users().await {
        Ok(users) => FoundUsers {
            users: list_seerr_users(&users),
            answered: vec![MediaServerKind::Seerr],
            is_incomplete: false,
        },
        Err(error) => {
            tracing::warn!(error = telemetry::error_chain(&error), "failed to read the users of Seerr");
            FoundUsers { is_incomplete: true, ..FoundUsers::default() }
        }
    }
}

fn unlink(scope: AccountScope, context: &ToolContext) -> ToolOutput {
    let (is_linked, sentence) = match scope {
        AccountScope::MediaServers => {
            (!context.viewers.own.is_empty(), "You are not linked any more. I no longer see what you watch.")
        }
        AccountScope::Seerr => (
            context.seerr_account.is_some(),
            "You are not linked to Seerr any more. I can't ask there for titles for you.",
        ),
    };
    if !is_linked {
        return link_result("unchanged", "You are not linked to any account.").into();
    }
    ToolOutput::with_effect(link_result("unlinked", sentence), ToolEffect::UnlinkAccounts(scope))
}

/// Finds the account with a name. Names of other accounts are not listed.
fn find_account(found: &FoundUsers, name: &str, label: &str) -> Result<ViewerAccount, CallFailure> {
    let is_named = |user: &&FoundUser| naming::is_same_name(&user.user.name, name);
    let matches: Vec<&FoundUser> = found.users.iter().filter(is_named).collect();
    match (matches.as_slice(), found.is_incomplete) {
        ([found], _) => Ok(ViewerAccount {
            server: found.server,
            id: found.user.id.as_str().to_owned(),
            name: clean_title(&found.user.name),
        }),
        ([], true) => Err(CallFailure::new(
            FailureCode::Failed,
            json!({ "hint": "the server does not respond: they can ask again later" }),
            Some(format!("I can't reach {label} right now. Please ask again later.")),
        )),
        ([], false) => Err(CallFailure::new(
            FailureCode::NotFound,
            json!({ "hint": "nobody has this name there: ask for the exact name" }),
            Some(format!("Nobody on {label} is named {}. Please check the name.", quote_text(name))),
        )),
        _ => Err(CallFailure::new(
            FailureCode::UnclearTitle,
            json!({ "hint": "several accounts have this name: an admin can link the right one in the console" }),
            Some(format!(
                "Several users of {label} are named {}. The person who runs me can link the right one.",
                quote_text(name)
            )),
        )),
    }
}

fn request_link(account: ViewerAccount, context: &ToolContext) -> Result<ToolOutput, CallFailure> {
    let viewers = &context.viewers;
    let is_same = |known: &&ViewerAccount| (known.server, &known.id) == (account.server, &account.id);
    let name = format_account(account.server, &account.name);
    if viewers.own.iter().chain(&context.seerr_account).any(|known| is_same(&known)) {
        return Ok(link_result("unchanged", &format!("You are already linked to {name}.")).into());
    }
    if viewers.taken.iter().any(|known| is_same(&known)) {
        return Err(CallFailure::new(
            FailureCode::NotPermitted,
            json!({ "hint": "this account belongs to another person" }),
            Some(format!(
                "The {} user {} belongs to somebody else I know.",
                account.server.label(),
                account.name
            )),
        ));
    }
    if let (MediaServerKind::Seerr, Some(own)) = (account.server, &context.seerr_account) {
        return Err(CallFailure::new(
            FailureCode::NotPermitted,
            json!({ "hint": "they are linked to another user of Seerr and can unlink that first" }),
            Some(format!(
                "You are linked to the Seerr user {} already. Text UNLINK SEERR first to change it.",
                own.name
            )),
        ));
    }
    if viewers.requested.iter().any(|known| is_same(&known)) {
        let sentence = "I already asked the admins. They have not decided yet.";
        return Ok(link_result("already_asked", sentence).into());
    }
    if viewers.requested.len() >= MAX_OPEN_REQUESTS {
        return Err(CallFailure::new(
            FailureCode::TooManyRequests,
            json!({ "open": MAX_OPEN_REQUESTS, "hint": "wait until the admins have answered" }),
            Some("You already have open requests. Please wait until the admins have decided.".to_owned()),
        ));
    }
    let sentence = format!("I asked the admins to link you to {name}. I'll text you their decision.");
    Ok(ToolOutput::with_effect(link_result("asked", &sentence), ToolEffect::RequestAccountLink(account)))
}

fn format_account(server: MediaServerKind, name: &str) -> String {
    format!("the {} user {name}", server.label())
}

fn link_result(status: &str, sentence: &str) -> CallResult {
    CallResult { for_model: json!({ "status": status }), for_user: sentence.to_owned(), shown: Vec::new() }
}

/// Failure of a call in the name of a user, by an operator or a program.
fn not_asked_by_user() -> CallFailure {
    CallFailure::new(
        FailureCode::NotPermitted,
        json!({ "hint": "only the user can link or unlink an account by text; an operator does it in the console" }),
        Some("Only they can do that by text. In the console, open Users.".to_owned()),
    )
}

fn which_name(label: &str) -> CallFailure {
    CallFailure::new(
        FailureCode::BadArguments,
        json!({ "field": "name", "hint": format!("ask for their name on {label}") }),
        Some(format!("Text LINK {} and your name there.", label.to_uppercase())),
    )
}

fn no_admin() -> CallFailure {
    CallFailure::new(
        FailureCode::NobodyToAsk,
        json!({ "hint": "there is no admin to ask: say so" }),
        Some("There is no admin I could ask.".to_owned()),
    )
}
