//! What an admin can order by text, and what the household hears of it.

use super::naming::called;
use super::rate::Rate;
use super::transcript::{Role, Status, User};

/// An order that the whole of a text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order<'a> {
    Settle(Verdict, Option<FourDigits>),
    Users,
    Quota(Quota<'a>),
    Pause,
    Resume,
    /// A text to everyone.
    Tell(&'a str),
}

/// An admin's answer to what waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Approve,
    Deny,
    Block,
}

/// The code that settles one of the things that wait for an admin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FourDigits(String);

impl FourDigits {
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
pub struct Quota<'a> {
    /// A name or a number.
    pub who: &'a str,
    /// `None`: only tell.
    pub change: Option<i64>,
}

/// Reads a text as an order, whoever sent it. Case and closing punctuation do not matter.
pub fn read(text: &str) -> Option<Order<'_>> {
    let text = text.trim();
    let bare = text.trim_end_matches(['.', '!', ' ']);
    let (first, rest) = bare.split_once(char::is_whitespace).unwrap_or((bare, ""));
    let rest = rest.trim();
    match first.to_lowercase().as_str() {
        "approve" | "approved" => settle(Verdict::Approve, rest),
        "deny" | "denied" => settle(Verdict::Deny, rest),
        "block" => settle(Verdict::Block, rest),
        "users" if rest.is_empty() => Some(Order::Users),
        "pause" if rest.is_empty() => Some(Order::Pause),
        "resume" if rest.is_empty() => Some(Order::Resume),
        "quota" => quota(rest),
        "tell" => {
            let (to, words) = text[first.len()..].trim_start().split_once(char::is_whitespace)?;
            let everyone =
                matches!(to.trim_end_matches([':', ',']).to_lowercase().as_str(), "everyone" | "everybody");
            let words = words.trim();
            (everyone && !words.is_empty()).then_some(Order::Tell(words))
        }
        _ => None,
    }
}

/// "approve", "approve 4821" and "approve #4821" are orders; "approve of this movie" is talk.
fn settle(verdict: Verdict, rest: &str) -> Option<Order<'_>> {
    let number = rest.trim_start_matches('#');
    // A code with a digit too few or too many is a slip, and what is open is listed.
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Order::Settle(verdict, FourDigits::parse(number)))
}

fn quota(rest: &str) -> Option<Order<'_>> {
    let (who, change) = match rest.rsplit_once(char::is_whitespace) {
        Some((who, change)) if change.starts_with(['+', '-']) => match change.parse::<i64>() {
            Ok(change) if change.abs() <= 10_000 => (who.trim(), Some(change)),
            // A number of a phone begins with a plus too.
            Ok(_) => (rest, None),
            Err(_) => return None,
        },
        Some(_) | None => (rest, None),
    };
    (!who.is_empty()).then_some(Order::Quota(Quota { who, change }))
}

/// One line of the list of users.
pub fn listed(user: &User) -> String {
    let mut notes = Vec::new();
    if user.test {
        notes.push("test");
    }
    match (user.status, user.rights.role) {
        (Status::Blocked, _) => notes.push("blocked"),
        (Status::Pending, _) => notes.push("waiting"),
        (Status::Active, Role::Admin) => notes.push("admin"),
        (Status::Active, Role::Member) => {
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
    let name = called(user);
    if notes.is_empty() { name } else { format!("{name} ({})", notes.join(", ")) }
}

/// What a member may add: `15 movies within 7 days and 10 seasons within 7 days`.
pub fn quota_in_words(movies: Option<Rate>, seasons: Option<Rate>) -> String {
    let one = |rate: Option<Rate>, what: &str| match rate {
        Some(rate) => rate.of(what),
        None => format!("any number of {what}s"),
    };
    format!("{} and {}", one(movies, "movie"), one(seasons, "season"))
}

/// What anyone but an admin is told while the assistant is paused.
pub const PAUSED: &str =
    "The assistant is paused right now. If that takes more than an hour, please send this again.";

/// What somebody is told whose texts come too fast.
pub fn too_fast(rate: Rate) -> String {
    format!(
        "That is more than {}. I left out the rest. Please send again later what you still need.",
        rate.of("text")
    )
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&Order<'_>>) {
        assert_eq!(read(text).as_ref(), expected, "{text:?}");
    }

    fn code(text: &str) -> Option<FourDigits> {
        FourDigits::parse(text)
    }

    #[test]
    fn a_verdict_names_its_code() {
        check("APPROVE 4821", Some(&Order::Settle(Verdict::Approve, code("4821"))));
        check(" approve  #0007. ", Some(&Order::Settle(Verdict::Approve, code("0007"))));
        check("Deny 4821!", Some(&Order::Settle(Verdict::Deny, code("4821"))));
        check("block 4821", Some(&Order::Settle(Verdict::Block, code("4821"))));
        check("approve", Some(&Order::Settle(Verdict::Approve, None)));
        check("approve 482", Some(&Order::Settle(Verdict::Approve, None)));
        for talk in ["approve of dune", "approve 4821 and dune", "block buster", "deny everything"] {
            check(talk, None);
        }
    }

    #[test]
    fn a_quota_names_whom_and_how_many_more() {
        check("quota Sam +5", Some(&Order::Quota(Quota { who: "Sam", change: Some(5) })));
        check("QUOTA sam smith -2", Some(&Order::Quota(Quota { who: "sam smith", change: Some(-2) })));
        check("quota Sam", Some(&Order::Quota(Quota { who: "Sam", change: None })));
        check("quota +15550100123 +5", Some(&Order::Quota(Quota { who: "+15550100123", change: Some(5) })));
        check("quota +1 555 010 0123", Some(&Order::Quota(Quota { who: "+1 555 010 0123", change: None })));
        check("quota", None);
        check("quota Sam +x", None);
    }

    #[test]
    fn other_orders_are_one_word_or_a_text_to_everyone() {
        check("Users", Some(&Order::Users));
        check("pause", Some(&Order::Pause));
        check("RESUME.", Some(&Order::Resume));
        check("pause dune", None);
        check("tell everyone: Movie night at 8!", Some(&Order::Tell("Movie night at 8!")));
        check("tell everyone", None);
        check("tell me about dune", None);
    }

    #[test]
    fn a_quota_is_told_in_words() {
        let week = |most| Some(Rate { most, within: SignedDuration::from_hours(7 * 24) });
        assert_eq!(quota_in_words(week(15), week(1)), "15 movies within 7 days and 1 season within 7 days");
        assert_eq!(quota_in_words(week(15), None), "15 movies within 7 days and any number of seasons");
    }
}
