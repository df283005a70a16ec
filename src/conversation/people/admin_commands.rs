//! Commands that an admin can send as a message, and their replies to the household.

use super::naming::display_name;
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::transcript::{User, UserRole, UserStatus};

/// Command of an admin, which is the whole of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminCommand<'a> {
    Decide(AdminDecision, Option<ApprovalCode>),
    Users,
    Quota(QuotaCommand<'a>),
    Pause,
    Resume,
    /// Message to every user.
    Announce(&'a str),
}

/// Decision of an admin on an open approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminDecision {
    Approve,
    Deny,
    Block,
}

/// Code that identifies one open approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalCode(String);

impl ApprovalCode {
    pub fn new(number: u16) -> Option<Self> {
        (number <= 9999).then(|| Self(format!("{number:04}")))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let four = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        four.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaCommand<'a> {
    /// Name or phone number of the user.
    pub who: &'a str,
    /// New value; `None` only shows the current one.
    pub change: Option<i64>,
}

/// Parses a message as an admin command, regardless of its sender. Case and closing punctuation do not matter.
pub fn parse_admin_command(text: &str) -> Option<AdminCommand<'_>> {
    let text = text.trim();
    let bare = text.trim_end_matches(['.', '!', ' ']);
    let (first, rest) = bare.split_once(char::is_whitespace).unwrap_or((bare, ""));
    let rest = rest.trim();
    match first.to_lowercase().as_str() {
        "approve" | "approved" => parse_decision(AdminDecision::Approve, rest),
        "deny" | "denied" => parse_decision(AdminDecision::Deny, rest),
        "block" => parse_decision(AdminDecision::Block, rest),
        "users" if rest.is_empty() => Some(AdminCommand::Users),
        "pause" if rest.is_empty() => Some(AdminCommand::Pause),
        "resume" if rest.is_empty() => Some(AdminCommand::Resume),
        "quota" => parse_quota_command(rest),
        "tell" => {
            let (to, words) = text[first.len()..].trim_start().split_once(char::is_whitespace)?;
            let everyone =
                matches!(to.trim_end_matches([':', ',']).to_lowercase().as_str(), "everyone" | "everybody");
            let words = words.trim();
            (everyone && !words.is_empty()).then_some(AdminCommand::Announce(words))
        }
        _ => None,
    }
}

/// Parses a decision: "approve", "approve 4821" and "approve #4821" are commands; "approve of this movie" is
/// conversation.
fn parse_decision(verdict: AdminDecision, rest: &str) -> Option<AdminCommand<'_>> {
    let number = rest.trim_start_matches('#');
    // A code with one digit too few or too many is a typo; the reply lists the open approvals.
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| AdminCommand::Decide(verdict, ApprovalCode::parse(number)))
}

fn parse_quota_command(rest: &str) -> Option<AdminCommand<'_>> {
    let (who, change) = match rest.rsplit_once(char::is_whitespace) {
        Some((who, change)) if change.starts_with(['+', '-']) => match change.parse::<i64>() {
            Ok(change) if change.abs() <= 10_000 => (who.trim(), Some(change)),
            // A phone number begins with a plus too.
            Ok(_) => (rest, None),
            Err(_) => return None,
        },
        Some(_) | None => (rest, None),
    };
    (!who.is_empty()).then_some(AdminCommand::Quota(QuotaCommand { who, change }))
}

/// Formats one line of the list of users.
pub fn format_user_line(user: &User) -> String {
    let mut notes = Vec::new();
    if user.test {
        notes.push("test");
    }
    match (user.status, user.rights.role) {
        (UserStatus::Blocked, _) => notes.push("blocked"),
        (UserStatus::Pending, _) => notes.push("waiting"),
        (UserStatus::Active, UserRole::Admin) => notes.push("admin"),
        (UserStatus::Active, UserRole::Member) => {
            if user.rights.delete {
                notes.push("may delete");
            }
            if user.rights.four_k {
                notes.push("4K");
            }
            if !user.rights.add {
                notes.push("may not add");
            }
        }
    }
    if user.opted_out {
        notes.push("opted out");
    }
    let name = display_name(user);
    if notes.is_empty() { name } else { format!("{name} ({})", notes.join(", ")) }
}

/// Formats the quotas of a member: `15 movies within 7 days and 10 seasons within 7 days`.
pub fn format_quotas(movies: Option<RateLimit>, seasons: Option<RateLimit>) -> String {
    let one = |rate: Option<RateLimit>, what: &str| match rate {
        Some(rate) => rate.format_limit(what),
        None => format!("any number of {what}s"),
    };
    format!("{} and {}", one(movies, "movie"), one(seasons, "season"))
}

/// Reply to every user except admins while the assistant is paused.
pub const PAUSED: &str =
    "The assistant is paused right now. If that takes more than an hour, please send this again.";

/// Reply to a user whose messages exceed the rate limit.
pub fn format_rate_limited(rate: RateLimit) -> String {
    format!(
        "That is more than {}. I left out the rest. Please send again later what you still need.",
        rate.format_limit("text")
    )
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&AdminCommand<'_>>) {
        assert_eq!(parse_admin_command(text).as_ref(), expected, "{text:?}");
    }

    fn code(text: &str) -> Option<ApprovalCode> {
        ApprovalCode::parse(text)
    }

    #[test]
    fn decision_names_its_code() {
        check("APPROVE 4821", Some(&AdminCommand::Decide(AdminDecision::Approve, code("4821"))));
        check(" approve  #0007. ", Some(&AdminCommand::Decide(AdminDecision::Approve, code("0007"))));
        check("Deny 4821!", Some(&AdminCommand::Decide(AdminDecision::Deny, code("4821"))));
        check("block 4821", Some(&AdminCommand::Decide(AdminDecision::Block, code("4821"))));
        check("approve", Some(&AdminCommand::Decide(AdminDecision::Approve, None)));
        check("approve 482", Some(&AdminCommand::Decide(AdminDecision::Approve, None)));
        for ordinary in ["approve of dune", "approve 4821 and dune", "block buster", "deny everything"] {
            check(ordinary, None);
        }
    }

    #[test]
    fn quota_command_names_a_user_and_a_change() {
        check("quota Sam +5", Some(&AdminCommand::Quota(QuotaCommand { who: "Sam", change: Some(5) })));
        check(
            "QUOTA sam smith -2",
            Some(&AdminCommand::Quota(QuotaCommand { who: "sam smith", change: Some(-2) })),
        );
        check("quota Sam", Some(&AdminCommand::Quota(QuotaCommand { who: "Sam", change: None })));
        check(
            "quota +15550100123 +5",
            Some(&AdminCommand::Quota(QuotaCommand { who: "+15550100123", change: Some(5) })),
        );
        check(
            "quota +1 555 010 0123",
            Some(&AdminCommand::Quota(QuotaCommand { who: "+1 555 010 0123", change: None })),
        );
        check("quota", None);
        check("quota Sam +x", None);
    }

    #[test]
    fn other_admin_commands_are_one_word_or_a_broadcast() {
        check("Users", Some(&AdminCommand::Users));
        check("pause", Some(&AdminCommand::Pause));
        check("RESUME.", Some(&AdminCommand::Resume));
        check("pause dune", None);
        check("tell everyone: Movie night at 8!", Some(&AdminCommand::Announce("Movie night at 8!")));
        check("tell everyone", None);
        check("tell me about dune", None);
    }

    #[test]
    fn quotas_are_formatted_in_words() {
        let week = |most| Some(RateLimit { max: most, period: SignedDuration::from_hours(7 * 24) });
        assert_eq!(format_quotas(week(15), week(1)), "15 movies within 7 days and 1 season within 7 days");
        assert_eq!(format_quotas(week(15), None), "15 movies within 7 days and any number of seasons");
    }
}
