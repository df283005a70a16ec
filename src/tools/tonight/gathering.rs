//! People with whom a user can watch something, and those who take part.

use serde_json::json;

use crate::conversation::people::age_ratings::AgeLimit;
use crate::conversation::rating_caps::RatingCaps;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{CallFailure, FailureCode, UserId};
use crate::conversation::viewer_accounts::ViewerAccount;
use crate::conversation::votes::tonight::{NamedPeople, NamedPerson, UnclearName, find_named_people};
use crate::conversation::votes::{tonight_messages, vote_messages};
use crate::tools::ToolContext;

/// Active people of the household, and the state of their votes.
#[derive(Debug, Clone, Default)]
pub struct Gathering {
    pub people: Vec<Companion>,
    /// Reason why the user cannot start a vote.
    pub obstacle: Option<VoteObstacle>,
}

impl Gathering {
    /// Returns the same people, of whom no answer mentions what they have watched.
    #[must_use]
    pub fn without_accounts(mut self) -> Self {
        for person in &mut self.people {
            person.accounts.clear();
        }
        self
    }
}

/// Person with whom a user can watch something.
#[derive(Debug, Clone)]
pub struct Companion {
    pub user: UserId,
    pub name: String,
    /// True for the user.
    pub is_asker: bool,
    pub caps: RatingCaps,
    /// Accounts at the media servers.
    pub accounts: Vec<ViewerAccount>,
    /// True if the person can be asked now, or has written in the room of the question.
    pub takes_part: bool,
}

/// Reason why a user cannot start a vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoteObstacle {
    /// A vote in which the user takes part is open.
    AlreadyOpen,
    /// A vote of other people is open.
    OthersVote,
    TooMany,
}

impl VoteObstacle {
    /// Returns the failure of a call that would start a vote.
    pub fn into_failure(self) -> CallFailure {
        let text = match self {
            Self::AlreadyOpen => vote_messages::ALREADY_OPEN.to_owned(),
            Self::OthersVote => vote_messages::OTHERS_VOTE.to_owned(),
            Self::TooMany => vote_messages::format_too_many(),
        };
        CallFailure::new(FailureCode::NotPermitted, json!({ "hint": text }), Some(text))
    }
}

/// People who take part.
#[derive(Debug, Clone)]
pub(super) struct Participants<'a> {
    pub(super) people: Vec<&'a Companion>,
    /// Named people who cannot be asked now. Their caps and what they have watched count nevertheless.
    pub(super) unreachable: Vec<String>,
}

impl<'a> Participants<'a> {
    /// Finds the people whom a request names. The user always takes part. In a room, so does everybody who has written
    /// there, because everybody reads the options.
    pub(super) fn find(names: &[String], context: &'a ToolContext) -> Result<Self, CallFailure> {
        let known = &context.gathering.people;
        let named: Vec<NamedPerson<'_>> = known
            .iter()
            .map(|person| NamedPerson { name: &person.name, is_asker: person.is_asker })
            .collect();
        let found = find_named_people(names, &named).map_err(|unclear| unclear_name(&unclear))?;
        let is_in_room = context.audience == Audience::Room;
        let is_chosen = |(index, person): (usize, &'a Companion)| {
            let is_chosen = match &found {
                NamedPeople::Everybody => person.takes_part,
                NamedPeople::Named(named) => named.contains(&index) || is_in_room && person.takes_part,
            };
            (is_chosen || person.is_asker).then_some(person)
        };
        let people: Vec<&Companion> = known.iter().enumerate().filter_map(is_chosen).collect();
        let cannot_be_asked = |person: &&&Companion| !is_in_room && !person.is_asker && !person.takes_part;
        let unreachable = people.iter().filter(cannot_be_asked).map(|person| person.name.clone());
        Ok(Self { unreachable: unreachable.collect(), people })
    }

    /// Returns the people to ask in their private chats.
    pub(super) fn asked(&self) -> Vec<&'a Companion> {
        self.people.iter().copied().filter(|person| !person.is_asker && person.takes_part).collect()
    }

    /// Returns whether only the user takes part.
    pub(super) fn is_alone(&self) -> bool {
        self.people.iter().all(|person| person.is_asker)
    }

    /// Returns the limit of the titles that everybody may see. A title that a parent approved for one person is not
    /// approved for the others.
    pub(super) fn age_limit(&self, own: &AgeLimit) -> AgeLimit {
        if self.is_alone() {
            return own.clone();
        }
        let caps = self.people.iter().map(|person| person.caps).fold(own.caps, RatingCaps::strictest);
        AgeLimit { caps, ..AgeLimit::default() }
    }

    /// Returns the names of the people whose watching is unknown; the user is `you`.
    pub(super) fn unlinked(&self) -> Vec<String> {
        let unlinked = self.people.iter().filter(|person| person.accounts.is_empty());
        unlinked.map(|person| if person.is_asker { "you".to_owned() } else { person.name.clone() }).collect()
    }
}

/// Failure of a call with a name that does not name one person.
fn unclear_name(unclear: &UnclearName) -> CallFailure {
    let text = tonight_messages::format_unclear_name(unclear);
    CallFailure::new(FailureCode::NotKnown, json!({ "hint": format!("ask the user: {text}") }), Some(text))
}
