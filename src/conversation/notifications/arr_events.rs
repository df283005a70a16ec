//! Arr events: their grouping, the send times of their notifications, and the texts of these notifications.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::quiet_hours::QuietHours;
use crate::conversation::text::title::{clean_line, clean_title, format_title};

/// Time without further events after which the events of a series are reported. A season pack is imported file by file.
const GROUP_DELAY: SignedDuration = SignedDuration::from_secs(60);
/// Maximum time that a group waits, even if more events follow.
const MAX_GROUP_DELAY: SignedDuration = SignedDuration::from_mins(10);
/// Grace period of a health issue. An instance that recovers within this time causes no notification.
const HEALTH_ISSUE_DELAY: SignedDuration = SignedDuration::from_mins(10);
/// Minimum time between notifications of single episodes of a series.
pub const EPISODE_NOTIFICATION_INTERVAL: SignedDuration = SignedDuration::from_hours(1);
/// Minimum time between notifications of the same problem.
pub const PROBLEM_NOTIFICATION_INTERVAL: SignedDuration = SignedDuration::from_hours(24);
/// Maximum number of notifications to one user within an hour; more wait and are combined into one message.
const MAX_NOTIFICATIONS_PER_HOUR: usize = 5;
pub const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// Maximum number of titles that a combined message names.
const MAX_NAMED_TITLES: usize = 3;
/// Maximum length of the message of a health issue.
const MAX_HEALTH_MESSAGE_UNITS: usize = 90;

/// Movie or series of one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrTitle {
    /// Id in the library.
    pub id: i64,
    /// TMDB id of a movie, TheTVDB id of a series.
    pub catalog_id: i64,
    pub title: String,
    /// Year, or 0 if unknown.
    pub year: u16,
}

/// Event that Sonarr or Radarr reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArrEvent {
    /// A movie file was imported.
    MovieImported(ArrTitle, ImportKind),
    /// An episode file was imported.
    EpisodeImported { show: ArrTitle, season: u32, number: u32, copy: ImportKind },
    /// A completed download, named here by its content, cannot be imported.
    ImportBlocked(String),
    /// A download, named here by its content, failed, and no other release is searched for.
    DownloadFailed(String),
    /// The instance reports a problem with itself.
    HealthIssue { check: String, message: String },
    /// The reported problem is resolved.
    HealthRestored { check: String },
}

/// Kind of an import: the first file of its content, or an upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportKind {
    First,
    /// The file replaces an existing one, so no user was waiting for it.
    Upgrade,
}

/// Arr event, from a webhook or from the history, with the key by which duplicates are recognized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedArrEvent {
    pub matter: String,
    pub event: ArrEvent,
}

impl KeyedArrEvent {
    /// Builds the key of an arr event. `download_id` is the id of the download, which stays the same from its grab on,
    /// or empty if there is none.
    pub fn new(event: ArrEvent, download_id: &str, occurred_at: Timestamp) -> Self {
        // A release that is downloaded again has the same download id, so the key includes the day. An event that
        // arrives twice around midnight becomes two rows, but the second row causes no notification.
        let day = occurred_at.strftime("%F");
        let suffix = if download_id.is_empty() { day.to_string() } else { format!("{download_id}:{day}") };
        let matter = match &event {
            ArrEvent::MovieImported(movie, _) => format!("movie:{}:{suffix}", movie.id),
            ArrEvent::EpisodeImported { show, season, number, .. } => {
                format!("episode:{}:{season}:{number}:{suffix}", show.id)
            }
            // An event that is repeated on another day is a new event.
            ArrEvent::ImportBlocked(content) if download_id.is_empty() => format!("stuck:{content}:{day}"),
            ArrEvent::ImportBlocked(_) => format!("stuck:{download_id}:{day}"),
            ArrEvent::DownloadFailed(content) if download_id.is_empty() => format!("failed:{content}:{day}"),
            ArrEvent::DownloadFailed(_) => format!("failed:{download_id}"),
            ArrEvent::HealthIssue { check, .. } => format!("ill:{check}:{}", occurred_at.as_millisecond()),
            ArrEvent::HealthRestored { check } => format!("well:{check}:{}", occurred_at.as_millisecond()),
        };
        Self { matter, event }
    }
}

/// Stored arr event about which no user has been notified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingArrEvent {
    pub id: i64,
    pub instance: String,
    pub event: ArrEvent,
    pub received_at: Timestamp,
}

/// Subject of arr events. Events of one subject share a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventSubject {
    Movie(i64),
    Series(i64),
    /// A download that needs manual import, by the name of its content.
    Download(String),
    /// A health check, by its name.
    Check(String),
}

/// Arr events of one instance with the same subject, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventGroup {
    pub instance: String,
    pub subject: EventSubject,
    pub events: Vec<PendingArrEvent>,
}

/// Groups events by instance and subject. `pending` is in order of arrival; a group takes the position of its first
/// event.
pub fn group_events(pending: Vec<PendingArrEvent>) -> Vec<EventGroup> {
    let mut groups: Vec<EventGroup> = Vec::new();
    for pending_event in pending {
        let subject = match &pending_event.event {
            ArrEvent::MovieImported(movie, _) => EventSubject::Movie(movie.id),
            ArrEvent::EpisodeImported { show, .. } => EventSubject::Series(show.id),
            ArrEvent::ImportBlocked(content) | ArrEvent::DownloadFailed(content) => {
                EventSubject::Download(content.clone())
            }
            ArrEvent::HealthIssue { check, .. } | ArrEvent::HealthRestored { check } => {
                EventSubject::Check(check.clone())
            }
        };
        let same_group = groups
            .iter_mut()
            .find(|group| group.instance == pending_event.instance && group.subject == subject);
        match same_group {
            Some(group) => group.events.push(pending_event),
            None => {
                let instance = pending_event.instance.clone();
                groups.push(EventGroup { instance, subject, events: vec![pending_event] });
            }
        }
    }
    groups
}

impl EventGroup {
    /// Returns the earliest send time of a notification about the group. More events may join the group until then.
    pub fn ready_at(&self) -> Timestamp {
        let times = self.events.iter().map(|event| event.received_at);
        let (first, last) = (times.clone().min().unwrap_or_default(), times.max().unwrap_or_default());
        match &self.subject {
            EventSubject::Movie(_) | EventSubject::Download(_) => first,
            EventSubject::Series(_) => (last + GROUP_DELAY).min(first + MAX_GROUP_DELAY),
            EventSubject::Check(_) => match self.events.last().map(|pending_event| &pending_event.event) {
                Some(ArrEvent::HealthRestored { .. }) => first,
                Some(_) | None => first + HEALTH_ISSUE_DELAY,
            },
        }
    }
}

/// Earliest send time of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendTime {
    Now,
    At(Timestamp),
}

/// Plans the send time of a notification. `recent` contains the creation times of the notifications within the last
/// hour. Times after `now` are ignored, because they date from before the clock was set back.
pub fn plan_send_time(
    quiet: Option<QuietHours>,
    recent: &[Timestamp],
    now: Timestamp,
    zone: &TimeZone,
) -> SendTime {
    let mut recent: Vec<Timestamp> = recent.iter().copied().filter(|time| *time <= now).collect();
    recent.sort_unstable();
    let limiting = recent.len().checked_sub(MAX_NOTIFICATIONS_PER_HOUR).and_then(|index| recent.get(index));
    let send_at = limiting.map_or(now, |created_at| (*created_at + HOUR).max(now));
    match quiet.and_then(|quiet| quiet.next_end(send_at, zone)) {
        Some(quiet_end) => SendTime::At(quiet_end),
        None if send_at > now => SendTime::At(send_at),
        None => SendTime::Now,
    }
}

/// Text of a notification, for a message of its own and for a combined message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationText {
    /// Whole message.
    pub sentence: String,
    /// Short form, such as `Dune (2021)` or `3 new episodes of The Bear season 2`.
    pub phrase: String,
}

/// Topic of a notification. Delayed notifications of one topic share a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationTopic {
    Ready,
    /// Imported, and not playable yet.
    Delay,
    Problem,
    /// Next season of a series that the user watches. The messages mention what the user has watched.
    NextSeason,
}

pub fn format_movie_ready(movie: &ArrTitle) -> NotificationText {
    let phrase = format_arr_title(movie);
    NotificationText { sentence: format!("{phrase} is ready to watch."), phrase }
}

/// Formats a notification about a series. `complete` contains the seasons with all of their episodes, `episodes` the
/// new episodes of other seasons by season and number. At least one of them is not empty.
pub fn format_series_ready(series: &ArrTitle, complete: &[u32], episodes: &[(u32, u32)]) -> NotificationText {
    let title = clean_title(&series.title);
    let mut seasons: Vec<u32> = episodes.iter().map(|(season, _)| *season).collect();
    seasons.dedup();
    let episode_list = match episodes {
        [(season, number)] => format!("S{season:02}E{number:02}"),
        _ => format!("{} new episodes of {}", episodes.len(), format_season_list(&seasons)),
    };
    match (complete, episodes) {
        ([], [_]) => {
            let phrase = format!("{title} {episode_list}");
            NotificationText { sentence: format!("{phrase} is ready to watch."), phrase }
        }
        ([], _) => NotificationText {
            sentence: format!("{title}: {episode_list} are ready."),
            phrase: format!("{} new episodes of {title}", episodes.len()),
        },
        (_, rest) => {
            let phrase = format!("{title} {}", format_season_list(complete));
            let verb = if matches!(complete, [season] if *season > 0) { "is" } else { "are" };
            let suffix = if rest.is_empty() { String::new() } else { format!(", and {episode_list}") };
            NotificationText { sentence: format!("{phrase} {verb} ready to watch{suffix}."), phrase }
        }
    }
}

pub fn format_import_blocked(content: &str, service: &str) -> NotificationText {
    let phrase = clean_title(content);
    let sentence = format!("{service} could not import {phrase}. Text STATUS for details.");
    NotificationText { sentence, phrase }
}

pub fn format_download_failed(content: &str) -> NotificationText {
    let phrase = clean_title(content);
    let sentence = format!("The download of {phrase} failed. Ask me to search again.");
    NotificationText { sentence, phrase }
}

pub fn format_health_issue(message: &str, service: &str) -> NotificationText {
    let message = clean_line(message, MAX_HEALTH_MESSAGE_UNITS).unwrap_or_default();
    let details = match message.trim_end_matches(['.', ',', ' ']) {
        "" => String::new(),
        message => format!(": {message}"),
    };
    NotificationText {
        sentence: format!("{service} has a problem{details}. See System, Status there."),
        phrase: format!("{service} itself"),
    }
}

/// Combines several notifications of one topic into one message.
pub fn combine_phrases(topic: NotificationTopic, phrases: &[String]) -> String {
    let more = phrases.len().saturating_sub(MAX_NAMED_TITLES);
    let named = &phrases[..phrases.len().min(MAX_NAMED_TITLES)];
    let list = match (named, more) {
        ([first @ .., last], 0) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        (_, 0) => named.concat(),
        (_, more) => format!("{} and {more} more", named.join(", ")),
    };
    match (topic, more) {
        (NotificationTopic::Ready, 0) => format!("{list} are ready to watch."),
        (NotificationTopic::Ready, 1) => format!("{list} title are ready."),
        (NotificationTopic::Ready, _) => format!("{list} titles are ready."),
        (NotificationTopic::Delay, _) => format!("Downloaded, but maybe not playable yet: {list}."),
        (NotificationTopic::Problem, _) => format!("These need attention: {list}. Text STATUS for details."),
        (NotificationTopic::NextSeason, _) => {
            format!("You can continue with these: {list}. Ask me to add what you like.")
        }
    }
}

/// Formats episodes as `The Bear S02E03`, or as `The Bear season 2` if there is more than one.
pub fn format_episodes(series: &str, episodes: &[(u32, u32)]) -> String {
    let title = clean_title(series);
    match episodes {
        [] => title,
        [(season, number)] => format!("{title} S{season:02}E{number:02}"),
        [(season, _), ..] => format!("{title} {}", format_season_list(&[*season])),
    }
}

/// Formats a title as `Dune (2021)`.
pub fn format_arr_title(title: &ArrTitle) -> String {
    format_title(&title.title, title.year)
}

/// Formats `season 2`, `seasons 1, 2 and 4`; season 0 contains the specials.
fn format_season_list(seasons: &[u32]) -> String {
    let numbers: Vec<String> = seasons.iter().filter(|season| **season > 0).map(u32::to_string).collect();
    let specials = if seasons.contains(&0) { "specials" } else { "" };
    let listed = match numbers.as_slice() {
        [] => String::new(),
        [one] => format!("season {one}"),
        [first @ .., last] => format!("seasons {} and {last}", first.join(", ")),
    };
    match (specials, listed.as_str()) {
        ("", _) => listed,
        (_, "") => specials.to_owned(),
        (_, _) => format!("{specials} and {listed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn the_bear() -> ArrTitle {
        ArrTitle { id: 15, catalog_id: 403_294, title: "The Bear".into(), year: 2022 }
    }

    fn episode(number: u32) -> ArrEvent {
        ArrEvent::EpisodeImported { show: the_bear(), season: 2, number, copy: ImportKind::First }
    }

    fn pending(id: i64, received_at: i64, event: ArrEvent) -> PendingArrEvent {
        PendingArrEvent { id, instance: "sonarr".into(), event, received_at: second(received_at) }
    }

    #[track_caller]
    fn check_series(complete: &[u32], episodes: &[(u32, u32)], sentence: &str, phrase: &str) {
        let text = format_series_ready(&the_bear(), complete, episodes);
        assert_eq!((text.sentence.as_str(), text.phrase.as_str()), (sentence, phrase));
    }

    #[test]
    fn ready_titles_are_one_plain_sentence() {
        let dune = ArrTitle { id: 1, catalog_id: 438_631, title: "Dune".into(), year: 2021 };
        assert_eq!(format_movie_ready(&dune).sentence, "Dune (2021) is ready to watch.");
        check_series(&[2], &[], "The Bear season 2 is ready to watch.", "The Bear season 2");
        check_series(&[0], &[], "The Bear specials are ready to watch.", "The Bear specials");
        check_series(
            &[1, 2, 3],
            &[],
            "The Bear seasons 1, 2 and 3 are ready to watch.",
            "The Bear seasons 1, 2 and 3",
        );
        check_series(&[], &[(2, 3)], "The Bear S02E03 is ready to watch.", "The Bear S02E03");
        check_series(
            &[],
            &[(2, 1), (2, 2), (2, 3)],
            "The Bear: 3 new episodes of season 2 are ready.",
            "3 new episodes of The Bear",
        );
        check_series(
            &[1],
            &[(0, 1), (2, 1)],
            "The Bear season 1 is ready to watch, and 2 new episodes of specials and season 2.",
            "The Bear season 1",
        );
    }

    #[test]
    fn admin_notifications_name_the_problem_and_the_next_step() {
        assert_eq!(
            format_import_blocked("Dune (2021)", "Radarr").sentence,
            "Radarr could not import Dune (2021). Text STATUS for details."
        );
        assert_eq!(
            format_download_failed("The Bear S02E03").sentence,
            "The download of The Bear S02E03 failed. Ask me to search again."
        );
        let message =
            "Indexers unavailable due to failures: Alpha, Beta, Gamma, Delta, Epsilon, Zeta, Eta, Theta.";
        let issue_sentence = format_health_issue(message, "Radarr").sentence;
        assert_eq!(
            issue_sentence,
            "Radarr has a problem: Indexers unavailable due to failures: Alpha, Beta, Gamma, Delta, Epsilon, Zeta, \
             Eta. See System, Status there."
        );
    }

    #[test]
    fn combined_notification_names_three_titles_and_counts_the_rest() {
        let phrases = ["Dune (2021)", "Heat (1995)", "Up (2009)", "Alien (1979)", "Arrival (2016)"];
        let phrases = phrases.map(str::to_owned);
        let ready = |count: usize| combine_phrases(NotificationTopic::Ready, &phrases[..count]);
        assert_eq!(ready(2), "Dune (2021) and Heat (1995) are ready to watch.");
        assert_eq!(ready(3), "Dune (2021), Heat (1995) and Up (2009) are ready to watch.");
        assert_eq!(ready(4), "Dune (2021), Heat (1995), Up (2009) and 1 more title are ready.");
        assert_eq!(ready(5), "Dune (2021), Heat (1995), Up (2009) and 2 more titles are ready.");
        assert_eq!(
            combine_phrases(NotificationTopic::Problem, &phrases[..2]),
            "These need attention: Dune (2021) and Heat (1995). Text STATUS for details."
        );
    }

    #[test]
    fn matter_ignores_the_source_but_not_the_download_or_day() {
        let matter = |download_id, time| KeyedArrEvent::new(episode(3), download_id, second(time)).matter;
        assert_eq!(matter("abc", 0), matter("abc", 80_000));
        assert_ne!(matter("abc", 0), matter("abc", 90_000));
        assert_ne!(matter("abc", 0), matter("abd", 0));
        assert_ne!(matter("", 0), matter("", 90_000));
        let blocked_matter = |time| {
            KeyedArrEvent::new(ArrEvent::ImportBlocked("Dune (2021)".into()), "abc", second(time)).matter
        };
        assert_eq!(
            (blocked_matter(0) == blocked_matter(60), blocked_matter(0) == blocked_matter(90_000)),
            (true, false)
        );
    }

    #[test]
    fn season_pack_is_collected_until_events_pause_or_time_is_up() {
        let events: Vec<PendingArrEvent> = (0..20).map(|id| pending(id, id * 50, episode(1))).collect();
        let group = |count: usize| group_events(events[..count].to_vec()).remove(0);
        assert_eq!(group(1).ready_at(), second(60));
        assert_eq!(group(3).ready_at(), second(160));
        assert_eq!(group(20).ready_at(), second(600));
    }

    #[test]
    fn resolved_health_problem_is_ready_at_once() {
        let issue = pending(1, 0, ArrEvent::HealthIssue { check: "Indexer".into(), message: "down".into() });
        let restored = pending(2, 30, ArrEvent::HealthRestored { check: "Indexer".into() });
        let other_issue =
            pending(3, 40, ArrEvent::HealthIssue { check: "Disk".into(), message: "full".into() });
        let ready_at: Vec<i64> = group_events(vec![issue, restored, other_issue])
            .iter()
            .map(|group| group.ready_at().as_second())
            .collect();
        assert_eq!(ready_at, [0, 640]);
    }

    #[test]
    fn send_time_respects_quiet_hours_and_the_hourly_limit() {
        let zone = TimeZone::UTC;
        let (noon, late_evening) = (second(12 * 3600), second(22 * 3600 + 1800));
        let five_before = |now: Timestamp| -> Vec<Timestamp> {
            (1..=5).map(|n| now - SignedDuration::from_mins(10 * n)).collect()
        };
        let quiet = QuietHours::parse("23-7");
        assert_eq!(plan_send_time(quiet, &[], noon, &zone), SendTime::Now);
        assert_eq!(plan_send_time(quiet, &five_before(noon)[1..], noon, &zone), SendTime::Now);
        let in_ten_minutes = SendTime::At(noon + SignedDuration::from_mins(10));
        assert_eq!(plan_send_time(quiet, &five_before(noon), noon, &zone), in_ten_minutes);
        assert_eq!(plan_send_time(quiet, &[], second(23 * 3600), &zone), SendTime::At(second(31 * 3600)));
        // The next free slot would be in the quiet hours.
        let recent = [late_evening; 5];
        assert_eq!(plan_send_time(quiet, &recent, late_evening, &zone), SendTime::At(second(31 * 3600)));
    }
}
