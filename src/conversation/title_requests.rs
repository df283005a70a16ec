//! Title requests: the requested title, its requesters, the retries of an addition that failed at first, and the
//! messages that report its outcome.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::text::title::format_title;
use super::transcript::{CallResult, MediaKind, ToolArguments};

/// Status of a tool result: the addition failed and will be retried.
pub const QUEUED: &str = "queued";
/// Status of a tool result: the user will be notified about the title.
pub const FOLLOWING: &str = "following";
/// Status of a tool result: the user will not be notified about the title.
pub const NOT_FOLLOWING: &str = "not_following";

/// Status of a tool result: the title is requested at a Seerr, which passes it on.
pub const REQUESTED: &str = "requested";
/// Status of a tool result: an admin has to approve the request at the Seerr.
pub const AWAITING_DECISION: &str = "awaiting_decision";
/// Status of a tool result: the title was requested at the Seerr before.
pub const ALREADY_REQUESTED: &str = "already_requested";
/// Status of a tool result: all seasons are there or requested at the Seerr.
pub const NOTHING_NEW: &str = "nothing_new";

/// Key of a tool result for the unmonitored seasons in the library; an empty list means the whole title.
pub const NOT_MONITORED: &str = "not_looked_for";

/// Period during which an addition is retried.
pub const RETRY_PERIOD: SignedDuration = SignedDuration::from_hours(24);
/// Delays between the first attempts, in minutes.
const RETRY_DELAY_MINUTES: [i64; 5] = [1, 2, 5, 10, 20];
/// Delay between all later attempts, in minutes.
const MAX_RETRY_DELAY_MINUTES: i64 = 30;

/// Requested title, identified by its catalog id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedTitle {
    pub instance: String,
    pub kind: MediaKind,
    /// TMDB id of a movie, TheTVDB id of a series.
    pub catalog_id: i64,
    /// Title, or an empty string if it is unknown.
    pub title: String,
    /// Year, or 0 if the catalog has none.
    pub year: u16,
    /// Requested seasons; `None` for a movie and for the whole of a series.
    pub seasons: Option<Vec<u32>>,
}

/// State of an addition that is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeferredAdditionState {
    /// The title has certainly not been added yet.
    Waiting,
    /// An attempt was started, and its outcome is unknown.
    InProgress,
}

/// Title request whose addition is retried, with the arguments of its call.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedRequest {
    pub wanted: RequestedTitle,
    pub arguments: ToolArguments,
}

impl QueuedRequest {
    /// Merges this request with a later one for the same title: the numbered seasons of both, and the later value of
    /// every other argument. Returns `None` if the requests name their seasons in different ways, because only the
    /// catalog knows whether "the latest" is season 2.
    pub fn merge_with(&self, later: &Self) -> Option<Self> {
        let all = json!("all");
        let requests_all = |request: &Self| request.argument("seasons") == Some(&all);
        let (seasons, argument) = match (&self.wanted.seasons, &later.wanted.seasons) {
            (Some(earlier), Some(later)) => {
                let mut merged = [earlier.as_slice(), later].concat();
                merged.sort_unstable();
                merged.dedup();
                (Some(merged.clone()), Some(json!(merged)))
            }
            (None | Some(_), None | Some(_)) if requests_all(self) || requests_all(later) => {
                (None, Some(all.clone()))
            }
            (None, None) if self.argument("seasons") == later.argument("seasons") => (None, None),
            (None | Some(_), None | Some(_)) => return None,
        };
        let mut arguments = self.arguments.clone();
        if let (ToolArguments::Object(merged), ToolArguments::Object(later)) =
            (&mut arguments, &later.arguments)
        {
            merged.extend(later.clone().into_iter().filter(|(_, value)| !value.is_null()));
            merged.extend(argument.map(|value| ("seasons".to_owned(), value)));
        }
        Some(Self { wanted: RequestedTitle { seasons, ..later.wanted.clone() }, arguments })
    }

    /// Merges requests for one title, oldest first; returns `None` if they cannot be merged.
    pub fn merge_all<'a>(requests: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut requests = requests.into_iter();
        let oldest = requests.next()?.clone();
        requests.try_fold(oldest, |merged, later| merged.merge_with(later))
    }

    /// Returns whether a later request for the same title has the same seasons and the same other arguments.
    pub fn is_repeated_by(&self, later: &Self) -> bool {
        let other_arguments = |request: &Self| match &request.arguments {
            ToolArguments::Object(map) => {
                let present = map.iter().filter(|(name, value)| *name != "seasons" && !value.is_null());
                Some(present.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>())
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

/// Extent to which a request covers the named seasons or the whole title.
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
    /// The addition is retried until it succeeds or a day has passed.
    Waiting,
    InLibrary,
}

/// User who requested a title, as another user may see them.
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
            (Some(first), Some(second)) => second.iter().all(|season| first.contains(season)),
        }
    }

    /// Returns whether both requests name the same seasons, in any order.
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
        let service = match self.kind {
            MediaKind::Movie => "Radarr",
            MediaKind::Series => "Sonarr",
        };
        if self.instance.ends_with("-4k") { format!("{service} 4K") } else { service.to_owned() }
    }
}

/// Formats the notification of a user whose request the operator has declined.
pub fn format_declined(title: &RequestedTitle, reason: Option<&str>) -> String {
    let name = title.format_name();
    match reason {
        Some(reason) => format!("Your request for {name} was declined: {reason}"),
        None => format!("Your request for {name} was declined."),
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

/// Returns the delay after this number of retries.
pub fn retry_delay(attempts: u32) -> SignedDuration {
    let minutes = usize::try_from(attempts).ok().and_then(|attempts| RETRY_DELAY_MINUTES.get(attempts));
    SignedDuration::from_mins(minutes.copied().unwrap_or(MAX_RETRY_DELAY_MINUTES))
}

/// Returns the time of the next attempt; `None` after the end of the retry period.
pub fn next_try_at(requested_at: Timestamp, attempts: u32, now: Timestamp) -> Option<Timestamp> {
    let end = requested_at + RETRY_PERIOD;
    (now < end).then(|| (now + retry_delay(attempts)).min(end))
}

pub fn format_added(title: &RequestedTitle) -> String {
    format!("{} {} added now.", title.format_name(), title.be_verb())
}

pub fn format_already_there(title: &RequestedTitle) -> String {
    format!("{} {} in the library now.", title.format_name(), title.be_verb())
}

/// Formats the message for a title in the library of which the requested part is not monitored; returns `None` if the
/// result does not report that.
pub fn format_not_monitored(title: &RequestedTitle, result: &CallResult) -> Option<String> {
    let seasons = result.for_model.get(NOT_MONITORED)?.as_array()?;
    let numbers: Vec<u32> =
        seasons.iter().filter_map(|season| u32::try_from(season.as_u64()?).ok()).collect();
    let part = match numbers.as_slice() {
        [] => "it is".to_owned(),
        seasons => format!("{} {}", format_season_list(seasons), seasons_be_verb(seasons)),
    };
    let name = RequestedTitle { seasons: None, ..title.clone() }.format_name();
    Some(format!("{name} is in the library, but {part} not being looked for. Ask me to get it."))
}

/// Formats the message to the followers of a title that is now complete.
pub fn format_ready(title: &RequestedTitle) -> String {
    format!("{} {} ready to watch.", title.format_name(), title.be_verb())
}

pub fn format_refused(title: &RequestedTitle, reason: Option<&str>) -> String {
    let name = title.format_name();
    match reason {
        Some(reason) => format!("I could not add {name}. {reason}"),
        None => format!("I could not add {name}."),
    }
}

/// Formats the message about a request whose database row, or whose turn, is unreadable.
pub fn format_unreadable(title: &RequestedTitle, state: DeferredAdditionState) -> String {
    let name = title.format_name();
    match state {
        DeferredAdditionState::Waiting => {
            format!("Something went wrong on my side, and I could not add {name}. Please ask me again.")
        }
        DeferredAdditionState::InProgress => format!(
            "Something went wrong on my side, and I can't tell whether {name} was added. Please check before you ask \
             again."
        ),
    }
}

pub fn format_given_up(title: &RequestedTitle) -> String {
    let (name, service) = (title.format_name(), title.service_name());
    format!("I could not add {name}: {service} could not be reached for a day. Ask me again later.")
}

pub fn format_outcome_unknown(title: &RequestedTitle) -> String {
    let (name, service) = (title.format_name(), title.service_name());
    format!("I could not find out whether {name} was added: {service} could not be reached. Please check.")
}

/// Returns whether a successful write only scheduled an addition or a notification, or left the addition to a Seerr.
pub fn is_deferred(result: &CallResult) -> bool {
    is_left_to_seerr(result)
        || read_status(result).is_some_and(|status| matches!(status, QUEUED | FOLLOWING | NOT_FOLLOWING))
}

/// Returns whether a result is about a request at a Seerr, in words for the user.
pub fn is_left_to_seerr(result: &CallResult) -> bool {
    read_status(result).is_some_and(|status| {
        matches!(status, REQUESTED | AWAITING_DECISION | ALREADY_REQUESTED | NOTHING_NEW)
    })
}

fn read_status(result: &CallResult) -> Option<&str> {
    result.for_model.get("status").and_then(|status| status.as_str())
}

/// Formats `Sam on Nov 3, you on Nov 5`, each user once; returns `None` if no requester is known.
pub fn format_requesters(requests: &[&TitleRequest], zone: &TimeZone) -> Option<String> {
    join_requesters(requests, zone, "")
}

/// Formats `Sam asked for it on Nov 3, you on Nov 5.`
pub fn format_requesters_sentence(requests: &[&TitleRequest], zone: &TimeZone) -> Option<String> {
    let sentence = join_requesters(requests, zone, " asked for it")?;
    let mut characters = sentence.chars();
    let first = characters.next()?;
    Some(format!("{}{}.", first.to_uppercase(), characters.as_str()))
}

/// Joins the requesters; `verb` follows only the first one.
fn join_requesters(requests: &[&TitleRequest], zone: &TimeZone, verb: &str) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        if requests[..index].iter().any(|earlier| earlier.requester == request.requester) {
            continue;
        }
        let name = match &request.requester {
            Requester::You => "you",
            Requester::Named(name) => name,
            Requester::Unnamed => "someone",
        };
        let day = request.requested_at.to_zoned(zone.clone()).strftime("%b %-d");
        let verb = if parts.is_empty() { verb } else { "" };
        parts.push(format!("{name}{verb} on {day}"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn requested_title(title: &str, seasons: Option<&[u32]>) -> RequestedTitle {
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
        let name = |title, seasons| requested_title(title, seasons).format_name();
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
        let severance = requested_title("Severance", Some(&[1]));
        let messages = [
            format_added(&severance),
            format_already_there(&severance),
            format_ready(&severance),
            format_refused(&severance, Some("Sonarr did not accept that.")),
            format_given_up(&severance),
            format_outcome_unknown(&severance),
        ];
        assert_eq!(
            messages,
            [
                "Severance (2022), season 1 is added now.",
                "Severance (2022), season 1 is in the library now.",
                "Severance (2022), season 1 is ready to watch.",
                "I could not add Severance (2022), season 1. Sonarr did not accept that.",
                "I could not add Severance (2022), season 1: Sonarr 4K could not be reached for a day. Ask me again \
                 later.",
                "I could not find out whether Severance (2022), season 1 was added: Sonarr 4K could not be reached. \
                 Please check.",
            ]
        );
        assert!(messages.iter().all(|text| text.chars().count() <= 160));
    }

    fn queued(seasons: Option<&[u32]>, arguments: Value) -> QueuedRequest {
        QueuedRequest {
            wanted: requested_title("Severance", seasons),
            arguments: ToolArguments::parse(arguments),
        }
    }

    #[test]
    fn queued_requests_for_one_title_merge_seasons_and_arguments() {
        let first = queued(Some(&[3, 1]), json!({ "tvdb": 1, "seasons": [3, 1], "quality": "HD" }));
        let second = queued(Some(&[2]), json!({ "tvdb": 1, "seasons": 2, "quality": null, "anime": true }));
        let merged = json!({ "tvdb": 1, "seasons": [1, 2, 3], "quality": "HD", "anime": true });
        assert_eq!(first.merge_with(&second), Some(queued(Some(&[1, 2, 3]), merged)));
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
    fn request_is_repeated_only_with_the_same_seasons_and_arguments() {
        let first = queued(Some(&[3, 1]), json!({ "tvdb": 1, "seasons": [3, 1], "quality": null }));
        let again = queued(Some(&[1, 3]), json!({ "tvdb": 1, "seasons": [1, 3] }));
        let fewer = queued(Some(&[1]), json!({ "tvdb": 1, "seasons": [1] }));
        let in_4k = queued(Some(&[1, 3]), json!({ "tvdb": 1, "seasons": [1, 3], "quality": "4K" }));
        let repeats = [&again, &fewer, &in_4k].map(|later| first.is_repeated_by(later));
        assert_eq!(repeats, [true, false, false]);
        let [latest, all] = ["latest", "all"].map(|seasons| queued(None, json!({ "seasons": seasons })));
        assert_eq!([latest.is_repeated_by(&latest), latest.is_repeated_by(&all)], [true, false]);
    }

    #[test]
    fn several_seasons_and_specials_take_a_plural_verb() {
        let messages = [None, Some(&[2][..]), Some(&[1, 2]), Some(&[0])]
            .map(|seasons| format_added(&requested_title("Severance", seasons)));
        let expected = [
            "Severance (2022) is added now.",
            "Severance (2022), season 2 is added now.",
            "Severance (2022), seasons 1 and 2 are added now.",
            "Severance (2022), the specials are added now.",
        ];
        assert_eq!(messages, expected);
    }

    #[test]
    fn unmonitored_title_in_the_library_is_reported_as_such() {
        let result = |seasons: &[u32]| CallResult {
            for_model: serde_json::json!({ NOT_MONITORED: seasons }),
            for_user: String::new(),
            shown: Vec::new(),
        };
        let message = |seasons| {
            format_not_monitored(&requested_title("Severance", Some(&[2])), &result(seasons)).unwrap()
        };
        assert_eq!(
            message(&[2]),
            "Severance (2022) is in the library, but season 2 is not being looked for. Ask me to get it."
        );
        assert_eq!(
            message(&[]),
            "Severance (2022) is in the library, but it is not being looked for. Ask me to get it."
        );
        assert_eq!(
            message(&[0]),
            "Severance (2022) is in the library, but the specials are not being looked for. Ask me to get it."
        );
    }

    #[test]
    fn retry_delays_grow_to_half_an_hour_within_a_day() {
        let mut time = NOW;
        let mut minutes = Vec::new();
        for attempts in 0.. {
            let Some(next) = next_try_at(NOW, attempts, time) else { break };
            minutes.push(next.duration_since(time).as_mins());
            time = next;
        }
        assert_eq!(minutes[..8], [1, 2, 5, 10, 20, 30, 30, 30]);
        assert_eq!((minutes.len(), time), (52, NOW + RETRY_PERIOD));
    }

    #[test]
    fn each_requester_is_named_once() {
        let request = |requester: Requester, day: i64| TitleRequest {
            wanted: requested_title("Severance", None),
            requester,
            requested_at: NOW + SignedDuration::from_hours(24 * day),
            status: RequestStatus::InLibrary,
        };
        let all = [
            request(Requester::Named("Bob".into()), 0),
            request(Requester::You, 1),
            request(Requester::Named("Bob".into()), 2),
            request(Requester::Unnamed, 3),
        ];
        let all: Vec<&TitleRequest> = all.iter().collect();
        let (list, sentence) =
            (format_requesters(&all, &TimeZone::UTC), format_requesters_sentence(&all, &TimeZone::UTC));
        assert_eq!(list.unwrap(), "Bob on Jan 1, you on Jan 2, someone on Jan 4");
        assert_eq!(sentence.unwrap(), "Bob asked for it on Jan 1, you on Jan 2, someone on Jan 4.");
        assert_eq!(
            format_requesters_sentence(&all[1..2], &TimeZone::UTC).unwrap(),
            "You asked for it on Jan 2."
        );
        assert_eq!(format_requesters(&[], &TimeZone::UTC), None);
    }
}
