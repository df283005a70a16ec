//! The words around a deletion: the question that names what goes, and the report of what went.

use super::frozen::{Afterwards, Episodes, Extent, FrozenItem};
use super::text;
use super::title::format_title;
use super::transcript::MediaKind;

/// Items that one question may name; further ones of the same call are left for later.
pub const MAX_ITEMS: usize = 5;
/// Episodes of one copy that a question names one by one.
const MOST_EPISODES_NAMED: usize = 4;
/// Above this a bare yes is not enough.
const CODE_FROM_BYTES: u64 = 100_000_000_000;

/// When a question asks for a code beside the yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodePolicy {
    /// For two or more items, or over 100 GB.
    Bulk,
    Always,
}

impl CodePolicy {
    pub fn needs_code(self, items: &[FrozenItem]) -> bool {
        match self {
            Self::Always => true,
            Self::Bulk => items.len() > 1 || total_bytes(items) > CODE_FROM_BYTES,
        }
    }
}

/// The question that is asked, word for word. `code` is shown in it.
pub fn question(items: &[FrozenItem], code: Option<&str>) -> String {
    let answer = match code {
        Some(code) => format!("Reply YES {code} or NO."),
        None => "Reply YES or NO.".to_owned(),
    };
    match items {
        [item] => format!("{} {answer}", question_for_one(item)),
        _ => {
            let names: Vec<String> = items.iter().map(part_of_list).collect();
            let keeps = if items.iter().any(|item| item.delete_files) { "Delete" } else { "Remove" };
            let total = match total_bytes(items) {
                0 => String::new(),
                bytes => format!(" Total {}.", text::size(bytes)),
            };
            format!("{keeps} {}: {}?{total} {answer}", items.len(), names.join("; "))
        }
    }
}

fn question_for_one(item: &FrozenItem) -> String {
    let name = name(item);
    let size = text::size(item.fingerprint.size_bytes);
    match &item.extent {
        Extent::Whole => question_for_whole(item, &name, &size),
        Extent::Season { files, .. } => {
            format!("Delete {name}, {}, {size}, and stop looking for it?", counted(files.len()))
        }
        Extent::Copy { .. } => format!("Delete {name}, {size}, and look for another one?"),
        Extent::Download(Afterwards::AnotherCopy) => format!("Remove {name} and look for another copy?"),
        Extent::Download(Afterwards::Nothing) => format!("Remove {name}, and look for no other copy now?"),
    }
}

fn question_for_whole(item: &FrozenItem, name: &str, size: &str) -> String {
    match (item.delete_files, item.fingerprint.size_bytes, item.kind) {
        (false, 0, _) | (true, 0, _) => format!("Remove {name} from the library? It has no files."),
        (false, _, MediaKind::Movie) => format!("Remove {name} from the library and keep its file, {size}?"),
        (false, _, MediaKind::Series) => {
            format!("Remove {name} from the library and keep its files, {size}?")
        }
        (true, _, MediaKind::Movie) => format!("Delete {name} and its file, {size}?"),
        (true, _, MediaKind::Series) => match item.fingerprint.seasons {
            Some(1) => format!("Delete {name}, 1 season and the files, {size}?"),
            Some(seasons) => format!("Delete {name}, {seasons} seasons and the files, {size}?"),
            None => format!("Delete {name} and the files, {size}?"),
        },
    }
}

fn counted(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

/// What the admins are asked for a member who may not delete.
pub fn wish(who: &str, item: &FrozenItem, code: &str) -> String {
    format!("{who} asks to delete {}. Reply APPROVE {code} or DENY {code}", part_of_list(item))
}

/// What the member hears of a wish that nobody carried out.
pub fn wish_denied(item: &FrozenItem) -> String {
    format!("An admin would like to keep {}, so it stays.", name(item))
}

pub fn wish_expired(item: Option<&FrozenItem>) -> String {
    let name = item.map_or_else(|| "that title".to_owned(), name);
    format!("Nobody has answered your request to delete {name}, so it is kept. You can ask again.")
}

/// Outcome of an approved removal request whose title cannot be read.
pub fn untitled_wish_outcome(outcome: ItemOutcome) -> String {
    match outcome {
        ItemOutcome::Unknown => {
            "An admin agreed to your removal request, but I could not find out whether the title is deleted."
        }
        ItemOutcome::Deleted | ItemOutcome::AlreadyGone => {
            "An admin agreed to your removal request, and the title is deleted."
        }
        ItemOutcome::Changed
        | ItemOutcome::Failed
        | ItemOutcome::NotPermitted
        | ItemOutcome::Stopped
        | ItemOutcome::StillThere => {
            "An admin agreed to your removal request, but the title could not be deleted. Please ask again later."
        }
    }
    .to_owned()
}

/// What the member hears of a wish that an admin approved.
pub fn wish_outcome(item: &FrozenItem, outcome: ItemOutcome) -> String {
    let name = name(item);
    match outcome {
        ItemOutcome::Deleted => format!("An admin agreed: {name} is deleted."),
        ItemOutcome::AlreadyGone => format!("An admin agreed, and {name} was gone already."),
        ItemOutcome::Changed => {
            format!("{name} has changed since you asked, so it was kept. Ask again if it should go.")
        }
        ItemOutcome::Failed | ItemOutcome::NotPermitted | ItemOutcome::Stopped => {
            format!("An admin agreed, but {name} could not be deleted. Please ask again later.")
        }
        ItemOutcome::StillThere => format!("An admin agreed, but {}", still_there(service(item), &[item])),
        ItemOutcome::Unknown => {
            format!("An admin agreed, but I could not find out whether {name} is deleted.")
        }
    }
}

fn part_of_list(item: &FrozenItem) -> String {
    let seasons = match item.fingerprint.seasons {
        Some(1) => ", 1 season".to_owned(),
        Some(seasons) => format!(", {seasons} seasons"),
        None => String::new(),
    };
    let size = match (item.fingerprint.size_bytes, item.delete_files) {
        (0, _) => ", no files".to_owned(),
        (bytes, true) => format!(", {}", text::size(bytes)),
        (bytes, false) => format!(", keeps {}", text::size(bytes)),
    };
    format!("{}{seasons}{size}", name(item))
}

/// `Dune (2021)` or `season 2 of The Bear (2022)`, fit to stand in a question.
pub fn name(item: &FrozenItem) -> String {
    let title = format_title(&item.fingerprint.title, item.fingerprint.year);
    match &item.extent {
        Extent::Whole => title,
        Extent::Season { number, .. } => format!("{} of {title}", season(*number)),
        Extent::Copy { episodes: None, .. } => format!("this copy of {title}"),
        Extent::Copy { episodes: Some(episodes), .. } => {
            format!("this copy of {}", episodes_of(&title, episodes))
        }
        Extent::Download(_) => format!("the download of {title}"),
    }
}

/// `season 2`, `the specials`.
pub fn season(number: u32) -> String {
    if number == 0 { "the specials".to_owned() } else { format!("season {number}") }
}

/// `The Bear (2022) S02E03, E04`, `10 episodes of season 2 of The Bear (2022)`.
fn episodes_of(title: &str, Episodes { season: number, numbers }: &Episodes) -> String {
    match numbers.as_slice() {
        [] => format!("{} of {title}", season(*number)),
        few if few.len() <= MOST_EPISODES_NAMED => {
            let codes: Vec<String> = few.iter().map(|episode| format!("E{episode:02}")).collect();
            format!("{title} S{number:02}{}", codes.join(", "))
        }
        many => format!("{} episodes of {} of {title}", many.len(), season(*number)),
    }
}

fn total_bytes(items: &[FrozenItem]) -> u64 {
    items.iter().filter(|item| item.delete_files).map(|item| item.fingerprint.size_bytes).sum()
}

/// A sentence that may begin with `season 2` or `this copy`.
fn begun(sentence: &str) -> String {
    let ours = ["the ", "this ", "season "].iter().any(|word| sentence.starts_with(word));
    match sentence.split_at_checked(1) {
        Some((first, rest)) if ours => first.to_ascii_uppercase() + rest,
        Some(_) | None => sentence.to_owned(),
    }
}

/// `Dune (2021) is kept.`
pub fn kept(names: &[String]) -> String {
    begun(&kept_titles(names))
}

/// The first sentence of a message that closes a question: `OK, Dune (2021) is kept.`
pub fn closing(names: &[String]) -> String {
    format!("OK, {}", kept_titles(names))
}

fn kept_titles(names: &[String]) -> String {
    match names {
        [] => "nothing is deleted.".to_owned(),
        [name] => format!("{name} is kept."),
        [first @ .., last] => format!("{} and {last} are kept.", first.join(", ")),
    }
}

/// What became of one confirmed item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemOutcome {
    Deleted,
    AlreadyGone,
    /// It is not what was asked about any more, so it was kept.
    Changed,
    /// Sonarr or Radarr would not, or could not be reached.
    Failed,
    /// Sonarr or Radarr did not carry it out: a check after the last request found the item, or a part of it, in place.
    StillThere,
    /// The right to delete was taken away since the question.
    NotPermitted,
    /// The turn was taken back before it was begun.
    Stopped,
    /// It cannot be told.
    Unknown,
}

/// The answer to a yes: what happened to each item.
pub fn report(items: &[(FrozenItem, ItemOutcome)]) -> String {
    let with = |wanted: ItemOutcome| -> Vec<&FrozenItem> {
        items.iter().filter(|(_, outcome)| *outcome == wanted).map(|(item, _)| item).collect()
    };
    let by_service = |wanted: ItemOutcome| {
        let (movies, series): (Vec<&FrozenItem>, Vec<&FrozenItem>) =
            with(wanted).into_iter().partition(|item| item.kind == MediaKind::Movie);
        [(RADARR, movies), (SONARR, series)]
    };
    let mut sentences = done(&with(ItemOutcome::Deleted));
    let mut tell = |items: &[&FrozenItem], say: &dyn Fn(&str) -> String| {
        if !items.is_empty() {
            sentences.push(begun(&say(&listed(items))));
        }
    };
    let gone_before = with(ItemOutcome::AlreadyGone);
    let were = if gone_before.len() > 1 { "were" } else { "was" };
    tell(&gone_before, &|names| format!("{names} {were} already gone."));
    tell(&with(ItemOutcome::Changed), &|names| format!("{names} changed since I asked, so I kept it."));
    for (service, refused) in by_service(ItemOutcome::Failed) {
        tell(&refused, &|names| format!("{service} could not delete {names}. Please try again later."));
    }
    for (service, left) in by_service(ItemOutcome::StillThere) {
        tell(&left, &|_| still_there(service, &left));
    }
    tell(&with(ItemOutcome::NotPermitted), &|names| format!("You may not delete titles, so I kept {names}."));
    tell(&with(ItemOutcome::Stopped), &|names| format!("I was stopped before {names}, so it is kept."));
    tell(&with(ItemOutcome::Unknown), &|names| {
        format!("I could not find out whether {names} was deleted. Please have a look.")
    });
    sentences.join(" ")
}

const RADARR: &str = "Radarr";
const SONARR: &str = "Sonarr";

fn service(item: &FrozenItem) -> &'static str {
    match item.kind {
        MediaKind::Movie => RADARR,
        MediaKind::Series => SONARR,
    }
}

/// `Radarr could not do it. Dune (2021) is still there.` Of several files some may be gone.
fn still_there(service: &str, items: &[&FrozenItem]) -> String {
    let names = listed(items);
    let is_whole = |item: &&FrozenItem| matches!(item.extent, Extent::Whole | Extent::Download(_));
    if !items.iter().all(is_whole) {
        return format!("{service} could not do all of it. Please have a look at {names}.");
    }
    let are = if items.len() > 1 { "are" } else { "is" };
    format!("{service} could not do it. {}", begun(&format!("{names} {are} still there.")))
}

/// What is told of that which went: files with what they freed, then downloads, then what another copy is looked for of.
fn done(items: &[&FrozenItem]) -> Vec<String> {
    let of = |wanted: fn(&Extent) -> bool| -> Vec<&FrozenItem> {
        items.iter().copied().filter(|item| wanted(&item.extent)).collect()
    };
    let gone = of(|extent| matches!(extent, Extent::Whole | Extent::Season { .. }));
    let downloads = of(|extent| matches!(extent, Extent::Download(_)));
    let copies = of(|extent| matches!(extent, Extent::Copy { .. }));
    let another = of(|extent| matches!(extent, Extent::Download(Afterwards::AnotherCopy)));
    let freed: u64 =
        gone.iter().filter(|item| item.delete_files).map(|item| item.fingerprint.size_bytes).sum();
    let keeps_files = gone.iter().any(|item| !item.delete_files && item.fingerprint.size_bytes > 0);
    let deletes_files = gone.iter().any(|item| item.delete_files);
    let mut sentences = Vec::new();
    let mut tell = |items: &[&FrozenItem], say: &dyn Fn(&str) -> String| {
        if !items.is_empty() {
            sentences.push(say(&listed(items)));
        }
    };
    tell(&gone, &|names| match (deletes_files, keeps_files) {
        (true, _) => format!("Deleted {names}. Freed {}.", text::size(freed)),
        (false, true) => format!("Removed {names} from the library. The files are kept."),
        (false, false) => format!("Removed {names} from the library."),
    });
    tell(&downloads, &|names| format!("Removed {names}."));
    tell(&copies, &|names| format!("Deleted {names}."));
    if !copies.is_empty() || !another.is_empty() {
        sentences.push("I am looking for another copy.".to_owned());
    }
    sentences
}

fn listed(items: &[&FrozenItem]) -> String {
    let names: Vec<String> = items.iter().map(|item| name(item)).collect();
    names.join(", ")
}

/// How the last question of a user ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Done,
    Denied,
    Expired,
    /// Something else was talked about, or another question took its place.
    Dropped,
    /// The yes came, but not all of it was carried out.
    Failed,
}

/// The answer to a yes or no that comes after the question has ended. `outcomes` are those of the items that were
/// carried out.
pub fn late_answer(ending: Ending, items: &[FrozenItem], outcomes: &[(FrozenItem, ItemOutcome)]) -> String {
    let names: Vec<String> = items.iter().map(name).collect();
    let all_deleted =
        outcomes.iter().all(|(item, outcome)| *outcome == ItemOutcome::Deleted && item.delete_files);
    match ending {
        Ending::Done if all_deleted => {
            let are = if names.len() > 1 { "are" } else { "is" };
            format!("Already done: {} {are} deleted.", names.join(", "))
        }
        Ending::Done => format!("Already answered: {}", report(outcomes)),
        Ending::Failed => {
            let can_be_asked = outcomes.iter().any(|(_, outcome)| *outcome == ItemOutcome::StillThere);
            let ask_again = if can_be_asked { " Ask again to delete." } else { "" };
            format!("No question is open. {}{ask_again}", report(outcomes))
        }
        Ending::Denied => format!("{} Ask again to delete.", kept(&names)),
        Ending::Expired => format!("That question has expired. {} Ask again to delete.", kept(&names)),
        Ending::Dropped => format!("That question is closed. {} Ask again to delete.", kept(&names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::frozen::Fingerprint;

    fn movie(title: &str, year: u16, gigabytes: f64) -> FrozenItem {
        FrozenItem {
            instance: "radarr".into(),
            kind: MediaKind::Movie,
            id: 7,
            delete_files: true,
            extent: Extent::Whole,
            fingerprint: Fingerprint {
                title: title.into(),
                year,
                path: format!("/movies/{title}"),
                size_bytes: (gigabytes * 1e9) as u64,
                seasons: None,
            },
        }
    }

    fn series(title: &str, year: u16, seasons: u32, gigabytes: f64) -> FrozenItem {
        let mut item = movie(title, year, gigabytes);
        item.kind = MediaKind::Series;
        item.fingerprint.seasons = Some(seasons);
        item
    }

    #[test]
    fn a_question_names_title_year_what_goes_and_its_size() {
        let dune = movie("Dune", 2021, 21.4);
        assert_eq!(
            question(std::slice::from_ref(&dune), None),
            "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO."
        );
        assert_eq!(
            question(&[series("Severance", 2022, 2, 41.0)], None),
            "Delete Severance (2022), 2 seasons and the files, 41 GB? Reply YES or NO."
        );
        assert_eq!(
            question(&[FrozenItem { delete_files: false, ..dune.clone() }], None),
            "Remove Dune (2021) from the library and keep its file, 21.4 GB? Reply YES or NO."
        );
        assert_eq!(
            question(&[movie("Paddington", 2014, 0.0)], None),
            "Remove Paddington (2014) from the library? It has no files. Reply YES or NO."
        );
        assert_eq!(
            question(&[dune, movie("Heat", 1995, 18.2)], Some("47")),
            "Delete 2: Dune (2021), 21.4 GB; Heat (1995), 18.2 GB? Total 39.6 GB. Reply YES 47 or NO."
        );
    }

    #[test]
    fn a_part_of_a_title_is_named_with_what_follows() {
        let bear = || series("The Bear", 2022, 3, 18.0);
        let season = FrozenItem {
            extent: Extent::Season { number: 2, files: vec![1; 10], monitored: None },
            ..bear()
        };
        assert_eq!(
            question(std::slice::from_ref(&season), None),
            "Delete season 2 of The Bear (2022), 10 files, 18 GB, and stop looking for it? Reply YES or NO."
        );
        assert_eq!(
            report(&[(season.clone(), ItemOutcome::Deleted)]),
            "Deleted season 2 of The Bear (2022). Freed 18 GB."
        );
        assert_eq!(
            report(&[(season, ItemOutcome::Changed)]),
            "Season 2 of The Bear (2022) changed since I asked, so I kept it."
        );
        let episodes = Some(Episodes { season: 2, numbers: vec![3, 4] });
        let copy = FrozenItem { extent: Extent::Copy { episodes, files: vec![1] }, ..bear() };
        assert_eq!(
            question(std::slice::from_ref(&copy), None),
            "Delete this copy of The Bear (2022) S02E03, E04, 18 GB, and look for another one? Reply YES or NO."
        );
        assert_eq!(
            report(&[(copy, ItemOutcome::Deleted)]),
            "Deleted this copy of The Bear (2022) S02E03, E04. I am looking for another copy."
        );
        let stuck = FrozenItem { extent: Extent::Download(Afterwards::Nothing), ..movie("Dune", 2021, 21.4) };
        assert_eq!(
            question(std::slice::from_ref(&stuck), None),
            "Remove the download of Dune (2021), and look for no other copy now? Reply YES or NO."
        );
        assert_eq!(
            late_answer(Ending::Denied, std::slice::from_ref(&stuck), &[]),
            "The download of Dune (2021) is kept. Ask again to delete."
        );
    }

    #[test]
    fn a_code_is_asked_for_several_items_or_over_100_gb() {
        assert!(!CodePolicy::Bulk.needs_code(&[movie("Dune", 2021, 21.4)]));
        assert!(CodePolicy::Bulk.needs_code(&[movie("Dune", 2021, 100.1)]));
        assert!(CodePolicy::Bulk.needs_code(&[movie("Dune", 2021, 1.0), movie("Heat", 1995, 1.0)]));
        assert!(CodePolicy::Always.needs_code(&[movie("Dune", 2021, 1.0)]));
    }

    #[test]
    fn a_report_says_what_happened_to_each_item() {
        let dune = movie("Dune", 2021, 21.4);
        let heat = movie("Heat", 1995, 18.2);
        assert_eq!(report(&[(dune.clone(), ItemOutcome::Deleted)]), "Deleted Dune (2021). Freed 21.4 GB.");
        assert_eq!(
            report(&[(dune, ItemOutcome::Deleted), (heat, ItemOutcome::Failed)]),
            "Deleted Dune (2021). Freed 21.4 GB. Radarr could not delete Heat (1995). Please try again later."
        );
    }

    #[test]
    fn a_report_names_what_is_still_there_by_its_server() {
        let left = |item| (item, ItemOutcome::StillThere);
        let (dune, heat) = (movie("Dune", 2021, 21.4), movie("Heat", 1995, 18.2));
        assert_eq!(
            report(&[left(dune.clone()), left(heat), left(series("The Bear", 2022, 3, 18.0))]),
            "Radarr could not do it. Dune (2021), Heat (1995) are still there. \
             Sonarr could not do it. The Bear (2022) is still there."
        );
        let extent = Extent::Season { number: 2, files: vec![1, 2], monitored: None };
        assert_eq!(
            report(&[left(FrozenItem { extent, ..series("The Bear", 2022, 3, 18.0) })]),
            "Sonarr could not do all of it. Please have a look at season 2 of The Bear (2022)."
        );
        assert_eq!(
            wish_outcome(&dune, ItemOutcome::StillThere),
            "An admin agreed, but Radarr could not do it. Dune (2021) is still there."
        );
        assert_eq!(
            late_answer(Ending::Failed, std::slice::from_ref(&dune), &[left(dune.clone())]),
            "No question is open. Radarr could not do it. Dune (2021) is still there. Ask again to delete."
        );
    }
}
