//! Arguments of a model for every tool: parsed alike in any encoding, unaffected by unknown keys, and unchanged after
//! repair.
#![no_main]

use std::sync::Arc;

use dialarr::conversation::transcript::ToolArguments;
use dialarr::engine::PicturePolicy;
use dialarr::tool_list;
use dialarr::tools::arguments::parsing::parse_arguments;
use dialarr::tools::library::ArrInstances;
use dialarr::tools::{CallReferences, Tool};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

thread_local! {
    static TOOLS: Vec<(&'static str, Value, Arc<dyn Tool>)> = tool_list::all_tools(&Arc::new(ArrInstances::default()), PicturePolicy::Sent)
        .into_iter()
        .map(|tool| {
            let spec = tool.spec();
            // The schema as values, which only argument parsing needs.
            let schema = serde_json::from_str(spec.parameters.text()).expect("a schema is JSON");
            (spec.name, schema, tool)
        })
        .collect();
}

fuzz_target!(|data: &[u8]| {
    let [which, text @ ..] = data else { return };
    let Ok(text) = str::from_utf8(text) else { return };
    TOOLS.with(|tools| {
        let (name, schema, tool) = &tools[usize::from(*which) % tools.len()];
        check(name, schema, &**tool, text);
    });
});

fn check(name: &str, schema: &Value, tool: &dyn Tool, text: &str) {
    let written = ToolArguments::parse(json!(text));
    let uses = outcome(tool, &written);
    let ToolArguments::Object(map) = &written else {
        assert_eq!(uses, Err(json!("bad_arguments")));
        return;
    };
    for other in [json!(map), json!(json!(map).to_string())] {
        assert_eq!(outcome(tool, &ToolArguments::parse(other)), uses, "encoded once more or less");
    }
    let mut more = map.clone();
    // A key that no schema contains.
    if more.insert("user_confirmed_it_all".to_owned(), json!(true)).is_none() {
        assert_eq!(outcome(tool, &ToolArguments::Object(more)), uses, "beside what no schema knows");
    }
    if let Ok(repaired) = parse_arguments::<Map<String, Value>>(name, schema, &written) {
        let repaired = ToolArguments::Object(repaired);
        let again = parse_arguments::<Map<String, Value>>(name, schema, &repaired);
        assert_eq!(again.ok().map(ToolArguments::Object).as_ref(), Some(&repaired), "repaired once more");
        assert_eq!(outcome(tool, &repaired), uses, "as it was repaired");
    }
}

/// Returns the uses of the arguments, or the code of the refusal.
fn outcome(tool: &dyn Tool, arguments: &ToolArguments) -> Result<CallReferences, Value> {
    tool.check_arguments(arguments).map_err(|failure| {
        assert_eq!(failure.for_model["error"], json!(failure.code), "the model reads the code");
        json!(failure.code)
    })
}
