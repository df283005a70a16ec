//! Builder of requests about what people have watched on the media servers.

use super::discovery_slots::DiscoverySlot;
use super::form::WatchingForm;
use super::known_titles::is_known_title;
use super::limits::parse_length;
use super::pattern::{Match, Slot};
use super::request::Request;
use super::token::{Token, join_raw};
use super::watched_titles::{WatchedBy, WatchedState, WatchedTitles};
use super::watching_slots::{parse_days, parse_kind};

/// Builds the request of a form. Returns `None` if the slots do not fit.
pub fn build_watching_request(form: WatchingForm, found: &Match, words: &[Token]) -> Option<Request> {
    let person = found.slot(Slot::Person, words).map(|name| join_raw(name).to_lowercase());
    let state = match form {
        WatchingForm::Recent => return Some(Request::RecentlyWatched { by: person }),
        WatchingForm::LinkAccount => return account_request(found, words, false),
        WatchingForm::LinkSeerr => return account_request(found, words, true),
        WatchingForm::UnlinkAccount => return Some(Request::UnlinkAccount { is_seerr: false }),
        WatchingForm::Tonight => return Some(tonight_request(found, words)),
        WatchingForm::UnlinkSeerr => return Some(Request::UnlinkAccount { is_seerr: true }),
        WatchingForm::Unwatched | WatchingForm::UnwatchedByAll => WatchedState::Unwatched,
        WatchingForm::Started => WatchedState::Started,
        WatchingForm::Watched => WatchedState::Watched,
        WatchingForm::NotSince | WatchingForm::NotSinceByAll => {
            WatchedState::NotSince(found.slot(Slot::Days, words).and_then(parse_days)?)
        }
    };
    let by = match (form, person) {
        (WatchingForm::UnwatchedByAll | WatchingForm::NotSinceByAll, _) => WatchedBy::Anyone,
        (_, Some(name)) => WatchedBy::Person(name),
        (_, None) => WatchedBy::User,
    };
    let kind = found.slot(Slot::Kind, words).and_then(parse_kind);
    Some(Request::WatchedTitles(WatchedTitles { state, by, kind }))
}

/// Builds the request to link an account. "I am legend on plex" names a title.
fn account_request(found: &Match, words: &[Token], is_seerr: bool) -> Option<Request> {
    let names_title = (1..words.len()).any(|end| is_known_title(&join_raw(&words[..end])));
    let name = found.slot(Slot::Text, words).or_else(|| found.slot(Slot::Person, words)).map(join_raw);
    (!names_title).then_some(Request::LinkAccount { name, is_seerr })
}

/// Builds the request for something that several people can watch.
fn tonight_request(found: &Match, words: &[Token]) -> Request {
    let length = found.slot(Slot::Discovery(DiscoverySlot::Length), words);
    Request::Tonight {
        people: people_names(found, words),
        minutes: length.and_then(parse_length),
        kind: found.slot(Slot::Kind, words).and_then(parse_kind),
    }
}

/// Returns the names of people. Words that neither a comma nor another word separates are one name, such as "sam smith".
fn people_names(found: &Match, words: &[Token]) -> Vec<String> {
    let mut names: Vec<(String, usize)> = Vec::new();
    for (_, range) in found.slots.iter().filter(|(slot, _)| *slot == Slot::Person) {
        let name = join_raw(&words[range.clone()]).to_lowercase();
        let follows = |end: usize| end == range.start && !words[end - 1].ends_item;
        match names.last_mut() {
            Some((last, end)) if follows(*end) => {
                *last = format!("{last} {name}");
                *end = range.end;
            }
            Some(_) | None => names.push((name, range.end)),
        }
    }
    names.into_iter().map(|(name, _)| name).collect()
}
