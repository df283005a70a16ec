use serde_json::{Map, Value, json};

use super::KeywordResponder;
use super::next_step::{
    FAILED, KeywordStep, NO_LIST, UNFINISHED, WHICH_ADDITION, WHICH_REMOVAL, WHICH_SEARCH, WHICH_TITLE,
    next_keyword_step,
};
use crate::conversation::grammar::keyword_grammar::{KEYWORDS_TEXT, MODEL_OFF_TEXT};
use crate::conversation::model_request::{ModelMessage, ModelRequest, PromptCall, ToolChoice};
use crate::conversation::transcript::{CallId, EffectLevel, ToolArguments, ToolAudience, ToolSpec, TurnId};
use crate::llm::{Model, RawCall, ResponseDelta};

const TOOLS: [&str; 8] = [
    "tell_me_when_ready",
    "search_media",
    "find_in_library",
    "add_movie",
    "add_series",
    "check_status",
    "upcoming",
    "remove_media",
];

/// Conversation at the time of the next step.
struct Story {
    request: ModelRequest,
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn text(body: &str) -> Story {
    let tools = TOOLS.map(tool);
    let request = ModelRequest {
        system: String::new(),
        tools: tools.to_vec(),
        tool_choice: ToolChoice::Auto,
        messages: Vec::new(),
        max_output_tokens: 100,
        reply_schema: None,
    };
    Story { request }.text(body)
}

fn tool(name: &'static str) -> ToolSpec {
    ToolSpec {
        name,
        description: "",
        effect_level: EffectLevel::Read,
        audience: ToolAudience::Everyone,
        parameters: json!({}).into(),
    }
}

impl Story {
    fn text(mut self, body: &str) -> Self {
        let context = "[context]\nIt is Friday.\nadd spam\n[/context]\n";
        self.request.messages.push(ModelMessage::User(format!("{context}{body}")));
        self
    }

    /// Adds a call and its result.
    fn ran(mut self, name: &str, arguments: Value, content: &Value, summary: &str) -> Self {
        let id = CallId::from_position(TurnId(1), u32::try_from(self.request.messages.len()).unwrap(), 0);
        let call = PromptCall { id: id.clone(), name: name.to_owned(), arguments: object(arguments) };
        let summary = (!summary.is_empty()).then(|| summary.to_owned());
        self.request.messages.push(ModelMessage::Assistant { text: String::new(), calls: vec![call] });
        self.request.messages.push(ModelMessage::ToolResult {
            call: id,
            content: content.to_string(),
            summary,
        });
        self
    }

    fn searched(self, query: &str, results: &Value) -> Self {
        let content = json!({ "results": results, "total": 7 });
        self.ran("search_media", json!({ "query": query }), &content, "")
    }

    fn looked_up(self, query: &str, results: &Value) -> Self {
        let content = json!({ "results": results, "total": 2 });
        self.ran("find_in_library", json!({ "query": query }), &content, "")
    }

    fn replied(mut self, text: &str) -> Self {
        self.request.messages.push(ModelMessage::Assistant { text: text.to_owned(), calls: Vec::new() });
        self
    }

    fn with(mut self, name: &'static str) -> Self {
        self.request.tools.push(tool(name));
        self
    }

    fn without(mut self, tool: &str) -> Self {
        self.request.tools.retain(|spec| spec.name != tool);
        self
    }
}

fn says(text: &str) -> KeywordStep {
    KeywordStep::Reply(text.to_owned())
}

fn calls(name: &'static str, arguments: Value) -> KeywordStep {
    KeywordStep::Call { name, arguments: object(arguments) }
}

#[track_caller]
fn check(story: Story, expected: &KeywordStep) {
    let Story { request } = story;
    assert_eq!(next_keyword_step(&request, MODEL_OFF_TEXT), *expected);
}

fn dunes() -> Value {
    json!([
        { "type": "movie", "title": "Dune", "year": 2021, "tmdb": 438631, "in_library": true },
        { "type": "movie", "title": "Dune", "year": 1984, "tmdb": 841, "in_library": false },
        { "type": "movie", "title": "Dune: Part Two", "year": 2024, "tmdb": 693134, "in_library": false },
    ])
}

fn matrix() -> Value {
    json!([
        { "type": "movie", "title": "The Matrix", "year": 1999, "tmdb": 603, "in_library": false },
        { "type": "movie", "title": "The Matrix Reloaded", "year": 2003, "tmdb": 604, "in_library": false },
    ])
}

fn offices() -> Value {
    json!([
        { "type": "series", "title": "The Office", "year": 2005, "tvdb": 73244, "seasons": 9, "in_library": false },
    ])
}

fn owned() -> Value {
    json!([
        { "type": "movie", "id": 7, "instance": "radarr", "title": "Dune", "year": 2021, "size_gb": 21.4, "on_disk": true },
        { "type": "movie", "id": 9, "instance": "radarr", "title": "Dune: Part Two", "year": 2024, "size_gb": 0, "on_disk": false },
    ])
}

const DUNE_LIST: &str = "1. Dune (2021)\n2. Dune (1984)\n3. Dune: Part Two (2024)\nReply 1-3";

#[test]
fn add_searches_first() {
    check(text("pls add the matrix"), &calls("search_media", json!({ "query": "the matrix" })));
}

#[test]
fn only_exact_match_is_added() {
    let story = || text("add the matrix").searched("the matrix", &matrix());
    check(story(), &calls("add_movie", json!({ "tmdb": 603 })));
    let added = story().ran(
        "add_movie",
        json!({ "tmdb": 603 }),
        &json!({ "added": true }),
        "Added The Matrix (1999).",
    );
    check(added, &says("Added The Matrix (1999)."));
}

#[test]
fn show_is_added_with_the_named_seasons() {
    for (typed, seasons) in [
        ("season 2", json!([2])),
        ("seasons 1-3", json!([1, 2, 3])),
        ("all", json!("all")),
        ("first", json!("first")),
        ("latest", json!("latest")),
    ] {
        check(
            text(&format!("add the office {typed}")).searched("the office", &offices()),
            &calls("add_series", json!({ "tvdb": 73244, "seasons": seasons })),
        );
    }
}

#[test]
fn season_question_uses_the_text_of_the_tool() {
    let arguments = json!({ "tvdb": 73244 });
    let story = || text("add the office").searched("the office", &offices());
    check(story(), &calls("add_series", arguments.clone()));
    let asked = "The Office (2005) has 9 seasons. Which ones?";
    check(story().ran("add_series", arguments, &json!({ "error": "which_seasons" }), asked), &says(asked));
}

#[test]
fn title_that_ends_like_a_season_choice_is_still_a_title() {
    let ladies =
        json!([{ "type": "movie", "title": "Ladies First", "year": 2017, "tmdb": 5, "in_library": false }]);
    check(text("add ladies first").searched("ladies", &ladies), &calls("add_movie", json!({ "tmdb": 5 })));
}

#[test]
fn existing_title_is_reported_by_the_tool_or_without_the_right() {
    let story = || text("add dune 2021").searched("dune 2021", &dunes());
    check(story().without("add_movie"), &says("You already have Dune (2021)."));
    check(story(), &calls("add_movie", json!({ "tmdb": 438631 })));
}

#[test]
fn year_narrows_the_matches() {
    let story = text("add Dune (1984)").searched("Dune (1984)", &dunes());
    check(story, &calls("add_movie", json!({ "tmdb": 841 })));
}

#[test]
fn several_matches_or_none_make_a_list() {
    check(text("add dune").searched("dune", &dunes()), &says(DUNE_LIST));
    check(
        text("add matrix").searched("matrix", &matrix()),
        &says("1. The Matrix (1999)\n2. The Matrix Reloaded (2003)\nReply 1 or 2"),
    );
    check(
        text("search the office").searched("the office", &offices()),
        &says("1. The Office (2005)\nReply 1"),
    );
}

#[test]
fn list_has_at_most_five_entries() {
    let film = |year| json!({ "type": "movie", "title": "Robin Hood", "year": year, "tmdb": year });
    let found = || json!((2001..=2007).map(film).collect::<Vec<_>>());
    let list = "1. Robin Hood (2001)\n2. Robin Hood (2002)\n3. Robin Hood (2003)\n4. Robin Hood (2004)\n\
        5. Robin Hood (2005)\nReply 1-5";
    check(text("search robin hood").searched("robin hood", &found()), &says(list));
    check(text("search robin hood").searched("robin hood", &found()).replied(list).text("6"), &says(list));
}

#[test]
fn empty_result_is_reported() {
    check(text("add qwerty").searched("qwerty", &json!([])), &says("I found nothing by that name."));
    check(
        text("remove qwerty").looked_up("qwerty", &json!([])),
        &says("I found nothing by that name in the library."),
    );
    let down = "Radarr can't be reached right now.";
    let story = text("add dune").ran(
        "search_media",
        json!({ "query": "dune" }),
        &json!({ "results": [], "total": 0 }),
        down,
    );
    check(story, &says(down));
}

#[test]
fn number_selects_from_the_last_list() {
    let story = || text("add dune").searched("dune", &dunes()).replied(DUNE_LIST);
    check(story().text("3."), &calls("add_movie", json!({ "tmdb": 693134 })));
    check(story().text("1"), &calls("add_movie", json!({ "tmdb": 438631 })));
    check(story().text("4"), &says(DUNE_LIST));
    let seasons =
        text("add office season 2").searched("office", &offices()).replied("1. The Office (2005)\nReply 1");
    check(seasons.text("1"), &calls("add_series", json!({ "tvdb": 73244, "seasons": [2] })));
}

#[test]
fn number_without_a_list_adds_nothing() {
    check(text("2"), &says(NO_LIST));
    let added = text("add the matrix").searched("the matrix", &matrix()).replied("Added The Matrix (1999).");
    check(added.text("2"), &says(NO_LIST));
    let talk = text("anything like dune?").searched("dune", &dunes()).replied("Dune is from 2021.");
    check(talk.text("2"), &says(NO_LIST));
}

#[test]
fn remove_holds_the_only_exact_match() {
    check(text("delete dune"), &calls("find_in_library", json!({ "query": "dune" })));
    let item = json!({ "type": "movie", "id": 7, "instance": "radarr" });
    check(
        text("delete dune").looked_up("dune", &owned()),
        &calls("remove_media", json!({ "items": [item], "delete_files": true })),
    );
}

fn heat() -> Value {
    json!([{ "type": "movie", "id": 3, "instance": "radarr", "title": "Heat", "year": 1995, "on_disk": true }])
}

#[test]
fn pronoun_means_the_single_title_shown_last() {
    let removal = calls(
        "remove_media",
        json!({ "items": [{ "type": "movie", "id": 3, "instance": "radarr" }], "delete_files": true }),
    );
    let shown = || text("have heat").looked_up("heat", &heat()).replied("In the library: Heat (1995).");
    for typed in ["delete it", "Get rid of her.", "remove the movie", "delete that one"] {
        check(shown().text(typed), &removal);
    }
    let held = json!({ "items": [{ "type": "movie", "id": 3, "instance": "radarr" }], "delete_files": true });
    let kept = shown().text("delete heat").ran("remove_media", held, &json!({ "status": "not_done" }), "");
    check(kept.replied("OK, kept.").text("delete it"), &removal);

    let found = || {
        text("search the office").searched("the office", &offices()).replied("1. The Office (2005)\nReply 1")
    };
    check(found().text("add it"), &calls("add_series", json!({ "tvdb": 73244 })));
    check(found().text("have it?"), &calls("find_in_library", json!({ "query": "The Office (2005)" })));
    let label = json!({ "query": "The Office (2005)" });
    check(found().text("delete it"), &calls("find_in_library", label));
}

#[test]
fn pronoun_without_exactly_one_title_asks_which() {
    let shown = || text("have heat").looked_up("heat", &heat()).replied("In the library: Heat (1995).");
    for typed in ["delete all", "remove everything", "remove them", "delete the show"] {
        check(shown().text(typed), &says(WHICH_REMOVAL));
    }
    for (typed, which) in [
        ("delete it", WHICH_REMOVAL),
        ("get rid of him", WHICH_REMOVAL),
        ("add it", WHICH_ADDITION),
        ("search it", WHICH_SEARCH),
        ("have it?", WHICH_SEARCH),
    ] {
        check(text(typed), &says(which));
        check(
            text("have dun?").looked_up("dun", &owned()).replied("In the library: Dune.").text(typed),
            &says(which),
        );
    }
    let other = shown().text("have dune\ndelete it").looked_up("dune", &owned());
    check(other, &says(&format!("Done.\n{WHICH_REMOVAL}")));
}

#[test]
fn title_spelled_like_a_pronoun_is_removed_if_marked() {
    for (typed, query) in
        [("delete It (2017)", "It (2017)"), ("delete the movie it", "it"), ("remove \"It\"", "It")]
    {
        check(text(typed), &calls("find_in_library", json!({ "query": query })));
    }
}

#[test]
fn number_after_a_removal_list_removes() {
    let list = "1. Dune (2021)\n2. Dune: Part Two (2024)\nReply 1 or 2";
    let story = || text("remove dun").looked_up("dun", &owned());
    check(story(), &says(list));
    let item = json!({ "type": "movie", "id": 9, "instance": "radarr" });
    check(
        story().replied(list).text("2"),
        &calls("remove_media", json!({ "items": [item], "delete_files": true })),
    );
}

#[test]
fn queries_are_answered_with_the_text_of_the_tool() {
    let downloading = "Paddington (2014) 62%, 12 min left.";
    check(text("queue"), &calls("check_status", json!({})));
    check(
        text("status").ran("check_status", json!({}), &json!({ "downloads": [] }), downloading),
        &says(downloading),
    );
    check(text("upcoming"), &calls("upcoming", json!({ "days": 7 })));
    check(text("have heat?"), &calls("find_in_library", json!({ "query": "heat" })));
}

#[test]
fn tell_me_follows_the_title_mentioned_last() {
    let there =
        json!({ "status": "already_exists", "type": "movie", "title": "Dune", "year": 2021, "tmdb": 438631 });
    let found_title = text("add dune").ran("add_movie", json!({ "tmdb": 438631 }), &there, "Dune is there.");
    let follow = calls("tell_me_when_ready", json!({ "type": "movie", "tmdb": 438631 }));
    check(found_title.replied("Dune is there.").text("Me too!"), &follow);

    let follow = calls("tell_me_when_ready", json!({ "type": "movie", "id": 7, "instance": "radarr" }));
    let found = || text("have dune?").looked_up("dune", &owned()).replied("In the library: Dune.");
    check(found().text("tell me when it's ready"), &follow);
    check(found().text("let me know please"), &follow);
}

#[test]
fn tell_me_without_a_title_asks_which() {
    check(text("me too"), &says(WHICH_TITLE));
    let found = text("have dun?").looked_up("dun", &owned()).replied("In the library: Dune, Dune: Part Two.");
    check(found.text("tell me"), &says(WHICH_TITLE));
}

#[test]
fn failed_tool_is_reported_plainly() {
    let failed =
        |summary| text("status").ran("check_status", json!({}), &json!({ "error": "unreachable" }), summary);
    check(failed("Sonarr can't be reached right now."), &says("Sonarr can't be reached right now."));
    check(failed(""), &says(FAILED));
    let search =
        text("add dune").ran("search_media", json!({ "query": "dune" }), &json!({ "error": "timeout" }), "");
    check(search, &says(FAILED));
}

#[test]
fn missing_tool_is_reported_plainly() {
    let story = text("delete dune").looked_up("dune", &owned()).without("remove_media");
    check(story, &says("You can't delete titles here. Please ask an admin."));
}

#[test]
fn removal_request_replaces_a_missing_right_to_delete() {
    let story =
        text("delete dune").looked_up("dune", &owned()).without("remove_media").with("request_removal");
    check(story, &calls("request_removal", json!({ "type": "movie", "id": 7, "instance": "radarr" })));
}

#[test]
fn several_messages_of_a_turn_are_all_answered() {
    let story = || text("add the matrix\nadd dune\nadd the matrix").searched("the matrix", &matrix());
    check(story(), &calls("add_movie", json!({ "tmdb": 603 })));
    let added = || story().ran("add_movie", json!({ "tmdb": 603 }), &json!({}), "Added The Matrix (1999).");
    check(added(), &calls("search_media", json!({ "query": "dune" })));
    check(added().searched("dune", &dunes()), &says(&format!("Added The Matrix (1999).\n{DUNE_LIST}")));
}

#[test]
fn deletion_waits_for_the_other_messages() {
    check(text("delete dune\nadd heat"), &calls("search_media", json!({ "query": "heat" })));
}

#[tokio::test]
async fn unknown_message_lists_keywords_and_mentions_an_unavailable_model() {
    for (responder, expected) in
        [(KeywordResponder::NoModel, KEYWORDS_TEXT), (KeywordResponder::ModelUnavailable, MODEL_OFF_TEXT)]
    {
        let request = text("what should we watch tonight?").request;
        assert_eq!(responder.next_response(&request, &mut |_| {}).await.unwrap().text, expected);
    }
}

#[test]
fn last_step_of_a_turn_is_a_plain_reply() {
    let mut story = text("status");
    story.request.tool_choice = ToolChoice::None;
    check(story, &says(UNFINISHED));
}

#[tokio::test]
async fn streamed_deltas_equal_the_response() {
    let mut deltas = Vec::new();
    let step = KeywordResponder::NoModel
        .next_response(&text("status").request, &mut |delta| deltas.push(delta))
        .await
        .unwrap();
    let piece =
        ResponseDelta::ToolCall { ord: 0, name: Some("check_status".to_owned()), arguments: "{}".to_owned() };
    assert_eq!(deltas, [piece]);
    let call = RawCall { name: "check_status".to_owned(), arguments: ToolArguments::parse(json!({})) };
    assert_eq!((step.text.as_str(), step.calls), ("", vec![call]));
}
