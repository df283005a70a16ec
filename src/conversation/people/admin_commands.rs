//! Admin commands, and the texts of replies to admins and users.

use super::naming::{UserName, display_name};
use super::onboarding;
use crate::conversation::invitation;
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::transcript::UserRights;
use crate::conversation::transcript::{User, UserRole, UserStatus};

/// Command of an admin. It is always a whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminCommand<'a> {
    Decide(AdminDecision, Option<ApprovalCode>),
    Users,
    Quota(QuotaCommand<'a>),
    Pause,
    Resume,
    /// Send this message to every user.
    Announce(&'a str),
    /// Create a link for a new person with this name.
    Invite(UserName),
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
        let is_code = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_code.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Command that shows or changes the quota of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaCommand<'a> {
    /// Name or phone number of the user.
    pub user_query: &'a str,
    /// Amount by which the quota changes; `None` only shows the quota.
    pub change: Option<i64>,
}

impl AdminCommand<'_> {
    /// Returns whether a user with these rights may send the command. A parent who is no admin only decides, with a code.
    pub fn is_permitted(&self, rights: UserRights) -> bool {
        let is_decision = matches!(self, Self::Decide(AdminDecision::Approve | AdminDecision::Deny, Some(_)));
        rights.role == UserRole::Admin || is_decision && rights.may_approve_titles()
    }
}

/// Returns whether a message approves what somebody asked for, or invites a person, who needs no approval then.
pub fn approves(text: &str) -> bool {
    match parse_admin_command(text) {
        Some(AdminCommand::Decide(AdminDecision::Approve, _) | AdminCommand::Invite(_)) => true,
        Some(
            AdminCommand::Decide(AdminDecision::Deny | AdminDecision::Block, _)
            | AdminCommand::Quota(_)
            | AdminCommand::Users
            | AdminCommand::Pause
            | AdminCommand::Resume
            | AdminCommand::Announce(_),
        )
        | None => false,
    }
}

/// Parses a message as an admin command, regardless of its sender. Case and trailing punctuation are ignored.
pub fn parse_admin_command(text: &str) -> Option<AdminCommand<'_>> {
    let text = text.trim();
    let unpunctuated = text.trim_end_matches(['.', '!', ' ']);
    let (verb, rest) = unpunctuated.split_once(char::is_whitespace).unwrap_or((unpunctuated, ""));
    let rest = rest.trim();
    match verb.to_lowercase().as_str() {
        "approve" | "approved" => parse_decision(AdminDecision::Approve, rest),
        "deny" | "denied" => parse_decision(AdminDecision::Deny, rest),
        "block" => parse_decision(AdminDecision::Block, rest),
        "users" if rest.is_empty() => Some(AdminCommand::Users),
        "pause" if rest.is_empty() => Some(AdminCommand::Pause),
        "resume" if rest.is_empty() => Some(AdminCommand::Resume),
        "quota" => parse_quota_command(rest),
        "invite" if invitation::parse_invitation(text).is_none() => {
            let is_vague = ["me", "my"].contains(&rest.split(' ').next().unwrap_or_default());
            onboarding::parse_introduction(rest).filter(|_| !is_vague).map(AdminCommand::Invite)
        }
        "tell" => {
            let (recipient, message) = text[verb.len()..].trim_start().split_once(char::is_whitespace)?;
            let is_to_everyone = matches!(
                recipient.trim_end_matches([':', ',']).to_lowercase().as_str(),
                "everyone" | "everybody"
            );
            let message = message.trim();
            (is_to_everyone && !message.is_empty()).then_some(AdminCommand::Announce(message))
        }
        _ => None,
    }
}

/// Parses a decision: "approve", "approve 4821" and "approve #4821" are commands; "approve of this movie" is not.
fn parse_decision(decision: AdminDecision, rest: &str) -> Option<AdminCommand<'_>> {
    let number = rest.trim_start_matches('#');
    // A number that is not a code is a typo, to which the reply lists the open approvals.
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| AdminCommand::Decide(decision, ApprovalCode::parse(number)))
}

fn parse_quota_command(rest: &str) -> Option<AdminCommand<'_>> {
    let (user_query, change) = match rest.rsplit_once(char::is_whitespace) {
        Some((user_query, change)) if change.starts_with(['+', '-']) => match change.parse::<i64>() {
            Ok(change) if change.abs() <= 10_000 => (user_query.trim(), Some(change)),
            // The text after the plus sign is the end of a phone number.
            Ok(_) => (rest, None),
            Err(_) => return None,
        },
        Some(_) | None => (rest, None),
    };
    (!user_query.is_empty()).then_some(AdminCommand::Quota(QuotaCommand { user_query, change }))
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
    let format_quota = |quota: Option<RateLimit>, noun: &str| match quota {
        Some(quota) => quota.format_limit(noun),
        None => format!("any number of {noun}s"),
    };
    format!("{} and {}", format_quota(movies, "movie"), format_quota(seasons, "season"))
}

/// Reply to every user except admins while the assistant is paused.
pub const PAUSED: &str =
    "The assistant is paused right now. If that takes more than an hour, please send this again.";

/// Formats the reply to a user whose messages exceed the rate limit.
pub fn format_rate_limited(rate: RateLimit) -> String {
    format!(
        "That is more than {}, so I ignored the rest. Please resend later what you still need.",
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
        for text in ["approve of dune", "approve 4821 and dune", "block buster", "deny everything"] {
            check(text, None);
        }
    }

    #[test]
    fn quota_command_names_a_user_and_a_change() {
        check(
            "quota Sam +5",
            Some(&AdminCommand::Quota(QuotaCommand { user_query: "Sam", change: Some(5) })),
        );
        check(
            "QUOTA sam smith -2",
            Some(&AdminCommand::Quota(QuotaCommand { user_query: "sam smith", change: Some(-2) })),
        );
        check("quota Sam", Some(&AdminCommand::Quota(QuotaCommand { user_query: "Sam", change: None })));
        check(
            "quota +15550100123 +5",
            Some(&AdminCommand::Quota(QuotaCommand { user_query: "+15550100123", change: Some(5) })),
        );
        check(
            "quota +1 555 010 0123",
            Some(&AdminCommand::Quota(QuotaCommand { user_query: "+1 555 010 0123", change: None })),
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
        let per_week = |max| Some(RateLimit { max, period: SignedDuration::from_hours(7 * 24) });
        assert_eq!(
            format_quotas(per_week(15), per_week(1)),
            "15 movies within 7 days and 1 season within 7 days"
        );
        assert_eq!(format_quotas(per_week(15), None), "15 movies within 7 days and any number of seasons");
    }
}
