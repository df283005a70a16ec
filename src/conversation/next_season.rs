//! Offer of the next season to a person who has nearly watched what is there of a series.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::grammar::keyword_grammar;
use super::grammar::requests::parser::parse_line;
use super::grammar::requests::request::Request;
use super::grammar::requests::seasons::RequestedSeasons;
use super::notifications::arr_events::{ArrTitle, NotificationText};
use super::text::message_format::format_size;
use super::text::title::{clean_title, format_title};
use super::text::title_key::{is_same_key, title_key};

/// Maximum number of episodes that the person has not reached yet.
const MAX_EPISODES_LEFT: usize = 2;
/// Maximum age of the last play. A series that was left earlier is not continued soon.
const MAX_PLAY_AGE: SignedDuration = SignedDuration::from_hours(14 * 24);
/// Minimum time between two offers to one person.
pub const OFFER_INTERVAL: SignedDuration = SignedDuration::from_hours(24);
const GB: u64 = 1_000_000_000;

/// Episode of a series in the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryEpisode {
    pub season: u32,
    pub number: u32,
    pub has_aired: bool,
    pub is_monitored: bool,
    pub file: Option<EpisodeFile>,
}

/// File of one or more episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpisodeFile {
    pub id: i64,
    /// Size, or 0 if it is unknown.
    pub size_bytes: u64,
}

/// Episodes and monitored seasons of a series in the library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibrarySeries {
    pub episodes: Vec<LibraryEpisode>,
    pub monitored_seasons: Vec<u32>,
}

/// Episodes of a series that one person has watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchedEpisodes {
    /// Finished episodes by season and number.
    pub finished: BTreeSet<(u32, u32)>,
    /// Time of the last play, also of one that was not finished, if it is known.
    pub last_play: Option<Timestamp>,
}

/// Season that follows what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextSeason {
    pub number: u32,
    /// Number of its episodes that have aired.
    pub aired: usize,
    /// Number of its episodes that are known, including later ones.
    pub listed: usize,
    /// Estimated size of the aired episodes, if the sizes of other episodes are known.
    pub size_bytes: Option<u64>,
    /// Number of episodes that the person has not reached yet.
    pub episodes_left: usize,
}

/// Decision about the offer of a next season.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextSeasonDecision {
    Offer(NextSeason),
    /// The person has not finished any episode of the last season that is there.
    NotWatched,
    /// The last play was too long ago, or its time is unknown.
    NotInTime,
    TooManyLeft,
    /// Later episodes of the last season have aired and are not there.
    SeasonIncomplete,
    /// No episode of a next season has aired.
    NotAired,
    /// The next season is monitored, at least in part.
    Monitored,
}

/// Returns the maximum age of the last play of a series whose next season is offered. It is at most the retention period,
/// so that the record of an offer is kept until the series is too old for another one.
pub fn max_play_age(retention: SignedDuration) -> SignedDuration {
    MAX_PLAY_AGE.min(retention)
}

/// Returns whether a play is recent enough.
pub fn is_in_time(play: Option<Timestamp>, max_age: SignedDuration, now: Timestamp) -> bool {
    play.is_some_and(|play| now.duration_since(play) <= max_age)
}

/// Decides whether a person is offered the season after the last one that has files. Specials do not count.
pub fn decide_next_season(
    series: &LibrarySeries,
    watched: &WatchedEpisodes,
    max_age: SignedDuration,
    now: Timestamp,
) -> NextSeasonDecision {
    let regular = || series.episodes.iter().filter(|episode| episode.season > 0);
    let there = || regular().filter(|episode| episode.file.is_some());
    let Some(last) = there().map(|episode| (episode.season, episode.number)).max() else {
        return NextSeasonDecision::NotWatched;
    };
    let (season, next) = (last.0, last.0 + 1);
    let finished = watched.finished.range((season, 0)..(next, 0)).next_back();
    let Some(reached) = finished.copied() else { return NextSeasonDecision::NotWatched };
    if !is_in_time(watched.last_play, max_age, now) {
        return NextSeasonDecision::NotInTime;
    }
    let episodes_left = there().filter(|episode| (episode.season, episode.number) > reached).count();
    if episodes_left > MAX_EPISODES_LEFT {
        return NextSeasonDecision::TooManyLeft;
    }
    let is_missing =
        |episode: &LibraryEpisode| episode.season == season && episode.number > last.1 && episode.has_aired;
    if regular().any(is_missing) {
        return NextSeasonDecision::SeasonIncomplete;
    }
    let listed: Vec<&LibraryEpisode> = regular().filter(|episode| episode.season == next).collect();
    let aired = listed.iter().filter(|episode| episode.has_aired).count();
    if aired == 0 {
        return NextSeasonDecision::NotAired;
    }
    if series.monitored_seasons.contains(&next) || listed.iter().any(|episode| episode.is_monitored) {
        return NextSeasonDecision::Monitored;
    }
    NextSeasonDecision::Offer(NextSeason {
        number: next,
        aired,
        listed: listed.len(),
        size_bytes: estimate_size(there(), aired),
        episodes_left,
    })
}

/// Estimates the size of a number of episodes from those that are there. A file of several episodes counts once.
fn estimate_size<'e>(there: impl Iterator<Item = &'e LibraryEpisode>, episodes: usize) -> Option<u64> {
    let (mut count, mut files) = (0, BTreeMap::new());
    for file in there.filter_map(|episode| episode.file).filter(|file| file.size_bytes > 0) {
        count += 1;
        files.insert(file.id, file.size_bytes);
    }
    let total: u64 = files.values().sum();
    let estimate = u128::from(total) * u128::try_from(episodes).ok()? / std::num::NonZeroU128::new(count)?;
    u64::try_from(estimate).ok().filter(|bytes| *bytes > 0)
}

/// Formats the offer of a next season. Returns `None` if no words ask for it in a way that is understood without a model.
pub fn format_season_offer(series: &ArrTitle, next: &NextSeason) -> Option<NotificationText> {
    let words = request_words(series, next.number)?;
    let title = clean_title(&series.title);
    let left = match next.episodes_left {
        0 => format!("You have watched the last episode of {title} here."),
        1 => format!("You have 1 episode of {title} left."),
        several => format!("You have {several} episodes of {title} left."),
    };
    let size = next.size_bytes.map(|bytes| format!(", about {}", format_estimate(bytes)));
    let size = size.unwrap_or_default();
    let season = format!("Season {} has {}{size}.", next.number, format_episode_count(next));
    Some(NotificationText {
        sentence: format!("{left} {season} Text {words} to add it."),
        phrase: format!("{title} season {}", next.number),
    })
}

fn format_episode_count(next: &NextSeason) -> String {
    match (next.aired, next.listed) {
        (aired, listed) if aired < listed => format!("{aired} of {listed} episodes so far"),
        (1, _) => "1 episode".to_owned(),
        (aired, _) => format!("{aired} episodes"),
    }
}

/// Formats an estimated size: `24 GB`, `8.5 GB`.
fn format_estimate(bytes: u64) -> String {
    let rounded = if bytes < 10 * GB { bytes } else { (bytes + GB / 2) / GB * GB };
    format_size(rounded)
}

/// Returns the words that ask for a season, such as `GET SEASON 2 OF SEVERANCE (2022)`: with the year, because a movie may
/// have the same title, and with the title in quotes if it would be misread otherwise.
fn request_words(series: &ArrTitle, season: u32) -> Option<String> {
    let title = clean_title(&series.title);
    let bare_title = title.replace('"', "");
    let quoted_title = format_title(&format!("\"{bare_title}\""), series.year);
    [format_title(&title, series.year), quoted_title]
        .into_iter()
        .map(|title| format!("GET SEASON {season} OF {}", to_upper_case(&title)))
        .find(|words| is_request_for(words, series, season))
}

fn is_request_for(words: &str, series: &ArrTitle, season: u32) -> bool {
    if keyword_grammar::parse_command(words).is_some() {
        return false;
    }
    let requests = parse_line(words).first_reading();
    let [Request::Add(phrase)] = requests.as_slice() else { return false };
    let title = series.title.strip_suffix(&format!("({})", series.year)).unwrap_or(&series.title);
    is_same_key(&title_key(&phrase.title), &title_key(title))
        && phrase.year == (series.year > 0).then_some(series.year)
        && phrase.seasons == Some(RequestedSeasons::Listed(vec![season]))
        && phrase.reference.is_none()
        && phrase.episode.is_none()
        && !phrase.four_k
}

/// Converts letters to upper case if the GSM alphabet has the upper-case letter.
fn to_upper_case(text: &str) -> String {
    let convert = |letter: char| match letter {
        'ä' | 'å' | 'æ' | 'ç' | 'é' | 'ñ' | 'ö' | 'ø' | 'ü' => letter.to_uppercase().to_string(),
        _ => letter.to_ascii_uppercase().to_string(),
    };
    text.chars().map(convert).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_770_000_000, 0);
    const DAY: SignedDuration = SignedDuration::from_hours(24);
    const MAX_AGE: SignedDuration = MAX_PLAY_AGE;

    /// Builds a series from its seasons: the number of episodes that are there, of those that have aired, and of all.
    fn series(seasons: &[(u32, u32, u32)]) -> LibrarySeries {
        let episodes = (1..).zip(seasons).flat_map(|(season, (there, aired, listed))| {
            let episode = move |number| LibraryEpisode {
                season,
                number,
                has_aired: number <= *aired,
                is_monitored: number <= *there,
                file: (number <= *there).then_some(EpisodeFile {
                    id: i64::from(100 * season + number),
                    size_bytes: 2_400_000_000,
                }),
            };
            (1..=*listed).map(episode)
        });
        LibrarySeries { episodes: episodes.collect(), monitored_seasons: vec![1] }
    }

    fn watched(episodes: &[(u32, u32)], days_ago: i64) -> WatchedEpisodes {
        let last_play = Some(NOW - DAY * i32::try_from(days_ago).unwrap());
        WatchedEpisodes { finished: episodes.iter().copied().collect(), last_play }
    }

    fn decide(series: &LibrarySeries, watched: &WatchedEpisodes) -> NextSeasonDecision {
        decide_next_season(series, watched, MAX_AGE, NOW)
    }

    #[track_caller]
    fn check(seasons: &[(u32, u32, u32)], episodes: &[(u32, u32)], expected: NextSeasonDecision) {
        assert_eq!(decide(&series(seasons), &watched(episodes, 1)), expected, "{seasons:?} {episodes:?}");
    }

    fn offer(number: u32, episodes_left: usize) -> NextSeasonDecision {
        NextSeasonDecision::Offer(NextSeason {
            number,
            aired: 10,
            listed: 10,
            size_bytes: Some(24_000_000_000),
            episodes_left,
        })
    }

    #[test]
    fn next_season_is_offered_with_at_most_two_episodes_left() {
        let one_season = [(8, 8, 8), (0, 10, 10)];
        check(&one_season, &[(1, 6)], offer(2, 2));
        check(&one_season, &[(1, 1), (1, 7)], offer(2, 1));
        check(&one_season, &[(1, 8)], offer(2, 0));
        check(&one_season, &[(1, 1), (1, 5)], NextSeasonDecision::TooManyLeft);
        check(&[(8, 8, 8), (8, 8, 8), (0, 10, 10)], &[(1, 8), (2, 6)], offer(3, 2));
    }

    #[test]
    fn season_is_not_offered_to_somebody_who_watches_earlier_ones() {
        let two_seasons = [(8, 8, 8), (8, 8, 8), (0, 10, 10)];
        check(&two_seasons, &[(1, 8)], NextSeasonDecision::NotWatched);
        check(&two_seasons, &[], NextSeasonDecision::NotWatched);
        check(&[(0, 8, 8)], &[(1, 8)], NextSeasonDecision::NotWatched);
    }

    #[test]
    fn season_is_offered_only_if_it_follows_what_is_there() {
        check(&[(8, 8, 8)], &[(1, 8)], NextSeasonDecision::NotAired);
        check(&[(8, 8, 8), (0, 0, 10)], &[(1, 8)], NextSeasonDecision::NotAired);
        check(&[(5, 8, 8), (0, 10, 10)], &[(1, 5)], NextSeasonDecision::SeasonIncomplete);
        // Episodes to come are no gap.
        check(&[(5, 5, 8), (0, 10, 10)], &[(1, 5)], offer(2, 0));
        check(&[(8, 8, 8), (1, 10, 10)], &[(1, 8)], NextSeasonDecision::NotWatched);
    }

    #[test]
    fn monitored_season_is_not_offered() {
        let mut wanted = series(&[(8, 8, 8), (0, 10, 10)]);
        wanted.monitored_seasons.push(2);
        assert_eq!(decide(&wanted, &watched(&[(1, 8)], 1)), NextSeasonDecision::Monitored);
        wanted.monitored_seasons.pop();
        wanted.episodes.last_mut().unwrap().is_monitored = true;
        assert_eq!(decide(&wanted, &watched(&[(1, 8)], 1)), NextSeasonDecision::Monitored);
    }

    #[test]
    fn series_that_was_left_is_not_continued() {
        let library = series(&[(8, 8, 8), (0, 10, 10)]);
        let decide_after = |days| decide(&library, &watched(&[(1, 7)], days));
        assert_eq!([decide_after(14), decide_after(15)], [offer(2, 1), NextSeasonDecision::NotInTime]);
        let without_time = WatchedEpisodes { last_play: None, ..watched(&[(1, 7)], 0) };
        assert_eq!(decide(&library, &without_time), NextSeasonDecision::NotInTime);
        assert_eq!((max_play_age(DAY), max_play_age(DAY * 365)), (DAY, DAY * 14));
    }

    #[test]
    fn specials_neither_count_as_watched_nor_as_there() {
        let mut library = series(&[(8, 8, 8), (0, 10, 10)]);
        let special = LibraryEpisode { season: 0, number: 99, ..library.episodes[0] };
        library.episodes.push(special);
        assert_eq!(decide(&library, &watched(&[(0, 99)], 1)), NextSeasonDecision::NotWatched);
        assert_eq!(decide(&library, &watched(&[(1, 8)], 1)), offer(2, 0));
    }

    #[test]
    fn size_is_estimated_from_files_of_known_size() {
        let mut library = series(&[(4, 4, 4), (0, 10, 10)]);
        let size = |library: &LibrarySeries| match decide(library, &watched(&[(1, 4)], 1)) {
            NextSeasonDecision::Offer(next) => next.size_bytes,
            other => panic!("{other:?}"),
        };
        // The first two episodes share a file.
        library.episodes[1].file = library.episodes[0].file;
        assert_eq!(size(&library), Some(18_000_000_000));
        for episode in &mut library.episodes {
            episode.file = episode.file.map(|file| EpisodeFile { size_bytes: 0, ..file });
        }
        assert_eq!(size(&library), None);
    }

    fn format(title: &str, year: u16, next: NextSeason) -> Option<String> {
        let series = ArrTitle { id: 1, catalog_id: 1, title: title.into(), year };
        format_season_offer(&series, &next).map(|text| text.sentence)
    }

    fn next_season() -> NextSeason {
        NextSeason { number: 2, aired: 10, listed: 10, size_bytes: Some(24_400_000_000), episodes_left: 2 }
    }

    #[test]
    fn offer_states_what_is_left_the_size_and_the_words() {
        let next = next_season();
        let format = |next| format("Severance", 2022, next).unwrap();
        assert_eq!(
            format(next),
            "You have 2 episodes of Severance left. Season 2 has 10 episodes, about 24 GB. Text GET SEASON 2 OF SEVERANCE \
             (2022) to add it."
        );
        assert_eq!(
            format(NextSeason { episodes_left: 1, aired: 4, size_bytes: Some(9_640_000_000), ..next }),
            "You have 1 episode of Severance left. Season 2 has 4 of 10 episodes so far, about 9.6 GB. Text GET SEASON 2 \
             OF SEVERANCE (2022) to add it."
        );
        assert_eq!(
            format(NextSeason { episodes_left: 0, aired: 1, listed: 1, size_bytes: None, ..next }),
            "You have watched the last episode of Severance here. Season 2 has 1 episode. Text GET SEASON 2 OF SEVERANCE \
             (2022) to add it."
        );
    }

    #[track_caller]
    fn check_words(title: &str, year: u16, expected: Option<&str>) {
        let series = ArrTitle { id: 1, catalog_id: 1, title: title.into(), year };
        assert_eq!(request_words(&series, 2).as_deref(), expected, "{title}");
    }

    #[test]
    fn words_of_an_offer_are_a_request_for_the_season() {
        for (title, year, words) in [
            ("The Office (US)", 2005, "GET SEASON 2 OF THE OFFICE (US) (2005)"),
            ("1883", 2021, "GET SEASON 2 OF 1883 (2021)"),
            ("Pokémon", 1997, "GET SEASON 2 OF POKÉMON (1997)"),
            ("House of the Dragon", 0, "GET SEASON 2 OF HOUSE OF THE DRAGON"),
            ("Battlestar Galactica (2003)", 2003, "GET SEASON 2 OF BATTLESTAR GALACTICA (2003)"),
            (
                "Law & Order: Special Victims Unit",
                1999,
                "GET SEASON 2 OF LAW & ORDER: SPECIAL VICTIMS UNIT (1999)",
            ),
        ] {
            check_words(title, year, Some(words));
        }
    }

    #[test]
    fn title_that_would_be_misread_is_quoted() {
        check_words("Say Yes to the Dress", 2007, Some("GET SEASON 2 OF \"SAY YES TO THE DRESS\" (2007)"));
    }

    #[test]
    fn title_without_understandable_words_is_not_offered() {
        check_words("???", 2007, None);
        assert_eq!(format("???", 2007, next_season()), None);
    }
}
