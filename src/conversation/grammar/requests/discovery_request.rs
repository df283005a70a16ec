//! Builder of requests for something to watch.

use super::discovery_slots::{DiscoverySlot, parse_noun};
use super::form::DiscoveryForm;
use super::known_titles::is_known_title;
use super::limits::{parse_length, parse_rating};
use super::moods::parse_theme;
use super::pattern::{Match, Slot};
use super::providers::parse_provider;
use super::recommendation::Recommendation;
use super::request::Request;
use super::token::{Token, join_raw};
use super::years::{parse_decade, parse_years};
use crate::conversation::transcript::MediaKind;

const ARTIST: &[DiscoverySlot] = &[DiscoverySlot::Artist];
const YEARS: &[DiscoverySlot] = &[DiscoverySlot::Years, DiscoverySlot::Decade];
const PROVIDER: &[DiscoverySlot] = &[DiscoverySlot::Provider];
const LENGTH: &[DiscoverySlot] = &[DiscoverySlot::Length];
const RATING: &[DiscoverySlot] = &[DiscoverySlot::Rating];
/// Filters of which the tool takes one.
const SINGLE_FILTERS: [&[DiscoverySlot]; 5] = [ARTIST, YEARS, PROVIDER, LENGTH, RATING];

/// Builds the request of a form. Returns `None` if the slots do not fit, or two of them exclude each other.
pub fn build_discovery_request(form: DiscoveryForm, found: &Match, words: &[Token]) -> Option<Request> {
    let found = whole_title(found, words);
    let slots = Slots { found: &found, words };
    let themes: Vec<String> = slots
        .all(&[DiscoverySlot::Theme, DiscoverySlot::Genre])
        .filter_map(|words| parse_theme(words).map(|theme| theme.text))
        .collect();
    let recommendation = Recommendation {
        mood: (!themes.is_empty()).then(|| themes.join(" ")),
        kind: slots.kind(form),
        like: found.slot(Slot::Text, words).map(join_raw),
        in_library: false,
        person: slots.first(ARTIST).map(join_raw),
        years: slots.first(YEARS).and_then(|words| parse_years(words).or_else(|| parse_decade(words))),
        provider: slots.first(PROVIDER).and_then(parse_provider).map(|(name, _)| name),
        trending: form == DiscoveryForm::Trending,
        max_minutes: slots.first(LENGTH).and_then(parse_length),
        min_rating: slots.first(RATING).and_then(parse_rating),
    };
    let is_complete = match form {
        DiscoveryForm::Filtered | DiscoveryForm::Like => recommendation.is_filtered(),
        DiscoveryForm::Themed => recommendation.mood.is_some(),
        DiscoveryForm::Trending | DiscoveryForm::Missing => true,
    };
    (is_complete && !slots.contradict()).then_some(Request::Recommend(recommendation))
}

/// Returns the match with everything after the start of the similar title in the title, if that is a well-known one.
fn whole_title(found: &Match, words: &[Token]) -> Match {
    let mut found = found.clone();
    let title = found.slots.iter().find(|(slot, _)| *slot == Slot::Text);
    if let Some(start) = title.map(|(_, range)| range.start)
        && is_known_title(&join_raw(&words[start..]))
    {
        found.slots.retain(|(_, range)| range.start < start);
        found.slots.push((Slot::Text, start..words.len()));
    }
    found
}

struct Slots<'a> {
    found: &'a Match,
    words: &'a [Token],
}

impl<'a> Slots<'a> {
    fn all(&self, kinds: &'a [DiscoverySlot]) -> impl Iterator<Item = &'a [Token]> {
        let words = self.words;
        self.found.slots.iter().filter_map(move |(slot, range)| match slot {
            Slot::Discovery(kind) if kinds.contains(kind) => words.get(range.clone()),
            _ => None,
        })
    }

    fn first(&self, kinds: &'a [DiscoverySlot]) -> Option<&'a [Token]> {
        self.all(kinds).next()
    }

    /// Returns whether a filter occurs twice, although the tool takes one value.
    fn contradict(&self) -> bool {
        SINGLE_FILTERS.iter().any(|kinds| self.all(kinds).nth(1).is_some())
    }

    /// Returns the kind of the nouns, if they name one. The last noun counts in "shows like heat but a movie".
    fn kind(&self, form: DiscoveryForm) -> Option<MediaKind> {
        let nouns = self.all(&[DiscoverySlot::Noun, DiscoverySlot::PluralNoun]);
        let kinds: Vec<MediaKind> = nouns.filter_map(parse_noun).map(|noun| noun.kind).collect();
        let last = kinds.last().copied()?;
        (form == DiscoveryForm::Like || kinds.iter().all(|kind| *kind == last)).then_some(last)
    }
}
