//! Next step in a turn of the keyword responder: a tool call or the reply text.

use serde_json::{Map, Value, json};

use super::title_search::{
    FoundTitle, MAX_LIST_LENGTH, TitleAction, TitleChoice, TitleSearch, format_title_list, json_object,
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

/// Processes the lines of the last message in order, but deletions last, because their confirmation prompt ends the
/// turn. A line that cannot be parsed gets the reply `unparsed_reply`.
pub(super) fn next_keyword_step(request: &ModelRequest, unparsed_reply: &'static str) -> KeywordStep {
    let Some(turn_start) =
        request.messages.iter().rposition(|message| matches!(message, ModelMessage::User(_)))
    else {
        return KeywordStep::Reply(unparsed_reply.to_owned());
    };
    let (earlier, turn) = request.messages.split_at(turn_start);
    let keyword_turn = KeywordTurn { request, earlier, turn, unparsed_reply };
    let mut keywords: Vec<_> = user_lines(&turn[0]).map(keyword_grammar::parse_keyword_request).collect();
    keywords.sort_by_key(|keyword| {
        matches!(keyword, Some(KeywordRequest::Remove(_) | KeywordRequest::Reference(KeywordVerb::Remove, _)))
    });
    let mut replies = Vec::new();
    for keyword in keywords {
        let next = keyword.map_or_else(
            || KeywordStep::Reply(unparsed_reply.to_owned()),
            |keyword| keyword_turn.follow_keyword(keyword),
        );
        match next {
            KeywordStep::Reply(text) if replies.contains(&text) => {}
            KeywordStep::Reply(text) => replies.push(text),
            KeywordStep::Call { .. } if request.tool_choice == ToolChoice::None => {
                replies.push(UNFINISHED_REPLY.to_owned())
            }
            call @ KeywordStep::Call { .. } => return call,
        }
    }
    KeywordStep::Reply(if replies.is_empty() { unparsed_reply.to_owned() } else { replies.join("\n") })
}

pub(super) const FAILED_REPLY: &str = "That did not work. Please try again later.";
pub(super) const UNFINISHED_REPLY: &str = "That took too long. Please text it again.";
pub(super) const WHICH_TITLE_REPLY: &str = "Which title? Text HAVE and its name first.";
pub(super) const WHICH_REMOVAL_REPLY: &str =
    "Which title should I delete? Text REMOVE with its name and year.";
pub(super) const WHICH_ADDITION_REPLY: &str = "Which title should I add? Text ADD with its name and year.";
pub(super) const WHICH_SEARCH_REPLY: &str =
    "Which title should I search for? Text SEARCH with its name and year.";
pub(super) const NO_LIST_REPLY: &str = "There is no list to pick from. Text SEARCH and a title first.";
/// Line that ends the context block, which the engine puts before the user's text.
const CONTEXT_END: &str = "[/context]";

/// Returns the lines of the user's own text.
fn user_lines(message: &ModelMessage) -> impl Iterator<Item = &str> {
    let text = match message {
        ModelMessage::User(text) => text.as_str(),
        ModelMessage::Assistant { .. } | ModelMessage::ToolResult { .. } => "",
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let start = lines.iter().rposition(|line| *line == CONTEXT_END).map_or(0, |index| index + 1);
    lines.into_iter().skip(start).filter(|line| !line.is_empty())
}

struct KeywordTurn<'a> {
    request: &'a ModelRequest,
    /// Messages of earlier turns.
    earlier: &'a [ModelMessage],
    /// Messages starting with the user's last message.
    turn: &'a [ModelMessage],
    unparsed_reply: &'static str,
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
                .and_then(|title| title.library_reference().or_else(|| title.title_identifiers()))
            {
                Some(arguments) => self.call_and_reply("tell_me_when_ready", arguments),
                None => KeywordStep::Reply(WHICH_TITLE_REPLY.to_owned()),
            },
            KeywordRequest::Number(number) => self.pick_from_list(usize::from(number)),
            KeywordRequest::Reference(verb, reference) => self.follow_reference(verb, reference),
            KeywordRequest::Add(_) | KeywordRequest::Search(_) | KeywordRequest::Remove(_) => {
                match TitleSearch::from_keyword(keyword) {
                    Some(search) => self.search_title(&search),
                    None => KeywordStep::Reply(self.unparsed_reply.to_owned()),
                }
            }
        }
    }

    /// Searches for the title and acts on the matching one, or lists the results.
    fn search_title(&self, search: &TitleSearch<'_>) -> KeywordStep {
        let result = match self.find_result_or_call(search.tool_name(), search.arguments()) {
            Ok(result) => result,
            Err(next) => return next,
        };
        let Some(found) = parse_titles(result.content) else {
            return KeywordStep::Reply(result.reply_text(FAILED_REPLY));
        };
        match search.choose_title(&found) {
            TitleChoice::Nothing => KeywordStep::Reply(result.reply_text(search.nothing_found_reply())),
            TitleChoice::One(title, action) => self.act_on_title(title, &action),
            TitleChoice::List => KeywordStep::Reply(format_title_list(&found)),
        }
    }

    /// Acts on the title that the reference stands for, or asks which title it is.
    fn follow_reference(&self, verb: KeywordVerb, reference: TitleReference) -> KeywordStep {
        let Some(title) = self.resolve_reference(reference) else {
            return KeywordStep::Reply(which_title_reply(verb).to_owned());
        };
        let label = title.label();
        match verb {
            KeywordVerb::Add => self.act_on_title(&title, &TitleAction::Add),
            KeywordVerb::Search | KeywordVerb::Have => {
                self.call_and_reply("find_in_library", json_object([("query", json!(label))]))
            }
            KeywordVerb::Remove if title.library_reference().is_some() => {
                self.act_on_title(&title, &TitleAction::Remove)
            }
            KeywordVerb::Remove => match TitleSearch::from_keyword(KeywordRequest::Remove(&label)) {
                Some(search) => self.search_title(&search),
                None => KeywordStep::Reply(self.unparsed_reply.to_owned()),
            },
        }
    }

    /// Returns the title of a reference: the last shown title, if it was shown alone and has the kind of the reference.
    /// A message with several lines may refer to a title of another line, so its references are not resolved.
    fn resolve_reference(&self, reference: TitleReference) -> Option<FoundTitle> {
        if user_lines(&self.turn[0]).count() > 1 {
            return None;
        }
        let title = self.last_removal_title().or_else(|| self.last_mentioned_title())?;
        match reference {
            TitleReference::One => Some(title),
            TitleReference::OneOf(kind) => Some(title).filter(|title| title.kind == kind),
            TitleReference::Several => None,
        }
    }

    /// Returns the one title of the last call in earlier turns, if the call was a deletion. The title comes from the
    /// search results that showed it.
    fn last_removal_title(&self) -> Option<FoundTitle> {
        let last = self.earlier.iter().rev().find_map(|message| match message {
            ModelMessage::ToolResult { call, .. } => Some(call),
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => None,
        })?;
        let (name, arguments) = find_call(self.earlier, last)?;
        let [removed] = arguments.get("items").filter(|_| name == "remove_media")?.as_array()?.as_slice()
        else {
            return None;
        };
        let shown_titles = self.earlier.iter().rev().filter_map(|message| match message {
            ModelMessage::ToolResult { content, .. } => parse_titles(content),
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => None,
        });
        shown_titles.flatten().find(|found| {
            found.library_reference().is_some_and(|reference| Some(&reference) == removed.as_object())
        })
    }

    /// Acts on title `number` of the last list.
    fn pick_from_list(&self, number: usize) -> KeywordStep {
        let Some((search, found)) = self.last_list() else {
            return KeywordStep::Reply(NO_LIST_REPLY.to_owned());
        };
        let mut shown = found.iter().take(MAX_LIST_LENGTH);
        match number.checked_sub(1).and_then(|index| shown.nth(index)) {
            Some(title) => self.act_on_title(title, &search.title_action()),
            None => KeywordStep::Reply(format_title_list(&found)),
        }
    }

    /// Returns the list that the last search in earlier turns showed, if it showed one. A search by a model showed no
    /// numbers, and neither did one that found the exact title.
    fn last_list(&self) -> Option<(TitleSearch<'_>, Vec<FoundTitle>)> {
        let mut searches =
            self.earlier.iter().enumerate().rev().filter_map(|(index, message)| match message {
                ModelMessage::ToolResult { call, content, .. } => {
                    let (name, arguments) = find_call(self.earlier, call)?;
                    matches!(name, "search_media" | "find_in_library")
                        .then_some((index, name, arguments, content))
                }
                ModelMessage::User(_) | ModelMessage::Assistant { .. } => None,
            });
        let (index, name, arguments, content) = searches.next()?;
        let user_message =
            self.earlier[..index].iter().rfind(|message| matches!(message, ModelMessage::User(_)))?;
        let mut searches = user_lines(user_message)
            .filter_map(keyword_grammar::parse_keyword_request)
            .filter_map(TitleSearch::from_keyword);
        let search =
            searches.find(|search| search.tool_name() == name && search.arguments() == *arguments)?;
        let found = parse_titles(content)?;
        match search.choose_title(&found) {
            TitleChoice::List => Some((search, found)),
            TitleChoice::One(..) | TitleChoice::Nothing => None,
        }
    }

    /// Returns the title of the last result in earlier turns.
    fn last_mentioned_title(&self) -> Option<FoundTitle> {
        let result = self.earlier.iter().rev().find_map(|message| match message {
            ModelMessage::ToolResult { call, content, .. } => Some((call, content)),
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => None,
        });
        let (call, content) = result?;
        let (_, arguments) = find_call(self.earlier, call)?;
        parse_single_title(content, arguments.get("query").and_then(Value::as_str))
    }

    fn act_on_title(&self, title: &FoundTitle, action: &TitleAction) -> KeywordStep {
        let (name, arguments) = match (action, title.kind) {
            // If the user may add titles, the tool replies instead, with the state of the search and the requester.
            (TitleAction::Add | TitleAction::AddSeasons(_), _)
                if title.in_library && !self.offers_tool("add_movie") =>
            {
                return KeywordStep::Reply(format!("You already have {}.", title.label()));
            }
            (TitleAction::Add | TitleAction::AddSeasons(_), MediaKind::Movie) => {
                ("add_movie", title.tmdb.map(|tmdb| json_object([("tmdb", json!(tmdb))])))
            }
            (TitleAction::Add, MediaKind::Series) => {
                ("add_series", title.tvdb.map(|tvdb| json_object([("tvdb", json!(tvdb))])))
            }
            (TitleAction::AddSeasons(seasons), MediaKind::Series) => {
                let seasons = seasons_argument(seasons);
                (
                    "add_series",
                    title.tvdb.map(|tvdb| json_object([("tvdb", json!(tvdb)), ("seasons", seasons)])),
                )
            }
            (TitleAction::Remove, _) if self.offers_tool("request_removal") => {
                ("request_removal", title.library_reference())
            }
            (TitleAction::Remove, _) => ("remove_media", title.removal_arguments()),
        };
        match arguments {
            Some(arguments) => self.call_and_reply(name, arguments),
            None => KeywordStep::Reply(FAILED_REPLY.to_owned()),
        }
    }

    /// Calls the tool, then replies with its summary.
    fn call_and_reply(&self, name: &'static str, arguments: Map<String, Value>) -> KeywordStep {
        match self.find_result_or_call(name, arguments) {
            Ok(result) if result.is_error() => KeywordStep::Reply(result.reply_text(FAILED_REPLY)),
            Ok(result) => KeywordStep::Reply(result.reply_text("Done.")),
            Err(next) => next,
        }
    }

    /// Returns the result of the same call in this turn, or the step that makes the call.
    fn find_result_or_call(
        &self,
        name: &'static str,
        arguments: Map<String, Value>,
    ) -> Result<PastResult<'_>, KeywordStep> {
        let result = self.turn.iter().find_map(|message| match message {
            ModelMessage::ToolResult { call, content, summary }
                if find_call(self.turn, call) == Some((name, &arguments)) =>
            {
                Some(PastResult { content, summary: summary.as_deref() })
            }
            ModelMessage::User(_) | ModelMessage::Assistant { .. } | ModelMessage::ToolResult { .. } => None,
        });
        match result {
            Some(result) => Ok(result),
            None if self.offers_tool(name) => Err(KeywordStep::Call { name, arguments }),
            None => Err(KeywordStep::Reply(not_offered_reply(name).to_owned())),
        }
    }

    fn offers_tool(&self, name: &str) -> bool {
        self.request.tools.iter().any(|tool| tool.name == name)
    }
}

/// Tool result in the messages of the request.
struct PastResult<'a> {
    content: &'a str,
    summary: Option<&'a str>,
}

impl PastResult<'_> {
    fn is_error(&self) -> bool {
        serde_json::from_str::<Map<String, Value>>(self.content)
            .is_ok_and(|result| result.contains_key("error"))
    }

    fn reply_text(&self, default: &str) -> String {
        self.summary.filter(|summary| !summary.is_empty()).unwrap_or(default).to_owned()
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
        KeywordVerb::Add => WHICH_ADDITION_REPLY,
        KeywordVerb::Search | KeywordVerb::Have => WHICH_SEARCH_REPLY,
        KeywordVerb::Remove => WHICH_REMOVAL_REPLY,
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
