//! Next step in a turn of the keyword responder: a tool call or the reply text.

use serde_json::{Map, Value, json};

use super::KeywordResponder;
use super::arguments::{self, offers_argument};
use super::found_title::{
    FoundTitle, MAX_LIST_LENGTH, TitleChoice, choose_title, format_title_list, json_object, parse_titles,
};
use super::past_calls::{self, PastResult, last_turn, past_results, user_lines};
use super::replies::{
    self, FAILED_REPLY, NO_LIST_REPLY, NOTHING_TO_UNDO_REPLY, SEVERAL_DELETED_REPLY, UNFINISHED_REPLY,
    WHOLE_SEASONS_REPLY, WHOLE_TITLES_REPLY,
};
use super::season_question::answered_call;
use super::space_drop::{DroppedTitles, choose_dropped_titles};
use crate::conversation::grammar::make_room_step::MakeRoomStep;
use crate::conversation::grammar::requests::parser::{ParsedLine, parse_line};
use crate::conversation::grammar::requests::request::Request;
use crate::conversation::grammar::requests::title_phrase::TitlePhrase;
use crate::conversation::grammar::title_reference::TitleReference;
use crate::conversation::model_request::{EncodedMessage, ModelMessage, ModelRequest, ToolChoice};

/// One step of the keyword responder.
#[derive(Debug, PartialEq)]
pub(super) enum KeywordStep {
    Reply(String),
    Call { name: &'static str, arguments: Map<String, Value> },
}

/// Reading of a line, or one of several requests in a line.
enum Wish {
    /// A title, or the request if no title of this name exists.
    Title(TitlePhrase, Box<Option<Request>>),
    Request(Request),
    /// Call that an answer to our question completes.
    Call(&'static str, Map<String, Value>),
    NotUnderstood,
}

/// Processes the requests of the last message in order, but deletions last, because their confirmation prompt ends the
/// turn.
pub(super) fn next_keyword_step(request: &ModelRequest, responder: KeywordResponder) -> KeywordStep {
    let start = request.messages.iter().rposition(|message| matches!(**message, ModelMessage::User(_)));
    let (earlier, turn) = request.messages.split_at(start.unwrap_or(request.messages.len()));
    let lines: Vec<&str> = turn.first().into_iter().flat_map(|message| user_lines(message)).collect();
    let season_answer = match lines.as_slice() {
        [line] => answered_call(earlier, line),
        _ => None,
    };
    let wishes: Vec<Wish> = match season_answer {
        Some((name, arguments)) => vec![Wish::Call(name, arguments)],
        None => lines.into_iter().flat_map(|line| line_wishes(parse_line(line))).collect(),
    };
    let keyword_turn = KeywordTurn { request, earlier, turn, responder, is_alone: wishes.len() == 1 };
    let mut wishes = if wishes.is_empty() { vec![Wish::NotUnderstood] } else { wishes };
    wishes.sort_by_key(|wish| matches!(wish, Wish::Request(request) if request.is_removal()));
    let mut replies = Vec::new();
    for wish in wishes {
        match keyword_turn.follow_wish(wish) {
            KeywordStep::Reply(text) if replies.contains(&text) => {}
            KeywordStep::Reply(text) => replies.push(text),
            KeywordStep::Call { .. } if request.tool_choice == ToolChoice::None => {
                replies.push(UNFINISHED_REPLY.to_owned())
            }
            call @ KeywordStep::Call { .. } => return call,
        }
    }
    KeywordStep::Reply(replies.join("\n"))
}

fn line_wishes(line: ParsedLine) -> Vec<Wish> {
    let ParsedLine { mut requests, title_reading, is_known_title } = line;
    match title_reading {
        Some(Request::Search(phrase)) if requests.is_empty() || is_known_title => {
            vec![Wish::Title(phrase, Box::new(requests.pop()))]
        }
        Some(add @ Request::Add(_)) if requests.is_empty() => vec![Wish::Request(add)],
        _ if requests.is_empty() => vec![Wish::NotUnderstood],
        _ => requests.into_iter().map(Wish::Request).collect(),
    }
}

pub(super) struct KeywordTurn<'a> {
    request: &'a ModelRequest,
    /// Messages of earlier turns.
    earlier: &'a [EncodedMessage],
    /// Messages starting with the user's last message.
    turn: &'a [EncodedMessage],
    responder: KeywordResponder,
    /// True if the message has one request, so that a reference in it cannot mean a title of another one.
    is_alone: bool,
}

impl KeywordTurn<'_> {
    fn follow_wish(&self, wish: Wish) -> KeywordStep {
        match wish {
            Wish::Request(request) => self.follow_request(&request),
            Wish::Call(name, arguments) => self.call_and_reply(name, arguments),
            Wish::NotUnderstood => self.reply_not_understood(),
            Wish::Title(phrase, request) => self.follow_title(&phrase, *request),
        }
    }

    /// Shows the title, if the catalog has one of exactly this name, or follows the other reading of the line.
    fn follow_title(&self, phrase: &TitlePhrase, other: Option<Request>) -> KeywordStep {
        let search = Request::Search(phrase.clone());
        let content = match self.search_result(&search, phrase) {
            Err(KeywordStep::Call { name, arguments }) => return KeywordStep::Call { name, arguments },
            Ok(result) => parse_titles(result.content),
            Err(KeywordStep::Reply(_)) => None,
        };
        let found = content.unwrap_or_default();
        let is_title = !matches!(choose_title(&found, phrase), TitleChoice::Nothing)
            && found.iter().any(|title| title.has_exact_name(phrase));
        match other {
            _ if is_title => KeywordStep::Reply(format_title_list(&found)),
            Some(request) => self.follow_request(&request),
            None => self.reply_not_understood(),
        }
    }

    fn reply_not_understood(&self) -> KeywordStep {
        match self.owned_title() {
            Ok(owned) => KeywordStep::Reply(replies::not_understood_reply(
                self.responder,
                self.offers_additions(),
                owned.as_ref(),
            )),
            Err(call) => call,
        }
    }

    /// Returns a title of the library for an example, or the step that finds one.
    fn owned_title(&self) -> Result<Option<FoundTitle>, KeywordStep> {
        if self.request.tool_choice == ToolChoice::None || !self.offers_tool("find_in_library") {
            return Ok(None);
        }
        let newest = json_object([("sort", json!("newest"))]);
        let result = self.find_result_or_call("find_in_library", newest)?;
        Ok(parse_titles(result.content).and_then(|titles| titles.into_iter().next()))
    }

    fn follow_request(&self, request: &Request) -> KeywordStep {
        match request {
            Request::Pick(numbers) => self.pick_from_list(numbers),
            Request::Undo => self.undo(),
            Request::Remove { titles, .. } => self.remove_titles(request, titles),
            Request::Drop(numbers) => match choose_dropped_titles(self.earlier, numbers) {
                DroppedTitles::Chosen(titles) => self.remove_chosen(request, &titles),
                DroppedTitles::Unclear(question) => KeywordStep::Reply(question),
            },
            Request::MakeRoom(MakeRoomStep::Review) => self.review_titles(request),
            Request::RemovePronoun(_) | Request::Follow(None) => self.follow_reference(request),
            Request::Greeting => self.reply_greeting(),
            _ if self.lacks_argument(request) => {
                KeywordStep::Reply(replies::unknown_watching_reply(request).to_owned())
            }
            _ => match (request.title(), arguments::call_without_title(request, &self.request.tools)) {
                (Some(phrase), _) if phrase.reference.is_some() => self.follow_reference(request),
                (Some(phrase), _) => self.find_and_act(request, phrase),
                (None, Some((name, arguments))) => self.call_and_reply(name, arguments),
                (None, None) => {
                    let reply = replies::command_reply(request);
                    reply.map_or_else(
                        || self.reply_not_understood(),
                        |text| KeywordStep::Reply(text.to_owned()),
                    )
                }
            },
        }
    }

    fn reply_greeting(&self) -> KeywordStep {
        match self.owned_title() {
            Ok(owned) => {
                let may_add = self.offers_additions();
                KeywordStep::Reply(replies::greeting_reply(self.responder, may_add, owned.as_ref()))
            }
            Err(call) => call,
        }
    }

    /// Searches for the title and acts on the matching one, or lists the results.
    fn find_and_act(&self, request: &Request, phrase: &TitlePhrase) -> KeywordStep {
        let result = match self.search_result(request, phrase) {
            Ok(result) => result,
            Err(step) => return step,
        };
        let Some(found) = parse_titles(result.content) else {
            return KeywordStep::Reply(result.reply_text(FAILED_REPLY));
        };
        match (request, choose_title(&found, phrase)) {
            (Request::Details { .. }, TitleChoice::Nothing) => self.describe_from_catalog(phrase),
            (Request::Add(_), TitleChoice::Nothing) if self.offers_tool("ask_parents") => {
                self.call_and_reply("ask_parents", arguments::ask_parents_arguments(phrase))
            }
            (_, TitleChoice::Nothing) => {
                KeywordStep::Reply(result.reply_text(replies::nothing_found_reply(request)))
            }
            (Request::Have(phrase), _) if phrase.seasons.is_none() => {
                KeywordStep::Reply(result.reply_text("Done."))
            }
            (Request::Search(_), _) => KeywordStep::Reply(format_title_list(&found)),
            (_, TitleChoice::Several) if found.len() > 1 || !is_question(request) => {
                KeywordStep::Reply(format_title_list(&found))
            }
            (_, TitleChoice::FullName(title)) => {
                self.act_on_title(title, &arguments::without_description(request))
            }
            (_, TitleChoice::One(title)) => self.act_on_title(title, request),
            (_, TitleChoice::Several) => found.first().map_or_else(
                || KeywordStep::Reply(FAILED_REPLY.to_owned()),
                |title| self.act_on_title(title, request),
            ),
        }
    }

    /// Describes a title that is not in the library.
    fn describe_from_catalog(&self, phrase: &TitlePhrase) -> KeywordStep {
        let request = Request::Search(phrase.clone());
        let result = match self.search_result(&request, phrase) {
            Ok(result) => result,
            Err(step) => return step,
        };
        let found = parse_titles(result.content).unwrap_or_default();
        match choose_title(&found, phrase) {
            TitleChoice::One(title) | TitleChoice::FullName(title) if !title.overview.is_empty() => {
                KeywordStep::Reply(format!("{}: {}", title.label(), title.overview))
            }
            TitleChoice::Nothing => KeywordStep::Reply(replies::nothing_found_reply(&request).to_owned()),
            _ => KeywordStep::Reply(format_title_list(&found)),
        }
    }

    /// Returns the result of the search for the title, or the step that makes it.
    fn search_result(&self, request: &Request, phrase: &TitlePhrase) -> Result<PastResult<'_>, KeywordStep> {
        let (name, arguments) = arguments::search_call(request, phrase);
        self.find_result_or_call(name, arguments)
    }

    /// Deletes all named titles with one call, if each is exactly one.
    fn remove_titles(&self, request: &Request, titles: &[TitlePhrase]) -> KeywordStep {
        let mut chosen = Vec::new();
        for phrase in titles {
            let result = match self.search_result(request, phrase) {
                Ok(result) => result,
                Err(step) => return step,
            };
            let Some(found) = parse_titles(result.content) else {
                return KeywordStep::Reply(result.reply_text(FAILED_REPLY));
            };
            match choose_title(&found, phrase) {
                TitleChoice::One(title) | TitleChoice::FullName(title) => chosen.push(title.clone()),
                TitleChoice::Several => return KeywordStep::Reply(format_title_list(&found)),
                TitleChoice::Nothing => {
                    return KeywordStep::Reply(result.reply_text(replies::nothing_found_reply(request)));
                }
            }
        }
        let names_part = titles.iter().any(|title| title.seasons.is_some() || title.episode.is_some());
        match names_part && self.offers_tool("request_removal") {
            true => KeywordStep::Reply(WHOLE_TITLES_REPLY.to_owned()),
            false => self.remove_chosen(request, &chosen),
        }
    }

    /// Deletes the titles with one call, or asks the admins to delete each of them.
    pub(super) fn remove_chosen(&self, request: &Request, chosen: &[FoundTitle]) -> KeywordStep {
        if self.offers_tool("request_removal") {
            return self.request_removals(chosen);
        }
        match arguments::removal_arguments(chosen, request) {
            Some(arguments) => self.call_and_reply("remove_media", arguments),
            None => KeywordStep::Reply(WHOLE_SEASONS_REPLY.to_owned()),
        }
    }

    fn request_removals(&self, titles: &[FoundTitle]) -> KeywordStep {
        let mut replies = Vec::new();
        for title in titles {
            let Some(arguments) = title.library_reference() else {
                return KeywordStep::Reply(FAILED_REPLY.to_owned());
            };
            match self.call_and_reply("request_removal", arguments) {
                KeywordStep::Reply(text) => replies.push(text),
                call @ KeywordStep::Call { .. } => return call,
            }
        }
        KeywordStep::Reply(replies.join(" "))
    }

    /// Acts on the title that the reference stands for, or asks which title it is.
    fn follow_reference(&self, request: &Request) -> KeywordStep {
        let reference = request.title().and_then(|title| title.reference);
        match self.resolve_reference(reference.unwrap_or(TitleReference::One)) {
            Some(title) => self.act_on_title(&title, request),
            None => KeywordStep::Reply(replies::which_title_reply(request).to_owned()),
        }
    }

    /// Returns the title of a reference: the last shown title, if it was shown alone and has the kind of the reference.
    fn resolve_reference(&self, reference: TitleReference) -> Option<FoundTitle> {
        let title = past_calls::last_mentioned_title(self.earlier).filter(|_| self.is_alone)?;
        match reference {
            TitleReference::One => Some(title),
            TitleReference::OneOf(kind) => Some(title).filter(|title| title.kind == kind),
            TitleReference::Several => None,
        }
    }

    /// Acts on the numbered titles of the list in our last message.
    fn pick_from_list(&self, numbers: &[u8]) -> KeywordStep {
        let Some((request, found)) = self.last_list() else {
            return KeywordStep::Reply(NO_LIST_REPLY.to_owned());
        };
        let shown = &found[..found.len().min(MAX_LIST_LENGTH)];
        let chosen: Option<Vec<&FoundTitle>> = numbers
            .iter()
            .map(|number| usize::from(*number).checked_sub(1).and_then(|index| shown.get(index)))
            .collect();
        let Some(chosen) = chosen else { return KeywordStep::Reply(format_title_list(&found)) };
        let mut replies = Vec::new();
        for title in chosen {
            match self.act_on_title(title, &request) {
                KeywordStep::Reply(text) => replies.push(text),
                call @ KeywordStep::Call { .. } => return call,
            }
        }
        KeywordStep::Reply(replies.join(" "))
    }

    /// Returns the list that our last message showed, if it showed one, and the request that it answered.
    fn last_list(&self) -> Option<(Request, Vec<FoundTitle>)> {
        let turn = last_turn(self.earlier);
        let reply = turn.iter().rev().find_map(|message| match &**message {
            ModelMessage::Assistant { text, calls } if calls.is_empty() => Some(text.as_str()),
            _ => None,
        })?;
        let searches =
            past_results(turn).filter(|result| matches!(result.name, "search_media" | "find_in_library"));
        let (search, found) = searches
            .filter_map(|search| parse_titles(search.content).map(|found| (search, found)))
            .rfind(|(_, found)| !found.is_empty() && reply.contains(&format_title_list(found)))?;
        let lines: Vec<ParsedLine> = user_lines(turn.first()?).map(parse_line).collect();
        let requests = lines.iter().flat_map(|line| line.requests.iter().chain(&line.title_reading));
        let mut answered = requests.filter(|request| {
            let phrases = match request {
                Request::Remove { titles, .. } => titles.iter().collect(),
                other => other.title().into_iter().collect::<Vec<_>>(),
            };
            phrases.iter().any(|phrase| {
                arguments::search_call(request, phrase) == (search.name, search.arguments.clone())
            })
        });
        // Without such a request, the list offers to add the title of an undone deletion.
        let offer = || Request::Add(TitlePhrase::from_name(found.first().map_or("", FoundTitle::name)));
        let request = answered.next().cloned().unwrap_or_else(offer);
        Some((request, found))
    }

    /// Takes back the last change of the conversation: a deletion prompt for an added title, an offer for a deleted one.
    fn undo(&self) -> KeywordStep {
        let change = past_results(self.earlier).rfind(|result| match result.name {
            "add_movie" | "add_series" => result.has_status("added"),
            "remove_media" => result.has_status("deleted"),
            _ => false,
        });
        match change {
            Some(change) if change.name == "remove_media" => {
                let removed = past_calls::last_removal(self.earlier, &change);
                removed.map_or_else(
                    || KeywordStep::Reply(SEVERAL_DELETED_REPLY.to_owned()),
                    |title| self.find_and_list(&title),
                )
            }
            Some(change) => {
                let added = past_calls::shown_titles(self.earlier).find(|title| {
                    title
                        .catalog_id()
                        .is_some_and(|(name, id)| change.arguments.get(name) == Some(&json!(id)))
                });
                added.map_or_else(nothing_to_undo, |title| {
                    let phrase = TitlePhrase::from_name(&title.label());
                    self.follow_request(&Request::Remove { titles: vec![phrase], keep_files: false })
                })
            }
            None => nothing_to_undo(),
        }
    }

    /// Offers to add the title.
    fn find_and_list(&self, title: &FoundTitle) -> KeywordStep {
        let phrase = TitlePhrase::from_name(&title.label());
        let result = match self.search_result(&Request::Search(phrase.clone()), &phrase) {
            Ok(result) => result,
            Err(step) => return step,
        };
        match parse_titles(result.content) {
            Some(found) if !found.is_empty() => KeywordStep::Reply(format_title_list(&found)),
            _ => KeywordStep::Reply(result.reply_text(FAILED_REPLY)),
        }
    }

    fn act_on_title(&self, title: &FoundTitle, request: &Request) -> KeywordStep {
        match request {
            Request::Have(phrase) | Request::Search(phrase) if phrase.reference.is_some() => {
                self.call_and_reply("find_in_library", json_object([("query", json!(title.label()))]))
            }
            Request::Add(phrase) | Request::Search(phrase) => self.add_title(title, phrase),
            Request::RemovePronoun(_) | Request::Remove { .. } if title.library_reference().is_none() => {
                let phrase = TitlePhrase::from_name(&title.label());
                let titles = vec![phrase];
                self.remove_titles(&Request::Remove { titles: titles.clone(), keep_files: false }, &titles)
            }
            Request::RemovePronoun(_) | Request::Remove { .. } if self.offers_tool("request_removal") => {
                self.request_removals(std::slice::from_ref(title))
            }
            _ => match arguments::title_call(request, title) {
                Some((name, arguments)) => self.call_and_reply(name, arguments),
                None => KeywordStep::Reply(FAILED_REPLY.to_owned()),
            },
        }
    }

    /// Adds a title, or more of a series in the library.
    fn add_title(&self, title: &FoundTitle, phrase: &TitlePhrase) -> KeywordStep {
        // If the user may add titles, the tool replies instead, with the state of the search and the requester.
        if title.in_library && !self.offers_additions() {
            return KeywordStep::Reply(format!("You already have {}.", title.label()));
        }
        if let Some(more) = phrase.seasons.as_ref().filter(|_| title.in_library && title.is_series()) {
            let owned = TitlePhrase::from_name(&title.label());
            let result = match self.search_result(&Request::Have(owned.clone()), &owned) {
                Ok(result) => result,
                Err(step) => return step,
            };
            let found = parse_titles(result.content).unwrap_or_default();
            let reference =
                found.iter().find(|found| found.is_series()).and_then(FoundTitle::library_reference);
            if let Some(reference) = reference {
                return self.call_and_reply("get_more", arguments::more_arguments(reference, more));
            }
        }
        match arguments::addition_call(title, phrase) {
            Some((name, arguments)) => self.call_and_reply(name, arguments),
            None => KeywordStep::Reply(FAILED_REPLY.to_owned()),
        }
    }

    /// Calls the tool, then replies with its summary.
    fn call_and_reply(&self, name: &'static str, arguments: Map<String, Value>) -> KeywordStep {
        match self.find_result_or_call(name, arguments) {
            Ok(result) if result.is_error() => KeywordStep::Reply(result.reply_text(FAILED_REPLY)),
            Ok(result) if name == "media_details" => KeywordStep::Reply(replies::details_reply(&result)),
            Ok(result) => KeywordStep::Reply(result.reply_text("Done.")),
            Err(next) => next,
        }
    }

    /// Returns the result of the same call in this turn, or the step that makes the call.
    pub(super) fn find_result_or_call(
        &self,
        name: &'static str,
        arguments: Map<String, Value>,
    ) -> Result<PastResult<'_>, KeywordStep> {
        let mut results = past_results(self.turn);
        match results.find(|result| (result.name, result.arguments) == (name, &arguments)) {
            Some(result) => Ok(result),
            None if self.offers_tool(name) => Err(KeywordStep::Call { name, arguments }),
            None => Err(KeywordStep::Reply(replies::not_offered_reply(name).to_owned())),
        }
    }

    fn offers_additions(&self) -> bool {
        self.offers_tool("add_movie") || self.offers_tool("add_series")
    }

    /// Returns whether the request needs an argument that its tool has only with a media server. The tool would ignore it.
    fn lacks_argument(&self, request: &Request) -> bool {
        let argument = arguments::viewing_argument(request);
        argument.is_some_and(|(name, argument)| !offers_argument(&self.request.tools, name, argument))
    }

    pub(super) fn offers_tool(&self, name: &str) -> bool {
        self.request.tools.iter().any(|tool| tool.name == name)
    }
}

fn nothing_to_undo() -> KeywordStep {
    KeywordStep::Reply(NOTHING_TO_UNDO_REPLY.to_owned())
}

/// Returns whether the request only asks about a title, so that the only result answers it.
fn is_question(request: &Request) -> bool {
    request.only_reads() || matches!(request, Request::Follow(_) | Request::Unfollow(_))
}
