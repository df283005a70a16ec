use serde_json::{Map, Value, json};

use super::KeywordResponder;
use super::next_step::{KeywordStep, next_keyword_step};
use super::replies::{
    FAILED_REPLY, NO_LIST_REPLY, NOTHING_TO_UNDO_REPLY, UNFINISHED_REPLY, WHICH_ADDITION_REPLY,
    WHICH_REMOVAL_REPLY, WHICH_SEARCH_REPLY, WHICH_TITLE_REPLY, WHOLE_SEASONS_REPLY, WHOLE_TITLES_REPLY,
};
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

/// Builder of the request for the next step.
struct RequestBuilder {
    request: ModelRequest,
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn text(body: &str) -> RequestBuilder {
    let tools = TOOLS.map(tool);
    let request = ModelRequest {
        system: String::new(),
        tools: tools.to_vec().into(),
        tool_choice: ToolChoice::Auto,
        messages: Vec::new(),
        max_output_tokens: 100,
        reply_schema: None,
    };
    RequestBuilder { request }.text(body)
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

impl RequestBuilder {
    fn text(mut self, body: &str) -> Self {
        let context = "[context]\nIt is Friday.\nadd spam\n[/context]\n";
        self.request.messages.push(ModelMessage::User(format!("{context}{body}")).into());
        self
    }

    /// Adds a call and its result.
    fn with_result(mut self, name: &str, arguments: Value, content: &Value, summary: &str) -> Self {
        let id = CallId::from_position(TurnId(1), u32::try_from(self.request.messages.len()).unwrap(), 0);
        let call = PromptCall { id: id.clone(), name: name.to_owned(), arguments: object(arguments) };
        let summary = (!summary.is_empty()).then(|| summary.to_owned());
        self.request.messages.push(ModelMessage::Assistant { text: String::new(), calls: vec![call] }.into());
        self.request
            .messages
            .push(ModelMessage::ToolResult { call: id, content: content.to_string(), summary }.into());
        self
    }

    fn with_catalog_search(self, query: &str, results: &Value) -> Self {
        let content = json!({ "results": results, "total": 7 });
        self.with_result("search_media", json!({ "query": query }), &content, "")
    }

    fn with_library_search(self, query: &str, results: &Value) -> Self {
        let content = json!({ "results": results, "total": 2 });
        self.with_result("find_in_library", json!({ "query": query }), &content, "")
    }

    fn with_reply(mut self, text: &str) -> Self {
        self.request
            .messages
            .push(ModelMessage::Assistant { text: text.to_owned(), calls: Vec::new() }.into());
        self
    }

    fn with_tool(mut self, name: &'static str) -> Self {
        self.request.tools = [self.request.tools.to_vec(), vec![tool(name)]].concat().into();
        self
    }

    /// Offers the tools and the arguments that need a media server.
    fn with_media_server(self) -> Self {
        let others =
            self.without_tool("find_in_library").with_tool("recently_watched").with_tool("link_account");
        others.with_argument("find_in_library", "watched").with_argument("recommend", "in_library")
    }

    fn with_argument(mut self, name: &'static str, argument: &str) -> Self {
        let properties = object(json!({ argument: {} }));
        let spec = ToolSpec { parameters: json!({ "properties": properties }).into(), ..tool(name) };
        self.request.tools = [self.request.tools.to_vec(), vec![spec]].concat().into();
        self
    }

    fn without_additions(self) -> Self {
        self.without_tool("add_movie").without_tool("add_series")
    }

    fn without_tool(mut self, tool: &str) -> Self {
        let others = self.request.tools.iter().filter(|spec| spec.name != tool);
        self.request.tools = others.cloned().collect::<Vec<_>>().into();
        self
    }
}

fn reply(text: &str) -> KeywordStep {
    KeywordStep::Reply(text.to_owned())
}

fn tool_call(name: &'static str, arguments: Value) -> KeywordStep {
    KeywordStep::Call { name, arguments: object(arguments) }
}

#[track_caller]
fn check(request: RequestBuilder, expected: &KeywordStep) {
    let RequestBuilder { request } = request;
    assert_eq!(next_keyword_step(&request, KeywordResponder::ModelUnavailable), *expected);
}

fn dune_results() -> Value {
    json!([
        { "type": "movie", "title": "Dune", "year": 2021, "tmdb": 438631, "in_library": true },
        { "type": "movie", "title": "Dune", "year": 1984, "tmdb": 841, "in_library": false },
        { "type": "movie", "title": "Dune: Part Two", "year": 2024, "tmdb": 693134, "in_library": false },
    ])
}

fn matrix_results() -> Value {
    json!([
        { "type": "movie", "title": "The Matrix", "year": 1999, "tmdb": 603, "in_library": false },
        { "type": "movie", "title": "The Matrix Reloaded", "year": 2003, "tmdb": 604, "in_library": false },
    ])
}

fn office_results() -> Value {
    json!([
        { "type": "series", "title": "The Office", "year": 2005, "tvdb": 73244, "seasons": 9, "in_library": false },
    ])
}

fn library_dunes() -> Value {
    json!([
        { "type": "movie", "id": 7, "instance": "radarr", "title": "Dune", "year": 2021, "size_gb": 21.4, "on_disk": true },
        { "type": "movie", "id": 9, "instance": "radarr", "title": "Dune: Part Two", "year": 2024, "size_gb": 0, "on_disk": false },
    ])
}

const DUNE_LIST: &str = "1. Dune (2021), have it\n2. Dune (1984)\n3. Dune: Part Two (2024)\nReply 1-3";

#[test]
fn add_searches_first() {
    check(text("pls add the matrix"), &tool_call("search_media", json!({ "query": "the matrix" })));
}

#[test]
fn only_exact_match_is_added() {
    let request = || text("add the matrix").with_catalog_search("the matrix", &matrix_results());
    check(request(), &tool_call("add_movie", json!({ "tmdb": 603 })));
    let added = request().with_result(
        "add_movie",
        json!({ "tmdb": 603 }),
        &json!({ "added": true }),
        "Added The Matrix (1999).",
    );
    check(added, &reply("Added The Matrix (1999)."));
}

#[test]
fn series_is_added_with_the_named_seasons() {
    for (typed, seasons) in [
        ("season 2", json!([2])),
        ("seasons 1-3", json!([1, 2, 3])),
        ("all", json!("all")),
        ("first", json!("first")),
        ("latest", json!("latest")),
    ] {
        check(
            text(&format!("add the office {typed}")).with_catalog_search("the office", &office_results()),
            &tool_call("add_series", json!({ "tvdb": 73244, "seasons": seasons })),
        );
    }
}

#[test]
fn season_question_is_the_summary_of_the_tool() {
    let arguments = json!({ "tvdb": 73244 });
    let request = || text("add the office").with_catalog_search("the office", &office_results());
    check(request(), &tool_call("add_series", arguments.clone()));
    let question = "The Office (2005) has 9 seasons. Which ones?";
    check(
        request().with_result("add_series", arguments, &json!({ "error": "which_seasons" }), question),
        &reply(question),
    );
}

#[test]
fn answer_completes_the_addition_that_asked_for_seasons() {
    let question = "The Office (2005) has 9 seasons. Which ones?";
    let refusal = json!({ "error": "which_seasons" });
    let asked = || {
        text("add the office in 4k")
            .with_catalog_search("the office", &office_results())
            .with_result("add_series", json!({ "tvdb": 73244, "quality": "4K" }), &refusal, question)
            .with_reply(question)
    };
    for (answer, seasons) in
        [("all", json!("all")), ("just the first one", json!("first")), ("1 and 2", json!([1, 2]))]
    {
        let arguments = json!({ "tvdb": 73244, "quality": "4K", "seasons": seasons });
        check(asked().text(answer), &tool_call("add_series", arguments));
    }
    check(asked().text("status"), &tool_call("check_status", json!({})));
    let two_questions =
        asked().text("add it").with_result("add_series", json!({ "tvdb": 1 }), &refusal, question);
    let two_questions = two_questions.with_result("add_series", json!({ "tvdb": 2 }), &refusal, question);
    check(two_questions.with_reply(question).text("2"), &reply(NO_LIST_REPLY));
}

#[test]
fn title_may_end_like_a_season_choice() {
    let results =
        json!([{ "type": "movie", "title": "Women First", "year": 2017, "tmdb": 5, "in_library": false }]);
    check(
        text("add women first").with_catalog_search("women", &results),
        &tool_call("add_movie", json!({ "tmdb": 5 })),
    );
}

#[test]
fn existing_title_is_reported_by_the_tool_if_the_user_may_add() {
    let request = || text("add dune 2021").with_catalog_search("dune 2021", &dune_results());
    check(request().without_additions(), &reply("You already have Dune (2021)."));
    check(request(), &tool_call("add_movie", json!({ "tmdb": 438631 })));
}

#[test]
fn year_selects_the_exact_match() {
    let request = text("add Dune (1984)").with_catalog_search("Dune 1984", &dune_results());
    check(request, &tool_call("add_movie", json!({ "tmdb": 841 })));
}

#[test]
fn results_without_one_exact_match_are_listed() {
    check(text("add dune").with_catalog_search("dune", &dune_results()), &reply(DUNE_LIST));
    check(
        text("add matri").with_catalog_search("matri", &matrix_results()),
        &reply("1. The Matrix (1999)\n2. The Matrix Reloaded (2003)\nReply 1 or 2"),
    );
    check(
        text("search the office").with_catalog_search("the office", &office_results()),
        &reply("1. The Office (2005)\nReply 1"),
    );
}

#[test]
fn list_has_at_most_five_entries() {
    let movie = |year| json!({ "type": "movie", "title": "Robin Hood", "year": year, "tmdb": year });
    let found = || json!((2001..=2007).map(movie).collect::<Vec<_>>());
    let list = "1. Robin Hood (2001)\n2. Robin Hood (2002)\n3. Robin Hood (2003)\n4. Robin Hood (2004)\n\
        5. Robin Hood (2005)\nReply 1-5";
    check(text("search robin hood").with_catalog_search("robin hood", &found()), &reply(list));
    check(
        text("search robin hood").with_catalog_search("robin hood", &found()).with_reply(list).text("6"),
        &reply(list),
    );
}

#[test]
fn empty_result_is_reported() {
    check(
        text("add qwerty").with_catalog_search("qwerty", &json!([])),
        &reply("I found nothing by that name."),
    );
    check(
        text("remove qwerty").with_library_search("qwerty", &json!([])),
        &reply("I found nothing by that name in the library."),
    );
    let summary = "Radarr can't be reached right now.";
    let request = text("add dune").with_result(
        "search_media",
        json!({ "query": "dune" }),
        &json!({ "results": [], "total": 0 }),
        summary,
    );
    check(request, &reply(summary));
}

#[test]
fn number_selects_from_the_last_list() {
    let request = || text("add dune").with_catalog_search("dune", &dune_results()).with_reply(DUNE_LIST);
    check(request().text("3."), &tool_call("add_movie", json!({ "tmdb": 693134 })));
    check(request().text("1"), &tool_call("add_movie", json!({ "tmdb": 438631 })));
    check(request().text("4"), &reply(DUNE_LIST));
    let seasons = text("add office season 2")
        .with_catalog_search("office", &office_results())
        .with_reply("1. The Office (2005)\nReply 1");
    check(seasons.text("1"), &tool_call("add_series", json!({ "tvdb": 73244, "seasons": [2] })));
}

#[test]
fn number_without_a_list_adds_nothing() {
    check(text("2"), &reply(NO_LIST_REPLY));
    let added = text("add the matrix")
        .with_catalog_search("the matrix", &matrix_results())
        .with_reply("Added The Matrix (1999).");
    check(added.text("2"), &reply(NO_LIST_REPLY));
    let model_search = text("anything like dune?")
        .with_catalog_search("dune", &dune_results())
        .with_reply("Dune is from 2021.");
    check(model_search.text("2"), &reply(NO_LIST_REPLY));
}

#[test]
fn only_exact_match_is_removed() {
    check(text("delete dune"), &tool_call("find_in_library", json!({ "query": "dune" })));
    let item = json!({ "type": "movie", "id": 7, "instance": "radarr" });
    check(
        text("delete dune").with_library_search("dune", &library_dunes()),
        &tool_call("remove_media", json!({ "items": [item], "delete_files": true })),
    );
}

fn library_heat() -> Value {
    json!([{ "type": "movie", "id": 3, "instance": "radarr", "title": "Heat", "year": 1995, "on_disk": true }])
}

#[test]
fn pronoun_means_the_single_title_shown_last() {
    let removal = tool_call(
        "remove_media",
        json!({ "items": [{ "type": "movie", "id": 3, "instance": "radarr" }], "delete_files": true }),
    );
    let shown = || {
        text("have heat")
            .with_library_search("heat", &library_heat())
            .with_reply("In the library: Heat (1995).")
    };
    for typed in ["delete it", "Get rid of her.", "remove the movie", "delete that one"] {
        check(shown().text(typed), &removal);
    }
    let removal_arguments =
        json!({ "items": [{ "type": "movie", "id": 3, "instance": "radarr" }], "delete_files": true });
    let declined = shown().text("delete heat").with_result(
        "remove_media",
        removal_arguments,
        &json!({ "status": "not_done" }),
        "",
    );
    check(declined.with_reply("OK, kept.").text("delete it"), &removal);

    let found = || {
        text("search the office")
            .with_catalog_search("the office", &office_results())
            .with_reply("1. The Office (2005)\nReply 1")
    };
    check(found().text("add it"), &tool_call("add_series", json!({ "tvdb": 73244 })));
    check(found().text("have it?"), &tool_call("find_in_library", json!({ "query": "The Office (2005)" })));
    let label = json!({ "query": "The Office 2005" });
    check(found().text("delete it"), &tool_call("find_in_library", label));
}

#[test]
fn pronoun_without_exactly_one_title_asks_which() {
    let shown = || {
        text("have heat")
            .with_library_search("heat", &library_heat())
            .with_reply("In the library: Heat (1995).")
    };
    for typed in ["delete all", "remove everything", "remove them", "delete the show"] {
        check(shown().text(typed), &reply(WHICH_REMOVAL_REPLY));
    }
    for (typed, which) in [
        ("delete it", WHICH_REMOVAL_REPLY),
        ("get rid of him", WHICH_REMOVAL_REPLY),
        ("add it", WHICH_ADDITION_REPLY),
        ("search it", WHICH_SEARCH_REPLY),
        ("have it?", WHICH_SEARCH_REPLY),
    ] {
        check(text(typed), &reply(which));
        check(
            text("have dun?")
                .with_library_search("dun", &library_dunes())
                .with_reply("In the library: Dune.")
                .text(typed),
            &reply(which),
        );
    }
    let two_lines = shown().text("have dune\ndelete it").with_library_search("dune", &library_dunes());
    check(two_lines, &reply(&format!("Done.\n{WHICH_REMOVAL_REPLY}")));
}

#[test]
fn title_spelled_like_a_pronoun_needs_a_year_type_or_quotes() {
    for (typed, arguments) in [
        ("delete It (2017)", json!({ "query": "It 2017" })),
        ("delete the movie it", json!({ "query": "it", "type": "movie" })),
        ("remove \"It\"", json!({ "query": "It" })),
    ] {
        check(text(typed), &tool_call("find_in_library", arguments));
    }
}

#[test]
fn number_after_a_removal_list_removes() {
    let list = "1. Dune (2021)\n2. Dune: Part Two (2024), wanted\nReply 1 or 2";
    let request = || text("remove dun").with_library_search("dun", &library_dunes());
    check(request(), &reply(list));
    let item = json!({ "type": "movie", "id": 9, "instance": "radarr" });
    check(
        request().with_reply(list).text("2"),
        &tool_call("remove_media", json!({ "items": [item], "delete_files": true })),
    );
}

#[test]
fn questions_are_answered_with_the_summary_of_the_tool() {
    let downloading = "Paddington (2014) 62%, 12 min left.";
    check(text("queue"), &tool_call("check_status", json!({})));
    check(
        text("status").with_result("check_status", json!({}), &json!({ "downloads": [] }), downloading),
        &reply(downloading),
    );
    check(text("upcoming"), &tool_call("upcoming", json!({ "days": 7 })));
    check(text("have heat?"), &tool_call("find_in_library", json!({ "query": "heat" })));
}

#[test]
fn follow_applies_to_the_last_mentioned_title() {
    let existing =
        json!({ "status": "already_exists", "type": "movie", "title": "Dune", "year": 2021, "tmdb": 438631 });
    let add_reply =
        text("add dune").with_result("add_movie", json!({ "tmdb": 438631 }), &existing, "Dune is there.");
    let follow = tool_call("tell_me_when_ready", json!({ "type": "movie", "tmdb": 438631 }));
    check(add_reply.with_reply("Dune is there.").text("Me too!"), &follow);

    let follow = tool_call("tell_me_when_ready", json!({ "type": "movie", "id": 7, "instance": "radarr" }));
    let found = || {
        text("have dune?").with_library_search("dune", &library_dunes()).with_reply("In the library: Dune.")
    };
    check(found().text("tell me when it's ready"), &follow);
    check(found().text("let me know please"), &follow);
}

#[test]
fn follow_without_a_title_asks_which() {
    check(text("me too"), &reply(WHICH_TITLE_REPLY));
    let found = text("have dun?")
        .with_library_search("dun", &library_dunes())
        .with_reply("In the library: Dune, Dune: Part Two.");
    check(found.text("tell me"), &reply(WHICH_TITLE_REPLY));
}

#[test]
fn failed_call_is_reported() {
    let failed = |summary| {
        text("status").with_result("check_status", json!({}), &json!({ "error": "unreachable" }), summary)
    };
    check(failed("Sonarr can't be reached right now."), &reply("Sonarr can't be reached right now."));
    check(failed(""), &reply(FAILED_REPLY));
    let search = text("add dune").with_result(
        "search_media",
        json!({ "query": "dune" }),
        &json!({ "error": "timeout" }),
        "",
    );
    check(search, &reply(FAILED_REPLY));
}

#[test]
fn missing_tool_is_reported() {
    let request =
        text("delete dune").with_library_search("dune", &library_dunes()).without_tool("remove_media");
    check(request, &reply("You can't delete titles here. Please ask an admin."));
}

#[test]
fn removal_request_replaces_a_missing_right_to_delete() {
    let request = text("delete dune")
        .with_library_search("dune", &library_dunes())
        .without_tool("remove_media")
        .with_tool("request_removal");
    check(request, &tool_call("request_removal", json!({ "type": "movie", "id": 7, "instance": "radarr" })));
}

#[test]
fn several_messages_of_a_turn_are_all_answered() {
    let request = || {
        text("add the matrix\nadd dune\nadd the matrix").with_catalog_search("the matrix", &matrix_results())
    };
    check(request(), &tool_call("add_movie", json!({ "tmdb": 603 })));
    let added =
        || request().with_result("add_movie", json!({ "tmdb": 603 }), &json!({}), "Added The Matrix (1999).");
    check(added(), &tool_call("search_media", json!({ "query": "dune" })));
    check(
        added().with_catalog_search("dune", &dune_results()),
        &reply(&format!("Added The Matrix (1999).\n{DUNE_LIST}")),
    );
}

#[test]
fn deletion_runs_after_the_other_messages() {
    check(text("delete dune\nadd heat"), &tool_call("search_media", json!({ "query": "heat" })));
}

#[tokio::test]
async fn unknown_message_gets_examples_that_fit_the_user() {
    let newest = json!({ "sort": "newest" });
    check(text("ur useless"), &tool_call("find_in_library", newest.clone()));
    let answered = || {
        let content = json!({ "results": library_dunes(), "total": 2 });
        text("ur useless").with_result("find_in_library", newest.clone(), &content, "")
    };
    check(
        answered(),
        &reply(
            "The assistant is off right now. I did not understand that. You can text \"add Paddington\" or \"do we have Dune\".",
        ),
    );
    let reader = answered().without_additions().request;
    let response = KeywordResponder::NoModel.next_response(&reader, &mut |_| {}).await.unwrap();
    assert_eq!(
        response.text,
        "I did not understand that. You can text \"what's downloading\" or \"do we have Dune\"."
    );
}

#[test]
fn last_step_of_a_turn_makes_no_call() {
    let mut request = text("status");
    request.request.tool_choice = ToolChoice::None;
    check(request, &reply(UNFINISHED_REPLY));
}

#[tokio::test]
async fn streamed_deltas_equal_the_response() {
    let mut deltas = Vec::new();
    let step = KeywordResponder::NoModel
        .next_response(&text("status").request, &mut |delta| deltas.push(delta))
        .await
        .unwrap();
    let delta =
        ResponseDelta::ToolCall { ord: 0, name: Some("check_status".to_owned()), arguments: "{}".to_owned() };
    assert_eq!(deltas, [delta]);
    let call = RawCall { name: "check_status".to_owned(), arguments: ToolArguments::parse(json!({})) };
    assert_eq!((step.text.as_str(), step.calls), ("", vec![call]));
}

fn library_bear() -> Value {
    json!([
        { "type": "series", "id": 5, "instance": "sonarr", "title": "The Bear", "year": 2022, "seasons": 4, "episodes": "28 of 38" },
    ])
}

#[test]
fn question_about_a_title_finds_it_in_the_library_first() {
    let bear = json!({ "type": "series", "id": 5, "instance": "sonarr" });
    for (typed, query, tool) in [
        ("why isnt the bear here", "the bear", "why_missing"),
        ("is the bear done yet", "the bear", "why_missing"),
        ("when is the bear back", "the bear", "media_details"),
        ("whats the bear about", "the bear", "media_details"),
        ("tell me when the bear is ready", "the bear", "tell_me_when_ready"),
    ] {
        check(text(typed), &tool_call("find_in_library", json!({ "query": query })));
        let found = text(typed).with_library_search(query, &library_bear()).with_tool("why_missing");
        check(found.with_tool("media_details"), &tool_call(tool, bear.clone()));
    }
    let stop = json!({ "type": "series", "id": 5, "instance": "sonarr", "stop": true });
    let unfollow = text("unfollow the bear").with_library_search("the bear", &library_bear());
    check(unfollow, &tool_call("tell_me_when_ready", stop));
}

#[test]
fn request_without_a_title_calls_its_tool() {
    for (typed, tool, arguments) in [
        ("disk space", "server_status", json!({})),
        ("whats new", "recently_added", json!({ "days": 7 })),
        ("whats on tonight", "upcoming", json!({ "days": 1 })),
        ("whats missing", "find_in_library", json!({ "only": "missing" })),
        ("suggest a funny movie", "recommend", json!({ "genre": "comedy", "type": "movie" })),
        ("something like heat", "recommend", json!({ "like": "heat" })),
        ("forget that i like westerns", "forget", json!({ "what": "i like westerns" })),
    ] {
        let tools = ["server_status", "recently_added", "recommend", "forget"];
        let request = tools.into_iter().fold(text(typed), RequestBuilder::with_tool);
        check(request, &tool_call(tool, arguments));
    }
}

#[test]
fn recommendation_has_a_mood_if_its_tool_takes_one() {
    for (typed, arguments) in [
        ("suggest a funny movie", json!({ "mood": "funny", "type": "movie" })),
        ("something hilarious", json!({ "mood": "funny" })),
        ("something scary", json!({ "mood": "scary" })),
        ("a feel-good movie", json!({ "mood": "feel_good", "type": "movie" })),
        ("uplifting movies", json!({ "mood": "feel_good", "type": "movie" })),
        ("movies based on a true story", json!({ "mood": "true_story", "type": "movie" })),
        ("a spooky christmas movie", json!({ "mood": "christmas", "genre": "horror", "type": "movie" })),
        ("funny sci-fi shows", json!({ "mood": "funny", "genre": "science fiction", "type": "series" })),
        ("got any good thrillers", json!({ "genre": "thriller" })),
        ("something not scary", json!({ "genre": "not scary" })),
        ("a short movie", json!({ "max_minutes": 100, "type": "movie" })),
        ("something like severance but funny", json!({ "like": "severance", "mood": "funny" })),
    ] {
        let request = text(typed).with_argument("recommend", "mood");
        check(request, &tool_call("recommend", arguments));
    }
}

#[test]
fn recommendation_without_moods_has_a_genre() {
    for (typed, arguments) in [
        ("scary movies with tom hanks", json!({ "genre": "horror", "person": "tom hanks", "type": "movie" })),
        ("trending shows", json!({ "trending": true, "type": "series" })),
        ("new on netflix", json!({ "provider": "netflix" })),
    ] {
        check(text(typed).with_tool("recommend"), &tool_call("recommend", arguments));
    }
}

#[test]
fn watching_is_asked_of_its_tools() {
    for (typed, tool, arguments) in [
        ("what was i watching", "recently_watched", json!({})),
        ("what did Alex watch", "recently_watched", json!({ "by": "alex" })),
        ("unwatched movies", "find_in_library", json!({ "watched": "unwatched", "type": "movie" })),
        ("what have i finished", "find_in_library", json!({ "watched": "watched" })),
        ("what did i start", "find_in_library", json!({ "watched": "started" })),
        (
            "what has nobody watched for a year",
            "find_in_library",
            json!({ "watched_by": "anyone", "not_watched_days": 365 }),
        ),
        (
            "suggest a funny movie we have",
            "recommend",
            json!({ "in_library": true, "genre": "comedy", "type": "movie" }),
        ),
        ("link jellyfin sam", "link_account", json!({ "name": "sam" })),
        ("link jellyfin", "link_account", json!({})),
        ("unlink jellyfin", "link_account", json!({ "unlink": true })),
        ("link seerr sam", "link_account", json!({ "name": "sam", "seerr": true })),
        ("unlink seerr", "link_account", json!({ "unlink": true, "seerr": true })),
    ] {
        check(text(typed).with_media_server(), &tool_call(tool, arguments));
    }
}

#[test]
fn answer_about_watching_is_the_summary_of_the_tool() {
    let stopped = "You stopped watching Heat (1995) at 41%.";
    let request = text("where did i stop").with_media_server();
    let results = json!({ "results": [] });
    check(request.with_result("recently_watched", json!({}), &results, stopped), &reply(stopped));

    let unknown = "I don't know who you are on Jellyfin. Text LINK JELLYFIN and your name there.";
    let request = text("unwatched movies").with_media_server();
    let arguments = json!({ "watched": "unwatched", "type": "movie" });
    let refused =
        request.with_result("find_in_library", arguments, &json!({ "error": "not_known" }), unknown);
    check(refused, &reply(unknown));
}

#[test]
fn watching_is_unknown_without_a_media_server() {
    for typed in ["what was i watching", "unwatched movies", "what has nobody watched for a year"] {
        check(text(typed), &reply("I can't see what people watch here."));
    }
    let recommendation = text("suggest a movie we have").with_tool("recommend");
    check(recommendation, &reply("I can't suggest titles of the library here."));
    for typed in ["link jellyfin sam", "link plex", "unlink plex"] {
        check(text(typed), &reply("I can't link accounts here."));
    }
}

#[test]
fn question_whether_a_title_was_watched_shows_its_details() {
    let heat = json!({ "type": "movie", "id": 3, "instance": "radarr" });
    let about_alex = json!({ "type": "movie", "id": 3, "instance": "radarr", "watched_by": "alex" });
    for (typed, details) in [
        ("did i watch heat", &heat),
        ("have i seen heat", &heat),
        ("did i finish heat", &heat),
        ("did alex finish heat", &about_alex),
        ("continue watching heat", &heat),
    ] {
        check(text(typed), &tool_call("find_in_library", json!({ "query": "heat" })));
        let found = text(typed).with_library_search("heat", &library_heat()).with_tool("media_details");
        check(found, &tool_call("media_details", details.clone()));
    }
}

#[test]
fn seasons_of_an_owned_series_are_more_of_it() {
    let owned = json!([
        { "type": "series", "title": "The Bear", "year": 2022, "tvdb": 403294, "seasons": 4, "in_library": true },
    ]);
    let request =
        || text("add the bear season 4").with_tool("get_more").with_catalog_search("the bear", &owned);
    check(request(), &tool_call("find_in_library", json!({ "query": "The Bear 2022" })));
    let more = json!({ "type": "series", "id": 5, "instance": "sonarr", "seasons": ["4"] });
    let found = request().with_library_search("The Bear 2022", &library_bear());
    check(found, &tool_call("get_more", more));
}

#[test]
fn several_titles_are_removed_with_one_prompt() {
    let request = || text("delete heat and the bear").with_library_search("heat", &library_heat());
    check(request(), &tool_call("find_in_library", json!({ "query": "the bear" })));
    let items = json!([
        { "type": "movie", "id": 3, "instance": "radarr" },
        { "type": "series", "id": 5, "instance": "sonarr" },
    ]);
    check(
        request().with_library_search("the bear", &library_bear()),
        &tool_call("remove_media", json!({ "items": items, "delete_files": true })),
    );
}

#[test]
fn season_and_kept_files_are_passed_on() {
    let item = json!({ "type": "series", "id": 5, "instance": "sonarr", "season": 2 });
    check(
        text("delete season 2 of the bear").with_library_search("the bear", &library_bear()),
        &tool_call("remove_media", json!({ "items": [item], "delete_files": true })),
    );
    let seasons =
        [2, 3].map(|season| json!({ "type": "series", "id": 5, "instance": "sonarr", "season": season }));
    check(
        text("delete seasons 2 and 3 of the bear").with_library_search("the bear", &library_bear()),
        &tool_call("remove_media", json!({ "items": seasons, "delete_files": true })),
    );
    let item = json!({ "type": "movie", "id": 3, "instance": "radarr" });
    check(
        text("remove heat but keep the files").with_library_search("heat", &library_heat()),
        &tool_call("remove_media", json!({ "items": [item], "delete_files": false })),
    );
}

#[test]
fn part_that_cannot_be_deleted_alone_deletes_nothing() {
    for typed in ["delete s2e3 of the bear", "delete the latest season of the bear"] {
        check(text(typed).with_library_search("the bear", &library_bear()), &reply(WHOLE_SEASONS_REPLY));
    }
    let request = text("delete season 2 of the bear").with_library_search("the bear", &library_bear());
    let member = request.without_tool("remove_media").with_tool("request_removal");
    check(member, &reply(WHOLE_TITLES_REPLY));
}

#[test]
fn undo_of_an_addition_asks_for_the_deletion() {
    let added = || {
        text("add the matrix")
            .with_catalog_search("the matrix", &matrix_results())
            .with_result("add_movie", json!({ "tmdb": 603 }), &json!({ "status": "added" }), "Added.")
            .with_reply("Added The Matrix (1999).")
            .text("undo")
    };
    let query = json!({ "query": "The Matrix 1999" });
    check(added(), &tool_call("find_in_library", query));
    let matrix =
        json!([{ "type": "movie", "id": 4, "instance": "radarr", "title": "The Matrix", "year": 1999 }]);
    let items = json!([{ "type": "movie", "id": 4, "instance": "radarr" }]);
    check(
        added().with_library_search("The Matrix 1999", &matrix),
        &tool_call("remove_media", json!({ "items": items, "delete_files": true })),
    );
    check(text("undo"), &reply(NOTHING_TO_UNDO_REPLY));
    let picked = text("add dune")
        .with_catalog_search("dune", &dune_results())
        .with_reply(DUNE_LIST)
        .text("2")
        .with_result("add_movie", json!({ "tmdb": 841 }), &json!({ "status": "added" }), "Added.")
        .with_reply("Added Dune (1984).");
    check(picked.text("undo"), &tool_call("find_in_library", json!({ "query": "Dune 1984" })));
}

#[test]
fn undo_deletes_no_title_that_was_there_before() {
    let existing = text("add the matrix")
        .with_catalog_search("the matrix", &matrix_results())
        .with_result(
            "add_movie",
            json!({ "tmdb": 603 }),
            &json!({ "status": "already_exists" }),
            "You already have The Matrix (1999).",
        )
        .with_reply("You already have The Matrix (1999).");
    check(existing.text("undo"), &reply(NOTHING_TO_UNDO_REPLY));
}

#[test]
fn undo_of_a_deletion_offers_to_add_the_title() {
    let items = json!([{ "type": "movie", "id": 3, "instance": "radarr" }]);
    let deleted = || {
        text("delete heat")
            .with_library_search("heat", &library_heat())
            .with_result(
                "remove_media",
                json!({ "items": items, "delete_files": true }),
                &json!({ "status": "deleted" }),
                "Deleted Heat (1995).",
            )
            .with_reply("Delete Heat (1995)? Reply YES or NO.")
            .text("yes")
            .with_reply("Deleted Heat (1995).")
            .text("status")
            .with_result("check_status", json!({}), &json!({}), "Nothing.")
            .with_reply("Nothing is downloading.")
            .text("undo")
    };
    check(deleted(), &tool_call("search_media", json!({ "query": "Heat 1995" })));
    let catalog =
        json!([{ "type": "movie", "title": "Heat", "year": 1995, "tmdb": 949, "in_library": false }]);
    let list = "1. Heat (1995)\nReply 1";
    let offered = || deleted().with_catalog_search("Heat 1995", &catalog);
    check(offered(), &reply(list));
    check(offered().with_reply(list).text("1"), &tool_call("add_movie", json!({ "tmdb": 949 })));
}

#[test]
fn number_answers_only_the_last_message() {
    let list = text("add dune").with_catalog_search("dune", &dune_results()).with_reply(DUNE_LIST);
    let later = list.text("status").with_result("check_status", json!({}), &json!({}), "Nothing.");
    check(later.with_reply("Nothing is downloading.").text("2"), &reply(NO_LIST_REPLY));
}

#[test]
fn catalog_decides_whether_a_text_is_a_title() {
    let get_out =
        json!([{ "type": "movie", "title": "Get Out", "year": 2017, "tmdb": 419430, "in_library": true }]);
    check(text("get out"), &tool_call("search_media", json!({ "query": "get out" })));
    check(
        text("get out").with_catalog_search("get out", &get_out),
        &reply("1. Get Out (2017), have it\nReply 1"),
    );
    check(
        text("get out").with_catalog_search("get out", &json!([])),
        &tool_call("search_media", json!({ "query": "out" })),
    );
    check(text("twin peaks"), &tool_call("search_media", json!({ "query": "twin peaks" })));
    let unknown = text("twin peaks").with_catalog_search("twin peaks", &json!([]));
    check(unknown, &tool_call("find_in_library", json!({ "sort": "newest" })));
}

#[test]
fn list_marks_owned_titles_and_tells_types_apart() {
    let results = json!([
        { "type": "movie", "title": "Fargo", "year": 1996, "tmdb": 275, "in_library": true },
        { "type": "series", "title": "Fargo", "year": 2014, "tvdb": 269613, "in_library": false },
    ]);
    check(
        text("add fargo").with_catalog_search("fargo", &results),
        &reply("1. Fargo (1996), movie, have it\n2. Fargo (2014), show\nReply 1 or 2"),
    );
}
