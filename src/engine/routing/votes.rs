//! Commands about votes, which code answers without a model.

use super::turn_start::{TurnStart, TurnStartOutcome};
use super::user_context::UserContext;
use crate::conversation::people::naming;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::route;
use crate::conversation::transcript::{Responder, User, UserId, UserRole};
use crate::conversation::votes::vote_command::{self, VoteCommand};
use crate::conversation::votes::{InvalidVote, VoteMessage, VoteQuestion, vote_messages};
use crate::engine::reply_address::{self, ReplyAddress};
use crate::engine::votes::{closing, electorate, opening};
use crate::store::QueryResult;
use crate::store::people::users;
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::store::queue::outbox::{self, NewOutboundMessage};
use crate::store::turns::finished_turns::{self, TurnEnd};
use crate::store::turns::turn_lifecycle::{TurnKind, TurnPlan};
use crate::store::votes::{self, Ballot, StartOutcome, Vote, Voter};

impl TurnStart<'_> {
    pub(super) fn run_vote_command(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let open = match votes::find_open_vote(self.conn, events[0].room)? {
            Some(vote) if electorate::may_take_part(self.conn, &vote, user)? => Some(vote),
            Some(_) | None => None,
        };
        let text = match (vote_command::parse_vote_reply(&events[0].body), open) {
            (Some(VoteCommand::Start(question)), _) => {
                return self.start_vote(user, context, events, question);
            }
            (Some(VoteCommand::Close), Some(vote)) => return self.end_vote(user, context, events, &vote),
            (Some(VoteCommand::Choose(number)), Some(vote)) => {
                return self.choose_option(user, context, events, (&vote, Some(number)));
            }
            (Some(VoteCommand::ChooseByName(words)), Some(vote)) => {
                let number = vote.question.find_option(&words);
                return self.choose_option(user, context, events, (&vote, number));
            }
            (Some(VoteCommand::Show), Some(vote)) => self.format_vote(user, &vote)?,
            (Some(_) | None, None) | (None, Some(_)) => vote_messages::NO_OPEN_VOTE.to_owned(),
        };
        self.answer_and_drop_prompt(user, context, events, &text)
    }

    /// Asks which numbered list a number means.
    pub(super) fn ask_which_list(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let routing = context.routing_context(user, self.settings, 0);
        let text = route::which_list_question(&routing, &events[0]);
        let text = text.unwrap_or_else(|| vote_messages::NO_OPEN_VOTE.to_owned());
        self.answer_and_drop_prompt(user, context, events, &text)
    }

    fn start_vote(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
        question: Result<VoteQuestion, InvalidVote>,
    ) -> QueryResult<TurnStartOutcome> {
        let question = match question {
            Ok(question) => question,
            Err(invalid) => {
                let text = vote_messages::format_invalid(invalid);
                return self.answer_and_drop_prompt(user, context, events, text);
            }
        };
        let room = events[0].room;
        let others = if room.is_some() { Vec::new() } else { self.load_other_voters(user)? };
        if room.is_none() && others.is_empty() {
            return self.answer_and_drop_prompt(user, context, events, vote_messages::NOBODY_ELSE);
        }
        let vote = match votes::start_vote(self.conn, (user.id, room), &question, self.now)? {
            StartOutcome::Started(vote) => vote,
            StartOutcome::AlreadyOpen => {
                let text = self.format_open_vote(user, room)?;
                return self.answer_and_drop_prompt(user, context, events, text);
            }
            StartOutcome::TooMany => {
                let text = vote_messages::format_too_many();
                return self.answer_and_drop_prompt(user, context, events, &text);
            }
        };
        let text = if room.is_some() {
            vote_messages::format_question(&question)
        } else {
            let asked = self.ask_voters(user, &vote, &others)?;
            vote_messages::format_started(&question, &asked, vote.closes_at, &self.settings.zone)
        };
        self.answer_about_vote(user, context, events, (VoteMessage::Asks(vote.id), text))
    }

    /// Answers with the question or the result of a vote.
    fn answer_about_vote(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
        (message, text): (VoteMessage, String),
    ) -> QueryResult<TurnStartOutcome> {
        let closing = self.drop_prompt(user, context, events)?;
        let plan = TurnPlan::for_responder(Responder::Keyword);
        let turn = self.open_turn(user, TurnKind::Command, &plan, events)?.id;
        let address = ReplyAddress::from_turn(user.clone(), turn, events);
        let key = match message {
            VoteMessage::Asks(vote) => format!("poll:{vote}:ask"),
            VoteMessage::AsksStarter => format!("poll:turn:{turn}:ask"),
            VoteMessage::Announces(vote) => format!("poll:{vote}:result:turn:{turn}"),
        };
        let about_vote = |text: &str| NewOutboundMessage {
            key: key.clone(),
            vote: Some(message),
            ..address.reply_message(text.to_owned())
        };
        let is_poll = address.room().is_some() && matches!(message, VoteMessage::Asks(_));
        let messages = match closing {
            // A poll has no room for another sentence.
            Some(closing) if is_poll => {
                let poll = NewOutboundMessage { turn: None, ..about_vote(&text) };
                outbox::queue_message(self.conn, &poll, self.now)?;
                vec![address.reply_message(closing)]
            }
            Some(closing) => vec![about_vote(&reply_address::prepend_sentence(&closing, &text))],
            None => vec![about_vote(&text)],
        };
        let end = TurnEnd { turn, outcome: MessageOutcome::Replied, answer: Some(text), messages };
        finished_turns::finish_turn(self.conn, &end, self.now)?;
        Ok(TurnStartOutcome::Answered)
    }

    /// Returns the answer to a person who wants to start a vote while another one is open.
    fn format_open_vote(&mut self, user: &User, room: Option<UserId>) -> QueryResult<&'static str> {
        let is_visible = match votes::find_open_vote(self.conn, room)? {
            Some(vote) => electorate::may_take_part(self.conn, &vote, user)?,
            None => true,
        };
        Ok(if is_visible { vote_messages::ALREADY_OPEN } else { vote_messages::OTHERS_VOTE })
    }

    /// Loads the people in the household who can be asked now, except those with caps: the options are free text, so they
    /// may be over the caps of a person.
    fn load_other_voters(&mut self, user: &User) -> QueryResult<Vec<User>> {
        let mut voters = Vec::new();
        for other in users::load_known_users(self.conn)? {
            let may_learn = other.rights.rating_caps().is_unlimited();
            if other.id == user.id || user.test || !may_learn {
                continue;
            }
            if electorate::can_be_asked(self.conn, self.settings, &other, self.now)? {
                voters.push(other);
            }
        }
        Ok(voters)
    }

    /// Asks people in their private chats, and returns their names.
    fn ask_voters(&mut self, asker: &User, vote: &Vote, voters: &[User]) -> QueryResult<Vec<String>> {
        let (name, zone) = (naming::display_name(asker), &self.settings.zone);
        let text = vote_messages::format_ballot(&vote.question, &name, vote.closes_at, zone);
        for voter in voters {
            opening::queue_ballot(self.conn, vote, (voter, &text), self.settings, self.now)?;
        }
        Ok(voters.iter().map(naming::display_name).collect())
    }

    fn choose_option(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
        (vote, number): (&Vote, Option<u8>),
    ) -> QueryResult<TurnStartOutcome> {
        let chosen = number.and_then(|number| Some((number, vote.question.option(number)?)));
        let Some((number, option)) = chosen else {
            return self.answer_and_drop_prompt(user, context, events, vote_messages::NO_SUCH_OPTION);
        };
        let ballot = Ballot { choice: Some(number), number: None };
        votes::store_ballot(self.conn, vote.id, &Voter::User(user.id), ballot, self.now)?;
        let text = vote_messages::format_choice(option, vote.closes_at, &self.settings.zone);
        let outcome = if events[0].press.is_some() {
            // A button is no change of the subject.
            self.answer_by_code(user, TurnKind::Command, events, &text)?
        } else {
            self.answer_and_drop_prompt(user, context, events, &text)?
        };
        if vote.room.is_none() && !self.is_awaited(vote)? {
            closing::close_vote(self.conn, self.settings, vote, self.now)?;
        }
        Ok(outcome)
    }

    /// Returns whether somebody who is asked in a private chat has not voted.
    fn is_awaited(&mut self, vote: &Vote) -> QueryResult<bool> {
        for awaited in electorate::load_awaited_users(self.conn, vote)? {
            if votes::load_choice(self.conn, vote.id, awaited)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn end_vote(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
        vote: &Vote,
    ) -> QueryResult<TurnStartOutcome> {
        if vote.started_by != user.id && user.rights.role != UserRole::Admin {
            return self.answer_and_drop_prompt(user, context, events, vote_messages::NOT_YOURS);
        }
        match closing::close_vote_for(self.conn, self.settings, (vote, user.id), self.now)? {
            Some(text) => {
                self.answer_about_vote(user, context, events, (VoteMessage::Announces(vote.id), text))
            }
            None => self.answer_and_drop_prompt(user, context, events, vote_messages::NO_OPEN_VOTE),
        }
    }

    pub(super) fn format_vote(&mut self, user: &User, vote: &Vote) -> QueryResult<String> {
        let tally = votes::count_ballots(self.conn, vote)?;
        let own = votes::load_choice(self.conn, vote.id, user.id)?;
        Ok(vote_messages::format_state(&vote.question, &tally, own, vote.closes_at, &self.settings.zone))
    }
}
