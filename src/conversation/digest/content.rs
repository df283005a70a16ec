//! Text of a digest: its sections with lines that are numbered through the whole message, within two segments.

use std::collections::BTreeSet;

use jiff::civil::Date;

use crate::conversation::text::title::clean_title;
use crate::conversation::title_requests::format_season_list;
use crate::conversation::transcript::{MediaKind, VoteId};

/// Last line of a digest that has space for it.
const HINT: &str = "Text a number for more.";
/// Maximum number of lines of a section, before the size of the message is considered.
const MAX_SECTION_LINES: usize = 20;

/// Everything that a digest may list for one reader, who may learn about each of the titles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DigestContent {
    pub came: Vec<CameTitle>,
    pub coming: Vec<ComingTitle>,
    pub leaving: Vec<LeavingTitle>,
    pub waiting: Vec<WaitingItem>,
}

/// Title that was imported within the last week.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CameTitle {
    pub kind: MediaKind,
    /// Title with its year.
    pub name: String,
    /// Imported episodes by season and number; empty for a movie.
    pub episodes: BTreeSet<(u32, u32)>,
}

/// Title of which something comes out within the next week.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComingTitle {
    pub kind: MediaKind,
    /// Title, with its year for a movie.
    pub name: String,
    pub days: BTreeSet<Date>,
}

/// Title that is to be deleted to make room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingTitle {
    pub name: String,
    pub leaves_on: Date,
    /// Number with which the reader keeps the title.
    pub number: i64,
}

/// Matter that waits for its reader, or whose outcome the reader waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitingItem {
    /// Approval that the reader may decide.
    Approval { id: i64, subject: String },
    /// Request of the reader for a deletion.
    OwnRequest { id: i64, title: String },
    /// Addition that the reader asked for and that waits.
    Addition { id: i64, title: String },
    /// Open vote that the reader has not answered.
    Vote(VoteId),
}

/// Matter of a numbered line, on which the number acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DigestLine {
    /// Title that came or comes, by kind and name.
    Title(MediaKind, String),
    Leaving {
        number: i64,
        title: String,
    },
    Approval(i64),
    OwnRequest {
        id: i64,
        title: String,
    },
    Addition {
        id: i64,
        title: String,
    },
    Vote(VoteId),
}

/// Text of a digest with the matters of its numbered lines, from number 1 on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestText {
    pub text: String,
    pub lines: Vec<DigestLine>,
}

/// Section with the lines that fit.
struct Section {
    heading: &'static str,
    entries: Vec<(String, DigestLine)>,
    /// Number of entries that were left out.
    omitted: usize,
}

/// Formats a digest. `fits` returns whether a text is short enough. Lines are left out of the longest section until the
/// text fits; `None` without content.
pub fn format_digest(content: &DigestContent, fits: &dyn Fn(&str) -> bool) -> Option<DigestText> {
    let mut sections = build_sections(content);
    loop {
        let text = format_sections(&sections)?;
        if fits(&text) {
            let with_hint = format!("{text}\n{HINT}");
            let lines = sections.into_iter().flat_map(|section| section.entries);
            return Some(DigestText {
                text: if fits(&with_hint) { with_hint } else { text },
                lines: lines.map(|(_, line)| line).collect(),
            });
        }
        let longest = sections.iter_mut().rev().max_by_key(|section| section.entries.len())?;
        longest.entries.pop();
        longest.omitted += 1;
        sections.retain(|section| !section.entries.is_empty());
    }
}

fn build_sections(content: &DigestContent) -> Vec<Section> {
    let came = content.came.iter().map(came_entry).collect();
    let coming = content.coming.iter().map(coming_entry).collect();
    let leaving = content.leaving.iter().map(leaving_entry).collect();
    let waiting = content.waiting.iter().map(waiting_entry).collect();
    let section = |(heading, mut entries): (_, Vec<_>)| {
        let omitted = entries.len().saturating_sub(MAX_SECTION_LINES);
        entries.truncate(MAX_SECTION_LINES);
        Section { heading, entries, omitted }
    };
    [("New this week:", came), ("Next week:", coming), ("Leaving:", leaving), ("Waiting for you:", waiting)]
        .into_iter()
        .map(section)
        .filter(|section| !section.entries.is_empty())
        .collect()
}

/// Formats the sections; `None` without any.
fn format_sections(sections: &[Section]) -> Option<String> {
    let mut lines = Vec::new();
    let mut number = 0_u32;
    for Section { heading, entries, omitted } in sections {
        lines.push((*heading).to_owned());
        for (text, _) in entries {
            number += 1;
            lines.push(format!("{number}. {text}"));
        }
        if *omitted > 0 {
            lines.push(format!("and {omitted} more"));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn came_entry(title: &CameTitle) -> (String, DigestLine) {
    let seasons: BTreeSet<u32> = title.episodes.iter().map(|(season, _)| *season).collect();
    let seasons: Vec<u32> = seasons.into_iter().collect();
    let part = match (title.episodes.len(), title.episodes.first()) {
        (1, Some((season, number))) => format!(" S{season:02}E{number:02}"),
        (count, Some(_)) => format!(" {} ({count} episodes)", format_season_list(&seasons)),
        (_, None) => String::new(),
    };
    (format!("{}{part}", title.name), DigestLine::Title(title.kind, title.name.clone()))
}

fn coming_entry(title: &ComingTitle) -> (String, DigestLine) {
    let days: Vec<String> = title.days.iter().map(|day| day.strftime("%a").to_string()).collect();
    (format!("{}, {}", title.name, days.join(" ")), DigestLine::Title(title.kind, title.name.clone()))
}

fn leaving_entry(title: &LeavingTitle) -> (String, DigestLine) {
    let line = DigestLine::Leaving { number: title.number, title: title.name.clone() };
    (format!("{}, {}", title.name, title.leaves_on.strftime("%a %b %-d")), line)
}

fn waiting_entry(item: &WaitingItem) -> (String, DigestLine) {
    match item {
        WaitingItem::Approval { id, subject } => (subject.clone(), DigestLine::Approval(*id)),
        WaitingItem::OwnRequest { id, title } => (
            format!("{title}: an admin decides about it"),
            DigestLine::OwnRequest { id: *id, title: title.clone() },
        ),
        WaitingItem::Addition { id, title } => {
            (format!("{title} is not added yet"), DigestLine::Addition { id: *id, title: title.clone() })
        }
        WaitingItem::Vote(vote) => ("an open vote".to_owned(), DigestLine::Vote(*vote)),
    }
}

/// Returns the text of the grammar that asks for the details of a title.
pub fn format_details_request(kind: MediaKind, name: &str) -> String {
    let noun = match kind {
        MediaKind::Movie => "movie",
        MediaKind::Series => "show",
    };
    format!("details of the {noun} {}", clean_title(name).trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::grammar::requests::parser::parse_line;
    use crate::conversation::grammar::requests::request::Request;

    fn movie(name: &str) -> CameTitle {
        CameTitle { kind: MediaKind::Movie, name: name.to_owned(), episodes: BTreeSet::new() }
    }

    fn series(name: &str, episodes: &[(u32, u32)]) -> CameTitle {
        CameTitle {
            kind: MediaKind::Series,
            name: name.to_owned(),
            episodes: episodes.iter().copied().collect(),
        }
    }

    fn day(day: i8) -> Date {
        jiff::civil::date(2026, 12, day)
    }

    fn full_content() -> DigestContent {
        let came = vec![
            movie("Heat (1995)"),
            series("The Bear", &[(2, 1), (2, 2), (3, 1)]),
            series("Dark", &[(1, 4)]),
        ];
        let coming = vec![ComingTitle {
            kind: MediaKind::Series,
            name: "Severance".to_owned(),
            days: BTreeSet::from([day(16), day(18)]),
        }];
        let leaving = vec![LeavingTitle { name: "Ronin (1998)".to_owned(), leaves_on: day(20), number: 3 }];
        let waiting = vec![
            WaitingItem::Approval { id: 7, subject: "Sam wants to join".to_owned() },
            WaitingItem::Vote(VoteId(4)),
        ];
        DigestContent { came, coming, leaving, waiting }
    }

    #[test]
    fn lines_are_numbered_through_all_sections() {
        let digest = format_digest(&full_content(), &|_| true).unwrap();
        assert_eq!(
            digest.text,
            "New this week:\n1. Heat (1995)\n2. The Bear seasons 2 and 3 (3 episodes)\n3. Dark S01E04\nNext week:\n4. \
             Severance, Wed Fri\nLeaving:\n5. Ronin (1998), Sun Dec 20\nWaiting for you:\n6. Sam wants to join\n7. an \
             open vote\nText a number for more."
        );
        assert_eq!(digest.lines.len(), 7);
        assert_eq!(digest.lines[4], DigestLine::Leaving { number: 3, title: "Ronin (1998)".to_owned() });
        assert_eq!(digest.lines[5], DigestLine::Approval(7));
    }

    #[test]
    fn lines_are_left_out_of_the_longest_section() {
        let mut content = full_content();
        content.came.extend((1..=9).map(|number| movie(&format!("Movie {number} (2000)"))));
        let digest = format_digest(&content, &|text| text.len() <= 160).unwrap();
        assert!(digest.text.len() <= 160, "{}", digest.text);
        let (came, rest) = digest.text.split_once("\nNext week:").unwrap();
        assert!(came.ends_with(" more"), "{came}");
        assert!(rest.contains("Ronin (1998)") && rest.contains("Sam wants to join"), "{rest}");
        let numbered = digest.text.lines().filter(|line| line.contains(". ")).count();
        assert_eq!(numbered, digest.lines.len());
        assert!(!digest.text.ends_with(HINT));
    }

    #[test]
    fn digest_without_content_is_no_message() {
        assert_eq!(format_digest(&DigestContent::default(), &|_| true), None);
        assert_eq!(format_digest(&full_content(), &|_| false), None);
    }

    #[test]
    fn request_for_details_is_read_as_one_of_this_title() {
        for (kind, name, expected) in [
            (MediaKind::Movie, "Heat (1995)", "Heat 1995"),
            (MediaKind::Series, "The Bear", "The Bear"),
            (MediaKind::Movie, "It (2017)", "It 2017"),
            (MediaKind::Movie, "\"Say Yes to the Dress\" (2007)", "Say Yes to the Dress"),
        ] {
            let text = format_details_request(kind, name);
            match parse_line(&text).requests.as_slice() {
                [Request::Details { title, .. }] => {
                    let title = title.full_title();
                    assert!(title.to_lowercase().contains(&expected.to_lowercase()), "{text}: {title}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
