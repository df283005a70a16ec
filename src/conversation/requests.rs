//! What people asked for: a title that somebody wants, who asked for one, and how one is tried again that could not be
//! added at once, with the words that tell how it ended.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::title::format_title;
use super::transcript::{Arguments, CallResult, MediaKind};

/// How a result says that nothing was added, and that it will be tried.
pub const QUEUED: &str = "queued";
/// How a result says that the user will hear of a title.
pub const FOLLOWING: &str = "following";
/// How a result says that they will not.
pub const NOT_FOLLOWING: &str = "not_following";

/// Where a result names the seasons that are there without being looked for; an empty list means all of the title.
pub const NOT_LOOKED_FOR: &str = "not_looked_for";

/// For how long an addition is tried.
pub const TRIED_FOR: SignedDuration = SignedDuration::from_hours(24);
/// Minutes between the first tries.
const PAUSES: [i64; 5] = [1, 2, 5, 10, 20];
/// Minutes between all later ones.
const LONGEST_PAUSE: i64 = 30;

/// A title that somebody wants, by the id that its catalogue gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub instance: String,
    pub kind: MediaKind,
    /// Of TMDB for a movie, of TheTVDB for a show.
    pub catalog_id: i64,
    /// Empty where nobody knows it.
    pub title: String,
    /// 0 where the catalogue knows none.
    pub year: u16,
    /// `None` for a movie and for all of a show.
    pub seasons: Option<Vec<u32>>,
}

/// Progress of an addition that is tried later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trying {
    /// Certainly not made yet.
    Waiting,
    /// A try was begun, and its outcome is unknown.
    UnderWay,
}

/// A title request that could not be added at once, with the arguments of its call.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedRequest {
    pub wanted: Wanted,
    pub arguments: Arguments,
}

impl QueuedRequest {
    /// One request for what this and a later one of the same title want: the numbered seasons of both, and the later
    /// value of every other argument. `None` where their seasons are named in different ways: whether "the latest" is
    /// season 2 only the catalogue knows.
    pub fn merged(&self, later: &Self) -> Option<Self> {
        let all = json!("all");
        let asks_for_all = |one: &Self| one.argument("seasons") == Some(&all);
        let (seasons, argument) = match (&self.wanted.seasons, &later.wanted.seasons) {
            (Some(earlier), Some(later)) => {
                let mut both = [earlier.as_slice(), later].concat();
                both.sort_unstable();
                both.dedup();
                (Some(both.clone()), Some(json!(both)))
            }
            (None | Some(_), None | Some(_)) if asks_for_all(self) || asks_for_all(later) => {
                (None, Some(all.clone()))
            }
            (None, None) if self.argument("seasons") == later.argument("seasons") => (None, None),
            (None | Some(_), None | Some(_)) => return None,
        };
        let mut arguments = self.arguments.clone();
        if let (Arguments::Object(ours), Arguments::Object(theirs)) = (&mut arguments, &later.arguments) {
            ours.extend(theirs.clone().into_iter().filter(|(_, value)| !value.is_null()));
            ours.extend(argument.map(|value| ("seasons".to_owned(), value)));
        }
        Some(Self { wanted: Wanted { seasons, ..later.wanted.clone() }, arguments })
    }

    /// All of these requests for one title as one, oldest first; `None` if they cannot be merged.
    pub fn merge_all<'a>(requests: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut requests = requests.into_iter();
        let oldest = requests.next()?.clone();
        requests.try_fold(oldest, |merged, later| merged.merged(later))
    }

    /// True if another request for the same title names the same seasons and the same other arguments.
    pub fn is_repeated_by(&self, later: &Self) -> bool {
        let other_arguments = |one: &Self| match &one.arguments {
            Arguments::Object(map) => {
                let given = map.iter().filter(|(name, value)| *name != "seasons" && !value.is_null());
                Some(given.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>())
            }
            Arguments::Malformed(_) => None,
        };
        self.wanted.names_the_seasons_of(&later.wanted)
            && (self.wanted.seasons.is_some() || self.argument("seasons") == later.argument("seasons"))
            && other_arguments(self) == other_arguments(later)
    }

    /// `None` where it is left out.
    fn argument(&self, name: &str) -> Option<&Value> {
        match &self.arguments {
            Arguments::Object(map) => map.get(name).filter(|value| !value.is_null()),
            Arguments::Malformed(_) => None,
        }
    }
}

/// That somebody asked for a title, as one of the household may know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedFor {
    pub wanted: Wanted,
    pub who: Who,
    pub at: Timestamp,
    pub stage: Stage,
}

/// Extent of the named seasons, or of the whole title, that a request covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// All episodes of what is named.
    Whole,
    /// Only some episodes of it: single ones, the first one, or those still to come.
    SomeEpisodes,
}

/// What has come of a request so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is tried until it is made, or a day has passed.
    Waiting,
    InLibrary,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    You,
    Named(String),
    /// Somebody whose name nobody has told: numbers are for nobody.
    Someone,
}

impl Wanted {
    /// `Dune (2021)`, `Severance (2022), seasons 1 and 2`, `Dark (2017), the specials`, `that title`.
    pub fn name(&self) -> String {
        if self.title.is_empty() {
            return "that title".to_owned();
        }
        let name = format_title(&self.title, self.year);
        match self.seasons.as_deref() {
            None | Some([]) => name,
            Some(seasons) => format!("{name}, {}", season_list(seasons)),
        }
    }

    /// Whether the seasons of the first are all that the second names; `None` is the whole title.
    pub fn includes(lists: (Option<&[u32]>, Option<&[u32]>)) -> bool {
        match lists {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(all), Some(part)) => part.iter().all(|season| all.contains(season)),
        }
    }

    /// True if both name the same seasons, in any order.
    pub fn names_the_seasons_of(&self, other: &Self) -> bool {
        let lists = (self.seasons.as_deref(), other.seasons.as_deref());
        Self::includes(lists) && Self::includes((lists.1, lists.0))
    }

    /// `is`, or `are` for several seasons and for the specials.
    pub fn verb(&self) -> &'static str {
        self.seasons.as_deref().map_or("is", is_or_are)
    }

    /// As people know it: `Radarr`, `Sonarr 4K`.
    fn service(&self) -> String {
        let app = match self.kind {
            MediaKind::Movie => "Radarr",
            MediaKind::Series => "Sonarr",
        };
        if self.instance.ends_with("-4k") { format!("{app} 4K") } else { app.to_owned() }
    }
}

/// `season 2`, `seasons 1 and 2`, `the specials`, `season 4 and the specials`.
pub fn season_list(seasons: &[u32]) -> String {
    let numbers: Vec<String> = seasons.iter().filter(|number| **number > 0).map(u32::to_string).collect();
    let numbered = match numbers.as_slice() {
        [] => return "the specials".to_owned(),
        [one] => format!("season {one}"),
        [first @ .., last] => format!("seasons {} and {last}", first.join(", ")),
    };
    if seasons.contains(&0) { format!("{numbered} and the specials") } else { numbered }
}

fn is_or_are(seasons: &[u32]) -> &'static str {
    match seasons {
        [] => "is",
        [season] if *season > 0 => "is",
        [..] => "are",
    }
}

/// How long to wait after so many tries, the call itself not counted.
pub fn pause_after(tries: u32) -> SignedDuration {
    let pause = usize::try_from(tries).ok().and_then(|tries| PAUSES.get(tries));
    SignedDuration::from_mins(pause.copied().unwrap_or(LONGEST_PAUSE))
}

/// When it is tried next; `None` once its time is over.
pub fn next_try(asked_at: Timestamp, tries: u32, now: Timestamp) -> Option<Timestamp> {
    let end = asked_at + TRIED_FOR;
    (now < end).then(|| (now + pause_after(tries)).min(end))
}

pub fn added(wanted: &Wanted) -> String {
    format!("{} {} added now.", wanted.name(), wanted.verb())
}

pub fn was_there(wanted: &Wanted) -> String {
    format!("{} {} in the library now.", wanted.name(), wanted.verb())
}

/// The same, where the library holds it without looking for what is wanted: the end of a result, if it says so.
pub fn there_in_vain(wanted: &Wanted, result: &CallResult) -> Option<String> {
    let seasons = result.for_model.get(NOT_LOOKED_FOR)?.as_array()?;
    let numbers: Vec<u32> =
        seasons.iter().filter_map(|season| u32::try_from(season.as_u64()?).ok()).collect();
    let part = match numbers.as_slice() {
        [] => "it is".to_owned(),
        seasons => format!("{} {}", season_list(seasons), is_or_are(seasons)),
    };
    let name = Wanted { seasons: None, ..wanted.clone() }.name();
    Some(format!("{name} is in the library, but {part} not being looked for. Ask me to get it."))
}

/// For who has followed what is all there by now.
pub fn ready(wanted: &Wanted) -> String {
    format!("{} {} ready to watch.", wanted.name(), wanted.verb())
}

pub fn refused(wanted: &Wanted, why: Option<&str>) -> String {
    let name = wanted.name();
    match why {
        Some(why) => format!("I could not add {name}. {why}"),
        None => format!("I could not add {name}."),
    }
}

/// Outcome of a request whose row, or whose turn, cannot be read.
pub fn unreadable(wanted: &Wanted, trying: Trying) -> String {
    let name = wanted.name();
    match trying {
        Trying::Waiting => {
            format!("Something went wrong on my side, and I could not add {name}. Please ask me again.")
        }
        Trying::UnderWay => format!(
            "Something went wrong on my side, and I can't tell whether {name} was added. Please check before you ask \
             again."
        ),
    }
}

pub fn given_up(wanted: &Wanted) -> String {
    let (name, service) = (wanted.name(), wanted.service());
    format!("I could not add {name}: {service} could not be reached for a day. Ask me again later.")
}

pub fn never_known(wanted: &Wanted) -> String {
    let (name, service) = (wanted.name(), wanted.service());
    format!("I could not find out whether {name} was added: {service} could not be reached. Have a look.")
}

/// Whether a write that ended well only promised something.
pub fn only_promises(result: &CallResult) -> bool {
    result
        .for_model
        .get("status")
        .and_then(|status| status.as_str())
        .is_some_and(|status| matches!(status, QUEUED | FOLLOWING | NOT_FOLLOWING))
}

/// `Sam on Nov 3, you on Nov 5`, each person once; `None` where nobody is known to have asked.
pub fn asked_by(asked: &[&AskedFor], zone: &TimeZone) -> Option<String> {
    told(asked, zone, "")
}

/// `Sam asked for it on Nov 3, you on Nov 5.`
pub fn who_asked(asked: &[&AskedFor], zone: &TimeZone) -> Option<String> {
    let sentence = told(asked, zone, " asked for it")?;
    let mut letters = sentence.chars();
    let first = letters.next()?;
    Some(format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// `verb` stands behind the first person alone.
fn told(asked: &[&AskedFor], zone: &TimeZone, verb: &str) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for (at, one) in asked.iter().enumerate() {
        if asked[..at].iter().any(|earlier| earlier.who == one.who) {
            continue;
        }
        let name = match &one.who {
            Who::You => "you",
            Who::Named(name) => name,
            Who::Someone => "someone",
        };
        let day = one.at.to_zoned(zone.clone()).strftime("%b %-d");
        let verb = if parts.is_empty() { verb } else { "" };
        parts.push(format!("{name}{verb} on {day}"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn wanted(title: &str, seasons: Option<&[u32]>) -> Wanted {
        Wanted {
            instance: "sonarr-4k".into(),
            kind: MediaKind::Series,
            catalog_id: 371_980,
            title: title.into(),
            year: 2022,
            seasons: seasons.map(<[u32]>::to_vec),
        }
    }

    #[test]
    fn a_request_is_named_with_its_seasons() {
        let name = |title, seasons| wanted(title, seasons).name();
        assert_eq!(name("Severance", None), "Severance (2022)");
        assert_eq!(name("Severance (2022)", Some(&[2])), "Severance (2022), season 2");
        assert_eq!(name("Severance", Some(&[1, 2, 4])), "Severance (2022), seasons 1, 2 and 4");
        assert_eq!(name("", Some(&[1])), "that title");
        assert_eq!(name("Severance", Some(&[0])), "Severance (2022), the specials");
    }

    #[test]
    fn seasons_are_listed_with_the_specials_last() {
        let listed = [&[2][..], &[1, 2, 3], &[0, 4], &[0]].map(season_list);
        assert_eq!(listed, ["season 2", "seasons 1, 2 and 3", "season 4 and the specials", "the specials"]);
    }

    #[test]
    fn the_end_of_a_request_is_one_plain_sentence() {
        let severance = wanted("Severance", Some(&[1]));
        let told = [
            added(&severance),
            was_there(&severance),
            ready(&severance),
            refused(&severance, Some("Sonarr did not accept that.")),
            given_up(&severance),
            never_known(&severance),
        ];
        assert_eq!(
            told,
            [
                "Severance (2022), season 1 is added now.",
                "Severance (2022), season 1 is in the library now.",
                "Severance (2022), season 1 is ready to watch.",
                "I could not add Severance (2022), season 1. Sonarr did not accept that.",
                "I could not add Severance (2022), season 1: Sonarr 4K could not be reached for a day. Ask me again \
                 later.",
                "I could not find out whether Severance (2022), season 1 was added: Sonarr 4K could not be reached. \
                 Have a look.",
            ]
        );
        assert!(told.iter().all(|text| text.chars().count() <= 160));
    }

    fn queued(seasons: Option<&[u32]>, arguments: Value) -> QueuedRequest {
        QueuedRequest { wanted: wanted("Severance", seasons), arguments: Arguments::parse(arguments) }
    }

    #[test]
    fn queued_requests_for_one_title_merge_seasons_and_arguments() {
        let first = queued(Some(&[3, 1]), json!({ "tvdb": 1, "seasons": [3, 1], "quality": "HD" }));
        let second = queued(Some(&[2]), json!({ "tvdb": 1, "seasons": 2, "quality": null, "anime": true }));
        let both = json!({ "tvdb": 1, "seasons": [1, 2, 3], "quality": "HD", "anime": true });
        assert_eq!(first.merged(&second), Some(queued(Some(&[1, 2, 3]), both)));
        let latest = queued(None, json!({ "seasons": "latest" }));
        assert_eq!(latest.merged(&latest), Some(latest.clone()));
        let all = queued(None, json!({ "seasons": "all" }));
        assert_eq!(all.merged(&queued(Some(&[1]), json!({ "seasons": [1] }))), Some(all));
        let whole = queued(None, json!({}));
        assert_eq!(
            [latest.merged(&second), latest.merged(&whole), second.merged(&whole)],
            [None, None, None]
        );
    }

    #[test]
    fn only_the_same_seasons_and_arguments_repeat_a_request() {
        let first = queued(Some(&[3, 1]), json!({ "tvdb": 1, "seasons": [3, 1], "quality": null }));
        let again = queued(Some(&[1, 3]), json!({ "tvdb": 1, "seasons": [1, 3] }));
        let fewer = queued(Some(&[1]), json!({ "tvdb": 1, "seasons": [1] }));
        let sharper = queued(Some(&[1, 3]), json!({ "tvdb": 1, "seasons": [1, 3], "quality": "4K" }));
        let repeats = [&again, &fewer, &sharper].map(|later| first.is_repeated_by(later));
        assert_eq!(repeats, [true, false, false]);
        let [latest, all] = ["latest", "all"].map(|named| queued(None, json!({ "seasons": named })));
        assert_eq!([latest.is_repeated_by(&latest), latest.is_repeated_by(&all)], [true, false]);
    }

    #[test]
    fn several_seasons_and_specials_are_plural() {
        let told = [None, Some(&[2][..]), Some(&[1, 2]), Some(&[0])]
            .map(|seasons| added(&wanted("Severance", seasons)));
        let expected = [
            "Severance (2022) is added now.",
            "Severance (2022), season 2 is added now.",
            "Severance (2022), seasons 1 and 2 are added now.",
            "Severance (2022), the specials are added now.",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_there_without_being_looked_for_is_told_as_that() {
        let result = |seasons: &[u32]| CallResult {
            for_model: serde_json::json!({ NOT_LOOKED_FOR: seasons }),
            for_user: String::new(),
            shown: Vec::new(),
        };
        let told = |seasons| there_in_vain(&wanted("Severance", Some(&[2])), &result(seasons)).unwrap();
        assert_eq!(
            told(&[2]),
            "Severance (2022) is in the library, but season 2 is not being looked for. Ask me to get it."
        );
        assert_eq!(
            told(&[]),
            "Severance (2022) is in the library, but it is not being looked for. Ask me to get it."
        );
        assert_eq!(
            told(&[0]),
            "Severance (2022) is in the library, but the specials are not being looked for. Ask me to get it."
        );
    }

    #[test]
    fn pauses_grow_to_half_an_hour_and_the_last_try_is_a_day_after_the_first() {
        let mut at = NOW;
        let mut minutes = Vec::new();
        for tries in 0.. {
            let Some(next) = next_try(NOW, tries, at) else { break };
            minutes.push(next.duration_since(at).as_mins());
            at = next;
        }
        assert_eq!(minutes[..8], [1, 2, 5, 10, 20, 30, 30, 30]);
        assert_eq!((minutes.len(), at), (52, NOW + TRIED_FOR));
    }

    #[test]
    fn each_person_who_asked_is_told_once() {
        let asked = |who: Who, day: i64| AskedFor {
            wanted: wanted("Severance", None),
            who,
            at: NOW + SignedDuration::from_hours(24 * day),
            stage: Stage::InLibrary,
        };
        let all = [
            asked(Who::Named("Bob".into()), 0),
            asked(Who::You, 1),
            asked(Who::Named("Bob".into()), 2),
            asked(Who::Someone, 3),
        ];
        let all: Vec<&AskedFor> = all.iter().collect();
        let (by, who) = (asked_by(&all, &TimeZone::UTC), who_asked(&all, &TimeZone::UTC));
        assert_eq!(by.unwrap(), "Bob on Jan 1, you on Jan 2, someone on Jan 4");
        assert_eq!(who.unwrap(), "Bob asked for it on Jan 1, you on Jan 2, someone on Jan 4.");
        assert_eq!(who_asked(&all[1..2], &TimeZone::UTC).unwrap(), "You asked for it on Jan 2.");
        assert_eq!(asked_by(&[], &TimeZone::UTC), None);
    }
}
