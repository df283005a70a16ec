//! Requests for titles over the caps of a person, which the parents decide about. Only the parents learn which title it
//! is: the person gets no name that was not in their own words.

use super::title_requests::RequestedTitle;
use super::transcript::ToolArguments;

/// Title over the caps of a person, with its addition.
#[derive(Debug, Clone, PartialEq)]
pub struct TitleOverCap {
    pub wanted: RequestedTitle,
    /// Age rating, such as `R`. Empty if the catalog has none.
    pub rating: String,
    /// Arguments of the tool that adds the title.
    pub arguments: ToolArguments,
}

/// Message to the person if no parent decided in time.
pub const TITLE_REQUEST_EXPIRED: &str = "Your request expired. You can ask again.";

/// Formats the message to the parents.
pub fn format_title_request(requester: &str, over_cap: &TitleOverCap, code: &str) -> String {
    let rating = match over_cap.rating.as_str() {
        "" => "without an age rating".to_owned(),
        rating => format!("rated {rating}"),
    };
    let title = over_cap.wanted.format_name();
    format!("{requester} asks for {title}, {rating}. Reply APPROVE {code} or DENY {code}")
}

/// Formats the answer to the person. `parents` are the names of those who decide.
pub fn format_asked(parents: &str) -> String {
    format!("I asked {parents}.")
}

/// Formats the answer to a person who asked before.
pub fn format_already_asked(parents: &str) -> String {
    format!("I already asked {parents}.")
}

/// Formats the message to the person after a denial.
pub fn format_title_denied(parent: &str) -> String {
    format!("{parent} did not approve what you asked for.")
}

/// Formats the reply to the parent who decided.
pub fn format_title_decided(over_cap: &TitleOverCap, requester: &str, is_approved: bool) -> String {
    let title = over_cap.wanted.format_name();
    match is_approved {
        true => format!("OK, {requester} may have {title}. I am adding it."),
        false => format!("OK, {requester} may not have {title}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::MediaKind;

    fn heat(rating: &str) -> TitleOverCap {
        TitleOverCap {
            wanted: RequestedTitle {
                instance: "radarr".to_owned(),
                kind: MediaKind::Movie,
                catalog_id: 949,
                title: "Heat".to_owned(),
                year: 1995,
                seasons: None,
            },
            rating: rating.to_owned(),
            arguments: ToolArguments::Object(serde_json::Map::new()),
        }
    }

    #[test]
    fn parents_read_title_and_rating_and_the_person_neither() {
        assert_eq!(
            format_title_request("Sam", &heat("R"), "4821"),
            "Sam asks for Heat (1995), rated R. Reply APPROVE 4821 or DENY 4821"
        );
        assert_eq!(
            format_title_request("Sam", &heat(""), "4821"),
            "Sam asks for Heat (1995), without an age rating. Reply APPROVE 4821 or DENY 4821"
        );
        for text in [format_asked("Dana"), format_already_asked("Dana"), format_title_denied("Dana")] {
            assert!(!text.contains("Heat"), "{text}");
        }
    }
}
