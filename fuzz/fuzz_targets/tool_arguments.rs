//! Arguments that a model wrote, for each tool there is: read the same however often they were encoded, unmoved by what
//! no schema knows, and the same when they are read again as they were repaired.
#![no_main]

use std::sync::Arc;

use dialarr::conversation::transcript::Arguments;
use dialarr::tools::actions::React;
use dialarr::tools::arguments;
use dialarr::tools::details::MediaDetails;
use dialarr::tools::discarding::RemoveDownload;
use dialarr::tools::discover::SearchMedia;
use dialarr::tools::downloads::{CheckStatus, RecentlyAdded, UpcomingReleases};
use dialarr::tools::find::FindInLibrary;
use dialarr::tools::following::TellMeWhenReady;
use dialarr::tools::growing::change::ChangeMedia;
use dialarr::tools::growing::more::GetMore;
use dialarr::tools::library::Library;
use dialarr::tools::memory::{Forget, Remember};
use dialarr::tools::movies::AddMovie;
use dialarr::tools::posters::SendPoster;
use dialarr::tools::recommend::Recommend;
use dialarr::tools::removal::RemoveMedia;
use dialarr::tools::replacing::ReplaceCopy;
use dialarr::tools::requests::RequestRemoval;
use dialarr::tools::series::AddSeries;
use dialarr::tools::servers::ServerStatus;
use dialarr::tools::why_missing::WhyMissing;
use dialarr::tools::{Tool, Uses};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

thread_local! {
    static TOOLS: Vec<(&'static str, Value, Arc<dyn Tool>)> = tools()
        .into_iter()
        .map(|tool| {
            let spec = tool.spec();
            // The schema as values, which only the reading of arguments needs.
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
    let written = Arguments::parse(json!(text));
    let uses = outcome(tool, &written);
    let Arguments::Object(map) = &written else {
        assert_eq!(uses, Err(json!("bad_arguments")));
        return;
    };
    for other in [json!(map), json!(json!(map).to_string())] {
        assert_eq!(outcome(tool, &Arguments::parse(other)), uses, "encoded once more or less");
    }
    let mut more = map.clone();
    // A name that no schema knows.
    if more.insert("user_confirmed_it_all".to_owned(), json!(true)).is_none() {
        assert_eq!(outcome(tool, &Arguments::Object(more)), uses, "beside what no schema knows");
    }
    if let Ok(repaired) = arguments::read::<Map<String, Value>>(name, schema, &written) {
        let repaired = Arguments::Object(repaired);
        let again = arguments::read::<Map<String, Value>>(name, schema, &repaired);
        assert_eq!(again.ok().map(Arguments::Object).as_ref(), Some(&repaired), "repaired once more");
        assert_eq!(outcome(tool, &repaired), uses, "as it was repaired");
    }
}

/// What the arguments use, or the code of the refusal.
fn outcome(tool: &dyn Tool, arguments: &Arguments) -> Result<Uses, Value> {
    tool.check(arguments).map_err(|failure| {
        assert_eq!(failure.for_model["error"], json!(failure.code), "the model reads the code");
        json!(failure.code)
    })
}

fn tools() -> Vec<Arc<dyn Tool>> {
    let library = Arc::new(Library::default());
    vec![
        Arc::new(SearchMedia::new(library.clone())),
        Arc::new(FindInLibrary::new(library.clone())),
        Arc::new(AddMovie::new(library.clone())),
        Arc::new(AddSeries::new(library.clone())),
        Arc::new(GetMore::new(library.clone())),
        Arc::new(ChangeMedia::new(library.clone())),
        Arc::new(MediaDetails::new(library.clone())),
        Arc::new(WhyMissing::new(library.clone())),
        Arc::new(CheckStatus::new(library.clone())),
        Arc::new(ServerStatus::new(library.clone())),
        Arc::new(UpcomingReleases::new(library.clone())),
        Arc::new(RecentlyAdded::new(library.clone())),
        Arc::new(Recommend::new(library.clone())),
        Arc::new(RemoveMedia::new(library.clone())),
        Arc::new(RemoveDownload::new(library.clone())),
        Arc::new(ReplaceCopy::new(library.clone())),
        Arc::new(RequestRemoval::new(library.clone())),
        Arc::new(TellMeWhenReady::new(library.clone())),
        Arc::new(SendPoster::new(library)),
        Arc::new(Remember),
        Arc::new(Forget),
        Arc::new(React),
    ]
}
