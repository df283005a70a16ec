//! Next step in a turn of the keyword responder: a tool call or the reply text.

use serde_json::{Map, Value, json};

use super::title_search::{
    FoundTitle, LONGEST_LIST, TitleAction, TitleChoice, TitleSearch, format_title_list, json_object,
    parse_single_title, parse_titles,
};
use crate::conversation::grammar::keyword_grammar::{self, KeywordRequest, KeywordVerb, RequestedSeasons};
use crate::conversation::grammar::title_reference::TitleReference;
use crate::conversation::model_request::{ModelMessage, ModelRequest, ToolChoice};
use crate::conversation::transcript::{CallId, MediaKind};

/// One step of the keyword responder.
#[derive(Debug, PartialEq)]
pub(super) enum KeywordStep {
    Reply(String),
    Call { name: &'static str, arguments: Map<String, Value> },
}

/// Processes the lines of the last message in order, with deletions last, because their confirmation prompt ends the
/// turn. A line that cannot be parsed gets the reply `unread`.
pub(super) fn next_keyword_step(request: &ModelRequest, unread: &'static str) -> KeywordStep {
    let Some(at) = request.messages.iter().rposition(|message| matches!(message, ModelMessage::User(_)))
    else {
        return KeywordStep::Reply(unread.to_owned());
    };
    let (before, turn) = request.messages.split_at(at);
    let keyword_turn = KeywordTurn { request, before, turn, unread };
    let mut keywords: Vec<_> = user_lines(&turn[0]).map(keyword_grammar::parse_keyword_request).collect();
    keywords.sort_by_key(|keyword| {
        matches!(keyword, Some(KeywordRequest::Remove(_) | KeywordRequest::Reference(KeywordVerb::Remove, _)))
    });
    let mut replies = Vec::new();
    for keyword in keywords {
        let next = keyword.map_or_else(
            || KeywordStep::Reply(unread.to_owned()),
            |keyword| keyword_turn.follow_keyword(keyword),
        );
        match next {
            KeywordStep::Reply(text) if replies.contains(&text) => {}
            KeywordStep::Reply(text) => replies.push(text),
            KeywordStep::Call { .. } if request.tool_choice == ToolChoice::None => {
                replies.push(UNFINISHED.to_owned())
            }
            call @ KeywordStep::Call { .. } => return call,
        }
    }
    KeywordStep::Reply(if replies.is_empty() { unread.to_owned() } else { replies.join("\n") })
}

pub(super) const FAILED: &str = "That did not work. Please try again later.";
pub(super) const UNFINISHED: &str = "That took too long. Please text it again.";
pub(super) const WHICH_TITLE: &str = "Which title? Text HAVE and its name first.";
pub(super) const WHICH_REMOVAL: &str = "Which title should I delete? Text REMOVE with its name and year.";
pub(super) const WHICH_ADDITION: &str = "Which title should I add? Text ADD with its name and year.";
pub(super) const WHICH_SEARCH: &str = "Which title should I search for? Text SEARCH with its name and year.";
pub(super) const NO_LIST: &str = "There is no list to pick from. Text SEARCH and a title first.";
/// Line that ends the context that the engine puts before the user's own text.
const CONTEXT_END: &str = "[/context]";

/// Returns the lines that the user typed.
fn user_lines(message: &ModelMessage) -> impl Iterator<Item = &str> {
    let text = match message {
        ModelMessage::User(text) => text.as_str(),
        ModelMessage::Assistant { .. } | ModelMessage::ToolResult { .. } => "",
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let start = lines.iter().rposition(|line| *line == CONTEXT_END).map_or(0, |end| end + 1);
    lines.into_iter().skip(start).filter(|line| !line.is_empty())
}

struct KeywordTurn<'a> {
    request: &'a ModelRequest,
    before: &'a [ModelMessage],
    /// Messages starting with the user's last message.
    turn: &'a [ModelMessage],
    unread: &'static str,
}

impl KeywordTurn<'_> {
    fn follow_keyword(&self, keyword: KeywordRequest<'_>) -> KeywordStep {
        match keyword {
            KeywordRequest::Status => self.call_and_reply("check_status", Map::new()),
            KeywordRequest::Upcoming => self.call_and_reply("upcoming", json_object([("days", json!(7))])),
            KeywordRequest::Have(title) => {
                self.call_and_reply("find_in_library", json_object([("query", json!(title))]))
            }
            KeywordRequest::FollowTitle => match self
                .last_mentioned_title()
                .and_then(|item| item.library_reference().or_else(|| item.title_identifiers()))
            {
                Some(item) => self.call_and_reply("tell_me_when_ready", item),
                None => KeywordStep::Reply(WHICH_TITLE.to_owned()),
            },
            KeywordRequest::Number(number) => self.pick_from_list(usize::from(number)),
            KeywordRequest::Reference(verb, reference) => self.follow_reference(verb, reference),
            KeywordRequest::Add(_) | KeywordRequest::Search(_) | KeywordRequest::Remove(_) => {
                match TitleSearch::from_keyword(keyword) {
                    Some(search) => self.search_title(&search),
                    None => KeywordStep::Reply(self.unread.to_owned()),
                }
            }
        }
    }

    /// Searches for the title and acts on the matching one, or lists the results.
    fn search_title(&self, search: &TitleSearch<'_>) -> KeywordStep {
        let result = match self.find_result_or_call(search.tool(), search.arguments()) {
            Ok(result) => result,
            Err(next) => return next,
        };
        let Some(found) = parse_titles(result.content) else {
            return KeywordStep::Reply(result.reply_text(FAILED));
        };
        match search.choose_title(&found) {
            TitleChoice::Nothing => KeywordStep::Reply(result.reply_text(search.nothing_found_reply())),
            TitleChoice::One(item, action) => self.act_on_title(item, &action),
            TitleChoice::List => KeywordStep::Reply(format_title_list(&found)),
        }
    }

    /// Acts on the one title that the reference names, or asks the user to choose.
    fn follow_reference(&self, verb: KeywordVerb, reference: TitleReference) -> KeywordStep {
        let Some(item) = self.resolve_reference(reference) else {
            return KeywordStep::Reply(which_title_reply(verb).to_owned());
        };
        let name = item.label();
        match verb {
            KeywordVerb::Add => self.act_on_title(&item, &TitleAction::Add),
            KeywordVerb::Search | KeywordVerb::Have => {
                self.call_and_reply("find_in_library", json_object([("query", json!(name))]))
            }
            KeywordVerb::Remove if item.library_reference().is_some() => {
                self.act_on_title(&item, &TitleAction::Remove)
            }
            KeywordVerb::Remove => match TitleSearch::from_keyword(KeywordRequest::Remove(&name)) {
                Some(search) => self.search_title(&search),
                None => KeywordStep::Reply(self.unread.to_owned()),
            },
        }
    }

    /// Returns the title of a reference: the last shown title, if it was shown alone and has a fitting kind. Another
    /// line of the same message may have named a title that was not shown yet.
    fn resolve_reference(&self, reference: TitleReference) -> Option<FoundTitle> {
        if user_lines(&self.turn[0]).count() > 1 {
            return None;
        }
        let item = self.last_removal_title().or_else(|| self.last_mentioned_title())?;
        match reference {
            TitleReference::One => Some(item),
            TitleReference::OneOf(kind) => Some(item).filter(|item| item.kind == kind),
            TitleReference::Several => None,
        }
    }

    /// Returns the one title that the last call before this message would have deleted, as an earlier search showed it.
    fn last_removal_title(&self) -> Option<FoundTitle> {
        let last = self.before.iter().rev().find_map(|message| match message {
            ModelMessage::ToolResult { call, .. } => Some(call),
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => None,
        })?;
        let (name, arguments) = find_call(self.before, last)?;
        let [item] = arguments.get("items").filter(|_| name == "remove_media")?.as_array()?.as_slice() else {
            return None;
        };
        let shown = self.before.iter().rev().filter_map(|message| match message {
            ModelMessage::ToolResult { content, .. } => parse_titles(content),
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => None,
        });
        shown
            .flatten()
            .find(|found| found.library_reference().is_some_and(|place| Some(&place) == item.as_object()))
    }

    /// Acts on item `number` of the list from the last search.
    fn pick_from_list(&self, number: usize) -> KeywordStep {
        let Some((search, found)) = self.last_list() else { return KeywordStep::Reply(NO_LIST.to_owned()) };
        let mut shown = found.iter().take(LONGEST_LIST);
        match number.checked_sub(1).and_then(|index| shown.nth(index)) {
            Some(item) => self.act_on_title(item, &search.title_action()),
            None => KeywordStep::Reply(format_title_list(&found)),
        }
    }

    /// Returns the list in the reply to the last search before this message, if there is one. A search by a model, or a
    /// search that found the exact title, has shown no numbers.
    fn last_list(&self) -> Option<(TitleSearch<'_>, Vec<FoundTitle>)> {
        let mut searches = self.before.iter().enumerate().rev().filter_map(|(at, message)| match message {
            ModelMessage::ToolResult { call, content, .. } => {
                let (name, arguments) = find_call(self.before, call)?;
                matches!(name, "search_media" | "find_in_library").then_some((at, name, arguments, content))
            }
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => None,
        });
        let (at, name, arguments, content) = searches.next()?;
        let asked = self.before[..at].iter().rfind(|message| matches!(message, ModelMessage::User(_)))?;
        let mut searches = user_lines(asked)
            .filter_map(keyword_grammar::parse_keyword_request)
            .filter_map(TitleSearch::from_keyword);
        let search = searches.find(|search| search.tool() == name && search.arguments() == *arguments)?;
        let found = parse_titles(content)?;
        match search.choose_title(&found) {
            TitleChoice::List => Some((search, found)),
            TitleChoice::One(..) | TitleChoice::Nothing => None,
        }
    }

    /// Returns the title of the last result before this message.
    fn last_mentioned_title(&self) -> Option<FoundTitle> {
        let result = self.before.iter().rev().find_map(|message| match message {
            ModelMessage::ToolResult { call, content, .. } => Some((call, content)),
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => None,
        });
        let (call, content) = result?;
        let (_, arguments) = find_call(self.before, call)?;
        parse_single_title(content, arguments.get("query").and_then(Value::as_str))
    }

    fn act_on_title(&self, item: &FoundTitle, action: &TitleAction) -> KeywordStep {
        let (name, arguments) = match (action, item.kind) {
            // For a user who may add titles, the tool also reports the state of the search and the requester of the
            // title.
            (TitleAction::Add | TitleAction::AddSeasons(_), _)
                if item.in_library && !self.offers_tool("add_movie") =>
            {
                return KeywordStep::Reply(format!("You already have {}.", item.label()));
            }
            (TitleAction::Add | TitleAction::AddSeasons(_), MediaKind::Movie) => {
                ("add_movie", item.tmdb.map(|tmdb| json_object([("tmdb", json!(tmdb))])))
            }
            (TitleAction::Add, MediaKind::Series) => {
                ("add_series", item.tvdb.map(|tvdb| json_object([("tvdb", json!(tvdb))])))
            }
            (TitleAction::AddSeasons(seasons), MediaKind::Series) => {
                let seasons = seasons_argument(seasons);
                (
                    "add_series",
                    item.tvdb.map(|tvdb| json_object([("tvdb", json!(tvdb)), ("seasons", seasons)])),
                )
            }
            (TitleAction::Remove, _) if self.offers_tool("request_removal") => {
                ("request_removal", item.library_reference())
            }
            (TitleAction::Remove, _) => ("remove_media", item.removal_arguments()),
        };
        match arguments {
            Some(arguments) => self.call_and_reply(name, arguments),
            None => KeywordStep::Reply(FAILED.to_owned()),
        }
    }

    /// Calls the tool, then replies with its summary.
    fn call_and_reply(&self, name: &'static str, arguments: Map<String, Value>) -> KeywordStep {
        match self.find_result_or_call(name, arguments) {
            Ok(result) if result.is_error() => KeywordStep::Reply(result.reply_text(FAILED)),
            Ok(result) => KeywordStep::Reply(result.reply_text("Done.")),
            Err(next) => next,
        }
    }

    /// Returns the result of this exact call in this turn, or the step that is needed first.
    fn find_result_or_call(
        &self,
        name: &'static str,
        arguments: Map<String, Value>,
    ) -> Result<ReplayedResult<'_>, KeywordStep> {
        let answered = self.turn.iter().find_map(|message| match message {
            ModelMessage::ToolResult { call, content, summary }
                if find_call(self.turn, call) == Some((name, &arguments)) =>
            {
                Some(ReplayedResult { content, summary: summary.as_deref() })
            }
            ModelMessage::User(_) | ModelMessage::Assistant { .. } | ModelMessage::ToolResult { .. } => None,
        });
        match answered {
            Some(answered) => Ok(answered),
            None if self.offers_tool(name) => Err(KeywordStep::Call { name, arguments }),
            None => Err(KeywordStep::Reply(not_offered_reply(name).to_owned())),
        }
    }

    fn offers_tool(&self, name: &str) -> bool {
        self.request.tools.iter().any(|tool| tool.name == name)
    }
}

/// Tool result that the request replays.
struct ReplayedResult<'a> {
    content: &'a str,
    summary: Option<&'a str>,
}

impl ReplayedResult<'_> {
    fn is_error(&self) -> bool {
        serde_json::from_str::<Map<String, Value>>(self.content).is_ok_and(|read| read.contains_key("error"))
    }

    fn reply_text(&self, otherwise: &str) -> String {
        self.summary.filter(|summary| !summary.is_empty()).unwrap_or(otherwise).to_owned()
    }
}

fn seasons_argument(seasons: &RequestedSeasons) -> Value {
    match seasons {
        RequestedSeasons::All => json!("all"),
        RequestedSeasons::First => json!("first"),
        RequestedSeasons::Latest => json!("latest"),
        RequestedSeasons::Listed(numbers) => json!(numbers),
    }
}

fn which_title_reply(verb: KeywordVerb) -> &'static str {
    match verb {
        KeywordVerb::Add => WHICH_ADDITION,
        KeywordVerb::Search | KeywordVerb::Have => WHICH_SEARCH,
        KeywordVerb::Remove => WHICH_REMOVAL,
    }
}

fn not_offered_reply(tool: &str) -> &'static str {
    match tool {
        "remove_media" => "You can't delete titles here. Please ask an admin.",
        "add_movie" | "add_series" => "You can't add titles here. Please ask an admin.",
        _ => "That isn't possible here right now.",
    }
}

fn find_call<'m>(messages: &'m [ModelMessage], id: &CallId) -> Option<(&'m str, &'m Map<String, Value>)> {
    messages.iter().find_map(|message| match message {
        ModelMessage::Assistant { calls, .. } => {
            calls.iter().find(|call| call.id == *id).map(|call| (call.name.as_str(), &call.arguments))
        }
        ModelMessage::User(_) | ModelMessage::ToolResult { .. } => None,
    })
}
