//! Replies of the keyword responder that no tool writes.

use serde_json::Value;

use super::KeywordResponder;
use super::found_title::FoundTitle;
use super::past_calls::PastResult;
use crate::conversation::grammar::keyword_grammar::{MODEL_OFF_PREFIX, NOT_UNDERSTOOD};
use crate::conversation::grammar::requests::request::Request;
use crate::conversation::transcript::MediaKind;

pub(super) const FAILED_REPLY: &str = "That did not work. Please try again later.";
pub(super) const UNFINISHED_REPLY: &str = "That took too long. Please text it again.";
pub(super) const NO_LIST_REPLY: &str = "There is no list to pick from. Text SEARCH and a title first.";
pub(super) const NOTHING_TO_UNDO_REPLY: &str = "OK. There is nothing to undo.";
pub(super) const SEVERAL_DELETED_REPLY: &str = "Text ADD and the name of each title that you want back.";
pub(super) const WHOLE_SEASONS_REPLY: &str = "I can delete whole titles or whole seasons, by their numbers.";
pub(super) const WHOLE_TITLES_REPLY: &str = "I can ask the admins to delete whole titles only.";
pub(super) const WHICH_TITLE_REPLY: &str = "Which title? Text HAVE and its name first.";
pub(super) const WHICH_REMOVAL_REPLY: &str =
    "Which title should I delete? Text REMOVE with its name and year.";
pub(super) const WHICH_ADDITION_REPLY: &str = "Which title should I add? Text ADD with its name and year.";
pub(super) const WHICH_SEARCH_REPLY: &str =
    "Which title should I search for? Text SEARCH with its name and year.";

pub(super) const UNKNOWN_WATCHING_REPLY: &str = "I can't see what people watch here.";

/// Returns the reply to a message that cannot be parsed, with two examples that fit the user.
pub(super) fn not_understood_reply(
    responder: KeywordResponder,
    may_add: bool,
    owned: Option<&FoundTitle>,
) -> String {
    format!("{}{NOT_UNDERSTOOD} {}", availability(responder), examples(may_add, owned))
}

pub(super) fn greeting_reply(
    responder: KeywordResponder,
    may_add: bool,
    owned: Option<&FoundTitle>,
) -> String {
    format!("{}Hi! {}", availability(responder), examples(may_add, owned))
}

/// Returns the sentence about a model that does not respond.
fn availability(responder: KeywordResponder) -> &'static str {
    match responder {
        KeywordResponder::NoModel => "",
        KeywordResponder::ModelUnavailable => MODEL_OFF_PREFIX,
    }
}

/// Returns two examples of texts that work for the user.
fn examples(may_add: bool, owned: Option<&FoundTitle>) -> String {
    let first = if may_add { "add Paddington" } else { "what's downloading" };
    let second = match owned {
        Some(title) if title.kind == MediaKind::Series => format!("when is {} back", title.name()),
        Some(title) => format!("do we have {}", title.name()),
        None => "what's new".to_owned(),
    };
    format!("You can text \"{first}\" or \"{second}\".")
}

/// Returns the question for the title of a request that does not name one.
pub(super) fn which_title_reply(request: &Request) -> &'static str {
    match request {
        Request::Add(_) => WHICH_ADDITION_REPLY,
        Request::Search(_) | Request::Have(_) => WHICH_SEARCH_REPLY,
        Request::Remove { .. } | Request::RemovePronoun(_) => WHICH_REMOVAL_REPLY,
        _ => WHICH_TITLE_REPLY,
    }
}

/// Returns the reply to a search without results.
pub(super) fn nothing_found_reply(request: &Request) -> &'static str {
    match request {
        Request::Add(_) | Request::Search(_) => "I found nothing by that name.",
        _ => "I found nothing by that name in the library.",
    }
}

/// Returns the summary of a title, followed by its description.
pub(super) fn details_reply(result: &PastResult<'_>) -> String {
    let details: Value = serde_json::from_str(result.content).unwrap_or_default();
    let summary = result.reply_text("Done.");
    match details.get("overview").and_then(Value::as_str).filter(|overview| !overview.is_empty()) {
        Some(overview) => format!("{summary} {overview}"),
        None => summary,
    }
}

pub(super) fn not_offered_reply(tool: &str) -> &'static str {
    match tool {
        "remove_media" => "You can't delete titles here. Please ask an admin.",
        "add_movie" | "add_series" | "get_more" => "You can't add titles here. Please ask an admin.",
        "make_room" => "Only an admin can do that. Please ask one.",
        "my_space" => "Please ask me that in our private chat.",
        "recently_watched" => UNKNOWN_WATCHING_REPLY,
        "link_account" => "I can't link accounts here.",
        _ => "That isn't possible here right now.",
    }
}

/// Returns the reply to a request that needs a media server, where there is none.
pub(super) fn unknown_watching_reply(request: &Request) -> &'static str {
    match request {
        Request::Recommend(_) => "I can't suggest titles of the library here.",
        _ => UNKNOWN_WATCHING_REPLY,
    }
}

/// Returns the reply to a request that a command answers, if the request is one of several.
pub(super) fn command_reply(request: &Request) -> Option<&'static str> {
    match request {
        Request::ShowPreferences => Some("Text WHAT DO YOU KNOW to see what I know about you."),
        Request::Quiet(_) => Some("Text QUIET and the hours, such as QUIET 22-7, or QUIET OFF."),
        Request::Users => Some("Admins can text USERS."),
        Request::Help => Some("Text ? for a list of commands."),
        Request::More => Some("There is nothing more."),
        Request::Thanks => Some("You're welcome."),
        _ => None,
    }
}
