//! Next step in a turn of the keyword brain: a tool call or the reply text.

use serde_json::{Map, Value, json};

use super::hunt::{Choice, Deed, Found, Hunt, LONGEST_LIST, list, object, read_found, read_one};
use crate::conversation::model_request::{Message, ModelRequest, ToolChoice};
use crate::conversation::reference::TitleReference;
use crate::conversation::transcript::{CallId, MediaKind};
use crate::conversation::words::{self, Keyword, KeywordVerb, Seasons};

/// One step of the keyword brain.
#[derive(Debug, PartialEq)]
pub(super) enum Move {
    Say(String),
    Call { name: &'static str, arguments: Map<String, Value> },
}

/// Processes the lines of the last message in order, with deletions last, as their confirmation prompt ends the turn. A
/// line that cannot be parsed gets the reply `unread`.
pub(super) fn answer(request: &ModelRequest, unread: &'static str) -> Move {
    let Some(at) = request.messages.iter().rposition(|message| matches!(message, Message::User(_))) else {
        return Move::Say(unread.to_owned());
    };
    let (before, turn) = request.messages.split_at(at);
    let talk = Talk { request, before, turn, unread };
    let mut keywords: Vec<_> = own_lines(&turn[0]).map(words::keyword).collect();
    keywords.sort_by_key(|keyword| {
        matches!(keyword, Some(Keyword::Remove(_) | Keyword::Reference(KeywordVerb::Remove, _)))
    });
    let mut sayings = Vec::new();
    for keyword in keywords {
        let next = keyword.map_or_else(|| Move::Say(unread.to_owned()), |keyword| talk.follow(keyword));
        match next {
            Move::Say(text) if sayings.contains(&text) => {}
            Move::Say(text) => sayings.push(text),
            Move::Call { .. } if request.tool_choice == ToolChoice::None => {
                sayings.push(UNFINISHED.to_owned())
            }
            call @ Move::Call { .. } => return call,
        }
    }
    Move::Say(if sayings.is_empty() { unread.to_owned() } else { sayings.join("\n") })
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
fn own_lines(message: &Message) -> impl Iterator<Item = &str> {
    let text = match message {
        Message::User(text) => text.as_str(),
        Message::Assistant { .. } | Message::ToolResult { .. } => "",
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let start = lines.iter().rposition(|line| *line == CONTEXT_END).map_or(0, |end| end + 1);
    lines.into_iter().skip(start).filter(|line| !line.is_empty())
}

struct Talk<'a> {
    request: &'a ModelRequest,
    before: &'a [Message],
    /// Messages from the user's last message on.
    turn: &'a [Message],
    unread: &'static str,
}

impl Talk<'_> {
    fn follow(&self, keyword: Keyword<'_>) -> Move {
        match keyword {
            Keyword::Status => self.tell("check_status", Map::new()),
            Keyword::Upcoming => self.tell("upcoming", object([("days", json!(7))])),
            Keyword::Have(title) => self.tell("find_in_library", object([("query", json!(title))])),
            Keyword::TellMe => match self.spoken_of().and_then(|item| item.place().or_else(|| item.key())) {
                Some(item) => self.tell("tell_me_when_ready", item),
                None => Move::Say(WHICH_TITLE.to_owned()),
            },
            Keyword::Number(number) => self.pick(usize::from(number)),
            Keyword::Reference(verb, reference) => self.follow_reference(verb, reference),
            Keyword::Add(_) | Keyword::Search(_) | Keyword::Remove(_) => match Hunt::of(keyword) {
                Some(hunt) => self.hunt(&hunt),
                None => Move::Say(self.unread.to_owned()),
            },
        }
    }

    /// Searches for the title and acts on the matching one, or lists the results.
    fn hunt(&self, hunt: &Hunt<'_>) -> Move {
        let result = match self.call(hunt.tool(), hunt.arguments()) {
            Ok(result) => result,
            Err(next) => return next,
        };
        let Some(found) = read_found(result.content) else { return Move::Say(result.say(FAILED)) };
        match hunt.choose(&found) {
            Choice::Nothing => Move::Say(result.say(hunt.nothing())),
            Choice::One(item, deed) => self.act(item, &deed),
            Choice::List => Move::Say(list(&found)),
        }
    }

    /// Acts on the one title that the reference names, or asks the user to choose.
    fn follow_reference(&self, verb: KeywordVerb, reference: TitleReference) -> Move {
        let Some(item) = self.referred_to(reference) else { return Move::Say(which_title(verb).to_owned()) };
        let name = item.label();
        match verb {
            KeywordVerb::Add => self.act(&item, &Deed::Add),
            KeywordVerb::Search | KeywordVerb::Have => {
                self.tell("find_in_library", object([("query", json!(name))]))
            }
            KeywordVerb::Remove if item.place().is_some() => self.act(&item, &Deed::Remove),
            KeywordVerb::Remove => match Hunt::of(Keyword::Remove(&name)) {
                Some(hunt) => self.hunt(&hunt),
                None => Move::Say(self.unread.to_owned()),
            },
        }
    }

    /// Returns the title of a reference: the last one shown, if it was a single one of a fitting kind. Another line of
    /// the same message may have named a title that was not shown yet.
    fn referred_to(&self, reference: TitleReference) -> Option<Found> {
        if own_lines(&self.turn[0]).count() > 1 {
            return None;
        }
        let item = self.asked_about().or_else(|| self.spoken_of())?;
        match reference {
            TitleReference::One => Some(item),
            TitleReference::OneOf(kind) => Some(item).filter(|item| item.kind == kind),
            TitleReference::Several => None,
        }
    }

    /// Returns the one title that the last call before this message would have deleted, as an earlier search showed it.
    fn asked_about(&self) -> Option<Found> {
        let last = self.before.iter().rev().find_map(|message| match message {
            Message::ToolResult { call, .. } => Some(call),
            Message::User(_) | Message::Assistant { .. } => None,
        })?;
        let (name, arguments) = call_of(self.before, last)?;
        let [item] = arguments.get("items").filter(|_| name == "remove_media")?.as_array()?.as_slice() else {
            return None;
        };
        let shown = self.before.iter().rev().filter_map(|message| match message {
            Message::ToolResult { content, .. } => read_found(content),
            Message::User(_) | Message::Assistant { .. } => None,
        });
        shown.flatten().find(|found| found.place().is_some_and(|place| Some(&place) == item.as_object()))
    }

    /// Acts on item `number` of the list from the last search.
    fn pick(&self, number: usize) -> Move {
        let Some((hunt, found)) = self.last_list() else { return Move::Say(NO_LIST.to_owned()) };
        let mut shown = found.iter().take(LONGEST_LIST);
        match number.checked_sub(1).and_then(|index| shown.nth(index)) {
            Some(item) => self.act(item, &hunt.deed()),
            None => Move::Say(list(&found)),
        }
    }

    /// Returns the list that the last search before this message was answered with, if any: a search by a model, or one
    /// that found the exact title, has shown no numbers.
    fn last_list(&self) -> Option<(Hunt<'_>, Vec<Found>)> {
        let mut searches = self.before.iter().enumerate().rev().filter_map(|(at, message)| match message {
            Message::ToolResult { call, content, .. } => {
                let (name, arguments) = call_of(self.before, call)?;
                matches!(name, "search_media" | "find_in_library").then_some((at, name, arguments, content))
            }
            Message::User(_) | Message::Assistant { .. } => None,
        });
        let (at, name, arguments, content) = searches.next()?;
        let asked = self.before[..at].iter().rfind(|message| matches!(message, Message::User(_)))?;
        let mut hunts = own_lines(asked).filter_map(words::keyword).filter_map(Hunt::of);
        let hunt = hunts.find(|hunt| hunt.tool() == name && hunt.arguments() == *arguments)?;
        let found = read_found(content)?;
        match hunt.choose(&found) {
            Choice::List => Some((hunt, found)),
            Choice::One(..) | Choice::Nothing => None,
        }
    }

    /// Returns the title of the last result before this message.
    fn spoken_of(&self) -> Option<Found> {
        let result = self.before.iter().rev().find_map(|message| match message {
            Message::ToolResult { call, content, .. } => Some((call, content)),
            Message::User(_) | Message::Assistant { .. } => None,
        });
        let (call, content) = result?;
        let (_, arguments) = call_of(self.before, call)?;
        read_one(content, arguments.get("query").and_then(Value::as_str))
    }

    fn act(&self, item: &Found, deed: &Deed) -> Move {
        let (name, arguments) = match (deed, item.kind) {
            // For a user who may add titles, the tool reports more: the state of the search, and who requested the
            // title.
            (Deed::Add | Deed::AddSeasons(_), _) if item.in_library && !self.offers("add_movie") => {
                return Move::Say(format!("You already have {}.", item.label()));
            }
            (Deed::Add | Deed::AddSeasons(_), MediaKind::Movie) => {
                ("add_movie", item.tmdb.map(|tmdb| object([("tmdb", json!(tmdb))])))
            }
            (Deed::Add, MediaKind::Series) => {
                ("add_series", item.tvdb.map(|tvdb| object([("tvdb", json!(tvdb))])))
            }
            (Deed::AddSeasons(seasons), MediaKind::Series) => {
                let seasons = seasons_argument(seasons);
                ("add_series", item.tvdb.map(|tvdb| object([("tvdb", json!(tvdb)), ("seasons", seasons)])))
            }
            (Deed::Remove, _) if self.offers("request_removal") => ("request_removal", item.place()),
            (Deed::Remove, _) => ("remove_media", item.removal()),
        };
        match arguments {
            Some(arguments) => self.tell(name, arguments),
            None => Move::Say(FAILED.to_owned()),
        }
    }

    /// Calls the tool, then replies with its summary.
    fn tell(&self, name: &'static str, arguments: Map<String, Value>) -> Move {
        match self.call(name, arguments) {
            Ok(result) if result.failed() => Move::Say(result.say(FAILED)),
            Ok(result) => Move::Say(result.say("Done.")),
            Err(next) => next,
        }
    }

    /// Returns the result of this exact call in this turn, or the step that has to come first.
    fn call(&self, name: &'static str, arguments: Map<String, Value>) -> Result<Answered<'_>, Move> {
        let answered = self.turn.iter().find_map(|message| match message {
            Message::ToolResult { call, content, summary }
                if call_of(self.turn, call) == Some((name, &arguments)) =>
            {
                Some(Answered { content, summary: summary.as_deref() })
            }
            Message::User(_) | Message::Assistant { .. } | Message::ToolResult { .. } => None,
        });
        match answered {
            Some(answered) => Ok(answered),
            None if self.offers(name) => Err(Move::Call { name, arguments }),
            None => Err(Move::Say(not_offered(name).to_owned())),
        }
    }

    fn offers(&self, name: &str) -> bool {
        self.request.tools.iter().any(|tool| tool.name == name)
    }
}

/// Tool result as the request replays it.
struct Answered<'a> {
    content: &'a str,
    summary: Option<&'a str>,
}

impl Answered<'_> {
    fn failed(&self) -> bool {
        serde_json::from_str::<Map<String, Value>>(self.content).is_ok_and(|read| read.contains_key("error"))
    }

    fn say(&self, otherwise: &str) -> String {
        self.summary.filter(|summary| !summary.is_empty()).unwrap_or(otherwise).to_owned()
    }
}

fn seasons_argument(seasons: &Seasons) -> Value {
    match seasons {
        Seasons::All => json!("all"),
        Seasons::First => json!("first"),
        Seasons::Latest => json!("latest"),
        Seasons::Listed(numbers) => json!(numbers),
    }
}

fn which_title(verb: KeywordVerb) -> &'static str {
    match verb {
        KeywordVerb::Add => WHICH_ADDITION,
        KeywordVerb::Search | KeywordVerb::Have => WHICH_SEARCH,
        KeywordVerb::Remove => WHICH_REMOVAL,
    }
}

fn not_offered(tool: &str) -> &'static str {
    match tool {
        "remove_media" => "You can't delete titles here. Please ask an admin.",
        "add_movie" | "add_series" => "You can't add titles here. Please ask an admin.",
        _ => "That isn't possible here right now.",
    }
}

fn call_of<'m>(messages: &'m [Message], id: &CallId) -> Option<(&'m str, &'m Map<String, Value>)> {
    messages.iter().find_map(|message| match message {
        Message::Assistant { calls, .. } => {
            calls.iter().find(|call| call.id == *id).map(|call| (call.name.as_str(), &call.arguments))
        }
        Message::User(_) | Message::ToolResult { .. } => None,
    })
}
