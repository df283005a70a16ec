//! Messages about deletions: the confirmation prompt, the report of its outcome, and the messages about removal
//! requests.

use super::target::{DeletionScope, DeletionTarget, DownloadFollowUp, SeasonEpisodes, ViewingKnowledge};
use crate::conversation::text::message_format;
use crate::conversation::text::title::format_title;
use crate::conversation::transcript::MediaKind;

/// Maximum number of items in a confirmation prompt. Further items of the same call need another prompt.
pub const MAX_ITEMS: usize = 5;
/// Maximum number of episodes of a copy that a confirmation prompt lists.
const MAX_NAMED_EPISODES: usize = 4;
/// Maximum size that can be deleted without a code.
const MAX_BYTES_WITHOUT_CODE: u64 = 100_000_000_000;

/// Condition under which a confirmation prompt requires a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodePolicy {
    /// A code for two or more items, or for more than 100 GB.
    Bulk,
    Always,
}

impl CodePolicy {
    pub fn needs_code(self, items: &[DeletionTarget]) -> bool {
        match self {
            Self::Always => true,
            Self::Bulk => items.len() > 1 || total_bytes(items) > MAX_BYTES_WITHOUT_CODE,
        }
    }
}

/// Formats the confirmation prompt, which includes `code`.
pub fn format_confirmation_prompt(items: &[DeletionTarget], code: Option<&str>) -> String {
    let instruction = match code {
        Some(code) => format!("Reply YES {code} or NO."),
        None => "Reply YES or NO.".to_owned(),
    };
    let is_unknown = |item: &DeletionTarget| item.fingerprint.viewing == ViewingKnowledge::Unknown;
    let instruction = match items.iter().any(is_unknown) {
        true => format!("I can't see whether someone is watching. {instruction}"),
        false => instruction,
    };
    match items {
        [item] => format!("{} {instruction}", format_single_prompt(item)),
        _ => {
            let entries: Vec<String> = items.iter().map(format_list_entry).collect();
            let verb = if items.iter().any(|item| item.delete_files) { "Delete" } else { "Remove" };
            let total = match total_bytes(items) {
                0 => String::new(),
                bytes => format!(" Total {}.", message_format::format_size(bytes)),
            };
            format!("{verb} {}: {}?{total} {instruction}", items.len(), entries.join("; "))
        }
    }
}

fn format_single_prompt(item: &DeletionTarget) -> String {
    let name = format_target_name(item);
    let size = message_format::format_size(item.fingerprint.size_bytes);
    match &item.scope {
        DeletionScope::Whole => format_whole_title_prompt(item, &name, &size),
        DeletionScope::Season { files, .. } => {
            format!("Delete {name}, {}, {size}, and no longer search for it?", format_file_count(files.len()))
        }
        DeletionScope::Copy { .. } => format!("Delete {name}, {size}, and look for another one?"),
        DeletionScope::Download(DownloadFollowUp::SearchAgain) => {
            format!("Remove {name} and look for another copy?")
        }
        DeletionScope::Download(DownloadFollowUp::Nothing) => {
            format!("Remove {name} without looking for another copy?")
        }
    }
}

fn format_whole_title_prompt(item: &DeletionTarget, name: &str, size: &str) -> String {
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

fn format_file_count(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

/// Formats the request to the admins on behalf of a member who may not delete.
pub fn format_removal_request(requester: &str, item: &DeletionTarget, code: &str) -> String {
    format!("{requester} asks to delete {}. Reply APPROVE {code} or DENY {code}", format_list_entry(item))
}

/// Formats the message to the member whose removal request an admin denied.
pub fn format_removal_denied(item: &DeletionTarget, reason: Option<&str>) -> String {
    let name = format_target_name(item);
    match reason {
        Some(reason) => format!("An admin decided to keep {name}: {reason}"),
        None => format!("An admin decided to keep {name}."),
    }
}

/// Formats the message to the member whose removal request expired.
pub fn format_removal_expired(item: Option<&DeletionTarget>) -> String {
    let name = item.map_or_else(|| "that title".to_owned(), format_target_name);
    format!("No admin answered your request to delete {name}, so it is kept. You can ask again.")
}

/// Formats the message about a removal request that ended because its instance was moved to another server.
pub fn format_removal_on_moved_server(item: Option<&DeletionTarget>, service: &str) -> String {
    let name = item.map_or_else(|| "that title".to_owned(), format_target_name);
    format!(
        "{service} was moved to another server, so your request to delete {name} has ended. You can ask again."
    )
}

/// Formats the message about a confirmation prompt that ended because its instance was moved to another server.
pub fn format_prompt_of_moved_server(service: &str) -> String {
    format!("{service} was moved to another server, so nothing was deleted. Ask again if it should go.")
}

/// Formats the message about an approved removal request whose stored title is unreadable.
pub fn format_untitled_removal(outcome: ItemOutcome) -> String {
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
        | ItemOutcome::StillThere
        | ItemOutcome::BeingWatched
        | ItemOutcome::ViewingUnknown
        | ItemOutcome::Protected => {
            "An admin agreed to your removal request, but the title could not be deleted. Please ask again later."
        }
    }
    .to_owned()
}

/// Formats the message to the member whose removal request an admin approved.
pub fn format_removal_outcome(item: &DeletionTarget, outcome: ItemOutcome) -> String {
    let name = format_target_name(item);
    match outcome {
        ItemOutcome::Deleted => format!("An admin agreed: {name} is deleted."),
        ItemOutcome::AlreadyGone => format!("An admin agreed, but {name} was already gone."),
        ItemOutcome::Changed => {
            format!(
                "{name} has changed since you asked, so it was kept. Ask again if you still want it deleted."
            )
        }
        ItemOutcome::Failed | ItemOutcome::NotPermitted | ItemOutcome::Stopped => {
            format!("An admin agreed, but {name} could not be deleted. Please ask again later.")
        }
        ItemOutcome::StillThere => {
            format!("An admin agreed, but {}", format_still_there(service_name(item), &[item]))
        }
        ItemOutcome::BeingWatched => {
            format!(
                "An admin agreed, but someone is watching {name}, so it was kept. Please ask again later."
            )
        }
        ItemOutcome::ViewingUnknown => format!(
            "An admin agreed, but I can't see whether someone is watching {name}, so it was kept. Please ask again \
             later."
        ),
        ItemOutcome::Protected => {
            format!("An admin agreed, but somebody wants to keep {name}, so it was kept.")
        }
        ItemOutcome::Unknown => {
            format!("An admin agreed, but I could not find out whether {name} is deleted.")
        }
    }
}

fn format_list_entry(item: &DeletionTarget) -> String {
    let seasons = match item.fingerprint.seasons {
        Some(1) => ", 1 season".to_owned(),
        Some(seasons) => format!(", {seasons} seasons"),
        None => String::new(),
    };
    let size = match (item.fingerprint.size_bytes, item.delete_files) {
        (0, _) => ", no files".to_owned(),
        (bytes, true) => format!(", {}", message_format::format_size(bytes)),
        (bytes, false) => format!(", keeps {}", message_format::format_size(bytes)),
    };
    format!("{}{seasons}{size}", format_target_name(item))
}

/// Formats the name of a target for a confirmation prompt: `Dune (2021)` or `season 2 of The Bear (2022)`.
pub fn format_target_name(item: &DeletionTarget) -> String {
    let title = format_title(&item.fingerprint.title, item.fingerprint.year);
    match &item.scope {
        DeletionScope::Whole => title,
        DeletionScope::Season { number, .. } => format!("{} of {title}", format_season(*number)),
        DeletionScope::Copy { episodes: None, .. } => format!("this copy of {title}"),
        DeletionScope::Copy { episodes: Some(episodes), .. } => {
            format!("this copy of {}", format_episodes(&title, episodes))
        }
        DeletionScope::Download(_) => format!("the download of {title}"),
    }
}

/// Formats a season: `season 2`, `the specials`.
pub fn format_season(number: u32) -> String {
    if number == 0 { "the specials".to_owned() } else { format!("season {number}") }
}

/// Formats the episodes of a copy: `The Bear (2022) S02E03, E04`, `10 episodes of season 2 of The Bear (2022)`.
fn format_episodes(title: &str, SeasonEpisodes { season: number, numbers }: &SeasonEpisodes) -> String {
    match numbers.as_slice() {
        [] => format!("{} of {title}", format_season(*number)),
        numbers if numbers.len() <= MAX_NAMED_EPISODES => {
            let codes: Vec<String> = numbers.iter().map(|episode| format!("E{episode:02}")).collect();
            format!("{title} S{number:02}{}", codes.join(", "))
        }
        numbers => format!("{} episodes of {} of {title}", numbers.len(), format_season(*number)),
    }
}

fn total_bytes(items: &[DeletionTarget]) -> u64 {
    items.iter().filter(|item| item.delete_files).map(|item| item.fingerprint.size_bytes).sum()
}

/// Capitalizes a sentence that may begin with `season 2` or `this copy`.
fn capitalize_sentence(sentence: &str) -> String {
    let starts_with_our_text = ["the ", "this ", "season "].iter().any(|word| sentence.starts_with(word));
    match sentence.split_at_checked(1) {
        Some((first, rest)) if starts_with_our_text => first.to_ascii_uppercase() + rest,
        Some(_) | None => sentence.to_owned(),
    }
}

/// Formats a sentence such as `Dune (2021) is kept.`
pub fn format_kept(names: &[String]) -> String {
    capitalize_sentence(&format_kept_sentence(names))
}

/// Formats the first sentence of a message that closes a confirmation prompt: `OK, Dune (2021) is kept.`
pub fn format_prompt_closed(names: &[String]) -> String {
    format!("OK, {}", format_kept_sentence(names))
}

fn format_kept_sentence(names: &[String]) -> String {
    match names {
        [] => "nothing is deleted.".to_owned(),
        [name] => format!("{name} is kept."),
        [first @ .., last] => format!("{} and {last} are kept.", first.join(", ")),
    }
}

/// Outcome of one confirmed item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemOutcome {
    Deleted,
    AlreadyGone,
    /// The item no longer matches the item that the prompt named, so it was kept.
    Changed,
    /// Sonarr or Radarr refused, or was unreachable.
    Failed,
    /// Sonarr or Radarr did not delete the item: a check after the last request found all or a part of it.
    StillThere,
    /// Somebody is watching the item, so it was kept.
    BeingWatched,
    /// A media server answered when the prompt was written and not before the deletion, so the item was kept.
    ViewingUnknown,
    /// Somebody protects the item with KEEP.
    Protected,
    /// The user lost the permission to delete after the prompt was sent.
    NotPermitted,
    /// The turn was canceled before the deletion of the item started.
    Stopped,
    /// The outcome cannot be determined.
    Unknown,
}

/// Formats the outcome of each item.
pub fn format_deletion_report(items: &[(DeletionTarget, ItemOutcome)]) -> String {
    format_report_naming(items, &[])
}

/// Formats the reply to a yes: the outcome of each item. `viewers` are the names of the people who are watching items,
/// if the household shares what it watches.
pub fn format_report_naming(items: &[(DeletionTarget, ItemOutcome)], viewers: &[String]) -> String {
    let with_outcome = |expected: ItemOutcome| -> Vec<&DeletionTarget> {
        items.iter().filter(|(_, outcome)| *outcome == expected).map(|(item, _)| item).collect()
    };
    let by_service = |outcome: ItemOutcome| {
        let (movies, series): (Vec<&DeletionTarget>, Vec<&DeletionTarget>) =
            with_outcome(outcome).into_iter().partition(|item| item.kind == MediaKind::Movie);
        [(RADARR, movies), (SONARR, series)]
    };
    let mut sentences = format_completed(&with_outcome(ItemOutcome::Deleted));
    let mut push_sentence = |items: &[&DeletionTarget], format: &dyn Fn(&str) -> String| {
        if !items.is_empty() {
            sentences.push(capitalize_sentence(&format(&format_target_list(items))));
        }
    };
    let already_gone = with_outcome(ItemOutcome::AlreadyGone);
    let verb = if already_gone.len() > 1 { "were" } else { "was" };
    push_sentence(&already_gone, &|names| format!("{names} {verb} already gone."));
    let changed = with_outcome(ItemOutcome::Changed);
    let pronoun = if changed.len() > 1 { "them" } else { "it" };
    push_sentence(&changed, &|names| format!("{names} changed since I asked, so I kept {pronoun}."));
    let watched = with_outcome(ItemOutcome::BeingWatched);
    let pronoun = if watched.len() > 1 { "them" } else { "it" };
    push_sentence(&watched, &|names| format_being_watched(names, pronoun, viewers));
    let unseen = with_outcome(ItemOutcome::ViewingUnknown);
    let pronoun = if unseen.len() > 1 { "them" } else { "it" };
    push_sentence(&unseen, &|names| {
        format!("I can no longer see whether someone is watching {names}, so I kept {pronoun}.")
    });
    push_sentence(&with_outcome(ItemOutcome::Protected), &|names| {
        format!("Somebody keeps {names}, so I did not delete it. Text KEPT to see what is protected.")
    });
    for (service, failed) in by_service(ItemOutcome::Failed) {
        push_sentence(&failed, &|names| {
            format!("{service} could not delete {names}. Please try again later.")
        });
    }
    for (service, remaining) in by_service(ItemOutcome::StillThere) {
        push_sentence(&remaining, &|_| format_still_there(service, &remaining));
    }
    push_sentence(&with_outcome(ItemOutcome::NotPermitted), &|names| {
        format!("You may not delete titles, so I kept {names}.")
    });
    push_sentence(&with_outcome(ItemOutcome::Stopped), &|names| {
        format!("I was interrupted and kept {names}.")
    });
    let unknown = with_outcome(ItemOutcome::Unknown);
    let verb = if unknown.len() > 1 { "were" } else { "was" };
    push_sentence(&unknown, &|names| {
        format!("I could not find out whether {names} {verb} deleted. Please check.")
    });
    sentences.join(" ")
}

/// Formats the sentence about titles that are kept because somebody is watching them.
fn format_being_watched(names: &str, pronoun: &str, viewers: &[String]) -> String {
    let who = match viewers {
        [] => "Someone is".to_owned(),
        [viewer] => format!("{viewer} is"),
        [first @ .., last] => format!("{} and {last} are", first.join(", ")),
    };
    format!("{who} watching {names} right now, so I kept {pronoun}.")
}

/// Formats the sentence about titles for which no confirmation is requested, because somebody is watching them.
pub fn format_not_asked(items: &[DeletionTarget], viewers: &[String]) -> String {
    let pronoun = if items.len() > 1 { "them" } else { "it" };
    format_being_watched(&format_target_list(&items.iter().collect::<Vec<_>>()), pronoun, viewers)
}

const RADARR: &str = "Radarr";
const SONARR: &str = "Sonarr";

fn service_name(item: &DeletionTarget) -> &'static str {
    match item.kind {
        MediaKind::Movie => RADARR,
        MediaKind::Series => SONARR,
    }
}

/// Formats `Radarr could not do it. Dune (2021) is still there.` If an item has several files, some of them may be
/// deleted.
fn format_still_there(service: &str, items: &[&DeletionTarget]) -> String {
    let names = format_target_list(items);
    let is_whole =
        |item: &&DeletionTarget| matches!(item.scope, DeletionScope::Whole | DeletionScope::Download(_));
    if !items.iter().all(is_whole) {
        return format!("{service} could not do all of it. Please check {names}.");
    }
    let verb = if items.len() > 1 { "are" } else { "is" };
    format!("{service} could not do it. {}", capitalize_sentence(&format!("{names} {verb} still there.")))
}

/// Formats the sentences about completed items: deleted titles with the freed space, then downloads, then copies.
fn format_completed(items: &[&DeletionTarget]) -> Vec<String> {
    let with_scope = |matches_scope: fn(&DeletionScope) -> bool| -> Vec<&DeletionTarget> {
        items.iter().copied().filter(|item| matches_scope(&item.scope)).collect()
    };
    let deleted = with_scope(|scope| matches!(scope, DeletionScope::Whole | DeletionScope::Season { .. }));
    let downloads = with_scope(|scope| matches!(scope, DeletionScope::Download(_)));
    let copies = with_scope(|scope| matches!(scope, DeletionScope::Copy { .. }));
    let searched_again =
        with_scope(|scope| matches!(scope, DeletionScope::Download(DownloadFollowUp::SearchAgain)));
    let freed: u64 =
        deleted.iter().filter(|item| item.delete_files).map(|item| item.fingerprint.size_bytes).sum();
    let keeps_files = deleted.iter().any(|item| !item.delete_files && item.fingerprint.size_bytes > 0);
    let deletes_files = deleted.iter().any(|item| item.delete_files);
    let mut sentences = Vec::new();
    let mut push_sentence = |items: &[&DeletionTarget], format: &dyn Fn(&str) -> String| {
        if !items.is_empty() {
            sentences.push(format(&format_target_list(items)));
        }
    };
    push_sentence(&deleted, &|names| match (deletes_files, keeps_files) {
        (true, _) => format!("Deleted {names}. Freed {}.", message_format::format_size(freed)),
        (false, true) => format!("Removed {names} from the library. The files are kept."),
        (false, false) => format!("Removed {names} from the library."),
    });
    push_sentence(&downloads, &|names| format!("Removed {names}."));
    push_sentence(&copies, &|names| format!("Deleted {names}."));
    if !copies.is_empty() || !searched_again.is_empty() {
        sentences.push("I am looking for another copy.".to_owned());
    }
    sentences
}

fn format_target_list(items: &[&DeletionTarget]) -> String {
    let names: Vec<String> = items.iter().map(|item| format_target_name(item)).collect();
    names.join(", ")
}

/// Outcome of a confirmation prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptOutcome {
    Done,
    Denied,
    Expired,
    /// The user changed the subject, or another prompt replaced this one.
    Dropped,
    /// The yes was received, but some of the items were not deleted.
    Failed,
}

/// Formats the reply to a yes or no after the end of the prompt. `outcomes` contains the outcomes of the items whose
/// deletion ended.
pub fn format_late_answer(
    prompt_outcome: PromptOutcome,
    items: &[DeletionTarget],
    outcomes: &[(DeletionTarget, ItemOutcome)],
) -> String {
    let names: Vec<String> = items.iter().map(format_target_name).collect();
    let all_deleted =
        outcomes.iter().all(|(item, outcome)| *outcome == ItemOutcome::Deleted && item.delete_files);
    match prompt_outcome {
        PromptOutcome::Done if all_deleted => {
            let verb = if names.len() > 1 { "are" } else { "is" };
            format!("Already done: {} {verb} deleted.", names.join(", "))
        }
        PromptOutcome::Done => format!("Already answered: {}", format_deletion_report(outcomes)),
        PromptOutcome::Failed => {
            let was_kept = |outcome: ItemOutcome| {
                use ItemOutcome::{BeingWatched, StillThere, ViewingUnknown};
                matches!(outcome, StillThere | BeingWatched | ViewingUnknown)
            };
            let can_be_repeated = outcomes.iter().any(|(_, outcome)| was_kept(*outcome));
            let ask_again = if can_be_repeated { " Ask again to delete." } else { "" };
            format!("No question is open. {}{ask_again}", format_deletion_report(outcomes))
        }
        PromptOutcome::Denied => format!("{} Ask again to delete.", format_kept(&names)),
        PromptOutcome::Expired => {
            format!("That question has expired. {} Ask again to delete.", format_kept(&names))
        }
        PromptOutcome::Dropped => {
            format!("That question is closed. {} Ask again to delete.", format_kept(&names))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::target::TargetFingerprint;
    use super::*;
    use crate::conversation::catalog_ids::CatalogIds;

    fn movie(title: &str, year: u16, gigabytes: f64) -> DeletionTarget {
        DeletionTarget {
            instance: "radarr".into(),
            kind: MediaKind::Movie,
            id: 7,
            delete_files: true,
            scope: DeletionScope::Whole,
            fingerprint: TargetFingerprint {
                title: title.into(),
                year,
                path: format!("/movies/{title}"),
                size_bytes: (gigabytes * 1e9) as u64,
                seasons: None,
                ids: CatalogIds::default(),
                viewing: ViewingKnowledge::default(),
            },
        }
    }

    fn series(title: &str, year: u16, seasons: u32, gigabytes: f64) -> DeletionTarget {
        let mut item = movie(title, year, gigabytes);
        item.kind = MediaKind::Series;
        item.fingerprint.seasons = Some(seasons);
        item
    }

    #[test]
    fn prompt_says_that_viewers_cannot_be_seen() {
        let mut dune = movie("Dune", 2021, 21.4);
        dune.fingerprint.viewing = ViewingKnowledge::Unknown;
        assert_eq!(
            format_confirmation_prompt(&[dune.clone(), movie("Heat", 1995, 18.2)], Some("47")),
            "Delete 2: Dune (2021), 21.4 GB; Heat (1995), 18.2 GB? Total 39.6 GB. I can't see whether someone is \
             watching. Reply YES 47 or NO."
        );
        let outcomes = |outcome| [(dune.clone(), outcome), (movie("Heat", 1995, 18.2), outcome)];
        assert_eq!(
            format_deletion_report(&outcomes(ItemOutcome::BeingWatched)),
            "Someone is watching Dune (2021), Heat (1995) right now, so I kept them."
        );
        assert_eq!(
            format_deletion_report(&outcomes(ItemOutcome::ViewingUnknown)[..1]),
            "I can no longer see whether someone is watching Dune (2021), so I kept it."
        );
    }

    #[test]
    fn prompt_names_title_year_files_and_size() {
        let dune = movie("Dune", 2021, 21.4);
        assert_eq!(
            format_confirmation_prompt(std::slice::from_ref(&dune), None),
            "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO."
        );
        assert_eq!(
            format_confirmation_prompt(&[series("Severance", 2022, 2, 41.0)], None),
            "Delete Severance (2022), 2 seasons and the files, 41 GB? Reply YES or NO."
        );
        assert_eq!(
            format_confirmation_prompt(&[DeletionTarget { delete_files: false, ..dune.clone() }], None),
            "Remove Dune (2021) from the library and keep its file, 21.4 GB? Reply YES or NO."
        );
        assert_eq!(
            format_confirmation_prompt(&[movie("Paddington", 2014, 0.0)], None),
            "Remove Paddington (2014) from the library? It has no files. Reply YES or NO."
        );
        assert_eq!(
            format_confirmation_prompt(&[dune, movie("Heat", 1995, 18.2)], Some("47")),
            "Delete 2: Dune (2021), 21.4 GB; Heat (1995), 18.2 GB? Total 39.6 GB. Reply YES 47 or NO."
        );
    }

    #[test]
    fn part_of_a_title_is_named_with_its_consequence() {
        let the_bear = || series("The Bear", 2022, 3, 18.0);
        let season = DeletionTarget {
            scope: DeletionScope::Season { number: 2, files: vec![1; 10], monitored: None },
            ..the_bear()
        };
        assert_eq!(
            format_confirmation_prompt(std::slice::from_ref(&season), None),
            "Delete season 2 of The Bear (2022), 10 files, 18 GB, and no longer search for it? Reply YES or NO."
        );
        assert_eq!(
            format_deletion_report(&[(season.clone(), ItemOutcome::Deleted)]),
            "Deleted season 2 of The Bear (2022). Freed 18 GB."
        );
        assert_eq!(
            format_deletion_report(&[(season, ItemOutcome::Changed)]),
            "Season 2 of The Bear (2022) changed since I asked, so I kept it."
        );
        let episodes = Some(SeasonEpisodes { season: 2, numbers: vec![3, 4] });
        let copy = DeletionTarget { scope: DeletionScope::Copy { episodes, files: vec![1] }, ..the_bear() };
        assert_eq!(
            format_confirmation_prompt(std::slice::from_ref(&copy), None),
            "Delete this copy of The Bear (2022) S02E03, E04, 18 GB, and look for another one? Reply YES or NO."
        );
        assert_eq!(
            format_deletion_report(&[(copy, ItemOutcome::Deleted)]),
            "Deleted this copy of The Bear (2022) S02E03, E04. I am looking for another copy."
        );
        let download = DeletionTarget {
            scope: DeletionScope::Download(DownloadFollowUp::Nothing),
            ..movie("Dune", 2021, 21.4)
        };
        assert_eq!(
            format_confirmation_prompt(std::slice::from_ref(&download), None),
            "Remove the download of Dune (2021) without looking for another copy? Reply YES or NO."
        );
        assert_eq!(
            format_late_answer(PromptOutcome::Denied, std::slice::from_ref(&download), &[]),
            "The download of Dune (2021) is kept. Ask again to delete."
        );
    }

    #[test]
    fn code_is_required_for_several_items_or_over_100_gb() {
        assert!(!CodePolicy::Bulk.needs_code(&[movie("Dune", 2021, 21.4)]));
        assert!(CodePolicy::Bulk.needs_code(&[movie("Dune", 2021, 100.1)]));
        assert!(CodePolicy::Bulk.needs_code(&[movie("Dune", 2021, 1.0), movie("Heat", 1995, 1.0)]));
        assert!(CodePolicy::Always.needs_code(&[movie("Dune", 2021, 1.0)]));
    }

    #[test]
    fn report_names_the_outcome_of_each_item() {
        let dune = movie("Dune", 2021, 21.4);
        let heat = movie("Heat", 1995, 18.2);
        assert_eq!(
            format_deletion_report(&[(dune.clone(), ItemOutcome::Deleted)]),
            "Deleted Dune (2021). Freed 21.4 GB."
        );
        assert_eq!(
            format_deletion_report(&[(dune, ItemOutcome::Deleted), (heat, ItemOutcome::Failed)]),
            "Deleted Dune (2021). Freed 21.4 GB. Radarr could not delete Heat (1995). Please try again later."
        );
    }

    #[test]
    fn report_names_remaining_items_by_instance() {
        let remaining = |item| (item, ItemOutcome::StillThere);
        let (dune, heat) = (movie("Dune", 2021, 21.4), movie("Heat", 1995, 18.2));
        assert_eq!(
            format_deletion_report(&[
                remaining(dune.clone()),
                remaining(heat),
                remaining(series("The Bear", 2022, 3, 18.0))
            ]),
            "Radarr could not do it. Dune (2021), Heat (1995) are still there. \
             Sonarr could not do it. The Bear (2022) is still there."
        );
        let scope = DeletionScope::Season { number: 2, files: vec![1, 2], monitored: None };
        assert_eq!(
            format_deletion_report(&[remaining(DeletionTarget {
                scope,
                ..series("The Bear", 2022, 3, 18.0)
            })]),
            "Sonarr could not do all of it. Please check season 2 of The Bear (2022)."
        );
        assert_eq!(
            format_removal_outcome(&dune, ItemOutcome::StillThere),
            "An admin agreed, but Radarr could not do it. Dune (2021) is still there."
        );
        assert_eq!(
            format_late_answer(
                PromptOutcome::Failed,
                std::slice::from_ref(&dune),
                &[remaining(dune.clone())]
            ),
            "No question is open. Radarr could not do it. Dune (2021) is still there. Ask again to delete."
        );
    }
}
