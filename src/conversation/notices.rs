//! What Sonarr and Radarr report, which reports belong together, when a notice of them may leave, and its words.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::quiet::Quiet;
use super::title::{clean_line, clean_title, format_title};

/// Reports of one show that come within this time of each other are one matter for people: a pack comes file by file.
const GATHERED_FOR: SignedDuration = SignedDuration::from_secs(60);
/// A pack that never ends is told of after this time.
const GATHERED_AT_MOST: SignedDuration = SignedDuration::from_mins(10);
/// A server that falls ill and gets well again within this time worries nobody.
const ILL_FOR: SignedDuration = SignedDuration::from_mins(10);
/// Single episodes of a show are told of this often at most.
pub const EPISODES_EVERY: SignedDuration = SignedDuration::from_hours(1);
/// The same trouble is told of this often at most.
pub const TROUBLE_EVERY: SignedDuration = SignedDuration::from_hours(24);
/// Notices that one person gets within an hour; what is more waits and comes in one text.
const PER_HOUR: usize = 5;
pub const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// Titles that a text of several names.
const NAMED: usize = 3;
const MESSAGE_UNITS: usize = 90;

/// A movie or a show of one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Title {
    /// The library's own id.
    pub id: i64,
    /// Of TMDB for a movie, of TheTVDB for a show.
    pub catalog_id: i64,
    pub title: String,
    /// 0 where it is not known.
    pub year: u16,
}

/// What a server tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// A movie's file is in place.
    Movie(Title, Copy),
    /// An episode's file is in place.
    Episode { show: Title, season: u32, number: u32, copy: Copy },
    /// A download is finished and cannot be put in place; what it is of.
    Stuck(String),
    /// A download failed, and no other is looked for.
    Failed(String),
    /// The server finds something wrong with itself.
    Ill { check: String, message: String },
    /// That is over.
    Well { check: String },
}

/// Whether a file is the first of what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copy {
    First,
    /// It takes the place of one that was there, so nobody waited for it.
    Better,
}

/// A report and what tells it from every other, whichever way it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    pub matter: String,
    pub report: Report,
}

impl Reported {
    /// `download` is the id that a download keeps from its grab on, empty where there is none. `at` is when it happened.
    pub fn new(report: Report, download: &str, at: Timestamp) -> Self {
        // A release that is got again has the same download: the day tells it from the first time. What comes twice
        // around midnight is two rows, and nobody is told of the second.
        let day = at.strftime("%F");
        let by = if download.is_empty() { day.to_string() } else { format!("{download}:{day}") };
        let matter = match &report {
            Report::Movie(movie, _) => format!("movie:{}:{by}", movie.id),
            Report::Episode { show, season, number, .. } => {
                format!("episode:{}:{season}:{number}:{by}", show.id)
            }
            // Told again on another day, it is another report.
            Report::Stuck(of) if download.is_empty() => format!("stuck:{of}:{day}"),
            Report::Stuck(_) => format!("stuck:{download}:{day}"),
            Report::Failed(of) if download.is_empty() => format!("failed:{of}:{day}"),
            Report::Failed(_) => format!("failed:{download}"),
            Report::Ill { check, .. } => format!("ill:{check}:{}", at.as_millisecond()),
            Report::Well { check } => format!("well:{check}:{}", at.as_millisecond()),
        };
        Self { matter, report }
    }
}

/// A report that nobody was told of yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untold {
    pub id: i64,
    pub instance: String,
    pub report: Report,
    pub received_at: Timestamp,
}

/// What a notice is about: reports of the same go into the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Movie(i64),
    Show(i64),
    /// A download that wants a hand, by what it is of.
    Download(String),
    Check(String),
}

/// Reports that belong together, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub instance: String,
    pub subject: Subject,
    pub reports: Vec<Untold>,
}

/// `untold` is in the order in which it came; a group stands where its first report does.
pub fn groups(untold: Vec<Untold>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for one in untold {
        let subject = match &one.report {
            Report::Movie(movie, _) => Subject::Movie(movie.id),
            Report::Episode { show, .. } => Subject::Show(show.id),
            Report::Stuck(of) | Report::Failed(of) => Subject::Download(of.clone()),
            Report::Ill { check, .. } | Report::Well { check } => Subject::Check(check.clone()),
        };
        match groups.iter_mut().find(|group| group.instance == one.instance && group.subject == subject) {
            Some(group) => group.reports.push(one),
            None => groups.push(Group { instance: one.instance.clone(), subject, reports: vec![one] }),
        }
    }
    groups
}

impl Group {
    /// From when on it may be told of: more that belongs to it may be on its way.
    pub fn ready_at(&self) -> Timestamp {
        let times = self.reports.iter().map(|report| report.received_at);
        let (first, last) = (times.clone().min().unwrap_or_default(), times.max().unwrap_or_default());
        match &self.subject {
            Subject::Movie(_) | Subject::Download(_) => first,
            Subject::Show(_) => (last + GATHERED_FOR).min(first + GATHERED_AT_MOST),
            Subject::Check(_) => match self.reports.last().map(|report| &report.report) {
                Some(Report::Well { .. }) => first,
                Some(_) | None => first + ILL_FOR,
            },
        }
    }
}

/// When a notice may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leave {
    Now,
    At(Timestamp),
}

/// `lately` is when the notices of the last hour were made. One that is ahead of `now` does not count: the clock was set
/// back since.
pub fn leave(quiet: Option<Quiet>, lately: &[Timestamp], now: Timestamp, zone: &TimeZone) -> Leave {
    let mut lately: Vec<Timestamp> = lately.iter().copied().filter(|at| *at <= now).collect();
    lately.sort_unstable();
    let over = lately.len().checked_sub(PER_HOUR).and_then(|place| lately.get(place));
    let at = over.map_or(now, |oldest| (*oldest + HOUR).max(now));
    match quiet.and_then(|quiet| quiet.until(at, zone)) {
        Some(morning) => Leave::At(morning),
        None if at > now => Leave::At(at),
        None => Leave::Now,
    }
}

/// What a text says: alone, and beside others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    pub sentence: String,
    /// `Dune (2021)`, `3 new episodes of The Bear season 2`.
    pub phrase: String,
}

/// Which notices share a text when they have to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    Ready,
    Trouble,
}

pub fn movie_ready(movie: &Title) -> News {
    let phrase = named(movie);
    News { sentence: format!("{phrase} is ready to watch."), phrase }
}

/// `complete` are seasons of which every episode is there, `episodes` are new ones of others by season and number; not
/// both are empty.
pub fn show_ready(show: &Title, complete: &[u32], episodes: &[(u32, u32)]) -> News {
    let title = clean_title(&show.title);
    let mut seasons: Vec<u32> = episodes.iter().map(|(season, _)| *season).collect();
    seasons.dedup();
    let part = match episodes {
        [(season, number)] => format!("S{season:02}E{number:02}"),
        _ => format!("{} new episodes of {}", episodes.len(), season_list(&seasons)),
    };
    match (complete, episodes) {
        ([], [_]) => {
            let phrase = format!("{title} {part}");
            News { sentence: format!("{phrase} is ready to watch."), phrase }
        }
        ([], _) => News {
            sentence: format!("{title}: {part} are ready."),
            phrase: format!("{} new episodes of {title}", episodes.len()),
        },
        (_, rest) => {
            let phrase = format!("{title} {}", season_list(complete));
            let verb = if matches!(complete, [season] if *season > 0) { "is" } else { "are" };
            let more = if rest.is_empty() { String::new() } else { format!(", and {part}") };
            News { sentence: format!("{phrase} {verb} ready to watch{more}."), phrase }
        }
    }
}

pub fn stuck(of: &str, service: &str) -> News {
    let phrase = clean_title(of);
    let sentence =
        format!("{service} wants a hand with {phrase}: it could not be imported. Text STATUS to see why.");
    News { sentence, phrase }
}

pub fn failed(of: &str, service: &str) -> News {
    let phrase = clean_title(of);
    let sentence = format!(
        "The download of {phrase} failed, and {service} looks for no other. Text me to look for {} again.",
        without_year(&phrase)
    );
    News { sentence, phrase }
}

pub fn ill(message: &str, service: &str) -> News {
    let message = clean_line(message, MESSAGE_UNITS).unwrap_or_default();
    let what = match message.trim_end_matches(['.', ',', ' ']) {
        "" => String::new(),
        message => format!(": {message}"),
    };
    News {
        sentence: format!("{service} has a problem{what}. See System, Status there."),
        phrase: format!("{service} itself"),
    }
}

/// The words of one text for what would have been several.
pub fn together(topic: Topic, phrases: &[String]) -> String {
    let more = phrases.len().saturating_sub(NAMED);
    let named = &phrases[..phrases.len().min(NAMED)];
    let list = match (named, more) {
        ([first @ .., last], 0) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        (_, 0) => named.concat(),
        (_, more) => format!("{} and {more} more", named.join(", ")),
    };
    match (topic, more) {
        (Topic::Ready, 0) => format!("{list} are ready to watch."),
        (Topic::Ready, 1) => format!("{list} title are ready."),
        (Topic::Ready, _) => format!("{list} titles are ready."),
        (Topic::Trouble, _) => format!("These want a hand: {list}. Text STATUS to see more."),
    }
}

/// `The Bear S02E03`, or `The Bear season 2` where it is about more than one.
pub fn episodes_named(show: &str, episodes: &[(u32, u32)]) -> String {
    let title = clean_title(show);
    match episodes {
        [] => title,
        [(season, number)] => format!("{title} S{season:02}E{number:02}"),
        [(season, _), ..] => format!("{title} {}", season_list(&[*season])),
    }
}

/// `Dune (2021)`.
pub fn named(title: &Title) -> String {
    format_title(&title.title, title.year)
}

fn without_year(name: &str) -> &str {
    match name.rsplit_once(" (") {
        Some((bare, year)) if year.len() == 5 && year.ends_with(')') => bare,
        Some(_) | None => name,
    }
}

/// `season 2`, `seasons 1, 2 and 4`; season 0 are the specials.
fn season_list(seasons: &[u32]) -> String {
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

    fn the_bear() -> Title {
        Title { id: 15, catalog_id: 403_294, title: "The Bear".into(), year: 2022 }
    }

    fn episode(number: u32) -> Report {
        Report::Episode { show: the_bear(), season: 2, number, copy: Copy::First }
    }

    fn untold(id: i64, at: i64, report: Report) -> Untold {
        Untold { id, instance: "sonarr".into(), report, received_at: second(at) }
    }

    #[track_caller]
    fn check_show(complete: &[u32], episodes: &[(u32, u32)], sentence: &str, phrase: &str) {
        let News { sentence: said, phrase: listed } = show_ready(&the_bear(), complete, episodes);
        assert_eq!((said.as_str(), listed.as_str()), (sentence, phrase));
    }

    #[test]
    fn what_is_ready_is_one_plain_sentence() {
        let dune = Title { id: 1, catalog_id: 438_631, title: "Dune".into(), year: 2021 };
        assert_eq!(movie_ready(&dune).sentence, "Dune (2021) is ready to watch.");
        check_show(&[2], &[], "The Bear season 2 is ready to watch.", "The Bear season 2");
        check_show(&[0], &[], "The Bear specials are ready to watch.", "The Bear specials");
        check_show(
            &[1, 2, 3],
            &[],
            "The Bear seasons 1, 2 and 3 are ready to watch.",
            "The Bear seasons 1, 2 and 3",
        );
        check_show(&[], &[(2, 3)], "The Bear S02E03 is ready to watch.", "The Bear S02E03");
        check_show(
            &[],
            &[(2, 1), (2, 2), (2, 3)],
            "The Bear: 3 new episodes of season 2 are ready.",
            "3 new episodes of The Bear",
        );
        check_show(
            &[1],
            &[(0, 1), (2, 1)],
            "The Bear season 1 is ready to watch, and 2 new episodes of specials and season 2.",
            "The Bear season 1",
        );
    }

    #[test]
    fn admins_hear_what_is_wrong_and_what_to_do() {
        assert_eq!(
            stuck("Dune (2021)", "Radarr").sentence,
            "Radarr wants a hand with Dune (2021): it could not be imported. Text STATUS to see why."
        );
        assert_eq!(
            failed("The Bear S02E03", "Sonarr 4K").sentence,
            "The download of The Bear S02E03 failed, and Sonarr 4K looks for no other. Text me to look for The Bear \
             S02E03 again."
        );
        let message =
            "Indexers unavailable due to failures: Alpha, Beta, Gamma, Delta, Epsilon, Zeta, Eta, Theta.";
        let told = ill(message, "Radarr").sentence;
        assert_eq!(
            told,
            "Radarr has a problem: Indexers unavailable due to failures: Alpha, Beta, Gamma, Delta, Epsilon, Zeta, \
             Eta. See System, Status there."
        );
    }

    #[test]
    fn a_text_of_several_names_three_and_counts_the_rest() {
        let phrases = ["Dune (2021)", "Heat (1995)", "Up (2009)", "Alien (1979)", "Arrival (2016)"];
        let phrases = phrases.map(str::to_owned);
        let ready = |count: usize| together(Topic::Ready, &phrases[..count]);
        assert_eq!(ready(2), "Dune (2021) and Heat (1995) are ready to watch.");
        assert_eq!(ready(3), "Dune (2021), Heat (1995) and Up (2009) are ready to watch.");
        assert_eq!(ready(4), "Dune (2021), Heat (1995), Up (2009) and 1 more title are ready.");
        assert_eq!(ready(5), "Dune (2021), Heat (1995), Up (2009) and 2 more titles are ready.");
        assert_eq!(
            together(Topic::Trouble, &phrases[..2]),
            "These want a hand: Dune (2021) and Heat (1995). Text STATUS to see more."
        );
    }

    #[test]
    fn a_matter_is_the_same_whichever_way_it_comes_and_another_for_another_download_or_day() {
        let matter = |download, at| Reported::new(episode(3), download, second(at)).matter;
        assert_eq!(matter("abc", 0), matter("abc", 80_000));
        assert_ne!(matter("abc", 0), matter("abc", 90_000));
        assert_ne!(matter("abc", 0), matter("abd", 0));
        assert_ne!(matter("", 0), matter("", 90_000));
        let stuck = |at| Reported::new(Report::Stuck("Dune (2021)".into()), "abc", second(at)).matter;
        assert_eq!((stuck(0) == stuck(60), stuck(0) == stuck(90_000)), (true, false));
    }

    #[test]
    fn a_pack_is_waited_for_until_it_is_quiet_but_not_for_ever() {
        let reports: Vec<Untold> = (0..20).map(|at| untold(at, at * 50, episode(1))).collect();
        let group = |count: usize| groups(reports[..count].to_vec()).remove(0);
        assert_eq!(group(1).ready_at(), second(60));
        assert_eq!(group(3).ready_at(), second(160));
        assert_eq!(group(20).ready_at(), second(600));
    }

    #[test]
    fn an_illness_that_passes_is_not_waited_for() {
        let ill = untold(1, 0, Report::Ill { check: "Indexer".into(), message: "down".into() });
        let well = untold(2, 30, Report::Well { check: "Indexer".into() });
        let other = untold(3, 40, Report::Ill { check: "Disk".into(), message: "full".into() });
        let ready: Vec<i64> =
            groups(vec![ill, well, other]).iter().map(|group| group.ready_at().as_second()).collect();
        assert_eq!(ready, [0, 640]);
    }

    #[test]
    fn a_notice_leaves_at_once_but_not_in_quiet_hours_and_not_as_the_sixth_of_an_hour() {
        let zone = TimeZone::UTC;
        let (noon, late) = (second(12 * 3600), second(22 * 3600 + 1800));
        let five_before = |now: Timestamp| -> Vec<Timestamp> {
            (1..=5).map(|n| now - SignedDuration::from_mins(10 * n)).collect()
        };
        let quiet = Quiet::parse("23-7");
        assert_eq!(leave(quiet, &[], noon, &zone), Leave::Now);
        assert_eq!(leave(quiet, &five_before(noon)[1..], noon, &zone), Leave::Now);
        let in_ten = Leave::At(noon + SignedDuration::from_mins(10));
        assert_eq!(leave(quiet, &five_before(noon), noon, &zone), in_ten);
        assert_eq!(leave(quiet, &[], second(23 * 3600), &zone), Leave::At(second(31 * 3600)));
        // Its turn would come in the quiet hours.
        let recent = [late; 5];
        assert_eq!(leave(quiet, &recent, late, &zone), Leave::At(second(31 * 3600)));
    }
}
