//! Requests at a Seerr that admins decide on by text, and the texts about the states of requests there.

use super::title_requests::RequestedTitle;

/// Request at a Seerr that waits for a decision, as it is offered to the admins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeerrOffer {
    /// Id of the request at the Seerr.
    pub request: i64,
    /// Id of the user at the Seerr who asks.
    pub requester_id: String,
    /// Name of this user.
    pub requester: String,
    /// Name of the title, with its seasons.
    pub title: String,
}

/// Reply to an admin whose decision is passed on.
pub const DECISION_NOTED: &str = "OK, I'll pass that on to Seerr.";
/// Reply to an admin in whose name nothing can be decided.
pub const ADMIN_NOT_LINKED: &str = "You are not linked to Seerr, so I can't decide there for you. Text LINK SEERR and your name there first.";

/// Formats the message to the admins about a request that waits for them.
pub fn format_offer(offer: &SeerrOffer, code: &str) -> String {
    let SeerrOffer { requester, title, .. } = offer;
    format!("{requester} asks for {title} in Seerr. Reply APPROVE {code} or DENY {code}")
}

/// Formats the message to a user whose request was approved.
pub fn format_approved(title: &RequestedTitle) -> String {
    format!("Your request for {} was approved.", title.format_name())
}

/// Formats the message to a user whose request the Seerr could not pass on to Sonarr or Radarr.
pub fn format_failed(title: &RequestedTitle) -> String {
    format!("Seerr could not get {}, which you asked for. An admin has to check it.", title.format_name())
}

/// Formats the message to an admin who may not decide at the Seerr.
pub fn format_not_permitted(title: &str) -> String {
    format!("Seerr does not let you decide on {title}. Nothing was changed.")
}

/// Formats the message to an admin about a request that was withdrawn.
pub fn format_gone(title: &str) -> String {
    format!("The request for {title} is gone from Seerr.")
}

/// Formats the message to an admin about a request that somebody decided differently.
pub fn format_decided_before(title: &str) -> String {
    format!("The request for {title} was already decided in Seerr.")
}

/// Formats the message to an admin whose decision could not be passed on.
pub fn format_not_passed_on(title: &str) -> String {
    format!("I could not pass your decision on {title} on to Seerr. Please decide there.")
}
