//! Texts of proposals to make room. None of them asks for a yes or a no.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::proposal::{Candidate, ConcernedPerson, ProposalPlan, ProposalRules};
use super::{ProposedTitle, SilenceRule, day_of};
use crate::conversation::making_room::judgment::GoReason;
use crate::conversation::text::message_format::format_size;
use crate::conversation::text::segments::fits_two_segments;
use crate::conversation::text::title::{clean_title, format_title};

/// Reply to an admin who reviews without titles to review.
pub const NOTHING_TO_REVIEW: &str = "No titles wait for your decision. Text MAKE ROOM to look for some.";
/// Reply to an admin who reviews if all titles are used or changed again.
pub const NOTHING_UNCHANGED: &str =
    "The titles that could go have changed or are being watched again, so they stay for now.";
/// Reply if no title could go.
pub const NOTHING_COULD_GO: &str =
    "I found nothing that could go: every title is new, kept, or still being watched.";
/// Reply to an answer about titles while none are proposed.
pub const NO_PROPOSAL: &str = "There is no list to choose from right now.";
/// Reply to an answer with a number or a name that is not in the list.
pub const NO_SUCH_TITLE: &str =
    "That is not in the list. Text KEEP 1 for the first title in my last list, or KEEP ALL.";
/// Reply to an answer about titles that were deleted, are kept, or may go already.
pub const DECIDED_ALREADY: &str = "That is decided already.";
pub const NOTHING_KEPT: &str = "You protect no titles right now.";
/// Reply to UNKEEP with a number or a name that is not in the list.
pub const NOT_KEPT: &str = "That is not in the list. Text KEPT to see it.";
/// Reply to UNKEEP of a person with a cap, to whom titles are not named.
pub const UNKEPT: &str = "It is no longer kept.";
/// Reply to such a person if others protect the title.
pub const KEPT_BY_OTHERS: &str = "Others still keep it.";
/// Notification to an admin if no title may go after the answers.
pub const EVERYTHING_STAYS: &str = "The household keeps everything that could go, so nothing was deleted.";
/// Message to an admin whose proposal did not start.
pub const NOT_STARTED: &str = "That did not start: the household is being asked already, or something has just changed. Text MAKE ROOM to try again.";
/// Reply to a person who is no admin.
pub const ADMINS_ONLY: &str = "Only an admin can start that. Please ask one.";

/// Title in the question to a person.
#[derive(Debug, Clone, Copy)]
pub struct QuestionLine<'a> {
    pub title: &'a ProposedTitle,
    pub person: &'a ConcernedPerson,
}

/// Formats the question to a person about the titles that concern the person; `None` if it does not fit two segments.
pub fn format_question(
    lines: &[QuestionLine<'_>],
    plan: &ProposalPlan,
    rules: &ProposalRules,
) -> Option<String> {
    let numbered = lines.iter().enumerate().map(|(index, line)| {
        let size = format_size(line.title.size_bytes);
        let title = clean_title(&line.title.title);
        match format_own_use(line.person, rules) {
            Some(own_use) => format!("{} {title} ({size}, {own_use})", index + 1),
            None => format!("{} {title} ({size})", index + 1),
        }
    });
    let list = numbered.collect::<Vec<_>>().join(" ");
    let day = format_weekday(plan.answers_end_at, &rules.zone);
    let keep = if lines.len() == 1 { "KEEP 1" } else { "KEEP 1 or KEEP ALL" };
    let text = match plan.silence {
        SilenceRule::MayGo => format!("Leaving {day} to make room: {list}. Reply {keep}."),
        SilenceRule::Stays => {
            format!(
                "To make room by {day}: {list}. Reply FREE 1 if it may go, else {keep}. Titles that nobody frees stay."
            )
        }
    };
    fits_two_segments(&text).then_some(text)
}

/// Formats the relation of a person to a title, such as `you finished it in May`.
fn format_own_use(person: &ConcernedPerson, rules: &ProposalRules) -> Option<String> {
    match (person.finished, person.asked_at) {
        (Some(Some(at)), _) => Some(format!("you finished it {}", format_month(at, rules.now, &rules.zone))),
        (Some(None), _) => Some("you finished it".to_owned()),
        (None, Some(at)) => Some(format!("you asked for it {}", format_month(at, rules.now, &rules.zone))),
        (None, None) => None,
    }
}

/// Formats `in May`, or `in May 2025` if that was in another year.
pub fn format_month(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (at, now) = (day_of(at, zone), day_of(now, zone));
    at.strftime(if at.year() == now.year() { "in %B" } else { "in %B %Y" }).to_string()
}

fn format_weekday(at: Timestamp, zone: &TimeZone) -> String {
    day_of(at, zone).strftime("%A").to_string()
}

/// Formats the reply to the admin who started a proposal.
pub fn format_started(plan: &ProposalPlan, asked: &[String], zone: &TimeZone) -> String {
    let (titles, size) = (format_count(plan.titles.len()), format_size(plan.total_bytes()));
    if asked.is_empty() {
        return format_review(plan.titles.len(), plan.total_bytes());
    }
    let day = format_weekday(plan.answers_end_at, zone);
    format!("{titles} could go, {size}. I asked {} and tell you the result on {day}.", join_names(asked))
}

/// Formats the reply about a proposal that is open already.
pub fn format_already_open(answers_end_at: Timestamp, zone: &TimeZone) -> String {
    format!(
        "The household is being asked already. You get the result on {}.",
        format_weekday(answers_end_at, zone)
    )
}

/// Formats the notification to an admin about titles that may go.
pub fn format_review(count: usize, bytes: u64) -> String {
    format!("{} may go, {}. Text REVIEW to decide.", format_count(count), format_size(bytes))
}

/// Formats the titles that could go, with the reasons.
pub fn format_preview(
    candidates: &[Candidate],
    (now, zone): (Timestamp, &TimeZone),
    may_start: bool,
) -> String {
    let total =
        candidates.iter().fold(0_u64, |sum, candidate| sum.saturating_add(candidate.title.size_bytes));
    let mut lines = vec![format!("{} could go, {}:", format_count(candidates.len()), format_size(total))];
    lines.extend(candidates.iter().map(|candidate| {
        let title = &candidate.title;
        let (name, size) = (format_title(&title.title, title.year), format_size(title.size_bytes));
        format!("{name}, {size}, {}", format_reason(candidate.reason, candidate.last_played_at, (now, zone)))
    }));
    if may_start {
        lines.push("Text MAKE ROOM to ask the people concerned.".to_owned());
    }
    lines.join("\n")
}

/// Formats the reason why a title could go, without naming anybody.
pub fn format_reason(
    reason: GoReason,
    last_played_at: Option<Timestamp>,
    (now, zone): (Timestamp, &TimeZone),
) -> String {
    match (reason, last_played_at) {
        (GoReason::Finished, Some(at)) => format!("last watched {}", format_month(at, now, zone)),
        (GoReason::Finished, None) => "watched".to_owned(),
        (GoReason::NeverWatched, _) => "not watched in half a year".to_owned(),
        (GoReason::Old, _) => "added more than half a year ago".to_owned(),
    }
}

/// Formats the reply to KEEP.
pub fn format_kept(titles: &[String], until: Timestamp, zone: &TimeZone) -> String {
    format!("Kept until {}: {}.", format_date(until, zone), join_titles(titles))
}

/// Formats the reply to FREE.
pub fn format_freed(titles: &[String]) -> String {
    format!("{} may go.", join_titles(titles))
}

/// Formats the list of kept titles with their last days.
pub fn format_kept_list(titles: &[(String, Timestamp)], zone: &TimeZone) -> String {
    let lines = titles.iter().enumerate().map(|(index, (title, until))| {
        format!("{}. {}, until {}", index + 1, clean_title(title), format_date(*until, zone))
    });
    let list = lines.collect::<Vec<_>>().join("\n");
    format!("Kept:\n{list}\nText UNKEEP 1 if it is no longer needed.")
}

/// Formats the number of kept titles, for a person with a cap, to whom titles are not named.
pub fn format_kept_count(count: usize) -> String {
    if count == 1 { "You keep 1 title.".to_owned() } else { format!("You keep {count} titles.") }
}

/// Formats the reply to UNKEEP. Some of the titles may be protected by others.
pub fn format_unkept(unkept: &[String], still_kept: &[String]) -> String {
    let sentence = |titles: &[String], end: &str| {
        let verb = if titles.len() == 1 { "is" } else { "are" };
        (!titles.is_empty()).then(|| format!("{} {verb} {end}.", join_titles(titles)))
    };
    let sentences = [sentence(unkept, "no longer kept"), sentence(still_kept, "still kept by others")];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Formats the outcome for a person who was asked.
pub fn format_outcome(gone: &[String], staying: &[String]) -> String {
    let gone_sentence = match gone.len() {
        0 => None,
        1 => Some(format!("{} was deleted to make room.", join_titles(gone))),
        _ => Some(format!("{} were deleted to make room.", join_titles(gone))),
    };
    let staying_sentence = match staying.len() {
        0 => None,
        1 => Some(format!("{} stays.", join_titles(staying))),
        _ => Some(format!("{} stay.", join_titles(staying))),
    };
    gone_sentence.into_iter().chain(staying_sentence).collect::<Vec<_>>().join(" ")
}

/// Formats the outcome for a person with a cap, to whom titles are not named.
pub fn format_outcome_counts(gone: usize, staying: usize) -> String {
    format!("Of the titles that I asked you about, {gone} left and {staying} stayed.")
}

fn format_date(at: Timestamp, zone: &TimeZone) -> String {
    day_of(at, zone).strftime("%b %-d").to_string()
}

fn format_count(count: usize) -> String {
    if count == 1 { "1 title".to_owned() } else { format!("{count} titles") }
}

fn join_titles(titles: &[String]) -> String {
    join_names(&titles.iter().map(|title| clean_title(title)).collect::<Vec<_>>())
}

fn join_names(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcome_names_what_was_deleted_and_what_stays() {
        let titles = |all: &[&str]| all.iter().map(|title| (*title).to_owned()).collect::<Vec<String>>();
        assert_eq!(
            format_outcome(&titles(&["Heat", "Dune"]), &titles(&["Alien"])),
            "Heat and Dune were deleted to make room. Alien stays."
        );
        assert_eq!(format_outcome(&[], &titles(&["Heat", "Dune"])), "Heat and Dune stay.");
        assert_eq!(format_outcome(&titles(&["Heat"]), &[]), "Heat was deleted to make room.");
    }

    #[test]
    fn texts_state_numbers_and_days() {
        let at = "2027-02-27T12:00:00Z".parse().unwrap();
        assert_eq!(format_review(4, 62_000_000_000), "4 titles may go, 62 GB. Text REVIEW to decide.");
        assert_eq!(format_kept(&["Heat".to_owned()], at, &TimeZone::UTC), "Kept until Feb 27: Heat.");
        assert_eq!(format_freed(&["Heat".to_owned(), "Dune".to_owned()]), "Heat and Dune may go.");
        assert_eq!(
            format_kept_list(&[("Heat".to_owned(), at)], &TimeZone::UTC),
            "Kept:\n1. Heat, until Feb 27\nText UNKEEP 1 if it is no longer needed."
        );
    }
}
