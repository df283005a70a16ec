//! Messages with several requests, and requests with several titles.

use super::known_titles::is_known_title;
use super::request::Request;
use super::single_request::{Reading, parse_single};
use super::title_phrase::TitlePhrase;
use super::token::{Token, join_raw};

/// Maximum number of requests in a line.
const MAX_REQUESTS: usize = 6;
/// Cost of each additional request, so that one request is preferred to two that explain the text as well.
const SPLIT_COST: usize = 1;

/// Parses all of the tokens as one request or as a sequence of requests.
pub fn parse_sequence(tokens: &[Token]) -> Option<Reading> {
    let reading = parse_parts(tokens, MAX_REQUESTS)?;
    let mut requests: Vec<Request> = reading.requests.into_iter().flat_map(split_titles).collect();
    if requests.len() > 1 {
        requests.retain(|request| !matches!(request, Request::Greeting | Request::Thanks));
    }
    name_references(&mut requests);
    (requests.len() <= MAX_REQUESTS).then_some(Reading { requests, cost: reading.cost })
}

/// Replaces references by the title that an earlier request of the line names: "do we have heat? if not add it".
fn name_references(requests: &mut [Request]) {
    let mut last: Option<TitlePhrase> = None;
    for request in requests {
        let Some(named) = &last else {
            last = request.title().filter(|title| title.reference.is_none()).cloned();
            continue;
        };
        let named = TitlePhrase { seasons: None, episode: None, ..named.clone() };
        match request {
            Request::Add(title)
            | Request::Have(title)
            | Request::Details { title, .. }
            | Request::Why(title)
                if title.reference.is_some() =>
            {
                *title = named;
            }
            Request::Follow(title @ None) => *title = Some(named),
            other => {
                last = other.title().filter(|title| title.reference.is_none()).cloned().or(last);
            }
        }
    }
}

fn parse_parts(tokens: &[Token], max_parts: usize) -> Option<Reading> {
    let mut best = parse_single(tokens);
    if max_parts <= 1 || is_known_title(&join_raw(tokens)) {
        return best;
    }
    for (end, next) in boundaries(tokens) {
        // "Add dune and get out" names two titles.
        if is_known_title(&join_raw(&tokens[next..])) {
            continue;
        }
        let Some(first) = parse_single(&tokens[..end]).filter(is_complete) else { continue };
        if best.as_ref().is_some_and(|best| best.cost <= first.cost + SPLIT_COST) {
            continue;
        }
        let Some(rest) = parse_parts(&tokens[next..], max_parts - 1).filter(is_complete) else { continue };
        let cost = first.cost + rest.cost + SPLIT_COST;
        if best.as_ref().is_none_or(|best| cost < best.cost) {
            best = Some(Reading { requests: [first.requests, rest.requests].concat(), cost });
        }
    }
    best
}

/// Returns whether the part is a request of its own. A number may belong to the list of another part.
fn is_complete(part: &Reading) -> bool {
    !part.requests.is_empty() && !part.requests.iter().any(|request| matches!(request, Request::Pick(_)))
}

/// Words between two requests or two titles.
fn is_separator(token: &Token) -> bool {
    matches!(token.word.as_str(), "and" | "then" | "plus" | "also" | "but" | "afterwards" | "or")
}

/// Returns the ends of possible parts, each with the start of the next part.
fn boundaries(tokens: &[Token]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for end in 1..tokens.len() {
        let separators = tokens[end..].iter().take_while(|token| is_separator(token)).count();
        let is_pause = tokens[end - 1].ends_item || tokens[end - 1].ends_sentence;
        let next = end + separators;
        let is_boundary =
            (is_pause || separators > 0) && next < tokens.len() && !is_separator(&tokens[end - 1]);
        if is_boundary && !is_inside_known_title(tokens, end) {
            found.push((end, next));
        }
    }
    found
}

/// Returns whether a well-known title extends over the position.
fn is_inside_known_title(tokens: &[Token], position: usize) -> bool {
    (0..position)
        .any(|start| (position + 1..=tokens.len()).any(|end| is_known_title(&join_raw(&tokens[start..end]))))
}

/// Splits a request with several titles. Several removals are one request with several titles.
fn split_titles(request: Request) -> Vec<Request> {
    match request {
        Request::Add(title) => each_title(&title, Request::Add),
        Request::Have(title) => each_title(&title, Request::Have),
        Request::Follow(Some(title)) => each_title(&title, |title| Request::Follow(Some(title))),
        Request::Remove { titles, keep_files } => {
            let titles: Vec<TitlePhrase> = titles.iter().flat_map(split_title).collect();
            match titles.iter().find(|title| title.reference.is_some()) {
                Some(reference) => vec![Request::RemovePronoun(reference.clone())],
                None => vec![Request::Remove { titles, keep_files }],
            }
        }
        other => vec![other],
    }
}

fn each_title(title: &TitlePhrase, request: impl Fn(TitlePhrase) -> Request) -> Vec<Request> {
    split_title(title).into_iter().map(request).collect()
}

/// Splits "dune, heat and the bear" into titles. A title that contains "and" and is well known stays whole.
fn split_title(phrase: &TitlePhrase) -> Vec<TitlePhrase> {
    let words = strip_both(&phrase.full_words);
    let mut parts: Vec<&[Token]> = Vec::new();
    let mut start = 0;
    for (end, next) in boundaries(words) {
        parts.push(&words[start..end]);
        start = next;
    }
    parts.push(&words[start..]);
    // "Get rid of shrek 3, its rubbish" gives a reason.
    if let Some(reason) = parts.iter().skip(1).position(|part| is_clause(part)) {
        parts.truncate(reason + 1);
        if let [only] = parts.as_slice() {
            return vec![TitlePhrase::parse(only)];
        }
    }
    let is_description = |part: &&[Token]| TitlePhrase::only_describes(part) || is_number(part);
    if parts.len() < 2 || parts.iter().any(is_description) {
        return vec![phrase.clone()];
    }
    parts.into_iter().map(TitlePhrase::parse).collect()
}

/// Words that begin a clause rather than a title.
const CLAUSE_WORDS: [&str; 15] = [
    "its", "it", "because", "cause", "thats", "i", "ive", "we", "weve", "they", "theyre", "keep", "leave",
    "nobody", "im",
];

/// Returns whether the words after the first title are a clause, such as a reason.
fn is_clause(tokens: &[Token]) -> bool {
    let starts_clause = tokens.first().is_some_and(|first| CLAUSE_WORDS.contains(&first.word.as_str()));
    starts_clause && tokens.len() > 1 && !is_known_title(&join_raw(tokens))
}

/// Strips the noun of a list: "both dune and heat".
fn strip_both(tokens: &[Token]) -> &[Token] {
    match tokens {
        [first, rest @ ..] if first.word == "both" && rest.len() > 2 => rest,
        all => all,
    }
}

fn is_number(tokens: &&[Token]) -> bool {
    tokens.iter().all(|token| super::numbers::parse_number(&token.word).is_some())
        && !is_known_title(&join_raw(tokens))
}
