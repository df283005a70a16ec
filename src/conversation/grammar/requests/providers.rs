//! Names of the streaming services that people ask about.

use super::token::{Token, phrase_cost};

/// Names of streaming services. A plus sign is no word, so "Disney+" is "disney".
const PROVIDERS: [&str; 46] = [
    "netflix",
    "amazon prime video",
    "amazon prime",
    "amazon video",
    "prime video",
    "amazon",
    "prime",
    "disney plus",
    "disney",
    "hulu",
    "hbo max",
    "hbo",
    "max",
    "apple tv plus",
    "apple tv",
    "apple plus",
    "paramount plus",
    "paramount",
    "peacock",
    "starz",
    "showtime",
    "amc plus",
    "amc",
    "mgm plus",
    "mubi",
    "the criterion channel",
    "criterion channel",
    "criterion",
    "crunchyroll",
    "funimation",
    "hidive",
    "shudder",
    "britbox",
    "acorn tv",
    "acorn",
    "tubi",
    "pluto tv",
    "pluto",
    "roku channel",
    "freevee",
    "kanopy",
    "hoopla",
    "youtube",
    "discovery plus",
    "bbc iplayer",
    "iplayer",
];

/// Parses all of the tokens as the name of a streaming service. Returns it with the cost of typing errors.
pub fn parse_provider(tokens: &[Token]) -> Option<(&'static str, usize)> {
    let found = PROVIDERS.iter().filter_map(|name| Some((*name, phrase_cost(tokens, name)?)));
    found.min_by_key(|(_, cost)| *cost)
}
