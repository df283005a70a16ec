//! Requests that the grammar recognizes, with their arguments.

use serde_json::{Map, Value, json};

use super::period::Period;
use super::recommendation::Recommendation;
use super::seasons::RequestedSeasons;
use super::title_phrase::TitlePhrase;
use super::watched_titles::WatchedTitles;
use crate::conversation::grammar::make_room_step::MakeRoomStep;
use crate::conversation::notifications::quiet_hours::QuietHours;
use crate::conversation::transcript::MediaKind;

/// Request of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Add(TitlePhrase),
    Have(TitlePhrase),
    Search(TitlePhrase),
    /// State of the downloads, or of one title.
    Status(Option<TitlePhrase>),
    Why(TitlePhrase),
    Upcoming {
        title: Option<TitlePhrase>,
        period: Option<Period>,
    },
    Recent(Option<Period>),
    Space,
    /// Space that the titles of the user hold.
    OwnSpace,
    Missing(Option<TitlePhrase>),
    /// Step of making room on the disks.
    MakeRoom(MakeRoomStep),
    Remove {
        titles: Vec<TitlePhrase>,
        keep_files: bool,
    },
    /// Removal of a title that the message does not name.
    RemovePronoun(TitlePhrase),
    /// Removal of these numbers of the list of the user's titles.
    Drop(Vec<u8>),
    /// Notification when the title is ready, or the last mentioned one.
    Follow(Option<TitlePhrase>),
    Unfollow(TitlePhrase),
    Recommend(Recommendation),
    /// What a person has watched lately, and where they stopped; without a name, the user.
    RecentlyWatched {
        by: Option<String>,
    },
    WatchedTitles(WatchedTitles),
    /// Something that several people can watch together; without names, everybody.
    Tonight {
        people: Vec<String>,
        minutes: Option<u32>,
        kind: Option<MediaKind>,
    },
    /// Link of the user to their account at a media server or at a Seerr.
    LinkAccount {
        name: Option<String>,
        is_seerr: bool,
    },
    UnlinkAccount {
        is_seerr: bool,
    },
    Details {
        title: TitlePhrase,
        /// Person whose watching of the title is asked about, if it is not the user.
        viewer: Option<String>,
    },
    More,
    Pick(Vec<u8>),
    ShowPreferences,
    Forget(String),
    Quiet(QuietChoice),
    Users,
    Help,
    Greeting,
    Thanks,
    Undo,
}

/// Choice of the hours without notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuietChoice {
    Hours(QuietHours),
    Off,
}

impl Request {
    /// Returns whether the request only reads, so that a misreading does no harm.
    pub fn only_reads(&self) -> bool {
        match self {
            Self::Have(_)
            | Self::Search(_)
            | Self::Status(_)
            | Self::Why(_)
            | Self::Upcoming { .. }
            | Self::Recent(_)
            | Self::Space
            | Self::OwnSpace
            | Self::Missing(_)
            | Self::Recommend(_)
            | Self::RecentlyWatched { .. }
            | Self::WatchedTitles(_)
            | Self::Details { .. }
            | Self::More
            | Self::ShowPreferences
            | Self::Users
            | Self::Help => true,
            Self::Add(_)
            | Self::Remove { .. }
            | Self::RemovePronoun(_)
            | Self::Drop(_)
            | Self::Follow(_)
            | Self::Unfollow(_)
            | Self::Pick(_)
            | Self::Forget(_)
            | Self::Quiet(_)
            | Self::MakeRoom(_)
            | Self::Tonight { .. }
            | Self::LinkAccount { .. }
            | Self::UnlinkAccount { .. }
            | Self::Greeting
            | Self::Thanks
            | Self::Undo => false,
        }
    }

    /// Returns whether the request changes something.
    pub fn acts(&self) -> bool {
        match self {
            Self::Add(_)
            | Self::Remove { .. }
            | Self::Drop(_)
            | Self::Follow(_)
            | Self::Unfollow(_)
            | Self::Pick(_)
            | Self::Forget(_)
            | Self::Quiet(_)
            | Self::MakeRoom(_)
            | Self::Tonight { .. }
            | Self::LinkAccount { .. }
            | Self::UnlinkAccount { .. }
            | Self::Undo => true,
            Self::RemovePronoun(_) | Self::Greeting | Self::Thanks => false,
            reads => !reads.only_reads(),
        }
    }

    pub fn is_removal(&self) -> bool {
        matches!(
            self,
            Self::Remove { .. }
                | Self::RemovePronoun(_)
                | Self::Drop(_)
                | Self::MakeRoom(MakeRoomStep::Review)
        )
    }

    /// Returns the title that the request names.
    pub fn title(&self) -> Option<&TitlePhrase> {
        match self {
            Self::Add(title)
            | Self::Have(title)
            | Self::Search(title)
            | Self::Why(title)
            | Self::Unfollow(title)
            | Self::RemovePronoun(title)
            | Self::Details { title, .. } => Some(title),
            Self::Status(title) | Self::Missing(title) | Self::Follow(title) => title.as_ref(),
            Self::Upcoming { title, .. } => title.as_ref(),
            Self::Remove { titles, .. } => titles.first(),
            Self::Recent(_)
            | Self::Space
            | Self::OwnSpace
            | Self::Drop(_)
            | Self::MakeRoom(_)
            | Self::Recommend(_)
            | Self::RecentlyWatched { .. }
            | Self::WatchedTitles(_)
            | Self::Tonight { .. }
            | Self::LinkAccount { .. }
            | Self::UnlinkAccount { .. }
            | Self::More
            | Self::Pick(_)
            | Self::ShowPreferences
            | Self::Forget(_)
            | Self::Quiet(_)
            | Self::Users
            | Self::Help
            | Self::Greeting
            | Self::Thanks
            | Self::Undo => None,
        }
    }

    /// Returns the name and the arguments of the intent, as labeled phrases state them.
    pub fn intent(&self) -> (&'static str, Value) {
        let (name, arguments) = match self {
            Self::Add(phrase) => ("add", add_arguments(phrase)),
            Self::Have(phrase) => ("have", have_arguments(phrase)),
            Self::Search(phrase) => ("search", title_arguments(Some(phrase))),
            Self::Status(phrase) => ("status", title_arguments(phrase.as_ref())),
            Self::Why(phrase) => ("why", title_arguments(Some(phrase))),
            Self::Upcoming { title, period } => {
                let mut arguments = title_arguments(title.as_ref());
                insert(&mut arguments, "when", period.map(Period::as_str));
                ("upcoming", arguments)
            }
            Self::Recent(period) => {
                let mut arguments = Map::new();
                insert(&mut arguments, "when", period.map(Period::as_str));
                ("recent", arguments)
            }
            Self::Space => ("space", Map::new()),
            Self::OwnSpace => ("my_space", Map::new()),
            Self::MakeRoom(step) => ("make_room", object("step", json!(step))),
            Self::Drop(numbers) => ("drop", object("numbers", json!(numbers))),
            Self::Missing(phrase) => ("missing", title_arguments(phrase.as_ref())),
            Self::Remove { titles, keep_files } => ("remove", remove_arguments(titles, *keep_files)),
            Self::RemovePronoun(_) => ("pronoun_remove", Map::new()),
            Self::Follow(phrase) => ("follow", title_arguments(phrase.as_ref())),
            Self::Unfollow(phrase) => ("unfollow", title_arguments(Some(phrase))),
            Self::Recommend(recommendation) => ("recommend", recommendation.arguments()),
            Self::RecentlyWatched { by } => {
                let mut arguments = Map::new();
                insert(&mut arguments, "by", by.clone());
                ("recently_watched", arguments)
            }
            Self::WatchedTitles(titles) => ("watched_titles", titles.arguments()),
            Self::Tonight { people, minutes, kind } => {
                ("tonight", tonight_arguments(people, *minutes, *kind))
            }
            Self::LinkAccount { name, is_seerr } => {
                let mut arguments = Map::new();
                insert(&mut arguments, "name", name.clone());
                insert(&mut arguments, "seerr", is_seerr.then_some(true));
                ("link_account", arguments)
            }
            Self::UnlinkAccount { is_seerr } => {
                let mut arguments = Map::new();
                insert(&mut arguments, "seerr", is_seerr.then_some(true));
                ("unlink_account", arguments)
            }
            Self::Details { title, viewer } => {
                let mut arguments = title_arguments(Some(title));
                insert(&mut arguments, "viewer", viewer.clone());
                ("details", arguments)
            }
            Self::More => ("more", Map::new()),
            Self::Pick(numbers) => ("pick", object("numbers", json!(numbers))),
            Self::ShowPreferences => ("preferences_show", Map::new()),
            Self::Forget(what) => ("forget", object("what", json!(what))),
            Self::Quiet(QuietChoice::Off) => ("quiet", object("off", json!(true))),
            Self::Quiet(QuietChoice::Hours(hours)) => {
                let hours = format!("{}-{}", hours.start_hour(), hours.end_hour());
                ("quiet", object("hours", json!(hours)))
            }
            Self::Users => ("users", Map::new()),
            Self::Help => ("help", Map::new()),
            Self::Greeting => ("greeting", Map::new()),
            Self::Thanks => ("thanks", Map::new()),
            Self::Undo => ("undo", Map::new()),
        };
        (name, Value::Object(arguments))
    }
}

impl RequestedSeasons {
    pub fn to_json(&self) -> Value {
        match self {
            Self::All => json!("all"),
            Self::First => json!("first"),
            Self::Latest => json!("latest"),
            Self::Listed(numbers) => json!(numbers),
        }
    }

    /// Returns the numbers of the named seasons.
    pub fn numbers(&self) -> Vec<u32> {
        match self {
            Self::First => vec![1],
            Self::Listed(numbers) => numbers.clone(),
            Self::All | Self::Latest => Vec::new(),
        }
    }

    /// Returns the only season, if there is one.
    pub fn only(&self) -> Option<u32> {
        match self {
            Self::Listed(numbers) if numbers.len() == 1 => numbers.first().copied(),
            Self::First => Some(1),
            Self::Listed(_) | Self::All | Self::Latest => None,
        }
    }
}

/// Returns the arguments of a request for something that several people can watch.
pub fn tonight_arguments(
    people: &[String],
    minutes: Option<u32>,
    kind: Option<MediaKind>,
) -> Map<String, Value> {
    let mut arguments = Map::new();
    insert(&mut arguments, "people", Some(people).filter(|people| !people.is_empty()));
    insert(&mut arguments, "minutes", minutes);
    insert(&mut arguments, "type", kind);
    arguments
}

fn object(key: &str, value: Value) -> Map<String, Value> {
    std::iter::once((key.to_owned(), value)).collect()
}

fn insert(arguments: &mut Map<String, Value>, key: &str, value: Option<impl serde::Serialize>) {
    if let Some(value) = value {
        arguments.insert(key.to_owned(), json!(value));
    }
}

fn title_arguments(phrase: Option<&TitlePhrase>) -> Map<String, Value> {
    let named = phrase.filter(|phrase| phrase.reference.is_none());
    named.map(|phrase| object("title", json!(phrase.title))).unwrap_or_default()
}

fn add_arguments(phrase: &TitlePhrase) -> Map<String, Value> {
    let mut arguments = title_arguments(Some(phrase));
    insert(&mut arguments, "year", phrase.year);
    insert(&mut arguments, "type", phrase.kind);
    insert(&mut arguments, "seasons", phrase.seasons.as_ref().map(RequestedSeasons::to_json));
    insert(&mut arguments, "quality", phrase.four_k.then_some("4k"));
    arguments
}

fn have_arguments(phrase: &TitlePhrase) -> Map<String, Value> {
    let mut arguments = title_arguments(Some(phrase));
    insert(&mut arguments, "season", phrase.seasons.as_ref().and_then(RequestedSeasons::only));
    insert(&mut arguments, "episode", phrase.episode);
    arguments
}

fn remove_arguments(titles: &[TitlePhrase], keep_files: bool) -> Map<String, Value> {
    let names: Vec<&str> = titles.iter().map(|phrase| phrase.title.as_str()).collect();
    let mut arguments = object("titles", json!(names));
    let season = titles.iter().find_map(|phrase| phrase.seasons.as_ref()?.only());
    insert(&mut arguments, "season", season);
    insert(&mut arguments, "keep_files", keep_files.then_some(true));
    insert(&mut arguments, "year", titles.iter().find_map(|phrase| phrase.year));
    arguments
}
