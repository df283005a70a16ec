//! Commands about the digest, and the numbers of its lines, which code answers without a model.

use super::turn_start::{TurnStart, TurnStartOutcome};
use super::user_context::UserContext;
use crate::conversation::digest::content::{DigestLine, format_details_request};
use crate::conversation::digest::digest_command::{self, DigestCommand};
use crate::conversation::digest::digest_messages::{self, DigestArrival};
use crate::conversation::digest::schedule::{self, DigestSchedule};
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::transcript::{Responder, User, UserId, VoteId};
use crate::conversation::votes::vote_messages;
use crate::engine::digests::waiting_items::may_decide;
use crate::store::confirmation::approvals;
use crate::store::library::title_requests;
use crate::store::queue::notifications::{self, NotificationSetting};
use crate::store::turns::turn_lifecycle::{TurnKind, TurnPlan};
use crate::store::{QueryResult, digests, votes};

impl TurnStart<'_> {
    /// Runs a command about the digest of the person, or of the room in which it was written.
    pub(super) fn run_digest_command(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let reader = events[0].conversation_owner(user.id);
        let is_room = events[0].room.is_some();
        let text = match digest_command::parse_digest_command(&events[0].body) {
            Some(DigestCommand::Set(schedule)) => {
                digests::store_schedule(self.conn, reader, Some(schedule), self.now)?;
                self.wakes.has_changed_digest = true;
                self.describe_arrival(reader, (schedule, is_room), digest_messages::format_set)?
            }
            Some(DigestCommand::Off) => {
                digests::store_schedule(self.conn, reader, None, self.now)?;
                digest_messages::TURNED_OFF.to_owned()
            }
            Some(DigestCommand::Show) => match digests::load_schedule(self.conn, reader)? {
                Some(schedule) => {
                    digests::request_preview(self.conn, reader, events[0].id)?;
                    self.wakes.has_changed_digest = true;
                    self.describe_arrival(reader, (schedule, is_room), digest_messages::format_shown)?
                }
                None => digest_messages::NOT_SET.to_owned(),
            },
            Some(DigestCommand::Unclear) | None => digest_messages::UNCLEAR.to_owned(),
        };
        self.answer_and_drop_prompt(user, context, events, &text)
    }

    /// Formats when the digest really comes.
    fn describe_arrival(
        &mut self,
        reader: UserId,
        (schedule, is_room): (DigestSchedule, bool),
        format: fn(&DigestArrival<'_>) -> String,
    ) -> QueryResult<String> {
        let zone = &self.settings.zone;
        let quiet_hours = notifications::load_quiet_hours(self.conn, reader)?.or(self.settings.quiet_hours);
        let setting = notifications::load_notification_setting(self.conn, reader)?;
        let due = schedule.next_due(self.now, zone);
        let arrival = due.map(|due| schedule::arrival(due, quiet_hours, zone));
        Ok(format(&DigestArrival {
            schedule,
            postponed_to: arrival.filter(|arrival| Some(*arrival) != due),
            is_room,
            zone,
            gets_notifications: is_room || setting != NotificationSetting::Off,
        }))
    }

    /// Acts on the line of the digest with this number.
    pub(super) fn act_on_digest_line(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
        number: u8,
    ) -> QueryResult<TurnStartOutcome> {
        let line = match context.digest {
            Some(digest) => digests::find_line(self.conn, digest, number)?,
            None => None,
        };
        let text = match line {
            Some(DigestLine::Title(kind, title)) => {
                let request = format_details_request(kind, &title);
                return self.start_details_turn(user, context, events, request);
            }
            Some(DigestLine::Leaving { number, title }) => digest_messages::format_keep(&title, number),
            Some(DigestLine::Approval(id)) => self.repeat_approval(user, id)?,
            Some(DigestLine::OwnRequest { id, title }) => {
                match approvals::load_open_approvals_about(self.conn, user.id)?
                    .iter()
                    .any(|open| open.id == id)
                {
                    true => digest_messages::format_own_request(&title),
                    false => digest_messages::ALREADY_DECIDED.to_owned(),
                }
            }
            Some(DigestLine::Addition { id, title }) => {
                match title_requests::load_open_addition(self.conn, id)? {
                    Some(_) => digest_messages::format_waiting_addition(&title),
                    None => digest_messages::ADDITION_ENDED.to_owned(),
                }
            }
            Some(DigestLine::Vote(vote)) => self.repeat_vote(user, vote)?,
            None => digest_messages::NO_SUCH_LINE.to_owned(),
        };
        self.answer_and_drop_prompt(user, context, events, &text)
    }

    /// Starts a turn in which the keyword responder gives the details of a title.
    fn start_details_turn(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
        request: String,
    ) -> QueryResult<TurnStartOutcome> {
        let preface = self.drop_prompt(user, context, events)?;
        let plan =
            TurnPlan { request: Some(request), preface, ..TurnPlan::for_responder(Responder::Keyword) };
        Ok(TurnStartOutcome::Turn(self.open_turn(user, TurnKind::Chat, &plan, events)?))
    }

    /// Repeats the request about an open approval, with a valid code.
    fn repeat_approval(&mut self, user: &User, id: i64) -> QueryResult<String> {
        let open = approvals::load_open_approvals(self.conn)?.into_iter().find(|open| open.id == id);
        let is_open = |open: &approvals::Approval| !open.has_expired(self.now) && may_decide(user, open);
        let Some(approval) = open.filter(is_open) else {
            return Ok(digest_messages::ALREADY_DECIDED.to_owned());
        };
        let approval = match approvals::is_code_disabled(&approval) {
            true => self.replace_code(user, &approval)?,
            false => approval,
        };
        self.format_approval_request(&approval)
    }

    fn repeat_vote(&mut self, user: &User, vote: VoteId) -> QueryResult<String> {
        match votes::load_vote(self.conn, vote)?.filter(|vote| vote.closed_at.is_none()) {
            Some(vote) => self.format_vote(user, &vote),
            None => Ok(vote_messages::NO_OPEN_VOTE.to_owned()),
        }
    }
}
