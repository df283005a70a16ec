//! Title requests: the requested title, the requesters, and the retries of an addition that could not be made at once,
//! with the messages that report its outcome.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::text::title::format_title;
use super::transcript::{CallResult, MediaKind, ToolArguments};

/// Status of a result if nothing was added, and the addition will be tried later.
pub const QUEUED: &str = "queued";
/// Status of a result if the user will be notified about a title.
pub const FOLLOWING: &str = "following";
/// Status of a result if the user will not be notified.
pub const NOT_FOLLOWING: &str = "not_following";

/// Key for the seasons that are in the library without being monitored; an empty list means the whole title.
pub const NOT_MONITORED: &str = "not_looked_for";

/// Period during which an addition is retried.
pub const RETRY_PERIOD: SignedDuration = SignedDuration::from_hours(24);
/// Minutes between the first attempts.
const RETRY_PAUSE_MINUTES: [i64; 5] = [1, 2, 5, 10, 20];
/// Minutes between all later attempts.
const MAX_RETRY_PAUSE_MINUTES: i64 = 30;

/// Requested title, by the id that its catalog assigns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedTitle {
    pub instance: String,
    pub kind: MediaKind,
    /// TMDB id of a movie, TheTVDB id of a series.
    pub catalog_id: i64,
    /// Title, or empty if it is unknown.
    pub title: String,
    /// Year, or 0 if the catalog has none.
    pub year: u16,
    /// Requested seasons; `None` for a movie and for the whole of a series.
    pub seasons: Option<Vec<u32>>,
}

/// Progress of an addition that is tried later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeferredAdditionState {
    /// The addition has certainly not been made yet.
    Waiting,
    /// An attempt was started, and its outcome is unknown.
    InProgress,
}

/// A title request that could not be added at once, with the arguments of its call.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedRequest {
    pub wanted: RequestedTitle,
    pub arguments: ToolArguments,
}

impl QueuedRequest {
    /// Merges this request and a later one for the same title: the numbered seasons of both, and the later value of
    /// every other argument. Returns `None` if their seasons are named in different ways: only the catalog knows
    /// whether "the latest" is season 2.
    pub fn merge_with(&self, later: &Self) -> Option<Self> {
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
        if let (ToolArguments::Object(ours), ToolArguments::Object(theirs)) =
            (&mut arguments, &later.arguments)
        {
            ours.extend(theirs.clone().into_iter().filter(|(_, value)| !value.is_null()));
            ours.extend(argument.map(|value| ("seasons".to_owned(), value)));
        }
        Some(Self { wanted: RequestedTitle { seasons, ..later.wanted.clone() }, arguments })
    }

    /// Merges all of these requests for one title, oldest first; returns `None` if they cannot be merged.
    pub fn merge_all<'a>(requests: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut requests = requests.into_iter();
        let oldest = requests.next()?.clone();
        requests.try_fold(oldest, |merged, later| merged.merge_with(later))
    }

    /// Returns whether another request for the same title names the same seasons and the same other arguments.
    pub fn is_repeated_by(&self, later: &Self) -> bool {
        let other_arguments = |one: &Self| match &one.arguments {
            ToolArguments::Object(map) => {
                let given = map.iter().filter(|(name, value)| *name != "seasons" && !value.is_null());
                Some(given.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>())
            }
            ToolArguments::Malformed(_) => None,
        };
        self.wanted.has_same_seasons_as(&later.wanted)
            && (self.wanted.seasons.is_some() || self.argument("seasons") == later.argument("seasons"))
            && other_arguments(self) == other_arguments(later)
    }

    /// Returns the value of an argument; `None` if it is omitted.
    fn argument(&self, name: &str) -> Option<&Value> {
        match &self.arguments {
            ToolArguments::Object(map) => map.get(name).filter(|value| !value.is_null()),
            ToolArguments::Malformed(_) => None,
        }
    }
}

/// Title request, as other users of the household may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TitleRequest {
    pub wanted: RequestedTitle,
    pub requester: Requester,
    pub requested_at: Timestamp,
    pub status: RequestStatus,
}

/// Extent of the named seasons, or of the whole title, that a request covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// All episodes of the named part.
    Whole,
    /// Only some of its episodes: single ones, the first one, or future ones.
    SomeEpisodes,
}

/// Status of a title request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestStatus {
    /// The addition is tried until it succeeds, or a day has passed.
    Waiting,
    InLibrary,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requester {
    You,
    Named(String),
    /// A user without a known name: other users never see phone numbers.
    Unnamed,
}

impl RequestedTitle {
    /// Formats `Dune (2021)`, `Severance (2022), seasons 1 and 2`, `Dark (2017), the specials`, `that title`.
    pub fn format_name(&self) -> String {
        if self.title.is_empty() {
            return "that title".to_owned();
        }
        let name = format_title(&self.title, self.year);
        match self.seasons.as_deref() {
            None | Some([]) => name,
            Some(seasons) => format!("{name}, {}", format_season_list(seasons)),
        }
    }

    /// Returns whether the first list of seasons includes all seasons of the second; `None` is the whole title.
    pub fn includes_seasons(lists: (Option<&[u32]>, Option<&[u32]>)) -> bool {
        match lists {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(all), Some(part)) => part.iter().all(|season| all.contains(season)),
        }
    }

    /// Returns whether both name the same seasons, in any order.
    pub fn has_same_seasons_as(&self, other: &Self) -> bool {
        let lists = (self.seasons.as_deref(), other.seasons.as_deref());
        Self::includes_seasons(lists) && Self::includes_seasons((lists.1, lists.0))
    }

    /// Returns `is`, or `are` for several seasons and for the specials.
    pub fn be_verb(&self) -> &'static str {
        self.seasons.as_deref().map_or("is", seasons_be_verb)
    }

    /// Returns the display name of the instance: `Radarr`, `Sonarr 4K`.
    fn service_name(&self) -> String {
        let app = match self.kind {
            MediaKind::Movie => "Radarr",
            MediaKind::Series => "Sonarr",
        };
        if self.instance.ends_with("-4k") { format!("{app} 4K") } else { app.to_owned() }
    }
}

/// Formats `season 2`, `seasons 1 and 2`, `the specials`, `season 4 and the specials`.
pub fn format_season_list(seasons: &[u32]) -> String {
    let numbers: Vec<String> = seasons.iter().filter(|number| **number > 0).map(u32::to_string).collect();
    let numbered = match numbers.as_slice() {
        [] => return "the specials".to_owned(),
        [one] => format!("season {one}"),
        [first @ .., last] => format!("seasons {} and {last}", first.join(", ")),
    };
    if seasons.contains(&0) { format!("{numbered} and the specials") } else { numbered }
}

fn seasons_be_verb(seasons: &[u32]) -> &'static str {
    match seasons {
        [] => "is",
        [season] if *season > 0 => "is",
        [..] => "are",
    }
}

/// Returns the pause after this number of attempts, not counting the call itself.
pub fn retry_pause(tries: u32) -> SignedDuration {
    let pause = usize::try_from(tries).ok().and_then(|tries| RETRY_PAUSE_MINUTES.get(tries));
    SignedDuration::from_mins(pause.copied().unwrap_or(MAX_RETRY_PAUSE_MINUTES))
}

/// Returns the time of the next attempt; `None` once the retry period is over.
pub fn next_try_at(asked_at: Timestamp, tries: u32, now: Timestamp) -> Option<Timestamp> {
    let end = asked_at + RETRY_PERIOD;
    (now < end).then(|| (now + retry_pause(tries)).min(end))
}

pub fn format_added(wanted: &RequestedTitle) -> String {
    format!("{} {} added now.", wanted.format_name(), wanted.be_verb())
}

pub fn format_already_there(wanted: &RequestedTitle) -> String {
    format!("{} {} in the library now.", wanted.format_name(), wanted.be_verb())
}

/// Message for a title that the library holds without monitoring the requested part: the end of a result, if the result
/// reports that.
pub fn format_not_monitored(wanted: &RequestedTitle, result: &CallResult) -> Option<String> {
    let seasons = result.for_model.get(NOT_MONITORED)?.as_array()?;
    let numbers: Vec<u32> =
        seasons.iter().filter_map(|season| u32::try_from(season.as_u64()?).ok()).collect();
    let part = match numbers.as_slice() {
        [] => "it is".to_owned(),
        seasons => format!("{} {}", format_season_list(seasons), seasons_be_verb(seasons)),
    };
    let name = RequestedTitle { seasons: None, ..wanted.clone() }.format_name();
    Some(format!("{name} is in the library, but {part} not being looked for. Ask me to get it."))
}

/// Message to the followers of a title that is now complete.
pub fn format_ready(wanted: &RequestedTitle) -> String {
    format!("{} {} ready to watch.", wanted.format_name(), wanted.be_verb())
}

pub fn format_refused(wanted: &RequestedTitle, why: Option<&str>) -> String {
    let name = wanted.format_name();
    match why {
        Some(why) => format!("I could not add {name}. {why}"),
        None => format!("I could not add {name}."),
    }
}

/// Outcome of a request whose row, or whose turn, cannot be read.
pub fn unreadable(wanted: &RequestedTitle, trying: DeferredAdditionState) -> String {
    let name = wanted.format_name();
    match trying {
        DeferredAdditionState::Waiting => {
            format!("Something went wrong on my side, and I could not add {name}. Please ask me again.")
        }
        DeferredAdditionState::InProgress => format!(
            "Something went wrong on my side, and I can't tell whether {name} was added. Please check before you ask \
             again."
        ),
    }
}

pub fn format_given_up(wanted: &RequestedTitle) -> String {
    let (name, service) = (wanted.format_name(), wanted.service_name());
    format!("I could not add {name}: {service} could not be reached for a day. Ask me again later.")
}

pub fn format_outcome_unknown(wanted: &RequestedTitle) -> String {
    let (name, service) = (wanted.format_name(), wanted.service_name());
    format!("I could not find out whether {name} was added: {service} could not be reached. Have a look.")
}

/// Returns whether a successful write only promised something.
pub fn is_deferred(result: &CallResult) -> bool {
    result
        .for_model
        .get("status")
        .and_then(|status| status.as_str())
        .is_some_and(|status| matches!(status, QUEUED | FOLLOWING | NOT_FOLLOWING))
}

/// Formats `Sam on Nov 3, you on Nov 5`, each user once; returns `None` if no requester is known.
pub fn format_requesters(asked: &[&TitleRequest], zone: &TimeZone) -> Option<String> {
    join_requesters(asked, zone, "")
}

/// Formats `Sam asked for it on Nov 3, you on Nov 5.`
pub fn format_requesters_sentence(asked: &[&TitleRequest], zone: &TimeZone) -> Option<String> {
    let sentence = join_requesters(asked, zone, " asked for it")?;
    let mut letters = sentence.chars();
    let first = letters.next()?;
    Some(format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// Joins the requesters; `verb` follows only the first one.
fn join_requesters(asked: &[&TitleRequest], zone: &TimeZone, verb: &str) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for (at, one) in asked.iter().enumerate() {
        if asked[..at].iter().any(|earlier| earlier.requester == one.requester) {
            continue;
        }
        let name = match &one.requester {
            Requester::You => "you",
            Requester::Named(name) => name,
            Requester::Unnamed => "someone",
        };
        let day = one.requested_at.to_zoned(zone.clone()).strftime("%b %-d");
        let verb = if parts.is_empty() { verb } else { "" };
        parts.push(format!("{name}{verb} on {day}"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn wanted(title: &str, seasons: Option<&[u32]>) -> RequestedTitle {
        RequestedTitle {
            instance: "sonarr-4k".into(),
            kind: MediaKind::Series,
            catalog_id: 371_980,
            title: title.into(),
            year: 2022,
            seasons: seasons.map(<[u32]>::to_vec),
        }
    }

    #[test]
    fn request_is_named_with_its_seasons() {
        let name = |title, seasons| wanted(title, seasons).format_name();
        assert_eq!(name("Severance", None), "Severance (2022)");
        assert_eq!(name("Severance (2022)", Some(&[2])), "Severance (2022), season 2");
        assert_eq!(name("Severance", Some(&[1, 2, 4])), "Severance (2022), seasons 1, 2 and 4");
        assert_eq!(name("", Some(&[1])), "that title");
        assert_eq!(name("Severance", Some(&[0])), "Severance (2022), the specials");
    }

    #[test]
    fn seasons_are_listed_with_the_specials_last() {
        let listed = [&[2][..], &[1, 2, 3], &[0, 4], &[0]].map(format_season_list);
        assert_eq!(listed, ["season 2", "seasons 1, 2 and 3", "season 4 and the specials", "the specials"]);
    }

    #[test]
    fn outcome_of_a_request_is_one_plain_sentence() {
        let severance = wanted("Severance", Some(&[1]));
        let told = [
            format_added(&severance),
            format_already_there(&severance),
            format_ready(&severance),
            format_refused(&severance, Some("Sonarr did not accept that.")),
            format_given_up(&severance),
            format_outcome_unknown(&severance),
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
        QueuedRequest { wanted: wanted("Severance", seasons), arguments: ToolArguments::parse(arguments) }
    }

    #[test]
    fn queued_requests_for_one_title_merge_seasons_and_arguments() {
        let first = queued(Some(&[3, 1]), json!({ "tvdb": 1, "seasons": [3, 1], "quality": "HD" }));
        let second = queued(Some(&[2]), json!({ "tvdb": 1, "seasons": 2, "quality": null, "anime": true }));
        let both = json!({ "tvdb": 1, "seasons": [1, 2, 3], "quality": "HD", "anime": true });
        assert_eq!(first.merge_with(&second), Some(queued(Some(&[1, 2, 3]), both)));
        let latest = queued(None, json!({ "seasons": "latest" }));
        assert_eq!(latest.merge_with(&latest), Some(latest.clone()));
        let all = queued(None, json!({ "seasons": "all" }));
        assert_eq!(all.merge_with(&queued(Some(&[1]), json!({ "seasons": [1] }))), Some(all));
        let whole = queued(None, json!({}));
        assert_eq!(
            [latest.merge_with(&second), latest.merge_with(&whole), second.merge_with(&whole)],
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
            .map(|seasons| format_added(&wanted("Severance", seasons)));
        let expected = [
            "Severance (2022) is added now.",
            "Severance (2022), season 2 is added now.",
            "Severance (2022), seasons 1 and 2 are added now.",
            "Severance (2022), the specials are added now.",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn unmonitored_title_in_the_library_is_reported_as_such() {
        let result = |seasons: &[u32]| CallResult {
            for_model: serde_json::json!({ NOT_MONITORED: seasons }),
            for_user: String::new(),
            shown: Vec::new(),
        };
        let told =
            |seasons| format_not_monitored(&wanted("Severance", Some(&[2])), &result(seasons)).unwrap();
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
    fn retry_delays_grow_to_half_an_hour_within_a_day() {
        let mut at = NOW;
        let mut minutes = Vec::new();
        for tries in 0.. {
            let Some(next) = next_try_at(NOW, tries, at) else { break };
            minutes.push(next.duration_since(at).as_mins());
            at = next;
        }
        assert_eq!(minutes[..8], [1, 2, 5, 10, 20, 30, 30, 30]);
        assert_eq!((minutes.len(), at), (52, NOW + RETRY_PERIOD));
    }

    #[test]
    fn each_requester_is_named_once() {
        let asked = |who: Requester, day: i64| TitleRequest {
            wanted: wanted("Severance", None),
            requester: who,
            requested_at: NOW + SignedDuration::from_hours(24 * day),
            status: RequestStatus::InLibrary,
        };
        let all = [
            asked(Requester::Named("Bob".into()), 0),
            asked(Requester::You, 1),
            asked(Requester::Named("Bob".into()), 2),
            asked(Requester::Unnamed, 3),
        ];
        let all: Vec<&TitleRequest> = all.iter().collect();
        let (by, who) =
            (format_requesters(&all, &TimeZone::UTC), format_requesters_sentence(&all, &TimeZone::UTC));
        assert_eq!(by.unwrap(), "Bob on Jan 1, you on Jan 2, someone on Jan 4");
        assert_eq!(who.unwrap(), "Bob asked for it on Jan 1, you on Jan 2, someone on Jan 4.");
        assert_eq!(
            format_requesters_sentence(&all[1..2], &TimeZone::UTC).unwrap(),
            "You asked for it on Jan 2."
        );
        assert_eq!(format_requesters(&[], &TimeZone::UTC), None);
    }
}
